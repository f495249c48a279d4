import { expect, test } from "vitest";
import { EMPTY, reduce, shareable, takeEvent } from "../src/state";
import type { RunEvent, ServerState } from "../src/types";
import { PLAN, RUN } from "./fixtures";

const event = (sequence: number, more: Partial<RunEvent>): RunEvent => ({
  run_id: "a", sequence, kind: "progress", phase: "sample_low", ...more });
const SERVER: ServerState = { version: 1, machine: { device_name: "x" }, checkpoints: [],
  active: RUN, last: null, notices: ["n"] };

test("what the server knows replaces what the page knew, but for a last run it lost", () => {
  const before = { ...EMPTY, last: { ...RUN, run_id: "old" }, serverError: "down" };
  const after = reduce(before, { type: "server", state: SERVER });
  expect(after.active).toBe(RUN);
  expect(after.last?.run_id).toBe("old");
  expect(after.serverError).toBe("");
});

test("progress adds a point to the curve; measured does not", () => {
  let run = takeEvent(RUN, event(1, { step: 1, steps: 8, vram_bytes: 5 }), 1003);
  expect(run.curve).toEqual([[3, "sample_low", 5, null, null, null, null, null]]);
  run = takeEvent(run, event(2, { kind: "measured", seconds: 4 }), 1004);
  expect(run.curve).toHaveLength(1);
  expect(run.phases.sample_low).toMatchObject({ progress: { step: 1 }, measured: { seconds: 4 } });
});

test("an event that was overtaken changes nothing", () => {
  const run = takeEvent(RUN, event(5, { step: 5, steps: 8 }), 1005);
  expect(takeEvent(run, event(4, { step: 4, steps: 8 }), 1006)).toBe(run);
});

test("an event of another run starts that run afresh", () => {
  const run = takeEvent(RUN, event(1, { run_id: "b", kind: "notice", message: "hm" }), 2000);
  expect(run).toMatchObject({ run_id: "b", started_unix_seconds: 2000, notices: ["hm"], phases: {} });
});

test("a clock that goes back does not bend the curve", () => {
  let run = takeEvent(RUN, event(1, {}), 1010);
  run = takeEvent(run, event(2, {}), 1004);
  expect(run.curve.map((point) => point[0])).toEqual([10, 10]);
});

test("the curve stays bounded", () => {
  let run = RUN;
  for (let at = 1; at <= 1500; at++) run = takeEvent(run, event(at, {}), 1000 + at);
  expect(run.curve.length).toBeLessThanOrEqual(600);
  expect(run.curve.at(-1)![0]).toBeGreaterThan(1490);
});

test("a refused forecast leaves no stale plan behind", () => {
  const before = { ...EMPTY, plan: PLAN, planBusy: true };
  expect(reduce(before, { type: "forecast-error", message: "no" })).toMatchObject({
    plan: null, planBusy: false, planError: "no" });
  expect(reduce(before, { type: "forecast", plan: PLAN }).planError).toBe("");
});

test("an ended run moves from now to last", () => {
  const before = { ...EMPTY, active: RUN };
  const after = reduce(before, { type: "run", run: { ...RUN, status: "done" } });
  expect(after.active).toBeNull();
  expect(after.last?.status).toBe("done");
});

test("the report to copy has no curve", () => {
  const report = JSON.parse(shareable({ ...RUN, curve: [[1, "x", 2, 3]] }));
  expect(report).not.toHaveProperty("curve");
  expect(report.run_id).toBe("a");
});

test("an answer that is older than the events since loses none of them", () => {
  let state = reduce(EMPTY, { type: "server", state: SERVER });
  for (const at of [1, 2, 3])
    state = reduce(state, { type: "event", event: event(at, { step: at, steps: 8 }), unixSeconds: 1000 + at });
  const older = { ...takeEvent(RUN, event(1, { step: 1, steps: 8 }), 1001), plan: PLAN };
  state = reduce(state, { type: "server", state: { ...SERVER, active: older } });
  expect(state.active).toMatchObject({ sequence: 3, plan: PLAN, phases: { sample_low: { progress: { step: 3 } } } });
  expect(state.active!.curve).toHaveLength(3);
  state = reduce(state, { type: "server", state: { ...SERVER, active: null } });
  expect(state).toMatchObject({ active: null, recent: [] });
});
