import { expect, test } from "vitest";
import { clock, differences, duration, marginBytes, phaseName, reasonGroups, reasonText, rowDifference, runHead, secondsLeft,
  signed, verdict } from "../src/words";
import { GIB, PLAN, REFUSAL, RUN } from "./fixtures";

test("durations read like speech and never show 60 seconds", () => {
  expect(duration(4.26)).toBe("4.3 s");
  expect(duration(59.7)).toBe("1 min 00 s");
  expect(duration(3599.6)).toBe("1 h 00 min");
  expect(duration(7322)).toBe("2 h 02 min");
  expect(duration(null)).toBe("unknown");
  expect(clock(125.4)).toBe("2:05");
  expect(clock(undefined)).toBe("–");
});

test("a plan that fits says time, range, the limit of its longest phase and both peaks", () => {
  const { tone, head, detail } = verdict(PLAN);
  expect(tone).toBe("ok");
  expect(head).toBe("Fits. About 11 min 00 s");
  expect(detail).toContain("Between 10 min 00 s and 12 min 00 s");
  expect(detail).toContain("Limited by the disk");
  expect(detail).toContain("6.0 of 7.4 GiB VRAM, 12.0 of 13.0 GiB RAM");
});

test("a refusal names the memory that is short and the one that would do", () => {
  const { tone, head, detail } = verdict(REFUSAL);
  expect(tone).toBe("bad");
  expect(head).toBe("Does not fit: RAM is short by 2.5 GiB");
  expect(detail).toContain("needs 15.0 GiB of RAM; 12.5 GiB is usable. VRAM would be enough.");
});

test("with one pass sampling is not called second", () => {
  expect(phaseName("sample_high", ["encode", "sample_high"])).toBe("Sample");
  expect(phaseName("sample_high", ["sample_low", "sample_high"])).toBe("Second pass");
});

test("the margin of each axis is read from the plan", () => {
  expect(marginBytes(PLAN, "vram")).toBe(0.25 * GIB);
  expect(marginBytes(PLAN, "ram")).toBe(0.5 * GIB);
  expect(marginBytes({ reasons: ["VRAM: 512 MiB free, 128 MiB margin kept"] }, "vram")).toBe(2 ** 27);
  expect(marginBytes({}, "ram")).toBe(0);
});

test("reasons use the bars' names", () => {
  expect(reasonText("sample_low 672x384: limited by disk")).toBe("First pass 672 × 384: limited by disk");
});

test("reasons are grouped by pass", () => {
  const plan = { what_if: ["2 GiB more VRAM: nothing"], reasons: ["VRAM: 1 GiB free",
    "sample_low 6x4: a of b", "decode: tiles", "sample_low 6x4: limited: by disk"] };
  expect(reasonGroups(plan)).toEqual([
    { head: "", lines: ["2 GiB more VRAM: nothing", "VRAM: 1 GiB free"] },
    { head: "First pass 6 × 4", lines: ["A of b", "Limited: by disk"] },
    { head: "Decode", lines: ["Tiles"] },
  ]);
});

test("differences are told in words, both ways, and zero is as forecast", () => {
  const phases = {
    sample_low: { forecast: { seconds: 100, vram_peak_bytes: 100, ram_peak_bytes: null },
      measured: { seconds: 90, vram_peak_bytes: 104, ram_peak_bytes: 7 } },
    decode: { forecast: { seconds: 10 }, measured: { seconds: 10.01 } },
    encode: { forecast: { seconds: 1 } },
  };
  expect(differences({ ...RUN, phases })).toEqual([
    "First pass: took 10 % less time, VRAM 4 % more.",
    "Decode: took as forecast.",
  ]);
});

test("a failed run shows its error's type and sentence", () => {
  const error = { error: "MeasuredOverrun", message: "phase sample_high: VRAM 9 of 8" };
  expect(runHead({ ...RUN, status: "failed", error })).toMatchObject({
    tone: "bad", detail: "MeasuredOverrun: second pass: VRAM 9 of 8" });
  expect(runHead({ ...RUN, status: "done", phases: { decode: { measured: { seconds: 61 } } } }).head)
    .toBe("Took 1 min 01 s");
});

test("time left counts whole phases to come and the steps left of this one", () => {
  const phases = {
    sample_low: { measured: { seconds: 1 } },
    sample_high: { progress: { step: 2, steps: 4 } },
  };
  expect(secondsLeft({ ...RUN, phases })).toBeCloseTo(490 / 2 + 50);
  expect(secondsLeft({ ...RUN, plan: {}, phases: {} })).toBeNull();
});

test("only whole runs are compared with their forecast", () => {
  const row = { run_id: "a", started_unix_seconds: 0, request: {}, forecast_seconds: 1, measured_seconds: 1,
    forecast_vram_peak_bytes: 100, measured_vram_peak_bytes: 96, forecast_ram_peak_bytes: null,
    measured_ram_peak_bytes: null };
  expect(rowDifference({ ...row, status: "done" })).toBe("−4 %");
  expect(rowDifference({ ...row, status: "failed" })).toBe("–");
});

test("signs are real minus signs", () => {
  expect(signed(-2.4)).toBe("−2 %");
  expect(signed(0.3)).toBe("0 %");
  expect(signed(null)).toBe("–");
});

test("a plan without times says so", () => {
  expect(verdict({ ...PLAN, total_seconds: null, seconds_range: null }).head).toBe(
    "Fits. The time is unknown here");
  expect(verdict({ ...PLAN, total_seconds: null }).detail).not.toContain("Limited");
});
