import type { PlanDocument, Run } from "../src/types";

export const GIB = 2 ** 30;

export const PLAN: PlanDocument = {
  request: {
    width: 1344, height: 768, seconds: 10.125, frames: 243, quality: "light", two_pass: null,
    passes: [{ phase: "sample_low", steps: 8 }, { phase: "sample_high", steps: 3 }],
  },
  snapshot: { device_name: "RTX 4060", vram_total_bytes: 8 * GIB, vram_free_bytes: 7.4 * GIB,
    ram_total_bytes: 16 * GIB, ram_available_bytes: 13 * GIB },
  fits: true,
  phases: [
    { phase: "decode", vram_peak_bytes: 3 * GIB, ram_peak_bytes: 4 * GIB, seconds: 50 },
    { phase: "sample_high", vram_peak_bytes: 6 * GIB, ram_peak_bytes: 12 * GIB, seconds: 490,
      limited_by: "disk" },
    { phase: "sample_low", vram_peak_bytes: 4 * GIB, ram_peak_bytes: 11 * GIB, seconds: 120 },
  ],
  total_seconds: 660,
  seconds_range: [600, 720],
  reasons: ["VRAM: 7.40 GiB free, 0.25 GiB margin kept", "RAM: 13.00 GiB available, 0.50 GiB margin kept",
    "sample_low 672x384: 11 of 50 blocks resident"],
};

export const REFUSAL: PlanDocument = {
  ...PLAN, phases: undefined, fits: false, message: "no",
  short: [{ axis: "ram", phase: "sample_high", need_bytes: 15 * GIB, have_bytes: 12.5 * GIB,
    shortfall_bytes: 2.5 * GIB }],
  fits_instead: [{ width: 960, height: 544, seconds: 5.17, frames: 124 }],
};

export const RUN: Run = {
  run_id: "a", started_unix_seconds: 1000, status: "running", request: PLAN.request!, plan: PLAN,
  phases: {}, curve: [], notices: [], report: {}, error: null, sequence: 0,
};
