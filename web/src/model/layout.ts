/** Places for operators: columns by the distance from the sources, rows so that edges run as straight as may be. */
import type { Edge, Operator } from "./shared";

const WIDTH = 240;
const HEIGHT = 130;

export function arrange(operators: Operator[], edges: Edge[]): { id: string; x: number; y: number }[] {
  const column = new Map(operators.map((o) => [o.id, 0]));
  for (let round = 0; round < operators.length; round++) {
    let settled = true;
    for (const edge of edges) {
      const wanted = (column.get(edge.source) ?? 0) + 1;
      if (wanted > (column.get(edge.target) ?? 0) && wanted <= operators.length) {
        column.set(edge.target, wanted);
        settled = false;
      }
    }
    if (settled) break;
  }
  const row = new Map<string, number>();
  const last = Math.max(0, ...column.values());
  for (let at = 0; at <= last; at++) {
    const here = operators.filter((o) => column.get(o.id) === at);
    const wish = (id: string): number => {
      const ups = edges.filter((e) => e.target === id).map((e) => row.get(e.source) ?? 0);
      return ups.length > 0 ? ups.reduce((a, b) => a + b, 0) / ups.length : Number.POSITIVE_INFINITY;
    };
    const wishes = new Map(here.map((o) => [o.id, wish(o.id)]));
    const order = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);
    here.sort((a, b) => order(wishes.get(a.id)!, wishes.get(b.id)!));
    let free = 0;
    for (const operator of here) {
      const wanted = wishes.get(operator.id)!;
      const place = Number.isFinite(wanted) ? Math.max(free, wanted) : free;
      row.set(operator.id, place);
      free = place + 1;
    }
  }
  return operators.map((o) => ({
    id: o.id,
    x: 60 + WIDTH * (column.get(o.id) ?? 0),
    y: 60 + HEIGHT * (row.get(o.id) ?? 0),
  }));
}
