/**
 * The shared document of a workflow, as this browser edits it. The same form as `samovar.server.documents.document_form` reads:
 *
 *   workflow    map: name
 *   operators   map: id -> map: name, op, x, y, fields -> map: field -> JSON text, or Y.Text (`code`)
 *   edges       map: "<id of the operator>/<port>" -> id of the operator that feeds it
 *
 * Every edit is one transaction with this object as its origin, so that undo takes back one's own edits alone.
 */
import * as Y from "yjs";

import type { Json, OperatorKind } from "./types";

export const TEXT_FIELDS = ["code"];

export interface Operator {
  id: string;
  name: string;
  op: string;
  x: number;
  y: number;
  fields: Record<string, Json>;
}

export interface Edge {
  id: string;
  source: string;
  target: string;
  port: number;
}

export interface Snapshot {
  name: string;
  operators: Operator[];
  edges: Edge[];
}

export interface Copied {
  operators: Operator[];
  edges: Edge[];
}

type Entry = Y.Map<unknown>;

export class SharedWorkflow {
  readonly doc: Y.Doc;
  readonly undo: Y.UndoManager;
  private readonly workflow: Y.Map<string>;
  private readonly operators: Y.Map<Entry>;
  private readonly edges: Y.Map<string>;
  private snapshot: Snapshot;
  private readonly listeners = new Set<() => void>();
  private made = 0;

  constructor(doc: Y.Doc = new Y.Doc()) {
    this.doc = doc;
    this.workflow = doc.getMap("workflow");
    this.operators = doc.getMap("operators");
    this.edges = doc.getMap("edges");
    this.undo = new Y.UndoManager([this.workflow, this.operators, this.edges], {
      trackedOrigins: new Set([this]),
      captureTimeout: 400,
    });
    this.snapshot = this.read();
    doc.on("afterTransaction", (transaction: Y.Transaction) => {
      if (transaction.changed.size === 0) return;
      this.snapshot = this.read(this.snapshot);
      for (const listener of this.listeners) listener();
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The workflow as it is now; operators that did not change are the same objects as before. */
  readonly current = (): Snapshot => this.snapshot;

  private read(before?: Snapshot): Snapshot {
    const old = new Map(before?.operators.map((o) => [o.id, o]));
    const operators: Operator[] = [];
    for (const id of [...this.operators.keys()].sort()) {
      const entry = this.operators.get(id);
      if (!(entry instanceof Y.Map) || typeof entry.get("op") !== "string") continue;
      const made: Operator = {
        id,
        name: String(entry.get("name") ?? ""),
        op: String(entry.get("op")),
        x: finite(entry.get("x")),
        y: finite(entry.get("y")),
        fields: readFields(entry.get("fields")),
      };
      const known = old.get(id);
      operators.push(known && JSON.stringify(known) === JSON.stringify(made) ? known : made);
    }
    const ids = new Set(operators.map((o) => o.id));
    const edges: Edge[] = [];
    for (const [key, source] of this.edges.entries()) {
      const cut = key.lastIndexOf("/");
      const target = key.slice(0, cut);
      const port = Number(key.slice(cut + 1));
      if (ids.has(source) && ids.has(target) && Number.isInteger(port)) {
        edges.push({ id: key, source, target, port });
      }
    }
    edges.sort((a, b) => (a.id < b.id ? -1 : 1));
    return { name: this.workflow.get("name") ?? "", operators, edges };
  }

  private edit(change: () => void): void {
    this.doc.transact(change, this);
  }

  // --- operators ---------------------------------------------------------------------------------------------------

  add(kind: OperatorKind, x: number, y: number): string {
    const id = this.newId();
    const name = this.freeName(kind.op === "sink" ? "S" : (kind.title ?? kind.op).replaceAll(" ", "_"));
    this.edit(() => this.put({ id, name, op: kind.op, x, y, fields: kind.start }));
    return id;
  }

  private put(operator: Operator): void {
    const entry = new Y.Map<unknown>();
    const fields = new Y.Map<unknown>();
    for (const [key, value] of Object.entries(operator.fields)) fields.set(key, stored(key, value));
    for (const key of ["name", "op", "x", "y"] as const) entry.set(key, operator[key]);
    entry.set("fields", fields);
    this.operators.set(operator.id, entry);
  }

  remove(ids: Iterable<string>): void {
    const gone = new Set(ids);
    this.edit(() => {
      for (const id of gone) this.operators.delete(id);
      for (const [key, source] of [...this.edges.entries()]) {
        if (gone.has(source) || gone.has(key.slice(0, key.lastIndexOf("/")))) this.edges.delete(key);
      }
    });
  }

  /** Give an operator another name; returns what is wrong with the name, or null. */
  rename(id: string, name: string): string | null {
    const wanted = name.trim();
    if (!/^[\p{L}_][\p{L}\p{N}_ .-]*$/u.test(wanted)) {
      return "A name starts with a letter or '_' and goes on with letters, digits, '_', '.', '-' or blanks.";
    }
    if (this.snapshot.operators.some((o) => o.id !== id && o.name === wanted)) {
      return `There is an operator '${wanted}' already.`;
    }
    const entry = this.operators.get(id);
    if (entry && entry.get("name") !== wanted) this.edit(() => entry.set("name", wanted));
    return null;
  }

  renameWorkflow(name: string): void {
    this.edit(() => this.workflow.set("name", name));
  }

  move(places: { id: string; x: number; y: number }[]): void {
    this.edit(() => {
      for (const { id, x, y } of places) {
        const entry = this.operators.get(id);
        if (!entry) continue;
        if (entry.get("x") !== x) entry.set("x", x);
        if (entry.get("y") !== y) entry.set("y", y);
      }
    });
  }

  /** Set a field, or with `undefined` leave it out. */
  setField(id: string, field: string, value: Json | undefined): void {
    const fields = this.operators.get(id)?.get("fields");
    if (!(fields instanceof Y.Map)) return;
    if (value === undefined ? !fields.has(field) : fields.get(field) === stored(field, value)) return;
    this.edit(() => {
      if (value === undefined) fields.delete(field);
      else fields.set(field, stored(field, value));
    });
  }

  /** The shared text of a field, made when it is not there yet. */
  text(id: string, field: string): Y.Text | null {
    const fields = this.operators.get(id)?.get("fields");
    if (!(fields instanceof Y.Map)) return null;
    const known = fields.get(field);
    if (known instanceof Y.Text) return known;
    const made = new Y.Text(typeof known === "string" ? plainText(known) : "");
    this.edit(() => fields.set(field, made));
    return made;
  }

  // --- edges -------------------------------------------------------------------------------------------------------

  /** Why two operators cannot be connected; null when they can. */
  whyNot(source: string, target: string): string | null {
    if (source === target) return "An operator cannot feed itself.";
    if (reaches(this.snapshot.edges, target, source)) return "That edge would close a circle.";
    return null;
  }

  connect(source: string, target: string, port: number): string | null {
    const problem = this.whyNot(source, target);
    if (problem === null) this.edit(() => this.edges.set(`${target}/${port}`, source));
    return problem;
  }

  disconnect(ids: Iterable<string>): void {
    this.edit(() => {
      for (const id of ids) this.edges.delete(id);
    });
  }

  /** The first port of an operator that nothing is connected to. */
  freePort(target: string, most: number | null): number | null {
    const taken = new Set(this.snapshot.edges.filter((e) => e.target === target).map((e) => e.port));
    for (let port = 0; most === null || port < most; port++) if (!taken.has(port)) return port;
    return null;
  }

  // --- copies ------------------------------------------------------------------------------------------------------

  copy(ids: Iterable<string>): Copied {
    const chosen = new Set(ids);
    const { operators, edges } = this.snapshot;
    return {
      operators: operators.filter((o) => chosen.has(o.id)),
      edges: edges.filter((e) => chosen.has(e.source) && chosen.has(e.target)),
    };
  }

  paste(copied: Copied, dx = 40, dy = 40): string[] {
    const fresh = new Map<string, string>();
    this.edit(() => {
      for (const operator of copied.operators) {
        const id = this.newId();
        fresh.set(operator.id, id);
        const name = this.freeName(operator.name, new Set(this.liveNames()));
        this.put({ ...operator, id, name, x: operator.x + dx, y: operator.y + dy });
      }
      for (const edge of copied.edges) {
        this.edges.set(`${fresh.get(edge.target)}/${edge.port}`, fresh.get(edge.source)!);
      }
    });
    return [...fresh.values()];
  }

  private liveNames(): string[] {
    return [...this.operators.values()].map((entry) => String(entry.get("name")));
  }

  private freeName(base: string, taken = new Set(this.snapshot.operators.map((o) => o.name))): string {
    if (!taken.has(base)) return base;
    const stem = base.replace(/_\d+$/, "");
    let number = 2;
    while (taken.has(`${stem}_${number}`)) number++;
    return `${stem}_${number}`;
  }

  /** Ids sort by the time they were made; the order of operators in the document follows them. */
  private newId(): string {
    const time = Date.now().toString(36).padStart(9, "0");
    const number = (this.made++ % 46656).toString(36).padStart(3, "0");
    const chance = Math.floor(Math.random() * 0xffffff)
      .toString(16)
      .padStart(6, "0");
    return time + number + chance;
  }
}

function stored(field: string, value: Json): unknown {
  return TEXT_FIELDS.includes(field) && typeof value === "string" ? new Y.Text(value) : JSON.stringify(value);
}

function plainText(json: string): string {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "string" ? value : "";
  } catch {
    return "";
  }
}

function readFields(fields: unknown): Record<string, Json> {
  const made: Record<string, Json> = {};
  if (!(fields instanceof Y.Map)) return made;
  for (const key of [...fields.keys()].sort()) {
    const value = fields.get(key);
    if (value instanceof Y.Text) made[key] = value.toString();
    else if (typeof value === "string") {
      try {
        made[key] = JSON.parse(value) as Json;
      } catch {
        continue; // what cannot be read is left out, as the server does
      }
    }
  }
  return made;
}

function finite(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** Whether edges lead from one operator to another. */
export function reaches(edges: Edge[], from: string, to: string): boolean {
  const seen = new Set<string>();
  const waiting = [from];
  while (waiting.length > 0) {
    const at = waiting.pop()!;
    if (at === to) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    for (const edge of edges) if (edge.source === at) waiting.push(edge.target);
  }
  return false;
}
