/** The server's HTTP API, and its errors as `ApiError`: what happened, and what to do. */
import type {
  Checked,
  Execution,
  Json,
  Moment,
  OperatorKind,
  OperatorState,
  Page,
  Recording,
  RecordingSummary,
  Rejected,
  ServerProblem,
  Version,
  WorkflowSummary,
  WorkspaceFile,
} from "./types";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: ServerProblem,
  ) {
    super(problem.message);
  }

  get hint(): string | null {
    return this.problem.hint;
  }
}

export interface Where {
  interaction?: string;
  operator?: string;
  tuples?: number;
  epoch?: number;
}

export type How = "over" | "into" | "out" | "back";

type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

export class Api {
  constructor(private readonly fetching: Fetch = (path, init) => fetch(path, init)) {}

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const init: RequestInit = { method };
    if (body instanceof Blob) init.body = body;
    else if (body !== undefined) {
      init.body = JSON.stringify(body);
      init.headers = { "content-type": "application/json" };
    }
    const answer = await this.fetching(path, init);
    if (!answer.ok) throw new ApiError(answer.status, await problemOf(answer));
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  private get<T>(path: string): Promise<T> {
    return this.call<T>("GET", path);
  }

  operators = () => this.get<OperatorKind[]>("/api/operators");
  workflows = () => this.get<WorkflowSummary[]>("/api/workflows");
  newWorkflow = (name: string, document?: Json) =>
    this.call<WorkflowSummary>("POST", "/api/workflows", {
      name,
      ...(document === undefined ? {} : { document }),
    });
  examples = () => this.get<Record<string, string>>("/api/examples");
  newExample = (name: string) => this.call<WorkflowSummary>("POST", `/api/examples/${e(name)}`);
  deleteWorkflow = (id: string) => this.call<void>("DELETE", `/api/workflows/${e(id)}`);
  check = (id: string) => this.get<Checked>(`/api/workflows/${e(id)}/check`);
  files = () => this.get<WorkspaceFile[]>("/api/files");
  upload = (path: string, file: Blob) =>
    this.call<void>("PUT", `/api/files/${path.split("/").map(e).join("/")}`, file);

  versions = (id: string) => this.get<Version[]>(`/api/workflows/${e(id)}/versions`);
  saveVersion = (id: string, name: string, by: string) =>
    this.call<Version>("POST", `/api/workflows/${e(id)}/versions`, { name, by });
  restore = (id: string, version: number) =>
    this.call<void>("POST", `/api/workflows/${e(id)}/versions/${version}/restore`);

  run = (id: string, by: string, options: { on_error?: "hold" | "fail"; version?: number } = {}) =>
    this.call<Execution>("POST", `/api/workflows/${e(id)}/run`, { by, ...options });
  stop = (execution: string, by: string) =>
    this.call<Execution>("POST", `/api/executions/${e(execution)}/stop`, { by });

  recordings = () => this.get<RecordingSummary[]>("/api/recordings");
  recording = (run: string) => this.get<Recording>(`/api/recordings/${e(run)}`);
  page = (run: string, sink: string, query: Record<string, string>) =>
    this.get<Page>(`/api/recordings/${e(run)}/results/${e(sink)}?${new URLSearchParams(query).toString()}`);
  rejected = (run: string, operator: string) =>
    this.get<Rejected>(`/api/recordings/${e(run)}/rejected/${e(operator)}`);

  jump = (run: string, to: Where) => this.call<Moment>("POST", `/api/recordings/${e(run)}/jump`, to);
  step = (run: string, moment: string, how: How, operator?: string) =>
    this.call<Moment>("POST", `/api/recordings/${e(run)}/step`, { moment, how, operator: operator ?? null });
  moment = (run: string, moment: string) =>
    this.get<Moment>(`/api/recordings/${e(run)}/moments/${e(moment)}`);
  first = (run: string, operator: string, predicate: string) =>
    this.call<{ found: Moment | null }>("POST", `/api/recordings/${e(run)}/first`, { operator, predicate });
  failure = (run: string) => this.call<{ found: Moment | null }>("POST", `/api/recordings/${e(run)}/failure`);
  state = (run: string, moment: string, operator: string) =>
    this.get<OperatorState>(`/api/recordings/${e(run)}/moments/${e(moment)}/state/${e(operator)}`);
  pending = (run: string, moment: string, operator: string) =>
    this.get<{ from: string; row: Record<string, Json> }[]>(
      `/api/recordings/${e(run)}/moments/${e(moment)}/pending/${e(operator)}`,
    );
  fork = (run: string, moment: string, changes: Record<string, string>, by: string, workflow: string) =>
    this.call<Execution>("POST", `/api/recordings/${e(run)}/moments/${e(moment)}/fork`, {
      changes,
      by,
      workflow,
    });
}

const e = encodeURIComponent;

async function problemOf(answer: Response): Promise<ServerProblem> {
  const fallback = {
    kind: "Error",
    message: `The server answered ${answer.status}.`,
    hint: null,
    operator: null,
  };
  try {
    const body = (await answer.json()) as { error?: ServerProblem };
    return body.error ?? fallback;
  } catch {
    return fallback;
  }
}
