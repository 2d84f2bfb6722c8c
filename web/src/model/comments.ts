/** Comments on the canvas: boxes with text, shared like everything else, and undone with one's own edits. */
import * as Y from "yjs";

import type { SharedWorkflow } from "./shared";

export interface Comment {
  id: string;
  text: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

type Entry = Y.Map<unknown>;

export class Comments {
  private readonly all: Y.Map<Entry>;
  private snapshot: Comment[];
  private readonly listeners = new Set<() => void>();

  constructor(private readonly shared: SharedWorkflow) {
    this.all = shared.doc.getMap("comments");
    shared.undo.addToScope([this.all]);
    this.snapshot = this.read();
    this.all.observeDeep(() => {
      this.snapshot = this.read();
      for (const listener of this.listeners) listener();
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly current = (): Comment[] => this.snapshot;

  private read(): Comment[] {
    const made: Comment[] = [];
    for (const [id, entry] of this.all.entries()) {
      if (!(entry instanceof Y.Map)) continue;
      const number = (key: string, otherwise: number): number => {
        const value = entry.get(key);
        return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
      };
      const text = entry.get("text");
      made.push({
        id,
        text: text instanceof Y.Text ? text.toString() : "",
        x: number("x", 0),
        y: number("y", 0),
        width: Math.max(80, number("width", 220)),
        height: Math.max(40, number("height", 90)),
      });
    }
    return made.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  private edit(change: () => void): void {
    this.shared.doc.transact(change, this.shared);
  }

  add(x: number, y: number, text = ""): string {
    const id = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
    this.edit(() => {
      const entry = new Y.Map<unknown>();
      entry.set("text", new Y.Text(text));
      for (const [key, value] of Object.entries({ x, y, width: 220, height: 90 })) entry.set(key, value);
      this.all.set(id, entry);
    });
    return id;
  }

  remove(id: string): void {
    this.edit(() => this.all.delete(id));
  }

  place(id: string, change: Partial<Omit<Comment, "id" | "text">>): void {
    const entry = this.all.get(id);
    if (entry)
      this.edit(() =>
        Object.entries(change).forEach(([key, value]) => entry.get(key) !== value && entry.set(key, value)),
      );
  }

  /** Make the text what was typed: only the part that differs is touched, so that others' typing elsewhere stays. */
  write(id: string, wanted: string): void {
    const text = this.all.get(id)?.get("text");
    if (!(text instanceof Y.Text)) return;
    const { start, gone, added } = difference(text.toString(), wanted);
    if (gone === 0 && added === "") return;
    this.edit(() => {
      if (gone > 0) text.delete(start, gone);
      if (added) text.insert(start, added);
    });
  }
}

/** One replacement that turns a text into another. */
export function difference(before: string, after: string): { start: number; gone: number; added: string } {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let same = 0;
  while (
    same < before.length - start &&
    same < after.length - start &&
    before[before.length - 1 - same] === after[after.length - 1 - same]
  )
    same++;
  return { start, gone: before.length - start - same, added: after.slice(start, after.length - same) };
}

const known = new WeakMap<SharedWorkflow, Comments>();

/** The comments of a workflow: one object for all views of it. */
export function commentsOf(shared: SharedWorkflow): Comments {
  let found = known.get(shared);
  if (!found) known.set(shared, (found = new Comments(shared)));
  return found;
}
