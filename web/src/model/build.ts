/** What the canvas asks the server beyond the plain API: charts, runs up to an operator, exports, trials, SQL help. */
import type { Api } from "./api";
import type { Chart } from "./chart";
import type { SqlForm } from "./sql";
import type { Column } from "./types";

export const charts = (api: Api, run: string) =>
  api.ask("get", "/api/recordings/{run}/charts", { path: { run } }) as Promise<unknown> as Promise<Chart[]>;

export const runTo = (api: Api, id: string, to: string, by: string) => api.run(id, by, { to });

export const tryOut = (api: Api, id: string, operator: string) =>
  api.ask("post", "/api/workflows/{id}/try/{operator}", { path: { id, operator } });

export const lint = (api: Api, code: string) => api.ask("post", "/api/lint", { body: { code } });

export const checkSql = (api: Api, sql: string, columns: Column[], form: SqlForm) =>
  api.ask("post", "/api/sql", { body: { sql, columns, form } });

export const functions = (api: Api) => api.ask("get", "/api/sql/functions", {});

export type Form = "yaml" | "json" | "python";

const SUFFIX: Record<Form, string> = { yaml: "yaml", json: "json", python: "py" };

export function exportLink(id: string, form: Form): { href: string; download: string } {
  return {
    href: `/api/workflows/${encodeURIComponent(id)}/export?format=${form}`,
    download: `${id}.${SUFFIX[form]}`,
  };
}
