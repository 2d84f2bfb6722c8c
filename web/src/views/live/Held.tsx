import { Button, Checkbox, Code, Group, Modal, Stack, Table, Text, TextInput } from "@mantine/core";
import { useCallback, useEffect, useState } from "react";

import { asText, changedRow, steer } from "../../model/steering";
import type { HeldTuple } from "../../model/types";
import { useDocument, useExecution } from "../context";

/** The badge of an operator that holds a tuple; it opens the tuple with what can be done about it. */
export function HeldBadge({ operator, error }: { operator: string; error: string }) {
  const [opened, setOpened] = useState(false);
  const close = useCallback(() => setOpened(false), []);
  return (
    <>
      <button
        type="button"
        className="held nodrag"
        title={error}
        onClick={(event) => {
          event.stopPropagation();
          setOpened(true);
        }}
      >
        ✋ Held by {operator}: {error}
      </button>
      {opened && <HeldDialog operator={operator} close={close} />}
    </>
  );
}

/** A tuple that raised: itself, where it raised, the state; fix, retry, skip. */
function HeldDialog({ operator, close }: { operator: string; close: () => void }) {
  const { api, person, tell, shared } = useDocument();
  const [held, setHeld] = useState<HeldTuple | null>(null);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [like, setLike] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const id = useExecution((e) => e?.execution ?? "");
  useEffect(() => {
    let current = true;
    steer.held(api, id).then((all) => {
      const found = all.find((h) => h.operator === operator) ?? null;
      if (!current) return;
      setHeld(found);
      if (found)
        setTyped(Object.fromEntries(Object.entries(found.row).map(([name, value]) => [name, asText(value)])));
      else close();
    }, tell);
    return () => {
      current = false;
    };
  }, [api, id, operator, close, tell]);
  const decide = (asked: Promise<unknown>): void => {
    setBusy(true);
    setProblem(null);
    asked.then(close, (error: Error) => setProblem(error.message)).finally(() => setBusy(false));
  };
  const code = shared.current().operators.find((o) => o.name === operator)?.fields.code;
  return (
    <Modal
      opened
      onClose={close}
      size="xl"
      title={`${operator} holds a tuple`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {held === null ? (
        <Text>Loading …</Text>
      ) : (
        <Stack gap="xs" className="nodrag nopan">
          <Text fw={600} c="red.9">
            {held.error}
          </Text>
          <Table aria-label="Held tuple">
            <Table.Tbody>
              {Object.keys(held.row).map((name) => (
                <Table.Tr key={name}>
                  <Table.Th w={160}>{name}</Table.Th>
                  <Table.Td>
                    <TextInput
                      size="xs"
                      aria-label={name}
                      value={typed[name] ?? ""}
                      onChange={(e) => setTyped({ ...typed, [name]: e.currentTarget.value })}
                    />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
          <Group gap="xs">
            <Button
              size="xs"
              disabled={busy}
              onClick={() => decide(steer.retry(api, id, person.name, operator, changedRow(held.row, typed)))}
            >
              {changedRow(held.row, typed) ? "Retry with these values" : "Retry"}
            </Button>
            {typeof code === "string" && (
              <Button
                size="xs"
                variant="light"
                disabled={busy}
                onClick={() => decide(steer.modify(api, id, person.name, { [operator]: code }, "strict"))}
              >
                Retry with the code in the editor
              </Button>
            )}
            <Button
              size="xs"
              variant="light"
              color="red"
              disabled={busy}
              onClick={() => decide(steer.skip(api, id, person.name, operator, like))}
            >
              Skip
            </Button>
            <Checkbox
              size="xs"
              label="and all like it"
              checked={like}
              onChange={(e) => setLike(e.currentTarget.checked)}
            />
          </Group>
          {problem && (
            <Text size="sm" c="red.9" role="alert">
              {problem}
            </Text>
          )}
          <Text size="sm" fw={600}>
            Traceback
          </Text>
          <Code block>{held.traceback}</Code>
          <Text size="sm" fw={600}>
            Names where it raised
          </Text>
          <Code block>
            {Object.entries(held.locals)
              .map(([name, value]) => `${name} = ${value}`)
              .join("\n")}
          </Code>
          <Text size="sm" fw={600}>
            State of {operator}
          </Text>
          <Code block>{held.state || "none"}</Code>
        </Stack>
      )}
    </Modal>
  );
}
