import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

import { useDocument } from "../context";

interface Line {
  at: number;
  operator: string;
  epoch: number;
  text: string;
}

/** What the Python operators of a run have printed. */
export function Console({ execution, printed }: { execution: string; printed: number }) {
  const { api, tell } = useDocument();
  const [lines, setLines] = useState<Line[]>([]);
  useEffect(() => {
    let current = true;
    api
      .call<Line[]>("GET", `/api/executions/${encodeURIComponent(execution)}/console`)
      .then((found) => current && setLines(found), tell);
    return () => {
      current = false;
    };
  }, [api, execution, printed, tell]);
  return (
    <ol className="lines deeds" aria-label="Console">
      {lines.map((line, i) => (
        <li key={i}>
          <time>{new Date(line.at * 1000).toLocaleTimeString()}</time>
          <Text span size="xs" fw={600}>
            {line.operator}{" "}
          </Text>
          {line.text}
        </li>
      ))}
    </ol>
  );
}
