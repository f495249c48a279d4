/** Where each block waits: the engine's rule (streamed.py, choose_places) said again. Pure. */

import type { Placement } from "./types";

export type Place = "card" | "ram" | "disk";
export const PLACES: Place[] = ["card", "ram", "disk"];

/** `count` of `total` positions, as evenly spread as integers allow. */
function spread(count: number, total: number): number[] {
  return Array.from({ length: count }, (_, at) => Math.floor(((2 * at + 1) * total) / (2 * count)));
}

/** The place of every block, in their order. */
export function placesOf(placement: Placement): Place[] {
  const { resident_blocks, pinned_blocks, disk_blocks } = placement;
  const total = Math.min(resident_blocks + pinned_blocks + disk_blocks, 400);
  const disk = new Set(spread(Math.min(disk_blocks, total), total));
  const host = Array.from({ length: total }, (_, at) => at).filter((at) => !disk.has(at));
  const card = new Set(spread(Math.min(resident_blocks, host.length), host.length).map((at) => host[at]));
  return Array.from({ length: total }, (_, at) => (disk.has(at) ? "disk" : card.has(at) ? "card" : "ram"));
}

/** Positions as people count, neighbours joined: [0, 1, 2, 7] is "1-3, 8". */
export function ranges(positions: number[]): string {
  const found: [number, number][] = [];
  for (const at of positions) {
    const last = found.at(-1);
    if (last && last[1] === at - 1) last[1] = at;
    else found.push([at, at]);
  }
  return found.map(([a, b]) => (a === b ? `${a + 1}` : `${a + 1}-${b + 1}`)).join(", ");
}
