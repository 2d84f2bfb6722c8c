import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";

import { changesOf, tuplesOf } from "../../model/figures";
import type { Operator } from "../../model/shared";
import type { OperatorKind, Person, Problem } from "../../model/types";
import { brief, count } from "../../model/values";
import { useExecution, useTravelled } from "../context";
import { HeldBadge } from "../live/Held";
import { rejection } from "../below/Rejected";

export interface OperatorData extends Record<string, unknown> {
  operator: Operator;
  kind: OperatorKind | undefined;
  ports: number;
  problem: Problem | undefined;
  people: Person[];
}

export type OperatorNodeType = Node<OperatorData, "operator">;

export const OperatorNode = memo(function OperatorNode({ data, selected }: NodeProps<OperatorNodeType>) {
  const { operator, kind, ports, problem, people } = data;
  const { name } = operator;
  const moment = useTravelled((now) => now.moment);
  const lit = useTravelled((now) => now.scope?.operators.includes(name) ?? false);
  const taken = useExecution((e) => tuplesOf(e, moment, name, "taken"));
  const given = useExecution((e) => tuplesOf(e, moment, name, "given"));
  const rejected = useExecution((e) => e?.progress?.rejected[name] ?? 0);
  const held = useExecution((e) => e?.held.find((h) => h.operator === name)?.error ?? null);
  const failure = useExecution((e) => (e?.error?.operator === name ? e.error : null));
  const fault = problem ?? failure;
  const stepped = moment?.last?.operator === name;
  const changes = moment ? changesOf(moment, name) : null;
  const classes = [
    "operator",
    selected && "selected",
    fault && "wrong",
    rejected > 0 && "lossy",
    stepped && "stepped",
    lit && "lit",
    operator.fields.enabled === false && "off",
  ]
    .filter(Boolean)
    .join(" ");
  return (
    <div className={classes} data-operator={operator.name}>
      {people.length > 0 && (
        <div className="who">
          {people.map((p, i) => (
            <span key={i} style={{ background: p.color }}>
              {p.name}
            </span>
          ))}
        </div>
      )}
      {Array.from({ length: ports }, (_, port) => (
        <Handle
          key={port}
          id={`in-${port}`}
          type="target"
          position={Position.Left}
          title={`port ${port}`}
          style={{ top: `${((port + 1) * 100) / (ports + 1)}%` }}
        />
      ))}
      <div className="title">{operator.name}</div>
      <div className="what">
        {operator.fields.enabled === false ? "disabled: " : ""}
        {operator.op.replaceAll("_", " ")} {summaryOf(operator)}
      </div>
      {(taken !== null || given !== null) && (
        <div className="counts" aria-label={`Counters of ${operator.name}`}>
          <span>{kind?.ports.most === 0 ? "" : `in ${count(taken ?? 0)}`}</span>
          <span>{kind?.output === false ? "" : `out ${count(given ?? 0)}`}</span>
        </div>
      )}
      {rejected > 0 && (
        <div className="loss" title="They are not in the results; Problems lists them.">
          ⚠ {rejection(rejected)} rejected
        </div>
      )}
      {changes !== null && (
        <div className="changes" title={changes}>
          {changes}
        </div>
      )}
      {held !== null && <HeldBadge operator={operator.name} error={held} />}
      {fault && (
        <div className="fault" title={fault.hint ?? undefined}>
          ⚠ {brief(fault.message, 90)}
        </div>
      )}
      {kind?.output !== false && <Handle id="out" type="source" position={Position.Right} />}
    </div>
  );
});

/** The field that says most about an operator. */
function summaryOf(operator: Operator): string {
  const { condition, columns, keys, path, aggregates, n } = operator.fields;
  const telling = condition ?? path ?? aggregates ?? columns ?? keys ?? n;
  return telling === undefined ? "" : brief(telling, 32);
}
