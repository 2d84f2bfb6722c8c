/** Executions as everybody sees them: news in, the state of the runs out. Pure, apart from the socket at the end. */
import { Store, keepEqualParts } from "./store";
import type { Execution } from "./types";
import { brief } from "./values";

export type News =
  | { kind: "executions"; data: Execution[] }
  | { kind: "execution"; data: Execution }
  | { kind: "notebook"; data: { run: string } };

export const ENDED = ["completed", "failed", "stopped"];

/** The executions after some news, in the order they were asked for. */
export function told(known: Execution[], news: News): Execution[] {
  if (news.kind === "notebook") return known;
  if (news.kind === "executions") return [...news.data].sort((a, b) => a.asked - b.asked);
  const before = known.find((e) => e.execution === news.data.execution);
  const others = known.filter((e) => e !== before);
  const now = before === undefined ? news.data : keepEqualParts(before, news.data);
  return [...others, now].sort((a, b) => a.asked - b.asked);
}

export interface Known {
  /** The executions of the workspace, in the order they were asked for. */
  all: Execution[];
  /** The execution that the workbench shows. */
  latest: Execution | null;
  /** How often the notebook of a run has changed, by run. */
  noted: Record<string, number>;
}

/** What the server's news have told so far, for the workbench of one workflow. */
export class Executions extends Store<Known> {
  constructor(private readonly workflow: string) {
    super({ all: [], latest: null, noted: {} });
  }

  readonly take = (news: News): void => {
    const known = this.current();
    if (news.kind === "notebook") {
      const { run } = news.data;
      this.replace({ ...known, noted: { ...known.noted, [run]: (known.noted[run] ?? 0) + 1 } });
    } else {
      const all = told(known.all, news);
      this.replace({ ...known, all, latest: latest(all, this.workflow) });
    }
  };
}

/** The execution of a workflow that a canvas shows: the last one that was asked for. */
export function latest(executions: Execution[], workflow: string): Execution | null {
  return executions.findLast((e) => e.workflow === workflow) ?? null;
}

export function isActive(execution: Execution | null): boolean {
  return execution !== null && !ENDED.includes(execution.status);
}

/** A line on an execution: who asked, what it does. Never by colour alone. */
export function describe(execution: Execution): string {
  const who = execution.by ? ` (asked for by ${execution.by})` : "";
  switch (execution.status) {
    case "queued":
      return `Waits for other runs to end${who}`;
    case "starting":
      return `Starts${who}`;
    case "running": {
      const progress = execution.progress;
      return progress
        ? `Runs: ${Math.floor(progress.fraction * 100)} %, epoch ${progress.epoch}${who}`
        : `Runs${who}`;
    }
    case "pausing":
      return `Pauses${execution.paused_by ? `, asked for by ${execution.paused_by}` : ""}`;
    case "paused": {
      const at = execution.reached[0];
      if (at) return `Paused at a breakpoint of ${at.operator}: ${at.row ? brief(at.row, 60) : at.note}`;
      return `Paused${execution.paused_by ? ` by ${execution.paused_by}` : ""}`;
    }
    case "holding": {
      const held = execution.held[0];
      return held ? `${held.operator} holds a tuple: ${held.error}` : "A tuple is held";
    }
    case "stopped":
      return `Stopped${execution.stopped_by ? ` by ${execution.stopped_by}` : ""}`;
    case "failed":
      return "Failed";
    default:
      return `Completed${execution.progress ? ` in ${execution.progress.seconds.toFixed(1)} s` : ""}`;
  }
}

/** Listens to the server's news, and connects again when the connection is lost. Returns a function that ends it. */
export function listen(url: string, take: (news: News) => void): () => void {
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let tries = 0;
  let ended = false;
  const open = (): void => {
    socket = new WebSocket(url);
    socket.onopen = () => (tries = 0);
    socket.onmessage = (event: MessageEvent<string>) => take(JSON.parse(event.data) as News);
    socket.onclose = () => {
      if (!ended) timer = setTimeout(open, Math.min(5000, 200 * 2 ** tries++));
    };
  };
  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    socket?.close();
  };
}
