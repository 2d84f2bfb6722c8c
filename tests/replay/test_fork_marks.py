"""Forks that begin at a mark take over what was given before it: the same rows as from the epoch's start."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choice import by_default
from tests.replay.conftest import Recordings

import samovar as sv
from samovar.errors import RecordingCorrupt
from samovar.record.state_files import Header, read_state, restore, write_state
from samovar.record.store import Recording
from samovar.replay import forks
from samovar.replay.fork_prefix import usable_mark
from samovar.replay.trace.leaves import Leaves
from samovar.runtime.epochs import checkpoint_policy
from samovar.runtime.exchange import kept_rows
from samovar.runtime.exchange.fingerprints import Fingerprints

ROWS, CUT = 600, 350


class Running(sv.Operator):
    output = "x bigint, key string, total bigint, luck double"
    total = sv.ValueState(0)
    seen = sv.ListState()
    last = sv.MapState()

    def __init__(self, weight: int = 1) -> None:
        self.weight = weight
        self.history: list[int] = []

    def process(self, row: Any, port: int = 0) -> Any:
        self.total += self.weight * row["x"]
        self.last[row["key"]] = row["x"]
        self.history = [*self.history[-3:], row["x"]]
        if row["x"] % 50 == 0:
            self.seen.append(row["x"])
        if row["x"] % 97 == 0:
            self.last.pop("k0", None)
        luck = sv.log_result(random.random) if row["x"] % 10 == 0 else 0.0
        for _ in range(row["x"] % 3):
            yield {"x": row["x"], "key": row["key"], "total": self.total, "luck": luck}

    def finish(self, port: int = 0) -> Any:
        yield {"x": -1, "key": "end", "total": self.total, "luck": 0.0}


class PerKey(sv.Operator):
    output = "x bigint, key string, n bigint, luck double"
    counts = sv.MapState()

    def process(self, row: Any, port: int = 0) -> Any:
        self.counts[row["key"]] = self.counts.get(row["key"], 0) + 1
        yield {"x": row["x"], "key": row["key"], "n": self.counts[row["key"]], "luck": row["luck"]}


class Twice(sv.Operator):
    """Stateless: runs in parallel, and has no marks."""

    output = "x bigint, key string"
    stateless = True

    def process(self, row: Any, port: int = 0) -> Any:
        yield {"x": row["x"], "key": row["key"]}


def keyed(rows: Any) -> None:
    """One operator behind another, with a shuffle between; keys whose rows all lie in the first half."""
    early = "CASE WHEN x < 300 THEN key ELSE 'late' END AS key"
    totals = rows.apply(Running(), name="R").selectExpr("x", early, "luck", name="early")
    odd = totals.filter("x % 2 = 1", name="odd")
    odd.apply(PerKey(), name="K", by="key", key_partitions=2).sink("S")


def summed(rows: Any, other: Any) -> None:
    """Two sources, and an aggregate that ends with the epoch."""
    made = rows.union(other, name="U").apply(Running(), name="R")
    made.groupBy("key").agg("count(1) AS n", "sum(total) AS total", "sum(luck) AS luck", name="A").sink("S")


def branching(rows: Any) -> None:
    """Filters that must be counted, a stateless operator before, a fused one behind, and the source again beside it."""
    few = rows.filter("x % 7 <> 0", name="few").filter("length(key) > 1", name="fewer")
    made = few.apply(Twice(), name="T").apply(Running(), name="R").apply(PerKey(), name="K")
    plain = few.selectExpr("x", "key", "0L AS n", "0.5D AS luck", name="plain")
    made.union(plain, name="U").sink("S")


@pytest.fixture(scope="module")
def run(
    spark: Any, recordings: Recordings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., sv.Past]]:
    """Opens a copy of the recording of a run."""

    def made(build: Callable[..., None]) -> sv.Past:
        def record(root: Path) -> None:
            folders = ("in", "other") if build is summed else ("in",)
            for number, folder in enumerate(folders):
                (root / folder).mkdir()
                for i in range(2):
                    first = number * ROWS + i * ROWS // 2
                    xs = range(first, first + ROWS // 2)
                    table = pa.table({"x": xs, "key": [f"k{x % 5}" for x in xs]})
                    pq.write_table(table, root / folder / f"{i}.parquet")
            flow = sv.Workflow("marks")
            build(*(flow.read.parquet(str(root / n), name=n) for n in folders))
            flow.run(spark=spark, record=root / "runs", progress=False, marks="every")

        folder = tmp_path_factory.mktemp(build.__name__)
        return sv.open(recordings.copy(f"fork-{build.__name__}", record, folder), spark=spark)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint_policy, "EVERY", 100)
        patch.setattr(Leaves, "smallest", 3)
        yield made


@pytest.fixture(scope="module")
def from_start(run: Callable[..., sv.Past]) -> dict[str, Any]:
    """What a fork of `keyed` at tuple CUT leaves that begins at the epoch's start."""
    past = run(keyed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forks, "usable_mark", lambda parent: 0)
        left = told(past.jump("R", tuples=CUT).fork({"R": Running(weight=100)}))
    past.close()
    return left


def told(fork: sv.Run) -> dict[str, Any]:
    """What a fork left: rows in their order, counters, and each operator's state after each epoch."""
    fork.wait(progress=False)
    recording = Recording.open(fork.recording)
    epochs = recording.history().epochs
    states: list[Any] = []
    for upto in range(1, len(epochs) + 1):
        for name in epochs[0].state:
            for bucket, files in sorted(recording.state_files(name, epochs[:upto]).items()):
                instance = Running() if name == "R" else PerKey()
                restore(instance, (read_state(path)[1] for path, _ in files))
                states.append((upto, name, bucket, dict(vars(instance))))
    first = recording.epoch_folder(epochs[0]) / "state"
    logged = {
        str(path.relative_to(first)): (read_state(path)[1].get("results"), read_state(path)[1].get("prints"))
        for path in sorted(first.glob("*/*.delta"))
    }
    return {
        # behind the moment `log_result` gives what chance gives
        "rows": [{n: v for n, v in row.items() if n != "luck"} for row in fork.result("S").to_pylist()],
        "epochs": [(e.units, e.counters, e.last) for e in epochs],
        "states": states,
        "logged": logged,
    }


def uncut(left: dict[str, Any]) -> dict[str, Any]:
    """The same without where epochs cut their sources: a fork of a fork cuts them twice."""
    return {**left, "epochs": [(counters, last) for _, counters, last in left["epochs"]]}


def marked(
    moment: sv.Moment, monkeypatch: pytest.MonkeyPatch, expects: bool = True
) -> tuple[sv.Run, dict[str, Any]]:
    """A fork that may begin at a mark, and does if that is expected; what it leaves."""
    used: list[int] = []

    def noted(parent: Any) -> int:
        used.append(usable_mark(parent))
        return used[-1]

    monkeypatch.setattr(forks, "usable_mark", noted)
    fork = moment.fork({"R": Running(weight=100)})
    one = told(fork)
    assert [mark > 0 for mark in used] == [expects]
    return fork, one


def both(moment: sv.Moment, monkeypatch: pytest.MonkeyPatch) -> tuple[sv.Run, dict[str, Any], dict[str, Any]]:
    """What a fork leaves that may begin at a mark, and one that may not; the first one itself."""
    fork, one = marked(moment, monkeypatch)
    monkeypatch.setattr(forks, "usable_mark", lambda parent: 0)
    return fork, one, told(moment.fork({"R": Running(weight=100)}))


@pytest.mark.parametrize("build", by_default([keyed, summed, branching], [summed]))
def test_a_fork_from_a_mark_leaves_what_one_from_the_epochs_start_leaves(
    build: Callable[..., None], run: Callable[..., sv.Past], monkeypatch: pytest.MonkeyPatch
) -> None:
    past = run(build)
    most = next(o.taken for o in past.progress.operators if o.name == "R")
    _, one, other = both(
        past.jump("R", tuples=random.Random(build.__name__).randrange(most // 4, most - 1)), monkeypatch
    )
    assert one["rows"]
    assert one == other
    past.close()


def test_a_fork_of_a_fork_takes_over_what_the_fork_took_over(
    run: Callable[..., sv.Past], from_start: dict[str, Any], spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = run(keyed)
    luck = {(r["x"], r["n"]): r["luck"] for r in past.result("S").to_pylist()}
    fork, _ = marked(past.jump("R", tuples=470), monkeypatch)
    within = sv.open(fork.recording, spark=spark)
    assert len(within.history.epochs[0].marks) == 5
    assert within.jump("R", tuples=450).state("R")["total"] == sum(range(450))
    again, one = marked(within.jump("R", tuples=CUT), monkeypatch)
    assert uncut(one) == uncut(from_start)
    early = [r for r in again.result("S").to_pylist() if 0 <= r["x"] < CUT]
    assert early
    assert all(r["luck"] == luck[r["x"], r["n"]] for r in early)
    within.close()
    past.close()


def test_without_kept_rows_a_fork_begins_at_the_epochs_start_and_damaged_ones_are_named(
    run: Callable[..., sv.Past], from_start: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    past = run(keyed)
    moment = past.jump("R", tuples=CUT)
    file = next(iter(sorted((past.path / "epochs").glob("*/kept/R/0000.mark0002"))))
    file.unlink()
    with pytest.raises(RecordingCorrupt, match="mark0002 is gone"):
        moment.fork({"R": Running(weight=100)}).wait(progress=False)
    for path in (past.path / "epochs").glob("*/state/R/*.delta"):  # as one that gave up keeping them
        header, payload = read_state(path)
        assert header.kept
        write_state(path, msgspec.structs.replace(header, kept=False), payload)
    _, one = marked(moment, monkeypatch, expects=False)
    assert one == from_start
    past.close()


# --- without Spark --------------------------------------------------------------------------------------------------

Steps = st.lists(st.one_of(st.integers(0, 40), st.none()), max_size=12)
"""Rows given one after the other, by number; None: a mark."""


@given(Steps)
def test_what_is_kept_up_to_a_mark_is_what_was_given_before_it(steps: list[int | None]) -> None:
    with tempfile.TemporaryDirectory() as made:
        keeper = kept_rows.Keeper(Path(made), 3, math.inf)
        given, at_mark = 0, [0]
        for step in steps:
            if step is None:
                keeper.cut(len(at_mark))
                at_mark.append(given)
            else:
                keeper.add(pa.RecordBatch.from_pydict({"x": range(given, given + step)}))
                given += step
        keeper.end()
        assert keeper.keeps
        passed = len(at_mark) - 1
        header = Header(operator="R", bucket=3, epoch=0, passed=passed, marks=tuple(range(1, passed + 1)))
        schema = pa.schema([("x", pa.int64())])
        for mark, rows in enumerate([*at_mark, given]):
            files = [str(f) for f in kept_rows.kept_files(Path(made), header, mark)]
            batches = kept_rows.read_kept(files, schema, rows)
            assert [x for b in batches for x in b.column(0).to_pylist()] == list(range(rows))
            with pytest.raises(sv.SamovarError):
                list(kept_rows.read_kept(files, schema, rows + 1))


def test_keeping_stops_when_it_costs_too_much_and_leaves_nothing(tmp_path: Path) -> None:
    keeper = kept_rows.Keeper(tmp_path, 0, -math.inf)
    keeper.add(pa.RecordBatch.from_pydict({"x": [1, 2]}))
    assert not keeper.keeps
    keeper.cut(1)
    keeper.end()
    assert not list(tmp_path.iterdir())


@given(st.integers(0, 2000), st.integers(0, 2000))
def test_fingerprints_that_go_on_are_those_of_the_whole(start: int, more: int) -> None:
    rows = [(i, f"row {i}") for i in range(4000)]
    run, whole = Fingerprints("R"), Fingerprints("R")
    run.add(rows)
    whole.add(rows[: start + more])
    part = Fingerprints("R", start=start, goes_on=run.checksums)
    part.add(rows[start : start + more])
    assert part.checksums == whole.checksums
