import { Text } from "@mantine/core";
import { useEffect, useState } from "react";

import type { ColumnFigures, ValueCount } from "../../model/types";
import { brief, count } from "../../model/values";
import { useDocument } from "../context";

/** The columns of a result in figures, computed by Spark; a click on one shows its values. */
export default function Statistics({ run, sink, where }: { run: string; sink: string; where: string }) {
  const { api } = useDocument();
  const [figures, setFigures] = useState<ColumnFigures[] | null>(null);
  const [opened, open] = useState<string | null>(null);
  const [values, setValues] = useState<ValueCount[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    api.statistics(run, sink, where || undefined).then(
      (f) => current && setFigures(f),
      (error: Error) => current && setProblem(error.message),
    );
    return () => {
      current = false;
    };
  }, [api, run, sink, where]);
  useEffect(() => {
    if (opened === null) return;
    let current = true;
    setValues([]);
    api.values(run, sink, opened, where || undefined).then(
      (v) => current && setValues(v),
      (error: Error) => current && setProblem(error.message),
    );
    return () => {
      current = false;
    };
  }, [api, run, sink, where, opened]);
  if (problem)
    return (
      <Text size="sm" c="red" role="alert">
        {problem}
      </Text>
    );
  if (figures === null)
    return (
      <Text size="sm" c="dimmed">
        Spark counts …
      </Text>
    );
  const most = Math.max(1, ...values.map((v) => v.rows));
  return (
    <div
      style={{ overflow: "auto", display: "flex", gap: 24 }}
      tabIndex={0}
      aria-label="Statistics"
      role="region"
    >
      <table className="difference" aria-label={`Columns of ${sink}`}>
        <thead>
          <tr>
            {["column", "type", "nulls", "different", "least", "greatest", "mean"].map((h) => (
              <th key={h}>{h}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {figures.map((f) => (
            <tr key={f.name}>
              <th>
                <button
                  type="button"
                  className="plain"
                  aria-pressed={opened === f.name}
                  onClick={() => open(f.name)}
                >
                  {f.name}
                </button>
              </th>
              <td>{brief(f.type, 30)}</td>
              <td>{count(f.nulls)}</td>
              <td>{typeof f.distinct === "number" ? `about ${count(f.distinct)}` : ""}</td>
              {[f.least, f.greatest, f.mean].map((v, i) => (
                <td key={i}>{v === null ? "" : brief(v, 30)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {opened !== null && values.length > 0 && (
        <table className="difference" aria-label={`Values of ${opened}`}>
          <thead>
            <tr>
              <th>{opened}</th>
              <th>rows</th>
            </tr>
          </thead>
          <tbody>
            {values.map((v, i) => (
              <tr key={i}>
                <th>{"value" in v ? brief(v.value, 40) : `${brief(v.from, 10)} to ${brief(v.to, 10)}`}</th>
                <td
                  style={{
                    background: `linear-gradient(to right, var(--mantine-primary-color-light-hover) ${(100 * v.rows) / most}%, transparent 0)`,
                    minWidth: 120,
                  }}
                >
                  {count(v.rows)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
