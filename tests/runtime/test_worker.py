"""Python operators in a worker, without Spark: rows in, rows out, state files, failures, versions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import samovar as sv
from samovar.ids import BUCKET, CONTROL, PORT
from samovar.record.state_files import read_header
from samovar.runtime.exchange.task import Stage, Task, Version
from samovar.runtime.exchange.user_errors import Failure
from samovar.runtime.pickles import by_value
from samovar.runtime.worker import bucket_state
from samovar.runtime.worker.entry import chain_function

Row = dict[str, Any]


class Sum(sv.Operator):
    """A running sum; the sum again at the end."""

    output = "v bigint, total bigint"
    total = sv.ValueState(0)
    by_value = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        self.total += row["v"]  # type: ignore[operator, assignment]
        self.by_value[row["v"]] = self.by_value.get(row["v"], 0) + 1
        yield None
        yield {"v": row["v"], "total": self.total}

    def finish(self, port: int = 0) -> Iterator[Row]:
        yield {"v": -1, "total": self.total}


class Double(sv.Operator):
    """Each row twice; fails at 13."""

    output = "v bigint, total bigint"

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        if row["v"] == 13:
            raise ValueError("unlucky")
        yield from (row, {**row, "total": row["total"] + 1})


class Misfit(sv.Operator):
    """Gives a text where a number is promised, at 7."""

    output = "v bigint, total bigint"

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        yield {"v": "seven" if row["v"] == 7 else row["v"], "total": 0}


SCHEMA = pa.schema([("v", pa.int64()), ("total", pa.int64())])


@pytest.fixture(autouse=True)
def fresh_worker() -> Iterator[None]:
    bucket_state._cache.clear()
    yield
    bucket_state._cache.clear()


def task(
    folder: Path,
    *operators: sv.Operator,
    epoch: int = 0,
    versions: dict[int, Version] | None = None,
    **more: Any,
) -> Task:
    stages = tuple(
        Stage(
            name=f"op{i}",
            code=by_value(op),
            schema=SCHEMA,
            folder=str(folder / f"e{epoch}" / f"op{i}"),
            versions=(versions or {}) if i == 0 else {},
            rank=i,
        )
        for i, op in enumerate(operators)
    )
    defaults: dict[str, Any] = {
        "positions": 0,
        "stateful": True,
        "errors": str(folder / f"e{epoch}" / "errors"),
    }
    return Task(run="r", epoch=epoch, token=f"t{epoch}", stages=stages, **{**defaults, **more})


def batch(
    values: list[int], *, end: bool = False, buckets: list[int] | None = None, positions: bool = False
) -> pa.RecordBatch:
    count = len(values) + (end and buckets is None)
    columns: dict[str, Any] = {"v": pa.array([*values, *([None] * (count - len(values)))], pa.int64())}
    if buckets is not None:
        columns[BUCKET] = pa.array(buckets, pa.int32())
    if end:
        columns[CONTROL] = pa.array([0] * len(values) + [1] * (count - len(values)), pa.int32())
    if positions:
        columns["__sv_p0"] = pa.array([0] * count, pa.int64())
        columns["__sv_p1"] = pa.array(range(count), pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def rows(function: Callable[..., Any], *batches: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return [tuple(r.values()) for b in function(iter(batches)) for r in b.to_pylist()]


def versions(folder: Path, *epochs: int) -> dict[int, Version]:
    files = tuple(str(folder / f"e{e}" / "op0" / "0000.delta") for e in epochs)
    return {0: Version(files, ("", *(f"t{e}" for e in epochs)))}


def test_state_goes_on_over_batches_and_epochs(tmp_path: Path) -> None:
    assert rows(chain_function(task(tmp_path, Sum())), batch([1, 2]), batch([3])) == [(1, 1), (2, 3), (3, 6)]
    again = task(tmp_path, Sum(), epoch=1, versions=versions(tmp_path, 0))
    assert rows(chain_function(again), batch([4])) == [(4, 10)]


class Growing(sv.Operator):
    output = "x int, seen array<int>"

    def __init__(self) -> None:
        self.seen: list[int] = []

    def process(self, row: Any, port: int = 0) -> Any:
        self.seen.append(row["v"])
        yield {"x": row["v"], "seen": self.seen}


def test_a_row_stands_for_what_it_held_when_it_was_given(tmp_path: Path) -> None:
    made = task(tmp_path, Growing())
    schema = pa.schema([("x", pa.int32()), ("seen", pa.list_(pa.int32()))])
    made = replace(made, stages=tuple(replace(stage, schema=schema) for stage in made.stages))
    given = rows(chain_function(made), batch([1, 2]), batch([3]))
    assert given == [(1, [1]), (2, [1, 2]), (3, [1, 2, 3])]


@pytest.mark.parametrize("forget", [False, True], ids=["same worker", "another worker"])
def test_it_does_not_matter_which_worker_goes_on(forget: bool, tmp_path: Path) -> None:
    for epoch, value in enumerate([1, 2, 3]):
        made = task(tmp_path, Sum(), epoch=epoch, versions=versions(tmp_path, *range(epoch)) if epoch else {})
        result = rows(chain_function(made), batch([value]))
        if forget:
            bucket_state._cache.clear()
    assert result == [(3, 6)]


def test_a_worker_with_an_older_state_catches_up(tmp_path: Path) -> None:
    rows(chain_function(task(tmp_path, Sum())), batch([1]))
    older = dict(bucket_state._cache)
    kept = {k: pickle.loads(pickle.dumps(v.instance)) for k, v in older.items()}
    bucket_state._cache.clear()
    rows(chain_function(task(tmp_path, Sum(), epoch=1, versions=versions(tmp_path, 0))), batch([10]))
    assert all(i.total == 1 for i in kept.values())  # the state of the first epoch, as another worker has it
    bucket_state._cache.clear()
    last = task(tmp_path, Sum(), epoch=2, versions=versions(tmp_path, 0, 1))
    assert rows(chain_function(last), batch([100])) == [(100, 111)]


def test_a_task_that_runs_twice_gives_and_writes_the_same(tmp_path: Path) -> None:
    rows(chain_function(task(tmp_path, Sum())), batch([5]))
    second = task(tmp_path, Sum(), epoch=1, versions=versions(tmp_path, 0))
    one = rows(chain_function(second), batch([6, 7]))
    file = tmp_path / "e1" / "op0" / "0000.delta"
    header = read_header(file)
    two = rows(chain_function(second), batch([6, 7]))
    assert one == two == [(6, 11), (7, 18)]
    assert (read_header(file).taken, read_header(file).given) == (header.taken, header.given) == ((2,), 2)


def test_the_end_comes_once_after_all_rows(tmp_path: Path) -> None:
    made = rows(chain_function(task(tmp_path, Sum())), batch([1]), batch([2], end=True))
    assert made == [(1, 1), (2, 3), (-1, 3)]


def test_an_instance_without_rows_ends_as_well(tmp_path: Path) -> None:
    assert rows(chain_function(task(tmp_path, Sum())), batch([], end=True)) == [(-1, 0)]


def test_each_bucket_has_a_state_of_its_own(tmp_path: Path) -> None:
    function = chain_function(task(tmp_path, Sum()))
    made = rows(function, batch([1, 2, 10], buckets=[0, 0, 3]), batch([20], buckets=[3]))
    assert made == [(1, 1), (2, 3), (10, 10), (20, 30)]
    headers = [read_header(p) for p in sorted((tmp_path / "e0" / "op0").glob("*.delta"))]
    assert [(h.bucket, h.taken, h.given) for h in headers] == [(0, (2,), 2), (3, (2,), 2)]


def test_a_chain_hands_rows_on_and_counts_each_operator(tmp_path: Path) -> None:
    made = rows(chain_function(task(tmp_path, Sum(), Double())), batch([1, 2], end=True))
    assert made == [(1, 1), (1, 2), (2, 3), (2, 4), (-1, 3), (-1, 4)]
    first, second = (read_header(tmp_path / "e0" / f"op{i}" / "0000.delta") for i in range(2))
    assert (first.taken, first.given) == ((2,), 3)
    assert (second.taken, second.given) == ((3,), 6)


def test_positions_grow_by_one_part_for_each_operator(tmp_path: Path) -> None:
    made = rows(
        chain_function(task(tmp_path, Sum(), Double(), positions=4)), batch([1, 2], end=True, positions=True)
    )
    places = [r[2:] for r in made]
    assert places[:4] == [(0, 0, 0, 0), (0, 0, 0, 1), (0, 1, 0, 0), (0, 1, 0, 1)]
    assert places == sorted(places)  # what comes at the end is behind everything
    assert len(set(places)) == len(places)


def test_ports_are_structs_in_columns_of_their_own(tmp_path: Path) -> None:
    class Both(sv.Operator):
        output = "v bigint, total bigint"

        def process(self, row: Row, port: int = 0) -> Iterator[Row]:
            yield {"v": row["v"], "total": port}

        def finish(self, port: int = 0) -> Iterator[Row]:
            yield {"v": -1, "total": port}

    kind = pa.struct([("v", pa.int64())])
    given = pa.RecordBatch.from_pydict(
        {
            "__sv_v0": pa.array([{"v": 1}, None, {"v": 3}, None], kind),
            "__sv_v1": pa.array([None, {"v": 2}, None, None], kind),
            PORT: pa.array([0, 1, 0, None], pa.int32()),
            CONTROL: pa.array([0, 0, 0, 1], pa.int32()),
        }
    )
    made = task(tmp_path, Both())
    stage = Stage(
        **{**{f: getattr(made.stages[0], f) for f in made.stages[0].__dataclass_fields__}, "ports": 2}
    )
    made = Task(**{**{f: getattr(made, f) for f in made.__dataclass_fields__}, "stages": (stage,)})
    assert rows(chain_function(made), given) == [(1, 0), (2, 1), (3, 0), (-1, 0), (-1, 1)]
    assert read_header(tmp_path / "e0" / "op0" / "0000.delta").taken == (2, 1)


def failure(folder: Path) -> Failure:
    (file,) = (folder / "e0" / "errors").glob("*.failure")
    found: Failure = pickle.loads(file.read_bytes())
    return found


def test_an_exception_ends_the_task_quietly_and_is_written_down(tmp_path: Path) -> None:
    taken = []

    def given() -> Iterator[pa.RecordBatch]:
        for b in (batch([12, 13, 14]), batch([15])):
            taken.append(b)
            yield b

    function = chain_function(task(tmp_path, Sum(), Double()))
    list(function(given()))
    found = failure(tmp_path)
    assert found.operator == "op1"
    assert found.row is not None
    assert found.row["v"] == 13
    assert "unlucky" in found.error
    assert "samovar/runtime" not in found.traceback
    assert len(taken) == 2  # Spark's input is read to its end
    assert not list((tmp_path / "e0" / "op0").glob("*.delta"))  # a failed attempt leaves no state


def test_a_row_that_does_not_fit_is_a_mismatch_with_its_input(tmp_path: Path) -> None:
    list(chain_function(task(tmp_path, Misfit()))(iter([batch([6, 7, 8])])))
    found = failure(tmp_path)
    assert found.mismatch
    assert found.row == {"v": 7}
    assert "seven" in found.error


def test_a_partition_read_to_its_end_is_marked_when_asked_for(tmp_path: Path) -> None:
    function = chain_function(task(tmp_path, Sum(), signs=True))
    whole = function(iter([batch([1, 2])]))
    next(whole)
    assert not list((tmp_path / "e0").rglob("ran-*"))
    list(whole)
    assert [p.name for p in (tmp_path / "e0").rglob("ran-*")] == ["ran-0"]


def test_maps_are_dicts(tmp_path: Path) -> None:
    class Keys(sv.Operator):
        output = "v bigint, total bigint"

        def process(self, row: Row, port: int = 0) -> Iterator[Row]:
            yield {"v": row["m"].get("a"), "total": len(row["m"])}

    given = pa.RecordBatch.from_pydict({"m": pa.array([{"a": 4, "b": 5}], pa.map_(pa.string(), pa.int64()))})
    assert rows(chain_function(task(tmp_path, Keys())), given) == [(4, 2)]
