import { Button, Group, Select, Text, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";

import { type Order, cause, columnsOf, compare, sideOfCause, verdictLine } from "../../model/compare";
import { ENDED } from "../../model/executions";
import type { Comparison, Execution, Version } from "../../model/types";
import { brief } from "../../model/values";
import { useDocument, useJourney } from "../context";
import { runLabel, useRuns } from "../below/RunChooser";

const ORDERS: { value: Order; label: string }[] = [
  { value: "any", label: "in any order" },
  { value: "all", label: "in the same order" },
  { value: "keys", label: "in order within keys" },
];

/** Two runs or versions of the workflow: are their results the same, where do they differ, and why. */
export default function Compare() {
  const { api, id, person, tell } = useDocument();
  const { visit } = useJourney();
  const runs = useRuns();
  const [versions, setVersions] = useState<Version[]>([]);
  const [left, setLeft] = useState<string | null>(null);
  const [right, setRight] = useState<string | null>(null);
  const [order, setOrder] = useState<Order>("any");
  const [keys, setKeys] = useState("");
  const [tolerance, setTolerance] = useState("");
  const [sink, setSink] = useState("");
  const [found, setFound] = useState<Comparison | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const ended = useEnded();
  useEffect(() => {
    api.versions(id).then(setVersions, tell);
  }, [api, id, tell]);
  const kept = runs.filter((r) => r.status === "completed" || r.status === "stopped");
  const data = [
    { group: "Runs", items: kept.map((r) => ({ value: r.run, label: runLabel(r) })) },
    {
      group: "Versions (are run first)",
      items: versions.map((v) => ({ value: `version ${v.version}`, label: v.name })),
    },
  ];
  const from = left ?? kept[1]?.run ?? null;
  const to = right ?? kept[0]?.run ?? null;

  /** The run that a side stands for; a version is run. */
  const runOf = async (side: string): Promise<string> => {
    const version = /^version (\d+)$/.exec(side);
    if (!version) return side;
    setBusy("The version runs …");
    const asked = await api.run(id, person.name, { version: Number(version[1]) });
    const done = await ended(asked.execution);
    if (done.status !== "completed" || done.run === null)
      throw new Error(`The version's run ${done.status}: ${done.error?.message ?? ""}`);
    return done.run;
  };
  const start = async (): Promise<void> => {
    setFound(null);
    setBusy("Compares …");
    try {
      const sides = { left: await runOf(from!), right: await runOf(to!) };
      setBusy("Compares …");
      const columns = keys
        .split(",")
        .map((k) => k.trim())
        .filter(Boolean);
      setFound(
        await compare(api, {
          ...sides,
          order,
          keys: columns,
          ...(sink.trim() ? { sink: sink.trim() } : {}),
          ...(tolerance ? { tolerance: Number(tolerance) } : {}),
        }),
      );
    } catch (error) {
      tell(error);
    } finally {
      setBusy(null);
    }
  };
  const goToCause = (side: "left" | "right"): void => {
    setBusy("Looks for the cause …");
    cause(api, found!.comparison, side)
      .then((there) => visit({ run: there.run, moment: there.moment.moment }), tell)
      .finally(() => setBusy(null));
  };
  if (kept.length + versions.length < 2)
    return (
      <Text size="sm" c="dimmed">
        Run the workflow twice, or name a version of it: then their results can be compared here.
      </Text>
    );
  return (
    <div>
      <Group gap="xs" align="end">
        <Select
          size="xs"
          w={230}
          label="left"
          data={data}
          value={from}
          onChange={setLeft}
          allowDeselect={false}
        />
        <Select
          size="xs"
          w={230}
          label="right"
          data={data}
          value={to}
          onChange={setRight}
          allowDeselect={false}
        />
        <Select
          size="xs"
          w={160}
          label="rows count"
          data={ORDERS}
          value={order}
          onChange={(o) => o && setOrder(o as Order)}
          allowDeselect={false}
        />
        {order === "keys" && (
          <TextInput
            size="xs"
            w={130}
            label="keys"
            placeholder="customer, day"
            value={keys}
            onChange={(e) => setKeys(e.currentTarget.value)}
          />
        )}
        <TextInput
          size="xs"
          w={90}
          label="tolerance"
          placeholder="1e-9"
          value={tolerance}
          onChange={(e) => setTolerance(e.currentTarget.value)}
        />
        <TextInput
          size="xs"
          w={70}
          label="sink"
          placeholder="the only"
          value={sink}
          onChange={(e) => setSink(e.currentTarget.value)}
        />
        <Button size="xs" disabled={busy !== null || !from || !to} onClick={() => void start()}>
          Compare
        </Button>
        {busy && (
          <Text size="xs" role="status">
            {busy}
          </Text>
        )}
      </Group>
      {found && (
        <>
          <Group gap="xs" my={6}>
            <Text size="sm" fw={600} role="status" aria-label="Verdict">
              {found.equivalent ? "✓ " : "≠ "}
              {verdictLine(found)}
            </Text>
            {!found.equivalent && (
              <>
                <Button
                  size="compact-xs"
                  disabled={busy !== null}
                  onClick={() => goToCause(sideOfCause(found))}
                >
                  Go to the cause
                </Button>
                {sideOfCause(found) === "right" && found.pairs.some((p) => p.left !== null) && (
                  <Button
                    size="compact-xs"
                    variant="light"
                    disabled={busy !== null}
                    onClick={() => goToCause("left")}
                  >
                    in the left run
                  </Button>
                )}
              </>
            )}
          </Group>
          {!found.equivalent && <Pairs found={found} />}
        </>
      )}
    </div>
  );
}

function Pairs({ found }: { found: Comparison }) {
  const columns = columnsOf(found.pairs);
  const sides = ["left", "right"] as const;
  return (
    <table className="difference" aria-label="Rows that differ">
      <thead>
        <tr>
          <th />
          {columns.map((c) => (
            <th key={c}>{c}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {found.pairs.flatMap((pair, i) =>
          sides.flatMap((side) => {
            const row = pair[side];
            if (row === null) return [];
            const alone = pair.left === null || pair.right === null;
            return [
              <tr key={`${i}${side}`}>
                <th>{alone ? `only ${side}` : side}</th>
                {columns.map((c) => (
                  <td key={c} className={!alone && pair.differ.includes(c) ? "differs" : undefined}>
                    {c in row ? brief(row[c] ?? null, 80) : "–"}
                  </td>
                ))}
              </tr>,
            ];
          }),
        )}
      </tbody>
    </table>
  );
}

/** Waits for executions to end. */
function useEnded(): (execution: string) => Promise<Execution> {
  const { api } = useDocument();
  const gone = useRef(false);
  useEffect(() => {
    gone.current = false;
    return () => {
      gone.current = true;
    };
  }, []);
  return async (execution) => {
    for (;;) {
      const now = await api.execution(execution);
      if (ENDED.includes(now.status) || gone.current) return now;
      await new Promise((done) => setTimeout(done, 300));
    }
  };
}
