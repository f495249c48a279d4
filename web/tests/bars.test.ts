import { expect, test } from "vitest";
import { planRows, runRows } from "../src/bars";
import type { Bar, BarRow } from "../src/bars";
import { GIB, PLAN, REFUSAL, RUN } from "./fixtures";

const bar = (rows: BarRow[], phase: string, axis: string): Bar =>
  rows.find((row) => row.phase === phase)!.bars.find((one) => one.axis === axis)!;

test("phases stand in the order they run, whatever order they come in", () => {
  expect(planRows(PLAN).map((row) => row.name)).toEqual(["First pass", "Second pass", "Decode"]);
});

test("bars share one scale an axis and the capacity line is free memory", () => {
  const rows = planRows(PLAN);
  const high = bar(rows, "sample_high", "vram");
  expect(high.capacity! / high.used).toBeCloseTo(7.4 / 6);
  expect(high.margin / high.used).toBeCloseTo(0.25 / 6);
  expect(bar(rows, "sample_low", "vram").used / high.used).toBeCloseTo(4 / 6);
  expect(high.excessFrom).toBeNull();
});

test("a bar of a refusal passes the line and is marked", () => {
  const rows = planRows(REFUSAL);
  expect(rows).toHaveLength(1);
  expect(rows[0]!.bars.map((one) => one.axis)).toEqual(["ram"]);
  const short = rows[0]!.bars[0]!;
  expect(short.used).toBeGreaterThan(short.capacity!);
  expect(short.excessFrom! / short.used).toBeCloseTo(12.5 / 15);
  expect(short.used).toBeLessThanOrEqual(100);
});

test("need over what the margin leaves is marked although it is below the line", () => {
  const short = [{ ...REFUSAL.short![0]!, need_bytes: 12.8 * GIB }];
  const bar = planRows({ ...REFUSAL, short })[0]!.bars[0]!;
  expect(bar.excessFrom).toBeLessThan(bar.used);
  expect(bar.used).toBeLessThan(bar.capacity!);
});

test("measured peaks sit on the forecast bars of their phase", () => {
  const phases = { sample_high: { measured: { seconds: 480, vram_peak_bytes: 5 * GIB } } };
  const rows = runRows({ ...RUN, phases });
  const high = bar(rows, "sample_high", "vram");
  expect(high.measured! / high.used).toBeCloseTo(5 / 6);
  expect(high.label).toContain("measured 5.00 GiB");
  expect(bar(rows, "sample_high", "ram").measured).toBeNull();
  expect(bar(rows, "decode", "vram").measured).toBeNull();
  expect(rows.find((row) => row.phase === "sample_high")!.measuredSeconds).toBe(480);
});

test("unknown capacity draws no line; a run without plan still shows what it measured", () => {
  const rows = runRows({ ...RUN, plan: {}, phases: { decode: { measured: { vram_peak_bytes: GIB } } } });
  const only = bar(rows, "decode", "vram");
  expect(only.capacity).toBeNull();
  expect(only.used).toBe(0);
  expect(only.measured).toBeGreaterThan(50);
});
