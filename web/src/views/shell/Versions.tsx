import { Button, Group, Menu, Modal, Text, TextInput } from "@mantine/core";
import { useState } from "react";

import type { Version } from "../../model/types";
import { ago } from "../../model/values";
import { useDocument } from "../context";

/** Named versions of the workflow: keep it as it is now, or take an earlier one back. */
export function Versions() {
  const { api, id, tell } = useDocument();
  const [versions, setVersions] = useState<Version[]>([]);
  const [naming, setNaming] = useState(false);
  const load = (): void => {
    api.versions(id).then(setVersions, tell);
  };
  return (
    <>
      <Menu onOpen={load}>
        <Menu.Target>
          <Button size="compact-xs" variant="default">
            Versions
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setNaming(true)}>Name this version …</Menu.Item>
          <Menu.Divider />
          {versions.length === 0 && <Menu.Label>No versions yet</Menu.Label>}
          {versions.map((v) => (
            <Menu.Item key={v.version} onClick={() => void api.restore(id, v.version).catch(tell)}>
              Restore “{v.name}”{" "}
              <Text span size="xs" c="dimmed">
                {v.by} {ago(v.at)}
              </Text>
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {naming && <Naming close={() => setNaming(false)} />}
    </>
  );
}

/** Asks for the name under which the workflow is kept. */
function Naming({ close }: { close: () => void }) {
  const { api, id, person, connection } = useDocument();
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const save = (): void => {
    setBusy(true);
    setProblem(null);
    connection
      .flush()
      .then(() => api.saveVersion(id, name.trim(), person.name))
      .then(close, (error: Error) => setProblem(error.message))
      .finally(() => setBusy(false));
  };
  return (
    <Modal
      opened
      onClose={close}
      title="Keep the workflow as it is now"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() && !busy) save();
        }}
      >
        <TextInput
          data-autofocus
          label="Name of the version"
          placeholder="before the new limit"
          value={name}
          error={problem}
          onChange={(e) => setName(e.currentTarget.value)}
        />
        <Group mt="sm" justify="end">
          <Button size="xs" variant="default" onClick={close}>
            Cancel
          </Button>
          <Button size="xs" type="submit" disabled={busy || !name.trim()}>
            Keep it
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
