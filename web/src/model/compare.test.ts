import { describe, expect, it } from "vitest";

import { columnsOf, sideOfCause, verdictLine } from "./compare";
import type { Comparison } from "./types";

describe("a comparison", () => {
  const found: Comparison = {
    comparison: "c",
    equivalent: false,
    depends: "independent",
    rows: { left: 3, right: 2 },
    without_partner: { left: 2, right: 1 },
    explanation: "",
    pairs: [
      { left: { n: 1, a: 2 }, right: { n: 1, a: 3 }, differ: ["a"] },
      { left: { n: 9, a: 9 }, right: null, differ: ["n", "a"] },
    ],
  };
  it("shows the columns that differ first", () => {
    expect(columnsOf(found.pairs)).toEqual(["a", "n"]);
    expect(sideOfCause(found)).toBe("right");
    expect(sideOfCause({ ...found, pairs: found.pairs.slice(1) })).toBe("left");
  });
  it("is told in a line", () => {
    expect(verdictLine(found)).toBe(
      "Different (independent): 2 rows of the left and 1 of the right have no partner.",
    );
    expect(verdictLine({ ...found, equivalent: true })).toBe("The same: 3 rows (independent).");
  });
});
