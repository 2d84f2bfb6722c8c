import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

import type { ConsoleLine } from "../../model/types";
import { useDocument } from "../context";

/** What the Python operators of a run have printed. */
export function Console({ execution, printed }: { execution: string; printed: number }) {
  const { api, tell } = useDocument();
  const [lines, setLines] = useState<ConsoleLine[]>([]);
  useEffect(() => {
    let current = true;
    api.console(execution).then((found) => current && setLines(found), tell);
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
