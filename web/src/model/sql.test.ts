import { describe, expect, it } from "vitest";

import type { Field } from "./form";
import { expressions, offers, quoted, sqlForm } from "./sql";

const field = (name: string, kind: Field["kind"]): Field => ({
  name,
  kind,
  label: name,
  help: "",
  required: true,
  choices: [],
  offers: [],
  integer: false,
  placeholder: "",
});

describe("SQL in fields", () => {
  it("knows which fields hold SQL", () => {
    expect(sqlForm("filter", field("condition", "expression"))).toBe("condition");
    expect(sqlForm("sort", field("keys", "texts"))).toBe("sort");
    expect(sqlForm("read", field("path", "texts"))).toBeNull();
  });

  it("takes lists line by line, mappings behind the first equals sign, conditions whole", () => {
    expect(expressions(field("columns", "texts"), "a\n\n b + 1 ")).toEqual([
      { sql: "a", line: 1 },
      { sql: "b + 1", line: 3 },
    ]);
    expect(expressions(field("columns", "mapping"), "x = a = b\ny")).toEqual([{ sql: "a = b", line: 1 }]);
    expect(expressions(field("condition", "expression"), "a\nAND b")).toEqual([{ sql: "a\nAND b", line: 1 }]);
    expect(expressions(field("condition", "expression"), " ")).toEqual([]);
  });

  it("offers columns before functions, odd names in backticks", () => {
    const made = offers(
      [
        { name: "who is", type: "string" },
        { name: "who is", type: "string" },
      ],
      [{ name: "sum" }],
    );
    expect(made.filter((o) => o.rank === 2)).toEqual([
      { label: "who is", detail: "string", apply: "`who is`", rank: 2 },
    ]);
    expect(made.find((o) => o.label === "sum")?.apply).toBe("sum(");
    expect(quoted("a`b")).toBe("`a``b`");
  });
});
