/** Before a run: verdict, bars, where the blocks wait, reasons, sizes that fit. */

import { planRows } from "../bars";
import { loraText } from "../loras";
import type { Panel } from "../panel";
import type { PanelState } from "../state";
import { commas, t } from "../texts";
import type { PlanDocument } from "../types";
import { reasonGroups, sizeText, verdict } from "../words";
import { drawLegend, drawRows } from "./bars";
import { placesOf } from "../places";
import { drawBlocks, placementOf } from "./blocks";
import { engine, fill, h } from "./dom";

export function before(head: HTMLElement, bars: HTMLElement, state: PanelState, panel: Panel): void {
  const { plan, planError, planBusy } = state;
  if (planError) {
    fill(head, h("div.lp-verdict.lp-bad", {}, t("before.none")), engine("div.lp-dim", planError),
      h("div.lp-actions", {}, again(panel)));
    return fill(bars);
  }
  if (!plan) {
    const text = planBusy ? t("before.working") : t("before.no_sampler");
    fill(head, h("p.lp-dim", {}, text));
    return fill(bars);
  }
  const { tone, head: title, detail } = verdict(plan);
  const loras = loraText(plan);
  fill(
    head,
    h("div", { class: `lp-verdict${tone === "bad" ? " lp-bad" : ""}` }, title),
    h("div.lp-dim", {}, detail),
    loras ? h("div.lp-dim", {}, loras) : null,
    ...(plan.asked?.notices ?? []).map((text) => engine("p.lp-notice", text)),
    plan.asked?.unknown.length
      ? h("p.lp-notice", {}, t("before.unknown", { names: commas(plan.asked.unknown) }))
      : null,
    plan.fits === false ? offers(plan, panel) : null,
  );
  const rows = planRows(plan);
  fill(bars, rows.length ? drawRows(rows) : null, rows.length ? drawLegend(rows, false) : null);
}

function offers(plan: PlanDocument, panel: Panel): HTMLElement {
  const said = h("p.lp-notice", { role: "status", hidden: true });
  const rows = (plan.fits_instead ?? []).map((size, at) =>
    h("div.lp-offer", {}, h("span", {}, sizeText(size)),
      h("button", {
        type: "button", "data-key": `use-${at}`,
        "aria-label": t("offers.use_label", { size: sizeText(size) }),
        onclick: () => {
          said.textContent = panel.use(size);
          said.hidden = !said.textContent;
        },
      }, t("offers.use"))),
  );
  return h("section.lp-sec", { "aria-label": t("offers.title") },
    h("h3", {}, rows.length ? t("offers.title") : t("offers.none")), ...rows, said,
    h("div.lp-offer", {}, h("span", {}, t("offers.close")), again(panel)));
}

function again(panel: Panel): HTMLElement {
  return h("button", { type: "button", "data-key": "again", onclick: () => void panel.forecast() },
    t("before.again"));
}

/** False when there is nothing to show. */
export function blocks(title: HTMLElement, place: HTMLElement, state: PanelState): boolean {
  const plan = state.plan && state.plan.fits !== false ? state.plan : null;
  const placement = plan && placementOf(plan, null);
  fill(place, placement && drawBlocks(plan, null));
  title.textContent = t("section.blocks", { count: placement ? placesOf(placement).length : 0 });
  return placement != null;
}

export function why(place: HTMLElement, state: PanelState): boolean {
  const plan = state.plan;
  const groups = plan ? reasonGroups(plan) : [];
  const list = (lines: string[]) => h("ul", {}, ...lines.map((line) => engine("li", line)));
  fill(
    place,
    plan?.changes_arithmetic &&
      h("p", {}, t("why.arithmetic")),
    ...groups.flatMap(({ head, lines }) => [head && engine("h4", head), list(lines)]),
  );
  return groups.length > 0;
}

/** One forecast in two lines, for another machine. */
export function brief(plan: PlanDocument): HTMLElement {
  const { tone, head, detail } = verdict(plan);
  const instead = plan.fits === false && plan.fits_instead?.[0];
  return h("div", {}, h("div", { class: `lp-verdict${tone === "bad" ? " lp-bad" : ""}` }, head),
    h("div.lp-dim", {}, detail, instead ? " " + t("what_if.would_fit", { size: sizeText(instead) }) : ""));
}

