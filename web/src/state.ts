/** What the panel knows, and how answers and events change it. Pure; the clock comes in. */

import type {
  Cell, PlanDocument, Prompt, Run, RunEvent, RunRow, ServerState, Snapshot,
} from "./types";

const MAX_POINTS = 600;
const MAX_RECENT = 200;

export interface WhatIf {
  card: string;
  vramGib: number;
  ramGib: number;
  plan: PlanDocument | null;
  error: string;
  busy: boolean;
  /** Whether the section is unfolded: only then is anything asked for it. */
  open: boolean;
}

/** Lines of the capacity map by RAM in GiB, as far as they have come. */
export interface CapacityMap {
  vramGib: number[];
  lines: Record<number, Cell[]>;
  error: string;
}

export interface PanelState {
  machine: Snapshot | null;
  notices: string[];
  prompt: Prompt | null;
  plan: PlanDocument | null;
  planBusy: boolean;
  planError: string;
  active: Run | null;
  /** Events of the active run: an answer of the server may be older than some of them. */
  recent: { event: RunEvent; unixSeconds: number }[];
  last: Run | null;
  runs: RunRow[];
  serverError: string;
  whatIf: WhatIf;
  map: CapacityMap;
}

export type Action =
  | { type: "server"; state: ServerState }
  | { type: "server-error"; message: string }
  | { type: "forecast-begins"; prompt: Prompt }
  | { type: "no-sampler" }
  | { type: "forecast"; plan: PlanDocument }
  | { type: "forecast-error"; message: string }
  | { type: "what-if"; change: Partial<WhatIf> }
  | { type: "map"; map: Partial<CapacityMap> }
  | { type: "runs"; runs: RunRow[] }
  | { type: "event"; event: RunEvent; unixSeconds: number }
  | { type: "run"; run: Run };

export const EMPTY: PanelState = {
  machine: null,
  notices: [],
  prompt: null,
  plan: null,
  planBusy: false,
  planError: "",
  active: null,
  recent: [],
  last: null,
  runs: [],
  serverError: "",
  whatIf: { card: "", vramGib: 8, ramGib: 16, plan: null, error: "", busy: false, open: false },
  map: { vramGib: [], lines: {}, error: "" },
};

export function reduce(state: PanelState, action: Action): PanelState {
  switch (action.type) {
    case "server": {
      const { machine, last, notices } = action.state;
      const recent = state.recent.filter(({ event }) => event.run_id === action.state.active?.run_id);
      const active = recent.reduce<Run | null>(
        (run, { event, unixSeconds }) => takeEvent(run, event, unixSeconds), action.state.active);
      return { ...state, machine, notices, active, recent, last: last ?? state.last, serverError: "" };
    }
    case "server-error":
      return { ...state, serverError: action.message };
    case "forecast-begins":
      return { ...state, prompt: action.prompt, planBusy: true };
    case "no-sampler":
      return { ...state, prompt: null, plan: null, planBusy: false, planError: "" };
    case "forecast":
      return { ...state, plan: action.plan, planBusy: false, planError: "" };
    case "forecast-error":
      return { ...state, plan: null, planBusy: false, planError: action.message };
    case "what-if":
      return { ...state, whatIf: { ...state.whatIf, ...action.change } };
    case "map":
      return { ...state, map: { ...state.map, ...action.map } };
    case "runs":
      return { ...state, runs: action.runs };
    case "event": {
      const { event, unixSeconds } = action;
      const recent = [...state.recent, { event, unixSeconds }].slice(-MAX_RECENT);
      return { ...state, recent, active: takeEvent(state.active, event, unixSeconds) };
    }
    case "run": {
      const ended = action.run.status !== "running";
      const mine = state.active?.run_id === action.run.run_id;
      if (!ended) return { ...state, active: action.run };
      return { ...state, last: action.run, active: mine ? null : state.active };
    }
  }
}

/** A run with one event more. Events that are older than what is known change nothing. */
export function takeEvent(active: Run | null, event: RunEvent, unixSeconds: number): Run {
  const run = active?.run_id === event.run_id ? active : freshRun(event.run_id, unixSeconds);
  if (event.sequence <= run.sequence) return run;
  const next: Run = { ...run, status: "running", sequence: event.sequence };
  if (event.kind === "notice") {
    if (event.message) next.notices = [...run.notices, event.message];
    return next;
  }
  const phase = run.phases[event.phase] ?? {};
  next.phases = { ...run.phases, [event.phase]: { ...phase, [event.kind]: event } };
  if (event.kind === "progress") {
    const elapsed = Math.max(0, unixSeconds - run.started_unix_seconds);
    const last = run.curve.at(-1)?.[0] ?? 0;
    const point: Run["curve"][number] = [
      Math.max(elapsed, last),
      event.phase,
      event.vram_bytes ?? null,
      event.ram_bytes ?? null,
      event.vram_other_bytes ?? null,
      event.vram_evictable_bytes ?? null,
      event.ram_other_bytes ?? null,
      event.ram_evictable_bytes ?? null,
    ];
    const curve = [...run.curve, point];
    next.curve = curve.length > MAX_POINTS ? curve.filter((_, at) => at % 2 === 0) : curve;
  }
  return next;
}

function freshRun(run_id: string, unixSeconds: number): Run {
  return {
    run_id,
    started_unix_seconds: unixSeconds,
    status: "running",
    request: {},
    plan: {},
    phases: {},
    curve: [],
    notices: [],
    report: {},
    error: null,
    sequence: 0,
  };
}

/** The report that may be shared: no curve; the server put no prompt and no path into it. */
export function shareable(run: Run): string {
  const { curve: _curve, ...rest } = run;
  return JSON.stringify(rest, null, 2);
}
