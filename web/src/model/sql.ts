/** Help with SQL text: the word to complete, the lines that are expressions of their own, and names as SQL. Pure. */
import type { Field } from "./form";
import type { Column } from "./types";

export type SqlForm = "expression" | "condition" | "sort";

/** Fields that hold SQL, by operator and field: what kind of expression, and whether each line is one. */
const FIELDS: Record<string, SqlForm> = {
  "filter.condition": "condition",
  "select.columns": "expression",
  "with_columns.columns": "expression",
  "aggregate.keys": "expression",
  "aggregate.aggregates": "expression",
  "sort.keys": "sort",
};

export function sqlForm(op: string, field: Field): SqlForm | null {
  return FIELDS[`${op}.${field.name}`] ?? null;
}

/** The expressions in what was typed, each with the line it is on: for a mapping what stands behind the first `=`. */
export function expressions(field: Field, text: string): { sql: string; line: number }[] {
  if (field.kind === "expression") return text.trim() === "" ? [] : [{ sql: text, line: 1 }];
  return text.split("\n").flatMap((line, i) => {
    const cut = field.kind === "mapping" ? line.indexOf("=") : -1;
    if (field.kind === "mapping" && cut < 1) return [];
    const sql = line.slice(cut + 1).trim();
    return sql === "" ? [] : [{ sql, line: i + 1 }];
  });
}

/** A column's name as SQL takes it. */
export function quoted(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}

export interface Offer {
  label: string;
  detail: string;
  apply: string;
  rank: number;
}

const KEYWORDS = [
  "AND",
  "OR",
  "NOT",
  "IN",
  "LIKE",
  "RLIKE",
  "BETWEEN",
  "IS NULL",
  "IS NOT NULL",
  "CASE WHEN",
  "THEN",
  "ELSE",
  "END",
  "AS",
  "DESC",
  "ASC",
  "NULLS LAST",
  "DATE",
  "TIMESTAMP",
  "INTERVAL",
  "TRUE",
  "FALSE",
  "NULL",
];

/** What may stand where a word begins: columns first, then functions, then SQL's own words. */
export function offers(columns: Column[], functions: { name: string }[]): Offer[] {
  const seen = new Set<string>();
  const made: Offer[] = [];
  for (const column of columns) {
    if (seen.has(column.name)) continue;
    seen.add(column.name);
    made.push({ label: column.name, detail: column.type, apply: quoted(column.name), rank: 2 });
  }
  for (const { name } of functions)
    made.push({ label: name, detail: "function", apply: `${name}(`, rank: 1 });
  for (const word of KEYWORDS) made.push({ label: word, detail: "", apply: word, rank: 0 });
  return made;
}
