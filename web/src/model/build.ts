/** What the canvas asks the server beyond the plain API: charts, runs up to an operator, exports, trials, SQL help. */
import type { Api } from "./api";
import type { Chart } from "./chart";
import type { SqlForm } from "./sql";
import type { Column, Execution, Json, ServerProblem } from "./types";

const e = encodeURIComponent;

export interface Trial {
  /** Rows it was tried on, rows it gave, and what went wrong. */
  given: Record<string, Json>[];
  rows: Record<string, Json>[];
  columns: Column[];
  error: ServerProblem | null;
}

export interface Gallery {
  name: string;
  title: string;
  story: string;
}

export const charts = (api: Api, run: string) => api.call<Chart[]>("GET", `/api/recordings/${e(run)}/charts`);

export const runTo = (api: Api, id: string, to: string, by: string) =>
  api.call<Execution>("POST", `/api/workflows/${e(id)}/run`, { by, to });

export const tryOut = (api: Api, id: string, operator: string) =>
  api.call<Trial>("POST", `/api/workflows/${e(id)}/try/${e(operator)}`);

export const lint = (api: Api, code: string) =>
  api.call<{ problems: { line: number; column: number; message: string }[] }>("POST", "/api/lint", { code });

export const checkSql = (api: Api, sql: string, columns: Column[], form: SqlForm) =>
  api.call<{ problem: { message: string; hint: string | null } | null; type: string | null }>(
    "POST",
    "/api/sql",
    { sql, columns, form },
  );

export const functions = (api: Api) => api.call<{ name: string }[]>("GET", "/api/sql/functions");

export type Form = "yaml" | "json" | "python";

const SUFFIX: Record<Form, string> = { yaml: "yaml", json: "json", python: "py" };

export function exportLink(id: string, form: Form): { href: string; download: string } {
  return { href: `/api/workflows/${e(id)}/export?format=${form}`, download: `${id}.${SUFFIX[form]}` };
}
