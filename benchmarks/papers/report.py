"""Writes the page of results and its charts, from a file of results alone: nothing in them is written by hand.

`write` puts `results.md` into a folder and charts into `images/results` below it. `fill` replaces the tables of another
page that stand between `<!-- results: NAME -->` and `<!-- end -->`, so that a page which explains costs shows
figures that were measured.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers.charts import draw
from benchmarks.papers.context import STEADY
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size, spread_of
from benchmarks.papers.goals import SHOWN
from benchmarks.papers.store import Store
from benchmarks.papers.targets import Finding, Target, find

__all__ = ["fill", "page", "write"]

_IMAGES = "images/results"
_QUIET = 0.2
_BLOCK = re.compile(r"(<!-- results: (\S+) -->\n)(.*?)(<!-- end -->)", re.S)
_TITLES = {
    "icedtea": "IcedTea: time travel",
    "texera": "Texera: live interaction",
    "diffstream": "DiffStream: differential testing",
    "scaling": "Scaling",
    "beside": "Beside the papers",
}


def write(
    store: Store, experiments: Sequence[Experiment], targets: Sequence[Target], folder: Path
) -> list[Path]:
    """The page and its charts; charts that are no longer drawn are removed. Returns what was written."""
    images = folder / _IMAGES
    images.mkdir(parents=True, exist_ok=True)
    charts = _charts(store, experiments)
    for old in images.glob("*.svg"):
        if old.stem not in charts:
            old.unlink()
    written = []
    for name, text in charts.items():
        (images / f"{name}.svg").write_text(text, encoding="utf-8")
        written.append(images / f"{name}.svg")
    target = folder / "results.md"
    target.write_text(page(store, experiments, targets, set(charts)), encoding="utf-8")
    return [target, *written]


def fill(text: str, store: Store, experiments: Sequence[Experiment]) -> str:
    """A page with its tables of results replaced; a figure that was not measured leaves its table as it is."""
    figures = {figure.id: (experiment, figure) for experiment in experiments for figure in experiment.figures}

    def table(found: re.Match[str]) -> str:
        if found[2] not in figures:
            raise ValueError(f"Expected the id of a figure in the page, got {found[2]!r}.")
        experiment, figure = figures[found[2]]
        raw = store.raw(experiment.name)
        rows = _rows(figure, raw, store.size(experiment.name)) or []
        if not rows:
            return found[0]
        days = sorted(part["at"][:10] for part in store.parts.values())
        note = f"<sub>`{figure.id}`, size {store.document['size']}, {days[-1]}</sub>"
        return f"{found[1]}{_table(rows)}\n{note}\n{found[4]}"

    return _BLOCK.sub(table, text)


def _charts(store: Store, experiments: Sequence[Experiment]) -> dict[str, str]:
    made = {}
    for experiment in experiments:
        raw, size = store.raw(experiment.name), store.size(experiment.name)
        for figure in experiment.figures:
            known = figure.chart is not None and _rows(figure, raw, size)
            chart = figure.chart(raw, size) if figure.chart is not None and known else None
            if chart is not None:
                made[figure.id.replace(".", "-")] = draw(chart)
    return made


def page(
    store: Store, experiments: Sequence[Experiment], targets: Sequence[Target], charts: set[str] | None = None
) -> str:
    """The whole page."""
    measured = {experiment.name: store.raw(experiment.name) for experiment in experiments}
    findings = [find(target, measured) for target in targets]
    lines = [
        "# Results",
        "",
        "<!-- Written by `scripts/bench papers` from a file of benchmarks/results. Do not edit. -->",
        "",
        *_about(store, experiments),
        "",
        "## Targets",
        "",
        *_targets(findings, store.document["size"]),
        "",
        "What is not a number is shown by tests:",
        "",
        "| | shown | by |",
        "|---|---|---|",
        *(f"| {area} | {what} | `scripts/test {where}` |" for area, what, where in SHOWN),
    ]
    for group in dict.fromkeys(f.id.split(".")[0] for e in experiments for f in e.figures):
        lines += ["", f"## {_TITLES.get(group, group)}"]
        for experiment in experiments:
            for figure in experiment.figures:
                if figure.id.split(".")[0] == group:
                    lines += _figure(experiment, figure, store, charts or set())
    if store.errors():
        lines += ["", "## What failed", ""]
        lines += [f"- `{name}`: {_cell(error)}" for name, error in sorted(store.errors().items())]
    return "\n".join(lines) + "\n"


def _about(store: Store, experiments: Sequence[Experiment]) -> list[str]:
    about = store.document["machine"]
    held = list(store.parts.values())
    commits = sorted({part["commit"] for part in held})
    dates = sorted(part["at"][:16].replace("T", " ") for part in held)
    versions = ", ".join(f"{name} {v}" for name, v in about["versions"].items() if v)
    size = store.document["size"]
    there = sum(len(e.parts(size)) for e in experiments)
    when = f"{dates[0]} to {dates[-1]} UTC" if dates else "not yet"
    busy = sum(part["busy_before"] > _QUIET for part in held)
    spreads = [s.sway for s in _spreads(store, experiments)]
    wide = sum(s > STEADY for s in spreads)
    lines = [
        f"The experiments of the papers that Samovar starts from, done with Samovar: size `{size}` of "
        f"`scripts/bench papers --{size}`, from `benchmarks/results/{store.path.name}`. [What costs what](explanation/"
        "what-costs-what.md) says what to do with these figures.",
        "",
        "| | |",
        "|---|---|",
        f"| machine | {about['cores']} cores, {about['memory_gb']} GB, {_cell(about['system'])} |",
        f"| versions | Python {about['python']}, {versions} |",
        f"| measured | {when}; {len(held) - len(store.errors())} of {there} parts |",
        f"| commit | {', '.join(commits) or '-'} (+: with changes not committed) |",
        f"| other work | {busy} of {len(held)} parts began while more than {_QUIET:.0%} of the machine was in use |",
    ]
    if spreads:
        lines.append(
            f"| spread | from run to run, {len(spreads) - wide} of {len(spreads)} ratios differ by less than "
            f"{STEADY:.0%}, half of them by less than {statistics.median(spreads):.1%}; the widest by "
            f"{max(spreads):.0%} |"
        )
    return [
        *lines,
        "",
        "*Ratio* is Samovar against the alternative in the same run: below 1 Samovar takes less (for events a second, "
        "above 1 it does more). In brackets, the "
        "quartiles of single rounds; run to run means the 95 % interval of their median, which more rounds make "
        "narrower. Papers' machines were other ones, so their seconds stand beside ours only to "
        "show the shape. A number that a paper shows only as a drawing is not given.",
    ]


def _spreads(store: Store, experiments: Sequence[Experiment]) -> list[Any]:
    found = []
    for experiment in experiments:
        raw = store.raw(experiment.name)
        for figure in experiment.figures:
            rows = _rows(figure, raw, store.size(experiment.name)) or []
            found += [s for row in rows if (s := spread_of(row.ratios)) is not None]
    return found


def _targets(findings: Sequence[Finding], size: str) -> list[str]:
    met = sum(f.met is True for f in findings)
    missed = sum(f.met is False for f in findings)
    lines = [
        f"{met} met, {missed} missed, {len(findings) - met - missed} not measured in this file.",
        "",
        "| | target | bound | measured | |",
        "|---|---|---:|---:|---|",
    ]
    area = ""
    for finding in findings:
        target = finding.target
        sign, bound = ("≤", target.at_most) if target.at_most is not None else ("≥", target.at_least)
        word = {True: "met", False: "**missed**", None: "not measured"}[finding.met]
        if finding.met is None and target.only_full and size == "quick":
            word = "only with `--full`"
        elif finding.met is not None and target.only_full and size == "quick":
            word += " (at this size)"
        first = f"**{target.area}**" if target.area != area else ""
        area = target.area
        shown = _number(finding.value, target.unit)
        lines.append(
            f"| {first} | {_cell(target.text)} | {sign} {_number(bound, target.unit)} | {shown} | {word} |"
        )
    return lines


def _figure(experiment: Experiment, figure: Figure, store: Store, charts: set[str]) -> list[str]:
    size = store.document["size"]
    raw: Raw = store.raw(experiment.name)
    lines = ["", f"### {figure.title}", "", f"*The paper.* {figure.paper}", "", f"*Here.* {figure.here}", ""]
    if not raw:
        why = "only with `--full`" if not experiment.parts(size) else "not measured in this file"
        return [*lines, f"{why[0].upper()}{why[1:]}."]
    numbers = store.size(experiment.name)
    rows = _rows(figure, raw, numbers)
    if not rows:
        why = (
            "Its part was not measured."
            if rows is not None
            else "Measured by another version: use `--again`."
        )
        return [*lines, why]
    name = figure.id.replace(".", "-")
    if name in charts:
        lines += [f"![{figure.title}]({_IMAGES}/{name}.svg)", ""]
    lines += [_table(rows).rstrip("\n")]
    if numbers:
        lines += ["", f"<sub>`{figure.id}`: {_cell(_sizes(numbers))}</sub>"]
    return lines


def _rows(figure: Figure, raw: Raw, size: Size) -> list[Row] | None:
    """A figure's rows; None where what was measured lacks something they need."""
    try:
        return figure.rows(raw, size) if raw else []
    except KeyError:
        return None


def _sizes(numbers: Mapping[str, Any]) -> str:
    shown = []
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{k} {_plain(v)}" for k, v in value.items())
        elif isinstance(value, list | tuple):
            value = ", ".join(map(_plain, value))
        shown.append(f"{name} {value if isinstance(value, str) else _plain(value)}")
    return "; ".join(shown)


def _table(rows: Sequence[Row]) -> str:
    """Columns that no row fills are left out."""
    more = list(dict.fromkeys(name for row in rows for name in row.more))
    columns: list[tuple[str, list[str]]] = [("", [row.what for row in rows])]
    columns.append(("paper", [row.paper for row in rows]))
    columns.append(("Samovar", [_number(row.ours, row.unit) for row in rows]))
    if any(row.other is not None for row in rows):
        named = dict.fromkeys(row.instead for row in rows if row.instead)
        one = next(iter(named)) if len(named) == 1 else ""
        columns.append(
            (
                one or "alternative",
                [
                    _number(row.other, row.unit) + (f" ({row.instead})" if not one and row.instead else "")
                    for row in rows
                ],
            )
        )
        columns.append(("ratio", [_ratio(row) for row in rows]))
    columns += [(name, [_any(row.more.get(name)) for row in rows]) for name in more]
    kept = [(name, cells) for name, cells in columns if any(cell not in ("", "-") for cell in cells)]
    lines = ["| " + " | ".join(name for name, _ in kept) + " |"]
    lines.append("|" + "|".join("---" if place == 0 else "---:" for place in range(len(kept))) + "|")
    lines += ["| " + " | ".join(_cell(cells[n]) for _, cells in kept) + " |" for n in range(len(rows))]
    return "\n".join(lines) + "\n"


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return "-"
    spread = spread_of(row.ratios)
    shown = f"{row.ratio:.3f}" if 0.1 <= row.ratio < 10 else f"{row.ratio:.3g}"
    return shown + (f" ({spread.q1:.3f} to {spread.q3:.3f})" if spread is not None else "")


def _any(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "B":
        for name in ("B", "KB", "MB"):
            if abs(value) < 1000:
                return f"{value:.3g} {name}"
            value /= 1000
        return f"{value:.3g} GB"
    if unit == "%":
        return f"{100 * value:.3g} %"
    return f"{_plain(value)} {unit}".strip()


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
