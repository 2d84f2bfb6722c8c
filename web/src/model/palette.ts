/** Searching the palette: names first, then summaries; words in any order. */
import type { OperatorKind } from "./types";

/** An entry of the palette: an operator, or one of the things it can do, with what it starts with. */
export interface Entry extends OperatorKind {
  key: string;
  title: string;
}

export function entries(kinds: Iterable<OperatorKind>): Entry[] {
  return [...kinds].flatMap((kind) =>
    kind.presets.length > 0
      ? kind.presets.map((preset, i) => ({ ...kind, ...preset, key: `${kind.op}:${i}` }))
      : [{ ...kind, key: kind.op, title: kind.op.replaceAll("_", " ") }],
  );
}

export function search(kinds: Entry[], query: string): Entry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return kinds;
  return kinds
    .map((kind, place) => ({ kind, place, score: score(kind, words) }))
    .filter((found) => found.score > 0)
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .map((found) => found.kind);
}

function score(kind: Entry, words: string[]): number {
  const name = kind.title;
  const text = `${name} ${kind.op} ${kind.group} ${kind.summary} ${kind.description}`.toLowerCase();
  if (!words.every((word) => text.includes(word))) return 0;
  const first = words[0]!;
  if (name === words.join(" ") || kind.op === words.join(" ")) return 4;
  if (name.startsWith(first)) return 3;
  return words.every((word) => name.includes(word)) ? 2 : 1;
}

export function grouped(kinds: Entry[]): [string, Entry[]][] {
  const groups = new Map<string, Entry[]>();
  for (const kind of kinds) groups.set(kind.group, [...(groups.get(kind.group) ?? []), kind]);
  return [...groups];
}
