"""Texera: pausing a worker (Figures 12 and 13), a workflow (Figure 14, Table 2), and looking at states (Figure 15)."""

from __future__ import annotations

import pickle
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchmarks.papers.charts import Chart, Series
from benchmarks.papers.context import Context
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import samovar as sv

__all__ = ["EXPERIMENTS", "at_work"]

_THREE = ("w1", "w2", "w3")
_LONGEST = 120.0
"""Seconds after which no further pause of a kind is made."""
_PATIENCE = 3.0
_EPOCHS = 12
_IN_FLIGHT_MB = {
    "w1": "0.07 MB with 1 VM, 0.1 MB with 2",
    "w2": "",
    "w3": "1.01 MB with 1 VM, 1.32 MB with 2, 8.16 MB with 5",
}
"""Of Table 2, what can be read without doubt in the paper's text."""


# --- pausing


def _pauses(
    context: Context,
    spark: SparkSession,
    build: Callable[[], sv.Workflow],
    mode: str,
    *,
    operator: str | None = None,
    epoch_bytes: int | None = None,
) -> dict[str, Any]:
    """Milliseconds of pauses at random instants, and the bytes in flight; runs are begun anew as they end.

    With an `operator`, direct pauses come while a worker is at work in it, if one is within some seconds: a pause
    before cancels the epoch, and one after the other would keep it from ever getting there.
    """
    chance = random.Random(5)
    tracker = spark.sparkContext.statusTracker()
    made: list[float] = []
    flying: list[int] = []
    started = time.monotonic()
    number = 0
    while len(made) < context.size["pauses"] and time.monotonic() - started < _LONGEST:
        number += 1
        context.tick(f"{mode}, {len(made)} pauses")
        run: Any = build().start(
            spark=spark, record=context.scratch / f"{mode}-{number}", epoch_bytes=epoch_bytes
        )
        try:
            while len(made) < context.size["pauses"] and run.status in ("starting", "running"):
                if run.status == "starting" or not tracker.getActiveJobsIds():
                    time.sleep(0.002)
                    continue
                if operator is not None and mode == "direct":
                    _at_work(run, operator)
                time.sleep(chance.uniform(0.0, 0.2))
                found = _pause(run, mode)
                if found is None:
                    break
                made.append(found)
                flying.append(_in_flight(run, operator))
                run.resume()
        finally:
            run.stop()
    return {"ms": made, "in_flight": flying, "runs": number}


def _at_work(run: Any, operator: str) -> None:
    """Wait for a worker that has tuples of an operator."""
    from samovar import SamovarError

    until = time.monotonic() + _PATIENCE
    with suppress(SamovarError):  # it has just ended
        while (
            time.monotonic() < until and run.status == "running" and not run.in_flight(operator, limit=1).rows
        ):
            time.sleep(0.005)


def _pause(run: Any, mode: str) -> float | None:
    """Milliseconds until all has stopped; None when the run ended first."""
    from samovar import SamovarError

    began = time.perf_counter()
    try:
        run.pause(mode=mode)
    except SamovarError:
        return None
    if run.wait_until("paused", timeout=120) != "paused":
        return None
    return 1000 * (time.perf_counter() - began)


def _in_flight(run: Any, operator: str | None) -> int:
    if operator is None:
        return 0
    found = run.in_flight(operator, limit=1_000)
    size = len(pickle.dumps(found.rows))
    return size * (len(found.rows) + found.more) // max(1, len(found.rows))


@contextmanager
def _spark(context: Context, workers: str) -> Iterator[SparkSession]:
    """A session with so many workers: cores of this process, or of two processes on loopback."""
    if workers != "cluster":
        yield context.sessions.get(f"local[{workers}]")
        return
    from tests.e2e.cluster import Cluster

    with Cluster(context.scratch / "cluster") as cluster:
        context.sessions.stop()
        try:
            yield context.sessions.get(cluster.master, cluster.conf)
        finally:
            context.sessions.stop()


def _paused(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.texera import TEXERA

    name, workers = part.split()[:2]
    pair, data = TEXERA[name], context.data()
    data.ensure(pair.inputs, progress=False)
    short = max(1, data.size(pair.inputs[0]) // _EPOCHS)
    operator = "sentiment" if name == "w1" else None
    with _spark(context, workers) as spark:
        found = {}
        for mode in ("direct", "aligned"):
            length = short if mode == "aligned" else None
            found[mode] = _pauses(
                context, spark, lambda: pair.samovar(data), mode, operator=operator, epoch_bytes=length
            )
        return found


def _single(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.texera import TEXERA
    from benchmarks.workflows import WORKFLOWS

    spark = context.sessions.get("local[1]")
    if part == "slow":
        return _pauses(context, spark, lambda: _slow(context), "direct", operator="W")
    pair = TEXERA["w1"] if part == "texera w1" else WORKFLOWS["w5"]
    data = context.data()
    data.ensure(pair.inputs, progress=False)
    return _pauses(context, spark, lambda: pair.samovar(data), "direct", operator="sentiment")


def _slow(context: Context) -> sv.Workflow:
    """An operator that works four milliseconds on a tuple, in mini-steps of one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import samovar as sv
    from benchmarks.pauses import Slow

    folder = context.scratch / "numbers"
    if not folder.exists():
        folder.mkdir()
        pq.write_table(
            pa.table({"x": range(50_000), "key": [n % 8 for n in range(50_000)]}), folder / "0.parquet"
        )
    flow = sv.Workflow("slow")
    flow.read.parquet(str(folder), name="numbers").apply(Slow(), by="key", name="W").sink("S")
    return flow


def _p95(samples: Sequence[float]) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def _workers(count: str) -> str:
    if count == "cluster":
        return "two processes on loopback"
    return f"{count} worker{'s' * (count != '1')}"


_SINGLE = {
    "slow": ("4 ms a tuple, mini-steps of 1 ms", "126 ms (sentiment analysis, four mini-steps)"),
    "texera w1": ("Texera's W1", "less than 200 ms"),
    "icedtea w5": ("IcedTea's W5, KNN sentiment", ""),
}


def _single_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    for name, (text, paper) in _SINGLE.items():
        samples = at_work(raw[name]) if name in raw else []
        if samples:
            more = {"p95 ms": _p95(samples), "worst ms": max(samples), "pauses": len(samples)}
            row = Row(text, paper=paper, ours=statistics.median(samples), unit="ms", more=more)
            made.append(row)
    return made


def at_work(found: Mapping[str, Any]) -> list[float]:
    """Milliseconds of the pauses that met a worker with tuples of the operator; of all, if none did."""
    met = [ms for ms, size in zip(found["ms"], found["in_flight"], strict=True) if size]
    return met or list(found["ms"])


def _pause_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    papers = {"w1": "up to about 1.2 s; with markers 5 to 13.7 s"}
    for part, found in raw.items():
        if not found["direct"]["ms"] or not found["aligned"]["ms"]:
            continue
        name, workers = part.split()[:2]
        made.append(
            Row(
                f"{name.upper()}, {_workers(workers)}",
                paper=papers.get(name, ""),
                ours=statistics.median(found["direct"]["ms"]),
                unit="ms",
                other=statistics.median(found["aligned"]["ms"]),
                instead="aligned: at the epoch's end",
                more={
                    "direct p95 ms": _p95(found["direct"]["ms"]),
                    "aligned p95 ms": _p95(found["aligned"]["ms"]),
                    "pauses": f"{len(found['direct']['ms'])} and {len(found['aligned']['ms'])}",
                },
            )
        )
    return made


def _pause_chart(raw: Raw, size: Size) -> Chart | None:
    series = []
    for name in _THREE:
        there = [(int(p.split()[1]), f) for p, f in raw.items() if p.startswith(name) and "cluster" not in p]
        there = [(n, f) for n, f in there if f["direct"]["ms"] and f["aligned"]["ms"]]
        for mode in ("direct", "aligned") if there else ():
            values = [statistics.median(f[mode]["ms"]) for _, f in there]
            series.append(Series(f"{name.upper()} {mode}", values, [n for n, _ in there]))
    return (
        Chart("Median pause by workers", "lines", "ms", tuple(series), x="workers", log_y=True)
        if series
        else None
    )


def _flight_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            f"{part.split()[0].upper()}, {_workers(part.split()[1])}",
            paper=_IN_FLIGHT_MB[part.split()[0]],
            ours=statistics.median(found["direct"]["in_flight"]),
            unit="B",
            more={"most KB": max(found["direct"]["in_flight"]) / 1e3, "aligned": 0},
        )
        for part, found in raw.items()
        if found["direct"]["in_flight"]
    ]


SINGLE = Experiment(
    "texera.single",
    _single,
    (
        Figure(
            "texera.fig12",
            "Figure 12: pausing one worker",
            "Forced interruption by the Java machine: within 1 ms, at random points. Voluntary checks: less than 200 "
            "ms, 126 ms on average for sentiment analysis in four mini-steps.",
            "One worker, voluntary checks between tuples and mini-steps, at random instants; from the call of `pause` "
            "to its return, so that the way to the worker and back is part of it. Counted are pauses that met the "
            "worker with tuples of the operator; Figure 14 has those that met Spark at work by itself.",
            _single_rows,
        ),
    ),
    quick={"parts": tuple(_SINGLE), "scale": 0.1, "pauses": 15},
    full={"parts": tuple(_SINGLE), "scale": 1, "pauses": 100},
)

PAUSES = Experiment(
    "texera.pauses",
    _paused,
    (
        Figure(
            "texera.fig14",
            "Figure 14: pausing a workflow",
            "Direct messages (DCM): up to about 1.2 s for W1 with 10 VMs. Markers in the data (ECM): from 5 s with 1 "
            "VM to 13.7 s with 10 for W1.",
            "Direct and aligned pauses of the three workflows, by workers (threads of one process; the machine has "
            "the cores stated above). For aligned pauses, epochs are cut short: a twelfth of the input at most.",
            _pause_rows,
            _pause_chart,
        ),
        Figure(
            "texera.table2",
            "Table 2: bytes in flight after a pause",
            "Grows with the cluster for direct messages, none for markers. The table's decimal points are lost in "
            "part in the text at hand; given is what is certain.",
            "Tuples that workers of the Python operator have taken in and not finished. Work that Spark does by "
            "itself is cancelled and done again, and leaves nothing in flight.",
            _flight_rows,
        ),
    ),
    quick={"parts": ("w1 1", "w1 2", "w2 2", "w3 2"), "scale": 0.5, "pauses": 8},
    full={
        "parts": tuple(f"{name} {n}" for n in (1, 2, 4, 8, "cluster") for name in _THREE),
        "scale": 2,
        "pauses": 20,
    },
)


# --- Figure 13


def _checks(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.control import checks, engine_checks

    found = (engine_checks if part == "operator" else checks)(context.size["tuples"], context.size["rounds"])
    return {"checks": [asdict(one) for one in found]}


def _check_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    for part, text in (("operator", "an operator"), ("loop", "a bare loop")):
        found = raw.get(part, {}).get("checks", [])
        base = next((one["ns_per_tuple"] for one in found if one["how"] == "none"), None)
        for one in found:
            if one["how"] == "none":
                continue
            tuples = "tuple" if one["every"] == 1 else f"{one['every']:,} tuples"
            by = ", by a call" if one["how"] == "poll()" else ""
            made.append(
                Row(
                    f"{text}, a check every {tuples}{by}",
                    paper="up to 1.25" if one["every"] == 1 else "less",
                    ours=one["ns_per_tuple"],
                    unit="ns a tuple",
                    other=base,
                    instead="no check",
                    ratios=(one["ratio"],),
                )
            )
    return made


CHECKS = Experiment(
    "texera.checks",
    _checks,
    (
        Figure(
            "texera.fig13",
            "Figure 13: cost of checks",
            "A filter that compares a field with a number: up to 25 % for a check at every tuple, less with fewer; "
            "nothing to be seen for sentiment analysis at 100 ms a tuple.",
            "The same filter as an operator in the loop that Spark's workers run, and as a bare loop over rows in "
            "Python, the worst case. Samovar checks at every tuple, by a look at a flag.",
            _check_rows,
        ),
    ),
    quick={"parts": ("operator", "loop"), "tuples": 200_000, "rounds": 5},
    full={"parts": ("operator", "loop"), "tuples": 1_000_000, "rounds": 15},
)


# --- Figure 15


def _looks(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.workflows import WORKFLOWS

    pair, data = WORKFLOWS["w5"], context.data()
    data.ensure(pair.inputs, progress=False)
    short = max(1, data.size(*pair.inputs) // _EPOCHS)
    found: dict[str, list[float]] = {"direct": [], "consistent": [], "epoch's end": []}
    chance = random.Random(6)
    with _spark(context, part) as spark:
        for number in range(8):
            run: Any = pair.samovar(data).start(
                spark=spark, record=context.scratch / f"run-{number}", epoch_bytes=short
            )
            try:
                _look(run, context.size["looks"], chance, found)
            finally:
                run.stop()
            if len(found["direct"]) >= context.size["looks"]:
                break
    return found


def _look(run: Any, looks: int, chance: random.Random, found: dict[str, list[float]]) -> None:
    """Look at the operator's state by turns: now, at one moment of all workers, at the next epoch's end."""
    from samovar import SamovarError

    while run.status == "starting":
        time.sleep(0.01)
    while run.status == "running" and len(found["direct"]) < looks:
        time.sleep(chance.uniform(0.0, 0.3))
        if run.status != "running":
            return
        began = time.perf_counter()
        run.inspect("sentiment")
        now = time.perf_counter()
        try:
            run.snapshot("sentiment")
        except SamovarError:  # it ended meanwhile
            return
        frozen = time.perf_counter()
        if _pause(run, "aligned") is None:
            return
        assert run.inspect("sentiment").consistent
        found["direct"].append(1000 * (now - began))
        found["consistent"].append(1000 * (frozen - now))
        found["epoch's end"].append(1000 * (time.perf_counter() - frozen))
        run.resume()


def _look_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            _workers(part),
            paper="about 100 ms direct, about 1 s consistent (W2, W3)",
            ours=statistics.median(found["direct"]),
            unit="ms",
            other=statistics.median(found["consistent"]),
            instead="consistent",
            more={
                "direct p95 ms": _p95(found["direct"]),
                "consistent p95 ms": _p95(found["consistent"]),
                "at the epoch's end ms": statistics.median(found["epoch's end"]),
                "looks": len(found["direct"]),
            },
        )
        for part, found in raw.items()
        if found["direct"]
    ]


LOOKS = Experiment(
    "texera.looks",
    _looks,
    (
        Figure(
            "texera.fig15",
            "Figure 15: reading the state of an operator",
            "For W2 and W3 around 100 ms directly (DCM), around 1 s consistently (hybrid); similar for W1.",
            "The KNN operator of IcedTea's W5, whose state is a window of reviews: `inspect` now, "
            "`snapshot` of all workers at one moment, and at the next epoch's end (an aligned pause and a look).",
            _look_rows,
        ),
    ),
    quick={"parts": ("2",), "scale": 0.1, "looks": 5},
    full={"parts": ("1", "2", "cluster"), "scale": 0.3, "looks": 25},
)

EXPERIMENTS = (SINGLE, CHECKS, PAUSES, LOOKS)
