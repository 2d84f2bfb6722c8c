"""Charts as SVG, written by hand: bars in groups, and lines or points, each with a linear or a logarithmic axis.

A chart is data; `draw` gives the text of an SVG file. The same chart gives the same bytes, so that a file changes only
where its figures do. Colours are told apart also by people who see few, and every series is named in a legend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

__all__ = ["Chart", "Series", "draw"]

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#999933")
_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 44, 62
_LONGEST_LABEL = 18
_LEGEND_ROW = 16


@dataclass(frozen=True)
class Series:
    """Named values: `y` by category of the chart, or beside `x`."""

    name: str
    y: Sequence[float | None]
    x: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """What a chart shows. `bars` stand above `categories`; `lines` and `points` have an x of their own."""

    title: str
    kind: Literal["bars", "lines", "points"]
    y: str
    series: tuple[Series, ...]
    categories: tuple[str, ...] = ()
    x: str = ""
    log_y: bool = False
    log_x: bool = False
    limit: float | None = None
    """A horizontal line: what is not to be exceeded, or to be reached."""
    limit_name: str = ""


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    log: bool
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value in the picture."""
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            step = max(1, math.ceil((last - first) / 7))
            return [10.0**e for e in range(first, last + 1, step)]
        step = _step(self.high - self.low)
        count = math.floor((self.high - self.low) / step + 1e-9)
        return [self.low + step * n for n in range(count + 1)]


def draw(chart: Chart) -> str:
    """The chart as the text of an SVG file."""
    values = [v for s in chart.series for v in s.y if v is not None]
    values += [] if chart.limit is None else [chart.limit]
    vertical = _axis(values, chart.log_y, _HEIGHT - _BOTTOM, _TOP, zero=True)
    legend, rows = _legend(chart)
    height = _HEIGHT + _LEGEND_ROW * (rows - 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" aria-label="{escape(chart.title)}">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(_LEFT, 16, chart.title, size=14, weight="bold"),
        *_grid(chart, vertical),
    ]
    parts += _bars(chart, vertical) if chart.kind == "bars" else _marks(chart, vertical)
    parts += _limit(chart, vertical)
    parts += legend
    return "\n".join([*parts, "</svg>", ""])


def _axis(values: Sequence[float], log: bool, start: float, end: float, *, zero: bool) -> _Axis:
    if log:
        positive = [v for v in values if v > 0] or [1.0]
        low = 10.0 ** math.floor(math.log10(min(positive)))
        high = 10.0 ** math.ceil(math.log10(max(positive)))
        return _Axis(low, high if high > low else low * 10, True, start, end)
    low = 0.0 if zero else min(values, default=0.0)
    high = max(values, default=1.0)
    if high <= low:
        high = low + 1.0
    step = _step(high - low)
    return _Axis(low, low + step * math.ceil((high - low) / step - 1e-9), False, start, end)


def _step(extent: float) -> float:
    """A round distance of ticks, at most seven of them."""
    rough = extent / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough - 1e-12)


def _grid(chart: Chart, vertical: _Axis) -> list[str]:
    made = []
    for tick in vertical.ticks():
        y = vertical.at(tick)
        made.append(_line(_LEFT, y, _WIDTH - _RIGHT, y, "#dddddd"))
        made.append(_text(_LEFT - 6, y + 4, _short(tick), anchor="end"))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    made.append(_text(16, middle, chart.y, anchor="middle", turn=f"rotate(-90 16 {middle:.1f})"))
    made.append(_line(_LEFT, _HEIGHT - _BOTTOM, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM, "#444444"))
    return made


def _bars(chart: Chart, vertical: _Axis) -> list[str]:
    made = []
    base = _HEIGHT - _BOTTOM
    room = (_WIDTH - _LEFT - _RIGHT) / max(1, len(chart.categories))
    width = room * 0.8 / max(1, len(chart.series))
    for place, category in enumerate(chart.categories):
        left = _LEFT + place * room + room * 0.1
        label = category if len(category) <= _LONGEST_LABEL else category[: _LONGEST_LABEL - 1] + "…"
        made.append(_text(left + room * 0.4, base + 16, label, anchor="middle"))
        for number, series in enumerate(chart.series):
            value = series.y[place] if place < len(series.y) else None
            if value is None or (chart.log_y and value <= 0):
                continue
            top = vertical.at(value)
            x = left + number * width
            made.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{width * 0.92:.1f}" '
                f'height="{max(0.0, base - top):.1f}" fill="{_colour(number)}">'
                f"<title>{escape(series.name)}, {escape(category)}: {_short(value)}</title></rect>"
            )
    return made


def _marks(chart: Chart, vertical: _Axis) -> list[str]:
    horizontal = _axis(
        [v for s in chart.series for v in s.x], chart.log_x, _LEFT, _WIDTH - _RIGHT, zero=not chart.log_x
    )
    base = _HEIGHT - _BOTTOM
    made = [_text(horizontal.at(t), base + 16, _short(t), anchor="middle") for t in horizontal.ticks()]
    made.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, base + 32, chart.x, anchor="middle"))
    for number, series in enumerate(chart.series):
        places = [
            (horizontal.at(x), vertical.at(y))
            for x, y in zip(series.x, series.y, strict=True)
            if y is not None and not (chart.log_y and y <= 0) and not (chart.log_x and x <= 0)
        ]
        if chart.kind == "lines" and places:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            made.append(
                f'<polyline points="{path}" fill="none" stroke="{_colour(number)}" stroke-width="2"/>'
            )
        made += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_colour(number)}"/>' for x, y in places]
    return made


def _limit(chart: Chart, vertical: _Axis) -> list[str]:
    if chart.limit is None:
        return []
    y = vertical.at(chart.limit)
    return [
        f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#aa0000" '
        'stroke-dasharray="6 4"/>',
        _text(_WIDTH - _RIGHT, y - 4, chart.limit_name, anchor="end", colour="#aa0000"),
    ]


def _legend(chart: Chart) -> tuple[list[str], int]:
    """The names of the series, and in how many rows they stand."""
    made = []
    x, row = float(_LEFT), 0
    for number, series in enumerate(chart.series):
        width = 30 + 6.6 * len(series.name)
        if x > _LEFT and x + width > _WIDTH:
            x, row = float(_LEFT), row + 1
        y = _HEIGHT - 20 + _LEGEND_ROW * row
        made.append(f'<rect x="{x:.1f}" y="{y}" width="10" height="10" fill="{_colour(number)}"/>')
        made.append(_text(x + 14, y + 9, series.name))
        x += width
    return made, row + 1


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{value:.4g}"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 12,
    weight: str = "normal",
    turn: str = "",
    colour: str = "#222222",
) -> str:
    turned = f' transform="{turn}"' if turn else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="{colour}"{turned}>{escape(text)}</text>'
    )
