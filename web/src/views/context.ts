/**
 * What all views of one open workflow share, in three parts, so that a view is drawn again only for what it shows:
 *
 *   the document    the workflow, its connection, the API, who sits here and what is selected: changes with an edit
 *   executions      news of runs, three times a second while one goes on: a store, of which a view selects a part
 *   the journey     the moment that is looked at: a store as well
 */
import { createContext, useContext, useSyncExternalStore } from "react";

import type { Api } from "../model/api";
import type { Connection, Status } from "../model/connection";
import type { Executions, Known } from "../model/executions";
import type { Journey, Travelled } from "../model/journey";
import type { SharedWorkflow, Snapshot } from "../model/shared";
import type { Store } from "../model/store";
import type { Checked, Execution, OperatorKind, Person } from "../model/types";

export interface Document {
  id: string;
  api: Api;
  shared: SharedWorkflow;
  connection: Connection;
  kinds: Map<string, OperatorKind>;
  person: Person;
  selected: string | null;
  select: (id: string | null) => void;
  checked: Checked;
  /** The edge that was clicked last. */
  edge: string | null;
  setEdge: (id: string | null) => void;
  /** The person (by the id of their connection) whose steps are followed. */
  following: number | null;
  follow: (client: number | null) => void;
  tell: (problem: unknown) => void;
}

export const DocumentContext = createContext<Document | null>(null);
export const ExecutionContext = createContext<Executions | null>(null);
export const JourneyContext = createContext<Journey | null>(null);

function inWorkbench<T>(value: T | null): T {
  if (value === null) throw new Error("used outside of a workbench");
  return value;
}

export function useDocument(): Document {
  return inWorkbench(useContext(DocumentContext));
}

/** The store itself, for what is asked when something is clicked. */
export function useExecutions(): Executions {
  return inWorkbench(useContext(ExecutionContext));
}

/** A part of what is known of runs; the view is drawn again when that part is another one. */
export function useKnown<T>(select: (known: Known) => T): T {
  return useSelected(useExecutions(), select);
}

/** A part of the execution that the workbench shows. */
export function useExecution<T>(select: (execution: Execution | null) => T): T {
  return useKnown((known) => select(known.latest));
}

export function useJourney(): Journey {
  return inWorkbench(useContext(JourneyContext));
}

/** A part of where the journey is now. */
export function useTravelled<T>(select: (now: Travelled) => T): T {
  return useSelected(useJourney(), select);
}

/** `select` returns a primitive value or a part of the store's value as it is, never a new object. */
function useSelected<S, T>(store: Store<S>, select: (value: S) => T): T {
  return useSyncExternalStore(store.subscribe, () => select(store.current()));
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
