import { describe, expect, it } from "vitest";
import * as Y from "yjs";

import { SharedWorkflow, reaches } from "./shared";
import type { OperatorKind } from "./types";

function kind(
  op: string,
  start: OperatorKind["start"] = {},
  least = 1,
  most: number | null = 1,
): OperatorKind {
  return {
    op,
    group: "g",
    summary: "",
    description: "",
    ports: { least, most },
    output: true,
    start,
    presets: [],
    schema: { properties: {}, required: [] },
  };
}

const filter = kind("filter", { condition: "true" });
const python = kind("python", { code: "class A: pass\n" });

/** Two documents that exchange everything when asked to. */
function pair(): [SharedWorkflow, SharedWorkflow, () => void] {
  const a = new SharedWorkflow();
  const b = new SharedWorkflow();
  const meet = (): void => {
    Y.applyUpdate(b.doc, Y.encodeStateAsUpdate(a.doc, Y.encodeStateVector(b.doc)));
    Y.applyUpdate(a.doc, Y.encodeStateAsUpdate(b.doc, Y.encodeStateVector(a.doc)));
  };
  return [a, b, meet];
}

describe("a shared workflow", () => {
  it("gives operators names of their own", () => {
    const flow = new SharedWorkflow();
    flow.add(filter, 0, 0);
    flow.add(filter, 0, 0);
    expect(flow.current().operators.map((o) => o.name)).toEqual(["filter", "filter_2"]);
  });

  it("keeps objects of operators that did not change", () => {
    const flow = new SharedWorkflow();
    const a = flow.add(filter, 0, 0);
    const b = flow.add(filter, 0, 0);
    const before = flow.current();
    flow.setField(b, "condition", "x > 1");
    const after = flow.current();
    expect(after.operators.find((o) => o.id === a)).toBe(before.operators.find((o) => o.id === a));
    expect(after.operators.find((o) => o.id === b)?.fields.condition).toBe("x > 1");
  });

  it("refuses circles and an operator that feeds itself", () => {
    const flow = new SharedWorkflow();
    const [a, b, c] = [flow.add(filter, 0, 0), flow.add(filter, 0, 0), flow.add(filter, 0, 0)];
    expect(flow.connect(a, b, 0)).toBeNull();
    expect(flow.connect(b, c, 0)).toBeNull();
    expect(flow.connect(c, a, 0)).toMatch(/circle/);
    expect(flow.connect(a, a, 0)).toMatch(/itself/);
    expect(reaches(flow.current().edges, a, c)).toBe(true);
  });

  it("removes an operator's edges with it", () => {
    const flow = new SharedWorkflow();
    const [a, b] = [flow.add(filter, 0, 0), flow.add(filter, 0, 0)];
    flow.connect(a, b, 0);
    flow.remove([a]);
    expect(flow.current().edges).toEqual([]);
  });

  it("undoes one's own edits and leaves those of others", () => {
    const [a, b, meet] = pair();
    const id = a.add(filter, 0, 0);
    meet();
    a.undo.stopCapturing();
    a.setField(id, "condition", "mine");
    meet();
    b.rename(id, "theirs");
    meet();
    a.undo.undo();
    meet();
    for (const flow of [a, b]) {
      expect(flow.current().operators[0]).toMatchObject({ name: "theirs", fields: { condition: "true" } });
    }
    a.undo.redo();
    expect(a.current().operators[0]?.fields.condition).toBe("mine");
  });

  it("merges code letter by letter", () => {
    const [a, b, meet] = pair();
    const id = a.add(python, 0, 0);
    meet();
    a.text(id, "code")!.insert(0, "# one\n");
    b.text(id, "code")!.insert(b.text(id, "code")!.length, "# two\n");
    meet();
    expect(a.current().operators[0]?.fields.code).toBe("# one\nclass A: pass\n# two\n");
    expect(b.current()).toEqual(a.current());
  });

  it("copies operators with the edges between them under fresh names", () => {
    const flow = new SharedWorkflow();
    const [a, b] = [flow.add(filter, 0, 0), flow.add(python, 10, 0)];
    flow.connect(a, b, 0);
    const made = flow.paste(flow.copy([a, b]));
    expect(
      flow
        .current()
        .operators.map((o) => o.name)
        .sort(),
    ).toEqual(["filter", "filter_2", "python", "python_2"]);
    expect(flow.current().edges).toContainEqual({
      id: `${made[1]}/0`,
      source: made[0],
      target: made[1],
      port: 0,
    });
  });

  it("says what is wrong with a name", () => {
    const flow = new SharedWorkflow();
    const a = flow.add(filter, 0, 0);
    flow.add(filter, 0, 0);
    expect(flow.rename(a, "filter_2")).toMatch(/already/);
    expect(flow.rename(a, "1x")).toMatch(/starts with a letter/);
    expect(flow.rename(a, "Größe")).toBeNull();
  });

  it("converges whatever two people do at once", () => {
    for (let seed = 1; seed <= 30; seed++) {
      let state = seed;
      const random = (below: number): number => ((state = (state * 48271) % 2147483647), state % below);
      const [a, b, meet] = pair();
      for (let i = 0; i < 60; i++) {
        const flow = random(2) ? a : b;
        const ids = flow.current().operators.map((o) => o.id);
        const id = ids[random(Math.max(1, ids.length))];
        const what = random(6);
        if (what === 0 || id === undefined) flow.add(random(2) ? filter : python, random(500), random(500));
        else if (what === 1) flow.rename(id, `n${random(5)}`);
        else if (what === 2) flow.connect(ids[random(ids.length)]!, id, random(2));
        else if (what === 3) flow.setField(id, "condition", `x > ${random(9)}`);
        else if (what === 4 && ids.length > 3) flow.remove([id]);
        else flow.undo.undo();
        if (random(5) === 0) meet();
      }
      meet();
      expect(b.current()).toEqual(a.current());
    }
  });
});
