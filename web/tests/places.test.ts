import { expect, test } from "vitest";
import { placesOf, ranges } from "../src/places";

const place = (resident_blocks: number, pinned_blocks: number, disk_blocks: number) =>
  placesOf({ keys: "store", residual: "device", resident_blocks, pinned_blocks, disk_blocks, transfer_slots: 2 });
const at = (places: string[], wanted: string) =>
  places.flatMap((place, index) => (place === wanted ? [index] : []));

test("blocks lie where the engine puts them", () => {
  // Written by engine/streamed.py: choose_places(Placement(2, 21, 27), 50).
  const places = place(2, 21, 27);
  expect(at(places, "card")).toEqual([11, 38]);
  expect(ranges(at(places, "disk")).split(", ").map(String)).toEqual([
    "1", "3", "5", "7", "9", "11", "13-14", "16", "18", "20", "22", "24", "26-27", "29", "31", "33",
    "35", "37-38", "40", "42", "44", "46", "48", "50"]);
  expect(at(places, "ram")).toHaveLength(21);
});

test("every block has one place, also when all are alike", () => {
  for (const [a, b, c] of [[50, 0, 0], [0, 50, 0], [0, 0, 50], [1, 48, 1], [0, 0, 0]] as const)
    expect([place(a, b, c).filter((one) => one === "card").length, place(a, b, c).length]).toEqual([a, a + b + c]);
});

test("neighbours are joined", () => {
  expect(ranges([0, 1, 2, 7, 9, 10])).toBe("1-3, 8, 10-11");
});
