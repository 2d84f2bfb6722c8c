/** Two recordings compared, and the way to the cause. */
import type { Api } from "./api";
import type { components } from "./server";
import type { Comparison } from "./types";

export type Wanted = components["schemas"]["Compare"];
export type Order = NonNullable<Wanted["order"]>;

export const compare = (api: Api, wanted: Wanted) => api.ask("post", "/api/compare", { body: wanted });

export const cause = (api: Api, comparison: string, side: "left" | "right") =>
  api.ask("post", "/api/comparisons/{comparison}/cause", { path: { comparison }, body: { side } });

/** The columns of rows that differ, those in which they do first. */
export function columnsOf(pairs: Comparison["pairs"]): string[] {
  const differ = new Set(pairs.flatMap((p) => (p.left && p.right ? p.differ : [])));
  const all = new Set(pairs.flatMap((p) => Object.keys({ ...p.left, ...p.right })));
  return [...[...all].filter((name) => differ.has(name)), ...[...all].filter((name) => !differ.has(name))];
}

/** The side to look for the cause at: the right one, the newer by custom, unless only the left has rows too many. */
export function sideOfCause(found: Comparison): "left" | "right" {
  return found.pairs.some((p) => p.right !== null) ? "right" : "left";
}

/** The verdict in a line. */
export function verdictLine(found: Comparison): string {
  if (found.equivalent) return `The same: ${found.rows.left ?? "all"} rows (${found.depends}).`;
  const left = found.without_partner.left ?? 0;
  const right = found.without_partner.right ?? 0;
  return `Different (${found.depends}): ${left} rows of the left and ${right} of the right have no partner.`;
}
