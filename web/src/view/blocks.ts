/** Where the transformer's blocks wait during a pass: a cell a block, in their order. */

import { placesOf, PLACES, ranges } from "../places";
import { commas, t } from "../texts";
import type { Placement, PlanDocument } from "../types";
import { longest, peakOf } from "../words";
import { h } from "./dom";

const CLASSES = { card: "lp-on-card", ram: "lp-in-ram", disk: "lp-on-disk" };

/** The placement of a sampling pass: of `phase`, else of the longest one. None without a card. */
export function placementOf(plan: PlanDocument, phase: string | null): Placement | null {
  if (peakOf(plan, "vram") == null) return null;
  const sampling = (plan.phases ?? []).filter((item) => item.phase.startsWith("sample"));
  const found =
    sampling.find((item) => item.phase === phase) ??
    sampling.find((item) => item.phase === longest(plan)?.phase) ??
    sampling[0];
  return found?.placement ?? null;
}

export function drawBlocks(plan: PlanDocument, phase: string | null): HTMLElement | null {
  const placement = placementOf(plan, phase);
  if (!placement) return null;
  const places = placesOf(placement);
  const used = PLACES.filter((place) => places.includes(place)).map((place) => {
    const at = places.flatMap((one, index) => (one === place ? [index] : []));
    const text = t("blocks.count", { count: at.length, where: t(`blocks.${place}`) });
    return { place, text, which: t("blocks.which", { where: t(`blocks.${place}`), numbers: ranges(at) }) };
  });
  const label = t("blocks.label", { text: commas(used.map((item) => item.text)) });
  return h("div", {},
    h("div.lp-blocks", { role: "img", "aria-label": label },
      ...places.map((place, at) => h("i", { class: CLASSES[place],
        title: t("blocks.one", { number: at + 1, where: t(`blocks.${place}`) }) }))),
    h("div.lp-legend", { "aria-hidden": "true" }, ...used.map(({ place, text }) =>
      h("span", {}, h("i", { class: CLASSES[place] }), text))),
    h("div.lp-sr", {}, used.map((item) => item.which).join(t("list.stop"))));
}
