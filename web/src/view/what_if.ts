/** The same request on another machine. Its controls are made once, so that dragging goes on. */

import { CARDS, nearest, RAM_GIB, VRAM_GIB } from "../cards";
import type { Panel } from "../panel";
import type { PanelState } from "../state";
import { brief } from "./before";
import { fill, h, section } from "./dom";

export class WhatIfView {
  readonly box: HTMLElement;
  private readonly result = h("div.lp-result", { role: "status", "aria-live": "polite" });
  private readonly vram: Slider;
  private readonly ram: Slider;
  private readonly card: HTMLSelectElement;

  constructor(panel: Panel) {
    const [box, body] = section("What if", true);
    this.box = box;
    this.card = h("select", { "aria-label": "Card" }, h("option", { value: "" }, "this card's speed"),
      ...CARDS.map(([key, name, gib]) => h("option", { value: key }, `${name}, ${gib} GiB`)));
    this.vram = slider("VRAM", VRAM_GIB, (vramGib) => panel.whatIf({ vramGib }));
    this.ram = slider("RAM", RAM_GIB, (ramGib) => panel.whatIf({ ramGib }));
    this.card.addEventListener("change", () => {
      const card = CARDS.find(([key]) => key === this.card.value);
      panel.whatIf({ card: this.card.value, ...(card ? { vramGib: card[2] } : {}) });
    });
    body.append(h("div.lp-what", {}, h("span", {}, "Card"), this.card,
      ...this.vram.parts, ...this.ram.parts), this.result);
    box.addEventListener("toggle", () => {
      if ((box as HTMLDetailsElement).open && !panel.state.whatIf.plan) panel.whatIf({});
    });
  }

  draw(state: PanelState): void {
    const { card, vramGib, ramGib, plan, error, busy } = state.whatIf;
    this.box.hidden = !state.prompt;
    if (document.activeElement !== this.card) this.card.value = card;
    this.vram.set(vramGib);
    this.ram.set(ramGib);
    this.result.classList.toggle("lp-busy", busy);
    fill(this.result, error ? h("p.lp-bad", {}, error) : plan ? brief(plan) : null);
  }
}

interface Slider { parts: HTMLElement[]; set(value: number): void }

function slider(name: string, values: number[], onValue: (value: number) => void): Slider {
  const shown = h("output", { "aria-hidden": "true" });
  const input = h("input", { type: "range", min: 0, max: values.length - 1, step: 1,
    "aria-label": `${name} of the other machine` });
  const say = (value: number) => {
    shown.textContent = `${value} GiB`;
    input.setAttribute("aria-valuetext", `${value} GiB`); // its own value is a place in a list
  };
  input.addEventListener("input", () => {
    const value = values[Number(input.value)]!;
    say(value);
    onValue(value);
  });
  return {
    parts: [h("span", { "aria-hidden": "true" }, name), input, shown],
    set(value) {
      input.value = String(nearest(values, value));
      say(values[Number(input.value)]!);
    },
  };
}
