"""A Column's SQL text means what the Column means, or there is none."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from samovar.compile.columns import column_to_sql, sort_column

SCHEMA = """x int, y int, l bigint, d date, dd double, dec decimal(10,2), s struct<q:int,`w w`:string>,
    str string, ts timestamp, arr array<int>, m map<string,int>, `my col` int, `a.b` int, `a``b` int,
    `o'b(r, x` int"""

col = sf.col
Make = Callable[[], Column]

PROJECTED: list[tuple[Make, str]] = [
    (lambda: col("x") + 1, "x + 1"),
    (lambda: (col("x") - (col("y") - col("l"))) / (col("l") * 2), "(x - (y - l)) / (l * 2)"),
    (lambda: (col("x") - col("y")) - col("l"), "x - y - l"),
    (lambda: -col("x") % 3, "negative(x) % 3"),
    (lambda: col("x") ** 2, "power(x, 2)"),
    (lambda: col("x").bitwiseAND(3), "x & 3"),
    (lambda: sf.bitwise_not("x"), "~x"),
    (lambda: col("str") == "abc", "str = 'abc'"),
    (lambda: col("x") == "1", "x = '1'"),
    (lambda: col("x") == 1, "x = 1"),
    (lambda: col("l") == 2**40, "l = 1099511627776L"),
    (lambda: col("x") != 1, "NOT x = 1"),
    (lambda: col("x").eqNullSafe(3), "x <=> 3"),
    (lambda: ~(col("x") > 1) & ((col("y") == 1) | (col("l") < 2)), "NOT x > 1 AND (y = 1 OR l < 2)"),
    (lambda: col("x").isNull(), "x IS NULL"),
    (lambda: col("x").isNotNull() == sf.lit(True), "(x IS NOT NULL) = true"),
    (lambda: col("dd").isNaN(), "isnan(dd)"),
    (lambda: sf.lit("a\\b'c\"d\n é"), "'a\\\\b\\'c\"d\n é'"),
    (lambda: sf.concat(sf.lit("a, b"), col("str"), sf.lit(")")), "concat('a, b', str, ')')"),
    (lambda: sf.lit("it''s"), "'it\\'\\'s'"),
    (lambda: sf.lit(""), "''"),
    (lambda: col("x").between(1, 2), "x >= 1 AND x <= 2"),
    (lambda: col("x").isin(1, 2, "z"), "x IN (1, 2, 'z')"),
    (lambda: col("str").like("a\\%_'"), "str LIKE 'a\\\\%_\\''"),
    (lambda: col("str").rlike("^a.*$"), "str RLIKE '^a.*$'"),
    (lambda: col("str").startswith("a"), "startswith(str, 'a')"),
    (lambda: sf.when(col("x") > 1, "q'r"), "CASE WHEN x > 1 THEN 'q\\'r' END"),
    (
        lambda: sf.when(col("x").isNull(), sf.when(col("y") == 1, "WHEN ' THEN").otherwise("b")).otherwise(
            "x END"
        ),
        "CASE WHEN x IS NULL THEN CASE WHEN y = 1 THEN 'WHEN \\' THEN' ELSE 'b' END ELSE 'x END' END",
    ),
    (lambda: col("x").cast("decimal(10,2)"), "CAST(x AS DECIMAL(10,2))"),
    (lambda: col("str").try_cast("int"), "TRY_CAST(str AS INT)"),
    (lambda: col("d") >= dt.date(2020, 1, 2), "d >= DATE'2020-01-02'"),
    (lambda: col("d") >= "2020-01-02", "d >= '2020-01-02'"),
    (lambda: col("ts") < dt.datetime(2020, 1, 2, 3), "ts < TIMESTAMP'2020-01-02 03:00:00.0'"),
    (lambda: sf.lit(dt.timedelta(days=-1, microseconds=5)), "INTERVAL '-0 23:59:59.999995' DAY TO SECOND"),
    (lambda: col("dec") * decimal.Decimal("1.10") + 1.1, "dec * 1.10BD + 1.1D"),
    (lambda: col("dec") + decimal.Decimal(3), "dec + 3BD"),
    (lambda: col("dd") > 1.0, "dd > 1.0D"),
    (lambda: sf.lit(None), "NULL"),
    (lambda: col("s")["q"], "s['q']"),
    (lambda: col("s.q"), "s.q"),
    (lambda: col("s.`w w`"), "s.`w w`"),
    (lambda: col("arr")[0] + col("m")["a'b"], "arr[0] + m['a\\'b']"),
    (lambda: sf.struct(col("my col").alias("q r"), "x"), "struct(`my col` AS `q r`, x)"),
    (lambda: sf.explode("arr"), "explode(arr)"),
    (lambda: sf.posexplode("arr").alias("p", "e e"), "posexplode(arr) AS (p, `e e`)"),
    (
        lambda: sf.row_number().over(Window.partitionBy("x", "my col").orderBy(col("y").desc())).alias("n"),
        "row_number() OVER (PARTITION BY x, `my col` ORDER BY y DESC NULLS LAST) AS n",
    ),
    (
        lambda: sf.sum("x").over(Window.orderBy("y").rowsBetween(-1, Window.currentRow)),
        "sum(x) OVER (ORDER BY y ASC NULLS FIRST ROWS BETWEEN -1 FOLLOWING AND CURRENT ROW)",
    ),
    (lambda: sf.sum("x").over(Window.partitionBy()), "sum(x) OVER ()"),
    (lambda: sf.transform("arr", lambda e: e + 1), "transform(arr, x_1 -> x_1 + 1)"),
    (
        lambda: sf.aggregate("arr", sf.lit(0), lambda a, e: sf.when(e > 1, a - e).otherwise(a)),
        "aggregate(arr, 0, (x_1, y_2) -> CASE WHEN y_2 > 1 THEN x_1 - y_2 ELSE x_1 END)",
    ),
    (
        lambda: sf.transform("arr", lambda e: sf.filter("arr", lambda g: g > e)),
        "transform(arr, x_1 -> filter(arr, x_2 -> x_2 > x_1))",
    ),
    (lambda: (col("x") + 1).alias("my al"), "x + 1 AS `my al`"),
    (lambda: col("x").alias("select"), "x AS `select`"),
    (lambda: col("`o'b(r, x`").alias("z, 'w AS q"), "`o'b(r, x` AS `z, 'w AS q`"),
    (lambda: col("`o'b(r, x`") + col("my col") * col("`a``b`"), "`o'b(r, x` + `my col` * `a``b`"),
    (lambda: col("`a.b`").alias("a.b"), "`a.b` AS `a.b`"),
    (lambda: sf.expr("x + 1 as z"), "x + 1 as z"),
    (lambda: sf.expr("x+1") * 2, "(x+1) * 2"),
    (lambda: sf.expr("x > 1 and y < 2") | (col("x") > 1), "(x > 1 and y < 2) OR x > 1"),
    (lambda: sf.extract(sf.lit("year"), "d"), "date_part('year', d) AS `extract(year FROM d)`"),
    (lambda: sf.window("ts", "1 hour"), "window(ts, '1 hour', '1 hour', '0 second')"),
    (lambda: sf.rand(3), "rand(3L)"),
    (lambda: col("*"), "*"),
]

AGGREGATED: list[tuple[Make, str]] = [
    (lambda: sf.count("*"), "count(*)"),
    (lambda: sf.countDistinct("x", "y").alias("n"), "count(DISTINCT x, y) AS n"),
    (lambda: sf.sum_distinct("x") / sf.count("y"), "sum(DISTINCT x) / count(y)"),
    (
        lambda: sf.sum(col("dec") * (1 - col("dd"))).alias("revenue"),
        "sum(dec * (1 - dd)) AS revenue",
    ),
    (lambda: sf.expr("sum(x) filter (where y > 1)"), "sum(x) filter (where y > 1)"),
    (lambda: sf.expr("count(distinct x)") + 1, "count(distinct x) + 1"),
    (lambda: sf.first("x", ignorenulls=True), "first(x, true)"),
    (lambda: sf.percentile_approx("x", [0.5], 10), "percentile_approx(x, array(0.5D), 10)"),
    (lambda: sf.sum("x") + col("y"), "sum(x) + y"),
]

REFUSED: list[Make] = [
    lambda: sf.udf(lambda x: x)("x"),
    lambda: sf.lit(math.nan),
    lambda: sf.lit(b"abc"),
    lambda: col("s").withField("a", sf.lit(1)),
    lambda: col("x").alias("z", metadata={"a": 1}),
    lambda: col("missing"),
    lambda: sf.expr("x +"),
]


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], SCHEMA)


@pytest.mark.parametrize(("make", "text"), PROJECTED, ids=[text for _, text in PROJECTED])
def test_a_projected_column_has_this_text(df: DataFrame, make: Make, text: str) -> None:
    assert column_to_sql(make(), df) == text


@pytest.mark.parametrize(("make", "text"), AGGREGATED, ids=[text for _, text in AGGREGATED])
def test_an_aggregate_has_this_text(df: DataFrame, make: Make, text: str) -> None:
    assert column_to_sql(make(), df, usage="aggregate") == text


@pytest.mark.parametrize("make", REFUSED)
def test_what_has_no_text_is_refused(df: DataFrame, make: Make) -> None:
    try:
        column = make()
    except Exception:
        pytest.skip("this PySpark does not even make the Column")
    assert column_to_sql(column, df) is None


def test_a_registered_udf_called_as_a_column_is_refused(spark: SparkSession, df: DataFrame) -> None:
    function = spark.udf.register("samovar_test_plus", lambda x: x, "int")
    assert column_to_sql(function("x"), df) is None


def test_a_column_of_the_frame_itself_has_a_text(df: DataFrame) -> None:
    assert column_to_sql(df["x"] + df["my col"], df) == "x + `my col`"


def test_conditions_of_filters_and_joins(df: DataFrame) -> None:
    assert (
        column_to_sql((col("x") > 1) & col("str").isNotNull(), df, usage="filter")
        == "x > 1 AND str IS NOT NULL"
    )
    left, right = df.alias("a"), df.alias("b")
    condition = (col("a.my col") == col("b.x")) & (col("a.d") > dt.date(2020, 1, 1))
    assert (
        column_to_sql(condition, left, right, usage="join") == "a.`my col` = b.x AND a.d > DATE'2020-01-01'"
    )
    assert column_to_sql(col("x") == col("b.y"), left, right, usage="join") is None, "x is ambiguous"
    with pytest.raises(ValueError, match="Expected 2 input"):
        column_to_sql(condition, left, usage="join")


def test_qualified_names(df: DataFrame) -> None:
    aliased = df.alias("a")
    assert column_to_sql(col("a.x") + col("a.s.q"), aliased) == "a.x + a.s.q"
    assert column_to_sql(col("a.*"), aliased) == "a.*"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: col("x"), "x"),
        (lambda: col("x").desc(), "x DESC NULLS LAST"),
        (lambda: col("my col").asc_nulls_last(), "`my col` ASC NULLS LAST"),
        (lambda: (col("x") + 1).desc_nulls_first(), "x + 1 DESC NULLS FIRST"),
    ],
)
def test_sort_orders(df: DataFrame, make: Make, text: str) -> None:
    assert column_to_sql(make(), df, usage="sort") == text
    assert df.sort(sort_column(text)).sameSemantics(df.sort(make()))


def test_sort_column_reads_what_people_write(df: DataFrame) -> None:
    for text, wanted in [
        ("x desc", col("x").desc()),
        ("x ASC", col("x").asc()),
        ("x NULLS LAST", col("x").asc_nulls_last()),
        ("`my col`", col("my col")),
    ]:
        assert df.sort(sort_column(text)).sameSemantics(df.sort(wanted)), text


def test_literals_that_print_alike_are_told_apart(df: DataFrame) -> None:
    texts = {
        column_to_sql(sf.lit(value), df)
        for value in (
            1,
            "1",
            decimal.Decimal(1),
            1.0,
            decimal.Decimal("1.0"),
            "1.0",
            dt.date(2020, 1, 2),
            "2020-01-02",
        )
    }
    assert None not in texts
    assert len(texts) == 8


# Random trees: the text gives the same results, or there is none.

_numbers = st.one_of(
    st.sampled_from(("x", "y", "l", "dd", "dec", "`my col`", "`o'b(r, x`")).map(
        lambda name: lambda: col(name)
    ),
    st.one_of(
        st.integers(-3, 3),
        st.sampled_from([0.5, -1.25, 2.0**40]),
        st.sampled_from([decimal.Decimal("0.10"), decimal.Decimal(7)]),
    ).map(lambda value: lambda: sf.lit(value)),
)
_strings = st.one_of(
    st.just(lambda: col("str")),
    st.text(alphabet="ab'\\\"`,() %_\n1", max_size=5).map(lambda value: lambda: sf.lit(value)),
)


def _compose(function: Callable[..., Column], *parts: Make) -> Make:
    return lambda: function(*(part() for part in parts))


def _extend_numbers(inner: st.SearchStrategy[Make]) -> st.SearchStrategy[Make]:
    operators: list[Callable[..., Column]] = [
        operator.add,
        operator.sub,
        operator.mul,
        sf.try_divide,
        sf.coalesce,
    ]
    comparisons: list[Callable[..., Column]] = [operator.gt, operator.eq, Column.eqNullSafe]
    binary = st.builds(_compose, st.sampled_from(operators), inner, inner)
    test = st.builds(_compose, st.sampled_from(comparisons), inner, inner)
    texts = st.builds(
        _compose, st.sampled_from([operator.eq, Column.contains, operator.lt]), _strings, _strings
    )
    condition = st.one_of(test, texts, st.builds(lambda m: lambda: ~m().isNull(), inner))
    both = st.builds(_compose, st.sampled_from([operator.and_, operator.or_]), condition, condition)
    chosen = st.builds(
        lambda c, a, b: lambda: sf.when(c(), a()).otherwise(b()), both | condition, inner, inner
    )
    return st.one_of(binary, chosen, st.builds(lambda m: lambda: m().cast("double"), inner))


ROW: tuple[Any, ...] = (
    *(1, -2, 3, None, 0.5, decimal.Decimal("1.10"), None, "a'b", None),
    *(None, None, 2, 3, 4, None),
)


@pytest.fixture(scope="module")
def data(spark: SparkSession) -> DataFrame:
    """Two rows that the driver holds: what is computed of them needs no job."""
    rows = spark.createDataFrame([ROW, (None,) * len(ROW)], SCHEMA)
    return spark.createDataFrame(rows.toArrow(), rows.schema)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    make=st.recursive(_numbers, _extend_numbers, max_leaves=8),
    alias=st.none() | st.text(alphabet="ab c.`'(,", min_size=1, max_size=4),
)
def test_random_trees_give_the_same_results(data: DataFrame, make: Make, alias: str | None) -> None:
    column = make() if alias is None else make().alias(alias)
    text = column_to_sql(column, data)
    assume(text is not None)  # refused; hypothesis complains if that is the rule
    assert text is not None
    expected, got = data.select(column), data.select(sf.expr(text))
    assert got.schema == expected.schema
    assert repr(got.collect()) == repr(expected.collect())


@pytest.mark.parametrize("text", ["uuid()", "rand()", "concat(str, uuid())", "shuffle(arr)"])
def test_a_column_that_draws_anew_each_time_has_the_text_it_prints(df: DataFrame, text: str) -> None:
    assert column_to_sql(sf.expr(text), df) == text
    assert column_to_sql(sf.expr(text).alias("v"), df) == f"{text} AS v"


def test_one_that_can_be_read_in_two_ways_has_none(df: DataFrame) -> None:
    assert column_to_sql(sf.concat(sf.expr("uuid()"), sf.lit(dt.date(2020, 1, 1))), df) is None
