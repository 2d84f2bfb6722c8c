"""Steps with functions that draw, number or ask the time, and with functions that no list knows: registered ones.

What they draw differs from run to run; what they promise does not, and that is what a step keeps: how many values are
distinct, whether they lie where they should, what an unknown function gives. Each step is written as text or with
Columns, at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pandas as pd
from pyspark.sql import functions as F
from tests.oracle.programs import Program, columns_of, pick, quoted

__all__ = ["CHANCE_STEPS"]

_DISTINCT: dict[str, Callable[[], Any]] = {
    "monotonically_increasing_id()": F.monotonically_increasing_id,
    "rand()": F.rand,
    "rand(7)": lambda: F.rand(7),
    "randn(7)": lambda: F.randn(7),
    "uuid()": F.uuid,
    "randstr(12)": lambda: F.randstr(F.lit(12)),
}
"""As many values as rows: the chance of two that are equal among some 30 rows is nil."""
_ONE: dict[str, Callable[[], Any]] = {
    "current_timestamp()": F.current_timestamp,
    "current_timestamp": F.current_timestamp,
    "now()": F.now,
    "localtimestamp()": F.localtimestamp,
    "unix_timestamp()": F.unix_timestamp,
    "udf(current_timestamp())": lambda: F.udf(lambda v: str(v), "string")(F.current_timestamp()),
}
"""One value for all rows."""


def _drawn(rnd: random.Random, program: Program) -> None:
    """Numbers drawn for each row, and how many of them are distinct."""
    at = pick(rnd, program)
    text, column = rnd.choice([*_DISTINCT.items(), *_ONE.items()])
    as_text = rnd.random() < 0.5 and "udf" not in text

    def call(f: Any) -> Any:
        drawn = f.withColumn("drawn", F.expr(text) if as_text else column())
        return drawn.agg(F.count("*").alias("n"), F.countDistinct("drawn").alias("different"))

    if "drawn" not in program.plain[at].columns:
        program.add(f"{{}} with {text} ({'text' if as_text else 'Column'}), counted", [at], call)


def _kept(rnd: random.Random, program: Program) -> None:
    """Rows that a draw lets pass, whatever it is."""
    at = pick(rnd, program)
    number = rnd.randrange(100)
    as_text = rnd.random() < 0.5

    def call(f: Any) -> Any:
        return f.filter(
            f"rand({number}) < 1 AND uuid() <> ''" if as_text else (F.rand(number) < 1) & (F.rand() >= 0)
        )

    program.add(f"{{}}.filter(rand({number}) < 1) ({as_text})", [at], call, ordered=program.ordered[at])


def _mean(values: pd.Series) -> float:
    return float(values.dropna().sum())


_mean.__annotations__ = {"values": pd.Series, "return": float}  # pandas_udf reads types, not text
_UNKNOWN: dict[str, Callable[[], Any]] = {
    "oracle_row": lambda: F.udf(lambda v: None if v is None else v * 2, "bigint"),
    "oracle_volatile": lambda: F.udf(lambda v: None if v is None else v + 1, "bigint").asNondeterministic(),
    "oracle_mean": lambda: F.pandas_udf(_mean, "double"),
}


def _unknown(rnd: random.Random, program: Program) -> None:
    """A function that somebody registered: of a row, of a row and by chance, or an aggregate."""
    at = pick(rnd, program)
    df = program.plain[at]
    numbers = columns_of(df, "int", "bigint")
    if not numbers:
        return
    name, given = rnd.choice(list(_UNKNOWN)), quoted(numbers[0])
    function = df.sparkSession.udf.register(name, _UNKNOWN[name]())
    as_text = rnd.random() < 0.5
    mark = f"u{len(program.plain)}"

    def call(f: Any) -> Any:
        made = F.expr(f"{name}({given})") if as_text else function(F.col(given))
        return f.select(made.alias(mark)) if name == "oracle_mean" else f.withColumn(mark, made)

    ordered = None if name == "oracle_mean" else program.ordered[at]
    program.add(f"{{}} with {name}({given}) ({as_text})", [at], call, ordered=ordered)


def _new_aggregate(rnd: random.Random, program: Program) -> None:
    """An aggregate of Spark's that is in no list of names, selected without a group."""
    at = pick(rnd, program)
    numbers = columns_of(program.plain[at], "int")
    if not numbers:
        return
    vector = f"array(CAST(coalesce({quoted(numbers[0])}, 0) AS FLOAT), 1F)"
    as_text = rnd.random() < 0.5

    def call(f: Any) -> Any:
        if as_text:
            return f.selectExpr(f"vector_sum({vector}) AS v")
        return f.select(F.vector_sum(F.expr(vector)).alias("v"))

    program.add(f"{{}}.select(vector_sum({vector})) ({as_text})", [at], call)


def _sampled(rnd: random.Random, program: Program) -> None:
    """Rows of a source that Spark draws for a seed."""
    at, seed = rnd.randrange(len(program.paths)), rnd.randrange(100)
    if rnd.random() < 0.5:
        part = rnd.randrange(2)
        text, call = f"randomSplit([1, 2], {seed})[{part}]", lambda f: f.randomSplit([1.0, 2.0], seed)[part]
    else:
        text, call = f"sample(0.5, {seed})", lambda f: f.sample(0.5, seed)
    # drawn rows come in the order of Spark's partitions, which begin with the largest file, and a split sorts them
    program.add(f"{{}}.{text}", [at], call, ordered=None)


CHANCE_STEPS = (_drawn, _drawn, _kept, _unknown, _unknown, _new_aggregate, _sampled)
