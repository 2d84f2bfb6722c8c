import { describe, expect, it } from "vitest";

import { changesOf, edgeLabel, tuplesOf, withLive } from "./figures";
import { sampleExecution as running, sampleFigures, sampleMoment } from "./samples";

describe("figures of a run", () => {
  it("count what the epoch under way has processed", () => {
    const live = { FE: sampleFigures(7, 5) };
    expect(withLive(running).get("FE")?.taken).toBe(3);
    expect(withLive({ ...running, live }).get("FE")).toMatchObject({ taken: 7, given: 5 });
    expect(withLive(null).size).toBe(0);
  });
  it("are those of the moment that is looked at", () => {
    expect(tuplesOf(running, null, "FE", "given")).toBe(2);
    expect(tuplesOf(running, sampleMoment(0, 1), "FE", "taken")).toBe(1);
    expect(tuplesOf(running, sampleMoment(0, 1), "FD", "taken")).toBe(0);
    expect(tuplesOf(null, null, "FE", "taken")).toBeNull();
  });
});

describe("an edge", () => {
  const edge = { source: "FE", target: "FD", port: 0, alone: true };
  it("shows the tuples that went over it, and its watches", () => {
    expect(edgeLabel(null, null, edge)).toBe("");
    expect(edgeLabel(running, null, edge)).toBe("2");
    const watch = { name: "1", operator: "FD", tuples: null, outputs: null, pause: false, by: "Ana" };
    const watches = [{ ...watch, condition: "n > 1" }];
    expect(edgeLabel({ ...running, watches }, null, edge)).toBe("2  👁 n > 1");
  });
  it("shows at a moment the tuples that wait at its end", () => {
    const moment = sampleMoment(0, 5);
    moment.counters.FD = { taken: [3], given: 3 };
    expect(edgeLabel(running, moment, edge)).toBe("5  2 wait");
  });
});

it("what a step changed is told in a line", () => {
  const change = { operator: "FE", name: "highest", key: "Bob", keyed: true, before: 1, after: 2 };
  const moment = { ...sampleMoment(0, 1), changes: [change, { ...change, after: { $absent: true } }] };
  expect(changesOf(moment, "FE")).toBe("highest[Bob]: 1 → 2, highest[Bob] removed");
  expect(changesOf(moment, "FD")).toBeNull();
});
