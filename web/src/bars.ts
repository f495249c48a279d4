/** Geometry of the forecast bars, in percent of the widest thing drawn. Pure. */

import { PHASES, type Axis, type Figures, type PlanDocument, type Run } from "./types";
import { barLabel, freeBytes, marginBytes, phaseName } from "./words";

export interface Bar {
  axis: Axis;
  used: number;
  margin: number;
  /** Where free memory ends; null when unknown. */
  capacity: number | null;
  measured: number | null;
  /** Where the part begins that is not there; null when all is. */
  excessFrom: number | null;
  label: string;
}

export interface BarRow {
  phase: string;
  name: string;
  seconds: number | null;
  measuredSeconds: number | null;
  bars: Bar[];
}

interface Source {
  phase: string;
  forecast: Figures;
  measured?: Figures;
}

/** Rows of a plan; of a refusal the phases that are short. */
export function planRows(plan: PlanDocument): BarRow[] {
  const phases: Source[] = plan.fits === false ? shortPhases(plan) : planned(plan);
  return rows(phases, plan);
}

/** Rows of a run: its plan's forecasts with what was measured. */
export function runRows(run: Run): BarRow[] {
  const found = new Map(planned(run.plan).map((item) => [item.phase, item]));
  for (const [phase, { forecast, measured }] of Object.entries(run.phases)) {
    const known = found.get(phase);
    if (forecast || measured || known)
      found.set(phase, { phase, forecast: { ...known?.forecast, ...forecast }, measured });
  }
  return rows([...found.values()], run.plan);
}

function planned(plan: PlanDocument): Source[] {
  return (plan.phases ?? []).map((item) => ({ phase: item.phase, forecast: item }));
}

function shortPhases(plan: PlanDocument): Source[] {
  const found = new Map<string, Source>();
  for (const item of plan.short ?? []) {
    const row = found.get(item.phase) ?? { phase: item.phase, forecast: {} };
    row.forecast = { ...row.forecast, [`${item.axis}_peak_bytes`]: item.need_bytes };
    found.set(item.phase, row);
  }
  return [...found.values()];
}

function rows(sources: Source[], plan: PlanDocument): BarRow[] {
  const order = (phase: string) => (PHASES as readonly string[]).indexOf(phase);
  const sorted = [...sources].sort((a, b) => order(a.phase) - order(b.phase));
  const names = sorted.map((item) => item.phase);
  const twoPass = plan.request?.two_pass === false ? names : [...names, ...passNames(plan)];
  return sorted.map((item) => {
    const name = phaseName(item.phase, twoPass);
    return {
      phase: item.phase,
      name,
      seconds: item.forecast.seconds ?? null,
      measuredSeconds: item.measured?.seconds ?? null,
      bars: (["vram", "ram"] as Axis[]).flatMap((axis) => bar(item, name, axis, sorted, plan)),
    };
  });
}

function passNames(plan: PlanDocument): string[] {
  return (plan.request?.passes ?? []).map((item) => item.phase);
}

function bar(item: Source, name: string, axis: Axis, all: Source[], plan: PlanDocument): Bar[] {
  const key = `${axis}_peak_bytes` as const;
  const peak = item.forecast[key];
  const measured = item.measured?.[key] ?? null;
  if (peak == null && measured == null) return [];
  const free = freeBytes(plan.snapshot, axis);
  const peaks = all.flatMap((one) => [one.forecast[key] ?? 0, one.measured?.[key] ?? 0]);
  const margin = marginBytes(plan, axis);
  const widest = Math.max(free ?? 0, ...peaks) * (free == null ? 1.15 : 1.02) || 1;
  const usable = free == null ? null : free - (plan.fits === false ? margin : 0);
  const share = (bytes: number) => (100 * bytes) / widest;
  return [
    {
      axis,
      used: share(peak ?? 0),
      margin: peak == null ? 0 : Math.min(share(margin), 100 - share(peak)),
      capacity: free == null ? null : share(free),
      measured: measured == null ? null : share(measured),
      excessFrom: usable != null && (peak ?? 0) > usable ? share(usable) : null,
      label: barLabel(name, axis, item.forecast, item.measured),
    },
  ];
}
