import { Select } from "@mantine/core";
import { useEffect, useState } from "react";

import type { RecordingSummary } from "../../model/types";
import { ago } from "../../model/values";
import { useDocument, useExecution, useSnapshot } from "../context";

/** The recordings of this workflow that the workspace has, the newest first. */
export function useRuns(): RecordingSummary[] {
  const { api, shared } = useDocument();
  const { name } = useSnapshot(shared);
  const [runs, setRuns] = useState<RecordingSummary[]>([]);
  const run = useExecution((e) => e?.run ?? null);
  const status = useExecution((e) => e?.status);
  useEffect(() => {
    let current = true;
    api.recordings().then(
      (all) => current && setRuns(all.filter((r) => r.workflow === name || r.run === run).reverse()),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [api, name, run, status]);
  return runs;
}

export function runLabel(run: RecordingSummary): string {
  return `${run.run.slice(-6)} ${run.status}${run.parent ? " (fork)" : ""}${run.started ? `, ${ago(run.started)}` : ""}`;
}

/** Which run the panels below the canvas show. */
export function RunChooser({ run, choose }: { run: string | null; choose: (run: string) => void }) {
  const runs = useRuns();
  if (runs.length < 2) return null;
  return (
    <Select
      size="xs"
      w={250}
      aria-label="Shown run"
      value={run}
      allowDeselect={false}
      onChange={(chosen) => chosen && choose(chosen)}
      data={runs.map((r) => ({ value: r.run, label: runLabel(r) }))}
    />
  );
}
