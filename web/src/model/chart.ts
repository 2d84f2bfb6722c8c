/** Charts as the server computes them, and the geometry to draw them: scales, ticks, shapes. Knows no React. */
import type { ServerProblem } from "./types";
import { number } from "./values";

export type Label = string | number | boolean | null;

export interface Series {
  name: Label;
  points: Label[][];
}

export interface Chart {
  name: string;
  chart: "bar" | "line" | "scatter" | "histogram" | "box" | "heatmap" | "pie" | "wordcloud" | "table";
  title: string;
  x: string | null;
  y: string;
  by: string | null;
  measure: string | null;
  rows: number;
  left_out: number;
  kind?: "number" | "time" | "text";
  xs?: Label[];
  ys?: Label[];
  cells?: Label[][];
  series: Series[];
  columns?: string[];
  table?: Label[][];
  error?: ServerProblem;
}

/** Colours that are told apart by most people and stand out on light and dark; series have names beside them as well. */
export const COLORS = [
  "#0b7285",
  "#c2255c",
  "#e67700",
  "#5f3dc4",
  "#2b8a3e",
  "#1971c2",
  "#862e9c",
  "#a61e4d",
  "#66a80f",
  "#495057",
  "#d9480f",
  "#1098ad",
];

export type Scale = (value: number) => number;

export function linear(from: [number, number], to: [number, number]): Scale {
  const span = from[1] - from[0] || 1;
  return (value) => to[0] + ((value - from[0]) / span) * (to[1] - to[0]);
}

/** Round numbers that cover a range. */
export function ticks(low: number, high: number, wanted = 5): number[] {
  if (!(high > low)) return [low];
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? raw;
  const made: number[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step)
    made.push(Number(at.toPrecision(12)));
  return made;
}

/** A range that starts at 0 when all of it is on one side, with round ends. */
export function range(values: number[], fromZero: boolean): [number, number] {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (!Number.isFinite(low)) return [0, 1];
  if (fromZero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high) return [low - (fromZero && low >= 0 ? 0 : 0.5), high + 0.5];
  return [low, high];
}

/** Where a value lies on an axis of numbers, times or texts. */
export function place(chart: Chart, value: Label): number {
  if (chart.kind === "number") return Number(value);
  if (chart.kind === "time") return Date.parse(String(value));
  return chart.xs?.indexOf(value) ?? 0;
}

export function label(value: Label | undefined): string {
  if (value === null || value === undefined) return "(none)";
  return typeof value === "number" ? short(value) : String(value).replace(/T00:00:00(\.0+)?$/, "");
}

/** A number in few letters: 1.2M, 340k, 0.05. */
export function short(value: number): string {
  const size = Math.abs(value);
  for (const [limit, unit] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const) {
    if (size >= limit)
      return `${number(Number((value / (limit === 1e4 ? 1e3 : limit)).toPrecision(3)))}${unit}`;
  }
  return number(Number(value.toPrecision(4)));
}

/** Labels of an axis so that they do not run into each other: every n-th. */
export function thinned(count: number, room: number, each: number): number[] {
  const every = Math.max(1, Math.ceil((count * each) / Math.max(1, room)));
  return Array.from({ length: count }, (_, i) => i).filter((i) => i % every === 0);
}

/** The outline of a slice of a pie, from 0 to 1 of the whole. */
export function slice(x: number, y: number, radius: number, from: number, to: number): string {
  const at = (share: number): string => {
    const angle = share * 2 * Math.PI - Math.PI / 2;
    return `${(x + radius * Math.cos(angle)).toFixed(2)} ${(y + radius * Math.sin(angle)).toFixed(2)}`;
  };
  const end = to - from >= 1 ? from + 0.9999 : to;
  return `M${x} ${y}L${at(from)}A${radius} ${radius} 0 ${end - from > 0.5 ? 1 : 0} 1 ${at(end)}Z`;
}

/** What a chart shows, in a sentence, for those who do not see it. */
export function described(chart: Chart): string {
  const what =
    chart.measure && chart.measure !== "count"
      ? `${chart.measure} of ${chart.y}`
      : chart.chart === "scatter" || chart.chart === "box"
        ? chart.y
        : "rows";
  const by = chart.by ? `, by ${chart.by}` : "";
  const shown = chart.series.reduce((n, s) => n + s.points.length, 0);
  return `${chart.chart} chart: ${what}${chart.x ? ` over ${chart.x}` : ""}${by}; ${shown} values from ${chart.rows} rows`;
}
