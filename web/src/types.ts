/** JSON of the /lowpeak routes and of the `lowpeak.run` event. Bytes and seconds; absent or null is unknown. */

export const PHASES = ["encode", "sample_low", "upscale", "sample_high", "decode"] as const;
export type Phase = (typeof PHASES)[number];
export type Axis = "vram" | "ram";
type Maybe<T> = T | null | undefined;

export interface Placement {
  keys: string;
  residual: string;
  resident_blocks: number;
  pinned_blocks: number;
  disk_blocks: number;
  transfer_slots: number;
}

export interface Figures {
  seconds?: Maybe<number>;
  vram_peak_bytes?: Maybe<number>;
  ram_peak_bytes?: Maybe<number>;
}

export interface PhaseForecast extends Figures {
  phase: string;
  steps?: Maybe<number>;
  limited_by?: Maybe<string>;
  placement?: Maybe<Placement>;
}

export interface Size {
  width: number;
  height: number;
  frames?: Maybe<number>;
  seconds: number;
}

export interface RequestJson extends Partial<Size> {
  quality?: string;
  two_pass?: boolean | null;
  passes?: { phase: string; steps: number }[];
}

export interface Snapshot {
  system?: string;
  device_name?: string;
  card?: Maybe<string>;
  vram_total_bytes?: Maybe<number>;
  vram_free_bytes?: Maybe<number>;
  ram_total_bytes?: Maybe<number>;
  ram_available_bytes?: Maybe<number>;
  notes?: string[];
}

export interface Short {
  axis: string;
  phase: string;
  need_bytes: number;
  have_bytes: number;
  shortfall_bytes: number;
}

export interface PlanDocument {
  request?: RequestJson;
  snapshot?: Snapshot;
  fits?: boolean;
  message?: string;
  phases?: PhaseForecast[];
  total_seconds?: Maybe<number>;
  seconds_range?: Maybe<[number, number]>;
  reasons?: string[];
  notes?: string[];
  what_if?: string[];
  changes_arithmetic?: boolean;
  short?: Short[];
  fits_instead?: Size[];
  asked?: { node_id: string | null; unknown: string[]; notices: string[]; loras?: number };
  lora?: { mode: string; online_seconds: number; merge_seconds: number; host_bytes: number };
}

export interface RunEvent extends Figures {
  run_id: string;
  node_id?: string;
  sequence: number;
  kind: "forecast" | "measured" | "progress" | "notice";
  phase: string;
  message?: string;
  step?: number;
  steps?: number;
  vram_bytes?: number;
  ram_bytes?: number;
  vram_other_bytes?: number;
  vram_evictable_bytes?: number;
  ram_other_bytes?: number;
  ram_evictable_bytes?: number;
}

/** What is ours on both axes; then, where it is known, what is not. Bytes. */
export type CurvePoint = [
  seconds: number, phase: string, vram: Maybe<number>, ram: Maybe<number>,
  vramOther?: Maybe<number>, vramEvictable?: Maybe<number>,
  ramOther?: Maybe<number>, ramEvictable?: Maybe<number>,
];

export interface RunPhase {
  forecast?: Figures & { steps?: Maybe<number> };
  measured?: Figures;
  progress?: { step?: Maybe<number>; steps?: Maybe<number> };
}

export interface Run {
  run_id: string;
  started_unix_seconds: number;
  status: "running" | "done" | "failed" | "cancelled";
  request: RequestJson;
  plan: PlanDocument;
  phases: Record<string, RunPhase>;
  curve: CurvePoint[];
  notices: string[];
  report: Record<string, unknown>;
  error: Maybe<{ error?: string; message?: string }>;
  sequence: number;
}

export interface RunRow {
  run_id: string;
  started_unix_seconds: number;
  status: string;
  request: RequestJson;
  forecast_seconds: Maybe<number>;
  measured_seconds: Maybe<number>;
  forecast_vram_peak_bytes: Maybe<number>;
  measured_vram_peak_bytes: Maybe<number>;
  forecast_ram_peak_bytes: Maybe<number>;
  measured_ram_peak_bytes: Maybe<number>;
}

export interface ServerState {
  version: number;
  machine: Snapshot;
  checkpoints: string[];
  active: Run | null;
  last: Run | null;
  notices: string[];
}

/** A cell of the capacity map. */
export interface Cell {
  vram_bytes: number;
  fits: boolean;
  total_seconds: Maybe<number>;
  limited_by: Maybe<string>;
  short: string[];
}

export type PromptNode = { class_type: string; inputs: Record<string, unknown> };
export type Prompt = Record<string, PromptNode>;
