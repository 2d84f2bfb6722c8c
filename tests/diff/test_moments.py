"""From a difference between recordings to the moment it was made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import samovar as sv
from samovar.diff import compare
from samovar.diff.comparison_errors import SideProblem

PAYMENTS = [("Bob", float(n)) if n % 3 else ("Ann", float(n)) for n in range(1, 31)]


class Best(sv.Operator):
    """The highest amount so far goes with each payment."""

    output = "customer string, amount double, highest double"
    highest = sv.MapState()

    def process(self, row: Any, port: int = 0) -> Iterator[Any]:
        best = max(row["amount"], self.highest.get(row["customer"], 0.0))
        self.highest[row["customer"]] = best
        yield {**row, "highest": best}


class Wrong(Best):
    """The same, but for one payment."""

    output = Best.output
    highest = sv.MapState()

    def process(self, row: Any, port: int = 0) -> Iterator[Any]:
        best = max(row["amount"], self.highest.get(row["customer"], 0.0))
        self.highest[row["customer"]] = best
        yield {**row, "highest": best if row["amount"] != 17.0 else 0.0}


def recorded(spark: Any, folder: Path, operator: sv.Operator) -> Any:
    flow = sv.Workflow("payments")
    paid = flow.values("customer string, amount double", PAYMENTS, name="paid")
    best = paid.apply(operator, name="best").withColumn("cents", "highest * 100", name="cents")
    best.filter("amount > 2", name="large").sink("S")
    run = flow.run(spark=spark, record=folder, progress=False)
    return sv.open(run.recording, spark=spark)


@pytest.fixture(scope="module")
def best(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return recorded(spark, tmp_path_factory.mktemp("runs"), Best())


def test_the_moment_is_the_tuple_where_two_recordings_part(spark: Any, best: Any, tmp_path: Path) -> None:
    verdict = compare(best, recorded(spark, tmp_path, Wrong()))
    assert (verdict.count("left"), verdict.count("right")) == (1, 1)
    assert verdict.row("left")["amount"] == 17.0
    for side in ("left", "right"):
        moment = verdict.moment(side)
        waiting = moment.pending("best")[0]
        assert waiting.row == {"customer": "Bob", "amount": 17.0}
        assert moment.counters["best"].taken == (16,)
        scope = moment.scope(waiting)
        assert {t.operator for t in scope} >= {"best"}


@pytest.mark.slow
def test_behind_an_aggregate_the_moment_is_what_went_into_the_group(spark: Any, tmp_path: Path) -> None:
    sides = []
    for operator in (Best(), Wrong()):
        flow = sv.Workflow("totals")
        paid = flow.values("customer string, amount double", PAYMENTS, name="paid")
        best = paid.apply(operator, name="best")
        best.groupBy("customer").agg("sum(highest) AS total").sink("S")
        run = flow.run(spark=spark, record=tmp_path, progress=False)
        sides.append(sv.open(run.recording, spark=spark))
    verdict = compare(*sides)
    assert verdict.row("right")["customer"] == "Bob"
    moment = verdict.moment("right")
    assert moment.pending("best")[0].row == {"customer": "Bob", "amount": 17.0}


def test_a_recording_against_a_table_leads_to_what_gave_the_row(spark: Any, best: Any) -> None:
    past = best
    table = past.result("S").to_pylist()
    wrong = [row if row["amount"] != 17.0 else dict(row, cents=1.0) for row in table]
    verdict = compare(past, spark.createDataFrame(wrong, spark.createDataFrame(past.result("S")).schema))
    moment = verdict.moment("left")
    assert moment.pending("large")[0].row["amount"] == 17.0
    by_path = compare(past.path, verdict.origins["right"].df, spark=spark).moment("left")
    assert by_path.pending("large")[0].row == moment.pending("large")[0].row
    with pytest.raises(SideProblem, match="Expected a recording on the right side"):
        verdict.moment("right")


def test_without_a_difference_there_is_no_moment(best: Any) -> None:
    with pytest.raises(SideProblem, match="Expected a row without a partner"):
        compare(best, best).moment("left")


def test_just_before_a_tuple_that_why_tells_of(best: Any) -> None:
    taken = next(t for t in best.why("S", {"amount": 17.0}) if t.operator == "paid")
    moment = best.before("best", epoch=taken.epoch, position=taken.position)
    assert moment.pending("best")[0].row == {"customer": "Bob", "amount": 17.0}
    assert moment.state("best")["highest"]["Bob"] == 16.0
    with pytest.raises(sv.errors.UnknownName, match="Did you mean 'best'"):
        best.before("bets", epoch=taken.epoch, position=taken.position)
    with pytest.raises(
        sv.errors.TimeTravelError, match="Expected an epoch in which 'best' took tuples, got 99"
    ):
        best.before("best", epoch=99, position=taken.position)
