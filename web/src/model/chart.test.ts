import { describe, expect, it } from "vitest";

import { type Chart, described, label, linear, place, range, short, slice, thinned, ticks } from "./chart";

const chart: Chart = {
  name: "c",
  chart: "bar",
  title: "c",
  x: "who",
  y: "n",
  by: null,
  measure: "sum",
  rows: 9,
  left_out: 0,
  series: [
    {
      name: null,
      points: [
        ["a", 1],
        ["b", 2],
      ],
    },
  ],
  xs: ["a", "b"],
  kind: "text",
};

describe("charts", () => {
  it("ticks are round and cover the range", () => {
    expect(ticks(0, 10)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(ticks(0.03, 0.11, 4)).toEqual([0.04, 0.06, 0.08, 0.1]);
    expect(ticks(5, 5)).toEqual([5]);
    expect(ticks(-7, 3).every((t) => t >= -7 && t <= 3)).toBe(true);
  });

  it("a scale maps ends to ends, and a single value somewhere", () => {
    const scale = linear([0, 10], [100, 0]);
    expect([scale(0), scale(5), scale(10)]).toEqual([100, 50, 0]);
    expect(Number.isFinite(linear([3, 3], [0, 10])(3))).toBe(true);
  });

  it("bars start at zero, points need not", () => {
    expect(range([3, 8], true)).toEqual([0, 8]);
    expect(range([-3, -8], true)).toEqual([-8, 0]);
    expect(range([3, 8], false)).toEqual([3, 8]);
    expect(range([], true)).toEqual([0, 1]);
    const [low, high] = range([4, 4], true);
    expect(low).toBeLessThan(high);
  });

  it("values find their place by kind", () => {
    expect(place(chart, "b")).toBe(1);
    expect(place({ ...chart, kind: "number" }, 2.5)).toBe(2.5);
    expect(place({ ...chart, kind: "time" }, "2026-01-02")).toBe(Date.UTC(2026, 0, 2));
  });

  it("labels are short and never empty", () => {
    expect(label(null)).toBe("(none)");
    expect(label("2026-01-02T00:00:00")).toBe("2026-01-02");
    expect([short(1234567), short(45000), short(1.23456), short(0)]).toEqual(["1.23M", "45k", "1.235", "0"]);
    expect(thinned(100, 400, 40)).toHaveLength(10);
  });

  it("slices are closed, also one that is the whole", () => {
    expect(slice(50, 50, 40, 0, 1)).toMatch(/^M50 50L.*A40 40 0 1 1 .*Z$/);
    expect(slice(50, 50, 40, 0, 0.25)).toContain("0 0 1");
  });

  it("says what it shows", () => {
    expect(described(chart)).toBe("bar chart: sum of n over who; 2 values from 9 rows");
  });
});
