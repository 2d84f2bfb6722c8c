import { Table, Text } from "@mantine/core";
import { useEffect, useState } from "react";

import type { Rejected as Kept } from "../../model/types";
import { brief, count } from "../../model/values";
import { useDocument } from "../context";

/** Rows of a source that did not parse, with the file and the line they stand on. */
export function Rejected({ run, source, rows }: { run: string; source: string; rows: number }) {
  const { api, tell } = useDocument();
  const [kept, setKept] = useState<Kept | null>(null);
  useEffect(() => {
    let current = true;
    api.rejected(run, source).then((found) => current && setKept(found), tell);
    return () => {
      current = false;
    };
  }, [api, run, source, rows, tell]);
  const more = (kept?.total ?? 0) - (kept?.rows.length ?? 0);
  return (
    <section className="rejected" aria-label={`Rejected rows of ${source}`}>
      <Text size="sm" fw={600}>
        ⚠ {rejection(rows)} of {source} did not parse and {rows === 1 ? "is" : "are"} not in the results
      </Text>
      {kept !== null && (
        <Table withRowBorders={false} verticalSpacing={1} fz="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>file</Table.Th>
              <Table.Th>line</Table.Th>
              <Table.Th>text</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {kept.rows.map((row, i) => (
              <Table.Tr key={i}>
                <Table.Td>{String(row.file ?? "")}</Table.Td>
                <Table.Td>{row.line === null ? "?" : String(row.line)}</Table.Td>
                <Table.Td>
                  <code>{brief(row.text ?? "", 300)}</code>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {more > 0 && (
        <Text size="xs" c="dimmed">
          and {count(more)} more
        </Text>
      )}
    </section>
  );
}

/** "1 row", "2,000 rows". */
export function rejection(rows: number): string {
  return `${count(rows)} ${rows === 1 ? "row" : "rows"}`;
}
