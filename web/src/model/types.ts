/** What the server says, as the views see it. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface FieldSchema {
  description?: string;
  type?: string | string[];
  enum?: Json[];
  anyOf?: FieldSchema[];
  items?: FieldSchema;
  default?: Json;
  minimum?: number;
  maximum?: number;
  additionalProperties?: boolean | FieldSchema;
}

export interface OperatorKind {
  op: string;
  group: string;
  summary: string;
  description: string;
  ports: { least: number; most: number | null };
  output: boolean;
  start: Record<string, Json>;
  /** What it can do, where that is several things: each with a title and what it starts with. */
  presets: { title: string; summary: string; start: Record<string, Json> }[];
  title?: string;
  schema: { properties: Record<string, FieldSchema>; required: string[] };
}

export interface Problem {
  message: string;
  hint: string | null;
  operator: string | null;
  kind: string;
  field: string | null;
}

export interface Column {
  name: string;
  type: string;
}

export interface Checked {
  problems: Problem[];
  schemas: Record<string, Column[]>;
  deep: boolean;
}

export interface OperatorProgress {
  name: string;
  kind: string;
  taken: number;
  given: number;
  rate: number;
  state_entries: number;
}

export interface Progress {
  status: string;
  epoch: number;
  fraction: number;
  seconds: number;
  operators: OperatorProgress[];
  note: string;
  /** Rows that did not parse, by source: they are not in the results. */
  rejected: Record<string, number>;
}

/** The first rows of a source that did not parse; of a Python operator, tuples that were skipped. */
export interface Rejected {
  operator: string;
  total: number;
  rows: Record<string, Json>[];
}

export interface ServerProblem {
  kind: string;
  message: string;
  hint: string | null;
  operator: string | null;
}

export interface Execution {
  execution: string;
  workflow: string | null;
  title: string;
  by: string;
  asked: number;
  status: string;
  stopped_by: string | null;
  paused_by: string | null;
  parent: string | null;
  run: string | null;
  progress: Progress | null;
  /** Figures of the operators now, with the epoch under way. */
  live: Record<string, LiveFigures>;
  held: { hold: string; operator: string; epoch: number; error: string }[];
  watches: {
    name: string;
    operator: string;
    condition: string | null;
    tuples: number | null;
    pause: boolean;
    by: string;
  }[];
  /** The breakpoints at which it is paused. */
  reached: { operator: string; epoch: number; row: Record<string, Json> | null; note: string }[];
  deeds: Deed[];
  /** How many lines Python operators have printed. */
  printed: number;
  error: ServerProblem | null;
}

export interface LiveFigures {
  taken: number;
  given: number;
  rate: number;
  queue: number;
  state_entries: number;
  /** Seconds of work for a tuple. */
  a_tuple: number | null;
}

/** Something a person did to a run. */
export interface Deed {
  at: number;
  by: string;
  did: string;
  operator?: string | null;
}

export interface HeldTuple {
  hold: string;
  operator: string;
  epoch: number;
  row: Record<string, Json>;
  error: string;
  traceback: string;
  locals: Record<string, string>;
  state: string;
}

export interface Inspection {
  operator: string;
  epoch: number;
  consistent: boolean;
  note: string;
  state: Record<string, StateValue>;
  in_flight: Record<string, Json>[] | null;
  more: number;
}

export interface Page {
  columns: Column[];
  rows: Record<string, Json>[];
  start: number;
  total: number | null;
}

export interface Change {
  operator: string;
  name: string;
  key: Json;
  keyed: boolean;
  before: Json;
  after: Json;
}

export interface StepInfo {
  operator: string;
  port: number;
  row: Record<string, Json> | null;
  outputs: Record<string, Json>[];
  changes: Change[];
}

export interface Moment {
  moment: string;
  epoch: number;
  counters: Record<string, { taken: number[]; given: number }>;
  last: StepInfo | null;
  changes: Change[];
  address: Address;
}

/** Where a moment is: where was jumped to, and the steps (how, operator) from there. */
export interface Address {
  to: Record<string, string | number>;
  steps: [string, string | null][];
}

/** A tuple and what was made from it: the operators it went through, those that gave something, the tuples. */
export interface Scope {
  operators: string[];
  from: string[];
  tuples: { operator: string; row: Record<string, Json> }[];
}

export type Lines = {
  number: number;
  text: string;
  event: string;
  locals: Record<string, Json>;
  value: Json;
}[];

export type NotebookEntry =
  | ({ kind: "did"; id: string } & Deed)
  | { kind: "note"; id: string; at: number; by: string; text: string; address: Address; epoch: number };

export type StateValue =
  { kind: "map"; size: number; start: number; entries: [Json, Json][] } | { kind: "value"; value: Json };

export interface OperatorState {
  operator: string;
  state: Record<string, StateValue>;
}

export interface Interaction {
  id: string;
  operator: string;
  epoch: number;
  note?: string;
}

export interface Recording {
  run: string;
  status: string;
  workflow: string | null;
  parent: string | null;
  started: number | null;
  epochs: number;
  progress: Progress;
  epoch_list: { epoch: number; level: number; seconds: number; taken: Record<string, number> }[];
  failed_epoch: number | null;
  message: string | null;
  interactions: Interaction[];
  operators: { name: string; op: string; inputs: string[] }[];
  code: Record<string, string | null>;
  sinks: string[];
}

export interface RecordingSummary {
  run: string;
  status: string;
  parent?: string | null;
  workflow?: string | null;
  started?: number | null;
}

export interface WorkflowSummary {
  workflow: string;
  people: number;
  changed: number;
}

export interface WorkspaceFile {
  path: string;
  bytes: number;
}

export interface Version {
  version: number;
  name: string;
  by: string;
  at: number;
}

/** Where somebody is in the past of a run. */
export interface Place {
  run: string;
  moment: string;
  epoch: number;
}

export interface Person {
  name: string;
  color: string;
  colorLight: string;
}
