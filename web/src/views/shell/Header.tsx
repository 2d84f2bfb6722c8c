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
import { useEffect } from "react";

import { describe, isActive } from "../../model/executions";
import { arrange } from "../../model/layout";
import { keep } from "../../model/person";
import { onError } from "../../model/steering";
import type { Execution, Person } from "../../model/types";
import { Export } from "./Export";
import { Help } from "./Help";
import { People } from "../people/People";
import { Steering } from "../live/Steering";
import { Versions } from "./Versions";
import { useBench, useSnapshot, useStatus } from "../../context";

export function Header({
  executions,
  setPerson,
}: {
  executions: Execution[];
  setPerson: (p: Person) => void;
}) {
  const bench = useBench();
  const { api, id, shared, connection, execution, person, tell } = bench;
  const { name, operators, edges } = useSnapshot(shared);
  const status = useStatus(connection);
  const { toggleColorScheme } = useMantineColorScheme();
  const active = isActive(execution);
  const ahead = executions.filter((e) => isActive(e) && e !== execution).length;

  const run = (): void => {
    bench.setMoment(null);
    connection
      .flush()
      .then(() => api.run(id, person.name, { on_error: onError(localStorage) }))
      .catch(tell);
  };
  const stop = (): void => {
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
  });

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
      <Text size="sm" role="status" aria-label="Execution" truncate>
        {execution ? describe(execution) : "Not run yet"}
        {ahead > 0 && execution?.status === "queued" ? `, ${ahead} before it` : ""}
      </Text>
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
