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
  run: string | null;
  progress: Progress | null;
  error: ServerProblem | null;
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
}

export type StateValue =
  | { kind: "map"; size: number; start: number; entries: [Json, Json][] }
  | { kind: "value"; value: Json };

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
  started: number | null;
  epochs: number;
  progress: Progress;
  epoch_list: { epoch: number; level: number; seconds: number }[];
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
