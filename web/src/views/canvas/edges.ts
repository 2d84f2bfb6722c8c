/** What an edge shows: how many tuples went over it, in the run or up to the moment, and the watches set on it. */
import type { Edge as FlowEdge } from "@xyflow/react";

import type { Edge, Operator } from "../../model/shared";
import { withLive } from "../../model/steering";
import type { Moment } from "../../model/types";
import { brief, count, isAbsent } from "../../model/values";
import type { Bench } from "../../context";

/** What an operator gave: Spark's own are counted when an epoch is over, a Python operator behind them as it goes. */
function sent(given: number | undefined, taken: number | undefined): number | undefined {
  return given === undefined ? taken : Math.max(given, taken ?? 0);
}

export function edgeLooks(
  { execution, moment, scope }: Bench,
  operators: Operator[],
  edges: Edge[],
): (edge: Edge) => Partial<FlowEdge> {
  const names = new Map(operators.map((o) => [o.id, o.name]));
  const counted = withLive(execution);
  const alone = (edge: Edge): boolean => !edges.some((e) => e.target === edge.target && e.id !== edge.id);
  return (edge) => {
    const source = names.get(edge.source);
    const target = names.get(edge.target);
    if (source === undefined || target === undefined) return {};
    const given = moment
      ? moment.counters[source]?.given
      : sent(counted.get(source)?.given, alone(edge) ? counted.get(target)?.taken : undefined);
    const watched =
      execution?.watches
        .filter((w) => w.operator === target)
        .map((w) => `👁 ${brief(w.condition ?? w.tuples, 30)}`) ?? [];
    const waiting =
      moment && given !== undefined ? given - (moment.counters[target]?.taken[edge.port] ?? given) : 0;
    const label = [
      ...(given === undefined ? [] : [count(given)]),
      ...(waiting > 0 ? [`${count(waiting)} wait`] : []),
      ...watched,
    ].join("  ");
    const lit =
      scope?.from.includes(source) && scope.operators.includes(target)
        ? { animated: true, style: { strokeWidth: 3 } }
        : {};
    if (!label) return lit;
    return {
      ...lit,
      label,
      labelShowBg: true,
      labelBgPadding: [4, 2],
      labelStyle: { fontSize: 11 },
      ariaLabel: `${source} to ${target}: ${label}`,
    };
  };
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
