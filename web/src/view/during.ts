/** A run that goes on: phase, step, time left, both memories, where the blocks wait. */

import { runRows } from "../bars";
import { commas, t } from "../texts";
import type { Axis, Run } from "../types";
import { axisName, currentPhase, duration, gib, phaseName, secondsLeft } from "../words";
import { drawLegend, drawRows } from "./bars";
import { placesOf } from "../places";
import { drawBlocks, placementOf } from "./blocks";
import { Curve, endBytes, sharesOf } from "./curve";
import { engine, fill, h, section } from "./dom";

/** One memory: whose it is now in words, and its curve. */
class Memory {
  readonly box = h("div.lp-memory");
  private readonly words = h("div.lp-legend");
  private readonly place = h("div.lp-curve", { role: "img" });
  private curve: Curve | undefined;

  constructor(private readonly axis: Axis) {
    this.box.append(this.words, this.place);
  }

  draw(run: Run): void {
    const now = sharesOf(run.curve.at(-1), this.axis);
    this.box.hidden = run.curve.length < 2 || now.ours == null;
    if (this.box.hidden) return;
    const end = endBytes(run, this.axis);
    const parts: [string, string][] = [
      [`lp-key-${this.axis}`, t("now.ours", { amount: gib(now.ours) })],
      ...(now.other == null ? [] :
        [["lp-key-other", t("now.other", { amount: gib(now.other) })] as [string, string]]),
      ...(now.evictable == null ? [] :
        [["lp-key-evictable", t("now.evictable", { amount: gib(now.evictable) })] as [string, string]]),
    ];
    const of = end == null ? "" : t("now.of", { amount: gib(end) });
    fill(this.words, h("b", {}, axisName(this.axis)),
      ...parts.map(([kind, text]) =>
        h("span", {}, h("i", { class: kind, "aria-hidden": "true" }), text)),
      of && h("span", {}, h("i.lp-key-cap", { "aria-hidden": "true" }), of));
    const text = commas([...parts.map(([, one]) => one), of].filter(Boolean));
    this.place.setAttribute("aria-label", t("now.curve", { axis: axisName(this.axis), text }));
    this.curve ??= new Curve(this.place, this.axis);
    this.curve.show(run);
  }

  redraw(): void {
    this.curve?.redraw();
  }

  close(): void {
    this.curve?.close();
    this.curve = undefined;
    fill(this.place);
  }
}

export class During {
  readonly box: HTMLElement;
  private readonly title: HTMLElement;
  private readonly status = h("div.lp-sr", { role: "status", "aria-live": "polite" });
  private readonly bar = h("i");
  private readonly progress = h("div.lp-progress",
    { role: "progressbar", "aria-label": t("now.progress"), "aria-valuemin": 0 }, this.bar);
  private readonly memories = [new Memory("vram"), new Memory("ram")];
  private readonly rest = h("div");
  private said = "";

  constructor() {
    const [box, body, title] = section(t("section.now"));
    this.box = box;
    this.title = title;
    box.hidden = true;
    body.append(this.status, this.progress, ...this.memories.map((one) => one.box), this.rest);
  }

  draw(run: Run | null): void {
    this.box.hidden = !run;
    if (!run) {
      this.said = "";
      return this.close();
    }
    const phase = currentPhase(run);
    const { step = 0, steps } = (phase && run.phases[phase]?.progress) || {};
    const left = secondsLeft(run);
    const name = phase ? phaseName(phase, Object.keys(run.phases)) : t("now.between");
    const what = [name.toLowerCase(), steps ? t("now.step", { step: step ?? 0, steps }) : "",
      left == null ? "" : t("now.left", { time: duration(left) })].filter(Boolean);
    this.title.textContent = t("now.head", { what: commas(what) });
    this.announce(run, name);
    this.progress.hidden = !steps;
    this.progress.setAttribute("aria-valuemax", String(steps ?? 0));
    this.progress.setAttribute("aria-valuenow", String(step ?? 0));
    this.bar.style.width = `${steps ? (100 * (step ?? 0)) / steps : 0}%`;
    for (const memory of this.memories) memory.draw(run);
    const rows = runRows(run);
    fill(this.rest, drawRows(rows), drawLegend(rows, true), otherPrograms(run),
      phase?.startsWith("sample") ? blocks(run, phase) : null,
      ...run.notices.slice(-3).map((text) => engine("p.lp-notice", text)));
  }

  redraw(): void {
    for (const memory of this.memories) memory.redraw();
  }

  close(): void {
    for (const memory of this.memories) memory.close();
  }

  /** A screen reader hears of a new phase, not of every step. */
  private announce(run: Run, name: string): void {
    const text = run.notices.at(-1) ?? "";
    if (this.said === name + text) return;
    this.said = name + text;
    this.status.textContent = `${name}. ${text}`;
  }
}

function blocks(run: Run, phase: string): HTMLElement | null {
  const placement = placementOf(run.plan, phase);
  if (!placement) return null;
  return h("div", {},
    h("h4", {}, t("section.blocks", { count: placesOf(placement).length })),
    drawBlocks(run.plan, phase));
}

/** What other programs held when it was planned, where the run itself does not tell. */
function otherPrograms(run: Run): HTMLElement | null {
  const machine = run.plan.snapshot;
  const parts = (
    [["vram", machine?.vram_total_bytes, machine?.vram_free_bytes],
     ["ram", machine?.ram_total_bytes, machine?.ram_available_bytes]] as const
  ).flatMap(([axis, total, free]) =>
    total && free != null && sharesOf(run.curve.at(-1), axis).other == null
      ? [t("now.held", { amount: gib(total - free), axis: axisName(axis) })] : []);
  if (!parts.length) return null;
  return h("p.lp-dim", {}, t("now.planned", { parts: parts.join(t("list.and")) }));
}
