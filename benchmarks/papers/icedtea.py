"""IcedTea's data sets and what time travel costs an original run: Tables 1 and 2, Figures 16 to 18.

Numbers of the paper are those it states in its text and tables; bars that it only draws are not read off.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.papers.charts import Chart, Series
from benchmarks.papers.context import STEADY, Context, ratios
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size, spread_of

__all__ = ["EXPERIMENTS", "FIVE"]

FIVE = ("w1", "w2", "w3", "w4", "w5")
_LOG_MB = {"w1": 1.19, "w2": 3.82, "w3": 2.14, "w4": 18.0, "w5": 3.44}
_STATEFUL = ("Aggregate", "Join", "Distinct", "DropDuplicates", "SetOperation")
_SETS = {
    "lineitem": (16, 6_000_000, 772.0),
    "orders": (9, 1_500_000, 173.0),
    "customer": (8, 150_000, 24.3),
    "tweets": (34, 1_000_000, 1140.0),
    "all_beauty": (14, 371_000, 120.8),
    "luxury_beauty": (14, 574_000, 192.9),
}


# --- Table 1: data sets


def _data_set(context: Context, name: str) -> dict[str, Any]:
    import pyarrow.parquet as pq

    data = context.data()
    data.ensure([name], progress=False)
    files = sorted(Path(data.path(name)).glob("*.parquet"))
    heads = [pq.read_metadata(file) for file in files]
    groups = [head.row_group(n) for head in heads for n in range(head.num_row_groups)]
    return {
        "fields": len(pq.read_schema(files[0]).names),
        "tuples": sum(head.num_rows for head in heads),
        "bytes": data.size(name),
        "unpacked": sum(group.total_byte_size for group in groups),
        "files": len(files),
    }


def _data_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            name,
            paper=f"{fields} fields, {tuples:,} tuples, {megabytes:g} MB",
            ours=raw[name]["tuples"],
            unit="tuples",
            more={
                "fields": raw[name]["fields"],
                "MB as Parquet": raw[name]["bytes"] / 1e6,
                "MB of its columns, not compressed": raw[name]["unpacked"] / 1e6,
            },
        )
        for name, (fields, tuples, megabytes) in _SETS.items()
        if name in raw
    ]


# --- Table 2: workflows with state


def _stateful(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.texera import TEXERA
    from benchmarks.tpch import QUERIES
    from benchmarks.workflows import WORKFLOWS

    data = context.data()
    families = {
        "IcedTea's W1 to W5": WORKFLOWS,
        "TPC-H queries as workflows": QUERIES,
        "Texera's W1 to W3": TEXERA,
    }
    return {
        family: {name: _has_state(pair.samovar(data)) for name, pair in pairs.items()}
        for family, pairs in families.items()
    }


def _has_state(flow: Any) -> bool:
    kinds = {name: type(op).__name__ for name, op in flow.graph().ops.items()}
    return any(
        kind in _STATEFUL or (kind == "Python" and not flow._live[name].stateless)
        for name, kind in kinds.items()
    )


def _stateful_rows(raw: Raw, size: Size) -> list[Row]:
    papers = "41.7 % (10 of 24), 34.3 % (463 of 1,349), 85.7 % (12 of 14)"
    return [
        Row(
            family,
            paper=papers if number == 0 else "",
            ours=sum(found.values()) / len(found),
            unit="%",
            more={"with state": f"{sum(found.values())} of {len(found)}"},
        )
        for number, (family, found) in enumerate(raw.get("all", {}).items())
    ]


# --- Figures 16 and 17: time and space of recording


def _overhead(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.overhead import measure
    from benchmarks.workflows import WORKFLOWS

    pair, data = WORKFLOWS[part], context.data()
    data.ensure(pair.inputs, progress=False)
    runs, warmups = context.size["runs"], context.size["warmups"]
    found = measure(context.spark, pair, data, runs=runs, warmups=warmups, tick=context.tick)
    if context.size["repeat"] and any(_unsteady(spread.samples) for spread in found.ratios.values()):
        more = measure(context.spark, pair, data, runs=runs, warmups=1, tick=context.tick)
        samples = {way: [*found.seconds[way].samples, *more.seconds[way].samples] for way in found.seconds}
    else:
        samples = {way: list(spread.samples) for way, spread in found.seconds.items()}
    left = found.recorded
    assert left is not None
    sizes = {"log": left.log, "deltas": left.deltas, "results": left.results, "input": found.input_bytes}
    return {"seconds": samples, "bytes": sizes}


def _unsteady(samples: Any) -> bool:
    spread = spread_of(samples)
    return spread is not None and spread.sway > STEADY


def _median(samples: Any) -> float:
    import statistics

    return statistics.median(samples)


def _time_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    for name in FIVE:
        if name not in raw:
            continue
        seconds = raw[name]["seconds"]
        plain, on, off = (seconds[way] for way in ("plain", "recorded", "unrecorded"))
        recording = spread_of(ratios(on, off))
        made.append(
            Row(
                name.upper(),
                paper="< 1.02 with log against without",
                ours=_median(on),
                other=_median(plain),
                instead="plain PySpark job",
                ratios=ratios(on, plain),
                more={
                    "without recording s": _median(off),
                    "recording on / off": recording.median if recording else on[0] / off[0],
                    "on / off, quartiles": f"{recording.q1:.3f} to {recording.q3:.3f}" if recording else "-",
                    "rounds": len(on),
                },
            )
        )
    return made


def _time_chart(raw: Raw, size: Size) -> Chart:
    there = [name for name in FIVE if name in raw]
    ways = {"plain": "plain PySpark", "unrecorded": "without recording", "recorded": "recorded"}
    series = (Series(text, [_median(raw[n]["seconds"][way]) for n in there]) for way, text in ways.items())
    return Chart("Seconds of a run", "bars", "s", tuple(series), tuple(n.upper() for n in there))


def _space_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        Row(
            name.upper(),
            paper=f"{_LOG_MB[name]:g} MB, < 2 % of the input",
            ours=raw[name]["bytes"]["log"],
            unit="B",
            other=raw[name]["bytes"]["input"],
            instead="keeping the input",
            more={
                "log / input": f"{raw[name]['bytes']['log'] / raw[name]['bytes']['input']:.4%}",
                "state and deltas MB": raw[name]["bytes"]["deltas"] / 1e6,
            },
        )
        for name in FIVE
        if name in raw
    ]


def _space_chart(raw: Raw, size: Size) -> Chart:
    there = [name for name in FIVE if name in raw]
    kinds = {"log": "log", "deltas": "state and deltas", "input": "input"}
    series = [Series(text, [raw[n]["bytes"][kind] for n in there]) for kind, text in kinds.items()]
    series.insert(1, Series("IcedTea's log", [1e6 * _LOG_MB[n] for n in there]))
    names = tuple(n.upper() for n in there)
    return Chart("Bytes of a recording", "bars", "bytes", tuple(series), names, log_y=True)


_LARGE = {"w1": 10, "w2": 16, "w3": 16, "w4": 16, "w5": 1}
"""Scales at which the plain job takes 15 s or more on two cores."""
_STEERED = {"w1": 5, "w2": 15, "w3": 8, "w4": 8, "w5": 0.5}
"""Scales at which runs are long enough for an interaction every ten seconds."""
_RECORDING = (
    "Each workflow as a plain PySpark job, as a Samovar workflow that is recorded, and as one that is not, by turns "
    "in one session; results are compared in every round. The alternative is the plain job, which can be neither "
    "paused nor gone back into. "
)

OVERHEAD = Experiment(
    "icedtea.overhead",
    _overhead,
    (
        Figure(
            "icedtea.fig16",
            "Figure 16: time overhead of time travel",
            "With an interaction every 10 s, logging took less than 2 % of the execution time of each workflow: 3 to "
            "7 s of hundreds for W1, W2, W3 and W5, within 1 s for W4. The base is the same engine without logging.",
            _RECORDING + "Interactions are measured apart, in Figure 18.",
            _time_rows,
            _time_chart,
        ),
        Figure(
            "icedtea.fig17",
            "Figure 17: space overhead of time travel",
            "Log records: 1.19 MB for W1, 3.82 for W2, 2.14 for W3, about 18 for W4, 3.44 for W5; each less than 2 % "
            "of the input.",
            "Bytes that the recorded runs of Figure 16 left. Order is canonical and needs no record; state at epoch "
            "ends, from which jumps start, is counted apart. The alternative is a copy of the input, compressed as "
            "Parquet.",
            _space_rows,
            _space_chart,
        ),
    ),
    quick={
        "parts": FIVE,
        "scale": {"w5": 0.05, **dict.fromkeys(FIVE[:4], 0.1)},
        "runs": 3,
        "warmups": 1,
        "repeat": False,
    },
    full={
        "parts": FIVE,
        "scale": 1,
        "runs": 3,
        "warmups": 1,
        "repeat": True,
    },
)

LARGE = Experiment(
    "icedtea.large",
    _overhead,
    (
        Figure(
            "icedtea.fig16-large",
            "Figure 16, longer runs",
            "As above; the paper's runs took hundreds of seconds.",
            _RECORDING
            + "Scales are chosen so that the plain job takes 15 s or more, so that starting up counts little.",
            _time_rows,
        ),
    ),
    quick={"parts": ()},
    full={"parts": FIVE, "scale": _LARGE, "runs": 3, "warmups": 1, "repeat": False},
)


# --- Figure 18: interactions


def _interactions(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.travel.interactions import interrupted

    times, made = interrupted(context.setting(), part)
    return {
        "seconds": {str(gap): samples for gap, samples in times.items()},
        "made": {str(gap): count for gap, count in made.items()},
    }


_GAPS = {"10.0": "every 10 s", "1.0": "every 1 s", "0.1": "every 0.1 s"}


def _interaction_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    for name in FIVE:
        for gap, text in _GAPS.items() if name in raw else ():
            seconds = raw[name]["seconds"]
            limit = "< 1.05" if name in FIVE[:3] else "< 1.12"
            made.append(
                Row(
                    f"{name.upper()}, {text}",
                    paper="< 1.02" if gap == "10.0" else f"{limit} at up to 10 a second",
                    ours=_median(seconds[gap]),
                    other=_median(seconds["None"]),
                    instead="no interaction",
                    ratios=ratios(seconds[gap], seconds["None"]),
                    more={"interactions": raw[name]["made"][gap]},
                )
            )
    return made


def _interaction_chart(raw: Raw, size: Size) -> Chart:
    there = [name for name in FIVE if name in raw]
    series = tuple(
        Series(text, [_median(ratios(raw[n]["seconds"][gap], raw[n]["seconds"]["None"])) for n in there])
        for gap, text in _GAPS.items()
    )
    names = tuple(n.upper() for n in there)
    return Chart("Run time against a run without interactions", "bars", "ratio", series, names)


INTERACTIONS = Experiment(
    "icedtea.interactions",
    _interactions,
    (
        Figure(
            "icedtea.fig18",
            "Figure 18: impact of interaction frequency",
            "From one interaction in 10 s to 10 a second: below 5 % for W1 to W3, below 12 % for W4 and W5.",
            "The same gaps, by turns with runs without interactions. An interaction is a mark in the log that becomes "
            "a moment when its epoch is committed; the run does not wait. Runs that are shorter than a gap have none.",
            _interaction_rows,
            _interaction_chart,
        ),
    ),
    quick={"parts": FIVE, "scale": {"w5": 0.05, **dict.fromkeys(FIVE[:4], 0.1)}, "runs": 2},
    full={"parts": FIVE, "scale": _STEERED, "runs": 3},
)

DATA = Experiment(
    "icedtea.data",
    _data_set,
    (
        Figure(
            "icedtea.table1",
            "Table 1: data sets",
            "TPC-H at scale 1, tweets of November 2019 to April 2020, two categories of Amazon reviews.",
            "TPC-H from `tpchgen-cli`; tweets and reviews generated with the same attributes, rows and period (words "
            "by Zipf's law, seeded). Paper's sizes are of text files, ours of Parquet files.",
            _data_rows,
        ),
    ),
    quick={"parts": tuple(_SETS), "scale": 0.1},
    full={"parts": tuple(_SETS), "scale": 1},
)

STATEFUL = Experiment(
    "icedtea.stateful",
    _stateful,
    (
        Figure(
            "icedtea.table2",
            "Table 2: workflows with stateful operators",
            "A survey of three collections of other people's workflows: 41.7 %, 34.3 % and 85.7 % have state.",
            "That survey is not repeated. Counted are the workflows measured on this page: those with a join, an "
            "aggregate, a distinct or a Python operator with state.",
            _stateful_rows,
        ),
    ),
    quick={"parts": ("all",), "scale": 0.1},
    full={"parts": ("all",), "scale": 1},
)

EXPERIMENTS = (DATA, STATEFUL, OVERHEAD, LARGE, INTERACTIONS)
