import { api as sa } from "../../scripts/api.js";
import { app as as } from "../../scripts/app.js";
const oa = "unknown", ia = "{width} × {height}", ra = {
  "tab.tooltip": "Lowpeak: will it fit, how long will it take",
  "axis.vram": "VRAM",
  "axis.ram": "RAM",
  "axis.disk": "disk",
  "phase.encode": "Encode",
  "phase.sample_low": "First pass",
  "phase.upscale": "Upscale",
  "phase.sample_high": "Second pass",
  "phase.decode": "Decode",
  "phase.only": "Sample",
  "limit.compute": "the card's speed",
  "limit.link": "the link to the card",
  "limit.disk": "the disk",
  unknown: oa,
  "time.seconds": "{s} s",
  "time.minutes": "{m} min {s} s",
  "time.hours": "{h} h {m} min",
  "time.short_minutes": "{m} m",
  "time.short_hours": "{h} h",
  "list.and": " and ",
  "list.comma": ", ",
  "list.stop": ". ",
  "list.end": ".",
  size: ia,
  "size.length": "{width} × {height} · {s} s",
  "machine.no_gpu": "no GPU",
  "machine.axis": "{amount} {axis}",
  "passes.one": "one pass",
  "passes.two": "two passes",
  "verdict.fits": "Fits. About {time}",
  "verdict.range": "Between {low} and {high}",
  "verdict.limited": "Limited by {limit}",
  "verdict.peak": "Peak {used}",
  "verdict.used": "{peak} of {free} {axis}",
  "verdict.used_alone": "{peak} {axis}",
  "refusal.plain": "Does not fit",
  "refusal.one": "Does not fit: {axes} is short by {amount}",
  "refusal.many": "Does not fit: {axes} are short by {amount}",
  "refusal.detail": "{phase} of {size} needs {need} of {axis}; {have} is usable.",
  "refusal.enough": " {axis} would be enough.",
  "before.none": "No forecast",
  "before.working": "Working out the forecast …",
  "before.no_sampler": "The graph holds no Lowpeak Sample yet. Add one, or open a template under Lowpeak.",
  "before.unknown": "Known only when it runs: {names}. Defaults stand in.",
  "before.again": "Check again",
  "offers.title": "Fits instead",
  "offers.none": "No smaller size fits either",
  "offers.use": "Use",
  "offers.use_label": "Use a size that fits: {size}",
  "offers.close": "Close other programs",
  "offers.elsewhere": "Some of the graph's sizes come from elsewhere; please set them there.",
  "section.canvas": "Graph on the canvas",
  "section.bars": "Peaks by phase",
  "section.blocks": "Where the {count} blocks wait",
  "section.why": "Why",
  "section.what_if": "What if",
  "section.map": "Time by VRAM and RAM",
  "section.last": "Last run",
  "section.past": "Past runs",
  "section.kernels": "Kernels used",
  "section.lora": "LoRA",
  "section.now": "Now",
  "legend.margin": "kept free",
  "legend.end": "end of memory",
  "legend.measured": "measured",
  "bar.time": "forecast",
  "bar.both": "took, and forecast",
  "bar.of": " of {time}",
  "bar.label": "{phase}, {axis}: forecast {amount}",
  "bar.measured": "{label}, measured {amount}",
  "blocks.label": "Blocks: {text}",
  "blocks.card": "on the card",
  "blocks.ram": "in RAM",
  "blocks.disk": "read from disk each step",
  "blocks.count": "{count} {where}",
  "blocks.one": "Block {number}: {where}",
  "blocks.which": "{where}: blocks {numbers}",
  "why.arithmetic": "This placement sums in another order: latents differ in their last bits.",
  "what_if.card": "Card",
  "what_if.this_card": "this card's speed",
  "what_if.option": "{name}, {amount}",
  "what_if.slider": "{axis} of the other machine",
  "what_if.would_fit": "{size} would fit.",
  "map.vram": "VRAM, GiB",
  "map.ram": "RAM",
  "map.fits": "{vram} GiB VRAM, {ram} GiB RAM: about {time}, limited by {limit}",
  "map.short": "{vram} GiB VRAM, {ram} GiB RAM: does not fit, {axes} is short",
  "map.waiting": "{vram} GiB VRAM, {ram} GiB RAM: being worked out",
  "map.fast": "faster",
  "map.slow": "slower",
  "map.no": "– does not fit",
  "map.here": "this machine",
  "now.head": "Now: {what}",
  "now.step": "step {step} of {steps}",
  "now.left": "about {time} left",
  "now.between": "between two phases",
  "now.progress": "Steps of this phase",
  "now.curve": "{axis} of this run: {text}",
  "now.ours": "Lowpeak {amount}",
  "now.other": "other programs {amount}",
  "now.evictable": "can be freed {amount}",
  "now.of": "of {amount}",
  "now.planned": "Other programs held {parts} when it was planned.",
  "now.held": "{amount} of {axis}",
  "run.failed": "Failed",
  "run.cancelled": "Stopped",
  "run.done": "Done",
  "run.took": "Took {time}",
  "run.no_reason": "no reason given",
  "row.done": "done",
  "row.failed": "failed",
  "row.cancelled": "stopped",
  "row.running": "running",
  "copy.button": "Copy report",
  "copy.what": "JSON; no prompt, no paths",
  "copy.done": "Copied.",
  "copy.refused": "The browser refused.",
  "lora.bound": "{file}: {bound} of {all} tensors bound",
  "lora.left": "{count} left out: {reason}",
  "kernels.used": "{stage}: {name}",
  "kernels.because": "{stage}: {name} ({reason})",
  "kernels.against": "not {name}: {reason}",
  "kernels.changes": "Changes the last bits of the result: {names}",
  "diff.line": "{phase}: {parts}.",
  "diff.time_more": "took {n} % longer",
  "diff.time_less": "took {n} % less time",
  "diff.time_same": "took as forecast",
  "diff.more": "{axis} {n} % more",
  "diff.less": "{axis} {n} % less",
  "diff.same": "{axis} as forecast",
  "past.when": "when",
  "past.size": "size",
  "past.forecast": "forecast",
  "past.took": "took",
  "past.today": "today {time}",
  "past.other_day": "{day} {time}",
  "past.error": "Measured against forecast over {count} runs. Newest: time {time}, VRAM {vram}.",
  "past.time": "time",
  "error.silent": "ComfyUI does not answer.",
  "error.routes": "Lowpeak's routes are missing: its server part did not load.",
  "error.status": "ComfyUI answered {status}."
}, aa = "未知", ca = "{width} × {height}", ua = {
  "tab.tooltip": "Lowpeak：放不放得下，要多久",
  "axis.vram": "显存",
  "axis.ram": "内存",
  "axis.disk": "磁盘",
  "phase.encode": "编码",
  "phase.sample_low": "第一遍",
  "phase.upscale": "放大",
  "phase.sample_high": "第二遍",
  "phase.decode": "解码",
  "phase.only": "采样",
  "limit.compute": "显卡速度",
  "limit.link": "显卡总线",
  "limit.disk": "磁盘",
  unknown: aa,
  "time.seconds": "{s} 秒",
  "time.minutes": "{m} 分 {s} 秒",
  "time.hours": "{h} 小时 {m} 分",
  "time.short_minutes": "{m} 分",
  "time.short_hours": "{h} 时",
  "list.and": "和",
  "list.comma": "，",
  "list.stop": "。",
  "list.end": "。",
  size: ca,
  "size.length": "{width} × {height} · {s} 秒",
  "machine.no_gpu": "没有显卡",
  "machine.axis": "{axis} {amount}",
  "passes.one": "单遍",
  "passes.two": "两遍",
  "verdict.fits": "放得下，约 {time}",
  "verdict.range": "在 {low} 与 {high} 之间",
  "verdict.limited": "瓶颈：{limit}",
  "verdict.peak": "峰值：{used}",
  "verdict.used": "{axis} {peak} / {free}",
  "verdict.used_alone": "{axis} {peak}",
  "refusal.plain": "放不下",
  "refusal.one": "放不下：{axes}差 {amount}",
  "refusal.many": "放不下：{axes}差 {amount}",
  "refusal.detail": "{size} 的{phase}需要{axis} {need}，可用 {have}。",
  "refusal.enough": "{axis}是够的。",
  "before.none": "没有预测",
  "before.working": "正在预测……",
  "before.no_sampler": "画布上还没有 Lowpeak Sample 节点。请添加一个，或打开 Lowpeak 下的模板。",
  "before.unknown": "运行时才知道：{names}。暂用默认值。",
  "before.again": "再查一次",
  "offers.title": "这些放得下",
  "offers.none": "更小的尺寸也放不下",
  "offers.use": "采用",
  "offers.use_label": "采用放得下的尺寸：{size}",
  "offers.close": "关闭其他程序",
  "offers.elsewhere": "有些尺寸来自画布别处，请在那里修改。",
  "section.canvas": "画布上的工作流",
  "section.bars": "各阶段峰值",
  "section.blocks": "{count} 个块放在哪里",
  "section.why": "原因",
  "section.what_if": "换一台机器",
  "section.map": "不同显存和内存下的用时",
  "section.last": "上次运行",
  "section.past": "历史记录",
  "section.kernels": "所用算子",
  "section.lora": "LoRA",
  "section.now": "正在运行",
  "legend.margin": "预留",
  "legend.end": "内存上限",
  "legend.measured": "实测",
  "bar.time": "预测",
  "bar.both": "实际与预测",
  "bar.of": " / {time}",
  "bar.label": "{phase}，{axis}：预测 {amount}",
  "bar.measured": "{label}，实测 {amount}",
  "blocks.label": "块：{text}",
  "blocks.card": "在显卡上",
  "blocks.ram": "在内存里",
  "blocks.disk": "每步从磁盘读取",
  "blocks.count": "{count} 个{where}",
  "blocks.one": "第 {number} 块：{where}",
  "blocks.which": "{where}：第 {numbers} 块",
  "why.arithmetic": "这种安排改变了求和顺序：潜变量的末位会不同。",
  "what_if.card": "显卡",
  "what_if.this_card": "本机显卡的速度",
  "what_if.option": "{name}，{amount}",
  "what_if.slider": "另一台机器的{axis}",
  "what_if.would_fit": "{size} 放得下。",
  "map.vram": "显存，GiB",
  "map.ram": "内存",
  "map.fits": "显存 {vram} GiB，内存 {ram} GiB：约 {time}，瓶颈是{limit}",
  "map.short": "显存 {vram} GiB，内存 {ram} GiB：放不下，{axes}不够",
  "map.waiting": "显存 {vram} GiB，内存 {ram} GiB：正在计算",
  "map.fast": "较快",
  "map.slow": "较慢",
  "map.no": "– 放不下",
  "map.here": "本机",
  "now.head": "正在运行：{what}",
  "now.step": "第 {step} 步，共 {steps} 步",
  "now.left": "约剩 {time}",
  "now.between": "两个阶段之间",
  "now.progress": "本阶段的步数",
  "now.curve": "本次运行的{axis}：{text}",
  "now.ours": "Lowpeak {amount}",
  "now.other": "其他程序 {amount}",
  "now.evictable": "可释放 {amount}",
  "now.of": "共 {amount}",
  "now.planned": "规划时其他程序占用：{parts}。",
  "now.held": "{axis} {amount}",
  "run.failed": "失败",
  "run.cancelled": "已停止",
  "run.done": "完成",
  "run.took": "用时 {time}",
  "run.no_reason": "没有给出原因",
  "row.done": "完成",
  "row.failed": "失败",
  "row.cancelled": "已停止",
  "row.running": "运行中",
  "copy.button": "复制报告",
  "copy.what": "JSON，不含提示词和路径",
  "copy.done": "已复制。",
  "copy.refused": "浏览器拒绝了。",
  "lora.bound": "{file}：{all} 个张量中绑定了 {bound} 个",
  "lora.left": "未用 {count} 个：{reason}",
  "kernels.used": "{stage}：{name}",
  "kernels.because": "{stage}：{name}（{reason}）",
  "kernels.against": "未用 {name}：{reason}",
  "kernels.changes": "会改变结果末位：{names}",
  "diff.line": "{phase}：{parts}。",
  "diff.time_more": "用时多 {n} %",
  "diff.time_less": "用时少 {n} %",
  "diff.time_same": "用时与预测一致",
  "diff.more": "{axis}多 {n} %",
  "diff.less": "{axis}少 {n} %",
  "diff.same": "{axis}与预测一致",
  "past.when": "时间",
  "past.size": "尺寸",
  "past.forecast": "预测",
  "past.took": "实际",
  "past.today": "今天 {time}",
  "past.other_day": "{day} {time}",
  "past.error": "{count} 次运行的实测与预测之差。最近一次：用时 {time}，显存 {vram}。",
  "past.time": "用时",
  "error.silent": "ComfyUI 没有响应。",
  "error.routes": "缺少 Lowpeak 的接口：它的服务器部分没有加载。",
  "error.status": "ComfyUI 返回了 {status}。"
}, Ps = { en: ra, zh: ua };
let Ds = "en";
function Ai(e) {
  const t = String(e ?? "").toLowerCase().split(/[-_]/)[0];
  return t in Ps ? t : "en";
}
function fa(e) {
  Ds = Ai(e);
}
function sn() {
  return Ds;
}
function v(e, t = {}) {
  return Ps[Ds][e].replace(/\{(\w+)\}/g, (l, n) => String(t[n]));
}
function Yt(e) {
  return e.join(v("list.comma"));
}
class cs extends Error {
}
class pa {
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
  /** One line of the capacity map: a cell for each amount of VRAM. */
  async cells(t, l, n) {
    const s = JSON.stringify({ prompt: t, ...n, each_vram_gib: l }), r = { method: "POST", headers: { "Content-Type": "application/json" }, body: s };
    return (await this.ask("/lowpeak/forecast", r)).cells;
  }
  /** ComfyUI's language. */
  locale() {
    return this.app.extensionManager.setting?.get("Comfy.Locale");
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
          for (const a of s.widgets ?? [])
            (["number", "boolean"].includes(typeof a.value) || ha(a.value)) && t.push(a.value);
          for (const a of s.inputs ?? []) t.push(a.link ?? 0);
        }
    };
    return l(this.graph()), JSON.stringify(t);
  }
  /** Set widgets; gives the settings whose widget was not found. */
  apply(t) {
    const l = [];
    for (const n of t) {
      const s = this.find(n.node)?.widgets?.find((a) => a.name === n.widget);
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
      throw new cs(v("error.silent"));
    }
    const a = (Date.parse(n.headers.get("Date") ?? "") - Date.now()) / 1e3;
    Math.abs(a) > 2 && (this.skew = a);
    const r = await n.json().catch(() => null);
    if (n.ok && r) return r;
    throw n.status === 404 && !r ? new cs(v("error.routes")) : new cs(r?.message || v("error.status", { status: n.status }));
  }
}
function ha(e) {
  return typeof e == "string" && e.length < 80;
}
const bs = [
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
], da = [4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 80, 96], ma = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256], ga = [4, 6, 8, 10, 12, 16, 24, 32], Ei = [8, 12, 16, 24, 32, 64];
function vs(e, t) {
  let l = 0;
  return e.forEach((n, s) => {
    Math.abs(n - t) < Math.abs(e[l] - t) && (l = s);
  }), l;
}
const wa = 200, ba = ["LowpeakSample", "LowpeakRefine", "LowpeakPlan"], Li = 50;
function va(e) {
  return Object.values(e).some((t) => ba.includes(t.class_type));
}
function us(e) {
  const t = (l) => typeof l == "string" && l.length > wa ? "" : l;
  return Object.fromEntries(
    Object.entries(e).map(([l, n]) => [
      l,
      {
        class_type: n.class_type,
        inputs: Object.fromEntries(
          Object.entries(n.inputs ?? {}).filter(([s]) => s !== "prompt" && s !== "text").map(([s, a]) => [s, t(a)])
        )
      }
    ])
  );
}
function xa(e, t, l) {
  const n = t == null ? void 0 : e[t];
  if (!n || t == null) return [];
  const s = ya(e, t, n), a = e[s];
  if (!a) return [];
  const r = [];
  for (const [u, p] of Object.entries(e)) {
    const d = ka(e, p, a) && /Lowpeak|MiniMaxH3/.test(p.class_type);
    u !== s && !d || (vn(r, e, u, "width", l.width), vn(r, e, u, "height", l.height), vn(r, e, u, "seconds", Math.round(l.seconds * 10) / 10), l.frames != null && vn(r, e, u, "length", l.frames));
  }
  return r.filter(
    (u, p) => r.findIndex((d) => d.node === u.node && d.widget === u.widget) === p
  );
}
function ya(e, t, l) {
  for (const n of ["plan", "size_from"]) {
    const s = Cs(e, l.inputs[n]);
    if (s != null && "width" in e[s].inputs) return s;
  }
  return t;
}
function Cs(e, t) {
  if (!Array.isArray(t) || t.length !== 2) return null;
  const l = String(t[0]);
  return l in e ? l : null;
}
function Eo(e, t) {
  for (let l = 0; l < Li; l++) {
    const n = Cs(e, t);
    if (n == null) return t;
    t = e[n].inputs.value;
  }
}
function ka(e, t, l) {
  return ["width", "height"].every((n) => {
    const s = Eo(e, t.inputs[n]);
    return typeof s == "number" && s === Eo(e, l.inputs[n]);
  });
}
function vn(e, t, l, n, s) {
  let a = l, r = n;
  for (let u = 0; u < Li; u++) {
    const p = t[a]?.inputs[r], d = Cs(t, p);
    if (d == null) {
      typeof p == "number" && e.push({ node: a, widget: r, value: s });
      return;
    }
    a = d, r = "value";
  }
}
const _a = 600, Sa = {
  machine: null,
  notices: [],
  prompt: null,
  plan: null,
  planBusy: !1,
  planError: "",
  active: null,
  recent: [],
  last: null,
  runs: [],
  serverError: "",
  whatIf: { card: "", vramGib: 8, ramGib: 16, plan: null, error: "", busy: !1, open: !1 },
  map: { vramGib: [], lines: {}, error: "" }
};
function Ma(e, t) {
  switch (t.type) {
    case "server": {
      const { machine: l, last: n, notices: s } = t.state, a = e.recent.filter(({ event: u }) => u.run_id === t.state.active?.run_id), r = a.reduce(
        (u, { event: p, unixSeconds: d }) => Lo(u, p, d),
        t.state.active
      );
      return { ...e, machine: l, notices: s, active: r, recent: a, last: n ?? e.last, serverError: "" };
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
    case "map":
      return { ...e, map: { ...e.map, ...t.map } };
    case "runs":
      return { ...e, runs: t.runs };
    case "event": {
      const { event: l, unixSeconds: n } = t, s = [...e.recent, { event: l, unixSeconds: n }].slice(-200);
      return { ...e, recent: s, active: Lo(e.active, l, n) };
    }
    case "run": {
      const l = t.run.status !== "running", n = e.active?.run_id === t.run.run_id;
      return l ? { ...e, last: t.run, active: n ? null : e.active } : { ...e, active: t.run };
    }
  }
}
function Lo(e, t, l) {
  const n = e?.run_id === t.run_id ? e : Ta(t.run_id, l);
  if (t.sequence <= n.sequence) return n;
  const s = { ...n, status: "running", sequence: t.sequence };
  if (t.kind === "notice")
    return t.message && (s.notices = [...n.notices, t.message]), s;
  const a = n.phases[t.phase] ?? {};
  if (s.phases = { ...n.phases, [t.phase]: { ...a, [t.kind]: t } }, t.kind === "progress") {
    const r = Math.max(0, l - n.started_unix_seconds), u = n.curve.at(-1)?.[0] ?? 0, p = [
      Math.max(r, u),
      t.phase,
      t.vram_bytes ?? null,
      t.ram_bytes ?? null,
      t.vram_other_bytes ?? null,
      t.vram_evictable_bytes ?? null,
      t.ram_other_bytes ?? null,
      t.ram_evictable_bytes ?? null
    ], d = [...n.curve, p];
    s.curve = d.length > _a ? d.filter((x, g) => g % 2 === 0) : d;
  }
  return s;
}
function Ta(e, t) {
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
function Aa(e) {
  const { curve: t, ...l } = e;
  return JSON.stringify(l, null, 2);
}
const Po = 350, Ea = 700, La = ["execution_success", "execution_error", "execution_interrupted", "executed"];
class Pa {
  constructor(t) {
    this.host = t, this.followLanguage(), t.api.addEventListener("lowpeak.run", (l) => {
      const n = l.detail;
      this.state.active?.run_id !== n.run_id && this.later("state", () => this.refresh()), this.dispatch({ type: "event", event: n, unixSeconds: t.unixSeconds() });
    });
    for (const l of La)
      t.api.addEventListener(l, () => {
        this.state.active && this.later("state", () => this.refresh());
      });
    t.api.addEventListener("reconnected", () => this.later("state", () => this.refresh()));
  }
  host;
  state = Sa;
  listeners = /* @__PURE__ */ new Set();
  timers = /* @__PURE__ */ new Map();
  watch;
  signature = "";
  asked = 0;
  refreshes = 0;
  askedWhatIf = 0;
  askedMap = 0;
  /** Called when ComfyUI's language changed: everything shown is to be drawn anew. */
  onLanguage = () => {
  };
  followLanguage() {
    fa(this.host.locale());
  }
  /** The tab is open: ask for everything and watch the graph until `close`. */
  open(t) {
    this.listeners.add(t), this.signature = "", this.refresh(), this.look(), this.watch ??= setInterval(() => this.look(), Ea);
  }
  close(t) {
    this.listeners.delete(t), !this.listeners.size && (clearInterval(this.watch), this.watch = void 0);
  }
  dispatch(t) {
    this.state = Ma(this.state, t);
    for (const l of this.listeners) l();
  }
  /** Ask the server for everything but the forecast. The newest question wins. */
  async refresh() {
    const t = ++this.refreshes;
    try {
      const [l, n] = await Promise.all([this.host.state(), this.host.runs()]);
      if (t !== this.refreshes) return;
      this.dispatch({ type: "server", state: l }), this.dispatch({ type: "runs", runs: n });
    } catch (l) {
      t === this.refreshes && this.dispatch({ type: "server-error", message: xn(l) });
    }
  }
  /** Forecast the graph on the canvas. The newest question wins. */
  async forecast() {
    const t = ++this.asked;
    try {
      this.signature = this.host.signature();
      const l = await this.host.prompt();
      if (t !== this.asked) return;
      if (!va(l)) return this.dispatch({ type: "no-sampler" });
      this.dispatch({ type: "forecast-begins", prompt: l });
      const n = await this.host.forecast(us(l));
      t === this.asked && this.dispatch({ type: "forecast", plan: n });
    } catch (l) {
      t === this.asked && this.dispatch({ type: "forecast-error", message: xn(l) });
    }
    this.state.whatIf.open && (this.askWhatIf(), this.drawMap());
  }
  /** Take a size that fits into the graph. */
  use(t) {
    const { prompt: l, plan: n } = this.state, s = l ? xa(l, n?.asked?.node_id ?? null, t) : [], a = s.length ? this.host.apply(s) : [];
    return this.look(), !s.length || a.length ? v("offers.elsewhere") : "";
  }
  openWhatIf(t) {
    if (t !== this.state.whatIf.open) {
      if (this.dispatch({ type: "what-if", change: { open: t } }), !t) {
        this.askedMap++;
        return;
      }
      this.askWhatIf(), this.drawMap();
    }
  }
  whatIf(t) {
    this.dispatch({ type: "what-if", change: { ...t, busy: !0 } }), this.later("what-if", () => this.askWhatIf(), Po / 2), t.card !== void 0 && this.later("map", () => this.drawMap());
  }
  async askWhatIf() {
    const { prompt: t, whatIf: l } = this.state;
    if (!t) return this.dispatch({ type: "what-if", change: { busy: !1 } });
    const n = ++this.askedWhatIf, s = { vram_gib: l.vramGib, ram_gib: l.ramGib, card: l.card || void 0 }, a = await this.host.forecast(us(t), s).then(
      (r) => ({ plan: r, error: "" }),
      (r) => ({ plan: null, error: xn(r) })
    );
    n === this.askedWhatIf && this.dispatch({ type: "what-if", change: { ...a, busy: !1 } });
  }
  /** The capacity map of the graph, line by line; a newer map or a closed section ends an older. */
  async drawMap() {
    const { prompt: t, whatIf: l } = this.state, n = ++this.askedMap, s = bs.find(([u]) => u === l.card)?.[2] ?? 1 / 0, a = ga.filter((u) => u <= s), r = {};
    if (this.dispatch({ type: "map", map: { vramGib: a, lines: r, error: "" } }), !!t)
      try {
        for (const u of Ei) {
          const p = { ram_gib: u, card: l.card || void 0 }, d = await this.host.cells(us(t), a, p);
          if (n !== this.askedMap) return;
          r[u] = d, this.dispatch({ type: "map", map: { lines: { ...r } } });
        }
      } catch (u) {
        n === this.askedMap && this.dispatch({ type: "map", map: { error: xn(u) } });
      }
  }
  look() {
    if (document.hidden) return;
    Ai(this.host.locale()) !== sn() && this.onLanguage();
    const t = this.host.signature();
    t !== this.signature && (this.signature = t, this.later("forecast", () => this.forecast()));
  }
  later(t, l, n = Po) {
    clearTimeout(this.timers.get(t)), this.timers.set(t, setTimeout(() => {
      l();
    }, n));
  }
}
function xn(e) {
  return e instanceof Error ? e.message : String(e);
}
const Da = '.uplot,.uplot *,.uplot *:before,.uplot *:after{box-sizing:border-box}.uplot{font-family:system-ui,-apple-system,Segoe UI,Roboto,Helvetica Neue,Arial,Noto Sans,sans-serif,"Apple Color Emoji","Segoe UI Emoji",Segoe UI Symbol,"Noto Color Emoji";line-height:1.5;width:min-content}.u-title{text-align:center;font-size:18px;font-weight:700}.u-wrap{position:relative;user-select:none}.u-over,.u-under{position:absolute}.u-under{overflow:hidden}.uplot canvas{display:block;position:relative;width:100%;height:100%}.u-axis{position:absolute}.u-legend{font-size:14px;margin:auto;text-align:center}.u-inline{display:block}.u-inline *{display:inline-block}.u-inline tr{margin-right:16px}.u-legend th{font-weight:600}.u-legend th>*{vertical-align:middle;display:inline-block}.u-legend .u-marker{width:1em;height:1em;margin-right:4px;background-clip:padding-box!important}.u-inline.u-live th:after{content:":";vertical-align:middle}.u-inline:not(.u-live) .u-value{display:none}.u-series>*{padding:4px}.u-series th{cursor:pointer}.u-legend .u-off>*{opacity:.3}.u-select{background:#00000012;position:absolute;pointer-events:none}.u-cursor-x,.u-cursor-y{position:absolute;left:0;top:0;pointer-events:none;will-change:transform}.u-hz .u-cursor-x,.u-vt .u-cursor-y{height:100%;border-right:1px dashed #607D8B}.u-hz .u-cursor-y,.u-vt .u-cursor-x{width:100%;border-bottom:1px dashed #607D8B}.u-cursor-pt{position:absolute;top:0;left:0;border-radius:50%;border:0 solid;pointer-events:none;will-change:transform;background-clip:padding-box!important}.u-axis.u-off,.u-select.u-off,.u-cursor-x.u-off,.u-cursor-y.u-off,.u-cursor-pt.u-off{display:none}', Ca = ".lowpeak{--lp-bg: var(--comfy-menu-bg, #1b1c20);--lp-fg: var(--fg-color, #e7e8ea);--lp-dim: color-mix(in srgb, var(--lp-fg) 74%, var(--lp-bg));--lp-line: color-mix(in srgb, var(--lp-fg) 16%, var(--lp-bg));--lp-card: color-mix(in srgb, var(--lp-fg) 6%, var(--lp-bg));--lp-vram: #7aa2f7;--lp-ram: #9ece6a;--lp-bad: #ff8a9b;--lp-disk: #868996;--lp-hot: #c77b1e;background:var(--lp-bg);color:var(--lp-fg);font:13px/1.45 system-ui,Segoe UI,sans-serif;container-type:inline-size;box-sizing:border-box;min-height:100%;height:100%;overflow-y:auto;padding:14px 16px 24px}.lowpeak[data-theme=light]{--lp-vram: #2f5fd0;--lp-ram: #3f7d1f;--lp-bad: #a91b35;--lp-disk: #8b8e98;--lp-hot: #e8a13a}.lowpeak *,.lowpeak *:before{box-sizing:border-box}.lowpeak :focus-visible{outline:2px solid var(--lp-vram);outline-offset:2px;border-radius:3px}.lp-head{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:2px 8px}.lp-head h2{font-size:15px;font-weight:600;margin:0}.lp-dim{color:var(--lp-dim)}.lp-bad{color:var(--lp-bad)}.lp-verdict{font-size:18px;font-weight:600;line-height:1.25;margin:12px 0 3px;text-wrap:balance}.lp-sec{margin-top:18px}.lp-title{margin-top:18px!important}.lp-sec>h3,.lp-sec>summary,.lp-title{font-size:12px;font-weight:600;color:var(--lp-dim);margin:0 0 8px}.lp-sec>summary{cursor:pointer;padding:2px 0}.lp-sec>summary:hover{color:var(--lp-fg)}.lp-busy{opacity:.6;transition:opacity .2s .15s}.lp-row{display:grid;grid-template-columns:84px 1fr 54px;gap:0 10px;align-items:center;margin:7px 0}.lp-time{text-align:right;color:var(--lp-dim);font-variant-numeric:tabular-nums;line-height:1.25}.lp-time b{display:block;font-weight:600;color:var(--lp-fg)}.lp-bars{min-width:0}.lp-bar{position:relative;height:9px;background:var(--lp-line);border-radius:2px;margin:3px 0}.lp-bar.lp-ram{height:6px}.lp-bar i{position:absolute;top:0;bottom:0;border-radius:2px}.lp-vram{--lp-c: var(--lp-vram)}.lp-ram{--lp-c: var(--lp-ram)}.lp-bar .lp-excess{background:var(--lp-bad);border-radius:0 2px 2px 0}.lp-used{background:var(--lp-c)}.lp-margin{background:repeating-linear-gradient(135deg,var(--lp-c) 0 2px,transparent 2px 4px);opacity:.75}.lp-bar .lp-cap{top:-3px;bottom:-3px;width:0;border-left:2px solid var(--lp-bad);border-radius:0;margin-left:-1px;box-shadow:1px 0 0 var(--lp-bg),-1px 0 0 var(--lp-bg)}.lp-bar .lp-measured{top:-3px;bottom:-3px;width:3px;margin-left:-1.5px;background:var(--lp-fg);box-shadow:0 0 0 1px var(--lp-bg)}.lp-legend{display:flex;flex-wrap:wrap;gap:2px 14px;margin-top:8px;color:var(--lp-dim);font-size:12px}.lp-legend i{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:5px}.lp-key-vram,.lp-on-card{background:var(--lp-vram)}.lp-key-ram,.lp-in-ram{background:var(--lp-ram)}.lp-on-disk{background:var(--lp-disk)}.lp-key-margin{background:repeating-linear-gradient(135deg,var(--lp-dim) 0 2px,transparent 2px 4px)}.lp-legend .lp-key-cap{width:2px;background:var(--lp-bad)}.lp-legend .lp-key-measured{width:3px;background:var(--lp-fg)}.lp-blocks{display:grid;grid-template-columns:repeat(25,1fr);gap:3px}.lp-blocks i{height:11px;border-radius:2px}.lowpeak h4{font-size:13px;font-weight:600;margin:10px 0 2px}.lowpeak ul{margin:0;padding-left:16px;list-style:disc}.lowpeak li{margin:3px 0}.lowpeak button,.lowpeak select{background:var(--lp-card);color:var(--lp-fg);border:1px solid var(--lp-dim);border-radius:6px;padding:4px 10px;font:inherit;cursor:pointer}.lowpeak button:hover{background:var(--lp-line)}.lp-offer{display:flex;justify-content:space-between;align-items:center;gap:8px;margin:6px 0}.lp-what{display:grid;grid-template-columns:48px 1fr 62px;gap:8px;align-items:center;margin-top:6px}.lp-what input{width:100%;min-width:0;accent-color:var(--lp-vram)}.lp-what output{text-align:right;font-variant-numeric:tabular-nums}.lp-what select{grid-column:2 / -1;min-width:0;width:100%}.lp-result{margin-top:8px}.lp-result .lp-verdict{font-size:14px;margin:4px 0 2px}.lp-progress{height:4px;border-radius:2px;background:var(--lp-line);margin:4px 0 8px;overflow:hidden}.lp-progress i{display:block;height:100%;background:var(--lp-vram)}.lp-memory{margin:8px 0 4px}.lp-memory .lp-legend{margin:0 0 2px}.lp-memory b{font-weight:600;color:var(--lp-fg)}.lp-curve{min-height:104px}.lp-key-other{background:color-mix(in srgb,var(--lp-disk) 80%,var(--lp-bg))}.lp-key-evictable{background:color-mix(in srgb,var(--lp-disk) 28%,var(--lp-bg));border:1px solid var(--lp-disk)}.lp-key-time{background:var(--lp-fg)}.lp-heat{margin-top:14px}.lp-heat table{table-layout:fixed;border-spacing:2px;border-collapse:separate!important;font-size:11px}.lp-heat caption{font-size:12px;text-align:right!important;padding:0!important}.lowpeak .lp-heat th,.lowpeak .lp-heat td{padding:3px 0;text-align:center}.lowpeak .lp-heat td{border-radius:2px;cursor:pointer;white-space:nowrap;overflow:hidden}.lp-fits{background:color-mix(in srgb,var(--lp-hot) var(--lp-heat),var(--lp-card))}.lp-short,.lp-waits{color:var(--lp-dim)}.lp-short{background:repeating-linear-gradient(135deg,var(--lp-line) 0 1px,transparent 1px 5px)}.lp-here{outline:2px solid var(--lp-fg);outline-offset:-1px}.lp-heat td:focus-visible{outline:3px solid var(--lp-vram)}.lp-heat-0{background:color-mix(in srgb,var(--lp-hot) 8%,var(--lp-card));border:1px solid var(--lp-line)}.lp-heat-1{background:color-mix(in srgb,var(--lp-hot) 50%,var(--lp-card))}.lp-key-here{border:2px solid var(--lp-fg)}.lp-errors{display:grid;grid-template-columns:auto 1fr;gap:0 6px;margin-top:12px}.lp-errors>:nth-child(n+3){grid-column:1 / -1}.lp-scale{display:flex;flex-direction:column;justify-content:space-between;font-size:11px;color:var(--lp-dim);text-align:right}.lp-actions{display:flex;flex-wrap:wrap;gap:8px;margin-top:10px;align-items:center}.lowpeak table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}.lowpeak td,.lowpeak th{padding:3px 0 3px 8px;text-align:right;font-weight:400;vertical-align:top}.lowpeak th{color:var(--lp-dim)}.lowpeak td:first-child,.lowpeak th:first-child{text-align:left;padding-left:0}.lowpeak caption{text-align:left;color:var(--lp-dim);padding-bottom:4px}.lp-spark{width:100%;height:60px;display:block}.lp-sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.lowpeak li,.lp-dim,.lp-verdict{overflow-wrap:anywhere}.lp-notice{border-left:2px solid var(--lp-dim);padding-left:8px;margin:8px 0 0;color:var(--lp-dim);overflow-wrap:anywhere}@container (max-width: 270px){.lp-sec td:nth-child(3),.lp-sec th:nth-child(3){display:none}.lowpeak td,.lowpeak th{padding-left:5px;overflow-wrap:anywhere}.lp-row{grid-template-columns:1fr auto}.lp-bars{grid-column:1 / -1;grid-row:2}.lp-blocks{grid-template-columns:repeat(13,1fr)}.lp-heat tr>:nth-child(odd):not(:first-child){display:none}.lp-what{grid-template-columns:44px 1fr 56px}}@media(prefers-reduced-motion:reduce){.lp-busy{transition:none}}", Rs = 2 ** 30;
function Ln(e, t) {
  const l = `${e}.${t}`;
  return l in Ps.en ? v(l) : t;
}
const We = (e) => Ln("axis", e.toLowerCase()), Pi = (e) => Ln("limit", e), Ra = (e) => Ln("row", e);
function ul(e, t = ["sample_low"]) {
  return e === "sample_high" && ![...t].includes("sample_low") ? v("phase.only") : Ln("phase", e);
}
function Xe(e, t = 1) {
  return e == null ? v("unknown") : `${(e / Rs).toFixed(t)} GiB`;
}
function Rl(e) {
  if (e == null || !Number.isFinite(e)) return v("unknown");
  if (e < 10) return v("time.seconds", { s: e.toFixed(1) });
  const t = Math.round(e);
  if (t < 60) return v("time.seconds", { s: t });
  if (t < 3600) return v("time.minutes", { m: Math.floor(t / 60), s: tn(t % 60) });
  const l = Math.round(t / 60);
  return v("time.hours", { h: Math.floor(l / 60), m: tn(l % 60) });
}
function on(e) {
  if (e == null || !Number.isFinite(e)) return "–";
  const t = Math.round(e);
  return t < 60 ? v("time.seconds", { s: e < 10 ? e.toFixed(1) : t }) : t < 3600 ? `${Math.floor(t / 60)}:${tn(t % 60)}` : `${Math.floor(t / 3600)}:${tn(Math.floor(t % 3600 / 60))}:${tn(t % 60)}`;
}
function jt(e) {
  if (!e?.width || !e.height) return "";
  const { width: t, height: l, seconds: n } = e;
  return n == null ? v("size", { width: t, height: l }) : v("size.length", { width: t, height: l, s: n.toFixed(1) });
}
function za(e) {
  if (!e) return "";
  const t = e.vram_total_bytes ? "" : v("machine.no_gpu"), l = ["vram", "ram"].map((n) => {
    const s = e[`${n}_total_bytes`];
    return s ? v("machine.axis", { axis: We(n), amount: Xe(s, 0) }) : "";
  });
  return [e.device_name || e.card || t, ...l].filter(Boolean).join(" · ");
}
function Ba(e) {
  const t = e?.passes?.length, l = t === 2 ? v("passes.two") : t === 1 ? v("passes.one") : "";
  return Yt([e?.quality ?? "", l].filter(Boolean));
}
function Di(e) {
  if (e.fits === !1) return Oa(e);
  const t = e.seconds_range, l = Ri(e)?.limited_by, n = ["vram", "ram"].flatMap((a) => {
    const r = Na(e, a), u = zs(e.snapshot, a), p = We(a);
    return r == null ? [] : u == null ? [v("verdict.used_alone", { peak: Xe(r), axis: p })] : [v("verdict.used", { peak: (r / Rs).toFixed(1), free: Xe(u), axis: p })];
  }), s = [
    [jt(e.request), Ba(e.request)].filter(Boolean).join(" · "),
    t && v("verdict.range", { low: Rl(t[0]), high: Rl(t[1]) }),
    l && v("verdict.limited", { limit: Pi(l) }),
    n.length && v("verdict.peak", { used: Yt(n) })
  ];
  return {
    tone: "ok",
    head: v("verdict.fits", { time: Rl(e.total_seconds) }),
    detail: s.filter(Boolean).join(v("list.stop")) + v("list.end")
  };
}
function Oa(e) {
  const t = e.short ?? [], l = t[0];
  if (!l) return { tone: "bad", head: v("refusal.plain"), detail: e.message ?? "" };
  const n = [...new Set(t.map((p) => p.axis))], s = n.includes("ram") ? "vram" : "ram", a = t.map(
    (p) => v("refusal.detail", {
      phase: ul(p.phase),
      size: jt(e.request),
      need: Xe(p.need_bytes),
      have: Xe(p.have_bytes),
      axis: We(p.axis)
    })
  ), r = n.length === 1 && l.axis !== "disk", u = { axes: Ci(n), amount: Xe(l.shortfall_bytes) };
  return {
    tone: "bad",
    head: n.length > 1 ? v("refusal.many", u) : v("refusal.one", u),
    detail: a.join(" ") + (r ? v("refusal.enough", { axis: We(s) }) : "")
  };
}
function Ci(e) {
  return e.map(We).join(v("list.and"));
}
function Ri(e) {
  return [...e.phases ?? []].sort((t, l) => (l.seconds ?? 0) - (t.seconds ?? 0))[0];
}
function Na(e, t) {
  const l = `${t}_peak_bytes`, n = (e.phases ?? []).map((s) => s[l]).filter((s) => s != null);
  return n.length ? Math.max(...n) : null;
}
function zs(e, t) {
  const l = t === "vram" ? e?.vram_free_bytes : e?.ram_available_bytes;
  return l || null;
}
function Ga(e, t) {
  const l = new RegExp(`^${t.toUpperCase()}: .* ([0-9.]+) (GiB|MiB) margin`);
  for (const n of e.reasons ?? []) {
    const s = l.exec(n);
    if (s) return Number(s[1]) * (s[2] === "GiB" ? Rs : 2 ** 20);
  }
  return 0;
}
function Do(e) {
  return e.replace(
    /^(encode|sample_low|upscale|sample_high|decode)\b/,
    (l) => ul(l)
  ).replace(/(\d)x(\d)/g, "$1 × $2");
}
function Fa(e) {
  return e.replace(
    /(phase )?\b(sample_low|sample_high)\b/g,
    (t, l, n) => ul(n).toLowerCase()
  );
}
function Ia(e) {
  const t = [{ head: "", lines: [...e.what_if ?? []] }];
  for (const l of e.reasons ?? []) {
    const n = /^((?:encode|sample_low|upscale|sample_high|decode)\b[^:]*): (.*)$/.exec(l), s = n ? Do(n[1]) : "";
    let a = t.find((r) => r.head === s);
    a || t.push(a = { head: s, lines: [] }), a.lines.push(Va(Do(n ? n[2] : l)));
  }
  return t.filter((l) => l.lines.length);
}
function Va(e) {
  return e.charAt(0).toUpperCase() + e.slice(1);
}
function rn(e, t) {
  return e == null || !t ? null : 100 * (e - t) / t;
}
function Sn(e) {
  if (e == null) return "–";
  const t = Math.round(e);
  return t === 0 ? "0 %" : `${t > 0 ? "+" : "−"}${Math.abs(t)} %`;
}
function Co(e, t, l) {
  if (l == null) return "";
  const n = Math.abs(Math.round(l)), s = n === 0 ? "same" : l > 0 ? "more" : "less";
  return v(`diff.${`${e}${s}`}`, { axis: t, n });
}
function $a(e) {
  const t = [];
  for (const [l, { forecast: n, measured: s }] of Object.entries(e.phases)) {
    if (!n || !s) continue;
    const a = ["vram", "ram"].map((p) => {
      const d = `${p}_peak_bytes`;
      return Co("", We(p), rn(s[d], n[d]));
    }), u = [Co("time_", "", rn(s.seconds, n.seconds)), ...a].filter(Boolean);
    u.length && t.push(v("diff.line", {
      phase: ul(l, Object.keys(e.phases)),
      parts: Yt(u)
    }));
  }
  return t;
}
function Wa(e) {
  const t = Ya(Object.values(e.phases).map((s) => s.measured?.seconds)), l = jt(e.request);
  if (e.status === "failed") {
    const s = e.error?.error ? `${e.error.error}: ` : "", a = Fa(e.error?.message ?? v("run.no_reason"));
    return { tone: "bad", head: v("run.failed"), detail: s + a };
  }
  return e.status === "cancelled" ? { tone: "ok", head: v("run.cancelled"), detail: l } : { tone: "ok", head: t == null ? v("run.done") : v("run.took", { time: Rl(t) }), detail: l };
}
function Ha(e) {
  return e.status !== "done" ? "–" : Sn(rn(e.measured_vram_peak_bytes, e.forecast_vram_peak_bytes));
}
function ja(e) {
  const t = e.plan.phases?.length ? e.plan.phases.map((n) => [n.phase, n.seconds]) : Object.entries(e.phases).map(([n, s]) => [n, s.forecast?.seconds]);
  let l = null;
  for (const [n, s] of t) {
    const a = e.phases[n];
    if (a?.measured || s == null) continue;
    const { step: r, steps: u } = a?.progress ?? {};
    l = (l ?? 0) + s * (u ? 1 - Math.min(1, (r ?? 0) / u) : 1);
  }
  return l;
}
function Ua(e) {
  return Object.entries(e.phases).filter(([, l]) => !l.measured).at(-1)?.[0] ?? null;
}
function Ya(e) {
  const t = e.filter((l) => l != null);
  return t.length ? t.reduce((l, n) => l + n, 0) : null;
}
function qa(e, t, l, n) {
  const s = `${t}_peak_bytes`, a = v(
    "bar.label",
    { phase: e, axis: We(t), amount: Xe(l[s], 2) }
  );
  return n?.[s] == null ? a : v("bar.measured", { label: a, amount: Xe(n[s], 2) });
}
function tn(e) {
  return String(e).padStart(2, "0");
}
const Ka = ["encode", "sample_low", "upscale", "sample_high", "decode"];
function Ja(e) {
  const t = e.fits === !1 ? Za(e) : Bi(e);
  return Oi(t, e);
}
function zi(e) {
  const t = new Map(Bi(e.plan).map((l) => [l.phase, l]));
  for (const [l, { forecast: n, measured: s }] of Object.entries(e.phases)) {
    const a = t.get(l);
    (n || s || a) && t.set(l, { phase: l, forecast: { ...a?.forecast, ...n }, measured: s });
  }
  return Oi([...t.values()], e.plan);
}
function Bi(e) {
  return (e.phases ?? []).map((t) => ({ phase: t.phase, forecast: t }));
}
function Za(e) {
  const t = /* @__PURE__ */ new Map();
  for (const l of e.short ?? []) {
    const n = t.get(l.phase) ?? { phase: l.phase, forecast: {} };
    n.forecast = { ...n.forecast, [`${l.axis}_peak_bytes`]: l.need_bytes }, t.set(l.phase, n);
  }
  return [...t.values()];
}
function Oi(e, t) {
  const l = (r) => Ka.indexOf(r), n = [...e].sort((r, u) => l(r.phase) - l(u.phase)), s = n.map((r) => r.phase), a = t.request?.two_pass === !1 ? s : [...s, ...Qa(t)];
  return n.map((r) => {
    const u = ul(r.phase, a);
    return {
      phase: r.phase,
      name: u,
      seconds: r.forecast.seconds ?? null,
      measuredSeconds: r.measured?.seconds ?? null,
      bars: ["vram", "ram"].flatMap((p) => Xa(r, u, p, n, t))
    };
  });
}
function Qa(e) {
  return (e.request?.passes ?? []).map((t) => t.phase);
}
function Xa(e, t, l, n, s) {
  const a = `${l}_peak_bytes`, r = e.forecast[a], u = e.measured?.[a] ?? null;
  if (r == null && u == null) return [];
  const p = zs(s.snapshot, l), d = n.flatMap((L) => [L.forecast[a] ?? 0, L.measured?.[a] ?? 0]), x = Ga(s, l), g = Math.max(p ?? 0, ...d) * (p == null ? 1.15 : 1.02) || 1, w = p == null ? null : p - (s.fits === !1 ? x : 0), T = (L) => 100 * L / g;
  return [
    {
      axis: l,
      used: T(r ?? 0),
      margin: r == null ? 0 : Math.min(T(x), 100 - T(r)),
      capacity: p == null ? null : T(p),
      measured: u == null ? null : T(u),
      excessFrom: w != null && (r ?? 0) > w ? T(w) : null,
      label: qa(t, l, e.forecast, e.measured)
    }
  ];
}
function b(e, t = {}, ...l) {
  const [n, ...s] = e.split("."), a = document.createElement(n);
  s.length && (a.className = s.join(" "));
  for (const [r, u] of Object.entries(t))
    u == null || u === !1 || (typeof u == "function" ? a.addEventListener(r.slice(2), u) : a.setAttribute(r, u === !0 ? "" : String(u)));
  return a.append(...l.filter((r) => !!r)), a;
}
function Ct(e, t) {
  return b(e, { lang: sn() === "en" ? null : "en" }, t);
}
function De(e, ...t) {
  const l = e.contains(document.activeElement) ? document.activeElement.dataset.key : void 0;
  e.replaceChildren(...t.filter((n) => !!n)), l && e.querySelector(`[data-key="${CSS.escape(l)}"]`)?.focus();
}
let ec = 0;
function rl(e, t = !1) {
  const l = b("div.lp-body");
  if (t) {
    const s = b("summary", {}, e);
    return [b("details.lp-sec", {}, s, l), l, s];
  }
  const n = b("h3", { id: `lowpeak-section-${++ec}` }, e);
  return [b("section.lp-sec", { "aria-labelledby": n.id }, n, l), l, n];
}
function Bs(e) {
  return b("div.lp-rows", { role: "list" }, ...e.map(tc));
}
function tc(e) {
  const t = e.measuredSeconds, l = e.seconds == null ? "" : on(e.seconds);
  return b(
    "div.lp-row",
    { role: "listitem", "data-phase": e.phase },
    b("span.lp-name", {}, e.name),
    b("div.lp-bars", {}, ...e.bars.map(lc)),
    t == null ? b("span.lp-time", { title: v("bar.time") }, l) : b("span.lp-time", { title: v("bar.both") }, b("b", {}, on(t)), v("bar.of", { time: l }))
  );
}
function lc(e) {
  const t = (l, n, s) => b("i", { class: l, style: `left:${n}%` + (s == null ? "" : `;width:${s}%`) });
  return b(
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
function Os(e) {
  const t = (l, n) => b("span", {}, b("i", { class: l, "aria-hidden": "true" }), n);
  return b(
    "div.lp-legend",
    {},
    t("lp-key-vram", We("vram")),
    t("lp-key-ram", We("ram")),
    t("lp-key-margin", v("legend.margin")),
    t("lp-key-cap", v("legend.end")),
    e && t("lp-key-measured", v("legend.measured"))
  );
}
const nc = ["card", "ram", "disk"];
function Ro(e, t) {
  return Array.from({ length: e }, (l, n) => Math.floor((2 * n + 1) * t / (2 * e)));
}
function Ni(e) {
  const { resident_blocks: t, pinned_blocks: l, disk_blocks: n } = e, s = Math.min(t + l + n, 400), a = new Set(Ro(Math.min(n, s), s)), r = Array.from({ length: s }, (p, d) => d).filter((p) => !a.has(p)), u = new Set(Ro(Math.min(t, r.length), r.length).map((p) => r[p]));
  return Array.from({ length: s }, (p, d) => a.has(d) ? "disk" : u.has(d) ? "card" : "ram");
}
function sc(e) {
  const t = [];
  for (const l of e) {
    const n = t.at(-1);
    n && n[1] === l - 1 ? n[1] = l : t.push([l, l]);
  }
  return t.map(([l, n]) => l === n ? `${l + 1}` : `${l + 1}-${n + 1}`).join(", ");
}
const zo = { card: "lp-on-card", ram: "lp-in-ram", disk: "lp-on-disk" };
function Gi(e, t) {
  const l = (e.phases ?? []).filter((s) => s.phase.startsWith("sample"));
  return (l.find((s) => s.phase === t) ?? l.find((s) => s.phase === Ri(e)?.phase) ?? l[0])?.placement ?? null;
}
function Fi(e, t) {
  const l = Gi(e, t);
  if (!l) return null;
  const n = Ni(l), s = nc.filter((r) => n.includes(r)).map((r) => {
    const u = n.flatMap((d, x) => d === r ? [x] : []), p = v("blocks.count", { count: u.length, where: v(`blocks.${r}`) });
    return { place: r, text: p, which: v("blocks.which", { where: v(`blocks.${r}`), numbers: sc(u) }) };
  }), a = v("blocks.label", { text: Yt(s.map((r) => r.text)) });
  return b(
    "div",
    {},
    b(
      "div.lp-blocks",
      { role: "img", "aria-label": a },
      ...n.map((r, u) => b("i", {
        class: zo[r],
        title: v("blocks.one", { number: u + 1, where: v(`blocks.${r}`) })
      }))
    ),
    b("div.lp-legend", { "aria-hidden": "true" }, ...s.map(({ place: r, text: u }) => b("span", {}, b("i", { class: zo[r] }), u))),
    b("div.lp-sr", {}, s.map((r) => r.which).join(v("list.stop")))
  );
}
function oc(e, t, l, n) {
  const { plan: s, planError: a, planBusy: r } = l;
  if (a)
    return De(
      e,
      b("div.lp-verdict.lp-bad", {}, v("before.none")),
      Ct("div.lp-dim", a),
      b("div.lp-actions", {}, Ii(n))
    ), De(t);
  if (!s) {
    const g = v(r ? "before.working" : "before.no_sampler");
    return De(e, b("p.lp-dim", {}, g)), De(t);
  }
  const { tone: u, head: p, detail: d } = Di(s);
  De(
    e,
    b("div", { class: `lp-verdict${u === "bad" ? " lp-bad" : ""}` }, p),
    b("div.lp-dim", {}, d),
    ...(s.asked?.notices ?? []).map((g) => Ct("p.lp-notice", g)),
    s.asked?.unknown.length ? b("p.lp-notice", {}, v("before.unknown", { names: Yt(s.asked.unknown) })) : null,
    s.fits === !1 ? ic(s, n) : null
  );
  const x = Ja(s);
  De(t, x.length ? Bs(x) : null, x.length ? Os(!1) : null);
}
function ic(e, t) {
  const l = b("p.lp-notice", { role: "status", hidden: !0 }), n = (e.fits_instead ?? []).map(
    (s, a) => b(
      "div.lp-offer",
      {},
      b("span", {}, jt(s)),
      b("button", {
        type: "button",
        "data-key": `use-${a}`,
        "aria-label": v("offers.use_label", { size: jt(s) }),
        onclick: () => {
          l.textContent = t.use(s), l.hidden = !l.textContent;
        }
      }, v("offers.use"))
    )
  );
  return b(
    "section.lp-sec",
    { "aria-label": v("offers.title") },
    b("h3", {}, n.length ? v("offers.title") : v("offers.none")),
    ...n,
    l,
    b("div.lp-offer", {}, b("span", {}, v("offers.close")), Ii(t))
  );
}
function Ii(e) {
  return b(
    "button",
    { type: "button", "data-key": "again", onclick: () => {
      e.forecast();
    } },
    v("before.again")
  );
}
function rc(e, t, l) {
  const n = l.plan && l.plan.fits !== !1 ? l.plan : null, s = n && Gi(n, null);
  return De(t, s && Fi(n, null)), e.textContent = v("section.blocks", { count: s ? Ni(s).length : 0 }), s != null;
}
function ac(e, t) {
  const l = t.plan, n = l ? Ia(l) : [], s = (a) => b("ul", {}, ...a.map((r) => Ct("li", r)));
  return De(
    e,
    l?.changes_arithmetic && b("p", {}, v("why.arithmetic")),
    ...n.flatMap(({ head: a, lines: r }) => [a && Ct("h4", a), s(r)])
  ), n.length > 0;
}
function cc(e) {
  const { tone: t, head: l, detail: n } = Di(e), s = e.fits === !1 && e.fits_instead?.[0];
  return b(
    "div",
    {},
    b("div", { class: `lp-verdict${t === "bad" ? " lp-bad" : ""}` }, l),
    b("div.lp-dim", {}, n, s ? " " + v("what_if.would_fit", { size: jt(s) }) : "")
  );
}
class uc {
  box;
  body;
  constructor() {
    [this.box, this.body] = rl(v("section.last")), this.box.classList.add("lp-last"), this.box.hidden = !0;
  }
  draw(t) {
    if (this.box.hidden = !t, !t) return De(this.body);
    this.box.dataset.run = t.run_id;
    const { tone: l, head: n, detail: s } = Wa(t), a = zi(t), r = $a(t);
    De(
      this.body,
      b("div", {
        class: `lp-verdict${l === "bad" ? " lp-bad" : ""}`,
        role: l === "bad" ? "alert" : null
      }, n),
      t.status === "failed" ? Ct("div.lp-dim", s) : b("div.lp-dim", {}, s || jt(t.request)),
      a.length ? Bs(a) : null,
      a.length ? Os(!0) : null,
      r.length ? b("ul", {}, ...r.map((u) => b("li", {}, u))) : null,
      ...t.notices.slice(-5).map((u) => Ct("p.lp-notice", u)),
      pc(t.report.lora),
      hc(t.report.kernels),
      this.copy(t)
    );
  }
  copy(t) {
    const l = b("span.lp-dim", { role: "status" }), n = async () => {
      l.textContent = await fc(Aa(t)) ? v("copy.done") : v("copy.refused");
    };
    return b(
      "div.lp-actions",
      {},
      b(
        "button",
        { type: "button", "data-key": "copy", onclick: () => {
          n();
        } },
        v("copy.button")
      ),
      b("span.lp-dim", {}, v("copy.what")),
      l
    );
  }
}
async function fc(e) {
  try {
    return await navigator.clipboard.writeText(e), !0;
  } catch {
    const t = b("textarea", { style: "position:fixed;opacity:0" });
    t.value = e, document.body.append(t), t.select();
    const l = document.execCommand("copy");
    return t.remove(), l;
  }
}
function pc(e) {
  return !Array.isArray(e) || !e.length ? null : b("div.lp-sec", {}, b("h4", {}, v("section.lora")), ...e.flatMap((t) => {
    const l = (t.skipped ?? []).filter((s) => s.matters !== !1 && s.tensors?.length), n = t.complete === !1 ? ".lp-bad" : "";
    return [
      b(`div.lp-lora${n}`, {}, v("lora.bound", {
        file: t.file ?? "LoRA",
        bound: t.bound_tensors ?? "?",
        all: t.tensors ?? "?"
      })),
      ...l.map((s) => b(
        "div.lp-dim",
        {},
        v("lora.left", { count: s.tensors.length, reason: s.reason ?? "?" })
      ))
    ];
  }));
}
function hc(e) {
  if (!e || typeof e != "object") return null;
  const t = Object.entries(e).flatMap(([l, n]) => dc(l, typeof n == "string" ? { implementation: n } : n ?? {}));
  return t.length ? b(
    "details.lp-sec",
    {},
    b("summary", {}, v("section.kernels")),
    b("ul.lp-kernels", {}, ...t.map((l) => b("li", {}, l)))
  ) : null;
}
function dc(e, t) {
  const l = (u, p, d) => d ? v("kernels.because", { stage: u, name: p, reason: d }) : v("kernels.used", { stage: u, name: p }), { chosen: n = {}, because: s = {}, against: a = {}, changes_arithmetic: r = [] } = t;
  return [
    l(e, t.implementation ?? "?", t.reason),
    ...Object.entries(n).map(([u, p]) => l(u, p, s[u])),
    ...Object.entries(a).map(([u, p]) => v("kernels.against", { name: u, reason: p })),
    ...r.length ? [v("kernels.changes", { names: Yt(r) })] : []
  ];
}
const mc = !0, Ce = "u-", gc = "uplot", wc = Ce + "hz", bc = Ce + "vt", vc = Ce + "title", xc = Ce + "wrap", yc = Ce + "under", kc = Ce + "over", _c = Ce + "axis", il = Ce + "off", Sc = Ce + "select", Mc = Ce + "cursor-x", Tc = Ce + "cursor-y", Ac = Ce + "cursor-pt", Ec = Ce + "legend", Lc = Ce + "live", Pc = Ce + "inline", Dc = Ce + "series", Cc = Ce + "marker", Bo = Ce + "label", Rc = Ce + "value", Ql = "width", Xl = "height", Jl = "top", Oo = "bottom", Dl = "left", fs = "right", Ns = "#000", No = Ns + "0", ps = "mousemove", Go = "mousedown", hs = "mouseup", Fo = "mouseenter", Io = "mouseleave", Vo = "dblclick", zc = "resize", Bc = "scroll", $o = "change", Tn = "dppxchange", Gs = "--", Fl = typeof window < "u", xs = Fl ? document : null, zl = Fl ? window : null, Oc = Fl ? navigator : null;
let re, yn;
function ys() {
  let e = devicePixelRatio;
  re != e && (re = e, yn && _s($o, yn, ys), yn = matchMedia(`(min-resolution: ${re - 1e-3}dppx) and (max-resolution: ${re + 1e-3}dppx)`), al($o, yn, ys), zl.dispatchEvent(new CustomEvent(Tn)));
}
function ot(e, t) {
  if (t != null) {
    let l = e.classList;
    !l.contains(t) && l.add(t);
  }
}
function ks(e, t) {
  let l = e.classList;
  l.contains(t) && l.remove(t);
}
function be(e, t, l) {
  e.style[t] = l + "px";
}
function yt(e, t, l, n) {
  let s = xs.createElement(e);
  return t != null && ot(s, t), l?.insertBefore(s, n), s;
}
function dt(e, t) {
  return yt("div", e, t);
}
const Wo = /* @__PURE__ */ new WeakMap();
function Dt(e, t, l, n, s) {
  let a = "translate(" + t + "px," + l + "px)", r = Wo.get(e);
  a != r && (e.style.transform = a, Wo.set(e, a), t < 0 || l < 0 || t > n || l > s ? ot(e, il) : ks(e, il));
}
const Ho = /* @__PURE__ */ new WeakMap();
function jo(e, t, l) {
  let n = t + l, s = Ho.get(e);
  n != s && (Ho.set(e, n), e.style.background = t, e.style.borderColor = l);
}
const Uo = /* @__PURE__ */ new WeakMap();
function Yo(e, t, l, n) {
  let s = t + "" + l, a = Uo.get(e);
  s != a && (Uo.set(e, s), e.style.height = l + "px", e.style.width = t + "px", e.style.marginLeft = n ? -t / 2 + "px" : 0, e.style.marginTop = n ? -l / 2 + "px" : 0);
}
const Fs = { passive: !0 }, Nc = { ...Fs, capture: !0 };
function al(e, t, l, n) {
  t.addEventListener(e, l, n ? Nc : Fs);
}
function _s(e, t, l, n) {
  t.removeEventListener(e, l, Fs);
}
Fl && ys();
function kt(e, t, l, n) {
  let s;
  l = l || 0, n = n || t.length - 1;
  let a = n <= 2147483647;
  for (; n - l > 1; )
    s = a ? l + n >> 1 : it((l + n) / 2), t[s] < e ? l = s : n = s;
  return e - t[l] <= t[n] - e ? l : n;
}
function Vi(e) {
  return (l, n, s) => {
    let a = -1, r = -1;
    for (let u = n; u <= s; u++)
      if (e(l[u])) {
        a = u;
        break;
      }
    for (let u = s; u >= n; u--)
      if (e(l[u])) {
        r = u;
        break;
      }
    return [a, r];
  };
}
const $i = (e) => e != null, Wi = (e) => e != null && e > 0, Pn = Vi($i), Gc = Vi(Wi);
function Fc(e, t, l, n = 0, s = !1) {
  let a = s ? Gc : Pn, r = s ? Wi : $i;
  [t, l] = a(e, t, l);
  let u = e[t], p = e[t];
  if (t > -1)
    if (n == 1)
      u = e[t], p = e[l];
    else if (n == -1)
      u = e[l], p = e[t];
    else
      for (let d = t; d <= l; d++) {
        let x = e[d];
        r(x) && (x < u ? u = x : x > p && (p = x));
      }
  return [u ?? pe, p ?? -pe];
}
function Dn(e, t, l, n) {
  let s = Jo(e), a = Jo(t);
  e == t && (s == -1 ? (e *= l, t /= l) : (e /= l, t *= l));
  let r = l == 10 ? Ot : Hi, u = s == 1 ? it : mt, p = a == 1 ? mt : it, d = u(r(Pe(e))), x = p(r(Pe(t))), g = Bl(l, d), w = Bl(l, x);
  return l == 10 && (d < 0 && (g = he(g, -d)), x < 0 && (w = he(w, -x))), n || l == 2 ? (e = g * s, t = w * a) : (e = qi(e, g), t = Cn(t, w)), [e, t];
}
function Is(e, t, l, n) {
  let s = Dn(e, t, l, n);
  return e == 0 && (s[0] = 0), t == 0 && (s[1] = 0), s;
}
const Vs = 0.1, qo = {
  mode: 3,
  pad: Vs
}, ln = {
  pad: 0,
  soft: null,
  mode: 0
}, Ic = {
  min: ln,
  max: ln
};
function An(e, t, l, n) {
  return Rn(l) ? Ko(e, t, l) : (ln.pad = l, ln.soft = n ? 0 : null, ln.mode = n ? 3 : 0, Ko(e, t, Ic));
}
function oe(e, t) {
  return e ?? t;
}
function Vc(e, t, l) {
  for (t = oe(t, 0), l = oe(l, e.length - 1); t <= l; ) {
    if (e[t] != null)
      return !0;
    t++;
  }
  return !1;
}
function Ko(e, t, l) {
  let n = l.min, s = l.max, a = oe(n.pad, 0), r = oe(s.pad, 0), u = oe(n.hard, -pe), p = oe(s.hard, pe), d = oe(n.soft, pe), x = oe(s.soft, -pe), g = oe(n.mode, 0), w = oe(s.mode, 0), T = t - e, L = Ot(T), B = Ke(Pe(e), Pe(t)), F = Ot(B), $ = Pe(F - L);
  (T < 1e-24 || $ > 10) && (T = 0, (e == 0 || t == 0) && (T = 1e-24, g == 2 && d != pe && (a = 0), w == 2 && x != -pe && (r = 0)));
  let S = T || B || 1e3, _ = Ot(S), A = Bl(10, it(_)), J = S * (T == 0 ? e == 0 ? 0.1 : 1 : a), z = he(qi(e - J, A / 10), 24), Z = e >= d && (g == 1 || g == 3 && z <= d || g == 2 && z >= d) ? d : pe, Y = Ke(u, z < Z && e >= Z ? Z : _t(Z, z)), ee = S * (T == 0 ? t == 0 ? 0.1 : 1 : r), U = he(Cn(t + ee, A / 10), 24), E = t <= x && (w == 1 || w == 3 && U >= x || w == 2 && U <= x) ? x : -pe, K = _t(p, U > E && t <= E ? E : Ke(E, U));
  return Y == K && Y == 0 && (K = 100), [Y, K];
}
const $c = new Intl.NumberFormat(Fl ? Oc.language : "en-US"), $s = (e) => $c.format(e), rt = Math, Mn = rt.PI, Pe = rt.abs, it = rt.floor, Le = rt.round, mt = rt.ceil, _t = rt.min, Ke = rt.max, Bl = rt.pow, Jo = rt.sign, Ot = rt.log10, Hi = rt.log2, Wc = (e, t = 1) => rt.sinh(e) * t, ds = (e, t = 1) => rt.asinh(e / t), pe = 1 / 0;
function Zo(e) {
  return (Ot((e ^ e >> 31) - (e >> 31)) | 0) + 1;
}
function Ss(e, t, l) {
  return _t(Ke(e, t), l);
}
function ji(e) {
  return typeof e == "function";
}
function te(e) {
  return ji(e) ? e : () => e;
}
const Hc = () => {
}, Ui = (e) => e, Yi = (e, t) => t, jc = (e) => null, Qo = (e) => !0, Xo = (e, t) => e == t, Uc = /\.\d*?(?=9{6,}|0{6,})/gm, cl = (e) => {
  if (Ji(e) || Ut.has(e))
    return e;
  const t = `${e}`, l = t.match(Uc);
  if (l == null)
    return e;
  let n = l[0].length - 1;
  if (t.indexOf("e-") != -1) {
    let [s, a] = t.split("e");
    return +`${cl(s)}e${a}`;
  }
  return he(e, n);
};
function sl(e, t) {
  return cl(he(cl(e / t)) * t);
}
function Cn(e, t) {
  return cl(mt(cl(e / t)) * t);
}
function qi(e, t) {
  return cl(it(cl(e / t)) * t);
}
function he(e, t = 0) {
  if (Ji(e))
    return e;
  let l = 10 ** t, n = e * l * (1 + Number.EPSILON);
  return Le(n) / l;
}
const Ut = /* @__PURE__ */ new Map();
function Ki(e) {
  return (("" + e).split(".")[1] || "").length;
}
function an(e, t, l, n) {
  let s = [], a = n.map(Ki);
  for (let r = t; r < l; r++) {
    let u = Pe(r), p = he(Bl(e, r), u);
    for (let d = 0; d < n.length; d++) {
      let x = e == 10 ? +`${n[d]}e${r}` : n[d] * p, g = (r >= 0 ? 0 : u) + (r >= a[d] ? 0 : a[d]), w = e == 10 ? x : he(x, g);
      s.push(w), Ut.set(w, g);
    }
  }
  return s;
}
const nn = {}, Ws = [], Ol = [null, null], Ht = Array.isArray, Ji = Number.isInteger, Yc = (e) => e === void 0;
function ei(e) {
  return typeof e == "string";
}
function Rn(e) {
  let t = !1;
  if (e != null) {
    let l = e.constructor;
    t = l == null || l == Object;
  }
  return t;
}
function qc(e) {
  return e != null && typeof e == "object";
}
const Kc = Object.getPrototypeOf(Uint8Array), Zi = "__proto__";
function Nl(e, t = Rn) {
  let l;
  if (Ht(e)) {
    let n = e.find((s) => s != null);
    if (Ht(n) || t(n)) {
      l = Array(e.length);
      for (let s = 0; s < e.length; s++)
        l[s] = Nl(e[s], t);
    } else
      l = e.slice();
  } else if (e instanceof Kc)
    l = e.slice();
  else if (t(e)) {
    l = {};
    for (let n in e)
      n != Zi && (l[n] = Nl(e[n], t));
  } else
    l = e;
  return l;
}
function Te(e) {
  let t = arguments;
  for (let l = 1; l < t.length; l++) {
    let n = t[l];
    for (let s in n)
      s != Zi && (Rn(e[s]) ? Te(e[s], Nl(n[s])) : e[s] = Nl(n[s]));
  }
  return e;
}
const Jc = 0, Zc = 1, Qc = 2;
function Xc(e, t, l) {
  for (let n = 0, s, a = -1; n < t.length; n++) {
    let r = t[n];
    if (r > a) {
      for (s = r - 1; s >= 0 && e[s] == null; )
        e[s--] = null;
      for (s = r + 1; s < l && e[s] == null; )
        e[a = s++] = null;
    }
  }
}
function eu(e, t) {
  if (nu(e)) {
    let r = e[0].slice();
    for (let u = 1; u < e.length; u++)
      r.push(...e[u].slice(1));
    return su(r[0]) || (r = lu(r)), r;
  }
  let l = /* @__PURE__ */ new Set();
  for (let r = 0; r < e.length; r++) {
    let p = e[r][0], d = p.length;
    for (let x = 0; x < d; x++)
      l.add(p[x]);
  }
  let n = [Array.from(l).sort((r, u) => r - u)], s = n[0].length, a = /* @__PURE__ */ new Map();
  for (let r = 0; r < s; r++)
    a.set(n[0][r], r);
  for (let r = 0; r < e.length; r++) {
    let u = e[r], p = u[0];
    for (let d = 1; d < u.length; d++) {
      let x = u[d], g = Array(s).fill(void 0), w = t ? t[r][d] : Zc, T = [];
      for (let L = 0; L < x.length; L++) {
        let B = x[L], F = a.get(p[L]);
        B === null ? w != Jc && (g[F] = B, w == Qc && T.push(F)) : g[F] = B;
      }
      Xc(g, T, s), n.push(g);
    }
  }
  return n;
}
const tu = typeof queueMicrotask > "u" ? (e) => Promise.resolve().then(e) : queueMicrotask;
function lu(e) {
  let t = e[0], l = t.length, n = Array(l);
  for (let a = 0; a < n.length; a++)
    n[a] = a;
  n.sort((a, r) => t[a] - t[r]);
  let s = [];
  for (let a = 0; a < e.length; a++) {
    let r = e[a], u = Array(l);
    for (let p = 0; p < l; p++)
      u[p] = r[n[p]];
    s.push(u);
  }
  return s;
}
function nu(e) {
  let t = e[0][0], l = t.length;
  for (let n = 1; n < e.length; n++) {
    let s = e[n][0];
    if (s.length != l)
      return !1;
    if (s != t) {
      for (let a = 0; a < l; a++)
        if (s[a] != t[a])
          return !1;
    }
  }
  return !0;
}
function su(e, t = 100) {
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
  const a = Ke(1, it((s - n + 1) / t));
  for (let r = e[n], u = n + a; u <= s; u += a) {
    const p = e[u];
    if (p != null) {
      if (p <= r)
        return !1;
      r = p;
    }
  }
  return !0;
}
const Qi = [
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
], Xi = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday"
];
function er(e) {
  return e.slice(0, 3);
}
const ou = Xi.map(er), iu = Qi.map(er), ru = {
  MMMM: Qi,
  MMM: iu,
  WWWW: Xi,
  WWW: ou
};
function Zl(e) {
  return (e < 10 ? "0" : "") + e;
}
function au(e) {
  return (e < 10 ? "00" : e < 100 ? "0" : "") + e;
}
const cu = {
  // 2019
  YYYY: (e) => e.getFullYear(),
  // 19
  YY: (e) => (e.getFullYear() + "").slice(2),
  // July
  MMMM: (e, t) => t.MMMM[e.getMonth()],
  // Jul
  MMM: (e, t) => t.MMM[e.getMonth()],
  // 07
  MM: (e) => Zl(e.getMonth() + 1),
  // 7
  M: (e) => e.getMonth() + 1,
  // 09
  DD: (e) => Zl(e.getDate()),
  // 9
  D: (e) => e.getDate(),
  // Monday
  WWWW: (e, t) => t.WWWW[e.getDay()],
  // Mon
  WWW: (e, t) => t.WWW[e.getDay()],
  // 03
  HH: (e) => Zl(e.getHours()),
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
  mm: (e) => Zl(e.getMinutes()),
  // 9
  m: (e) => e.getMinutes(),
  // 09
  ss: (e) => Zl(e.getSeconds()),
  // 9
  s: (e) => e.getSeconds(),
  // 374
  fff: (e) => au(e.getMilliseconds())
};
function Hs(e, t) {
  t = t || ru;
  let l = [], n = /\{([a-z]+)\}|[^{]+/gi, s;
  for (; s = n.exec(e); )
    l.push(s[0][0] == "{" ? cu[s[1]] : s[0]);
  return (a) => {
    let r = "";
    for (let u = 0; u < l.length; u++)
      r += typeof l[u] == "string" ? l[u] : l[u](a, t);
    return r;
  };
}
const uu = new Intl.DateTimeFormat().resolvedOptions().timeZone;
function fu(e, t) {
  let l;
  return t == "UTC" || t == "Etc/UTC" ? l = new Date(+e + e.getTimezoneOffset() * 6e4) : t == uu ? l = e : (l = new Date(e.toLocaleString("en-US", { timeZone: t })), l.setMilliseconds(e.getMilliseconds())), l;
}
const tr = (e) => e % 1 == 0, En = [1, 2, 2.5, 5], pu = an(10, -32, 0, En), lr = an(10, 0, 32, En), hu = lr.filter(tr), ol = pu.concat(lr), js = `
`, nr = "{YYYY}", ti = js + nr, sr = "{M}/{D}", en = js + sr, kn = en + "/{YY}", or = "{aa}", du = "{h}:{mm}", Cl = du + or, li = js + Cl, ni = ":{ss}", ce = null;
function ir(e) {
  let t = e * 1e3, l = t * 60, n = l * 60, s = n * 24, a = s * 30, r = s * 365, p = (e == 1 ? an(10, 0, 3, En).filter(tr) : an(10, -3, 0, En)).concat([
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
    a,
    a * 2,
    a * 3,
    a * 4,
    a * 6,
    // century divisors
    r,
    r * 2,
    r * 5,
    r * 10,
    r * 25,
    r * 50,
    r * 100
  ]);
  const d = [
    //   tick incr    default          year                    month   day                   hour    min       sec   mode
    [r, nr, ce, ce, ce, ce, ce, ce, 1],
    [s * 28, "{MMM}", ti, ce, ce, ce, ce, ce, 1],
    [s, sr, ti, ce, ce, ce, ce, ce, 1],
    [n, "{h}" + or, kn, ce, en, ce, ce, ce, 1],
    [l, Cl, kn, ce, en, ce, ce, ce, 1],
    [t, ni, kn + " " + Cl, ce, en + " " + Cl, ce, li, ce, 1],
    [e, ni + ".{fff}", kn + " " + Cl, ce, en + " " + Cl, ce, li, ce, 1]
  ];
  function x(g) {
    return (w, T, L, B, F, $) => {
      let S = [], _ = F >= r, A = F >= a && F < r, J = g(L), z = he(J * e, 3), Z = ms(J.getFullYear(), _ ? 0 : J.getMonth(), A || _ ? 1 : J.getDate()), Y = he(Z * e, 3);
      if (A || _) {
        let ee = A ? F / a : 0, U = _ ? F / r : 0, E = z == Y ? z : he(ms(Z.getFullYear() + U, Z.getMonth() + ee, 1) * e, 3), K = new Date(Le(E / e)), O = K.getFullYear(), H = K.getMonth();
        for (let V = 0; E <= B; V++) {
          let le = ms(O + U * V, H + ee * V, 1), I = le - g(he(le * e, 3));
          E = he((+le + I) * e, 3), E <= B && S.push(E);
        }
      } else {
        let ee = F >= s ? s : F, U = it(L) - it(z), E = Y + U + Cn(z - Y, ee);
        S.push(E);
        let K = g(E), O = K.getHours() + K.getMinutes() / l + K.getSeconds() / n, H = F / n, V = w.axes[T]._space, le = $ / V;
        for (; E = he(E + F, e == 1 ? 0 : 3), !(E > B); )
          if (H > 1) {
            let I = it(he(O + H, 6)) % 24, ne = g(E).getHours() - I;
            ne > 1 && (ne = -1), E -= ne * n, O = (O + H) % 24;
            let ue = S[S.length - 1];
            he((E - ue) / F, 3) * le >= 0.7 && S.push(E);
          } else
            S.push(E);
      }
      return S;
    };
  }
  return [
    p,
    d,
    x
  ];
}
const [mu, gu, wu] = ir(1), [bu, vu, xu] = ir(1e-3);
an(2, -53, 53, [1]);
function si(e, t) {
  return e.map((l) => l.map(
    (n, s) => s == 0 || s == 8 || n == null ? n : t(s == 1 || l[8] == 0 ? n : l[1] + n)
  ));
}
function oi(e, t) {
  return (l, n, s, a, r) => {
    let u = t.find((L) => r >= L[0]) || t[t.length - 1], p, d, x, g, w, T;
    return n.map((L) => {
      let B = e(L), F = B.getFullYear(), $ = B.getMonth(), S = B.getDate(), _ = B.getHours(), A = B.getMinutes(), J = B.getSeconds(), z = F != p && u[2] || $ != d && u[3] || S != x && u[4] || _ != g && u[5] || A != w && u[6] || J != T && u[7] || u[1];
      return p = F, d = $, x = S, g = _, w = A, T = J, z(B);
    });
  };
}
function yu(e, t) {
  let l = Hs(t);
  return (n, s, a, r, u) => s.map((p) => l(e(p)));
}
function ms(e, t, l) {
  return new Date(e, t, l);
}
function ii(e, t) {
  return t(e);
}
const ku = "{YYYY}-{MM}-{DD} {h}:{mm}{aa}";
function ri(e, t) {
  return (l, n, s, a) => a == null ? Gs : t(e(n));
}
function _u(e, t) {
  let l = e.series[t];
  return l.width ? l.stroke(e, t) : l.points.width ? l.points.stroke(e, t) : null;
}
function Su(e, t) {
  return e.series[t].fill(e, t);
}
const Mu = {
  show: !0,
  live: !0,
  isolate: !1,
  mount: Hc,
  markers: {
    show: !0,
    width: 2,
    stroke: _u,
    fill: Su,
    dash: "solid"
  },
  idx: null,
  idxs: null,
  values: []
};
function Tu(e, t) {
  let l = e.cursor.points, n = dt(), s = l.size(e, t);
  be(n, Ql, s), be(n, Xl, s);
  let a = s / -2;
  be(n, "marginLeft", a), be(n, "marginTop", a);
  let r = l.width(e, t, s);
  return r && be(n, "borderWidth", r), n;
}
function Au(e, t) {
  let l = e.series[t].points;
  return l._fill || l._stroke;
}
function Eu(e, t) {
  let l = e.series[t].points;
  return l._stroke || l._fill;
}
function Lu(e, t) {
  return e.series[t].points.size;
}
const gs = [0, 0];
function Pu(e, t, l) {
  return gs[0] = t, gs[1] = l, gs;
}
function _n(e, t, l, n = !0) {
  return (s) => {
    s.button == 0 && (!n || s.target == t) && l(s);
  };
}
function ws(e, t, l, n = !0) {
  return (s) => {
    (!n || s.target == t) && l(s);
  };
}
const Du = {
  show: !0,
  x: !0,
  y: !0,
  lock: !1,
  move: Pu,
  points: {
    one: !1,
    show: Tu,
    size: Lu,
    width: 0,
    stroke: Eu,
    fill: Au
  },
  bind: {
    mousedown: _n,
    mouseup: _n,
    click: _n,
    // legend clicks, not .u-over clicks
    dblclick: _n,
    mousemove: ws,
    mouseleave: ws,
    mouseenter: ws
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
}, rr = {
  show: !0,
  stroke: "rgba(0,0,0,0.07)",
  width: 2
  //	dash: [],
}, Us = Te({}, rr, {
  filter: Yi
}), ar = Te({}, Us, {
  size: 10
}), cr = Te({}, rr, {
  show: !1
}), Ys = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif, "Apple Color Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Noto Color Emoji"', ur = "bold " + Ys, fr = 1.5, ai = {
  show: !0,
  scale: "x",
  stroke: Ns,
  space: 50,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: ur,
  side: 2,
  //	class: "x-vals",
  //	incrs: timeIncrs,
  //	values: timeVals,
  //	filter: retArg1,
  grid: Us,
  ticks: ar,
  border: cr,
  font: Ys,
  lineGap: fr,
  rotate: 0
}, Cu = "Value", Ru = "Time", ci = {
  show: !0,
  scale: "x",
  auto: !1,
  sorted: 1,
  //	label: "Time",
  //	value: v => stamp(new Date(v * 1e3)),
  // internal caches
  min: pe,
  max: -pe,
  idxs: []
};
function zu(e, t, l, n, s) {
  return t.map((a) => a == null ? "" : $s(a));
}
function Bu(e, t, l, n, s, a, r) {
  let u = [], p = Ut.get(s) || 0;
  l = r ? l : he(Cn(l, s), p);
  for (let d = l; d <= n; d = he(d + s, p))
    u.push(Object.is(d, -0) ? 0 : d);
  return u;
}
function Ms(e, t, l, n, s, a, r) {
  const u = [], p = e.scales[e.axes[t].scale].log, d = p == 10 ? Ot : Hi, x = it(d(l));
  s = Bl(p, x), p == 10 && (s = ol[kt(s, ol)]);
  let g = l, w = s * p;
  p == 10 && (w = ol[kt(w, ol)]);
  do
    u.push(g), g = g + s, p == 10 && !Ut.has(g) && (g = he(g, Ut.get(s))), g >= w && (s = g, w = s * p, p == 10 && (w = ol[kt(w, ol)]));
  while (g <= n);
  return u;
}
function Ou(e, t, l, n, s, a, r) {
  let p = e.scales[e.axes[t].scale].asinh, d = n > p ? Ms(e, t, Ke(p, l), n, s) : [p], x = n >= 0 && l <= 0 ? [0] : [];
  return (l < -p ? Ms(e, t, Ke(p, -n), -l, s) : [p]).reverse().map((w) => -w).concat(x, d);
}
const pr = /./, Nu = /[12357]/, Gu = /[125]/, ui = /1/, Ts = (e, t, l, n) => e.map((s, a) => t == 4 && s == 0 || a % n == 0 && l.test(s.toExponential()[s < 0 ? 1 : 0]) ? s : null);
function Fu(e, t, l, n, s) {
  let a = e.axes[l], r = a.scale, u = e.scales[r], p = e.valToPos, d = a._space, x = p(10, r), g = p(9, r) - x >= d ? pr : p(7, r) - x >= d ? Nu : p(5, r) - x >= d ? Gu : ui;
  if (g == ui) {
    let w = Pe(p(1, r) - x);
    if (w < d)
      return Ts(t.slice().reverse(), u.distr, g, mt(d / w)).reverse();
  }
  return Ts(t, u.distr, g, 1);
}
function Iu(e, t, l, n, s) {
  let a = e.axes[l], r = a.scale, u = a._space, p = e.valToPos, d = Pe(p(1, r) - p(2, r));
  return d < u ? Ts(t.slice().reverse(), 3, pr, mt(u / d)).reverse() : t;
}
function Vu(e, t, l, n) {
  return n == null ? Gs : t == null ? "" : $s(t);
}
const fi = {
  show: !0,
  scale: "y",
  stroke: Ns,
  space: 30,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: ur,
  side: 3,
  //	class: "y-vals",
  //	incrs: numIncrs,
  //	values: (vals, space) => vals,
  //	filter: retArg1,
  grid: Us,
  ticks: ar,
  border: cr,
  font: Ys,
  lineGap: fr,
  rotate: 0
};
function $u(e, t) {
  let l = 3 + (e || 1) * 2;
  return he(l * t, 3);
}
function Wu(e, t) {
  let { scale: l, idxs: n } = e.series[0], s = e._data[0], a = e.valToPos(s[n[0]], l, !0), r = e.valToPos(s[n[1]], l, !0), u = Pe(r - a), p = e.series[t], d = u / (p.points.space * re);
  return n[1] - n[0] <= d;
}
const pi = {
  scale: null,
  auto: !0,
  sorted: 0,
  // internal caches
  min: pe,
  max: -pe
}, hr = (e, t, l, n, s) => s, hi = {
  show: !0,
  auto: !0,
  sorted: 0,
  gaps: hr,
  alpha: 1,
  facets: [
    Te({}, pi, { scale: "x" }),
    Te({}, pi, { scale: "y" })
  ]
}, di = {
  scale: "y",
  auto: !0,
  sorted: 0,
  show: !0,
  spanGaps: !1,
  gaps: hr,
  alpha: 1,
  points: {
    show: Wu,
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
  min: pe,
  max: -pe,
  idxs: [],
  path: null,
  clip: null
};
function Hu(e, t, l, n, s) {
  return l / 10;
}
const dr = {
  time: mc,
  auto: !0,
  distr: 1,
  log: 10,
  asinh: 1,
  min: null,
  max: null,
  dir: 1,
  ori: 0
}, ju = Te({}, dr, {
  time: !1,
  ori: 1
}), mi = {};
function mr(e, t) {
  let l = mi[e];
  return l || (l = {
    key: e,
    plots: [],
    sub(n) {
      l.plots.push(n);
    },
    unsub(n) {
      l.plots = l.plots.filter((s) => s != n);
    },
    pub(n, s, a, r, u, p, d) {
      for (let x = 0; x < l.plots.length; x++)
        l.plots[x] != s && l.plots[x].pub(n, s, a, r, u, p, d);
    }
  }, e != null && (mi[e] = l)), l;
}
const Gl = 1, As = 2;
function fl(e, t, l) {
  const n = e.mode, s = e.series[t], a = n == 2 ? e._data[t] : e._data, r = e.scales, u = e.bbox;
  let p = a[0], d = n == 2 ? a[1] : a[t], x = n == 2 ? r[s.facets[0].scale] : r[e.series[0].scale], g = n == 2 ? r[s.facets[1].scale] : r[s.scale], w = u.left, T = u.top, L = u.width, B = u.height, F = e.valToPosH, $ = e.valToPosV;
  return x.ori == 0 ? l(
    s,
    p,
    d,
    x,
    g,
    F,
    $,
    w,
    T,
    L,
    B,
    Bn,
    Il,
    Nn,
    wr,
    vr
  ) : l(
    s,
    p,
    d,
    x,
    g,
    $,
    F,
    T,
    w,
    B,
    L,
    On,
    Vl,
    Js,
    br,
    xr
  );
}
function qs(e, t) {
  let l = 0, n = 0, s = oe(e.bands, Ws);
  for (let a = 0; a < s.length; a++) {
    let r = s[a];
    r.series[0] == t ? l = r.dir : r.series[1] == t && (r.dir == 1 ? n |= 1 : n |= 2);
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
function Uu(e, t, l, n, s) {
  let a = e.mode, r = e.series[t], u = a == 2 ? r.facets[1].scale : r.scale, p = e.scales[u];
  return s == -1 ? p.min : s == 1 ? p.max : p.distr == 3 ? p.dir == 1 ? p.min : p.max : 0;
}
function Nt(e, t, l, n, s, a) {
  return fl(e, t, (r, u, p, d, x, g, w, T, L, B, F) => {
    let $ = r.pxRound;
    const S = d.dir * (d.ori == 0 ? 1 : -1), _ = d.ori == 0 ? Il : Vl;
    let A, J;
    S == 1 ? (A = l, J = n) : (A = n, J = l);
    let z = $(g(u[A], d, B, T)), Z = $(w(p[A], x, F, L)), Y = $(g(u[J], d, B, T)), ee = $(w(a == 1 ? x.max : x.min, x, F, L)), U = new Path2D(s);
    return _(U, Y, ee), _(U, z, ee), _(U, z, Z), U;
  });
}
function zn(e, t, l, n, s, a) {
  let r = null;
  if (e.length > 0) {
    r = new Path2D();
    const u = t == 0 ? Nn : Js;
    let p = l;
    for (let g = 0; g < e.length; g++) {
      let w = e[g];
      if (w[1] > w[0]) {
        let T = w[0] - p;
        T > 0 && u(r, p, n, T, n + a), p = w[1];
      }
    }
    let d = l + s - p, x = 10;
    d > 0 && u(r, p, n - x / 2, d, n + a + x);
  }
  return r;
}
function Yu(e, t, l) {
  let n = e[e.length - 1];
  n && n[0] == t ? n[1] = l : e.push([t, l]);
}
function Ks(e, t, l, n, s, a, r) {
  let u = [], p = e.length;
  for (let d = s == 1 ? l : n; d >= l && d <= n; d += s)
    if (t[d] === null) {
      let g = d, w = d;
      if (s == 1)
        for (; ++d <= n && t[d] === null; )
          w = d;
      else
        for (; --d >= l && t[d] === null; )
          w = d;
      let T = a(e[g]), L = w == g ? T : a(e[w]), B = g - s;
      T = r <= 0 && B >= 0 && B < p ? a(e[B]) : T;
      let $ = w + s;
      L = r >= 0 && $ >= 0 && $ < p ? a(e[$]) : L, L >= T && u.push([T, L]);
    }
  return u;
}
function gi(e) {
  return e == 0 ? Ui : e == 1 ? Le : (t) => sl(t, e);
}
function gr(e) {
  let t = e == 0 ? Bn : On, l = e == 0 ? (s, a, r, u, p, d) => {
    s.arcTo(a, r, u, p, d);
  } : (s, a, r, u, p, d) => {
    s.arcTo(r, a, p, u, d);
  }, n = e == 0 ? (s, a, r, u, p) => {
    s.rect(a, r, u, p);
  } : (s, a, r, u, p) => {
    s.rect(r, a, p, u);
  };
  return (s, a, r, u, p, d = 0, x = 0) => {
    d == 0 && x == 0 ? n(s, a, r, u, p) : (d = _t(d, u / 2, p / 2), x = _t(x, u / 2, p / 2), t(s, a + d, r), l(s, a + u, r, a + u, r + p, d), l(s, a + u, r + p, a, r + p, x), l(s, a, r + p, a, r, x), l(s, a, r, a + u, r, d), s.closePath());
  };
}
const Bn = (e, t, l) => {
  e.moveTo(t, l);
}, On = (e, t, l) => {
  e.moveTo(l, t);
}, Il = (e, t, l) => {
  e.lineTo(t, l);
}, Vl = (e, t, l) => {
  e.lineTo(l, t);
}, Nn = gr(0), Js = gr(1), wr = (e, t, l, n, s, a) => {
  e.arc(t, l, n, s, a);
}, br = (e, t, l, n, s, a) => {
  e.arc(l, t, n, s, a);
}, vr = (e, t, l, n, s, a, r) => {
  e.bezierCurveTo(t, l, n, s, a, r);
}, xr = (e, t, l, n, s, a, r) => {
  e.bezierCurveTo(l, t, s, n, r, a);
};
function yr(e) {
  return (t, l, n, s, a) => fl(t, l, (r, u, p, d, x, g, w, T, L, B, F) => {
    let { pxRound: $, points: S } = r, _, A;
    d.ori == 0 ? (_ = Bn, A = wr) : (_ = On, A = br);
    const J = he(S.width * re, 3);
    let z = (S.size - S.width) / 2 * re, Z = he(z * 2, 3), Y = new Path2D(), ee = new Path2D(), { left: U, top: E, width: K, height: O } = t.bbox;
    Nn(
      ee,
      U - Z,
      E - Z,
      K + Z * 2,
      O + Z * 2
    );
    const H = (V) => {
      if (p[V] != null) {
        let le = $(g(u[V], d, B, T)), I = $(w(p[V], x, F, L));
        _(Y, le + z, I), A(Y, le, I, z, 0, Mn * 2);
      }
    };
    if (a)
      a.forEach(H);
    else
      for (let V = n; V <= s; V++)
        H(V);
    return {
      stroke: J > 0 ? Y : null,
      fill: Y,
      clip: ee,
      flags: Gl | As
    };
  });
}
function kr(e) {
  return (t, l, n, s, a, r) => {
    n != s && (a != n && r != n && e(t, l, n), a != s && r != s && e(t, l, s), e(t, l, r));
  };
}
const qu = kr(Il), Ku = kr(Vl);
function _r(e) {
  const t = oe(e?.alignGaps, 0);
  return (l, n, s, a) => fl(l, n, (r, u, p, d, x, g, w, T, L, B, F) => {
    [s, a] = Pn(p, s, a);
    let $ = r.pxRound, S = (O) => $(g(O, d, B, T)), _ = (O) => $(w(O, x, F, L)), A, J;
    d.ori == 0 ? (A = Il, J = qu) : (A = Vl, J = Ku);
    const z = d.dir * (d.ori == 0 ? 1 : -1), Z = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Gl }, Y = Z.stroke;
    let ee = !1;
    if (a - s >= B * 4) {
      let O = (N) => l.posToVal(N, d.key, !0), H = null, V = null, le, I, Je, ve = S(u[z == 1 ? s : a]), ne = S(u[s]), ue = S(u[a]), Q = O(z == 1 ? ne + 1 : ue - 1);
      for (let N = z == 1 ? s : a; N >= s && N <= a; N += z) {
        let Ae = u[N], xe = (z == 1 ? Ae < Q : Ae > Q) ? ve : S(Ae), ae = p[N];
        xe == ve ? ae != null ? (I = ae, H == null ? (A(Y, xe, _(I)), le = H = V = I) : I < H ? H = I : I > V && (V = I)) : ae === null && (ee = !0) : (H != null && J(Y, ve, _(H), _(V), _(le), _(I)), ae != null ? (I = ae, A(Y, xe, _(I)), H = V = le = I) : (H = V = null, ae === null && (ee = !0)), ve = xe, Q = O(ve + z));
      }
      H != null && H != V && Je != ve && J(Y, ve, _(H), _(V), _(le), _(I));
    } else
      for (let O = z == 1 ? s : a; O >= s && O <= a; O += z) {
        let H = p[O];
        H === null ? ee = !0 : H != null && A(Y, S(u[O]), _(H));
      }
    let [E, K] = qs(l, n);
    if (r.fill != null || E != 0) {
      let O = Z.fill = new Path2D(Y), H = r.fillTo(l, n, r.min, r.max, E), V = _(H), le = S(u[s]), I = S(u[a]);
      z == -1 && ([I, le] = [le, I]), A(O, I, V), A(O, le, V);
    }
    if (!r.spanGaps) {
      let O = [];
      ee && O.push(...Ks(u, p, s, a, z, S, t)), Z.gaps = O = r.gaps(l, n, s, a, O), Z.clip = zn(O, d.ori, T, L, B, F);
    }
    return K != 0 && (Z.band = K == 2 ? [
      Nt(l, n, s, a, Y, -1),
      Nt(l, n, s, a, Y, 1)
    ] : Nt(l, n, s, a, Y, K)), Z;
  });
}
function Ju(e) {
  const t = oe(e.align, 1), l = oe(e.ascDesc, !1), n = oe(e.alignGaps, 0), s = oe(e.extend, !1);
  return (a, r, u, p) => fl(a, r, (d, x, g, w, T, L, B, F, $, S, _) => {
    [u, p] = Pn(g, u, p);
    let A = d.pxRound, { left: J, width: z } = a.bbox, Z = (ne) => A(L(ne, w, S, F)), Y = (ne) => A(B(ne, T, _, $)), ee = w.ori == 0 ? Il : Vl;
    const U = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Gl }, E = U.stroke, K = w.dir * (w.ori == 0 ? 1 : -1);
    let O = Y(g[K == 1 ? u : p]), H = Z(x[K == 1 ? u : p]), V = H, le = H;
    s && t == -1 && (le = J, ee(E, le, O)), ee(E, H, O);
    for (let ne = K == 1 ? u : p; ne >= u && ne <= p; ne += K) {
      let ue = g[ne];
      if (ue == null)
        continue;
      let Q = Z(x[ne]), N = Y(ue);
      t == 1 ? ee(E, Q, O) : ee(E, V, N), ee(E, Q, N), O = N, V = Q;
    }
    let I = V;
    s && t == 1 && (I = J + z, ee(E, I, O));
    let [Je, ve] = qs(a, r);
    if (d.fill != null || Je != 0) {
      let ne = U.fill = new Path2D(E), ue = d.fillTo(a, r, d.min, d.max, Je), Q = Y(ue);
      ee(ne, I, Q), ee(ne, le, Q);
    }
    if (!d.spanGaps) {
      let ne = [];
      ne.push(...Ks(x, g, u, p, K, Z, n));
      let ue = d.width * re / 2, Q = l || t == 1 ? ue : -ue, N = l || t == -1 ? -ue : ue;
      ne.forEach((Ae) => {
        Ae[0] += Q, Ae[1] += N;
      }), U.gaps = ne = d.gaps(a, r, u, p, ne), U.clip = zn(ne, w.ori, F, $, S, _);
    }
    return ve != 0 && (U.band = ve == 2 ? [
      Nt(a, r, u, p, E, -1),
      Nt(a, r, u, p, E, 1)
    ] : Nt(a, r, u, p, E, ve)), U;
  });
}
function wi(e, t, l, n, s, a, r = pe) {
  if (e.length > 1) {
    let u = null;
    for (let p = 0, d = 1 / 0; p < e.length; p++)
      if (t[p] !== void 0) {
        if (u != null) {
          let x = Pe(e[p] - e[u]);
          x < d && (d = x, r = Pe(l(e[p], n, s, a) - l(e[u], n, s, a)));
        }
        u = p;
      }
  }
  return r;
}
function Zu(e) {
  e = e || nn;
  const t = oe(e.size, [0.6, pe, 1]), l = e.align || 0, n = e.gap || 0;
  let s = e.radius;
  s = // [valueRadius, baselineRadius]
  s == null ? [0, 0] : typeof s == "number" ? [s, 0] : s;
  const a = te(s), r = 1 - t[0], u = oe(t[1], pe), p = oe(t[2], 1), d = oe(e.disp, nn), x = oe(e.each, (T) => {
  }), { fill: g, stroke: w } = d;
  return (T, L, B, F) => fl(T, L, ($, S, _, A, J, z, Z, Y, ee, U, E) => {
    let K = $.pxRound, O = l, H = n * re, V = u * re, le = p * re, I, Je;
    A.ori == 0 ? [I, Je] = a(T, L) : [Je, I] = a(T, L);
    const ve = A.dir * (A.ori == 0 ? 1 : -1);
    let ne = A.ori == 0 ? Nn : Js, ue = A.ori == 0 ? x : (C, de, Ee, ml, Jt, Mt, Zt) => {
      x(C, de, Ee, Jt, ml, Zt, Mt);
    }, Q = oe(T.bands, Ws).find((C) => C.series[0] == L), N = Q != null ? Q.dir : 0, Ae = $.fillTo(T, L, $.min, $.max, N), He = K(Z(Ae, J, E, ee)), xe, ae, gt, et = U, ke = K($.width * re), St = !1, Rt = null, at = null, Gt = null, pl = null;
    g != null && (ke == 0 || w != null) && (St = !0, Rt = g.values(T, L, B, F), at = /* @__PURE__ */ new Map(), new Set(Rt).forEach((C) => {
      C != null && at.set(C, new Path2D());
    }), ke > 0 && (Gt = w.values(T, L, B, F), pl = /* @__PURE__ */ new Map(), new Set(Gt).forEach((C) => {
      C != null && pl.set(C, new Path2D());
    })));
    let { x0: hl, size: $l } = d;
    if (hl != null && $l != null) {
      O = 1, S = hl.values(T, L, B, F), hl.unit == 2 && (S = S.map((Ee) => T.posToVal(Y + Ee * U, A.key, !0)));
      let C = $l.values(T, L, B, F);
      $l.unit == 2 ? ae = C[0] * U : ae = z(C[0], A, U, Y) - z(0, A, U, Y), et = wi(S, _, z, A, U, Y, et), gt = et - ae + H;
    } else
      et = wi(S, _, z, A, U, Y, et), gt = et * r + H, ae = et - gt;
    gt < 1 && (gt = 0), ke >= ae / 2 && (ke = 0), gt < 5 && (K = Ui);
    let cn = gt > 0, qt = et - gt - (cn ? ke : 0);
    ae = K(Ss(qt, le, V)), xe = (O == 0 ? ae / 2 : O == ve ? 0 : ae) - O * ve * ((O == 0 ? H / 2 : 0) + (cn ? ke / 2 : 0));
    const je = { stroke: null, fill: null, clip: null, band: null, gaps: null, flags: 0 }, dl = St ? null : new Path2D();
    let zt = null;
    if (Q != null)
      zt = T.data[Q.series[1]];
    else {
      let { y0: C, y1: de } = d;
      C != null && de != null && (_ = de.values(T, L, B, F), zt = C.values(T, L, B, F));
    }
    let Kt = I * ae, q = Je * ae;
    for (let C = ve == 1 ? B : F; C >= B && C <= F; C += ve) {
      let de = _[C];
      if (de == null)
        continue;
      if (zt != null) {
        let Ze = zt[C] ?? 0;
        if (de - Ze == 0)
          continue;
        He = Z(Ze, J, E, ee);
      }
      let Ee = A.distr != 2 || d != null ? S[C] : C, ml = z(Ee, A, U, Y), Jt = Z(oe(de, Ae), J, E, ee), Mt = K(ml - xe), Zt = K(Ke(Jt, He)), tt = K(_t(Jt, He)), ct = Zt - tt;
      if (de != null) {
        let Ze = de < 0 ? q : Kt, wt = de < 0 ? Kt : q;
        St ? (ke > 0 && Gt[C] != null && ne(pl.get(Gt[C]), Mt, tt + it(ke / 2), ae, Ke(0, ct - ke), Ze, wt), Rt[C] != null && ne(at.get(Rt[C]), Mt, tt + it(ke / 2), ae, Ke(0, ct - ke), Ze, wt)) : ne(dl, Mt, tt + it(ke / 2), ae, Ke(0, ct - ke), Ze, wt), ue(
          T,
          L,
          C,
          Mt - ke / 2,
          tt,
          ae + ke,
          ct
        );
      }
    }
    return ke > 0 ? je.stroke = St ? pl : dl : St || (je._fill = $.width == 0 ? $._fill : $._stroke ?? $._fill, je.width = 0), je.fill = St ? at : dl, je;
  });
}
function Qu(e, t) {
  const l = oe(t?.alignGaps, 0);
  return (n, s, a, r) => fl(n, s, (u, p, d, x, g, w, T, L, B, F, $) => {
    [a, r] = Pn(d, a, r);
    let S = u.pxRound, _ = (I) => S(w(I, x, F, L)), A = (I) => S(T(I, g, $, B)), J, z, Z;
    x.ori == 0 ? (J = Bn, Z = Il, z = vr) : (J = On, Z = Vl, z = xr);
    const Y = x.dir * (x.ori == 0 ? 1 : -1);
    let ee = _(p[Y == 1 ? a : r]), U = ee, E = [], K = [];
    for (let I = Y == 1 ? a : r; I >= a && I <= r; I += Y)
      if (d[I] != null) {
        let ve = p[I], ne = _(ve);
        E.push(U = ne), K.push(A(d[I]));
      }
    const O = { stroke: e(E, K, J, Z, z, S), fill: null, clip: null, band: null, gaps: null, flags: Gl }, H = O.stroke;
    let [V, le] = qs(n, s);
    if (u.fill != null || V != 0) {
      let I = O.fill = new Path2D(H), Je = u.fillTo(n, s, u.min, u.max, V), ve = A(Je);
      Z(I, U, ve), Z(I, ee, ve);
    }
    if (!u.spanGaps) {
      let I = [];
      I.push(...Ks(p, d, a, r, Y, _, l)), O.gaps = I = u.gaps(n, s, a, r, I), O.clip = zn(I, x.ori, L, B, F, $);
    }
    return le != 0 && (O.band = le == 2 ? [
      Nt(n, s, a, r, H, -1),
      Nt(n, s, a, r, H, 1)
    ] : Nt(n, s, a, r, H, le)), O;
  });
}
function Xu(e) {
  return Qu(ef, e);
}
function ef(e, t, l, n, s, a) {
  const r = e.length;
  if (r < 2)
    return null;
  const u = new Path2D();
  if (l(u, e[0], t[0]), r == 2)
    n(u, e[1], t[1]);
  else {
    let p = Array(r), d = Array(r - 1), x = Array(r - 1), g = Array(r - 1);
    for (let w = 0; w < r - 1; w++)
      x[w] = t[w + 1] - t[w], g[w] = e[w + 1] - e[w], d[w] = x[w] / g[w];
    p[0] = d[0];
    for (let w = 1; w < r - 1; w++)
      d[w] === 0 || d[w - 1] === 0 || d[w - 1] > 0 != d[w] > 0 ? p[w] = 0 : (p[w] = 3 * (g[w - 1] + g[w]) / ((2 * g[w] + g[w - 1]) / d[w - 1] + (g[w] + 2 * g[w - 1]) / d[w]), isFinite(p[w]) || (p[w] = 0));
    p[r - 1] = d[r - 2];
    for (let w = 0; w < r - 1; w++)
      s(
        u,
        e[w] + g[w] / 3,
        t[w] + p[w] * g[w] / 3,
        e[w + 1] - g[w] / 3,
        t[w + 1] - p[w + 1] * g[w] / 3,
        e[w + 1],
        t[w + 1]
      );
  }
  return u;
}
const Es = /* @__PURE__ */ new Set();
function bi() {
  for (let e of Es)
    e.syncRect(!0);
}
Fl && (al(zc, zl, bi), al(Bc, zl, bi, !0), al(Tn, zl, () => {
  $e.pxRatio = re;
}));
const tf = _r(), lf = yr();
function vi(e, t, l, n) {
  return (n ? [e[0], e[1]].concat(e.slice(2)) : [e[0]].concat(e.slice(1))).map((a, r) => Ls(a, r, t, l));
}
function nf(e, t) {
  return e.map((l, n) => n == 0 ? {} : Te({}, t, l));
}
function Ls(e, t, l, n) {
  return Te({}, t == 0 ? l : n, e);
}
function Sr(e, t, l) {
  return t == null ? Ol : [t, l];
}
const sf = Sr;
function of(e, t, l) {
  return t == null ? Ol : An(t, l, Vs, !0);
}
function Mr(e, t, l, n) {
  return t == null ? Ol : Dn(t, l, e.scales[n].log, !1);
}
const rf = Mr;
function Tr(e, t, l, n) {
  return t == null ? Ol : Is(t, l, e.scales[n].log, !1);
}
const af = Tr;
function cf(e, t, l, n, s) {
  let a = Ke(Zo(e), Zo(t)), r = t - e, u = kt(s / n * r, l);
  do {
    let p = l[u], d = n * p / r;
    if (d >= s && a + (p < 5 ? Ut.get(p) : 0) <= 17)
      return [p, d];
  } while (++u < l.length);
  return [0, 0];
}
function xi(e) {
  let t, l;
  return e = e.replace(/(\d+)px/, (n, s) => (t = Le((l = +s) * re)) + "px"), [e, t, l];
}
function uf(e) {
  e.show && [e.font, e.labelFont].forEach((t) => {
    let l = he(t[2] * re, 1);
    t[0] = t[0].replace(/[0-9.]+px/, l + "px"), t[1] = l;
  });
}
function $e(e, t, l) {
  const n = {
    mode: oe(e.mode, 1)
  }, s = n.mode;
  function a(o, i, c, f) {
    let h = i.valToPct(o);
    return f + c * (i.dir == -1 ? 1 - h : h);
  }
  function r(o, i, c, f) {
    let h = i.valToPct(o);
    return f + c * (i.dir == -1 ? h : 1 - h);
  }
  function u(o, i, c, f) {
    return i.ori == 0 ? a(o, i, c, f) : r(o, i, c, f);
  }
  n.valToPosH = a, n.valToPosV = r;
  let p = !1;
  n.status = 0;
  const d = n.root = dt(gc);
  if (e.id != null && (d.id = e.id), ot(d, e.class), e.title) {
    let o = dt(vc, d);
    o.textContent = e.title;
  }
  const x = yt("canvas"), g = n.ctx = x.getContext("2d"), w = dt(xc, d);
  al("click", w, (o) => {
    o.target === L && (me != Tl || ye != Al) && Ie.click(n, o);
  }, !0);
  const T = n.under = dt(yc, w);
  w.appendChild(x);
  const L = n.over = dt(kc, w);
  e = Nl(e);
  const B = +oe(e.pxAlign, 1), F = gi(B);
  (e.plugins || []).forEach((o) => {
    o.opts && (e = o.opts(n, e) || e);
  });
  const $ = e.ms || 1e-3, S = n.series = s == 1 ? vi(e.series || [], ci, di, !1) : nf(e.series || [null], hi), _ = n.axes = vi(e.axes || [], ai, fi, !0), A = n.scales = {}, J = n.bands = e.bands || [];
  J.forEach((o) => {
    o.fill = te(o.fill || null), o.dir = oe(o.dir, -1);
  });
  const z = s == 2 ? S[1].facets[0].scale : S[0].scale, Z = {
    axes: Wr,
    series: Gr
  }, Y = (e.drawOrder || ["axes", "series"]).map((o) => Z[o]);
  function ee(o) {
    const i = o.distr == 3 ? (c) => Ot(c > 0 ? c : o.clamp(n, c, o.min, o.max, o.key)) : o.distr == 4 ? (c) => ds(c, o.asinh) : o.distr == 100 ? (c) => o.fwd(c) : (c) => c;
    return (c) => {
      let f = i(c), { _min: h, _max: m } = o, y = m - h;
      return (f - h) / y;
    };
  }
  function U(o) {
    let i = A[o];
    if (i == null) {
      let c = (e.scales || nn)[o] || nn;
      if (c.from != null) {
        U(c.from);
        let f = Te({}, A[c.from], c, { key: o });
        f.valToPct = ee(f), A[o] = f;
      } else {
        i = A[o] = Te({}, o == z ? dr : ju, c), i.key = o;
        let f = i.time, h = i.range, m = Ht(h);
        if ((o != z || s == 2 && !f) && (m && (h[0] == null || h[1] == null) && (h = {
          min: h[0] == null ? qo : {
            mode: 1,
            hard: h[0],
            soft: h[0]
          },
          max: h[1] == null ? qo : {
            mode: 1,
            hard: h[1],
            soft: h[1]
          }
        }, m = !1), !m && Rn(h))) {
          let y = h;
          h = (k, M, P) => M == null ? Ol : An(M, P, y);
        }
        i.range = te(h || (f ? sf : o == z ? i.distr == 3 ? rf : i.distr == 4 ? af : Sr : i.distr == 3 ? Mr : i.distr == 4 ? Tr : of)), i.auto = te(m ? !1 : i.auto), i.clamp = te(i.clamp || Hu), i._min = i._max = null, i.valToPct = ee(i);
      }
    }
  }
  U("x"), U("y"), s == 1 && S.forEach((o) => {
    U(o.scale);
  }), _.forEach((o) => {
    U(o.scale);
  });
  for (let o in e.scales)
    U(o);
  const E = A[z], K = E.distr;
  let O, H;
  E.ori == 0 ? (ot(d, wc), O = a, H = r) : (ot(d, bc), O = r, H = a);
  const V = {};
  for (let o in A) {
    let i = A[o];
    (i.min != null || i.max != null) && (V[o] = { min: i.min, max: i.max }, i.min = i.max = null);
  }
  const le = e.tzDate || ((o) => new Date(Le(o / $))), I = e.fmtDate || Hs, Je = $ == 1 ? wu(le) : xu(le), ve = oi(le, si($ == 1 ? gu : vu, I)), ne = ri(le, ii(ku, I)), ue = [], Q = n.legend = Te({}, Mu, e.legend), N = n.cursor = Te({}, Du, { drag: { y: s == 2 } }, e.cursor), Ae = Q.show, He = N.show, xe = Q.markers;
  Q.idxs = ue, xe.width = te(xe.width), xe.dash = te(xe.dash), xe.stroke = te(xe.stroke), xe.fill = te(xe.fill);
  let ae, gt, et, ke = [], St = [], Rt, at = !1, Gt = {};
  if (Q.live) {
    const o = S[1] ? S[1].values : null;
    at = o != null, Rt = at ? o(n, 1, 0) : { _: 0 };
    for (let i in Rt)
      Gt[i] = Gs;
  }
  if (Ae)
    if (ae = yt("table", Ec, d), et = yt("tbody", null, ae), Q.mount(n, ae), at) {
      gt = yt("thead", null, ae, et);
      let o = yt("tr", null, gt);
      yt("th", null, o);
      for (var pl in Rt)
        yt("th", Bo, o).textContent = pl;
    } else
      ot(ae, Pc), Q.live && ot(ae, Lc);
  const hl = { show: !0 }, $l = { show: !1 };
  function cn(o, i) {
    if (i == 0 && (at || !Q.live || s == 2))
      return Ol;
    let c = [], f = yt("tr", Dc, et, et.childNodes[i]);
    ot(f, o.class), o.show || ot(f, il);
    let h = yt("th", null, f);
    if (xe.show) {
      let k = dt(Cc, h);
      if (i > 0) {
        let M = xe.width(n, i);
        M && (k.style.border = M + "px " + xe.dash(n, i) + " " + xe.stroke(n, i)), k.style.background = xe.fill(n, i);
      }
    }
    let m = dt(Bo, h);
    o.label instanceof HTMLElement ? m.appendChild(o.label) : m.textContent = o.label, i > 0 && (xe.show || (m.style.color = o.width > 0 ? xe.stroke(n, i) : xe.fill(n, i)), je("click", h, (k) => {
      if (N._lock)
        return;
      Xt(k);
      let M = S.indexOf(o);
      if ((k.ctrlKey || k.metaKey) != Q.isolate) {
        let P = S.some((D, R) => R > 0 && R != M && D.show);
        S.forEach((D, R) => {
          R > 0 && At(R, P ? R == M ? hl : $l : hl, !0, Me.setSeries);
        });
      } else
        At(M, { show: !o.show }, !0, Me.setSeries);
    }, !1), wl && je(Fo, h, (k) => {
      N._lock || (Xt(k), At(S.indexOf(o), Ll, !0, Me.setSeries));
    }, !1));
    for (var y in Rt) {
      let k = yt("td", Rc, f);
      k.textContent = "--", c.push(k);
    }
    return [f, c];
  }
  const qt = /* @__PURE__ */ new Map();
  function je(o, i, c, f = !0) {
    const h = qt.get(i) || {}, m = N.bind[o](n, i, c, f);
    m && (al(o, i, h[o] = m), qt.set(i, h));
  }
  function dl(o, i, c) {
    const f = qt.get(i) || {};
    for (let h in f)
      (o == null || h == o) && (_s(h, i, f[h]), delete f[h]);
    o == null && qt.delete(i);
  }
  let zt = 0, Kt = 0, q = 0, C = 0, de = 0, Ee = 0, ml = de, Jt = Ee, Mt = q, Zt = C, tt = 0, ct = 0, Ze = 0, wt = 0;
  n.bbox = {};
  let Fn = !1, un = !1, gl = !1, Qt = !1, fn = !1, ut = !1;
  function In(o, i, c) {
    (c || o != n.width || i != n.height) && Zs(o, i), kl(!1), gl = !0, un = !0, _l();
  }
  function Zs(o, i) {
    n.width = zt = q = o, n.height = Kt = C = i, de = Ee = 0, Dr(), Cr();
    let c = n.bbox;
    tt = c.left = sl(de * re, 0.5), ct = c.top = sl(Ee * re, 0.5), Ze = c.width = sl(q * re, 0.5), wt = c.height = sl(C * re, 0.5);
  }
  const Er = 3;
  function Lr() {
    let o = !1, i = 0;
    for (; !o; ) {
      i++;
      let c = Vr(i), f = $r(i);
      o = i == Er || c && f, o || (Zs(n.width, n.height), un = !0);
    }
  }
  function Pr({ width: o, height: i }) {
    In(o, i);
  }
  n.setSize = Pr;
  function Dr() {
    let o = !1, i = !1, c = !1, f = !1;
    _.forEach((h, m) => {
      if (h.show && h._show) {
        let { side: y, _size: k } = h, M = y % 2, P = h.label != null ? h.labelSize : 0, D = k + P;
        D > 0 && (M ? (q -= D, y == 3 ? (de += D, f = !0) : c = !0) : (C -= D, y == 0 ? (Ee += D, o = !0) : i = !0));
      }
    }), el[0] = o, el[1] = c, el[2] = i, el[3] = f, q -= Ft[1] + Ft[3], de += Ft[3], C -= Ft[2] + Ft[0], Ee += Ft[0];
  }
  function Cr() {
    let o = de + q, i = Ee + C, c = de, f = Ee;
    function h(m, y) {
      switch (m) {
        case 1:
          return o += y, o - y;
        case 2:
          return i += y, i - y;
        case 3:
          return c -= y, c + y;
        case 0:
          return f -= y, f + y;
      }
    }
    _.forEach((m, y) => {
      if (m.show && m._show) {
        let k = m.side;
        m._pos = h(k, m._size), m.label != null && (m._lpos = h(k, m.labelSize));
      }
    });
  }
  if (N.dataIdx == null) {
    let o = N.hover, i = o.skip = new Set(o.skip ?? []);
    i.add(void 0);
    let c = o.prox = te(o.prox), f = o.bias ??= 0;
    N.dataIdx = (h, m, y, k) => {
      if (m == 0)
        return y;
      let M = y, P = c(h, m, y, k) ?? pe, D = P >= 0 && P < pe, R = E.ori == 0 ? q : C, j = N.left, ie = t[0], se = t[m];
      if (i.has(se[y])) {
        M = null;
        let X = null, W = null, G;
        if (f == 0 || f == -1)
          for (G = y; X == null && G-- > 0; )
            i.has(se[G]) || (X = G);
        if (f == 0 || f == 1)
          for (G = y; W == null && G++ < se.length; )
            i.has(se[G]) || (W = G);
        if (X != null || W != null)
          if (D) {
            let we = X == null ? -1 / 0 : O(ie[X], E, R, 0), _e = W == null ? 1 / 0 : O(ie[W], E, R, 0), Ge = j - we, fe = _e - j;
            Ge <= fe ? Ge <= P && (M = X) : fe <= P && (M = W);
          } else
            M = W == null ? X : X == null ? W : y - X <= W - y ? X : W;
      } else D && Pe(j - O(ie[y], E, R, 0)) > P && (M = null);
      return M;
    };
  }
  const Xt = (o) => {
    N.event = o;
  };
  N.idxs = ue, N._lock = !1;
  let Ve = N.points;
  Ve.show = te(Ve.show), Ve.size = te(Ve.size), Ve.stroke = te(Ve.stroke), Ve.width = te(Ve.width), Ve.fill = te(Ve.fill);
  const Tt = n.focus = Te({}, e.focus || { alpha: 0.3 }, N.focus), wl = Tt.prox >= 0, bl = wl && Ve.one;
  let ft = [], vl = [], xl = [];
  function Qs(o, i) {
    let c = Ve.show(n, i);
    if (c instanceof HTMLElement)
      return ot(c, Ac), ot(c, o.class), Dt(c, -10, -10, q, C), L.insertBefore(c, ft[i]), c;
  }
  function Xs(o, i) {
    if (s == 1 || i > 0) {
      let c = s == 1 && A[o.scale].time, f = o.value;
      o.value = c ? ei(f) ? ri(le, ii(f, I)) : f || ne : f || Vu, o.label = o.label || (c ? Ru : Cu);
    }
    if (bl || i > 0) {
      o.width = o.width == null ? 1 : o.width, o.paths = o.paths || tf || jc, o.fillTo = te(o.fillTo || Uu), o.pxAlign = +oe(o.pxAlign, B), o.pxRound = gi(o.pxAlign), o.stroke = te(o.stroke || null), o.fill = te(o.fill || null), o._stroke = o._fill = o._paths = o._focus = null;
      let c = $u(Ke(1, o.width), 1), f = o.points = Te({}, {
        size: c,
        width: Ke(1, c * 0.2),
        stroke: o.stroke,
        space: c * 2,
        paths: lf,
        _stroke: null,
        _fill: null
      }, o.points);
      f.show = te(f.show), f.filter = te(f.filter), f.fill = te(f.fill), f.stroke = te(f.stroke), f.paths = te(f.paths), f.pxAlign = o.pxAlign;
    }
    if (Ae) {
      let c = cn(o, i);
      ke.splice(i, 0, c[0]), St.splice(i, 0, c[1]), Q.values.push(null);
    }
    if (He) {
      ue.splice(i, 0, null);
      let c = null;
      bl ? i == 0 && (c = Qs(o, i)) : i > 0 && (c = Qs(o, i)), ft.splice(i, 0, c), vl.splice(i, 0, 0), xl.splice(i, 0, 0);
    }
    Ne("addSeries", i);
  }
  function Rr(o, i) {
    i = i ?? S.length, o = s == 1 ? Ls(o, i, ci, di) : Ls(o, i, {}, hi), S.splice(i, 0, o), Xs(S[i], i);
  }
  n.addSeries = Rr;
  function zr(o) {
    if (S.splice(o, 1), Ae) {
      Q.values.splice(o, 1), St.splice(o, 1);
      let i = ke.splice(o, 1)[0];
      dl(null, i.firstChild), i.remove();
    }
    He && (ue.splice(o, 1), ft.splice(o, 1)[0].remove(), vl.splice(o, 1), xl.splice(o, 1)), Ne("delSeries", o);
  }
  n.delSeries = zr;
  const el = [!1, !1, !1, !1];
  function Br(o, i) {
    if (o._show = o.show, o.show) {
      let c = o.side % 2, f = A[o.scale];
      f == null && (o.scale = c ? S[1].scale : z, f = A[o.scale]);
      let h = f.time;
      o.size = te(o.size), o.space = te(o.space), o.rotate = te(o.rotate), Ht(o.incrs) && o.incrs.forEach((y) => {
        !Ut.has(y) && Ut.set(y, Ki(y));
      }), o.incrs = te(o.incrs || (f.distr == 2 ? hu : h ? $ == 1 ? mu : bu : ol)), o.splits = te(o.splits || (h && f.distr == 1 ? Je : f.distr == 3 ? Ms : f.distr == 4 ? Ou : Bu)), o.stroke = te(o.stroke), o.grid.stroke = te(o.grid.stroke), o.ticks.stroke = te(o.ticks.stroke), o.border.stroke = te(o.border.stroke);
      let m = o.values;
      o.values = // static array of tick values
      Ht(m) && !Ht(m[0]) ? te(m) : (
        // temporal
        h ? (
          // config array of fmtDate string tpls
          Ht(m) ? oi(le, si(m, I)) : (
            // fmtDate string tpl
            ei(m) ? yu(le, m) : m || ve
          )
        ) : m || zu
      ), o.filter = te(o.filter || (f.distr >= 3 && f.log == 10 ? Fu : f.distr == 3 && f.log == 2 ? Iu : Yi)), o.font = xi(o.font), o.labelFont = xi(o.labelFont), o._size = o.size(n, null, i, 0), o._space = o._rotate = o._incrs = o._found = // foundIncrSpace
      o._splits = o._values = null, o._size > 0 && (el[i] = !0, o._el = dt(_c, w));
    }
  }
  function Wl(o, i, c, f) {
    let [h, m, y, k] = c, M = i % 2, P = 0;
    return M == 0 && (k || m) && (P = i == 0 && !h || i == 2 && !y ? Le(ai.size / 3) : 0), M == 1 && (h || y) && (P = i == 1 && !m || i == 3 && !k ? Le(fi.size / 2) : 0), P;
  }
  const eo = n.padding = (e.padding || [Wl, Wl, Wl, Wl]).map((o) => te(oe(o, Wl))), Ft = n._padding = eo.map((o, i) => o(n, i, el, 0));
  let Fe, Re = null, ze = null;
  const pn = s == 1 ? S[0].idxs : null;
  let bt = null, Hl = !1;
  function to(o, i) {
    if (t = o ?? [], n.data = n._data = t, s == 2) {
      Fe = 0;
      for (let c = 1; c < S.length; c++)
        Fe += t[c][0].length;
    } else {
      t.length == 0 && (n.data = n._data = t = [[]]), bt = t[0], Fe = bt.length;
      let c = t;
      if (K == 2) {
        c = t.slice();
        let f = c[0] = Array(Fe);
        for (let h = 0; h < Fe; h++)
          f[h] = h;
      }
      n._data = t = c;
    }
    if (kl(!0), Ne("setData"), K == 2 && (gl = !0), i !== !1) {
      let c = E;
      c.auto(n, Hl) ? Vn() : Vt(z, c.min, c.max), Qt = Qt || N.left >= 0, ut = !0, _l();
    }
  }
  n.setData = to;
  function Vn() {
    Hl = !0;
    let o, i;
    s == 1 && (Fe > 0 ? (Re = pn[0] = 0, ze = pn[1] = Fe - 1, o = t[0][Re], i = t[0][ze], K == 2 ? (o = Re, i = ze) : o == i && (K == 3 ? [o, i] = Dn(o, o, E.log, !1) : K == 4 ? [o, i] = Is(o, o, E.log, !1) : E.time ? i = o + Le(86400 / $) : [o, i] = An(o, i, Vs, !0))) : (Re = pn[0] = o = null, ze = pn[1] = i = null)), Vt(z, o, i);
  }
  let hn, yl, $n, Wn, Hn, jn, Un, Yn, qn, Qe;
  function lo(o, i, c, f, h, m) {
    o ??= No, c ??= Ws, f ??= "butt", h ??= No, m ??= "round", o != hn && (g.strokeStyle = hn = o), h != yl && (g.fillStyle = yl = h), i != $n && (g.lineWidth = $n = i), m != Hn && (g.lineJoin = Hn = m), f != jn && (g.lineCap = jn = f), c != Wn && g.setLineDash(Wn = c);
  }
  function no(o, i, c, f) {
    i != yl && (g.fillStyle = yl = i), o != Un && (g.font = Un = o), c != Yn && (g.textAlign = Yn = c), f != qn && (g.textBaseline = qn = f);
  }
  function Kn(o, i, c, f, h = 0) {
    if (f.length > 0 && o.auto(n, Hl) && (i == null || i.min == null)) {
      let m = oe(Re, 0), y = oe(ze, f.length - 1), k = c.min == null ? Fc(f, m, y, h, o.distr == 3) : [c.min, c.max];
      o.min = _t(o.min, c.min = k[0]), o.max = Ke(o.max, c.max = k[1]);
    }
  }
  const so = { min: null, max: null };
  function Or() {
    for (let f in A) {
      let h = A[f];
      V[f] == null && // scales that have never been set (on init)
      (h.min == null || // or auto scales when the x scale was explicitly set
      V[z] != null && h.auto(n, Hl)) && (V[f] = so);
    }
    for (let f in A) {
      let h = A[f];
      V[f] == null && h.from != null && V[h.from] != null && (V[f] = so);
    }
    V[z] != null && kl(!0);
    let o = {};
    for (let f in V) {
      let h = V[f];
      if (h != null) {
        let m = o[f] = Nl(A[f], qc);
        if (h.min != null)
          Te(m, h);
        else if (f != z || s == 2)
          if (Fe == 0 && m.from == null) {
            let y = m.range(n, null, null, f);
            m.min = y[0], m.max = y[1];
          } else
            m.min = pe, m.max = -pe;
      }
    }
    if (Fe > 0) {
      S.forEach((f, h) => {
        if (s == 1) {
          let m = f.scale, y = V[m];
          if (y == null)
            return;
          let k = o[m];
          if (h == 0) {
            let M = k.range(n, k.min, k.max, m);
            k.min = M[0], k.max = M[1], Re = kt(k.min, t[0]), ze = kt(k.max, t[0]), ze - Re > 1 && (t[0][Re] < k.min && Re++, t[0][ze] > k.max && ze--), f.min = bt[Re], f.max = bt[ze];
          } else f.show && f.auto && Kn(k, y, f, t[h], f.sorted);
          f.idxs[0] = Re, f.idxs[1] = ze;
        } else if (h > 0 && f.show && f.auto) {
          let [m, y] = f.facets, k = m.scale, M = y.scale, [P, D] = t[h], R = o[k], j = o[M];
          R != null && Kn(R, V[k], m, P, m.sorted), j != null && Kn(j, V[M], y, D, y.sorted), f.min = y.min, f.max = y.max;
        }
      });
      for (let f in o) {
        let h = o[f], m = V[f];
        if (h.from == null && (m == null || m.min == null)) {
          let y = h.range(
            n,
            h.min == pe ? null : h.min,
            h.max == -pe ? null : h.max,
            f
          );
          h.min = y[0], h.max = y[1];
        }
      }
    }
    for (let f in o) {
      let h = o[f];
      if (h.from != null) {
        let m = o[h.from];
        if (m.min == null)
          h.min = h.max = null;
        else {
          let y = h.range(n, m.min, m.max, f);
          h.min = y[0], h.max = y[1];
        }
      }
    }
    let i = {}, c = !1;
    for (let f in o) {
      let h = o[f], m = A[f];
      if (m.min != h.min || m.max != h.max) {
        m.min = h.min, m.max = h.max;
        let y = m.distr;
        m._min = y == 3 ? Ot(m.min) : y == 4 ? ds(m.min, m.asinh) : y == 100 ? m.fwd(m.min) : m.min, m._max = y == 3 ? Ot(m.max) : y == 4 ? ds(m.max, m.asinh) : y == 100 ? m.fwd(m.max) : m.max, i[f] = c = !0;
      }
    }
    if (c) {
      S.forEach((f, h) => {
        s == 2 ? h > 0 && i.y && (f._paths = null) : i[f.scale] && (f._paths = null);
      });
      for (let f in i)
        gl = !0, Ne("setScale", f);
      He && N.left >= 0 && (Qt = ut = !0);
    }
    for (let f in V)
      V[f] = null;
  }
  function Nr(o) {
    let i = Ss(Re - 1, 0, Fe - 1), c = Ss(ze + 1, 0, Fe - 1);
    for (; o[i] == null && i > 0; )
      i--;
    for (; o[c] == null && c < Fe - 1; )
      c++;
    return [i, c];
  }
  function Gr() {
    if (Fe > 0) {
      let o = S.some((i) => i._focus) && Qe != Tt.alpha;
      o && (g.globalAlpha = Qe = Tt.alpha), S.forEach((i, c) => {
        if (c > 0 && i.show && (oo(c, !1), oo(c, !0), i._paths == null)) {
          let f = Qe;
          Qe != i.alpha && (g.globalAlpha = Qe = i.alpha);
          let h = s == 2 ? [0, t[c][0].length - 1] : Nr(t[c]);
          i._paths = i.paths(n, c, h[0], h[1]), Qe != f && (g.globalAlpha = Qe = f);
        }
      }), S.forEach((i, c) => {
        if (c > 0 && i.show) {
          let f = Qe;
          Qe != i.alpha && (g.globalAlpha = Qe = i.alpha), i._paths != null && io(c, !1);
          {
            let h = i._paths != null ? i._paths.gaps : null, m = i.points.show(n, c, Re, ze, h), y = i.points.filter(n, c, m, h);
            (m || y) && (i.points._paths = i.points.paths(n, c, Re, ze, y), io(c, !0));
          }
          Qe != f && (g.globalAlpha = Qe = f), Ne("drawSeries", c);
        }
      }), o && (g.globalAlpha = Qe = 1);
    }
  }
  function oo(o, i) {
    let c = i ? S[o].points : S[o];
    c._stroke = c.stroke(n, o), c._fill = c.fill(n, o);
  }
  function io(o, i) {
    let c = i ? S[o].points : S[o], {
      stroke: f,
      fill: h,
      clip: m,
      flags: y,
      _stroke: k = c._stroke,
      _fill: M = c._fill,
      _width: P = c.width
    } = c._paths;
    P = he(P * re, 3);
    let D = null, R = P % 2 / 2;
    i && M == null && (M = P > 0 ? "#fff" : k);
    let j = c.pxAlign == 1 && R > 0;
    if (j && g.translate(R, R), !i) {
      let ie = tt - P / 2, se = ct - P / 2, X = Ze + P, W = wt + P;
      D = new Path2D(), D.rect(ie, se, X, W);
    }
    i ? Jn(k, P, c.dash, c.cap, M, f, h, y, m) : Fr(o, k, P, c.dash, c.cap, M, f, h, y, D, m), j && g.translate(-R, -R);
  }
  function Fr(o, i, c, f, h, m, y, k, M, P, D) {
    let R = !1;
    M != 0 && J.forEach((j, ie) => {
      if (j.series[0] == o) {
        let se = S[j.series[1]], X = t[j.series[1]], W = (se._paths || nn).band;
        Ht(W) && (W = j.dir == 1 ? W[0] : W[1]);
        let G, we = null;
        se.show && W && Vc(X, Re, ze) ? (we = j.fill(n, ie) || m, G = se._paths.clip) : W = null, Jn(i, c, f, h, we, y, k, M, P, D, G, W), R = !0;
      }
    }), R || Jn(i, c, f, h, m, y, k, M, P, D);
  }
  const ro = Gl | As;
  function Jn(o, i, c, f, h, m, y, k, M, P, D, R) {
    lo(o, i, c, f, h), (M || P || R) && (g.save(), M && g.clip(M), P && g.clip(P)), R ? (k & ro) == ro ? (g.clip(R), D && g.clip(D), mn(h, y), dn(o, m, i)) : k & As ? (mn(h, y), g.clip(R), dn(o, m, i)) : k & Gl && (g.save(), g.clip(R), D && g.clip(D), mn(h, y), g.restore(), dn(o, m, i)) : (mn(h, y), dn(o, m, i)), (M || P || R) && g.restore();
  }
  function dn(o, i, c) {
    c > 0 && (i instanceof Map ? i.forEach((f, h) => {
      g.strokeStyle = hn = h, g.stroke(f);
    }) : i != null && o && g.stroke(i));
  }
  function mn(o, i) {
    i instanceof Map ? i.forEach((c, f) => {
      g.fillStyle = yl = f, g.fill(c);
    }) : i != null && o && g.fill(i);
  }
  function Ir(o, i, c, f) {
    let h = _[o], m;
    if (f <= 0)
      m = [0, 0];
    else {
      let y = h._space = h.space(n, o, i, c, f), k = h._incrs = h.incrs(n, o, i, c, f, y);
      m = cf(i, c, k, f, y);
    }
    return h._found = m;
  }
  function Zn(o, i, c, f, h, m, y, k, M, P) {
    let D = y % 2 / 2;
    B == 1 && g.translate(D, D), lo(k, y, M, P, k), g.beginPath();
    let R, j, ie, se, X = h + (f == 0 || f == 3 ? -m : m);
    c == 0 ? (j = h, se = X) : (R = h, ie = X);
    for (let W = 0; W < o.length; W++)
      i[W] != null && (c == 0 ? R = ie = o[W] : j = se = o[W], g.moveTo(R, j), g.lineTo(ie, se));
    g.stroke(), B == 1 && g.translate(-D, -D);
  }
  function Vr(o) {
    let i = !0;
    return _.forEach((c, f) => {
      if (!c.show)
        return;
      let h = A[c.scale];
      if (h.min == null) {
        c._show && (i = !1, c._show = !1, kl(!1));
        return;
      } else
        c._show || (i = !1, c._show = !0, kl(!1));
      let m = c.side, y = m % 2, { min: k, max: M } = h, [P, D] = Ir(f, k, M, y == 0 ? q : C);
      if (D == 0)
        return;
      let R = h.distr == 2, j = c._splits = c.splits(n, f, k, M, P, D, R), ie = h.distr == 2 ? j.map((G) => bt[G]) : j, se = h.distr == 2 ? bt[j[1]] - bt[j[0]] : P, X = c._values = c.values(n, c.filter(n, ie, f, D, se), f, D, se);
      c._rotate = m == 2 ? c.rotate(n, X, f, D) : 0;
      let W = c._size;
      c._size = mt(c.size(n, X, f, o)), W != null && c._size != W && (i = !1);
    }), i;
  }
  function $r(o) {
    let i = !0;
    return eo.forEach((c, f) => {
      let h = c(n, f, el, o);
      h != Ft[f] && (i = !1), Ft[f] = h;
    }), i;
  }
  function Wr() {
    for (let o = 0; o < _.length; o++) {
      let i = _[o];
      if (!i.show || !i._show)
        continue;
      let c = i.side, f = c % 2, h, m, y = i.stroke(n, o), k = c == 0 || c == 3 ? -1 : 1, [M, P] = i._found;
      if (i.label != null) {
        let Ye = i.labelGap * k, st = Le((i._lpos + Ye) * re);
        no(i.labelFont[0], y, "center", c == 2 ? Jl : Oo), g.save(), f == 1 ? (h = m = 0, g.translate(
          st,
          Le(ct + wt / 2)
        ), g.rotate((c == 3 ? -Mn : Mn) / 2)) : (h = Le(tt + Ze / 2), m = st);
        let nl = ji(i.label) ? i.label(n, o, M, P) : i.label;
        g.fillText(nl, h, m), g.restore();
      }
      if (P == 0)
        continue;
      let D = A[i.scale], R = f == 0 ? Ze : wt, j = f == 0 ? tt : ct, ie = i._splits, se = D.distr == 2 ? ie.map((Ye) => bt[Ye]) : ie, X = D.distr == 2 ? bt[ie[1]] - bt[ie[0]] : M, W = i.ticks, G = i.border, we = W.show ? W.size : 0, _e = Le(we * re), Ge = Le((i.alignTo == 2 ? i._size - we - i.gap : i.gap) * re), fe = i._rotate * -Mn / 180, Se = F(i._pos * re), lt = (_e + Ge) * k, Ue = Se + lt;
      m = f == 0 ? Ue : 0, h = f == 1 ? Ue : 0;
      let pt = i.font[0], vt = i.align == 1 ? Dl : i.align == 2 ? fs : fe > 0 ? Dl : fe < 0 ? fs : f == 0 ? "center" : c == 3 ? fs : Dl, Lt = fe || f == 1 ? "middle" : c == 2 ? Jl : Oo;
      no(pt, y, vt, Lt);
      let nt = i.font[1] * i.lineGap, ht = ie.map((Ye) => F(u(Ye, D, R, j))), xt = i._values;
      for (let Ye = 0; Ye < xt.length; Ye++) {
        let st = xt[Ye];
        if (st != null) {
          f == 0 ? h = ht[Ye] : m = ht[Ye], st = "" + st;
          let nl = st.indexOf(`
`) == -1 ? [st] : st.split(/\n/gm);
          for (let qe = 0; qe < nl.length; qe++) {
            let Ao = nl[qe];
            fe ? (g.save(), g.translate(h, m + qe * nt), g.rotate(fe), g.fillText(Ao, 0, 0), g.restore()) : g.fillText(Ao, h, m + qe * nt);
          }
        }
      }
      W.show && Zn(
        ht,
        W.filter(n, se, o, P, X),
        f,
        c,
        Se,
        _e,
        he(W.width * re, 3),
        W.stroke(n, o),
        W.dash,
        W.cap
      );
      let Pt = i.grid;
      Pt.show && Zn(
        ht,
        Pt.filter(n, se, o, P, X),
        f,
        f == 0 ? 2 : 1,
        f == 0 ? ct : tt,
        f == 0 ? wt : Ze,
        he(Pt.width * re, 3),
        Pt.stroke(n, o),
        Pt.dash,
        Pt.cap
      ), G.show && Zn(
        [Se],
        [1],
        f == 0 ? 1 : 0,
        f == 0 ? 1 : 2,
        f == 1 ? ct : tt,
        f == 1 ? wt : Ze,
        he(G.width * re, 3),
        G.stroke(n, o),
        G.dash,
        G.cap
      );
    }
    Ne("drawAxes");
  }
  function kl(o) {
    S.forEach((i, c) => {
      c > 0 && (i._paths = null, o && (s == 1 ? (i.min = null, i.max = null) : i.facets.forEach((f) => {
        f.min = null, f.max = null;
      })));
    });
  }
  let gn = !1, Qn = !1, jl = [];
  function Hr() {
    Qn = !1;
    for (let o = 0; o < jl.length; o++)
      Ne(...jl[o]);
    jl.length = 0;
  }
  function _l() {
    gn || (tu(ao), gn = !0);
  }
  function jr(o, i = !1) {
    gn = !0, Qn = i, o(n), ao(), i && jl.length > 0 && queueMicrotask(Hr);
  }
  n.batch = jr;
  function ao() {
    if (Fn && (Or(), Fn = !1), gl && (Lr(), gl = !1), un) {
      if (be(T, Dl, de), be(T, Jl, Ee), be(T, Ql, q), be(T, Xl, C), be(L, Dl, de), be(L, Jl, Ee), be(L, Ql, q), be(L, Xl, C), be(w, Ql, zt), be(w, Xl, Kt), x.width = Le(zt * re), x.height = Le(Kt * re), _.forEach(({ _el: o, _show: i, _size: c, _pos: f, side: h }) => {
        if (o != null)
          if (i) {
            let m = h === 3 || h === 0 ? c : 0, y = h % 2 == 1;
            be(o, y ? "left" : "top", f - m), be(o, y ? "width" : "height", c), be(o, y ? "top" : "left", y ? Ee : de), be(o, y ? "height" : "width", y ? C : q), ks(o, il);
          } else
            ot(o, il);
      }), hn = yl = $n = Hn = jn = Un = Yn = qn = Wn = null, Qe = 1, ql(!0), de != ml || Ee != Jt || q != Mt || C != Zt) {
        kl(!1);
        let o = q / Mt, i = C / Zt;
        if (He && !Qt && N.left >= 0) {
          N.left *= o, N.top *= i, Sl && Dt(Sl, Le(N.left), 0, q, C), Ml && Dt(Ml, 0, Le(N.top), q, C);
          for (let c = 0; c < ft.length; c++) {
            let f = ft[c];
            f != null && (vl[c] *= o, xl[c] *= i, Dt(f, mt(vl[c]), mt(xl[c]), q, C));
          }
        }
        if (ge.show && !fn && ge.left >= 0 && ge.width > 0) {
          ge.left *= o, ge.width *= o, ge.top *= i, ge.height *= i;
          for (let c in ss)
            be(El, c, ge[c]);
        }
        ml = de, Jt = Ee, Mt = q, Zt = C;
      }
      Ne("setSize"), un = !1;
    }
    zt > 0 && Kt > 0 && (g.clearRect(0, 0, x.width, x.height), Ne("drawClear"), Y.forEach((o) => o()), Ne("draw")), ge.show && fn && (wn(ge), fn = !1), He && Qt && (ll(null, !0, !1), Qt = !1), Q.show && Q.live && ut && (ls(), ut = !1), p || (p = !0, n.status = 1, Ne("ready")), Hl = !1, gn = !1;
  }
  n.redraw = (o, i) => {
    gl = i || !1, o !== !1 ? Vt(z, E.min, E.max) : _l();
  };
  function Xn(o, i) {
    let c = A[o];
    if (c.from == null) {
      if (Fe == 0) {
        let f = c.range(n, i.min, i.max, o);
        i.min = f[0], i.max = f[1];
      }
      if (i.min > i.max) {
        let f = i.min;
        i.min = i.max, i.max = f;
      }
      if (Fe > 1 && i.min != null && i.max != null && i.max - i.min < 1e-16)
        return;
      o == z && c.distr == 2 && Fe > 0 && (i.min = kt(i.min, t[0]), i.max = kt(i.max, t[0]), i.min == i.max && i.max++), V[o] = i, Fn = !0, _l();
    }
  }
  n.setScale = Xn;
  let es, ts, Sl, Ml, co, uo, Tl, Al, fo, po, me, ye, It = !1;
  const Ie = N.drag;
  let Be = Ie.x, Oe = Ie.y;
  He && (N.x && (es = dt(Mc, L)), N.y && (ts = dt(Tc, L)), E.ori == 0 ? (Sl = es, Ml = ts) : (Sl = ts, Ml = es), me = N.left, ye = N.top);
  const ge = n.select = Te({
    show: !0,
    over: !0,
    left: 0,
    width: 0,
    top: 0,
    height: 0
  }, e.select), El = ge.show ? dt(Sc, ge.over ? L : T) : null;
  function wn(o, i) {
    if (ge.show) {
      for (let c in o)
        ge[c] = o[c], c in ss && be(El, c, o[c]);
      i !== !1 && Ne("setSelect");
    }
  }
  n.setSelect = wn;
  function Ur(o) {
    if (S[o].show)
      Ae && ks(ke[o], il);
    else if (Ae && ot(ke[o], il), He) {
      let c = bl ? ft[0] : ft[o];
      c != null && Dt(c, -10, -10, q, C);
    }
  }
  function Vt(o, i, c) {
    Xn(o, { min: i, max: c });
  }
  function At(o, i, c, f) {
    i.focus != null && Zr(o), i.show != null && S.forEach((h, m) => {
      m > 0 && (o == m || o == null) && (h.show = i.show, Ur(m), s == 2 ? (Vt(h.facets[0].scale, null, null), Vt(h.facets[1].scale, null, null)) : Vt(h.scale, null, null), _l());
    }), c !== !1 && Ne("setSeries", o, i), f && Kl("setSeries", n, o, i);
  }
  n.setSeries = At;
  function Yr(o, i) {
    Te(J[o], i);
  }
  function qr(o, i) {
    o.fill = te(o.fill || null), o.dir = oe(o.dir, -1), i = i ?? J.length, J.splice(i, 0, o);
  }
  function Kr(o) {
    o == null ? J.length = 0 : J.splice(o, 1);
  }
  n.addBand = qr, n.setBand = Yr, n.delBand = Kr;
  function Jr(o, i) {
    S[o].alpha = i, He && ft[o] != null && (ft[o].style.opacity = i), Ae && ke[o] && (ke[o].style.opacity = i);
  }
  let Bt, $t, tl;
  const Ll = { focus: !0 };
  function Zr(o) {
    if (o != tl) {
      let i = o == null, c = Tt.alpha != 1;
      S.forEach((f, h) => {
        if (s == 1 || h > 0) {
          let m = i || h == 0 || h == o;
          f._focus = i ? null : m, c && Jr(h, m ? 1 : Tt.alpha);
        }
      }), tl = o, c && _l();
    }
  }
  Ae && wl && je(Io, ae, (o) => {
    N._lock || (Xt(o), tl != null && At(null, Ll, !0, Me.setSeries));
  });
  function Et(o, i, c) {
    let f = A[i];
    c && (o = o / re - (f.ori == 1 ? Ee : de));
    let h = q;
    f.ori == 1 && (h = C, o = h - o), f.dir == -1 && (o = h - o);
    let m = f._min, y = f._max, k = o / h, M = m + (y - m) * k, P = f.distr;
    return P == 3 ? Bl(10, M) : P == 4 ? Wc(M, f.asinh) : P == 100 ? f.bwd(M) : M;
  }
  function Qr(o, i) {
    let c = Et(o, z, i);
    return kt(c, t[0], Re, ze);
  }
  n.valToIdx = (o) => kt(o, t[0]), n.posToIdx = Qr, n.posToVal = Et, n.valToPos = (o, i, c) => A[i].ori == 0 ? a(
    o,
    A[i],
    c ? Ze : q,
    c ? tt : 0
  ) : r(
    o,
    A[i],
    c ? wt : C,
    c ? ct : 0
  ), n.setCursor = (o, i, c) => {
    me = o.left, ye = o.top, ll(null, i, c);
  };
  function ho(o, i) {
    be(El, Dl, ge.left = o), be(El, Ql, ge.width = i);
  }
  function mo(o, i) {
    be(El, Jl, ge.top = o), be(El, Xl, ge.height = i);
  }
  let Ul = E.ori == 0 ? ho : mo, Yl = E.ori == 1 ? ho : mo;
  function Xr() {
    if (Ae && Q.live)
      for (let o = s == 2 ? 1 : 0; o < S.length; o++) {
        if (o == 0 && at)
          continue;
        let i = Q.values[o], c = 0;
        for (let f in i)
          St[o][c++].firstChild.nodeValue = i[f];
      }
  }
  function ls(o, i) {
    if (o != null && (o.idxs ? o.idxs.forEach((c, f) => {
      ue[f] = c;
    }) : Yc(o.idx) || ue.fill(o.idx), Q.idx = ue[0]), Ae && Q.live) {
      for (let c = 0; c < S.length; c++)
        (c > 0 || s == 1 && !at) && ea(c, ue[c]);
      Xr();
    }
    ut = !1, i !== !1 && Ne("setLegend");
  }
  n.setLegend = ls;
  function ea(o, i) {
    let c = S[o], f = o == 0 && K == 2 ? bt : t[o], h;
    at ? h = c.values(n, o, i) ?? Gt : (h = c.value(n, i == null ? null : f[i], o, i), h = h == null ? Gt : { _: h }), Q.values[o] = h;
  }
  function ll(o, i, c) {
    fo = me, po = ye, [me, ye] = N.move(n, me, ye), N.left = me, N.top = ye, He && (Sl && Dt(Sl, Le(me), 0, q, C), Ml && Dt(Ml, 0, Le(ye), q, C));
    let f, h = Re > ze;
    Bt = pe, $t = null;
    let m = E.ori == 0 ? q : C, y = E.ori == 1 ? q : C;
    if (me < 0 || Fe == 0 || h) {
      f = N.idx = null;
      for (let k = 0; k < S.length; k++) {
        let M = ft[k];
        M != null && Dt(M, -10, -10, q, C);
      }
      wl && At(null, Ll, !0, o == null && Me.setSeries), Q.live && (ue.fill(f), ut = !0);
    } else {
      let k, M, P;
      s == 1 && (k = E.ori == 0 ? me : ye, M = Et(k, z), f = N.idx = kt(M, t[0], Re, ze), P = O(t[0][f], E, m, 0));
      let D = -10, R = -10, j = 0, ie = 0, se = !0, X = "", W = "";
      for (let G = s == 2 ? 1 : 0; G < S.length; G++) {
        let we = S[G], _e = ue[G], Ge = _e == null ? null : s == 1 ? t[G][_e] : t[G][1][_e], fe = N.dataIdx(n, G, f, M), Se = fe == null ? null : s == 1 ? t[G][fe] : t[G][1][fe];
        if (ut = ut || Se != Ge || fe != _e, ue[G] = fe, G > 0 && we.show) {
          let lt = fe == null ? -10 : fe == f ? P : O(s == 1 ? t[0][fe] : t[G][0][fe], E, m, 0), Ue = Se == null ? -10 : H(Se, s == 1 ? A[we.scale] : A[we.facets[1].scale], y, 0);
          if (wl && Se != null) {
            let pt = E.ori == 1 ? me : ye, vt = Pe(Tt.dist(n, G, fe, Ue, pt));
            if (vt < Bt) {
              let Lt = Tt.bias;
              if (Lt != 0) {
                let nt = Et(pt, we.scale), ht = Se >= 0 ? 1 : -1, xt = nt >= 0 ? 1 : -1;
                xt == ht && (xt == 1 ? Lt == 1 ? Se >= nt : Se <= nt : (
                  // >= 0
                  Lt == 1 ? Se <= nt : Se >= nt
                )) && (Bt = vt, $t = G);
              } else
                Bt = vt, $t = G;
            }
          }
          if (ut || bl) {
            let pt, vt;
            E.ori == 0 ? (pt = lt, vt = Ue) : (pt = Ue, vt = lt);
            let Lt, nt, ht, xt, Pt, Ye, st = !0, nl = Ve.bbox;
            if (nl != null) {
              st = !1;
              let qe = nl(n, G);
              ht = qe.left, xt = qe.top, Lt = qe.width, nt = qe.height;
            } else
              ht = pt, xt = vt, Lt = nt = Ve.size(n, G);
            if (Ye = Ve.fill(n, G), Pt = Ve.stroke(n, G), bl)
              G == $t && Bt <= Tt.prox && (D = ht, R = xt, j = Lt, ie = nt, se = st, X = Ye, W = Pt);
            else {
              let qe = ft[G];
              qe != null && (vl[G] = ht, xl[G] = xt, Yo(qe, Lt, nt, st), jo(qe, Ye, Pt), Dt(qe, mt(ht), mt(xt), q, C));
            }
          }
        }
      }
      if (bl) {
        let G = Tt.prox, we = tl == null ? Bt <= G : Bt > G || $t != tl;
        if (ut || we) {
          let _e = ft[0];
          _e != null && (vl[0] = D, xl[0] = R, Yo(_e, j, ie, se), jo(_e, X, W), Dt(_e, mt(D), mt(R), q, C));
        }
      }
    }
    if (ge.show && It)
      if (o != null) {
        let [k, M] = Me.scales, [P, D] = Me.match, [R, j] = o.cursor.sync.scales, ie = o.cursor.drag;
        if (Be = ie._x, Oe = ie._y, Be || Oe) {
          let { left: se, top: X, width: W, height: G } = o.select, we = o.scales[R].ori, _e = o.posToVal, Ge, fe, Se, lt, Ue, pt = k != null && P(k, R), vt = M != null && D(M, j);
          pt && Be ? (we == 0 ? (Ge = se, fe = W) : (Ge = X, fe = G), Se = A[k], lt = O(_e(Ge, R), Se, m, 0), Ue = O(_e(Ge + fe, R), Se, m, 0), Ul(_t(lt, Ue), Pe(Ue - lt))) : Ul(0, m), vt && Oe ? (we == 1 ? (Ge = se, fe = W) : (Ge = X, fe = G), Se = A[M], lt = H(_e(Ge, j), Se, y, 0), Ue = H(_e(Ge + fe, j), Se, y, 0), Yl(_t(lt, Ue), Pe(Ue - lt))) : Yl(0, y);
        } else
          os();
      } else {
        let k = Pe(fo - co), M = Pe(po - uo);
        if (E.ori == 1) {
          let j = k;
          k = M, M = j;
        }
        Be = Ie.x && k >= Ie.dist, Oe = Ie.y && M >= Ie.dist;
        let P = Ie.uni;
        P != null ? Be && Oe && (Be = k >= P, Oe = M >= P, !Be && !Oe && (M > k ? Oe = !0 : Be = !0)) : Ie.x && Ie.y && (Be || Oe) && (Be = Oe = !0);
        let D, R;
        Be && (E.ori == 0 ? (D = Tl, R = me) : (D = Al, R = ye), Ul(_t(D, R), Pe(R - D)), Oe || Yl(0, y)), Oe && (E.ori == 1 ? (D = Tl, R = me) : (D = Al, R = ye), Yl(_t(D, R), Pe(R - D)), Be || Ul(0, m)), !Be && !Oe && (Ul(0, 0), Yl(0, 0));
      }
    if (Ie._x = Be, Ie._y = Oe, o == null) {
      if (c) {
        if (To != null) {
          let [k, M] = Me.scales;
          Me.values[0] = k != null ? Et(E.ori == 0 ? me : ye, k) : null, Me.values[1] = M != null ? Et(E.ori == 1 ? me : ye, M) : null;
        }
        Kl(ps, n, me, ye, q, C, f);
      }
      if (wl) {
        let k = c && Me.setSeries, M = Tt.prox;
        tl == null ? Bt <= M && At($t, Ll, !0, k) : Bt > M ? At(null, Ll, !0, k) : $t != tl && At($t, Ll, !0, k);
      }
    }
    ut && (Q.idx = f, ls()), i !== !1 && Ne("setCursor");
  }
  let Wt = null;
  Object.defineProperty(n, "rect", {
    get() {
      return Wt == null && ql(!1), Wt;
    }
  });
  function ql(o = !1) {
    o ? Wt = null : (Wt = L.getBoundingClientRect(), Ne("syncRect", Wt));
  }
  function go(o, i, c, f, h, m, y) {
    N._lock || It && o != null && o.movementX == 0 && o.movementY == 0 || (ns(o, i, c, f, h, m, y, !1, o != null), o != null ? ll(null, !0, !0) : ll(i, !0, !1));
  }
  function ns(o, i, c, f, h, m, y, k, M) {
    if (Wt == null && ql(!1), Xt(o), o != null)
      c = o.clientX - Wt.left, f = o.clientY - Wt.top;
    else {
      if (c < 0 || f < 0) {
        me = -10, ye = -10;
        return;
      }
      let [P, D] = Me.scales, R = i.cursor.sync, [j, ie] = R.values, [se, X] = R.scales, [W, G] = Me.match, we = i.axes[0].side % 2 == 1, _e = E.ori == 0 ? q : C, Ge = E.ori == 1 ? q : C, fe = we ? m : h, Se = we ? h : m, lt = we ? f : c, Ue = we ? c : f;
      if (se != null ? c = W(P, se) ? u(j, A[P], _e, 0) : -10 : c = _e * (lt / fe), X != null ? f = G(D, X) ? u(ie, A[D], Ge, 0) : -10 : f = Ge * (Ue / Se), E.ori == 1) {
        let pt = c;
        c = f, f = pt;
      }
    }
    M && (i == null || i.cursor.event.type == ps) && ((c <= 1 || c >= q - 1) && (c = sl(c, q)), (f <= 1 || f >= C - 1) && (f = sl(f, C))), k ? (co = c, uo = f, [Tl, Al] = N.move(n, c, f)) : (me = c, ye = f);
  }
  const ss = {
    width: 0,
    height: 0,
    left: 0,
    top: 0
  };
  function os() {
    wn(ss, !1);
  }
  let wo, bo, vo, xo;
  function yo(o, i, c, f, h, m, y) {
    It = !0, Be = Oe = Ie._x = Ie._y = !1, ns(o, i, c, f, h, m, y, !0, !1), o != null && (je(hs, xs, ko, !1), Kl(Go, n, Tl, Al, q, C, null));
    let { left: k, top: M, width: P, height: D } = ge;
    wo = k, bo = M, vo = P, xo = D;
  }
  function ko(o, i, c, f, h, m, y) {
    It = Ie._x = Ie._y = !1, ns(o, i, c, f, h, m, y, !1, !0);
    let { left: k, top: M, width: P, height: D } = ge, R = P > 0 || D > 0, j = wo != k || bo != M || vo != P || xo != D;
    if (R && j && wn(ge), Ie.setScale && R && j) {
      let ie = k, se = P, X = M, W = D;
      if (E.ori == 1 && (ie = M, se = D, X = k, W = P), Be && Vt(
        z,
        Et(ie, z),
        Et(ie + se, z)
      ), Oe)
        for (let G in A) {
          let we = A[G];
          G != z && we.from == null && we.min != pe && Vt(
            G,
            Et(X + W, G),
            Et(X, G)
          );
        }
      os();
    } else N.lock && (N._lock = !N._lock, ll(i, !0, o != null));
    o != null && (dl(hs, xs), Kl(hs, n, me, ye, q, C, null));
  }
  function ta(o, i, c, f, h, m, y) {
    if (N._lock)
      return;
    Xt(o);
    let k = It;
    if (It) {
      let M = !0, P = !0, D = 10, R, j;
      E.ori == 0 ? (R = Be, j = Oe) : (R = Oe, j = Be), R && j && (M = me <= D || me >= q - D, P = ye <= D || ye >= C - D), R && M && (me = me < Tl ? 0 : q), j && P && (ye = ye < Al ? 0 : C), ll(null, !0, !0), It = !1;
    }
    me = -10, ye = -10, ue.fill(null), ll(null, !0, !0), k && (It = k);
  }
  function _o(o, i, c, f, h, m, y) {
    N._lock || (Xt(o), Vn(), os(), o != null && Kl(Vo, n, me, ye, q, C, null));
  }
  function So() {
    _.forEach(uf), In(n.width, n.height, !0);
  }
  al(Tn, zl, So);
  const Pl = {};
  Pl.mousedown = yo, Pl.mousemove = go, Pl.mouseup = ko, Pl.dblclick = _o, Pl.setSeries = (o, i, c, f) => {
    let h = Me.match[2];
    c = h(n, i, c), c != -1 && At(c, f, !0, !1);
  }, He && (je(Go, L, yo), je(ps, L, go), je(Fo, L, (o) => {
    Xt(o), ql(!1);
  }), je(Io, L, ta), je(Vo, L, _o), Es.add(n), n.syncRect = ql);
  const bn = n.hooks = e.hooks || {};
  function Ne(o, i, c) {
    Qn ? jl.push([o, i, c]) : o in bn && bn[o].forEach((f) => {
      f.call(null, n, i, c);
    });
  }
  (e.plugins || []).forEach((o) => {
    for (let i in o.hooks)
      bn[i] = (bn[i] || []).concat(o.hooks[i]);
  });
  const Mo = (o, i, c) => c, Me = Te({
    key: null,
    setSeries: !1,
    filters: {
      pub: Qo,
      sub: Qo
    },
    scales: [z, S[1] ? S[1].scale : null],
    match: [Xo, Xo, Mo],
    values: [null, null]
  }, N.sync);
  Me.match.length == 2 && Me.match.push(Mo), N.sync = Me;
  const To = Me.key, is = mr(To);
  function Kl(o, i, c, f, h, m, y) {
    Me.filters.pub(o, i, c, f, h, m, y) && is.pub(o, i, c, f, h, m, y);
  }
  is.sub(n);
  function la(o, i, c, f, h, m, y) {
    Me.filters.sub(o, i, c, f, h, m, y) && Pl[o](null, i, c, f, h, m, y);
  }
  n.pub = la;
  function na() {
    is.unsub(n), Es.delete(n), qt.clear(), _s(Tn, zl, So), d.remove(), ae?.remove(), Ne("destroy");
  }
  n.destroy = na;
  function rs() {
    Ne("init", e, t), to(t || e.data, !1), V[z] ? Xn(z, V[z]) : Vn(), fn = ge.show && (ge.width > 0 || ge.height > 0), Qt = ut = !0, In(e.width, e.height);
  }
  return S.forEach(Xs), _.forEach(Br), l ? l instanceof HTMLElement ? (l.appendChild(d), rs()) : l(n, rs) : rs(), n;
}
$e.assign = Te;
$e.fmtNum = $s;
$e.rangeNum = An;
$e.rangeLog = Dn;
$e.rangeAsinh = Is;
$e.orient = fl;
$e.pxRatio = re;
$e.join = eu;
$e.fmtDate = Hs, $e.tzDate = fu;
$e.sync = mr;
{
  $e.addGap = Yu, $e.clipGaps = zn;
  let e = $e.paths = {
    points: yr
  };
  e.linear = _r, e.stepped = Ju, e.bars = Zu, e.spline = Xu;
}
const yi = 2 ** 30, ki = 104;
function Gn(e, t) {
  const [, , l, n, s, a, r, u] = e ?? [0, ""];
  return t === "vram" ? { ours: l ?? null, other: s ?? null, evictable: a ?? null } : { ours: n ?? null, other: r ?? null, evictable: u ?? null };
}
function Ar(e, t) {
  const l = e.plan.snapshot?.[`${t}_total_bytes`];
  return (e.curve.some((s) => Gn(s, t).other != null) ? l : zs(e.plan.snapshot, t)) ?? null;
}
function ff(e, t) {
  const l = e.map((s) => Gn(s, t)), n = (...s) => l.map((a) => s.some((r) => a[r] == null) ? null : s.reduce((r, u) => r + a[u], 0));
  return [n("ours", "other", "evictable"), n("ours", "other"), n("ours")];
}
class pf {
  constructor(t, l) {
    this.place = t, this.axis = l, this.resize = new ResizeObserver(() => {
      const n = this.place.clientWidth;
      n && this.plot?.setSize({ width: n, height: ki });
    }), this.resize.observe(t);
  }
  place;
  axis;
  plot;
  run;
  resize;
  show(t) {
    this.run = t;
    const l = ff(t.curve, this.axis), n = [
      t.curve.map((s) => s[0]),
      ...l.map((s) => s.map((a) => a == null ? null : a / yi))
    ];
    this.plot ? this.plot.setData(n) : this.place.clientWidth && (this.plot = new $e(this.options(), n, this.place));
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
  end() {
    return ((this.run && Ar(this.run, this.axis)) ?? 0) / yi;
  }
  options() {
    const t = { stroke: () => this.colour("--lp-dim"), grid: { show: !1 }, font: "11px sans-serif" }, l = (s, a) => ({ stroke: () => this.colour(s), width: a, points: { show: !1 } }), n = `--lp-${this.axis}`;
    return {
      width: this.place.clientWidth,
      height: ki,
      legend: { show: !1 },
      cursor: { show: !1 },
      padding: [6, 6, 0, 0],
      scales: {
        x: { time: !1 },
        y: { range: (s, a, r) => [0, Math.max(r ?? 0, 0.1, this.end()) * 1.08] }
      },
      axes: [
        { ...t, size: 24, values: (s, a) => a.map((r) => on(r)) },
        { ...t, size: 54, space: 26, values: (s, a) => a.map((r) => `${r} GiB`) }
      ],
      series: [
        {},
        l("--lp-disk", 1),
        l("--lp-disk", 1),
        { ...l(n, 1.8), fill: () => this.colour(n) + "b0" }
      ],
      bands: [
        { series: [1, 2], fill: () => this.colour("--lp-disk") + "48" },
        { series: [2, 3], fill: () => this.colour("--lp-disk") + "cc" }
      ],
      hooks: { drawClear: [(s) => this.bands(s)], draw: [(s) => this.limit(s)] }
    };
  }
  bands(t) {
    const { ctx: l, bbox: n } = t;
    l.save(), l.font = `${10 * devicePixelRatio}px sans-serif`, this.phases().forEach(([s, a, r], u) => {
      const p = t.valToPos(a, "x", !0), d = t.valToPos(r, "x", !0) - p;
      l.fillStyle = this.colour("--lp-line"), l.globalAlpha = u % 2 ? 0.25 : 0.5, l.fillRect(p, n.top, d, n.height), l.globalAlpha = 1, l.fillStyle = this.colour("--lp-dim");
      const x = ul(s, this.run?.curve.map((g) => g[1]));
      l.measureText(x).width < d - 6 && l.fillText(x, p + 3 * devicePixelRatio, n.top + 10 * devicePixelRatio);
    }), l.restore();
  }
  /** A dashed line where memory ends. */
  limit(t) {
    if (!this.end()) return;
    const { ctx: l, bbox: n } = t, s = t.valToPos(this.end(), "y", !0);
    l.save(), l.strokeStyle = this.colour("--lp-bad"), l.lineWidth = 1.5 * devicePixelRatio, l.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]), l.beginPath(), l.moveTo(n.left, s), l.lineTo(n.left + n.width, s), l.stroke(), l.restore();
  }
  phases() {
    const t = [];
    for (const [l, n] of this.run?.curve ?? []) {
      const s = t.at(-1);
      s && (s[2] = l), s?.[0] !== n && t.push([n, l, l]);
    }
    return t;
  }
}
class _i {
  constructor(t) {
    this.axis = t, this.box.append(this.words, this.place);
  }
  axis;
  box = b("div.lp-memory");
  words = b("div.lp-legend");
  place = b("div.lp-curve", { role: "img" });
  curve;
  draw(t) {
    const l = Gn(t.curve.at(-1), this.axis);
    if (this.box.hidden = t.curve.length < 2 || l.ours == null, this.box.hidden) return;
    const n = Ar(t, this.axis), s = [
      [`lp-key-${this.axis}`, v("now.ours", { amount: Xe(l.ours) })],
      ...l.other == null ? [] : [["lp-key-other", v("now.other", { amount: Xe(l.other) })]],
      ...l.evictable == null ? [] : [["lp-key-evictable", v("now.evictable", { amount: Xe(l.evictable) })]]
    ], a = n == null ? "" : v("now.of", { amount: Xe(n) });
    De(
      this.words,
      b("b", {}, We(this.axis)),
      ...s.map(([u, p]) => b("span", {}, b("i", { class: u, "aria-hidden": "true" }), p)),
      a && b("span", {}, b("i.lp-key-cap", { "aria-hidden": "true" }), a)
    );
    const r = Yt([...s.map(([, u]) => u), a].filter(Boolean));
    this.place.setAttribute("aria-label", v("now.curve", { axis: We(this.axis), text: r })), this.curve ??= new pf(this.place, this.axis), this.curve.show(t);
  }
  redraw() {
    this.curve?.redraw();
  }
  close() {
    this.curve?.close(), this.curve = void 0, De(this.place);
  }
}
class hf {
  box;
  title;
  status = b("div.lp-sr", { role: "status", "aria-live": "polite" });
  bar = b("i");
  progress = b(
    "div.lp-progress",
    { role: "progressbar", "aria-label": v("now.progress"), "aria-valuemin": 0 },
    this.bar
  );
  memories = [new _i("vram"), new _i("ram")];
  rest = b("div");
  said = "";
  constructor() {
    const [t, l, n] = rl(v("section.now"));
    this.box = t, this.title = n, t.hidden = !0, l.append(this.status, this.progress, ...this.memories.map((s) => s.box), this.rest);
  }
  draw(t) {
    if (this.box.hidden = !t, !t)
      return this.said = "", this.close();
    const l = Ua(t), { step: n = 0, steps: s } = l && t.phases[l]?.progress || {}, a = ja(t), r = l ? ul(l, Object.keys(t.phases)) : v("now.between"), u = [
      r.toLowerCase(),
      s ? v("now.step", { step: n ?? 0, steps: s }) : "",
      a == null ? "" : v("now.left", { time: Rl(a) })
    ].filter(Boolean);
    this.title.textContent = v("now.head", { what: Yt(u) }), this.announce(t, r), this.progress.hidden = !s, this.progress.setAttribute("aria-valuemax", String(s ?? 0)), this.progress.setAttribute("aria-valuenow", String(n ?? 0)), this.bar.style.width = `${s ? 100 * (n ?? 0) / s : 0}%`;
    for (const p of this.memories) p.draw(t);
    De(
      this.rest,
      Bs(zi(t)),
      Os(!0),
      df(t),
      l?.startsWith("sample") && t.plan.phases ? Fi(t.plan, l) : null,
      ...t.notices.slice(-3).map((p) => Ct("p.lp-notice", p))
    );
  }
  redraw() {
    for (const t of this.memories) t.redraw();
  }
  close() {
    for (const t of this.memories) t.close();
  }
  /** A screen reader hears of a new phase, not of every step. */
  announce(t, l) {
    const n = t.notices.at(-1) ?? "";
    this.said !== l + n && (this.said = l + n, this.status.textContent = `${l}. ${n}`);
  }
}
function df(e) {
  const t = e.plan.snapshot, l = [
    ["vram", t?.vram_total_bytes, t?.vram_free_bytes],
    ["ram", t?.ram_total_bytes, t?.ram_available_bytes]
  ].flatMap(([n, s, a]) => s && a != null && Gn(e.curve.at(-1), n).other == null ? [v("now.held", { amount: Xe(s - a), axis: We(n) })] : []);
  return l.length ? b("p.lp-dim", {}, v("now.planned", { parts: l.join(v("list.and")) })) : null;
}
const Si = "http://www.w3.org/2000/svg", mf = 12;
function gf(e, t) {
  if (!t.length)
    return De(e), !1;
  const l = [v("past.when"), v("past.size"), v("past.forecast"), v("past.took"), We("vram")];
  return De(
    e,
    b(
      "table",
      {},
      b("thead", {}, b("tr", {}, ...l.map((n) => b("th", { scope: "col" }, n)))),
      b("tbody", {}, ...t.slice(0, mf).map(wf))
    ),
    bf(t)
  ), !0;
}
function wf(e) {
  const t = new Date(e.started_unix_seconds * 1e3), l = sn() === "en" ? void 0 : sn(), n = t.toLocaleTimeString(l, { hour: "2-digit", minute: "2-digit" }), s = t.toLocaleDateString(l, { month: "short", day: "numeric" }), r = t.toDateString() === (/* @__PURE__ */ new Date()).toDateString() ? v("past.today", { time: n }) : v("past.other_day", { day: s, time: n }), u = e.status === "done" ? on(e.measured_seconds) : Ra(e.status);
  return b(
    "tr",
    {},
    b("td", {}, r),
    b("td", {}, jt(e.request)),
    b("td", {}, on(e.forecast_seconds)),
    b("td", {}, u),
    b("td", {}, Ha(e))
  );
}
function bf(e) {
  const t = e.filter((p) => p.status === "done").reverse(), l = t.map((p) => rn(p.measured_seconds, p.forecast_seconds)), n = t.map((p) => rn(p.measured_vram_peak_bytes, p.forecast_vram_peak_bytes)), s = [...l, ...n].filter((p) => p != null);
  if (t.length < 2 || !s.length) return null;
  const a = Math.max(10, ...s.map(Math.abs)), r = v("past.error", {
    count: t.length,
    time: Sn(l.at(-1) ?? null),
    vram: Sn(n.at(-1) ?? null)
  }), u = (p, d) => b("span", {}, b("i", { class: p, "aria-hidden": "true" }), d);
  return b(
    "div.lp-errors",
    {},
    b(
      "div.lp-scale",
      { "aria-hidden": "true" },
      ...[a, 0, -a].map((p) => b("span", {}, Sn(p)))
    ),
    vf(a, r, [
      { colour: "var(--lp-fg)", values: l },
      { colour: "var(--lp-vram)", values: n }
    ]),
    b("div.lp-legend", {}, u("lp-key-time", v("past.time")), u("lp-key-vram", We("vram"))),
    b("div.lp-dim", {}, r)
  );
}
function vf(e, t, l) {
  const [n, s, a] = [300, 60, 6], r = document.createElementNS(Si, "svg"), u = (x, g) => {
    for (const [w, T] of Object.entries(g)) x.setAttribute(w, T);
    return x;
  };
  u(r, {
    viewBox: `0 0 ${n} ${s}`,
    preserveAspectRatio: "none",
    class: "lp-spark",
    role: "img",
    "aria-label": t
  });
  const p = (x, g, w) => r.append(
    u(document.createElementNS(Si, "polyline"), {
      points: x,
      fill: "none",
      stroke: g,
      "stroke-width": "1.8",
      "stroke-dasharray": w,
      "vector-effect": "non-scaling-stroke"
    })
  ), d = (x) => s / 2 - (s / 2 - a) * x / e;
  p(`0,${d(0)} ${n},${d(0)}`, "var(--lp-dim)", "3 3");
  for (const { colour: x, values: g } of l)
    p(g.flatMap((w, T) => w == null ? [] : [`${a + (n - 2 * a) * T / (g.length - 1)},${d(w)}`]).join(" "), x, "");
  return r;
}
const Mi = 2 ** 30, xf = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0]
};
class yf {
  constructor(t) {
    this.panel = t, this.box.addEventListener("keydown", (l) => this.move(l));
  }
  panel;
  box = b("div.lp-heat");
  /** Row and column of the cell that Tab reaches; arrows move it. */
  at = [0, 0];
  draw(t) {
    const { vramGib: l, lines: n, error: s } = t.map;
    this.box.hidden = !l.length;
    const a = [...Ei].reverse(), r = Object.values(n).flat().flatMap((T) => T.fits ? T.total_seconds ?? [] : []), [u, p] = [Math.min(...r), Math.max(...r)], d = Sf(t.machine, l, a);
    this.at[1] = Math.max(0, Math.min(this.at[1], l.length - 1));
    const x = b("h4", { id: "lowpeak-map" }, v("section.map")), g = b(
      "tr",
      { role: "row" },
      b("th", { scope: "col", role: "columnheader" }, v("map.ram")),
      ...l.map((T) => b("th", { scope: "col", role: "columnheader" }, String(T)))
    ), w = a.map((T, L) => b(
      "tr",
      { role: "row" },
      b("th", { scope: "row", role: "rowheader" }, String(T)),
      ...l.map((B, F) => {
        const $ = n[T]?.[F], S = !$?.total_seconds || p <= u ? 0 : Math.log($.total_seconds / u) / Math.log(p / u);
        return this.cell($, B, T, L, F, S, d[0] === L && d[1] === F);
      })
    ));
    De(
      this.box,
      x,
      b(
        "table",
        { role: "grid", "aria-labelledby": "lowpeak-map" },
        b("caption", {}, v("map.vram")),
        b("thead", { role: "rowgroup" }, g),
        b("tbody", { role: "rowgroup" }, ...w)
      ),
      b(
        "div.lp-legend",
        { "aria-hidden": "true" },
        b("span", {}, b("i.lp-heat-0"), v("map.fast")),
        b("span", {}, b("i.lp-heat-1"), v("map.slow")),
        b("span", {}, v("map.no")),
        b("span", {}, b("i.lp-key-here"), v("map.here"))
      ),
      s && Ct("p.lp-bad", s)
    );
  }
  cell(t, l, n, s, a, r, u) {
    const p = kf(t, l, n) + (u ? ` (${v("map.here")})` : "");
    return b("td", {
      role: "gridcell",
      class: `${t ? t.fits ? "lp-fits" : "lp-short" : "lp-waits"}${u ? " lp-here" : ""}`,
      style: `--lp-heat:${(8 + 42 * r).toFixed(0)}%`,
      title: p,
      "aria-label": p,
      tabindex: s === this.at[0] && a === this.at[1] ? 0 : -1,
      "data-key": `cell-${s}-${a}`,
      onclick: () => this.choose(s, a, l, n),
      onkeydown: (d) => {
        ["Enter", " "].includes(d.key) && (d.preventDefault(), this.choose(s, a, l, n));
      }
    }, t ? t.fits ? _f(t.total_seconds) : "–" : "…");
  }
  choose(t, l, n, s) {
    this.at = [t, l], this.panel.whatIf({ vramGib: n, ramGib: s });
  }
  move(t) {
    const l = xf[t.key];
    if (!l) return;
    t.preventDefault();
    const n = this.find(this.at[0] + l[0], this.at[1] + l[1]);
    n && (this.find(...this.at)?.setAttribute("tabindex", "-1"), n.setAttribute("tabindex", "0"), n.focus(), this.at = [this.at[0] + l[0], this.at[1] + l[1]]);
  }
  find(t, l) {
    return this.box.querySelector(`[data-key="cell-${t}-${l}"]`);
  }
}
function kf(e, t, l) {
  return e ? e.fits ? v(
    "map.fits",
    { vram: t, ram: l, time: Rl(e.total_seconds), limit: Pi(e.limited_by ?? "") }
  ) : v("map.short", { vram: t, ram: l, axes: Ci(e.short) }) : v("map.waiting", { vram: t, ram: l });
}
function _f(e) {
  return e == null ? "?" : e < 59.5 ? v("time.seconds", { s: Math.round(e) }) : e < 3570 ? v("time.short_minutes", { m: Math.round(e / 60) }) : v("time.short_hours", { h: (e / 3600).toFixed(1) });
}
function Sf(e, t, l) {
  const { vram_total_bytes: n, ram_total_bytes: s } = e ?? {};
  return !n || !s ? [-1, -1] : [vs(l, s / Mi), vs(t, n / Mi)];
}
class Mf {
  box;
  result = b("div.lp-result", { role: "status", "aria-live": "polite" });
  vram;
  ram;
  card;
  heat;
  drawnMap;
  constructor(t) {
    const [l, n] = rl(v("section.what_if"), !0);
    this.box = l, this.card = b(
      "select",
      { "aria-label": v("what_if.card") },
      b("option", { value: "" }, v("what_if.this_card")),
      ...bs.map(([s, a, r]) => b(
        "option",
        { value: s },
        v("what_if.option", { name: a, amount: Xe(r * 2 ** 30, 0) })
      ))
    ), this.vram = Ti(We("vram"), da, (s) => t.whatIf({ vramGib: s })), this.ram = Ti(We("ram"), ma, (s) => t.whatIf({ ramGib: s })), this.card.addEventListener("change", () => {
      const s = bs.find(([a]) => a === this.card.value);
      t.whatIf({ card: this.card.value, ...s ? { vramGib: s[2] } : {} });
    }), this.heat = new yf(t), n.append(b(
      "div.lp-what",
      {},
      b("span", {}, v("what_if.card")),
      this.card,
      ...this.vram.parts,
      ...this.ram.parts
    ), this.result, this.heat.box), l.open = t.state.whatIf.open, l.addEventListener("toggle", () => t.openWhatIf(l.open));
  }
  draw(t) {
    const { card: l, vramGib: n, ramGib: s, plan: a, error: r, busy: u } = t.whatIf;
    this.box.hidden = !t.prompt, document.activeElement !== this.card && (this.card.value = l), this.vram.set(n), this.ram.set(s), this.result.classList.toggle("lp-busy", u), De(this.result, r ? Ct("p.lp-bad", r) : a ? cc(a) : null), this.drawnMap !== t.map && this.heat.draw(t), this.drawnMap = t.map;
  }
}
function Ti(e, t, l) {
  const n = b("output", { "aria-hidden": "true" }), s = b("input", {
    type: "range",
    min: 0,
    max: t.length - 1,
    step: 1,
    "aria-label": v("what_if.slider", { axis: e })
  }), a = (r) => {
    n.textContent = `${r} GiB`, s.setAttribute("aria-valuetext", `${r} GiB`);
  };
  return s.addEventListener("input", () => {
    const r = t[Number(s.value)];
    a(r), l(r);
  }), {
    parts: [b("span", { "aria-hidden": "true" }, e), s, n],
    set(r) {
      s.value = String(vs(t, r)), a(t[Number(s.value)]);
    }
  };
}
class Tf {
  constructor(t, l) {
    this.panel = l;
    const n = b("span.lp-dim"), s = b("div"), [a, r] = Af("div.lp-before", { role: "status", "aria-live": "polite" }), u = b("h3.lp-title", {}, v("section.canvas")), [p, d] = rl(v("section.bars")), [x, g, w] = rl(""), [T, L] = rl(v("section.why"), !0), B = new Mf(l);
    this.during = new hf();
    const F = new uc(), [$, S] = rl(v("section.past"), !0);
    this.parts = [
      { of: (_) => [_.machine], draw: (_) => De(n, za(_.machine)) },
      { of: (_) => [_.serverError, _.notices], draw: (_) => Ef(s, _) },
      { of: (_) => [_.active], draw: (_) => this.during.draw(_.active) },
      {
        of: (_) => [_.plan, _.planBusy, _.planError, _.active != null],
        draw: (_) => {
          r.classList.toggle("lp-busy", _.planBusy), oc(r, d, _, l), p.hidden = !d.childElementCount || _.active != null, x.hidden = !rc(w, g, _) || _.active != null, u.hidden = _.active == null, T.hidden = !ac(L, _);
        }
      },
      { of: (_) => [_.whatIf, _.map, _.plan, _.machine], draw: (_) => B.draw(_) },
      { of: (_) => [_.last], draw: (_) => F.draw(_.last) },
      { of: (_) => [_.runs], draw: (_) => $.hidden = !gf(S, _.runs) }
    ], this.root.append(
      b("style", {}, Da + Ca),
      b("div.lp-head", {}, b("h2", {}, "Lowpeak"), n),
      s,
      this.during.box,
      u,
      a,
      p,
      x,
      T,
      B.box,
      F.box,
      $
    ), t.replaceChildren(this.root), this.theme = new MutationObserver(() => this.followTheme());
    for (const _ of [document.documentElement, document.body])
      this.theme.observe(_, { attributes: !0, attributeFilter: ["class", "style"] });
    this.followTheme(), this.draw(), l.open(this.onChange);
  }
  panel;
  root = b("div.lowpeak", {
    role: "region",
    "aria-label": "Lowpeak",
    lang: sn()
  });
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
      s && s.every((a, r) => a === n[r]) || (this.drawn.set(l, n), l.draw(t));
    }
  }
  /** Light or dark by the background that the theme really gives. */
  followTheme() {
    const t = getComputedStyle(this.root).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [], [l = 0, n = 0, s = 0] = t, a = 0.3 * l + 0.6 * n + 0.1 * s > 128;
    this.root.dataset.theme = a ? "light" : "dark", this.during.redraw();
  }
}
function Af(e, t) {
  const l = b(e, t);
  return [l, l];
}
function Ef(e, t) {
  De(
    e,
    t.serverError && b("p.lp-bad", { role: "alert" }, t.serverError),
    ...t.notices.map((l) => Ct("p.lp-notice", l))
  );
}
as.registerExtension({
  name: "Lowpeak.Panel",
  setup() {
    const e = new Pa(new pa(as, sa));
    let t;
    as.extensionManager.registerSidebarTab({
      id: "lowpeak",
      title: "Lowpeak",
      label: "Lowpeak",
      icon: "pi pi-chart-bar",
      tooltip: v("tab.tooltip"),
      type: "custom",
      render(l) {
        const n = () => {
          t?.close(), e.followLanguage(), t = new Tf(l, e);
        };
        e.onLanguage = n, n();
      },
      destroy() {
        e.onLanguage = () => {
        }, t?.close(), t = void 0;
      }
    });
  }
});
