/** Forecast and measurement as bars. */

import type { Bar, BarRow } from "../bars";
import { t } from "../texts";
import { axisName, clock } from "../words";
import { h } from "./dom";

export function drawRows(rows: BarRow[]): HTMLElement {
  return h("div.lp-rows", { role: "list" }, ...rows.map(drawRow));
}

function drawRow(row: BarRow): HTMLElement {
  const took = row.measuredSeconds;
  const planned = row.seconds == null ? "" : clock(row.seconds);
  return h(
    "div.lp-row",
    { role: "listitem", "data-phase": row.phase },
    h("span.lp-name", {}, row.name),
    h("div.lp-bars", {}, ...row.bars.map(drawBar)),
    took == null
      ? h("span.lp-time", { title: t("bar.time") }, planned)
      : h("span.lp-time", { title: t("bar.both") }, h("b", {}, clock(took)),
          planned && t("bar.of", { time: planned })),
  );
}

function drawBar(bar: Bar): HTMLElement {
  const part = (kind: string, left: number, width?: number) =>
    h("i", { class: kind, style: `left:${left}%` + (width == null ? "" : `;width:${width}%`) });
  return h(
    "div",
    {
      class: `lp-bar lp-${bar.axis}`,
      role: "img",
      "aria-label": bar.label,
      title: bar.label,
    },
    part("lp-used", 0, bar.excessFrom ?? bar.used),
    bar.excessFrom != null && part("lp-excess", bar.excessFrom, bar.used - bar.excessFrom),
    bar.margin > 0 && part("lp-margin", bar.used, bar.margin),
    bar.capacity != null && part("lp-cap", bar.capacity),
    bar.measured != null && part("lp-measured", bar.measured),
  );
}

export function drawLegend(rows: BarRow[], withMeasured: boolean): HTMLElement {
  const axes = (["vram", "ram"] as const).filter((axis) =>
    rows.some((row) => row.bars.some((bar) => bar.axis === axis)));
  const item = (kind: string, text: string) =>
    h("span", {}, h("i", { class: kind, "aria-hidden": "true" }), text);
  return h(
    "div.lp-legend",
    {},
    ...axes.map((axis) => item(`lp-key-${axis}`, axisName(axis))),
    item("lp-key-margin", t("legend.margin")),
    item("lp-key-cap", t("legend.end")),
    withMeasured && item("lp-key-measured", t("legend.measured")),
  );
}
