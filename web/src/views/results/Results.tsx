import { Button, Group, Select, Text, TextInput } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { Suspense, lazy, useEffect, useMemo, useReducer, useRef, useState } from "react";

import { Pages } from "../../model/pages";
import type { Recording } from "../../model/types";
import { brief, count } from "../../model/values";
import { useDocument } from "../context";

const Statistics = lazy(() => import("./Statistics"));

/** The rows of a sink. Only what is on the screen is loaded; sorting and filtering happen in Spark. */
export function Results({ recording }: { recording: Recording }) {
  const [sink, setSink] = useState(recording.sinks[0] ?? null);
  const [where, setWhere] = useState("");
  const [asked, setAsked] = useState("");
  const [columns, setColumns] = useState(false);
  if (sink === null)
    return (
      <Text size="sm" c="dimmed">
        This workflow keeps no rows: end it with a “sink”.
      </Text>
    );
  return (
    <div style={{ display: "flex", flexDirection: "column", height: "100%" }}>
      <Group gap="xs" mb={4}>
        <Select
          size="xs"
          w={140}
          aria-label="Sink"
          data={recording.sinks}
          value={sink}
          onChange={(s) => s && setSink(s)}
          allowDeselect={false}
        />
        <form
          onSubmit={(e) => {
            e.preventDefault();
            setAsked(where);
          }}
        >
          <TextInput
            size="xs"
            w={320}
            aria-label="Filter"
            placeholder="filter by SQL, then Enter: amount > 100"
            value={where}
            onChange={(e) => setWhere(e.currentTarget.value)}
          />
        </form>
        <Button
          size="xs"
          variant={columns ? "filled" : "default"}
          aria-pressed={columns}
          onClick={() => setColumns(!columns)}
        >
          Columns in figures
        </Button>
      </Group>
      {columns ? (
        <Suspense>
          <Statistics
            key={`${recording.epochs}/${sink}/${asked}`}
            run={recording.run}
            sink={sink}
            where={asked}
          />
        </Suspense>
      ) : (
        <Grid
          key={`${recording.run}/${recording.epochs}/${recording.status}/${sink}/${asked}`}
          run={recording.run}
          sink={sink}
          where={asked}
        />
      )}
    </div>
  );
}

function Grid({ run, sink, where }: { run: string; sink: string; where: string }) {
  const { api } = useDocument();
  const [sort, setSort] = useState<{ column: string; down: boolean } | null>(null);
  const [, changed] = useReducer((n: number) => n + 1, 0);
  const box = useRef<HTMLDivElement>(null);
  const pages = useMemo(() => {
    const query = { where: where || undefined, sort: sort?.column, descending: sort?.down };
    return new Pages((start, count) => api.page(run, sink, { ...query, start, count }), changed);
  }, [api, run, sink, where, sort]);
  useEffect(() => void pages.fetch(0), [pages]);
  const rows = useVirtualizer({
    count: pages.total ?? 0,
    getScrollElement: () => box.current,
    estimateSize: () => 26,
    overscan: 10,
  });

  if (pages.problem)
    return (
      <Text size="sm" c="red" role="alert">
        {pages.problem.message}
      </Text>
    );
  if (pages.total === null)
    return (
      <Text size="sm" c="dimmed">
        Loading …
      </Text>
    );
  const order = (column: string): void =>
    setSort((now) =>
      now?.column !== column ? { column, down: false } : now.down ? null : { column, down: true },
    );
  return (
    <>
      <Text size="xs" c="dimmed" role="status" aria-label="Row count">
        {count(pages.total)} rows
      </Text>
      <div
        className="grid"
        ref={box}
        role="table"
        aria-label={`Result ${sink}`}
        aria-rowcount={pages.total}
        tabIndex={0}
      >
        <div className="head" role="row">
          <div className="cell number" role="columnheader">
            #
          </div>
          {pages.columns.map((c) => (
            <div key={c.name} className="cell" role="columnheader" title={c.type}>
              <button type="button" onClick={() => order(c.name)}>
                {c.name}
                {sort?.column === c.name ? (sort.down ? " ▼" : " ▲") : ""}
              </button>
            </div>
          ))}
        </div>
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map((item) => {
            const row = pages.row(item.index);
            return (
              <div
                key={item.key}
                className="line"
                role="row"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <div className="cell number" role="rowheader">
                  {item.index + 1}
                </div>
                {pages.columns.map((c) => (
                  <div key={c.name} className="cell" role="cell">
                    {row ? brief(row[c.name] ?? null) : "…"}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}
