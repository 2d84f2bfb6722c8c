"""DiffStream beyond its figures: the matcher by dependence, and `compare` beside what else compares two tables."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.papers.charts import Chart, Series
from benchmarks.papers.context import Context, ratios, steady
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size

__all__ = ["BY_FUNCTION", "EXPERIMENTS", "OF_TWO", "STRUCTURED"]


# --- the matcher


def _matched(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.matcher import CASES, measure

    size = context.size
    case = next(case for case in CASES if case.name == part)
    rows = size["rows"] // (10 if case.slow else 1)
    found: dict[str, Any] = {"by": [], "counter": _counted(case, rows)}
    for unmatched in (500, *(() if case.slow else size["unmatched"])):
        context.tick(f"{unmatched} unmatched")
        lag = 0 if unmatched == 500 else unmatched // 1000 * 1000
        runs = [measure(case, max(rows, 2 * lag), 1000, lag) for _ in range(size["runs"])]
        found["by"].append(asdict(min(runs, key=lambda one: one.seconds)))
    return found


def _counted(case: Any, rows: int) -> float:
    """Events a second of what one would write by hand: two multisets of rows, compared at the end."""
    from benchmarks.matcher import stream

    left, right = stream(case, rows)
    start = time.perf_counter()
    counts = [Counter(tuple(row.values()) for row in side.to_pylist()) for side in (left, right)]
    assert counts[0] == counts[1]
    return 2 * rows / (time.perf_counter() - start)


def _matcher_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    for name, found in raw.items():
        first = found["by"][0]
        more: dict[str, Any] = {}
        last = found["by"][-1]
        if last is not first:
            grown = first["events_per_second"] / last["events_per_second"]
            more = {"most unmatched": f"{last['unmatched']:,}", "cost an event there": f"{grown:.2f} times"}
        made.append(
            Row(
                name,
                ours=first["events_per_second"],
                unit="events/s",
                other=round(found["counter"]),
                instead="two Counters, no order, no verdict before the end",
                more={"unmatched": first["unmatched"], **more},
            )
        )
    return made


def _matcher_chart(raw: Raw, size: Size) -> Chart:
    series = tuple(
        Series(
            name, [r["events_per_second"] for r in found["by"]], [max(1, r["unmatched"]) for r in found["by"]]
        )
        for name, found in raw.items()
        if len(found["by"]) > 1
    )
    return Chart(
        "Events a second by how many are unmatched", "lines", "events/s", series, x="unmatched", log_x=True
    )


STRUCTURED = (
    "independent",
    "keyed, 100 keys",
    "keyed, 10,000 keys",
    "ordered",
    "keyed by 100, synchronised",
    "punctuated",
)
BY_FUNCTION = ("keyed by a function, same order", "keyed by a function, in 1,000")
OF_TWO = ("a function of two, same order", "a function of two, in 100", "a function of two, in 1,000")
_CASES = (*STRUCTURED, *BY_FUNCTION, *OF_TWO)
MATCHER = Experiment(
    "diffstream.matcher",
    _matched,
    (
        Figure(
            "diffstream.matcher",
            "The matcher by dependence and by unmatched events",
            "It gives no such table; its section 4.5 bounds the work by the unmatched events.",
            "One core, events in batches of 1,000, the fastest of several runs.",
            _matcher_rows,
            _matcher_chart,
        ),
    ),
    quick={"parts": _CASES, "rows": 100_000, "unmatched": (20_000,), "runs": 2},
    full={"parts": _CASES, "rows": 1_000_000, "unmatched": (5_000, 100_000), "runs": 3},
)


# --- compare


def _compared(context: Context, part: str) -> dict[str, Any]:
    import importlib.util
    import warnings

    from benchmarks.compare import TOOLS, measure, puzzles, solve, write_tables

    size, spark = context.size, context.spark
    needed = {"chispa": "chispa", "datacompy": "datacompy"}
    tools = [t for t in TOOLS if importlib.util.find_spec(needed.get(t, "pyspark")) is not None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(spark, write_tables(spark, context.scratch / "small", 20_000), tools, 1)
        tables = write_tables(spark, context.scratch / "large", size["rows"])
        found = measure(spark, tables, tools, size["runs"])
        for _ in range(size["runs"], size["most"]):
            cases = _unsteady([asdict(one) for one in found])
            found += measure(spark, tables, tools, 1, cases)
        answers = {tool: _right(tool, puzzles(spark), solve) for tool in tools}
    assert answers["samovar compare"] == len(puzzles(spark)), answers
    return {
        "answers": [asdict(one) for one in found],
        "puzzles": answers,
        "missing": sorted(set(TOOLS) - set(tools)),
    }


def _by_tool(answers: Sequence[Mapping[str, Any]], case: str) -> dict[str, list[Mapping[str, Any]]]:
    by: dict[str, list[Mapping[str, Any]]] = {}
    for one in answers:
        if one["case"] == case:
            by.setdefault(one["tool"], []).append(one)
    return by


def _unsteady(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The cases in which a ratio may be another one in another run."""
    cases = dict.fromkeys(one["case"] for one in answers)
    times = {
        case: {tool: [one["seconds"] for one in of] for tool, of in _by_tool(answers, case).items()}
        for case in cases
    }
    return [case for case in cases if not steady(times[case], "samovar compare")]


def _right(tool: str, asked: Mapping[str, Any], solve: Callable[..., bool]) -> int:
    right = 0
    for name, (left, other, same) in asked.items():
        try:
            right += solve(tool, name, left, other) == same
        except Exception:  # a tool that cannot be asked is not right
            continue
    return right


def _compare_rows(raw: Raw, size: Size) -> list[Row]:
    found = raw["all"]
    made = []
    for case in dict.fromkeys(one["case"] for one in found["answers"]):
        by = _by_tool(found["answers"], case)
        ours = [one["seconds"] for one in by["samovar compare"]]
        for tool, answers in by.items():
            if tool == "samovar compare":
                continue
            others = [one["seconds"] for one in answers]
            made.append(
                Row(
                    f"{case}: compare against {tool}",
                    ours=statistics.median(ours),
                    other=statistics.median(others),
                    instead=tool,
                    ratios=ratios(ours, others),
                    more={
                        "driver MiB, ours": statistics.median(o["driver_mib"] for o in by["samovar compare"]),
                        "driver MiB, theirs": statistics.median(o["driver_mib"] for o in answers),
                        "their puzzles right": f"{found['puzzles'][tool]} of 4",
                        "rounds": len(ours),
                    },
                )
            )
    made += [Row(f"not installed: {tool}") for tool in found["missing"]]
    return made


COMPARE = Experiment(
    "diffstream.compare",
    _compared,
    (
        Figure(
            "diffstream.compare",
            "Two tables: `compare` and what else there is",
            "Tables that are at rest are not its matter.",
            "Two shuffled tables of four columns, equal and with one cell that differs. Puzzles: order within a key, "
            "order across keys, floats within a tolerance that sort differently, duplicates; Samovar has "
            "to be right in all four, or this measurement fails.",
            _compare_rows,
        ),
    ),
    quick={"parts": ("all",), "rows": 50_000, "runs": 2, "most": 2},
    full={"parts": ("all",), "rows": 100_000, "runs": 5, "most": 15},
)

EXPERIMENTS = (MATCHER, COMPARE)
