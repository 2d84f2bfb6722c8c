import { describe, expect, it } from "vitest";

import { Executions, describe as words, latest, told } from "./executions";
import { sampleExecution } from "./samples";

describe("executions", () => {
  it("take news in the order they were asked for", () => {
    const two = { ...sampleExecution, execution: "b", asked: 2 };
    let known = told([], { kind: "executions", data: [two, sampleExecution] });
    known = told(known, { kind: "execution", data: { ...sampleExecution, status: "completed" } });
    expect(known.map((e) => [e.execution, e.status])).toEqual([
      ["a", "completed"],
      ["b", "running"],
    ]);
    expect(latest(known, "w")?.execution).toBe("b");
    expect(latest(known, "other")).toBeNull();
    expect(told(known, { kind: "notebook", data: { run: "r" } })).toBe(known);
  });
  it("are told in words", () => {
    expect(words(sampleExecution)).toBe("Runs: 50 %, epoch 2 (asked for by Ana)");
    expect(words({ ...sampleExecution, status: "stopped", stopped_by: "Bob" })).toBe("Stopped by Bob");
    expect(words({ ...sampleExecution, status: "paused", paused_by: "Ana" })).toBe("Paused by Ana");
    const reached = [{ operator: "FE", epoch: 0, row: { n: 7 }, note: "" }];
    expect(words({ ...sampleExecution, status: "paused", reached })).toBe(
      "Paused at a breakpoint of FE: {n: 7}",
    );
    const held = [{ hold: "h", operator: "FE", epoch: 0, error: "KeyError: 'x'" }];
    expect(words({ ...sampleExecution, status: "holding", held })).toBe("FE holds a tuple: KeyError: 'x'");
  });
});

describe("what is known of runs", () => {
  it("is the latest execution of the workflow, and the same object until something changes", () => {
    const known = new Executions("w");
    let changes = 0;
    known.subscribe(() => changes++);
    known.take({ kind: "executions", data: [sampleExecution] });
    known.take({
      kind: "execution",
      data: { ...sampleExecution, workflow: "other", execution: "b", asked: 2 },
    });
    const before = known.current().latest!;
    expect(before.execution).toBe("a");
    known.take({ kind: "execution", data: structuredClone(sampleExecution) });
    expect(known.current().latest).toBe(before);
    known.take({ kind: "execution", data: { ...structuredClone(sampleExecution), status: "paused" } });
    expect(known.current().latest!.status).toBe("paused");
    expect(known.current().latest!.progress).toBe(before.progress);
    expect(changes).toBe(4);
  });
  it("counts the news of each notebook", () => {
    const known = new Executions("w");
    known.take({ kind: "notebook", data: { run: "r" } });
    known.take({ kind: "notebook", data: { run: "r" } });
    expect(known.current().noted).toEqual({ r: 2 });
  });
});
