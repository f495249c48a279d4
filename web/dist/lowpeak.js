import { api as zr } from "../../scripts/api.js";
import { app as Xn } from "../../scripts/app.js";
class es extends Error {
}
class Fr {
  constructor(t, l) {
    this.app = t, this.api = l;
  }
  app;
  api;
  /** Server's clock less this one's, in seconds. Runs are timed by the server. */
  skew = 0;
  unixSeconds() {
    return Date.now() / 1e3 + this.skew;
  }
  state() {
    return this.ask("/lowpeak/state");
  }
  async runs() {
    return (await this.ask("/lowpeak/runs")).runs;
  }
  run(t) {
    return this.ask(`/lowpeak/runs/${encodeURIComponent(t)}`);
  }
  forecast(t, l = {}) {
    return this.ask("/lowpeak/forecast", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ prompt: t, ...l })
    });
  }
  async prompt() {
    return (await this.app.graphToPrompt()).output;
  }
  /** Changes whenever a widget, a link or a node does that a forecast could depend on. */
  signature() {
    const t = [], l = (n) => {
      for (const s of n?.nodes ?? n?._nodes ?? [])
        if (s.subgraph && l(s.subgraph), !!/Lowpeak|MiniMaxH3|Primitive/.test(s.type ?? "")) {
          t.push(s.id, s.type, s.mode);
          for (const r of s.widgets ?? [])
            (["number", "boolean"].includes(typeof r.value) || Vr(r.value)) && t.push(r.value);
          for (const r of s.inputs ?? []) t.push(r.link ?? 0);
        }
    };
    return l(this.graph()), JSON.stringify(t);
  }
  /** Set widgets; gives the settings whose widget was not found. */
  apply(t) {
    const l = [];
    for (const n of t) {
      const s = this.find(n.node)?.widgets?.find((r) => r.name === n.widget);
      if (!s) {
        l.push(n);
        continue;
      }
      s.value = n.value, s.callback?.(n.value);
    }
    return this.graph()?.setDirtyCanvas?.(!0, !0), this.app.extensionManager.workflow?.activeWorkflow?.changeTracker?.checkState?.(), l;
  }
  graph() {
    return this.app.rootGraph ?? this.app.graph;
  }
  /** Ids inside subgraphs read "12:5": node 5 of the subgraph that is node 12. */
  find(t) {
    let l = this.graph(), n;
    for (const s of t.split(":"))
      n = l?.getNodeById(s) ?? l?.getNodeById(Number(s)), l = n?.subgraph;
    return n ?? void 0;
  }
  async ask(t, l) {
    let n;
    try {
      n = await this.api.fetchApi(t, l);
    } catch {
      throw new es("ComfyUI does not answer.");
    }
    const r = (Date.parse(n.headers.get("Date") ?? "") - Date.now()) / 1e3;
    Math.abs(r) > 2 && (this.skew = r);
    const a = await n.json().catch(() => null);
    if (n.ok && a) return a;
    throw n.status === 404 && !a ? new es("Lowpeak's routes are missing: its server part did not load.") : new es(a?.message || `ComfyUI answered ${n.status}.`);
  }
}
function Vr(e) {
  return typeof e == "string" && e.length < 80;
}
const Br = 200, Or = ["LowpeakSample", "LowpeakRefine", "LowpeakPlan"], fi = 50;
function Ir(e) {
  return Object.values(e).some((t) => Or.includes(t.class_type));
}
function go(e) {
  const t = (l) => typeof l == "string" && l.length > Br ? "" : l;
  return Object.fromEntries(
    Object.entries(e).map(([l, n]) => [
      l,
      {
        class_type: n.class_type,
        inputs: Object.fromEntries(
          Object.entries(n.inputs ?? {}).filter(([s]) => s !== "prompt" && s !== "text").map(([s, r]) => [s, t(r)])
        )
      }
    ])
  );
}
function Gr(e, t, l) {
  const n = t == null ? void 0 : e[t];
  if (!n || t == null) return [];
  const s = Wr(e, t, n), r = e[s];
  if (!r) return [];
  const a = [];
  for (const [p, f] of Object.entries(e)) {
    const d = Hr(e, f, r) && /Lowpeak|MiniMaxH3/.test(f.class_type);
    p !== s && !d || (dn(a, e, p, "width", l.width), dn(a, e, p, "height", l.height), dn(a, e, p, "seconds", Math.round(l.seconds * 10) / 10), l.frames != null && dn(a, e, p, "length", l.frames));
  }
  return a.filter(
    (p, f) => a.findIndex((d) => d.node === p.node && d.widget === p.widget) === f
  );
}
function Wr(e, t, l) {
  for (const n of ["plan", "size_from"]) {
    const s = ys(e, l.inputs[n]);
    if (s != null && "width" in e[s].inputs) return s;
  }
  return t;
}
function ys(e, t) {
  if (!Array.isArray(t) || t.length !== 2) return null;
  const l = String(t[0]);
  return l in e ? l : null;
}
function wo(e, t) {
  for (let l = 0; l < fi; l++) {
    const n = ys(e, t);
    if (n == null) return t;
    t = e[n].inputs.value;
  }
}
function Hr(e, t, l) {
  return ["width", "height"].every((n) => {
    const s = wo(e, t.inputs[n]);
    return typeof s == "number" && s === wo(e, l.inputs[n]);
  });
}
function dn(e, t, l, n, s) {
  let r = l, a = n;
  for (let p = 0; p < fi; p++) {
    const f = t[r]?.inputs[a], d = ys(t, f);
    if (d == null) {
      typeof f == "number" && e.push({ node: r, widget: a, value: s });
      return;
    }
    r = d, a = "value";
  }
}
const jr = 600, Ur = {
  machine: null,
  notices: [],
  prompt: null,
  plan: null,
  planBusy: !1,
  planError: "",
  active: null,
  last: null,
  runs: [],
  serverError: "",
  whatIf: { card: "", vramGib: 8, ramGib: 16, plan: null, error: "", busy: !1 },
  seen: 0
};
function Yr(e, t) {
  switch (t.type) {
    case "server": {
      const { machine: l, active: n, last: s, notices: r } = t.state;
      return { ...e, machine: l, notices: r, active: n, last: s ?? e.last, serverError: "" };
    }
    case "server-error":
      return { ...e, serverError: t.message };
    case "forecast-begins":
      return { ...e, prompt: t.prompt, planBusy: !0 };
    case "no-sampler":
      return { ...e, prompt: null, plan: null, planBusy: !1, planError: "" };
    case "forecast":
      return { ...e, plan: t.plan, planBusy: !1, planError: "" };
    case "forecast-error":
      return { ...e, plan: null, planBusy: !1, planError: t.message };
    case "what-if":
      return { ...e, whatIf: { ...e.whatIf, ...t.change } };
    case "runs":
      return { ...e, runs: t.runs };
    case "event":
      return { ...e, active: qr(e.active, t.event, t.unixSeconds) };
    case "run": {
      const l = t.run.status !== "running", n = e.active?.run_id === t.run.run_id;
      return l ? { ...e, last: t.run, active: n ? null : e.active } : { ...e, active: t.run };
    }
  }
}
function qr(e, t, l) {
  const n = e?.run_id === t.run_id ? e : Kr(t.run_id, l);
  if (t.sequence <= n.sequence) return n;
  const s = { ...n, status: "running", sequence: t.sequence };
  if (t.kind === "notice")
    return t.message && (s.notices = [...n.notices, t.message]), s;
  const r = n.phases[t.phase] ?? {};
  if (s.phases = { ...n.phases, [t.phase]: { ...r, [t.kind]: t } }, t.kind === "progress") {
    const a = Math.max(0, l - n.started_unix_seconds), p = n.curve.at(-1)?.[0] ?? 0, f = [
      Math.max(a, p),
      t.phase,
      t.vram_bytes ?? null,
      t.ram_bytes ?? null
    ], d = [...n.curve, f];
    s.curve = d.length > jr ? d.filter((y, g) => g % 2 === 0) : d;
  }
  return s;
}
function Kr(e, t) {
  return {
    run_id: e,
    started_unix_seconds: t,
    status: "running",
    request: {},
    plan: {},
    phases: {},
    curve: [],
    notices: [],
    report: {},
    error: null,
    sequence: 0
  };
}
function Jr(e) {
  const { curve: t, ...l } = e;
  return JSON.stringify(l, null, 2);
}
const bo = 350, Zr = 700, Qr = ["execution_success", "execution_error", "execution_interrupted", "executed"];
class Xr {
  constructor(t) {
    this.host = t, t.api.addEventListener("lowpeak.run", (l) => {
      const n = l.detail;
      this.state.active?.run_id !== n.run_id && this.later("state", () => this.refresh()), this.dispatch({ type: "event", event: n, unixSeconds: t.unixSeconds() });
    });
    for (const l of Qr)
      t.api.addEventListener(l, () => {
        this.state.active && this.later("state", () => this.refresh());
      });
    t.api.addEventListener("reconnected", () => this.later("state", () => this.refresh()));
  }
  host;
  state = Ur;
  listeners = /* @__PURE__ */ new Set();
  timers = /* @__PURE__ */ new Map();
  watch;
  signature = "";
  asked = 0;
  askedWhatIf = 0;
  /** The tab is open: ask for everything and watch the graph until `close`. */
  open(t) {
    this.listeners.add(t), this.signature = "", this.refresh(), this.look(), this.watch ??= setInterval(() => this.look(), Zr);
  }
  close(t) {
    this.listeners.delete(t), !this.listeners.size && (clearInterval(this.watch), this.watch = void 0);
  }
  dispatch(t) {
    this.state = Yr(this.state, t);
    for (const l of this.listeners) l();
  }
  async refresh() {
    try {
      const [t, l] = await Promise.all([this.host.state(), this.host.runs()]);
      this.dispatch({ type: "server", state: t }), this.dispatch({ type: "runs", runs: l });
    } catch (t) {
      this.dispatch({ type: "server-error", message: ts(t) });
    }
  }
  /** Forecast the graph on the canvas. The newest question wins. */
  async forecast() {
    const t = ++this.asked;
    try {
      this.signature = this.host.signature();
      const l = await this.host.prompt();
      if (t !== this.asked) return;
      if (!Ir(l)) return this.dispatch({ type: "no-sampler" });
      this.dispatch({ type: "forecast-begins", prompt: l });
      const n = await this.host.forecast(go(l));
      t === this.asked && this.dispatch({ type: "forecast", plan: n });
    } catch (l) {
      t === this.asked && this.dispatch({ type: "forecast-error", message: ts(l) });
    }
    this.state.whatIf.plan && this.askWhatIf();
  }
  /** Take a size that fits into the graph. */
  use(t) {
    const { prompt: l, plan: n } = this.state, s = l ? Gr(l, n?.asked?.node_id ?? null, t) : [], r = s.length ? this.host.apply(s) : [];
    return this.look(), !s.length || r.length ? "Some of the graph's sizes come from elsewhere; please set them there." : "";
  }
  whatIf(t) {
    this.dispatch({ type: "what-if", change: { ...t, busy: !0 } }), this.later("what-if", () => this.askWhatIf(), bo / 2);
  }
  async askWhatIf() {
    const { prompt: t, whatIf: l } = this.state;
    if (!t) return this.dispatch({ type: "what-if", change: { busy: !1 } });
    const n = ++this.askedWhatIf, s = { vram_gib: l.vramGib, ram_gib: l.ramGib, card: l.card || void 0 }, r = await this.host.forecast(go(t), s).then(
      (a) => ({ plan: a, error: "" }),
      (a) => ({ plan: null, error: ts(a) })
    );
    n === this.askedWhatIf && this.dispatch({ type: "what-if", change: { ...r, busy: !1 } });
  }
  look() {
    if (document.hidden) return;
    const t = this.host.signature();
    t !== this.signature && (this.signature = t, this.later("forecast", () => this.forecast()));
  }
  later(t, l, n = bo) {
    clearTimeout(this.timers.get(t)), this.timers.set(t, setTimeout(() => {
      l();
    }, n));
  }
}
function ts(e) {
  return e instanceof Error ? e.message : String(e);
}
const ea = '.uplot,.uplot *,.uplot *:before,.uplot *:after{box-sizing:border-box}.uplot{font-family:system-ui,-apple-system,Segoe UI,Roboto,Helvetica Neue,Arial,Noto Sans,sans-serif,"Apple Color Emoji","Segoe UI Emoji",Segoe UI Symbol,"Noto Color Emoji";line-height:1.5;width:min-content}.u-title{text-align:center;font-size:18px;font-weight:700}.u-wrap{position:relative;user-select:none}.u-over,.u-under{position:absolute}.u-under{overflow:hidden}.uplot canvas{display:block;position:relative;width:100%;height:100%}.u-axis{position:absolute}.u-legend{font-size:14px;margin:auto;text-align:center}.u-inline{display:block}.u-inline *{display:inline-block}.u-inline tr{margin-right:16px}.u-legend th{font-weight:600}.u-legend th>*{vertical-align:middle;display:inline-block}.u-legend .u-marker{width:1em;height:1em;margin-right:4px;background-clip:padding-box!important}.u-inline.u-live th:after{content:":";vertical-align:middle}.u-inline:not(.u-live) .u-value{display:none}.u-series>*{padding:4px}.u-series th{cursor:pointer}.u-legend .u-off>*{opacity:.3}.u-select{background:#00000012;position:absolute;pointer-events:none}.u-cursor-x,.u-cursor-y{position:absolute;left:0;top:0;pointer-events:none;will-change:transform}.u-hz .u-cursor-x,.u-vt .u-cursor-y{height:100%;border-right:1px dashed #607D8B}.u-hz .u-cursor-y,.u-vt .u-cursor-x{width:100%;border-bottom:1px dashed #607D8B}.u-cursor-pt{position:absolute;top:0;left:0;border-radius:50%;border:0 solid;pointer-events:none;will-change:transform;background-clip:padding-box!important}.u-axis.u-off,.u-select.u-off,.u-cursor-x.u-off,.u-cursor-y.u-off,.u-cursor-pt.u-off{display:none}', ta = ".lowpeak{--lp-bg: var(--comfy-menu-bg, #1b1c20);--lp-fg: var(--fg-color, #e7e8ea);--lp-dim: color-mix(in srgb, var(--lp-fg) 74%, var(--lp-bg));--lp-line: color-mix(in srgb, var(--lp-fg) 16%, var(--lp-bg));--lp-card: color-mix(in srgb, var(--lp-fg) 6%, var(--lp-bg));--lp-vram: #7aa2f7;--lp-ram: #9ece6a;--lp-bad: #ff8a9b;--lp-disk: #868996;background:var(--lp-bg);color:var(--lp-fg);font:13px/1.45 system-ui,Segoe UI,sans-serif;container-type:inline-size;box-sizing:border-box;min-height:100%;height:100%;overflow-y:auto;padding:14px 16px 24px}.lowpeak[data-theme=light]{--lp-vram: #2f5fd0;--lp-ram: #3f7d1f;--lp-bad: #a91b35;--lp-disk: #8b8e98}.lowpeak *,.lowpeak *:before{box-sizing:border-box}.lowpeak :focus-visible{outline:2px solid var(--lp-vram);outline-offset:2px;border-radius:3px}.lp-head{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:2px 8px}.lp-head h2{font-size:15px;font-weight:600;margin:0}.lp-dim{color:var(--lp-dim)}.lp-bad{color:var(--lp-bad)}.lp-verdict{font-size:18px;font-weight:600;line-height:1.25;margin:12px 0 3px;text-wrap:balance}.lp-sec{margin-top:18px}.lp-title{margin-top:18px!important}.lp-sec>h3,.lp-sec>summary,.lp-title{font-size:12px;font-weight:600;color:var(--lp-dim);margin:0 0 8px}.lp-sec>summary{cursor:pointer;padding:2px 0}.lp-sec>summary:hover{color:var(--lp-fg)}.lp-busy{opacity:.6;transition:opacity .2s .15s}.lp-row{display:grid;grid-template-columns:84px 1fr 54px;gap:0 10px;align-items:center;margin:7px 0}.lp-time{text-align:right;color:var(--lp-dim);font-variant-numeric:tabular-nums;line-height:1.25}.lp-time b{display:block;font-weight:600;color:var(--lp-fg)}.lp-bars{min-width:0}.lp-bar{position:relative;height:9px;background:var(--lp-line);border-radius:2px;margin:3px 0}.lp-bar.lp-ram{height:6px}.lp-bar i{position:absolute;top:0;bottom:0;border-radius:2px}.lp-vram{--lp-c: var(--lp-vram)}.lp-ram{--lp-c: var(--lp-ram)}.lp-bar .lp-excess{background:var(--lp-bad);border-radius:0 2px 2px 0}.lp-used{background:var(--lp-c)}.lp-margin{background:repeating-linear-gradient(135deg,var(--lp-c) 0 2px,transparent 2px 4px);opacity:.75}.lp-bar .lp-cap{top:-3px;bottom:-3px;width:0;border-left:2px solid var(--lp-bad);border-radius:0;margin-left:-1px;box-shadow:1px 0 0 var(--lp-bg),-1px 0 0 var(--lp-bg)}.lp-bar .lp-measured{top:-3px;bottom:-3px;width:3px;margin-left:-1.5px;background:var(--lp-fg);box-shadow:0 0 0 1px var(--lp-bg)}.lp-legend{display:flex;flex-wrap:wrap;gap:2px 14px;margin-top:8px;color:var(--lp-dim);font-size:12px}.lp-legend i{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:5px}.lp-key-vram,.lp-on-card{background:var(--lp-vram)}.lp-key-ram,.lp-in-ram{background:var(--lp-ram)}.lp-on-disk{background:var(--lp-disk)}.lp-key-margin{background:repeating-linear-gradient(135deg,var(--lp-dim) 0 2px,transparent 2px 4px)}.lp-legend .lp-key-cap{width:2px;background:var(--lp-bad)}.lp-legend .lp-key-measured{width:3px;background:var(--lp-fg)}.lp-blocks{display:grid;grid-template-columns:repeat(25,1fr);gap:3px}.lp-blocks i{height:11px;border-radius:2px}.lowpeak h4{font-size:13px;font-weight:600;margin:10px 0 2px}.lowpeak ul{margin:0;padding-left:16px;list-style:disc}.lowpeak li{margin:3px 0}.lowpeak button,.lowpeak select{background:var(--lp-card);color:var(--lp-fg);border:1px solid var(--lp-dim);border-radius:6px;padding:4px 10px;font:inherit;cursor:pointer}.lowpeak button:hover{background:var(--lp-line)}.lp-offer{display:flex;justify-content:space-between;align-items:center;gap:8px;margin:6px 0}.lp-what{display:grid;grid-template-columns:48px 1fr 62px;gap:8px;align-items:center;margin-top:6px}.lp-what input{width:100%;min-width:0;accent-color:var(--lp-vram)}.lp-what output{text-align:right;font-variant-numeric:tabular-nums}.lp-what select{grid-column:2 / -1;min-width:0;width:100%}.lp-result{margin-top:8px}.lp-result .lp-verdict{font-size:14px;margin:4px 0 2px}.lp-progress{height:4px;border-radius:2px;background:var(--lp-line);margin:4px 0 8px;overflow:hidden}.lp-progress i{display:block;height:100%;background:var(--lp-vram)}.lp-curve{min-height:130px}.lp-actions{display:flex;flex-wrap:wrap;gap:8px;margin-top:10px;align-items:center}.lowpeak table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}.lowpeak td,.lowpeak th{padding:3px 0 3px 8px;text-align:right;font-weight:400;vertical-align:top}.lowpeak th{color:var(--lp-dim)}.lowpeak td:first-child,.lowpeak th:first-child{text-align:left;padding-left:0}.lowpeak caption{text-align:left;color:var(--lp-dim);padding-bottom:4px}.lp-spark{width:100%;height:44px;display:block;margin-top:8px}.lp-sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.lowpeak li,.lp-dim,.lp-verdict{overflow-wrap:anywhere}.lp-notice{border-left:2px solid var(--lp-dim);padding-left:8px;margin:8px 0 0;color:var(--lp-dim);overflow-wrap:anywhere}@container (max-width: 270px){.lp-sec td:nth-child(3),.lp-sec th:nth-child(3){display:none}.lowpeak td,.lowpeak th{padding-left:5px;overflow-wrap:anywhere}.lp-row{grid-template-columns:1fr auto}.lp-bars{grid-column:1 / -1;grid-row:2}.lp-blocks{grid-template-columns:repeat(13,1fr)}.lp-what{grid-template-columns:44px 1fr 56px}}@media(prefers-reduced-motion:reduce){.lp-busy{transition:none}}", xs = 2 ** 30, la = {
  encode: "Encode",
  sample_low: "First pass",
  upscale: "Upscale",
  sample_high: "Second pass",
  decode: "Decode"
}, na = {
  compute: "the card's speed",
  link: "the link to the card",
  disk: "the disk"
};
function il(e, t = ["sample_low"]) {
  return e === "sample_high" && ![...t].includes("sample_low") ? "Sample" : la[e] ?? e;
}
function $t(e, t = 1) {
  return e == null ? "unknown" : `${(e / xs).toFixed(t)} GiB`;
}
function Jl(e) {
  if (e == null || !Number.isFinite(e)) return "unknown";
  if (e < 10) return `${e.toFixed(1)} s`;
  const t = Math.round(e);
  if (t < 60) return `${t} s`;
  if (t < 3600) return `${Math.floor(t / 60)} min ${Ql(t % 60)} s`;
  const l = Math.round(t / 60);
  return `${Math.floor(l / 60)} h ${Ql(l % 60)} min`;
}
function tn(e) {
  if (e == null || !Number.isFinite(e)) return "–";
  const t = Math.round(e);
  return t < 60 ? e < 10 ? `${e.toFixed(1)} s` : `${t} s` : t < 3600 ? `${Math.floor(t / 60)}:${Ql(t % 60)}` : `${Math.floor(t / 3600)}:${Ql(Math.floor(t % 3600 / 60))}:${Ql(t % 60)}`;
}
function Gt(e) {
  if (!e?.width || !e.height) return "";
  const t = e.seconds == null ? "" : ` · ${e.seconds.toFixed(1)} s`;
  return `${e.width} × ${e.height}${t}`;
}
function sa(e) {
  if (!e) return "";
  const t = e.device_name || e.card || (e.vram_total_bytes ? "" : "no GPU"), l = e.vram_total_bytes ? `${$t(e.vram_total_bytes, 0)} VRAM` : "", n = e.ram_total_bytes ? `${$t(e.ram_total_bytes, 0)} RAM` : "";
  return [t, l, n].filter(Boolean).join(" · ");
}
function oa(e) {
  const t = e?.passes?.length;
  return [e?.quality, t === 2 ? "two passes" : t === 1 ? "one pass" : ""].filter(Boolean).join(", ");
}
function pi(e) {
  if (e.fits === !1) return ia(e);
  const t = e.seconds_range, l = t && `Between ${Jl(t[0])} and ${Jl(t[1])}`, n = hi(e)?.limited_by, s = ["vram", "ram"].map((f) => {
    const d = ra(e, f), y = ks(e.snapshot, f), g = y == null ? "" : `${va(d)} of ${$t(y)}`;
    return d == null ? "" : `${g || $t(d)} ${f.toUpperCase()}`;
  }).filter(Boolean).join(", "), r = [Gt(e.request), oa(e.request)].filter(Boolean).join(" · "), a = n && `Limited by ${na[n] ?? n}`, p = [r, l, a, s && `Peak ${s}`];
  return {
    tone: "ok",
    head: `Fits. About ${Jl(e.total_seconds)}`,
    detail: p.filter(Boolean).join(". ") + "."
  };
}
function ia(e) {
  const t = e.short ?? [], l = t[0];
  if (!l) return { tone: "bad", head: "Does not fit", detail: e.message ?? "" };
  const n = [...new Set(t.map((f) => f.axis.toUpperCase()))], s = n.includes("RAM") ? "VRAM" : "RAM", r = n.length === 1 && l.axis !== "disk" ? ` ${s} would be enough.` : "", a = t.map(
    (f) => `${il(f.phase)} of ${Gt(e.request)} needs ${$t(f.need_bytes)} of ${f.axis.toUpperCase()}; ${$t(f.have_bytes)} is usable.`
  ).join(" ");
  return {
    tone: "bad",
    head: `Does not fit: ${n.length > 1 ? n.join(" and ") + " are" : `${n[0]} is`} short by ${$t(l.shortfall_bytes)}`,
    detail: a + r
  };
}
function hi(e) {
  return [...e.phases ?? []].sort((t, l) => (l.seconds ?? 0) - (t.seconds ?? 0))[0];
}
function ra(e, t) {
  const l = `${t}_peak_bytes`, n = (e.phases ?? []).map((s) => s[l]).filter((s) => s != null);
  return n.length ? Math.max(...n) : null;
}
function ks(e, t) {
  const l = t === "vram" ? e?.vram_free_bytes : e?.ram_available_bytes;
  return l || null;
}
function aa(e, t) {
  const l = new RegExp(`^${t.toUpperCase()}: .* ([0-9.]+) (GiB|MiB) margin`);
  for (const n of e.reasons ?? []) {
    const s = l.exec(n);
    if (s) return Number(s[1]) * (s[2] === "GiB" ? xs : 2 ** 20);
  }
  return 0;
}
function vo(e) {
  return e.replace(
    /^(encode|sample_low|upscale|sample_high|decode)\b/,
    (l) => il(l)
  ).replace(/(\d)x(\d)/g, "$1 × $2");
}
function ca(e) {
  return e.replace(
    /(phase )?\b(sample_low|sample_high)\b/g,
    (t, l, n) => il(n).toLowerCase()
  );
}
function ua(e) {
  const t = [{ head: "", lines: [...e.what_if ?? []] }];
  for (const l of e.reasons ?? []) {
    const n = /^((?:encode|sample_low|upscale|sample_high|decode)\b[^:]*): (.*)$/.exec(l), s = n ? vo(n[1]) : "";
    let r = t.find((a) => a.head === s);
    r || t.push(r = { head: s, lines: [] }), r.lines.push(fa(vo(n ? n[2] : l)));
  }
  return t.filter((l) => l.lines.length);
}
function fa(e) {
  return e.charAt(0).toUpperCase() + e.slice(1);
}
function Zl(e, t) {
  return e == null || !t ? null : 100 * (e - t) / t;
}
function di(e) {
  if (e == null) return "–";
  const t = Math.round(e);
  return t === 0 ? "0 %" : `${t > 0 ? "+" : "−"}${Math.abs(t)} %`;
}
function ls(e, t, l, n) {
  if (t == null) return "";
  const s = Math.abs(Math.round(t));
  return s === 0 ? `${e} as forecast` : `${e} ${s} % ${t > 0 ? l : n}`;
}
function pa(e) {
  const t = [];
  for (const [l, { forecast: n, measured: s }] of Object.entries(e.phases)) {
    if (!n || !s) continue;
    const r = [
      ls("took", Zl(s.seconds, n.seconds), "longer", "less time"),
      ls("VRAM", Zl(s.vram_peak_bytes, n.vram_peak_bytes), "more", "less"),
      ls("RAM", Zl(s.ram_peak_bytes, n.ram_peak_bytes), "more", "less")
    ].filter(Boolean);
    r.length && t.push(`${il(l, Object.keys(e.phases))}: ${r.join(", ")}.`);
  }
  return t;
}
function ha(e) {
  const t = wa(Object.values(e.phases).map((n) => n.measured?.seconds)), l = Gt(e.request);
  if (e.status === "failed") {
    const n = e.error?.error ? `${e.error.error}: ` : "", s = ca(e.error?.message ?? "no reason given");
    return { tone: "bad", head: "Failed", detail: n + s };
  }
  return e.status === "cancelled" ? { tone: "ok", head: "Stopped", detail: l } : { tone: "ok", head: t == null ? "Done" : `Took ${Jl(t)}`, detail: l };
}
function da(e) {
  return e.status !== "done" ? "–" : di(Zl(e.measured_vram_peak_bytes, e.forecast_vram_peak_bytes));
}
function ma(e) {
  const t = e.plan.phases?.length ? e.plan.phases.map((n) => [n.phase, n.seconds]) : Object.entries(e.phases).map(([n, s]) => [n, s.forecast?.seconds]);
  let l = null;
  for (const [n, s] of t) {
    const r = e.phases[n];
    if (r?.measured || s == null) continue;
    const { step: a, steps: p } = r?.progress ?? {};
    l = (l ?? 0) + s * (p ? 1 - Math.min(1, (a ?? 0) / p) : 1);
  }
  return l;
}
function ga(e) {
  return Object.entries(e.phases).filter(([, l]) => !l.measured).at(-1)?.[0] ?? null;
}
function wa(e) {
  const t = e.filter((l) => l != null);
  return t.length ? t.reduce((l, n) => l + n, 0) : null;
}
function ba(e, t, l, n) {
  const s = `${t}_peak_bytes`, r = n?.[s] == null ? "" : `, measured ${$t(n[s], 2)}`;
  return `${e}, ${t.toUpperCase()}: forecast ${$t(l[s], 2)}${r}`;
}
function va(e) {
  return e == null ? "?" : (e / xs).toFixed(1);
}
function Ql(e) {
  return String(e).padStart(2, "0");
}
const ya = ["encode", "sample_low", "upscale", "sample_high", "decode"];
function xa(e) {
  const t = e.fits === !1 ? ka(e) : gi(e);
  return wi(t, e);
}
function mi(e) {
  const t = new Map(gi(e.plan).map((l) => [l.phase, l]));
  for (const [l, { forecast: n, measured: s }] of Object.entries(e.phases)) {
    const r = t.get(l);
    (n || s || r) && t.set(l, { phase: l, forecast: { ...r?.forecast, ...n }, measured: s });
  }
  return wi([...t.values()], e.plan);
}
function gi(e) {
  return (e.phases ?? []).map((t) => ({ phase: t.phase, forecast: t }));
}
function ka(e) {
  const t = /* @__PURE__ */ new Map();
  for (const l of e.short ?? []) {
    const n = t.get(l.phase) ?? { phase: l.phase, forecast: {} };
    n.forecast = { ...n.forecast, [`${l.axis}_peak_bytes`]: l.need_bytes }, t.set(l.phase, n);
  }
  return [...t.values()];
}
function wi(e, t) {
  const l = (a) => ya.indexOf(a), n = [...e].sort((a, p) => l(a.phase) - l(p.phase)), s = n.map((a) => a.phase), r = t.request?.two_pass === !1 ? s : [...s, ..._a(t)];
  return n.map((a) => {
    const p = il(a.phase, r);
    return {
      phase: a.phase,
      name: p,
      seconds: a.forecast.seconds ?? null,
      measuredSeconds: a.measured?.seconds ?? null,
      bars: ["vram", "ram"].flatMap((f) => Sa(a, p, f, n, t))
    };
  });
}
function _a(e) {
  return (e.request?.passes ?? []).map((t) => t.phase);
}
function Sa(e, t, l, n, s) {
  const r = `${l}_peak_bytes`, a = e.forecast[r], p = e.measured?.[r] ?? null;
  if (a == null && p == null) return [];
  const f = ks(s.snapshot, l), d = n.flatMap((E) => [E.forecast[r] ?? 0, E.measured?.[r] ?? 0]), y = aa(s, l), g = Math.max(f ?? 0, ...d) * (f == null ? 1.15 : 1.02) || 1, w = f == null ? null : f - (s.fits === !1 ? y : 0), T = (E) => 100 * E / g;
  return [
    {
      axis: l,
      used: T(a ?? 0),
      margin: a == null ? 0 : Math.min(T(y), 100 - T(a)),
      capacity: f == null ? null : T(f),
      measured: p == null ? null : T(p),
      excessFrom: w != null && (a ?? 0) > w ? T(w) : null,
      label: ba(t, l, e.forecast, e.measured)
    }
  ];
}
function x(e, t = {}, ...l) {
  const [n, ...s] = e.split("."), r = document.createElement(n);
  s.length && (r.className = s.join(" "));
  for (const [a, p] of Object.entries(t))
    p == null || p === !1 || (typeof p == "function" ? r.addEventListener(a.slice(2), p) : r.setAttribute(a, p === !0 ? "" : String(p)));
  return r.append(...l.filter((a) => !!a)), r;
}
function Be(e, ...t) {
  const l = e.contains(document.activeElement) ? document.activeElement.dataset.key : void 0;
  e.replaceChildren(...t.filter((n) => !!n)), l && e.querySelector(`[data-key="${CSS.escape(l)}"]`)?.focus();
}
let Ma = 0;
function nl(e, t = !1) {
  const l = x("div.lp-body");
  if (t) {
    const s = x("summary", {}, e);
    return [x("details.lp-sec", {}, s, l), l, s];
  }
  const n = x("h3", { id: `lowpeak-section-${++Ma}` }, e);
  return [x("section.lp-sec", { "aria-labelledby": n.id }, n, l), l, n];
}
function _s(e) {
  return x("div.lp-rows", { role: "list" }, ...e.map(Ta));
}
function Ta(e) {
  const t = e.measuredSeconds, l = e.seconds == null ? "" : tn(e.seconds);
  return x(
    "div.lp-row",
    { role: "listitem", "data-phase": e.phase },
    x("span.lp-name", {}, e.name),
    x("div.lp-bars", {}, ...e.bars.map(Aa)),
    t == null ? x("span.lp-time", { title: "forecast" }, l) : x("span.lp-time", { title: "took, and forecast" }, x("b", {}, tn(t)), ` of ${l}`)
  );
}
function Aa(e) {
  const t = (l, n, s) => x("i", { class: l, style: `left:${n}%` + (s == null ? "" : `;width:${s}%`) });
  return x(
    "div",
    {
      class: `lp-bar lp-${e.axis}`,
      role: "img",
      "aria-label": e.label,
      title: e.label
    },
    t("lp-used", 0, e.excessFrom ?? e.used),
    e.excessFrom != null && t("lp-excess", e.excessFrom, e.used - e.excessFrom),
    e.margin > 0 && t("lp-margin", e.used, e.margin),
    e.capacity != null && t("lp-cap", e.capacity),
    e.measured != null && t("lp-measured", e.measured)
  );
}
function Ss(e) {
  const t = (l, n) => x("span", {}, x("i", { class: l, "aria-hidden": "true" }), n);
  return x(
    "div.lp-legend",
    {},
    t("lp-key-vram", "VRAM"),
    t("lp-key-ram", "RAM"),
    t("lp-key-margin", "kept free"),
    t("lp-key-cap", "end of memory"),
    e && t("lp-key-measured", "measured")
  );
}
function bi(e, t) {
  const l = (e.phases ?? []).filter((f) => f.phase.startsWith("sample")), s = (l.find((f) => f.phase === t) ?? l.find((f) => f.phase === hi(e)?.phase) ?? l[0])?.placement;
  if (!s) return null;
  const r = [
    ["lp-on-card", s.resident_blocks, "on the card"],
    ["lp-in-ram", s.pinned_blocks, "in RAM"],
    ["lp-on-disk", s.disk_blocks, "read from disk each step"]
  ], a = r.filter(([, f]) => f > 0), p = a.map(([, f, d]) => `${f} ${d}`).join(", ");
  return x(
    "div",
    {},
    x(
      "div.lp-blocks",
      { role: "img", "aria-label": `Blocks: ${p}` },
      ...r.flatMap(
        ([f, d]) => Array.from({ length: Math.min(d, 400) }, () => x("i", { class: f }))
      )
    ),
    x(
      "div.lp-legend",
      { "aria-hidden": "true" },
      ...a.map(
        ([f, d, y]) => x("span", {}, x("i", { class: f }), `${d} ${y}`)
      )
    )
  );
}
function Ea(e, t, l, n) {
  const { plan: s, planError: r, planBusy: a } = l;
  if (r)
    return Be(
      e,
      x("div.lp-verdict.lp-bad", {}, "No forecast"),
      x("div.lp-dim", {}, r),
      x("div.lp-actions", {}, vi(n))
    ), Be(t);
  if (!s)
    return Be(e, x("p.lp-dim", {}, a ? "Working out the forecast …" : "The graph holds no Lowpeak Sample yet. Add one, or open a template under Lowpeak.")), Be(t);
  const { tone: p, head: f, detail: d } = pi(s);
  Be(
    e,
    x("div", { class: `lp-verdict${p === "bad" ? " lp-bad" : ""}` }, f),
    x("div.lp-dim", {}, d),
    ...(s.asked?.notices ?? []).map((g) => x("p.lp-notice", {}, g)),
    s.asked?.unknown.length ? x("p.lp-notice", {}, `Known only when it runs: ${s.asked.unknown.join(", ")}. Defaults stand in.`) : null,
    s.fits === !1 ? La(s, n) : null
  );
  const y = xa(s);
  Be(t, y.length ? _s(y) : null, y.length ? Ss(!1) : null);
}
function La(e, t) {
  const l = x("p.lp-notice", { role: "status", hidden: !0 }), n = (e.fits_instead ?? []).map(
    (s, r) => x(
      "div.lp-offer",
      {},
      x("span", {}, Gt(s)),
      x("button", {
        type: "button",
        "data-key": `use-${r}`,
        "aria-label": `Use a size that fits: ${Gt(s)}`,
        onclick: () => {
          l.textContent = t.use(s), l.hidden = !l.textContent;
        }
      }, "Use")
    )
  );
  return x(
    "section.lp-sec",
    { "aria-label": "Fits instead" },
    x("h3", {}, n.length ? "Fits instead" : "No smaller size fits either"),
    ...n,
    l,
    x("div.lp-offer", {}, x("span", {}, "Close other programs"), vi(t))
  );
}
function vi(e) {
  return x(
    "button",
    { type: "button", "data-key": "again", onclick: () => {
      e.forecast();
    } },
    "Check again"
  );
}
function Pa(e, t) {
  const l = t.plan && t.plan.fits !== !1 ? bi(t.plan, null) : null;
  return Be(e, l), l != null;
}
function Da(e, t) {
  const l = t.plan, n = l ? ua(l) : [], s = (r) => x("ul", {}, ...r.map((a) => x("li", {}, a)));
  return Be(
    e,
    l?.changes_arithmetic && x("p", {}, "This placement sums in another order: latents differ in their last bits."),
    ...n.flatMap(({ head: r, lines: a }) => [r && x("h4", {}, r), s(a)])
  ), n.length > 0;
}
function $a(e) {
  const { tone: t, head: l, detail: n } = pi(e), s = e.fits === !1 && e.fits_instead?.[0];
  return x(
    "div",
    {},
    x("div", { class: `lp-verdict${t === "bad" ? " lp-bad" : ""}` }, l),
    x("div.lp-dim", {}, n, s ? ` ${Gt(s)} would fit.` : "")
  );
}
class Ca {
  box;
  body;
  constructor() {
    [this.box, this.body] = nl("Last run"), this.box.hidden = !0;
  }
  draw(t) {
    if (this.box.hidden = !t, !t) return Be(this.body);
    const { tone: l, head: n, detail: s } = ha(t), r = mi(t), a = pa(t);
    Be(
      this.body,
      x("div", {
        class: `lp-verdict${l === "bad" ? " lp-bad" : ""}`,
        role: l === "bad" ? "alert" : null
      }, n),
      x("div.lp-dim", {}, s || Gt(t.request)),
      r.length ? _s(r) : null,
      r.length ? Ss(!0) : null,
      a.length ? x("ul", {}, ...a.map((p) => x("li", {}, p))) : null,
      ...t.notices.slice(-5).map((p) => x("p.lp-notice", {}, p)),
      Na(t.report.lora),
      za(t.report.kernels),
      this.copy(t)
    );
  }
  copy(t) {
    const l = x("span.lp-dim", { role: "status" }), n = async () => {
      l.textContent = await Ra(Jr(t)) ? "Copied." : "The browser refused.";
    };
    return x(
      "div.lp-actions",
      {},
      x(
        "button",
        { type: "button", "data-key": "copy", onclick: () => {
          n();
        } },
        "Copy report"
      ),
      x("span.lp-dim", {}, "JSON; no prompt, no paths"),
      l
    );
  }
}
async function Ra(e) {
  try {
    return await navigator.clipboard.writeText(e), !0;
  } catch {
    const t = x("textarea", { style: "position:fixed;opacity:0" });
    t.value = e, document.body.append(t), t.select();
    const l = document.execCommand("copy");
    return t.remove(), l;
  }
}
function Na(e) {
  return !Array.isArray(e) || !e.length ? null : x("div", {}, ...e.map((t) => x(
    "div",
    { class: t.complete === !1 ? "lp-bad" : "" },
    `${t.file ?? "LoRA"}: ${t.bound_tensors ?? "?"} of ${t.tensors ?? "?"} tensors bound`
  )));
}
function za(e) {
  if (!e || typeof e != "object") return null;
  const t = Object.entries(e).map(([l, n]) => {
    const { implementation: s, reason: r } = n ?? {}, a = typeof n == "string" ? n : String(s ?? JSON.stringify(n));
    return `${l}: ${a}${r ? ` (${r})` : ""}`;
  });
  return t.length ? x(
    "details.lp-sec",
    {},
    x("summary", {}, "Kernels used"),
    x("ul", {}, ...t.map((l) => x("li", {}, l)))
  ) : null;
}
const Fa = !0, Pe = "u-", Va = "uplot", Ba = Pe + "hz", Oa = Pe + "vt", Ia = Pe + "title", Ga = Pe + "wrap", Wa = Pe + "under", Ha = Pe + "over", ja = Pe + "axis", ll = Pe + "off", Ua = Pe + "select", Ya = Pe + "cursor-x", qa = Pe + "cursor-y", Ka = Pe + "cursor-pt", Ja = Pe + "legend", Za = Pe + "live", Qa = Pe + "inline", Xa = Pe + "series", ec = Pe + "marker", yo = Pe + "label", tc = Pe + "value", Yl = "width", ql = "height", jl = "top", xo = "bottom", Al = "left", ns = "right", Ms = "#000", ko = Ms + "0", ss = "mousemove", _o = "mousedown", os = "mouseup", So = "mouseenter", Mo = "mouseleave", To = "dblclick", lc = "resize", nc = "scroll", Ao = "change", vn = "dppxchange", Ts = "--", Rl = typeof window < "u", us = Rl ? document : null, Ll = Rl ? window : null, sc = Rl ? navigator : null;
let ie, mn;
function fs() {
  let e = devicePixelRatio;
  ie != e && (ie = e, mn && hs(Ao, mn, fs), mn = matchMedia(`(min-resolution: ${ie - 1e-3}dppx) and (max-resolution: ${ie + 1e-3}dppx)`), sl(Ao, mn, fs), Ll.dispatchEvent(new CustomEvent(vn)));
}
function lt(e, t) {
  if (t != null) {
    let l = e.classList;
    !l.contains(t) && l.add(t);
  }
}
function ps(e, t) {
  let l = e.classList;
  l.contains(t) && l.remove(t);
}
function we(e, t, l) {
  e.style[t] = l + "px";
}
function bt(e, t, l, n) {
  let s = us.createElement(e);
  return t != null && lt(s, t), l?.insertBefore(s, n), s;
}
function ft(e, t) {
  return bt("div", e, t);
}
const Eo = /* @__PURE__ */ new WeakMap();
function Et(e, t, l, n, s) {
  let r = "translate(" + t + "px," + l + "px)", a = Eo.get(e);
  r != a && (e.style.transform = r, Eo.set(e, r), t < 0 || l < 0 || t > n || l > s ? lt(e, ll) : ps(e, ll));
}
const Lo = /* @__PURE__ */ new WeakMap();
function Po(e, t, l) {
  let n = t + l, s = Lo.get(e);
  n != s && (Lo.set(e, n), e.style.background = t, e.style.borderColor = l);
}
const Do = /* @__PURE__ */ new WeakMap();
function $o(e, t, l, n) {
  let s = t + "" + l, r = Do.get(e);
  s != r && (Do.set(e, s), e.style.height = l + "px", e.style.width = t + "px", e.style.marginLeft = n ? -t / 2 + "px" : 0, e.style.marginTop = n ? -l / 2 + "px" : 0);
}
const As = { passive: !0 }, oc = { ...As, capture: !0 };
function sl(e, t, l, n) {
  t.addEventListener(e, l, n ? oc : As);
}
function hs(e, t, l, n) {
  t.removeEventListener(e, l, As);
}
Rl && fs();
function vt(e, t, l, n) {
  let s;
  l = l || 0, n = n || t.length - 1;
  let r = n <= 2147483647;
  for (; n - l > 1; )
    s = r ? l + n >> 1 : nt((l + n) / 2), t[s] < e ? l = s : n = s;
  return e - t[l] <= t[n] - e ? l : n;
}
function yi(e) {
  return (l, n, s) => {
    let r = -1, a = -1;
    for (let p = n; p <= s; p++)
      if (e(l[p])) {
        r = p;
        break;
      }
    for (let p = s; p >= n; p--)
      if (e(l[p])) {
        a = p;
        break;
      }
    return [r, a];
  };
}
const xi = (e) => e != null, ki = (e) => e != null && e > 0, kn = yi(xi), ic = yi(ki);
function rc(e, t, l, n = 0, s = !1) {
  let r = s ? ic : kn, a = s ? ki : xi;
  [t, l] = r(e, t, l);
  let p = e[t], f = e[t];
  if (t > -1)
    if (n == 1)
      p = e[t], f = e[l];
    else if (n == -1)
      p = e[l], f = e[t];
    else
      for (let d = t; d <= l; d++) {
        let y = e[d];
        a(y) && (y < p ? p = y : y > f && (f = y));
      }
  return [p ?? fe, f ?? -fe];
}
function _n(e, t, l, n) {
  let s = No(e), r = No(t);
  e == t && (s == -1 ? (e *= l, t /= l) : (e /= l, t *= l));
  let a = l == 10 ? Ct : _i, p = s == 1 ? nt : pt, f = r == 1 ? pt : nt, d = p(a(Le(e))), y = f(a(Le(t))), g = Pl(l, d), w = Pl(l, y);
  return l == 10 && (d < 0 && (g = pe(g, -d)), y < 0 && (w = pe(w, -y))), n || l == 2 ? (e = g * s, t = w * r) : (e = Ai(e, g), t = Sn(t, w)), [e, t];
}
function Es(e, t, l, n) {
  let s = _n(e, t, l, n);
  return e == 0 && (s[0] = 0), t == 0 && (s[1] = 0), s;
}
const Ls = 0.1, Co = {
  mode: 3,
  pad: Ls
}, Xl = {
  pad: 0,
  soft: null,
  mode: 0
}, ac = {
  min: Xl,
  max: Xl
};
function yn(e, t, l, n) {
  return Mn(l) ? Ro(e, t, l) : (Xl.pad = l, Xl.soft = n ? 0 : null, Xl.mode = n ? 3 : 0, Ro(e, t, ac));
}
function se(e, t) {
  return e ?? t;
}
function cc(e, t, l) {
  for (t = se(t, 0), l = se(l, e.length - 1); t <= l; ) {
    if (e[t] != null)
      return !0;
    t++;
  }
  return !1;
}
function Ro(e, t, l) {
  let n = l.min, s = l.max, r = se(n.pad, 0), a = se(s.pad, 0), p = se(n.hard, -fe), f = se(s.hard, fe), d = se(n.soft, fe), y = se(s.soft, -fe), g = se(n.mode, 0), w = se(s.mode, 0), T = t - e, E = Ct(T), z = Ye(Le(e), Le(t)), O = Ct(z), G = Le(O - E);
  (T < 1e-24 || G > 10) && (T = 0, (e == 0 || t == 0) && (T = 1e-24, g == 2 && d != fe && (r = 0), w == 2 && y != -fe && (a = 0)));
  let b = T || z || 1e3, B = Ct(b), S = Pl(10, nt(B)), K = b * (T == 0 ? e == 0 ? 0.1 : 1 : r), $ = pe(Ai(e - K, S / 10), 24), J = e >= d && (g == 1 || g == 3 && $ <= d || g == 2 && $ >= d) ? d : fe, U = Ye(p, $ < J && e >= J ? J : yt(J, $)), X = b * (T == 0 ? t == 0 ? 0.1 : 1 : a), j = pe(Sn(t + X, S / 10), 24), M = t <= y && (w == 1 || w == 3 && j >= y || w == 2 && j <= y) ? y : -fe, q = yt(f, j > M && t <= M ? M : Ye(M, j));
  return U == q && U == 0 && (q = 100), [U, q];
}
const uc = new Intl.NumberFormat(Rl ? sc.language : "en-US"), Ps = (e) => uc.format(e), st = Math, bn = st.PI, Le = st.abs, nt = st.floor, Ee = st.round, pt = st.ceil, yt = st.min, Ye = st.max, Pl = st.pow, No = st.sign, Ct = st.log10, _i = st.log2, fc = (e, t = 1) => st.sinh(e) * t, is = (e, t = 1) => st.asinh(e / t), fe = 1 / 0;
function zo(e) {
  return (Ct((e ^ e >> 31) - (e >> 31)) | 0) + 1;
}
function ds(e, t, l) {
  return yt(Ye(e, t), l);
}
function Si(e) {
  return typeof e == "function";
}
function ee(e) {
  return Si(e) ? e : () => e;
}
const pc = () => {
}, Mi = (e) => e, Ti = (e, t) => t, hc = (e) => null, Fo = (e) => !0, Vo = (e, t) => e == t, dc = /\.\d*?(?=9{6,}|0{6,})/gm, ol = (e) => {
  if (Li(e) || Wt.has(e))
    return e;
  const t = `${e}`, l = t.match(dc);
  if (l == null)
    return e;
  let n = l[0].length - 1;
  if (t.indexOf("e-") != -1) {
    let [s, r] = t.split("e");
    return +`${ol(s)}e${r}`;
  }
  return pe(e, n);
};
function el(e, t) {
  return ol(pe(ol(e / t)) * t);
}
function Sn(e, t) {
  return ol(pt(ol(e / t)) * t);
}
function Ai(e, t) {
  return ol(nt(ol(e / t)) * t);
}
function pe(e, t = 0) {
  if (Li(e))
    return e;
  let l = 10 ** t, n = e * l * (1 + Number.EPSILON);
  return Ee(n) / l;
}
const Wt = /* @__PURE__ */ new Map();
function Ei(e) {
  return (("" + e).split(".")[1] || "").length;
}
function ln(e, t, l, n) {
  let s = [], r = n.map(Ei);
  for (let a = t; a < l; a++) {
    let p = Le(a), f = pe(Pl(e, a), p);
    for (let d = 0; d < n.length; d++) {
      let y = e == 10 ? +`${n[d]}e${a}` : n[d] * f, g = (a >= 0 ? 0 : p) + (a >= r[d] ? 0 : r[d]), w = e == 10 ? y : pe(y, g);
      s.push(w), Wt.set(w, g);
    }
  }
  return s;
}
const en = {}, Ds = [], Dl = [null, null], It = Array.isArray, Li = Number.isInteger, mc = (e) => e === void 0;
function Bo(e) {
  return typeof e == "string";
}
function Mn(e) {
  let t = !1;
  if (e != null) {
    let l = e.constructor;
    t = l == null || l == Object;
  }
  return t;
}
function gc(e) {
  return e != null && typeof e == "object";
}
const wc = Object.getPrototypeOf(Uint8Array), Pi = "__proto__";
function $l(e, t = Mn) {
  let l;
  if (It(e)) {
    let n = e.find((s) => s != null);
    if (It(n) || t(n)) {
      l = Array(e.length);
      for (let s = 0; s < e.length; s++)
        l[s] = $l(e[s], t);
    } else
      l = e.slice();
  } else if (e instanceof wc)
    l = e.slice();
  else if (t(e)) {
    l = {};
    for (let n in e)
      n != Pi && (l[n] = $l(e[n], t));
  } else
    l = e;
  return l;
}
function Me(e) {
  let t = arguments;
  for (let l = 1; l < t.length; l++) {
    let n = t[l];
    for (let s in n)
      s != Pi && (Mn(e[s]) ? Me(e[s], $l(n[s])) : e[s] = $l(n[s]));
  }
  return e;
}
const bc = 0, vc = 1, yc = 2;
function xc(e, t, l) {
  for (let n = 0, s, r = -1; n < t.length; n++) {
    let a = t[n];
    if (a > r) {
      for (s = a - 1; s >= 0 && e[s] == null; )
        e[s--] = null;
      for (s = a + 1; s < l && e[s] == null; )
        e[r = s++] = null;
    }
  }
}
function kc(e, t) {
  if (Mc(e)) {
    let a = e[0].slice();
    for (let p = 1; p < e.length; p++)
      a.push(...e[p].slice(1));
    return Tc(a[0]) || (a = Sc(a)), a;
  }
  let l = /* @__PURE__ */ new Set();
  for (let a = 0; a < e.length; a++) {
    let f = e[a][0], d = f.length;
    for (let y = 0; y < d; y++)
      l.add(f[y]);
  }
  let n = [Array.from(l).sort((a, p) => a - p)], s = n[0].length, r = /* @__PURE__ */ new Map();
  for (let a = 0; a < s; a++)
    r.set(n[0][a], a);
  for (let a = 0; a < e.length; a++) {
    let p = e[a], f = p[0];
    for (let d = 1; d < p.length; d++) {
      let y = p[d], g = Array(s).fill(void 0), w = t ? t[a][d] : vc, T = [];
      for (let E = 0; E < y.length; E++) {
        let z = y[E], O = r.get(f[E]);
        z === null ? w != bc && (g[O] = z, w == yc && T.push(O)) : g[O] = z;
      }
      xc(g, T, s), n.push(g);
    }
  }
  return n;
}
const _c = typeof queueMicrotask > "u" ? (e) => Promise.resolve().then(e) : queueMicrotask;
function Sc(e) {
  let t = e[0], l = t.length, n = Array(l);
  for (let r = 0; r < n.length; r++)
    n[r] = r;
  n.sort((r, a) => t[r] - t[a]);
  let s = [];
  for (let r = 0; r < e.length; r++) {
    let a = e[r], p = Array(l);
    for (let f = 0; f < l; f++)
      p[f] = a[n[f]];
    s.push(p);
  }
  return s;
}
function Mc(e) {
  let t = e[0][0], l = t.length;
  for (let n = 1; n < e.length; n++) {
    let s = e[n][0];
    if (s.length != l)
      return !1;
    if (s != t) {
      for (let r = 0; r < l; r++)
        if (s[r] != t[r])
          return !1;
    }
  }
  return !0;
}
function Tc(e, t = 100) {
  const l = e.length;
  if (l <= 1)
    return !0;
  let n = 0, s = l - 1;
  for (; n <= s && e[n] == null; )
    n++;
  for (; s >= n && e[s] == null; )
    s--;
  if (s <= n)
    return !0;
  const r = Ye(1, nt((s - n + 1) / t));
  for (let a = e[n], p = n + r; p <= s; p += r) {
    const f = e[p];
    if (f != null) {
      if (f <= a)
        return !1;
      a = f;
    }
  }
  return !0;
}
const Di = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December"
], $i = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday"
];
function Ci(e) {
  return e.slice(0, 3);
}
const Ac = $i.map(Ci), Ec = Di.map(Ci), Lc = {
  MMMM: Di,
  MMM: Ec,
  WWWW: $i,
  WWW: Ac
};
function Ul(e) {
  return (e < 10 ? "0" : "") + e;
}
function Pc(e) {
  return (e < 10 ? "00" : e < 100 ? "0" : "") + e;
}
const Dc = {
  // 2019
  YYYY: (e) => e.getFullYear(),
  // 19
  YY: (e) => (e.getFullYear() + "").slice(2),
  // July
  MMMM: (e, t) => t.MMMM[e.getMonth()],
  // Jul
  MMM: (e, t) => t.MMM[e.getMonth()],
  // 07
  MM: (e) => Ul(e.getMonth() + 1),
  // 7
  M: (e) => e.getMonth() + 1,
  // 09
  DD: (e) => Ul(e.getDate()),
  // 9
  D: (e) => e.getDate(),
  // Monday
  WWWW: (e, t) => t.WWWW[e.getDay()],
  // Mon
  WWW: (e, t) => t.WWW[e.getDay()],
  // 03
  HH: (e) => Ul(e.getHours()),
  // 3
  H: (e) => e.getHours(),
  // 9 (12hr, unpadded)
  h: (e) => {
    let t = e.getHours();
    return t == 0 ? 12 : t > 12 ? t - 12 : t;
  },
  // AM
  AA: (e) => e.getHours() >= 12 ? "PM" : "AM",
  // am
  aa: (e) => e.getHours() >= 12 ? "pm" : "am",
  // a
  a: (e) => e.getHours() >= 12 ? "p" : "a",
  // 09
  mm: (e) => Ul(e.getMinutes()),
  // 9
  m: (e) => e.getMinutes(),
  // 09
  ss: (e) => Ul(e.getSeconds()),
  // 9
  s: (e) => e.getSeconds(),
  // 374
  fff: (e) => Pc(e.getMilliseconds())
};
function $s(e, t) {
  t = t || Lc;
  let l = [], n = /\{([a-z]+)\}|[^{]+/gi, s;
  for (; s = n.exec(e); )
    l.push(s[0][0] == "{" ? Dc[s[1]] : s[0]);
  return (r) => {
    let a = "";
    for (let p = 0; p < l.length; p++)
      a += typeof l[p] == "string" ? l[p] : l[p](r, t);
    return a;
  };
}
const $c = new Intl.DateTimeFormat().resolvedOptions().timeZone;
function Cc(e, t) {
  let l;
  return t == "UTC" || t == "Etc/UTC" ? l = new Date(+e + e.getTimezoneOffset() * 6e4) : t == $c ? l = e : (l = new Date(e.toLocaleString("en-US", { timeZone: t })), l.setMilliseconds(e.getMilliseconds())), l;
}
const Ri = (e) => e % 1 == 0, xn = [1, 2, 2.5, 5], Rc = ln(10, -32, 0, xn), Ni = ln(10, 0, 32, xn), Nc = Ni.filter(Ri), tl = Rc.concat(Ni), Cs = `
`, zi = "{YYYY}", Oo = Cs + zi, Fi = "{M}/{D}", Kl = Cs + Fi, gn = Kl + "/{YY}", Vi = "{aa}", zc = "{h}:{mm}", El = zc + Vi, Io = Cs + El, Go = ":{ss}", ae = null;
function Bi(e) {
  let t = e * 1e3, l = t * 60, n = l * 60, s = n * 24, r = s * 30, a = s * 365, f = (e == 1 ? ln(10, 0, 3, xn).filter(Ri) : ln(10, -3, 0, xn)).concat([
    // minute divisors (# of secs)
    t,
    t * 5,
    t * 10,
    t * 15,
    t * 30,
    // hour divisors (# of mins)
    l,
    l * 5,
    l * 10,
    l * 15,
    l * 30,
    // day divisors (# of hrs)
    n,
    n * 2,
    n * 3,
    n * 4,
    n * 6,
    n * 8,
    n * 12,
    // month divisors TODO: need more?
    s,
    s * 2,
    s * 3,
    s * 4,
    s * 5,
    s * 6,
    s * 7,
    s * 8,
    s * 9,
    s * 10,
    s * 15,
    // year divisors (# months, approx)
    r,
    r * 2,
    r * 3,
    r * 4,
    r * 6,
    // century divisors
    a,
    a * 2,
    a * 5,
    a * 10,
    a * 25,
    a * 50,
    a * 100
  ]);
  const d = [
    //   tick incr    default          year                    month   day                   hour    min       sec   mode
    [a, zi, ae, ae, ae, ae, ae, ae, 1],
    [s * 28, "{MMM}", Oo, ae, ae, ae, ae, ae, 1],
    [s, Fi, Oo, ae, ae, ae, ae, ae, 1],
    [n, "{h}" + Vi, gn, ae, Kl, ae, ae, ae, 1],
    [l, El, gn, ae, Kl, ae, ae, ae, 1],
    [t, Go, gn + " " + El, ae, Kl + " " + El, ae, Io, ae, 1],
    [e, Go + ".{fff}", gn + " " + El, ae, Kl + " " + El, ae, Io, ae, 1]
  ];
  function y(g) {
    return (w, T, E, z, O, G) => {
      let b = [], B = O >= a, S = O >= r && O < a, K = g(E), $ = pe(K * e, 3), J = rs(K.getFullYear(), B ? 0 : K.getMonth(), S || B ? 1 : K.getDate()), U = pe(J * e, 3);
      if (S || B) {
        let X = S ? O / r : 0, j = B ? O / a : 0, M = $ == U ? $ : pe(rs(J.getFullYear() + j, J.getMonth() + X, 1) * e, 3), q = new Date(Ee(M / e)), C = q.getFullYear(), W = q.getMonth();
        for (let V = 0; M <= z; V++) {
          let te = rs(C + j * V, W + X * V, 1), F = te - g(pe(te * e, 3));
          M = pe((+te + F) * e, 3), M <= z && b.push(M);
        }
      } else {
        let X = O >= s ? s : O, j = nt(E) - nt($), M = U + j + Sn($ - U, X);
        b.push(M);
        let q = g(M), C = q.getHours() + q.getMinutes() / l + q.getSeconds() / n, W = O / n, V = w.axes[T]._space, te = G / V;
        for (; M = pe(M + O, e == 1 ? 0 : 3), !(M > z); )
          if (W > 1) {
            let F = nt(pe(C + W, 6)) % 24, le = g(M).getHours() - F;
            le > 1 && (le = -1), M -= le * n, C = (C + W) % 24;
            let ce = b[b.length - 1];
            pe((M - ce) / O, 3) * te >= 0.7 && b.push(M);
          } else
            b.push(M);
      }
      return b;
    };
  }
  return [
    f,
    d,
    y
  ];
}
const [Fc, Vc, Bc] = Bi(1), [Oc, Ic, Gc] = Bi(1e-3);
ln(2, -53, 53, [1]);
function Wo(e, t) {
  return e.map((l) => l.map(
    (n, s) => s == 0 || s == 8 || n == null ? n : t(s == 1 || l[8] == 0 ? n : l[1] + n)
  ));
}
function Ho(e, t) {
  return (l, n, s, r, a) => {
    let p = t.find((E) => a >= E[0]) || t[t.length - 1], f, d, y, g, w, T;
    return n.map((E) => {
      let z = e(E), O = z.getFullYear(), G = z.getMonth(), b = z.getDate(), B = z.getHours(), S = z.getMinutes(), K = z.getSeconds(), $ = O != f && p[2] || G != d && p[3] || b != y && p[4] || B != g && p[5] || S != w && p[6] || K != T && p[7] || p[1];
      return f = O, d = G, y = b, g = B, w = S, T = K, $(z);
    });
  };
}
function Wc(e, t) {
  let l = $s(t);
  return (n, s, r, a, p) => s.map((f) => l(e(f)));
}
function rs(e, t, l) {
  return new Date(e, t, l);
}
function jo(e, t) {
  return t(e);
}
const Hc = "{YYYY}-{MM}-{DD} {h}:{mm}{aa}";
function Uo(e, t) {
  return (l, n, s, r) => r == null ? Ts : t(e(n));
}
function jc(e, t) {
  let l = e.series[t];
  return l.width ? l.stroke(e, t) : l.points.width ? l.points.stroke(e, t) : null;
}
function Uc(e, t) {
  return e.series[t].fill(e, t);
}
const Yc = {
  show: !0,
  live: !0,
  isolate: !1,
  mount: pc,
  markers: {
    show: !0,
    width: 2,
    stroke: jc,
    fill: Uc,
    dash: "solid"
  },
  idx: null,
  idxs: null,
  values: []
};
function qc(e, t) {
  let l = e.cursor.points, n = ft(), s = l.size(e, t);
  we(n, Yl, s), we(n, ql, s);
  let r = s / -2;
  we(n, "marginLeft", r), we(n, "marginTop", r);
  let a = l.width(e, t, s);
  return a && we(n, "borderWidth", a), n;
}
function Kc(e, t) {
  let l = e.series[t].points;
  return l._fill || l._stroke;
}
function Jc(e, t) {
  let l = e.series[t].points;
  return l._stroke || l._fill;
}
function Zc(e, t) {
  return e.series[t].points.size;
}
const as = [0, 0];
function Qc(e, t, l) {
  return as[0] = t, as[1] = l, as;
}
function wn(e, t, l, n = !0) {
  return (s) => {
    s.button == 0 && (!n || s.target == t) && l(s);
  };
}
function cs(e, t, l, n = !0) {
  return (s) => {
    (!n || s.target == t) && l(s);
  };
}
const Xc = {
  show: !0,
  x: !0,
  y: !0,
  lock: !1,
  move: Qc,
  points: {
    one: !1,
    show: qc,
    size: Zc,
    width: 0,
    stroke: Jc,
    fill: Kc
  },
  bind: {
    mousedown: wn,
    mouseup: wn,
    click: wn,
    // legend clicks, not .u-over clicks
    dblclick: wn,
    mousemove: cs,
    mouseleave: cs,
    mouseenter: cs
  },
  drag: {
    setScale: !0,
    x: !0,
    y: !1,
    dist: 0,
    uni: null,
    click: (e, t) => {
      t.stopPropagation(), t.stopImmediatePropagation();
    },
    _x: !1,
    _y: !1
  },
  focus: {
    dist: (e, t, l, n, s) => n - s,
    prox: -1,
    bias: 0
  },
  hover: {
    skip: [void 0],
    prox: null,
    bias: 0
  },
  left: -10,
  top: -10,
  idx: null,
  dataIdx: null,
  idxs: null,
  event: null
}, Oi = {
  show: !0,
  stroke: "rgba(0,0,0,0.07)",
  width: 2
  //	dash: [],
}, Rs = Me({}, Oi, {
  filter: Ti
}), Ii = Me({}, Rs, {
  size: 10
}), Gi = Me({}, Oi, {
  show: !1
}), Ns = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif, "Apple Color Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Noto Color Emoji"', Wi = "bold " + Ns, Hi = 1.5, Yo = {
  show: !0,
  scale: "x",
  stroke: Ms,
  space: 50,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: Wi,
  side: 2,
  //	class: "x-vals",
  //	incrs: timeIncrs,
  //	values: timeVals,
  //	filter: retArg1,
  grid: Rs,
  ticks: Ii,
  border: Gi,
  font: Ns,
  lineGap: Hi,
  rotate: 0
}, eu = "Value", tu = "Time", qo = {
  show: !0,
  scale: "x",
  auto: !1,
  sorted: 1,
  //	label: "Time",
  //	value: v => stamp(new Date(v * 1e3)),
  // internal caches
  min: fe,
  max: -fe,
  idxs: []
};
function lu(e, t, l, n, s) {
  return t.map((r) => r == null ? "" : Ps(r));
}
function nu(e, t, l, n, s, r, a) {
  let p = [], f = Wt.get(s) || 0;
  l = a ? l : pe(Sn(l, s), f);
  for (let d = l; d <= n; d = pe(d + s, f))
    p.push(Object.is(d, -0) ? 0 : d);
  return p;
}
function ms(e, t, l, n, s, r, a) {
  const p = [], f = e.scales[e.axes[t].scale].log, d = f == 10 ? Ct : _i, y = nt(d(l));
  s = Pl(f, y), f == 10 && (s = tl[vt(s, tl)]);
  let g = l, w = s * f;
  f == 10 && (w = tl[vt(w, tl)]);
  do
    p.push(g), g = g + s, f == 10 && !Wt.has(g) && (g = pe(g, Wt.get(s))), g >= w && (s = g, w = s * f, f == 10 && (w = tl[vt(w, tl)]));
  while (g <= n);
  return p;
}
function su(e, t, l, n, s, r, a) {
  let f = e.scales[e.axes[t].scale].asinh, d = n > f ? ms(e, t, Ye(f, l), n, s) : [f], y = n >= 0 && l <= 0 ? [0] : [];
  return (l < -f ? ms(e, t, Ye(f, -n), -l, s) : [f]).reverse().map((w) => -w).concat(y, d);
}
const ji = /./, ou = /[12357]/, iu = /[125]/, Ko = /1/, gs = (e, t, l, n) => e.map((s, r) => t == 4 && s == 0 || r % n == 0 && l.test(s.toExponential()[s < 0 ? 1 : 0]) ? s : null);
function ru(e, t, l, n, s) {
  let r = e.axes[l], a = r.scale, p = e.scales[a], f = e.valToPos, d = r._space, y = f(10, a), g = f(9, a) - y >= d ? ji : f(7, a) - y >= d ? ou : f(5, a) - y >= d ? iu : Ko;
  if (g == Ko) {
    let w = Le(f(1, a) - y);
    if (w < d)
      return gs(t.slice().reverse(), p.distr, g, pt(d / w)).reverse();
  }
  return gs(t, p.distr, g, 1);
}
function au(e, t, l, n, s) {
  let r = e.axes[l], a = r.scale, p = r._space, f = e.valToPos, d = Le(f(1, a) - f(2, a));
  return d < p ? gs(t.slice().reverse(), 3, ji, pt(p / d)).reverse() : t;
}
function cu(e, t, l, n) {
  return n == null ? Ts : t == null ? "" : Ps(t);
}
const Jo = {
  show: !0,
  scale: "y",
  stroke: Ms,
  space: 30,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: Wi,
  side: 3,
  //	class: "y-vals",
  //	incrs: numIncrs,
  //	values: (vals, space) => vals,
  //	filter: retArg1,
  grid: Rs,
  ticks: Ii,
  border: Gi,
  font: Ns,
  lineGap: Hi,
  rotate: 0
};
function uu(e, t) {
  let l = 3 + (e || 1) * 2;
  return pe(l * t, 3);
}
function fu(e, t) {
  let { scale: l, idxs: n } = e.series[0], s = e._data[0], r = e.valToPos(s[n[0]], l, !0), a = e.valToPos(s[n[1]], l, !0), p = Le(a - r), f = e.series[t], d = p / (f.points.space * ie);
  return n[1] - n[0] <= d;
}
const Zo = {
  scale: null,
  auto: !0,
  sorted: 0,
  // internal caches
  min: fe,
  max: -fe
}, Ui = (e, t, l, n, s) => s, Qo = {
  show: !0,
  auto: !0,
  sorted: 0,
  gaps: Ui,
  alpha: 1,
  facets: [
    Me({}, Zo, { scale: "x" }),
    Me({}, Zo, { scale: "y" })
  ]
}, Xo = {
  scale: "y",
  auto: !0,
  sorted: 0,
  show: !0,
  spanGaps: !1,
  gaps: Ui,
  alpha: 1,
  points: {
    show: fu,
    filter: null
    //  paths:
    //	stroke: "#000",
    //	fill: "#fff",
    //	width: 1,
    //	size: 10,
  },
  //	label: "Value",
  //	value: v => v,
  values: null,
  // internal caches
  min: fe,
  max: -fe,
  idxs: [],
  path: null,
  clip: null
};
function pu(e, t, l, n, s) {
  return l / 10;
}
const Yi = {
  time: Fa,
  auto: !0,
  distr: 1,
  log: 10,
  asinh: 1,
  min: null,
  max: null,
  dir: 1,
  ori: 0
}, hu = Me({}, Yi, {
  time: !1,
  ori: 1
}), ei = {};
function qi(e, t) {
  let l = ei[e];
  return l || (l = {
    key: e,
    plots: [],
    sub(n) {
      l.plots.push(n);
    },
    unsub(n) {
      l.plots = l.plots.filter((s) => s != n);
    },
    pub(n, s, r, a, p, f, d) {
      for (let y = 0; y < l.plots.length; y++)
        l.plots[y] != s && l.plots[y].pub(n, s, r, a, p, f, d);
    }
  }, e != null && (ei[e] = l)), l;
}
const Cl = 1, ws = 2;
function rl(e, t, l) {
  const n = e.mode, s = e.series[t], r = n == 2 ? e._data[t] : e._data, a = e.scales, p = e.bbox;
  let f = r[0], d = n == 2 ? r[1] : r[t], y = n == 2 ? a[s.facets[0].scale] : a[e.series[0].scale], g = n == 2 ? a[s.facets[1].scale] : a[s.scale], w = p.left, T = p.top, E = p.width, z = p.height, O = e.valToPosH, G = e.valToPosV;
  return y.ori == 0 ? l(
    s,
    f,
    d,
    y,
    g,
    O,
    G,
    w,
    T,
    E,
    z,
    An,
    Nl,
    Ln,
    Ji,
    Qi
  ) : l(
    s,
    f,
    d,
    y,
    g,
    G,
    O,
    T,
    w,
    z,
    E,
    En,
    zl,
    Vs,
    Zi,
    Xi
  );
}
function zs(e, t) {
  let l = 0, n = 0, s = se(e.bands, Ds);
  for (let r = 0; r < s.length; r++) {
    let a = s[r];
    a.series[0] == t ? l = a.dir : a.series[1] == t && (a.dir == 1 ? n |= 1 : n |= 2);
  }
  return [
    l,
    n == 1 ? -1 : (
      // neg only
      n == 2 ? 1 : (
        // pos only
        n == 3 ? 2 : (
          // both
          0
        )
      )
    )
  ];
}
function du(e, t, l, n, s) {
  let r = e.mode, a = e.series[t], p = r == 2 ? a.facets[1].scale : a.scale, f = e.scales[p];
  return s == -1 ? f.min : s == 1 ? f.max : f.distr == 3 ? f.dir == 1 ? f.min : f.max : 0;
}
function Rt(e, t, l, n, s, r) {
  return rl(e, t, (a, p, f, d, y, g, w, T, E, z, O) => {
    let G = a.pxRound;
    const b = d.dir * (d.ori == 0 ? 1 : -1), B = d.ori == 0 ? Nl : zl;
    let S, K;
    b == 1 ? (S = l, K = n) : (S = n, K = l);
    let $ = G(g(p[S], d, z, T)), J = G(w(f[S], y, O, E)), U = G(g(p[K], d, z, T)), X = G(w(r == 1 ? y.max : y.min, y, O, E)), j = new Path2D(s);
    return B(j, U, X), B(j, $, X), B(j, $, J), j;
  });
}
function Tn(e, t, l, n, s, r) {
  let a = null;
  if (e.length > 0) {
    a = new Path2D();
    const p = t == 0 ? Ln : Vs;
    let f = l;
    for (let g = 0; g < e.length; g++) {
      let w = e[g];
      if (w[1] > w[0]) {
        let T = w[0] - f;
        T > 0 && p(a, f, n, T, n + r), f = w[1];
      }
    }
    let d = l + s - f, y = 10;
    d > 0 && p(a, f, n - y / 2, d, n + r + y);
  }
  return a;
}
function mu(e, t, l) {
  let n = e[e.length - 1];
  n && n[0] == t ? n[1] = l : e.push([t, l]);
}
function Fs(e, t, l, n, s, r, a) {
  let p = [], f = e.length;
  for (let d = s == 1 ? l : n; d >= l && d <= n; d += s)
    if (t[d] === null) {
      let g = d, w = d;
      if (s == 1)
        for (; ++d <= n && t[d] === null; )
          w = d;
      else
        for (; --d >= l && t[d] === null; )
          w = d;
      let T = r(e[g]), E = w == g ? T : r(e[w]), z = g - s;
      T = a <= 0 && z >= 0 && z < f ? r(e[z]) : T;
      let G = w + s;
      E = a >= 0 && G >= 0 && G < f ? r(e[G]) : E, E >= T && p.push([T, E]);
    }
  return p;
}
function ti(e) {
  return e == 0 ? Mi : e == 1 ? Ee : (t) => el(t, e);
}
function Ki(e) {
  let t = e == 0 ? An : En, l = e == 0 ? (s, r, a, p, f, d) => {
    s.arcTo(r, a, p, f, d);
  } : (s, r, a, p, f, d) => {
    s.arcTo(a, r, f, p, d);
  }, n = e == 0 ? (s, r, a, p, f) => {
    s.rect(r, a, p, f);
  } : (s, r, a, p, f) => {
    s.rect(a, r, f, p);
  };
  return (s, r, a, p, f, d = 0, y = 0) => {
    d == 0 && y == 0 ? n(s, r, a, p, f) : (d = yt(d, p / 2, f / 2), y = yt(y, p / 2, f / 2), t(s, r + d, a), l(s, r + p, a, r + p, a + f, d), l(s, r + p, a + f, r, a + f, y), l(s, r, a + f, r, a, y), l(s, r, a, r + p, a, d), s.closePath());
  };
}
const An = (e, t, l) => {
  e.moveTo(t, l);
}, En = (e, t, l) => {
  e.moveTo(l, t);
}, Nl = (e, t, l) => {
  e.lineTo(t, l);
}, zl = (e, t, l) => {
  e.lineTo(l, t);
}, Ln = Ki(0), Vs = Ki(1), Ji = (e, t, l, n, s, r) => {
  e.arc(t, l, n, s, r);
}, Zi = (e, t, l, n, s, r) => {
  e.arc(l, t, n, s, r);
}, Qi = (e, t, l, n, s, r, a) => {
  e.bezierCurveTo(t, l, n, s, r, a);
}, Xi = (e, t, l, n, s, r, a) => {
  e.bezierCurveTo(l, t, s, n, a, r);
};
function er(e) {
  return (t, l, n, s, r) => rl(t, l, (a, p, f, d, y, g, w, T, E, z, O) => {
    let { pxRound: G, points: b } = a, B, S;
    d.ori == 0 ? (B = An, S = Ji) : (B = En, S = Zi);
    const K = pe(b.width * ie, 3);
    let $ = (b.size - b.width) / 2 * ie, J = pe($ * 2, 3), U = new Path2D(), X = new Path2D(), { left: j, top: M, width: q, height: C } = t.bbox;
    Ln(
      X,
      j - J,
      M - J,
      q + J * 2,
      C + J * 2
    );
    const W = (V) => {
      if (f[V] != null) {
        let te = G(g(p[V], d, z, T)), F = G(w(f[V], y, O, E));
        B(U, te + $, F), S(U, te, F, $, 0, bn * 2);
      }
    };
    if (r)
      r.forEach(W);
    else
      for (let V = n; V <= s; V++)
        W(V);
    return {
      stroke: K > 0 ? U : null,
      fill: U,
      clip: X,
      flags: Cl | ws
    };
  });
}
function tr(e) {
  return (t, l, n, s, r, a) => {
    n != s && (r != n && a != n && e(t, l, n), r != s && a != s && e(t, l, s), e(t, l, a));
  };
}
const gu = tr(Nl), wu = tr(zl);
function lr(e) {
  const t = se(e?.alignGaps, 0);
  return (l, n, s, r) => rl(l, n, (a, p, f, d, y, g, w, T, E, z, O) => {
    [s, r] = kn(f, s, r);
    let G = a.pxRound, b = (C) => G(g(C, d, z, T)), B = (C) => G(w(C, y, O, E)), S, K;
    d.ori == 0 ? (S = Nl, K = gu) : (S = zl, K = wu);
    const $ = d.dir * (d.ori == 0 ? 1 : -1), J = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Cl }, U = J.stroke;
    let X = !1;
    if (r - s >= z * 4) {
      let C = (R) => l.posToVal(R, d.key, !0), W = null, V = null, te, F, qe, be = b(p[$ == 1 ? s : r]), le = b(p[s]), ce = b(p[r]), Z = C($ == 1 ? le + 1 : ce - 1);
      for (let R = $ == 1 ? s : r; R >= s && R <= r; R += $) {
        let Te = p[R], ve = ($ == 1 ? Te < Z : Te > Z) ? be : b(Te), re = f[R];
        ve == be ? re != null ? (F = re, W == null ? (S(U, ve, B(F)), te = W = V = F) : F < W ? W = F : F > V && (V = F)) : re === null && (X = !0) : (W != null && K(U, be, B(W), B(V), B(te), B(F)), re != null ? (F = re, S(U, ve, B(F)), W = V = te = F) : (W = V = null, re === null && (X = !0)), be = ve, Z = C(be + $));
      }
      W != null && W != V && qe != be && K(U, be, B(W), B(V), B(te), B(F));
    } else
      for (let C = $ == 1 ? s : r; C >= s && C <= r; C += $) {
        let W = f[C];
        W === null ? X = !0 : W != null && S(U, b(p[C]), B(W));
      }
    let [M, q] = zs(l, n);
    if (a.fill != null || M != 0) {
      let C = J.fill = new Path2D(U), W = a.fillTo(l, n, a.min, a.max, M), V = B(W), te = b(p[s]), F = b(p[r]);
      $ == -1 && ([F, te] = [te, F]), S(C, F, V), S(C, te, V);
    }
    if (!a.spanGaps) {
      let C = [];
      X && C.push(...Fs(p, f, s, r, $, b, t)), J.gaps = C = a.gaps(l, n, s, r, C), J.clip = Tn(C, d.ori, T, E, z, O);
    }
    return q != 0 && (J.band = q == 2 ? [
      Rt(l, n, s, r, U, -1),
      Rt(l, n, s, r, U, 1)
    ] : Rt(l, n, s, r, U, q)), J;
  });
}
function bu(e) {
  const t = se(e.align, 1), l = se(e.ascDesc, !1), n = se(e.alignGaps, 0), s = se(e.extend, !1);
  return (r, a, p, f) => rl(r, a, (d, y, g, w, T, E, z, O, G, b, B) => {
    [p, f] = kn(g, p, f);
    let S = d.pxRound, { left: K, width: $ } = r.bbox, J = (le) => S(E(le, w, b, O)), U = (le) => S(z(le, T, B, G)), X = w.ori == 0 ? Nl : zl;
    const j = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Cl }, M = j.stroke, q = w.dir * (w.ori == 0 ? 1 : -1);
    let C = U(g[q == 1 ? p : f]), W = J(y[q == 1 ? p : f]), V = W, te = W;
    s && t == -1 && (te = K, X(M, te, C)), X(M, W, C);
    for (let le = q == 1 ? p : f; le >= p && le <= f; le += q) {
      let ce = g[le];
      if (ce == null)
        continue;
      let Z = J(y[le]), R = U(ce);
      t == 1 ? X(M, Z, C) : X(M, V, R), X(M, Z, R), C = R, V = Z;
    }
    let F = V;
    s && t == 1 && (F = K + $, X(M, F, C));
    let [qe, be] = zs(r, a);
    if (d.fill != null || qe != 0) {
      let le = j.fill = new Path2D(M), ce = d.fillTo(r, a, d.min, d.max, qe), Z = U(ce);
      X(le, F, Z), X(le, te, Z);
    }
    if (!d.spanGaps) {
      let le = [];
      le.push(...Fs(y, g, p, f, q, J, n));
      let ce = d.width * ie / 2, Z = l || t == 1 ? ce : -ce, R = l || t == -1 ? -ce : ce;
      le.forEach((Te) => {
        Te[0] += Z, Te[1] += R;
      }), j.gaps = le = d.gaps(r, a, p, f, le), j.clip = Tn(le, w.ori, O, G, b, B);
    }
    return be != 0 && (j.band = be == 2 ? [
      Rt(r, a, p, f, M, -1),
      Rt(r, a, p, f, M, 1)
    ] : Rt(r, a, p, f, M, be)), j;
  });
}
function li(e, t, l, n, s, r, a = fe) {
  if (e.length > 1) {
    let p = null;
    for (let f = 0, d = 1 / 0; f < e.length; f++)
      if (t[f] !== void 0) {
        if (p != null) {
          let y = Le(e[f] - e[p]);
          y < d && (d = y, a = Le(l(e[f], n, s, r) - l(e[p], n, s, r)));
        }
        p = f;
      }
  }
  return a;
}
function vu(e) {
  e = e || en;
  const t = se(e.size, [0.6, fe, 1]), l = e.align || 0, n = e.gap || 0;
  let s = e.radius;
  s = // [valueRadius, baselineRadius]
  s == null ? [0, 0] : typeof s == "number" ? [s, 0] : s;
  const r = ee(s), a = 1 - t[0], p = se(t[1], fe), f = se(t[2], 1), d = se(e.disp, en), y = se(e.each, (T) => {
  }), { fill: g, stroke: w } = d;
  return (T, E, z, O) => rl(T, E, (G, b, B, S, K, $, J, U, X, j, M) => {
    let q = G.pxRound, C = l, W = n * ie, V = p * ie, te = f * ie, F, qe;
    S.ori == 0 ? [F, qe] = r(T, E) : [qe, F] = r(T, E);
    const be = S.dir * (S.ori == 0 ? 1 : -1);
    let le = S.ori == 0 ? Ln : Vs, ce = S.ori == 0 ? y : (P, he, Ae, fl, Ut, kt, Yt) => {
      y(P, he, Ae, Ut, fl, Yt, kt);
    }, Z = se(T.bands, Ds).find((P) => P.series[0] == E), R = Z != null ? Z.dir : 0, Te = G.fillTo(T, E, G.min, G.max, R), Ge = q(J(Te, K, M, X)), ve, re, ht, Ze = j, xe = q(G.width * ie), xt = !1, Lt = null, ot = null, Nt = null, al = null;
    g != null && (xe == 0 || w != null) && (xt = !0, Lt = g.values(T, E, z, O), ot = /* @__PURE__ */ new Map(), new Set(Lt).forEach((P) => {
      P != null && ot.set(P, new Path2D());
    }), xe > 0 && (Nt = w.values(T, E, z, O), al = /* @__PURE__ */ new Map(), new Set(Nt).forEach((P) => {
      P != null && al.set(P, new Path2D());
    })));
    let { x0: cl, size: Fl } = d;
    if (cl != null && Fl != null) {
      C = 1, b = cl.values(T, E, z, O), cl.unit == 2 && (b = b.map((Ae) => T.posToVal(U + Ae * j, S.key, !0)));
      let P = Fl.values(T, E, z, O);
      Fl.unit == 2 ? re = P[0] * j : re = $(P[0], S, j, U) - $(0, S, j, U), Ze = li(b, B, $, S, j, U, Ze), ht = Ze - re + W;
    } else
      Ze = li(b, B, $, S, j, U, Ze), ht = Ze * a + W, re = Ze - ht;
    ht < 1 && (ht = 0), xe >= re / 2 && (xe = 0), ht < 5 && (q = Mi);
    let nn = ht > 0, Ht = Ze - ht - (nn ? xe : 0);
    re = q(ds(Ht, te, V)), ve = (C == 0 ? re / 2 : C == be ? 0 : re) - C * be * ((C == 0 ? W / 2 : 0) + (nn ? xe / 2 : 0));
    const We = { stroke: null, fill: null, clip: null, band: null, gaps: null, flags: 0 }, ul = xt ? null : new Path2D();
    let Pt = null;
    if (Z != null)
      Pt = T.data[Z.series[1]];
    else {
      let { y0: P, y1: he } = d;
      P != null && he != null && (B = he.values(T, E, z, O), Pt = P.values(T, E, z, O));
    }
    let jt = F * re, Y = qe * re;
    for (let P = be == 1 ? z : O; P >= z && P <= O; P += be) {
      let he = B[P];
      if (he == null)
        continue;
      if (Pt != null) {
        let Ke = Pt[P] ?? 0;
        if (he - Ke == 0)
          continue;
        Ge = J(Ke, K, M, X);
      }
      let Ae = S.distr != 2 || d != null ? b[P] : P, fl = $(Ae, S, j, U), Ut = J(se(he, Te), K, M, X), kt = q(fl - ve), Yt = q(Ye(Ut, Ge)), Qe = q(yt(Ut, Ge)), it = Yt - Qe;
      if (he != null) {
        let Ke = he < 0 ? Y : jt, dt = he < 0 ? jt : Y;
        xt ? (xe > 0 && Nt[P] != null && le(al.get(Nt[P]), kt, Qe + nt(xe / 2), re, Ye(0, it - xe), Ke, dt), Lt[P] != null && le(ot.get(Lt[P]), kt, Qe + nt(xe / 2), re, Ye(0, it - xe), Ke, dt)) : le(ul, kt, Qe + nt(xe / 2), re, Ye(0, it - xe), Ke, dt), ce(
          T,
          E,
          P,
          kt - xe / 2,
          Qe,
          re + xe,
          it
        );
      }
    }
    return xe > 0 ? We.stroke = xt ? al : ul : xt || (We._fill = G.width == 0 ? G._fill : G._stroke ?? G._fill, We.width = 0), We.fill = xt ? ot : ul, We;
  });
}
function yu(e, t) {
  const l = se(t?.alignGaps, 0);
  return (n, s, r, a) => rl(n, s, (p, f, d, y, g, w, T, E, z, O, G) => {
    [r, a] = kn(d, r, a);
    let b = p.pxRound, B = (F) => b(w(F, y, O, E)), S = (F) => b(T(F, g, G, z)), K, $, J;
    y.ori == 0 ? (K = An, J = Nl, $ = Qi) : (K = En, J = zl, $ = Xi);
    const U = y.dir * (y.ori == 0 ? 1 : -1);
    let X = B(f[U == 1 ? r : a]), j = X, M = [], q = [];
    for (let F = U == 1 ? r : a; F >= r && F <= a; F += U)
      if (d[F] != null) {
        let be = f[F], le = B(be);
        M.push(j = le), q.push(S(d[F]));
      }
    const C = { stroke: e(M, q, K, J, $, b), fill: null, clip: null, band: null, gaps: null, flags: Cl }, W = C.stroke;
    let [V, te] = zs(n, s);
    if (p.fill != null || V != 0) {
      let F = C.fill = new Path2D(W), qe = p.fillTo(n, s, p.min, p.max, V), be = S(qe);
      J(F, j, be), J(F, X, be);
    }
    if (!p.spanGaps) {
      let F = [];
      F.push(...Fs(f, d, r, a, U, B, l)), C.gaps = F = p.gaps(n, s, r, a, F), C.clip = Tn(F, y.ori, E, z, O, G);
    }
    return te != 0 && (C.band = te == 2 ? [
      Rt(n, s, r, a, W, -1),
      Rt(n, s, r, a, W, 1)
    ] : Rt(n, s, r, a, W, te)), C;
  });
}
function xu(e) {
  return yu(ku, e);
}
function ku(e, t, l, n, s, r) {
  const a = e.length;
  if (a < 2)
    return null;
  const p = new Path2D();
  if (l(p, e[0], t[0]), a == 2)
    n(p, e[1], t[1]);
  else {
    let f = Array(a), d = Array(a - 1), y = Array(a - 1), g = Array(a - 1);
    for (let w = 0; w < a - 1; w++)
      y[w] = t[w + 1] - t[w], g[w] = e[w + 1] - e[w], d[w] = y[w] / g[w];
    f[0] = d[0];
    for (let w = 1; w < a - 1; w++)
      d[w] === 0 || d[w - 1] === 0 || d[w - 1] > 0 != d[w] > 0 ? f[w] = 0 : (f[w] = 3 * (g[w - 1] + g[w]) / ((2 * g[w] + g[w - 1]) / d[w - 1] + (g[w] + 2 * g[w - 1]) / d[w]), isFinite(f[w]) || (f[w] = 0));
    f[a - 1] = d[a - 2];
    for (let w = 0; w < a - 1; w++)
      s(
        p,
        e[w] + g[w] / 3,
        t[w] + f[w] * g[w] / 3,
        e[w + 1] - g[w] / 3,
        t[w + 1] - f[w + 1] * g[w] / 3,
        e[w + 1],
        t[w + 1]
      );
  }
  return p;
}
const bs = /* @__PURE__ */ new Set();
function ni() {
  for (let e of bs)
    e.syncRect(!0);
}
Rl && (sl(lc, Ll, ni), sl(nc, Ll, ni, !0), sl(vn, Ll, () => {
  Ie.pxRatio = ie;
}));
const _u = lr(), Su = er();
function si(e, t, l, n) {
  return (n ? [e[0], e[1]].concat(e.slice(2)) : [e[0]].concat(e.slice(1))).map((r, a) => vs(r, a, t, l));
}
function Mu(e, t) {
  return e.map((l, n) => n == 0 ? {} : Me({}, t, l));
}
function vs(e, t, l, n) {
  return Me({}, t == 0 ? l : n, e);
}
function nr(e, t, l) {
  return t == null ? Dl : [t, l];
}
const Tu = nr;
function Au(e, t, l) {
  return t == null ? Dl : yn(t, l, Ls, !0);
}
function sr(e, t, l, n) {
  return t == null ? Dl : _n(t, l, e.scales[n].log, !1);
}
const Eu = sr;
function or(e, t, l, n) {
  return t == null ? Dl : Es(t, l, e.scales[n].log, !1);
}
const Lu = or;
function Pu(e, t, l, n, s) {
  let r = Ye(zo(e), zo(t)), a = t - e, p = vt(s / n * a, l);
  do {
    let f = l[p], d = n * f / a;
    if (d >= s && r + (f < 5 ? Wt.get(f) : 0) <= 17)
      return [f, d];
  } while (++p < l.length);
  return [0, 0];
}
function oi(e) {
  let t, l;
  return e = e.replace(/(\d+)px/, (n, s) => (t = Ee((l = +s) * ie)) + "px"), [e, t, l];
}
function Du(e) {
  e.show && [e.font, e.labelFont].forEach((t) => {
    let l = pe(t[2] * ie, 1);
    t[0] = t[0].replace(/[0-9.]+px/, l + "px"), t[1] = l;
  });
}
function Ie(e, t, l) {
  const n = {
    mode: se(e.mode, 1)
  }, s = n.mode;
  function r(o, i, c, u) {
    let h = i.valToPct(o);
    return u + c * (i.dir == -1 ? 1 - h : h);
  }
  function a(o, i, c, u) {
    let h = i.valToPct(o);
    return u + c * (i.dir == -1 ? h : 1 - h);
  }
  function p(o, i, c, u) {
    return i.ori == 0 ? r(o, i, c, u) : a(o, i, c, u);
  }
  n.valToPosH = r, n.valToPosV = a;
  let f = !1;
  n.status = 0;
  const d = n.root = ft(Va);
  if (e.id != null && (d.id = e.id), lt(d, e.class), e.title) {
    let o = ft(Ia, d);
    o.textContent = e.title;
  }
  const y = bt("canvas"), g = n.ctx = y.getContext("2d"), w = ft(Ga, d);
  sl("click", w, (o) => {
    o.target === E && (de != kl || ye != _l) && Ve.click(n, o);
  }, !0);
  const T = n.under = ft(Wa, w);
  w.appendChild(y);
  const E = n.over = ft(Ha, w);
  e = $l(e);
  const z = +se(e.pxAlign, 1), O = ti(z);
  (e.plugins || []).forEach((o) => {
    o.opts && (e = o.opts(n, e) || e);
  });
  const G = e.ms || 1e-3, b = n.series = s == 1 ? si(e.series || [], qo, Xo, !1) : Mu(e.series || [null], Qo), B = n.axes = si(e.axes || [], Yo, Jo, !0), S = n.scales = {}, K = n.bands = e.bands || [];
  K.forEach((o) => {
    o.fill = ee(o.fill || null), o.dir = se(o.dir, -1);
  });
  const $ = s == 2 ? b[1].facets[0].scale : b[0].scale, J = {
    axes: xr,
    series: gr
  }, U = (e.drawOrder || ["axes", "series"]).map((o) => J[o]);
  function X(o) {
    const i = o.distr == 3 ? (c) => Ct(c > 0 ? c : o.clamp(n, c, o.min, o.max, o.key)) : o.distr == 4 ? (c) => is(c, o.asinh) : o.distr == 100 ? (c) => o.fwd(c) : (c) => c;
    return (c) => {
      let u = i(c), { _min: h, _max: m } = o, v = m - h;
      return (u - h) / v;
    };
  }
  function j(o) {
    let i = S[o];
    if (i == null) {
      let c = (e.scales || en)[o] || en;
      if (c.from != null) {
        j(c.from);
        let u = Me({}, S[c.from], c, { key: o });
        u.valToPct = X(u), S[o] = u;
      } else {
        i = S[o] = Me({}, o == $ ? Yi : hu, c), i.key = o;
        let u = i.time, h = i.range, m = It(h);
        if ((o != $ || s == 2 && !u) && (m && (h[0] == null || h[1] == null) && (h = {
          min: h[0] == null ? Co : {
            mode: 1,
            hard: h[0],
            soft: h[0]
          },
          max: h[1] == null ? Co : {
            mode: 1,
            hard: h[1],
            soft: h[1]
          }
        }, m = !1), !m && Mn(h))) {
          let v = h;
          h = (k, _, A) => _ == null ? Dl : yn(_, A, v);
        }
        i.range = ee(h || (u ? Tu : o == $ ? i.distr == 3 ? Eu : i.distr == 4 ? Lu : nr : i.distr == 3 ? sr : i.distr == 4 ? or : Au)), i.auto = ee(m ? !1 : i.auto), i.clamp = ee(i.clamp || pu), i._min = i._max = null, i.valToPct = X(i);
      }
    }
  }
  j("x"), j("y"), s == 1 && b.forEach((o) => {
    j(o.scale);
  }), B.forEach((o) => {
    j(o.scale);
  });
  for (let o in e.scales)
    j(o);
  const M = S[$], q = M.distr;
  let C, W;
  M.ori == 0 ? (lt(d, Ba), C = r, W = a) : (lt(d, Oa), C = a, W = r);
  const V = {};
  for (let o in S) {
    let i = S[o];
    (i.min != null || i.max != null) && (V[o] = { min: i.min, max: i.max }, i.min = i.max = null);
  }
  const te = e.tzDate || ((o) => new Date(Ee(o / G))), F = e.fmtDate || $s, qe = G == 1 ? Bc(te) : Gc(te), be = Ho(te, Wo(G == 1 ? Vc : Ic, F)), le = Uo(te, jo(Hc, F)), ce = [], Z = n.legend = Me({}, Yc, e.legend), R = n.cursor = Me({}, Xc, { drag: { y: s == 2 } }, e.cursor), Te = Z.show, Ge = R.show, ve = Z.markers;
  Z.idxs = ce, ve.width = ee(ve.width), ve.dash = ee(ve.dash), ve.stroke = ee(ve.stroke), ve.fill = ee(ve.fill);
  let re, ht, Ze, xe = [], xt = [], Lt, ot = !1, Nt = {};
  if (Z.live) {
    const o = b[1] ? b[1].values : null;
    ot = o != null, Lt = ot ? o(n, 1, 0) : { _: 0 };
    for (let i in Lt)
      Nt[i] = Ts;
  }
  if (Te)
    if (re = bt("table", Ja, d), Ze = bt("tbody", null, re), Z.mount(n, re), ot) {
      ht = bt("thead", null, re, Ze);
      let o = bt("tr", null, ht);
      bt("th", null, o);
      for (var al in Lt)
        bt("th", yo, o).textContent = al;
    } else
      lt(re, Qa), Z.live && lt(re, Za);
  const cl = { show: !0 }, Fl = { show: !1 };
  function nn(o, i) {
    if (i == 0 && (ot || !Z.live || s == 2))
      return Dl;
    let c = [], u = bt("tr", Xa, Ze, Ze.childNodes[i]);
    lt(u, o.class), o.show || lt(u, ll);
    let h = bt("th", null, u);
    if (ve.show) {
      let k = ft(ec, h);
      if (i > 0) {
        let _ = ve.width(n, i);
        _ && (k.style.border = _ + "px " + ve.dash(n, i) + " " + ve.stroke(n, i)), k.style.background = ve.fill(n, i);
      }
    }
    let m = ft(yo, h);
    o.label instanceof HTMLElement ? m.appendChild(o.label) : m.textContent = o.label, i > 0 && (ve.show || (m.style.color = o.width > 0 ? ve.stroke(n, i) : ve.fill(n, i)), We("click", h, (k) => {
      if (R._lock)
        return;
      Kt(k);
      let _ = b.indexOf(o);
      if ((k.ctrlKey || k.metaKey) != Z.isolate) {
        let A = b.some((L, D) => D > 0 && D != _ && L.show);
        b.forEach((L, D) => {
          D > 0 && St(D, A ? D == _ ? cl : Fl : cl, !0, Se.setSeries);
        });
      } else
        St(_, { show: !o.show }, !0, Se.setSeries);
    }, !1), hl && We(So, h, (k) => {
      R._lock || (Kt(k), St(b.indexOf(o), Ml, !0, Se.setSeries));
    }, !1));
    for (var v in Lt) {
      let k = bt("td", tc, u);
      k.textContent = "--", c.push(k);
    }
    return [u, c];
  }
  const Ht = /* @__PURE__ */ new Map();
  function We(o, i, c, u = !0) {
    const h = Ht.get(i) || {}, m = R.bind[o](n, i, c, u);
    m && (sl(o, i, h[o] = m), Ht.set(i, h));
  }
  function ul(o, i, c) {
    const u = Ht.get(i) || {};
    for (let h in u)
      (o == null || h == o) && (hs(h, i, u[h]), delete u[h]);
    o == null && Ht.delete(i);
  }
  let Pt = 0, jt = 0, Y = 0, P = 0, he = 0, Ae = 0, fl = he, Ut = Ae, kt = Y, Yt = P, Qe = 0, it = 0, Ke = 0, dt = 0;
  n.bbox = {};
  let Pn = !1, sn = !1, pl = !1, qt = !1, on = !1, rt = !1;
  function Dn(o, i, c) {
    (c || o != n.width || i != n.height) && Bs(o, i), bl(!1), pl = !0, sn = !0, vl();
  }
  function Bs(o, i) {
    n.width = Pt = Y = o, n.height = jt = P = i, he = Ae = 0, cr(), ur();
    let c = n.bbox;
    Qe = c.left = el(he * ie, 0.5), it = c.top = el(Ae * ie, 0.5), Ke = c.width = el(Y * ie, 0.5), dt = c.height = el(P * ie, 0.5);
  }
  const ir = 3;
  function rr() {
    let o = !1, i = 0;
    for (; !o; ) {
      i++;
      let c = vr(i), u = yr(i);
      o = i == ir || c && u, o || (Bs(n.width, n.height), sn = !0);
    }
  }
  function ar({ width: o, height: i }) {
    Dn(o, i);
  }
  n.setSize = ar;
  function cr() {
    let o = !1, i = !1, c = !1, u = !1;
    B.forEach((h, m) => {
      if (h.show && h._show) {
        let { side: v, _size: k } = h, _ = v % 2, A = h.label != null ? h.labelSize : 0, L = k + A;
        L > 0 && (_ ? (Y -= L, v == 3 ? (he += L, u = !0) : c = !0) : (P -= L, v == 0 ? (Ae += L, o = !0) : i = !0));
      }
    }), Jt[0] = o, Jt[1] = c, Jt[2] = i, Jt[3] = u, Y -= zt[1] + zt[3], he += zt[3], P -= zt[2] + zt[0], Ae += zt[0];
  }
  function ur() {
    let o = he + Y, i = Ae + P, c = he, u = Ae;
    function h(m, v) {
      switch (m) {
        case 1:
          return o += v, o - v;
        case 2:
          return i += v, i - v;
        case 3:
          return c -= v, c + v;
        case 0:
          return u -= v, u + v;
      }
    }
    B.forEach((m, v) => {
      if (m.show && m._show) {
        let k = m.side;
        m._pos = h(k, m._size), m.label != null && (m._lpos = h(k, m.labelSize));
      }
    });
  }
  if (R.dataIdx == null) {
    let o = R.hover, i = o.skip = new Set(o.skip ?? []);
    i.add(void 0);
    let c = o.prox = ee(o.prox), u = o.bias ??= 0;
    R.dataIdx = (h, m, v, k) => {
      if (m == 0)
        return v;
      let _ = v, A = c(h, m, v, k) ?? fe, L = A >= 0 && A < fe, D = M.ori == 0 ? Y : P, H = R.left, oe = t[0], ne = t[m];
      if (i.has(ne[v])) {
        _ = null;
        let Q = null, I = null, N;
        if (u == 0 || u == -1)
          for (N = v; Q == null && N-- > 0; )
            i.has(ne[N]) || (Q = N);
        if (u == 0 || u == 1)
          for (N = v; I == null && N++ < ne.length; )
            i.has(ne[N]) || (I = N);
        if (Q != null || I != null)
          if (L) {
            let ge = Q == null ? -1 / 0 : C(oe[Q], M, D, 0), ke = I == null ? 1 / 0 : C(oe[I], M, D, 0), ze = H - ge, ue = ke - H;
            ze <= ue ? ze <= A && (_ = Q) : ue <= A && (_ = I);
          } else
            _ = I == null ? Q : Q == null ? I : v - Q <= I - v ? Q : I;
      } else L && Le(H - C(oe[v], M, D, 0)) > A && (_ = null);
      return _;
    };
  }
  const Kt = (o) => {
    R.event = o;
  };
  R.idxs = ce, R._lock = !1;
  let Oe = R.points;
  Oe.show = ee(Oe.show), Oe.size = ee(Oe.size), Oe.stroke = ee(Oe.stroke), Oe.width = ee(Oe.width), Oe.fill = ee(Oe.fill);
  const _t = n.focus = Me({}, e.focus || { alpha: 0.3 }, R.focus), hl = _t.prox >= 0, dl = hl && Oe.one;
  let at = [], ml = [], gl = [];
  function Os(o, i) {
    let c = Oe.show(n, i);
    if (c instanceof HTMLElement)
      return lt(c, Ka), lt(c, o.class), Et(c, -10, -10, Y, P), E.insertBefore(c, at[i]), c;
  }
  function Is(o, i) {
    if (s == 1 || i > 0) {
      let c = s == 1 && S[o.scale].time, u = o.value;
      o.value = c ? Bo(u) ? Uo(te, jo(u, F)) : u || le : u || cu, o.label = o.label || (c ? tu : eu);
    }
    if (dl || i > 0) {
      o.width = o.width == null ? 1 : o.width, o.paths = o.paths || _u || hc, o.fillTo = ee(o.fillTo || du), o.pxAlign = +se(o.pxAlign, z), o.pxRound = ti(o.pxAlign), o.stroke = ee(o.stroke || null), o.fill = ee(o.fill || null), o._stroke = o._fill = o._paths = o._focus = null;
      let c = uu(Ye(1, o.width), 1), u = o.points = Me({}, {
        size: c,
        width: Ye(1, c * 0.2),
        stroke: o.stroke,
        space: c * 2,
        paths: Su,
        _stroke: null,
        _fill: null
      }, o.points);
      u.show = ee(u.show), u.filter = ee(u.filter), u.fill = ee(u.fill), u.stroke = ee(u.stroke), u.paths = ee(u.paths), u.pxAlign = o.pxAlign;
    }
    if (Te) {
      let c = nn(o, i);
      xe.splice(i, 0, c[0]), xt.splice(i, 0, c[1]), Z.values.push(null);
    }
    if (Ge) {
      ce.splice(i, 0, null);
      let c = null;
      dl ? i == 0 && (c = Os(o, i)) : i > 0 && (c = Os(o, i)), at.splice(i, 0, c), ml.splice(i, 0, 0), gl.splice(i, 0, 0);
    }
    Ne("addSeries", i);
  }
  function fr(o, i) {
    i = i ?? b.length, o = s == 1 ? vs(o, i, qo, Xo) : vs(o, i, {}, Qo), b.splice(i, 0, o), Is(b[i], i);
  }
  n.addSeries = fr;
  function pr(o) {
    if (b.splice(o, 1), Te) {
      Z.values.splice(o, 1), xt.splice(o, 1);
      let i = xe.splice(o, 1)[0];
      ul(null, i.firstChild), i.remove();
    }
    Ge && (ce.splice(o, 1), at.splice(o, 1)[0].remove(), ml.splice(o, 1), gl.splice(o, 1)), Ne("delSeries", o);
  }
  n.delSeries = pr;
  const Jt = [!1, !1, !1, !1];
  function hr(o, i) {
    if (o._show = o.show, o.show) {
      let c = o.side % 2, u = S[o.scale];
      u == null && (o.scale = c ? b[1].scale : $, u = S[o.scale]);
      let h = u.time;
      o.size = ee(o.size), o.space = ee(o.space), o.rotate = ee(o.rotate), It(o.incrs) && o.incrs.forEach((v) => {
        !Wt.has(v) && Wt.set(v, Ei(v));
      }), o.incrs = ee(o.incrs || (u.distr == 2 ? Nc : h ? G == 1 ? Fc : Oc : tl)), o.splits = ee(o.splits || (h && u.distr == 1 ? qe : u.distr == 3 ? ms : u.distr == 4 ? su : nu)), o.stroke = ee(o.stroke), o.grid.stroke = ee(o.grid.stroke), o.ticks.stroke = ee(o.ticks.stroke), o.border.stroke = ee(o.border.stroke);
      let m = o.values;
      o.values = // static array of tick values
      It(m) && !It(m[0]) ? ee(m) : (
        // temporal
        h ? (
          // config array of fmtDate string tpls
          It(m) ? Ho(te, Wo(m, F)) : (
            // fmtDate string tpl
            Bo(m) ? Wc(te, m) : m || be
          )
        ) : m || lu
      ), o.filter = ee(o.filter || (u.distr >= 3 && u.log == 10 ? ru : u.distr == 3 && u.log == 2 ? au : Ti)), o.font = oi(o.font), o.labelFont = oi(o.labelFont), o._size = o.size(n, null, i, 0), o._space = o._rotate = o._incrs = o._found = // foundIncrSpace
      o._splits = o._values = null, o._size > 0 && (Jt[i] = !0, o._el = ft(ja, w));
    }
  }
  function Vl(o, i, c, u) {
    let [h, m, v, k] = c, _ = i % 2, A = 0;
    return _ == 0 && (k || m) && (A = i == 0 && !h || i == 2 && !v ? Ee(Yo.size / 3) : 0), _ == 1 && (h || v) && (A = i == 1 && !m || i == 3 && !k ? Ee(Jo.size / 2) : 0), A;
  }
  const Gs = n.padding = (e.padding || [Vl, Vl, Vl, Vl]).map((o) => ee(se(o, Vl))), zt = n._padding = Gs.map((o, i) => o(n, i, Jt, 0));
  let Fe, De = null, $e = null;
  const rn = s == 1 ? b[0].idxs : null;
  let mt = null, Bl = !1;
  function Ws(o, i) {
    if (t = o ?? [], n.data = n._data = t, s == 2) {
      Fe = 0;
      for (let c = 1; c < b.length; c++)
        Fe += t[c][0].length;
    } else {
      t.length == 0 && (n.data = n._data = t = [[]]), mt = t[0], Fe = mt.length;
      let c = t;
      if (q == 2) {
        c = t.slice();
        let u = c[0] = Array(Fe);
        for (let h = 0; h < Fe; h++)
          u[h] = h;
      }
      n._data = t = c;
    }
    if (bl(!0), Ne("setData"), q == 2 && (pl = !0), i !== !1) {
      let c = M;
      c.auto(n, Bl) ? $n() : Vt($, c.min, c.max), qt = qt || R.left >= 0, rt = !0, vl();
    }
  }
  n.setData = Ws;
  function $n() {
    Bl = !0;
    let o, i;
    s == 1 && (Fe > 0 ? (De = rn[0] = 0, $e = rn[1] = Fe - 1, o = t[0][De], i = t[0][$e], q == 2 ? (o = De, i = $e) : o == i && (q == 3 ? [o, i] = _n(o, o, M.log, !1) : q == 4 ? [o, i] = Es(o, o, M.log, !1) : M.time ? i = o + Ee(86400 / G) : [o, i] = yn(o, i, Ls, !0))) : (De = rn[0] = o = null, $e = rn[1] = i = null)), Vt($, o, i);
  }
  let an, wl, Cn, Rn, Nn, zn, Fn, Vn, Bn, Je;
  function Hs(o, i, c, u, h, m) {
    o ??= ko, c ??= Ds, u ??= "butt", h ??= ko, m ??= "round", o != an && (g.strokeStyle = an = o), h != wl && (g.fillStyle = wl = h), i != Cn && (g.lineWidth = Cn = i), m != Nn && (g.lineJoin = Nn = m), u != zn && (g.lineCap = zn = u), c != Rn && g.setLineDash(Rn = c);
  }
  function js(o, i, c, u) {
    i != wl && (g.fillStyle = wl = i), o != Fn && (g.font = Fn = o), c != Vn && (g.textAlign = Vn = c), u != Bn && (g.textBaseline = Bn = u);
  }
  function On(o, i, c, u, h = 0) {
    if (u.length > 0 && o.auto(n, Bl) && (i == null || i.min == null)) {
      let m = se(De, 0), v = se($e, u.length - 1), k = c.min == null ? rc(u, m, v, h, o.distr == 3) : [c.min, c.max];
      o.min = yt(o.min, c.min = k[0]), o.max = Ye(o.max, c.max = k[1]);
    }
  }
  const Us = { min: null, max: null };
  function dr() {
    for (let u in S) {
      let h = S[u];
      V[u] == null && // scales that have never been set (on init)
      (h.min == null || // or auto scales when the x scale was explicitly set
      V[$] != null && h.auto(n, Bl)) && (V[u] = Us);
    }
    for (let u in S) {
      let h = S[u];
      V[u] == null && h.from != null && V[h.from] != null && (V[u] = Us);
    }
    V[$] != null && bl(!0);
    let o = {};
    for (let u in V) {
      let h = V[u];
      if (h != null) {
        let m = o[u] = $l(S[u], gc);
        if (h.min != null)
          Me(m, h);
        else if (u != $ || s == 2)
          if (Fe == 0 && m.from == null) {
            let v = m.range(n, null, null, u);
            m.min = v[0], m.max = v[1];
          } else
            m.min = fe, m.max = -fe;
      }
    }
    if (Fe > 0) {
      b.forEach((u, h) => {
        if (s == 1) {
          let m = u.scale, v = V[m];
          if (v == null)
            return;
          let k = o[m];
          if (h == 0) {
            let _ = k.range(n, k.min, k.max, m);
            k.min = _[0], k.max = _[1], De = vt(k.min, t[0]), $e = vt(k.max, t[0]), $e - De > 1 && (t[0][De] < k.min && De++, t[0][$e] > k.max && $e--), u.min = mt[De], u.max = mt[$e];
          } else u.show && u.auto && On(k, v, u, t[h], u.sorted);
          u.idxs[0] = De, u.idxs[1] = $e;
        } else if (h > 0 && u.show && u.auto) {
          let [m, v] = u.facets, k = m.scale, _ = v.scale, [A, L] = t[h], D = o[k], H = o[_];
          D != null && On(D, V[k], m, A, m.sorted), H != null && On(H, V[_], v, L, v.sorted), u.min = v.min, u.max = v.max;
        }
      });
      for (let u in o) {
        let h = o[u], m = V[u];
        if (h.from == null && (m == null || m.min == null)) {
          let v = h.range(
            n,
            h.min == fe ? null : h.min,
            h.max == -fe ? null : h.max,
            u
          );
          h.min = v[0], h.max = v[1];
        }
      }
    }
    for (let u in o) {
      let h = o[u];
      if (h.from != null) {
        let m = o[h.from];
        if (m.min == null)
          h.min = h.max = null;
        else {
          let v = h.range(n, m.min, m.max, u);
          h.min = v[0], h.max = v[1];
        }
      }
    }
    let i = {}, c = !1;
    for (let u in o) {
      let h = o[u], m = S[u];
      if (m.min != h.min || m.max != h.max) {
        m.min = h.min, m.max = h.max;
        let v = m.distr;
        m._min = v == 3 ? Ct(m.min) : v == 4 ? is(m.min, m.asinh) : v == 100 ? m.fwd(m.min) : m.min, m._max = v == 3 ? Ct(m.max) : v == 4 ? is(m.max, m.asinh) : v == 100 ? m.fwd(m.max) : m.max, i[u] = c = !0;
      }
    }
    if (c) {
      b.forEach((u, h) => {
        s == 2 ? h > 0 && i.y && (u._paths = null) : i[u.scale] && (u._paths = null);
      });
      for (let u in i)
        pl = !0, Ne("setScale", u);
      Ge && R.left >= 0 && (qt = rt = !0);
    }
    for (let u in V)
      V[u] = null;
  }
  function mr(o) {
    let i = ds(De - 1, 0, Fe - 1), c = ds($e + 1, 0, Fe - 1);
    for (; o[i] == null && i > 0; )
      i--;
    for (; o[c] == null && c < Fe - 1; )
      c++;
    return [i, c];
  }
  function gr() {
    if (Fe > 0) {
      let o = b.some((i) => i._focus) && Je != _t.alpha;
      o && (g.globalAlpha = Je = _t.alpha), b.forEach((i, c) => {
        if (c > 0 && i.show && (Ys(c, !1), Ys(c, !0), i._paths == null)) {
          let u = Je;
          Je != i.alpha && (g.globalAlpha = Je = i.alpha);
          let h = s == 2 ? [0, t[c][0].length - 1] : mr(t[c]);
          i._paths = i.paths(n, c, h[0], h[1]), Je != u && (g.globalAlpha = Je = u);
        }
      }), b.forEach((i, c) => {
        if (c > 0 && i.show) {
          let u = Je;
          Je != i.alpha && (g.globalAlpha = Je = i.alpha), i._paths != null && qs(c, !1);
          {
            let h = i._paths != null ? i._paths.gaps : null, m = i.points.show(n, c, De, $e, h), v = i.points.filter(n, c, m, h);
            (m || v) && (i.points._paths = i.points.paths(n, c, De, $e, v), qs(c, !0));
          }
          Je != u && (g.globalAlpha = Je = u), Ne("drawSeries", c);
        }
      }), o && (g.globalAlpha = Je = 1);
    }
  }
  function Ys(o, i) {
    let c = i ? b[o].points : b[o];
    c._stroke = c.stroke(n, o), c._fill = c.fill(n, o);
  }
  function qs(o, i) {
    let c = i ? b[o].points : b[o], {
      stroke: u,
      fill: h,
      clip: m,
      flags: v,
      _stroke: k = c._stroke,
      _fill: _ = c._fill,
      _width: A = c.width
    } = c._paths;
    A = pe(A * ie, 3);
    let L = null, D = A % 2 / 2;
    i && _ == null && (_ = A > 0 ? "#fff" : k);
    let H = c.pxAlign == 1 && D > 0;
    if (H && g.translate(D, D), !i) {
      let oe = Qe - A / 2, ne = it - A / 2, Q = Ke + A, I = dt + A;
      L = new Path2D(), L.rect(oe, ne, Q, I);
    }
    i ? In(k, A, c.dash, c.cap, _, u, h, v, m) : wr(o, k, A, c.dash, c.cap, _, u, h, v, L, m), H && g.translate(-D, -D);
  }
  function wr(o, i, c, u, h, m, v, k, _, A, L) {
    let D = !1;
    _ != 0 && K.forEach((H, oe) => {
      if (H.series[0] == o) {
        let ne = b[H.series[1]], Q = t[H.series[1]], I = (ne._paths || en).band;
        It(I) && (I = H.dir == 1 ? I[0] : I[1]);
        let N, ge = null;
        ne.show && I && cc(Q, De, $e) ? (ge = H.fill(n, oe) || m, N = ne._paths.clip) : I = null, In(i, c, u, h, ge, v, k, _, A, L, N, I), D = !0;
      }
    }), D || In(i, c, u, h, m, v, k, _, A, L);
  }
  const Ks = Cl | ws;
  function In(o, i, c, u, h, m, v, k, _, A, L, D) {
    Hs(o, i, c, u, h), (_ || A || D) && (g.save(), _ && g.clip(_), A && g.clip(A)), D ? (k & Ks) == Ks ? (g.clip(D), L && g.clip(L), un(h, v), cn(o, m, i)) : k & ws ? (un(h, v), g.clip(D), cn(o, m, i)) : k & Cl && (g.save(), g.clip(D), L && g.clip(L), un(h, v), g.restore(), cn(o, m, i)) : (un(h, v), cn(o, m, i)), (_ || A || D) && g.restore();
  }
  function cn(o, i, c) {
    c > 0 && (i instanceof Map ? i.forEach((u, h) => {
      g.strokeStyle = an = h, g.stroke(u);
    }) : i != null && o && g.stroke(i));
  }
  function un(o, i) {
    i instanceof Map ? i.forEach((c, u) => {
      g.fillStyle = wl = u, g.fill(c);
    }) : i != null && o && g.fill(i);
  }
  function br(o, i, c, u) {
    let h = B[o], m;
    if (u <= 0)
      m = [0, 0];
    else {
      let v = h._space = h.space(n, o, i, c, u), k = h._incrs = h.incrs(n, o, i, c, u, v);
      m = Pu(i, c, k, u, v);
    }
    return h._found = m;
  }
  function Gn(o, i, c, u, h, m, v, k, _, A) {
    let L = v % 2 / 2;
    z == 1 && g.translate(L, L), Hs(k, v, _, A, k), g.beginPath();
    let D, H, oe, ne, Q = h + (u == 0 || u == 3 ? -m : m);
    c == 0 ? (H = h, ne = Q) : (D = h, oe = Q);
    for (let I = 0; I < o.length; I++)
      i[I] != null && (c == 0 ? D = oe = o[I] : H = ne = o[I], g.moveTo(D, H), g.lineTo(oe, ne));
    g.stroke(), z == 1 && g.translate(-L, -L);
  }
  function vr(o) {
    let i = !0;
    return B.forEach((c, u) => {
      if (!c.show)
        return;
      let h = S[c.scale];
      if (h.min == null) {
        c._show && (i = !1, c._show = !1, bl(!1));
        return;
      } else
        c._show || (i = !1, c._show = !0, bl(!1));
      let m = c.side, v = m % 2, { min: k, max: _ } = h, [A, L] = br(u, k, _, v == 0 ? Y : P);
      if (L == 0)
        return;
      let D = h.distr == 2, H = c._splits = c.splits(n, u, k, _, A, L, D), oe = h.distr == 2 ? H.map((N) => mt[N]) : H, ne = h.distr == 2 ? mt[H[1]] - mt[H[0]] : A, Q = c._values = c.values(n, c.filter(n, oe, u, L, ne), u, L, ne);
      c._rotate = m == 2 ? c.rotate(n, Q, u, L) : 0;
      let I = c._size;
      c._size = pt(c.size(n, Q, u, o)), I != null && c._size != I && (i = !1);
    }), i;
  }
  function yr(o) {
    let i = !0;
    return Gs.forEach((c, u) => {
      let h = c(n, u, Jt, o);
      h != zt[u] && (i = !1), zt[u] = h;
    }), i;
  }
  function xr() {
    for (let o = 0; o < B.length; o++) {
      let i = B[o];
      if (!i.show || !i._show)
        continue;
      let c = i.side, u = c % 2, h, m, v = i.stroke(n, o), k = c == 0 || c == 3 ? -1 : 1, [_, A] = i._found;
      if (i.label != null) {
        let je = i.labelGap * k, tt = Ee((i._lpos + je) * ie);
        js(i.labelFont[0], v, "center", c == 2 ? jl : xo), g.save(), u == 1 ? (h = m = 0, g.translate(
          tt,
          Ee(it + dt / 2)
        ), g.rotate((c == 3 ? -bn : bn) / 2)) : (h = Ee(Qe + Ke / 2), m = tt);
        let Xt = Si(i.label) ? i.label(n, o, _, A) : i.label;
        g.fillText(Xt, h, m), g.restore();
      }
      if (A == 0)
        continue;
      let L = S[i.scale], D = u == 0 ? Ke : dt, H = u == 0 ? Qe : it, oe = i._splits, ne = L.distr == 2 ? oe.map((je) => mt[je]) : oe, Q = L.distr == 2 ? mt[oe[1]] - mt[oe[0]] : _, I = i.ticks, N = i.border, ge = I.show ? I.size : 0, ke = Ee(ge * ie), ze = Ee((i.alignTo == 2 ? i._size - ge - i.gap : i.gap) * ie), ue = i._rotate * -bn / 180, _e = O(i._pos * ie), Xe = (ke + ze) * k, He = _e + Xe;
      m = u == 0 ? He : 0, h = u == 1 ? He : 0;
      let ct = i.font[0], gt = i.align == 1 ? Al : i.align == 2 ? ns : ue > 0 ? Al : ue < 0 ? ns : u == 0 ? "center" : c == 3 ? ns : Al, Tt = ue || u == 1 ? "middle" : c == 2 ? jl : xo;
      js(ct, v, gt, Tt);
      let et = i.font[1] * i.lineGap, ut = oe.map((je) => O(p(je, L, D, H))), wt = i._values;
      for (let je = 0; je < wt.length; je++) {
        let tt = wt[je];
        if (tt != null) {
          u == 0 ? h = ut[je] : m = ut[je], tt = "" + tt;
          let Xt = tt.indexOf(`
`) == -1 ? [tt] : tt.split(/\n/gm);
          for (let Ue = 0; Ue < Xt.length; Ue++) {
            let mo = Xt[Ue];
            ue ? (g.save(), g.translate(h, m + Ue * et), g.rotate(ue), g.fillText(mo, 0, 0), g.restore()) : g.fillText(mo, h, m + Ue * et);
          }
        }
      }
      I.show && Gn(
        ut,
        I.filter(n, ne, o, A, Q),
        u,
        c,
        _e,
        ke,
        pe(I.width * ie, 3),
        I.stroke(n, o),
        I.dash,
        I.cap
      );
      let At = i.grid;
      At.show && Gn(
        ut,
        At.filter(n, ne, o, A, Q),
        u,
        u == 0 ? 2 : 1,
        u == 0 ? it : Qe,
        u == 0 ? dt : Ke,
        pe(At.width * ie, 3),
        At.stroke(n, o),
        At.dash,
        At.cap
      ), N.show && Gn(
        [_e],
        [1],
        u == 0 ? 1 : 0,
        u == 0 ? 1 : 2,
        u == 1 ? it : Qe,
        u == 1 ? dt : Ke,
        pe(N.width * ie, 3),
        N.stroke(n, o),
        N.dash,
        N.cap
      );
    }
    Ne("drawAxes");
  }
  function bl(o) {
    b.forEach((i, c) => {
      c > 0 && (i._paths = null, o && (s == 1 ? (i.min = null, i.max = null) : i.facets.forEach((u) => {
        u.min = null, u.max = null;
      })));
    });
  }
  let fn = !1, Wn = !1, Ol = [];
  function kr() {
    Wn = !1;
    for (let o = 0; o < Ol.length; o++)
      Ne(...Ol[o]);
    Ol.length = 0;
  }
  function vl() {
    fn || (_c(Js), fn = !0);
  }
  function _r(o, i = !1) {
    fn = !0, Wn = i, o(n), Js(), i && Ol.length > 0 && queueMicrotask(kr);
  }
  n.batch = _r;
  function Js() {
    if (Pn && (dr(), Pn = !1), pl && (rr(), pl = !1), sn) {
      if (we(T, Al, he), we(T, jl, Ae), we(T, Yl, Y), we(T, ql, P), we(E, Al, he), we(E, jl, Ae), we(E, Yl, Y), we(E, ql, P), we(w, Yl, Pt), we(w, ql, jt), y.width = Ee(Pt * ie), y.height = Ee(jt * ie), B.forEach(({ _el: o, _show: i, _size: c, _pos: u, side: h }) => {
        if (o != null)
          if (i) {
            let m = h === 3 || h === 0 ? c : 0, v = h % 2 == 1;
            we(o, v ? "left" : "top", u - m), we(o, v ? "width" : "height", c), we(o, v ? "top" : "left", v ? Ae : he), we(o, v ? "height" : "width", v ? P : Y), ps(o, ll);
          } else
            lt(o, ll);
      }), an = wl = Cn = Nn = zn = Fn = Vn = Bn = Rn = null, Je = 1, Wl(!0), he != fl || Ae != Ut || Y != kt || P != Yt) {
        bl(!1);
        let o = Y / kt, i = P / Yt;
        if (Ge && !qt && R.left >= 0) {
          R.left *= o, R.top *= i, yl && Et(yl, Ee(R.left), 0, Y, P), xl && Et(xl, 0, Ee(R.top), Y, P);
          for (let c = 0; c < at.length; c++) {
            let u = at[c];
            u != null && (ml[c] *= o, gl[c] *= i, Et(u, pt(ml[c]), pt(gl[c]), Y, P));
          }
        }
        if (me.show && !on && me.left >= 0 && me.width > 0) {
          me.left *= o, me.width *= o, me.top *= i, me.height *= i;
          for (let c in Kn)
            we(Sl, c, me[c]);
        }
        fl = he, Ut = Ae, kt = Y, Yt = P;
      }
      Ne("setSize"), sn = !1;
    }
    Pt > 0 && jt > 0 && (g.clearRect(0, 0, y.width, y.height), Ne("drawClear"), U.forEach((o) => o()), Ne("draw")), me.show && on && (pn(me), on = !1), Ge && qt && (Qt(null, !0, !1), qt = !1), Z.show && Z.live && rt && (Yn(), rt = !1), f || (f = !0, n.status = 1, Ne("ready")), Bl = !1, fn = !1;
  }
  n.redraw = (o, i) => {
    pl = i || !1, o !== !1 ? Vt($, M.min, M.max) : vl();
  };
  function Hn(o, i) {
    let c = S[o];
    if (c.from == null) {
      if (Fe == 0) {
        let u = c.range(n, i.min, i.max, o);
        i.min = u[0], i.max = u[1];
      }
      if (i.min > i.max) {
        let u = i.min;
        i.min = i.max, i.max = u;
      }
      if (Fe > 1 && i.min != null && i.max != null && i.max - i.min < 1e-16)
        return;
      o == $ && c.distr == 2 && Fe > 0 && (i.min = vt(i.min, t[0]), i.max = vt(i.max, t[0]), i.min == i.max && i.max++), V[o] = i, Pn = !0, vl();
    }
  }
  n.setScale = Hn;
  let jn, Un, yl, xl, Zs, Qs, kl, _l, Xs, eo, de, ye, Ft = !1;
  const Ve = R.drag;
  let Ce = Ve.x, Re = Ve.y;
  Ge && (R.x && (jn = ft(Ya, E)), R.y && (Un = ft(qa, E)), M.ori == 0 ? (yl = jn, xl = Un) : (yl = Un, xl = jn), de = R.left, ye = R.top);
  const me = n.select = Me({
    show: !0,
    over: !0,
    left: 0,
    width: 0,
    top: 0,
    height: 0
  }, e.select), Sl = me.show ? ft(Ua, me.over ? E : T) : null;
  function pn(o, i) {
    if (me.show) {
      for (let c in o)
        me[c] = o[c], c in Kn && we(Sl, c, o[c]);
      i !== !1 && Ne("setSelect");
    }
  }
  n.setSelect = pn;
  function Sr(o) {
    if (b[o].show)
      Te && ps(xe[o], ll);
    else if (Te && lt(xe[o], ll), Ge) {
      let c = dl ? at[0] : at[o];
      c != null && Et(c, -10, -10, Y, P);
    }
  }
  function Vt(o, i, c) {
    Hn(o, { min: i, max: c });
  }
  function St(o, i, c, u) {
    i.focus != null && Lr(o), i.show != null && b.forEach((h, m) => {
      m > 0 && (o == m || o == null) && (h.show = i.show, Sr(m), s == 2 ? (Vt(h.facets[0].scale, null, null), Vt(h.facets[1].scale, null, null)) : Vt(h.scale, null, null), vl());
    }), c !== !1 && Ne("setSeries", o, i), u && Hl("setSeries", n, o, i);
  }
  n.setSeries = St;
  function Mr(o, i) {
    Me(K[o], i);
  }
  function Tr(o, i) {
    o.fill = ee(o.fill || null), o.dir = se(o.dir, -1), i = i ?? K.length, K.splice(i, 0, o);
  }
  function Ar(o) {
    o == null ? K.length = 0 : K.splice(o, 1);
  }
  n.addBand = Tr, n.setBand = Mr, n.delBand = Ar;
  function Er(o, i) {
    b[o].alpha = i, Ge && at[o] != null && (at[o].style.opacity = i), Te && xe[o] && (xe[o].style.opacity = i);
  }
  let Dt, Bt, Zt;
  const Ml = { focus: !0 };
  function Lr(o) {
    if (o != Zt) {
      let i = o == null, c = _t.alpha != 1;
      b.forEach((u, h) => {
        if (s == 1 || h > 0) {
          let m = i || h == 0 || h == o;
          u._focus = i ? null : m, c && Er(h, m ? 1 : _t.alpha);
        }
      }), Zt = o, c && vl();
    }
  }
  Te && hl && We(Mo, re, (o) => {
    R._lock || (Kt(o), Zt != null && St(null, Ml, !0, Se.setSeries));
  });
  function Mt(o, i, c) {
    let u = S[i];
    c && (o = o / ie - (u.ori == 1 ? Ae : he));
    let h = Y;
    u.ori == 1 && (h = P, o = h - o), u.dir == -1 && (o = h - o);
    let m = u._min, v = u._max, k = o / h, _ = m + (v - m) * k, A = u.distr;
    return A == 3 ? Pl(10, _) : A == 4 ? fc(_, u.asinh) : A == 100 ? u.bwd(_) : _;
  }
  function Pr(o, i) {
    let c = Mt(o, $, i);
    return vt(c, t[0], De, $e);
  }
  n.valToIdx = (o) => vt(o, t[0]), n.posToIdx = Pr, n.posToVal = Mt, n.valToPos = (o, i, c) => S[i].ori == 0 ? r(
    o,
    S[i],
    c ? Ke : Y,
    c ? Qe : 0
  ) : a(
    o,
    S[i],
    c ? dt : P,
    c ? it : 0
  ), n.setCursor = (o, i, c) => {
    de = o.left, ye = o.top, Qt(null, i, c);
  };
  function to(o, i) {
    we(Sl, Al, me.left = o), we(Sl, Yl, me.width = i);
  }
  function lo(o, i) {
    we(Sl, jl, me.top = o), we(Sl, ql, me.height = i);
  }
  let Il = M.ori == 0 ? to : lo, Gl = M.ori == 1 ? to : lo;
  function Dr() {
    if (Te && Z.live)
      for (let o = s == 2 ? 1 : 0; o < b.length; o++) {
        if (o == 0 && ot)
          continue;
        let i = Z.values[o], c = 0;
        for (let u in i)
          xt[o][c++].firstChild.nodeValue = i[u];
      }
  }
  function Yn(o, i) {
    if (o != null && (o.idxs ? o.idxs.forEach((c, u) => {
      ce[u] = c;
    }) : mc(o.idx) || ce.fill(o.idx), Z.idx = ce[0]), Te && Z.live) {
      for (let c = 0; c < b.length; c++)
        (c > 0 || s == 1 && !ot) && $r(c, ce[c]);
      Dr();
    }
    rt = !1, i !== !1 && Ne("setLegend");
  }
  n.setLegend = Yn;
  function $r(o, i) {
    let c = b[o], u = o == 0 && q == 2 ? mt : t[o], h;
    ot ? h = c.values(n, o, i) ?? Nt : (h = c.value(n, i == null ? null : u[i], o, i), h = h == null ? Nt : { _: h }), Z.values[o] = h;
  }
  function Qt(o, i, c) {
    Xs = de, eo = ye, [de, ye] = R.move(n, de, ye), R.left = de, R.top = ye, Ge && (yl && Et(yl, Ee(de), 0, Y, P), xl && Et(xl, 0, Ee(ye), Y, P));
    let u, h = De > $e;
    Dt = fe, Bt = null;
    let m = M.ori == 0 ? Y : P, v = M.ori == 1 ? Y : P;
    if (de < 0 || Fe == 0 || h) {
      u = R.idx = null;
      for (let k = 0; k < b.length; k++) {
        let _ = at[k];
        _ != null && Et(_, -10, -10, Y, P);
      }
      hl && St(null, Ml, !0, o == null && Se.setSeries), Z.live && (ce.fill(u), rt = !0);
    } else {
      let k, _, A;
      s == 1 && (k = M.ori == 0 ? de : ye, _ = Mt(k, $), u = R.idx = vt(_, t[0], De, $e), A = C(t[0][u], M, m, 0));
      let L = -10, D = -10, H = 0, oe = 0, ne = !0, Q = "", I = "";
      for (let N = s == 2 ? 1 : 0; N < b.length; N++) {
        let ge = b[N], ke = ce[N], ze = ke == null ? null : s == 1 ? t[N][ke] : t[N][1][ke], ue = R.dataIdx(n, N, u, _), _e = ue == null ? null : s == 1 ? t[N][ue] : t[N][1][ue];
        if (rt = rt || _e != ze || ue != ke, ce[N] = ue, N > 0 && ge.show) {
          let Xe = ue == null ? -10 : ue == u ? A : C(s == 1 ? t[0][ue] : t[N][0][ue], M, m, 0), He = _e == null ? -10 : W(_e, s == 1 ? S[ge.scale] : S[ge.facets[1].scale], v, 0);
          if (hl && _e != null) {
            let ct = M.ori == 1 ? de : ye, gt = Le(_t.dist(n, N, ue, He, ct));
            if (gt < Dt) {
              let Tt = _t.bias;
              if (Tt != 0) {
                let et = Mt(ct, ge.scale), ut = _e >= 0 ? 1 : -1, wt = et >= 0 ? 1 : -1;
                wt == ut && (wt == 1 ? Tt == 1 ? _e >= et : _e <= et : (
                  // >= 0
                  Tt == 1 ? _e <= et : _e >= et
                )) && (Dt = gt, Bt = N);
              } else
                Dt = gt, Bt = N;
            }
          }
          if (rt || dl) {
            let ct, gt;
            M.ori == 0 ? (ct = Xe, gt = He) : (ct = He, gt = Xe);
            let Tt, et, ut, wt, At, je, tt = !0, Xt = Oe.bbox;
            if (Xt != null) {
              tt = !1;
              let Ue = Xt(n, N);
              ut = Ue.left, wt = Ue.top, Tt = Ue.width, et = Ue.height;
            } else
              ut = ct, wt = gt, Tt = et = Oe.size(n, N);
            if (je = Oe.fill(n, N), At = Oe.stroke(n, N), dl)
              N == Bt && Dt <= _t.prox && (L = ut, D = wt, H = Tt, oe = et, ne = tt, Q = je, I = At);
            else {
              let Ue = at[N];
              Ue != null && (ml[N] = ut, gl[N] = wt, $o(Ue, Tt, et, tt), Po(Ue, je, At), Et(Ue, pt(ut), pt(wt), Y, P));
            }
          }
        }
      }
      if (dl) {
        let N = _t.prox, ge = Zt == null ? Dt <= N : Dt > N || Bt != Zt;
        if (rt || ge) {
          let ke = at[0];
          ke != null && (ml[0] = L, gl[0] = D, $o(ke, H, oe, ne), Po(ke, Q, I), Et(ke, pt(L), pt(D), Y, P));
        }
      }
    }
    if (me.show && Ft)
      if (o != null) {
        let [k, _] = Se.scales, [A, L] = Se.match, [D, H] = o.cursor.sync.scales, oe = o.cursor.drag;
        if (Ce = oe._x, Re = oe._y, Ce || Re) {
          let { left: ne, top: Q, width: I, height: N } = o.select, ge = o.scales[D].ori, ke = o.posToVal, ze, ue, _e, Xe, He, ct = k != null && A(k, D), gt = _ != null && L(_, H);
          ct && Ce ? (ge == 0 ? (ze = ne, ue = I) : (ze = Q, ue = N), _e = S[k], Xe = C(ke(ze, D), _e, m, 0), He = C(ke(ze + ue, D), _e, m, 0), Il(yt(Xe, He), Le(He - Xe))) : Il(0, m), gt && Re ? (ge == 1 ? (ze = ne, ue = I) : (ze = Q, ue = N), _e = S[_], Xe = W(ke(ze, H), _e, v, 0), He = W(ke(ze + ue, H), _e, v, 0), Gl(yt(Xe, He), Le(He - Xe))) : Gl(0, v);
        } else
          Jn();
      } else {
        let k = Le(Xs - Zs), _ = Le(eo - Qs);
        if (M.ori == 1) {
          let H = k;
          k = _, _ = H;
        }
        Ce = Ve.x && k >= Ve.dist, Re = Ve.y && _ >= Ve.dist;
        let A = Ve.uni;
        A != null ? Ce && Re && (Ce = k >= A, Re = _ >= A, !Ce && !Re && (_ > k ? Re = !0 : Ce = !0)) : Ve.x && Ve.y && (Ce || Re) && (Ce = Re = !0);
        let L, D;
        Ce && (M.ori == 0 ? (L = kl, D = de) : (L = _l, D = ye), Il(yt(L, D), Le(D - L)), Re || Gl(0, v)), Re && (M.ori == 1 ? (L = kl, D = de) : (L = _l, D = ye), Gl(yt(L, D), Le(D - L)), Ce || Il(0, m)), !Ce && !Re && (Il(0, 0), Gl(0, 0));
      }
    if (Ve._x = Ce, Ve._y = Re, o == null) {
      if (c) {
        if (ho != null) {
          let [k, _] = Se.scales;
          Se.values[0] = k != null ? Mt(M.ori == 0 ? de : ye, k) : null, Se.values[1] = _ != null ? Mt(M.ori == 1 ? de : ye, _) : null;
        }
        Hl(ss, n, de, ye, Y, P, u);
      }
      if (hl) {
        let k = c && Se.setSeries, _ = _t.prox;
        Zt == null ? Dt <= _ && St(Bt, Ml, !0, k) : Dt > _ ? St(null, Ml, !0, k) : Bt != Zt && St(Bt, Ml, !0, k);
      }
    }
    rt && (Z.idx = u, Yn()), i !== !1 && Ne("setCursor");
  }
  let Ot = null;
  Object.defineProperty(n, "rect", {
    get() {
      return Ot == null && Wl(!1), Ot;
    }
  });
  function Wl(o = !1) {
    o ? Ot = null : (Ot = E.getBoundingClientRect(), Ne("syncRect", Ot));
  }
  function no(o, i, c, u, h, m, v) {
    R._lock || Ft && o != null && o.movementX == 0 && o.movementY == 0 || (qn(o, i, c, u, h, m, v, !1, o != null), o != null ? Qt(null, !0, !0) : Qt(i, !0, !1));
  }
  function qn(o, i, c, u, h, m, v, k, _) {
    if (Ot == null && Wl(!1), Kt(o), o != null)
      c = o.clientX - Ot.left, u = o.clientY - Ot.top;
    else {
      if (c < 0 || u < 0) {
        de = -10, ye = -10;
        return;
      }
      let [A, L] = Se.scales, D = i.cursor.sync, [H, oe] = D.values, [ne, Q] = D.scales, [I, N] = Se.match, ge = i.axes[0].side % 2 == 1, ke = M.ori == 0 ? Y : P, ze = M.ori == 1 ? Y : P, ue = ge ? m : h, _e = ge ? h : m, Xe = ge ? u : c, He = ge ? c : u;
      if (ne != null ? c = I(A, ne) ? p(H, S[A], ke, 0) : -10 : c = ke * (Xe / ue), Q != null ? u = N(L, Q) ? p(oe, S[L], ze, 0) : -10 : u = ze * (He / _e), M.ori == 1) {
        let ct = c;
        c = u, u = ct;
      }
    }
    _ && (i == null || i.cursor.event.type == ss) && ((c <= 1 || c >= Y - 1) && (c = el(c, Y)), (u <= 1 || u >= P - 1) && (u = el(u, P))), k ? (Zs = c, Qs = u, [kl, _l] = R.move(n, c, u)) : (de = c, ye = u);
  }
  const Kn = {
    width: 0,
    height: 0,
    left: 0,
    top: 0
  };
  function Jn() {
    pn(Kn, !1);
  }
  let so, oo, io, ro;
  function ao(o, i, c, u, h, m, v) {
    Ft = !0, Ce = Re = Ve._x = Ve._y = !1, qn(o, i, c, u, h, m, v, !0, !1), o != null && (We(os, us, co, !1), Hl(_o, n, kl, _l, Y, P, null));
    let { left: k, top: _, width: A, height: L } = me;
    so = k, oo = _, io = A, ro = L;
  }
  function co(o, i, c, u, h, m, v) {
    Ft = Ve._x = Ve._y = !1, qn(o, i, c, u, h, m, v, !1, !0);
    let { left: k, top: _, width: A, height: L } = me, D = A > 0 || L > 0, H = so != k || oo != _ || io != A || ro != L;
    if (D && H && pn(me), Ve.setScale && D && H) {
      let oe = k, ne = A, Q = _, I = L;
      if (M.ori == 1 && (oe = _, ne = L, Q = k, I = A), Ce && Vt(
        $,
        Mt(oe, $),
        Mt(oe + ne, $)
      ), Re)
        for (let N in S) {
          let ge = S[N];
          N != $ && ge.from == null && ge.min != fe && Vt(
            N,
            Mt(Q + I, N),
            Mt(Q, N)
          );
        }
      Jn();
    } else R.lock && (R._lock = !R._lock, Qt(i, !0, o != null));
    o != null && (ul(os, us), Hl(os, n, de, ye, Y, P, null));
  }
  function Cr(o, i, c, u, h, m, v) {
    if (R._lock)
      return;
    Kt(o);
    let k = Ft;
    if (Ft) {
      let _ = !0, A = !0, L = 10, D, H;
      M.ori == 0 ? (D = Ce, H = Re) : (D = Re, H = Ce), D && H && (_ = de <= L || de >= Y - L, A = ye <= L || ye >= P - L), D && _ && (de = de < kl ? 0 : Y), H && A && (ye = ye < _l ? 0 : P), Qt(null, !0, !0), Ft = !1;
    }
    de = -10, ye = -10, ce.fill(null), Qt(null, !0, !0), k && (Ft = k);
  }
  function uo(o, i, c, u, h, m, v) {
    R._lock || (Kt(o), $n(), Jn(), o != null && Hl(To, n, de, ye, Y, P, null));
  }
  function fo() {
    B.forEach(Du), Dn(n.width, n.height, !0);
  }
  sl(vn, Ll, fo);
  const Tl = {};
  Tl.mousedown = ao, Tl.mousemove = no, Tl.mouseup = co, Tl.dblclick = uo, Tl.setSeries = (o, i, c, u) => {
    let h = Se.match[2];
    c = h(n, i, c), c != -1 && St(c, u, !0, !1);
  }, Ge && (We(_o, E, ao), We(ss, E, no), We(So, E, (o) => {
    Kt(o), Wl(!1);
  }), We(Mo, E, Cr), We(To, E, uo), bs.add(n), n.syncRect = Wl);
  const hn = n.hooks = e.hooks || {};
  function Ne(o, i, c) {
    Wn ? Ol.push([o, i, c]) : o in hn && hn[o].forEach((u) => {
      u.call(null, n, i, c);
    });
  }
  (e.plugins || []).forEach((o) => {
    for (let i in o.hooks)
      hn[i] = (hn[i] || []).concat(o.hooks[i]);
  });
  const po = (o, i, c) => c, Se = Me({
    key: null,
    setSeries: !1,
    filters: {
      pub: Fo,
      sub: Fo
    },
    scales: [$, b[1] ? b[1].scale : null],
    match: [Vo, Vo, po],
    values: [null, null]
  }, R.sync);
  Se.match.length == 2 && Se.match.push(po), R.sync = Se;
  const ho = Se.key, Zn = qi(ho);
  function Hl(o, i, c, u, h, m, v) {
    Se.filters.pub(o, i, c, u, h, m, v) && Zn.pub(o, i, c, u, h, m, v);
  }
  Zn.sub(n);
  function Rr(o, i, c, u, h, m, v) {
    Se.filters.sub(o, i, c, u, h, m, v) && Tl[o](null, i, c, u, h, m, v);
  }
  n.pub = Rr;
  function Nr() {
    Zn.unsub(n), bs.delete(n), Ht.clear(), hs(vn, Ll, fo), d.remove(), re?.remove(), Ne("destroy");
  }
  n.destroy = Nr;
  function Qn() {
    Ne("init", e, t), Ws(t || e.data, !1), V[$] ? Hn($, V[$]) : $n(), on = me.show && (me.width > 0 || me.height > 0), qt = rt = !0, Dn(e.width, e.height);
  }
  return b.forEach(Is), B.forEach(hr), l ? l instanceof HTMLElement ? (l.appendChild(d), Qn()) : l(n, Qn) : Qn(), n;
}
Ie.assign = Me;
Ie.fmtNum = Ps;
Ie.rangeNum = yn;
Ie.rangeLog = _n;
Ie.rangeAsinh = Es;
Ie.orient = rl;
Ie.pxRatio = ie;
Ie.join = kc;
Ie.fmtDate = $s, Ie.tzDate = Cc;
Ie.sync = qi;
{
  Ie.addGap = mu, Ie.clipGaps = Tn;
  let e = Ie.paths = {
    points: er
  };
  e.linear = lr, e.stepped = bu, e.bars = vu, e.spline = xu;
}
const ii = 2 ** 30, ri = 130;
class $u {
  constructor(t) {
    this.place = t, this.resize = new ResizeObserver(() => {
      const l = this.place.clientWidth;
      l && this.plot?.setSize({ width: l, height: ri });
    }), this.resize.observe(t);
  }
  place;
  plot;
  points = [];
  /** Ends of memory that are near enough to matter: [GiB, colour]. */
  limits = [];
  resize;
  show(t) {
    this.points = t.curve, this.limits = [];
    for (const s of ["vram", "ram"]) {
      const r = ks(t.plan.snapshot, s), a = Math.max(0, ...this.points.map((p) => p[s === "vram" ? 2 : 3] ?? 0));
      r != null && (s === "vram" || a > 0.6 * r) && this.limits.push([r / ii, `--lp-${s}`]);
    }
    const l = (s) => s == null ? null : s / ii, n = [
      this.points.map((s) => s[0]),
      this.points.map((s) => l(s[2])),
      this.points.map((s) => l(s[3]))
    ];
    this.plot ? this.plot.setData(n) : this.place.clientWidth && (this.plot = new Ie(this.options(), n, this.place));
  }
  /** Colours come from the theme: draw again after it changed. */
  redraw() {
    this.plot?.redraw();
  }
  close() {
    this.resize.disconnect(), this.plot?.destroy(), this.plot = void 0;
  }
  colour(t) {
    return getComputedStyle(this.place).getPropertyValue(t).trim() || "#888";
  }
  options() {
    const t = { stroke: () => this.colour("--lp-dim"), grid: { show: !1 }, font: "11px sans-serif" };
    return {
      width: this.place.clientWidth,
      height: ri,
      legend: { show: !1 },
      cursor: { show: !1 },
      scales: {
        x: { time: !1 },
        y: { range: (l, n, s) => [0, Math.max(s, 0.1, ...this.limits.map(([r]) => r)) * 1.2] }
      },
      axes: [
        { ...t, size: 24, values: (l, n) => n.map((s) => tn(s)) },
        { ...t, size: 54, values: (l, n) => n.map((s) => `${s} GiB`) }
      ],
      series: [
        {},
        { label: "VRAM", stroke: () => this.colour("--lp-vram"), width: 1.8, points: { show: !1 } },
        { label: "RAM", stroke: () => this.colour("--lp-ram"), width: 1.8, points: { show: !1 } }
      ],
      hooks: { drawClear: [(l) => this.bands(l)] }
    };
  }
  bands(t) {
    const { ctx: l, bbox: n } = t;
    l.save(), l.textAlign = "left", l.textBaseline = "alphabetic", l.font = `${10 * devicePixelRatio}px sans-serif`, this.phases().forEach(([s, r, a], p) => {
      const f = t.valToPos(r, "x", !0), d = t.valToPos(a, "x", !0) - f;
      l.fillStyle = this.colour("--lp-line"), l.globalAlpha = p % 2 ? 0.25 : 0.5, l.fillRect(f, n.top, d, n.height), l.globalAlpha = 1, l.fillStyle = this.colour("--lp-dim");
      const y = il(s, this.points.map((g) => g[1]));
      l.measureText(y).width < d - 6 && l.fillText(y, f + 3 * devicePixelRatio, n.top + 10 * devicePixelRatio);
    });
    for (const [s, r] of this.limits) {
      const a = t.valToPos(s, "y", !0);
      l.strokeStyle = this.colour(r), l.setLineDash([4, 4]), l.beginPath(), l.moveTo(n.left, a), l.lineTo(n.left + n.width, a), l.stroke();
    }
    l.restore();
  }
  phases() {
    const t = [];
    for (const [l, n] of this.points) {
      const s = t.at(-1);
      s && (s[2] = l), s?.[0] !== n && t.push([n, l, l]);
    }
    return t;
  }
}
class Cu {
  box;
  title;
  status = x("div.lp-sr", { role: "status", "aria-live": "polite" });
  bar = x("i");
  progress = x(
    "div.lp-progress",
    { role: "progressbar", "aria-label": "Steps of this phase", "aria-valuemin": 0 },
    this.bar
  );
  place = x("div.lp-curve", { role: "img", "aria-label": "Memory of this run" });
  rest = x("div");
  curve;
  said = "";
  constructor() {
    const [t, l, n] = nl("Now");
    this.box = t, this.title = n, t.hidden = !0, l.append(this.status, this.progress, this.place, this.rest);
  }
  draw(t) {
    if (this.box.hidden = !t, !t)
      return this.curve?.close(), this.curve = void 0, this.said = "", Be(this.place);
    const l = ga(t), { step: n = 0, steps: s } = l && t.phases[l]?.progress || {}, r = ma(t), a = l ? il(l, Object.keys(t.phases)) : "between two phases";
    this.title.textContent = [
      `Now: ${a.toLowerCase()}`,
      s ? `step ${n} of ${s}` : "",
      r == null ? "" : `about ${Jl(r)} left`
    ].filter(Boolean).join(", "), this.announce(t, a), this.progress.hidden = !s, this.progress.setAttribute("aria-valuemax", String(s ?? 0)), this.progress.setAttribute("aria-valuenow", String(n ?? 0)), this.bar.style.width = `${s ? 100 * (n ?? 0) / s : 0}%`, this.place.setAttribute("aria-label", Ru(t)), this.place.hidden = t.curve.length < 2, this.place.hidden || (this.curve ??= new $u(this.place), this.curve.show(t));
    const p = mi(t);
    Be(
      this.rest,
      _s(p),
      Ss(!0),
      Nu(t),
      l?.startsWith("sample") && t.plan.phases ? bi(t.plan, l) : null,
      ...t.notices.slice(-3).map((f) => x("p.lp-notice", {}, f))
    );
  }
  redraw() {
    this.curve?.redraw();
  }
  close() {
    this.curve?.close();
  }
  /** A screen reader hears of a new phase, not of every step. */
  announce(t, l) {
    const n = t.notices.at(-1) ?? "";
    this.said !== l + n && (this.said = l + n, this.status.textContent = `${l}. ${n}`);
  }
}
function Ru(e) {
  const t = e.curve.at(-1), l = (n) => n == null ? "unknown" : `${(n / 2 ** 30).toFixed(1)} GiB`;
  return `Memory of this run: VRAM ${l(t?.[2])}, RAM ${l(t?.[3])}`;
}
function Nu(e) {
  const t = e.plan.snapshot, l = [
    ["VRAM", t?.vram_total_bytes, t?.vram_free_bytes],
    ["RAM", t?.ram_total_bytes, t?.ram_available_bytes]
  ].flatMap(([n, s, r]) => s && r != null ? [`${((s - r) / 2 ** 30).toFixed(1)} GiB of ${n}`] : []);
  return l.length ? x("p.lp-dim", {}, `Other programs held ${l.join(" and ")} when it was planned.`) : null;
}
const ai = "http://www.w3.org/2000/svg", zu = 12;
function Fu(e, t) {
  return t.length ? (Be(
    e,
    x(
      "table",
      {},
      x("thead", {}, x("tr", {}, ...["when", "size", "forecast", "took", "VRAM"].map((n) => x("th", { scope: "col" }, n)))),
      x("tbody", {}, ...t.slice(0, zu).map(Vu))
    ),
    Bu(t)
  ), !0) : (Be(e), !1);
}
function Vu(e) {
  const t = new Date(e.started_unix_seconds * 1e3), n = t.toDateString() === (/* @__PURE__ */ new Date()).toDateString() ? "today" : t.toLocaleDateString(void 0, { month: "short", day: "numeric" }), s = t.toLocaleTimeString(void 0, { hour: "2-digit", minute: "2-digit" }), r = e.status === "done" ? tn(e.measured_seconds) : e.status;
  return x(
    "tr",
    {},
    x("td", {}, `${n} ${s}`),
    x("td", {}, Gt(e.request)),
    x("td", {}, tn(e.forecast_seconds)),
    x("td", {}, r),
    x("td", {}, da(e))
  );
}
function Bu(e) {
  const t = e.filter((f) => f.status === "done").map((f) => Zl(f.measured_seconds, f.forecast_seconds)).filter((f) => f != null).reverse();
  if (t.length < 3) return null;
  const l = Math.max(10, ...t.map(Math.abs)), n = (f) => 4 + 292 * f / (t.length - 1), s = (f) => 22 - 18 * f / l, r = document.createElementNS(ai, "svg");
  r.setAttribute("viewBox", "0 0 300 44"), r.setAttribute("preserveAspectRatio", "none"), r.setAttribute("class", "lp-spark"), r.setAttribute("role", "img");
  const a = `Time against forecast over ${t.length} runs, newest ${di(t.at(-1))}`;
  r.setAttribute("aria-label", a);
  const p = (f, d, y) => {
    const g = document.createElementNS(ai, "polyline");
    for (const [w, T] of Object.entries({
      points: f,
      fill: "none",
      stroke: d,
      "stroke-width": "1.5",
      "stroke-dasharray": y,
      "vector-effect": "non-scaling-stroke"
    }))
      g.setAttribute(w, T);
    r.append(g);
  };
  return p("0,22 300,22", "var(--lp-dim)", "3 3"), p(t.map((f, d) => `${n(d)},${s(f)}`).join(" "), "var(--lp-vram)", ""), x("div", {}, r, x("div.lp-dim", {}, a));
}
const ci = [
  ["rtx-3050-8", "RTX 3050", 8],
  ["rtx-3060", "RTX 3060", 12],
  ["rtx-3080", "RTX 3080", 10],
  ["rtx-3090", "RTX 3090", 24],
  ["rtx-4060", "RTX 4060", 8],
  ["rtx-4060-ti-16", "RTX 4060 Ti 16", 16],
  ["rtx-4070", "RTX 4070", 12],
  ["rtx-4080-super", "RTX 4080 Super", 16],
  ["rtx-4090", "RTX 4090", 24],
  ["rtx-5060", "RTX 5060", 8],
  ["rtx-5070", "RTX 5070", 12],
  ["rtx-5080", "RTX 5080", 16],
  ["rtx-5090", "RTX 5090", 32],
  ["rtx-pro-6000", "RTX Pro 6000", 96]
], Ou = [4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 80, 96], Iu = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
function Gu(e, t) {
  let l = 0;
  return e.forEach((n, s) => {
    Math.abs(n - t) < Math.abs(e[l] - t) && (l = s);
  }), l;
}
class Wu {
  box;
  result = x("div.lp-result", { role: "status", "aria-live": "polite" });
  vram;
  ram;
  card;
  constructor(t) {
    const [l, n] = nl("What if", !0);
    this.box = l, this.card = x(
      "select",
      { "aria-label": "Card" },
      x("option", { value: "" }, "this card's speed"),
      ...ci.map(([s, r, a]) => x("option", { value: s }, `${r}, ${a} GiB`))
    ), this.vram = ui("VRAM", Ou, (s) => t.whatIf({ vramGib: s })), this.ram = ui("RAM", Iu, (s) => t.whatIf({ ramGib: s })), this.card.addEventListener("change", () => {
      const s = ci.find(([r]) => r === this.card.value);
      t.whatIf({ card: this.card.value, ...s ? { vramGib: s[2] } : {} });
    }), n.append(x(
      "div.lp-what",
      {},
      x("span", {}, "Card"),
      this.card,
      ...this.vram.parts,
      ...this.ram.parts
    ), this.result), l.addEventListener("toggle", () => {
      l.open && !t.state.whatIf.plan && t.whatIf({});
    });
  }
  draw(t) {
    const { card: l, vramGib: n, ramGib: s, plan: r, error: a, busy: p } = t.whatIf;
    this.box.hidden = !t.prompt, document.activeElement !== this.card && (this.card.value = l), this.vram.set(n), this.ram.set(s), this.result.classList.toggle("lp-busy", p), Be(this.result, a ? x("p.lp-bad", {}, a) : r ? $a(r) : null);
  }
}
function ui(e, t, l) {
  const n = x("output", { "aria-hidden": "true" }), s = x("input", {
    type: "range",
    min: 0,
    max: t.length - 1,
    step: 1,
    "aria-label": `${e} of the other machine`
  }), r = (a) => {
    n.textContent = `${a} GiB`, s.setAttribute("aria-valuetext", `${a} GiB`);
  };
  return s.addEventListener("input", () => {
    const a = t[Number(s.value)];
    r(a), l(a);
  }), {
    parts: [x("span", { "aria-hidden": "true" }, e), s, n],
    set(a) {
      s.value = String(Gu(t, a)), r(t[Number(s.value)]);
    }
  };
}
class Hu {
  constructor(t, l) {
    this.panel = l;
    const n = x("span.lp-dim"), s = x("div"), [r, a] = ju("div", { role: "status", "aria-live": "polite" }), p = x("h3.lp-title", {}, "Graph on the canvas"), [f, d] = nl("Peaks by phase"), [y, g] = nl("Where the blocks wait"), [w, T] = nl("Why", !0), E = new Wu(l);
    this.during = new Cu();
    const z = new Ca(), [O, G] = nl("Past runs", !0);
    this.parts = [
      { of: (b) => [b.machine], draw: (b) => Be(n, sa(b.machine)) },
      { of: (b) => [b.serverError, b.notices], draw: (b) => Uu(s, b) },
      { of: (b) => [b.active], draw: (b) => this.during.draw(b.active) },
      {
        of: (b) => [b.plan, b.planBusy, b.planError, b.active != null],
        draw: (b) => {
          a.classList.toggle("lp-busy", b.planBusy), Ea(a, d, b, l), f.hidden = !d.childElementCount || b.active != null, y.hidden = !Pa(g, b) || b.active != null, p.hidden = b.active == null, w.hidden = !Da(T, b);
        }
      },
      { of: (b) => [b.whatIf, b.plan, b.machine], draw: (b) => E.draw(b) },
      { of: (b) => [b.last], draw: (b) => z.draw(b.last) },
      { of: (b) => [b.runs], draw: (b) => O.hidden = !Fu(G, b.runs) }
    ], this.root.append(
      x("style", {}, ea + ta),
      x("div.lp-head", {}, x("h2", {}, "Lowpeak"), n),
      s,
      this.during.box,
      p,
      r,
      f,
      y,
      w,
      E.box,
      z.box,
      O
    ), t.replaceChildren(this.root), this.theme = new MutationObserver(() => this.followTheme());
    for (const b of [document.documentElement, document.body])
      this.theme.observe(b, { attributes: !0, attributeFilter: ["class", "style"] });
    this.followTheme(), this.draw(), l.open(this.onChange);
  }
  panel;
  root = x("div.lowpeak", { role: "region", "aria-label": "Lowpeak" });
  during;
  parts;
  drawn = /* @__PURE__ */ new Map();
  theme;
  onChange = () => this.draw();
  close() {
    this.panel.close(this.onChange), this.theme.disconnect(), this.during.close(), this.root.remove();
  }
  draw() {
    const t = this.panel.state;
    for (const l of this.parts) {
      const n = l.of(t), s = this.drawn.get(l);
      s && s.every((r, a) => r === n[a]) || (this.drawn.set(l, n), l.draw(t));
    }
  }
  /** Light or dark by the background that the theme really gives. */
  followTheme() {
    const t = getComputedStyle(this.root).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [], [l = 0, n = 0, s = 0] = t, r = 0.3 * l + 0.6 * n + 0.1 * s > 128;
    this.root.dataset.theme = r ? "light" : "dark", this.during.redraw();
  }
}
function ju(e, t) {
  const l = x(e, t);
  return [l, l];
}
function Uu(e, t) {
  Be(
    e,
    t.serverError && x("p.lp-bad", { role: "alert" }, t.serverError),
    ...t.notices.map((l) => x("p.lp-notice", {}, l))
  );
}
Xn.registerExtension({
  name: "Lowpeak.Panel",
  setup() {
    const e = new Xr(new Fr(Xn, zr));
    let t;
    Xn.extensionManager.registerSidebarTab({
      id: "lowpeak",
      title: "Lowpeak",
      label: "Lowpeak",
      icon: "pi pi-chart-bar",
      tooltip: "Lowpeak: will it fit, how long will it take",
      type: "custom",
      render(l) {
        t?.close(), t = new Hu(l, e);
      },
      destroy() {
        t?.close(), t = void 0;
      }
    });
  }
});
