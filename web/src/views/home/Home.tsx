import {
  Alert,
  Anchor,
  Button,
  Container,
  FileButton,
  Group,
  Modal,
  Stack,
  Table,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useCallback, useEffect, useState } from "react";

import { ApiError, type Api } from "../../model/api";
import type { WorkflowSummary } from "../../model/types";
import { ago } from "../../model/values";
import { Gallery } from "./Gallery";

/** The workspace: its workflows, and ways to make one. */
export function Home({ api }: { api: Api }) {
  const [workflows, setWorkflows] = useState<WorkflowSummary[] | null>(null);
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<Error | null>(null);
  const [leaving, setLeaving] = useState<string | null>(null);
  const [examples, setExamples] = useState<Record<string, string>>({});
  const load = useCallback(() => {
    api.workflows().then(setWorkflows, setProblem);
    api.examples().then(setExamples, setProblem);
  }, [api]);
  useEffect(load, [load]);

  const make = (title: string, document?: string): void => {
    api.newWorkflow(title, document).then((made) => (location.hash = `#/w/${made.workflow}`), setProblem);
  };
  const example = (title: string): void => {
    api.newExample(title).then((made) => (location.hash = `#/w/${made.workflow}`), setProblem);
  };
  const open = (file: File | null): void => {
    if (file === null) return;
    void file.text().then((text) => make(file.name.replace(/\.(ya?ml|json)$/, ""), text));
  };
  const remove = (id: string): void => {
    setLeaving(null);
    api.deleteWorkflow(id).then(load, setProblem);
  };

  return (
    <Container size="sm" py="xl">
      <Stack>
        <Title order={1}>Samovar</Title>
        <Text c="dimmed">
          Workflows on Spark that can be looked into, stepped through and travelled back in.
        </Text>
        {problem && (
          <Alert color="red" title={problem.message} withCloseButton onClose={() => setProblem(null)}>
            {problem instanceof ApiError ? problem.hint : null}
          </Alert>
        )}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            make(name.trim() || "workflow");
          }}
        >
          <Group align="end">
            <TextInput
              label="New workflow"
              placeholder="its name"
              value={name}
              onChange={(e) => setName(e.currentTarget.value)}
            />
            <Button type="submit">Make</Button>
            <FileButton onChange={open} accept=".yaml,.yml,.json">
              {(props) => (
                <Button variant="default" {...props}>
                  Import a document
                </Button>
              )}
            </FileButton>
          </Group>
        </form>
        {workflows?.length === 0 && (
          <Text>No workflows yet: make one, import a document, or open an example below.</Text>
        )}
        {workflows !== null && workflows.length > 0 && (
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>workflow</Table.Th>
                <Table.Th>people</Table.Th>
                <Table.Th>changed</Table.Th>
                <Table.Th />
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {workflows.map((w) => (
                <Table.Tr key={w.workflow}>
                  <Table.Td>
                    <Anchor href={`#/w/${w.workflow}`}>{w.workflow}</Anchor>
                  </Table.Td>
                  <Table.Td>{w.people || ""}</Table.Td>
                  <Table.Td>{ago(w.changed)}</Table.Td>
                  <Table.Td>
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      color="red"
                      onClick={() => setLeaving(w.workflow)}
                    >
                      Delete
                    </Button>
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
        {leaving !== null && (
          <Modal
            opened
            onClose={() => setLeaving(null)}
            title={`Delete the workflow “${leaving}”?`}
            closeButtonProps={{ "aria-label": "Close" }}
          >
            <Text>Its versions go with it. Its recordings stay.</Text>
            <Group mt="sm" justify="end">
              <Button size="xs" variant="default" data-autofocus onClick={() => setLeaving(null)}>
                Cancel
              </Button>
              <Button size="xs" color="red" onClick={() => remove(leaving)}>
                Delete it
              </Button>
            </Group>
          </Modal>
        )}
        <Gallery examples={examples} open={example} />
      </Stack>
    </Container>
  );
}
