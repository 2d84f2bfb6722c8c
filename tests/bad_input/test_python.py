"""Python operators that raise, or give rows that do not fit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.bad_input.support import checked, flow_of, payments, refused

import samovar as sv
from samovar import testing
from samovar.errors import OperatorFailed, OutputMismatch, WorkflowError

OUTPUT = "id long, customer string, amount double"


def on_both(cases: Iterable[Any], kept: Container[Any], *, spark_only: Container[Any] = ()) -> list[Any]:
    """The cases on threads of this process and on Spark: there those in `kept`, and all of them with `--slow`."""
    slow = [pytest.mark.starts_spark, pytest.mark.slow]
    return [
        *(
            pytest.param("threads", case, id=f"{_name(case)} on threads")
            for case in cases
            if case not in spark_only
        ),
        *(
            pytest.param("spark", case, id=_name(case), marks=slow[: 1 if case in kept else 2])
            for case in cases
        ),
    ]


def _name(case: Any) -> str:
    return case if isinstance(case, str) else ", ".join(case)


Refuse = Callable[..., Any]


@pytest.fixture
def refused_on(request: pytest.FixtureRequest, tmp_path: Path) -> Refuse:
    """The error with which a workflow ends, on "threads" or on "spark"."""

    def refuse(where: str, flow: sv.Workflow, kind: type[Any]) -> Any:
        if where == "spark":
            return refused(flow, tmp_path, kind, spark=request.getfixturevalue("spark"))
        with pytest.raises(kind) as caught:
            testing.run(flow, record=tmp_path / "runs")
        return checked(caught.value, tmp_path / "runs")

    return refuse


class Copy(sv.Operator):
    output = OUTPUT

    def process(self, row, port=0):
        yield row


class Gives(sv.Operator):
    """Gives what it is told to for payment 7, and the row itself for all others."""

    output = OUTPUT

    def __init__(self, what: Any) -> None:
        self.what = what

    def process(self, row, port=0):
        yield self.what if row["id"] == 7 else row


def gives(what: Any, output: str = OUTPUT) -> sv.Operator:
    return type("Gives", (Gives,), {"output": output})(what)


ROW = {"id": 7, "customer": "c1", "amount": 7.0}
MISFITS = {
    "a key missing": (gives({"id": 7, "amount": 7.0}), "missing: customer"),
    "a wrong type": (gives({**ROW, "amount": "much"}), "expected double in 'amount', got str 'much'"),
    "a number for a text": (gives({**ROW, "customer": 5}), "expected string in 'customer', got int 5"),
    "None in NOT NULL": (
        gives({**ROW, "amount": None}, "id long, amount double NOT NULL"),
        "expected double not null in 'amount', got None",
    ),
    "a number too large": (gives({**ROW, "id": 2**40}, "id int, customer string"), "got int 1099511627776"),
    "a fraction for a whole number": (gives({**ROW, "id": 7.5}, "id int, customer string"), "got float 7.5"),
    "no mapping": (gives(5), "got int 5"),
    "no mapping, one column": (gives((1,), "id long"), "got tuple (1,)"),
    "a text": (gives("seven"), "got str 'seven'"),
}
NESTED = {
    "a field": ("struct<a:int>", {"a": "x"}, "'n.a' is 'x', not int"),
    "an item": ("array<int>", [1, "x"], "item 1 is 'x', not int"),
    "no struct": ("struct<a:int>", 3, "expected struct<a:int> in 'n', got int 3"),
}


FUSED = ("alone", "first of a chain")
SPARK_ONLY = [("None in NOT NULL", fused) for fused in FUSED]  # `samovar.testing` takes None there
MISFITS_ON_SPARK = [
    *SPARK_ONLY,
    ("a key missing", "alone"),
    ("a wrong type", "first of a chain"),
    ("a number too large", "first of a chain"),
]


@pytest.mark.parametrize(
    ("where", "case"),
    on_both([(m, f) for m in MISFITS for f in FUSED], MISFITS_ON_SPARK, spark_only=SPARK_ONLY),
)
def test_a_row_that_does_not_fit_is_shown_with_the_operator_and_the_tuple(
    refused_on: Refuse, tmp_path: Path, where: str, case: tuple[str, str]
) -> None:
    kind, fused = case
    operator, said = MISFITS[kind]
    flow, src = flow_of(payments(tmp_path / "payments"))
    made = src.apply(operator, name="X")
    if fused == "first of a chain":
        after = type("Copy", (Copy,), {"output": type(operator).output})
        made = made.apply(after(), name="Y").apply(after(), name="Z")
    made.sink("S")
    error = refused_on(where, flow, OutputMismatch)
    # a chain looks at types; the value is found where it ends
    if case != ("a number too large", "first of a chain"):
        assert error.operator == "X"
    assert said in error.message
    assert error.row["id"] == 7
    assert error.hint


class GivesNested(Gives):
    def process(self, row, port=0):
        yield {"id": row["id"], "n": self.what if row["id"] == 7 else None}


@pytest.mark.parametrize(("where", "case"), on_both(NESTED, ["an item"]))
def test_a_nested_value_that_does_not_fit_is_shown_with_its_place(
    refused_on: Refuse, tmp_path: Path, where: str, case: str
) -> None:
    of, value, said = NESTED[case]
    flow, src = flow_of(payments(tmp_path / "payments"))
    operator = type("Gives", (GivesNested,), {"output": f"id long, n {of}"})(value)
    src.apply(operator, name="X").sink("S")
    error = refused_on(where, flow, OutputMismatch)
    assert (error.operator, error.row["id"]) == ("X", 7)
    assert said in error.message


def test_a_row_that_fits_only_after_spark_made_it_fit_goes_on_the_same_in_a_chain(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Whole(sv.Operator):
        output = "id long, amount double, at timestamp, price decimal(10,2), tags map<string,int>"

        def process(self, row, port=0):
            import datetime
            import decimal

            yield {
                "id": row["id"],
                "amount": int(row["amount"]),
                "at": datetime.datetime(2024, 1, 1),
                "price": decimal.Decimal("1.5"),
                "tags": {"a": 1},
            }

    class Shown(sv.Operator):
        output = "text string"

        def process(self, row, port=0):
            yield {"text": repr(sorted(row.items()))}

    flow, src = flow_of(payments(tmp_path / "payments"))
    src.apply(Whole(), name="W").apply(Shown(), name="T").sink("chain")
    apart = src.apply(Whole(), name="W2").filter("id >= 0", name="between")
    apart.apply(Shown(), name="T2").sink("apart")
    run = flow.run(spark=spark, record=False, progress=False)
    chain, apart_rows = (sorted(run.result(s)["text"].to_pylist()) for s in ("chain", "apart"))
    assert len(chain) == 12
    assert chain == apart_rows


class Shares(sv.Operator):
    output = OUTPUT
    stateless = True

    def process(self, row, port=0):
        yield {**row, "amount": self.share(row)}

    def share(self, row):
        limit = 7
        return 10 / (row["id"] - limit)


class Raises(Shares):
    stateless = False
    seen = sv.ValueState(0)

    def process(self, row, port=0):
        self.seen += 1
        yield from super().process(row, port)


@pytest.mark.parametrize(
    ("where", "case"),
    on_both(["alone", "keyed", "in a chain", "without state"], ["in a chain", "without state"]),
)
def test_an_operator_that_raises_is_shown_with_tuple_and_its_own_lines(
    refused_on: Refuse, tmp_path: Path, where: str, case: str
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    if case == "in a chain":
        src.apply(Copy(), name="A").apply(Raises(), name="X").apply(Copy(), name="Z").sink("S")
    elif case == "without state":
        src.apply(Shares(), name="X").sink("S")
    else:
        src.apply(Raises(), by="customer" if case == "keyed" else None, name="X").sink("S")
    error = refused_on(where, flow, OperatorFailed)
    assert error.operator == "X"
    assert error.error == "ZeroDivisionError: division by zero"
    assert error.row["id"] == 7
    assert 'return 10 / (row["id"] - limit)' in error.traceback
    assert "with limit = 7" in error.traceback
    assert "worker.py" not in error.traceback


class AtTheEnd(sv.Operator):
    output = OUTPUT

    def process(self, row, port=0):
        return ()

    def finish(self, port=0):
        raise RuntimeError("nothing came")


class InABatch(sv.Operator):
    output = OUTPUT

    def process_batch(self, batch, port=0):
        if 7 in batch.column("id").to_pylist():
            raise ValueError("seven")
        yield batch


class LeavesOut(sv.Operator):
    output = OUTPUT

    def process_batch(self, batch, port=0):
        yield batch.select(["id"])


class NoBatch(sv.Operator):
    output = OUTPUT

    def process_batch(self, batch, port=0):
        yield {"id": 1}


class TooLarge(sv.Operator):
    output = "id int"

    def process_batch(self, batch, port=0):
        yield pa.record_batch({"id": pa.array([2**40])})


class Ends(sv.Operator):
    output = OUTPUT

    def process(self, row, port=0):
        raise SystemExit(3)


class Returns(sv.Operator):
    output = OUTPUT

    def process(self, row, port=0):
        return row


class ReturnsMade(sv.Operator):
    output = "total double"

    def process(self, row, port=0):
        made = {"total": row["amount"]}
        return made  # noqa: RET504


class ReturnsNumber(sv.Operator):
    output = OUTPUT

    def process(self, row, port=0):
        return 5


WRONG: dict[str, tuple[sv.Operator, type[OperatorFailed], str]] = {
    type(operator).__name__: (operator, kind, said)
    for operator, kind, said in [
        (AtTheEnd(), OperatorFailed, "RuntimeError: nothing came\nwhile it processed the end of its input"),
        (InABatch(), OperatorFailed, "ValueError: seven\nwhile it processed a batch of"),
        (LeavesOut(), OutputMismatch, "expected columns id, customer, amount, got id"),
        (NoBatch(), OutputMismatch, "got dict {'id': 1}"),
        (TooLarge(), OutputMismatch, "expected int in 'id', got int64"),
        (Ends(), OperatorFailed, "SystemExit: 3"),
        (Returns(), OutputMismatch, "got str 'id'"),
        (ReturnsMade(), OutputMismatch, "got str 'total'"),
        (ReturnsNumber(), OutputMismatch, "got int 5"),
    ]
}


@pytest.mark.parametrize(("where", "case"), on_both(WRONG, ["AtTheEnd", "InABatch", "TooLarge", "Ends"]))
def test_wherever_an_operator_goes_wrong_it_is_named(
    refused_on: Refuse, tmp_path: Path, where: str, case: str
) -> None:
    operator, kind, said = WRONG[case]
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.apply(operator, name="X").sink("S")
    error = refused_on(where, flow, kind)
    assert type(error) is kind
    assert error.operator == "X"
    assert said in error.message
    assert error.hint
    if isinstance(operator, Returns | ReturnsMade):
        assert "`yield row`" in error.hint


def pandas_raises(frames):
    for frame in frames:
        yield frame["nope"]


def pandas_misfits(frames):
    for frame in frames:
        yield frame[["customer"]].rename(columns={"customer": "id"})


def arrow_raises(batches):
    for batch in batches:
        raise LookupError(str(batch.num_rows))
        yield batch


def arrow_misfits(batches):
    for batch in batches:
        yield batch.select(["customer"])


def arrow_numbers(batches):
    for _ in batches:
        yield 5


@pytest.mark.parametrize(
    ("form", "function", "kind", "said"),
    [
        ("mapInPandas", pandas_raises, OperatorFailed, "KeyError: 'nope'"),
        ("mapInPandas", pandas_misfits, OutputMismatch, "'id'"),
        ("mapInArrow", arrow_raises, OperatorFailed, "LookupError"),
        ("mapInArrow", arrow_misfits, OutputMismatch, "expected bigint as column 1 ('id'), got string"),
        ("mapInArrow", arrow_numbers, OutputMismatch, "got int 5"),
    ],
)
def test_a_function_over_batches_that_goes_wrong_is_named(
    spark: SparkSession, tmp_path: Path, form: str, function: Any, kind: type[OperatorFailed], said: str
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    getattr(src, form)(function, "id long", name="X").sink("S")
    error = refused(flow, tmp_path, kind, spark=spark)
    assert type(error) is kind
    assert error.operator == "X"
    assert said in error.message


class HoldsLock(sv.Operator):
    output = OUTPUT

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def process(self, row, port=0):
        yield row


class MakesLock(sv.Operator):
    output = OUTPUT

    def process(self, row, port=0):
        self.handle = threading.Lock()
        yield row


class MapsLocks(sv.Operator):
    output = OUTPUT
    locks = sv.MapState()

    def process(self, row, port=0):
        self.locks[row["id"]] = threading.Lock()
        yield row


LOCKED: dict[str, tuple[sv.Operator, type[WorkflowError]]] = {
    "lock": (HoldsLock(), WorkflowError),
    "handle": (MakesLock(), OperatorFailed),
    "locks": (MapsLocks(), OperatorFailed),
}


@pytest.mark.parametrize(("where", "case"), on_both(LOCKED, ["lock", "locks"]))
def test_state_that_cannot_be_pickled_is_named(
    refused_on: Refuse, tmp_path: Path, where: str, case: str
) -> None:
    operator, kind = LOCKED[case]
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.apply(operator, name="X").sink("S")
    error = refused_on(where, flow, kind)
    assert error.operator == "X"
    assert f"'{case}'" in error.message
    assert "cannot be pickled" in error.message


DOCUMENT = """
samovar: 1
name: shop
operators:
  - {{name: src, op: read, format: parquet, path: [{path}]}}
  - name: X
    op: python
    inputs: [src]
    class: Share
    params: {{of: 0}}
    code: |
      import samovar as sv
      class Share(sv.Operator):
          output = "id long"
          def __init__(self, of):
              self.of = {made}
          def process(self, row, port=0):
              yield {{"id": row["id"] // self.of}}
  - {{name: S, op: sink, inputs: [X]}}
"""


def test_a_documents_code_that_raises_is_shown_with_its_lines(spark: SparkSession, tmp_path: Path) -> None:
    path = payments(tmp_path / "payments")
    flow = sv.Workflow.from_document(DOCUMENT.format(path=path, made="of"))
    error = refused(flow, tmp_path, OperatorFailed, spark=spark)
    assert (error.operator, error.row["id"]) == ("X", 0)
    assert 'yield {"id": row["id"] // self.of}' in error.traceback
    flow = sv.Workflow.from_document(DOCUMENT.format(path=path, made="1 // of"))
    error = refused(flow, tmp_path, WorkflowError, spark=spark)
    assert error.operator == "X"
    assert "self.of = 1 // of" in error.message


def test_a_failed_run_keeps_its_epochs_and_goes_on_with_mended_code(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = payments(tmp_path / "payments", files=3)

    def build(operator: sv.Operator) -> sv.Workflow:
        flow, src = flow_of(path)
        src.apply(operator, name="X").sink("S")
        return flow

    error = refused(build(Raises()), tmp_path, OperatorFailed, spark=spark, epoch_bytes=1)
    assert error.epoch == 1  # payment 7 is in the second of three files
    assert "epoch 0" in str(error.hint)
    (run,) = (tmp_path / "runs").iterdir()
    past = sv.open(run)
    assert "ZeroDivisionError" in str(past.history.ended and past.history.ended.error)

    class Mended(Raises):
        def share(self, row):
            return 1.0

    mended = build(Mended())
    done = past.resume(spark, flow=mended).wait(progress=False)
    assert sorted(done.result("S")["id"].to_pylist()) == list(range(12))
