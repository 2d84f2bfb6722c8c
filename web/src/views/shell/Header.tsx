import {
  ActionIcon,
  Anchor,
  Badge,
  Button,
  Group,
  Text,
  TextInput,
  useMantineColorScheme,
} from "@mantine/core";
import { useCallback, useEffect } from "react";

import { describe, isActive } from "../../model/executions";
import { arrange } from "../../model/layout";
import { keep } from "../../model/person";
import { onError } from "../../model/steering";
import type { Person } from "../../model/types";
import { Export } from "./Export";
import { Help } from "./Help";
import { People } from "../people/People";
import { Steering } from "../live/Steering";
import { Versions } from "./Versions";
import {
  useDocument,
  useExecution,
  useExecutions,
  useJourney,
  useKnown,
  useSnapshot,
  useStatus,
} from "../context";

export function Header({ setPerson }: { setPerson: (p: Person) => void }) {
  const { api, id, shared, connection, person, tell } = useDocument();
  const executions = useExecutions();
  const { leave } = useJourney();
  const { name, operators, edges } = useSnapshot(shared);
  const status = useStatus(connection);
  const { toggleColorScheme } = useMantineColorScheme();
  const active = useExecution(isActive);

  const run = useCallback((): void => {
    leave();
    connection
      .flush()
      .then(() => api.run(id, person.name, { on_error: onError(localStorage) }))
      .catch(tell);
  }, [leave, connection, api, id, person.name, tell]);
  const stop = (): void => {
    const execution = executions.current().latest;
    if (execution) api.stop(execution.execution, person.name).catch(tell);
  };
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !active) {
        event.preventDefault();
        run();
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [active, run]);

  return (
    <header>
      <Anchor href="#/" fw={700}>
        Samovar
      </Anchor>
      <Text fw={600}>{name}</Text>
      {active ? (
        <Button size="xs" color="red" onClick={stop}>
          ■ Stop
        </Button>
      ) : (
        <Button size="xs" onClick={run}>
          ▶ Run
        </Button>
      )}
      <Steering />
      <ExecutionLine />
      {status !== "connected" && (
        <Badge color="orange.9" role="status">
          {status === "connecting" ? "connecting" : "offline: edits are kept"}
        </Badge>
      )}
      <Group ml="auto" gap="xs" wrap="nowrap">
        <Button size="compact-xs" variant="default" onClick={() => shared.undo.undo()}>
          Undo
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => shared.undo.redo()}>
          Redo
        </Button>
        <Button size="compact-xs" variant="default" onClick={() => shared.move(arrange(operators, edges))}>
          Arrange
        </Button>
        <Versions />
        <Export />
        <People />
        <TextInput
          size="xs"
          w={90}
          aria-label="Your name"
          value={person.name}
          onChange={(e) =>
            setPerson(keep(localStorage, { ...person, name: e.currentTarget.value.slice(0, 40) }))
          }
        />
        <ActionIcon
          variant="default"
          size="sm"
          aria-label="Light or dark"
          onClick={() => toggleColorScheme()}
        >
          ◐
        </ActionIcon>
        <Help />
      </Group>
    </header>
  );
}

/** What the run does now, in a line. */
function ExecutionLine() {
  const line = useExecution((e) => (e ? describe(e) : "Not run yet"));
  const ahead = useKnown(({ all, latest }) =>
    latest?.status === "queued" ? all.filter((e) => isActive(e) && e !== latest).length : 0,
  );
  return (
    <Text size="sm" role="status" aria-label="Execution" truncate>
      {line}
      {ahead > 0 ? `, ${ahead} before it` : ""}
    </Text>
  );
}
