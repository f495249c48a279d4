import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Host } from "../src/host";
import { Panel } from "../src/panel";
import type { PlanDocument, Prompt, RunEvent } from "../src/types";
import { PLAN, RUN } from "./fixtures";

const GRAPH: Prompt = { "2": { class_type: "LowpeakSample", inputs: { width: 512 } } };

/** A host whose graph is `prompts`; every forecast waits until it is answered. */
class FakeHost {
  api = new EventTarget();
  graph: Prompt = GRAPH;
  asked: ((plan: PlanDocument | Error) => void)[] = [];
  states = 0;
  language: unknown = "en";
  lines: (number | undefined)[] = [];
  locale = () => this.language;
  unixSeconds = () => 1003;
  cells = async (_: Prompt, vramGib: number[], on: { ram_gib?: number }) => {
    this.lines.push(on.ram_gib);
    return vramGib.map((gib) => ({ vram_bytes: gib, fits: true, total_seconds: 1, limited_by: null, short: [] }));
  };
  signature = () => JSON.stringify(this.graph);
  prompt = async () => this.graph;
  runs = async () => [];
  state = async () => {
    this.states++;
    return { version: 1, machine: {}, checkpoints: [], active: null, last: RUN, notices: [] };
  };
  forecast = () =>
    new Promise<PlanDocument>((done, fail) =>
      this.asked.push((plan) => (plan instanceof Error ? fail(plan) : done(plan))),
    );
}

let host: FakeHost;
let panel: Panel;
const changed = vi.fn();
const plan = (seconds: number): PlanDocument => ({ ...PLAN, total_seconds: seconds });

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { hidden: false });
  host = new FakeHost();
  panel = new Panel(host as unknown as Host);
  panel.open(changed);
});

afterEach(() => {
  panel.close(changed);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("quick changes are forecast once, when they rest", async () => {
  for (const width of [1, 2, 3]) {
    host.graph = { "2": { class_type: "LowpeakSample", inputs: { width } } };
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(3000);
  expect(host.asked).toHaveLength(1);
});

test("an answer that was overtaken is dropped", async () => {
  await vi.advanceTimersByTimeAsync(400);
  void panel.forecast();
  await vi.advanceTimersByTimeAsync(0);
  host.asked[1]!(plan(2));
  await vi.advanceTimersByTimeAsync(0);
  host.asked[0]!(plan(1));
  await vi.advanceTimersByTimeAsync(0);
  expect(panel.state.plan?.total_seconds).toBe(2);
});

test("a graph that was empty for a moment is looked at again", async () => {
  const full = host.graph;
  host.graph = {};
  await vi.advanceTimersByTimeAsync(400); // seen full when opened, empty when asked
  expect(panel.state.prompt).toBeNull();
  host.graph = full;
  await vi.advanceTimersByTimeAsync(1200);
  expect(host.asked).toHaveLength(1);
});

test("nothing is asked while the tab is closed", async () => {
  await vi.advanceTimersByTimeAsync(400);
  panel.close(changed);
  host.graph = { "2": { class_type: "LowpeakSample", inputs: { width: 9 } } };
  await vi.advanceTimersByTimeAsync(5000);
  expect(host.asked).toHaveLength(1);
});

test("a failure is shown and a later answer takes its place", async () => {
  await vi.advanceTimersByTimeAsync(400);
  host.asked[0]!(new Error("no"));
  await vi.advanceTimersByTimeAsync(0);
  expect(panel.state.planError).toBe("no");
  void panel.forecast();
  await vi.advanceTimersByTimeAsync(0);
  host.asked[1]!(plan(3));
  await vi.advanceTimersByTimeAsync(0);
  expect(panel.state).toMatchObject({ planError: "", plan: { total_seconds: 3 } });
});

test("events reach the state although the tab is closed; the end fetches the result", async () => {
  panel.close(changed);
  await vi.advanceTimersByTimeAsync(0);
  const detail: RunEvent = { run_id: "b", sequence: 1, kind: "progress", phase: "decode" };
  const before = host.states;
  host.api.dispatchEvent(Object.assign(new Event("lowpeak.run"), { detail }));
  expect(panel.state.active?.phases).toHaveProperty("decode");
  host.api.dispatchEvent(new Event("execution_success"));
  await vi.advanceTimersByTimeAsync(1000);
  expect(host.states).toBe(before + 1);
  expect(panel.state).toMatchObject({ active: null, last: { run_id: "a" } });
});

test("what if that was opened before the graph was known is asked when it is", async () => {
  const full = host.graph;
  host.graph = {};
  await vi.advanceTimersByTimeAsync(400);
  panel.openWhatIf(true);
  await vi.advanceTimersByTimeAsync(0);
  expect(host.asked).toHaveLength(0);
  host.graph = full;
  await vi.advanceTimersByTimeAsync(1200);
  host.asked[0]!(plan(1));
  await vi.advanceTimersByTimeAsync(0);
  host.asked[1]!(plan(2));
  await vi.advanceTimersByTimeAsync(0);
  expect(panel.state.whatIf).toMatchObject({ busy: false, plan: { total_seconds: 2 } });
});

test("the capacity map comes line by line, and stops when its section is folded", async () => {
  await vi.advanceTimersByTimeAsync(400);
  host.asked[0]!(plan(1));
  await vi.advanceTimersByTimeAsync(0);
  expect(host.lines).toEqual([]); // not before somebody looks
  const cells = host.cells;
  host.cells = (...given) => {
    const answer = cells(...given);
    if (host.lines.length === 2) panel.openWhatIf(false);
    return answer;
  };
  panel.openWhatIf(true);
  await vi.advanceTimersByTimeAsync(0);
  expect(host.lines).toEqual([8, 12]);
  expect(Object.keys(panel.state.map.lines)).toEqual(["8"]);
  host.cells = cells;
  panel.openWhatIf(true);
  await vi.advanceTimersByTimeAsync(0);
  expect(Object.keys(panel.state.map.lines)).toHaveLength(6);
  panel.whatIf({ card: "rtx-3060", vramGib: 12 });
  await vi.advanceTimersByTimeAsync(400);
  expect(panel.state.map.vramGib.at(-1)).toBe(12); // that card has no more
});

test("a new language of ComfyUI is told once", async () => {
  panel.onLanguage = vi.fn(() => panel.followLanguage());
  host.language = "zh";
  await vi.advanceTimersByTimeAsync(3000);
  expect(panel.onLanguage).toHaveBeenCalledTimes(1);
  host.language = "en";
  await vi.advanceTimersByTimeAsync(800);
});

test("a refresh that was overtaken is dropped", async () => {
  await vi.advanceTimersByTimeAsync(0);
  const answers: ((state: unknown) => void)[] = [];
  host.state = () => new Promise((done) => answers.push(done as (state: unknown) => void));
  const server = (active: unknown) =>
    ({ version: 1, machine: {}, checkpoints: [], active, last: RUN, notices: [] });
  void panel.refresh();
  void panel.refresh();
  await vi.advanceTimersByTimeAsync(0);
  answers[1]!(server(null));
  await vi.advanceTimersByTimeAsync(0);
  answers[0]!(server({ ...RUN, run_id: "over" }));
  await vi.advanceTimersByTimeAsync(0);
  expect(panel.state.active).toBeNull();
});
