import type { Edge as FlowEdge } from "@xyflow/react";

import type { Operator } from "../../model/shared";
import type { Problem } from "../../model/types";
import { brief } from "../../model/values";

const OF_COLUMNS = ["SchemaProblem", "ExpressionProblem", "UnknownColumn"];

/** Edges into operators that cannot use the columns that come: marked, with the hint. */
export function withProblems(edges: FlowEdge[], operators: Operator[], problems: Problem[]): FlowEdge[] {
  const wrong = new Map<string, Problem>();
  for (const problem of problems) {
    const at = operators.find((o) => o.name === problem.operator);
    if (at && OF_COLUMNS.includes(problem.kind)) wrong.set(at.id, problem);
  }
  if (wrong.size === 0) return edges;
  return edges.map((edge) => {
    const problem = wrong.get(edge.target);
    return problem
      ? {
          ...edge,
          className: `${edge.className ?? ""} wrong`,
          label: `⚠ ${brief(problem.hint ?? problem.message, 48)}`,
        }
      : edge;
  });
}
