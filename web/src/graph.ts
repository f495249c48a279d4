/** What the panel reads from and writes to the graph on the canvas. Pure but for the types. */

import type { Prompt, PromptNode, Size } from "./types";

const MAX_TEXT = 200;
const SAMPLERS = ["LowpeakSample", "LowpeakRefine", "LowpeakPlan"];
const MAX_LINKS = 50;

export function hasSampler(prompt: Prompt): boolean {
  return Object.values(prompt).some((node) => SAMPLERS.includes(node.class_type));
}

/** The prompt without its long texts: a forecast needs none, and bodies are bounded. */
export function slim(prompt: Prompt): Prompt {
  const short = (value: unknown) =>
    typeof value === "string" && value.length > MAX_TEXT ? "" : value;
  return Object.fromEntries(
    Object.entries(prompt).map(([id, node]) => [
      id,
      {
        class_type: node.class_type,
        inputs: Object.fromEntries(
          Object.entries(node.inputs ?? {})
            .filter(([name]) => name !== "prompt" && name !== "text")
            .map(([name, value]) => [name, short(value)]),
        ),
      },
    ]),
  );
}

export interface Setting {
  node: string;
  widget: string;
  value: number;
}

/**
 * Which widgets to set so that the graph asks for `size`. The sampler (or the plan or latent it
 * takes its size from) and every Lowpeak or H3 node that had the same canvas: keyframes must agree.
 */
export function settingsFor(prompt: Prompt, nodeId: string | null, size: Size): Setting[] {
  const sampler = nodeId == null ? undefined : prompt[nodeId];
  if (!sampler || nodeId == null) return [];
  const source = sizeSource(prompt, nodeId, sampler);
  const old = prompt[source];
  if (!old) return [];
  const found: Setting[] = [];
  for (const [id, node] of Object.entries(prompt)) {
    const same = sameCanvas(prompt, node, old) && /Lowpeak|MiniMaxH3/.test(node.class_type);
    if (id !== source && !same) continue;
    add(found, prompt, id, "width", size.width);
    add(found, prompt, id, "height", size.height);
    add(found, prompt, id, "seconds", Math.round(size.seconds * 10) / 10);
    if (size.frames != null) add(found, prompt, id, "length", size.frames);
  }
  return found.filter(
    (item, at) => found.findIndex((o) => o.node === item.node && o.widget === item.widget) === at,
  );
}

function sizeSource(prompt: Prompt, nodeId: string, sampler: PromptNode): string {
  for (const name of ["plan", "size_from"]) {
    const from = linked(prompt, sampler.inputs[name]);
    if (from != null && "width" in prompt[from]!.inputs) return from;
  }
  return nodeId;
}

function linked(prompt: Prompt, value: unknown): string | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const id = String(value[0]);
  return id in prompt ? id : null;
}

function constant(prompt: Prompt, value: unknown): unknown {
  for (let link = 0; link < MAX_LINKS; link++) {
    const from = linked(prompt, value);
    if (from == null) return value;
    value = prompt[from]!.inputs.value;
  }
  return undefined;
}

function sameCanvas(prompt: Prompt, a: PromptNode, b: PromptNode): boolean {
  return ["width", "height"].every((name) => {
    const value = constant(prompt, a.inputs[name]);
    return typeof value === "number" && value === constant(prompt, b.inputs[name]);
  });
}

function add(found: Setting[], prompt: Prompt, id: string, name: string, value: number): void {
  let node = id;
  let widget = name;
  for (let link = 0; link < MAX_LINKS; link++) {
    const held = prompt[node]?.inputs[widget];
    const from = linked(prompt, held);
    if (from == null) {
      if (typeof held === "number") found.push({ node, widget, value });
      return;
    }
    node = from;
    widget = "value";
  }
}
