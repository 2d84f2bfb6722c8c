import { Tabs, Text } from "@mantine/core";
import { Suspense, lazy, useEffect, useRef, useState } from "react";

import { ENDED } from "../../model/executions";
import type { Recording } from "../../model/types";
import { Console } from "./Console";
import { Files } from "./Files";
import { Rejected } from "./Rejected";
import { Results } from "../results/Results";
import { useDocument, useExecution, useTravelled } from "../context";
import { RunChooser } from "./RunChooser";

const Charts = lazy(() => import("../charts/Charts"));
const Time = lazy(() => import("../time/Time"));
const Live = lazy(() => import("../live/Live"));
const Compare = lazy(() => import("../compare/Compare"));

/** Below the canvas: the result of the last run, its past, errors, files. */
export function Below() {
  const { api, tell, checked, select, shared } = useDocument();
  const visiting = useTravelled((now) => now.visiting);
  const execution = useExecution((e) => e?.execution);
  const own = useExecution((e) => e?.run ?? null);
  const parent = useExecution((e) => e?.parent ?? null);
  const error = useExecution((e) => e?.error ?? null);
  const printed = useExecution((e) => e?.printed ?? 0);
  const [recording, setRecording] = useState<Recording | null>(null);
  const [tab, setTab] = useState<string | null>("result");
  const [chosen, choose] = useState<string | null>(null);
  const before = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (before.current !== undefined && before.current !== execution) choose(null); // a new run is shown
    before.current = execution;
  }, [execution]);
  useEffect(() => {
    if (visiting === null) return;
    choose(visiting.run);
    setTab("time");
  }, [visiting]);
  const run = chosen ?? own ?? parent; // of a fork that could not start, the run it comes from
  const shown = run !== null && run === own;
  const status = useExecution((e) => (shown && e ? e.status : "completed"));
  const epoch = useExecution((e) => (shown ? (e?.progress?.epoch ?? 0) : 0));
  const going = useExecution((e) => (shown ? e?.progress?.rejected : undefined));
  useEffect(() => {
    if (run === null || (epoch === 0 && !ENDED.includes(status))) {
      setRecording(null);
      return;
    }
    let current = true;
    api.recording(run).then((found) => current && setRecording(found), tell);
    return () => {
      current = false;
    };
  }, [run, status, epoch, api, tell]);

  const rejected = run === null ? [] : Object.entries(going ?? recording?.progress.rejected ?? {});
  const problems = checked.problems.length + rejected.length + (error ? 1 : 0);
  return (
    <section className="below" aria-label="Run">
      <Tabs value={tab} onChange={setTab} keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="result">Result</Tabs.Tab>
          <Tabs.Tab value="charts">Charts</Tabs.Tab>
          <Tabs.Tab value="live">Live</Tabs.Tab>
          <Tabs.Tab value="time">Time</Tabs.Tab>
          <Tabs.Tab value="compare">Compare</Tabs.Tab>
          {printed > 0 && <Tabs.Tab value="console">Console ({printed})</Tabs.Tab>}
          <Tabs.Tab value="problems">Problems{problems ? ` (${problems})` : ""}</Tabs.Tab>
          <Tabs.Tab value="files">Files</Tabs.Tab>
        </Tabs.List>
        <div className="shown">
          <RunChooser run={run} choose={choose} />
        </div>
        <Tabs.Panel value="result">
          {recording ? (
            <Results recording={recording} />
          ) : (
            <Text size="sm" c="dimmed">
              Run the workflow: the rows of its sinks come here.
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="charts">
          {recording ? (
            <Suspense fallback={<Text size="sm">…</Text>}>
              <Charts recording={recording} />
            </Suspense>
          ) : (
            <Text size="sm" c="dimmed">
              Add a chart from the palette and run the workflow: it is drawn here, and grows while the run
              goes on.
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="live">
          <Suspense fallback={<Text size="sm">…</Text>}>
            <Live />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="time">
          {recording ? (
            <Suspense fallback={<Text size="sm">…</Text>}>
              <Time key={recording.run} recording={recording} />
            </Suspense>
          ) : (
            <Text size="sm" c="dimmed">
              Run the workflow: then any moment of the run can be gone to here, and stepped from.
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="compare">
          <Suspense fallback={<Text size="sm">…</Text>}>
            <Compare />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="console">
          {execution && <Console execution={execution} printed={printed} />}
        </Tabs.Panel>
        <Tabs.Panel value="problems">
          {problems === 0 && (
            <Text size="sm" c="dimmed">
              Nothing is wrong.
            </Text>
          )}
          {error && (
            <Text size="sm" component="pre" style={{ whiteSpace: "pre-wrap" }}>
              {error.message}
              {error.hint ? `\nHint: ${error.hint}` : ""}
            </Text>
          )}
          {checked.problems.map((p, i) => (
            <Text
              key={i}
              size="sm"
              style={{ cursor: p.operator ? "pointer" : undefined }}
              onClick={() =>
                select(shared.current().operators.find((o) => o.name === p.operator)?.id ?? null)
              }
            >
              ⚠ {p.operator ? `${p.operator}: ` : ""}
              {p.message} {p.hint}
            </Text>
          ))}
          {rejected.map(([source, rows]) => (
            <Rejected key={source} run={run!} source={source} rows={rows} />
          ))}
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <Files />
        </Tabs.Panel>
      </Tabs>
    </section>
  );
}
