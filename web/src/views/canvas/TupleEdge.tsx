import { BezierEdge, type Edge as FlowEdge, type EdgeProps } from "@xyflow/react";
import { memo } from "react";

import { type Between, edgeLabel } from "../../model/figures";
import type { Snapshot } from "../../model/shared";
import type { Problem, Scope } from "../../model/types";
import { brief } from "../../model/values";
import { useExecution, useTravelled } from "../context";

const OF_COLUMNS = ["SchemaProblem", "ExpressionProblem", "UnknownColumn"];

interface TupleEdgeData extends Between, Record<string, unknown> {
  /** Why the operator at its end cannot use the columns that come over it. */
  fault: string | null;
}

export type TupleEdgeType = FlowEdge<TupleEdgeData, "tuples">;

/** An edge with the number of tuples that went over it: drawn again alone when a run goes on. */
export const TupleEdge = memo(function TupleEdge({ data, ...edge }: EdgeProps<TupleEdgeType>) {
  const moment = useTravelled((now) => now.moment);
  const counted = useExecution((execution) => (data ? edgeLabel(execution, moment, data) : ""));
  const label = data?.fault ?? counted;
  return (
    <BezierEdge
      {...edge}
      label={label || undefined}
      labelShowBg
      labelBgPadding={[4, 2]}
      labelStyle={{ fontSize: 11 }}
    />
  );
});

/** The edges as React Flow draws them: those into operators that cannot use the columns that come are marked. */
export function flowEdges(
  { operators, edges }: Snapshot,
  problems: Problem[],
  scope: Scope | null,
  chosen: Set<string>,
): TupleEdgeType[] {
  const names = new Map(operators.map((o) => [o.id, o.name]));
  const faults = new Map(problems.filter((p) => OF_COLUMNS.includes(p.kind)).map((p) => [p.operator, p]));
  return edges.map((edge) => {
    const source = names.get(edge.source) ?? "";
    const target = names.get(edge.target) ?? "";
    const problem = faults.get(target);
    const lit = scope?.from.includes(source) && scope.operators.includes(target);
    const alone = !edges.some((e) => e.target === edge.target && e.id !== edge.id);
    const fault = problem ? `⚠ ${brief(problem.hint ?? problem.message, 48)}` : null;
    return {
      id: edge.id,
      type: "tuples",
      source: edge.source,
      target: edge.target,
      sourceHandle: "out",
      targetHandle: `in-${edge.port}`,
      selected: chosen.has(edge.id),
      className: problem ? "wrong" : undefined,
      ariaLabel: `${source} to ${target}`,
      data: { source, target, port: edge.port, alone, fault },
      ...(lit ? { animated: true, style: { strokeWidth: 3 } } : {}),
    };
  });
}
