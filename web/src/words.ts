/** Sentences and numbers of the panel. Pure. */

import type { Axis, Figures, PlanDocument, RequestJson, Run, RunRow, Size, Snapshot } from "./types";

const GIB = 2 ** 30;
const NAMES: Record<string, string> = {
  encode: "Encode",
  sample_low: "First pass",
  upscale: "Upscale",
  sample_high: "Second pass",
  decode: "Decode",
};
const LIMITS: Record<string, string> = {
  compute: "the card's speed",
  link: "the link to the card",
  disk: "the disk",
};

/** Name of a phase. With one pass there is no second. */
export function phaseName(phase: string, phases: Iterable<string> = ["sample_low"]): string {
  if (phase === "sample_high" && ![...phases].includes("sample_low")) return "Sample";
  return NAMES[phase] ?? phase;
}

export function gib(bytes: number | null | undefined, digits = 1): string {
  return bytes == null ? "unknown" : `${(bytes / GIB).toFixed(digits)} GiB`;
}

/** A duration in words, for sentences. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return "unknown";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

/** A duration for a column. */
export function clock(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return seconds < 10 ? `${seconds.toFixed(1)} s` : `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}:${pad(whole % 60)}`;
  return `${Math.floor(whole / 3600)}:${pad(Math.floor((whole % 3600) / 60))}:${pad(whole % 60)}`;
}

export function sizeText(size: Partial<Size> | undefined): string {
  if (!size?.width || !size.height) return "";
  const length = size.seconds == null ? "" : ` · ${size.seconds.toFixed(1)} s`;
  return `${size.width} × ${size.height}${length}`;
}

export function machineText(machine: Snapshot | null | undefined): string {
  if (!machine) return "";
  const card = machine.device_name || machine.card || (machine.vram_total_bytes ? "" : "no GPU");
  const vram = machine.vram_total_bytes ? `${gib(machine.vram_total_bytes, 0)} VRAM` : "";
  const ram = machine.ram_total_bytes ? `${gib(machine.ram_total_bytes, 0)} RAM` : "";
  return [card, vram, ram].filter(Boolean).join(" · ");
}

function passesText(request: RequestJson | undefined): string {
  const passes = request?.passes?.length;
  return [request?.quality, passes === 2 ? "two passes" : passes === 1 ? "one pass" : ""]
    .filter(Boolean)
    .join(", ");
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
  const spread = range && `Between ${duration(range[0])} and ${duration(range[1])}`;
  const limit = longest(plan)?.limited_by;
  const used = (["vram", "ram"] as Axis[])
    .map((axis) => {
      const peak = peakOf(plan, axis);
      const free = freeBytes(plan.snapshot, axis);
      const of = free == null ? "" : `${trimmed(peak)} of ${gib(free)}`;
      return peak == null ? "" : `${of || gib(peak)} ${axis.toUpperCase()}`;
    })
    .filter(Boolean)
    .join(", ");
  const asked = [sizeText(plan.request), passesText(plan.request)].filter(Boolean).join(" · ");
  const limited = limit && `Limited by ${LIMITS[limit] ?? limit}`;
  const parts = [asked, spread, limited, used && `Peak ${used}`];
  return {
    tone: "ok",
    head: `Fits. About ${duration(plan.total_seconds)}`,
    detail: parts.filter(Boolean).join(". ") + ".",
  };
}

function refusal(plan: PlanDocument): Verdict {
  const short = plan.short ?? [];
  const first = short[0];
  if (!first) return { tone: "bad", head: "Does not fit", detail: plan.message ?? "" };
  const axes = [...new Set(short.map((item) => item.axis.toUpperCase()))];
  const other = axes.includes("RAM") ? "VRAM" : "RAM";
  const enough = axes.length === 1 && first.axis !== "disk" ? ` ${other} would be enough.` : "";
  const detail = short
    .map(
      (item) =>
        `${phaseName(item.phase)} of ${sizeText(plan.request)} needs ${gib(item.need_bytes)} of ` +
        `${item.axis.toUpperCase()}; ${gib(item.have_bytes)} is usable.`,
    )
    .join(" ");
  const worst = axes.length > 1 ? axes.join(" and ") + " are" : `${axes[0]} is`;
  return {
    tone: "bad",
    head: `Does not fit: ${worst} short by ${gib(first.shortfall_bytes)}`,
    detail: detail + enough,
  };
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

function against(what: string, value: number | null, more: string, less: string): string {
  if (value == null) return "";
  const size = Math.abs(Math.round(value));
  return size === 0 ? `${what} as forecast` : `${what} ${size} % ${value > 0 ? more : less}`;
}

/** How the phases that were measured differ from their forecasts. */
export function differences(run: Run): string[] {
  const lines: string[] = [];
  for (const [phase, { forecast, measured }] of Object.entries(run.phases)) {
    if (!forecast || !measured) continue;
    const parts = [
      against("took", percent(measured.seconds, forecast.seconds), "longer", "less time"),
      against("VRAM", percent(measured.vram_peak_bytes, forecast.vram_peak_bytes), "more", "less"),
      against("RAM", percent(measured.ram_peak_bytes, forecast.ram_peak_bytes), "more", "less"),
    ].filter(Boolean);
    if (parts.length) lines.push(`${phaseName(phase, Object.keys(run.phases))}: ${parts.join(", ")}.`);
  }
  return lines;
}

export function runHead(run: Run): Verdict {
  const took = sum(Object.values(run.phases).map((phase) => phase.measured?.seconds));
  const detail = sizeText(run.request);
  if (run.status === "failed") {
    const name = run.error?.error ? `${run.error.error}: ` : "";
    const message = named(run.error?.message ?? "no reason given");
    return { tone: "bad", head: "Failed", detail: name + message };
  }
  if (run.status === "cancelled") return { tone: "ok", head: "Stopped", detail };
  return { tone: "ok", head: took == null ? "Done" : `Took ${duration(took)}`, detail };
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
  const tail = measured?.[key] == null ? "" : `, measured ${gib(measured[key], 2)}`;
  return `${name}, ${axis.toUpperCase()}: forecast ${gib(forecast[key], 2)}${tail}`;
}

function trimmed(bytes: number | null): string {
  return bytes == null ? "?" : (bytes / GIB).toFixed(1);
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
