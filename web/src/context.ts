/** What all views of one open workflow share: its document, its connection, the API, and who sits here. */
import { createContext, useContext, useSyncExternalStore } from "react";

import type { Api } from "./model/api";
import type { Connection, Status } from "./model/connection";
import type { SharedWorkflow, Snapshot } from "./model/shared";
import type { Visit } from "./model/journey";
import type { Checked, Execution, Moment, OperatorKind, Person, Scope } from "./model/types";

export interface Bench {
  id: string;
  api: Api;
  shared: SharedWorkflow;
  connection: Connection;
  kinds: Map<string, OperatorKind>;
  person: Person;
  selected: string | null;
  select: (id: string | null) => void;
  checked: Checked;
  execution: Execution | null;
  /** The moment that is looked at, with its run; null: the present. */
  moment: Moment | null;
  setMoment: (moment: Moment | null) => void;
  /** The edge that was clicked last. */
  edge: string | null;
  setEdge: (id: string | null) => void;
  /** The tuple that was clicked, with all that came of it. */
  scope: Scope | null;
  setScope: (scope: Scope | null) => void;
  /** A moment of some run to go to: from a link, a comparison, or because the person followed went there. */
  visiting: Visit | null;
  visit: (to: Visit | null) => void;
  /** The person (by the id of their connection) whose steps are followed. */
  following: number | null;
  follow: (client: number | null) => void;
  /** News of notebooks, by run. */
  noted: Record<string, number>;
  tell: (problem: unknown) => void;
}

export const BenchContext = createContext<Bench | null>(null);

export function useBench(): Bench {
  const bench = useContext(BenchContext);
  if (bench === null) throw new Error("used outside of a workbench");
  return bench;
}

export function useSnapshot(shared: SharedWorkflow): Snapshot {
  return useSyncExternalStore(shared.subscribe, shared.current);
}

export function useStatus(connection: Connection): Status {
  return useSyncExternalStore(connection.subscribe, connection.getStatus);
}

export function socketUrl(path: string): string {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
}
