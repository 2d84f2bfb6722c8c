import { expect, it } from "vitest";

import { keepEqualParts } from "./store";

it("parts that equal those before are the same objects, others are new", () => {
  const before = { live: { FE: { taken: 1 } }, held: [{ hold: "a" }], error: null as null | string };
  const same = keepEqualParts(before, structuredClone(before));
  expect(same).toBe(before);
  const now = keepEqualParts(before, { live: { FE: { taken: 2 } }, held: [{ hold: "a" }], error: "x" });
  expect(now).toEqual({ live: { FE: { taken: 2 } }, held: [{ hold: "a" }], error: "x" });
  expect(now.held).toBe(before.held);
  expect(now.live).not.toBe(before.live);
});

it("what was added to or taken from a list or an object is not lost", () => {
  expect(keepEqualParts([1, 2, 3], [1, 2])).toEqual([1, 2]);
  expect(keepEqualParts<Record<string, number>>({ a: 1, b: 2 }, { a: 1 })).toEqual({ a: 1 });
  expect(keepEqualParts<Record<string, unknown>>({ a: undefined }, { b: undefined })).toEqual({
    b: undefined,
  });
  expect(keepEqualParts<unknown>({ 0: "a" }, ["a"])).toEqual(["a"]);
});
