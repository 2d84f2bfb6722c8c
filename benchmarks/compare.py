"""``scripts/bench compare``: two shuffled tables of a million rows, compared by Samovar and by what else there is.

Each tool answers whether the tables are equal: where they are, where a single cell of a single row differs, and where
one row in a hundred does. Rounds are interleaved, so that what else the machine does falls on all tools alike. `driver`
is what the Python process of the driver grew by while a tool worked; tables that are collected land there. Tools that
are not installed are left out: ``pip install 'samovar[bench]'`` brings them.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import io
import json
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.session import machine, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CASES", "TOOLS", "Measured", "main", "measure", "write_tables"]

_MIB = 1024 * 1024


@dataclass(frozen=True)
class Measured:
    """One answer of a tool."""

    tool: str
    case: str
    seconds: float
    driver_mib: float
    right: bool
    """Whether the answer was the right one."""


def write_tables(spark: SparkSession, folder: Path, rows: int) -> dict[str, Path]:
    """Left, right (the same rows in another order), changed (right with one other cell) and many, as Parquet."""
    from pyspark.sql import functions as F

    left = spark.range(0, rows, 1, 4).select(
        "id",
        (F.hash("id") % 1000).alias("group"),
        F.concat(F.lit("customer "), (F.col("id") * 7919 % 100_003).cast("string")).alias("name"),
        (F.rand(7) * 1000).alias("amount"),
    )
    paths = {name: folder / name for name in ("left", "right", "changed", "many")}
    left.write.mode("overwrite").parquet(str(paths["left"]))
    right = spark.read.parquet(str(paths["left"])).orderBy(F.rand(11))
    right.write.mode("overwrite").parquet(str(paths["right"]))
    changed = spark.read.parquet(str(paths["right"])).withColumn(
        "group", F.when(F.col("id") == rows // 2, F.lit(-1)).otherwise(F.col("group"))
    )
    changed.write.mode("overwrite").parquet(str(paths["changed"]))
    many = spark.read.parquet(str(paths["right"])).withColumn(
        "group", F.when(F.col("id") % 100 == 0, F.lit(-1)).otherwise(F.col("group"))
    )
    many.write.mode("overwrite").parquet(str(paths["many"]))
    return paths


def samovar(left: DataFrame, right: DataFrame) -> bool:
    """`samovar.diff.compare`; where the tables differ, their number and the first of them are part of the answer."""
    from samovar.diff import compare

    verdict = compare(left, right)
    if not verdict:
        assert verdict.count("left") == verdict.count("right") > 0
        assert verdict.unmatched("left")
    return verdict.equivalent


def except_all(left: DataFrame, right: DataFrame) -> bool:
    """`exceptAll` both ways, with the first rows that differ, as the others have them."""
    gone, new = left.exceptAll(right).limit(10).collect(), right.exceptAll(left).limit(10).collect()
    return not gone and not new


def except_all_at_most(left: DataFrame, right: DataFrame) -> bool:
    """`exceptAll`, asked only whether there is anything, and the other way round only if there is not."""
    return left.exceptAll(right).isEmpty() and right.exceptAll(left).isEmpty()


def pyspark_testing(left: DataFrame, right: DataFrame) -> bool:
    """`pyspark.testing.assertDataFrameEqual`."""
    from pyspark.testing import assertDataFrameEqual

    return _passes(lambda: assertDataFrameEqual(left, right))


def chispa(left: DataFrame, right: DataFrame) -> bool:
    """`chispa.assert_df_equality`, in any order of rows."""
    from chispa import assert_df_equality

    return _passes(lambda: assert_df_equality(left, right, ignore_row_order=True))


def datacompy(left: DataFrame, right: DataFrame) -> bool:
    """`datacompy.SparkSQLCompare`, which needs a column to join by."""
    from datacompy import SparkSQLCompare

    compared = SparkSQLCompare(left.sparkSession, left, right, join_columns="id")
    return bool(compared.matches())


TOOLS: dict[str, Callable[[Any, Any], bool]] = {
    "samovar compare": samovar,
    "exceptAll both ways": except_all,
    "exceptAll, any row": except_all_at_most,
    "assertDataFrameEqual": pyspark_testing,
    "chispa": chispa,
    "datacompy": datacompy,
}


CASES = {"equal": "right", "one row differs": "changed", "one row in 100 differs": "many"}
"""What is compared with the left table."""


def puzzles(spark: SparkSession) -> dict[str, tuple[DataFrame, DataFrame, bool]]:
    """Small tables that are easy to get wrong: both sides, and whether they are equivalent."""
    in_order = spark.createDataFrame([("a", 1), ("a", 2), ("b", 1)], "taxi string, at int").coalesce(1)
    swapped = spark.createDataFrame([("a", 2), ("a", 1), ("b", 1)], "taxi string, at int").coalesce(1)
    other_keys = spark.createDataFrame([("b", 1), ("a", 1), ("a", 2)], "taxi string, at int").coalesce(1)
    floats = "x double, id string"
    near = spark.createDataFrame([(1.0, "b"), (1.0 + 1e-9, "a")], floats)
    sorted_otherwise = spark.createDataFrame([(1.0, "a"), (1.0 + 1e-9, "b")], floats)
    ids = [
        spark.createDataFrame([(n, i) for i, n in enumerate(ns)], "id string, n int") for ns in ("aab", "abb")
    ]
    twice, other_twice = (df.select("id") for df in ids)
    return {
        "order of a key, swapped": (in_order, swapped, False),
        "order of keys, free": (in_order, other_keys, True),
        "floats that sort differently": (near, sorted_otherwise, True),
        "as often on both sides": (twice, other_twice, False),
    }


def solve(tool: str, puzzle: str, left: DataFrame, right: DataFrame) -> bool:
    """What a tool says when asked as well as it can be."""
    if tool == "samovar compare":
        from samovar.diff import compare, equality, independent, keyed

        depends = keyed("taxi") if "order" in puzzle else independent
        equal = equality(tolerance=1e-6) if "floats" in puzzle else None
        return compare(left, right, depends=depends, equal=equal).equivalent
    if tool == "assertDataFrameEqual":
        from pyspark.testing import assertDataFrameEqual

        return _passes(lambda: assertDataFrameEqual(left, right, checkRowOrder="order" in puzzle, rtol=1e-6))
    if tool == "chispa":
        from chispa import assert_approx_df_equality, assert_df_equality

        if "floats" in puzzle:
            return _passes(lambda: assert_approx_df_equality(left, right, 1e-6, ignore_row_order=True))
        return _passes(lambda: assert_df_equality(left, right, ignore_row_order="order" not in puzzle))
    if tool == "datacompy":
        from datacompy import SparkSQLCompare

        columns = ["taxi", "at"] if "order" in puzzle else "id"
        return bool(
            SparkSQLCompare(left.sparkSession, left, right, join_columns=columns, abs_tol=1e-6).matches()
        )
    return TOOLS[tool](left, right)


def show_puzzles(spark: SparkSession, tools: Sequence[str]) -> Table:
    """Who is right where it is easy to be wrong."""
    table = Table("tool", *puzzles(spark))
    for tool in tools:
        answers = []
        for name, (left, right, same) in puzzles(spark).items():
            try:
                answers.append("right" if solve(tool, name, left, right) == same else "WRONG")
            except Exception as error:  # a tool that cannot be asked
                answers.append(type(error).__name__)
        table.add_row(tool, *answers)
    return table


def _passes(asserting: Callable[[], Any]) -> bool:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            asserting()
    except Exception:  # each tool has an exception of its own
        return False
    return True


@contextlib.contextmanager
def _growth() -> Iterator[list[float]]:
    """The most the process's memory grew by, in MiB, sampled every 20 ms."""
    import psutil

    process = psutil.Process()
    gc.collect()
    start = process.memory_info().rss
    grown = [0.0]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(0.02):
            grown[0] = max(grown[0], (process.memory_info().rss - start) / _MIB)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield grown
    finally:
        done.set()
        thread.join()


def measure(
    spark: SparkSession,
    paths: dict[str, Path],
    tools: Sequence[str],
    rounds: int,
    cases: Sequence[str] = tuple(CASES),
) -> list[Measured]:
    """Every tool on the cases, round by round."""
    made = []
    for turn in range(rounds):
        for case in cases:
            for name in tools:
                left, right = (spark.read.parquet(str(paths[n])) for n in ("left", CASES[case]))
                with _growth() as grown:
                    start = time.perf_counter()
                    answer = TOOLS[name](left, right)
                    seconds = time.perf_counter() - start
                print(f"round {turn} {case} {name}: {seconds:.2f} s", file=sys.stderr)
                right_answer = answer == (case == "equal")
                made.append(Measured(name, case, round(seconds, 3), round(grown[0], 1), right_answer))
    return made


def show(results: Sequence[Measured]) -> Table:
    """Medians by tool and case."""
    table = Table("tool", "case", "seconds", "against samovar", "driver MiB", "right")
    medians = {}
    for tool, case in dict.fromkeys((m.tool, m.case) for m in results):
        mine = [m for m in results if (m.tool, m.case) == (tool, case)]
        medians[tool, case] = statistics.median(m.seconds for m in mine)
        ours = medians.get(("samovar compare", case), 0.0)
        ratio = f"{medians[tool, case] / ours:.1f}x" if ours else ""
        memory = statistics.median(m.driver_mib for m in mine)
        answers = "yes" if all(m.right for m in mine) else "NO"
        table.add_row(tool, case, f"{medians[tool, case]:.2f}", ratio, f"{memory:.0f}", answers)
    return table


def main(argv: Sequence[str]) -> int:
    """Run it; 1 if Samovar was not the fastest or an answer was wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks compare", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", default=",".join(TOOLS), help="names, separated by commas")
    parser.add_argument("--json", type=Path, help="where to write all measurements")
    arguments = parser.parse_args(argv)
    packages = {"chispa": "chispa", "datacompy": "datacompy"}
    tools = [t.strip() for t in arguments.tools.split(",")]
    tools = [t for t in tools if importlib.util.find_spec(packages.get(t, "pyspark")) is not None]
    warnings.simplefilter("ignore")
    spark = session(master="local[2]")
    with tempfile.TemporaryDirectory() as folder:
        small = write_tables(spark, Path(folder) / "small", 20_000)
        measure(spark, small, tools, 1)  # warms up
        paths = write_tables(spark, Path(folder), arguments.rows)
        results = measure(spark, paths, tools, arguments.rounds)
    console = Console(width=120)
    console.print(show(results))
    console.print(show_puzzles(spark, tools))
    if arguments.json:
        whole = {"machine": machine(), "rows": arguments.rows, "results": [asdict(m) for m in results]}
        arguments.json.write_text(json.dumps(whole, indent=2))
    ours = [m for m in results if m.tool == "samovar compare"]
    slower = [
        m
        for m in results
        if m.tool != "samovar compare" and m.seconds < min((o.seconds for o in ours), default=0)
    ]
    return int(bool(slower) or not all(m.right for m in ours))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
