import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

import { travel } from "../../model/journey";
import type { Line, Moment } from "../../model/types";
import { brief } from "../../model/values";
import { useDocument } from "../context";

/** The lines that a Python operator's last step ran, each with what it made of the locals. */
export function LinesView({ run, moment, operator }: { run: string; moment: Moment; operator: string }) {
  const { api } = useDocument();
  const [lines, setLines] = useState<Line[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    setProblem(null);
    travel.lines(api, run, moment.moment, operator).then(
      (found) => current && setLines(found),
      (error: Error) => current && setProblem(error.message),
    );
    return () => {
      current = false;
    };
  }, [api, run, moment, operator]);
  if (problem)
    return (
      <Text size="xs" c="dimmed">
        {problem}
      </Text>
    );
  if (lines === null)
    return (
      <Text size="xs" c="dimmed">
        Loading …
      </Text>
    );
  return (
    <ol className="lines" aria-label={`Lines of ${operator}`} style={{ paddingLeft: 0, listStyle: "none" }}>
      {lines.map((line, i) => {
        const then = i === 0 ? {} : line.locals; // locals are those before a line: what it did, the next one tells
        const fresh = Object.entries(lines[i + 1]?.locals ?? {}).filter(
          ([name, value]) => name !== "self" && brief(value, 60) !== brief(then[name] ?? null, 60),
        );
        return (
          <li key={i}>
            <small>{String(line.number).padStart(3)} </small>
            {line.text}
            {line.event === "return" || line.event === "yield" ? <b> → {brief(line.value, 60)}</b> : null}
            {fresh.length > 0 && (
              <small>
                {"\n     "}
                {fresh.map(([name, value]) => `${name} = ${brief(value, 60)}`).join(", ")}
              </small>
            )}
          </li>
        );
      })}
    </ol>
  );
}
