/** Sentences and numbers of the panel. Pure. */

import { commas, type Key, t, TABLES } from "./texts";
import type { Axis, Figures, PlanDocument, RequestJson, Run, RunRow, Size, Snapshot } from "./types";

const GIB = 2 ** 30;

/** The text of `group.name`, or the name itself when it is new to the panel. */
function known(group: string, name: string): string {
  const key = `${group}.${name}`;
  return key in TABLES.en! ? t(key as Key) : name;
}

export const axisName = (axis: string) => known("axis", axis.toLowerCase());
export const limitName = (limit: string) => known("limit", limit);
export const statusName = (status: string) => known("row", status);

/** Name of a phase. With one pass there is no second. */
export function phaseName(phase: string, phases: Iterable<string> = ["sample_low"]): string {
  if (phase === "sample_high" && ![...phases].includes("sample_low")) return t("phase.only");
  return known("phase", phase);
}

export function gib(bytes: number | null | undefined, digits = 1): string {
  return bytes == null ? t("unknown") : `${(bytes / GIB).toFixed(digits)} GiB`;
}

/** A duration in words, for sentences. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return t("unknown");
  if (seconds < 10) return t("time.seconds", { s: seconds.toFixed(1) });
  const whole = Math.round(seconds);
  if (whole < 60) return t("time.seconds", { s: whole });
  if (whole < 3600) return t("time.minutes", { m: Math.floor(whole / 60), s: pad(whole % 60) });
  const minutes = Math.round(whole / 60);
  return t("time.hours", { h: Math.floor(minutes / 60), m: pad(minutes % 60) });
}

/** A duration for a column. */
export function clock(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return t("time.seconds", { s: seconds < 10 ? seconds.toFixed(1) : whole });
  if (whole < 3600) return `${Math.floor(whole / 60)}:${pad(whole % 60)}`;
  return `${Math.floor(whole / 3600)}:${pad(Math.floor((whole % 3600) / 60))}:${pad(whole % 60)}`;
}

export function sizeText(size: Partial<Size> | undefined): string {
  if (!size?.width || !size.height) return "";
  const { width, height, seconds } = size;
  return seconds == null ? t("size", { width, height }) :
    t("size.length", { width, height, s: seconds.toFixed(1) });
}

export function machineText(machine: Snapshot | null | undefined): string {
  if (!machine) return "";
  const none = machine.vram_total_bytes ? "" : t("machine.no_gpu");
  const memories = (["vram", "ram"] as Axis[]).map((axis) => {
    const total = machine[`${axis}_total_bytes`];
    return total ? t("machine.axis", { axis: axisName(axis), amount: gib(total, 0) }) : "";
  });
  return [machine.device_name || machine.card || none, ...memories].filter(Boolean).join(" · ");
}

function passesText(request: RequestJson | undefined): string {
  const passes = request?.passes?.length;
  const words = passes === 2 ? t("passes.two") : passes === 1 ? t("passes.one") : "";
  return commas([request?.quality ?? "", words].filter(Boolean));
}

export interface Verdict {
  tone: "ok" | "bad";
  head: string;
  detail: string;
}

/** The first thing to read: fits or not, how long, which memory. */
export function verdict(plan: PlanDocument): Verdict {
  if (plan.fits === false) return refusal(plan);
  const range = plan.seconds_range;
  const limit = plan.total_seconds == null ? null : longest(plan)?.limited_by;
  const used = (["vram", "ram"] as Axis[]).flatMap((axis) => {
    const peak = peakOf(plan, axis);
    const free = freeBytes(plan.snapshot, axis);
    const name = axisName(axis);
    if (peak == null) return [];
    if (free == null) return [t("verdict.used_alone", { peak: gib(peak), axis: name })];
    return [t("verdict.used", { peak: (peak / GIB).toFixed(1), free: gib(free), axis: name })];
  });
  const parts = [
    [sizeText(plan.request), passesText(plan.request)].filter(Boolean).join(" · "),
    range && t("verdict.range", { low: duration(range[0]), high: duration(range[1]) }),
    limit && t("verdict.limited", { limit: limitName(limit) }),
    used.length && t("verdict.peak", { used: commas(used) }),
  ];
  return {
    tone: "ok",
    head: plan.total_seconds == null ? t("verdict.fits_alone") :
      t("verdict.fits", { time: duration(plan.total_seconds) }),
    detail: parts.filter(Boolean).join(t("list.stop")) + t("list.end"),
  };
}

function refusal(plan: PlanDocument): Verdict {
  const short = plan.short ?? [];
  const first = short[0];
  if (!first) return { tone: "bad", head: t("refusal.plain"), detail: plan.message ?? "" };
  const axes = [...new Set(short.map((item) => item.axis))];
  const other = axes.includes("ram") ? "vram" : "ram";
  const lines = short.map((item) =>
    t("refusal.detail", {
      phase: phaseName(item.phase),
      size: sizeText(plan.request),
      need: gib(item.need_bytes),
      have: gib(item.have_bytes),
      axis: axisName(item.axis),
    }),
  );
  const enough = axes.length === 1 && first.axis !== "disk";
  const values = { axes: axesText(axes), amount: gib(first.shortfall_bytes) };
  return {
    tone: "bad",
    head: axes.length > 1 ? t("refusal.many", values) : t("refusal.one", values),
    detail: lines.join(" ") + (enough ? t("refusal.enough", { axis: axisName(other) }) : ""),
  };
}

export function axesText(axes: string[]): string {
  return axes.map(axisName).join(t("list.and"));
}

export function longest(plan: PlanDocument) {
  return [...(plan.phases ?? [])].sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0))[0];
}

export function peakOf(plan: PlanDocument, axis: Axis): number | null {
  const key = `${axis}_peak_bytes` as const;
  const peaks = (plan.phases ?? []).map((item) => item[key]).filter((value) => value != null);
  return peaks.length ? Math.max(...peaks) : null;
}

export function freeBytes(machine: Snapshot | undefined, axis: Axis): number | null {
  const value = axis === "vram" ? machine?.vram_free_bytes : machine?.ram_available_bytes;
  return value ? value : null;
}

/** The margin kept on an axis, told by the plan in "VRAM: 8.00 GiB free, 0.25 GiB margin kept". */
export function marginBytes(plan: PlanDocument, axis: Axis): number {
  const wanted = new RegExp(`^${axis.toUpperCase()}: .* ([0-9.]+) (GiB|MiB) margin`);
  for (const reason of plan.reasons ?? []) {
    const found = wanted.exec(reason);
    if (found) return Number(found[1]) * (found[2] === "GiB" ? GIB : 2 ** 20);
  }
  return 0;
}

/** Reasons with the phases' names as the bars spell them. */
export function reasonText(reason: string): string {
  const text = reason.replace(/^(encode|sample_low|upscale|sample_high|decode)\b/, (name) =>
    phaseName(name),
  );
  return text.replace(/(\d)x(\d)/g, "$1 × $2");
}

/** A sentence of the engine with the phases' names in it. */
function named(text: string): string {
  return text.replace(/(phase )?\b(sample_low|sample_high)\b/g, (_, __, name: string) =>
    phaseName(name).toLowerCase(),
  );
}

export interface ReasonGroup {
  head: string;
  lines: string[];
}

/** Reasons under the pass they speak of; the first group, without head, holds the rest. */
export function reasonGroups(plan: PlanDocument): ReasonGroup[] {
  const groups: ReasonGroup[] = [{ head: "", lines: [...(plan.what_if ?? [])] }];
  for (const reason of plan.reasons ?? []) {
    const found = /^((?:encode|sample_low|upscale|sample_high|decode)\b[^:]*): (.*)$/.exec(reason);
    const head = found ? reasonText(found[1]!) : "";
    let group = groups.find((item) => item.head === head);
    if (!group) groups.push((group = { head, lines: [] }));
    group.lines.push(sentence(reasonText(found ? found[2]! : reason)));
  }
  return groups.filter((item) => item.lines.length);
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function percent(measured: number | null | undefined, forecast: number | null | undefined) {
  return measured == null || !forecast ? null : (100 * (measured - forecast)) / forecast;
}

export function signed(value: number | null): string {
  if (value == null) return "–";
  const rounded = Math.round(value);
  return rounded === 0 ? "0 %" : `${rounded > 0 ? "+" : "−"}${Math.abs(rounded)} %`;
}

type Difference = "time_more" | "time_less" | "time_same" | "more" | "less" | "same";

function against(kind: "time_" | "", axis: string, value: number | null): string {
  if (value == null) return "";
  const n = Math.abs(Math.round(value));
  const how = n === 0 ? "same" : value > 0 ? "more" : "less";
  return t(`diff.${`${kind}${how}` as Difference}`, { axis, n });
}

/** How the phases that were measured differ from their forecasts. */
export function differences(run: Run): string[] {
  const lines: string[] = [];
  for (const [phase, { forecast, measured }] of Object.entries(run.phases)) {
    if (!forecast || !measured) continue;
    const peaks = (["vram", "ram"] as Axis[]).map((axis) => {
      const key = `${axis}_peak_bytes` as const;
      return against("", axisName(axis), percent(measured[key], forecast[key]));
    });
    const time = against("time_", "", percent(measured.seconds, forecast.seconds));
    const parts = [time, ...peaks].filter(Boolean);
    if (parts.length)
      lines.push(t("diff.line", { phase: phaseName(phase, Object.keys(run.phases)),
        parts: commas(parts) }));
  }
  return lines;
}

export function runHead(run: Run): Verdict {
  const took = sum(Object.values(run.phases).map((phase) => phase.measured?.seconds));
  const detail = sizeText(run.request);
  if (run.status === "failed") {
    const name = run.error?.error ? `${run.error.error}: ` : "";
    const message = named(run.error?.message ?? t("run.no_reason"));
    return { tone: "bad", head: t("run.failed"), detail: name + message };
  }
  if (run.status === "cancelled") return { tone: "ok", head: t("run.cancelled"), detail };
  const head = took == null ? t("run.done") : t("run.took", { time: duration(took) });
  return { tone: "ok", head, detail };
}

/** Of whole runs only: a run that stopped may have missed its largest phase. */
export function rowDifference(row: RunRow): string {
  if (row.status !== "done") return "–";
  return signed(percent(row.measured_vram_peak_bytes, row.forecast_vram_peak_bytes));
}

/** Seconds left of a run: phases not done at their forecast, the current one by its steps. */
export function secondsLeft(run: Run): number | null {
  const planned = run.plan.phases?.length
    ? run.plan.phases.map((item) => [item.phase, item.seconds] as const)
    : Object.entries(run.phases).map(([name, item]) => [name, item.forecast?.seconds] as const);
  let left: number | null = null;
  for (const [name, seconds] of planned) {
    const phase = run.phases[name];
    if (phase?.measured || seconds == null) continue;
    const { step, steps } = phase?.progress ?? {};
    left = (left ?? 0) + seconds * (steps ? 1 - Math.min(1, (step ?? 0) / steps) : 1);
  }
  return left;
}

export function currentPhase(run: Run): string | null {
  const open = Object.entries(run.phases).filter(([, phase]) => !phase.measured);
  return open.at(-1)?.[0] ?? null;
}

export function sum(values: (number | null | undefined)[]): number | null {
  const known = values.filter((value): value is number => value != null);
  return known.length ? known.reduce((a, b) => a + b, 0) : null;
}

export function barLabel(name: string, axis: Axis, forecast: Figures, measured?: Figures): string {
  const key = `${axis}_peak_bytes` as const;
  const label = t("bar.label",
    { phase: name, axis: axisName(axis), amount: gib(forecast[key], 2) });
  return measured?.[key] == null ? label :
    t("bar.measured", { label, amount: gib(measured[key], 2) });
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
