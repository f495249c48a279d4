/** Past runs as a table, and how far their times were from the forecast. */

import type { RunRow } from "../types";
import { clock, percent, rowDifference, signed, sizeText } from "../words";
import { fill, h } from "./dom";

const SVG = "http://www.w3.org/2000/svg";
const SHOWN = 12;

export function history(place: HTMLElement, rows: RunRow[]): boolean {
  if (!rows.length) {
    fill(place);
    return false;
  }
  const head = ["when", "size", "forecast", "took", "VRAM"];
  fill(
    place,
    h("table", {},
      h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...rows.slice(0, SHOWN).map(drawRow))),
    spark(rows),
  );
  return true;
}

function drawRow(row: RunRow): HTMLElement {
  const when = new Date(row.started_unix_seconds * 1000);
  const today = when.toDateString() === new Date().toDateString();
  const day = today ? "today" : when.toLocaleDateString(undefined, { month: "short", day: "numeric" });
  const time = when.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  const took = row.status === "done" ? clock(row.measured_seconds) : row.status;
  return h("tr", {}, h("td", {}, `${day} ${time}`), h("td", {}, sizeText(row.request)),
    h("td", {}, clock(row.forecast_seconds)), h("td", {}, took), h("td", {}, rowDifference(row)));
}

/** Error of the forecast time, oldest left; the line in the middle is no error. */
function spark(rows: RunRow[]): Node | null {
  const errors = rows
    .filter((row) => row.status === "done")
    .map((row) => percent(row.measured_seconds, row.forecast_seconds))
    .filter((value): value is number => value != null)
    .reverse();
  if (errors.length < 3) return null;
  const most = Math.max(10, ...errors.map(Math.abs));
  const x = (at: number) => 4 + (292 * at) / (errors.length - 1);
  const y = (value: number) => 22 - (18 * value) / most;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 300 44");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "lp-spark");
  svg.setAttribute("role", "img");
  const label = `Time against forecast over ${errors.length} runs, newest ${signed(errors.at(-1)!)}`;
  svg.setAttribute("aria-label", label);
  const line = (points: string, colour: string, dash: string) => {
    const path = document.createElementNS(SVG, "polyline");
    for (const [name, value] of Object.entries({ points, fill: "none", stroke: colour,
      "stroke-width": "1.5", "stroke-dasharray": dash, "vector-effect": "non-scaling-stroke" }))
      path.setAttribute(name, value);
    svg.append(path);
  };
  line("0,22 300,22", "var(--lp-dim)", "3 3");
  line(errors.map((value, at) => `${x(at)},${y(value)}`).join(" "), "var(--lp-vram)", "");
  return h("div", {}, svg, h("div.lp-dim", {}, label));
}
