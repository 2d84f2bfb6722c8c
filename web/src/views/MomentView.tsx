import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

import type { Change, Json, Moment, OperatorState, StateValue } from "../model/types";
import { brief, full, isAbsent } from "../model/values";
import { useBench } from "./bench";

/** A moment: the step that led there with what it changed, the chosen operator's state, and what waits before it. */
export function MomentView({ run, moment, operator }: { run: string; moment: Moment; operator: string }) {
  const { api } = useBench();
  const [state, setState] = useState<OperatorState | null>(null);
  const [pending, setPending] = useState<{ from: string; row: Record<string, Json> }[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const [loaded, setLoaded] = useState<string | null>(null);
  const asked = `${moment.moment}/${operator}`;
  useEffect(() => {
    let current = true;
    setProblem(null);
    Promise.all([api.state(run, moment.moment, operator), api.pending(run, moment.moment, operator)]).then(
      ([found, waiting]) => {
        if (!current) return;
        setState(found);
        setPending(waiting);
        setLoaded(asked);
      },
      (error: Error) => current && setProblem(error.message),
    );
    return () => {
      current = false;
    };
  }, [api, run, moment, operator]);

  return (
    <div className="moment" role="region" aria-label="Moment" aria-busy={loaded !== asked}>
      <div>
        <h4>Epoch {moment.epoch}{moment.last ? `, after a tuple of ${moment.last.operator}` : ""}</h4>
        {moment.last?.row && <Row row={moment.last.row} />}
        {moment.last && moment.last.outputs.length > 0 && <Text size="xs" c="dimmed">gave {moment.last.outputs.map((o) => brief(o, 120)).join("; ")}</Text>}
        <h4>What changed</h4>
        {moment.changes.length === 0 && <Text size="xs" c="dimmed">no state</Text>}
        <table aria-label="Changes">
          <tbody>{moment.changes.map((c, i) => <ChangeRow key={i} change={c} />)}</tbody>
        </table>
      </div>
      <div>
        <h4>State of {operator}</h4>
        {problem && <Text size="xs" c="red">{problem}</Text>}
        <table aria-label={`State of ${operator}`}>
          <tbody>
            {state?.operator === operator && Object.entries(state.state).map(([name, value]) => (
              <StateRows key={name} name={name} value={value} changes={moment.changes.filter((c) => c.operator === operator && c.name === name)} />
            ))}
          </tbody>
        </table>
      </div>
      <div>
        <h4>Waiting at {operator}</h4>
        {pending.length === 0 && <Text size="xs" c="dimmed">nothing in this window</Text>}
        {pending.map((t, i) => <div key={i}>{brief(t.row, 140)}</div>)}
      </div>
    </div>
  );
}

function Row({ row }: { row: Record<string, Json> }) {
  return (
    <table>
      <tbody>
        {Object.entries(row).map(([name, value]) => <tr key={name}><th>{name}</th><td>{brief(value, 120)}</td></tr>)}
      </tbody>
    </table>
  );
}

function ChangeRow({ change }: { change: Change }) {
  return (
    <tr className="changed">
      <td>{change.operator}.{change.name}{change.keyed ? `[${brief(change.key, 40)}]` : ""}</td>
      <td>{!isAbsent(change.before) && <><del>{brief(change.before, 60)}</del> → </>}{isAbsent(change.after) ? "removed" : brief(change.after, 60)}</td>
    </tr>
  );
}

function StateRows({ name, value, changes }: { name: string; value: StateValue; changes: Change[] }) {
  if (value.kind === "value") {
    return (
      <tr className={changes.length > 0 ? "changed" : undefined}>
        <th>{name}</th><td>{brief(value.value, 200)}</td>
      </tr>
    );
  }
  const changed = new Set(changes.map((c) => full(c.key)));
  return (
    <>
      <tr><th>{name}</th><td>{value.size} entries</td></tr>
      {value.entries.map(([key, entry], i) => (
        <tr key={i} className={changed.has(full(key)) ? "changed" : undefined}>
          <td style={{ paddingLeft: 12 }}>{brief(key, 60)}</td><td>{brief(entry, 120)}</td>
        </tr>
      ))}
    </>
  );
}
