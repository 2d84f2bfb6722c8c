import { FileButton, Button, Group, Table, Text } from "@mantine/core";
import { useCallback, useEffect, useState } from "react";

import type { WorkspaceFile } from "../../model/types";
import { count } from "../../model/values";
import { useDocument } from "../context";

export function Files() {
  const { api, tell } = useDocument();
  const [files, setFiles] = useState<WorkspaceFile[]>([]);
  const load = useCallback(() => {
    api.files().then(setFiles, tell);
  }, [api, tell]);
  useEffect(load, [load]);
  const upload = (chosen: File[]): void => {
    Promise.all(chosen.map((file) => api.upload(file.name, file))).then(load, tell);
  };
  return (
    <>
      <Group mb="xs">
        <FileButton multiple onChange={upload}>
          {(props) => (
            <Button size="compact-xs" {...props}>
              Upload
            </Button>
          )}
        </FileButton>
        <Text size="xs" c="dimmed">
          Name a file in the field “path” of a “read” operator, as it stands here.
        </Text>
      </Group>
      <Table verticalSpacing={2} fz="xs">
        <Table.Tbody>
          {files.length === 0 && (
            <Table.Tr>
              <Table.Td>
                No files yet: upload some, or put them into the folder “files” of the workspace.
              </Table.Td>
            </Table.Tr>
          )}
          {files.map((f) => (
            <Table.Tr key={f.path}>
              <Table.Td>{f.path}</Table.Td>
              <Table.Td ta="right">{count(f.bytes)} bytes</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}
