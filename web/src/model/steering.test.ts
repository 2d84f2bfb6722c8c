import { describe, expect, it } from "vitest";

import { asText, changedRow, duration } from "./steering";

describe("a held tuple", () => {
  const row = { n: 5, name: "Bob", tags: ["a"] };
  it("is sent back with the columns that were changed, in their own types", () => {
    const typed = Object.fromEntries(Object.entries(row).map(([k, v]) => [k, asText(v)]));
    expect(changedRow(row, typed)).toBeNull();
    expect(changedRow(row, { ...typed, n: "6", name: "6" })).toEqual({ n: 6, name: "6" });
    expect(changedRow(row, { ...typed, tags: '["b"]', n: "six" })).toEqual({ tags: ["b"], n: "six" });
  });
  it("has a time for each tuple that people can read", () => {
    expect([duration(2), duration(0.25), duration(0.0023), duration(1e-8)]).toEqual([
      "2.0 s",
      "250 ms",
      "2.3 ms",
      "1 µs",
    ]);
  });
});
