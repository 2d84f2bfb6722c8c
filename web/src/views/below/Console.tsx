import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

import type { Execution } from "../../model/types";
import { useBench } from "../../context";

interface Line {
  at: number;
  operator: string;
  epoch: number;
  text: string;
}

/** What the Python operators of a run have printed. */
export function Console({ execution }: { execution: Execution }) {
  const { api, tell } = useBench();
  const [lines, setLines] = useState<Line[]>([]);
  useEffect(() => {
    let current = true;
    api
      .call<Line[]>("GET", `/api/executions/${encodeURIComponent(execution.execution)}/console`)
      .then((found) => current && setLines(found), tell);
    return () => {
      current = false;
    };
  }, [api, execution.execution, execution.printed]);
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
