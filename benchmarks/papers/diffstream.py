"""DiffStream: parallel code (Figure 11), reducers (Figure 12), monitoring (Figure 14)."""

from __future__ import annotations

import inspect
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.papers.charts import Chart, Series
from benchmarks.papers.context import Context, ratios
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size

__all__ = ["EXPERIMENTS"]

_PATTERNS = {
    "SingleItem": "found, ok, n/a",
    "IndexValuePair": "found, ok, n/a",
    "MaxRow": "found, ok, false alarm",
    "FirstN": "found, ok, false alarm",
    "StrConcat": "found, n/a, ok",
}
_SPEED_UPS = {"2": "2.01", "4": "4.33", "6": "5.0", "8": "4.99"}


# --- Figure 11


def _topics(context: Context, part: str) -> dict[str, Any]:
    from benchmarks import topics

    size = context.size
    store, words = topics.make(context.scratch, size["documents"], size["words"])
    spark = context.spark
    answers: dict[str, list[Any]] = {}

    def way(name: str, program: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            answers[name] = sorted(tuple(row) for row in program().collect())

        return run

    ways = {"sequential": way("sequential", lambda: topics.sequential(spark, store, words))}
    for workers in size["workers"]:
        made = way(str(workers), lambda n=workers: topics.parallel(spark, store, words, n))  # type: ignore[misc]
        ways[str(workers)] = made
    times = context.by_turns(ways, base="sequential", runs=size["runs"], most=size["most"])
    assert all(answer == answers["sequential"] for answer in answers.values()), answers
    lines = {name: _lines(getattr(topics, name)) for name in ("sequential", "parallel")}
    return {"seconds": times, "lines": lines}


def _lines(function: Callable[..., Any]) -> int:
    """Lines of code: no docstring, no empty line."""
    lines = inspect.getsource(function).splitlines()
    return sum(bool(line.strip()) and '"""' not in line for line in lines)


def _topic_rows(raw: Raw, size: Size) -> list[Row]:
    found = raw["all"]
    seconds = found["seconds"]
    base = seconds["sequential"]
    made = [
        Row(
            "sequential",
            paper="68 lines",
            ours=statistics.median(base),
            more={"lines": found["lines"]["sequential"]},
        )
    ]
    for workers, samples in seconds.items():
        if workers == "sequential":
            continue
        speed = f"speed-up {_SPEED_UPS[workers]}" if workers in _SPEED_UPS else "speed-up 1"
        made.append(
            Row(
                f"parallel, {workers} worker{'s' * (workers != '1')}",
                paper=f"133 lines, {speed}",
                ours=statistics.median(samples),
                other=statistics.median(base),
                instead="sequential",
                ratios=ratios(samples, base),
                more={
                    "speed-up over 1 worker": statistics.median(seconds["1"]) / statistics.median(samples),
                    "lines": found["lines"]["parallel"],
                },
            )
        )
    return made


TOPICS = Experiment(
    "diffstream.topics",
    _topics,
    (
        Figure(
            "diffstream.fig11",
            "Figure 11: a parallel program is harder to write",
            "Topic count over 5 documents of 500,000 words, with a look-up in Redis: 68 lines sequential, 133 "
            "parallel; from 80 s to 16 s with 6 workers (speed-ups 2.01, 4.33, 5.0, 4.99 with 2, 4, 6, 8).",
            "The same programs in PySpark with a look-up in SQLite; results are compared. More workers than cores "
            "bring nothing, since a look-up here computes and does not wait.",
            _topic_rows,
        ),
    ),
    quick={"parts": ("all",), "documents": 5, "words": 20_000, "workers": (1, 2), "runs": 2, "most": 2},
    full={
        "parts": ("all",),
        "documents": 5,
        "words": 500_000,
        "workers": (1, 2, 4, 6, 8),
        "runs": 3,
        "most": 5,
    },
)


# --- Figure 12


def _reducer(context: Context, part: str) -> dict[str, Any]:
    from examples.diffstream.reducers import PATTERNS, cells

    spark = context.spark
    assert spark is not None
    pattern = next(pattern for pattern in PATTERNS if pattern.name == part)
    start = time.perf_counter()
    found = cells(pattern, context.size["executions"])
    return {"cells": found, "seconds": time.perf_counter() - start}


def _reducer_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    for name, paper in _PATTERNS.items():
        if name not in raw:
            continue
        found, assumed, tolerant = raw[name]["cells"]
        words = {None: "n/a", True: "ok", False: "FALSE ALARM"}
        made.append(
            Row(
                name,
                paper=paper,
                more={
                    "bug": "found" if found else "NOT FOUND",
                    "under its assumption": words[assumed],
                    "where anything right will do": words[tolerant],
                    "s": raw[name]["seconds"],
                },
            )
        )
    return made


REDUCERS = Experiment(
    "diffstream.reducers",
    _reducer,
    (
        Figure(
            "diffstream.fig12",
            "Figure 12: five reducers of production code",
            "Bugs are found in 5 of 5; no false alarm in 5 of 7 cells where there is none to find.",
            "`shake` on 90 rows, without a second program; `accepts` where several answers are right. What else there "
            "is compares two tables, and cannot be asked the question.",
            _reducer_rows,
        ),
    ),
    quick={"parts": tuple(_PATTERNS), "executions": 4},
    full={"parts": tuple(_PATTERNS), "executions": 8},
)


# --- Figure 14


def _throughput(context: Context, part: str) -> dict[str, Any]:
    from benchmarks import monitor

    if part == "throughput":
        return _rates(context, monitor)
    if part == "latency":
        return _latencies(context.size["pushed"])
    return _sampled(context, monitor, part == "monitored")


def _rates(context: Context, monitor: Any) -> dict[str, Any]:
    size, spark = context.size, context.spark
    monitor.write_events(spark, context.scratch / "warm", 20_000, 2)
    monitor.measure(spark, context.scratch / "warm", 20_000, 1)
    monitor.write_events(spark, context.scratch / "events", size["events"], size["files"])
    found = monitor.measure(spark, context.scratch / "events", size["events"], size["runs"])
    seconds: dict[str, list[float]] = {}
    for one in found:
        seconds.setdefault(one.way, []).append(one.seconds)
    return {"seconds": seconds, "events": 2 * size["events"]}


def _latencies(events: int) -> dict[str, Any]:
    """Seconds of single events, pushed one by one into a matcher; the other side follows 500 events later."""
    from samovar.diff import Matcher, independent

    matcher = Matcher(depends=independent)
    made = [{"ad_id": f"ad {n % 1000}", "campaign": n % 100, "event_time": n} for n in range(events)]
    taken: list[int] = []
    now = time.perf_counter_ns
    for n in range(events + 500):
        for side, place in (("left", n), ("right", n - 500)):
            if 0 <= place < events:
                start = now()
                matcher.push(side, made[place])
                taken.append(now() - start)
    assert matcher.close().equivalent
    micro = sorted(t / 1000 for t in taken)
    marks = (1, 2, 5, 10, 20, 50, 100, 1000, 10_000, 100_000)
    above = {str(m): sum(t > m for t in micro) / len(micro) for m in marks}
    return {"mean": statistics.fmean(micro), "max": micro[-1], "above": above, "events": len(micro)}


def _sampled(context: Context, monitor: Any, watched: bool) -> dict[str, Any]:
    """Memory and unmatched events over time, of a longer execution."""
    size, spark = context.size, context.spark
    folder = context.scratch / "events"
    monitor.write_events(spark, folder, size["long"], size["long_files"])
    left, right = monitor.programs(spark, folder)
    unmatched: list[tuple[float, int]] = []
    start = time.perf_counter()

    def note(metrics: Any) -> None:
        unmatched.append((time.perf_counter() - start, sum(metrics.unmatched.values())))

    with _memory() as memory:
        if watched:
            from samovar.diff import monitor as compare_streams

            now = {"availableNow": True}
            verdict = compare_streams(left, right, trigger=now, drift=1_000_000, on_metrics=note).wait()
            assert verdict.equivalent
        else:
            monitor.alone(left, right)
    return {"memory": memory, "unmatched": unmatched, "seconds": time.perf_counter() - start}


class _memory:  # noqa: N801, used as a function
    """Samples (seconds, MB) of this process and of the Java process below it, four times a second."""

    def __enter__(self) -> list[tuple[float, float]]:
        import psutil

        mine = psutil.Process()
        every = [mine, *(p for p in mine.children(recursive=True) if "java" in p.name())]
        self._made: list[tuple[float, float]] = []
        self._done = threading.Event()
        start = time.perf_counter()

        def sample() -> None:
            while not self._done.wait(0.25):
                used = sum(process.memory_info().rss for process in every) / 1e6
                self._made.append((time.perf_counter() - start, used))

        self._thread = threading.Thread(target=sample, daemon=True)
        self._thread.start()
        return self._made

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def _rate_rows(raw: Raw, size: Size) -> list[Row]:
    found = raw.get("throughput")
    if found is None:
        return []
    base = found["seconds"]["no monitor"]
    made = []
    for way, samples in found["seconds"].items():
        paper = "40,082 events/s" if way == "no monitor" else "38,072 events/s (5 % less)"
        made.append(
            Row(
                way,
                paper=paper if way in ("no monitor", "monitor") else "",
                ours=statistics.median(samples),
                other=None if way == "no monitor" else statistics.median(base),
                instead="no monitor",
                ratios=() if way == "no monitor" else ratios(samples, base),
                more={"events/s": round(found["events"] / statistics.median(samples))},
            )
        )
    return made


def _memory_rows(raw: Raw, size: Size) -> list[Row]:
    if "monitored" not in raw or "alone" not in raw:
        return []
    used = {way: sorted(mb for _, mb in raw[way]["memory"]) for way in ("monitored", "alone")}
    halves = {way: _halves(raw[way]["memory"]) for way in used}
    return [
        Row(
            text,
            paper="no difference; bounded" if text == "median" else "",
            ours=pick(used["monitored"]),
            other=pick(used["alone"]),
            instead="no monitor",
            unit="MB",
            more={"second half / first half": halves["monitored"] if text == "median" else None},
        )
        for text, pick in (("median", statistics.median), ("most", max))
    ]


def _halves(samples: Sequence[Any]) -> float:
    """The median of the second half of the samples against that of the third quarter of the first."""
    values = [mb for _, mb in samples]
    middle = len(values) // 2
    return statistics.median(values[middle:]) / statistics.median(values[middle // 2 : middle])


def _memory_chart(raw: Raw, size: Size) -> Chart | None:
    there = {way: raw[way]["memory"] for way in ("monitored", "alone") if way in raw}
    names = {"monitored": "with a monitor", "alone": "without"}
    series = tuple(Series(names[w], [y for _, y in s], [x for x, _ in s]) for w, s in there.items())
    return Chart("Memory of driver and Java process", "points", "MB", series, x="s") if series else None


def _unmatched_rows(raw: Raw, size: Size) -> list[Row]:
    if "monitored" not in raw:
        return []
    counts = sorted(count for _, count in raw["monitored"]["unmatched"])
    return [
        Row(
            "events without a partner, after a micro-batch",
            paper="almost always below 500",
            ours=statistics.median(counts),
            unit="events",
            more={
                "most": counts[-1],
                "samples": len(counts),
                "events a micro-batch": size["long"] // size["long_files"],
            },
        )
    ]


def _unmatched_chart(raw: Raw, size: Size) -> Chart | None:
    samples = raw.get("monitored", {}).get("unmatched", [])
    if not samples:
        return None
    series = Series("unmatched", [y for _, y in samples], [x for x, _ in samples])
    return Chart("Events without a partner", "points", "events", (series,), x="s")


def _latency_rows(raw: Raw, size: Size) -> list[Row]:
    found = raw.get("latency")
    if found is None:
        return []
    within = {mark: 1 - share for mark, share in found["above"].items()}
    return [
        Row("mean", paper="2 us", ours=found["mean"], unit="us"),
        Row("at most 10 us", paper="98.77 %", ours=within["10"], unit="%"),
        Row("at most 100 us", paper="> 99.99 %", ours=within["100"], unit="%"),
        Row("largest", paper="30,000 us", ours=found["max"], unit="us", more={"events": found["events"]}),
    ]


def _latency_chart(raw: Raw, size: Size) -> Chart | None:
    found = raw.get("latency")
    if found is None:
        return None
    marks = [float(mark) for mark in found["above"]]
    series = Series("share of events above", list(found["above"].values()), marks)
    return Chart("Latency of the matcher", "lines", "share", (series,), x="us", log_x=True, log_y=True)


_PARTS = ("throughput", "alone", "monitored", "latency")
MONITOR = Experiment(
    "diffstream.monitor",
    _throughput,
    (
        Figure(
            "diffstream.fig14a",
            "Figure 14a: throughput of a monitored program",
            "The Yahoo streaming benchmark, sequential against parallel: 38,072 events/s reach the matcher at the "
            "peak, 40,082 without it, so about 5 % are lost.",
            "The same benchmark as two queries of Structured Streaming, run to their end as fast as they go. Events "
            "are counted before the filter, on both sides.",
            _rate_rows,
        ),
        Figure(
            "diffstream.fig14b",
            "Figures 14b and 14c: memory",
            "No difference in memory with the matcher and without, over 2 hours; bounded.",
            "Resident memory of the driver and its Java process, sampled four times a second during a longer "
            "execution. A micro-batch comes to the driver whole, so its size counts.",
            _memory_rows,
            _memory_chart,
        ),
        Figure(
            "diffstream.fig14d",
            "Figures 14d and 14e: unmatched events",
            "Below 500 in almost all samples, one a second.",
            "After each micro-batch of either side; the first of the two sides to get there leaves a whole "
            "micro-batch unmatched.",
            _unmatched_rows,
            _unmatched_chart,
        ),
        Figure(
            "diffstream.fig14f",
            "Figure 14f: latency of the matcher",
            "2 us on average; 98.77 % at most 10 us, more than 99.99 % at most 100 us; the largest 30 ms.",
            "Events pushed one by one, the right side 500 events behind the left. (In a monitor they come in batches.)",
            _latency_rows,
            _latency_chart,
        ),
    ),
    quick={
        "parts": _PARTS,
        "events": 200_000,
        "files": 2,
        "runs": 2,
        "long": 300_000,
        "long_files": 6,
        "pushed": 50_000,
    },
    full={
        "parts": _PARTS,
        "events": 3_000_000,
        "files": 6,
        "runs": 5,
        "long": 12_000_000,
        "long_files": 120,
        "pushed": 500_000,
    },
)

EXPERIMENTS = (TOPICS, REDUCERS, MONITOR)
