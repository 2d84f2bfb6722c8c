import { Button, Group, Table, Text } from "@mantine/core";
import { useEffect, useState } from "react";

import { lint, tryOut } from "../../model/build";
import type { Operator } from "../../model/shared";
import type { Trial as Tried } from "../../model/types";
import { brief } from "../../model/values";
import { useDocument } from "../context";

/** Remarks on the code of an operator, and a button that runs it on the first ten rows. */
export default function Trial({ operator }: { operator: Operator }) {
  const { api, id, connection } = useDocument();
  const [remarks, setRemarks] = useState<{ line: number; message: string }[]>([]);
  const [tried, setTried] = useState<Tried | "busy" | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const code = String(operator.fields.code ?? "");
  useEffect(() => {
    let current = true;
    const timer = setTimeout(
      () =>
        lint(api, code).then(
          (found) => current && setRemarks(found.problems),
          () => undefined,
        ),
      400,
    );
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [api, code]);
  const start = (): void => {
    setTried("busy");
    setFailed(null);
    connection
      .flush()
      .then(() => tryOut(api, id, operator.name))
      .then(setTried, (error: Error) => {
        setTried(null);
        setFailed(error.message);
      });
  };
  return (
    <div>
      {remarks.map((r, i) => (
        <Text key={i} size="xs" c="red" role="status">
          ⚠ line {r.line}: {r.message}
        </Text>
      ))}
      <Group gap="xs" mt={4}>
        <Button size="compact-xs" variant="light" loading={tried === "busy"} onClick={start}>
          Try on 10 rows
        </Button>
        {failed && (
          <Text size="xs" c="red" role="alert">
            {failed}
          </Text>
        )}
      </Group>
      {tried !== null &&
        tried !== "busy" &&
        (tried.error ? (
          <Text size="xs" c="red" role="alert" component="pre" style={{ whiteSpace: "pre-wrap" }}>
            {tried.error.message}
            {tried.error.hint ? `\n${tried.error.hint}` : ""}
          </Text>
        ) : (
          <div style={{ overflowX: "auto" }}>
            <Text size="xs" c="dimmed">
              {tried.given.length} rows in, {tried.rows.length} out
            </Text>
            <Table fz="xs" verticalSpacing={1} aria-label={`Trial of ${operator.name}`}>
              <Table.Thead>
                <Table.Tr>
                  {tried.columns.map((c) => (
                    <Table.Th key={c.name} title={c.type}>
                      {c.name}
                    </Table.Th>
                  ))}
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {tried.rows.map((row, i) => (
                  <Table.Tr key={i}>
                    {tried.columns.map((c) => (
                      <Table.Td key={c.name}>{brief(row[c.name] ?? null, 40)}</Table.Td>
                    ))}
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </div>
        ))}
    </div>
  );
}
