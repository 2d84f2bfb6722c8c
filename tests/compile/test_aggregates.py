"""Accumulators agree with plain Spark, however the input is cut into epochs and merged."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from tests.choice import by_default

from samovar.compile.aggregates import (
    ORDER_SENSITIVE,
    Accumulators,
    decompose,
    final_frame,
    merge_frame,
    partial_frame,
    uses_order,
)
from samovar.compile.sqltext import AGGREGATES

SCHEMA = """epoch int, pos bigint, k int, i int, l bigint, dec decimal(12,2), wide decimal(32,4), d double,
    f float, b boolean, s string, dt date, ts timestamp, arr array<int>, st struct<a:int,b:string>,
    m map<string,int>"""


def some_rows(seed: int, count: int, *, epochs: int = 3, keys: int = 3) -> list[tuple[object, ...]]:
    rng = random.Random(seed)

    def maybe(value: object) -> object:
        return None if rng.random() < 0.2 else value

    rows: list[tuple[object, ...]] = []
    for position in range(count):
        n = rng.randrange(-5, 6)
        d = rng.choice(
            [0.0, -0.0, 1.5, -2.25, 1e10, rng.uniform(-1, 1), math.nan if rng.random() < 0.3 else 3.0]
        )
        rows.append(
            (
                rng.randrange(epochs),
                position,
                maybe(rng.randrange(keys)),
                maybe(n),
                maybe(rng.randrange(-(10**12), 10**12)),
                maybe(decimal.Decimal(rng.randrange(-(10**12) + 1, 10**12)).scaleb(-2)),
                maybe(decimal.Decimal(rng.randrange(-(10**31), 10**31)).scaleb(-4)),
                maybe(d),
                maybe(rng.choice([0.5, -0.0, 0.0, 2.0])),
                maybe(rng.random() < 0.5),
                maybe(rng.choice(["a", "b", "", "it's"])),
                maybe(dt.date(2020, 1, 1) + dt.timedelta(days=rng.randrange(5))),
                maybe(dt.datetime(2020, 1, 1, 12) + dt.timedelta(seconds=rng.randrange(5))),
                maybe([maybe(rng.randrange(2))]),
                maybe(Row(a=maybe(rng.randrange(2)), b=maybe("x"))),
                maybe({"q": n}),
            )
        )
    return rows


def in_epochs(
    df: DataFrame, keys: Sequence[str], acc: Accumulators, *, epochs: int = 0, staged: bool = False
) -> DataFrame:
    """What a run over two epochs gives; staged: over three, as if a checkpoint had merged the first two."""
    epochs = epochs or (3 if staged else 2)
    parts = [partial_frame(df.filter(sf.col("epoch") % epochs == e), keys, acc) for e in range(epochs)]
    while len(parts) > 1:
        united = parts[0].unionAll(parts[1])
        parts = [merge_frame(united, acc) if staged else united, *parts[2:]]
    return final_frame(merge_frame(parts[0], acc), acc)


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(
            left, right, rel_tol=1e-9, abs_tol=1e-9
        )
    if isinstance(left, Row) and isinstance(right, Row):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


def by_key(df: DataFrame, keys: int) -> dict[str, Row]:
    return {repr(tuple(row)[:keys]): row for row in df.collect()}


def check(
    df: DataFrame, keys: Sequence[str], aggs: Sequence[str], *, staged: bool = False
) -> tuple[Accumulators, list[Row]]:
    """Compare epochs with plain Spark; gives the accumulators and what plain Spark gives."""
    acc = decompose(df, keys, aggs)
    assert acc is not None, aggs
    plain = df.groupBy(*keys).agg(*map(sf.expr, aggs))
    merged = in_epochs(df, keys, acc, staged=staged)
    assert [(f.name, f.dataType.simpleString()) for f in merged.schema] == [
        (f.name, f.dataType.simpleString()) for f in plain.schema
    ]
    expected, got = by_key(plain, len(keys)), by_key(merged, len(keys))
    assert expected.keys() == got.keys()
    for key, row in expected.items():
        for name, left, right in zip(row.__fields__, row, got[key], strict=True):
            assert same(left, right), f"{name} of group {key}: expected {left!r}, got {right!r}"
    return acc, list(expected.values())


FAMILIES = {
    "counts": [
        "count(*)",
        "count(1) AS one",
        "count(i)",
        "count(i, s)",
        "count_if(i > 0)",
        "COUNT(*) FILTER (WHERE i > 1) n",
        "count(DISTINCT i)",
        "count(distinct d) as dd",
        "count(distinct s, i)",
        "count(DISTINCT st)",
    ],
    "sums": [
        "sum(i)",
        "sum(l) AS `total l`",
        "sum(dec)",
        "sum(wide)",
        "sum(d)",
        "sum(f)",
        "try_sum(l)",
        "try_sum(dec)",
        "sum(dec * (1 - dec / 100)) AS revenue",
        "sum(DISTINCT i)",
        "sum(DISTINCT dec)",
        "sum(i) FILTER (WHERE s = 'it\\'s') AS sf",
    ],
    "averages": [
        "avg(i)",
        "mean(l)",
        "avg(d)",
        "avg(f)",
        "avg(dec)",
        "avg(wide)",
        "try_avg(dec)",
        "try_avg(i)",
        "avg(DISTINCT i)",
        "avg(DISTINCT dec)",
        "avg(dec) FILTER (WHERE i > 100) AS none",
    ],
    "extremes": [
        *(f"{f}({c})" for f in ("min", "max") for c in ("i", "dec", "d", "s", "b", "dt", "ts", "arr", "st")),
        "max(DISTINCT i)",
    ],
    "logic": [
        *(f"{f}(b)" for f in ("bool_and", "every", "bool_or", "some", "any")),
        *(f"{f}(i)" for f in ("bit_and", "bit_or", "bit_xor")),
        "any(b) AND count(*) > 1 AS both",
    ],
    "moments": [
        *(
            f"{f}(i)"
            for f in ("std", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
        ),
        "stddev(dec)",
        "var_pop(d)",
        "covar_pop(i, l)",
        "covar_samp(i, dec)",
        "corr(i, l)",
        "corr(i, 0.1D)",
        "stddev(0.1D)",
    ],
    "combined": [
        "sum(i) / count(l) + max(dec) AS r",
        "CASE WHEN count(*) > 2 THEN 'many' ELSE concat('few: ', max(s)) END AS t",
        "max(struct(i, s)).s",
        "round(avg(dec), 1)",
        "coalesce(sum(i), 0)",
        "sum(i) IS NULL",
        "min(dt) -- the first\n AS `first``day`",
    ],
}

EVERYTHING = [agg for aggs in FAMILIES.values() for agg in aggs]


@pytest.mark.parametrize("family", FAMILIES)
def test_epochs_give_what_plain_spark_gives(spark: SparkSession, family: str) -> None:
    df = spark.createDataFrame(some_rows(len(family), 40), SCHEMA).coalesce(1)
    check(df, ["k"], FAMILIES[family])


@pytest.mark.parametrize("family", by_default(FAMILIES, list(FAMILIES)[::3]))
def test_epochs_that_were_merged_before_give_what_plain_spark_gives(spark: SparkSession, family: str) -> None:
    df = spark.createDataFrame(some_rows(len(family), 40), SCHEMA).coalesce(1)
    check(df, [], FAMILIES[family], staged=True)


@pytest.mark.parametrize("family", by_default(FAMILIES, list(FAMILIES)[1::3]))
def test_empty_input_without_keys_gives_the_row_that_spark_gives(spark: SparkSession, family: str) -> None:
    df = spark.createDataFrame([], SCHEMA)
    acc, expected = check(df, [], FAMILIES[family])
    nothing = partial_frame(df, [], acc).limit(0)
    assert final_frame(merge_frame(nothing, acc), acc).collect() == expected


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(0, 12),
    picks=st.lists(
        st.sampled_from(sorted(agg for aggs in FAMILIES.values() for agg in aggs)),
        min_size=1,
        max_size=5,
        unique=True,
    ),
    keys=st.sampled_from([[], ["k"], ["s", "b"], ["d"]]),
    staged=st.booleans(),
)
def test_any_mix_on_any_small_input(
    spark: SparkSession, seed: int, count: int, picks: list[str], keys: list[str], staged: bool
) -> None:
    check(spark.createDataFrame(some_rows(seed, count), SCHEMA).coalesce(1), keys, picks, staged=staged)


SIZES = [(1, 0), (5, 2), (15, 2), (24, 8), (38, 6)]
LIMITS = [10 ** min(precision, 34) - 1 for precision, _ in SIZES]


@st.composite
def awkward(draw: st.DrawFn, limit: int) -> int:
    """Values whose sums are one unit away from a tie, ties, carries and the extremes."""
    few = st.sampled_from([limit, -limit, 1, -1, 0, 5, -5, limit // 3, limit // 7 * 2, limit // 2])
    return draw(few | st.integers(-limit, limit))


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 5), *map(awkward, LIMITS)), min_size=5, max_size=40
    )
)
def test_decimal_averages_are_exact(spark: SparkSession, values: list[tuple[int, ...]]) -> None:
    exact = decimal.Context(prec=50)
    rows = [
        (e, k, *(decimal.Decimal(v).scaleb(-scale, exact) for v, (_, scale) in zip(vs, SIZES, strict=True)))
        for e, k, *vs in values
    ]
    columns = [f"x{i} decimal({precision},{scale})" for i, (precision, scale) in enumerate(SIZES)]
    df = spark.createDataFrame(rows, ", ".join(["epoch int", "k int", *columns])).coalesce(1)
    aggs = [
        text.format(x=f"x{i}")
        for i in range(len(SIZES))
        for text in ("avg({x})", "try_avg({x}) AS t{x}", "sum({x})", "avg({x}) + 1")
    ]
    check(df, ["k"], aggs)


def test_averages_of_more_than_34_digits(spark: SparkSession) -> None:
    big = decimal.Decimal(-(10**34 - 1)).scaleb(-6, decimal.Context(prec=50))
    rows = [(0, 4, big), (1, 4, big), (2, 4, decimal.Decimal("0.000001")), (0, 5, big), (1, 5, big)]
    df = spark.createDataFrame(rows, "epoch int, k int, x decimal(38,6)").coalesce(1)
    check(df, ["k"], ["avg(x)", "sum(x)"])


def test_a_decimal_average_at_a_tie_rounds_away_from_zero_as_spark_does(spark: SparkSession) -> None:
    # 1 / 16 = 0.0625: one digit more than decimal(5,0) averages have is a tie at 0.00005 for n = 20000.
    df = spark.range(20_000).selectExpr(
        "CAST(id % 4 AS int) AS epoch", "CAST(IF(id = 7, 1, 0) AS decimal(5,0)) AS x"
    )
    check(df, [], ["avg(x)", "avg(-x) AS negative", "avg(x + 99) AS carry"])


@pytest.mark.parametrize("position", by_default([["pos"], ["epoch", "pos"]], [["epoch", "pos"]]))
def test_positions_fix_the_order(spark: SparkSession, position: list[str]) -> None:
    rows = some_rows(5, 60)
    df = spark.createDataFrame(rows, SCHEMA).repartition(2, "i")
    aggs = [
        "collect_list(i) AS cl",
        "array_agg(m) AS aa",
        "first(i) AS f",
        "first(i, true) AS ft",
        "last(i) IGNORE NULLS AS lt",
        "last_value(s) AS lv",
        "any_value(i IGNORE NULLS) AS av",
        "max_by(pos, s) AS xb",
        "min_by(pos, s) AS nb",
        "first(s) FILTER (WHERE i > 0) AS ff",
    ]
    acc = decompose(df, ["k"], aggs, position)
    assert acc is not None
    got = by_key(in_epochs(df, ["k"], acc, staged=True), 1)
    order = sorted(rows, key=lambda r: (r[0], r[1]) if len(position) == 2 else r[1])  # type: ignore[arg-type,return-value]
    groups: dict[object, list[tuple[object, ...]]] = {}
    for row in order:
        groups.setdefault(row[2], []).append(row)
    assert len(got) == len(groups)
    for key, group in groups.items():
        row = got[repr((key,))]
        ints = [r[3] for r in group]
        present = [i for i in ints if i is not None]
        assert row.cl == present
        assert row.aa == [r[15] for r in group if r[15] is not None]
        assert (row.f, row.ft, row.av, row["lt"]) == (ints[0], present[0], present[0], present[-1])
        assert row.lv == group[-1][10]
        strings = [(r[10], n, r[1]) for n, r in enumerate(group) if r[10] is not None]
        assert row.xb == max(strings)[2]
        assert row.nb == min(strings)[2]
        positive = [r[10] for r in group if r[3] is not None and r[3] > 0]  # type: ignore[operator]
        assert row.ff == (positive[0] if positive else None)


def test_without_positions_order_sensitive_aggregates_give_one_of_the_possible_answers(
    spark: SparkSession,
) -> None:
    rows = some_rows(9, 40)
    df = spark.createDataFrame(rows, SCHEMA)
    aggs = [
        "collect_list(i) AS cl",
        "collect_set(s) AS cs",
        "collect_set(d) AS cd",
        "collect_list(DISTINCT i) AS cdi",
        "first(i) AS f",
        "last(i, true) AS lt",
        "max_by(i, l) AS mx",
        "min_by(s, l) AS mn",
    ]
    acc = decompose(df, [], aggs)
    assert acc is not None
    row = in_epochs(df, [], acc, staged=True).collect()[0]
    ints = [r[3] for r in rows]
    present = sorted(i for i in ints if isinstance(i, int))
    assert sorted(row.cl) == present
    assert row.cs == sorted({r[10] for r in rows if isinstance(r[10], str)})
    assert len(row.cd) == df.selectExpr("size(collect_set(d))").collect()[0][0]
    assert row.cdi == sorted(set(present))
    assert row.f in ints
    assert row["lt"] in present
    by_l = sorted((r for r in rows if r[4] is not None), key=lambda r: r[4])  # type: ignore[arg-type,return-value]
    assert row.mx == by_l[-1][3]
    assert row.mn == by_l[0][10]


def test_first_tells_a_null_value_from_an_empty_epoch(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 1, None), (2, 2, 7)], "epoch int, pos int, x int")
    for position in ([], ["pos"]):
        acc = decompose(df, [], ["first(x) AS f", "first(x) IGNORE NULLS AS g", "last(x) AS l"], position)
        assert acc is not None
        assert in_epochs(df.coalesce(1), [], acc, epochs=3).collect() == [Row(f=None, g=7, l=7)]


def test_overflow_raises_as_in_spark_and_stays_null_where_tried(spark: SparkSession) -> None:
    rows = [(0, 2**62), (1, 2**62), (2, -(2**62))]
    df = spark.createDataFrame(rows, "epoch int, x bigint").coalesce(1)
    acc = decompose(df, [], ["sum(x)"])
    assert acc is not None
    with pytest.raises(Exception, match="overflow"):
        in_epochs(df, [], acc, staged=True).collect()
    acc = decompose(df, [], ["try_sum(x) AS t", "avg(x) AS a"])
    assert acc is not None
    assert in_epochs(df, [], acc, staged=True).collect() == [Row(t=None, a=2.0**62 / 3)]


def test_without_ansi_a_decimal_overflow_stays_null(spark: SparkSession) -> None:
    big = decimal.Decimal(6).scaleb(33, decimal.Context(prec=50))
    rows = [(0, big * 10), (0, big * 10), (1, decimal.Decimal(1)), (2, None)]
    df = spark.createDataFrame(rows, "epoch int, x decimal(38,3)").coalesce(1)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        check(df, [], ["sum(x)", "count(x)", "try_sum(x) AS t"], staged=True)
        some = spark.createDataFrame(some_rows(3, 30), SCHEMA).coalesce(1)
        check(some, ["k"], ["avg(i)", "avg(d)", "avg(dec)", "avg(wide)", "try_avg(dec)", "avg(DISTINCT dec)"])
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_equal_calls_share_an_accumulator(spark: SparkSession) -> None:
    df = spark.createDataFrame([], SCHEMA)
    acc = decompose(df, ["k"], ["avg(i)", "count(i)", "count(i) * 2", "stddev(i)", "variance(i)", "sum(i)"])
    assert acc is not None
    assert len(acc.partial) == len(acc.merge) == 4
    assert [text.rsplit(" ", 1)[1] for text in acc.partial] == ["__a0", "__a1", "__a2", "__a3"]


def test_keys_may_be_expressions_or_strange_names(spark: SparkSession) -> None:
    df = spark.createDataFrame([(0, 1, 2), (1, 1, 3), (1, 2, 4)], "epoch int, `a.b` int, x int")
    keys = ["a.b", "x % 2 AS odd"]
    acc = decompose(df, keys, ["sum(x) + odd AS s", "`a.b` + count(*) AS t"])
    assert acc is not None
    got = {tuple(row) for row in in_epochs(df, keys, acc).collect()}
    assert got == {(1, 0, 2, 2), (1, 1, 4, 2), (2, 0, 4, 3)}
    assert decompose(df, ["a.b", "x AS __a0"], ["count(*)"]) is None, "the name is an accumulator's"


@pytest.mark.parametrize(
    "agg",
    [
        "percentile(i, 0.5)",
        "approx_count_distinct(i)",
        "median(i)",
        "mode(i)",
        "listagg(s)",
        "skewness(i)",
        "sum(i) OVER (PARTITION BY k)",
        "grouping(k)",
        "explode(collect_list(i))",
        "1 AS one",
        "sum(nothing)",
        "sum(i",
        "sum('",
        "(SELECT 1) + sum(i)",
        "first(i, b)",
        "count(DISTINCT m)",
        "bit_xor(DISTINCT i)",
        "max_by(i, l, 2)",
        "avg(CAST(dec AS DECIMAL(38,0)))",
        "avg(CAST(dec AS DECIMAL(38,20)))",
        "sum(DISTINCT wide)",
        "system.builtin.sum(i)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY i)",
        "sum(DISTINCT s)",
        "max(NULL)",
    ],
)
def test_what_cannot_be_merged_exactly_is_refused(spark: SparkSession, agg: str) -> None:
    assert (
        decompose(spark.createDataFrame([], SCHEMA), ["k"], [agg, "count(*)"] if "one" not in agg else [agg])
        is None
    )


def test_a_users_own_aggregate_is_refused(spark: SparkSession) -> None:
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION my_total(x INT) RETURNS INT RETURN x + 1")
    df = spark.createDataFrame([], SCHEMA)
    assert decompose(df, ["k"], ["my_total(k) + count(*) AS fine"]) is not None
    assert decompose(df, ["k"], ["my_total(i) + count(*)"]) is None


def test_the_names_of_all_aggregates_are_known(spark: SparkSession) -> None:
    shown = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    sample = [
        n for n in sorted(shown) if n.endswith("_agg") or "sketch_agg" in n or n.startswith(("regr_", "var_"))
    ]
    assert not set(sample) - AGGREGATES - {"array_agg"}
    assert ORDER_SENSITIVE <= AGGREGATES
    assert not {n for n in AGGREGATES - shown if n not in ("measure", "product", "schema_of_variant_agg")}


def test_uses_order_reads_calls_not_names() -> None:
    assert uses_order(["sum(x)", "1 + FIRST (y)"])
    assert uses_order(["collect_list(x)"])
    assert uses_order(["sum('"])
    assert not uses_order(["sum(first)", "count('first(x)')", "max(`last`)", "min(x) -- last(x)"])


def test_decompose_is_quick_once_the_session_is_warm(spark: SparkSession) -> None:
    df = spark.createDataFrame([], SCHEMA)
    aggs = ["sum(dec)", "sum(dec * (1 - dec)) AS r", "avg(dec)", "avg(d)", "count(*)", "max(s)"]
    decompose(df, ["k", "s"], aggs)
    start = time.perf_counter()
    assert decompose(df, ["k", "s"], aggs) is not None
    assert time.perf_counter() - start < 2, "expected well under a second; 2 s allow for a busy machine"
