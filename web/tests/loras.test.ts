import { afterEach, expect, test } from "vitest";
import { slim } from "../src/graph";
import { loraText } from "../src/loras";
import { setLanguage, translated } from "../src/texts";
import { GIB, PLAN } from "./fixtures";

const LORA = { mode: "merged", online_seconds: 40, merge_seconds: 3.04, host_bytes: 0.62 * GIB };
const ASKED = { node_id: "2", unknown: [], notices: [], loras: 2 };

afterEach(() => setLanguage("en"));

test("what LoRAs of the graph add is said before the run", () => {
  expect(loraText({ ...PLAN, lora: LORA, asked: ASKED })).toBe(
    "LoRAs: 2, merged while the blocks are read. 3.0 s once, 0.6 GiB of RAM.");
  expect(loraText({ ...PLAN, lora: { ...LORA, mode: "online" }, asked: ASKED })).toBe(
    "LoRAs: 2, beside the weights in every step. 40 s in all, 0.6 GiB of RAM.");
  expect(loraText({ ...PLAN, total_seconds: null, lora: LORA, asked: ASKED })).not.toContain(" s ");
});

test("without LoRAs, or with none that acts, nothing is said", () => {
  expect(loraText(PLAN)).toBeNull();
  expect(loraText({ ...PLAN, lora: LORA, asked: { ...ASKED, loras: 0 } })).toBeNull();
  expect(loraText({ ...PLAN, asked: ASKED })).toBeNull();
});

test("in Chinese too, with the engine's own sentences", () => {
  setLanguage("zh");
  expect(loraText({ ...PLAN, lora: LORA, asked: ASKED })).toMatch(/2 个.*3\.0 .*0\.6 GiB/);
  for (const sentence of [
    "LoRA merged: online about 40 s in all steps, merging 3.0 s",
    "LoRA online: online about 2 s in all steps, merging 3.0 s",
    "1 of 2 LoRAs are not known here; a rank of 32 is assumed for each.",
  ]) expect(translated(sentence)).toMatch(/LoRA.*[\u4e00-\u9fff]/);
});

test("a forecast is asked with each LoRA's file, strength and link", () => {
  const lora = { class_type: "LowpeakLoadLora",
    inputs: { model: ["1", 0], lora: "styles/grain.safetensors", strength: 0.8, allow_partial: false } };
  expect(slim({ "2": lora })["2"]).toEqual(lora);
});
