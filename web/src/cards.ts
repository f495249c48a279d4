/** Common cards for "what if", by their key on the server, with the memory they have. */
export const CARDS: [key: string, name: string, vramGib: number][] = [
  ["rtx-3050-8", "RTX 3050", 8],
  ["rtx-3060", "RTX 3060", 12],
  ["rtx-3080", "RTX 3080", 10],
  ["rtx-3090", "RTX 3090", 24],
  ["rtx-4060", "RTX 4060", 8],
  ["rtx-4060-ti-16", "RTX 4060 Ti 16", 16],
  ["rtx-4070", "RTX 4070", 12],
  ["rtx-4080-super", "RTX 4080 Super", 16],
  ["rtx-4090", "RTX 4090", 24],
  ["rtx-5060", "RTX 5060", 8],
  ["rtx-5070", "RTX 5070", 12],
  ["rtx-5080", "RTX 5080", 16],
  ["rtx-5090", "RTX 5090", 32],
  ["rtx-pro-6000", "RTX Pro 6000", 96],
];
export const VRAM_GIB = [4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 80, 96];
export const RAM_GIB = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/** Columns and lines of the capacity map. */
export const MAP_VRAM_GIB = [4, 6, 8, 10, 12, 16, 24, 32];
export const MAP_RAM_GIB = [8, 12, 16, 24, 32, 64];

/** Index of the value nearest to what is wanted. */
export function nearest(values: number[], wanted: number): number {
  let best = 0;
  values.forEach((value, at) => {
    if (Math.abs(value - wanted) < Math.abs(values[best]! - wanted)) best = at;
  });
  return best;
}
