import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";

import {
  COLORS,
  type Chart,
  type Label,
  type Scale,
  described,
  label,
  linear,
  place,
  range,
  short,
  slice,
  thinned,
  ticks,
} from "../../model/chart";

const WIDTH = 560;
const HEIGHT = 240;
const BOX = { left: 56, right: 12, top: 10, bottom: 44 };

/** One chart, as SVG; every mark says its value when pointed at. */
export function ChartView({ chart }: { chart: Chart }) {
  if (chart.error) {
    return (
      <Text size="sm" role="alert">
        ⚠ {chart.error.message} {chart.error.hint}
      </Text>
    );
  }
  if (chart.rows === 0)
    return (
      <Text size="sm" c="dimmed">
        No rows have come yet.
      </Text>
    );
  if (chart.chart === "table") return <Rows chart={chart} />;
  if (chart.chart === "wordcloud") return <Words chart={chart} />;
  const draw = {
    bar: Bars,
    line: Lines,
    scatter: Points,
    histogram: Histogram,
    box: Boxes,
    heatmap: Heat,
    pie: Pie,
  }[chart.chart];
  const Drawn = draw;
  return (
    <>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={described(chart)} className="chart">
        <Drawn chart={chart} />
      </svg>
      <Legend chart={chart} />
      {chart.left_out > 0 && (
        <Text size="xs" c="dimmed">
          {short(chart.left_out)} more are not shown.
        </Text>
      )}
    </>
  );
}

function Legend({ chart }: { chart: Chart }) {
  const names: Label[] =
    chart.chart === "pie"
      ? (chart.series[0]?.points ?? []).map((p) => p[0] ?? null)
      : chart.by && chart.chart !== "heatmap"
        ? chart.series.map((s) => s.name)
        : [];
  if (names.length === 0) return null;
  return (
    <ul className="legend">
      {names.map((name, i) => (
        <li key={i}>
          <i style={{ background: color(i) }} />
          {label(name)}
        </li>
      ))}
    </ul>
  );
}

const color = (i: number): string => COLORS[i % COLORS.length]!;
const inner = { width: WIDTH - BOX.left - BOX.right, height: HEIGHT - BOX.top - BOX.bottom };

function Axes({
  y,
  ends,
  x,
  children,
}: {
  y: string;
  ends: [number, number];
  x: ReactNode;
  children: (scale: Scale) => ReactNode;
}) {
  const scale = linear(ends, [HEIGHT - BOX.bottom, BOX.top]);
  return (
    <>
      {ticks(...ends).map((t) => (
        <g key={t}>
          <line x1={BOX.left} x2={WIDTH - BOX.right} y1={scale(t)} y2={scale(t)} className="rule" />
          <text x={BOX.left - 6} y={scale(t) + 4} textAnchor="end">
            {short(t)}
          </text>
        </g>
      ))}
      <text x={12} y={HEIGHT / 2} textAnchor="middle" transform={`rotate(-90 12 ${HEIGHT / 2})`}>
        {y}
      </text>
      {x}
      {children(scale)}
    </>
  );
}

/** Names below an axis, as many as there is room for. */
function Names({ labels, at, title }: { labels: string[]; at: (i: number) => number; title: string | null }) {
  const longest = Math.min(14, Math.max(1, ...labels.map((l) => l.length)));
  return (
    <>
      {thinned(labels.length, inner.width, longest * 6.5 + 8).map((i) => (
        <text key={i} x={at(i)} y={HEIGHT - BOX.bottom + 16} textAnchor="middle">
          {cut(labels[i]!)}
        </text>
      ))}
      <text x={BOX.left + inner.width / 2} y={HEIGHT - 8} textAnchor="middle">
        {title}
      </text>
    </>
  );
}

const cut = (text: string): string => (text.length > 14 ? `${text.slice(0, 13)}…` : text);
const measured = (chart: Chart): string =>
  chart.measure && chart.measure !== "count" ? `${chart.measure} of ${chart.y}` : "rows";

function Bars({ chart }: { chart: Chart }) {
  const xs = chart.xs ?? [];
  const band = inner.width / Math.max(1, xs.length);
  const thick = (band * 0.8) / Math.max(1, chart.series.length);
  const ends = range(
    chart.series.flatMap((s) => s.points.map((p) => Number(p[1]))),
    true,
  );
  return (
    <Axes
      y={measured(chart)}
      ends={ends}
      x={<Names labels={xs.map(label)} at={(i) => BOX.left + band * (i + 0.5)} title={chart.x} />}
    >
      {(scale) =>
        chart.series.flatMap((s, n) =>
          s.points.map(([x, y], i) => {
            const top = scale(Math.max(0, Number(y)));
            return (
              <rect
                key={`${n}/${i}`}
                x={BOX.left + band * (xs.indexOf(x!) + 0.1) + n * thick}
                width={Math.max(1, thick - 1)}
                fill={color(n)}
                y={top}
                height={Math.max(0.5, Math.abs(scale(Number(y)) - scale(0)))}
              >
                <title>{told(chart, s.name, x, y)}</title>
              </rect>
            );
          }),
        )
      }
    </Axes>
  );
}

const told = (chart: Chart, name: Label, x: Label | undefined, y: Label | undefined): string =>
  `${chart.by ? `${label(name)}, ` : ""}${label(x)}: ${label(y)}`;

function across(chart: Chart): { scale: Scale; axis: ReactNode } {
  const values = chart.series.flatMap((s) => s.points.map((p) => place(chart, p[0]!)));
  const ends = range(chart.kind === "text" ? [0, (chart.xs?.length ?? 1) - 1] : values, false);
  const scale = linear(ends, [BOX.left + 8, WIDTH - BOX.right - 8]);
  if (chart.kind === "text")
    return { scale, axis: <Names labels={(chart.xs ?? []).map(label)} at={scale} title={chart.x} /> };
  const marks = ticks(...ends, 6);
  const text = (t: number): string => (chart.kind === "time" ? when(t, ends[1] - ends[0]) : short(t));
  return { scale, axis: <Names labels={marks.map(text)} at={(i) => scale(marks[i]!)} title={chart.x} /> };
}

function when(time: number, span: number): string {
  const text = new Date(time).toISOString();
  return span > 2 * 86400_000 ? text.slice(0, 10) : text.slice(5, 16).replace("T", " ");
}

function Lines({ chart }: { chart: Chart }) {
  const { scale: x, axis } = across(chart);
  const ends = range(
    chart.series.flatMap((s) => s.points.map((p) => Number(p[1]))),
    chart.measure === "count",
  );
  return (
    <Axes y={measured(chart)} ends={ends} x={axis}>
      {(y) =>
        chart.series.map((s, n) => (
          <g key={n}>
            <polyline
              fill="none"
              stroke={color(n)}
              strokeWidth={2}
              strokeDasharray={["", "6 3", "2 3", "8 3 2 3"][n % 4]}
              points={s.points
                .map((p) => `${x(place(chart, p[0]!)).toFixed(1)},${y(Number(p[1])).toFixed(1)}`)
                .join(" ")}
            />
            {s.points.length <= 60 &&
              s.points.map((p, i) => (
                <circle key={i} cx={x(place(chart, p[0]!))} cy={y(Number(p[1]))} r={2.5} fill={color(n)}>
                  <title>{told(chart, s.name, p[0], p[1])}</title>
                </circle>
              ))}
          </g>
        ))
      }
    </Axes>
  );
}

function Points({ chart }: { chart: Chart }) {
  const all =
    chart.kind === "text" && !chart.xs
      ? { ...chart, xs: [...new Set(chart.series.flatMap((s) => s.points.map((p) => p[0]!)))] }
      : chart;
  const { scale: x, axis } = across(all);
  const ends = range(
    all.series.flatMap((s) => s.points.map((p) => Number(p[1]))),
    false,
  );
  return (
    <Axes y={chart.y} ends={ends} x={axis}>
      {(y) =>
        all.series.flatMap((s, n) =>
          s.points.map((p, i) => (
            <circle
              key={`${n}/${i}`}
              cx={x(place(all, p[0]!))}
              cy={y(Number(p[1]))}
              r={2.5}
              fill={color(n)}
              fillOpacity={0.6}
            >
              <title>{told(chart, s.name, p[0], p[1])}</title>
            </circle>
          )),
        )
      }
    </Axes>
  );
}

function Histogram({ chart }: { chart: Chart }) {
  const bins = (chart.series[0]?.points ?? []) as number[][];
  const ends = range(
    bins.flatMap((b) => [b[0]!, b[1]!]),
    false,
  );
  const x = linear(ends, [BOX.left, WIDTH - BOX.right]);
  const marks = ticks(...ends, 6);
  return (
    <Axes
      y="rows"
      ends={range(
        bins.map((b) => b[2]!),
        true,
      )}
      x={<Names labels={marks.map(short)} at={(i) => x(marks[i]!)} title={chart.x} />}
    >
      {(y) =>
        bins.map(([low, high, count], i) => (
          <rect
            key={i}
            x={x(low!)}
            width={Math.max(0.5, x(high!) - x(low!) - 1)}
            y={y(count!)}
            height={y(0) - y(count!)}
            fill={color(0)}
          >
            <title>{`${short(low!)} to ${short(high!)}: ${count!}`}</title>
          </rect>
        ))
      }
    </Axes>
  );
}

function Boxes({ chart }: { chart: Chart }) {
  const groups = chart.series[0]?.points ?? [];
  const band = inner.width / Math.max(1, groups.length);
  const ends = range(
    groups.flatMap((g) => [Number(g[1]), Number(g[5])]),
    false,
  );
  return (
    <Axes
      y={chart.y}
      ends={ends}
      x={
        <Names
          labels={groups.map((g) => label(g[0]))}
          at={(i) => BOX.left + band * (i + 0.5)}
          title={chart.x}
        />
      }
    >
      {(y) =>
        groups.map(([name, low, first, middle, third, high], i) => {
          const at = BOX.left + band * (i + 0.5);
          const half = Math.min(22, band * 0.35);
          const [l, q1, m, q3, h] = [low, first, middle, third, high].map((v) => y(Number(v))) as [
            number,
            number,
            number,
            number,
            number,
          ];
          return (
            <g key={i} stroke={color(0)} fill="none" strokeWidth={1.5}>
              <title>{`${label(name)}: ${[low, first, middle, third, high].map(label).join(", ")}`}</title>
              <path
                d={`M${at} ${h}V${q3}M${at} ${q1}V${l}M${at - half / 2} ${h}H${at + half / 2}M${at - half / 2} ${l}H${at + half / 2}`}
              />
              <rect
                x={at - half}
                width={half * 2}
                y={q3}
                height={Math.max(1, q1 - q3)}
                fill={color(0)}
                fillOpacity={0.2}
              />
              <path d={`M${at - half} ${m}H${at + half}`} strokeWidth={3} />
            </g>
          );
        })
      }
    </Axes>
  );
}

function Heat({ chart }: { chart: Chart }) {
  const [xs, ys, cells] = [chart.xs ?? [], chart.ys ?? [], chart.cells ?? []];
  const left = 90;
  const [wide, high] = [
    (WIDTH - left - BOX.right) / Math.max(1, xs.length),
    inner.height / Math.max(1, ys.length),
  ];
  const [low, top] = range(
    cells.map((c) => Number(c[2])),
    true,
  );
  return (
    <>
      {ys.map(
        (y, j) =>
          high * (thinned(ys.length, inner.height, 13)[1] ?? 1) >= 13 &&
          thinned(ys.length, inner.height, 13).includes(j) && (
            <text key={j} x={left - 6} y={BOX.top + high * (j + 0.5) + 4} textAnchor="end">
              {cut(label(y))}
            </text>
          ),
      )}
      <Names labels={xs.map(label)} at={(i) => left + wide * (i + 0.5)} title={chart.x} />
      {cells.map(([x, y, value], i) => {
        const share = (Number(value) - low) / (top - low || 1);
        const at = { x: left + wide * xs.indexOf(x!), y: BOX.top + high * ys.indexOf(y!) };
        return (
          <g key={i}>
            <rect
              x={at.x}
              y={at.y}
              width={Math.max(1, wide - 1)}
              height={Math.max(1, high - 1)}
              fill={COLORS[0]}
              fillOpacity={0.08 + 0.92 * share}
            >
              <title>{`${label(x)}, ${label(y)}: ${label(value)}`}</title>
            </rect>
            {wide > 34 && high > 14 && (
              <text
                x={at.x + wide / 2}
                y={at.y + high / 2 + 4}
                textAnchor="middle"
                style={share > 0.5 ? { fill: "#fff" } : undefined}
              >
                {label(value)}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

function Pie({ chart }: { chart: Chart }) {
  const parts = (chart.series[0]?.points ?? []).map(
    ([name, value]) => [name ?? null, Math.max(0, Number(value))] as const,
  );
  const whole = parts.reduce((sum, [, v]) => sum + v, 0) || 1;
  let from = 0;
  return (
    <>
      {parts.map(([name, value], i) => {
        const start = from;
        from += value / whole;
        return (
          <path
            key={i}
            d={slice(WIDTH / 2, HEIGHT / 2, HEIGHT / 2 - 10, start, from)}
            fill={color(i)}
            className="slice"
          >
            <title>{`${label(name)}: ${short(value)} (${((100 * value) / whole).toFixed(1)} %)`}</title>
          </path>
        );
      })}
    </>
  );
}

function Words({ chart }: { chart: Chart }) {
  const words = (chart.series[0]?.points ?? []) as [string, number][];
  const [low, high] = range(
    words.map((w) => Math.sqrt(Math.max(0, w[1]))),
    false,
  );
  const size = linear([low, high], [13, 40]);
  return (
    <p
      className="words"
      role="img"
      aria-label={`${described(chart)}: ${words
        .slice(0, 10)
        .map((w) => w[0])
        .join(", ")}`}
    >
      {[...words]
        .sort((a, b) => (a[0] < b[0] ? -1 : 1))
        .map(([word, weight], i) => (
          <span
            key={word}
            style={{
              fontSize: size(Math.sqrt(Math.max(0, weight))),
              color: i % 2 ? "var(--mantine-color-text)" : "var(--mantine-primary-color-light-color)",
            }}
            title={`${word}: ${short(weight)}`}
          >
            {word}{" "}
          </span>
        ))}
    </p>
  );
}

function Rows({ chart }: { chart: Chart }) {
  return (
    <Table fz="xs" verticalSpacing={2} striped aria-label={chart.title}>
      <Table.Thead>
        <Table.Tr>
          {chart.columns?.map((c) => (
            <Table.Th key={c}>{c}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {chart.table?.map((row, i) => (
          <Table.Tr key={i}>
            {row.map((v, j) => (
              <Table.Td key={j}>{v === null ? "" : String(v)}</Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
