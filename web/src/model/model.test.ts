import { describe, expect, it } from "vitest";

import { Api, ApiError } from "./api";
import { describe as words, latest, told } from "./executions";
import { fieldsOf, parse, shown } from "./form";
import { arrange } from "./layout";
import { PAGE, Pages } from "./pages";
import { entries, search } from "./palette";
import { person } from "./person";
import { withLive } from "./figures";
import { asText, changedRow, duration } from "./steering";
import type { Execution, FieldSchema, OperatorKind } from "./types";
import { brief, count, isAbsent } from "./values";

function kind(op: string, properties: Record<string, FieldSchema> = {}, summary = ""): OperatorKind {
  const ports = { least: 1, most: 1 };
  return {
    op,
    group: "Rows",
    summary,
    description: "",
    ports,
    output: true,
    start: {},
    presets: [],
    schema: { properties, required: [] },
  };
}

const texts: FieldSchema = { anyOf: [{ type: "array", items: { type: "string" } }, { type: "string" }] };

describe("forms", () => {
  const fields = fieldsOf(
    kind("x", {
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

describe("the palette", () => {
  const kinds = [
    kind("select", {}, "Columns computed from each row"),
    kind("filter", {}, "Keeps rows"),
    kind("drop_duplicates", {}, "filters out"),
  ];
  it("finds by name first, then by description", () => {
    expect(search(entries(kinds), "filter").map((k) => k.op)).toEqual(["filter", "drop_duplicates"]);
    expect(search(entries(kinds), "drop dup").map((k) => k.op)).toEqual(["drop_duplicates"]);
    expect(search(entries(kinds), "").length).toBe(3);
    expect(search(entries(kinds), "nothing")).toEqual([]);
  });
});

describe("executions", () => {
  const one: Execution = {
    execution: "a",
    workflow: "w",
    title: "t",
    by: "Ana",
    asked: 1,
    status: "running",
    stopped_by: null,
    run: "r",
    error: null,
    paused_by: null,
    parent: null,
    live: {},
    held: [],
    watches: [],
    reached: [],
    deeds: [],
    printed: 0,
    progress: {
      status: "running",
      epoch: 2,
      fraction: 0.5,
      seconds: 1,
      note: "",
      rejected: {},
      operators: [{ name: "FE", kind: "python", taken: 3, given: 2, rate: 1, state_entries: 0 }],
    },
  };
  it("take news in the order they were asked for", () => {
    const two = { ...one, execution: "b", asked: 2 };
    let known = told([], { kind: "executions", data: [two, one] });
    known = told(known, { kind: "execution", data: { ...one, status: "completed" } });
    expect(known.map((e) => [e.execution, e.status])).toEqual([
      ["a", "completed"],
      ["b", "running"],
    ]);
    expect(latest(known, "w")?.execution).toBe("b");
    expect(latest(known, "other")).toBeNull();
    expect(told(known, { kind: "notebook", data: { run: "r" } })).toBe(known);
  });
  it("are told in words", () => {
    expect(words(one)).toBe("Runs: 50 %, epoch 2 (asked for by Ana)");
    expect(words({ ...one, status: "stopped", stopped_by: "Bob" })).toBe("Stopped by Bob");
    expect(words({ ...one, status: "paused", paused_by: "Ana" })).toBe("Paused by Ana");
    const reached = [{ operator: "FE", epoch: 0, row: { n: 7 }, note: "" }];
    expect(words({ ...one, status: "paused", reached })).toBe("Paused at a breakpoint of FE: {n: 7}");
    const held = [{ hold: "h", operator: "FE", epoch: 0, error: "KeyError: 'x'" }];
    expect(words({ ...one, status: "holding", held })).toBe("FE holds a tuple: KeyError: 'x'");
  });
  it("count what the epoch under way has processed", () => {
    const live = { FE: { taken: 7, given: 5, rate: 1, queue: 0, state_entries: 0, a_tuple: 1e-5 } };
    expect(withLive(one).get("FE")?.taken).toBe(3);
    expect(withLive({ ...one, live }).get("FE")).toMatchObject({ taken: 7, given: 5 });
    expect(withLive(null).size).toBe(0);
  });
});

describe("a held tuple", () => {
  const row = { n: 5, name: "Bob", tags: ["a"] };
  it("is sent back with the columns that were changed, in their own types", () => {
    const typed = Object.fromEntries(Object.entries(row).map(([k, v]) => [k, asText(v)]));
    expect(changedRow(row, typed)).toBeNull();
    expect(changedRow(row, { ...typed, n: "6", name: "6" })).toEqual({ n: 6, name: "6" });
    expect(changedRow(row, { ...typed, tags: '["b"]', n: "six" })).toEqual({ tags: ["b"], n: "six" });
  });
  it("has a time for each tuple that people can read", () => {
    expect([duration(2), duration(0.25), duration(0.0023), duration(1e-8)]).toEqual([
      "2.0 s",
      "250 ms",
      "2.3 ms",
      "1 µs",
    ]);
  });
});

describe("pages of a result", () => {
  it("load what is looked at and forget what was looked at long ago", async () => {
    const asked: number[] = [];
    let changes = 0;
    const pages = new Pages(
      async (start, size) => {
        asked.push(start);
        return {
          columns: [{ name: "n", type: "int" }],
          rows: Array.from({ length: size }, (_, i) => ({ n: start + i })),
          start,
          total: 1_000_000,
        };
      },
      () => changes++,
    );
    await pages.fetch(0);
    expect(pages.row(5)).toEqual({ n: 5 });
    expect(pages.row(999_950)).toBeUndefined();
    await new Promise((done) => setTimeout(done, 0));
    expect(pages.row(999_950)).toEqual({ n: 999_950 });
    for (let page = 1; page < 60; page++) await pages.fetch(page);
    expect(asked.length).toBe(61);
    expect(pages.row(5)).toBeUndefined();
    expect(pages.row(59 * PAGE)).toEqual({ n: 59 * PAGE });
    expect(changes).toBeGreaterThan(60);
  });
  it("stop asking after an error, and show it", async () => {
    let asked = 0;
    const pages = new Pages(
      () => (asked++, Promise.reject(new Error("no"))),
      () => undefined,
    );
    await pages.fetch(0);
    pages.row(0);
    expect([asked, pages.problem?.message]).toEqual([1, "no"]);
  });
});

describe("the API", () => {
  it("gives the server's message and hint", async () => {
    const body = {
      error: {
        kind: "UnknownName",
        message: "Expected an operator, got 'x'.",
        hint: "Did you mean 'y'?",
        operator: null,
      },
    };
    const api = new Api(async () => new Response(JSON.stringify(body), { status: 422 }));
    const error = await api.recording("a/b").catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).hint).toBe("Did you mean 'y'?");
  });
  it("encodes what stands in paths", async () => {
    let path = "";
    const api = new Api(async (given) => ((path = given), new Response("{}")));
    await api.state("r", "m1", "a b/c");
    expect(path).toBe("/api/recordings/r/moments/m1/state/a%20b%2Fc");
  });
});

describe("values", () => {
  it("are short and told apart", () => {
    expect(brief({ $map: [[1, "a"]], $more: 3 })).toBe('{1: "a", … 3 more}');
    expect(brief("x".repeat(100), 10)).toHaveLength(10);
    expect(isAbsent({ $absent: true })).toBe(true);
    expect(brief(12345678901.25)).toBe("12345678901.25"); // all digits: two that differ look different
    expect(brief(0.1 + 0.2)).toBe("0.30000000000000004");
    expect(count(1234567)).toBe("1\u202f234\u202f567");
  });
});

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

describe("a person", () => {
  it("keeps name and colour", () => {
    const kept = new Map<string, string>();
    const storage = {
      getItem: (k: string) => kept.get(k) ?? null,
      setItem: (k: string, v: string) => void kept.set(k, v),
    };
    const first = person(storage);
    expect(person(storage)).toEqual(first);
  });
});
