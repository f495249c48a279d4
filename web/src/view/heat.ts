/** The capacity map: how long the request takes at each amount of VRAM and RAM, as a grid of cells. */

import { MAP_RAM_GIB, nearest } from "../cards";
import type { Panel } from "../panel";
import type { PanelState } from "../state";
import { t } from "../texts";
import type { Cell, Snapshot } from "../types";
import { axesText, duration, limitName } from "../words";
import { engine, fill, h } from "./dom";

const GIB = 2 ** 30;
const FULL_HEAT = 4; // times as slow as the fastest cell; small differences stay pale
const MOVES: Record<string, [number, number]> = {
  ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
};

export class Heat {
  readonly box = h("div.lp-heat");
  /** Row and column of the cell that Tab reaches; arrows move it. */
  private at: [number, number] = [0, 0];

  constructor(private readonly panel: Panel) {
    this.box.addEventListener("keydown", (event) => this.move(event));
  }

  draw(state: PanelState): void {
    const { vramGib, lines, error } = state.map;
    this.box.hidden = !vramGib.length;
    const ramGib = [...MAP_RAM_GIB].reverse(); // more is higher
    const seconds = Object.values(lines).flat().flatMap((cell) => cell.fits ? cell.total_seconds ?? [] : []);
    const [least, most] = [Math.min(...seconds), Math.max(...seconds)];
    const here = homeOf(state.machine, vramGib, ramGib);
    this.at[1] = Math.max(0, Math.min(this.at[1], vramGib.length - 1)); // a card may end the columns
    const title = h("h4", { id: "lowpeak-map" }, t("section.map"));
    const head = h("tr", { role: "row" }, h("th", { scope: "col", role: "columnheader" }, t("map.ram")),
      ...vramGib.map((gib) => h("th", { scope: "col", role: "columnheader" }, String(gib))));
    const rows = ramGib.map((ram, row) => h("tr", { role: "row" },
      h("th", { scope: "row", role: "rowheader" }, String(ram)),
      ...vramGib.map((vram, column) => {
        const cell = lines[ram]?.[column];
        const slower = cell?.total_seconds ? cell.total_seconds / least : 1;
        const heat = Math.log(slower) / Math.log(Math.max(FULL_HEAT, most / least));
        return this.cell(cell, vram, ram, row, column, heat, here[0] === row && here[1] === column);
      })));
    fill(this.box, title,
      h("table", { role: "grid", "aria-labelledby": "lowpeak-map" },
        h("caption", {}, t("map.vram")), h("thead", { role: "rowgroup" }, head),
        h("tbody", { role: "rowgroup" }, ...rows)),
      h("div.lp-legend", { "aria-hidden": "true" },
        h("span", {}, h("i.lp-heat-0"), t("map.fast")), h("span", {}, h("i.lp-heat-1"), t("map.slow")),
        h("span", {}, t("map.no")), h("span", {}, h("i.lp-key-here"), t("map.here"))),
      error && engine("p.lp-bad", error));
  }

  private cell(cell: Cell | undefined, vram: number, ram: number, row: number, column: number,
    heat: number, isHere: boolean): HTMLElement {
    const label = labelOf(cell, vram, ram) + (isHere ? ` (${t("map.here")})` : "");
    return h("td", {
      role: "gridcell", class: `${cell ? cell.fits ? "lp-fits" : "lp-short" : "lp-waits"}${isHere ? " lp-here" : ""}`,
      style: `--lp-heat:${(8 + 42 * heat).toFixed(0)}%`, title: label, "aria-label": label,
      tabindex: row === this.at[0] && column === this.at[1] ? 0 : -1,
      "data-key": `cell-${row}-${column}`,
      onclick: () => this.choose(row, column, vram, ram),
      onkeydown: (event) => {
        if (!["Enter", " "].includes((event as KeyboardEvent).key)) return;
        event.preventDefault();
        this.choose(row, column, vram, ram);
      },
    }, cell ? (cell.fits ? brief(cell.total_seconds) : "–") : "…");
  }

  private choose(row: number, column: number, vramGib: number, ramGib: number): void {
    this.at = [row, column];
    this.panel.whatIf({ vramGib, ramGib });
  }

  private move(event: KeyboardEvent): void {
    const by = MOVES[event.key];
    if (!by) return;
    event.preventDefault();
    const next = this.find(this.at[0] + by[0], this.at[1] + by[1]);
    if (!next) return;
    this.find(...this.at)?.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
    this.at = [this.at[0] + by[0], this.at[1] + by[1]];
  }

  private find(row: number, column: number): HTMLElement | null {
    return this.box.querySelector(`[data-key="cell-${row}-${column}"]`);
  }
}

function labelOf(cell: Cell | undefined, vram: number, ram: number): string {
  if (!cell) return t("map.waiting", { vram, ram });
  if (!cell.fits) return t("map.short", { vram, ram, axes: axesText(cell.short) });
  return t("map.fits",
    { vram, ram, time: duration(cell.total_seconds), limit: limitName(cell.limited_by ?? "") });
}

/** A time in at most four signs. */
function brief(seconds: number | null | undefined): string {
  if (seconds == null) return "?";
  if (seconds < 59.5) return t("time.seconds", { s: Math.round(seconds) });
  if (seconds < 3570) return t("time.short_minutes", { m: Math.round(seconds / 60) });
  return t("time.short_hours", { h: (seconds / 3600).toFixed(1) });
}

/** Row and column of this machine; [-1, -1] when it has no card. */
function homeOf(machine: Snapshot | null, vramGib: number[], ramGib: number[]): [number, number] {
  const { vram_total_bytes: vram, ram_total_bytes: ram } = machine ?? {};
  if (!vram || !ram) return [-1, -1];
  return [nearest(ramGib, ram / GIB), nearest(vramGib, vram / GIB)];
}
