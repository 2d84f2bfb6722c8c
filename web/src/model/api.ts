/** The server's HTTP API, typed by its OpenAPI description, and its errors as `ApiError`: what happened, what to do. */
import type { components, paths } from "./server";
import type { Json, OperatorKind, ServerProblem } from "./types";

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

export type Where = components["schemas"]["Jump"];
export type How = components["schemas"]["StepRequest"]["how"];

// --- what a route takes and answers ---------------------------------------------------------------------------------

type Method = "get" | "post" | "put" | "delete";
type Route<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never;
}[keyof paths];
type Operation<M extends Method, P extends Route<M>> = paths[P] extends Record<M, infer O> ? O : never;

type Names<O> = O extends { parameters: { path: infer N } } ? { path: N } : { path?: undefined };
type Query<O> = O extends { parameters: { query?: infer Q } } ? { query?: Q } : { query?: undefined };
type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } }
  ? { body: B }
  : { body?: Blob };
type Given<O> = Names<O> & Query<O> & Body<O>;
type Answer<O> = O extends { responses: infer R } ? ContentOf<R[keyof R]> : never;
type ContentOf<R> = R extends { content: { "application/json": infer C } } ? C : void;

type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

export class Api {
  constructor(private readonly fetching: Fetch = (path, init) => fetch(path, init)) {}

  /** Ask a route: names in its path and its query are encoded, its body is sent as JSON (a Blob as it is). */
  async ask<M extends Method, P extends Route<M>>(
    method: M,
    route: P,
    given: Given<Operation<M, P>>,
  ): Promise<Answer<Operation<M, P>>> {
    const { path, query, body } = given as {
      path?: Record<string, string | number>;
      query?: Record<string, unknown>;
      body?: unknown;
    };
    const init: RequestInit = { method: method.toUpperCase() };
    if (body instanceof Blob) init.body = body;
    else if (body !== undefined) {
      init.body = JSON.stringify(body);
      init.headers = { "content-type": "application/json" };
    }
    const answer = await this.fetching(addressOf(route, path ?? {}, query ?? {}), init);
    if (!answer.ok) throw new ApiError(answer.status, await problemOf(answer));
    return (answer.status === 204 ? undefined : await answer.json()) as Answer<Operation<M, P>>;
  }

  operators = () => this.ask("get", "/api/operators", {}) as Promise<unknown> as Promise<OperatorKind[]>;
  workflows = () => this.ask("get", "/api/workflows", {});
  newWorkflow = (name: string, document?: string | Record<string, Json>) =>
    this.ask("post", "/api/workflows", { body: { name, document } });
  examples = () => this.ask("get", "/api/examples", {});
  newExample = (name: string) => this.ask("post", "/api/examples/{name}", { path: { name } });
  deleteWorkflow = (id: string) => this.ask("delete", "/api/workflows/{id}", { path: { id } });
  check = (id: string) => this.ask("get", "/api/workflows/{id}/check", { path: { id } });
  files = () => this.ask("get", "/api/files", {});
  upload = (path: string, file: Blob) => this.ask("put", "/api/files/{path}", { path: { path }, body: file });

  versions = (id: string) => this.ask("get", "/api/workflows/{id}/versions", { path: { id } });
  saveVersion = (id: string, name: string, by: string) =>
    this.ask("post", "/api/workflows/{id}/versions", { path: { id }, body: { name, by } });
  restore = (id: string, version: number) =>
    this.ask("post", "/api/workflows/{id}/versions/{number}/restore", { path: { id, number: version } });

  run = (
    id: string,
    by: string,
    options: { on_error?: "hold" | "fail"; version?: number; to?: string } = {},
  ) => this.ask("post", "/api/workflows/{id}/run", { path: { id }, body: { by, ...options } });
  execution = (id: string) => this.ask("get", "/api/executions/{id}", { path: { id } });
  stop = (id: string, by: string) =>
    this.ask("post", "/api/executions/{id}/stop", { path: { id }, body: { by } });
  console = (id: string) => this.ask("get", "/api/executions/{id}/console", { path: { id } });

  recordings = () => this.ask("get", "/api/recordings", {});
  recording = (run: string) => this.ask("get", "/api/recordings/{run}", { path: { run } });
  page = (
    run: string,
    sink: string,
    query: { start: number; count: number; where?: string; sort?: string; descending?: boolean },
  ) => this.ask("get", "/api/recordings/{run}/results/{sink}", { path: { run, sink }, query });
  rejected = (run: string, operator: string) =>
    this.ask("get", "/api/recordings/{run}/rejected/{operator}", { path: { run, operator } });
  statistics = (run: string, sink: string, where?: string) =>
    this.ask("get", "/api/recordings/{run}/results/{sink}/statistics", {
      path: { run, sink },
      query: { where },
    });
  values = (run: string, sink: string, column: string, where?: string) =>
    this.ask("get", "/api/recordings/{run}/results/{sink}/statistics/{column}", {
      path: { run, sink, column },
      query: { where },
    });

  jump = (run: string, to: Where) =>
    this.ask("post", "/api/recordings/{run}/jump", { path: { run }, body: to });
  step = (run: string, moment: string, how: How, operator?: string) =>
    this.ask("post", "/api/recordings/{run}/step", { path: { run }, body: { moment, how, operator } });
  moment = (run: string, moment: string) =>
    this.ask("get", "/api/recordings/{run}/moments/{moment}", { path: { run, moment } });
  first = (run: string, operator: string, predicate: string) =>
    this.ask("post", "/api/recordings/{run}/first", { path: { run }, body: { operator, predicate } });
  failure = (run: string) => this.ask("post", "/api/recordings/{run}/failure", { path: { run } });
  state = (run: string, moment: string, operator: string) =>
    this.ask("get", "/api/recordings/{run}/moments/{moment}/state/{operator}", {
      path: { run, moment, operator },
    });
  pending = (run: string, moment: string, operator: string) =>
    this.ask("get", "/api/recordings/{run}/moments/{moment}/pending/{operator}", {
      path: { run, moment, operator },
    });
  fork = (run: string, moment: string, changes: Record<string, string>, by: string, workflow: string) =>
    this.ask("post", "/api/recordings/{run}/moments/{moment}/fork", {
      path: { run, moment },
      body: { changes, by, workflow },
    });
}

/** The address of a route. A name may not lead elsewhere, whatever is in it; that of a file is a path itself. */
function addressOf(
  route: string,
  names: Record<string, string | number>,
  query: Record<string, unknown>,
): string {
  const path = route.replace(/\{(\w+)\}/g, (_, name: string) => {
    const parts = name === "path" ? String(names[name]).split("/") : [String(names[name])];
    return parts.map(encodeURIComponent).join("/");
  });
  const asked = Object.entries(query).filter(([, value]) => value !== undefined);
  if (asked.length === 0) return path;
  return `${path}?${new URLSearchParams(asked.map(([name, value]) => [name, String(value)])).toString()}`;
}

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
