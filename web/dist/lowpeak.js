import { api as oa } from "../../scripts/api.js";
import { app as cs } from "../../scripts/app.js";
const ia = "unknown", ra = "{width} × {height}", aa = {
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
  unknown: ia,
  "time.seconds": "{s} s",
  "time.minutes": "{m} min {s} s",
  "time.hours": "{h} h {m} min",
  "time.short_minutes": "{m} m",
  "time.short_hours": "{h} h",
  "list.and": " and ",
  "list.comma": ", ",
  "list.stop": ". ",
  "list.end": ".",
  size: ra,
  "size.length": "{width} × {height} · {s} s",
  "machine.no_gpu": "no GPU",
  "machine.axis": "{amount} {axis}",
  "passes.one": "one pass",
  "passes.two": "two passes",
  "verdict.fits": "Fits. About {time}",
  "verdict.fits_alone": "Fits. The time is unknown here",
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
  "lora.planned": "LoRAs: {count}, merged while the blocks are read. {ram} of RAM.",
  "lora.planned_merged": "LoRAs: {count}, merged while the blocks are read. {time} once, {ram} of RAM.",
  "lora.planned_online": "LoRAs: {count}, beside the weights in every step. {time} in all, {ram} of RAM.",
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
}, ca = {
  "VRAM: {free} free, {margin} margin kept": "显存空闲 {free}，预留 {margin}",
  "RAM: {free} available, {margin} margin kept": "内存可用 {free}，预留 {margin}",
  "{n} of {all} blocks resident, {pinned} in pinned memory, {disk} read from disk at every step": "{all} 个块：{n} 个常驻显卡，{pinned} 个在锁页内存，{disk} 个每步从磁盘读取",
  "keys and values of the whole clip stay on the device": "整段视频的键和值都留在显卡上",
  "keys and values are computed again for each window instead of kept": "键和值不保留，每个窗口重新计算",
  "keys and values wait in host memory": "键和值放在内存里",
  "the residual stream waits in host memory, a chunk at a time": "残差流放在内存里，每次取一段",
  "{n} transfer slot(s) of half a block": "{n} 个传输槽，每个放半个块",
  "{n} transfer slot(s) of a block": "{n} 个传输槽，每个放一个块",
  "limited by compute; link and disk are at most {busy} % busy and hide behind it": "瓶颈是计算；总线和磁盘最多占用 {busy} %，藏在计算之后",
  "limited by the link: {stall} of {total} waiting": "瓶颈是显卡总线：{total} 里等待 {stall}",
  "limited by the disk: {stall} of {total} waiting": "瓶颈是磁盘：{total} 里等待 {stall}",
  "the fastest placement would be {loss} % faster; within {tie} % the smallest VRAM peak is kept ({peak})": "最快的安排只快 {loss} %；差别在 {tie} % 以内时取显存峰值最小的（{peak}）",
  "the fastest placement that fits": "放得下的最快安排",
  "{more} more VRAM: changes nothing worth naming": "显存多 {more}：没有明显变化",
  "{more} more RAM: changes nothing worth naming": "内存多 {more}：没有明显变化",
  "{more} more VRAM: would still not fit": "显存多 {more}：还是放不下",
  "{more} more RAM: would still not fit": "内存多 {more}：还是放不下",
  "{more} more VRAM: would fit, {time}": "显存多 {more}：放得下，{time}",
  "{more} more RAM: would fit, {time}": "内存多 {more}：放得下，{time}",
  "{more} more VRAM: {gain} faster ({how})": "显存多 {more}：快 {gain}（{how}）",
  "{more} more RAM: {gain} faster ({how})": "内存多 {more}：快 {gain}（{how}）",
  "rates of {card}: the data sheet's peaks times our efficiency; none is measured": "{card} 的速度按数据手册峰值乘以我们的效率估计，没有实测",
  "That checkpoint is not here; sizes of the published model are used.": "没有找到该模型文件，按公开模型的大小计算。",
  "{n} other process(es) compute on the GPU": "显卡上还有 {n} 个其他进程在计算",
  "the GPU is slowing down because it is hot: times will be longer": "显卡过热降速：用时会更长",
  "card {card}: rates of {other} assumed; give --card for another": "显卡 {card}：按 {other} 的速度估计",
  "no card is named: rates of {card}; give --card for yours": "没有指明显卡：按 {card} 的速度估计",
  "rates of {card} ({how})": "速度取自 {card}（{how}）",
  "LoRA merged: online about {online} in all steps, merging {merging}": "LoRA 采用合并：另行计算全部步骤约需 {online}，合并需 {merging}",
  "LoRA online: online about {online} in all steps, merging {merging}": "LoRA 采用另行计算：全部步骤约需 {online}，合并需 {merging}",
  "LoRA merged: {count} blocks that are read at every step are kept merged on the disk, {size} in Lowpeak's folder, where it has room": "LoRA 采用合并：每步都要读取的 {count} 个块以合并后的形式存在硬盘上，在 Lowpeak 的文件夹里占 {size}（有空间时）",
  "{count} of {all} LoRAs are not known here; a rank of {rank} is assumed for each.": "{all} 个 LoRA 中有 {count} 个在这里找不到；每个都按秩 {rank} 估计。",
  "A LoRA cannot be read as it is: {why}": "有 LoRA 无法读取：{why}",
  "attention quantised to 8 bits, as you allow: {times} times the rate of exact attention is assumed, not measured; without that kernel a run takes longer": "按你的许可，注意力量化为 8 位：假定速度为精确注意力的 {times} 倍，没有实测；没有这种内核时会更慢",
  "{side} {size} px is not a multiple of {step}: using {used} px": "{side} {size} 像素不是 {step} 的倍数：改用 {used} 像素",
  "{frames} frames is not 17n+5: using {used} frames": "{frames} 帧不是 17n+5：改用 {used} 帧",
  "{frames} frames ({time}) is longer than the {trained} frames the model was trained on: untrained, expect drift": "{frames} 帧（{time}）比模型训练用的 {trained} 帧长：没有训练过，画面可能漂移"
}, ua = "未知", fa = "{width} × {height}", pa = {
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
  unknown: ua,
  "time.seconds": "{s} 秒",
  "time.minutes": "{m} 分 {s} 秒",
  "time.hours": "{h} 小时 {m} 分",
  "time.short_minutes": "{m} 分",
  "time.short_hours": "{h} 时",
  "list.and": "和",
  "list.comma": "，",
  "list.stop": "。",
  "list.end": "。",
  size: fa,
  "size.length": "{width} × {height} · {s} 秒",
  "machine.no_gpu": "没有显卡",
  "machine.axis": "{axis} {amount}",
  "passes.one": "单遍",
  "passes.two": "两遍",
  "verdict.fits": "放得下，约 {time}",
  "verdict.fits_alone": "放得下，用时未知",
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
  "lora.planned": "LoRA：{count} 个，读取权重块时合并，占内存 {ram}。",
  "lora.planned_merged": "LoRA：{count} 个，读取权重块时合并，一次 {time}，占内存 {ram}。",
  "lora.planned_online": "LoRA：{count} 个，每一步在权重旁另行计算，共 {time}，占内存 {ram}。",
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
}, Ps = { en: aa, zh: pa };
let El = "en";
function Ei(e) {
  const t = String(e ?? "").toLowerCase().split(/[-_]/)[0];
  return t in Ps ? t : "en";
}
function ha(e) {
  El = Ei(e);
}
function ol() {
  return El;
}
function b(e, t = {}) {
  return Ps[El][e].replace(/\{(\w+)\}/g, (n, l) => String(t[l]));
}
function Yt(e) {
  return e.join(b("list.comma"));
}
const da = {
  zh: Object.entries(ca).map(([e, t]) => [ma(e), t])
};
function ma(e) {
  const t = e.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${t.replace(/\{(\w+)\}/g, "(?<$1>.+?)")}$`, "i");
}
function ga(e) {
  for (const [t, n] of da[El] ?? []) {
    const l = t.exec(e);
    if (l) return n.replace(/\{(\w+)\}/g, (s, r) => l.groups?.[r] ?? "");
  }
  return null;
}
class us extends Error {
}
class wa {
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
  /** One line of the capacity map: a cell for each amount of VRAM. */
  async cells(t, n, l) {
    const s = JSON.stringify({ prompt: t, ...l, each_vram_gib: n }), a = { method: "POST", headers: { "Content-Type": "application/json" }, body: s };
    return (await this.ask("/lowpeak/forecast", a)).cells;
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
    const t = [], n = (l) => {
      for (const s of l?.nodes ?? l?._nodes ?? [])
        if (s.subgraph && n(s.subgraph), !!/Lowpeak|MiniMaxH3|Primitive/.test(s.type ?? "")) {
          t.push(s.id, s.type, s.mode);
          for (const r of s.widgets ?? [])
            (["number", "boolean"].includes(typeof r.value) || ba(r.value)) && t.push(r.value);
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
      throw new us(b("error.silent"));
    }
    const r = (Date.parse(l.headers.get("Date") ?? "") - Date.now()) / 1e3;
    Math.abs(r) > 2 && (this.skew = r);
    const a = await l.json().catch(() => null);
    if (l.ok && a) return a;
    throw l.status === 404 && !a ? new us(b("error.routes")) : new us(a?.message || b("error.status", { status: l.status }));
  }
}
function ba(e) {
  return typeof e == "string" && e.length < 80;
}
const vs = [
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
], va = [4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 80, 96], ka = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256], xa = [4, 6, 8, 10, 12, 16, 24, 32], Ri = [8, 12, 16, 24, 32, 64];
function ks(e, t) {
  let n = 0;
  return e.forEach((l, s) => {
    Math.abs(l - t) < Math.abs(e[n] - t) && (n = s);
  }), n;
}
const ya = 200, _a = ["LowpeakSample", "LowpeakRefine", "LowpeakPlan"], Pi = 50;
function Sa(e) {
  return Object.values(e).some((t) => _a.includes(t.class_type));
}
function fs(e) {
  const t = (n) => typeof n == "string" && n.length > ya ? "" : n;
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
function Ma(e, t, n) {
  const l = t == null ? void 0 : e[t];
  if (!l || t == null) return [];
  const s = Aa(e, t, l), r = e[s];
  if (!r) return [];
  const a = [];
  for (const [u, p] of Object.entries(e)) {
    const h = Ta(e, p, r) && /Lowpeak|MiniMaxH3/.test(p.class_type);
    u !== s && !h || (vl(a, e, u, "width", n.width), vl(a, e, u, "height", n.height), vl(a, e, u, "seconds", Math.round(n.seconds * 10) / 10), n.frames != null && vl(a, e, u, "length", n.frames));
  }
  return a.filter(
    (u, p) => a.findIndex((h) => h.node === u.node && h.widget === u.widget) === p
  );
}
function Aa(e, t, n) {
  for (const l of ["plan", "size_from"]) {
    const s = Ds(e, n.inputs[l]);
    if (s != null && "width" in e[s].inputs) return s;
  }
  return t;
}
function Ds(e, t) {
  if (!Array.isArray(t) || t.length !== 2) return null;
  const n = String(t[0]);
  return n in e ? n : null;
}
function Ro(e, t) {
  for (let n = 0; n < Pi; n++) {
    const l = Ds(e, t);
    if (l == null) return t;
    t = e[l].inputs.value;
  }
}
function Ta(e, t, n) {
  return ["width", "height"].every((l) => {
    const s = Ro(e, t.inputs[l]);
    return typeof s == "number" && s === Ro(e, n.inputs[l]);
  });
}
function vl(e, t, n, l, s) {
  let r = n, a = l;
  for (let u = 0; u < Pi; u++) {
    const p = t[r]?.inputs[a], h = Ds(t, p);
    if (h == null) {
      typeof p == "number" && e.push({ node: r, widget: a, value: s });
      return;
    }
    r = h, a = "value";
  }
}
const La = 600, Ea = {
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
function Ra(e, t) {
  switch (t.type) {
    case "server": {
      const { machine: n, last: l, notices: s } = t.state, r = e.recent.filter(({ event: u }) => u.run_id === t.state.active?.run_id), a = r.reduce(
        (u, { event: p, unixSeconds: h }) => Po(u, p, h),
        t.state.active
      );
      return { ...e, machine: n, notices: s, active: a, recent: r, last: l ?? e.last, serverError: "" };
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
      const { event: n, unixSeconds: l } = t, s = [...e.recent, { event: n, unixSeconds: l }].slice(-200);
      return { ...e, recent: s, active: Po(e.active, n, l) };
    }
    case "run": {
      const n = t.run.status !== "running", l = e.active?.run_id === t.run.run_id;
      return n ? { ...e, last: t.run, active: l ? null : e.active } : { ...e, active: t.run };
    }
  }
}
function Po(e, t, n) {
  const l = e?.run_id === t.run_id ? e : Pa(t.run_id, n);
  if (t.sequence <= l.sequence) return l;
  const s = { ...l, status: "running", sequence: t.sequence };
  if (t.kind === "notice")
    return t.message && (s.notices = [...l.notices, t.message]), s;
  const r = l.phases[t.phase] ?? {};
  if (s.phases = { ...l.phases, [t.phase]: { ...r, [t.kind]: t } }, t.kind === "progress") {
    const a = Math.max(0, n - l.started_unix_seconds), u = l.curve.at(-1)?.[0] ?? 0, p = [
      Math.max(a, u),
      t.phase,
      t.vram_bytes ?? null,
      t.ram_bytes ?? null,
      t.vram_other_bytes ?? null,
      t.vram_evictable_bytes ?? null,
      t.ram_other_bytes ?? null,
      t.ram_evictable_bytes ?? null
    ], h = [...l.curve, p];
    s.curve = h.length > La ? h.filter((k, g) => g % 2 === 0) : h;
  }
  return s;
}
function Pa(e, t) {
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
function Da(e) {
  const { curve: t, ...n } = e;
  return JSON.stringify(n, null, 2);
}
const Do = 350, Ca = 700, za = ["execution_success", "execution_error", "execution_interrupted", "executed"];
class Ba {
  constructor(t) {
    this.host = t, this.followLanguage(), t.api.addEventListener("lowpeak.run", (n) => {
      const l = n.detail;
      this.state.active?.run_id !== l.run_id && this.later("state", () => this.refresh()), this.dispatch({ type: "event", event: l, unixSeconds: t.unixSeconds() });
    });
    for (const n of za)
      t.api.addEventListener(n, () => {
        this.state.active && this.later("state", () => this.refresh());
      });
    t.api.addEventListener("reconnected", () => this.later("state", () => this.refresh()));
  }
  host;
  state = Ea;
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
    ha(this.host.locale());
  }
  /** The tab is open: ask for everything and watch the graph until `close`. */
  open(t) {
    this.listeners.add(t), this.signature = "", this.refresh(), this.look(), this.watch ??= setInterval(() => this.look(), Ca);
  }
  close(t) {
    this.listeners.delete(t), !this.listeners.size && (clearInterval(this.watch), this.watch = void 0);
  }
  dispatch(t) {
    this.state = Ra(this.state, t);
    for (const n of this.listeners) n();
  }
  /** Ask the server for everything but the forecast. The newest question wins. */
  async refresh() {
    const t = ++this.refreshes;
    try {
      const [n, l] = await Promise.all([this.host.state(), this.host.runs()]);
      if (t !== this.refreshes) return;
      this.dispatch({ type: "server", state: n }), this.dispatch({ type: "runs", runs: l });
    } catch (n) {
      t === this.refreshes && this.dispatch({ type: "server-error", message: kl(n) });
    }
  }
  /** Forecast the graph on the canvas. The newest question wins. */
  async forecast() {
    const t = ++this.asked;
    try {
      this.signature = this.host.signature();
      const n = await this.host.prompt();
      if (t !== this.asked) return;
      if (!Sa(n)) return this.dispatch({ type: "no-sampler" });
      this.dispatch({ type: "forecast-begins", prompt: n });
      const l = await this.host.forecast(fs(n));
      t === this.asked && this.dispatch({ type: "forecast", plan: l });
    } catch (n) {
      t === this.asked && this.dispatch({ type: "forecast-error", message: kl(n) });
    }
    this.state.whatIf.open && (this.askWhatIf(), this.drawMap());
  }
  /** Take a size that fits into the graph. */
  use(t) {
    const { prompt: n, plan: l } = this.state, s = n ? Ma(n, l?.asked?.node_id ?? null, t) : [], r = s.length ? this.host.apply(s) : [];
    return this.look(), !s.length || r.length ? b("offers.elsewhere") : "";
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
    this.dispatch({ type: "what-if", change: { ...t, busy: !0 } }), this.later("what-if", () => this.askWhatIf(), Do / 2), t.card !== void 0 && this.later("map", () => this.drawMap());
  }
  async askWhatIf() {
    const { prompt: t, whatIf: n } = this.state;
    if (!t) return this.dispatch({ type: "what-if", change: { busy: !1 } });
    const l = ++this.askedWhatIf, s = { vram_gib: n.vramGib, ram_gib: n.ramGib, card: n.card || void 0 }, r = await this.host.forecast(fs(t), s).then(
      (a) => ({ plan: a, error: "" }),
      (a) => ({ plan: null, error: kl(a) })
    );
    l === this.askedWhatIf && this.dispatch({ type: "what-if", change: { ...r, busy: !1 } });
  }
  /** The capacity map of the graph, line by line; a newer map or a closed section ends an older. */
  async drawMap() {
    const { prompt: t, whatIf: n } = this.state, l = ++this.askedMap, s = vs.find(([u]) => u === n.card)?.[2] ?? 1 / 0, r = xa.filter((u) => u <= s), a = {};
    if (this.dispatch({ type: "map", map: { vramGib: r, lines: a, error: "" } }), !!t)
      try {
        for (const u of Ri) {
          const p = { ram_gib: u, card: n.card || void 0 }, h = await this.host.cells(fs(t), r, p);
          if (l !== this.askedMap) return;
          a[u] = h, this.dispatch({ type: "map", map: { lines: { ...a } } });
        }
      } catch (u) {
        l === this.askedMap && this.dispatch({ type: "map", map: { error: kl(u) } });
      }
  }
  look() {
    if (document.hidden) return;
    Ei(this.host.locale()) !== ol() && this.onLanguage();
    const t = this.host.signature();
    t !== this.signature && (this.signature = t, this.later("forecast", () => this.forecast()));
  }
  later(t, n, l = Do) {
    clearTimeout(this.timers.get(t)), this.timers.set(t, setTimeout(() => {
      n();
    }, l));
  }
}
function kl(e) {
  return e instanceof Error ? e.message : String(e);
}
const Oa = '.uplot,.uplot *,.uplot *:before,.uplot *:after{box-sizing:border-box}.uplot{font-family:system-ui,-apple-system,Segoe UI,Roboto,Helvetica Neue,Arial,Noto Sans,sans-serif,"Apple Color Emoji","Segoe UI Emoji",Segoe UI Symbol,"Noto Color Emoji";line-height:1.5;width:min-content}.u-title{text-align:center;font-size:18px;font-weight:700}.u-wrap{position:relative;user-select:none}.u-over,.u-under{position:absolute}.u-under{overflow:hidden}.uplot canvas{display:block;position:relative;width:100%;height:100%}.u-axis{position:absolute}.u-legend{font-size:14px;margin:auto;text-align:center}.u-inline{display:block}.u-inline *{display:inline-block}.u-inline tr{margin-right:16px}.u-legend th{font-weight:600}.u-legend th>*{vertical-align:middle;display:inline-block}.u-legend .u-marker{width:1em;height:1em;margin-right:4px;background-clip:padding-box!important}.u-inline.u-live th:after{content:":";vertical-align:middle}.u-inline:not(.u-live) .u-value{display:none}.u-series>*{padding:4px}.u-series th{cursor:pointer}.u-legend .u-off>*{opacity:.3}.u-select{background:#00000012;position:absolute;pointer-events:none}.u-cursor-x,.u-cursor-y{position:absolute;left:0;top:0;pointer-events:none;will-change:transform}.u-hz .u-cursor-x,.u-vt .u-cursor-y{height:100%;border-right:1px dashed #607D8B}.u-hz .u-cursor-y,.u-vt .u-cursor-x{width:100%;border-bottom:1px dashed #607D8B}.u-cursor-pt{position:absolute;top:0;left:0;border-radius:50%;border:0 solid;pointer-events:none;will-change:transform;background-clip:padding-box!important}.u-axis.u-off,.u-select.u-off,.u-cursor-x.u-off,.u-cursor-y.u-off,.u-cursor-pt.u-off{display:none}', Na = ".lowpeak{--lp-bg: var(--comfy-menu-bg, #1b1c20);--lp-fg: var(--fg-color, #e7e8ea);--lp-dim: color-mix(in srgb, var(--lp-fg) 74%, var(--lp-bg));--lp-line: color-mix(in srgb, var(--lp-fg) 16%, var(--lp-bg));--lp-card: color-mix(in srgb, var(--lp-fg) 6%, var(--lp-bg));--lp-vram: #7aa2f7;--lp-ram: #9ece6a;--lp-bad: #ff8a9b;--lp-disk: #868996;--lp-hot: #c77b1e;background:var(--lp-bg);color:var(--lp-fg);font:13px/1.45 system-ui,Segoe UI,sans-serif;container-type:inline-size;box-sizing:border-box;min-height:100%;height:100%;overflow-y:auto;padding:14px 16px 24px}.lowpeak[data-theme=light]{--lp-vram: #2f5fd0;--lp-ram: #3f7d1f;--lp-bad: #a91b35;--lp-disk: #8b8e98;--lp-hot: #e8a13a}.lowpeak *,.lowpeak *:before{box-sizing:border-box}.lowpeak :focus-visible{outline:2px solid var(--lp-vram);outline-offset:2px;border-radius:3px}.lp-head{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:2px 8px}.lp-head h2{font-size:15px;font-weight:600;margin:0}.lp-dim{color:var(--lp-dim)}.lp-bad{color:var(--lp-bad)}.lp-verdict{font-size:18px;font-weight:600;line-height:1.25;margin:12px 0 3px;text-wrap:balance}.lp-sec{margin-top:18px}.lp-title{margin-top:18px!important}.lp-sec>h3,.lp-sec>summary,.lp-title{font-size:12px;font-weight:600;color:var(--lp-dim);margin:0 0 8px}.lp-sec>summary{cursor:pointer;padding:2px 0}.lp-sec>summary:hover{color:var(--lp-fg)}.lp-busy{opacity:.6;transition:opacity .2s .15s}.lp-row{display:grid;grid-template-columns:84px 1fr 54px;gap:0 10px;align-items:center;margin:7px 0}.lp-time{text-align:right;color:var(--lp-dim);font-variant-numeric:tabular-nums;line-height:1.25}.lp-time b{display:block;font-weight:600;color:var(--lp-fg)}.lp-bars{min-width:0}.lp-bar{position:relative;height:9px;background:var(--lp-line);border-radius:2px;margin:3px 0}.lp-bar.lp-ram{height:6px}.lp-bar i{position:absolute;top:0;bottom:0;border-radius:2px}.lp-vram{--lp-c: var(--lp-vram)}.lp-ram{--lp-c: var(--lp-ram)}.lp-bar .lp-excess{background:var(--lp-bad);border-radius:0 2px 2px 0}.lp-used{background:var(--lp-c)}.lp-margin{background:repeating-linear-gradient(135deg,var(--lp-c) 0 2px,transparent 2px 4px);opacity:.75}.lp-bar .lp-cap{top:-3px;bottom:-3px;width:0;border-left:2px solid var(--lp-bad);border-radius:0;margin-left:-1px;box-shadow:1px 0 0 var(--lp-bg),-1px 0 0 var(--lp-bg)}.lp-bar .lp-measured{top:-3px;bottom:-3px;width:3px;margin-left:-1.5px;background:var(--lp-fg);box-shadow:0 0 0 1px var(--lp-bg)}.lp-legend{display:flex;flex-wrap:wrap;gap:2px 14px;margin-top:8px;color:var(--lp-dim);font-size:12px}.lp-legend i{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:5px}.lp-key-vram,.lp-on-card{background:var(--lp-vram)}.lp-key-ram,.lp-in-ram{background:var(--lp-ram)}.lp-on-disk{background:var(--lp-disk)}.lp-key-margin{background:repeating-linear-gradient(135deg,var(--lp-dim) 0 2px,transparent 2px 4px)}.lp-legend .lp-key-cap{width:2px;background:var(--lp-bad)}.lp-legend .lp-key-measured{width:3px;background:var(--lp-fg)}.lp-blocks{display:grid;grid-template-columns:repeat(25,1fr);gap:3px}.lp-blocks i{height:11px;border-radius:2px}.lowpeak h4{font-size:13px;font-weight:600;margin:10px 0 2px}.lowpeak ul{margin:0;padding-left:16px;list-style:disc}.lowpeak li{margin:3px 0}.lowpeak button,.lowpeak select{background:var(--lp-card);color:var(--lp-fg);border:1px solid var(--lp-dim);border-radius:6px;padding:4px 10px;font:inherit;cursor:pointer}.lowpeak button:hover{background:var(--lp-line)}.lp-offer{display:flex;justify-content:space-between;align-items:center;gap:8px;margin:6px 0}.lp-what{display:grid;grid-template-columns:48px 1fr 62px;gap:8px;align-items:center;margin-top:6px}.lp-what input{width:100%;min-width:0;accent-color:var(--lp-vram)}.lp-what output{text-align:right;font-variant-numeric:tabular-nums}.lp-what select{grid-column:2 / -1;min-width:0;width:100%}.lp-result{margin-top:8px}.lp-result .lp-verdict{font-size:14px;margin:4px 0 2px}.lp-progress{height:4px;border-radius:2px;background:var(--lp-line);margin:4px 0 8px;overflow:hidden}.lp-progress i{display:block;height:100%;background:var(--lp-vram)}.lp-memory{margin:8px 0 4px}.lp-memory .lp-legend{margin:0 0 2px}.lp-memory b{font-weight:600;color:var(--lp-fg)}.lp-curve{min-height:104px}.lp-key-other{background:color-mix(in srgb,var(--lp-disk) 80%,var(--lp-bg))}.lp-key-evictable{background:color-mix(in srgb,var(--lp-disk) 28%,var(--lp-bg));border:1px solid var(--lp-disk)}.lp-key-time{background:var(--lp-fg)}.lp-heat{margin-top:14px}.lp-heat table{table-layout:fixed;border-spacing:2px;border-collapse:separate!important;font-size:11px}.lp-heat caption{font-size:12px;text-align:right!important;padding:0!important}.lowpeak .lp-heat th,.lowpeak .lp-heat td{padding:3px 0;text-align:center}.lowpeak .lp-heat td{font-size:10px;border-radius:2px;cursor:pointer;white-space:nowrap;overflow:hidden}.lp-fits{background:color-mix(in srgb,var(--lp-hot) var(--lp-heat),var(--lp-card))}.lp-short,.lp-waits{color:var(--lp-dim)}.lp-short{background:repeating-linear-gradient(135deg,var(--lp-line) 0 1px,transparent 1px 5px)}.lp-here{outline:2px solid var(--lp-fg);outline-offset:-1px}.lp-heat td:focus-visible{outline:3px solid var(--lp-vram)}.lp-heat-0{background:color-mix(in srgb,var(--lp-hot) 8%,var(--lp-card));border:1px solid var(--lp-line)}.lp-heat-1{background:color-mix(in srgb,var(--lp-hot) 50%,var(--lp-card))}.lp-key-here{border:2px solid var(--lp-fg)}.lp-errors{display:grid;grid-template-columns:auto 1fr;gap:0 6px;margin-top:12px}.lp-errors>:nth-child(n+3){grid-column:1 / -1}.lp-scale{display:flex;flex-direction:column;justify-content:space-between;font-size:11px;color:var(--lp-dim);text-align:right}.lp-actions{display:flex;flex-wrap:wrap;gap:8px;margin-top:10px;align-items:center}.lowpeak table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}.lowpeak td,.lowpeak th{padding:3px 0 3px 8px;text-align:right;font-weight:400;vertical-align:top}.lowpeak th{color:var(--lp-dim)}.lowpeak td:first-child,.lowpeak th:first-child{text-align:left;padding-left:0}.lowpeak caption{text-align:left;color:var(--lp-dim);padding-bottom:4px}.lp-spark{width:100%;height:60px;display:block}.lp-sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.lowpeak li,.lp-dim,.lp-verdict{overflow-wrap:anywhere}.lp-notice{border-left:2px solid var(--lp-dim);padding-left:8px;margin:8px 0 0;color:var(--lp-dim);overflow-wrap:anywhere}@container (max-width: 270px){.lp-past td:nth-child(3),.lp-past th:nth-child(3){display:none}.lp-past table{font-size:11px}.lp-past td:nth-child(n+4),.lp-past th:nth-child(n+4){white-space:nowrap}.lowpeak td,.lowpeak th{padding-left:5px;overflow-wrap:anywhere}.lp-row{grid-template-columns:1fr auto}.lp-bars{grid-column:1 / -1;grid-row:2}.lp-blocks{grid-template-columns:repeat(13,1fr)}.lp-heat tr>:nth-child(odd):not(:first-child){display:none}.lp-what{grid-template-columns:44px 1fr 56px}}@media(prefers-reduced-motion:reduce){.lp-busy{transition:none}}", Cs = 2 ** 30;
function Rl(e, t) {
  const n = `${e}.${t}`;
  return n in Ps.en ? b(n) : t;
}
const Je = (e) => Rl("axis", e.toLowerCase()), Di = (e) => Rl("limit", e), Ga = (e) => Rl("row", e);
function pn(e, t = ["sample_low"]) {
  return e === "sample_high" && ![...t].includes("sample_low") ? b("phase.only") : Rl("phase", e);
}
function qe(e, t = 1) {
  return e == null ? b("unknown") : `${(e / Cs).toFixed(t)} GiB`;
}
function cn(e) {
  if (e == null || !Number.isFinite(e)) return b("unknown");
  if (e < 10) return b("time.seconds", { s: e.toFixed(1) });
  const t = Math.round(e);
  if (t < 60) return b("time.seconds", { s: t });
  if (t < 3600) return b("time.minutes", { m: Math.floor(t / 60), s: nl(t % 60) });
  const n = Math.round(t / 60);
  return b("time.hours", { h: Math.floor(n / 60), m: nl(n % 60) });
}
function il(e) {
  if (e == null || !Number.isFinite(e)) return "–";
  const t = Math.round(e);
  return t < 60 ? b("time.seconds", { s: e < 10 ? e.toFixed(1) : t }) : t < 3600 ? `${Math.floor(t / 60)}:${nl(t % 60)}` : `${Math.floor(t / 3600)}:${nl(Math.floor(t % 3600 / 60))}:${nl(t % 60)}`;
}
function jt(e) {
  if (!e?.width || !e.height) return "";
  const { width: t, height: n, seconds: l } = e;
  return l == null ? b("size", { width: t, height: n }) : b("size.length", { width: t, height: n, s: l.toFixed(1) });
}
function Va(e) {
  if (!e) return "";
  const t = e.vram_total_bytes ? "" : b("machine.no_gpu"), n = ["vram", "ram"].map((l) => {
    const s = e[`${l}_total_bytes`];
    return s ? b("machine.axis", { axis: Je(l), amount: qe(s, 0) }) : "";
  });
  return [e.device_name || e.card || t, ...n].filter(Boolean).join(" · ");
}
function $a(e) {
  const t = e?.passes?.length, n = t === 2 ? b("passes.two") : t === 1 ? b("passes.one") : "";
  return Yt([e?.quality ?? "", n].filter(Boolean));
}
function Ci(e) {
  if (e.fits === !1) return Fa(e);
  const t = e.seconds_range, n = e.total_seconds == null ? null : Bi(e)?.limited_by, l = ["vram", "ram"].flatMap((r) => {
    const a = Oi(e, r), u = zs(e.snapshot, r), p = Je(r);
    return a == null ? [] : u == null ? [b("verdict.used_alone", { peak: qe(a), axis: p })] : [b("verdict.used", { peak: (a / Cs).toFixed(1), free: qe(u), axis: p })];
  }), s = [
    [jt(e.request), $a(e.request)].filter(Boolean).join(" · "),
    t && b("verdict.range", { low: cn(t[0]), high: cn(t[1]) }),
    n && b("verdict.limited", { limit: Di(n) }),
    l.length && b("verdict.peak", { used: Yt(l) })
  ];
  return {
    tone: "ok",
    head: e.total_seconds == null ? b("verdict.fits_alone") : b("verdict.fits", { time: cn(e.total_seconds) }),
    detail: s.filter(Boolean).join(b("list.stop")) + b("list.end")
  };
}
function Fa(e) {
  const t = e.short ?? [], n = t[0];
  if (!n) return { tone: "bad", head: b("refusal.plain"), detail: e.message ?? "" };
  const l = [...new Set(t.map((p) => p.axis))], s = l.includes("ram") ? "vram" : "ram", r = t.map(
    (p) => b("refusal.detail", {
      phase: pn(p.phase),
      size: jt(e.request),
      need: qe(p.need_bytes),
      have: qe(p.have_bytes),
      axis: Je(p.axis)
    })
  ), a = l.length === 1 && n.axis !== "disk", u = { axes: zi(l), amount: qe(n.shortfall_bytes) };
  return {
    tone: "bad",
    head: l.length > 1 ? b("refusal.many", u) : b("refusal.one", u),
    detail: r.join(" ") + (a ? b("refusal.enough", { axis: Je(s) }) : "")
  };
}
function zi(e) {
  return e.map(Je).join(b("list.and"));
}
function Bi(e) {
  return [...e.phases ?? []].sort((t, n) => (n.seconds ?? 0) - (t.seconds ?? 0))[0];
}
function Oi(e, t) {
  const n = `${t}_peak_bytes`, l = (e.phases ?? []).map((s) => s[n]).filter((s) => s != null);
  return l.length ? Math.max(...l) : null;
}
function zs(e, t) {
  const n = t === "vram" ? e?.vram_free_bytes : e?.ram_available_bytes;
  return n || null;
}
function Ia(e, t) {
  const n = new RegExp(`^${t.toUpperCase()}: .* ([0-9.]+) (GiB|MiB) margin`);
  for (const l of e.reasons ?? []) {
    const s = n.exec(l);
    if (s) return Number(s[1]) * (s[2] === "GiB" ? Cs : 2 ** 20);
  }
  return 0;
}
function Co(e) {
  return e.replace(
    /^(encode|sample_low|upscale|sample_high|decode)\b/,
    (n) => pn(n)
  ).replace(/(\d)x(\d)/g, "$1 × $2");
}
function Wa(e) {
  return e.replace(
    /(phase )?\b(sample_low|sample_high)\b/g,
    (t, n, l) => pn(l).toLowerCase()
  );
}
function Ha(e) {
  const t = [{ head: "", lines: [...e.what_if ?? []] }];
  for (const n of e.reasons ?? []) {
    const l = /^((?:encode|sample_low|upscale|sample_high|decode)\b[^:]*): (.*)$/.exec(n), s = l ? Co(l[1]) : "";
    let r = t.find((a) => a.head === s);
    r || t.push(r = { head: s, lines: [] }), r.lines.push(ja(Co(l ? l[2] : n)));
  }
  return t.filter((n) => n.lines.length);
}
function ja(e) {
  return e.charAt(0).toUpperCase() + e.slice(1);
}
function rl(e, t) {
  return e == null || !t ? null : 100 * (e - t) / t;
}
function Sl(e) {
  if (e == null) return "–";
  const t = Math.round(e);
  return t === 0 ? "0 %" : `${t > 0 ? "+" : "−"}${Math.abs(t)} %`;
}
function zo(e, t, n) {
  if (n == null) return "";
  const l = Math.abs(Math.round(n)), s = l === 0 ? "same" : n > 0 ? "more" : "less";
  return b(`diff.${`${e}${s}`}`, { axis: t, n: l });
}
function Ua(e) {
  const t = [];
  for (const [n, { forecast: l, measured: s }] of Object.entries(e.phases)) {
    if (!l || !s) continue;
    const r = ["vram", "ram"].map((p) => {
      const h = `${p}_peak_bytes`;
      return zo("", Je(p), rl(s[h], l[h]));
    }), u = [zo("time_", "", rl(s.seconds, l.seconds)), ...r].filter(Boolean);
    u.length && t.push(b("diff.line", {
      phase: pn(n, Object.keys(e.phases)),
      parts: Yt(u)
    }));
  }
  return t;
}
function Ya(e) {
  const t = Za(Object.values(e.phases).map((s) => s.measured?.seconds)), n = jt(e.request);
  if (e.status === "failed") {
    const s = e.error?.error ? `${e.error.error}: ` : "", r = Wa(e.error?.message ?? b("run.no_reason"));
    return { tone: "bad", head: b("run.failed"), detail: s + r };
  }
  return e.status === "cancelled" ? { tone: "ok", head: b("run.cancelled"), detail: n } : { tone: "ok", head: t == null ? b("run.done") : b("run.took", { time: cn(t) }), detail: n };
}
function qa(e) {
  return e.status !== "done" ? "–" : Sl(rl(e.measured_vram_peak_bytes, e.forecast_vram_peak_bytes));
}
function Ka(e) {
  const t = e.plan.phases?.length ? e.plan.phases.map((l) => [l.phase, l.seconds]) : Object.entries(e.phases).map(([l, s]) => [l, s.forecast?.seconds]);
  let n = null;
  for (const [l, s] of t) {
    const r = e.phases[l];
    if (r?.measured || s == null) continue;
    const { step: a, steps: u } = r?.progress ?? {};
    n = (n ?? 0) + s * (u ? 1 - Math.min(1, (a ?? 0) / u) : 1);
  }
  return n;
}
function Ja(e) {
  return Object.entries(e.phases).filter(([, n]) => !n.measured).at(-1)?.[0] ?? null;
}
function Za(e) {
  const t = e.filter((n) => n != null);
  return t.length ? t.reduce((n, l) => n + l, 0) : null;
}
function Qa(e, t, n, l) {
  const s = `${t}_peak_bytes`, r = b(
    "bar.label",
    { phase: e, axis: Je(t), amount: qe(n[s], 2) }
  );
  return l?.[s] == null ? r : b("bar.measured", { label: r, amount: qe(l[s], 2) });
}
function nl(e) {
  return String(e).padStart(2, "0");
}
const Xa = ["encode", "sample_low", "upscale", "sample_high", "decode"];
function ec(e) {
  const t = e.fits === !1 ? tc(e) : Gi(e);
  return Vi(t, e);
}
function Ni(e) {
  const t = new Map(Gi(e.plan).map((n) => [n.phase, n]));
  for (const [n, { forecast: l, measured: s }] of Object.entries(e.phases)) {
    const r = t.get(n);
    (l || s || r) && t.set(n, { phase: n, forecast: { ...r?.forecast, ...l }, measured: s });
  }
  return Vi([...t.values()], e.plan);
}
function Gi(e) {
  return (e.phases ?? []).map((t) => ({ phase: t.phase, forecast: t }));
}
function tc(e) {
  const t = /* @__PURE__ */ new Map();
  for (const n of e.short ?? []) {
    const l = t.get(n.phase) ?? { phase: n.phase, forecast: {} };
    l.forecast = { ...l.forecast, [`${n.axis}_peak_bytes`]: n.need_bytes }, t.set(n.phase, l);
  }
  return [...t.values()];
}
function Vi(e, t) {
  const n = (a) => Xa.indexOf(a), l = [...e].sort((a, u) => n(a.phase) - n(u.phase)), s = l.map((a) => a.phase), r = t.request?.two_pass === !1 ? s : [...s, ...nc(t)];
  return l.map((a) => {
    const u = pn(a.phase, r);
    return {
      phase: a.phase,
      name: u,
      seconds: a.forecast.seconds ?? null,
      measuredSeconds: a.measured?.seconds ?? null,
      bars: ["vram", "ram"].flatMap((p) => lc(a, u, p, l, t))
    };
  });
}
function nc(e) {
  return (e.request?.passes ?? []).map((t) => t.phase);
}
function lc(e, t, n, l, s) {
  const r = `${n}_peak_bytes`, a = e.forecast[r], u = e.measured?.[r] ?? null;
  if (a == null && u == null) return [];
  const p = zs(s.snapshot, n), h = l.flatMap((E) => [E.forecast[r] ?? 0, E.measured?.[r] ?? 0]), k = Ia(s, n), g = Math.max(p ?? 0, ...h) * (p == null ? 1.15 : 1.02) || 1, w = p == null ? null : p - (s.fits === !1 ? k : 0), A = (E) => 100 * E / g;
  return [
    {
      axis: n,
      used: A(a ?? 0),
      margin: a == null ? 0 : Math.min(A(k), 100 - A(a)),
      capacity: p == null ? null : A(p),
      measured: u == null ? null : A(u),
      excessFrom: w != null && (a ?? 0) > w ? A(w) : null,
      label: Qa(t, n, e.forecast, e.measured)
    }
  ];
}
function sc(e) {
  const { lora: t, asked: n } = e;
  if (!t || !n?.loras) return null;
  const l = t.mode === "online", s = l ? t.online_seconds : t.merge_seconds, r = { count: n.loras, ram: qe(t.host_bytes), time: cn(s) };
  return e.total_seconds == null ? b("lora.planned", r) : b(l ? "lora.planned_online" : "lora.planned_merged", r);
}
function v(e, t = {}, ...n) {
  const [l, ...s] = e.split("."), r = document.createElement(l);
  s.length && (r.className = s.join(" "));
  for (const [a, u] of Object.entries(t))
    u == null || u === !1 || (typeof u == "function" ? r.addEventListener(a.slice(2), u) : r.setAttribute(a, u === !0 ? "" : String(u)));
  return r.append(...n.filter((a) => !!a)), r;
}
function Dt(e, t) {
  const n = ol() === "en" ? t : ga(t);
  return v(e, { lang: n == null ? "en" : null }, n ?? t);
}
function Pe(e, ...t) {
  const n = e.contains(document.activeElement) ? document.activeElement.dataset.key : void 0;
  e.replaceChildren(...t.filter((l) => !!l)), n && e.querySelector(`[data-key="${CSS.escape(n)}"]`)?.focus();
}
let oc = 0;
function an(e, t = !1) {
  const n = v("div.lp-body");
  if (t) {
    const s = v("summary", {}, e);
    return [v("details.lp-sec", {}, s, n), n, s];
  }
  const l = v("h3", { id: `lowpeak-section-${++oc}` }, e);
  return [v("section.lp-sec", { "aria-labelledby": l.id }, l, n), n, l];
}
function Bs(e) {
  return v("div.lp-rows", { role: "list" }, ...e.map(ic));
}
function ic(e) {
  const t = e.measuredSeconds, n = e.seconds == null ? "" : il(e.seconds);
  return v(
    "div.lp-row",
    { role: "listitem", "data-phase": e.phase },
    v("span.lp-name", {}, e.name),
    v("div.lp-bars", {}, ...e.bars.map(rc)),
    t == null ? v("span.lp-time", { title: b("bar.time") }, n) : v(
      "span.lp-time",
      { title: b("bar.both") },
      v("b", {}, il(t)),
      n && b("bar.of", { time: n })
    )
  );
}
function rc(e) {
  const t = (n, l, s) => v("i", { class: n, style: `left:${l}%` + (s == null ? "" : `;width:${s}%`) });
  return v(
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
function Os(e, t) {
  const n = ["vram", "ram"].filter((s) => e.some((r) => r.bars.some((a) => a.axis === s))), l = (s, r) => v("span", {}, v("i", { class: s, "aria-hidden": "true" }), r);
  return v(
    "div.lp-legend",
    {},
    ...n.map((s) => l(`lp-key-${s}`, Je(s))),
    l("lp-key-margin", b("legend.margin")),
    l("lp-key-cap", b("legend.end")),
    t && l("lp-key-measured", b("legend.measured"))
  );
}
const ac = ["card", "ram", "disk"];
function Bo(e, t) {
  return Array.from({ length: e }, (n, l) => Math.floor((2 * l + 1) * t / (2 * e)));
}
function Ns(e) {
  const { resident_blocks: t, pinned_blocks: n, disk_blocks: l } = e, s = Math.min(t + n + l, 400), r = new Set(Bo(Math.min(l, s), s)), a = Array.from({ length: s }, (p, h) => h).filter((p) => !r.has(p)), u = new Set(Bo(Math.min(t, a.length), a.length).map((p) => a[p]));
  return Array.from({ length: s }, (p, h) => r.has(h) ? "disk" : u.has(h) ? "card" : "ram");
}
function cc(e) {
  const t = [];
  for (const n of e) {
    const l = t.at(-1);
    l && l[1] === n - 1 ? l[1] = n : t.push([n, n]);
  }
  return t.map(([n, l]) => n === l ? `${n + 1}` : `${n + 1}-${l + 1}`).join(", ");
}
const Oo = { card: "lp-on-card", ram: "lp-in-ram", disk: "lp-on-disk" };
function Gs(e, t) {
  if (Oi(e, "vram") == null) return null;
  const n = (e.phases ?? []).filter((s) => s.phase.startsWith("sample"));
  return (n.find((s) => s.phase === t) ?? n.find((s) => s.phase === Bi(e)?.phase) ?? n[0])?.placement ?? null;
}
function $i(e, t) {
  const n = Gs(e, t);
  if (!n) return null;
  const l = Ns(n), s = ac.filter((a) => l.includes(a)).map((a) => {
    const u = l.flatMap((h, k) => h === a ? [k] : []), p = b("blocks.count", { count: u.length, where: b(`blocks.${a}`) });
    return { place: a, text: p, which: b("blocks.which", { where: b(`blocks.${a}`), numbers: cc(u) }) };
  }), r = b("blocks.label", { text: Yt(s.map((a) => a.text)) });
  return v(
    "div",
    {},
    v(
      "div.lp-blocks",
      { role: "img", "aria-label": r },
      ...l.map((a, u) => v("i", {
        class: Oo[a],
        title: b("blocks.one", { number: u + 1, where: b(`blocks.${a}`) })
      }))
    ),
    v("div.lp-legend", { "aria-hidden": "true" }, ...s.map(({ place: a, text: u }) => v("span", {}, v("i", { class: Oo[a] }), u))),
    v("div.lp-sr", {}, s.map((a) => a.which).join(b("list.stop")))
  );
}
function uc(e, t, n, l) {
  const { plan: s, planError: r, planBusy: a } = n;
  if (r)
    return Pe(
      e,
      v("div.lp-verdict.lp-bad", {}, b("before.none")),
      Dt("div.lp-dim", r),
      v("div.lp-actions", {}, Fi(l))
    ), Pe(t);
  if (!s) {
    const w = b(a ? "before.working" : "before.no_sampler");
    return Pe(e, v("p.lp-dim", {}, w)), Pe(t);
  }
  const { tone: u, head: p, detail: h } = Ci(s), k = sc(s);
  Pe(
    e,
    v("div", { class: `lp-verdict${u === "bad" ? " lp-bad" : ""}` }, p),
    v("div.lp-dim", {}, h),
    k ? v("div.lp-dim", {}, k) : null,
    ...(s.asked?.notices ?? []).map((w) => Dt("p.lp-notice", w)),
    s.asked?.unknown.length ? v("p.lp-notice", {}, b("before.unknown", { names: Yt(s.asked.unknown) })) : null,
    s.fits === !1 ? fc(s, l) : null
  );
  const g = ec(s);
  Pe(t, g.length ? Bs(g) : null, g.length ? Os(g, !1) : null);
}
function fc(e, t) {
  const n = v("p.lp-notice", { role: "status", hidden: !0 }), l = (e.fits_instead ?? []).map(
    (s, r) => v(
      "div.lp-offer",
      {},
      v("span", {}, jt(s)),
      v("button", {
        type: "button",
        "data-key": `use-${r}`,
        "aria-label": b("offers.use_label", { size: jt(s) }),
        onclick: () => {
          n.textContent = t.use(s), n.hidden = !n.textContent;
        }
      }, b("offers.use"))
    )
  );
  return v(
    "section.lp-sec",
    { "aria-label": b("offers.title") },
    v("h3", {}, l.length ? b("offers.title") : b("offers.none")),
    ...l,
    n,
    v("div.lp-offer", {}, v("span", {}, b("offers.close")), Fi(t))
  );
}
function Fi(e) {
  return v(
    "button",
    { type: "button", "data-key": "again", onclick: () => {
      e.forecast();
    } },
    b("before.again")
  );
}
function pc(e, t, n) {
  const l = n.plan && n.plan.fits !== !1 ? n.plan : null, s = l && Gs(l, null);
  return Pe(t, s && $i(l, null)), e.textContent = b("section.blocks", { count: s ? Ns(s).length : 0 }), s != null;
}
function hc(e, t) {
  const n = t.plan, l = n ? Ha(n) : [], s = (r) => v("ul", {}, ...r.map((a) => Dt("li", a)));
  return Pe(
    e,
    n?.changes_arithmetic && v("p", {}, b("why.arithmetic")),
    ...l.flatMap(({ head: r, lines: a }) => [r && Dt("h4", r), s(a)])
  ), l.length > 0;
}
function dc(e) {
  const { tone: t, head: n, detail: l } = Ci(e), s = e.fits === !1 && e.fits_instead?.[0];
  return v(
    "div",
    {},
    v("div", { class: `lp-verdict${t === "bad" ? " lp-bad" : ""}` }, n),
    v("div.lp-dim", {}, l, s ? " " + b("what_if.would_fit", { size: jt(s) }) : "")
  );
}
class mc {
  box;
  body;
  constructor() {
    [this.box, this.body] = an(b("section.last")), this.box.classList.add("lp-last"), this.box.hidden = !0;
  }
  draw(t) {
    if (this.box.hidden = !t, !t) return Pe(this.body);
    this.box.dataset.run = t.run_id;
    const { tone: n, head: l, detail: s } = Ya(t), r = Ni(t), a = Ua(t);
    Pe(
      this.body,
      v("div", {
        class: `lp-verdict${n === "bad" ? " lp-bad" : ""}`,
        role: n === "bad" ? "alert" : null
      }, l),
      t.status === "failed" ? Dt("div.lp-dim", s) : v("div.lp-dim", {}, s || jt(t.request)),
      r.length ? Bs(r) : null,
      r.length ? Os(r, !0) : null,
      a.length ? v("ul", {}, ...a.map((u) => v("li", {}, u))) : null,
      ...t.notices.slice(-5).map((u) => Dt("p.lp-notice", u)),
      wc(t.report.lora),
      bc(t.report.kernels),
      this.copy(t)
    );
  }
  copy(t) {
    const n = v("span.lp-dim", { role: "status" }), l = async () => {
      n.textContent = await gc(Da(t)) ? b("copy.done") : b("copy.refused");
    };
    return v(
      "div.lp-actions",
      {},
      v(
        "button",
        { type: "button", "data-key": "copy", onclick: () => {
          l();
        } },
        b("copy.button")
      ),
      v("span.lp-dim", {}, b("copy.what")),
      n
    );
  }
}
async function gc(e) {
  try {
    return await navigator.clipboard.writeText(e), !0;
  } catch {
    const t = v("textarea", { style: "position:fixed;opacity:0" });
    t.value = e, document.body.append(t), t.select();
    const n = document.execCommand("copy");
    return t.remove(), n;
  }
}
function wc(e) {
  return !Array.isArray(e) || !e.length ? null : v("div.lp-sec", {}, v("h4", {}, b("section.lora")), ...e.flatMap((t) => {
    const n = (t.skipped ?? []).filter((s) => s.matters !== !1 && s.tensors?.length), l = t.complete === !1 ? ".lp-bad" : "";
    return [
      v(`div.lp-lora${l}`, {}, b("lora.bound", {
        file: t.file ?? "LoRA",
        bound: t.bound_tensors ?? "?",
        all: t.tensors ?? "?"
      })),
      ...n.map((s) => v(
        "div.lp-dim",
        {},
        b("lora.left", { count: s.tensors.length, reason: s.reason ?? "?" })
      ))
    ];
  }));
}
function bc(e) {
  if (!e || typeof e != "object") return null;
  const t = Object.entries(e).flatMap(([n, l]) => vc(n, typeof l == "string" ? { implementation: l } : l ?? {}));
  return t.length ? v(
    "details.lp-sec",
    {},
    v("summary", {}, b("section.kernels")),
    v("ul.lp-kernels", {}, ...t.map((n) => v("li", {}, n)))
  ) : null;
}
function vc(e, t) {
  const n = (u, p, h) => h ? b("kernels.because", { stage: u, name: p, reason: h }) : b("kernels.used", { stage: u, name: p }), { chosen: l = {}, because: s = {}, against: r = {}, changes_arithmetic: a = [] } = t;
  return [
    n(e, t.implementation ?? "?", t.reason),
    ...Object.entries(l).map(([u, p]) => n(u, p, s[u])),
    ...Object.entries(r).map(([u, p]) => b("kernels.against", { name: u, reason: p })),
    ...a.length ? [b("kernels.changes", { names: Yt(a) })] : []
  ];
}
const kc = !0, De = "u-", xc = "uplot", yc = De + "hz", _c = De + "vt", Sc = De + "title", Mc = De + "wrap", Ac = De + "under", Tc = De + "over", Lc = De + "axis", rn = De + "off", Ec = De + "select", Rc = De + "cursor-x", Pc = De + "cursor-y", Dc = De + "cursor-pt", Cc = De + "legend", zc = De + "live", Bc = De + "inline", Oc = De + "series", Nc = De + "marker", No = De + "label", Gc = De + "value", Xn = "width", el = "height", Zn = "top", Go = "bottom", Cn = "left", ps = "right", Vs = "#000", Vo = Vs + "0", hs = "mousemove", $o = "mousedown", ds = "mouseup", Fo = "mouseenter", Io = "mouseleave", Wo = "dblclick", Vc = "resize", $c = "scroll", Ho = "change", Al = "dppxchange", $s = "--", $n = typeof window < "u", xs = $n ? document : null, Bn = $n ? window : null, Fc = $n ? navigator : null;
let re, xl;
function ys() {
  let e = devicePixelRatio;
  re != e && (re = e, xl && Ss(Ho, xl, ys), xl = matchMedia(`(min-resolution: ${re - 1e-3}dppx) and (max-resolution: ${re + 1e-3}dppx)`), un(Ho, xl, ys), Bn.dispatchEvent(new CustomEvent(Al)));
}
function ot(e, t) {
  if (t != null) {
    let n = e.classList;
    !n.contains(t) && n.add(t);
  }
}
function _s(e, t) {
  let n = e.classList;
  n.contains(t) && n.remove(t);
}
function be(e, t, n) {
  e.style[t] = n + "px";
}
function xt(e, t, n, l) {
  let s = xs.createElement(e);
  return t != null && ot(s, t), n?.insertBefore(s, l), s;
}
function dt(e, t) {
  return xt("div", e, t);
}
const jo = /* @__PURE__ */ new WeakMap();
function Pt(e, t, n, l, s) {
  let r = "translate(" + t + "px," + n + "px)", a = jo.get(e);
  r != a && (e.style.transform = r, jo.set(e, r), t < 0 || n < 0 || t > l || n > s ? ot(e, rn) : _s(e, rn));
}
const Uo = /* @__PURE__ */ new WeakMap();
function Yo(e, t, n) {
  let l = t + n, s = Uo.get(e);
  l != s && (Uo.set(e, l), e.style.background = t, e.style.borderColor = n);
}
const qo = /* @__PURE__ */ new WeakMap();
function Ko(e, t, n, l) {
  let s = t + "" + n, r = qo.get(e);
  s != r && (qo.set(e, s), e.style.height = n + "px", e.style.width = t + "px", e.style.marginLeft = l ? -t / 2 + "px" : 0, e.style.marginTop = l ? -n / 2 + "px" : 0);
}
const Fs = { passive: !0 }, Ic = { ...Fs, capture: !0 };
function un(e, t, n, l) {
  t.addEventListener(e, n, l ? Ic : Fs);
}
function Ss(e, t, n, l) {
  t.removeEventListener(e, n, Fs);
}
$n && ys();
function yt(e, t, n, l) {
  let s;
  n = n || 0, l = l || t.length - 1;
  let r = l <= 2147483647;
  for (; l - n > 1; )
    s = r ? n + l >> 1 : it((n + l) / 2), t[s] < e ? n = s : l = s;
  return e - t[n] <= t[l] - e ? n : l;
}
function Ii(e) {
  return (n, l, s) => {
    let r = -1, a = -1;
    for (let u = l; u <= s; u++)
      if (e(n[u])) {
        r = u;
        break;
      }
    for (let u = s; u >= l; u--)
      if (e(n[u])) {
        a = u;
        break;
      }
    return [r, a];
  };
}
const Wi = (e) => e != null, Hi = (e) => e != null && e > 0, Pl = Ii(Wi), Wc = Ii(Hi);
function Hc(e, t, n, l = 0, s = !1) {
  let r = s ? Wc : Pl, a = s ? Hi : Wi;
  [t, n] = r(e, t, n);
  let u = e[t], p = e[t];
  if (t > -1)
    if (l == 1)
      u = e[t], p = e[n];
    else if (l == -1)
      u = e[n], p = e[t];
    else
      for (let h = t; h <= n; h++) {
        let k = e[h];
        a(k) && (k < u ? u = k : k > p && (p = k));
      }
  return [u ?? pe, p ?? -pe];
}
function Dl(e, t, n, l) {
  let s = Qo(e), r = Qo(t);
  e == t && (s == -1 ? (e *= n, t /= n) : (e /= n, t *= n));
  let a = n == 10 ? Ot : ji, u = s == 1 ? it : mt, p = r == 1 ? mt : it, h = u(a(Re(e))), k = p(a(Re(t))), g = On(n, h), w = On(n, k);
  return n == 10 && (h < 0 && (g = he(g, -h)), k < 0 && (w = he(w, -k))), l || n == 2 ? (e = g * s, t = w * r) : (e = Ki(e, g), t = Cl(t, w)), [e, t];
}
function Is(e, t, n, l) {
  let s = Dl(e, t, n, l);
  return e == 0 && (s[0] = 0), t == 0 && (s[1] = 0), s;
}
const Ws = 0.1, Jo = {
  mode: 3,
  pad: Ws
}, ll = {
  pad: 0,
  soft: null,
  mode: 0
}, jc = {
  min: ll,
  max: ll
};
function Tl(e, t, n, l) {
  return zl(n) ? Zo(e, t, n) : (ll.pad = n, ll.soft = l ? 0 : null, ll.mode = l ? 3 : 0, Zo(e, t, jc));
}
function oe(e, t) {
  return e ?? t;
}
function Uc(e, t, n) {
  for (t = oe(t, 0), n = oe(n, e.length - 1); t <= n; ) {
    if (e[t] != null)
      return !0;
    t++;
  }
  return !1;
}
function Zo(e, t, n) {
  let l = n.min, s = n.max, r = oe(l.pad, 0), a = oe(s.pad, 0), u = oe(l.hard, -pe), p = oe(s.hard, pe), h = oe(l.soft, pe), k = oe(s.soft, -pe), g = oe(l.mode, 0), w = oe(s.mode, 0), A = t - e, E = Ot(A), B = Ke(Re(e), Re(t)), V = Ot(B), F = Re(V - E);
  (A < 1e-24 || F > 10) && (A = 0, (e == 0 || t == 0) && (A = 1e-24, g == 2 && h != pe && (r = 0), w == 2 && k != -pe && (a = 0)));
  let S = A || B || 1e3, y = Ot(S), T = On(10, it(y)), J = S * (A == 0 ? e == 0 ? 0.1 : 1 : r), z = he(Ki(e - J, T / 10), 24), Z = e >= h && (g == 1 || g == 3 && z <= h || g == 2 && z >= h) ? h : pe, Y = Ke(u, z < Z && e >= Z ? Z : _t(Z, z)), ee = S * (A == 0 ? t == 0 ? 0.1 : 1 : a), U = he(Cl(t + ee, T / 10), 24), L = t <= k && (w == 1 || w == 3 && U >= k || w == 2 && U <= k) ? k : -pe, K = _t(p, U > L && t <= L ? L : Ke(L, U));
  return Y == K && Y == 0 && (K = 100), [Y, K];
}
const Yc = new Intl.NumberFormat($n ? Fc.language : "en-US"), Hs = (e) => Yc.format(e), rt = Math, Ml = rt.PI, Re = rt.abs, it = rt.floor, Ee = rt.round, mt = rt.ceil, _t = rt.min, Ke = rt.max, On = rt.pow, Qo = rt.sign, Ot = rt.log10, ji = rt.log2, qc = (e, t = 1) => rt.sinh(e) * t, ms = (e, t = 1) => rt.asinh(e / t), pe = 1 / 0;
function Xo(e) {
  return (Ot((e ^ e >> 31) - (e >> 31)) | 0) + 1;
}
function Ms(e, t, n) {
  return _t(Ke(e, t), n);
}
function Ui(e) {
  return typeof e == "function";
}
function te(e) {
  return Ui(e) ? e : () => e;
}
const Kc = () => {
}, Yi = (e) => e, qi = (e, t) => t, Jc = (e) => null, ei = (e) => !0, ti = (e, t) => e == t, Zc = /\.\d*?(?=9{6,}|0{6,})/gm, fn = (e) => {
  if (Zi(e) || Ut.has(e))
    return e;
  const t = `${e}`, n = t.match(Zc);
  if (n == null)
    return e;
  let l = n[0].length - 1;
  if (t.indexOf("e-") != -1) {
    let [s, r] = t.split("e");
    return +`${fn(s)}e${r}`;
  }
  return he(e, l);
};
function sn(e, t) {
  return fn(he(fn(e / t)) * t);
}
function Cl(e, t) {
  return fn(mt(fn(e / t)) * t);
}
function Ki(e, t) {
  return fn(it(fn(e / t)) * t);
}
function he(e, t = 0) {
  if (Zi(e))
    return e;
  let n = 10 ** t, l = e * n * (1 + Number.EPSILON);
  return Ee(l) / n;
}
const Ut = /* @__PURE__ */ new Map();
function Ji(e) {
  return (("" + e).split(".")[1] || "").length;
}
function al(e, t, n, l) {
  let s = [], r = l.map(Ji);
  for (let a = t; a < n; a++) {
    let u = Re(a), p = he(On(e, a), u);
    for (let h = 0; h < l.length; h++) {
      let k = e == 10 ? +`${l[h]}e${a}` : l[h] * p, g = (a >= 0 ? 0 : u) + (a >= r[h] ? 0 : r[h]), w = e == 10 ? k : he(k, g);
      s.push(w), Ut.set(w, g);
    }
  }
  return s;
}
const sl = {}, js = [], Nn = [null, null], Ht = Array.isArray, Zi = Number.isInteger, Qc = (e) => e === void 0;
function ni(e) {
  return typeof e == "string";
}
function zl(e) {
  let t = !1;
  if (e != null) {
    let n = e.constructor;
    t = n == null || n == Object;
  }
  return t;
}
function Xc(e) {
  return e != null && typeof e == "object";
}
const eu = Object.getPrototypeOf(Uint8Array), Qi = "__proto__";
function Gn(e, t = zl) {
  let n;
  if (Ht(e)) {
    let l = e.find((s) => s != null);
    if (Ht(l) || t(l)) {
      n = Array(e.length);
      for (let s = 0; s < e.length; s++)
        n[s] = Gn(e[s], t);
    } else
      n = e.slice();
  } else if (e instanceof eu)
    n = e.slice();
  else if (t(e)) {
    n = {};
    for (let l in e)
      l != Qi && (n[l] = Gn(e[l], t));
  } else
    n = e;
  return n;
}
function Ae(e) {
  let t = arguments;
  for (let n = 1; n < t.length; n++) {
    let l = t[n];
    for (let s in l)
      s != Qi && (zl(e[s]) ? Ae(e[s], Gn(l[s])) : e[s] = Gn(l[s]));
  }
  return e;
}
const tu = 0, nu = 1, lu = 2;
function su(e, t, n) {
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
function ou(e, t) {
  if (au(e)) {
    let a = e[0].slice();
    for (let u = 1; u < e.length; u++)
      a.push(...e[u].slice(1));
    return cu(a[0]) || (a = ru(a)), a;
  }
  let n = /* @__PURE__ */ new Set();
  for (let a = 0; a < e.length; a++) {
    let p = e[a][0], h = p.length;
    for (let k = 0; k < h; k++)
      n.add(p[k]);
  }
  let l = [Array.from(n).sort((a, u) => a - u)], s = l[0].length, r = /* @__PURE__ */ new Map();
  for (let a = 0; a < s; a++)
    r.set(l[0][a], a);
  for (let a = 0; a < e.length; a++) {
    let u = e[a], p = u[0];
    for (let h = 1; h < u.length; h++) {
      let k = u[h], g = Array(s).fill(void 0), w = t ? t[a][h] : nu, A = [];
      for (let E = 0; E < k.length; E++) {
        let B = k[E], V = r.get(p[E]);
        B === null ? w != tu && (g[V] = B, w == lu && A.push(V)) : g[V] = B;
      }
      su(g, A, s), l.push(g);
    }
  }
  return l;
}
const iu = typeof queueMicrotask > "u" ? (e) => Promise.resolve().then(e) : queueMicrotask;
function ru(e) {
  let t = e[0], n = t.length, l = Array(n);
  for (let r = 0; r < l.length; r++)
    l[r] = r;
  l.sort((r, a) => t[r] - t[a]);
  let s = [];
  for (let r = 0; r < e.length; r++) {
    let a = e[r], u = Array(n);
    for (let p = 0; p < n; p++)
      u[p] = a[l[p]];
    s.push(u);
  }
  return s;
}
function au(e) {
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
function cu(e, t = 100) {
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
  const r = Ke(1, it((s - l + 1) / t));
  for (let a = e[l], u = l + r; u <= s; u += r) {
    const p = e[u];
    if (p != null) {
      if (p <= a)
        return !1;
      a = p;
    }
  }
  return !0;
}
const Xi = [
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
], er = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday"
];
function tr(e) {
  return e.slice(0, 3);
}
const uu = er.map(tr), fu = Xi.map(tr), pu = {
  MMMM: Xi,
  MMM: fu,
  WWWW: er,
  WWW: uu
};
function Qn(e) {
  return (e < 10 ? "0" : "") + e;
}
function hu(e) {
  return (e < 10 ? "00" : e < 100 ? "0" : "") + e;
}
const du = {
  // 2019
  YYYY: (e) => e.getFullYear(),
  // 19
  YY: (e) => (e.getFullYear() + "").slice(2),
  // July
  MMMM: (e, t) => t.MMMM[e.getMonth()],
  // Jul
  MMM: (e, t) => t.MMM[e.getMonth()],
  // 07
  MM: (e) => Qn(e.getMonth() + 1),
  // 7
  M: (e) => e.getMonth() + 1,
  // 09
  DD: (e) => Qn(e.getDate()),
  // 9
  D: (e) => e.getDate(),
  // Monday
  WWWW: (e, t) => t.WWWW[e.getDay()],
  // Mon
  WWW: (e, t) => t.WWW[e.getDay()],
  // 03
  HH: (e) => Qn(e.getHours()),
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
  mm: (e) => Qn(e.getMinutes()),
  // 9
  m: (e) => e.getMinutes(),
  // 09
  ss: (e) => Qn(e.getSeconds()),
  // 9
  s: (e) => e.getSeconds(),
  // 374
  fff: (e) => hu(e.getMilliseconds())
};
function Us(e, t) {
  t = t || pu;
  let n = [], l = /\{([a-z]+)\}|[^{]+/gi, s;
  for (; s = l.exec(e); )
    n.push(s[0][0] == "{" ? du[s[1]] : s[0]);
  return (r) => {
    let a = "";
    for (let u = 0; u < n.length; u++)
      a += typeof n[u] == "string" ? n[u] : n[u](r, t);
    return a;
  };
}
const mu = new Intl.DateTimeFormat().resolvedOptions().timeZone;
function gu(e, t) {
  let n;
  return t == "UTC" || t == "Etc/UTC" ? n = new Date(+e + e.getTimezoneOffset() * 6e4) : t == mu ? n = e : (n = new Date(e.toLocaleString("en-US", { timeZone: t })), n.setMilliseconds(e.getMilliseconds())), n;
}
const nr = (e) => e % 1 == 0, Ll = [1, 2, 2.5, 5], wu = al(10, -32, 0, Ll), lr = al(10, 0, 32, Ll), bu = lr.filter(nr), on = wu.concat(lr), Ys = `
`, sr = "{YYYY}", li = Ys + sr, or = "{M}/{D}", tl = Ys + or, yl = tl + "/{YY}", ir = "{aa}", vu = "{h}:{mm}", zn = vu + ir, si = Ys + zn, oi = ":{ss}", ce = null;
function rr(e) {
  let t = e * 1e3, n = t * 60, l = n * 60, s = l * 24, r = s * 30, a = s * 365, p = (e == 1 ? al(10, 0, 3, Ll).filter(nr) : al(10, -3, 0, Ll)).concat([
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
  const h = [
    //   tick incr    default          year                    month   day                   hour    min       sec   mode
    [a, sr, ce, ce, ce, ce, ce, ce, 1],
    [s * 28, "{MMM}", li, ce, ce, ce, ce, ce, 1],
    [s, or, li, ce, ce, ce, ce, ce, 1],
    [l, "{h}" + ir, yl, ce, tl, ce, ce, ce, 1],
    [n, zn, yl, ce, tl, ce, ce, ce, 1],
    [t, oi, yl + " " + zn, ce, tl + " " + zn, ce, si, ce, 1],
    [e, oi + ".{fff}", yl + " " + zn, ce, tl + " " + zn, ce, si, ce, 1]
  ];
  function k(g) {
    return (w, A, E, B, V, F) => {
      let S = [], y = V >= a, T = V >= r && V < a, J = g(E), z = he(J * e, 3), Z = gs(J.getFullYear(), y ? 0 : J.getMonth(), T || y ? 1 : J.getDate()), Y = he(Z * e, 3);
      if (T || y) {
        let ee = T ? V / r : 0, U = y ? V / a : 0, L = z == Y ? z : he(gs(Z.getFullYear() + U, Z.getMonth() + ee, 1) * e, 3), K = new Date(Ee(L / e)), O = K.getFullYear(), H = K.getMonth();
        for (let I = 0; L <= B; I++) {
          let ne = gs(O + U * I, H + ee * I, 1), $ = ne - g(he(ne * e, 3));
          L = he((+ne + $) * e, 3), L <= B && S.push(L);
        }
      } else {
        let ee = V >= s ? s : V, U = it(E) - it(z), L = Y + U + Cl(z - Y, ee);
        S.push(L);
        let K = g(L), O = K.getHours() + K.getMinutes() / n + K.getSeconds() / l, H = V / l, I = w.axes[A]._space, ne = F / I;
        for (; L = he(L + V, e == 1 ? 0 : 3), !(L > B); )
          if (H > 1) {
            let $ = it(he(O + H, 6)) % 24, le = g(L).getHours() - $;
            le > 1 && (le = -1), L -= le * l, O = (O + H) % 24;
            let ue = S[S.length - 1];
            he((L - ue) / V, 3) * ne >= 0.7 && S.push(L);
          } else
            S.push(L);
      }
      return S;
    };
  }
  return [
    p,
    h,
    k
  ];
}
const [ku, xu, yu] = rr(1), [_u, Su, Mu] = rr(1e-3);
al(2, -53, 53, [1]);
function ii(e, t) {
  return e.map((n) => n.map(
    (l, s) => s == 0 || s == 8 || l == null ? l : t(s == 1 || n[8] == 0 ? l : n[1] + l)
  ));
}
function ri(e, t) {
  return (n, l, s, r, a) => {
    let u = t.find((E) => a >= E[0]) || t[t.length - 1], p, h, k, g, w, A;
    return l.map((E) => {
      let B = e(E), V = B.getFullYear(), F = B.getMonth(), S = B.getDate(), y = B.getHours(), T = B.getMinutes(), J = B.getSeconds(), z = V != p && u[2] || F != h && u[3] || S != k && u[4] || y != g && u[5] || T != w && u[6] || J != A && u[7] || u[1];
      return p = V, h = F, k = S, g = y, w = T, A = J, z(B);
    });
  };
}
function Au(e, t) {
  let n = Us(t);
  return (l, s, r, a, u) => s.map((p) => n(e(p)));
}
function gs(e, t, n) {
  return new Date(e, t, n);
}
function ai(e, t) {
  return t(e);
}
const Tu = "{YYYY}-{MM}-{DD} {h}:{mm}{aa}";
function ci(e, t) {
  return (n, l, s, r) => r == null ? $s : t(e(l));
}
function Lu(e, t) {
  let n = e.series[t];
  return n.width ? n.stroke(e, t) : n.points.width ? n.points.stroke(e, t) : null;
}
function Eu(e, t) {
  return e.series[t].fill(e, t);
}
const Ru = {
  show: !0,
  live: !0,
  isolate: !1,
  mount: Kc,
  markers: {
    show: !0,
    width: 2,
    stroke: Lu,
    fill: Eu,
    dash: "solid"
  },
  idx: null,
  idxs: null,
  values: []
};
function Pu(e, t) {
  let n = e.cursor.points, l = dt(), s = n.size(e, t);
  be(l, Xn, s), be(l, el, s);
  let r = s / -2;
  be(l, "marginLeft", r), be(l, "marginTop", r);
  let a = n.width(e, t, s);
  return a && be(l, "borderWidth", a), l;
}
function Du(e, t) {
  let n = e.series[t].points;
  return n._fill || n._stroke;
}
function Cu(e, t) {
  let n = e.series[t].points;
  return n._stroke || n._fill;
}
function zu(e, t) {
  return e.series[t].points.size;
}
const ws = [0, 0];
function Bu(e, t, n) {
  return ws[0] = t, ws[1] = n, ws;
}
function _l(e, t, n, l = !0) {
  return (s) => {
    s.button == 0 && (!l || s.target == t) && n(s);
  };
}
function bs(e, t, n, l = !0) {
  return (s) => {
    (!l || s.target == t) && n(s);
  };
}
const Ou = {
  show: !0,
  x: !0,
  y: !0,
  lock: !1,
  move: Bu,
  points: {
    one: !1,
    show: Pu,
    size: zu,
    width: 0,
    stroke: Cu,
    fill: Du
  },
  bind: {
    mousedown: _l,
    mouseup: _l,
    click: _l,
    // legend clicks, not .u-over clicks
    dblclick: _l,
    mousemove: bs,
    mouseleave: bs,
    mouseenter: bs
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
}, ar = {
  show: !0,
  stroke: "rgba(0,0,0,0.07)",
  width: 2
  //	dash: [],
}, qs = Ae({}, ar, {
  filter: qi
}), cr = Ae({}, qs, {
  size: 10
}), ur = Ae({}, ar, {
  show: !1
}), Ks = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Noto Sans", sans-serif, "Apple Color Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Noto Color Emoji"', fr = "bold " + Ks, pr = 1.5, ui = {
  show: !0,
  scale: "x",
  stroke: Vs,
  space: 50,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: fr,
  side: 2,
  //	class: "x-vals",
  //	incrs: timeIncrs,
  //	values: timeVals,
  //	filter: retArg1,
  grid: qs,
  ticks: cr,
  border: ur,
  font: Ks,
  lineGap: pr,
  rotate: 0
}, Nu = "Value", Gu = "Time", fi = {
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
function Vu(e, t, n, l, s) {
  return t.map((r) => r == null ? "" : Hs(r));
}
function $u(e, t, n, l, s, r, a) {
  let u = [], p = Ut.get(s) || 0;
  n = a ? n : he(Cl(n, s), p);
  for (let h = n; h <= l; h = he(h + s, p))
    u.push(Object.is(h, -0) ? 0 : h);
  return u;
}
function As(e, t, n, l, s, r, a) {
  const u = [], p = e.scales[e.axes[t].scale].log, h = p == 10 ? Ot : ji, k = it(h(n));
  s = On(p, k), p == 10 && (s = on[yt(s, on)]);
  let g = n, w = s * p;
  p == 10 && (w = on[yt(w, on)]);
  do
    u.push(g), g = g + s, p == 10 && !Ut.has(g) && (g = he(g, Ut.get(s))), g >= w && (s = g, w = s * p, p == 10 && (w = on[yt(w, on)]));
  while (g <= l);
  return u;
}
function Fu(e, t, n, l, s, r, a) {
  let p = e.scales[e.axes[t].scale].asinh, h = l > p ? As(e, t, Ke(p, n), l, s) : [p], k = l >= 0 && n <= 0 ? [0] : [];
  return (n < -p ? As(e, t, Ke(p, -l), -n, s) : [p]).reverse().map((w) => -w).concat(k, h);
}
const hr = /./, Iu = /[12357]/, Wu = /[125]/, pi = /1/, Ts = (e, t, n, l) => e.map((s, r) => t == 4 && s == 0 || r % l == 0 && n.test(s.toExponential()[s < 0 ? 1 : 0]) ? s : null);
function Hu(e, t, n, l, s) {
  let r = e.axes[n], a = r.scale, u = e.scales[a], p = e.valToPos, h = r._space, k = p(10, a), g = p(9, a) - k >= h ? hr : p(7, a) - k >= h ? Iu : p(5, a) - k >= h ? Wu : pi;
  if (g == pi) {
    let w = Re(p(1, a) - k);
    if (w < h)
      return Ts(t.slice().reverse(), u.distr, g, mt(h / w)).reverse();
  }
  return Ts(t, u.distr, g, 1);
}
function ju(e, t, n, l, s) {
  let r = e.axes[n], a = r.scale, u = r._space, p = e.valToPos, h = Re(p(1, a) - p(2, a));
  return h < u ? Ts(t.slice().reverse(), 3, hr, mt(u / h)).reverse() : t;
}
function Uu(e, t, n, l) {
  return l == null ? $s : t == null ? "" : Hs(t);
}
const hi = {
  show: !0,
  scale: "y",
  stroke: Vs,
  space: 30,
  gap: 5,
  alignTo: 1,
  size: 50,
  labelGap: 0,
  labelSize: 30,
  labelFont: fr,
  side: 3,
  //	class: "y-vals",
  //	incrs: numIncrs,
  //	values: (vals, space) => vals,
  //	filter: retArg1,
  grid: qs,
  ticks: cr,
  border: ur,
  font: Ks,
  lineGap: pr,
  rotate: 0
};
function Yu(e, t) {
  let n = 3 + (e || 1) * 2;
  return he(n * t, 3);
}
function qu(e, t) {
  let { scale: n, idxs: l } = e.series[0], s = e._data[0], r = e.valToPos(s[l[0]], n, !0), a = e.valToPos(s[l[1]], n, !0), u = Re(a - r), p = e.series[t], h = u / (p.points.space * re);
  return l[1] - l[0] <= h;
}
const di = {
  scale: null,
  auto: !0,
  sorted: 0,
  // internal caches
  min: pe,
  max: -pe
}, dr = (e, t, n, l, s) => s, mi = {
  show: !0,
  auto: !0,
  sorted: 0,
  gaps: dr,
  alpha: 1,
  facets: [
    Ae({}, di, { scale: "x" }),
    Ae({}, di, { scale: "y" })
  ]
}, gi = {
  scale: "y",
  auto: !0,
  sorted: 0,
  show: !0,
  spanGaps: !1,
  gaps: dr,
  alpha: 1,
  points: {
    show: qu,
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
function Ku(e, t, n, l, s) {
  return n / 10;
}
const mr = {
  time: kc,
  auto: !0,
  distr: 1,
  log: 10,
  asinh: 1,
  min: null,
  max: null,
  dir: 1,
  ori: 0
}, Ju = Ae({}, mr, {
  time: !1,
  ori: 1
}), wi = {};
function gr(e, t) {
  let n = wi[e];
  return n || (n = {
    key: e,
    plots: [],
    sub(l) {
      n.plots.push(l);
    },
    unsub(l) {
      n.plots = n.plots.filter((s) => s != l);
    },
    pub(l, s, r, a, u, p, h) {
      for (let k = 0; k < n.plots.length; k++)
        n.plots[k] != s && n.plots[k].pub(l, s, r, a, u, p, h);
    }
  }, e != null && (wi[e] = n)), n;
}
const Vn = 1, Ls = 2;
function hn(e, t, n) {
  const l = e.mode, s = e.series[t], r = l == 2 ? e._data[t] : e._data, a = e.scales, u = e.bbox;
  let p = r[0], h = l == 2 ? r[1] : r[t], k = l == 2 ? a[s.facets[0].scale] : a[e.series[0].scale], g = l == 2 ? a[s.facets[1].scale] : a[s.scale], w = u.left, A = u.top, E = u.width, B = u.height, V = e.valToPosH, F = e.valToPosV;
  return k.ori == 0 ? n(
    s,
    p,
    h,
    k,
    g,
    V,
    F,
    w,
    A,
    E,
    B,
    Ol,
    Fn,
    Gl,
    br,
    kr
  ) : n(
    s,
    p,
    h,
    k,
    g,
    F,
    V,
    A,
    w,
    B,
    E,
    Nl,
    In,
    Qs,
    vr,
    xr
  );
}
function Js(e, t) {
  let n = 0, l = 0, s = oe(e.bands, js);
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
function Zu(e, t, n, l, s) {
  let r = e.mode, a = e.series[t], u = r == 2 ? a.facets[1].scale : a.scale, p = e.scales[u];
  return s == -1 ? p.min : s == 1 ? p.max : p.distr == 3 ? p.dir == 1 ? p.min : p.max : 0;
}
function Nt(e, t, n, l, s, r) {
  return hn(e, t, (a, u, p, h, k, g, w, A, E, B, V) => {
    let F = a.pxRound;
    const S = h.dir * (h.ori == 0 ? 1 : -1), y = h.ori == 0 ? Fn : In;
    let T, J;
    S == 1 ? (T = n, J = l) : (T = l, J = n);
    let z = F(g(u[T], h, B, A)), Z = F(w(p[T], k, V, E)), Y = F(g(u[J], h, B, A)), ee = F(w(r == 1 ? k.max : k.min, k, V, E)), U = new Path2D(s);
    return y(U, Y, ee), y(U, z, ee), y(U, z, Z), U;
  });
}
function Bl(e, t, n, l, s, r) {
  let a = null;
  if (e.length > 0) {
    a = new Path2D();
    const u = t == 0 ? Gl : Qs;
    let p = n;
    for (let g = 0; g < e.length; g++) {
      let w = e[g];
      if (w[1] > w[0]) {
        let A = w[0] - p;
        A > 0 && u(a, p, l, A, l + r), p = w[1];
      }
    }
    let h = n + s - p, k = 10;
    h > 0 && u(a, p, l - k / 2, h, l + r + k);
  }
  return a;
}
function Qu(e, t, n) {
  let l = e[e.length - 1];
  l && l[0] == t ? l[1] = n : e.push([t, n]);
}
function Zs(e, t, n, l, s, r, a) {
  let u = [], p = e.length;
  for (let h = s == 1 ? n : l; h >= n && h <= l; h += s)
    if (t[h] === null) {
      let g = h, w = h;
      if (s == 1)
        for (; ++h <= l && t[h] === null; )
          w = h;
      else
        for (; --h >= n && t[h] === null; )
          w = h;
      let A = r(e[g]), E = w == g ? A : r(e[w]), B = g - s;
      A = a <= 0 && B >= 0 && B < p ? r(e[B]) : A;
      let F = w + s;
      E = a >= 0 && F >= 0 && F < p ? r(e[F]) : E, E >= A && u.push([A, E]);
    }
  return u;
}
function bi(e) {
  return e == 0 ? Yi : e == 1 ? Ee : (t) => sn(t, e);
}
function wr(e) {
  let t = e == 0 ? Ol : Nl, n = e == 0 ? (s, r, a, u, p, h) => {
    s.arcTo(r, a, u, p, h);
  } : (s, r, a, u, p, h) => {
    s.arcTo(a, r, p, u, h);
  }, l = e == 0 ? (s, r, a, u, p) => {
    s.rect(r, a, u, p);
  } : (s, r, a, u, p) => {
    s.rect(a, r, p, u);
  };
  return (s, r, a, u, p, h = 0, k = 0) => {
    h == 0 && k == 0 ? l(s, r, a, u, p) : (h = _t(h, u / 2, p / 2), k = _t(k, u / 2, p / 2), t(s, r + h, a), n(s, r + u, a, r + u, a + p, h), n(s, r + u, a + p, r, a + p, k), n(s, r, a + p, r, a, k), n(s, r, a, r + u, a, h), s.closePath());
  };
}
const Ol = (e, t, n) => {
  e.moveTo(t, n);
}, Nl = (e, t, n) => {
  e.moveTo(n, t);
}, Fn = (e, t, n) => {
  e.lineTo(t, n);
}, In = (e, t, n) => {
  e.lineTo(n, t);
}, Gl = wr(0), Qs = wr(1), br = (e, t, n, l, s, r) => {
  e.arc(t, n, l, s, r);
}, vr = (e, t, n, l, s, r) => {
  e.arc(n, t, l, s, r);
}, kr = (e, t, n, l, s, r, a) => {
  e.bezierCurveTo(t, n, l, s, r, a);
}, xr = (e, t, n, l, s, r, a) => {
  e.bezierCurveTo(n, t, s, l, a, r);
};
function yr(e) {
  return (t, n, l, s, r) => hn(t, n, (a, u, p, h, k, g, w, A, E, B, V) => {
    let { pxRound: F, points: S } = a, y, T;
    h.ori == 0 ? (y = Ol, T = br) : (y = Nl, T = vr);
    const J = he(S.width * re, 3);
    let z = (S.size - S.width) / 2 * re, Z = he(z * 2, 3), Y = new Path2D(), ee = new Path2D(), { left: U, top: L, width: K, height: O } = t.bbox;
    Gl(
      ee,
      U - Z,
      L - Z,
      K + Z * 2,
      O + Z * 2
    );
    const H = (I) => {
      if (p[I] != null) {
        let ne = F(g(u[I], h, B, A)), $ = F(w(p[I], k, V, E));
        y(Y, ne + z, $), T(Y, ne, $, z, 0, Ml * 2);
      }
    };
    if (r)
      r.forEach(H);
    else
      for (let I = l; I <= s; I++)
        H(I);
    return {
      stroke: J > 0 ? Y : null,
      fill: Y,
      clip: ee,
      flags: Vn | Ls
    };
  });
}
function _r(e) {
  return (t, n, l, s, r, a) => {
    l != s && (r != l && a != l && e(t, n, l), r != s && a != s && e(t, n, s), e(t, n, a));
  };
}
const Xu = _r(Fn), ef = _r(In);
function Sr(e) {
  const t = oe(e?.alignGaps, 0);
  return (n, l, s, r) => hn(n, l, (a, u, p, h, k, g, w, A, E, B, V) => {
    [s, r] = Pl(p, s, r);
    let F = a.pxRound, S = (O) => F(g(O, h, B, A)), y = (O) => F(w(O, k, V, E)), T, J;
    h.ori == 0 ? (T = Fn, J = Xu) : (T = In, J = ef);
    const z = h.dir * (h.ori == 0 ? 1 : -1), Z = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Vn }, Y = Z.stroke;
    let ee = !1;
    if (r - s >= B * 4) {
      let O = (N) => n.posToVal(N, h.key, !0), H = null, I = null, ne, $, Ze, ve = S(u[z == 1 ? s : r]), le = S(u[s]), ue = S(u[r]), Q = O(z == 1 ? le + 1 : ue - 1);
      for (let N = z == 1 ? s : r; N >= s && N <= r; N += z) {
        let Te = u[N], ke = (z == 1 ? Te < Q : Te > Q) ? ve : S(Te), ae = p[N];
        ke == ve ? ae != null ? ($ = ae, H == null ? (T(Y, ke, y($)), ne = H = I = $) : $ < H ? H = $ : $ > I && (I = $)) : ae === null && (ee = !0) : (H != null && J(Y, ve, y(H), y(I), y(ne), y($)), ae != null ? ($ = ae, T(Y, ke, y($)), H = I = ne = $) : (H = I = null, ae === null && (ee = !0)), ve = ke, Q = O(ve + z));
      }
      H != null && H != I && Ze != ve && J(Y, ve, y(H), y(I), y(ne), y($));
    } else
      for (let O = z == 1 ? s : r; O >= s && O <= r; O += z) {
        let H = p[O];
        H === null ? ee = !0 : H != null && T(Y, S(u[O]), y(H));
      }
    let [L, K] = Js(n, l);
    if (a.fill != null || L != 0) {
      let O = Z.fill = new Path2D(Y), H = a.fillTo(n, l, a.min, a.max, L), I = y(H), ne = S(u[s]), $ = S(u[r]);
      z == -1 && ([$, ne] = [ne, $]), T(O, $, I), T(O, ne, I);
    }
    if (!a.spanGaps) {
      let O = [];
      ee && O.push(...Zs(u, p, s, r, z, S, t)), Z.gaps = O = a.gaps(n, l, s, r, O), Z.clip = Bl(O, h.ori, A, E, B, V);
    }
    return K != 0 && (Z.band = K == 2 ? [
      Nt(n, l, s, r, Y, -1),
      Nt(n, l, s, r, Y, 1)
    ] : Nt(n, l, s, r, Y, K)), Z;
  });
}
function tf(e) {
  const t = oe(e.align, 1), n = oe(e.ascDesc, !1), l = oe(e.alignGaps, 0), s = oe(e.extend, !1);
  return (r, a, u, p) => hn(r, a, (h, k, g, w, A, E, B, V, F, S, y) => {
    [u, p] = Pl(g, u, p);
    let T = h.pxRound, { left: J, width: z } = r.bbox, Z = (le) => T(E(le, w, S, V)), Y = (le) => T(B(le, A, y, F)), ee = w.ori == 0 ? Fn : In;
    const U = { stroke: new Path2D(), fill: null, clip: null, band: null, gaps: null, flags: Vn }, L = U.stroke, K = w.dir * (w.ori == 0 ? 1 : -1);
    let O = Y(g[K == 1 ? u : p]), H = Z(k[K == 1 ? u : p]), I = H, ne = H;
    s && t == -1 && (ne = J, ee(L, ne, O)), ee(L, H, O);
    for (let le = K == 1 ? u : p; le >= u && le <= p; le += K) {
      let ue = g[le];
      if (ue == null)
        continue;
      let Q = Z(k[le]), N = Y(ue);
      t == 1 ? ee(L, Q, O) : ee(L, I, N), ee(L, Q, N), O = N, I = Q;
    }
    let $ = I;
    s && t == 1 && ($ = J + z, ee(L, $, O));
    let [Ze, ve] = Js(r, a);
    if (h.fill != null || Ze != 0) {
      let le = U.fill = new Path2D(L), ue = h.fillTo(r, a, h.min, h.max, Ze), Q = Y(ue);
      ee(le, $, Q), ee(le, ne, Q);
    }
    if (!h.spanGaps) {
      let le = [];
      le.push(...Zs(k, g, u, p, K, Z, l));
      let ue = h.width * re / 2, Q = n || t == 1 ? ue : -ue, N = n || t == -1 ? -ue : ue;
      le.forEach((Te) => {
        Te[0] += Q, Te[1] += N;
      }), U.gaps = le = h.gaps(r, a, u, p, le), U.clip = Bl(le, w.ori, V, F, S, y);
    }
    return ve != 0 && (U.band = ve == 2 ? [
      Nt(r, a, u, p, L, -1),
      Nt(r, a, u, p, L, 1)
    ] : Nt(r, a, u, p, L, ve)), U;
  });
}
function vi(e, t, n, l, s, r, a = pe) {
  if (e.length > 1) {
    let u = null;
    for (let p = 0, h = 1 / 0; p < e.length; p++)
      if (t[p] !== void 0) {
        if (u != null) {
          let k = Re(e[p] - e[u]);
          k < h && (h = k, a = Re(n(e[p], l, s, r) - n(e[u], l, s, r)));
        }
        u = p;
      }
  }
  return a;
}
function nf(e) {
  e = e || sl;
  const t = oe(e.size, [0.6, pe, 1]), n = e.align || 0, l = e.gap || 0;
  let s = e.radius;
  s = // [valueRadius, baselineRadius]
  s == null ? [0, 0] : typeof s == "number" ? [s, 0] : s;
  const r = te(s), a = 1 - t[0], u = oe(t[1], pe), p = oe(t[2], 1), h = oe(e.disp, sl), k = oe(e.each, (A) => {
  }), { fill: g, stroke: w } = h;
  return (A, E, B, V) => hn(A, E, (F, S, y, T, J, z, Z, Y, ee, U, L) => {
    let K = F.pxRound, O = n, H = l * re, I = u * re, ne = p * re, $, Ze;
    T.ori == 0 ? [$, Ze] = r(A, E) : [Ze, $] = r(A, E);
    const ve = T.dir * (T.ori == 0 ? 1 : -1);
    let le = T.ori == 0 ? Gl : Qs, ue = T.ori == 0 ? k : (D, de, Le, wn, Jt, Mt, Zt) => {
      k(D, de, Le, Jt, wn, Zt, Mt);
    }, Q = oe(A.bands, js).find((D) => D.series[0] == E), N = Q != null ? Q.dir : 0, Te = F.fillTo(A, E, F.min, F.max, N), We = K(Z(Te, J, L, ee)), ke, ae, gt, et = U, ye = K(F.width * re), St = !1, Ct = null, at = null, Gt = null, dn = null;
    g != null && (ye == 0 || w != null) && (St = !0, Ct = g.values(A, E, B, V), at = /* @__PURE__ */ new Map(), new Set(Ct).forEach((D) => {
      D != null && at.set(D, new Path2D());
    }), ye > 0 && (Gt = w.values(A, E, B, V), dn = /* @__PURE__ */ new Map(), new Set(Gt).forEach((D) => {
      D != null && dn.set(D, new Path2D());
    })));
    let { x0: mn, size: Wn } = h;
    if (mn != null && Wn != null) {
      O = 1, S = mn.values(A, E, B, V), mn.unit == 2 && (S = S.map((Le) => A.posToVal(Y + Le * U, T.key, !0)));
      let D = Wn.values(A, E, B, V);
      Wn.unit == 2 ? ae = D[0] * U : ae = z(D[0], T, U, Y) - z(0, T, U, Y), et = vi(S, y, z, T, U, Y, et), gt = et - ae + H;
    } else
      et = vi(S, y, z, T, U, Y, et), gt = et * a + H, ae = et - gt;
    gt < 1 && (gt = 0), ye >= ae / 2 && (ye = 0), gt < 5 && (K = Yi);
    let cl = gt > 0, qt = et - gt - (cl ? ye : 0);
    ae = K(Ms(qt, ne, I)), ke = (O == 0 ? ae / 2 : O == ve ? 0 : ae) - O * ve * ((O == 0 ? H / 2 : 0) + (cl ? ye / 2 : 0));
    const He = { stroke: null, fill: null, clip: null, band: null, gaps: null, flags: 0 }, gn = St ? null : new Path2D();
    let zt = null;
    if (Q != null)
      zt = A.data[Q.series[1]];
    else {
      let { y0: D, y1: de } = h;
      D != null && de != null && (y = de.values(A, E, B, V), zt = D.values(A, E, B, V));
    }
    let Kt = $ * ae, q = Ze * ae;
    for (let D = ve == 1 ? B : V; D >= B && D <= V; D += ve) {
      let de = y[D];
      if (de == null)
        continue;
      if (zt != null) {
        let Qe = zt[D] ?? 0;
        if (de - Qe == 0)
          continue;
        We = Z(Qe, J, L, ee);
      }
      let Le = T.distr != 2 || h != null ? S[D] : D, wn = z(Le, T, U, Y), Jt = Z(oe(de, Te), J, L, ee), Mt = K(wn - ke), Zt = K(Ke(Jt, We)), tt = K(_t(Jt, We)), ct = Zt - tt;
      if (de != null) {
        let Qe = de < 0 ? q : Kt, wt = de < 0 ? Kt : q;
        St ? (ye > 0 && Gt[D] != null && le(dn.get(Gt[D]), Mt, tt + it(ye / 2), ae, Ke(0, ct - ye), Qe, wt), Ct[D] != null && le(at.get(Ct[D]), Mt, tt + it(ye / 2), ae, Ke(0, ct - ye), Qe, wt)) : le(gn, Mt, tt + it(ye / 2), ae, Ke(0, ct - ye), Qe, wt), ue(
          A,
          E,
          D,
          Mt - ye / 2,
          tt,
          ae + ye,
          ct
        );
      }
    }
    return ye > 0 ? He.stroke = St ? dn : gn : St || (He._fill = F.width == 0 ? F._fill : F._stroke ?? F._fill, He.width = 0), He.fill = St ? at : gn, He;
  });
}
function lf(e, t) {
  const n = oe(t?.alignGaps, 0);
  return (l, s, r, a) => hn(l, s, (u, p, h, k, g, w, A, E, B, V, F) => {
    [r, a] = Pl(h, r, a);
    let S = u.pxRound, y = ($) => S(w($, k, V, E)), T = ($) => S(A($, g, F, B)), J, z, Z;
    k.ori == 0 ? (J = Ol, Z = Fn, z = kr) : (J = Nl, Z = In, z = xr);
    const Y = k.dir * (k.ori == 0 ? 1 : -1);
    let ee = y(p[Y == 1 ? r : a]), U = ee, L = [], K = [];
    for (let $ = Y == 1 ? r : a; $ >= r && $ <= a; $ += Y)
      if (h[$] != null) {
        let ve = p[$], le = y(ve);
        L.push(U = le), K.push(T(h[$]));
      }
    const O = { stroke: e(L, K, J, Z, z, S), fill: null, clip: null, band: null, gaps: null, flags: Vn }, H = O.stroke;
    let [I, ne] = Js(l, s);
    if (u.fill != null || I != 0) {
      let $ = O.fill = new Path2D(H), Ze = u.fillTo(l, s, u.min, u.max, I), ve = T(Ze);
      Z($, U, ve), Z($, ee, ve);
    }
    if (!u.spanGaps) {
      let $ = [];
      $.push(...Zs(p, h, r, a, Y, y, n)), O.gaps = $ = u.gaps(l, s, r, a, $), O.clip = Bl($, k.ori, E, B, V, F);
    }
    return ne != 0 && (O.band = ne == 2 ? [
      Nt(l, s, r, a, H, -1),
      Nt(l, s, r, a, H, 1)
    ] : Nt(l, s, r, a, H, ne)), O;
  });
}
function sf(e) {
  return lf(of, e);
}
function of(e, t, n, l, s, r) {
  const a = e.length;
  if (a < 2)
    return null;
  const u = new Path2D();
  if (n(u, e[0], t[0]), a == 2)
    l(u, e[1], t[1]);
  else {
    let p = Array(a), h = Array(a - 1), k = Array(a - 1), g = Array(a - 1);
    for (let w = 0; w < a - 1; w++)
      k[w] = t[w + 1] - t[w], g[w] = e[w + 1] - e[w], h[w] = k[w] / g[w];
    p[0] = h[0];
    for (let w = 1; w < a - 1; w++)
      h[w] === 0 || h[w - 1] === 0 || h[w - 1] > 0 != h[w] > 0 ? p[w] = 0 : (p[w] = 3 * (g[w - 1] + g[w]) / ((2 * g[w] + g[w - 1]) / h[w - 1] + (g[w] + 2 * g[w - 1]) / h[w]), isFinite(p[w]) || (p[w] = 0));
    p[a - 1] = h[a - 2];
    for (let w = 0; w < a - 1; w++)
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
function ki() {
  for (let e of Es)
    e.syncRect(!0);
}
$n && (un(Vc, Bn, ki), un($c, Bn, ki, !0), un(Al, Bn, () => {
  Ie.pxRatio = re;
}));
const rf = Sr(), af = yr();
function xi(e, t, n, l) {
  return (l ? [e[0], e[1]].concat(e.slice(2)) : [e[0]].concat(e.slice(1))).map((r, a) => Rs(r, a, t, n));
}
function cf(e, t) {
  return e.map((n, l) => l == 0 ? {} : Ae({}, t, n));
}
function Rs(e, t, n, l) {
  return Ae({}, t == 0 ? n : l, e);
}
function Mr(e, t, n) {
  return t == null ? Nn : [t, n];
}
const uf = Mr;
function ff(e, t, n) {
  return t == null ? Nn : Tl(t, n, Ws, !0);
}
function Ar(e, t, n, l) {
  return t == null ? Nn : Dl(t, n, e.scales[l].log, !1);
}
const pf = Ar;
function Tr(e, t, n, l) {
  return t == null ? Nn : Is(t, n, e.scales[l].log, !1);
}
const hf = Tr;
function df(e, t, n, l, s) {
  let r = Ke(Xo(e), Xo(t)), a = t - e, u = yt(s / l * a, n);
  do {
    let p = n[u], h = l * p / a;
    if (h >= s && r + (p < 5 ? Ut.get(p) : 0) <= 17)
      return [p, h];
  } while (++u < n.length);
  return [0, 0];
}
function yi(e) {
  let t, n;
  return e = e.replace(/(\d+)px/, (l, s) => (t = Ee((n = +s) * re)) + "px"), [e, t, n];
}
function mf(e) {
  e.show && [e.font, e.labelFont].forEach((t) => {
    let n = he(t[2] * re, 1);
    t[0] = t[0].replace(/[0-9.]+px/, n + "px"), t[1] = n;
  });
}
function Ie(e, t, n) {
  const l = {
    mode: oe(e.mode, 1)
  }, s = l.mode;
  function r(o, i, c, f) {
    let d = i.valToPct(o);
    return f + c * (i.dir == -1 ? 1 - d : d);
  }
  function a(o, i, c, f) {
    let d = i.valToPct(o);
    return f + c * (i.dir == -1 ? d : 1 - d);
  }
  function u(o, i, c, f) {
    return i.ori == 0 ? r(o, i, c, f) : a(o, i, c, f);
  }
  l.valToPosH = r, l.valToPosV = a;
  let p = !1;
  l.status = 0;
  const h = l.root = dt(xc);
  if (e.id != null && (h.id = e.id), ot(h, e.class), e.title) {
    let o = dt(Sc, h);
    o.textContent = e.title;
  }
  const k = xt("canvas"), g = l.ctx = k.getContext("2d"), w = dt(Mc, h);
  un("click", w, (o) => {
    o.target === E && (me != Ln || xe != En) && $e.click(l, o);
  }, !0);
  const A = l.under = dt(Ac, w);
  w.appendChild(k);
  const E = l.over = dt(Tc, w);
  e = Gn(e);
  const B = +oe(e.pxAlign, 1), V = bi(B);
  (e.plugins || []).forEach((o) => {
    o.opts && (e = o.opts(l, e) || e);
  });
  const F = e.ms || 1e-3, S = l.series = s == 1 ? xi(e.series || [], fi, gi, !1) : cf(e.series || [null], mi), y = l.axes = xi(e.axes || [], ui, hi, !0), T = l.scales = {}, J = l.bands = e.bands || [];
  J.forEach((o) => {
    o.fill = te(o.fill || null), o.dir = oe(o.dir, -1);
  });
  const z = s == 2 ? S[1].facets[0].scale : S[0].scale, Z = {
    axes: Hr,
    series: Vr
  }, Y = (e.drawOrder || ["axes", "series"]).map((o) => Z[o]);
  function ee(o) {
    const i = o.distr == 3 ? (c) => Ot(c > 0 ? c : o.clamp(l, c, o.min, o.max, o.key)) : o.distr == 4 ? (c) => ms(c, o.asinh) : o.distr == 100 ? (c) => o.fwd(c) : (c) => c;
    return (c) => {
      let f = i(c), { _min: d, _max: m } = o, x = m - d;
      return (f - d) / x;
    };
  }
  function U(o) {
    let i = T[o];
    if (i == null) {
      let c = (e.scales || sl)[o] || sl;
      if (c.from != null) {
        U(c.from);
        let f = Ae({}, T[c.from], c, { key: o });
        f.valToPct = ee(f), T[o] = f;
      } else {
        i = T[o] = Ae({}, o == z ? mr : Ju, c), i.key = o;
        let f = i.time, d = i.range, m = Ht(d);
        if ((o != z || s == 2 && !f) && (m && (d[0] == null || d[1] == null) && (d = {
          min: d[0] == null ? Jo : {
            mode: 1,
            hard: d[0],
            soft: d[0]
          },
          max: d[1] == null ? Jo : {
            mode: 1,
            hard: d[1],
            soft: d[1]
          }
        }, m = !1), !m && zl(d))) {
          let x = d;
          d = (_, M, R) => M == null ? Nn : Tl(M, R, x);
        }
        i.range = te(d || (f ? uf : o == z ? i.distr == 3 ? pf : i.distr == 4 ? hf : Mr : i.distr == 3 ? Ar : i.distr == 4 ? Tr : ff)), i.auto = te(m ? !1 : i.auto), i.clamp = te(i.clamp || Ku), i._min = i._max = null, i.valToPct = ee(i);
      }
    }
  }
  U("x"), U("y"), s == 1 && S.forEach((o) => {
    U(o.scale);
  }), y.forEach((o) => {
    U(o.scale);
  });
  for (let o in e.scales)
    U(o);
  const L = T[z], K = L.distr;
  let O, H;
  L.ori == 0 ? (ot(h, yc), O = r, H = a) : (ot(h, _c), O = a, H = r);
  const I = {};
  for (let o in T) {
    let i = T[o];
    (i.min != null || i.max != null) && (I[o] = { min: i.min, max: i.max }, i.min = i.max = null);
  }
  const ne = e.tzDate || ((o) => new Date(Ee(o / F))), $ = e.fmtDate || Us, Ze = F == 1 ? yu(ne) : Mu(ne), ve = ri(ne, ii(F == 1 ? xu : Su, $)), le = ci(ne, ai(Tu, $)), ue = [], Q = l.legend = Ae({}, Ru, e.legend), N = l.cursor = Ae({}, Ou, { drag: { y: s == 2 } }, e.cursor), Te = Q.show, We = N.show, ke = Q.markers;
  Q.idxs = ue, ke.width = te(ke.width), ke.dash = te(ke.dash), ke.stroke = te(ke.stroke), ke.fill = te(ke.fill);
  let ae, gt, et, ye = [], St = [], Ct, at = !1, Gt = {};
  if (Q.live) {
    const o = S[1] ? S[1].values : null;
    at = o != null, Ct = at ? o(l, 1, 0) : { _: 0 };
    for (let i in Ct)
      Gt[i] = $s;
  }
  if (Te)
    if (ae = xt("table", Cc, h), et = xt("tbody", null, ae), Q.mount(l, ae), at) {
      gt = xt("thead", null, ae, et);
      let o = xt("tr", null, gt);
      xt("th", null, o);
      for (var dn in Ct)
        xt("th", No, o).textContent = dn;
    } else
      ot(ae, Bc), Q.live && ot(ae, zc);
  const mn = { show: !0 }, Wn = { show: !1 };
  function cl(o, i) {
    if (i == 0 && (at || !Q.live || s == 2))
      return Nn;
    let c = [], f = xt("tr", Oc, et, et.childNodes[i]);
    ot(f, o.class), o.show || ot(f, rn);
    let d = xt("th", null, f);
    if (ke.show) {
      let _ = dt(Nc, d);
      if (i > 0) {
        let M = ke.width(l, i);
        M && (_.style.border = M + "px " + ke.dash(l, i) + " " + ke.stroke(l, i)), _.style.background = ke.fill(l, i);
      }
    }
    let m = dt(No, d);
    o.label instanceof HTMLElement ? m.appendChild(o.label) : m.textContent = o.label, i > 0 && (ke.show || (m.style.color = o.width > 0 ? ke.stroke(l, i) : ke.fill(l, i)), He("click", d, (_) => {
      if (N._lock)
        return;
      Xt(_);
      let M = S.indexOf(o);
      if ((_.ctrlKey || _.metaKey) != Q.isolate) {
        let R = S.some((P, C) => C > 0 && C != M && P.show);
        S.forEach((P, C) => {
          C > 0 && Tt(C, R ? C == M ? mn : Wn : mn, !0, Me.setSeries);
        });
      } else
        Tt(M, { show: !o.show }, !0, Me.setSeries);
    }, !1), vn && He(Fo, d, (_) => {
      N._lock || (Xt(_), Tt(S.indexOf(o), Pn, !0, Me.setSeries));
    }, !1));
    for (var x in Ct) {
      let _ = xt("td", Gc, f);
      _.textContent = "--", c.push(_);
    }
    return [f, c];
  }
  const qt = /* @__PURE__ */ new Map();
  function He(o, i, c, f = !0) {
    const d = qt.get(i) || {}, m = N.bind[o](l, i, c, f);
    m && (un(o, i, d[o] = m), qt.set(i, d));
  }
  function gn(o, i, c) {
    const f = qt.get(i) || {};
    for (let d in f)
      (o == null || d == o) && (Ss(d, i, f[d]), delete f[d]);
    o == null && qt.delete(i);
  }
  let zt = 0, Kt = 0, q = 0, D = 0, de = 0, Le = 0, wn = de, Jt = Le, Mt = q, Zt = D, tt = 0, ct = 0, Qe = 0, wt = 0;
  l.bbox = {};
  let $l = !1, ul = !1, bn = !1, Qt = !1, fl = !1, ut = !1;
  function Fl(o, i, c) {
    (c || o != l.width || i != l.height) && Xs(o, i), Sn(!1), bn = !0, ul = !0, Mn();
  }
  function Xs(o, i) {
    l.width = zt = q = o, l.height = Kt = D = i, de = Le = 0, Dr(), Cr();
    let c = l.bbox;
    tt = c.left = sn(de * re, 0.5), ct = c.top = sn(Le * re, 0.5), Qe = c.width = sn(q * re, 0.5), wt = c.height = sn(D * re, 0.5);
  }
  const Er = 3;
  function Rr() {
    let o = !1, i = 0;
    for (; !o; ) {
      i++;
      let c = Ir(i), f = Wr(i);
      o = i == Er || c && f, o || (Xs(l.width, l.height), ul = !0);
    }
  }
  function Pr({ width: o, height: i }) {
    Fl(o, i);
  }
  l.setSize = Pr;
  function Dr() {
    let o = !1, i = !1, c = !1, f = !1;
    y.forEach((d, m) => {
      if (d.show && d._show) {
        let { side: x, _size: _ } = d, M = x % 2, R = d.label != null ? d.labelSize : 0, P = _ + R;
        P > 0 && (M ? (q -= P, x == 3 ? (de += P, f = !0) : c = !0) : (D -= P, x == 0 ? (Le += P, o = !0) : i = !0));
      }
    }), en[0] = o, en[1] = c, en[2] = i, en[3] = f, q -= Vt[1] + Vt[3], de += Vt[3], D -= Vt[2] + Vt[0], Le += Vt[0];
  }
  function Cr() {
    let o = de + q, i = Le + D, c = de, f = Le;
    function d(m, x) {
      switch (m) {
        case 1:
          return o += x, o - x;
        case 2:
          return i += x, i - x;
        case 3:
          return c -= x, c + x;
        case 0:
          return f -= x, f + x;
      }
    }
    y.forEach((m, x) => {
      if (m.show && m._show) {
        let _ = m.side;
        m._pos = d(_, m._size), m.label != null && (m._lpos = d(_, m.labelSize));
      }
    });
  }
  if (N.dataIdx == null) {
    let o = N.hover, i = o.skip = new Set(o.skip ?? []);
    i.add(void 0);
    let c = o.prox = te(o.prox), f = o.bias ??= 0;
    N.dataIdx = (d, m, x, _) => {
      if (m == 0)
        return x;
      let M = x, R = c(d, m, x, _) ?? pe, P = R >= 0 && R < pe, C = L.ori == 0 ? q : D, j = N.left, ie = t[0], se = t[m];
      if (i.has(se[x])) {
        M = null;
        let X = null, W = null, G;
        if (f == 0 || f == -1)
          for (G = x; X == null && G-- > 0; )
            i.has(se[G]) || (X = G);
        if (f == 0 || f == 1)
          for (G = x; W == null && G++ < se.length; )
            i.has(se[G]) || (W = G);
        if (X != null || W != null)
          if (P) {
            let we = X == null ? -1 / 0 : O(ie[X], L, C, 0), _e = W == null ? 1 / 0 : O(ie[W], L, C, 0), Ge = j - we, fe = _e - j;
            Ge <= fe ? Ge <= R && (M = X) : fe <= R && (M = W);
          } else
            M = W == null ? X : X == null ? W : x - X <= W - x ? X : W;
      } else P && Re(j - O(ie[x], L, C, 0)) > R && (M = null);
      return M;
    };
  }
  const Xt = (o) => {
    N.event = o;
  };
  N.idxs = ue, N._lock = !1;
  let Fe = N.points;
  Fe.show = te(Fe.show), Fe.size = te(Fe.size), Fe.stroke = te(Fe.stroke), Fe.width = te(Fe.width), Fe.fill = te(Fe.fill);
  const At = l.focus = Ae({}, e.focus || { alpha: 0.3 }, N.focus), vn = At.prox >= 0, kn = vn && Fe.one;
  let ft = [], xn = [], yn = [];
  function eo(o, i) {
    let c = Fe.show(l, i);
    if (c instanceof HTMLElement)
      return ot(c, Dc), ot(c, o.class), Pt(c, -10, -10, q, D), E.insertBefore(c, ft[i]), c;
  }
  function to(o, i) {
    if (s == 1 || i > 0) {
      let c = s == 1 && T[o.scale].time, f = o.value;
      o.value = c ? ni(f) ? ci(ne, ai(f, $)) : f || le : f || Uu, o.label = o.label || (c ? Gu : Nu);
    }
    if (kn || i > 0) {
      o.width = o.width == null ? 1 : o.width, o.paths = o.paths || rf || Jc, o.fillTo = te(o.fillTo || Zu), o.pxAlign = +oe(o.pxAlign, B), o.pxRound = bi(o.pxAlign), o.stroke = te(o.stroke || null), o.fill = te(o.fill || null), o._stroke = o._fill = o._paths = o._focus = null;
      let c = Yu(Ke(1, o.width), 1), f = o.points = Ae({}, {
        size: c,
        width: Ke(1, c * 0.2),
        stroke: o.stroke,
        space: c * 2,
        paths: af,
        _stroke: null,
        _fill: null
      }, o.points);
      f.show = te(f.show), f.filter = te(f.filter), f.fill = te(f.fill), f.stroke = te(f.stroke), f.paths = te(f.paths), f.pxAlign = o.pxAlign;
    }
    if (Te) {
      let c = cl(o, i);
      ye.splice(i, 0, c[0]), St.splice(i, 0, c[1]), Q.values.push(null);
    }
    if (We) {
      ue.splice(i, 0, null);
      let c = null;
      kn ? i == 0 && (c = eo(o, i)) : i > 0 && (c = eo(o, i)), ft.splice(i, 0, c), xn.splice(i, 0, 0), yn.splice(i, 0, 0);
    }
    Ne("addSeries", i);
  }
  function zr(o, i) {
    i = i ?? S.length, o = s == 1 ? Rs(o, i, fi, gi) : Rs(o, i, {}, mi), S.splice(i, 0, o), to(S[i], i);
  }
  l.addSeries = zr;
  function Br(o) {
    if (S.splice(o, 1), Te) {
      Q.values.splice(o, 1), St.splice(o, 1);
      let i = ye.splice(o, 1)[0];
      gn(null, i.firstChild), i.remove();
    }
    We && (ue.splice(o, 1), ft.splice(o, 1)[0].remove(), xn.splice(o, 1), yn.splice(o, 1)), Ne("delSeries", o);
  }
  l.delSeries = Br;
  const en = [!1, !1, !1, !1];
  function Or(o, i) {
    if (o._show = o.show, o.show) {
      let c = o.side % 2, f = T[o.scale];
      f == null && (o.scale = c ? S[1].scale : z, f = T[o.scale]);
      let d = f.time;
      o.size = te(o.size), o.space = te(o.space), o.rotate = te(o.rotate), Ht(o.incrs) && o.incrs.forEach((x) => {
        !Ut.has(x) && Ut.set(x, Ji(x));
      }), o.incrs = te(o.incrs || (f.distr == 2 ? bu : d ? F == 1 ? ku : _u : on)), o.splits = te(o.splits || (d && f.distr == 1 ? Ze : f.distr == 3 ? As : f.distr == 4 ? Fu : $u)), o.stroke = te(o.stroke), o.grid.stroke = te(o.grid.stroke), o.ticks.stroke = te(o.ticks.stroke), o.border.stroke = te(o.border.stroke);
      let m = o.values;
      o.values = // static array of tick values
      Ht(m) && !Ht(m[0]) ? te(m) : (
        // temporal
        d ? (
          // config array of fmtDate string tpls
          Ht(m) ? ri(ne, ii(m, $)) : (
            // fmtDate string tpl
            ni(m) ? Au(ne, m) : m || ve
          )
        ) : m || Vu
      ), o.filter = te(o.filter || (f.distr >= 3 && f.log == 10 ? Hu : f.distr == 3 && f.log == 2 ? ju : qi)), o.font = yi(o.font), o.labelFont = yi(o.labelFont), o._size = o.size(l, null, i, 0), o._space = o._rotate = o._incrs = o._found = // foundIncrSpace
      o._splits = o._values = null, o._size > 0 && (en[i] = !0, o._el = dt(Lc, w));
    }
  }
  function Hn(o, i, c, f) {
    let [d, m, x, _] = c, M = i % 2, R = 0;
    return M == 0 && (_ || m) && (R = i == 0 && !d || i == 2 && !x ? Ee(ui.size / 3) : 0), M == 1 && (d || x) && (R = i == 1 && !m || i == 3 && !_ ? Ee(hi.size / 2) : 0), R;
  }
  const no = l.padding = (e.padding || [Hn, Hn, Hn, Hn]).map((o) => te(oe(o, Hn))), Vt = l._padding = no.map((o, i) => o(l, i, en, 0));
  let Ve, Ce = null, ze = null;
  const pl = s == 1 ? S[0].idxs : null;
  let bt = null, jn = !1;
  function lo(o, i) {
    if (t = o ?? [], l.data = l._data = t, s == 2) {
      Ve = 0;
      for (let c = 1; c < S.length; c++)
        Ve += t[c][0].length;
    } else {
      t.length == 0 && (l.data = l._data = t = [[]]), bt = t[0], Ve = bt.length;
      let c = t;
      if (K == 2) {
        c = t.slice();
        let f = c[0] = Array(Ve);
        for (let d = 0; d < Ve; d++)
          f[d] = d;
      }
      l._data = t = c;
    }
    if (Sn(!0), Ne("setData"), K == 2 && (bn = !0), i !== !1) {
      let c = L;
      c.auto(l, jn) ? Il() : Ft(z, c.min, c.max), Qt = Qt || N.left >= 0, ut = !0, Mn();
    }
  }
  l.setData = lo;
  function Il() {
    jn = !0;
    let o, i;
    s == 1 && (Ve > 0 ? (Ce = pl[0] = 0, ze = pl[1] = Ve - 1, o = t[0][Ce], i = t[0][ze], K == 2 ? (o = Ce, i = ze) : o == i && (K == 3 ? [o, i] = Dl(o, o, L.log, !1) : K == 4 ? [o, i] = Is(o, o, L.log, !1) : L.time ? i = o + Ee(86400 / F) : [o, i] = Tl(o, i, Ws, !0))) : (Ce = pl[0] = o = null, ze = pl[1] = i = null)), Ft(z, o, i);
  }
  let hl, _n, Wl, Hl, jl, Ul, Yl, ql, Kl, Xe;
  function so(o, i, c, f, d, m) {
    o ??= Vo, c ??= js, f ??= "butt", d ??= Vo, m ??= "round", o != hl && (g.strokeStyle = hl = o), d != _n && (g.fillStyle = _n = d), i != Wl && (g.lineWidth = Wl = i), m != jl && (g.lineJoin = jl = m), f != Ul && (g.lineCap = Ul = f), c != Hl && g.setLineDash(Hl = c);
  }
  function oo(o, i, c, f) {
    i != _n && (g.fillStyle = _n = i), o != Yl && (g.font = Yl = o), c != ql && (g.textAlign = ql = c), f != Kl && (g.textBaseline = Kl = f);
  }
  function Jl(o, i, c, f, d = 0) {
    if (f.length > 0 && o.auto(l, jn) && (i == null || i.min == null)) {
      let m = oe(Ce, 0), x = oe(ze, f.length - 1), _ = c.min == null ? Hc(f, m, x, d, o.distr == 3) : [c.min, c.max];
      o.min = _t(o.min, c.min = _[0]), o.max = Ke(o.max, c.max = _[1]);
    }
  }
  const io = { min: null, max: null };
  function Nr() {
    for (let f in T) {
      let d = T[f];
      I[f] == null && // scales that have never been set (on init)
      (d.min == null || // or auto scales when the x scale was explicitly set
      I[z] != null && d.auto(l, jn)) && (I[f] = io);
    }
    for (let f in T) {
      let d = T[f];
      I[f] == null && d.from != null && I[d.from] != null && (I[f] = io);
    }
    I[z] != null && Sn(!0);
    let o = {};
    for (let f in I) {
      let d = I[f];
      if (d != null) {
        let m = o[f] = Gn(T[f], Xc);
        if (d.min != null)
          Ae(m, d);
        else if (f != z || s == 2)
          if (Ve == 0 && m.from == null) {
            let x = m.range(l, null, null, f);
            m.min = x[0], m.max = x[1];
          } else
            m.min = pe, m.max = -pe;
      }
    }
    if (Ve > 0) {
      S.forEach((f, d) => {
        if (s == 1) {
          let m = f.scale, x = I[m];
          if (x == null)
            return;
          let _ = o[m];
          if (d == 0) {
            let M = _.range(l, _.min, _.max, m);
            _.min = M[0], _.max = M[1], Ce = yt(_.min, t[0]), ze = yt(_.max, t[0]), ze - Ce > 1 && (t[0][Ce] < _.min && Ce++, t[0][ze] > _.max && ze--), f.min = bt[Ce], f.max = bt[ze];
          } else f.show && f.auto && Jl(_, x, f, t[d], f.sorted);
          f.idxs[0] = Ce, f.idxs[1] = ze;
        } else if (d > 0 && f.show && f.auto) {
          let [m, x] = f.facets, _ = m.scale, M = x.scale, [R, P] = t[d], C = o[_], j = o[M];
          C != null && Jl(C, I[_], m, R, m.sorted), j != null && Jl(j, I[M], x, P, x.sorted), f.min = x.min, f.max = x.max;
        }
      });
      for (let f in o) {
        let d = o[f], m = I[f];
        if (d.from == null && (m == null || m.min == null)) {
          let x = d.range(
            l,
            d.min == pe ? null : d.min,
            d.max == -pe ? null : d.max,
            f
          );
          d.min = x[0], d.max = x[1];
        }
      }
    }
    for (let f in o) {
      let d = o[f];
      if (d.from != null) {
        let m = o[d.from];
        if (m.min == null)
          d.min = d.max = null;
        else {
          let x = d.range(l, m.min, m.max, f);
          d.min = x[0], d.max = x[1];
        }
      }
    }
    let i = {}, c = !1;
    for (let f in o) {
      let d = o[f], m = T[f];
      if (m.min != d.min || m.max != d.max) {
        m.min = d.min, m.max = d.max;
        let x = m.distr;
        m._min = x == 3 ? Ot(m.min) : x == 4 ? ms(m.min, m.asinh) : x == 100 ? m.fwd(m.min) : m.min, m._max = x == 3 ? Ot(m.max) : x == 4 ? ms(m.max, m.asinh) : x == 100 ? m.fwd(m.max) : m.max, i[f] = c = !0;
      }
    }
    if (c) {
      S.forEach((f, d) => {
        s == 2 ? d > 0 && i.y && (f._paths = null) : i[f.scale] && (f._paths = null);
      });
      for (let f in i)
        bn = !0, Ne("setScale", f);
      We && N.left >= 0 && (Qt = ut = !0);
    }
    for (let f in I)
      I[f] = null;
  }
  function Gr(o) {
    let i = Ms(Ce - 1, 0, Ve - 1), c = Ms(ze + 1, 0, Ve - 1);
    for (; o[i] == null && i > 0; )
      i--;
    for (; o[c] == null && c < Ve - 1; )
      c++;
    return [i, c];
  }
  function Vr() {
    if (Ve > 0) {
      let o = S.some((i) => i._focus) && Xe != At.alpha;
      o && (g.globalAlpha = Xe = At.alpha), S.forEach((i, c) => {
        if (c > 0 && i.show && (ro(c, !1), ro(c, !0), i._paths == null)) {
          let f = Xe;
          Xe != i.alpha && (g.globalAlpha = Xe = i.alpha);
          let d = s == 2 ? [0, t[c][0].length - 1] : Gr(t[c]);
          i._paths = i.paths(l, c, d[0], d[1]), Xe != f && (g.globalAlpha = Xe = f);
        }
      }), S.forEach((i, c) => {
        if (c > 0 && i.show) {
          let f = Xe;
          Xe != i.alpha && (g.globalAlpha = Xe = i.alpha), i._paths != null && ao(c, !1);
          {
            let d = i._paths != null ? i._paths.gaps : null, m = i.points.show(l, c, Ce, ze, d), x = i.points.filter(l, c, m, d);
            (m || x) && (i.points._paths = i.points.paths(l, c, Ce, ze, x), ao(c, !0));
          }
          Xe != f && (g.globalAlpha = Xe = f), Ne("drawSeries", c);
        }
      }), o && (g.globalAlpha = Xe = 1);
    }
  }
  function ro(o, i) {
    let c = i ? S[o].points : S[o];
    c._stroke = c.stroke(l, o), c._fill = c.fill(l, o);
  }
  function ao(o, i) {
    let c = i ? S[o].points : S[o], {
      stroke: f,
      fill: d,
      clip: m,
      flags: x,
      _stroke: _ = c._stroke,
      _fill: M = c._fill,
      _width: R = c.width
    } = c._paths;
    R = he(R * re, 3);
    let P = null, C = R % 2 / 2;
    i && M == null && (M = R > 0 ? "#fff" : _);
    let j = c.pxAlign == 1 && C > 0;
    if (j && g.translate(C, C), !i) {
      let ie = tt - R / 2, se = ct - R / 2, X = Qe + R, W = wt + R;
      P = new Path2D(), P.rect(ie, se, X, W);
    }
    i ? Zl(_, R, c.dash, c.cap, M, f, d, x, m) : $r(o, _, R, c.dash, c.cap, M, f, d, x, P, m), j && g.translate(-C, -C);
  }
  function $r(o, i, c, f, d, m, x, _, M, R, P) {
    let C = !1;
    M != 0 && J.forEach((j, ie) => {
      if (j.series[0] == o) {
        let se = S[j.series[1]], X = t[j.series[1]], W = (se._paths || sl).band;
        Ht(W) && (W = j.dir == 1 ? W[0] : W[1]);
        let G, we = null;
        se.show && W && Uc(X, Ce, ze) ? (we = j.fill(l, ie) || m, G = se._paths.clip) : W = null, Zl(i, c, f, d, we, x, _, M, R, P, G, W), C = !0;
      }
    }), C || Zl(i, c, f, d, m, x, _, M, R, P);
  }
  const co = Vn | Ls;
  function Zl(o, i, c, f, d, m, x, _, M, R, P, C) {
    so(o, i, c, f, d), (M || R || C) && (g.save(), M && g.clip(M), R && g.clip(R)), C ? (_ & co) == co ? (g.clip(C), P && g.clip(P), ml(d, x), dl(o, m, i)) : _ & Ls ? (ml(d, x), g.clip(C), dl(o, m, i)) : _ & Vn && (g.save(), g.clip(C), P && g.clip(P), ml(d, x), g.restore(), dl(o, m, i)) : (ml(d, x), dl(o, m, i)), (M || R || C) && g.restore();
  }
  function dl(o, i, c) {
    c > 0 && (i instanceof Map ? i.forEach((f, d) => {
      g.strokeStyle = hl = d, g.stroke(f);
    }) : i != null && o && g.stroke(i));
  }
  function ml(o, i) {
    i instanceof Map ? i.forEach((c, f) => {
      g.fillStyle = _n = f, g.fill(c);
    }) : i != null && o && g.fill(i);
  }
  function Fr(o, i, c, f) {
    let d = y[o], m;
    if (f <= 0)
      m = [0, 0];
    else {
      let x = d._space = d.space(l, o, i, c, f), _ = d._incrs = d.incrs(l, o, i, c, f, x);
      m = df(i, c, _, f, x);
    }
    return d._found = m;
  }
  function Ql(o, i, c, f, d, m, x, _, M, R) {
    let P = x % 2 / 2;
    B == 1 && g.translate(P, P), so(_, x, M, R, _), g.beginPath();
    let C, j, ie, se, X = d + (f == 0 || f == 3 ? -m : m);
    c == 0 ? (j = d, se = X) : (C = d, ie = X);
    for (let W = 0; W < o.length; W++)
      i[W] != null && (c == 0 ? C = ie = o[W] : j = se = o[W], g.moveTo(C, j), g.lineTo(ie, se));
    g.stroke(), B == 1 && g.translate(-P, -P);
  }
  function Ir(o) {
    let i = !0;
    return y.forEach((c, f) => {
      if (!c.show)
        return;
      let d = T[c.scale];
      if (d.min == null) {
        c._show && (i = !1, c._show = !1, Sn(!1));
        return;
      } else
        c._show || (i = !1, c._show = !0, Sn(!1));
      let m = c.side, x = m % 2, { min: _, max: M } = d, [R, P] = Fr(f, _, M, x == 0 ? q : D);
      if (P == 0)
        return;
      let C = d.distr == 2, j = c._splits = c.splits(l, f, _, M, R, P, C), ie = d.distr == 2 ? j.map((G) => bt[G]) : j, se = d.distr == 2 ? bt[j[1]] - bt[j[0]] : R, X = c._values = c.values(l, c.filter(l, ie, f, P, se), f, P, se);
      c._rotate = m == 2 ? c.rotate(l, X, f, P) : 0;
      let W = c._size;
      c._size = mt(c.size(l, X, f, o)), W != null && c._size != W && (i = !1);
    }), i;
  }
  function Wr(o) {
    let i = !0;
    return no.forEach((c, f) => {
      let d = c(l, f, en, o);
      d != Vt[f] && (i = !1), Vt[f] = d;
    }), i;
  }
  function Hr() {
    for (let o = 0; o < y.length; o++) {
      let i = y[o];
      if (!i.show || !i._show)
        continue;
      let c = i.side, f = c % 2, d, m, x = i.stroke(l, o), _ = c == 0 || c == 3 ? -1 : 1, [M, R] = i._found;
      if (i.label != null) {
        let Ue = i.labelGap * _, st = Ee((i._lpos + Ue) * re);
        oo(i.labelFont[0], x, "center", c == 2 ? Zn : Go), g.save(), f == 1 ? (d = m = 0, g.translate(
          st,
          Ee(ct + wt / 2)
        ), g.rotate((c == 3 ? -Ml : Ml) / 2)) : (d = Ee(tt + Qe / 2), m = st);
        let ln = Ui(i.label) ? i.label(l, o, M, R) : i.label;
        g.fillText(ln, d, m), g.restore();
      }
      if (R == 0)
        continue;
      let P = T[i.scale], C = f == 0 ? Qe : wt, j = f == 0 ? tt : ct, ie = i._splits, se = P.distr == 2 ? ie.map((Ue) => bt[Ue]) : ie, X = P.distr == 2 ? bt[ie[1]] - bt[ie[0]] : M, W = i.ticks, G = i.border, we = W.show ? W.size : 0, _e = Ee(we * re), Ge = Ee((i.alignTo == 2 ? i._size - we - i.gap : i.gap) * re), fe = i._rotate * -Ml / 180, Se = V(i._pos * re), nt = (_e + Ge) * _, je = Se + nt;
      m = f == 0 ? je : 0, d = f == 1 ? je : 0;
      let pt = i.font[0], vt = i.align == 1 ? Cn : i.align == 2 ? ps : fe > 0 ? Cn : fe < 0 ? ps : f == 0 ? "center" : c == 3 ? ps : Cn, Et = fe || f == 1 ? "middle" : c == 2 ? Zn : Go;
      oo(pt, x, vt, Et);
      let lt = i.font[1] * i.lineGap, ht = ie.map((Ue) => V(u(Ue, P, C, j))), kt = i._values;
      for (let Ue = 0; Ue < kt.length; Ue++) {
        let st = kt[Ue];
        if (st != null) {
          f == 0 ? d = ht[Ue] : m = ht[Ue], st = "" + st;
          let ln = st.indexOf(`
`) == -1 ? [st] : st.split(/\n/gm);
          for (let Ye = 0; Ye < ln.length; Ye++) {
            let Eo = ln[Ye];
            fe ? (g.save(), g.translate(d, m + Ye * lt), g.rotate(fe), g.fillText(Eo, 0, 0), g.restore()) : g.fillText(Eo, d, m + Ye * lt);
          }
        }
      }
      W.show && Ql(
        ht,
        W.filter(l, se, o, R, X),
        f,
        c,
        Se,
        _e,
        he(W.width * re, 3),
        W.stroke(l, o),
        W.dash,
        W.cap
      );
      let Rt = i.grid;
      Rt.show && Ql(
        ht,
        Rt.filter(l, se, o, R, X),
        f,
        f == 0 ? 2 : 1,
        f == 0 ? ct : tt,
        f == 0 ? wt : Qe,
        he(Rt.width * re, 3),
        Rt.stroke(l, o),
        Rt.dash,
        Rt.cap
      ), G.show && Ql(
        [Se],
        [1],
        f == 0 ? 1 : 0,
        f == 0 ? 1 : 2,
        f == 1 ? ct : tt,
        f == 1 ? wt : Qe,
        he(G.width * re, 3),
        G.stroke(l, o),
        G.dash,
        G.cap
      );
    }
    Ne("drawAxes");
  }
  function Sn(o) {
    S.forEach((i, c) => {
      c > 0 && (i._paths = null, o && (s == 1 ? (i.min = null, i.max = null) : i.facets.forEach((f) => {
        f.min = null, f.max = null;
      })));
    });
  }
  let gl = !1, Xl = !1, Un = [];
  function jr() {
    Xl = !1;
    for (let o = 0; o < Un.length; o++)
      Ne(...Un[o]);
    Un.length = 0;
  }
  function Mn() {
    gl || (iu(uo), gl = !0);
  }
  function Ur(o, i = !1) {
    gl = !0, Xl = i, o(l), uo(), i && Un.length > 0 && queueMicrotask(jr);
  }
  l.batch = Ur;
  function uo() {
    if ($l && (Nr(), $l = !1), bn && (Rr(), bn = !1), ul) {
      if (be(A, Cn, de), be(A, Zn, Le), be(A, Xn, q), be(A, el, D), be(E, Cn, de), be(E, Zn, Le), be(E, Xn, q), be(E, el, D), be(w, Xn, zt), be(w, el, Kt), k.width = Ee(zt * re), k.height = Ee(Kt * re), y.forEach(({ _el: o, _show: i, _size: c, _pos: f, side: d }) => {
        if (o != null)
          if (i) {
            let m = d === 3 || d === 0 ? c : 0, x = d % 2 == 1;
            be(o, x ? "left" : "top", f - m), be(o, x ? "width" : "height", c), be(o, x ? "top" : "left", x ? Le : de), be(o, x ? "height" : "width", x ? D : q), _s(o, rn);
          } else
            ot(o, rn);
      }), hl = _n = Wl = jl = Ul = Yl = ql = Kl = Hl = null, Xe = 1, Kn(!0), de != wn || Le != Jt || q != Mt || D != Zt) {
        Sn(!1);
        let o = q / Mt, i = D / Zt;
        if (We && !Qt && N.left >= 0) {
          N.left *= o, N.top *= i, An && Pt(An, Ee(N.left), 0, q, D), Tn && Pt(Tn, 0, Ee(N.top), q, D);
          for (let c = 0; c < ft.length; c++) {
            let f = ft[c];
            f != null && (xn[c] *= o, yn[c] *= i, Pt(f, mt(xn[c]), mt(yn[c]), q, D));
          }
        }
        if (ge.show && !fl && ge.left >= 0 && ge.width > 0) {
          ge.left *= o, ge.width *= o, ge.top *= i, ge.height *= i;
          for (let c in os)
            be(Rn, c, ge[c]);
        }
        wn = de, Jt = Le, Mt = q, Zt = D;
      }
      Ne("setSize"), ul = !1;
    }
    zt > 0 && Kt > 0 && (g.clearRect(0, 0, k.width, k.height), Ne("drawClear"), Y.forEach((o) => o()), Ne("draw")), ge.show && fl && (wl(ge), fl = !1), We && Qt && (nn(null, !0, !1), Qt = !1), Q.show && Q.live && ut && (ls(), ut = !1), p || (p = !0, l.status = 1, Ne("ready")), jn = !1, gl = !1;
  }
  l.redraw = (o, i) => {
    bn = i || !1, o !== !1 ? Ft(z, L.min, L.max) : Mn();
  };
  function es(o, i) {
    let c = T[o];
    if (c.from == null) {
      if (Ve == 0) {
        let f = c.range(l, i.min, i.max, o);
        i.min = f[0], i.max = f[1];
      }
      if (i.min > i.max) {
        let f = i.min;
        i.min = i.max, i.max = f;
      }
      if (Ve > 1 && i.min != null && i.max != null && i.max - i.min < 1e-16)
        return;
      o == z && c.distr == 2 && Ve > 0 && (i.min = yt(i.min, t[0]), i.max = yt(i.max, t[0]), i.min == i.max && i.max++), I[o] = i, $l = !0, Mn();
    }
  }
  l.setScale = es;
  let ts, ns, An, Tn, fo, po, Ln, En, ho, mo, me, xe, $t = !1;
  const $e = N.drag;
  let Be = $e.x, Oe = $e.y;
  We && (N.x && (ts = dt(Rc, E)), N.y && (ns = dt(Pc, E)), L.ori == 0 ? (An = ts, Tn = ns) : (An = ns, Tn = ts), me = N.left, xe = N.top);
  const ge = l.select = Ae({
    show: !0,
    over: !0,
    left: 0,
    width: 0,
    top: 0,
    height: 0
  }, e.select), Rn = ge.show ? dt(Ec, ge.over ? E : A) : null;
  function wl(o, i) {
    if (ge.show) {
      for (let c in o)
        ge[c] = o[c], c in os && be(Rn, c, o[c]);
      i !== !1 && Ne("setSelect");
    }
  }
  l.setSelect = wl;
  function Yr(o) {
    if (S[o].show)
      Te && _s(ye[o], rn);
    else if (Te && ot(ye[o], rn), We) {
      let c = kn ? ft[0] : ft[o];
      c != null && Pt(c, -10, -10, q, D);
    }
  }
  function Ft(o, i, c) {
    es(o, { min: i, max: c });
  }
  function Tt(o, i, c, f) {
    i.focus != null && Qr(o), i.show != null && S.forEach((d, m) => {
      m > 0 && (o == m || o == null) && (d.show = i.show, Yr(m), s == 2 ? (Ft(d.facets[0].scale, null, null), Ft(d.facets[1].scale, null, null)) : Ft(d.scale, null, null), Mn());
    }), c !== !1 && Ne("setSeries", o, i), f && Jn("setSeries", l, o, i);
  }
  l.setSeries = Tt;
  function qr(o, i) {
    Ae(J[o], i);
  }
  function Kr(o, i) {
    o.fill = te(o.fill || null), o.dir = oe(o.dir, -1), i = i ?? J.length, J.splice(i, 0, o);
  }
  function Jr(o) {
    o == null ? J.length = 0 : J.splice(o, 1);
  }
  l.addBand = Kr, l.setBand = qr, l.delBand = Jr;
  function Zr(o, i) {
    S[o].alpha = i, We && ft[o] != null && (ft[o].style.opacity = i), Te && ye[o] && (ye[o].style.opacity = i);
  }
  let Bt, It, tn;
  const Pn = { focus: !0 };
  function Qr(o) {
    if (o != tn) {
      let i = o == null, c = At.alpha != 1;
      S.forEach((f, d) => {
        if (s == 1 || d > 0) {
          let m = i || d == 0 || d == o;
          f._focus = i ? null : m, c && Zr(d, m ? 1 : At.alpha);
        }
      }), tn = o, c && Mn();
    }
  }
  Te && vn && He(Io, ae, (o) => {
    N._lock || (Xt(o), tn != null && Tt(null, Pn, !0, Me.setSeries));
  });
  function Lt(o, i, c) {
    let f = T[i];
    c && (o = o / re - (f.ori == 1 ? Le : de));
    let d = q;
    f.ori == 1 && (d = D, o = d - o), f.dir == -1 && (o = d - o);
    let m = f._min, x = f._max, _ = o / d, M = m + (x - m) * _, R = f.distr;
    return R == 3 ? On(10, M) : R == 4 ? qc(M, f.asinh) : R == 100 ? f.bwd(M) : M;
  }
  function Xr(o, i) {
    let c = Lt(o, z, i);
    return yt(c, t[0], Ce, ze);
  }
  l.valToIdx = (o) => yt(o, t[0]), l.posToIdx = Xr, l.posToVal = Lt, l.valToPos = (o, i, c) => T[i].ori == 0 ? r(
    o,
    T[i],
    c ? Qe : q,
    c ? tt : 0
  ) : a(
    o,
    T[i],
    c ? wt : D,
    c ? ct : 0
  ), l.setCursor = (o, i, c) => {
    me = o.left, xe = o.top, nn(null, i, c);
  };
  function go(o, i) {
    be(Rn, Cn, ge.left = o), be(Rn, Xn, ge.width = i);
  }
  function wo(o, i) {
    be(Rn, Zn, ge.top = o), be(Rn, el, ge.height = i);
  }
  let Yn = L.ori == 0 ? go : wo, qn = L.ori == 1 ? go : wo;
  function ea() {
    if (Te && Q.live)
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
    }) : Qc(o.idx) || ue.fill(o.idx), Q.idx = ue[0]), Te && Q.live) {
      for (let c = 0; c < S.length; c++)
        (c > 0 || s == 1 && !at) && ta(c, ue[c]);
      ea();
    }
    ut = !1, i !== !1 && Ne("setLegend");
  }
  l.setLegend = ls;
  function ta(o, i) {
    let c = S[o], f = o == 0 && K == 2 ? bt : t[o], d;
    at ? d = c.values(l, o, i) ?? Gt : (d = c.value(l, i == null ? null : f[i], o, i), d = d == null ? Gt : { _: d }), Q.values[o] = d;
  }
  function nn(o, i, c) {
    ho = me, mo = xe, [me, xe] = N.move(l, me, xe), N.left = me, N.top = xe, We && (An && Pt(An, Ee(me), 0, q, D), Tn && Pt(Tn, 0, Ee(xe), q, D));
    let f, d = Ce > ze;
    Bt = pe, It = null;
    let m = L.ori == 0 ? q : D, x = L.ori == 1 ? q : D;
    if (me < 0 || Ve == 0 || d) {
      f = N.idx = null;
      for (let _ = 0; _ < S.length; _++) {
        let M = ft[_];
        M != null && Pt(M, -10, -10, q, D);
      }
      vn && Tt(null, Pn, !0, o == null && Me.setSeries), Q.live && (ue.fill(f), ut = !0);
    } else {
      let _, M, R;
      s == 1 && (_ = L.ori == 0 ? me : xe, M = Lt(_, z), f = N.idx = yt(M, t[0], Ce, ze), R = O(t[0][f], L, m, 0));
      let P = -10, C = -10, j = 0, ie = 0, se = !0, X = "", W = "";
      for (let G = s == 2 ? 1 : 0; G < S.length; G++) {
        let we = S[G], _e = ue[G], Ge = _e == null ? null : s == 1 ? t[G][_e] : t[G][1][_e], fe = N.dataIdx(l, G, f, M), Se = fe == null ? null : s == 1 ? t[G][fe] : t[G][1][fe];
        if (ut = ut || Se != Ge || fe != _e, ue[G] = fe, G > 0 && we.show) {
          let nt = fe == null ? -10 : fe == f ? R : O(s == 1 ? t[0][fe] : t[G][0][fe], L, m, 0), je = Se == null ? -10 : H(Se, s == 1 ? T[we.scale] : T[we.facets[1].scale], x, 0);
          if (vn && Se != null) {
            let pt = L.ori == 1 ? me : xe, vt = Re(At.dist(l, G, fe, je, pt));
            if (vt < Bt) {
              let Et = At.bias;
              if (Et != 0) {
                let lt = Lt(pt, we.scale), ht = Se >= 0 ? 1 : -1, kt = lt >= 0 ? 1 : -1;
                kt == ht && (kt == 1 ? Et == 1 ? Se >= lt : Se <= lt : (
                  // >= 0
                  Et == 1 ? Se <= lt : Se >= lt
                )) && (Bt = vt, It = G);
              } else
                Bt = vt, It = G;
            }
          }
          if (ut || kn) {
            let pt, vt;
            L.ori == 0 ? (pt = nt, vt = je) : (pt = je, vt = nt);
            let Et, lt, ht, kt, Rt, Ue, st = !0, ln = Fe.bbox;
            if (ln != null) {
              st = !1;
              let Ye = ln(l, G);
              ht = Ye.left, kt = Ye.top, Et = Ye.width, lt = Ye.height;
            } else
              ht = pt, kt = vt, Et = lt = Fe.size(l, G);
            if (Ue = Fe.fill(l, G), Rt = Fe.stroke(l, G), kn)
              G == It && Bt <= At.prox && (P = ht, C = kt, j = Et, ie = lt, se = st, X = Ue, W = Rt);
            else {
              let Ye = ft[G];
              Ye != null && (xn[G] = ht, yn[G] = kt, Ko(Ye, Et, lt, st), Yo(Ye, Ue, Rt), Pt(Ye, mt(ht), mt(kt), q, D));
            }
          }
        }
      }
      if (kn) {
        let G = At.prox, we = tn == null ? Bt <= G : Bt > G || It != tn;
        if (ut || we) {
          let _e = ft[0];
          _e != null && (xn[0] = P, yn[0] = C, Ko(_e, j, ie, se), Yo(_e, X, W), Pt(_e, mt(P), mt(C), q, D));
        }
      }
    }
    if (ge.show && $t)
      if (o != null) {
        let [_, M] = Me.scales, [R, P] = Me.match, [C, j] = o.cursor.sync.scales, ie = o.cursor.drag;
        if (Be = ie._x, Oe = ie._y, Be || Oe) {
          let { left: se, top: X, width: W, height: G } = o.select, we = o.scales[C].ori, _e = o.posToVal, Ge, fe, Se, nt, je, pt = _ != null && R(_, C), vt = M != null && P(M, j);
          pt && Be ? (we == 0 ? (Ge = se, fe = W) : (Ge = X, fe = G), Se = T[_], nt = O(_e(Ge, C), Se, m, 0), je = O(_e(Ge + fe, C), Se, m, 0), Yn(_t(nt, je), Re(je - nt))) : Yn(0, m), vt && Oe ? (we == 1 ? (Ge = se, fe = W) : (Ge = X, fe = G), Se = T[M], nt = H(_e(Ge, j), Se, x, 0), je = H(_e(Ge + fe, j), Se, x, 0), qn(_t(nt, je), Re(je - nt))) : qn(0, x);
        } else
          is();
      } else {
        let _ = Re(ho - fo), M = Re(mo - po);
        if (L.ori == 1) {
          let j = _;
          _ = M, M = j;
        }
        Be = $e.x && _ >= $e.dist, Oe = $e.y && M >= $e.dist;
        let R = $e.uni;
        R != null ? Be && Oe && (Be = _ >= R, Oe = M >= R, !Be && !Oe && (M > _ ? Oe = !0 : Be = !0)) : $e.x && $e.y && (Be || Oe) && (Be = Oe = !0);
        let P, C;
        Be && (L.ori == 0 ? (P = Ln, C = me) : (P = En, C = xe), Yn(_t(P, C), Re(C - P)), Oe || qn(0, x)), Oe && (L.ori == 1 ? (P = Ln, C = me) : (P = En, C = xe), qn(_t(P, C), Re(C - P)), Be || Yn(0, m)), !Be && !Oe && (Yn(0, 0), qn(0, 0));
      }
    if ($e._x = Be, $e._y = Oe, o == null) {
      if (c) {
        if (Lo != null) {
          let [_, M] = Me.scales;
          Me.values[0] = _ != null ? Lt(L.ori == 0 ? me : xe, _) : null, Me.values[1] = M != null ? Lt(L.ori == 1 ? me : xe, M) : null;
        }
        Jn(hs, l, me, xe, q, D, f);
      }
      if (vn) {
        let _ = c && Me.setSeries, M = At.prox;
        tn == null ? Bt <= M && Tt(It, Pn, !0, _) : Bt > M ? Tt(null, Pn, !0, _) : It != tn && Tt(It, Pn, !0, _);
      }
    }
    ut && (Q.idx = f, ls()), i !== !1 && Ne("setCursor");
  }
  let Wt = null;
  Object.defineProperty(l, "rect", {
    get() {
      return Wt == null && Kn(!1), Wt;
    }
  });
  function Kn(o = !1) {
    o ? Wt = null : (Wt = E.getBoundingClientRect(), Ne("syncRect", Wt));
  }
  function bo(o, i, c, f, d, m, x) {
    N._lock || $t && o != null && o.movementX == 0 && o.movementY == 0 || (ss(o, i, c, f, d, m, x, !1, o != null), o != null ? nn(null, !0, !0) : nn(i, !0, !1));
  }
  function ss(o, i, c, f, d, m, x, _, M) {
    if (Wt == null && Kn(!1), Xt(o), o != null)
      c = o.clientX - Wt.left, f = o.clientY - Wt.top;
    else {
      if (c < 0 || f < 0) {
        me = -10, xe = -10;
        return;
      }
      let [R, P] = Me.scales, C = i.cursor.sync, [j, ie] = C.values, [se, X] = C.scales, [W, G] = Me.match, we = i.axes[0].side % 2 == 1, _e = L.ori == 0 ? q : D, Ge = L.ori == 1 ? q : D, fe = we ? m : d, Se = we ? d : m, nt = we ? f : c, je = we ? c : f;
      if (se != null ? c = W(R, se) ? u(j, T[R], _e, 0) : -10 : c = _e * (nt / fe), X != null ? f = G(P, X) ? u(ie, T[P], Ge, 0) : -10 : f = Ge * (je / Se), L.ori == 1) {
        let pt = c;
        c = f, f = pt;
      }
    }
    M && (i == null || i.cursor.event.type == hs) && ((c <= 1 || c >= q - 1) && (c = sn(c, q)), (f <= 1 || f >= D - 1) && (f = sn(f, D))), _ ? (fo = c, po = f, [Ln, En] = N.move(l, c, f)) : (me = c, xe = f);
  }
  const os = {
    width: 0,
    height: 0,
    left: 0,
    top: 0
  };
  function is() {
    wl(os, !1);
  }
  let vo, ko, xo, yo;
  function _o(o, i, c, f, d, m, x) {
    $t = !0, Be = Oe = $e._x = $e._y = !1, ss(o, i, c, f, d, m, x, !0, !1), o != null && (He(ds, xs, So, !1), Jn($o, l, Ln, En, q, D, null));
    let { left: _, top: M, width: R, height: P } = ge;
    vo = _, ko = M, xo = R, yo = P;
  }
  function So(o, i, c, f, d, m, x) {
    $t = $e._x = $e._y = !1, ss(o, i, c, f, d, m, x, !1, !0);
    let { left: _, top: M, width: R, height: P } = ge, C = R > 0 || P > 0, j = vo != _ || ko != M || xo != R || yo != P;
    if (C && j && wl(ge), $e.setScale && C && j) {
      let ie = _, se = R, X = M, W = P;
      if (L.ori == 1 && (ie = M, se = P, X = _, W = R), Be && Ft(
        z,
        Lt(ie, z),
        Lt(ie + se, z)
      ), Oe)
        for (let G in T) {
          let we = T[G];
          G != z && we.from == null && we.min != pe && Ft(
            G,
            Lt(X + W, G),
            Lt(X, G)
          );
        }
      is();
    } else N.lock && (N._lock = !N._lock, nn(i, !0, o != null));
    o != null && (gn(ds, xs), Jn(ds, l, me, xe, q, D, null));
  }
  function na(o, i, c, f, d, m, x) {
    if (N._lock)
      return;
    Xt(o);
    let _ = $t;
    if ($t) {
      let M = !0, R = !0, P = 10, C, j;
      L.ori == 0 ? (C = Be, j = Oe) : (C = Oe, j = Be), C && j && (M = me <= P || me >= q - P, R = xe <= P || xe >= D - P), C && M && (me = me < Ln ? 0 : q), j && R && (xe = xe < En ? 0 : D), nn(null, !0, !0), $t = !1;
    }
    me = -10, xe = -10, ue.fill(null), nn(null, !0, !0), _ && ($t = _);
  }
  function Mo(o, i, c, f, d, m, x) {
    N._lock || (Xt(o), Il(), is(), o != null && Jn(Wo, l, me, xe, q, D, null));
  }
  function Ao() {
    y.forEach(mf), Fl(l.width, l.height, !0);
  }
  un(Al, Bn, Ao);
  const Dn = {};
  Dn.mousedown = _o, Dn.mousemove = bo, Dn.mouseup = So, Dn.dblclick = Mo, Dn.setSeries = (o, i, c, f) => {
    let d = Me.match[2];
    c = d(l, i, c), c != -1 && Tt(c, f, !0, !1);
  }, We && (He($o, E, _o), He(hs, E, bo), He(Fo, E, (o) => {
    Xt(o), Kn(!1);
  }), He(Io, E, na), He(Wo, E, Mo), Es.add(l), l.syncRect = Kn);
  const bl = l.hooks = e.hooks || {};
  function Ne(o, i, c) {
    Xl ? Un.push([o, i, c]) : o in bl && bl[o].forEach((f) => {
      f.call(null, l, i, c);
    });
  }
  (e.plugins || []).forEach((o) => {
    for (let i in o.hooks)
      bl[i] = (bl[i] || []).concat(o.hooks[i]);
  });
  const To = (o, i, c) => c, Me = Ae({
    key: null,
    setSeries: !1,
    filters: {
      pub: ei,
      sub: ei
    },
    scales: [z, S[1] ? S[1].scale : null],
    match: [ti, ti, To],
    values: [null, null]
  }, N.sync);
  Me.match.length == 2 && Me.match.push(To), N.sync = Me;
  const Lo = Me.key, rs = gr(Lo);
  function Jn(o, i, c, f, d, m, x) {
    Me.filters.pub(o, i, c, f, d, m, x) && rs.pub(o, i, c, f, d, m, x);
  }
  rs.sub(l);
  function la(o, i, c, f, d, m, x) {
    Me.filters.sub(o, i, c, f, d, m, x) && Dn[o](null, i, c, f, d, m, x);
  }
  l.pub = la;
  function sa() {
    rs.unsub(l), Es.delete(l), qt.clear(), Ss(Al, Bn, Ao), h.remove(), ae?.remove(), Ne("destroy");
  }
  l.destroy = sa;
  function as() {
    Ne("init", e, t), lo(t || e.data, !1), I[z] ? es(z, I[z]) : Il(), fl = ge.show && (ge.width > 0 || ge.height > 0), Qt = ut = !0, Fl(e.width, e.height);
  }
  return S.forEach(to), y.forEach(Or), n ? n instanceof HTMLElement ? (n.appendChild(h), as()) : n(l, as) : as(), l;
}
Ie.assign = Ae;
Ie.fmtNum = Hs;
Ie.rangeNum = Tl;
Ie.rangeLog = Dl;
Ie.rangeAsinh = Is;
Ie.orient = hn;
Ie.pxRatio = re;
Ie.join = ou;
Ie.fmtDate = Us, Ie.tzDate = gu;
Ie.sync = gr;
{
  Ie.addGap = Qu, Ie.clipGaps = Bl;
  let e = Ie.paths = {
    points: yr
  };
  e.linear = Sr, e.stepped = tf, e.bars = nf, e.spline = sf;
}
const _i = 2 ** 30, Si = 104;
function Vl(e, t) {
  const [, , n, l, s, r, a, u] = e ?? [0, ""];
  return t === "vram" ? { ours: n ?? null, other: s ?? null, evictable: r ?? null } : { ours: l ?? null, other: a ?? null, evictable: u ?? null };
}
function Lr(e, t) {
  const n = e.plan.snapshot?.[`${t}_total_bytes`];
  return (e.curve.some((s) => Vl(s, t).other != null) ? n : zs(e.plan.snapshot, t)) ?? null;
}
function gf(e, t) {
  const n = e.map((s) => Vl(s, t)), l = (...s) => n.map((r) => s.some((a) => r[a] == null) ? null : s.reduce((a, u) => a + r[u], 0));
  return [l("ours", "other", "evictable"), l("ours", "other"), l("ours")];
}
class wf {
  constructor(t, n) {
    this.place = t, this.axis = n, this.resize = new ResizeObserver(() => {
      const l = this.place.clientWidth;
      l && this.plot?.setSize({ width: l, height: Si });
    }), this.resize.observe(t);
  }
  place;
  axis;
  plot;
  run;
  resize;
  show(t) {
    this.run = t;
    const n = gf(t.curve, this.axis), l = [
      t.curve.map((s) => s[0]),
      ...n.map((s) => s.map((r) => r == null ? null : r / _i))
    ];
    this.plot ? this.plot.setData(l) : this.place.clientWidth && (this.plot = new Ie(this.options(), l, this.place));
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
    return ((this.run && Lr(this.run, this.axis)) ?? 0) / _i;
  }
  options() {
    const t = { stroke: () => this.colour("--lp-dim"), grid: { show: !1 }, font: "11px sans-serif" }, n = (s, r) => ({ stroke: () => this.colour(s), width: r, points: { show: !1 } }), l = `--lp-${this.axis}`;
    return {
      width: this.place.clientWidth,
      height: Si,
      legend: { show: !1 },
      cursor: { show: !1 },
      padding: [6, 6, 0, 0],
      scales: {
        x: { time: !1 },
        y: { range: (s, r, a) => [0, Math.max(a ?? 0, 0.1, this.end()) * 1.08] }
      },
      axes: [
        { ...t, size: 24, values: (s, r) => r.map((a) => il(a)) },
        { ...t, size: 54, space: 26, values: (s, r) => r.map((a) => `${a} GiB`) }
      ],
      series: [
        {},
        n("--lp-disk", 1),
        n("--lp-disk", 1),
        { ...n(l, 1.8), fill: () => this.colour(l) + "b0" }
      ],
      bands: [
        { series: [1, 2], fill: () => this.colour("--lp-disk") + "48" },
        { series: [2, 3], fill: () => this.colour("--lp-disk") + "cc" }
      ],
      hooks: { drawClear: [(s) => this.bands(s)], draw: [(s) => this.limit(s)] }
    };
  }
  bands(t) {
    const { ctx: n, bbox: l } = t;
    n.save(), n.font = `${10 * devicePixelRatio}px sans-serif`, n.textAlign = "left", n.textBaseline = "alphabetic", this.phases().forEach(([s, r, a], u) => {
      const p = t.valToPos(r, "x", !0), h = t.valToPos(a, "x", !0) - p;
      n.fillStyle = this.colour("--lp-line"), n.globalAlpha = u % 2 ? 0.25 : 0.5, n.fillRect(p, l.top, h, l.height), n.globalAlpha = 1, n.fillStyle = this.colour("--lp-dim");
      const k = pn(s, this.run?.curve.map((g) => g[1]));
      n.measureText(k).width < h - 6 * devicePixelRatio && n.fillText(k, p + 3 * devicePixelRatio, l.top + 10 * devicePixelRatio);
    }), n.restore();
  }
  /** A dashed line where memory ends. */
  limit(t) {
    if (!this.end()) return;
    const { ctx: n, bbox: l } = t, s = t.valToPos(this.end(), "y", !0);
    n.save(), n.strokeStyle = this.colour("--lp-bad"), n.lineWidth = 1.5 * devicePixelRatio, n.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]), n.beginPath(), n.moveTo(l.left, s), n.lineTo(l.left + l.width, s), n.stroke(), n.restore();
  }
  phases() {
    const t = [];
    for (const [n, l] of this.run?.curve ?? []) {
      const s = t.at(-1);
      s && (s[2] = n), s?.[0] !== l && t.push([l, n, n]);
    }
    return t;
  }
}
class Mi {
  constructor(t) {
    this.axis = t, this.box.append(this.words, this.place);
  }
  axis;
  box = v("div.lp-memory");
  words = v("div.lp-legend");
  place = v("div.lp-curve", { role: "img" });
  curve;
  draw(t) {
    const n = Vl(t.curve.at(-1), this.axis);
    if (this.box.hidden = t.curve.length < 2 || n.ours == null, this.box.hidden) return;
    const l = Lr(t, this.axis), s = [
      [`lp-key-${this.axis}`, b("now.ours", { amount: qe(n.ours) })],
      ...n.other == null ? [] : [["lp-key-other", b("now.other", { amount: qe(n.other) })]],
      ...n.evictable == null ? [] : [["lp-key-evictable", b("now.evictable", { amount: qe(n.evictable) })]]
    ], r = l == null ? "" : b("now.of", { amount: qe(l) });
    Pe(
      this.words,
      v("b", {}, Je(this.axis)),
      ...s.map(([u, p]) => v("span", {}, v("i", { class: u, "aria-hidden": "true" }), p)),
      r && v("span", {}, v("i.lp-key-cap", { "aria-hidden": "true" }), r)
    );
    const a = Yt([...s.map(([, u]) => u), r].filter(Boolean));
    this.place.setAttribute("aria-label", b("now.curve", { axis: Je(this.axis), text: a })), this.curve ??= new wf(this.place, this.axis), this.curve.show(t);
  }
  redraw() {
    this.curve?.redraw();
  }
  close() {
    this.curve?.close(), this.curve = void 0, Pe(this.place);
  }
}
class bf {
  box;
  title;
  status = v("div.lp-sr", { role: "status", "aria-live": "polite" });
  bar = v("i");
  progress = v(
    "div.lp-progress",
    { role: "progressbar", "aria-label": b("now.progress"), "aria-valuemin": 0 },
    this.bar
  );
  memories = [new Mi("vram"), new Mi("ram")];
  rest = v("div");
  said = "";
  constructor() {
    const [t, n, l] = an(b("section.now"));
    this.box = t, this.title = l, t.hidden = !0, n.append(this.status, this.progress, ...this.memories.map((s) => s.box), this.rest);
  }
  draw(t) {
    if (this.box.hidden = !t, !t)
      return this.said = "", this.close();
    const n = Ja(t), { step: l = 0, steps: s } = n && t.phases[n]?.progress || {}, r = Ka(t), a = n ? pn(n, Object.keys(t.phases)) : b("now.between"), u = [
      a.toLowerCase(),
      s ? b("now.step", { step: l ?? 0, steps: s }) : "",
      r == null ? "" : b("now.left", { time: cn(r) })
    ].filter(Boolean);
    this.title.textContent = b("now.head", { what: Yt(u) }), this.announce(t, a), this.progress.hidden = !s, this.progress.setAttribute("aria-valuemax", String(s ?? 0)), this.progress.setAttribute("aria-valuenow", String(l ?? 0)), this.bar.style.width = `${s ? 100 * (l ?? 0) / s : 0}%`;
    for (const h of this.memories) h.draw(t);
    const p = Ni(t);
    Pe(
      this.rest,
      Bs(p),
      Os(p, !0),
      kf(t),
      n?.startsWith("sample") ? vf(t, n) : null,
      ...t.notices.slice(-3).map((h) => Dt("p.lp-notice", h))
    );
  }
  redraw() {
    for (const t of this.memories) t.redraw();
  }
  close() {
    for (const t of this.memories) t.close();
  }
  /** A screen reader hears of a new phase, not of every step. */
  announce(t, n) {
    const l = t.notices.at(-1) ?? "";
    this.said !== n + l && (this.said = n + l, this.status.textContent = `${n}. ${l}`);
  }
}
function vf(e, t) {
  const n = Gs(e.plan, t);
  return n ? v(
    "div",
    {},
    v("h4", {}, b("section.blocks", { count: Ns(n).length })),
    $i(e.plan, t)
  ) : null;
}
function kf(e) {
  const t = e.plan.snapshot, n = [
    ["vram", t?.vram_total_bytes, t?.vram_free_bytes],
    ["ram", t?.ram_total_bytes, t?.ram_available_bytes]
  ].flatMap(([l, s, r]) => s && r != null && Vl(e.curve.at(-1), l).other == null ? [b("now.held", { amount: qe(s - r), axis: Je(l) })] : []);
  return n.length ? v("p.lp-dim", {}, b("now.planned", { parts: n.join(b("list.and")) })) : null;
}
const Ai = "http://www.w3.org/2000/svg", xf = 12;
function yf(e, t) {
  if (!t.length)
    return Pe(e), !1;
  const n = [b("past.when"), b("past.size"), b("past.forecast"), b("past.took"), Je("vram")];
  return Pe(
    e,
    v(
      "table",
      {},
      v("thead", {}, v("tr", {}, ...n.map((l) => v("th", { scope: "col" }, l)))),
      v("tbody", {}, ...t.slice(0, xf).map(_f))
    ),
    Sf(t)
  ), !0;
}
function _f(e) {
  const t = new Date(e.started_unix_seconds * 1e3), n = ol() === "en" ? void 0 : ol(), l = t.toLocaleTimeString(n, { hour: "2-digit", minute: "2-digit" }), s = t.toLocaleDateString(n, { month: "short", day: "numeric" }), a = t.toDateString() === (/* @__PURE__ */ new Date()).toDateString() ? b("past.today", { time: l }) : b("past.other_day", { day: s, time: l }), u = e.status === "done" ? il(e.measured_seconds) : Ga(e.status);
  return v(
    "tr",
    {},
    v("td", {}, a),
    v("td", {}, jt(e.request)),
    v("td", {}, il(e.forecast_seconds)),
    v("td", {}, u),
    v("td", {}, qa(e))
  );
}
function Sf(e) {
  const t = e.filter((p) => p.status === "done").reverse(), n = t.map((p) => rl(p.measured_seconds, p.forecast_seconds)), l = t.map((p) => rl(p.measured_vram_peak_bytes, p.forecast_vram_peak_bytes)), s = [...n, ...l].filter((p) => p != null);
  if (t.length < 2 || !s.length) return null;
  const r = Math.max(10, ...s.map(Math.abs)), a = b("past.error", {
    count: t.length,
    time: Sl(n.at(-1) ?? null),
    vram: Sl(l.at(-1) ?? null)
  }), u = (p, h) => v("span", {}, v("i", { class: p, "aria-hidden": "true" }), h);
  return v(
    "div.lp-errors",
    {},
    v(
      "div.lp-scale",
      { "aria-hidden": "true" },
      ...[r, 0, -r].map((p) => v("span", {}, Sl(p)))
    ),
    Mf(r, a, [
      { colour: "var(--lp-fg)", values: n },
      { colour: "var(--lp-vram)", values: l }
    ]),
    v("div.lp-legend", {}, u("lp-key-time", b("past.time")), u("lp-key-vram", Je("vram"))),
    v("div.lp-dim", {}, a)
  );
}
function Mf(e, t, n) {
  const [l, s, r] = [300, 60, 6], a = document.createElementNS(Ai, "svg"), u = (k, g) => {
    for (const [w, A] of Object.entries(g)) k.setAttribute(w, A);
    return k;
  };
  u(a, {
    viewBox: `0 0 ${l} ${s}`,
    preserveAspectRatio: "none",
    class: "lp-spark",
    role: "img",
    "aria-label": t
  });
  const p = (k, g, w) => a.append(
    u(document.createElementNS(Ai, "polyline"), {
      points: k,
      fill: "none",
      stroke: g,
      "stroke-width": "1.8",
      "stroke-dasharray": w,
      "vector-effect": "non-scaling-stroke"
    })
  ), h = (k) => s / 2 - (s / 2 - r) * k / e;
  p(`0,${h(0)} ${l},${h(0)}`, "var(--lp-dim)", "3 3");
  for (const { colour: k, values: g } of n)
    p(g.flatMap((w, A) => w == null ? [] : [`${r + (l - 2 * r) * A / (g.length - 1)},${h(w)}`]).join(" "), k, "");
  return a;
}
const Ti = 2 ** 30, Af = 4, Tf = {
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0]
};
class Lf {
  constructor(t) {
    this.panel = t, this.box.addEventListener("keydown", (n) => this.move(n));
  }
  panel;
  box = v("div.lp-heat");
  /** Row and column of the cell that Tab reaches; arrows move it. */
  at = [0, 0];
  draw(t) {
    const { vramGib: n, lines: l, error: s } = t.map;
    this.box.hidden = !n.length;
    const r = [...Ri].reverse(), a = Object.values(l).flat().flatMap((A) => A.fits ? A.total_seconds ?? [] : []), [u, p] = [Math.min(...a), Math.max(...a)], h = Pf(t.machine, n, r);
    this.at[1] = Math.max(0, Math.min(this.at[1], n.length - 1));
    const k = v("h4", { id: "lowpeak-map" }, b("section.map")), g = v(
      "tr",
      { role: "row" },
      v("th", { scope: "col", role: "columnheader" }, b("map.ram")),
      ...n.map((A) => v("th", { scope: "col", role: "columnheader" }, String(A)))
    ), w = r.map((A, E) => v(
      "tr",
      { role: "row" },
      v("th", { scope: "row", role: "rowheader" }, String(A)),
      ...n.map((B, V) => {
        const F = l[A]?.[V], S = F?.total_seconds ? F.total_seconds / u : 1, y = Math.log(S) / Math.log(Math.max(Af, p / u));
        return this.cell(F, B, A, E, V, y, h[0] === E && h[1] === V);
      })
    ));
    Pe(
      this.box,
      k,
      v(
        "table",
        { role: "grid", "aria-labelledby": "lowpeak-map" },
        v("caption", {}, b("map.vram")),
        v("thead", { role: "rowgroup" }, g),
        v("tbody", { role: "rowgroup" }, ...w)
      ),
      v(
        "div.lp-legend",
        { "aria-hidden": "true" },
        v("span", {}, v("i.lp-heat-0"), b("map.fast")),
        v("span", {}, v("i.lp-heat-1"), b("map.slow")),
        v("span", {}, b("map.no")),
        v("span", {}, v("i.lp-key-here"), b("map.here"))
      ),
      s && Dt("p.lp-bad", s)
    );
  }
  cell(t, n, l, s, r, a, u) {
    const p = Ef(t, n, l) + (u ? ` (${b("map.here")})` : "");
    return v("td", {
      role: "gridcell",
      class: `${t ? t.fits ? "lp-fits" : "lp-short" : "lp-waits"}${u ? " lp-here" : ""}`,
      style: `--lp-heat:${(8 + 42 * a).toFixed(0)}%`,
      title: p,
      "aria-label": p,
      tabindex: s === this.at[0] && r === this.at[1] ? 0 : -1,
      "data-key": `cell-${s}-${r}`,
      onclick: () => this.choose(s, r, n, l),
      onkeydown: (h) => {
        ["Enter", " "].includes(h.key) && (h.preventDefault(), this.choose(s, r, n, l));
      }
    }, t ? t.fits ? Rf(t.total_seconds) : "–" : "…");
  }
  choose(t, n, l, s) {
    this.at = [t, n], this.panel.whatIf({ vramGib: l, ramGib: s });
  }
  move(t) {
    const n = Tf[t.key];
    if (!n) return;
    t.preventDefault();
    const l = this.find(this.at[0] + n[0], this.at[1] + n[1]);
    l && (this.find(...this.at)?.setAttribute("tabindex", "-1"), l.setAttribute("tabindex", "0"), l.focus(), this.at = [this.at[0] + n[0], this.at[1] + n[1]]);
  }
  find(t, n) {
    return this.box.querySelector(`[data-key="cell-${t}-${n}"]`);
  }
}
function Ef(e, t, n) {
  return e ? e.fits ? b(
    "map.fits",
    { vram: t, ram: n, time: cn(e.total_seconds), limit: Di(e.limited_by ?? "") }
  ) : b("map.short", { vram: t, ram: n, axes: zi(e.short) }) : b("map.waiting", { vram: t, ram: n });
}
function Rf(e) {
  return e == null ? "?" : e < 59.5 ? b("time.seconds", { s: Math.round(e) }) : e < 3570 ? b("time.short_minutes", { m: Math.round(e / 60) }) : b("time.short_hours", { h: (e / 3600).toFixed(1) });
}
function Pf(e, t, n) {
  const { vram_total_bytes: l, ram_total_bytes: s } = e ?? {};
  return !l || !s ? [-1, -1] : [ks(n, s / Ti), ks(t, l / Ti)];
}
class Df {
  box;
  result = v("div.lp-result", { role: "status", "aria-live": "polite" });
  vram;
  ram;
  card;
  heat;
  drawnMap;
  constructor(t) {
    const [n, l] = an(b("section.what_if"), !0);
    this.box = n, this.card = v(
      "select",
      { "aria-label": b("what_if.card") },
      v("option", { value: "" }, b("what_if.this_card")),
      ...vs.map(([s, r, a]) => v(
        "option",
        { value: s },
        b("what_if.option", { name: r, amount: qe(a * 2 ** 30, 0) })
      ))
    ), this.vram = Li(Je("vram"), va, (s) => t.whatIf({ vramGib: s })), this.ram = Li(Je("ram"), ka, (s) => t.whatIf({ ramGib: s })), this.card.addEventListener("change", () => {
      const s = vs.find(([r]) => r === this.card.value);
      t.whatIf({ card: this.card.value, ...s ? { vramGib: s[2] } : {} });
    }), this.heat = new Lf(t), l.append(v(
      "div.lp-what",
      {},
      v("span", {}, b("what_if.card")),
      this.card,
      ...this.vram.parts,
      ...this.ram.parts
    ), this.result, this.heat.box), n.open = t.state.whatIf.open, n.addEventListener("toggle", () => t.openWhatIf(n.open));
  }
  draw(t) {
    const { card: n, vramGib: l, ramGib: s, plan: r, error: a, busy: u } = t.whatIf;
    this.box.hidden = !t.prompt, document.activeElement !== this.card && (this.card.value = n), this.vram.set(l), this.ram.set(s), this.result.classList.toggle("lp-busy", u), Pe(this.result, a ? Dt("p.lp-bad", a) : r ? dc(r) : null), this.drawnMap !== t.map && this.heat.draw(t), this.drawnMap = t.map;
  }
}
function Li(e, t, n) {
  const l = v("output", { "aria-hidden": "true" }), s = v("input", {
    type: "range",
    min: 0,
    max: t.length - 1,
    step: 1,
    "aria-label": b("what_if.slider", { axis: e })
  }), r = (a) => {
    l.textContent = `${a} GiB`, s.setAttribute("aria-valuetext", `${a} GiB`);
  };
  return s.addEventListener("input", () => {
    const a = t[Number(s.value)];
    r(a), n(a);
  }), {
    parts: [v("span", { "aria-hidden": "true" }, e), s, l],
    set(a) {
      s.value = String(ks(t, a)), r(t[Number(s.value)]);
    }
  };
}
class Cf {
  constructor(t, n) {
    this.panel = n;
    const l = v("span.lp-dim"), s = v("div"), [r, a] = zf("div.lp-before", { role: "status", "aria-live": "polite" }), u = v("h3.lp-title", {}, b("section.canvas")), [p, h] = an(b("section.bars")), [k, g, w] = an(""), [A, E] = an(b("section.why"), !0), B = new Df(n);
    this.during = new bf();
    const V = new mc(), [F, S] = an(b("section.past"), !0);
    F.classList.add("lp-past"), this.parts = [
      { of: (y) => [y.machine], draw: (y) => Pe(l, Va(y.machine)) },
      { of: (y) => [y.serverError, y.notices], draw: (y) => Bf(s, y) },
      { of: (y) => [y.active], draw: (y) => this.during.draw(y.active) },
      {
        of: (y) => [y.plan, y.planBusy, y.planError, y.active != null],
        draw: (y) => {
          a.classList.toggle("lp-busy", y.planBusy), uc(a, h, y, n), p.hidden = !h.childElementCount || y.active != null, k.hidden = !pc(w, g, y) || y.active != null, u.hidden = y.active == null, A.hidden = !hc(E, y);
        }
      },
      { of: (y) => [y.whatIf, y.map, y.plan, y.machine], draw: (y) => B.draw(y) },
      { of: (y) => [y.last], draw: (y) => V.draw(y.last) },
      { of: (y) => [y.runs], draw: (y) => F.hidden = !yf(S, y.runs) }
    ], this.root.append(
      v("style", {}, Oa + Na),
      v("div.lp-head", {}, v("h2", {}, "Lowpeak"), l),
      s,
      this.during.box,
      u,
      r,
      p,
      k,
      A,
      B.box,
      V.box,
      F
    ), t.replaceChildren(this.root), this.theme = new MutationObserver(() => this.followTheme());
    for (const y of [document.documentElement, document.body])
      this.theme.observe(y, { attributes: !0, attributeFilter: ["class", "style"] });
    this.followTheme(), this.draw(), n.open(this.onChange);
  }
  panel;
  root = v("div.lowpeak", {
    role: "region",
    "aria-label": "Lowpeak",
    lang: ol()
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
function zf(e, t) {
  const n = v(e, t);
  return [n, n];
}
function Bf(e, t) {
  Pe(
    e,
    t.serverError && v("p.lp-bad", { role: "alert" }, t.serverError),
    ...t.notices.map((n) => Dt("p.lp-notice", n))
  );
}
cs.registerExtension({
  name: "Lowpeak.Panel",
  setup() {
    const e = new Ba(new wa(cs, oa));
    let t;
    cs.extensionManager.registerSidebarTab({
      id: "lowpeak",
      title: "Lowpeak",
      label: "Lowpeak",
      icon: "pi pi-chart-bar",
      tooltip: b("tab.tooltip"),
      type: "custom",
      render(n) {
        const l = () => {
          t?.close(), e.followLanguage(), t = new Cf(n, e);
        };
        e.onLanguage = l, l();
      },
      destroy() {
        e.onLanguage = () => {
        }, t?.close(), t = void 0;
      }
    });
  }
});
