import { Button, Checkbox, Group, Progress, Select, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import { isActive } from "../../model/executions";
import { type Consistency, deedLine, duration, steer } from "../../model/steering";
import type { Inspection } from "../../model/types";
import { brief, count } from "../../model/values";
import { History } from "./History";
import { StateTable } from "../time/StateTable";
import { useDocument, useExecution, useSnapshot } from "../context";

const CONSISTENCY: { value: Consistency; label: string }[] = [
  { value: "strict", label: "strict: no tuple meets both" },
  { value: "backward", label: "backward: from here on" },
  { value: "none", label: "none: as soon as possible" },
];

/** A run that goes on: how far it is, the chosen operator looked into, changed and watched; and who did what. */
export default function Live() {
  const { api, person, tell, selected, shared } = useDocument();
  const execution = useExecution((e) => e);
  const { operators, edges } = useSnapshot(shared);
  const [seen, setSeen] = useState<Inspection | null>(null);
  const [consistency, setConsistency] = useState<Consistency>("strict");
  const [busy, setBusy] = useState(false);
  const operator = operators.find((o) => o.id === selected) ?? null;
  const active = isActive(execution);
  if (execution === null)
    return (
      <Text size="sm" c="dimmed">
        Run the workflow: while it runs it can be looked into, changed and watched here.
      </Text>
    );
  const id = execution.execution;
  const ask = <T,>(asked: Promise<T>, then: (answer: T) => void = () => undefined): void => {
    setBusy(true);
    asked.then(then, tell).finally(() => setBusy(false));
  };
  const python = operator?.op === "python";
  const figures = operator ? execution.live[operator.name] : undefined;
  return (
    <div className="moment">
      <div>
        <h4>Epochs</h4>
        <Progress value={100 * (execution.progress?.fraction ?? 0)} aria-label="Share of the input" />
        <Text size="xs">
          {Math.floor(100 * (execution.progress?.fraction ?? 0))} % of the input,{" "}
          {execution.progress?.epoch ?? 0} epochs done
          {execution.progress?.note ? `; ${execution.progress.note}` : ""}
        </Text>
        {active && (
          <Watch
            edges={edges.map((e) => ({
              id: e.id,
              from: nameOf(operators, e.source),
              to: nameOf(operators, e.target),
            }))}
          />
        )}
        {execution.watches.map((w, i) => (
          <Text key={i} size="xs">
            👁 {w.operator}: {w.condition ?? `${w.tuples} tuples`}
            {w.pause || w.tuples !== null ? ", pauses" : ""}{" "}
            <Text span c="dimmed">
              {w.by}
            </Text>{" "}
            {active && (
              <button
                type="button"
                className="plain"
                aria-label={`Take back the watch on ${w.operator}`}
                onClick={() => ask(steer.unwatch(api, id, person.name, w.name))}
              >
                ✕
              </button>
            )}
          </Text>
        ))}
      </div>
      <div>
        <h4>{operator ? operator.name : "Choose an operator on the canvas"}</h4>
        {figures && (
          <Text size="xs">
            {count(figures.taken)} tuples
            {figures.a_tuple !== null ? `, ${duration(figures.a_tuple)} each` : ""}, {count(figures.rate)} a
            second, {count(figures.queue)} waiting
          </Text>
        )}
        {operator && active && (
          <Group gap={6} my={4}>
            {python && (
              <Button
                size="compact-xs"
                disabled={busy}
                onClick={() => ask(steer.inspect(api, id, person.name, operator.name), setSeen)}
              >
                Inspect
              </Button>
            )}
            <Button
              size="compact-xs"
              variant="light"
              disabled={busy}
              onClick={() =>
                ask(steer.mark(api, id, person.name, operator.name, ""), (made) =>
                  tell(`Marked as ${made.interaction}: the panel Time has it when its epoch is over.`),
                )
              }
            >
              Mark this moment
            </Button>
          </Group>
        )}
        {operator &&
          active &&
          (python || !["values", "read", "table", "sink", "write"].includes(operator.op)) && (
            <Group gap={6} my={4} align="end">
              <Select
                size="xs"
                w={200}
                label="consistency"
                data={CONSISTENCY}
                value={consistency}
                allowDeselect={false}
                onChange={(c) => c && setConsistency(c as Consistency)}
              />
              <Button
                size="xs"
                variant="light"
                disabled={busy}
                onClick={() =>
                  ask(
                    steer.modify(
                      api,
                      id,
                      person.name,
                      { [operator.name]: python ? String(operator.fields.code ?? "") : operator.fields },
                      consistency,
                    ),
                    (made) => {
                      const deed = made.deeds.at(-1);
                      if (deed) tell(deedLine(deed));
                    },
                  )
                }
              >
                Apply {python ? "the code" : "its fields"} to this run
              </Button>
            </Group>
          )}
        {seen && operator?.name === seen.operator && <Seen seen={seen} />}
      </div>
      <History execution={execution} />
    </div>
  );
}

function Seen({ seen }: { seen: Inspection }) {
  return (
    <div role="region" aria-label="Inspection">
      <Text size="xs" c="dimmed">
        {seen.consistent ? `at the end of epoch ${seen.epoch - 1}` : `inside epoch ${seen.epoch}`}
        {seen.note ? `; ${seen.note}` : ""}
      </Text>
      <StateTable label={`State of ${seen.operator} now`} state={seen.state} />
      {seen.in_flight !== null && (
        <Text size="xs" fw={600}>
          In flight: {seen.in_flight.length + seen.more}
        </Text>
      )}
      {(seen.in_flight ?? []).slice(0, 5).map((row, i) => (
        <div key={i}>{brief(row, 140)}</div>
      ))}
    </div>
  );
}

/** A condition on an edge: each tuple that meets it is marked, and pauses the run if that is wanted. */
function Watch({ edges }: { edges: { id: string; from: string; to: string }[] }) {
  const { api, person, tell, edge, setEdge } = useDocument();
  const execution = useExecution((e) => e?.execution);
  const [condition, setCondition] = useState("");
  const [pause, setPause] = useState(false);
  const chosen = edges.find((e) => e.id === edge) ?? null;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (execution && chosen && condition.trim()) {
          steer
            .watch(api, execution, person.name, chosen.to, condition, pause)
            .then(() => setCondition(""), tell);
        }
      }}
    >
      <Group gap={6} align="end" my={4}>
        <Select
          size="xs"
          w={140}
          label="watch the edge"
          placeholder="choose one"
          value={chosen?.id ?? null}
          onChange={setEdge}
          data={edges.map((e) => ({ value: e.id, label: `${e.from} → ${e.to}` }))}
        />
        <TextInput
          size="xs"
          w={150}
          label="for tuples with"
          placeholder="amount > 1000, or a number"
          value={condition}
          onChange={(e) => setCondition(e.currentTarget.value)}
        />
        <Checkbox
          size="xs"
          label="pause"
          checked={pause}
          onChange={(e) => setPause(e.currentTarget.checked)}
        />
        <Button size="xs" variant="light" type="submit" disabled={!chosen || !condition.trim()}>
          Watch
        </Button>
      </Group>
    </form>
  );
}

function nameOf(operators: { id: string; name: string }[], id: string): string {
  return operators.find((o) => o.id === id)?.name ?? "?";
}
