import { describe, expect, it } from "vitest";

import { columnsOf, sideOfCause, verdictLine, type Comparison } from "./compare";
import { link, parseLink } from "./journey";
import { neighbour, shareOf, trackOf, whereAt } from "./timeline";
import type { Moment } from "./types";

const track = trackOf({
  epoch_list: [
    { epoch: 0, level: 0, seconds: 1, taken: { FE: 10 } },
    { epoch: 1, level: 0, seconds: 3, taken: { FE: 20, FD: 20 } },
  ],
});
const moment = (epoch: number, taken: number): Moment => ({
  moment: "m1",
  epoch,
  counters: { FE: { taken: [taken], given: taken } },
  last: null,
  changes: [],
  address: { to: {}, steps: [] },
});

describe("the timeline", () => {
  it("has epochs as long as they took", () => {
    expect(track.epochs.map((e) => [e.from, e.to])).toEqual([
      [0, 0.25],
      [0.25, 1],
    ]);
    expect(track.epochs[1]!.before).toEqual({ FE: 10 });
  });
  it("leads to tuples of the operator that is looked at", () => {
    expect(whereAt(track, 0.125, "FE")).toEqual({ operator: "FE", tuples: 5 });
    expect(whereAt(track, 0.625, "FE")).toEqual({ operator: "FE", tuples: 20 });
    expect(whereAt(track, 0.1, "FD")).toEqual({ epoch: 0 });
    expect(whereAt(track, 0.25, "FE")).toEqual({ epoch: 1 });
    expect(whereAt(track, 1, "FE")).toEqual({});
  });
  it("shows a moment where dragging there would lead", () => {
    for (const share of [0.05, 0.2, 0.5, 0.9]) {
      const to = whereAt(track, share, "FE") as { tuples: number };
      const found = shareOf(track, moment(to.tuples > 10 ? 1 : 0, to.tuples), "FE");
      expect(Math.abs(found - share)).toBeLessThan(0.03);
    }
    expect(shareOf(track, moment(2, 30), "FE")).toBe(1);
  });
  it("goes from epoch to epoch by keys", () => {
    expect(neighbour(track, null, -1)).toEqual({ epoch: 1 });
    expect(neighbour(track, moment(1, 15), -1)).toEqual({ epoch: 0 });
    expect(neighbour(track, moment(0, 0), -1)).toEqual({ epoch: 0 });
    expect(neighbour(track, moment(1, 15), 1)).toEqual({});
  });
});

describe("a link to a moment", () => {
  it("is read as it was written", () => {
    const address = {
      to: { operator: "a & b", tuples: 5 },
      steps: [
        ["over", "é/#?"],
        ["out", null],
      ] as [string, string | null][],
    };
    expect(parseLink(link("shop", "run-1", address))).toEqual({ run: "run-1", address });
    expect(parseLink(link("shop", "run-1", null))).toEqual({ run: "run-1" });
  });
  it("that is no link leads nowhere", () => {
    expect(parseLink("#/w/shop")).toBeNull();
    expect(parseLink("#/w/shop?run=r&at=[1")).toEqual({ run: "r" });
    expect(parseLink('#/w/shop?run=r&at={"to":1}')).toEqual({ run: "r" });
  });
});

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
