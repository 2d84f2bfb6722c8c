/** Who sits at this browser: a name and a colour, kept for the next time. */
import type { Person } from "./types";

const COLORS = ["#1864ab", "#2b7a3b", "#b8430a", "#9c36b5", "#c2255c", "#0b7285", "#5f3dc4", "#7a5a4f"];
const NAMES = [
  "Amber",
  "Basil",
  "Cedar",
  "Dahlia",
  "Elm",
  "Fern",
  "Ginger",
  "Hazel",
  "Iris",
  "Juniper",
  "Linden",
  "Olive",
];
const KEY = "samovar-person";

export function person(
  storage: Pick<Storage, "getItem" | "setItem">,
  chance: () => number = Math.random,
): Person {
  try {
    const kept = JSON.parse(storage.getItem(KEY) ?? "null") as Person | null;
    if (kept && typeof kept.name === "string" && typeof kept.color === "string") return kept;
  } catch {
    // a value of somebody else's: make a new one
  }
  const color = COLORS[Math.floor(chance() * COLORS.length)]!;
  return keep(storage, {
    name: NAMES[Math.floor(chance() * NAMES.length)]!,
    color,
    colorLight: `${color}33`,
  });
}

export function keep(storage: Pick<Storage, "setItem">, someone: Person): Person {
  storage.setItem(KEY, JSON.stringify(someone));
  return someone;
}
