"""Steps whose result depends on the order of rows: the plain side spells the canonical order out, by `rid`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from tests.oracle.programs import PLAIN, Program, columns_of, pick, quoted

import samovar as sv

__all__ = ["ORDERED_STEPS"]

Row = dict[str, Any]


def _limit(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    if program.ordered[at] is None:
        return
    n, skip = rnd.choice([0, 1, 4, 9]), rnd.choice([0, 0, 2])
    program.add(
        f"{{}}.offset({skip}).limit({n})",
        [at],
        lambda f: f.offset(skip).limit(n) if skip else f.limit(n),
        plain=lambda f: f.orderBy("rid").offset(skip).limit(n),
        ordered=program.ordered[at],
    )


def _first_rows(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    names = [c for c, t in df.dtypes if c != "rid" and t.startswith(PLAIN)]
    if program.ordered[at] is None or not names:
        return
    subset = rnd.sample(names, min(len(names), rnd.randrange(1, 3)))
    place = Window.partitionBy(*map(quoted, subset)).orderBy("rid")
    program.add(
        f"{{}}.dropDuplicates({subset})",
        [at],
        lambda f: f.dropDuplicates(subset),
        plain=lambda f: f.withColumn("__n", F.row_number().over(place)).filter("__n = 1").drop("__n"),
    )


def _ends(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    names = [c for c, t in df.dtypes if c != "rid" and "map" not in t]
    if program.ordered[at] is None or len(names) < 2:
        return
    key, name = (quoted(n) for n in rnd.sample(names, 2))
    exotic = rnd.random() < 0.4
    more = ["median(rid) AS mid"] if exotic else []
    texts = [f"first({name}) AS f", f"last({name}) AS z", f"collect_list({name}) AS every", *more]
    same = [
        f"min_by(struct({name} AS v), rid).v AS f",
        f"max_by(struct({name} AS v), rid).v AS z",
        f"transform(array_sort(filter(collect_list(struct(rid, {name} AS v)), e -> e.v IS NOT NULL), "
        "(p, q) -> CASE WHEN p.rid < q.rid THEN -1 WHEN p.rid > q.rid THEN 1 ELSE 0 END), e -> e.v) AS every",
        *more,
    ]
    program.add(
        f"{{}}.groupBy({key}).agg({texts})",
        [at],
        lambda f: f.groupBy(key).agg(*map(F.expr, texts)),
        plain=lambda f: f.groupBy(key).agg(*map(F.expr, same)),
    )


class Running(sv.Operator):
    """A running count and a weighed sum: sensitive to order. At its end the count."""

    output = "rid bigint, seen int, mix bigint"

    def __init__(self, ends: bool = False) -> None:
        self.seen = 0
        self.mix = 0
        self.ends = ends

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        self.seen += 1
        self.mix = (self.mix * 31 + row["rid"] + (row["v"] or 0)) % 1_000_003
        if row["rid"] % 4 == 3:
            return
        yield None
        for copy in range(1 + row["rid"] % 2):
            yield {"rid": row["rid"], "seen": self.seen + copy, "mix": self.mix}

    def finish(self, port: int = 0) -> Iterator[Row]:
        if self.ends:
            yield {"rid": 10_000_000, "seen": self.seen, "mix": self.mix}


class PerKey(sv.Operator):
    """For each key the number of rows so far; sensitive to the order within a key."""

    output = "rid bigint, v int, nth int"
    counts = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.counts[row["v"]] = self.counts.get(row["v"], 0) + 1
        yield {"rid": row["rid"], "v": row["v"], "nth": self.counts[row["v"]]}


def _run_plainly(operator: sv.Operator, df: DataFrame) -> DataFrame:
    rows = [r.asDict() for r in df.orderBy("rid").collect()]
    made = [m for r in rows for m in (operator.process(r) or ()) if m is not None]
    made += [m for m in (operator.finish() or ()) if m is not None]
    names = [c.split()[0] for c in type(operator).output.split(", ")]
    return df.sparkSession.createDataFrame([tuple(m[n] for n in names) for m in made], type(operator).output)


def _python(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    numbers = [c for c in columns_of(df, "int") if c != "rid"]
    if program.ordered[at] is None or not numbers:
        return
    columns = ["rid", f"{quoted(numbers[0])} AS v"]
    if rnd.random() < 0.5:
        ends = rnd.random() < 0.5
        program.add(
            f"{{}}.selectExpr({columns}).apply(Running({ends}))",
            [at],
            lambda f: f.selectExpr(*columns).apply(Running(ends)),
            plain=lambda f: _run_plainly(Running(ends), f.selectExpr(*columns)),
        )
    else:
        program.add(
            f"{{}}.selectExpr({columns}).apply(PerKey(), by='v')",
            [at],
            lambda f: f.selectExpr(*columns).apply(PerKey(), by="v", key_partitions=3),
            plain=lambda f: _run_plainly(PerKey(), f.selectExpr(*columns)),
            ordered=program.ordered[at],
        )


ORDERED_STEPS: tuple[Callable[[random.Random, Program], None], ...] = (
    _limit,
    _first_rows,
    _ends,
    _python,
    _python,
)
