import { api as Nr } from "../../scripts/api.js";
import { app as Xn } from "../../scripts/app.js";
class es extends Error {
}
class zr {
  constructor(t, n) {
    this.app = t, this.api = n;
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
  forecast(t, n = {}) {
    return this.ask("/lowpeak/forecast", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ prompt: t, ...n })
    });
  }
  async prompt() {
    return (await this.app.graphToPrompt()).output;
  }
  /** Changes whenever a widget, a link or a node does that a forecast could depend on. */
  signature() {
    const t = [], n = (l) => {
      for (const s of l?.nodes ?? l?._nodes ?? [])
        if (s.subgraph && n(s.subgraph), !!/Lowpeak|MiniMaxH3|Primitive/.test(s.type ?? "")) {
          t.push(s.id, s.type, s.mode);
          for (const r of s.widgets ?? [])
            (["number", "boolean"].includes(typeof r.value) || Vr(r.value)) && t.push(r.value);
          for (const r of s.inputs ?? []) t.push(r.link ?? 0);
        }
    };
    return n(this.graph()), JSON.stringify(t);
  }
  /** Set widgets; gives the settings whose widget was not found. */
  apply(t) {
    const n = [];
    for (const l of t) {
      const s = this.find(l.node)?.widgets?.find((r) => r.name === l.widget);
      if (!s) {
        n.push(l);
        continue;
      }
      s.value = l.value, s.callback?.(l.value);
    }
    return this.graph()?.setDirtyCanvas?.(!0, !0), this.app.extensionManager.workflow?.activeWorkflow?.changeTracker?.checkState?.(), n;
  }
  graph() {
    return this.app.rootGraph ?? this.app.graph;
  }
  /** Ids inside subgraphs read "12:5": node 5 of the subgraph that is node 12. */
  find(t) {
    let n = this.graph(), l;
    for (const s of t.split(":"))
      l = n?.getNodeById(s) ?? n?.getNodeById(Number(s)), n = l?.subgraph;
    return l ?? void 0;
  }
  async ask(t, n) {
    let l;
    try {
      l = await this.api.fetchApi(t, n);
    } catch {
      throw new es("ComfyUI does not answer.");
    }
    const r = (Date.parse(l.headers.get("Date") ?? "") - Date.now()) / 1e3;
    Math.abs(r) > 2 && (this.skew = r);
    const a = await l.json().catch(() => null);
    if (l.ok && a) return a;
    throw l.status === 404 && !a ? new es("Lowpeak's routes are missing: its server part did not load.") : new es(a?.message || `ComfyUI answered ${l.status}.`);
  }
}
function Vr(e) {
  return typeof e == "string" && e.length < 80;
}
const Or = 200, Br = ["LowpeakSample", "LowpeakRefine", "LowpeakPlan"], co = 50;
function Fr(e) {
  return Object.values(e).some((t) => Br.includes(t.class_type));
}
function mi(e) {
  const t = (n) => typeof n == "string" && n.length > Or ? "" : n;
  return Object.fromEntries(
    Object.entries(e).map(([n, l]) => [
      n,
      {
        class_type: l.class_type,
        inputs: Object.fromEntries(
          Object.entries(l.inputs ?? {}).filter(([s]) => s !== "prompt" && s !== "text").map(([s, r]) => [s, t(r)])
        )
      }
    ])
  );
}
function Ir(e, t, n) {
  const l = t == null ? void 0 : e[t];
  if (!l || t == null) return [];
  const s = Gr(e, t, l), r = e[s];
  if (!r) return [];
  const a = [];
  for (const [p, f] of Object.entries(e)) {
    const d = Wr(e, f, r) && /Lowpeak|MiniMaxH3/.test(f.class_type);
    p !== s && !d || (dn(a, e, p, "width", n.width), dn(a, e, p, "height", n.height), dn(a, e, p, "seconds", Math.round(n.seconds * 10) / 10), n.frames != null && dn(a, e, p, "length", n.frames));
  }
  return a.filter(
    (p, f) => a.findIndex((d) => d.node === p.node && d.widget === p.widget) === f
  );
}
function Gr(e, t, n) {
  for (const l of ["plan", "size_from"]) {
    const s = ys(e, n.inputs[l]);
    if (s != null && "width" in e[s].inputs) return s;
  }
  return t;
}
function ys(e, t) {
  if (!Array.isArray(t) || t.length !== 2) return null;
  const n = String(t[0]);
  return n in e ? n : null;
}
function gi(e, t) {
  for (let n = 0; n < co; n++) {
    const l = ys(e, t);
    if (l == null) return t;
    t = e[l].inputs.value;
  }
}
function Wr(e, t, n) {
  return ["width", "height"].every((l) => {
    const s = gi(e, t.inputs[l]);
    return typeof s == "number" && s === gi(e, n.inputs[l]);
  });
}
function dn(e, t, n, l, s) {
  let r = n, a = l;
  for (let p = 0; p < co; p++) {
    const f = t[r]?.inputs[a], d = ys(t, f);
    if (d == null) {
      typeof f == "number" && e.push({ node: r, widget: a, value: s });
      return;
    }
    r = d, a = "value";
  }
}
const Hr = 600, jr = {
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
function Ur(e, t) {
  switch (t.type) {
    case "server": {
      const { machine: n, active: l, last: s, notices: r } = t.state;
      return { ...e, machine: n, notices: r, active: l, last: s ?? e.last, serverError: "" };
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
      return { ...e, active: Yr(e.active, t.event, t.unixSeconds) };
    case "run": {
      const n = t.run.status !== "running", l = e.active?.run_id === t.run.run_id;
      return n ? { ...e, last: t.run, active: l ? null : e.active } : { ...e, active: t.run };
    }
  }
}
function Yr(e, t, n) {
  const l = e?.run_id === t.run_id ? e : qr(t.run_id, n);
  if (t.sequence <= l.sequence) return l;
  const s = { ...l, status: "running", sequence: t.sequence };
  if (t.kind === "notice")
    return t.message && (s.notices = [...l.notices, t.message]), s;
  const r = l.phases[t.phase] ?? {};
  if (s.phases = { ...l.phases, [t.phase]: { ...r, [t.kind]: t } }, t.kind === "progress") {
    const a = Math.max(0, n - l.started_unix_seconds), p = l.curve.at(-1)?.[0] ?? 0, f = [
      Math.max(a, p),
      t.phase,
      t.vram_bytes ?? null,
      t.ram_bytes ?? null
    ], d = [...l.curve, f];
    s.curve = d.length > Hr ? d.filter((v, g) => g % 2 === 0) : d;
  }
  return s;
}
function qr(e, t) {
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
function Kr(e) {
  const { curve: t, ...n } = e;
  return JSON.stringify(n, null, 2);
}
const wi = 350, Jr = 700, Zr = ["execution_success", "execution_error", "execution_interrupted", "executed"];
class Qr {
  constructor(t) {
    this.host = t, t.api.addEventListener("lowpeak.run", (n) => {
      const l = n.detail;
      this.state.active?.run_id !== l.run_id && this.later("state", () => this.refresh()), this.dispatch({ type: "event", event: l, unixSeconds: t.unixSeconds() });
    });
    for (const n of Zr)
      t.api.addEventListener(n, () => {
        this.state.active && this.later("state", () => this.refresh());
      });
    t.api.addEventListener("reconnected", () => this.later("state", () => this.refresh()));
  }
  host;
  state = jr;
  listeners = /* @__PURE__ */ new Set();
  timers = /* @__PURE__ */ new Map();
  watch;
  signature = "";
  asked = 0;
  askedWhatIf = 0;
  /** The tab is open: ask for everything and watch the graph until `close`. */
  open(t) {
    this.listeners.add(t), this.signature = "", this.refresh(), this.look(), this.watch ??= setInterval(() => this.look(), Jr);
  }
  close(t) {
    this.listeners.delete(t), !this.listeners.size && (clearInterval(this.watch), this.watch = void 0);
  }
  dispatch(t) {
    this.state = Ur(this.state, t);
    for (const n of this.listeners) n();
  }
  async refresh() {
    try {
      const [t, n] = await Promise.all([this.host.state(), this.host.runs()]);
      this.dispatch({ type: "server", state: t }), this.dispatch({ type: "runs", runs: n });
    } catch (t) {
      this.dispatch({ type: "server-error", message: ts(t) });
    }
  }
  /** Forecast the graph on the canvas. The newest question wins. */
  async forecast() {
    const t = ++this.asked;
    try {
      const n = await this.host.prompt();
      if (t !== this.asked) return;
      if (!Fr(n)) return this.dispatch({ type: "no-sampler" });
      this.dispatch({ type: "forecast-begins", prompt: n });
      const l = await this.host.forecast(mi(n));
      t === this.asked && this.dispatch({ type: "forecast", plan: l });
    } catch (n) {
      t === this.asked && this.dispatch({ type: "forecast-error", message: ts(n) });
    }
    this.state.whatIf.plan && this.askWhatIf();
  }
  /** Take a size that fits into the graph. */
  use(t) {
    const { prompt: n, plan: l } = this.state, s = n ? Ir(n, l?.asked?.node_id ?? null, t) : [], r = s.length ? this.host.apply(s) : [];
    return this.look(), !s.length || r.length ? "Some of the graph's sizes come from elsewhere; please set them there." : "";
  }
  whatIf(t) {
    this.dispatch({ type: "what-if", change: { ...t, busy: !0 } }), this.later("what-if", () => this.askWhatIf(), wi / 2);
  }
  async askWhatIf() {
    const { prompt: t, whatIf: n } = this.state;
    if (!t) return this.dispatch({ type: "what-if", change: { plan: null, busy: !1 } });
    const l = ++this.askedWhatIf, s = { vram_gib: n.vramGib, ram_gib: n.ramGib, card: n.card || void 0 }, r = await this.host.forecast(mi(t), s).then(
      (a) => ({ plan: a, error: "" }),
      (a) => ({ plan: null, error: ts(a) })
    );
    l === this.askedWhatIf && this.dispatch({ type: "what-if", change: { ...r, busy: !1 } });
  }
  look() {
    if (document.hidden) return;
    const t = this.host.signature();
    t !== this.signature && (this.signature = t, this.later("forecast", () => this.forecast()));
  }
  later(t, n, l = wi) {
    clearTimeout(this.timers.get(t)), this.timers.set(t, setTimeout(() => {
      n();
    }, l));
  }
}
function ts(e) {
  return e instanceof Error ? e.message : String(e);
}
const Xr = '.uplot,.uplot *,.uplot *:before,.uplot *:after{box-sizing:border-box}.uplot{font-family:system-ui,-apple-system,Segoe UI,Roboto,Helvetica Neue,Arial,Noto Sans,sans-serif,"Apple Color Emoji","Segoe UI Emoji",Segoe UI Symbol,"Noto Color Emoji";line-height:1.5;width:min-content}.u-title{text-align:center;font-size:18px;font-weight:700}.u-wrap{position:relative;user-select:none}.u-over,.u-under{position:absolute}.u-under{overflow:hidden}.uplot canvas{display:block;position:relative;width:100%;height:100%}.u-axis{position:absolute}.u-legend{font-size:14px;margin:auto;text-align:center}.u-inline{display:block}.u-inline *{display:inline-block}.u-inline tr{margin-right:16px}.u-legend th{font-weight:600}.u-legend th>*{vertical-align:middle;display:inline-block}.u-legend .u-marker{width:1em;height:1em;margin-right:4px;background-clip:padding-box!important}.u-inline.u-live th:after{content:":";vertical-align:middle}.u-inline:not(.u-live) .u-value{display:none}.u-series>*{padding:4px}.u-series th{cursor:pointer}.u-legend .u-off>*{opacity:.3}.u-select{background:#00000012;position:absolute;pointer-events:none}.u-cursor-x,.u-cursor-y{position:absolute;left:0;top:0;pointer-events:none;will-change:transform}.u-hz .u-cursor-x,.u-vt .u-cursor-y{height:100%;border-right:1px dashed #607D8B}.u-hz .u-cursor-y,.u-vt .u-cursor-x{width:100%;border-bottom:1px dashed #607D8B}.u-cursor-pt{position:absolute;top:0;left:0;border-radius:50%;border:0 solid;pointer-events:none;will-change:transform;background-clip:padding-box!important}.u-axis.u-off,.u-select.u-off,.u-cursor-x.u-off,.u-cursor-y.u-off,.u-cursor-pt.u-off{display:none}', ea = ".lowpeak{--lp-bg: var(--comfy-menu-bg, #1b1c20);--lp-fg: var(--fg-color, #e7e8ea);--lp-dim: color-mix(in srgb, var(--lp-fg) 74%, var(--lp-bg));--lp-line: color-mix(in srgb, var(--lp-fg) 16%, var(--lp-bg));--lp-card: color-mix(in srgb, var(--lp-fg) 6%, var(--lp-bg));--lp-vram: #7aa2f7;--lp-ram: #9ece6a;--lp-bad: #ff8a9b;--lp-disk: #868996;background:var(--lp-bg);color:var(--lp-fg);font:13px/1.45 system-ui,Segoe UI,sans-serif;container-type:inline-size;box-sizing:border-box;min-height:100%;height:100%;overflow-y:auto;padding:14px 16px 24px}.lowpeak[data-theme=light]{--lp-vram: #2f5fd0;--lp-ram: #3f7d1f;--lp-bad: #a91b35;--lp-disk: #8b8e98}.lowpeak *,.lowpeak *:before{box-sizing:border-box}.lowpeak :focus-visible{outline:2px solid var(--lp-vram);outline-offset:2px;border-radius:3px}.lp-head{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:2px 8px}.lp-head h2{font-size:15px;font-weight:600;margin:0}.lp-dim{color:var(--lp-dim)}.lp-bad{color:var(--lp-bad)}.lp-verdict{font-size:18px;font-weight:600;line-height:1.25;margin:12px 0 3px;text-wrap:balance}.lp-sec{margin-top:18px}.lp-sec>h3,.lp-sec>summary{font-size:12px;font-weight:600;color:var(--lp-dim);margin:0 0 8px}.lp-sec>summary{cursor:pointer;padding:2px 0}.lp-sec>summary:hover{color:var(--lp-fg)}.lp-busy{opacity:.6;transition:opacity .2s .15s}.lp-row{display:grid;grid-template-columns:84px 1fr auto;gap:0 10px;align-items:center;margin:7px 0}.lp-time{text-align:right;color:var(--lp-dim);font-variant-numeric:tabular-nums;min-width:46px}.lp-bars{min-width:0}.lp-bar{position:relative;height:9px;background:var(--lp-line);border-radius:2px;margin:3px 0}.lp-bar.lp-ram{height:6px}.lp-bar i{position:absolute;top:0;bottom:0;border-radius:2px}.lp-vram{--lp-c: var(--lp-vram)}.lp-ram{--lp-c: var(--lp-ram)}.lp-over{--lp-c: var(--lp-bad)}.lp-used{background:var(--lp-c)}.lp-margin{background:repeating-linear-gradient(135deg,var(--lp-c) 0 2px,transparent 2px 4px);opacity:.75}.lp-bar .lp-cap{top:-3px;bottom:-3px;width:0;border-left:2px solid var(--lp-bad);border-radius:0;margin-left:-1px}.lp-bar .lp-measured{top:-3px;bottom:-3px;width:3px;margin-left:-1.5px;background:var(--lp-fg);box-shadow:0 0 0 1px var(--lp-bg)}.lp-legend{display:flex;flex-wrap:wrap;gap:2px 14px;margin-top:8px;color:var(--lp-dim);font-size:12px}.lp-legend i{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:5px}.lp-key-vram,.lp-on-card{background:var(--lp-vram)}.lp-key-ram,.lp-in-ram{background:var(--lp-ram)}.lp-on-disk{background:var(--lp-disk)}.lp-key-margin{background:repeating-linear-gradient(135deg,var(--lp-dim) 0 2px,transparent 2px 4px)}.lp-legend .lp-key-cap{width:2px;background:var(--lp-bad)}.lp-legend .lp-key-measured{width:3px;background:var(--lp-fg)}.lp-blocks{display:grid;grid-template-columns:repeat(25,1fr);gap:3px}.lp-blocks i{height:11px;border-radius:2px}.lowpeak ul{margin:0;padding-left:16px;list-style:disc}.lowpeak li{margin:3px 0}.lowpeak button,.lowpeak select{background:var(--lp-card);color:var(--lp-fg);border:1px solid var(--lp-dim);border-radius:6px;padding:4px 10px;font:inherit;cursor:pointer}.lowpeak button:hover{background:var(--lp-line)}.lp-offer{display:flex;justify-content:space-between;align-items:center;gap:8px;margin:6px 0}.lp-what{display:grid;grid-template-columns:48px 1fr 62px;gap:8px;align-items:center;margin-top:6px}.lp-what input{width:100%;min-width:0;accent-color:var(--lp-vram)}.lp-what output{text-align:right;font-variant-numeric:tabular-nums}.lp-what select{grid-column:2 / -1}.lp-result{margin-top:8px}.lp-result .lp-verdict{font-size:14px;margin:4px 0 2px}.lp-progress{height:4px;border-radius:2px;background:var(--lp-line);margin:4px 0 8px;overflow:hidden}.lp-progress i{display:block;height:100%;background:var(--lp-vram)}.lp-curve{min-height:130px}.lp-actions{display:flex;flex-wrap:wrap;gap:8px;margin-top:10px;align-items:center}.lowpeak table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}.lowpeak td,.lowpeak th{padding:3px 0 3px 8px;text-align:right;font-weight:400;vertical-align:top}.lowpeak th{color:var(--lp-dim)}.lowpeak td:first-child,.lowpeak th:first-child{text-align:left;padding-left:0}.lowpeak caption{text-align:left;color:var(--lp-dim);padding-bottom:4px}.lp-spark{width:100%;height:44px;display:block;margin-top:8px}.lp-notice{border-left:2px solid var(--lp-dim);padding-left:8px;margin:8px 0 0;color:var(--lp-dim);overflow-wrap:anywhere}@container (max-width: 270px){.lp-row{grid-template-columns:1fr auto}.lp-bars{grid-column:1 / -1;grid-row:2}.lp-blocks{grid-template-columns:repeat(13,1fr)}.lp-what{grid-template-columns:44px 1fr 56px}}@media(prefers-reduced-motion:reduce){.lp-busy{transition:none}}", xs = 2 ** 30, ta = {
  encode: "Encode",
  sample_low: "First pass",
  upscale: "Upscale",
  sample_high: "Second pass",
  decode: "Decode"
}, la = {
  compute: "the card's speed",
  link: "the link to the card",
  disk: "the disk"
};
function Rl(e, t = ["sample_low"]) {
  return e === "sample_high" && ![...t].includes("sample_low") ? "Sample" : ta[e] ?? e;
}
function $t(e, t = 1) {
  return e == null ? "unknown" : `${(e / xs).toFixed(t)} GiB`;
}
function Zl(e) {
  if (e == null || !Number.isFinite(e)) return "unknown";
  if (e < 10) return `${e.toFixed(1)} s`;
  const t = Math.round(e);
  if (t < 60) return `${t} s`;
  if (t < 3600) return `${Math.floor(t / 60)} min ${Xl(t % 60)} s`;
  const n = Math.round(t / 60);
  return `${Math.floor(n / 60)} h ${Xl(n % 60)} min`;
}
function El(e) {
  if (e == null || !Number.isFinite(e)) return "–";
  const t = Math.round(e);
  return t < 60 ? e < 10 ? `${e.toFixed(1)} s` : `${t} s` : t < 3600 ? `${Math.floor(t / 60)}:${Xl(t % 60)}` : `${Math.floor(t / 3600)}:${Xl(Math.floor(t % 3600 / 60))}:${Xl(t % 60)}`;
}
function Gt(e) {
  if (!e?.width || !e.height) return "";
  const t = e.seconds == null ? "" : ` · ${e.seconds.toFixed(1)} s`;
  return `${e.width} × ${e.height}${t}`;
}
function na(e) {
  if (!e) return "";
  const t = e.device_name || e.card || (e.vram_total_bytes ? "" : "no GPU"), n = e.vram_total_bytes ? `${$t(e.vram_total_bytes, 0)} VRAM` : "", l = e.ram_total_bytes ? `${$t(e.ram_total_bytes, 0)} RAM` : "";
  return [t, n, l].filter(Boolean).join(" · ");
}
function sa(e) {
  const t = e?.passes?.length;
  return [e?.quality, t === 2 ? "two passes" : t === 1 ? "one pass" : ""].filter(Boolean).join(", ");
}
function uo(e) {
  if (e.fits === !1) return ia(e);
  const t = e.seconds_range, n = t ? ` (${Zl(t[0])} to ${Zl(t[1])})` : "", l = fo(e)?.limited_by, s = ["vram", "ram"].map((p) => {
    const f = oa(e, p), d = ks(e.snapshot, p), v = d == null ? "" : `${ga(f)} of ${$t(d)}`;
    return f == null ? "" : `${v || $t(f)} ${p.toUpperCase()}`;
  }).filter(Boolean).join(", "), a = [[Gt(e.request), sa(e.request)].filter(Boolean).join(" · "), s && `Peak ${s}`, l && `limited by ${la[l] ?? l}`];
  return {
    tone: "ok",
    head: `Fits. About ${Zl(e.total_seconds)}${n}`,
    detail: a.filter(Boolean).join(". ") + "."
  };
}
function ia(e) {
  const t = e.short ?? [], n = t[0];
  if (!n) return { tone: "bad", head: "Does not fit", detail: e.message ?? "" };
  const l = [...new Set(t.map((f) => f.axis.toUpperCase()))], s = l.includes("RAM") ? "VRAM" : "RAM", r = l.length === 1 && n.axis !== "disk" ? ` ${s} would be enough.` : "", a = t.map(
    (f) => `${Rl(f.phase)} of ${Gt(e.request)} needs ${$t(f.need_bytes)} of ${f.axis.toUpperCase()}; ${$t(f.have_bytes)} is usable.`
  ).join(" ");
  return {
    tone: "bad",
    head: `Does not fit: ${l.length > 1 ? l.join(" and ") + " are" : `${l[0]} is`} short by ${$t(n.shortfall_bytes)}`,
    detail: a + r
  };
}
function fo(e) {
  return [...e.phases ?? []].sort((t, n) => (n.seconds ?? 0) - (t.seconds ?? 0))[0];
}
function oa(e, t) {
  const n = `${t}_peak_bytes`, l = (e.phases ?? []).map((s) => s[n]).filter((s) => s != null);
  return l.length ? Math.max(...l) : null;
}
function ks(e, t) {
  const n = t === "vram" ? e?.vram_free_bytes : e?.ram_available_bytes;
  return n || null;
}
function ra(e, t) {
  const n = new RegExp(`^${t.toUpperCase()}: .* ([0-9.]+) (GiB|MiB) margin`);
  for (const l of e.reasons ?? []) {
    const s = n.exec(l);
    if (s) return Number(s[1]) * (s[2] === "GiB" ? xs : 2 ** 20);
  }
  return 0;
}
function aa(e) {
  return e.replace(
    /^(encode|sample_low|upscale|sample_high|decode)\b/,
    (n) => Rl(n)
  ).replace(/(\d)x(\d)/g, "$1 × $2");
}
function Ql(e, t) {
  return e == null || !t ? null : 100 * (e - t) / t;
}
function po(e) {
  if (e == null) return "–";
  const t = Math.round(e);
  return t === 0 ? "0 %" : `${t > 0 ? "+" : "−"}${Math.abs(t)} %`;
}
function ls(e, t, n, l) {
  if (t == null) return "";
  const s = Math.abs(Math.round(t));
  return s === 0 ? `${e} as forecast` : `${e} ${s} % ${t > 0 ? n : l}`;
}
function ca(e) {
  const t = [];
  for (const [n, { forecast: l, measured: s }] of Object.entries(e.phases)) {
    if (!l || !s) continue;
    const r = [
      ls("took", Ql(s.seconds, l.seconds), "longer", "less time"),
      ls("VRAM", Ql(s.vram_peak_bytes, l.vram_peak_bytes), "more", "less"),
      ls("RAM", Ql(s.ram_peak_bytes, l.ram_peak_bytes), "more", "less")
    ].filter(Boolean);
    r.length && t.push(`${Rl(n, Object.keys(e.phases))}: ${r.join(", ")}.`);
  }
  return t;
}
function ua(e) {
  const t = da(Object.values(e.phases).map((l) => l.measured?.seconds)), n = Gt(e.request);
  return e.status === "failed" ? { tone: "bad", head: "Failed", detail: (e.error?.error ? `${e.error.error}: ` : "") + (e.error?.message ?? "no reason given") } : e.status === "cancelled" ? { tone: "ok", head: "Stopped", detail: n } : { tone: "ok", head: t == null ? "Done" : `Took ${Zl(t)}`, detail: n };
}
function fa(e) {
  return po(Ql(e.measured_vram_peak_bytes, e.forecast_vram_peak_bytes));
}
function pa(e) {
  const t = e.plan.phases?.length ? e.plan.phases.map((l) => [l.phase, l.seconds]) : Object.entries(e.phases).map(([l, s]) => [l, s.forecast?.seconds]);
  let n = null;
  for (const [l, s] of t) {
    const r = e.phases[l];
    if (r?.measured || s == null) continue;
    const { step: a, steps: p } = r?.progress ?? {};
    n = (n ?? 0) + s * (p ? 1 - Math.min(1, (a ?? 0) / p) : 1);
  }
  return n;
}
function ha(e) {
  return Object.entries(e.phases).filter(([, n]) => !n.measured).at(-1)?.[0] ?? null;
}
function da(e) {
  const t = e.filter((n) => n != null);
  return t.length ? t.reduce((n, l) => n + l, 0) : null;
}
function ma(e, t, n, l) {
  const s = `${t}_peak_bytes`, r = l?.[s] == null ? "" : `, measured ${$t(l[s], 2)}`;
  return `${e}, ${t.toUpperCase()}: forecast ${$t(n[s], 2)}${r}`;
}
function ga(e) {
  return e == null ? "?" : (e / xs).toFixed(1);
}
function Xl(e) {
  return String(e).padStart(2, "0");
}
const wa = ["encode", "sample_low", "upscale", "sample_high", "decode"];
function ba(e) {
  const t = e.fits === !1 ? va(e) : mo(e);
  return go(t, e);
}
function ho(e) {
  const t = new Map(mo(e.plan).map((n) => [n.phase, n]));
  for (const [n, { forecast: l, measured: s }] of Object.entries(e.phases)) {
    const r = t.get(n);
    (l || s || r) && t.set(n, { phase: n, forecast: { ...r?.forecast, ...l }, measured: s });
  }
  return go([...t.values()], e.plan);
}
function mo(e) {
  return (e.phases ?? []).map((t) => ({ phase: t.phase, forecast: t }));
}
function va(e) {
  const t = /* @__PURE__ */ new Map();
  for (const n of e.short ?? []) {
    const l = t.get(n.phase) ?? { phase: n.phase, forecast: {} };
    l.forecast = { ...l.forecast, [`${n.axis}_peak_bytes`]: n.need_bytes }, t.set(n.phase, l);
  }
  return [...t.values()];
}
function go(e, t) {
  const n = (a) => wa.indexOf(a), l = [...e].sort((a, p) => n(a.phase) - n(p.phase)), s = l.map((a) => a.phase), r = t.request?.two_pass === !1 ? s : [...s, ...ya(t)];
  return l.map((a) => {
    const p = Rl(a.phase, r);
    return {
      phase: a.phase,
      name: p,
      seconds: a.forecast.seconds ?? null,
      measuredSeconds: a.measured?.seconds ?? null,
      bars: ["vram", "ram"].flatMap((f) => xa(a, p, f, l, t))
    };
  });
}
function ya(e) {
  return (e.request?.passes ?? []).map((t) => t.phase);
}
function xa(e, t, n, l, s) {
  const r = `${n}_peak_bytes`, a = e.forecast[r], p = e.measured?.[r] ?? null;
  if (a == null && p == null) return [];
  const f = ks(s.snapshot, n), d = l.flatMap((E) => [E.forecast[r] ?? 0, E.measured?.[r] ?? 0]), v = ra(s, n), g = Math.max(f ?? 0, ...d) * (f == null ? 1.15 : 1.02) || 1, w = (E) => 100 * E / g;
  return [
    {
      axis: n,
      used: w(a ?? 0),
      margin: a == null ? 0 : Math.min(w(v), 100 - w(a)),
      capacity: f == null ? null : w(f),
      measured: p == null ? null : w(p),
      over: f != null && Math.max(a ?? 0, p ?? 0) > f - (s.fits === !1 ? v : 0),
      label: ma(t, n, e.forecast, e.measured)
    }
  ];
}
function x(e, t = {}, ...n) {
  const [l, ...s] = e.split("."), r = document.createElement(l);
  s.length && (r.className = s.join(" "));
  for (const [a, p] of Object.entries(t))
    p == null || p === !1 || (typeof p == "function" ? r.addEventListener(a.slice(2), p) : r.setAttribute(a, p === !0 ? "" : String(p)));
  return r.append(...n.filter((a) => !!a)), r;
}
function Be(e, ...t) {
  const n = e.contains(document.activeElement) ? document.activeElement.dataset.key : void 0;
  e.replaceChildren(...t.filter((l) => !!l)), n && e.querySelector(`[data-key="${CSS.escape(n)}"]`)?.focus();
}
let ka = 0;
function nl(e, t = !1) {
  const n = x("div.lp-body");
  if (t) {
    const s = x("summary", {}, e);
    return [x("details.lp-sec", {}, s, n), n, s];
  }
  const l = x("h3", { id: `lowpeak-section-${++ka}` }, e);
  return [x("section.lp-sec", { "aria-labelledby": l.id }, l, n), n, l];
}
function _s(e) {
  return x("div.lp-rows", { role: "list" }, ...e.map(_a));
}
function _a(e) {
  const t = e.measuredSeconds == null ? El(e.seconds) : `${El(e.measuredSeconds)} of ${El(e.seconds)}`;
  return x(
    "div.lp-row",
    { role: "listitem", "data-phase": e.phase },
    x("span.lp-name", {}, e.name),
    x("div.lp-bars", {}, ...e.bars.map(Sa)),
    x("span.lp-time", { title: e.measuredSeconds == null ? "forecast" : "took, of forecast" }, t)
  );
}
function Sa(e) {
  const t = (n, l, s) => x("i", { class: n, style: `left:${l}%` + (s == null ? "" : `;width:${s}%`) });
  return x(
    "div",
    {
      class: `lp-bar lp-${e.axis}${e.over ? " lp-over" : ""}`,
      role: "img",
      "aria-label": e.label,
      title: e.label
    },
    t("lp-used", 0, e.used),
    e.margin > 0 && t("lp-margin", e.used, e.margin),
    e.capacity != null && t("lp-cap", e.capacity),
    e.measured != null && t("lp-measured", e.measured)
  );
}
function Ss(e) {
  const t = (n, l) => x("span", {}, x("i", { class: n, "aria-hidden": "true" }), l);
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
function wo(e, t) {
  const n = (e.phases ?? []).filter((f) => f.phase.startsWith("sample")), s = (n.find((f) => f.phase === t) ?? n.find((f) => f.phase === fo(e)?.phase) ?? n[0])?.placement;
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
        ([f, d, v]) => x("span", {}, x("i", { class: f }), `${d} ${v}`)
      )
    )
  );
}
function Ma(e, t, n, l) {
  const { plan: s, planError: r, planBusy: a } = n;
  if (r)
    return Be(
      e,
      x("div.lp-verdict.lp-bad", {}, "No forecast"),
      x("div.lp-dim", {}, r),
      x("div.lp-actions", {}, bo(l))
    ), Be(t);
  if (!s)
    return Be(e, x("p.lp-dim", {}, a ? "Working out the forecast …" : "The graph holds no Lowpeak Sample yet. Add one, or open a template under Lowpeak.")), Be(t);
  const { tone: p, head: f, detail: d } = uo(s);
  Be(
    e,
    x("div", { class: `lp-verdict${p === "bad" ? " lp-bad" : ""}` }, f),
    x("div.lp-dim", {}, d),
    ...(s.asked?.notices ?? []).map((g) => x("p.lp-notice", {}, g)),
    s.asked?.unknown.length ? x("p.lp-notice", {}, `Known only when it runs: ${s.asked.unknown.join(", ")}. Defaults stand in.`) : null,
    s.fits === !1 ? Ta(s, l) : null
  );
  const v = ba(s);
  Be(t, v.length ? _s(v) : null, v.length ? Ss(!1) : null);
}
function Ta(e, t) {
  const n = x("p.lp-notice", { role: "status", hidden: !0 }), l = (e.fits_instead ?? []).map(
    (s, r) => x(
      "div.lp-offer",
      {},
      x("span", {}, Gt(s)),
      x("button", {
        type: "button",
        "data-key": `use-${r}`,
        "aria-label": `Use a size that fits: ${Gt(s)}`,
        onclick: () => {
          n.textContent = t.use(s), n.hidden = !n.textContent;
        }
      }, "Use")
    )
  );
  return x(
    "section.lp-sec",
    { "aria-label": "Fits instead" },
    x("h3", {}, l.length ? "Fits instead" : "No smaller size fits either"),
    ...l,
    n,
    x("div.lp-offer", {}, x("span", {}, "Close other programs"), bo(t))
  );
}
function bo(e) {
  return x(
    "button",
    { type: "button", "data-key": "again", onclick: () => {
      e.forecast();
    } },
    "Check again"
  );
}
function Aa(e, t) {
  const n = t.plan && t.plan.fits !== !1 ? wo(t.plan, null) : null;
  return Be(e, n), n != null;
}
function Ea(e, t) {
  const n = t.plan, l = n ? [...n.what_if ?? [], ...n.reasons ?? []] : [];
  return n?.changes_arithmetic && l.unshift("This placement sums in another order: latents differ in their last bits."), Be(e, x("ul", {}, ...l.map((s) => x("li", {}, aa(s))))), l.length > 0;
}
function La(e) {
  const { tone: t, head: n, detail: l } = uo(e), s = e.fits === !1 && e.fits_instead?.[0];
  return x(
    "div",
    {},
    x("div", { class: `lp-verdict${t === "bad" ? " lp-bad" : ""}` }, n),
    x("div.lp-dim", {}, l, s ? ` ${Gt(s)} would fit.` : "")
  );
}
class Pa {
  box;
  body;
  constructor() {
    [this.box, this.body] = nl("Last run"), this.box.hidden = !0;
  }
  draw(t) {
    if (this.box.hidden = !t, !t) return Be(this.body);
    const { tone: n, head: l, detail: s } = ua(t), r = ho(t), a = ca(t);
    Be(
      this.body,
      x("div", {
        class: `lp-verdict${n === "bad" ? " lp-bad" : ""}`,
        role: n === "bad" ? "alert" : null
      }, l),
      x("div.lp-dim", {}, s || Gt(t.request)),
      r.length ? _s(r) : null,
      r.length ? Ss(!0) : null,
      a.length ? x("ul", {}, ...a.map((p) => x("li", {}, p))) : null,
      ...t.notices.slice(-5).map((p) => x("p.lp-notice", {}, p)),
      $a(t.report.lora),
      Ca(t.report.kernels),
      this.copy(t)
    );
  }
  copy(t) {
    const n = x("span.lp-dim", { role: "status" }), l = async () => {
      n.textContent = await Da(Kr(t)) ? "Copied." : "The browser refused.";
    };
    return x(
      "div.lp-actions",
      {},
      x(
        "button",
        { type: "button", "data-key": "copy", onclick: () => {
          l();
        } },
        "Copy report"
      ),
      x("span.lp-dim", {}, "JSON; no prompt, no paths"),
      n
    );
  }
}
async function Da(e) {
  try {
    return await navigator.clipboard.writeText(e), !0;
  } catch {
    const t = x("textarea", { style: "position:fixed;opacity:0" });
    t.value = e, document.body.append(t), t.select();
    const n = document.execCommand("copy");
    return t.remove(), n;
  }
}
function $a(e) {
  return !Array.isArray(e) || !e.length ? null : x("div", {}, ...e.map((t) => x(
    "div",
    { class: t.complete === !1 ? "lp-bad" : "" },
    `${t.file ?? "LoRA"}: ${t.bound_tensors ?? "?"} of ${t.tensors ?? "?"} tensors bound`
  )));
}
function Ca(e) {
  if (!e || typeof e != "object") return null;
  const t = Object.entries(e).map(([n, l]) => {
    const { implementation: s, reason: r } = l ?? {}, a = typeof l == "string" ? l : String(s ?? JSON.stringify(l));
    return `${n}: ${a}${r ? ` (${r})` : ""}`;
  });
  return t.length ? x(
    "details.lp-sec",
    {},
    x("summary", {}, "Kernels used"),
    x("ul", {}, ...t.map((n) => x("li", {}, n)))
  ) : null;
}
const Ra = !0, Pe = "u-", Na = "uplot", za = Pe + "hz", Va = Pe + "vt", Oa = Pe + "title", Ba = Pe + "wrap", Fa = Pe + "under", Ia = Pe + "over", Ga = Pe + "axis", ll = Pe + "off", Wa = Pe + "select", Ha = Pe + "cursor-x", ja = Pe + "cursor-y", Ua = Pe + "cursor-pt", Ya = Pe + "legend", qa = Pe + "live", Ka = Pe + "inline", Ja = Pe + "series", Za = Pe + "marker", bi = Pe + "label", Qa = Pe + "value", ql = "width", Kl = "height", Ul = "top", vi = "bottom", Tl = "left", ns = "right", Ms = "#000", yi = Ms + "0", ss = "mousemove", xi = "mousedown", is = "mouseup", ki = "mouseenter", _i = "mouseleave", Si = "dblclick", Xa = "resize", ec = "scroll", Mi = "change", vn = "dppxchange", Ts = "--", Nl = typeof window < "u", us = Nl ? document : null, Ll = Nl ? window : null, tc = Nl ? navigator : null;
let oe, mn;
function fs() {
  let e = devicePixelRatio;
  oe != e && (oe = e, mn && hs(Mi, mn, fs), mn = matchMedia(`(min-resolution: ${oe - 1e-3}dppx) and (max-resolution: ${oe + 1e-3}dppx)`), sl(Mi, mn, fs), Ll.dispatchEvent(new CustomEvent(vn)));
}
function lt(e, t) {
  if (t != null) {
    let n = e.classList;
    !n.contains(t) && n.add(t);
  }
}
function ps(e, t) {
  let n = e.classList;
  n.contains(t) && n.remove(t);
}
function we(e, t, n) {
  e.style[t] = n + "px";
}
function bt(e, t, n, l) {
  let s = us.createElement(e);
  return t != null && lt(s, t), n?.insertBefore(s, l), s;
}
function ft(e, t) {
  return bt("div", e, t);
}
const Ti = /* @__PURE__ */ new WeakMap();
function Et(e, t, n, l, s) {
  let r = "translate(" + t + "px," + n + "px)", a = Ti.get(e);
  r != a && (e.style.transform = r, Ti.set(e, r), t < 0 || n < 0 || t > l || n > s ? lt(e, ll) : ps(e, ll));
}
const Ai = /* @__PURE__ */ new WeakMap();
function Ei(e, t, n) {
  let l = t + n, s = Ai.get(e);
  l != s && (Ai.set(e, l), e.style.background = t, e.style.borderColor = n);
}
const Li = /* @__PURE__ */ new WeakMap();
function Pi(e, t, n, l) {
  let s = t + "" + n, r = Li.get(e);
  s != r && (Li.set(e, s), e.style.height = n + "px", e.style.width = t + "px", e.style.marginLeft = l ? -t / 2 + "px" : 0, e.style.marginTop = l ? -n / 2 + "px" : 0);
}
const As = { passive: !0 }, lc = { ...As, capture: !0 };
function sl(e, t, n, l) {
  t.addEventListener(e, n, l ? lc : As);
}
function hs(e, t, n, l) {
  t.removeEventListener(e, n, As);
}
Nl && fs();
function vt(e, t, n, l) {
  let s;
  n = n || 0, l = l || t.length - 1;
  let r = l <= 2147483647;
  for (; l - n > 1; )
    s = r ? n + l >> 1 : nt((n + l) / 2), t[s] < e ? n = s : l = s;
  return e - t[n] <= t[l] - e ? n : l;
}
function vo(e) {
  return (n, l, s) => {
    let r = -1, a = -1;
    for (let p = l; p <= s; p++)
      if (e(n[p])) {
        r = p;
        break;
      }
    for (let p = s; p >= l; p--)
      if (e(n[p])) {
        a = p;
        break;
      }
    return [r, a];
  };
}
const yo = (e) => e != null, xo = (e) => e != null && e > 0, kn = vo(yo), nc = vo(xo);
function sc(e, t, n, l = 0, s = !1) {
  let r = s ? nc : kn, a = s ? xo : yo;
  [t, n] = r(e, t, n);
  let p = e[t], f = e[t];
  if (t > -1)
    if (l == 1)
      p = e[t], f = e[n];
    else if (l == -1)
      p = e[n], f = e[t];
    else
      for (let d = t; d <= n; d++) {
        let v = e[d];
        a(v) && (v < p ? p = v : v > f && (f = v));
      }
  return [p ?? fe, f ?? -fe];
}
function _n(e, t, n, l) {
  let s = Ci(e), r = Ci(t);
  e == t && (s == -1 ? (e *= n, t /= n) : (e /= n, t *= n));
  let a = n == 10 ? Ct : ko, p = s == 1 ? nt : pt, f = r == 1 ? pt : nt, d = p(a(Le(e))), v = f(a(Le(t))), g = Pl(n, d), w = Pl(n, v);
  return n == 10 && (d < 0 && (g = pe(g, -d)), v < 0 && (w = pe(w, -v))), l || n == 2 ? (e = g * s, t = w * r) : (e = To(e, g), t = Sn(t, w)), [e, t];
}
function Es(e, t, n, l) {
  let s = _n(e, t, n, l);
  return e == 0 && (s[0] = 0), t == 0 && (s[1] = 0), s;
}
const Ls = 0.1, Di = {
  mode: 3,
  pad: Ls
}, en = {
  pad: 0,
  soft: null,
  mode: 0
}, ic = {
  min: en,
  max: en
};
function yn(e, t, n, l) {
  return Mn(n) ? $i(e, t, n) : (en.pad = n, en.soft = l ? 0 : null, en.mode = l ? 3 : 0, $i(e, t, ic));
}
function se(e, t) {
  return e ?? t;
}
function oc(e, t, n) {
  for (t = se(t, 0), n = se(n, e.length - 1); t <= n; ) {
    if (e[t] != null)
      return !0;
    t++;
  }
  return !1;
}
function $i(e, t, n) {
  let l = n.min, s = n.max, r = se(l.pad, 0), a = se(s.pad, 0), p = se(l.hard, -fe), f = se(s.hard, fe), d = se(l.soft, fe), v = se(s.soft, -fe), g = se(l.mode, 0), w = se(s.mode, 0), E = t - e, D = Ct(E), V = Ye(Le(e), Le(t)), I = Ct(V), S = Le(I - D);
  (E < 1e-24 || S > 10) && (E = 0, (e == 0 || t == 0) && (E = 1e-24, g == 2 && d != fe && (r = 0), w == 2 && v != -fe && (a = 0)));
  let _ = E || V || 1e3, F = Ct(_), M = Pl(10, nt(F)), K = _ * (E == 0 ? e == 0 ? 0.1 : 1 : r), C = pe(To(e - K, M / 10), 24), J = e >= d && (g == 1 || g == 3 && C <= d || g == 2 && C >= d) ? d : fe, U = Ye(p, C < J && e >= J ? J : yt(J, C)), X = _ * (E == 0 ? t == 0 ? 0.1 : 1 : a), j = pe(Sn(t + X, M / 10), 24), T = t <= v && (w == 1 || w == 3 && j >= v || w == 2 && j <= v) ? v : -fe, q = yt(f, j > T && t <= T ? T : Ye(T, j));
  return U == q && U == 0 && (q = 100), [U, q];
}
const rc = new Intl.NumberFormat(Nl ? tc.language : "en-US"), Ps = (e) => rc.format(e), st = Math, bn = st.PI, Le = st.abs, nt = st.floor, Ee = st.round, pt = st.ceil, yt = st.min, Ye = st.max, Pl = st.pow, Ci = st.sign, Ct = st.log10, ko = st.log2, ac = (e, t = 1) => st.sinh(e) * t, os = (e, t = 1) => st.asinh(e / t), fe = 1 / 0;
function Ri(e) {
  return (Ct((e ^ e >> 31) - (e >> 31)) | 0) + 1;
}
function ds(e, t, n) {
  return yt(Ye(e, t), n);
}
function _o(e) {
  return typeof e == "function";
}
function ee(e) {
  return _o(e) ? e : () => e;
}
const cc = () => {
}, So = (e) => e, Mo = (e, t) => t, uc = (e) => null, Ni = (e) => !0, zi = (e, t) => e == t, fc = /\.\d*?(?=9{6,}|0{6,})/gm, il = (e) => {
  if (Eo(e) || Wt.has(e))
    return e;
  const t = `${e}`, n = t.match(fc);
  if (n == null)
    return e;
  let l = n[0].length - 1;
  if (t.indexOf("e-") != -1) {
    let [s, r] = t.split("e");
    return +`${il(s)}e${r}`;
  }
  return pe(e, l);
};
function el(e, t) {
  return il(pe(il(e / t)) * t);
}
function Sn(e, t) {
  return il(pt(il(e / t)) * t);
}
function To(e, t) {
  return il(nt(il(e / t)) * t);
}
function pe(e, t = 0) {
  if (Eo(e))
    return e;
  let n = 10 ** t, l = e * n * (1 + Number.EPSILON);
  return Ee(l) / n;
}
const Wt = /* @__PURE__ */ new Map();
function Ao(e) {
  return (("" + e).split(".")[1] || "").length;
}
function ln(e, t, n, l) {
  let s = [], r = l.map(Ao);
  for (let a = t; a < n; a++) {
    let p = Le(a), f = pe(Pl(e, a), p);
    for (let d = 0; d < l.length; d++) {
      let v = e == 10 ? +`${l[d]}e${a}` : l[d] * f, g = (a >= 0 ? 0 : p) + (a >= r[d] ? 0 : r[d]), w = e == 10 ? v : pe(v, g);
      s.push(w), Wt.set(w, g);
    }
  }
  return s;
}
const tn = {}, Ds = [], Dl = [null, null], It = Array.isArray, Eo = Number.isInteger, pc = (e) => e === void 0;
function Vi(e) {
  return typeof e == "string";
}
function Mn(e) {
  let t = !1;
  if (e != null) {
    let n = e.constructor;
    t = n == null || n == Object;
  }
  return t;
}
function hc(e) {
  return e != null && typeof e == "object";
}
const dc = Object.getPrototypeOf(Uint8Array), Lo = "__proto__";
function $l(e, t = Mn) {
  let n;
  if (It(e)) {
    let l = e.find((s) => s != null);
    if (It(l) || t(l)) {
      n = Array(e.length);
      for (let s = 0; s < e.length; s++)
        n[s] = $l(e[s], t);
    } else
      n = e.slice();
  } else if (e instanceof dc)
    n = e.slice();
  else if (t(e)) {
    n = {};
    for (let l in e)
      l != Lo && (n[l] = $l(e[l], t));
  } else
    n = e;
  return n;
}
function Me(e) {
  let t = arguments;
  for (let n = 1; n < t.length; n++) {
    let l = t[n];
    for (let s in l)
      s != Lo && (Mn(e[s]) ? Me(e[s], $l(l[s])) : e[s] = $l(l[s]));
  }
  return e;
}
const mc = 0, gc = 1, wc = 2;
function bc(e, t, n) {
  for (let l = 0, s, r = -1; l < t.length; l++) {
    let a = t[l];
    if (a > r) {
      for (s = a - 1; s >= 0 && e[s] == null; )
        e[s--] = null;
      for (s = a + 1; s < n && e[s] == null; )
        e[r = s++] = null;
    }
  }
}
function vc(e, t) {
  if (kc(e)) {
    let a = e[0].slice();
    for (let p = 1; p < e.length; p++)
      a.push(...e[p].slice(1));
    return _c(a[0]) || (a = xc(a)), a;
  }
  let n = /* @__PURE__ */ new Set();
  for (let a = 0; a < e.length; a++) {
    let f = e[a][0], d = f.length;
    for (let v = 0; v < d; v++)
      n.add(f[v]);
  }
  let l = [Array.from(n).sort((a, p) => a - p)], s = l[0].length, r = /* @__PURE__ */ new Map();
  for (let a = 0; a < s; a++)
    r.set(l[0][a], a);
  for (let a = 0; a < e.length; a++) {
    let p = e[a], f = p[0];
    for (let d = 1; d < p.length; d++) {
      let v = p[d], g = Array(s).fill(void 0), w = t ? t[a][d] : gc, E = [];
      for (let D = 0; D < v.length; D++) {
        let V = v[D], I = r.get(f[D]);
        V === null ? w != mc && (g[I] = V, w == wc && E.push(I)) : g[I] = V;
      }
      bc(g, E, s), l.push(g);
    }
  }
  return l;
}
const yc = typeof queueMicrotask > "u" ? (e) => Promise.resolve().then(e) : queueMicrotask;
function xc(e) {
  let t = e[0], n = t.length, l = Array(n);
  for (let r = 0; r < l.length; r++)
    l[r] = r;
  l.sort((r, a) => t[r] - t[a]);
  let s = [];
  for (let r = 0; r < e.length; r++) {
    let a = e[r], p = Array(n);
    for (let f = 0; f < n; f++)
      p[f] = a[l[f]];
    s.push(p);
  }
  return s;
}
function kc(e) {
  let t = e[0][0], n = t.length;
  for (let l = 1; l < e.length; l++) {
    let s = e[l][0];
    if (s.length != n)
      return !1;
    if (s != t) {
      for (let r = 0; r < n; r++)
        if (s[r] != t[r])
          return !1;
    }
  }
  return !0;
}
function _c(e, t = 100) {
  const n = e.length;
  if (n <= 1)
    return !0;
  let l = 0, s = n - 1;
  for (; l <= s && e[l] == null; )
    l++;
  for (; s >= l && e[s] == null; )
    s--;
  if (s <= l)
    return !0;
  const r = Ye(1, nt((s - l + 1) / t));
  for (let a = e[l], p = l + r; p <= s; p += r) {
    const f = e[p];
    if (f != null) {
      if (f <= a)
        return !1;
      a = f;
    }
  }
  return !0;
}
const Po = [
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
], Do = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday"
];
function $o(e) {
  return e.slice(0, 3);
}
const Sc = Do.map($o), Mc = Po.map($o), Tc = {
  MMMM: Po,
  MMM: Mc,
  WWWW: Do,
  WWW: Sc
};
function Yl(e) {
  return (e < 10 ? "0" : "") + e;
}
function Ac(e) {
  return (e < 10 ? "00" : e < 100 ? "0" : "") + e;
}
const Ec = {
  // 2019
  YYYY: (e) => e.getFullYear(),
  // 19
  YY: (e) => (e.getFullYear() + "").slice(2),
  // July
  MMMM: (e, t) => t.MMMM[e.getMonth()],
  // Jul
  MMM: (e, t) => t.MMM[e.getMonth()],
  // 07
  MM: (e) => Yl(e.getMonth() + 1),
  // 7
  M: (e) => e.getMonth() + 1,
  // 09
  DD: (e) => Yl(e.getDate()),
  // 9
  D: (e) => e.getDate(),
  // Monday
  WWWW: (e, t) => t.WWWW[e.getDay()],
  // Mon
  WWW: (e, t) => t.WWW[e.getDay()],
  // 03
  HH: (e) => Yl(e.getHours()),
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
  mm: (e) => Yl(e.getMinutes()),
  // 9
  m: (e) => e.getMinutes(),
  // 09
  ss: (e) => Yl(e.getSeconds()),
  // 9
  s: (e) => e.getSeconds(),
  // 374
  fff: (e) => Ac(e.getMilliseconds())
};
function $s(e, t) {
  t = t || Tc;
  let n = [], l = /\{([a-z]+)\}|[^{]+/gi, s;
  for (; s = l.exec(e); )
    n.push(s[0][0] == "{" ? Ec[s[1]] : s[0]);
  return (r) => {
    let a = "";
    for (let p = 0; p < n.length; p++)
      a += typeof n[p] == "string" ? n[p] : n[p](r, t);
    return a;
  };
}
const Lc = new Intl.DateTimeFormat().resolvedOptions().timeZone;
function Pc(e, t) {
  let n;
  return t == "UTC" || t == "Etc/UTC" ? n = new Date(+e + e.getTimezoneOffset() * 6e4) : t == Lc ? n = e : (n = new Date(e.toLocaleString("en-US", { timeZone: t })), n.setMilliseconds(e.getMilliseconds())), n;
}
const Co = (e) => e % 1 == 0, xn = [1, 2, 2.5, 5], Dc = ln(10, -32, 0, xn), Ro = ln(10, 0, 32, xn), $c = Ro.filter(Co), tl = Dc.concat(Ro), Cs = `
`, No = "{YYYY}", Oi = Cs + No, zo = "{M}/{D}", Jl = Cs + zo, gn = Jl + "/{YY}", Vo = "{aa}", Cc = "{h}:{mm}", Al = Cc + Vo, Bi = Cs + Al, Fi = ":{ss}", ae = null;
function Oo(e) {
  let t = e * 1e3, n = t * 60, l = n * 60, s = l * 24, r = s * 30, a = s * 365, f = (e == 1 ? ln(10, 0, 3, xn).filter(Co) : ln(10, -3, 0, xn)).concat([
    // minute divisors (# of secs)
    t,
    t * 5,
    t * 10,
    t * 15,
    t * 30,
    // hour divisors (# of mins)
    n,
    n * 5,
    n * 10,
    n * 15,
    n * 30,
    // day divisors (# of hrs)
    l,
    l * 2,
    l * 3,
    l * 4,
    l * 6,
    l * 8,
    l * 12,
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
    [a, No, ae, ae, ae, ae, ae, ae, 1],
    [s * 28, "{MMM}", Oi, ae, ae, ae, ae, ae, 1],
    [s, zo, Oi, ae, ae, ae, ae, ae, 1],
    [l, "{h}" + Vo, gn, ae, Jl, ae, ae, ae, 1],
    [n, Al, gn, ae, Jl, ae, ae, ae, 1],
    [t, Fi, gn + " " + Al, ae, Jl + " " + Al, ae, Bi, ae, 1],
    [e, Fi + ".{fff}", gn + " " + Al, ae, Jl + " " + Al, ae, Bi, ae, 1]
  ];
  function v(g) {
    return (w, E, D, V, I, S) => {
      let _ = [], F = I >= a, M = I >= r && I < a, K = g(D), C = pe(K * e, 3), J = rs(K.getFullYear(), F ? 0 : K.getMonth(), M || F ? 1 : K.getDate()), U = pe(J * e, 3);
      if (M || F) {
        let X = M ? I / r : 0, j = F ? I / a : 0, T = C == U ? C : pe(rs(J.getFullYear() + j, J.getMonth() + X, 1) * e, 3), q = new Date(Ee(T / e)), R = q.getFullYear(), W = q.getMonth();
        for (let B = 0; T <= V; B++) {
          let te = rs(R + j * B, W + X * B, 1), O = te - g(pe(te * e, 3));
          T = pe((+te + O) * e, 3), T <= V && _.push(T);
        }
      } else {
        let X = I >= s ? s : I, j = nt(D) - nt(C), T = U + j + Sn(C - U, X);
        _.push(T);
        let q = g(T), R = q.getHours() + q.getMinutes() / n + q.getSeconds() / l, W = I / l, B = w.axes[E]._space, te = S / B;
        for (; T = pe(T + I, e == 1 ? 0 : 3), !(T > V); )
          if (W > 1) {
            let O = nt(pe(R + W, 6)) % 24, le = g(T).getHours() - O;
            le > 1 && (le = -1), T -= le * l, R = (R + W) % 24;
            let ce = _[_.length - 1];
            pe((T - ce) / I, 3) * te >= 0.7 && _.push(T);
          } else
            _.push(T);
      }
      return _;
    };
  }
  return [
    f,
    d,
    v
  ];
}
const [Rc, Nc, zc] = Oo(1), [Vc, Oc, Bc] = Oo(1e-3);
ln(2, -53, 53, [1]);
function Ii(e, t) {
  return e.map((n) => n.map(
    (l, s) => s == 0 || s == 8 || l == null ? l : t(s == 1 || n[8] == 0 ? l : n[1] + l)
  ));
}
function Gi(e, t) {
  return (n, l, s, r, a) => {
    let p = t.find((D) => a >= D[0]) || t[t.length - 1], f, d, v, g, w, E;
    return l.map((D) => {
      let V = e(D), I = V.getFullYear(), S = V.getMonth(), _ = V.getDate(), F = V.getHours(), M = V.getMinutes(), K = V.getSeconds(), C = I != f && p[2] || S != d && p[3] || _ != v && p[4] || F != g && p[5] || M != w && p[6] || K != E && p[7] || p[1];
      return f = I, d = S, v = _, g = F, w = M, E = K, C(V);
    });
  };
}
function Fc(e, t) {
  let n = $s(t);
  return (l, s, r, a, p) => s.map((f) => n(e(f)));
}
function rs(e, t, n) {
  return new Date(e, t, n);
}
function Wi(e, t) {
  return t(e);
}
const Ic = "{YYYY}-{MM}-{DD} {h}:{mm}{aa}";
function Hi(e, t) {
  return (n, l, s, r) => r == null ? Ts : t(e(l));
}
function Gc(e, t) {
  let n = e.series[t];
  return n.width ? n.stroke(e, t) : n.points.width ? n.points.stroke(e, t) : null;
}
function Wc(e, t) {
  return e.series[t].fill(e, t);
}
const Hc = {
  show: !0,
  live: !0,
  isolate: !1,
  mount: cc,
  markers: {
    show: !0,
    width: 2,
    stroke: Gc,
    fill: Wc,
    dash: "solid"
  },
  idx: null,
  idxs: null,
  values: []
};
function jc(e, t) {
  let n = e.cursor.points, l = ft(), s = n.size(e, t);
  we(l, ql, s), we(l, Kl, s);
  let r = s / -2;
  we(l, "marginLeft", r), we(l, "marginTop", r);
  let a = n.width(e, t, s);
  return a && we(l, "borderWidth", a), l;
}
function Uc(e, t) {
  let n = e.series[t].points;
  return n._fill || n._stroke;
}
function Yc(e, t) {
  let n = e.series[t].points;
  return n._stroke || n._fill;
}
function qc(e, t) {
  return e.series[t].points.size;
}
const as = [0, 0];
function Kc(e, t, n) {
  return as[0] = t, as[1] = n, as;
}
function wn(e, t, n, l = !0) {
  return (s) => {
    s.button == 0 && (!l || s.target == t) && n(s);
  };
}
function cs(e, t, n, l = !0) {
  return (s) => {
    (!l || s.target == t) && n(s);
  };
}
const Jc = {
  show: !0,
  x: !0,
  y: !0,
  lock: !1,
  move: Kc,
  points: {
    one: !1,
    show: jc,
    size: qc,
    width: 0,
    stroke: Yc,
    fill: Uc
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
    dist: (e, t, n, l, s) => l - s,
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
}, Bo = {
  show: !0,
  stroke: "rgba(0,0,0,0.07)",
  width: 2
  //	dash: [],
}, Rs = Me({}, Bo, {
  filter: Mo
}), Fo = Me({}, Rs, {
  size: 10
}), Io = Me({}, Bo, {
  show: !1
}), Ns = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif, "Apple Color Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Noto Color Emoji"', Go = "bold " + Ns, Wo = 1.5, ji = {
  show: !0,
  scale: "x",
  stroke: Ms,
  space: 50,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: Go,
  side: 2,
  //	class: "x-vals",
  //	incrs: timeIncrs,
  //	values: timeVals,
  //	filter: retArg1,
  grid: Rs,
  ticks: Fo,
  border: Io,
  font: Ns,
  lineGap: Wo,
  rotate: 0
}, Zc = "Value", Qc = "Time", Ui = {
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
function Xc(e, t, n, l, s) {
  return t.map((r) => r == null ? "" : Ps(r));
}
function eu(e, t, n, l, s, r, a) {
  let p = [], f = Wt.get(s) || 0;
  n = a ? n : pe(Sn(n, s), f);
  for (let d = n; d <= l; d = pe(d + s, f))
    p.push(Object.is(d, -0) ? 0 : d);
  return p;
}
function ms(e, t, n, l, s, r, a) {
  const p = [], f = e.scales[e.axes[t].scale].log, d = f == 10 ? Ct : ko, v = nt(d(n));
  s = Pl(f, v), f == 10 && (s = tl[vt(s, tl)]);
  let g = n, w = s * f;
  f == 10 && (w = tl[vt(w, tl)]);
  do
    p.push(g), g = g + s, f == 10 && !Wt.has(g) && (g = pe(g, Wt.get(s))), g >= w && (s = g, w = s * f, f == 10 && (w = tl[vt(w, tl)]));
  while (g <= l);
  return p;
}
function tu(e, t, n, l, s, r, a) {
  let f = e.scales[e.axes[t].scale].asinh, d = l > f ? ms(e, t, Ye(f, n), l, s) : [f], v = l >= 0 && n <= 0 ? [0] : [];
  return (n < -f ? ms(e, t, Ye(f, -l), -n, s) : [f]).reverse().map((w) => -w).concat(v, d);
}
const Ho = /./, lu = /[12357]/, nu = /[125]/, Yi = /1/, gs = (e, t, n, l) => e.map((s, r) => t == 4 && s == 0 || r % l == 0 && n.test(s.toExponential()[s < 0 ? 1 : 0]) ? s : null);
function su(e, t, n, l, s) {
  let r = e.axes[n], a = r.scale, p = e.scales[a], f = e.valToPos, d = r._space, v = f(10, a), g = f(9, a) - v >= d ? Ho : f(7, a) - v >= d ? lu : f(5, a) - v >= d ? nu : Yi;
  if (g == Yi) {
    let w = Le(f(1, a) - v);
    if (w < d)
      return gs(t.slice().reverse(), p.distr, g, pt(d / w)).reverse();
  }
  return gs(t, p.distr, g, 1);
}
function iu(e, t, n, l, s) {
  let r = e.axes[n], a = r.scale, p = r._space, f = e.valToPos, d = Le(f(1, a) - f(2, a));
  return d < p ? gs(t.slice().reverse(), 3, Ho, pt(p / d)).reverse() : t;
}
function ou(e, t, n, l) {
  return l == null ? Ts : t == null ? "" : Ps(t);
}
const qi = {
  show: !0,
  scale: "y",
  stroke: Ms,
  space: 30,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: Go,
  side: 3,
  //	class: "y-vals",
  //	incrs: numIncrs,
  //	values: (vals, space) => vals,
  //	filter: retArg1,
  grid: Rs,
  ticks: Fo,
  border: Io,
  font: Ns,
  lineGap: Wo,
  rotate: 0
};
function ru(e, t) {
  let n = 3 + (e || 1) * 2;
  return pe(n * t, 3);
}
function au(e, t) {
  let { scale: n, idxs: l } = e.series[0], s = e._data[0], r = e.valToPos(s[l[0]], n, !0), a = e.valToPos(s[l[1]], n, !0), p = Le(a - r), f = e.series[t], d = p / (f.points.space * oe);
  return l[1] - l[0] <= d;
}
const Ki = {
  scale: null,
  auto: !0,
  sorted: 0,
  // internal caches
  min: fe,
  max: -fe
}, jo = (e, t, n, l, s) => s, Ji = {
  show: !0,
  auto: !0,
  sorted: 0,
  gaps: jo,
  alpha: 1,
  facets: [
    Me({}, Ki, { scale: "x" }),
    Me({}, Ki, { scale: "y" })
  ]
}, Zi = {
  scale: "y",
  auto: !0,
  sorted: 0,
  show: !0,
  spanGaps: !1,
  gaps: jo,
  alpha: 1,
  points: {
    show: au,
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
function cu(e, t, n, l, s) {
  return n / 10;
}
const Uo = {
  time: Ra,
  auto: !0,
  distr: 1,
  log: 10,
  asinh: 1,
  min: null,
  max: null,
  dir: 1,
  ori: 0
}, uu = Me({}, Uo, {
  time: !1,
  ori: 1
}), Qi = {};
function Yo(e, t) {
  let n = Qi[e];
  return n || (n = {
    key: e,
    plots: [],
    sub(l) {
      n.plots.push(l);
    },
    unsub(l) {
      n.plots = n.plots.filter((s) => s != l);
    },
    pub(l, s, r, a, p, f, d) {
      for (let v = 0; v < n.plots.length; v++)
        n.plots[v] != s && n.plots[v].pub(l, s, r, a, p, f, d);
    }
  }, e != null && (Qi[e] = n)), n;
}
const Cl = 1, ws = 2;
function ol(e, t, n) {
  const l = e.mode, s = e.series[t], r = l == 2 ? e._data[t] : e._data, a = e.scales, p = e.bbox;
  let f = r[0], d = l == 2 ? r[1] : r[t], v = l == 2 ? a[s.facets[0].scale] : a[e.series[0].scale], g = l == 2 ? a[s.facets[1].scale] : a[s.scale], w = p.left, E = p.top, D = p.width, V = p.height, I = e.valToPosH, S = e.valToPosV;
  return v.ori == 0 ? n(
    s,
    f,
    d,
    v,
    g,
    I,
    S,
    w,
    E,
    D,
    V,
    An,
    zl,
    Ln,
    Ko,
    Zo
  ) : n(
    s,
    f,
    d,
    v,
    g,
    S,
    I,
    E,
    w,
    V,
    D,
    En,
    Vl,
    Os,
    Jo,
    Qo
  );
}
function zs(e, t) {
  let n = 0, l = 0, s = se(e.bands, Ds);
  for (let r = 0; r < s.length; r++) {
    let a = s[r];
    a.series[0] == t ? n = a.dir : a.series[1] == t && (a.dir == 1 ? l |= 1 : l |= 2);
  }
  return [
    n,
    l == 1 ? -1 : (
      // neg only
      l == 2 ? 1 : (
        // pos only
        l == 3 ? 2 : (
          // both
          0
        )
      )
    )
  ];
}
function fu(e, t, n, l, s) {
  let r = e.mode, a = e.series[t], p = r == 2 ? a.facets[1].scale : a.scale, f = e.scales[p];
  return s == -1 ? f.min : s == 1 ? f.max : f.distr == 3 ? f.dir == 1 ? f.min : f.max : 0;
}
function Rt(e, t, n, l, s, r) {
  return ol(e, t, (a, p, f, d, v, g, w, E, D, V, I) => {
    let S = a.pxRound;
    const _ = d.dir * (d.ori == 0 ? 1 : -1), F = d.ori == 0 ? zl : Vl;
    let M, K;
    _ == 1 ? (M = n, K = l) : (M = l, K = n);
    let C = S(g(p[M], d, V, E)), J = S(w(f[M], v, I, D)), U = S(g(p[K], d, V, E)), X = S(w(r == 1 ? v.max : v.min, v, I, D)), j = new Path2D(s);
    return F(j, U, X), F(j, C, X), F(j, C, J), j;
  });
}
function Tn(e, t, n, l, s, r) {
  let a = null;
  if (e.length > 0) {
    a = new Path2D();
    const p = t == 0 ? Ln : Os;
    let f = n;
    for (let g = 0; g < e.length; g++) {
      let w = e[g];
      if (w[1] > w[0]) {
        let E = w[0] - f;
        E > 0 && p(a, f, l, E, l + r), f = w[1];
      }
    }
    let d = n + s - f, v = 10;
    d > 0 && p(a, f, l - v / 2, d, l + r + v);
  }
  return a;
}
function pu(e, t, n) {
  let l = e[e.length - 1];
  l && l[0] == t ? l[1] = n : e.push([t, n]);
}
function Vs(e, t, n, l, s, r, a) {
  let p = [], f = e.length;
  for (let d = s == 1 ? n : l; d >= n && d <= l; d += s)
    if (t[d] === null) {
      let g = d, w = d;
      if (s == 1)
        for (; ++d <= l && t[d] === null; )
          w = d;
      else
        for (; --d >= n && t[d] === null; )
          w = d;
      let E = r(e[g]), D = w == g ? E : r(e[w]), V = g - s;
      E = a <= 0 && V >= 0 && V < f ? r(e[V]) : E;
      let S = w + s;
      D = a >= 0 && S >= 0 && S < f ? r(e[S]) : D, D >= E && p.push([E, D]);
    }
  return p;
}
function Xi(e) {
  return e == 0 ? So : e == 1 ? Ee : (t) => el(t, e);
}
function qo(e) {
  let t = e == 0 ? An : En, n = e == 0 ? (s, r, a, p, f, d) => {
    s.arcTo(r, a, p, f, d);
  } : (s, r, a, p, f, d) => {
    s.arcTo(a, r, f, p, d);
  }, l = e == 0 ? (s, r, a, p, f) => {
    s.rect(r, a, p, f);
  } : (s, r, a, p, f) => {
    s.rect(a, r, f, p);
  };
  return (s, r, a, p, f, d = 0, v = 0) => {
    d == 0 && v == 0 ? l(s, r, a, p, f) : (d = yt(d, p / 2, f / 2), v = yt(v, p / 2, f / 2), t(s, r + d, a), n(s, r + p, a, r + p, a + f, d), n(s, r + p, a + f, r, a + f, v), n(s, r, a + f, r, a, v), n(s, r, a, r + p, a, d), s.closePath());
  };
}
const An = (e, t, n) => {
  e.moveTo(t, n);
}, En = (e, t, n) => {
  e.moveTo(n, t);
}, zl = (e, t, n) => {
  e.lineTo(t, n);
}, Vl = (e, t, n) => {
  e.lineTo(n, t);
}, Ln = qo(0), Os = qo(1), Ko = (e, t, n, l, s, r) => {
  e.arc(t, n, l, s, r);
}, Jo = (e, t, n, l, s, r) => {
  e.arc(n, t, l, s, r);
}, Zo = (e, t, n, l, s, r, a) => {
  e.bezierCurveTo(t, n, l, s, r, a);
}, Qo = (e, t, n, l, s, r, a) => {
  e.bezierCurveTo(n, t, s, l, a, r);
};
function Xo(e) {
  return (t, n, l, s, r) => ol(t, n, (a, p, f, d, v, g, w, E, D, V, I) => {
    let { pxRound: S, points: _ } = a, F, M;
    d.ori == 0 ? (F = An, M = Ko) : (F = En, M = Jo);
    const K = pe(_.width * oe, 3);
    let C = (_.size - _.width) / 2 * oe, J = pe(C * 2, 3), U = new Path2D(), X = new Path2D(), { left: j, top: T, width: q, height: R } = t.bbox;
    Ln(
      X,
      j - J,
      T - J,
      q + J * 2,
      R + J * 2
    );
    const W = (B) => {
      if (f[B] != null) {
        let te = S(g(p[B], d, V, E)), O = S(w(f[B], v, I, D));
        F(U, te + C, O), M(U, te, O, C, 0, bn * 2);
      }
    };
    if (r)
      r.forEach(W);
    else
      for (let B = l; B <= s; B++)
        W(B);
    return {
      stroke: K > 0 ? U : null,
      fill: U,
      clip: X,
      flags: Cl | ws
    };
  });
}
function er(e) {
  return (t, n, l, s, r, a) => {
    l != s && (r != l && a != l && e(t, n, l), r != s && a != s && e(t, n, s), e(t, n, a));
  };
}
const hu = er(zl), du = er(Vl);
function tr(e) {
  const t = se(e?.alignGaps, 0);
  return (n, l, s, r) => ol(n, l, (a, p, f, d, v, g, w, E, D, V, I) => {
    [s, r] = kn(f, s, r);
    let S = a.pxRound, _ = (R) => S(g(R, d, V, E)), F = (R) => S(w(R, v, I, D)), M, K;
    d.ori == 0 ? (M = zl, K = hu) : (M = Vl, K = du);
    const C = d.dir * (d.ori == 0 ? 1 : -1), J = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Cl }, U = J.stroke;
    let X = !1;
    if (r - s >= V * 4) {
      let R = (N) => n.posToVal(N, d.key, !0), W = null, B = null, te, O, qe, be = _(p[C == 1 ? s : r]), le = _(p[s]), ce = _(p[r]), Z = R(C == 1 ? le + 1 : ce - 1);
      for (let N = C == 1 ? s : r; N >= s && N <= r; N += C) {
        let Te = p[N], ve = (C == 1 ? Te < Z : Te > Z) ? be : _(Te), re = f[N];
        ve == be ? re != null ? (O = re, W == null ? (M(U, ve, F(O)), te = W = B = O) : O < W ? W = O : O > B && (B = O)) : re === null && (X = !0) : (W != null && K(U, be, F(W), F(B), F(te), F(O)), re != null ? (O = re, M(U, ve, F(O)), W = B = te = O) : (W = B = null, re === null && (X = !0)), be = ve, Z = R(be + C));
      }
      W != null && W != B && qe != be && K(U, be, F(W), F(B), F(te), F(O));
    } else
      for (let R = C == 1 ? s : r; R >= s && R <= r; R += C) {
        let W = f[R];
        W === null ? X = !0 : W != null && M(U, _(p[R]), F(W));
      }
    let [T, q] = zs(n, l);
    if (a.fill != null || T != 0) {
      let R = J.fill = new Path2D(U), W = a.fillTo(n, l, a.min, a.max, T), B = F(W), te = _(p[s]), O = _(p[r]);
      C == -1 && ([O, te] = [te, O]), M(R, O, B), M(R, te, B);
    }
    if (!a.spanGaps) {
      let R = [];
      X && R.push(...Vs(p, f, s, r, C, _, t)), J.gaps = R = a.gaps(n, l, s, r, R), J.clip = Tn(R, d.ori, E, D, V, I);
    }
    return q != 0 && (J.band = q == 2 ? [
      Rt(n, l, s, r, U, -1),
      Rt(n, l, s, r, U, 1)
    ] : Rt(n, l, s, r, U, q)), J;
  });
}
function mu(e) {
  const t = se(e.align, 1), n = se(e.ascDesc, !1), l = se(e.alignGaps, 0), s = se(e.extend, !1);
  return (r, a, p, f) => ol(r, a, (d, v, g, w, E, D, V, I, S, _, F) => {
    [p, f] = kn(g, p, f);
    let M = d.pxRound, { left: K, width: C } = r.bbox, J = (le) => M(D(le, w, _, I)), U = (le) => M(V(le, E, F, S)), X = w.ori == 0 ? zl : Vl;
    const j = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Cl }, T = j.stroke, q = w.dir * (w.ori == 0 ? 1 : -1);
    let R = U(g[q == 1 ? p : f]), W = J(v[q == 1 ? p : f]), B = W, te = W;
    s && t == -1 && (te = K, X(T, te, R)), X(T, W, R);
    for (let le = q == 1 ? p : f; le >= p && le <= f; le += q) {
      let ce = g[le];
      if (ce == null)
        continue;
      let Z = J(v[le]), N = U(ce);
      t == 1 ? X(T, Z, R) : X(T, B, N), X(T, Z, N), R = N, B = Z;
    }
    let O = B;
    s && t == 1 && (O = K + C, X(T, O, R));
    let [qe, be] = zs(r, a);
    if (d.fill != null || qe != 0) {
      let le = j.fill = new Path2D(T), ce = d.fillTo(r, a, d.min, d.max, qe), Z = U(ce);
      X(le, O, Z), X(le, te, Z);
    }
    if (!d.spanGaps) {
      let le = [];
      le.push(...Vs(v, g, p, f, q, J, l));
      let ce = d.width * oe / 2, Z = n || t == 1 ? ce : -ce, N = n || t == -1 ? -ce : ce;
      le.forEach((Te) => {
        Te[0] += Z, Te[1] += N;
      }), j.gaps = le = d.gaps(r, a, p, f, le), j.clip = Tn(le, w.ori, I, S, _, F);
    }
    return be != 0 && (j.band = be == 2 ? [
      Rt(r, a, p, f, T, -1),
      Rt(r, a, p, f, T, 1)
    ] : Rt(r, a, p, f, T, be)), j;
  });
}
function eo(e, t, n, l, s, r, a = fe) {
  if (e.length > 1) {
    let p = null;
    for (let f = 0, d = 1 / 0; f < e.length; f++)
      if (t[f] !== void 0) {
        if (p != null) {
          let v = Le(e[f] - e[p]);
          v < d && (d = v, a = Le(n(e[f], l, s, r) - n(e[p], l, s, r)));
        }
        p = f;
      }
  }
  return a;
}
function gu(e) {
  e = e || tn;
  const t = se(e.size, [0.6, fe, 1]), n = e.align || 0, l = e.gap || 0;
  let s = e.radius;
  s = // [valueRadius, baselineRadius]
  s == null ? [0, 0] : typeof s == "number" ? [s, 0] : s;
  const r = ee(s), a = 1 - t[0], p = se(t[1], fe), f = se(t[2], 1), d = se(e.disp, tn), v = se(e.each, (E) => {
  }), { fill: g, stroke: w } = d;
  return (E, D, V, I) => ol(E, D, (S, _, F, M, K, C, J, U, X, j, T) => {
    let q = S.pxRound, R = n, W = l * oe, B = p * oe, te = f * oe, O, qe;
    M.ori == 0 ? [O, qe] = r(E, D) : [qe, O] = r(E, D);
    const be = M.dir * (M.ori == 0 ? 1 : -1);
    let le = M.ori == 0 ? Ln : Os, ce = M.ori == 0 ? v : (P, he, Ae, ul, Ut, kt, Yt) => {
      v(P, he, Ae, Ut, ul, Yt, kt);
    }, Z = se(E.bands, Ds).find((P) => P.series[0] == D), N = Z != null ? Z.dir : 0, Te = S.fillTo(E, D, S.min, S.max, N), Ge = q(J(Te, K, T, X)), ve, re, ht, Ze = j, xe = q(S.width * oe), xt = !1, Lt = null, it = null, Nt = null, rl = null;
    g != null && (xe == 0 || w != null) && (xt = !0, Lt = g.values(E, D, V, I), it = /* @__PURE__ */ new Map(), new Set(Lt).forEach((P) => {
      P != null && it.set(P, new Path2D());
    }), xe > 0 && (Nt = w.values(E, D, V, I), rl = /* @__PURE__ */ new Map(), new Set(Nt).forEach((P) => {
      P != null && rl.set(P, new Path2D());
    })));
    let { x0: al, size: Ol } = d;
    if (al != null && Ol != null) {
      R = 1, _ = al.values(E, D, V, I), al.unit == 2 && (_ = _.map((Ae) => E.posToVal(U + Ae * j, M.key, !0)));
      let P = Ol.values(E, D, V, I);
      Ol.unit == 2 ? re = P[0] * j : re = C(P[0], M, j, U) - C(0, M, j, U), Ze = eo(_, F, C, M, j, U, Ze), ht = Ze - re + W;
    } else
      Ze = eo(_, F, C, M, j, U, Ze), ht = Ze * a + W, re = Ze - ht;
    ht < 1 && (ht = 0), xe >= re / 2 && (xe = 0), ht < 5 && (q = So);
    let nn = ht > 0, Ht = Ze - ht - (nn ? xe : 0);
    re = q(ds(Ht, te, B)), ve = (R == 0 ? re / 2 : R == be ? 0 : re) - R * be * ((R == 0 ? W / 2 : 0) + (nn ? xe / 2 : 0));
    const We = { stroke: null, fill: null, clip: null, band: null, gaps: null, flags: 0 }, cl = xt ? null : new Path2D();
    let Pt = null;
    if (Z != null)
      Pt = E.data[Z.series[1]];
    else {
      let { y0: P, y1: he } = d;
      P != null && he != null && (F = he.values(E, D, V, I), Pt = P.values(E, D, V, I));
    }
    let jt = O * re, Y = qe * re;
    for (let P = be == 1 ? V : I; P >= V && P <= I; P += be) {
      let he = F[P];
      if (he == null)
        continue;
      if (Pt != null) {
        let Ke = Pt[P] ?? 0;
        if (he - Ke == 0)
          continue;
        Ge = J(Ke, K, T, X);
      }
      let Ae = M.distr != 2 || d != null ? _[P] : P, ul = C(Ae, M, j, U), Ut = J(se(he, Te), K, T, X), kt = q(ul - ve), Yt = q(Ye(Ut, Ge)), Qe = q(yt(Ut, Ge)), ot = Yt - Qe;
      if (he != null) {
        let Ke = he < 0 ? Y : jt, dt = he < 0 ? jt : Y;
        xt ? (xe > 0 && Nt[P] != null && le(rl.get(Nt[P]), kt, Qe + nt(xe / 2), re, Ye(0, ot - xe), Ke, dt), Lt[P] != null && le(it.get(Lt[P]), kt, Qe + nt(xe / 2), re, Ye(0, ot - xe), Ke, dt)) : le(cl, kt, Qe + nt(xe / 2), re, Ye(0, ot - xe), Ke, dt), ce(
          E,
          D,
          P,
          kt - xe / 2,
          Qe,
          re + xe,
          ot
        );
      }
    }
    return xe > 0 ? We.stroke = xt ? rl : cl : xt || (We._fill = S.width == 0 ? S._fill : S._stroke ?? S._fill, We.width = 0), We.fill = xt ? it : cl, We;
  });
}
function wu(e, t) {
  const n = se(t?.alignGaps, 0);
  return (l, s, r, a) => ol(l, s, (p, f, d, v, g, w, E, D, V, I, S) => {
    [r, a] = kn(d, r, a);
    let _ = p.pxRound, F = (O) => _(w(O, v, I, D)), M = (O) => _(E(O, g, S, V)), K, C, J;
    v.ori == 0 ? (K = An, J = zl, C = Zo) : (K = En, J = Vl, C = Qo);
    const U = v.dir * (v.ori == 0 ? 1 : -1);
    let X = F(f[U == 1 ? r : a]), j = X, T = [], q = [];
    for (let O = U == 1 ? r : a; O >= r && O <= a; O += U)
      if (d[O] != null) {
        let be = f[O], le = F(be);
        T.push(j = le), q.push(M(d[O]));
      }
    const R = { stroke: e(T, q, K, J, C, _), fill: null, clip: null, band: null, gaps: null, flags: Cl }, W = R.stroke;
    let [B, te] = zs(l, s);
    if (p.fill != null || B != 0) {
      let O = R.fill = new Path2D(W), qe = p.fillTo(l, s, p.min, p.max, B), be = M(qe);
      J(O, j, be), J(O, X, be);
    }
    if (!p.spanGaps) {
      let O = [];
      O.push(...Vs(f, d, r, a, U, F, n)), R.gaps = O = p.gaps(l, s, r, a, O), R.clip = Tn(O, v.ori, D, V, I, S);
    }
    return te != 0 && (R.band = te == 2 ? [
      Rt(l, s, r, a, W, -1),
      Rt(l, s, r, a, W, 1)
    ] : Rt(l, s, r, a, W, te)), R;
  });
}
function bu(e) {
  return wu(vu, e);
}
function vu(e, t, n, l, s, r) {
  const a = e.length;
  if (a < 2)
    return null;
  const p = new Path2D();
  if (n(p, e[0], t[0]), a == 2)
    l(p, e[1], t[1]);
  else {
    let f = Array(a), d = Array(a - 1), v = Array(a - 1), g = Array(a - 1);
    for (let w = 0; w < a - 1; w++)
      v[w] = t[w + 1] - t[w], g[w] = e[w + 1] - e[w], d[w] = v[w] / g[w];
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
function to() {
  for (let e of bs)
    e.syncRect(!0);
}
Nl && (sl(Xa, Ll, to), sl(ec, Ll, to, !0), sl(vn, Ll, () => {
  Ie.pxRatio = oe;
}));
const yu = tr(), xu = Xo();
function lo(e, t, n, l) {
  return (l ? [e[0], e[1]].concat(e.slice(2)) : [e[0]].concat(e.slice(1))).map((r, a) => vs(r, a, t, n));
}
function ku(e, t) {
  return e.map((n, l) => l == 0 ? {} : Me({}, t, n));
}
function vs(e, t, n, l) {
  return Me({}, t == 0 ? n : l, e);
}
function lr(e, t, n) {
  return t == null ? Dl : [t, n];
}
const _u = lr;
function Su(e, t, n) {
  return t == null ? Dl : yn(t, n, Ls, !0);
}
function nr(e, t, n, l) {
  return t == null ? Dl : _n(t, n, e.scales[l].log, !1);
}
const Mu = nr;
function sr(e, t, n, l) {
  return t == null ? Dl : Es(t, n, e.scales[l].log, !1);
}
const Tu = sr;
function Au(e, t, n, l, s) {
  let r = Ye(Ri(e), Ri(t)), a = t - e, p = vt(s / l * a, n);
  do {
    let f = n[p], d = l * f / a;
    if (d >= s && r + (f < 5 ? Wt.get(f) : 0) <= 17)
      return [f, d];
  } while (++p < n.length);
  return [0, 0];
}
function no(e) {
  let t, n;
  return e = e.replace(/(\d+)px/, (l, s) => (t = Ee((n = +s) * oe)) + "px"), [e, t, n];
}
function Eu(e) {
  e.show && [e.font, e.labelFont].forEach((t) => {
    let n = pe(t[2] * oe, 1);
    t[0] = t[0].replace(/[0-9.]+px/, n + "px"), t[1] = n;
  });
}
function Ie(e, t, n) {
  const l = {
    mode: se(e.mode, 1)
  }, s = l.mode;
  function r(i, o, c, u) {
    let h = o.valToPct(i);
    return u + c * (o.dir == -1 ? 1 - h : h);
  }
  function a(i, o, c, u) {
    let h = o.valToPct(i);
    return u + c * (o.dir == -1 ? h : 1 - h);
  }
  function p(i, o, c, u) {
    return o.ori == 0 ? r(i, o, c, u) : a(i, o, c, u);
  }
  l.valToPosH = r, l.valToPosV = a;
  let f = !1;
  l.status = 0;
  const d = l.root = ft(Na);
  if (e.id != null && (d.id = e.id), lt(d, e.class), e.title) {
    let i = ft(Oa, d);
    i.textContent = e.title;
  }
  const v = bt("canvas"), g = l.ctx = v.getContext("2d"), w = ft(Ba, d);
  sl("click", w, (i) => {
    i.target === D && (de != xl || ye != kl) && Oe.click(l, i);
  }, !0);
  const E = l.under = ft(Fa, w);
  w.appendChild(v);
  const D = l.over = ft(Ia, w);
  e = $l(e);
  const V = +se(e.pxAlign, 1), I = Xi(V);
  (e.plugins || []).forEach((i) => {
    i.opts && (e = i.opts(l, e) || e);
  });
  const S = e.ms || 1e-3, _ = l.series = s == 1 ? lo(e.series || [], Ui, Zi, !1) : ku(e.series || [null], Ji), F = l.axes = lo(e.axes || [], ji, qi, !0), M = l.scales = {}, K = l.bands = e.bands || [];
  K.forEach((i) => {
    i.fill = ee(i.fill || null), i.dir = se(i.dir, -1);
  });
  const C = s == 2 ? _[1].facets[0].scale : _[0].scale, J = {
    axes: yr,
    series: mr
  }, U = (e.drawOrder || ["axes", "series"]).map((i) => J[i]);
  function X(i) {
    const o = i.distr == 3 ? (c) => Ct(c > 0 ? c : i.clamp(l, c, i.min, i.max, i.key)) : i.distr == 4 ? (c) => os(c, i.asinh) : i.distr == 100 ? (c) => i.fwd(c) : (c) => c;
    return (c) => {
      let u = o(c), { _min: h, _max: m } = i, b = m - h;
      return (u - h) / b;
    };
  }
  function j(i) {
    let o = M[i];
    if (o == null) {
      let c = (e.scales || tn)[i] || tn;
      if (c.from != null) {
        j(c.from);
        let u = Me({}, M[c.from], c, { key: i });
        u.valToPct = X(u), M[i] = u;
      } else {
        o = M[i] = Me({}, i == C ? Uo : uu, c), o.key = i;
        let u = o.time, h = o.range, m = It(h);
        if ((i != C || s == 2 && !u) && (m && (h[0] == null || h[1] == null) && (h = {
          min: h[0] == null ? Di : {
            mode: 1,
            hard: h[0],
            soft: h[0]
          },
          max: h[1] == null ? Di : {
            mode: 1,
            hard: h[1],
            soft: h[1]
          }
        }, m = !1), !m && Mn(h))) {
          let b = h;
          h = (y, k, A) => k == null ? Dl : yn(k, A, b);
        }
        o.range = ee(h || (u ? _u : i == C ? o.distr == 3 ? Mu : o.distr == 4 ? Tu : lr : o.distr == 3 ? nr : o.distr == 4 ? sr : Su)), o.auto = ee(m ? !1 : o.auto), o.clamp = ee(o.clamp || cu), o._min = o._max = null, o.valToPct = X(o);
      }
    }
  }
  j("x"), j("y"), s == 1 && _.forEach((i) => {
    j(i.scale);
  }), F.forEach((i) => {
    j(i.scale);
  });
  for (let i in e.scales)
    j(i);
  const T = M[C], q = T.distr;
  let R, W;
  T.ori == 0 ? (lt(d, za), R = r, W = a) : (lt(d, Va), R = a, W = r);
  const B = {};
  for (let i in M) {
    let o = M[i];
    (o.min != null || o.max != null) && (B[i] = { min: o.min, max: o.max }, o.min = o.max = null);
  }
  const te = e.tzDate || ((i) => new Date(Ee(i / S))), O = e.fmtDate || $s, qe = S == 1 ? zc(te) : Bc(te), be = Gi(te, Ii(S == 1 ? Nc : Oc, O)), le = Hi(te, Wi(Ic, O)), ce = [], Z = l.legend = Me({}, Hc, e.legend), N = l.cursor = Me({}, Jc, { drag: { y: s == 2 } }, e.cursor), Te = Z.show, Ge = N.show, ve = Z.markers;
  Z.idxs = ce, ve.width = ee(ve.width), ve.dash = ee(ve.dash), ve.stroke = ee(ve.stroke), ve.fill = ee(ve.fill);
  let re, ht, Ze, xe = [], xt = [], Lt, it = !1, Nt = {};
  if (Z.live) {
    const i = _[1] ? _[1].values : null;
    it = i != null, Lt = it ? i(l, 1, 0) : { _: 0 };
    for (let o in Lt)
      Nt[o] = Ts;
  }
  if (Te)
    if (re = bt("table", Ya, d), Ze = bt("tbody", null, re), Z.mount(l, re), it) {
      ht = bt("thead", null, re, Ze);
      let i = bt("tr", null, ht);
      bt("th", null, i);
      for (var rl in Lt)
        bt("th", bi, i).textContent = rl;
    } else
      lt(re, Ka), Z.live && lt(re, qa);
  const al = { show: !0 }, Ol = { show: !1 };
  function nn(i, o) {
    if (o == 0 && (it || !Z.live || s == 2))
      return Dl;
    let c = [], u = bt("tr", Ja, Ze, Ze.childNodes[o]);
    lt(u, i.class), i.show || lt(u, ll);
    let h = bt("th", null, u);
    if (ve.show) {
      let y = ft(Za, h);
      if (o > 0) {
        let k = ve.width(l, o);
        k && (y.style.border = k + "px " + ve.dash(l, o) + " " + ve.stroke(l, o)), y.style.background = ve.fill(l, o);
      }
    }
    let m = ft(bi, h);
    i.label instanceof HTMLElement ? m.appendChild(i.label) : m.textContent = i.label, o > 0 && (ve.show || (m.style.color = i.width > 0 ? ve.stroke(l, o) : ve.fill(l, o)), We("click", h, (y) => {
      if (N._lock)
        return;
      Kt(y);
      let k = _.indexOf(i);
      if ((y.ctrlKey || y.metaKey) != Z.isolate) {
        let A = _.some((L, $) => $ > 0 && $ != k && L.show);
        _.forEach((L, $) => {
          $ > 0 && St($, A ? $ == k ? al : Ol : al, !0, Se.setSeries);
        });
      } else
        St(k, { show: !i.show }, !0, Se.setSeries);
    }, !1), pl && We(ki, h, (y) => {
      N._lock || (Kt(y), St(_.indexOf(i), Sl, !0, Se.setSeries));
    }, !1));
    for (var b in Lt) {
      let y = bt("td", Qa, u);
      y.textContent = "--", c.push(y);
    }
    return [u, c];
  }
  const Ht = /* @__PURE__ */ new Map();
  function We(i, o, c, u = !0) {
    const h = Ht.get(o) || {}, m = N.bind[i](l, o, c, u);
    m && (sl(i, o, h[i] = m), Ht.set(o, h));
  }
  function cl(i, o, c) {
    const u = Ht.get(o) || {};
    for (let h in u)
      (i == null || h == i) && (hs(h, o, u[h]), delete u[h]);
    i == null && Ht.delete(o);
  }
  let Pt = 0, jt = 0, Y = 0, P = 0, he = 0, Ae = 0, ul = he, Ut = Ae, kt = Y, Yt = P, Qe = 0, ot = 0, Ke = 0, dt = 0;
  l.bbox = {};
  let Pn = !1, sn = !1, fl = !1, qt = !1, on = !1, rt = !1;
  function Dn(i, o, c) {
    (c || i != l.width || o != l.height) && Bs(i, o), wl(!1), fl = !0, sn = !0, bl();
  }
  function Bs(i, o) {
    l.width = Pt = Y = i, l.height = jt = P = o, he = Ae = 0, ar(), cr();
    let c = l.bbox;
    Qe = c.left = el(he * oe, 0.5), ot = c.top = el(Ae * oe, 0.5), Ke = c.width = el(Y * oe, 0.5), dt = c.height = el(P * oe, 0.5);
  }
  const ir = 3;
  function or() {
    let i = !1, o = 0;
    for (; !i; ) {
      o++;
      let c = br(o), u = vr(o);
      i = o == ir || c && u, i || (Bs(l.width, l.height), sn = !0);
    }
  }
  function rr({ width: i, height: o }) {
    Dn(i, o);
  }
  l.setSize = rr;
  function ar() {
    let i = !1, o = !1, c = !1, u = !1;
    F.forEach((h, m) => {
      if (h.show && h._show) {
        let { side: b, _size: y } = h, k = b % 2, A = h.label != null ? h.labelSize : 0, L = y + A;
        L > 0 && (k ? (Y -= L, b == 3 ? (he += L, u = !0) : c = !0) : (P -= L, b == 0 ? (Ae += L, i = !0) : o = !0));
      }
    }), Jt[0] = i, Jt[1] = c, Jt[2] = o, Jt[3] = u, Y -= zt[1] + zt[3], he += zt[3], P -= zt[2] + zt[0], Ae += zt[0];
  }
  function cr() {
    let i = he + Y, o = Ae + P, c = he, u = Ae;
    function h(m, b) {
      switch (m) {
        case 1:
          return i += b, i - b;
        case 2:
          return o += b, o - b;
        case 3:
          return c -= b, c + b;
        case 0:
          return u -= b, u + b;
      }
    }
    F.forEach((m, b) => {
      if (m.show && m._show) {
        let y = m.side;
        m._pos = h(y, m._size), m.label != null && (m._lpos = h(y, m.labelSize));
      }
    });
  }
  if (N.dataIdx == null) {
    let i = N.hover, o = i.skip = new Set(i.skip ?? []);
    o.add(void 0);
    let c = i.prox = ee(i.prox), u = i.bias ??= 0;
    N.dataIdx = (h, m, b, y) => {
      if (m == 0)
        return b;
      let k = b, A = c(h, m, b, y) ?? fe, L = A >= 0 && A < fe, $ = T.ori == 0 ? Y : P, H = N.left, ie = t[0], ne = t[m];
      if (o.has(ne[b])) {
        k = null;
        let Q = null, G = null, z;
        if (u == 0 || u == -1)
          for (z = b; Q == null && z-- > 0; )
            o.has(ne[z]) || (Q = z);
        if (u == 0 || u == 1)
          for (z = b; G == null && z++ < ne.length; )
            o.has(ne[z]) || (G = z);
        if (Q != null || G != null)
          if (L) {
            let ge = Q == null ? -1 / 0 : R(ie[Q], T, $, 0), ke = G == null ? 1 / 0 : R(ie[G], T, $, 0), ze = H - ge, ue = ke - H;
            ze <= ue ? ze <= A && (k = Q) : ue <= A && (k = G);
          } else
            k = G == null ? Q : Q == null ? G : b - Q <= G - b ? Q : G;
      } else L && Le(H - R(ie[b], T, $, 0)) > A && (k = null);
      return k;
    };
  }
  const Kt = (i) => {
    N.event = i;
  };
  N.idxs = ce, N._lock = !1;
  let Fe = N.points;
  Fe.show = ee(Fe.show), Fe.size = ee(Fe.size), Fe.stroke = ee(Fe.stroke), Fe.width = ee(Fe.width), Fe.fill = ee(Fe.fill);
  const _t = l.focus = Me({}, e.focus || { alpha: 0.3 }, N.focus), pl = _t.prox >= 0, hl = pl && Fe.one;
  let at = [], dl = [], ml = [];
  function Fs(i, o) {
    let c = Fe.show(l, o);
    if (c instanceof HTMLElement)
      return lt(c, Ua), lt(c, i.class), Et(c, -10, -10, Y, P), D.insertBefore(c, at[o]), c;
  }
  function Is(i, o) {
    if (s == 1 || o > 0) {
      let c = s == 1 && M[i.scale].time, u = i.value;
      i.value = c ? Vi(u) ? Hi(te, Wi(u, O)) : u || le : u || ou, i.label = i.label || (c ? Qc : Zc);
    }
    if (hl || o > 0) {
      i.width = i.width == null ? 1 : i.width, i.paths = i.paths || yu || uc, i.fillTo = ee(i.fillTo || fu), i.pxAlign = +se(i.pxAlign, V), i.pxRound = Xi(i.pxAlign), i.stroke = ee(i.stroke || null), i.fill = ee(i.fill || null), i._stroke = i._fill = i._paths = i._focus = null;
      let c = ru(Ye(1, i.width), 1), u = i.points = Me({}, {
        size: c,
        width: Ye(1, c * 0.2),
        stroke: i.stroke,
        space: c * 2,
        paths: xu,
        _stroke: null,
        _fill: null
      }, i.points);
      u.show = ee(u.show), u.filter = ee(u.filter), u.fill = ee(u.fill), u.stroke = ee(u.stroke), u.paths = ee(u.paths), u.pxAlign = i.pxAlign;
    }
    if (Te) {
      let c = nn(i, o);
      xe.splice(o, 0, c[0]), xt.splice(o, 0, c[1]), Z.values.push(null);
    }
    if (Ge) {
      ce.splice(o, 0, null);
      let c = null;
      hl ? o == 0 && (c = Fs(i, o)) : o > 0 && (c = Fs(i, o)), at.splice(o, 0, c), dl.splice(o, 0, 0), ml.splice(o, 0, 0);
    }
    Ne("addSeries", o);
  }
  function ur(i, o) {
    o = o ?? _.length, i = s == 1 ? vs(i, o, Ui, Zi) : vs(i, o, {}, Ji), _.splice(o, 0, i), Is(_[o], o);
  }
  l.addSeries = ur;
  function fr(i) {
    if (_.splice(i, 1), Te) {
      Z.values.splice(i, 1), xt.splice(i, 1);
      let o = xe.splice(i, 1)[0];
      cl(null, o.firstChild), o.remove();
    }
    Ge && (ce.splice(i, 1), at.splice(i, 1)[0].remove(), dl.splice(i, 1), ml.splice(i, 1)), Ne("delSeries", i);
  }
  l.delSeries = fr;
  const Jt = [!1, !1, !1, !1];
  function pr(i, o) {
    if (i._show = i.show, i.show) {
      let c = i.side % 2, u = M[i.scale];
      u == null && (i.scale = c ? _[1].scale : C, u = M[i.scale]);
      let h = u.time;
      i.size = ee(i.size), i.space = ee(i.space), i.rotate = ee(i.rotate), It(i.incrs) && i.incrs.forEach((b) => {
        !Wt.has(b) && Wt.set(b, Ao(b));
      }), i.incrs = ee(i.incrs || (u.distr == 2 ? $c : h ? S == 1 ? Rc : Vc : tl)), i.splits = ee(i.splits || (h && u.distr == 1 ? qe : u.distr == 3 ? ms : u.distr == 4 ? tu : eu)), i.stroke = ee(i.stroke), i.grid.stroke = ee(i.grid.stroke), i.ticks.stroke = ee(i.ticks.stroke), i.border.stroke = ee(i.border.stroke);
      let m = i.values;
      i.values = // static array of tick values
      It(m) && !It(m[0]) ? ee(m) : (
        // temporal
        h ? (
          // config array of fmtDate string tpls
          It(m) ? Gi(te, Ii(m, O)) : (
            // fmtDate string tpl
            Vi(m) ? Fc(te, m) : m || be
          )
        ) : m || Xc
      ), i.filter = ee(i.filter || (u.distr >= 3 && u.log == 10 ? su : u.distr == 3 && u.log == 2 ? iu : Mo)), i.font = no(i.font), i.labelFont = no(i.labelFont), i._size = i.size(l, null, o, 0), i._space = i._rotate = i._incrs = i._found = // foundIncrSpace
      i._splits = i._values = null, i._size > 0 && (Jt[o] = !0, i._el = ft(Ga, w));
    }
  }
  function Bl(i, o, c, u) {
    let [h, m, b, y] = c, k = o % 2, A = 0;
    return k == 0 && (y || m) && (A = o == 0 && !h || o == 2 && !b ? Ee(ji.size / 3) : 0), k == 1 && (h || b) && (A = o == 1 && !m || o == 3 && !y ? Ee(qi.size / 2) : 0), A;
  }
  const Gs = l.padding = (e.padding || [Bl, Bl, Bl, Bl]).map((i) => ee(se(i, Bl))), zt = l._padding = Gs.map((i, o) => i(l, o, Jt, 0));
  let Ve, De = null, $e = null;
  const rn = s == 1 ? _[0].idxs : null;
  let mt = null, Fl = !1;
  function Ws(i, o) {
    if (t = i ?? [], l.data = l._data = t, s == 2) {
      Ve = 0;
      for (let c = 1; c < _.length; c++)
        Ve += t[c][0].length;
    } else {
      t.length == 0 && (l.data = l._data = t = [[]]), mt = t[0], Ve = mt.length;
      let c = t;
      if (q == 2) {
        c = t.slice();
        let u = c[0] = Array(Ve);
        for (let h = 0; h < Ve; h++)
          u[h] = h;
      }
      l._data = t = c;
    }
    if (wl(!0), Ne("setData"), q == 2 && (fl = !0), o !== !1) {
      let c = T;
      c.auto(l, Fl) ? $n() : Ot(C, c.min, c.max), qt = qt || N.left >= 0, rt = !0, bl();
    }
  }
  l.setData = Ws;
  function $n() {
    Fl = !0;
    let i, o;
    s == 1 && (Ve > 0 ? (De = rn[0] = 0, $e = rn[1] = Ve - 1, i = t[0][De], o = t[0][$e], q == 2 ? (i = De, o = $e) : i == o && (q == 3 ? [i, o] = _n(i, i, T.log, !1) : q == 4 ? [i, o] = Es(i, i, T.log, !1) : T.time ? o = i + Ee(86400 / S) : [i, o] = yn(i, o, Ls, !0))) : (De = rn[0] = i = null, $e = rn[1] = o = null)), Ot(C, i, o);
  }
  let an, gl, Cn, Rn, Nn, zn, Vn, On, Bn, Je;
  function Hs(i, o, c, u, h, m) {
    i ??= yi, c ??= Ds, u ??= "butt", h ??= yi, m ??= "round", i != an && (g.strokeStyle = an = i), h != gl && (g.fillStyle = gl = h), o != Cn && (g.lineWidth = Cn = o), m != Nn && (g.lineJoin = Nn = m), u != zn && (g.lineCap = zn = u), c != Rn && g.setLineDash(Rn = c);
  }
  function js(i, o, c, u) {
    o != gl && (g.fillStyle = gl = o), i != Vn && (g.font = Vn = i), c != On && (g.textAlign = On = c), u != Bn && (g.textBaseline = Bn = u);
  }
  function Fn(i, o, c, u, h = 0) {
    if (u.length > 0 && i.auto(l, Fl) && (o == null || o.min == null)) {
      let m = se(De, 0), b = se($e, u.length - 1), y = c.min == null ? sc(u, m, b, h, i.distr == 3) : [c.min, c.max];
      i.min = yt(i.min, c.min = y[0]), i.max = Ye(i.max, c.max = y[1]);
    }
  }
  const Us = { min: null, max: null };
  function hr() {
    for (let u in M) {
      let h = M[u];
      B[u] == null && // scales that have never been set (on init)
      (h.min == null || // or auto scales when the x scale was explicitly set
      B[C] != null && h.auto(l, Fl)) && (B[u] = Us);
    }
    for (let u in M) {
      let h = M[u];
      B[u] == null && h.from != null && B[h.from] != null && (B[u] = Us);
    }
    B[C] != null && wl(!0);
    let i = {};
    for (let u in B) {
      let h = B[u];
      if (h != null) {
        let m = i[u] = $l(M[u], hc);
        if (h.min != null)
          Me(m, h);
        else if (u != C || s == 2)
          if (Ve == 0 && m.from == null) {
            let b = m.range(l, null, null, u);
            m.min = b[0], m.max = b[1];
          } else
            m.min = fe, m.max = -fe;
      }
    }
    if (Ve > 0) {
      _.forEach((u, h) => {
        if (s == 1) {
          let m = u.scale, b = B[m];
          if (b == null)
            return;
          let y = i[m];
          if (h == 0) {
            let k = y.range(l, y.min, y.max, m);
            y.min = k[0], y.max = k[1], De = vt(y.min, t[0]), $e = vt(y.max, t[0]), $e - De > 1 && (t[0][De] < y.min && De++, t[0][$e] > y.max && $e--), u.min = mt[De], u.max = mt[$e];
          } else u.show && u.auto && Fn(y, b, u, t[h], u.sorted);
          u.idxs[0] = De, u.idxs[1] = $e;
        } else if (h > 0 && u.show && u.auto) {
          let [m, b] = u.facets, y = m.scale, k = b.scale, [A, L] = t[h], $ = i[y], H = i[k];
          $ != null && Fn($, B[y], m, A, m.sorted), H != null && Fn(H, B[k], b, L, b.sorted), u.min = b.min, u.max = b.max;
        }
      });
      for (let u in i) {
        let h = i[u], m = B[u];
        if (h.from == null && (m == null || m.min == null)) {
          let b = h.range(
            l,
            h.min == fe ? null : h.min,
            h.max == -fe ? null : h.max,
            u
          );
          h.min = b[0], h.max = b[1];
        }
      }
    }
    for (let u in i) {
      let h = i[u];
      if (h.from != null) {
        let m = i[h.from];
        if (m.min == null)
          h.min = h.max = null;
        else {
          let b = h.range(l, m.min, m.max, u);
          h.min = b[0], h.max = b[1];
        }
      }
    }
    let o = {}, c = !1;
    for (let u in i) {
      let h = i[u], m = M[u];
      if (m.min != h.min || m.max != h.max) {
        m.min = h.min, m.max = h.max;
        let b = m.distr;
        m._min = b == 3 ? Ct(m.min) : b == 4 ? os(m.min, m.asinh) : b == 100 ? m.fwd(m.min) : m.min, m._max = b == 3 ? Ct(m.max) : b == 4 ? os(m.max, m.asinh) : b == 100 ? m.fwd(m.max) : m.max, o[u] = c = !0;
      }
    }
    if (c) {
      _.forEach((u, h) => {
        s == 2 ? h > 0 && o.y && (u._paths = null) : o[u.scale] && (u._paths = null);
      });
      for (let u in o)
        fl = !0, Ne("setScale", u);
      Ge && N.left >= 0 && (qt = rt = !0);
    }
    for (let u in B)
      B[u] = null;
  }
  function dr(i) {
    let o = ds(De - 1, 0, Ve - 1), c = ds($e + 1, 0, Ve - 1);
    for (; i[o] == null && o > 0; )
      o--;
    for (; i[c] == null && c < Ve - 1; )
      c++;
    return [o, c];
  }
  function mr() {
    if (Ve > 0) {
      let i = _.some((o) => o._focus) && Je != _t.alpha;
      i && (g.globalAlpha = Je = _t.alpha), _.forEach((o, c) => {
        if (c > 0 && o.show && (Ys(c, !1), Ys(c, !0), o._paths == null)) {
          let u = Je;
          Je != o.alpha && (g.globalAlpha = Je = o.alpha);
          let h = s == 2 ? [0, t[c][0].length - 1] : dr(t[c]);
          o._paths = o.paths(l, c, h[0], h[1]), Je != u && (g.globalAlpha = Je = u);
        }
      }), _.forEach((o, c) => {
        if (c > 0 && o.show) {
          let u = Je;
          Je != o.alpha && (g.globalAlpha = Je = o.alpha), o._paths != null && qs(c, !1);
          {
            let h = o._paths != null ? o._paths.gaps : null, m = o.points.show(l, c, De, $e, h), b = o.points.filter(l, c, m, h);
            (m || b) && (o.points._paths = o.points.paths(l, c, De, $e, b), qs(c, !0));
          }
          Je != u && (g.globalAlpha = Je = u), Ne("drawSeries", c);
        }
      }), i && (g.globalAlpha = Je = 1);
    }
  }
  function Ys(i, o) {
    let c = o ? _[i].points : _[i];
    c._stroke = c.stroke(l, i), c._fill = c.fill(l, i);
  }
  function qs(i, o) {
    let c = o ? _[i].points : _[i], {
      stroke: u,
      fill: h,
      clip: m,
      flags: b,
      _stroke: y = c._stroke,
      _fill: k = c._fill,
      _width: A = c.width
    } = c._paths;
    A = pe(A * oe, 3);
    let L = null, $ = A % 2 / 2;
    o && k == null && (k = A > 0 ? "#fff" : y);
    let H = c.pxAlign == 1 && $ > 0;
    if (H && g.translate($, $), !o) {
      let ie = Qe - A / 2, ne = ot - A / 2, Q = Ke + A, G = dt + A;
      L = new Path2D(), L.rect(ie, ne, Q, G);
    }
    o ? In(y, A, c.dash, c.cap, k, u, h, b, m) : gr(i, y, A, c.dash, c.cap, k, u, h, b, L, m), H && g.translate(-$, -$);
  }
  function gr(i, o, c, u, h, m, b, y, k, A, L) {
    let $ = !1;
    k != 0 && K.forEach((H, ie) => {
      if (H.series[0] == i) {
        let ne = _[H.series[1]], Q = t[H.series[1]], G = (ne._paths || tn).band;
        It(G) && (G = H.dir == 1 ? G[0] : G[1]);
        let z, ge = null;
        ne.show && G && oc(Q, De, $e) ? (ge = H.fill(l, ie) || m, z = ne._paths.clip) : G = null, In(o, c, u, h, ge, b, y, k, A, L, z, G), $ = !0;
      }
    }), $ || In(o, c, u, h, m, b, y, k, A, L);
  }
  const Ks = Cl | ws;
  function In(i, o, c, u, h, m, b, y, k, A, L, $) {
    Hs(i, o, c, u, h), (k || A || $) && (g.save(), k && g.clip(k), A && g.clip(A)), $ ? (y & Ks) == Ks ? (g.clip($), L && g.clip(L), un(h, b), cn(i, m, o)) : y & ws ? (un(h, b), g.clip($), cn(i, m, o)) : y & Cl && (g.save(), g.clip($), L && g.clip(L), un(h, b), g.restore(), cn(i, m, o)) : (un(h, b), cn(i, m, o)), (k || A || $) && g.restore();
  }
  function cn(i, o, c) {
    c > 0 && (o instanceof Map ? o.forEach((u, h) => {
      g.strokeStyle = an = h, g.stroke(u);
    }) : o != null && i && g.stroke(o));
  }
  function un(i, o) {
    o instanceof Map ? o.forEach((c, u) => {
      g.fillStyle = gl = u, g.fill(c);
    }) : o != null && i && g.fill(o);
  }
  function wr(i, o, c, u) {
    let h = F[i], m;
    if (u <= 0)
      m = [0, 0];
    else {
      let b = h._space = h.space(l, i, o, c, u), y = h._incrs = h.incrs(l, i, o, c, u, b);
      m = Au(o, c, y, u, b);
    }
    return h._found = m;
  }
  function Gn(i, o, c, u, h, m, b, y, k, A) {
    let L = b % 2 / 2;
    V == 1 && g.translate(L, L), Hs(y, b, k, A, y), g.beginPath();
    let $, H, ie, ne, Q = h + (u == 0 || u == 3 ? -m : m);
    c == 0 ? (H = h, ne = Q) : ($ = h, ie = Q);
    for (let G = 0; G < i.length; G++)
      o[G] != null && (c == 0 ? $ = ie = i[G] : H = ne = i[G], g.moveTo($, H), g.lineTo(ie, ne));
    g.stroke(), V == 1 && g.translate(-L, -L);
  }
  function br(i) {
    let o = !0;
    return F.forEach((c, u) => {
      if (!c.show)
        return;
      let h = M[c.scale];
      if (h.min == null) {
        c._show && (o = !1, c._show = !1, wl(!1));
        return;
      } else
        c._show || (o = !1, c._show = !0, wl(!1));
      let m = c.side, b = m % 2, { min: y, max: k } = h, [A, L] = wr(u, y, k, b == 0 ? Y : P);
      if (L == 0)
        return;
      let $ = h.distr == 2, H = c._splits = c.splits(l, u, y, k, A, L, $), ie = h.distr == 2 ? H.map((z) => mt[z]) : H, ne = h.distr == 2 ? mt[H[1]] - mt[H[0]] : A, Q = c._values = c.values(l, c.filter(l, ie, u, L, ne), u, L, ne);
      c._rotate = m == 2 ? c.rotate(l, Q, u, L) : 0;
      let G = c._size;
      c._size = pt(c.size(l, Q, u, i)), G != null && c._size != G && (o = !1);
    }), o;
  }
  function vr(i) {
    let o = !0;
    return Gs.forEach((c, u) => {
      let h = c(l, u, Jt, i);
      h != zt[u] && (o = !1), zt[u] = h;
    }), o;
  }
  function yr() {
    for (let i = 0; i < F.length; i++) {
      let o = F[i];
      if (!o.show || !o._show)
        continue;
      let c = o.side, u = c % 2, h, m, b = o.stroke(l, i), y = c == 0 || c == 3 ? -1 : 1, [k, A] = o._found;
      if (o.label != null) {
        let je = o.labelGap * y, tt = Ee((o._lpos + je) * oe);
        js(o.labelFont[0], b, "center", c == 2 ? Ul : vi), g.save(), u == 1 ? (h = m = 0, g.translate(
          tt,
          Ee(ot + dt / 2)
        ), g.rotate((c == 3 ? -bn : bn) / 2)) : (h = Ee(Qe + Ke / 2), m = tt);
        let Xt = _o(o.label) ? o.label(l, i, k, A) : o.label;
        g.fillText(Xt, h, m), g.restore();
      }
      if (A == 0)
        continue;
      let L = M[o.scale], $ = u == 0 ? Ke : dt, H = u == 0 ? Qe : ot, ie = o._splits, ne = L.distr == 2 ? ie.map((je) => mt[je]) : ie, Q = L.distr == 2 ? mt[ie[1]] - mt[ie[0]] : k, G = o.ticks, z = o.border, ge = G.show ? G.size : 0, ke = Ee(ge * oe), ze = Ee((o.alignTo == 2 ? o._size - ge - o.gap : o.gap) * oe), ue = o._rotate * -bn / 180, _e = I(o._pos * oe), Xe = (ke + ze) * y, He = _e + Xe;
      m = u == 0 ? He : 0, h = u == 1 ? He : 0;
      let ct = o.font[0], gt = o.align == 1 ? Tl : o.align == 2 ? ns : ue > 0 ? Tl : ue < 0 ? ns : u == 0 ? "center" : c == 3 ? ns : Tl, Tt = ue || u == 1 ? "middle" : c == 2 ? Ul : vi;
      js(ct, b, gt, Tt);
      let et = o.font[1] * o.lineGap, ut = ie.map((je) => I(p(je, L, $, H))), wt = o._values;
      for (let je = 0; je < wt.length; je++) {
        let tt = wt[je];
        if (tt != null) {
          u == 0 ? h = ut[je] : m = ut[je], tt = "" + tt;
          let Xt = tt.indexOf(`
`) == -1 ? [tt] : tt.split(/\n/gm);
          for (let Ue = 0; Ue < Xt.length; Ue++) {
            let di = Xt[Ue];
            ue ? (g.save(), g.translate(h, m + Ue * et), g.rotate(ue), g.fillText(di, 0, 0), g.restore()) : g.fillText(di, h, m + Ue * et);
          }
        }
      }
      G.show && Gn(
        ut,
        G.filter(l, ne, i, A, Q),
        u,
        c,
        _e,
        ke,
        pe(G.width * oe, 3),
        G.stroke(l, i),
        G.dash,
        G.cap
      );
      let At = o.grid;
      At.show && Gn(
        ut,
        At.filter(l, ne, i, A, Q),
        u,
        u == 0 ? 2 : 1,
        u == 0 ? ot : Qe,
        u == 0 ? dt : Ke,
        pe(At.width * oe, 3),
        At.stroke(l, i),
        At.dash,
        At.cap
      ), z.show && Gn(
        [_e],
        [1],
        u == 0 ? 1 : 0,
        u == 0 ? 1 : 2,
        u == 1 ? ot : Qe,
        u == 1 ? dt : Ke,
        pe(z.width * oe, 3),
        z.stroke(l, i),
        z.dash,
        z.cap
      );
    }
    Ne("drawAxes");
  }
  function wl(i) {
    _.forEach((o, c) => {
      c > 0 && (o._paths = null, i && (s == 1 ? (o.min = null, o.max = null) : o.facets.forEach((u) => {
        u.min = null, u.max = null;
      })));
    });
  }
  let fn = !1, Wn = !1, Il = [];
  function xr() {
    Wn = !1;
    for (let i = 0; i < Il.length; i++)
      Ne(...Il[i]);
    Il.length = 0;
  }
  function bl() {
    fn || (yc(Js), fn = !0);
  }
  function kr(i, o = !1) {
    fn = !0, Wn = o, i(l), Js(), o && Il.length > 0 && queueMicrotask(xr);
  }
  l.batch = kr;
  function Js() {
    if (Pn && (hr(), Pn = !1), fl && (or(), fl = !1), sn) {
      if (we(E, Tl, he), we(E, Ul, Ae), we(E, ql, Y), we(E, Kl, P), we(D, Tl, he), we(D, Ul, Ae), we(D, ql, Y), we(D, Kl, P), we(w, ql, Pt), we(w, Kl, jt), v.width = Ee(Pt * oe), v.height = Ee(jt * oe), F.forEach(({ _el: i, _show: o, _size: c, _pos: u, side: h }) => {
        if (i != null)
          if (o) {
            let m = h === 3 || h === 0 ? c : 0, b = h % 2 == 1;
            we(i, b ? "left" : "top", u - m), we(i, b ? "width" : "height", c), we(i, b ? "top" : "left", b ? Ae : he), we(i, b ? "height" : "width", b ? P : Y), ps(i, ll);
          } else
            lt(i, ll);
      }), an = gl = Cn = Nn = zn = Vn = On = Bn = Rn = null, Je = 1, Hl(!0), he != ul || Ae != Ut || Y != kt || P != Yt) {
        wl(!1);
        let i = Y / kt, o = P / Yt;
        if (Ge && !qt && N.left >= 0) {
          N.left *= i, N.top *= o, vl && Et(vl, Ee(N.left), 0, Y, P), yl && Et(yl, 0, Ee(N.top), Y, P);
          for (let c = 0; c < at.length; c++) {
            let u = at[c];
            u != null && (dl[c] *= i, ml[c] *= o, Et(u, pt(dl[c]), pt(ml[c]), Y, P));
          }
        }
        if (me.show && !on && me.left >= 0 && me.width > 0) {
          me.left *= i, me.width *= i, me.top *= o, me.height *= o;
          for (let c in Kn)
            we(_l, c, me[c]);
        }
        ul = he, Ut = Ae, kt = Y, Yt = P;
      }
      Ne("setSize"), sn = !1;
    }
    Pt > 0 && jt > 0 && (g.clearRect(0, 0, v.width, v.height), Ne("drawClear"), U.forEach((i) => i()), Ne("draw")), me.show && on && (pn(me), on = !1), Ge && qt && (Qt(null, !0, !1), qt = !1), Z.show && Z.live && rt && (Yn(), rt = !1), f || (f = !0, l.status = 1, Ne("ready")), Fl = !1, fn = !1;
  }
  l.redraw = (i, o) => {
    fl = o || !1, i !== !1 ? Ot(C, T.min, T.max) : bl();
  };
  function Hn(i, o) {
    let c = M[i];
    if (c.from == null) {
      if (Ve == 0) {
        let u = c.range(l, o.min, o.max, i);
        o.min = u[0], o.max = u[1];
      }
      if (o.min > o.max) {
        let u = o.min;
        o.min = o.max, o.max = u;
      }
      if (Ve > 1 && o.min != null && o.max != null && o.max - o.min < 1e-16)
        return;
      i == C && c.distr == 2 && Ve > 0 && (o.min = vt(o.min, t[0]), o.max = vt(o.max, t[0]), o.min == o.max && o.max++), B[i] = o, Pn = !0, bl();
    }
  }
  l.setScale = Hn;
  let jn, Un, vl, yl, Zs, Qs, xl, kl, Xs, ei, de, ye, Vt = !1;
  const Oe = N.drag;
  let Ce = Oe.x, Re = Oe.y;
  Ge && (N.x && (jn = ft(Ha, D)), N.y && (Un = ft(ja, D)), T.ori == 0 ? (vl = jn, yl = Un) : (vl = Un, yl = jn), de = N.left, ye = N.top);
  const me = l.select = Me({
    show: !0,
    over: !0,
    left: 0,
    width: 0,
    top: 0,
    height: 0
  }, e.select), _l = me.show ? ft(Wa, me.over ? D : E) : null;
  function pn(i, o) {
    if (me.show) {
      for (let c in i)
        me[c] = i[c], c in Kn && we(_l, c, i[c]);
      o !== !1 && Ne("setSelect");
    }
  }
  l.setSelect = pn;
  function _r(i) {
    if (_[i].show)
      Te && ps(xe[i], ll);
    else if (Te && lt(xe[i], ll), Ge) {
      let c = hl ? at[0] : at[i];
      c != null && Et(c, -10, -10, Y, P);
    }
  }
  function Ot(i, o, c) {
    Hn(i, { min: o, max: c });
  }
  function St(i, o, c, u) {
    o.focus != null && Er(i), o.show != null && _.forEach((h, m) => {
      m > 0 && (i == m || i == null) && (h.show = o.show, _r(m), s == 2 ? (Ot(h.facets[0].scale, null, null), Ot(h.facets[1].scale, null, null)) : Ot(h.scale, null, null), bl());
    }), c !== !1 && Ne("setSeries", i, o), u && jl("setSeries", l, i, o);
  }
  l.setSeries = St;
  function Sr(i, o) {
    Me(K[i], o);
  }
  function Mr(i, o) {
    i.fill = ee(i.fill || null), i.dir = se(i.dir, -1), o = o ?? K.length, K.splice(o, 0, i);
  }
  function Tr(i) {
    i == null ? K.length = 0 : K.splice(i, 1);
  }
  l.addBand = Mr, l.setBand = Sr, l.delBand = Tr;
  function Ar(i, o) {
    _[i].alpha = o, Ge && at[i] != null && (at[i].style.opacity = o), Te && xe[i] && (xe[i].style.opacity = o);
  }
  let Dt, Bt, Zt;
  const Sl = { focus: !0 };
  function Er(i) {
    if (i != Zt) {
      let o = i == null, c = _t.alpha != 1;
      _.forEach((u, h) => {
        if (s == 1 || h > 0) {
          let m = o || h == 0 || h == i;
          u._focus = o ? null : m, c && Ar(h, m ? 1 : _t.alpha);
        }
      }), Zt = i, c && bl();
    }
  }
  Te && pl && We(_i, re, (i) => {
    N._lock || (Kt(i), Zt != null && St(null, Sl, !0, Se.setSeries));
  });
  function Mt(i, o, c) {
    let u = M[o];
    c && (i = i / oe - (u.ori == 1 ? Ae : he));
    let h = Y;
    u.ori == 1 && (h = P, i = h - i), u.dir == -1 && (i = h - i);
    let m = u._min, b = u._max, y = i / h, k = m + (b - m) * y, A = u.distr;
    return A == 3 ? Pl(10, k) : A == 4 ? ac(k, u.asinh) : A == 100 ? u.bwd(k) : k;
  }
  function Lr(i, o) {
    let c = Mt(i, C, o);
    return vt(c, t[0], De, $e);
  }
  l.valToIdx = (i) => vt(i, t[0]), l.posToIdx = Lr, l.posToVal = Mt, l.valToPos = (i, o, c) => M[o].ori == 0 ? r(
    i,
    M[o],
    c ? Ke : Y,
    c ? Qe : 0
  ) : a(
    i,
    M[o],
    c ? dt : P,
    c ? ot : 0
  ), l.setCursor = (i, o, c) => {
    de = i.left, ye = i.top, Qt(null, o, c);
  };
  function ti(i, o) {
    we(_l, Tl, me.left = i), we(_l, ql, me.width = o);
  }
  function li(i, o) {
    we(_l, Ul, me.top = i), we(_l, Kl, me.height = o);
  }
  let Gl = T.ori == 0 ? ti : li, Wl = T.ori == 1 ? ti : li;
  function Pr() {
    if (Te && Z.live)
      for (let i = s == 2 ? 1 : 0; i < _.length; i++) {
        if (i == 0 && it)
          continue;
        let o = Z.values[i], c = 0;
        for (let u in o)
          xt[i][c++].firstChild.nodeValue = o[u];
      }
  }
  function Yn(i, o) {
    if (i != null && (i.idxs ? i.idxs.forEach((c, u) => {
      ce[u] = c;
    }) : pc(i.idx) || ce.fill(i.idx), Z.idx = ce[0]), Te && Z.live) {
      for (let c = 0; c < _.length; c++)
        (c > 0 || s == 1 && !it) && Dr(c, ce[c]);
      Pr();
    }
    rt = !1, o !== !1 && Ne("setLegend");
  }
  l.setLegend = Yn;
  function Dr(i, o) {
    let c = _[i], u = i == 0 && q == 2 ? mt : t[i], h;
    it ? h = c.values(l, i, o) ?? Nt : (h = c.value(l, o == null ? null : u[o], i, o), h = h == null ? Nt : { _: h }), Z.values[i] = h;
  }
  function Qt(i, o, c) {
    Xs = de, ei = ye, [de, ye] = N.move(l, de, ye), N.left = de, N.top = ye, Ge && (vl && Et(vl, Ee(de), 0, Y, P), yl && Et(yl, 0, Ee(ye), Y, P));
    let u, h = De > $e;
    Dt = fe, Bt = null;
    let m = T.ori == 0 ? Y : P, b = T.ori == 1 ? Y : P;
    if (de < 0 || Ve == 0 || h) {
      u = N.idx = null;
      for (let y = 0; y < _.length; y++) {
        let k = at[y];
        k != null && Et(k, -10, -10, Y, P);
      }
      pl && St(null, Sl, !0, i == null && Se.setSeries), Z.live && (ce.fill(u), rt = !0);
    } else {
      let y, k, A;
      s == 1 && (y = T.ori == 0 ? de : ye, k = Mt(y, C), u = N.idx = vt(k, t[0], De, $e), A = R(t[0][u], T, m, 0));
      let L = -10, $ = -10, H = 0, ie = 0, ne = !0, Q = "", G = "";
      for (let z = s == 2 ? 1 : 0; z < _.length; z++) {
        let ge = _[z], ke = ce[z], ze = ke == null ? null : s == 1 ? t[z][ke] : t[z][1][ke], ue = N.dataIdx(l, z, u, k), _e = ue == null ? null : s == 1 ? t[z][ue] : t[z][1][ue];
        if (rt = rt || _e != ze || ue != ke, ce[z] = ue, z > 0 && ge.show) {
          let Xe = ue == null ? -10 : ue == u ? A : R(s == 1 ? t[0][ue] : t[z][0][ue], T, m, 0), He = _e == null ? -10 : W(_e, s == 1 ? M[ge.scale] : M[ge.facets[1].scale], b, 0);
          if (pl && _e != null) {
            let ct = T.ori == 1 ? de : ye, gt = Le(_t.dist(l, z, ue, He, ct));
            if (gt < Dt) {
              let Tt = _t.bias;
              if (Tt != 0) {
                let et = Mt(ct, ge.scale), ut = _e >= 0 ? 1 : -1, wt = et >= 0 ? 1 : -1;
                wt == ut && (wt == 1 ? Tt == 1 ? _e >= et : _e <= et : (
                  // >= 0
                  Tt == 1 ? _e <= et : _e >= et
                )) && (Dt = gt, Bt = z);
              } else
                Dt = gt, Bt = z;
            }
          }
          if (rt || hl) {
            let ct, gt;
            T.ori == 0 ? (ct = Xe, gt = He) : (ct = He, gt = Xe);
            let Tt, et, ut, wt, At, je, tt = !0, Xt = Fe.bbox;
            if (Xt != null) {
              tt = !1;
              let Ue = Xt(l, z);
              ut = Ue.left, wt = Ue.top, Tt = Ue.width, et = Ue.height;
            } else
              ut = ct, wt = gt, Tt = et = Fe.size(l, z);
            if (je = Fe.fill(l, z), At = Fe.stroke(l, z), hl)
              z == Bt && Dt <= _t.prox && (L = ut, $ = wt, H = Tt, ie = et, ne = tt, Q = je, G = At);
            else {
              let Ue = at[z];
              Ue != null && (dl[z] = ut, ml[z] = wt, Pi(Ue, Tt, et, tt), Ei(Ue, je, At), Et(Ue, pt(ut), pt(wt), Y, P));
            }
          }
        }
      }
      if (hl) {
        let z = _t.prox, ge = Zt == null ? Dt <= z : Dt > z || Bt != Zt;
        if (rt || ge) {
          let ke = at[0];
          ke != null && (dl[0] = L, ml[0] = $, Pi(ke, H, ie, ne), Ei(ke, Q, G), Et(ke, pt(L), pt($), Y, P));
        }
      }
    }
    if (me.show && Vt)
      if (i != null) {
        let [y, k] = Se.scales, [A, L] = Se.match, [$, H] = i.cursor.sync.scales, ie = i.cursor.drag;
        if (Ce = ie._x, Re = ie._y, Ce || Re) {
          let { left: ne, top: Q, width: G, height: z } = i.select, ge = i.scales[$].ori, ke = i.posToVal, ze, ue, _e, Xe, He, ct = y != null && A(y, $), gt = k != null && L(k, H);
          ct && Ce ? (ge == 0 ? (ze = ne, ue = G) : (ze = Q, ue = z), _e = M[y], Xe = R(ke(ze, $), _e, m, 0), He = R(ke(ze + ue, $), _e, m, 0), Gl(yt(Xe, He), Le(He - Xe))) : Gl(0, m), gt && Re ? (ge == 1 ? (ze = ne, ue = G) : (ze = Q, ue = z), _e = M[k], Xe = W(ke(ze, H), _e, b, 0), He = W(ke(ze + ue, H), _e, b, 0), Wl(yt(Xe, He), Le(He - Xe))) : Wl(0, b);
        } else
          Jn();
      } else {
        let y = Le(Xs - Zs), k = Le(ei - Qs);
        if (T.ori == 1) {
          let H = y;
          y = k, k = H;
        }
        Ce = Oe.x && y >= Oe.dist, Re = Oe.y && k >= Oe.dist;
        let A = Oe.uni;
        A != null ? Ce && Re && (Ce = y >= A, Re = k >= A, !Ce && !Re && (k > y ? Re = !0 : Ce = !0)) : Oe.x && Oe.y && (Ce || Re) && (Ce = Re = !0);
        let L, $;
        Ce && (T.ori == 0 ? (L = xl, $ = de) : (L = kl, $ = ye), Gl(yt(L, $), Le($ - L)), Re || Wl(0, b)), Re && (T.ori == 1 ? (L = xl, $ = de) : (L = kl, $ = ye), Wl(yt(L, $), Le($ - L)), Ce || Gl(0, m)), !Ce && !Re && (Gl(0, 0), Wl(0, 0));
      }
    if (Oe._x = Ce, Oe._y = Re, i == null) {
      if (c) {
        if (hi != null) {
          let [y, k] = Se.scales;
          Se.values[0] = y != null ? Mt(T.ori == 0 ? de : ye, y) : null, Se.values[1] = k != null ? Mt(T.ori == 1 ? de : ye, k) : null;
        }
        jl(ss, l, de, ye, Y, P, u);
      }
      if (pl) {
        let y = c && Se.setSeries, k = _t.prox;
        Zt == null ? Dt <= k && St(Bt, Sl, !0, y) : Dt > k ? St(null, Sl, !0, y) : Bt != Zt && St(Bt, Sl, !0, y);
      }
    }
    rt && (Z.idx = u, Yn()), o !== !1 && Ne("setCursor");
  }
  let Ft = null;
  Object.defineProperty(l, "rect", {
    get() {
      return Ft == null && Hl(!1), Ft;
    }
  });
  function Hl(i = !1) {
    i ? Ft = null : (Ft = D.getBoundingClientRect(), Ne("syncRect", Ft));
  }
  function ni(i, o, c, u, h, m, b) {
    N._lock || Vt && i != null && i.movementX == 0 && i.movementY == 0 || (qn(i, o, c, u, h, m, b, !1, i != null), i != null ? Qt(null, !0, !0) : Qt(o, !0, !1));
  }
  function qn(i, o, c, u, h, m, b, y, k) {
    if (Ft == null && Hl(!1), Kt(i), i != null)
      c = i.clientX - Ft.left, u = i.clientY - Ft.top;
    else {
      if (c < 0 || u < 0) {
        de = -10, ye = -10;
        return;
      }
      let [A, L] = Se.scales, $ = o.cursor.sync, [H, ie] = $.values, [ne, Q] = $.scales, [G, z] = Se.match, ge = o.axes[0].side % 2 == 1, ke = T.ori == 0 ? Y : P, ze = T.ori == 1 ? Y : P, ue = ge ? m : h, _e = ge ? h : m, Xe = ge ? u : c, He = ge ? c : u;
      if (ne != null ? c = G(A, ne) ? p(H, M[A], ke, 0) : -10 : c = ke * (Xe / ue), Q != null ? u = z(L, Q) ? p(ie, M[L], ze, 0) : -10 : u = ze * (He / _e), T.ori == 1) {
        let ct = c;
        c = u, u = ct;
      }
    }
    k && (o == null || o.cursor.event.type == ss) && ((c <= 1 || c >= Y - 1) && (c = el(c, Y)), (u <= 1 || u >= P - 1) && (u = el(u, P))), y ? (Zs = c, Qs = u, [xl, kl] = N.move(l, c, u)) : (de = c, ye = u);
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
  let si, ii, oi, ri;
  function ai(i, o, c, u, h, m, b) {
    Vt = !0, Ce = Re = Oe._x = Oe._y = !1, qn(i, o, c, u, h, m, b, !0, !1), i != null && (We(is, us, ci, !1), jl(xi, l, xl, kl, Y, P, null));
    let { left: y, top: k, width: A, height: L } = me;
    si = y, ii = k, oi = A, ri = L;
  }
  function ci(i, o, c, u, h, m, b) {
    Vt = Oe._x = Oe._y = !1, qn(i, o, c, u, h, m, b, !1, !0);
    let { left: y, top: k, width: A, height: L } = me, $ = A > 0 || L > 0, H = si != y || ii != k || oi != A || ri != L;
    if ($ && H && pn(me), Oe.setScale && $ && H) {
      let ie = y, ne = A, Q = k, G = L;
      if (T.ori == 1 && (ie = k, ne = L, Q = y, G = A), Ce && Ot(
        C,
        Mt(ie, C),
        Mt(ie + ne, C)
      ), Re)
        for (let z in M) {
          let ge = M[z];
          z != C && ge.from == null && ge.min != fe && Ot(
            z,
            Mt(Q + G, z),
            Mt(Q, z)
          );
        }
      Jn();
    } else N.lock && (N._lock = !N._lock, Qt(o, !0, i != null));
    i != null && (cl(is, us), jl(is, l, de, ye, Y, P, null));
  }
  function $r(i, o, c, u, h, m, b) {
    if (N._lock)
      return;
    Kt(i);
    let y = Vt;
    if (Vt) {
      let k = !0, A = !0, L = 10, $, H;
      T.ori == 0 ? ($ = Ce, H = Re) : ($ = Re, H = Ce), $ && H && (k = de <= L || de >= Y - L, A = ye <= L || ye >= P - L), $ && k && (de = de < xl ? 0 : Y), H && A && (ye = ye < kl ? 0 : P), Qt(null, !0, !0), Vt = !1;
    }
    de = -10, ye = -10, ce.fill(null), Qt(null, !0, !0), y && (Vt = y);
  }
  function ui(i, o, c, u, h, m, b) {
    N._lock || (Kt(i), $n(), Jn(), i != null && jl(Si, l, de, ye, Y, P, null));
  }
  function fi() {
    F.forEach(Eu), Dn(l.width, l.height, !0);
  }
  sl(vn, Ll, fi);
  const Ml = {};
  Ml.mousedown = ai, Ml.mousemove = ni, Ml.mouseup = ci, Ml.dblclick = ui, Ml.setSeries = (i, o, c, u) => {
    let h = Se.match[2];
    c = h(l, o, c), c != -1 && St(c, u, !0, !1);
  }, Ge && (We(xi, D, ai), We(ss, D, ni), We(ki, D, (i) => {
    Kt(i), Hl(!1);
  }), We(_i, D, $r), We(Si, D, ui), bs.add(l), l.syncRect = Hl);
  const hn = l.hooks = e.hooks || {};
  function Ne(i, o, c) {
    Wn ? Il.push([i, o, c]) : i in hn && hn[i].forEach((u) => {
      u.call(null, l, o, c);
    });
  }
  (e.plugins || []).forEach((i) => {
    for (let o in i.hooks)
      hn[o] = (hn[o] || []).concat(i.hooks[o]);
  });
  const pi = (i, o, c) => c, Se = Me({
    key: null,
    setSeries: !1,
    filters: {
      pub: Ni,
      sub: Ni
    },
    scales: [C, _[1] ? _[1].scale : null],
    match: [zi, zi, pi],
    values: [null, null]
  }, N.sync);
  Se.match.length == 2 && Se.match.push(pi), N.sync = Se;
  const hi = Se.key, Zn = Yo(hi);
  function jl(i, o, c, u, h, m, b) {
    Se.filters.pub(i, o, c, u, h, m, b) && Zn.pub(i, o, c, u, h, m, b);
  }
  Zn.sub(l);
  function Cr(i, o, c, u, h, m, b) {
    Se.filters.sub(i, o, c, u, h, m, b) && Ml[i](null, o, c, u, h, m, b);
  }
  l.pub = Cr;
  function Rr() {
    Zn.unsub(l), bs.delete(l), Ht.clear(), hs(vn, Ll, fi), d.remove(), re?.remove(), Ne("destroy");
  }
  l.destroy = Rr;
  function Qn() {
    Ne("init", e, t), Ws(t || e.data, !1), B[C] ? Hn(C, B[C]) : $n(), on = me.show && (me.width > 0 || me.height > 0), qt = rt = !0, Dn(e.width, e.height);
  }
  return _.forEach(Is), F.forEach(pr), n ? n instanceof HTMLElement ? (n.appendChild(d), Qn()) : n(l, Qn) : Qn(), l;
}
Ie.assign = Me;
Ie.fmtNum = Ps;
Ie.rangeNum = yn;
Ie.rangeLog = _n;
Ie.rangeAsinh = Es;
Ie.orient = ol;
Ie.pxRatio = oe;
Ie.join = vc;
Ie.fmtDate = $s, Ie.tzDate = Pc;
Ie.sync = Yo;
{
  Ie.addGap = pu, Ie.clipGaps = Tn;
  let e = Ie.paths = {
    points: Xo
  };
  e.linear = tr, e.stepped = mu, e.bars = gu, e.spline = bu;
}
const so = 2 ** 30, io = 130;
class Lu {
  constructor(t) {
    this.place = t, this.resize = new ResizeObserver(() => {
      const n = this.place.clientWidth;
      n && this.plot?.setSize({ width: n, height: io });
    }), this.resize.observe(t);
  }
  place;
  plot;
  points = [];
  limitGib = null;
  resize;
  show(t) {
    this.points = t.curve;
    const n = ks(t.plan.snapshot, "vram");
    this.limitGib = n == null ? null : n / so;
    const l = (r) => r == null ? null : r / so, s = [
      this.points.map((r) => r[0]),
      this.points.map((r) => l(r[2])),
      this.points.map((r) => l(r[3]))
    ];
    this.plot ? this.plot.setData(s) : this.place.clientWidth && (this.plot = new Ie(this.options(), s, this.place));
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
      height: io,
      legend: { show: !1 },
      cursor: { show: !1 },
      scales: {
        x: { time: !1 },
        y: { range: (n, l, s) => [0, Math.max(s, this.limitGib ?? 0, 0.1) * 1.08] }
      },
      axes: [
        { ...t, size: 24, values: (n, l) => l.map((s) => El(s)) },
        { ...t, size: 44, values: (n, l) => l.map((s) => `${s} GiB`) }
      ],
      series: [
        {},
        { label: "VRAM", stroke: () => this.colour("--lp-vram"), width: 1.8, points: { show: !1 } },
        { label: "RAM", stroke: () => this.colour("--lp-ram"), width: 1.8, points: { show: !1 } }
      ],
      hooks: { drawClear: [(n) => this.bands(n)] }
    };
  }
  bands(t) {
    const { ctx: n, bbox: l } = t;
    if (n.save(), n.font = `${10 * devicePixelRatio}px sans-serif`, this.phases().forEach(([s, r, a], p) => {
      const f = t.valToPos(r, "x", !0), d = t.valToPos(a, "x", !0) - f;
      n.fillStyle = this.colour("--lp-line"), n.globalAlpha = p % 2 ? 0.25 : 0.5, n.fillRect(f, l.top, d, l.height), n.globalAlpha = 1, n.fillStyle = this.colour("--lp-dim");
      const v = Rl(s, this.points.map((g) => g[1]));
      n.measureText(v).width < d - 6 && n.fillText(v, f + 3 * devicePixelRatio, l.top + l.height - 4 * devicePixelRatio);
    }), this.limitGib != null) {
      const s = t.valToPos(this.limitGib, "y", !0);
      n.strokeStyle = this.colour("--lp-bad"), n.setLineDash([4, 4]), n.beginPath(), n.moveTo(l.left, s), n.lineTo(l.left + l.width, s), n.stroke();
    }
    n.restore();
  }
  phases() {
    const t = [];
    for (const [n, l] of this.points) {
      const s = t.at(-1);
      s && (s[2] = n), s?.[0] !== l && t.push([l, n, n]);
    }
    return t;
  }
}
class Pu {
  box;
  title;
  status = x("div", { role: "status", "aria-live": "polite" });
  bar = x("i");
  progress = x(
    "div.lp-progress",
    { role: "progressbar", "aria-label": "Steps of this phase", "aria-valuemin": 0 },
    this.bar
  );
  place = x("div.lp-curve", { role: "img" });
  rest = x("div");
  curve;
  said = "";
  constructor() {
    const [t, n, l] = nl("Now");
    this.box = t, this.title = l, t.hidden = !0, n.append(this.status, this.progress, this.place, this.rest);
  }
  draw(t) {
    if (this.box.hidden = !t, !t)
      return this.curve?.close(), this.curve = void 0, this.said = "", Be(this.place);
    const n = ha(t), { step: l = 0, steps: s } = n && t.phases[n]?.progress || {}, r = pa(t), a = n ? Rl(n, Object.keys(t.phases)) : "between two phases";
    this.title.textContent = [
      `Now: ${a.toLowerCase()}`,
      s ? `step ${l} of ${s}` : "",
      r == null ? "" : `about ${Zl(r)} left`
    ].filter(Boolean).join(", "), this.announce(t, a), this.progress.hidden = !s, this.progress.setAttribute("aria-valuemax", String(s ?? 0)), this.progress.setAttribute("aria-valuenow", String(l ?? 0)), this.bar.style.width = `${s ? 100 * (l ?? 0) / s : 0}%`, this.place.setAttribute("aria-label", Du(t)), this.place.hidden = t.curve.length < 2, this.place.hidden || (this.curve ??= new Lu(this.place), this.curve.show(t));
    const p = ho(t);
    Be(
      this.rest,
      _s(p),
      Ss(!0),
      $u(t),
      n?.startsWith("sample") && t.plan.phases ? wo(t.plan, n) : null,
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
  announce(t, n) {
    const l = t.notices.at(-1) ?? "";
    this.said !== n + l && (this.said = n + l, this.status.className = "lp-dim", this.status.textContent = "", this.status.setAttribute("aria-label", `${n}. ${l}`));
  }
}
function Du(e) {
  const t = e.curve.at(-1), n = (l) => l == null ? "unknown" : `${(l / 2 ** 30).toFixed(1)} GiB`;
  return `Memory of this run: VRAM ${n(t?.[2])}, RAM ${n(t?.[3])}`;
}
function $u(e) {
  const t = e.plan.snapshot, n = [
    ["VRAM", t?.vram_total_bytes, t?.vram_free_bytes],
    ["RAM", t?.ram_total_bytes, t?.ram_available_bytes]
  ].flatMap(([l, s, r]) => s && r != null ? [`${((s - r) / 2 ** 30).toFixed(1)} GiB of ${l}`] : []);
  return n.length ? x("p.lp-dim", {}, `Other programs held ${n.join(" and ")} when it was planned.`) : null;
}
const oo = "http://www.w3.org/2000/svg", Cu = 12;
function Ru(e, t) {
  return t.length ? (Be(
    e,
    x(
      "table",
      {},
      x("thead", {}, x("tr", {}, ...["when", "size", "forecast", "took", "VRAM"].map((l) => x("th", { scope: "col" }, l)))),
      x("tbody", {}, ...t.slice(0, Cu).map(Nu))
    ),
    zu(t)
  ), !0) : (Be(e), !1);
}
function Nu(e) {
  const t = new Date(e.started_unix_seconds * 1e3), l = t.toDateString() === (/* @__PURE__ */ new Date()).toDateString() ? "today" : t.toLocaleDateString(void 0, { month: "short", day: "numeric" }), s = t.toLocaleTimeString(void 0, { hour: "2-digit", minute: "2-digit" }), r = e.status === "done" ? El(e.measured_seconds) : e.status;
  return x(
    "tr",
    {},
    x("td", {}, `${l} ${s}`),
    x("td", {}, Gt(e.request)),
    x("td", {}, El(e.forecast_seconds)),
    x("td", {}, r),
    x("td", {}, fa(e))
  );
}
function zu(e) {
  const t = e.filter((f) => f.status === "done").map((f) => Ql(f.measured_seconds, f.forecast_seconds)).filter((f) => f != null).reverse();
  if (t.length < 3) return null;
  const n = Math.max(10, ...t.map(Math.abs)), l = (f) => 4 + 292 * f / (t.length - 1), s = (f) => 22 - 18 * f / n, r = document.createElementNS(oo, "svg");
  r.setAttribute("viewBox", "0 0 300 44"), r.setAttribute("preserveAspectRatio", "none"), r.setAttribute("class", "lp-spark"), r.setAttribute("role", "img");
  const a = `Time against forecast over ${t.length} runs, newest ${po(t.at(-1))}`;
  r.setAttribute("aria-label", a);
  const p = (f, d, v) => {
    const g = document.createElementNS(oo, "polyline");
    for (const [w, E] of Object.entries({
      points: f,
      fill: "none",
      stroke: d,
      "stroke-width": "1.5",
      "stroke-dasharray": v,
      "vector-effect": "non-scaling-stroke"
    }))
      g.setAttribute(w, E);
    r.append(g);
  };
  return p("0,22 300,22", "var(--lp-dim)", "3 3"), p(t.map((f, d) => `${l(d)},${s(f)}`).join(" "), "var(--lp-vram)", ""), x("div", {}, r, x("div.lp-dim", {}, a));
}
const ro = [
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
], Vu = [4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 80, 96], Ou = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
function Bu(e, t) {
  let n = 0;
  return e.forEach((l, s) => {
    Math.abs(l - t) < Math.abs(e[n] - t) && (n = s);
  }), n;
}
class Fu {
  box;
  result = x("div.lp-result", { role: "status", "aria-live": "polite" });
  vram;
  ram;
  card;
  constructor(t) {
    const [n, l] = nl("What if", !0);
    this.box = n, this.card = x(
      "select",
      { "aria-label": "Card" },
      x("option", { value: "" }, "this card's speed"),
      ...ro.map(([s, r, a]) => x("option", { value: s }, `${r}, ${a} GiB`))
    ), this.vram = ao("VRAM", Vu, (s) => t.whatIf({ vramGib: s })), this.ram = ao("RAM", Ou, (s) => t.whatIf({ ramGib: s })), this.card.addEventListener("change", () => {
      const s = ro.find(([r]) => r === this.card.value);
      t.whatIf({ card: this.card.value, ...s ? { vramGib: s[2] } : {} });
    }), l.append(x(
      "div.lp-what",
      {},
      x("span", {}, "Card"),
      this.card,
      ...this.vram.parts,
      ...this.ram.parts
    ), this.result), n.addEventListener("toggle", () => {
      n.open && !t.state.whatIf.plan && t.whatIf({});
    });
  }
  draw(t) {
    const { card: n, vramGib: l, ramGib: s, plan: r, error: a, busy: p } = t.whatIf;
    this.box.hidden = !t.prompt, document.activeElement !== this.card && (this.card.value = n), this.vram.set(l), this.ram.set(s), this.result.classList.toggle("lp-busy", p), Be(this.result, a ? x("p.lp-bad", {}, a) : r ? La(r) : null);
  }
}
function ao(e, t, n) {
  const l = x("output"), s = x("input", {
    type: "range",
    min: 0,
    max: t.length - 1,
    step: 1,
    "aria-label": `${e} of the other machine`
  }), r = (a) => {
    l.textContent = `${a} GiB`, s.setAttribute("aria-valuetext", `${a} GiB`);
  };
  return s.addEventListener("input", () => {
    const a = t[Number(s.value)];
    r(a), n(a);
  }), {
    parts: [x("span", { "aria-hidden": "true" }, e), s, l],
    set(a) {
      s.value = String(Bu(t, a)), r(t[Number(s.value)]);
    }
  };
}
class Iu {
  constructor(t, n) {
    this.panel = n;
    const l = x("span.lp-dim"), s = x("div"), [r, a] = Gu("div", { role: "status", "aria-live": "polite" }), [p, f] = nl("Peaks by phase"), [d, v] = nl("Where the blocks wait"), [g, w] = nl("Why", !0), E = new Fu(n);
    this.during = new Pu();
    const D = new Pa(), [V, I] = nl("Past runs", !0);
    this.parts = [
      { of: (S) => [S.machine], draw: (S) => Be(l, na(S.machine)) },
      { of: (S) => [S.serverError, S.notices], draw: (S) => Wu(s, S) },
      { of: (S) => [S.active], draw: (S) => this.during.draw(S.active) },
      {
        of: (S) => [S.plan, S.planBusy, S.planError],
        draw: (S) => {
          a.classList.toggle("lp-busy", S.planBusy), Ma(a, f, S, n), p.hidden = !f.childElementCount, d.hidden = !Aa(v, S), g.hidden = !Ea(w, S);
        }
      },
      { of: (S) => [S.whatIf, S.plan, S.machine], draw: (S) => E.draw(S) },
      { of: (S) => [S.last], draw: (S) => D.draw(S.last) },
      { of: (S) => [S.runs], draw: (S) => V.hidden = !Ru(I, S.runs) }
    ], this.root.append(
      x("style", {}, Xr + ea),
      x("div.lp-head", {}, x("h2", {}, "Lowpeak"), l),
      s,
      this.during.box,
      r,
      p,
      d,
      g,
      E.box,
      D.box,
      V
    ), t.replaceChildren(this.root), this.theme = new MutationObserver(() => this.followTheme());
    for (const S of [document.documentElement, document.body])
      this.theme.observe(S, { attributes: !0, attributeFilter: ["class", "style"] });
    this.followTheme(), this.draw(), n.open(this.onChange);
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
    for (const n of this.parts) {
      const l = n.of(t), s = this.drawn.get(n);
      s && s.every((r, a) => r === l[a]) || (this.drawn.set(n, l), n.draw(t));
    }
  }
  /** Light or dark by the background that the theme really gives. */
  followTheme() {
    const t = getComputedStyle(this.root).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [], [n = 0, l = 0, s = 0] = t, r = 0.3 * n + 0.6 * l + 0.1 * s > 128;
    this.root.dataset.theme = r ? "light" : "dark", this.during.redraw();
  }
}
function Gu(e, t) {
  const n = x(e, t);
  return [n, n];
}
function Wu(e, t) {
  Be(
    e,
    t.serverError && x("p.lp-bad", { role: "alert" }, t.serverError),
    ...t.notices.map((n) => x("p.lp-notice", {}, n))
  );
}
Xn.registerExtension({
  name: "Lowpeak.Panel",
  setup() {
    const e = new Qr(new zr(Xn, Nr));
    let t;
    Xn.extensionManager.registerSidebarTab({
      id: "lowpeak",
      title: "Lowpeak",
      label: "Lowpeak",
      icon: "pi pi-chart-bar",
      tooltip: "Lowpeak: will it fit, how long will it take",
      type: "custom",
      render(n) {
        t?.close(), t = new Iu(n, e);
      },
      destroy() {
        t?.close(), t = void 0;
      }
    });
  }
});
