import { Alert, Center, Text } from "@mantine/core";
import { ReactFlowProvider } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useState } from "react";
import * as Y from "yjs";

import { ApiError, type Api } from "../../model/api";
import { Connection } from "../../model/connection";
import { latest, listen, told } from "../../model/executions";
import { type Visit, parseLink } from "../../model/journey";
import { person as thisPerson } from "../../model/person";
import { SharedWorkflow } from "../../model/shared";
import type { Checked, Execution, Moment, OperatorKind, Scope } from "../../model/types";
import { Below } from "../below/Below";
import { Canvas } from "../canvas/Canvas";
import { CommandPalette } from "../commands/CommandPalette";
import { Following } from "../people/Following";
import { Header } from "./Header";
import { Palette } from "../palette/Palette";
import { Properties } from "../properties/Properties";
import { Tour } from "./Tour";
import { type Bench, BenchContext, socketUrl, useStatus } from "../../context";

const NOTHING: Checked = { problems: [], schemas: {}, deep: false };

interface Opened {
  shared: SharedWorkflow;
  connection: Connection;
}

export default function Workbench({ id, api }: { id: string; api: Api }) {
  const [opened, setOpened] = useState<Opened | null>(null);
  const [kinds, setKinds] = useState<OperatorKind[]>([]);
  const [problem, setProblem] = useState<Error | null>(null);

  useEffect(() => {
    const shared = new SharedWorkflow(new Y.Doc());
    const connection = new Connection(socketUrl(`/api/documents/${id}`), shared.doc);
    setOpened({ shared, connection });
    api.operators().then(setKinds, setProblem);
    return () => connection.close();
  }, [id, api]);

  if (opened === null || kinds.length === 0)
    return (
      <Center h="100%">
        <Text c="dimmed">{problem?.message ?? "Opening …"}</Text>
      </Center>
    );
  return <Open id={id} api={api} kinds={kinds} {...opened} />;
}

function Open({
  id,
  api,
  kinds,
  shared,
  connection,
}: { id: string; api: Api; kinds: OperatorKind[] } & Opened) {
  const [selected, select] = useState<string | null>(null);
  const [executions, setExecutions] = useState<Execution[]>([]);
  const [moment, setMoment] = useState<Moment | null>(null);
  const [edge, setEdge] = useState<string | null>(null);
  const [scope, setScope] = useState<Scope | null>(null);
  const [visiting, visit] = useState<Visit | null>(() => parseLink(location.hash));
  const [following, follow] = useState<number | null>(null);
  const [noted, setNoted] = useState<Record<string, number>>({});
  const [problem, setProblem] = useState<unknown>(null);
  const [person, setPerson] = useState(() => thisPerson(localStorage));
  const status = useStatus(connection);
  const checked = useChecks(api, id, shared, connection);
  const byKind = useMemo(() => new Map(kinds.map((k) => [k.op, k])), [kinds]);

  useEffect(
    () =>
      listen(socketUrl("/api/live"), (news) => {
        if (news.kind === "notebook")
          setNoted((known) => ({ ...known, [news.data.run]: (known[news.data.run] ?? 0) + 1 }));
        else setExecutions((known) => told(known, news));
      }),
    [],
  );
  useEffect(() => setScope(null), [moment]);
  useEffect(() => connection.awareness.setLocalStateField("user", person), [connection, person]);
  useEffect(() => connection.awareness.setLocalStateField("selected", selected), [connection, selected]);

  const tell = useCallback((what: unknown) => setProblem(what), []);
  const execution = latest(executions, id);
  const bench: Bench = {
    id,
    api,
    shared,
    connection,
    kinds: byKind,
    person,
    selected,
    select,
    checked,
    execution,
    moment,
    setMoment,
    edge,
    setEdge,
    scope,
    setScope,
    visiting,
    visit,
    following,
    follow,
    noted,
    tell,
  };
  if (status === "gone") {
    return (
      <Center h="100%">
        <Text>
          There is no workflow '{id}' here (any more). <a href="#/">All workflows</a>
        </Text>
      </Center>
    );
  }
  return (
    <BenchContext.Provider value={bench}>
      <ReactFlowProvider>
        <div className="bench">
          <Following />
          <Header executions={executions} setPerson={setPerson} />
          <Palette />
          <main className="canvas" aria-label="Canvas">
            {problem !== null && <Problem problem={problem} close={() => setProblem(null)} />}
            <Canvas />
            <Tour />
          </main>
          <Properties />
          <Below />
          <CommandPalette />
        </div>
      </ReactFlowProvider>
    </BenchContext.Provider>
  );
}

function Problem({ problem, close }: { problem: unknown; close: () => void }) {
  const message = problem instanceof Error ? problem.message : String(problem);
  return (
    <Alert
      color="red"
      title={message.split("\n")[0]}
      withCloseButton
      onClose={close}
      closeButtonLabel="Close"
      role="alert"
      pos="absolute"
      top={10}
      left={10}
      right={10}
      style={{ zIndex: 20 }}
    >
      {problem instanceof ApiError ? problem.hint : null}
    </Alert>
  );
}

/** What is wrong with the workflow, asked for a little after each edit. */
function useChecks(api: Api, id: string, shared: SharedWorkflow, connection: Connection): Checked {
  const [checked, setChecked] = useState(NOTHING);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    const ask = (): void => {
      connection
        .flush()
        .then(() => api.check(id))
        .then((found) => {
          if (ended) return;
          setChecked(found);
          if (!found.deep) timer = setTimeout(ask, 3000); // Spark is starting
        })
        .catch(() => {
          if (!ended) timer = setTimeout(ask, 3000); // the server is away; the header says so
        });
    };
    const later = (): void => {
      clearTimeout(timer);
      timer = setTimeout(ask, 350);
    };
    later();
    const stop = shared.subscribe(later);
    return () => {
      ended = true;
      clearTimeout(timer);
      stop();
    };
  }, [api, id, shared, connection]);
  return checked;
}
