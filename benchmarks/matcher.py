"""``scripts/bench matcher``: how many events a second the matcher compares, for each dependence, on one core.

Two streams of the same payments go in by turns, a batch of each: with batches of 2n rows, n events are unmatched on
average. Where the dependence leaves the order free, the right stream is another order of the left one, shuffled within
stretches that end with a mark (every 1,000 events; 100 where said so), all rows or across keys. A dependence that is a
function of two events is asked about pairs of events; a key function is called once for each event. The equality is the
default one: all columns. A rate counts the events of both sides. The second table keeps the batch at 1,000 rows while
more and more events are unmatched: the right side lags behind by so many.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from samovar.diff import Matcher, independent, keyed, ordered, punctuated, synchronised

__all__ = ["CASES", "Case", "Measured", "main", "measure"]

_EVERY = 1_000


def _same_key(a: Any, b: Any) -> Any:
    return a["key"] == b["key"]


@dataclass(frozen=True)
class Case:
    """A dependence, and the freedom it leaves to the right stream."""

    name: str
    depends: Any
    keys: int
    free: str
    """What may be shuffled: `nothing`, `stretches` (any order), `keys` (order kept for each)."""
    text: bool = False
    """Whether a column of text is compared, too."""
    stretch: int = _EVERY
    """Events are shuffled among so many."""
    slow: bool = False
    """Whether Python runs for each event: a tenth of the events will do."""


CASES = (
    Case("independent", independent, 10_000, "stretches"),
    Case("keyed, 100 keys", keyed("key"), 100, "keys"),
    Case("keyed, 10,000 keys", keyed("key"), 10_000, "keys"),
    Case("ordered", ordered, 10_000, "nothing"),
    Case("keyed by 100, synchronised", synchronised(keyed("key"), by="mark"), 100, "keys"),
    Case("punctuated", punctuated(time="at", by="mark"), 10_000, "stretches"),
    Case("independent, with text", independent, 10_000, "stretches", text=True),
    Case("keyed, 100 keys, with text", keyed("key"), 100, "keys", text=True),
    Case("keyed by a function, same order", keyed(by=itemgetter("key")), 10_000, "nothing", slow=True),
    Case("keyed by a function, in 1,000", keyed(by=itemgetter("key")), 10_000, "keys", slow=True),
    Case("a function of two, same order", _same_key, 10_000, "nothing", slow=True),
    Case("a function of two, in 100", _same_key, 10_000, "keys", stretch=100, slow=True),
    Case("a function of two, in 1,000", _same_key, 10_000, "keys", slow=True),
)


@dataclass(frozen=True)
class Measured:
    """One run. `unmatched` is the average over both sides together, taken after each batch."""

    case: str
    events: int
    batch: int
    lag: int
    unmatched: int
    seconds: float
    events_per_second: int


def stream(case: Case, rows: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The two sides."""
    random = np.random.default_rng(7)
    at = np.arange(rows)
    mark = at % _EVERY == _EVERY - 1
    columns: dict[str, Any] = {
        "key": random.integers(0, case.keys, rows),
        "at": at,
        "amount": random.random(rows),
        "mark": mark,
    }
    if case.text:
        columns["customer"] = [f"customer {n}" for n in columns["key"].tolist()]
    left = pa.RecordBatch.from_pydict(columns)
    return left, left.take(pa.array(_order(case, columns["key"], mark, random)))


def _order(
    case: Case, keys: npt.NDArray[Any], mark: npt.NDArray[Any], random: np.random.Generator
) -> npt.NDArray[Any]:
    """Another order, free within stretches that end with a mark."""
    places = np.arange(len(keys))
    if case.free == "nothing":
        return places
    stretch = places // case.stretch
    chance = random.random(len(keys))
    chance[mark] = 2.0
    shuffled = np.lexsort((chance, stretch))
    if case.free == "stretches":
        return shuffled
    # rows of a key go, in their old order, to the places that the shuffle gave to this key
    plain = ~mark[shuffled]
    result = shuffled.copy()
    target = np.flatnonzero(plain)
    by_key = target[np.lexsort((target, keys[shuffled[target]]))]
    source = places[~mark]
    result[by_key] = source[np.lexsort((source, keys[source]))]
    return result


def measure(case: Case, rows: int, batch: int, lag: int = 0) -> Measured:
    """Push both sides by turns; the right one starts when the left one is `lag` events ahead."""
    left, right = stream(case, rows)
    pushes = list(_pushes(left, right, batch, lag))
    matcher = Matcher(depends=case.depends)
    waiting = []
    gc.collect()
    started = time.perf_counter()
    for side, piece in pushes:
        if matcher.push_batch(side, piece) is not None:
            raise AssertionError(f"{case.name}: {matcher.verdict}")
        waiting.append(matcher.waiting("left") + matcher.waiting("right"))
    verdict = matcher.close()
    seconds = time.perf_counter() - started
    if not verdict.equivalent:
        raise AssertionError(f"{case.name}: the streams should be equivalent\n{verdict.explain()}")
    return Measured(
        case=case.name,
        events=2 * rows,
        batch=batch,
        lag=lag,
        unmatched=round(sum(waiting) / len(waiting)),
        seconds=round(seconds, 3),
        events_per_second=round(2 * rows / seconds),
    )


def _pushes(left: pa.RecordBatch, right: pa.RecordBatch, batch: int, lag: int) -> Iterator[tuple[Any, Any]]:
    rows = left.num_rows
    for start in range(0, rows + lag, batch):
        if start < rows:
            yield "left", left.slice(start, batch)
        if start >= lag:
            yield "right", right.slice(start - lag, batch)


def main(argv: Sequence[str]) -> int:
    """Measure, print two tables, write a JSON file."""
    parser = argparse.ArgumentParser(prog="scripts/bench matcher", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="events a side")
    parser.add_argument(
        "--batch", type=int, default=1_000, help="rows a batch; half of it is unmatched on average"
    )
    parser.add_argument("--unmatched", type=int, nargs="*", default=[500, 5_000, 100_000])
    parser.add_argument("--case", help="only cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=3, help="the fastest of so many runs counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    options = parser.parse_args(argv)
    cases = [c for c in CASES if not options.case or options.case in c.name]
    console = Console()

    by_dependence = [
        _fastest(c, options.rows // (10 if c.slow else 1), options.batch, 0, options.repeat) for c in cases
    ]
    _print(console, "Events a second, by dependence", by_dependence)
    by_unmatched = [
        _fastest(
            c, max(options.rows, 4 * n), options.batch, n // options.batch * options.batch, options.repeat
        )
        for c in cases
        if not c.slow
        for n in options.unmatched
    ]
    _print(console, "Events a second, by how many are unmatched", by_unmatched)
    if options.json is not None:
        from benchmarks.session import machine

        figures = {
            "benchmark": "matcher",
            "machine": machine(),
            "by_dependence": [asdict(m) for m in by_dependence],
            "by_unmatched": [asdict(m) for m in by_unmatched],
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
        console.print(f"written to {options.json}")
    return 0


def _fastest(case: Case, rows: int, batch: int, lag: int, repeat: int) -> Measured:
    return min((measure(case, rows, batch, lag) for _ in range(repeat)), key=lambda m: m.seconds)


def _print(console: Console, title: str, measured: Sequence[Measured]) -> None:
    table = Table(title=title)
    table.add_column("dependence")
    for heading in ("events", "batch", "unmatched", "seconds", "events/s"):
        table.add_column(heading, justify="right")
    for m in measured:
        table.add_row(
            m.case,
            f"{m.events:,}",
            f"{m.batch:,}",
            f"{m.unmatched:,}",
            f"{m.seconds:.2f}",
            f"{m.events_per_second:,}",
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
