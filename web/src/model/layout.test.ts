import { describe, expect, it } from "vitest";

import { arrange } from "./layout";

describe("arranging", () => {
  it("puts operators right of those that feed them, none on another", () => {
    const operators = ["a", "b", "c", "d"].map((id) => ({
      id,
      name: id,
      op: "filter",
      x: 0,
      y: 0,
      fields: {},
    }));
    const edges = [
      ["a", "c"],
      ["b", "c"],
      ["c", "d"],
    ].map(([source, target], i) => ({ id: String(i), source: source!, target: target!, port: i }));
    const at = new Map(arrange(operators, edges).map((p) => [p.id, p]));
    expect(at.get("c")!.x).toBeGreaterThan(at.get("a")!.x);
    expect(at.get("d")!.x).toBeGreaterThan(at.get("c")!.x);
    expect(new Set([...at.values()].map((p) => `${p.x}/${p.y}`)).size).toBe(4);
  });
});
