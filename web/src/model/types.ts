/** The server's data by the names that the model and the views use, and what no route answers. */
import type { Json, components } from "./server";

type Server = components["schemas"];

export type { Json };
export type Address = Server["AddressData"];
export type Change = Server["ChangeData"];
export type Checked = Server["CheckedData"];
export type Column = Server["ColumnData"];
export type ColumnFigures = Server["ColumnFiguresData"];
export type Comparison = Server["ComparisonData"];
export type ConsoleLine = Server["ConsoleLineData"];
export type Deed = Server["DeedData"];
export type Execution = Server["ExecutionData"];
export type HeldTuple = Server["HeldTupleData"];
export type Inspection = Server["InspectionData"];
export type Line = Server["LineData"];
export type Moment = Server["MomentData"];
export type Note = Server["NoteEntryData"];
export type OperatorProgress = Server["OperatorProgressData"];
export type OperatorState = Server["OperatorStateData"];
export type Page = Server["PageData"];
export type PendingTuple = Server["PendingTupleData"];
export type Problem = Server["DocumentProblemData"];
export type Recording = Server["RecordingData"];
export type RecordingSummary = Server["RecordingSummaryData"];
export type Rejected = Server["RejectedData"];
export type Scope = Server["ScopeData"];
export type ServerProblem = Server["ProblemData"];
export type StateValue = OperatorState["state"][string];
export type Trial = Server["TrialData"];
export type ValueCount = Server["ValueCountData"] | Server["RangeData"];
export type Version = Server["VersionData"];
export type WorkflowSummary = Server["WorkflowSummaryData"];
export type WorkspaceFile = Server["FileData"];

/** JSON Schema, as far as forms are made of it. */
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

export interface OperatorKind extends Omit<Server["OperatorKindData"], "schema"> {
  title?: string;
  schema: { properties: Record<string, FieldSchema>; required: string[] };
}

/** Where somebody is in the past of a run: told to the others by the shared document's connection. */
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
