/** Where the transformer's blocks wait during a pass. */

import type { PlanDocument } from "../types";
import { longest } from "../words";
import { h } from "./dom";

export function drawBlocks(plan: PlanDocument, phase: string | null): HTMLElement | null {
  const sampling = (plan.phases ?? []).filter((item) => item.phase.startsWith("sample"));
  const shown =
    sampling.find((item) => item.phase === phase) ??
    sampling.find((item) => item.phase === longest(plan)?.phase) ??
    sampling[0];
  const place = shown?.placement;
  if (!place) return null;
  const parts: [string, number, string][] = [
    ["lp-on-card", place.resident_blocks, "on the card"],
    ["lp-in-ram", place.pinned_blocks, "in RAM"],
    ["lp-on-disk", place.disk_blocks, "read from disk each step"],
  ];
  const words = parts.filter(([, count]) => count > 0);
  const text = words.map(([, count, where]) => `${count} ${where}`).join(", ");
  return h(
    "div",
    {},
    h(
      "div.lp-blocks",
      { role: "img", "aria-label": `Blocks: ${text}` },
      ...parts.flatMap(([kind, count]) =>
        Array.from({ length: Math.min(count, 400) }, () => h("i", { class: kind })),
      ),
    ),
    h(
      "div.lp-legend",
      { "aria-hidden": "true" },
      ...words.map(([kind, count, where]) =>
        h("span", {}, h("i", { class: kind }), `${count} ${where}`),
      ),
    ),
  );
}
