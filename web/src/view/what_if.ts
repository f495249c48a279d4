/** The same request on another machine. Its controls are made once, so that dragging goes on. */

import { CARDS, nearest, RAM_GIB, VRAM_GIB } from "../cards";
import type { Panel } from "../panel";
import type { PanelState } from "../state";
import { t } from "../texts";
import { axisName, gib } from "../words";
import { brief } from "./before";
import { engine, fill, h, section } from "./dom";
import { Heat } from "./heat";

export class WhatIfView {
  readonly box: HTMLElement;
  private readonly result = h("div.lp-result", { role: "status", "aria-live": "polite" });
  private readonly vram: Slider;
  private readonly ram: Slider;
  private readonly card: HTMLSelectElement;
  private readonly heat: Heat;
  private drawnMap: unknown;

  constructor(panel: Panel) {
    const [box, body] = section(t("section.what_if"), true);
    this.box = box;
    this.card = h("select", { "aria-label": t("what_if.card") }, h("option", { value: "" }, t("what_if.this_card")),
      ...CARDS.map(([key, name, size]) => h("option", { value: key },
        t("what_if.option", { name, amount: gib(size * 2 ** 30, 0) }))));
    this.vram = slider(axisName("vram"), VRAM_GIB, (vramGib) => panel.whatIf({ vramGib }));
    this.ram = slider(axisName("ram"), RAM_GIB, (ramGib) => panel.whatIf({ ramGib }));
    this.card.addEventListener("change", () => {
      const card = CARDS.find(([key]) => key === this.card.value);
      panel.whatIf({ card: this.card.value, ...(card ? { vramGib: card[2] } : {}) });
    });
    this.heat = new Heat(panel);
    body.append(h("div.lp-what", {}, h("span", {}, t("what_if.card")), this.card,
      ...this.vram.parts, ...this.ram.parts), this.result, this.heat.box);
    (box as HTMLDetailsElement).open = panel.state.whatIf.open;
    box.addEventListener("toggle", () => panel.openWhatIf((box as HTMLDetailsElement).open));
  }

  draw(state: PanelState): void {
    const { card, vramGib, ramGib, plan, error, busy } = state.whatIf;
    this.box.hidden = !state.prompt;
    if (document.activeElement !== this.card) this.card.value = card;
    this.vram.set(vramGib);
    this.ram.set(ramGib);
    this.result.classList.toggle("lp-busy", busy);
    fill(this.result, error ? engine("p.lp-bad", error) : plan ? brief(plan) : null);
    if (this.drawnMap !== state.map) this.heat.draw(state);
    this.drawnMap = state.map;
  }
}

interface Slider { parts: HTMLElement[]; set(value: number): void }

function slider(name: string, values: number[], onValue: (value: number) => void): Slider {
  const shown = h("output", { "aria-hidden": "true" });
  const input = h("input", { type: "range", min: 0, max: values.length - 1, step: 1,
    "aria-label": t("what_if.slider", { axis: name }) });
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
