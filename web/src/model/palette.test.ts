import { describe, expect, it } from "vitest";

import { entries, search } from "./palette";
import { sampleKind } from "./samples";

describe("the palette", () => {
  const kinds = [
    sampleKind("select", {}, "Columns computed from each row"),
    sampleKind("filter", {}, "Keeps rows"),
    sampleKind("drop_duplicates", {}, "filters out"),
  ];
  it("finds by name first, then by description", () => {
    expect(search(entries(kinds), "filter").map((k) => k.op)).toEqual(["filter", "drop_duplicates"]);
    expect(search(entries(kinds), "drop dup").map((k) => k.op)).toEqual(["drop_duplicates"]);
    expect(search(entries(kinds), "").length).toBe(3);
    expect(search(entries(kinds), "nothing")).toEqual([]);
  });
});
