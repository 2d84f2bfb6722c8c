import { Button, Group, Text } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";

import { travel } from "../../model/journey";
import type { Change, Json, Moment, OperatorState } from "../../model/types";
import { brief, full, isAbsent } from "../../model/values";
import { LinesView } from "./LinesView";
import { StateTable } from "./StateTable";
import { useDocument, useJourney } from "../context";

interface Props {
  run: string;
  moment: Moment;
  operator: string;
  python: boolean;
  /** Go to a moment that is asked for; null: there is none. */
  go: (asked: Promise<Moment | null>) => void;
  aside: ReactNode;
}

/** A moment: the step that led there with what it changed, the chosen operator's state, and what waits before it. */
export function MomentView({ run, moment, operator, python, go, aside }: Props) {
  const { api, tell } = useDocument();
  const { light: show } = useJourney();
  const [state, setState] = useState<OperatorState | null>(null);
  const [pending, setPending] = useState<{ from: string; row: Record<string, Json> }[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const [loaded, setLoaded] = useState<string | null>(null);
  const [lines, setLines] = useState(false);
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
  }, [api, run, moment, operator, asked]);
  const light = (of: "pending" | "taken" | "given", number = 0): void => {
    travel.scope(api, run, moment.moment, { of, operator, number }).then(show, tell);
  };
  const changed = (name: string, key: Json | undefined): Change | undefined =>
    moment.changes.find(
      (c) =>
        c.operator === operator &&
        c.name === name &&
        (key === undefined ? !c.keyed : c.keyed && full(c.key) === full(key)),
    );
  const lastChange = (name: string, key: Json | undefined): void =>
    go(
      travel
        .lastChange(api, run, moment.moment, { operator, name, key: key ?? null, keyed: key !== undefined })
        .then((answer) => answer.found),
    );

  return (
    <div className="moment" role="region" aria-label="Moment" aria-busy={loaded !== asked}>
      <div>
        <h4>
          Epoch {moment.epoch}
          {moment.last ? `, after a tuple of ${moment.last.operator}` : ""}
        </h4>
        {moment.last?.row && (
          <button
            type="button"
            className="plain"
            title="Show where this tuple went"
            onClick={() => light("taken")}
          >
            <Row row={moment.last.row} />
          </button>
        )}
        {moment.last && moment.last.outputs.length > 0 && (
          <Text size="xs" component="div">
            gave{" "}
            {moment.last.outputs.map((o, i) => (
              <div key={i}>
                <button
                  type="button"
                  className="plain"
                  title="Show where this tuple went"
                  onClick={() => light("given", i)}
                >
                  {brief(o, 120)}
                </button>
              </div>
            ))}
          </Text>
        )}
        <h4>What changed</h4>
        {moment.changes.length === 0 && (
          <Text size="xs" c="dimmed">
            no state
          </Text>
        )}
        <table aria-label="Changes">
          <tbody>
            {moment.changes.map((c, i) => (
              <ChangeRow key={i} change={c} />
            ))}
          </tbody>
        </table>
      </div>
      <div>
        <Group gap="xs">
          <h4>State of {operator}</h4>
          {python && (
            <Button
              size="compact-xs"
              variant={lines ? "filled" : "default"}
              aria-pressed={lines}
              onClick={() => setLines(!lines)}
            >
              Lines
            </Button>
          )}
        </Group>
        {problem && (
          <Text size="xs" c="red">
            {problem}
          </Text>
        )}
        {state?.operator === operator && (
          <StateTable
            label={`State of ${operator}`}
            state={state.state}
            changed={(name, key) => changed(name, key) !== undefined}
            wrap={(name, key, shown) => (
              <>
                {changed(name, key) && !isAbsent(changed(name, key)!.before) && (
                  <>
                    <del>{brief(changed(name, key)!.before, 60)}</del> →{" "}
                  </>
                )}
                {python ? (
                  <button
                    type="button"
                    className="plain"
                    title="Go to what changed this last"
                    onClick={() => lastChange(name, key)}
                  >
                    {shown}
                  </button>
                ) : (
                  shown
                )}
              </>
            )}
          />
        )}
        {lines && python && <LinesView run={run} moment={moment} operator={operator} />}
      </div>
      <div>
        <h4>Waiting at {operator}</h4>
        {pending.length === 0 && (
          <Text size="xs" c="dimmed">
            nothing in this window
          </Text>
        )}
        {pending.map((t, i) => (
          <div key={i}>
            <button
              type="button"
              className="plain"
              title="Show where this tuple goes"
              onClick={() => light("pending", i)}
            >
              {brief(t.row, 140)}
            </button>
          </div>
        ))}
        {aside}
      </div>
    </div>
  );
}

function Row({ row }: { row: Record<string, Json> }) {
  return (
    <table>
      <tbody>
        {Object.entries(row).map(([name, value]) => (
          <tr key={name}>
            <th>{name}</th>
            <td>{brief(value, 120)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ChangeRow({ change }: { change: Change }) {
  return (
    <tr className="changed">
      <td>
        {change.operator}.{change.name}
        {change.keyed ? `[${brief(change.key, 40)}]` : ""}
      </td>
      <td>
        {!isAbsent(change.before) && (
          <>
            <del>{brief(change.before, 60)}</del> →{" "}
          </>
        )}
        {isAbsent(change.after) ? "removed" : brief(change.after, 60)}
      </td>
    </tr>
  );
}
