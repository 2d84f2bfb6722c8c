/** Searching the palette: names first, then summaries; words in any order. */
import type { OperatorKind } from "./types";

export function search(kinds: OperatorKind[], query: string): OperatorKind[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return kinds;
  return kinds
    .map((kind, place) => ({ kind, place, score: score(kind, words) }))
    .filter((found) => found.score > 0)
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .map((found) => found.kind);
}

function score(kind: OperatorKind, words: string[]): number {
  const name = kind.op.replaceAll("_", " ");
  const text = `${name} ${kind.group} ${kind.summary} ${kind.description}`.toLowerCase();
  if (!words.every((word) => text.includes(word))) return 0;
  const first = words[0]!;
  if (name === words.join(" ") || kind.op === words.join(" ")) return 4;
  if (name.startsWith(first)) return 3;
  return words.every((word) => name.includes(word)) ? 2 : 1;
}

export function grouped(kinds: OperatorKind[]): [string, OperatorKind[]][] {
  const groups = new Map<string, OperatorKind[]>();
  for (const kind of kinds) groups.set(kind.group, [...(groups.get(kind.group) ?? []), kind]);
  return [...groups];
}
