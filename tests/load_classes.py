"""A process of its own that has Spark load the classes that tests need: `python -m tests.load_classes ARCHIVE`.

Its Java writes them to the file named when it ends (see `class_archive`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.class_archive import OPTIONS
from tests.spark_profile import TEST_PROFILE

import samovar as sv
from samovar.runtime.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Count(sv.Operator):
    """Counts the rows of each key."""

    output = "k bigint, n bigint"
    seen = sv.MapState()  # type: ignore[var-annotated]

    def process(self, row: dict[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        """One row out for one row in."""
        self.seen[row["k"]] = n = self.seen.get(row["k"], 0) + 1
        yield {"k": row["k"], "n": n}


def work(spark: SparkSession, folder: str) -> None:
    """A little of everything: files, joins, aggregates, Python, windows, a recording and time travel in it."""
    rows = spark.range(0, 40, 1, 2).selectExpr("id", "id % 3 AS k", "id / 2 AS x", "string(id) AS s")
    for form in ("parquet", "csv", "json"):
        rows.write.format(form).save(f"{folder}/{form}")
    flow = sv.Workflow("classes")
    paid = flow.read.parquet(f"{folder}/parquet", name="paid")
    text = flow.read.schema("id bigint, k bigint, x double, s string").csv(f"{folder}/csv", name="text")
    counted = paid.filter("id > 3").apply(Count(), by="k", name="count")
    counted.join(text, on="k", how="left", build="right").groupBy("k").agg("sum(n) AS n").sink("joined")
    text.union(paid).distinct().orderBy("id").limit(7).withColumn("u", "upper(s)").sink("sorted")
    flow.run(spark=spark, record=folder, run_id="classes", epoch_bytes=1, progress=False)
    past = sv.open(f"{folder}/classes", spark=spark)
    past.jump("count", tuples=5).state("count")
    past.close()
    rows.createOrReplaceTempView("classes")
    ranked = spark.sql("SELECT k, s, row_number() OVER (PARTITION BY k ORDER BY x) AS r FROM classes")
    ranked.join(spark.read.json(f"{folder}/json").select("k", "x"), "k").selectExpr(
        "explode(array(r, k))"
    ).toArrow()


def main(archive: str) -> None:
    """Start, work, and wait for the end of Java."""
    from pyspark import SparkContext

    key = "spark.driver.extraJavaOptions"
    options = TEST_PROFILE[key].replace(OPTIONS, "") if OPTIONS else TEST_PROFILE[key]
    options += f" -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    spark = spark_session(master="local[2]", conf={**TEST_PROFILE, key: options})
    with tempfile.TemporaryDirectory() as folder:
        work(spark, folder)
    spark.stop()
    java = SparkContext._gateway.proc  # type: ignore[union-attr]
    java.stdin.close()  # Java ends with the pipe it reads from
    java.wait()


if __name__ == "__main__":
    main(sys.argv[1])
