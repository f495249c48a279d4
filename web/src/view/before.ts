/** Before a run: verdict, bars, where the blocks wait, reasons, sizes that fit. */

import { planRows } from "../bars";
import type { Panel } from "../panel";
import type { PanelState } from "../state";
import type { PlanDocument } from "../types";
import { reasonGroups, sizeText, verdict } from "../words";
import { drawLegend, drawRows } from "./bars";
import { drawBlocks } from "./blocks";
import { fill, h } from "./dom";

export function before(head: HTMLElement, bars: HTMLElement, state: PanelState, panel: Panel): void {
  const { plan, planError, planBusy } = state;
  if (planError) {
    fill(head, h("div.lp-verdict.lp-bad", {}, "No forecast"), h("div.lp-dim", {}, planError),
      h("div.lp-actions", {}, again(panel)));
    return fill(bars);
  }
  if (!plan) {
    const text = planBusy ? "Working out the forecast …" :
      "The graph holds no Lowpeak Sample yet. Add one, or open a template under Lowpeak.";
    fill(head, h("p.lp-dim", {}, text));
    return fill(bars);
  }
  const { tone, head: title, detail } = verdict(plan);
  fill(
    head,
    h("div", { class: `lp-verdict${tone === "bad" ? " lp-bad" : ""}` }, title),
    h("div.lp-dim", {}, detail),
    ...(plan.asked?.notices ?? []).map((text) => h("p.lp-notice", {}, text)),
    plan.asked?.unknown.length
      ? h("p.lp-notice", {}, `Known only when it runs: ${plan.asked.unknown.join(", ")}. Defaults stand in.`)
      : null,
    plan.fits === false ? offers(plan, panel) : null,
  );
  const rows = planRows(plan);
  fill(bars, rows.length ? drawRows(rows) : null, rows.length ? drawLegend(false) : null);
}

function offers(plan: PlanDocument, panel: Panel): HTMLElement {
  const said = h("p.lp-notice", { role: "status", hidden: true });
  const rows = (plan.fits_instead ?? []).map((size, at) =>
    h("div.lp-offer", {}, h("span", {}, sizeText(size)),
      h("button", {
        type: "button", "data-key": `use-${at}`,
        "aria-label": `Use a size that fits: ${sizeText(size)}`,
        onclick: () => {
          said.textContent = panel.use(size);
          said.hidden = !said.textContent;
        },
      }, "Use")),
  );
  return h("section.lp-sec", { "aria-label": "Fits instead" },
    h("h3", {}, rows.length ? "Fits instead" : "No smaller size fits either"), ...rows, said,
    h("div.lp-offer", {}, h("span", {}, "Close other programs"), again(panel)));
}

function again(panel: Panel): HTMLElement {
  return h("button", { type: "button", "data-key": "again", onclick: () => void panel.forecast() },
    "Check again");
}

/** False when there is nothing to show. */
export function blocks(place: HTMLElement, state: PanelState): boolean {
  const map = state.plan && state.plan.fits !== false ? drawBlocks(state.plan, null) : null;
  fill(place, map);
  return map != null;
}

export function why(place: HTMLElement, state: PanelState): boolean {
  const plan = state.plan;
  const groups = plan ? reasonGroups(plan) : [];
  const list = (lines: string[]) => h("ul", {}, ...lines.map((line) => h("li", {}, line)));
  fill(
    place,
    plan?.changes_arithmetic &&
      h("p", {}, "This placement sums in another order: latents differ in their last bits."),
    ...groups.flatMap(({ head, lines }) => [head && h("h4", {}, head), list(lines)]),
  );
  return groups.length > 0;
}

/** One forecast in two lines, for another machine. */
export function brief(plan: PlanDocument): HTMLElement {
  const { tone, head, detail } = verdict(plan);
  const instead = plan.fits === false && plan.fits_instead?.[0];
  return h("div", {}, h("div", { class: `lp-verdict${tone === "bad" ? " lp-bad" : ""}` }, head),
    h("div.lp-dim", {}, detail, instead ? ` ${sizeText(instead)} would fit.` : ""));
}

