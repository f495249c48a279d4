/** A run that goes on: phase, step, time left, curves, where the blocks wait. */

import { runRows } from "../bars";
import type { Run } from "../types";
import { currentPhase, duration, phaseName, secondsLeft } from "../words";
import { drawLegend, drawRows } from "./bars";
import { drawBlocks } from "./blocks";
import { Curve } from "./curve";
import { fill, h, section } from "./dom";

export class During {
  readonly box: HTMLElement;
  private readonly title: HTMLElement;
  private readonly status = h("div.lp-sr", { role: "status", "aria-live": "polite" });
  private readonly bar = h("i");
  private readonly progress = h("div.lp-progress",
    { role: "progressbar", "aria-label": "Steps of this phase", "aria-valuemin": 0 }, this.bar);
  private readonly place = h("div.lp-curve", { role: "img", "aria-label": "Memory of this run" });
  private readonly rest = h("div");
  private curve: Curve | undefined;
  private said = "";

  constructor() {
    const [box, body, title] = section("Now");
    this.box = box;
    this.title = title;
    box.hidden = true;
    body.append(this.status, this.progress, this.place, this.rest);
  }

  draw(run: Run | null): void {
    this.box.hidden = !run;
    if (!run) {
      this.curve?.close();
      this.curve = undefined;
      this.said = "";
      return fill(this.place);
    }
    const phase = currentPhase(run);
    const { step = 0, steps } = (phase && run.phases[phase]?.progress) || {};
    const left = secondsLeft(run);
    const name = phase ? phaseName(phase, Object.keys(run.phases)) : "between two phases";
    this.title.textContent = [`Now: ${name.toLowerCase()}`, steps ? `step ${step} of ${steps}` : "",
      left == null ? "" : `about ${duration(left)} left`].filter(Boolean).join(", ");
    this.announce(run, name);
    this.progress.hidden = !steps;
    this.progress.setAttribute("aria-valuemax", String(steps ?? 0));
    this.progress.setAttribute("aria-valuenow", String(step ?? 0));
    this.bar.style.width = `${steps ? (100 * (step ?? 0)) / steps : 0}%`;
    this.place.setAttribute("aria-label", curveLabel(run));
    this.place.hidden = run.curve.length < 2;
    if (!this.place.hidden) {
      this.curve ??= new Curve(this.place);
      this.curve.show(run);
    }
    const rows = runRows(run);
    fill(this.rest, drawRows(rows), drawLegend(true), otherPrograms(run),
      phase?.startsWith("sample") && run.plan.phases ? drawBlocks(run.plan, phase) : null,
      ...run.notices.slice(-3).map((text) => h("p.lp-notice", {}, text)));
  }

  redraw(): void {
    this.curve?.redraw();
  }

  close(): void {
    this.curve?.close();
  }

  /** A screen reader hears of a new phase, not of every step. */
  private announce(run: Run, name: string): void {
    const text = run.notices.at(-1) ?? "";
    if (this.said === name + text) return;
    this.said = name + text;
    this.status.textContent = `${name}. ${text}`;
  }
}

function curveLabel(run: Run): string {
  const last = run.curve.at(-1);
  const gib = (bytes: number | null | undefined) =>
    bytes == null ? "unknown" : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  return `Memory of this run: VRAM ${gib(last?.[2])}, RAM ${gib(last?.[3])}`;
}

function otherPrograms(run: Run): HTMLElement | null {
  const machine = run.plan.snapshot;
  const parts = (
    [["VRAM", machine?.vram_total_bytes, machine?.vram_free_bytes],
     ["RAM", machine?.ram_total_bytes, machine?.ram_available_bytes]] as const
  ).flatMap(([axis, total, free]) =>
    total && free != null ? [`${((total - free) / 2 ** 30).toFixed(1)} GiB of ${axis}`] : []);
  return parts.length
    ? h("p.lp-dim", {}, `Other programs held ${parts.join(" and ")} when it was planned.`)
    : null;
}
