import { ActionIcon, Modal, Table } from "@mantine/core";
import { useEffect, useState } from "react";

const KEYS: [string, string][] = [
  ["/", "search the palette; Enter adds the first operator found"],
  ["Del", "remove what is selected"],
  ["Ctrl+Z, Ctrl+Shift+Z", "undo and redo your own edits"],
  ["Ctrl+C, Ctrl+V, Ctrl+D", "copy, paste, duplicate"],
  ["Tab, arrows", "go from operator to operator, move the selected one"],
  ["Ctrl+K", "everything by name: add, connect, go to, export"],
  ["Enter, F2", "edit the fields of the selected operator, its name"],
  ["e", "disable the selected operator, or enable it again"],
  ["a, f, c", "arrange, fit all on the screen, add a comment"],
  ["Ctrl+Enter, Shift+Enter", "run, run to the selected operator"],
  ["F10 or o", "step over: the next tuple and all that comes of it"],
  ["F11 or i", "step into: the next tuple, what it gives waits"],
  ["Shift+F11 or u", "step out"],
  ["Shift+F10 or b", "step back"],
  ["?", "this list"],
];

/** The keys; `?` opens it. */
export function Help() {
  const [opened, setOpened] = useState(false);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const typing = (event.target as HTMLElement).closest("input, textarea, [contenteditable]");
      if (event.key === "?" && !typing) setOpened(true);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <ActionIcon variant="default" size="sm" aria-label="Keys" onClick={() => setOpened(true)}>
        ?
      </ActionIcon>
      <Modal opened={opened} onClose={() => setOpened(false)} title="Keys">
        <Table>
          <Table.Tbody>
            {KEYS.map(([key, what]) => (
              <Table.Tr key={key}>
                <Table.Th>{key}</Table.Th>
                <Table.Td>{what}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Modal>
    </>
  );
}
