/** Travelling in the past of a run: what the server is asked, the moment that is looked at, and links to moments. */
import type { Api, How, Where } from "./api";
import type { components } from "./server";
import type { Operator } from "./shared";
import { Store } from "./store";
import type { Address, Moment, Recording, Scope } from "./types";

/** A place to go to: a run, and in it an address, or a moment that the server knows by its id; neither: the run's end. */
export interface Visit {
  run: string;
  address?: Address;
  moment?: string;
}

/** A tuple of a moment: one that waits at an operator, the one taken last, or one that was given for it. */
type TupleOf = components["schemas"]["Scope"];
type StateOf = components["schemas"]["Change"];

export const travel = {
  visit: (api: Api, run: string, address: Address) =>
    // what a moment's address holds is what a visit takes, which the description cannot say
    api.ask("post", "/api/recordings/{run}/visit", {
      path: { run },
      body: address as components["schemas"]["MomentAddress"],
    }),
  lastChange: (api: Api, run: string, moment: string, what: StateOf) =>
    api.ask("post", "/api/recordings/{run}/moments/{moment}/last_change", {
      path: { run, moment },
      body: what,
    }),
  scope: (api: Api, run: string, moment: string, of: TupleOf) =>
    api.ask("post", "/api/recordings/{run}/moments/{moment}/scope", { path: { run, moment }, body: of }),
  lines: (api: Api, run: string, moment: string, operator: string) =>
    api.ask("get", "/api/recordings/{run}/moments/{moment}/lines/{operator}", {
      path: { run, moment, operator },
    }),
  notebook: (api: Api, run: string) => api.ask("get", "/api/recordings/{run}/notebook", { path: { run } }),
  pin: (api: Api, run: string, by: string, moment: string, text: string) =>
    api.ask("post", "/api/recordings/{run}/notes", { path: { run }, body: { by, moment, text } }),
  unpin: (api: Api, run: string, note: string) =>
    api.ask("delete", "/api/recordings/{run}/notes/{note}", { path: { run, note } }),
};

// --- the moment that is looked at -----------------------------------------------------------------------------------

export interface Travelled {
  /** The moment that is looked at; null: the present. */
  moment: Moment | null;
  /** The tuple that was clicked, with all that came of it. */
  scope: Scope | null;
  /** Where to go as soon as the run's recording is open: from a link, a comparison, or a person who is followed. */
  visiting: Visit | null;
  /** Whether the server is asked for a moment. */
  busy: boolean;
}

/** Where somebody is in the past, and the ways from there. Problems are told, never thrown. */
export class Journey extends Store<Travelled> {
  constructor(
    private readonly api: Api,
    private readonly tell: (problem: unknown) => void,
    visiting: Visit | null = null,
  ) {
    super({ moment: null, scope: null, visiting, busy: false });
  }

  private change(part: Partial<Travelled>): void {
    this.replace({ ...this.current(), ...part });
  }

  /** Back to the present. */
  readonly leave = (): void => this.change({ moment: null, scope: null });

  readonly light = (scope: Scope | null): void => this.change({ scope });

  readonly visit = (to: Visit | null): void => this.change({ visiting: to });

  /** Go to a moment that was asked for; null: there is none. */
  readonly go = (asked: Promise<Moment | null>): void => {
    this.change({ busy: true });
    asked
      .then((moment) => {
        if (moment)
          this.change({ moment, scope: null }); // what was lit belongs to the moment before
        else this.tell("That never happened in this run.");
      }, this.tell)
      .finally(() => this.change({ busy: false }));
  };

  jump(run: string, to: Where): void {
    this.go(this.api.jump(run, to));
  }

  /** A step from the moment that is looked at; `over` and `into` are steps of an operator. */
  step(run: string, how: How, operator: string): void {
    const { moment, busy } = this.current();
    if (!moment || busy) return;
    const of = how === "over" || how === "into" ? operator : undefined;
    this.go(this.api.step(run, moment.moment, how, of));
  }

  first(run: string, operator: string, predicate: string): void {
    this.go(this.api.first(run, operator, predicate).then((answer) => answer.found));
  }

  failure(run: string): void {
    this.go(this.api.failure(run).then((answer) => answer.found));
  }

  /** Go where a visit leads, if it is one of this run. */
  takeUpVisit(run: string): void {
    const { visiting } = this.current();
    if (visiting?.run !== run) return;
    this.visit(null);
    if (visiting.address) this.go(travel.visit(this.api, run, visiting.address));
    else if (visiting.moment) this.go(this.api.moment(run, visiting.moment));
  }

  /** A new run from the moment that is looked at, with the code as it is on the canvas now. */
  fork(recording: Recording, operators: Operator[], by: string, workflow: string): void {
    const { moment } = this.current();
    if (!moment) return;
    const changes = changedCode(recording, operators);
    this.api.fork(recording.run, moment.moment, changes, by, workflow).then(this.leave, this.tell);
  }
}

/** The code of Python operators of a run that was changed on the canvas since. */
export function changedCode(
  recording: Pick<Recording, "code" | "operators">,
  operators: Operator[],
): Record<string, string> {
  const ran = new Set(recording.operators.filter((o) => o.inputs.length > 0).map((o) => o.name));
  const changes: Record<string, string> = {};
  for (const { name, fields } of operators) {
    if (ran.has(name) && typeof fields.code === "string" && fields.code !== recording.code[name])
      changes[name] = fields.code;
  }
  return changes;
}

// --- links ----------------------------------------------------------------------------------------------------------

/** The address in the browser of a moment of a run; it means the same to everybody who has the workspace. */
export function link(workflow: string, run: string, address: Address | null): string {
  const where = new URLSearchParams({
    run,
    ...(address ? { at: JSON.stringify([address.to, address.steps]) } : {}),
  });
  return `#/w/${workflow}?${where.toString()}`;
}

export function parseLink(hash: string): Visit | null {
  const query = new URLSearchParams(hash.split("?")[1] ?? "");
  const run = query.get("run");
  if (!run) return null;
  try {
    const read: unknown = JSON.parse(query.get("at") ?? "null");
    if (Array.isArray(read) && read.length === 2 && typeof read[0] === "object" && Array.isArray(read[1])) {
      return { run, address: { to: read[0] as Address["to"], steps: read[1] as Address["steps"] } };
    }
  } catch {
    // not a link of ours: the run alone
  }
  return { run };
}
