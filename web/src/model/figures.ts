/** What nodes and edges of the canvas show of a run, or of the moment that is looked at. Pure. */
import type { Execution, Moment, OperatorProgress } from "./types";
import { brief, count, isAbsent } from "./values";

const known = new WeakMap<Execution, Map<string, OperatorProgress>>();

/** Counters with what the epoch under way has processed so far, by operator. Made once for each state of a run. */
export function withLive(execution: Execution | null): Map<string, OperatorProgress> {
  if (execution === null) return new Map();
  let counters = known.get(execution);
  if (counters === undefined) {
    counters = new Map(
      (execution.progress?.operators ?? []).map((o) => {
        const more = execution.live[o.name];
        if (!more) return [o.name, o];
        return [o.name, { ...o, taken: Math.max(o.taken, more.taken), given: Math.max(o.given, more.given) }];
      }),
    );
    known.set(execution, counters);
  }
  return counters;
}

/** How many tuples an operator has taken or given: at the moment, else in the run; null: nothing is known. */
export function tuplesOf(
  execution: Execution | null,
  moment: Moment | null,
  operator: string,
  which: "taken" | "given",
): number | null {
  if (moment === null) return withLive(execution).get(operator)?.[which] ?? null;
  const then = moment.counters[operator];
  if (then === undefined) return 0;
  return which === "given" ? then.given : then.taken.reduce((a, b) => a + b, 0);
}

export interface Between {
  /** The names of the operators at both ends, and the port it leads to. */
  source: string;
  target: string;
  port: number;
  /** Whether it is the only edge of its target. */
  alone: boolean;
}

/** The text on an edge: how many tuples went over it, how many wait at its end, and the watches set on it. */
export function edgeLabel(execution: Execution | null, moment: Moment | null, edge: Between): string {
  const given = moment ? moment.counters[edge.source]?.given : sent(execution, edge);
  const taken = moment?.counters[edge.target]?.taken[edge.port];
  const waiting = given !== undefined && taken !== undefined ? given - taken : 0;
  const watches = execution?.watches.filter((w) => w.operator === edge.target) ?? [];
  return [
    ...(given === undefined ? [] : [count(given)]),
    ...(waiting > 0 ? [`${count(waiting)} wait`] : []),
    ...watches.map((w) => `👁 ${brief(w.condition ?? w.tuples, 30)}`),
  ].join("  ");
}

/** Tuples over an edge: Spark's own operators are counted when an epoch is over, a Python operator as it goes. */
function sent(execution: Execution | null, { source, target, alone }: Between): number | undefined {
  const counters = withLive(execution);
  const given = counters.get(source)?.given;
  const taken = alone ? counters.get(target)?.taken : undefined;
  return given === undefined ? taken : Math.max(given, taken ?? 0);
}

/** What the last step changed in an operator's state, in a line. */
export function changesOf(moment: Moment, operator: string): string | null {
  const changes = moment.changes.filter((c) => c.operator === operator);
  if (changes.length === 0) return null;
  const told = changes.slice(0, 2).map((c) => {
    const what = `${c.name}${c.keyed ? `[${brief(c.key, 16)}]` : ""}`;
    return isAbsent(c.after) ? `${what} removed` : `${what}: ${brief(c.before, 16)} → ${brief(c.after, 16)}`;
  });
  return told.join(", ") + (changes.length > 2 ? `, ${changes.length - 2} more` : "");
}
