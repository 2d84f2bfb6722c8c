import { Alert, Center, Text } from "@mantine/core";
import { ReactFlowProvider } from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";
import * as Y from "yjs";

import { ApiError, type Api } from "../../model/api";
import { Connection } from "../../model/connection";
import { Executions, listen } from "../../model/executions";
import { Journey, parseLink } from "../../model/journey";
import { person as thisPerson } from "../../model/person";
import { SharedWorkflow } from "../../model/shared";
import { keepEqualParts } from "../../model/store";
import type { Checked, OperatorKind } from "../../model/types";
import { Below } from "../below/Below";
import { Canvas } from "../canvas/Canvas";
import { CommandPalette } from "../commands/CommandPalette";
import { Following } from "../people/Following";
import { Header } from "./Header";
import { Palette } from "../palette/Palette";
import { Properties } from "../properties/Properties";
import { Tour } from "./Tour";
import { DocumentContext, ExecutionContext, JourneyContext, socketUrl, useStatus } from "../context";

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
  const [edge, setEdge] = useState<string | null>(null);
  const [following, follow] = useState<number | null>(null);
  const [problem, tell] = useState<unknown>(null);
  const [person, setPerson] = useState(() => thisPerson(localStorage));
  const [executions] = useState(() => new Executions(id));
  const [journey] = useState(() => new Journey(api, tell, parseLink(location.hash)));
  const status = useStatus(connection);
  const checked = useChecks(api, id, shared, connection);
  const byKind = useMemo(() => new Map(kinds.map((k) => [k.op, k])), [kinds]);

  useEffect(() => listen(socketUrl("/api/live"), executions.take), [executions]);
  useEffect(() => connection.awareness.setLocalStateField("user", person), [connection, person]);
  useEffect(() => connection.awareness.setLocalStateField("selected", selected), [connection, selected]);

  const bench = useMemo(
    () => ({
      id,
      api,
      shared,
      connection,
      kinds: byKind,
      person,
      selected,
      select,
      checked,
      edge,
      setEdge,
      following,
      follow,
      tell,
    }),
    [id, api, shared, connection, byKind, person, selected, checked, edge, following],
  );
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
    <DocumentContext value={bench}>
      <ExecutionContext value={executions}>
        <JourneyContext value={journey}>
          <ReactFlowProvider>
            <div className="bench">
              <Following />
              <Header setPerson={setPerson} />
              <Palette />
              <main className="canvas" aria-label="Canvas">
                {problem !== null && <Problem problem={problem} close={() => tell(null)} />}
                <Canvas />
                <Tour />
              </main>
              <Properties />
              <Below />
              <CommandPalette />
            </div>
          </ReactFlowProvider>
        </JourneyContext>
      </ExecutionContext>
    </DocumentContext>
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
          setChecked((before) => keepEqualParts(before, found)); // the same again draws nothing
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
