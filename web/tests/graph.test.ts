import { expect, test } from "vitest";
import { nearest } from "../src/cards";
import { hasSampler, settingsFor, slim } from "../src/graph";
import type { Prompt } from "../src/types";

const SIZE = { width: 960, height: 544, seconds: 5.1667, frames: 124 };
const GRAPH: Prompt = {
  "1": { class_type: "LowpeakKeyframes", inputs: { width: 1344, height: 768, seconds: 9, prompt: "a" } },
  "2": { class_type: "LowpeakSample", inputs: { conditioning: ["1", 0], width: 1344, height: 768,
    seconds: 9 } },
  "3": { class_type: "ImageScale", inputs: { width: 1344, height: 768 } },
};

test("a size that fits goes to the sampler and to keyframes of the same canvas, not to others", () => {
  const found = settingsFor(GRAPH, "2", SIZE);
  expect(new Set(found.map((item) => item.node))).toEqual(new Set(["1", "2"]));
  expect(found).toContainEqual({ node: "2", widget: "seconds", value: 5.2 });
  expect(found).toContainEqual({ node: "1", widget: "width", value: 960 });
});

test("a connected plan or latent is where the size is set", () => {
  const planned: Prompt = {
    "2": { class_type: "LowpeakSample", inputs: { plan: ["5", 0], width: 512, height: 512, seconds: 1 } },
    "5": { class_type: "LowpeakPlan", inputs: { width: 1344, height: 768, seconds: 9 } },
  };
  expect(settingsFor(planned, "2", SIZE).map((item) => item.node)).toEqual(["5", "5", "5"]);
  const latent: Prompt = {
    "2": { class_type: "LowpeakSample", inputs: { size_from: ["5", 0], width: 512, height: 512, seconds: 1 } },
    "5": { class_type: "EmptyMiniMaxH3LatentAV", inputs: { width: 1344, height: 768, length: 243 } },
  };
  expect(settingsFor(latent, "2", SIZE)).toContainEqual({ node: "5", widget: "length", value: 124 });
});

test("a linked number is set at its primitive, once for all who read it", () => {
  const graph: Prompt = {
    ...GRAPH,
    "1": { ...GRAPH["1"]!, inputs: { ...GRAPH["1"]!.inputs, width: ["7", 0] } },
    "2": { ...GRAPH["2"]!, inputs: { ...GRAPH["2"]!.inputs, width: ["7", 0] } },
    "7": { class_type: "PrimitiveInt", inputs: { value: 1344 } },
  };
  const set = settingsFor(graph, "2", SIZE).filter((item) => item.value === 960);
  expect(set).toEqual([{ node: "7", widget: "value", value: 960 }]);
});

test("a link in a circle or an unknown node ends without a setting", () => {
  const circle: Prompt = {
    "2": { class_type: "LowpeakSample", inputs: { width: ["3", 0], height: 768, seconds: 1 } },
    "3": { class_type: "PrimitiveInt", inputs: { value: ["3", 0] } },
  };
  expect(settingsFor(circle, "2", SIZE).map((item) => item.widget)).toEqual(["height", "seconds"]);
  expect(settingsFor(GRAPH, "9", SIZE)).toEqual([]);
  expect(settingsFor(GRAPH, null, SIZE)).toEqual([]);
});

test("no prompt text and no long text leaves the page for a forecast", () => {
  const sent = slim({ ...GRAPH, "4": { class_type: "X", inputs: { text: "secret", blob: "y".repeat(9999), n: 1 } } });
  expect(JSON.stringify(sent)).not.toMatch(/secret|yyy|"a"/);
  expect(sent["4"]!.inputs.n).toBe(1);
  expect(sent["2"]!.inputs).toEqual(GRAPH["2"]!.inputs);
});

test("a graph without our sampler asks for nothing", () => {
  expect(hasSampler(GRAPH)).toBe(true);
  expect(hasSampler({ "3": GRAPH["3"]! })).toBe(false);
});

test("sliders snap to the nearest amount", () => {
  expect(nearest([4, 8, 16], 7)).toBe(1);
  expect(nearest([4, 8, 16], 999)).toBe(2);
});
