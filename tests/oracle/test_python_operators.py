"""Python operators against plain Python over the rows in canonical order, for any epoch size."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.conftest import ALL_SIZES
from tests.oracle.operators import CountedBatches, Echo, Mapped, Order, Ports, RunningByKey, Totals, Twice
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE, epoch_sizes, rows_of, run_flow, write_files

import samovar as sv
from samovar.runtime.sources import unit_list

ROWS = 23


def table(name: str, rows: int = ROWS) -> pa.Table:
    """Rows tagged with the table's name and their number, small numbers and a key with nulls."""
    return pa.table(
        {
            "tag": [f"{name}{i}" for i in range(rows)],
            "n": pa.array([i * 7 % 11 if i % 6 else None for i in range(rows)], pa.int64()),
            "k": pa.array([i * 3 % 5 if i % 4 else None for i in range(rows)], pa.int32()),
            "list": pa.array([list(range(i % 3)) for i in range(rows)], pa.list_(pa.int32())),
        }
    )


@pytest.fixture(autouse=True, scope="module")
def small_units() -> Iterator[None]:
    """Files are cut into units of five rows: the shortest epochs begin and end inside files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_list, "SMALLEST_GRAIN", 5)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("tables")
    return {
        "a": write_files(root / "a", table("a"), [12, 11]),
        "b": write_files(root / "b", table("b", 7), [4, 3]),
        "empty": write_files(root / "empty", table("e").slice(0, 0), [0, 0]),
    }


def alone(
    spark: SparkSession, tmp_path: Path, build: Callable[[sv.Workflow], Any], sinks: tuple[str, ...] = ("S",)
) -> Iterator[tuple[Any, ...]]:
    """The results of the sinks of a workflow for each epoch size."""
    for size in epoch_sizes():
        flow = sv.Workflow("python")
        build(flow)
        run = run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size)
        yield tuple(run.result(s) for s in sinks) if len(sinks) > 1 else run.result(sinks[0])


SIZES = (ONE_FILE, ALL_AT_ONCE)
Build = Callable[[sv.Workflow, Any, Any], list[Any]]
Results = Callable[[str], Iterator[tuple[Any, ...]]]

PARTS: dict[str, Build] = {}
"""Parts of workflows: from the tables `a` and `b` to the frames of their sinks."""

OF_A = """source filtered exploded branches limited stateless behind_another behind_a_keyed_one two_sinks with_keys
keys_in_a_row batches"""
OF_BOTH = "two_sources joined limit_of_a_join three_ports keys_of_two_types"
TOGETHER = [OF_A.split(), OF_BOTH.split()]
"""Parts that are run in one workflow. Others would make epochs or levels that all of its sinks go through."""


def part(build: Build) -> Build:
    PARTS[build.__name__] = build
    return build


def sizes_of(name: str) -> tuple[int, ...]:
    """Every second part is run at every second epoch size, and with `--slow` all at all sizes."""
    return SIZES if os.environ.get(ALL_SIZES) else (SIZES[list(PARTS).index(name) % 2],)


@pytest.fixture(scope="module")
def results(spark: SparkSession, data: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of a part's sinks for each epoch size."""

    @functools.cache
    def run(size: int, *names: str) -> tuple[Any, dict[str, int]]:
        flow = sv.Workflow("python")
        a, b = (flow.read.parquet(data[name], name=name) for name in ("a", "b"))
        counts = {}
        for name in names:
            frames = PARTS[name](flow, a, b)
            counts[name] = len(frames)
            for i, frame in enumerate(frames):
                frame.sink(f"{name} {i}")
        return run_flow(spark, flow, tmp_path_factory.mktemp("runs"), epoch_bytes=size), counts

    def of(name: str) -> Iterator[tuple[Any, ...]]:
        group = next((names for names in TOGETHER if name in names), [name])
        for size in sizes_of(name):
            made, counts = run(size, *(other for other in group if size in sizes_of(other)))
            yield tuple(made.result(f"{name} {i}") for i in range(counts[name]))

    return of


def tags(result: pa.Table) -> list[str]:
    """The tags in the order the operator saw them."""
    return [t for _, t in sorted(zip(result["seq"].to_pylist(), result["tag"].to_pylist(), strict=True))]


def rows(name: str, count: int = ROWS) -> list[dict[str, Any]]:
    return table(name, count).to_pylist()  # type: ignore[no-any-return]


A = [f"a{i}" for i in range(ROWS)]
B = [f"b{i}" for i in range(7)]


def in_order(a: Any, b: Any, case: str) -> sv.Frame:
    """The frame whose order a test asks for."""
    match case:
        case "source":
            return a
        case "filtered":
            return a.filter("n > 2").withColumn("x", "n + 1")
        case "exploded":
            return a.selectExpr("tag AS old", "explode(list) AS e").selectExpr("concat(old, '.', e) AS tag")
        case "branches":
            return a.filter("n < 6").union(a.filter("n > 3"))
        case "two_sources":
            return b.select("tag", "n").union(a.select("tag", "n"))
        case "sorted":
            return a.dropna(subset=["n"]).sort("n", "tag")
        case "limited":
            return a.filter("n > 1").limit(12)
        case "joined":
            return a.join(b.selectExpr("k", "tag AS other"), on="k").selectExpr(
                "concat(tag, '/', other) AS tag"
            )
        case "limit_of_a_join":
            return (
                a.join(b.selectExpr("k", "tag AS other"), on="k")
                .selectExpr("concat(tag, '/', other) AS tag")
                .limit(5)
            )
        case "aggregated":
            return a.groupBy("k").agg("count(*) AS n").selectExpr("string(k) AS tag", "n")
        case "stateless":
            return a.apply(Twice(), name="twice")
        case "behind_another":
            return a.apply(Echo(), name="echo")
        case "behind_a_keyed_one":
            return a.apply(RunningByKey(), by="k", name="by k").filter("k IS NULL OR k >= 0")
        case "ended_and_not":
            return a.groupBy("k").agg("count(*) AS n").selectExpr("string(k) AS tag").union(b.select("tag"))
    raise AssertionError(case)


def expected_order(case: str) -> list[str]:
    a, b = rows("a"), rows("b", 7)
    match case:
        case "filtered":
            return [r["tag"] for r in a if (r["n"] or 0) > 2]
        case "exploded":
            return [f"{r['tag']}.{e}" for r in a for e in r["list"]]
        case "branches":
            low = [(i, 0, r) for i, r in enumerate(a) if r["n"] is not None and r["n"] < 6]
            high = [(i, 1, r) for i, r in enumerate(a) if r["n"] is not None and r["n"] > 3]
            return [r["tag"] for _, _, r in sorted([*low, *high], key=lambda x: x[:2])]
        case "two_sources":
            return [*A, *B]  # in the order in which the workflow reads them
        case "sorted":
            return [
                r["tag"]
                for r in sorted((r for r in a if r["n"] is not None), key=lambda r: (r["n"], r["tag"]))
            ]
        case "limited":
            return [r["tag"] for r in a if (r["n"] or 0) > 1][:12]
        case "joined" | "limit_of_a_join":
            pairs = [
                f"{r['tag']}/{s['tag']}" for r in a for s in b if r["k"] is not None and r["k"] == s["k"]
            ]
            return pairs if case == "joined" else pairs[:5]
        case "aggregated" | "ended_and_not":
            keys = sorted({r["k"] for r in a}, key=lambda k: (k is not None, k or 0))
            return [str(k) for k in keys] + (B if case == "ended_and_not" else [])
        case "stateless":
            return [f"{r['tag']}.{i}" for r in a for i in range((r["n"] or 0) % 3)]
    return A


CASES = [
    "source",
    "filtered",
    "exploded",
    "branches",
    "two_sources",
    "sorted",
    "limited",
    "joined",
    "limit_of_a_join",
    "aggregated",
    "stateless",
    "behind_another",
    "behind_a_keyed_one",
    "ended_and_not",
]
for case in CASES:
    PARTS[case] = lambda _, a, b, case=case: [in_order(a, b, case).apply(Order(), name=f"order of {case}")]


@pytest.mark.parametrize("case", CASES)
def test_an_operator_sees_rows_in_canonical_order(case: str, results: Results) -> None:
    for (result,) in results(case):
        assert tags(result) == expected_order(case)


@part
def two_sinks(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    made = a.apply(Totals(), name="totals")
    return [made, made.filter("total > 20")]


def test_two_sinks_of_one_operator_see_the_same_rows_and_state_counts_once(results: Results) -> None:
    total = 0
    wanted = []
    for row in rows("a"):
        total += row["n"] or 0
        wanted.append((row["tag"], total))
    wanted.append((f"end of {ROWS}", total))
    for first, second in results("two_sinks"):
        assert Counter(rows_of(first)) == Counter(wanted)
        assert Counter(rows_of(second)) == Counter(w for w in wanted if w[1] > 20)


@part
def with_keys(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    return [a.apply(RunningByKey(), by="k", key_partitions=3, name="keys")]


def test_keys_keep_their_order_and_null_is_a_key(results: Results) -> None:
    counts: dict[Any, int] = {}
    sums: dict[Any, int] = {}
    wanted = []
    for row in rows("a"):
        k = row["k"]
        counts[k] = counts.get(k, 0) + 1
        sums[k] = sums.get(k, 0) + (row["n"] or 0)
        wanted.append((k, row["tag"], counts[k], sums[k]))
    for (result,) in results("with_keys"):
        got = rows_of(result)
        ends = [r for r in got if r[1] == "end"]
        assert Counter(r for r in got if r[1] != "end") == Counter(wanted)
        assert len(ends) == 3  # once for each instance, also one that got no rows
        assert sum(r[2] for r in ends) == ROWS


@part
def keys_in_a_row(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    first = a.apply(RunningByKey(), by="k", key_partitions=2, name="first keys").filter("tag <> 'end'")
    again = first.selectExpr("nth AS k", "tag", "total AS n")
    return [again.apply(RunningByKey(), by="k", key_partitions=2, name="by nth").filter("tag <> 'end'")]


def test_two_operators_with_different_keys_in_a_row(results: Results) -> None:
    def step(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        counts: dict[Any, int] = {}
        sums: dict[Any, int] = {}
        made = []
        for row in given:
            k = row["k"]
            counts[k] = counts.get(k, 0) + 1
            sums[k] = sums.get(k, 0) + (row["n"] or 0)
            made.append({"k": k, "tag": row["tag"], "nth": counts[k], "total": sums[k]})
        return made

    middle = [{"k": r["nth"], "tag": r["tag"], "n": r["total"]} for r in step(rows("a"))]
    wanted = Counter(tuple(r.values()) for r in step(middle))
    for (result,) in results("keys_in_a_row"):
        assert Counter(rows_of(result)) == wanted


@part
def three_ports(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    odd, even = a.filter("n % 2 = 1"), a.filter("n % 2 = 0")
    return [flow.apply(Ports(), odd, even, b, name="ports")]


def test_ports_are_read_in_the_order_of_positions_and_each_ends_once(results: Results) -> None:
    known = [r for r in rows("a") if r["n"] is not None]
    wanted = [(r["tag"], 0 if r["n"] % 2 else 1) for r in known] + [(t, 2) for t in B]
    for (result,) in results("three_ports"):
        got = rows_of(result)
        seen = sorted((r for r in got if not r[0].startswith("end")), key=lambda r: r[2])
        assert [r[:2] for r in seen] == wanted
        ends = {r[0]: r[2] for r in got if r[0].startswith("end")}
        assert ends == {f"end {p}": sum(1 for w in wanted if w[1] == p) for p in range(3)}


@part
def keys_of_two_types(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    left, right = a.select("tag", "k"), b.selectExpr("tag", "bigint(k) AS k")
    return [flow.apply(PairsByKey(), left, right, by="k", key_partitions=3, name="pairs")]


def test_ports_with_keys_of_different_types_meet(results: Results) -> None:
    wanted = Counter((k, n) for k, n in Counter(r["k"] for r in [*rows("a"), *rows("b", 7)]).items())
    for (result,) in results("keys_of_two_types"):
        assert Counter(rows_of(result)) == wanted


class PairsByKey(sv.Operator):
    """How many rows of both ports each key has, at the end of the last port."""

    output = "k bigint, n int"
    counts = sv.MapState()

    def process(self, row: dict[str, Any], port: int = 0) -> None:
        self.counts[row["k"]] = self.counts.get(row["k"], 0) + 1

    def finish(self, port: int = 0) -> Iterator[dict[str, Any]]:
        if port == 1:
            yield from ({"k": k, "n": n} for k, n in self.counts.items())


@part
def aggregate_operator_join(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    sums = a.groupBy("k").agg("sum(n) AS n").selectExpr("string(k) AS tag", "n")
    judged = sums.apply(Totals(), name="judged").selectExpr("int(try_cast(tag AS int)) AS k", "total")
    return [a.join(judged, on="k", how="left").select("tag", "total")]


def test_an_aggregate_feeds_an_operator_that_feeds_a_join(results: Results) -> None:
    sums: dict[Any, int] = {}
    for row in rows("a"):
        sums[row["k"]] = sums.get(row["k"], 0) + (row["n"] or 0)
    running, total = {}, 0
    for k in sorted(sums, key=lambda k: (k is not None, k or 0)):
        total += sums[k]
        running[k] = total
    wanted = Counter((r["tag"], None if r["k"] is None else running[r["k"]]) for r in rows("a"))
    for (result,) in results("aggregate_operator_join"):
        assert Counter(rows_of(result)) == wanted


HOW = ["inner", "left", "semi", "anti"]


@part
def build_side(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    left = a.select("tag", "k")
    right = b.apply(Echo(), name="echo").selectExpr("int(n) AS k", "tag AS other")
    return [left.join(right, on="k", how=how) for how in HOW]


@pytest.mark.parametrize("how", HOW)
def test_an_operator_on_the_build_side_of_a_join(how: str, results: Results) -> None:
    others = {}
    for row in rows("b", 7):
        others.setdefault(row["n"], []).append(row["tag"])
    wanted: Counter[tuple[Any, ...]] = Counter()
    for row in rows("a"):
        found = others.get(row["k"], []) if row["k"] is not None else []
        match how:
            case "inner" | "left":
                for tag in found:
                    wanted[row["k"], row["tag"], tag] += 1
                if how == "left" and not found:
                    wanted[row["k"], row["tag"], None] += 1
            case _:
                if bool(found) == (how == "semi"):
                    wanted[row["k"], row["tag"]] += 1
    for found_by in results("build_side"):
        assert Counter(rows_of(found_by[HOW.index(how)])) == wanted


def test_a_state_moves_on_although_nothing_asks_for_its_rows(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    """Spark leaves the probe side of a join out when it sees that the build side is empty."""

    for size in epoch_sizes():
        flow = sv.Workflow("python")
        counted = flow.read.parquet(data["a"], name="a").apply(Echo(), name="echo")
        nothing = flow.read.parquet(data["b"], name="b").filter("n > 1000").selectExpr("n", "tag AS other")
        counted.join(nothing, on="n").sink("S")
        counted_too = flow.read.parquet(data["a"], name="a2").apply(Echo(), name="behind")
        counted_too.limit(2).select("tag").sink("T")
        run = run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size)
        assert run.result("S").num_rows == 0
        assert run.result("T")["tag"].to_pylist() == ["a0", "a1"]
        counters = {o.name: (o.taken, o.given) for o in run.progress.operators}
        assert counters["echo"] == (ROWS, ROWS)
        assert counters["behind"] == (ROWS, ROWS)


@part
def stored_edge(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    totals = a.apply(Totals(), name="stored totals").select("tag")
    late = b.join(b.groupBy("k").agg("count(*) AS c"), on="k", how="left").select("tag")
    return [late.union(totals).apply(Order(), name="order of the stored edge")]


def test_order_holds_where_a_stored_edge_meets_another_source(results: Results) -> None:
    """`stored totals` is on a level below its consumer, whose other input is read from files."""

    wanted = [*A, *B, f"end of {ROWS}"]
    for (result,) in results("stored_edge"):
        assert tags(result) == wanted


@part
def two_finishes(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    one = b.apply(Totals(), name="one")
    two = one.selectExpr("tag", "total AS n").apply(Totals(), name="two")
    return [two.selectExpr("tag", "total AS n").apply(Order(), name="order of finishes")]


def test_finish_comes_after_what_an_earlier_finish_gave(results: Results) -> None:
    for (result,) in results("two_finishes"):
        assert tags(result) == [*B, "end of 7", "end of 8"]


def test_an_empty_source_still_ends(spark: SparkSession, tmp_path: Path, data: dict[str, str]) -> None:
    def build(flow: sv.Workflow) -> None:
        e = flow.read.parquet(data["empty"], name="e")
        e.apply(Totals(), name="totals").sink("S")
        e.apply(CountedBatches(), name="batches").sink("T")

    for one, two in alone(spark, tmp_path, build, ("S", "T")):
        assert rows_of(one) == [("end of 0", 0)]
        assert rows_of(two) == [("rows", 0)]


@part
def batches(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    return [a.apply(CountedBatches(), name="batches").apply(Order(), name="order of batches")]


def test_the_batch_form_sees_every_row_once(results: Results) -> None:
    for (result,) in results("batches"):
        assert tags(result) == [*A, "rows"]


def test_values_of_all_types_go_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    source = pa.table(
        {
            "tag": ["x", "y", "z"],
            "m": pa.array([{"a": 1}, None, {}], pa.map_(pa.string(), pa.int32())),
            "s": pa.array(
                [{"a": 1, "b": [1.5, None]}, None, {"a": None, "b": None}],
                pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float64()))]),
            ),
            "d": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-7.00")], pa.decimal128(10, 2)),
            "t": pa.array(
                [
                    dt.datetime(2020, 1, 1, 1, 2, 3, 4, tzinfo=dt.UTC),
                    None,
                    dt.datetime(1960, 1, 1, tzinfo=dt.UTC),
                ],
                pa.timestamp("us", tz="UTC"),
            ),
            "day": pa.array([dt.date(2020, 2, 29), None, dt.date(1500, 1, 1)]),
        }
    )
    path = write_files(tmp_path / "t", source, 2)

    def build(flow: sv.Workflow) -> None:
        flow.read.parquet(path).apply(Mapped(), name="mapped").apply(Mapped(), name="again").sink("S")

    wanted = source.to_pylist(maps_as_pydicts="strict")
    for row in wanted:
        if row["m"] is not None:
            row["m"] = {**row["m"], "new": len(row["m"]) + 1}
    for result in alone(spark, tmp_path, build):
        got = sorted(result.to_pylist(maps_as_pydicts="strict"), key=lambda r: r["tag"])
        assert got == wanted


@pytest.mark.parametrize("form", ["csv", "json"])
def test_rows_of_text_files_come_in_the_order_of_lines(
    form: str, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / form
    folder.mkdir()
    count = 0
    for file in range(2):
        lines = ["tag,n"] if form == "csv" else []
        for _ in range(60):
            lines.append(f"r{count},{count}" if form == "csv" else f'{{"tag": "r{count}", "n": {count}}}')
            count += 1
        (folder / f"f{file}.{form}").write_text("\n".join(lines) + "\n")

    def build(flow: sv.Workflow) -> None:
        schema = "tag string, n bigint"
        if form == "csv":
            source = flow.read.csv(str(folder), schema, header=True, name="text")
        else:
            source = flow.read.json(str(folder), schema, name="text")
        source.filter("n % 3 > 0").apply(Order(), name="order").sink("S")

    for result in alone(spark, tmp_path, build):
        assert tags(result) == [f"r{i}" for i in range(120) if i % 3]


@part
def sampled(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    return [a.sample(0.4, 7).select("tag")]


@part
def first_rows(flow: sv.Workflow, a: Any, b: Any) -> list[Any]:
    ends = "first(tag) AS f", "last(tag) AS l", "collect_list(tag) AS all"
    kept = "first(tag) AS f", "collect_list(tag) AS all", "median(n) AS m"
    kept_all = "first(tag) AS f", "collect_list(tag) AS all", "percentile(n, 0.5) AS m"
    return [
        a.limit(11).select("tag"),
        a.filter("n > 2").offset(4).select("tag"),
        a.dropDuplicates(["k"]).select("k", "tag"),
        a.groupBy("k").agg(*ends),
        a.groupBy("k").agg(*kept).drop("m"),
        a.agg(*kept_all).drop("m"),
    ]


def test_first_rows_are_first_in_canonical_order(results: Results) -> None:
    groups: dict[Any, list[str]] = {}
    for row in rows("a"):
        groups.setdefault(row["k"], []).append(row["tag"])
    for limit, offset, unique, ends, kept, kept_all in results("first_rows"):
        assert sorted(limit["tag"].to_pylist()) == sorted(A[:11])
        assert sorted(offset["tag"].to_pylist()) == sorted(
            [r["tag"] for r in rows("a") if (r["n"] or 0) > 2][4:]
        )
        assert dict(rows_of(unique)) == {k: v[0] for k, v in groups.items()}
        assert {k: (f, last, every) for k, f, last, every in rows_of(ends)} == {
            k: (v[0], v[-1], v) for k, v in groups.items()
        }
        assert {k: (f, every) for k, f, every in rows_of(kept)} == {k: (v[0], v) for k, v in groups.items()}
        assert rows_of(kept_all) == [("a0", A)]


def test_a_sample_has_the_same_rows_however_the_input_is_cut(results: Results) -> None:
    drawn = set()
    for (sample,) in results("sampled"):
        drawn.add(tuple(sorted(sample["tag"].to_pylist())))
        assert set(sample["tag"].to_pylist()) < set(A)
    assert len(drawn) == 1


def test_a_second_epoch_size_is_really_another_cut(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    counts = []
    for size in (ONE_FILE, ALL_AT_ONCE):
        flow = sv.Workflow("python")
        flow.read.parquet(data["a"], name="a").sink("S")
        counts.append(run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size).progress.epoch)
    assert counts == [2, 1]
