import { describe, expect, it } from "vitest";

import { sampleMoment as moment } from "./samples";
import { neighbour, shareOf, trackOf, whereAt } from "./timeline";

const track = trackOf({
  epoch_list: [
    { epoch: 0, level: 0, seconds: 1, at: 1, taken: { FE: 10 } },
    { epoch: 1, level: 0, seconds: 3, at: 4, taken: { FE: 20, FD: 20 } },
  ],
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
