import { expect, test, vi } from "vitest";
import type { CurvePoint } from "../src/types";
import { GIB, RUN } from "./fixtures";

vi.mock("uplot", () => ({ default: class {} }));
const { endBytes, sharesOf, stacked } = await import("../src/view/curve");

const point: CurvePoint = [1, "decode", 30, 200, 10, 40, 400, 100];

test("what is whose is read from a point, and old points know of ours alone", () => {
  expect(sharesOf(point, "vram")).toEqual({ ours: 30, other: 10, evictable: 40 });
  expect(sharesOf(point, "ram")).toEqual({ ours: 200, other: 400, evictable: 100 });
  expect(sharesOf([1, "decode", 30, null], "ram")).toEqual({ ours: null, other: null, evictable: null });
  expect(sharesOf(undefined, "vram").ours).toBeNull();
});

test("areas stand on each other, an unknown one leaves a gap", () => {
  expect(stacked([point, [2, "decode", 30, 200, null, 40]], "vram")).toEqual([[80, null], [40, null], [30, 30]]);
});

test("the end is the whole memory only where other programs are drawn", () => {
  expect(endBytes({ ...RUN, curve: [point] }, "vram")).toBe(8 * GIB);
  expect(endBytes({ ...RUN, curve: [[1, "decode", 30, 200]] }, "vram")).toBe(7.4 * GIB);
  expect(endBytes({ ...RUN, plan: {}, curve: [point] }, "ram")).toBeNull();
});
