/** Steering a run that goes on: what the server is asked, and what is told of it. */
import type { Api } from "./api";
import type { Deed, Execution, HeldTuple, Inspection, Json } from "./types";

const e = encodeURIComponent;

function post<T>(api: Api, execution: string, what: string, body: object): Promise<T> {
  return api.call<T>("POST", `/api/executions/${e(execution)}/${what}`, body);
}

export type Consistency = "strict" | "backward" | "none";

export const steer = {
  pause: (api: Api, execution: string, by: string, mode: "direct" | "aligned" = "direct") =>
    post<Execution>(api, execution, "pause", { by, mode }),
  resume: (api: Api, execution: string, by: string) => post<Execution>(api, execution, "resume", { by }),
  inspect: (api: Api, execution: string, by: string, operator: string) =>
    post<Inspection>(api, execution, "inspect", { by, operator }),
  held: (api: Api, execution: string) => api.call<HeldTuple[]>("GET", `/api/executions/${e(execution)}/held`),
  retry: (api: Api, execution: string, by: string, operator: string, row: Record<string, Json> | null) =>
    post<Execution>(api, execution, "retry", { by, operator, row }),
  skip: (api: Api, execution: string, by: string, operator: string, allLikeIt: boolean) =>
    post<Execution>(api, execution, "skip", { by, operator, all_like_it: allLikeIt }),
  modify: (
    api: Api,
    execution: string,
    by: string,
    changes: Record<string, string | Record<string, Json>>,
    consistency: Consistency,
  ) => post<Execution>(api, execution, "modify", { by, changes, consistency }),
  watch: (api: Api, execution: string, by: string, operator: string, condition: string, pause: boolean) =>
    /^\d+$/.test(condition.trim())
      ? post<Execution>(api, execution, "break", { by, operator, tuples: Number(condition) })
      : post<Execution>(api, execution, pause ? "break" : "watch", { by, operator, condition }),
  unwatch: (api: Api, execution: string, by: string, name: string) =>
    api.call<Execution>(
      "DELETE",
      `/api/executions/${e(execution)}/watches/${e(name)}?${new URLSearchParams({ by }).toString()}`,
    ),
  mark: (api: Api, execution: string, by: string, operator: string, note: string) =>
    post<{ interaction: string }>(api, execution, "interact", { by, operator, note }),
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
