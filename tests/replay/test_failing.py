"""The moment before a failure: where the log says it is, from the last state that was kept before it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.replay.conftest import Recordings

import samovar as sv
from samovar.graph.workflow import Marks
from samovar.record.log import EpochFailed, Log, read_log
from samovar.replay.trace import tracer
from samovar.replay.trace.leaves import Leaves
from samovar.runtime.epochs import checkpoint_policy

ROWS, BAD = 600, 570
LAST_MARK = ROWS * 6 // 7


class Running(sv.Operator):
    """Adds up, notes what it takes in a file, and fails at one tuple."""

    output = "x bigint, key string, total bigint"
    total = sv.ValueState(0)
    last = sv.MapState()

    def __init__(self, seen: str, bad: int = -1) -> None:
        self.seen, self.bad = seen, bad

    def process(self, row: Any, port: int = 0) -> Any:
        with Path(self.seen).open("a") as file:
            file.write(f"{row['x']}\n")
        if row["x"] == self.bad:
            raise ValueError("bad")
        self.total += row["x"]
        self.last[row["key"]] = row["x"]
        yield {"x": row["x"], "key": row["key"], "total": self.total}


class Stateless(sv.Operator):
    output = Running.output
    stateless = True

    def __init__(self, seen: str, bad: int = -1) -> None:
        self.seen, self.bad = seen, bad

    def process(self, row: Any, port: int = 0) -> Any:
        if row["x"] in (self.bad, self.bad - 300):
            raise ValueError("bad")
        yield {"x": row["x"], "key": row["key"], "total": 0}


class Misfit(Running):
    """Gives a text where a number is wanted."""

    def process(self, row: Any, port: int = 0) -> Any:
        yield {"x": row["x"], "key": row["key"], "total": "odd" if row["x"] == self.bad else 0}


def alone(rows: Any, seen: str) -> None:
    rows.apply(Running(seen, BAD), name="F").groupBy("key").count().sink("S")


def chained(rows: Any, seen: str) -> None:
    rows.apply(Running(seen), name="A").apply(Running(seen + "-f", BAD), name="F").sink("S")


def filtered(rows: Any, seen: str) -> None:
    rows.filter("x % 2 = 0", name="even").apply(Running(seen, BAD), name="F").filter("x > 0").sink("S")


def filtered_chain(rows: Any, seen: str) -> None:
    made = rows.filter("x % 2 = 0", name="even").apply(Running(seen), name="A")
    made.apply(Running(seen + "-f", BAD), name="F").filter("x > 0").sink("S")


def keyed(rows: Any, seen: str) -> None:
    made = rows.apply(Running(seen), name="A")
    made.apply(Running(seen + "-f", BAD), name="F", by="key", key_partitions=2).sink("S")


def stateless(rows: Any, seen: str) -> None:
    rows.apply(Stateless(seen, BAD), name="F").sink("S")


def misfit(rows: Any, seen: str) -> None:
    rows.apply(Misfit(seen, BAD), name="F").sink("S")


Failed = Callable[..., sv.Past]


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failing")
    for i in range(2):
        xs = range(i * ROWS // 2, (i + 1) * ROWS // 2)
        pq.write_table(pa.table({"x": xs, "key": [f"k{x % 5}" for x in xs]}), folder / f"{i}.parquet")
    return folder


@pytest.fixture
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file in which operators note what they take: one for all tests, since their recordings are shared."""
    return tmp_path_factory.getbasetemp() / "seen-by-failing"


@pytest.fixture
def failed(
    spark: SparkSession,
    recordings: Recordings,
    inputs: Path,
    seen: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Failed:
    """Opens a copy of a recording of a run that failed."""
    monkeypatch.setattr(checkpoint_policy, "EVERY", 100)
    monkeypatch.setattr(Leaves, "smallest", 3)

    def run(build: Callable[[Any, str], None], marks: Marks = "tau") -> sv.Past:
        def record(folder: Path) -> None:
            flow = sv.Workflow("failing")
            build(flow.read.parquet(str(inputs), name="n"), str(seen))
            with pytest.raises(sv.SamovarError):
                flow.run(spark=spark, record=folder / "runs", progress=False, marks=marks)

        copy = recordings.copy(f"failing-{build.__name__}-{marks}", record, tmp_path)
        seen.unlink(missing_ok=True)
        return sv.open(copy, spark=spark)

    return run


def _fact(past: sv.Past) -> EpochFailed:
    fact = past.history.failed
    assert fact is not None
    return fact


def _changed(past: sv.Past, spark: SparkSession, **fields: Any) -> sv.Past:
    """The same recording with other words about the failure."""
    path = past.path / "log.jsonl"
    facts = list(read_log(path))
    path.unlink()
    log = Log(path)
    for fact in facts:
        log.append(msgspec.structs.replace(fact, **fields) if isinstance(fact, EpochFailed) else fact)
    log.close()
    return sv.open(past.path, spark=spark)


OLD = {"operator": "", "position": (), "taken": 0, "attempt": "", "marks": ()}
"""As Samovar wrote it before it noted where an epoch failed."""


def _shown(past: sv.Past) -> Any:
    moment = past.failure()
    assert moment is not None
    shown = {n: dict(moment.state(n)) for n in ("A", "F") if n in past._session.operators}
    counted = {n: (c.taken, c.given) for n, c in moment.counters.items()}
    return moment.pending("F")[0].row, shown, counted


@pytest.mark.parametrize(
    ("build", "marks"),
    [
        (alone, "every"),
        (filtered_chain, "every"),
        pytest.param(chained, "every", marks=pytest.mark.slow),
        pytest.param(filtered, "every", marks=pytest.mark.slow),
        (keyed, "every"),
        pytest.param(alone, "none", marks=pytest.mark.slow),
    ],
)
def test_what_the_log_says_spares_the_search_and_leads_to_the_same_moment(
    spark: SparkSession, failed: Failed, monkeypatch: pytest.MonkeyPatch, build: Any, marks: str
) -> None:
    past = failed(build, marks=marks)
    assert _fact(past).operator == "F"
    with monkeypatch.context() as patched:
        patched.delattr(tracer.Tracer, "failed_step")
        found = _shown(past)
    assert found[0]["x"] == BAD
    if build is alone:
        assert found[1]["F"]["total"] == sum(range(BAD))
        assert found[1]["F"]["last"] == {f"k{x % 5}": x for x in range(BAD)}
        assert found[2]["F"] == ((BAD,), BAD)
    assert _shown(_changed(past, spark, **OLD)) == found


@pytest.mark.slow
def test_a_place_nobody_noted_is_looked_for(failed: Failed) -> None:
    past = failed(keyed, marks="none")
    assert (_fact(past).position, _fact(past).taken) == ((), 0)
    assert _shown(past)[0]["x"] == BAD


def test_looking_begins_at_the_last_mark(failed: Failed, seen: Path) -> None:
    past = failed(alone, marks="every")
    fact = _fact(past)
    assert len(fact.marks) == 6
    left = [p.relative_to(past.path / "epochs").parts[1:] for p in (past.path / "epochs").rglob("*.*")]
    assert sorted(left) == [("state", "F", f"0000.mark{n:04d}") for n in range(1, 7)]
    moment = past.failure()
    assert moment is not None
    assert moment.state("F")["total"] == sum(range(BAD))
    assert [int(x) for x in seen.read_text().split()] == list(range(LAST_MARK, BAD + 1))
    before = moment.step_back()
    assert before.pending("F")[0].row["x"] == BAD - 1


def test_the_first_tuple_that_failed_is_found_where_several_tasks_did(failed: Failed) -> None:
    moment = failed(stateless).failure()
    assert moment is not None
    assert moment.pending("F")[0].row["x"] == BAD - 300


def test_a_place_that_does_not_fail_now_is_not_believed(spark: SparkSession, failed: Failed) -> None:
    past = failed(alone, marks="every")
    at = _fact(past).position
    wrong = _changed(past, spark, position=(at[0], at[1] - 20))
    moment = wrong.failure()
    assert moment is not None
    assert moment.pending("F")[0].row["x"] == BAD


def test_a_row_that_does_not_fit_is_still_found(failed: Failed) -> None:
    past = failed(misfit)
    assert _fact(past).taken == 0
    assert past.failure() is not None


def test_a_resumed_run_leaves_nothing_of_the_failed_attempt(
    spark: SparkSession, failed: Failed, inputs: Path, seen: Path
) -> None:
    past = failed(alone, marks="every")
    assert len(list((past.path / "epochs").iterdir())) == 1
    flow = sv.Workflow("failing")
    rows = flow.read.parquet(str(inputs), name="n")
    rows.apply(Running(str(seen)), name="F").groupBy("key").count().sink("S")
    past.resume(spark, flow=flow).wait(progress=False)
    again = sv.open(past.path, spark=spark)
    assert again.status == "completed"
    counted = {past._recording.epoch_folder(e).name for e in again.history.epochs}
    assert {p.name for p in (past.path / "epochs").iterdir()} == counted
    assert again.failure() is None
