/** Values as people read them. The server marks what JSON lacks: {$absent}, {$map}, {$list}, {$binary}, {$text}. */
import type { Json } from "./types";

export function isAbsent(value: Json): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && value.$absent === true;
}

export function brief(value: Json, most = 80): string {
  const text = full(value);
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

export function full(value: Json): string {
  if (value === null) return "null";
  if (typeof value === "string") return value;
  if (typeof value === "number") return number(value);
  if (typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.map(nested).join(", ")}]`;
  if (value.$absent === true) return "–";
  if (typeof value.$text === "string") return value.$text;
  if (typeof value.$binary === "string") return `binary ${value.$binary.slice(0, 24)}`;
  if (Array.isArray(value.$list))
    return `[${value.$list.map(nested).join(", ")}, … ${String(value.$more)} more]`;
  if (Array.isArray(value.$map)) {
    const entries = value.$map.map((pair) =>
      Array.isArray(pair) ? `${nested(pair[0]!)}: ${nested(pair[1]!)}` : "",
    );
    return `{${entries.join(", ")}${value.$more ? `, … ${String(value.$more)} more` : ""}}`;
  }
  return `{${Object.entries(value)
    .map(([k, v]) => `${k}: ${nested(v)}`)
    .join(", ")}}`;
}

function nested(value: Json): string {
  return typeof value === "string" ? JSON.stringify(value) : full(value);
}

/** A number with all its digits: two that differ look different. */
export function number(value: number): string {
  return String(value);
}

/** A count with thousands apart: 1 234 567. */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

export function ago(seconds: number, now = Date.now() / 1000): string {
  const gone = Math.max(0, now - seconds);
  if (gone < 60) return "just now";
  if (gone < 3600) return `${Math.floor(gone / 60)} min ago`;
  if (gone < 86400) return `${Math.floor(gone / 3600)} h ago`;
  return new Date(seconds * 1000).toLocaleDateString();
}
