/** Steering a run that goes on: what the server is asked, and what is told of it. */
import type { Api } from "./api";
import type { components } from "./server";
import type { Deed, Json } from "./types";

type Modify = components["schemas"]["Modify"];
export type Consistency = NonNullable<Modify["consistency"]>;

export const steer = {
  pause: (api: Api, id: string, by: string) =>
    api.ask("post", "/api/executions/{id}/pause", { path: { id }, body: { by } }),
  resume: (api: Api, id: string, by: string) =>
    api.ask("post", "/api/executions/{id}/resume", { path: { id }, body: { by } }),
  inspect: (api: Api, id: string, by: string, operator: string) =>
    api.ask("post", "/api/executions/{id}/inspect", { path: { id }, body: { by, operator } }),
  held: (api: Api, id: string) => api.ask("get", "/api/executions/{id}/held", { path: { id } }),
  retry: (api: Api, id: string, by: string, operator: string, row: Record<string, Json> | null) =>
    api.ask("post", "/api/executions/{id}/retry", { path: { id }, body: { by, operator, row } }),
  skip: (api: Api, id: string, by: string, operator: string, allLikeIt: boolean) =>
    api.ask("post", "/api/executions/{id}/skip", {
      path: { id },
      body: { by, operator, all_like_it: allLikeIt },
    }),
  modify: (api: Api, id: string, by: string, changes: Modify["changes"], consistency: Consistency) =>
    api.ask("post", "/api/executions/{id}/modify", { path: { id }, body: { by, changes, consistency } }),
  /** A number as condition: pause after so many tuples. */
  watch: (api: Api, id: string, by: string, operator: string, condition: string, pause: boolean) => {
    if (/^\d+$/.test(condition.trim())) {
      const tuples = Number(condition);
      return api.ask("post", "/api/executions/{id}/break", { path: { id }, body: { by, operator, tuples } });
    }
    const route = pause ? "/api/executions/{id}/break" : "/api/executions/{id}/watch";
    return api.ask("post", route, { path: { id }, body: { by, operator, condition } });
  },
  unwatch: (api: Api, id: string, by: string, name: string) =>
    api.ask("delete", "/api/executions/{id}/watches/{name}", { path: { id, name }, query: { by } }),
  mark: (api: Api, id: string, by: string, operator: string, note: string) =>
    api.ask("post", "/api/executions/{id}/interact", { path: { id }, body: { by, operator, note } }),
};

/** The time an operator takes for a tuple, as people say it: 12 µs. */
export function duration(seconds: number): string {
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toFixed(seconds >= 1e-2 ? 0 : 1)} ms`;
  return `${Math.max(1, Math.round(seconds * 1e6))} µs`;
}

/** What somebody did, in a line. */
export function deedLine(deed: Deed): string {
  return `${deed.by || "Somebody"} ${deed.did}`;
}

/** The columns a person changed in a tuple; what they typed is read as JSON where it is, else as text. */
export function changedRow(
  row: Record<string, Json>,
  typed: Record<string, string>,
): Record<string, Json> | null {
  const changed: Record<string, Json> = {};
  for (const [name, text] of Object.entries(typed)) {
    const before = row[name] ?? null;
    if (text === asText(before)) continue;
    changed[name] = typeof before === "string" ? text : fromText(text);
  }
  return Object.keys(changed).length > 0 ? changed : null;
}

export function asText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function fromText(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

const KEY = "samovar-on-error";
export type OnError = "hold" | "fail";

/** What happens at a tuple that a Python operator raises on, as this person last chose. */
export function onError(storage: Pick<Storage, "getItem">): OnError {
  return storage.getItem(KEY) === "fail" ? "fail" : "hold";
}

export function keepOnError(storage: Pick<Storage, "setItem">, chosen: OnError): OnError {
  storage.setItem(KEY, chosen);
  return chosen;
}
