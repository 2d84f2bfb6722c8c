"""Programs under many settings: those that lean on an order are found, the others are left in peace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from samovar.diff import equality, keyed, ordered, plain, rows, shake
from samovar.diff.comparison_errors import ProgramProblem
from samovar.diff.programs.shake_settings import Setting, applied, can_retry, dealt, plan

RETRIED = """
import sys
import pandas as pd
import samovar as sv

def stateful(frames):
    import builtins
    for frame in frames:
        seen = getattr(builtins, "rows_seen", 0)
        builtins.rows_seen = seen + len(frame)
        yield pd.DataFrame({"k": frame["k"], "seen": seen > 0})

spark = sv.spark_session(master="local[1,4]", conf={"spark.ui.enabled": False})
items = [{"k": n} for n in range(4)]
found = sv.diff.shake(lambda df: df.filter("k > 1"), items, runs=6, spark=spark)
assert found, found.explain()
assert any(setting.retry for setting in found.tried), found.tried
assert "Not tried" not in found.explain()
found = sv.diff.shake(lambda df: df.mapInPandas(stateful, "k bigint, seen boolean"), items, runs=6, spark=spark)
assert not found
print("done")
"""
ITEMS = [{"k": i % 3, "v": i} for i in range(30)]


def partitions(df: Any) -> int:
    """How many partitions hold rows."""
    return int(df.select(F.spark_partition_id()).distinct().count())


@pytest.mark.slow
def test_tasks_are_done_again_where_spark_does_so(tmp_path: Path) -> None:
    script = tmp_path / "retried.py"
    script.write_text(RETRIED)
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, timeout=200
    )
    assert run.stdout.strip().endswith("done"), run.stderr[-3000:]


def test_a_program_without_regard_to_order_passes(spark: Any) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    found = shake(lambda df: df.groupBy("k").agg(F.sum("v")), ITEMS, runs=9, spark=spark)
    assert found, found.explain()
    assert found.executions == 9
    assert "Not tried: tasks done again" in found.explain()
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_the_first_row_of_a_group_depends_on_the_order(spark: Any) -> None:
    found = shake(lambda df: df.groupBy("k").agg(F.first("v").alias("v")), ITEMS, spark=spark)
    assert not found
    assert found.executions <= 3
    assert found.pair is not None
    assert found.pair[0].changed(found.pair[1]) == ["order"]
    text = found.explain()
    assert "left:  input reversed" in text
    assert "right: input as given" in text


def test_a_program_that_is_not_deterministic_at_all(spark: Any) -> None:
    found = shake(lambda df: df.select("k", F.uuid().alias("id")), ITEMS[:2], spark=spark)
    assert not found
    assert found.verdict is not None


def test_numbers_of_partitions_seep_into_results(spark: Any) -> None:
    def leaky(df: Any) -> Any:
        return df.groupBy(F.spark_partition_id().alias("p")).count()

    found = shake(leaky, ITEMS, spark=spark)
    assert found.pair is not None
    assert found.pair[0].changed(found.pair[1]) == ["partitions"]


def test_sizes_of_batches_seep_into_results(spark: Any) -> None:
    def by_batch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"k": [batch.num_rows]})

    found = shake(lambda df: df.select("k").mapInArrow(by_batch, "k bigint"), ITEMS[:4], spark=spark)
    assert found.pair is not None
    assert found.pair[0].changed(found.pair[1]) in (["partitions"], ["batch_rows"])


def test_many_changes_are_brought_down_to_those_that_matter(spark: Any) -> None:
    def only_with_both(df: Any) -> Any:
        many = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions")) > 1
        return df.withColumn("odd", F.lit(many and partitions(df) > 1))

    found = shake(only_with_both, ITEMS, spark=spark)
    assert found.pair is not None
    assert found.pair[0].changed(found.pair[1]) == ["partitions", "shuffle_partitions"]
    assert found.executions <= 20


def test_rows_that_arrive_in_order_stay_in_order(spark: Any) -> None:
    table = spark.createDataFrame(ITEMS).toArrow()
    for setting in plan(8, 0, retries=False):
        with applied(setting, spark):
            df = dealt(table, setting, keyed("k"), spark)
            assert partitions(df) == min(3, setting.partitions)
            placed = df.select("k", "v", F.spark_partition_id().alias("p")).collect()
        for k in range(3):
            mine = [r for r in placed if r["k"] == k]
            assert [r["v"] for r in mine] == sorted(r["v"] for r in mine)
            assert len({r["p"] for r in mine}) == 1
        assert len(placed) == 30
    assert dealt(table, Setting(partitions=3), ordered, spark).count() == 30


def test_a_dependence_by_a_function_keeps_rows_together(spark: Any) -> None:
    table = spark.createDataFrame(ITEMS).toArrow()
    from samovar.diff.dependence import as_dependence

    together = as_dependence(lambda a, b: a["k"] == b["k"])
    rows_seen = dealt(table, Setting(partitions=2, order="reversed"), together, spark).collect()
    assert [r["v"] for r in rows_seen if r["k"] == 1] == list(range(1, 30, 3))


def test_one_side_that_raises_is_a_difference(spark: Any) -> None:
    def fragile(df: Any) -> Any:
        if partitions(df) > 1:
            raise ValueError("too many partitions")
        return df

    found = shake(fragile, ITEMS[:3], spark=spark)
    assert not found
    assert "ValueError: too many partitions" in found.explain()


def test_a_program_that_always_raises_cannot_be_shaken(spark: Any) -> None:
    with pytest.raises(ProgramProblem, match=r"raised in all of 3 executions: AnalysisException: .*nope"):
        shake(lambda df: df.select("nope"), ITEMS[:3], runs=3, spark=spark)


def test_what_counts_as_equal_is_asked_for(spark: Any) -> None:
    first = shake(
        lambda df: df.groupBy("k").agg(F.first("v").alias("v")),
        ITEMS,
        equal=equality(columns=["k"]),
        runs=6,
        spark=spark,
    )
    assert first, first.explain()


def test_cuts_into_micro_batches_seep_into_results_of_streams(spark: Any) -> None:
    def within_the_batch(df: Any) -> Any:
        return df.withColumn("v", F.col("v") * 2).mapInArrow(sizes, "k bigint, v bigint")

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values = [v for batch in batches for v in batch.column("v").to_pylist()]
        yield pa.record_batch({"k": [len(values)], "v": [sum(values)]})

    found = shake(within_the_batch, ITEMS, stream="append", spark=spark)
    assert found.pair is not None
    assert found.pair[0].changed(found.pair[1]) == ["cuts"]
    assert "3 micro-batches" in found.explain()
    calm = shake(lambda df: df.filter("v > 3"), ITEMS, stream="append", runs=3, spark=spark)
    assert calm, calm.explain()
    totals = shake(lambda df: df.groupBy("k").agg(F.sum("v")), ITEMS, stream="complete", runs=2, spark=spark)
    assert totals, totals.explain()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stream": "all"}, "Expected stream='append'"),
        ({"program": plain(lambda items: items)}, "Expected a program that Spark runs"),
        ({"inputs": None}, "Expected inputs"),
        ({"inputs": rows("k int")}, "got a strategy"),
        ({"runs": 1}, "Expected at least two runs"),
    ],
)
def test_wrong_arguments(spark: Any, arguments: dict[str, Any], message: str) -> None:
    given = {"program": lambda df: df, "inputs": ITEMS, **arguments}
    with pytest.raises(ProgramProblem, match=message):
        shake(given.pop("program"), given.pop("inputs"), spark=spark, **given)


def test_whether_tasks_are_done_again_is_read_off_the_master() -> None:
    class Fake:
        def __init__(self, master: str) -> None:
            self.sparkContext = self
            self.master = master

        def getConf(self) -> dict[str, str]:
            return {}

    answers = {"local": False, "local[2]": False, "local[*,4]": True, "spark://host:7077": True}
    assert {m: can_retry(Fake(m)) for m in answers} == answers  # type: ignore[arg-type]
