/** Past runs as a table, and how far times and peaks were from the forecast. */

import { currentLanguage, t } from "../texts";
import type { RunRow } from "../types";
import { axisName, clock, percent, rowDifference, signed, sizeText, statusName } from "../words";
import { fill, h } from "./dom";

const SVG = "http://www.w3.org/2000/svg";
const SHOWN = 12;

export function history(place: HTMLElement, rows: RunRow[]): boolean {
  if (!rows.length) {
    fill(place);
    return false;
  }
  const head = [t("past.when"), t("past.size"), t("past.forecast"), t("past.took"), axisName("vram")];
  fill(
    place,
    h("table", {},
      h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...rows.slice(0, SHOWN).map(drawRow))),
    errors(rows),
  );
  return true;
}

function drawRow(row: RunRow): HTMLElement {
  const when = new Date(row.started_unix_seconds * 1000);
  const locale = currentLanguage() === "en" ? undefined : currentLanguage();
  const time = when.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" });
  const day = when.toLocaleDateString(locale, { month: "short", day: "numeric" });
  const today = when.toDateString() === new Date().toDateString();
  const text = today ? t("past.today", { time }) : t("past.other_day", { day, time });
  const took = row.status === "done" ? clock(row.measured_seconds) : statusName(row.status);
  return h("tr", {}, h("td", {}, text), h("td", {}, sizeText(row.request)),
    h("td", {}, clock(row.forecast_seconds)), h("td", {}, took), h("td", {}, rowDifference(row)));
}

interface Series { colour: string; values: (number | null)[] }

/** Errors of whole runs, oldest left, in percent of the forecast; the dashed line is no error. */
function errors(rows: RunRow[]): Node | null {
  const whole = rows.filter((row) => row.status === "done").reverse();
  const time = whole.map((row) => percent(row.measured_seconds, row.forecast_seconds));
  const peak = whole.map((row) => percent(row.measured_vram_peak_bytes, row.forecast_vram_peak_bytes));
  const known = [...time, ...peak].filter((value): value is number => value != null);
  if (whole.length < 2 || !known.length) return null;
  const most = Math.max(10, ...known.map(Math.abs));
  const text = t("past.error", { count: whole.length, time: signed(time.at(-1) ?? null),
    vram: signed(peak.at(-1) ?? null) });
  const key = (kind: string, name: string) =>
    h("span", {}, h("i", { class: kind, "aria-hidden": "true" }), name);
  return h("div.lp-errors", {},
    h("div.lp-scale", { "aria-hidden": "true" },
      ...[most, 0, -most].map((value) => h("span", {}, signed(value)))),
    chart(most, text, [{ colour: "var(--lp-fg)", values: time },
      { colour: "var(--lp-vram)", values: peak }]),
    h("div.lp-legend", {}, key("lp-key-time", t("past.time")), key("lp-key-vram", axisName("vram"))),
    h("div.lp-dim", {}, text));
}

function chart(most: number, label: string, all: Series[]): Node {
  const [width, height, edge] = [300, 60, 6];
  const svg = document.createElementNS(SVG, "svg");
  const set = (element: Element, values: Record<string, string>) => {
    for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
    return element;
  };
  set(svg, { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "lp-spark",
    role: "img", "aria-label": label });
  const line = (points: string, stroke: string, dash: string) => svg.append(
    set(document.createElementNS(SVG, "polyline"), { points, fill: "none", stroke,
      "stroke-width": "1.8", "stroke-dasharray": dash, "vector-effect": "non-scaling-stroke" }));
  const y = (value: number) => height / 2 - ((height / 2 - edge) * value) / most;
  line(`0,${y(0)} ${width},${y(0)}`, "var(--lp-dim)", "3 3");
  for (const { colour, values } of all)
    line(values.flatMap((value, at) => value == null ? [] :
      [`${edge + ((width - 2 * edge) * at) / (values.length - 1)},${y(value)}`]).join(" "), colour, "");
  return svg;
}
