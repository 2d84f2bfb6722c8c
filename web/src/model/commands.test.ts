import { describe, expect, it } from "vitest";

import { type Command, find } from "./commands";
import { entries, search } from "./palette";
import type { OperatorKind } from "./types";

const command = (title: string, words?: string): Command => ({ title, words, run: () => undefined });

describe("commands", () => {
  const all = [
    command("Add bar chart", "draws rows"),
    command("Arrange"),
    command("Run"),
    command("Run to large"),
    command("Export as YAML", "download save"),
  ];

  it("are all listed when nothing is asked for", () => {
    expect(find(all, "")).toHaveLength(5);
  });

  it("are found by the beginnings of their words, titles first", () => {
    expect(find(all, "run").map((c) => c.title)).toEqual(["Run", "Run to large"]);
    expect(find(all, "a b c")[0]!.title).toBe("Add bar chart");
    expect(find(all, "save")[0]!.title).toBe("Export as YAML");
    expect(find(all, "nothing like it")).toEqual([]);
  });
});

describe("the palette", () => {
  const kind: OperatorKind = {
    op: "chart",
    group: "Charts",
    summary: "draws",
    description: "Draws rows.",
    ports: { least: 1, most: 1 },
    output: false,
    start: { chart: "bar" },
    presets: [{ title: "pie chart", summary: "shares", start: { chart: "pie" } }],
    schema: { properties: {}, required: [] },
  };
  const plain: OperatorKind = { ...kind, op: "with_columns", group: "Columns", presets: [] };

  it("shows what an operator can do as entries of their own", () => {
    const made = entries([kind, plain]);
    expect(made.map((m) => [m.key, m.title])).toEqual([
      ["chart:0", "pie chart"],
      ["with_columns", "with columns"],
    ]);
    expect(made[0]!.start).toEqual({ chart: "pie" });
  });

  it("is searched by title", () => {
    expect(search(entries([kind, plain]), "pie")[0]!.key).toBe("chart:0");
  });
});
