/** A value that views watch. It is replaced, never changed in place, so that a view can tell what is new by `===`. */
export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly current = (): T => this.value;

  protected replace(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of this.listeners) listener();
  }
}

/** A new value in which every part that equals the part before is that very object. For plain JSON data. */
export function keepEqualParts<T>(before: T, now: T): T {
  if (Object.is(before, now) || !isContainer(before) || !isContainer(now)) return now;
  if (Array.isArray(before) !== Array.isArray(now)) return now;
  const old = before as Record<string, unknown>;
  const parts = Object.entries(now).map(([key, part]) => [key, keepEqualParts(old[key], part)] as const);
  const equal =
    parts.length === Object.keys(old).length && parts.every(([key, part]) => key in old && part === old[key]);
  if (equal) return before;
  return (Array.isArray(now) ? parts.map(([, part]) => part) : Object.fromEntries(parts)) as T;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
