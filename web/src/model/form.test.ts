import { describe, expect, it } from "vitest";

import { fieldsOf, parse, shown } from "./form";
import { sampleKind } from "./samples";
import type { FieldSchema } from "./types";

const texts: FieldSchema = { anyOf: [{ type: "array", items: { type: "string" } }, { type: "string" }] };

describe("forms", () => {
  const fields = fieldsOf(
    sampleKind("x", {
      code: { type: "string" },
      condition: { type: "string" },
      n: { anyOf: [{ type: "integer" }, { type: "null" }] },
      fraction: { type: "number", minimum: 0, maximum: 1 },
      by_name: { type: "boolean", default: false },
      how: { enum: ["inner", "left"], default: "inner" },
      path: texts,
      columns: { type: "object", additionalProperties: { type: "string" } },
      params: { type: "object", additionalProperties: {} },
      rows: { type: "array", items: { type: ["array", "object"] } },
    }),
  );
  const of = (name: string) => fields.find((f) => f.name === name)!;

  it("choose an input for each field of the schema", () => {
    expect(Object.fromEntries(fields.map((f) => [f.name, f.kind]))).toEqual({
      code: "code",
      condition: "expression",
      n: "number",
      fraction: "number",
      by_name: "flag",
      how: "choice",
      path: "texts",
      columns: "mapping",
      params: "json",
      rows: "json",
    });
  });

  it("read what is typed and show it again", () => {
    for (const [name, text, value] of [
      ["path", "a\nb", ["a", "b"]],
      ["columns", "x = a + 1\ny = b = c", { x: "a + 1", y: "b = c" }],
      ["rows", "[[1,2]]", [[1, 2]]],
      ["params", '{"floor": 5}', { floor: 5 }],
      ["n", "12", 12],
    ] as const) {
      expect(parse(of(name), text)).toEqual({ value, problem: null });
      expect(parse(of(name), shown(of(name), value as never))).toEqual({ value, problem: null });
    }
  });

  it("say what is wrong, and leave out what is empty", () => {
    expect(parse(of("n"), "1.5").problem).toMatch(/whole number/);
    expect(parse(of("columns"), "x").problem).toMatch(/name = value/);
    expect(parse(of("rows"), "[").problem).toMatch(/JSON/);
    expect(parse(of("n"), "  ")).toEqual({ value: undefined, problem: null });
  });
});
