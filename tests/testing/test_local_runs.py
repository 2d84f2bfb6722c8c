"""Runs on threads: what operators see is what they see on Spark, and what only Spark can do is refused."""

from __future__ import annotations

import doctest
import gc
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import samovar as sv
from samovar import testing
from samovar.errors import OperatorFailed, RecordingError, RunError, SchemaProblem, UnknownName, WorkflowError
from samovar.testing import local_jobs

Row = Mapping[str, Any]


class Counts(sv.Operator):
    """Counts tuples by key; at its end it gives all counts."""

    output = "k string, n bigint"
    seen = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.seen[row["k"]] = self.seen.get(row["k"], 0) + 1
        yield {"k": row["k"], "n": self.seen[row["k"]]}

    def finish(self, port: int = 0) -> Iterator[Row]:
        for key in sorted(self.seen):
            yield {"k": f"all {key}", "n": self.seen[key]}


def keyed(text: str) -> list[dict[str, str]]:
    return [{"k": letter} for letter in text]


def counted(run: sv.Run) -> list[tuple[str, int]]:
    return [(row["k"], row["n"]) for row in run.result("S").to_pylist()]


def test_an_operator_gets_its_rows_in_order_and_its_end() -> None:
    run = testing.run(Counts(), keyed("aba"))
    assert counted(run) == [("a", 1), ("b", 1), ("a", 2), ("all a", 2), ("all b", 1)]
    assert run.status == "completed"


def test_state_goes_from_epoch_to_epoch() -> None:
    run = testing.run(Counts(), [keyed("ab"), keyed("a"), keyed("")])
    assert len(run.history.epochs) == 3
    assert counted(run) == [("a", 1), ("b", 1), ("a", 2), ("all a", 2), ("all b", 1)]


def test_equal_keys_meet_in_one_instance() -> None:
    letters = "abcdefgh" * 5
    run = testing.run(Counts(), [keyed(letters[:17]), keyed(letters[17:])], by="k", key_partitions=3)
    assert sorted(row for row in counted(run) if row[0].startswith("all")) == [
        (f"all {letter}", 5) for letter in "abcdefgh"
    ]
    assert len(run.inspect("Counts").parts) == 3


def test_rows_can_be_a_table() -> None:
    assert counted(testing.run(Counts(), pa.table({"k": ["a", "a"]})))[-1] == ("all a", 2)


class Merged(sv.Operator):
    output = "x bigint, port bigint"

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        yield {"x": row["x"], "port": port}


def test_ports_come_in_the_order_of_their_sources() -> None:
    flow = sv.Workflow("ports")
    left, right = flow.values("x bigint", [(1,), (2,)], name="l"), flow.values("x bigint", [(3,)], name="r")
    left.apply(Merged(), right, name="M").sink("S")
    rows = testing.run(flow, epoch_bytes=None).result("S").to_pylist()
    assert [(row["x"], row["port"]) for row in rows] == [(1, 0), (2, 0), (3, 1)]


class Passes(sv.Operator):
    output = "*"
    stateless = True

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        yield row


def test_a_stateless_operator_works_in_parts_whose_rows_come_back_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_jobs, "BATCH", 2)
    flow = sv.Workflow("parts")
    flow.values("x bigint", [(x,) for x in range(10)], name="v").apply(Passes(), name="P").apply(
        Merged(), name="M"
    ).sink("S")
    assert testing.run(flow, workers=3).result("S").to_pydict()["x"] == list(range(10))


def test_branches_of_a_source_meet_again_in_its_order() -> None:
    flow = sv.Workflow("branches")
    rows = flow.values("x bigint, y bigint", [(x, -x) for x in range(3)], name="v")
    both = rows.drop("y", name="D").union(rows.apply(Passes(), name="P").drop("x", name="E"), name="U")
    both.apply(Merged(), name="M").sink("S")
    assert testing.run(flow).result("S").to_pydict()["x"] == [0, 0, 1, -1, 2, -2]


class Typed(sv.Operator):
    output = (
        "d decimal(10,2), l array<int>, m map<string,bigint>, s struct<a:int,b:string>, t timestamp, u date"
    )

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        yield row


def test_types_come_through_as_they_are() -> None:
    import datetime
    from decimal import Decimal

    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    row = {
        "d": Decimal("1.25"),
        "l": [1, None],
        "m": {"a": 1},
        "s": {"a": 1, "b": "c"},
        "t": noon,
        "u": noon.date(),
    }
    flow = sv.Workflow("types")
    flow.values(Typed.output, [row], name="v").apply(Typed(), name="T").sink("S")
    (found,) = testing.run(flow).result("S").to_pylist(maps_as_pydicts="strict")
    assert found == row


def test_rows_take_the_place_of_what_a_source_reads() -> None:
    flow = sv.Workflow("replaced")
    flow.read.json("nowhere/", name="orders").apply(Counts(), name="C").sink("S")
    assert counted(testing.run(flow, {"orders": keyed("a")})) == [("a", 1), ("all a", 1)]
    with pytest.raises(WorkflowError, match="Expected rows for source 'orders', got none"):
        testing.run(flow)
    with pytest.raises(UnknownName, match="Expected a source of the workflow, got 'order'"):
        testing.run(flow, {"order": keyed("a")})


class Prints(sv.Operator):
    output = "k string"

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        print(f"saw {row['k']}")  # noqa: T201
        yield row


def test_tasks_at_work_together_print_apart(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    run = testing.run(Prints(), [keyed("abcdefgh"), keyed("ijkl")], by="k")
    assert sys.stdout is before
    assert sorted(line.text for line in run.console) == [f"saw {letter}" for letter in "abcdefghijkl"]
    assert {line.operator for line in run.console} == {"Prints"}
    assert capsys.readouterr().out.count("saw") == 12


class Draws(sv.Operator):
    """Keeps results of calls, while other tasks do the same."""

    output = "k string, n bigint"

    def __init__(self) -> None:
        self.n = 0

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.n += 1
        yield {"k": row["k"], "n": sv.log_result(lambda: self.n)}


def test_results_of_calls_are_kept_by_the_task_that_made_them(tmp_path: Path) -> None:
    from samovar.record.state_files import read_state

    run = testing.run(Draws(), keyed("abcdefgh" * 50), by="k", record=tmp_path, workers=4)
    files = sorted(tmp_path.glob("*/epochs/*/state/Draws/*.delta"))
    assert len(files) == 4
    for file in files:
        kept = read_state(file)[1]["results"]
        assert kept == list(range(1, len(kept) + 1))
    assert sum(len(read_state(file)[1]["results"]) for file in files) == run.result("S").num_rows


class Fails(sv.Operator):
    output = "k string"

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        if row["k"] == "x":
            raise ValueError("no x")
        yield row


def test_a_failure_names_operator_tuple_and_epoch() -> None:
    with pytest.raises(OperatorFailed, match="no x") as failed:
        testing.run(Fails(), [keyed("ab"), keyed("cx")])
    assert (failed.value.operator, failed.value.row, failed.value.epoch) == ("Fails", {"k": "x"}, 1)


@pytest.mark.parametrize(
    "build", [lambda f: f.filter("x > 1"), lambda f: f.selectExpr("x"), lambda f: f.distinct()]
)
def test_what_only_spark_computes_is_refused(build: Any) -> None:
    flow = sv.Workflow("native")
    build(flow.values("x bigint", [(1,)], name="v")).sink("S")
    with pytest.raises(WorkflowError, match="in a local run, got a") as refused:
        testing.start(flow)
    assert "flow.start(spark=...)" in str(refused.value.hint)
    assert refused.value.operator not in ("v", "S", None)


def test_a_key_that_is_computed_is_refused() -> None:
    with pytest.raises(WorkflowError, match="by='k \\|\\| k', which is no column"):
        testing.start(Counts(), keyed("a"), by="k || k")


class Odd(Passes):
    output = "x geometry(4326)"


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(SchemaProblem, match=r"got 'geometry\(4326\)'"):
        testing.start(Odd(), keyed("a"))


def test_a_local_recording_does_not_open_the_past(tmp_path: Path) -> None:
    run = testing.run(Counts(), keyed("ab"), record=tmp_path)
    past = sv.open(str(run.recording), spark=object())
    assert past.result("S").num_rows == 4
    with pytest.raises(RecordingError, match="got one of a local run"):
        past.jump("Counts", tuples=1)
    with pytest.raises(RunError, match="Expected a Spark session for `read`"):
        run.dataframe("S")


def test_a_run_without_a_recording_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMOVAR_SCRATCH", str(tmp_path))
    run = testing.run(Counts(), keyed("ab"))
    assert run.result("S").num_rows == 4
    del run
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_the_examples_in_its_docstrings_run() -> None:
    tried = doctest.testmod(testing, extraglobs={"sv": sv})
    assert tried.attempted > 5
    assert not tried.failed


def test_importing_it_imports_no_pyspark() -> None:
    code = "import sys, samovar.testing; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_java_is_started() -> None:
    """With a Java that does not exist a run on threads works all the same."""
    code = (
        "import samovar as sv\nfrom samovar import testing\n"
        "class P(sv.Operator):\n"
        "    output = 'n bigint'\n"
        "    def process(self, row, port=0):\n"
        "        yield row\n"
        "assert testing.run(P(), [{'n': 1}]).result('S').num_rows == 1\n"
        "from pyspark import SparkContext\n"
        "assert SparkContext._gateway is None\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
