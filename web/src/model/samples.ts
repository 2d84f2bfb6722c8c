/** Data of the server's for tests, complete and plain; a test changes what it is about. */
import type { Execution, FieldSchema, Moment, OperatorKind } from "./types";

export function sampleKind(
  op: string,
  properties: Record<string, FieldSchema> = {},
  summary = "",
): OperatorKind {
  return {
    op,
    group: "Rows",
    summary,
    description: "",
    ports: { least: 1, most: 1 },
    output: true,
    start: {},
    presets: [],
    schema: { properties, required: [] },
  };
}

/** A run of the workflow "w" with one operator, "FE", half done. */
export const sampleExecution: Execution = {
  execution: "a",
  workflow: "w",
  title: "t",
  by: "Ana",
  asked: 1,
  status: "running",
  stopped_by: null,
  paused_by: null,
  parent: null,
  run: "r",
  progress: {
    run: "r",
    workflow: "w",
    status: "running",
    epoch: 2,
    fraction: 0.5,
    seconds: 1,
    operators: [
      { name: "FE", kind: "python", taken: 3, given: 2, rate: 1, state_entries: 0, state_bytes: 0 },
    ],
    rejected: {},
    note: "",
  },
  live: {},
  held: [],
  watches: [],
  reached: [],
  deeds: [],
  printed: 0,
  error: null,
};

/** What workers tell of an operator while an epoch is under way. */
export function sampleFigures(taken: number, given: number): Execution["live"][string] {
  return {
    taken,
    given,
    rate: 1,
    busy: 0,
    queue: 0,
    workers: 1,
    state_entries: 0,
    state_bytes: 0,
    skew: 1,
    a_tuple: 1e-5,
  };
}

/** A moment after so many tuples of the operator "FE". */
export function sampleMoment(epoch: number, taken: number): Moment {
  return {
    moment: "m1",
    epoch,
    counters: { FE: { taken: [taken], given: taken } },
    last: null,
    changes: [],
    address: { to: {}, steps: [] },
  };
}
