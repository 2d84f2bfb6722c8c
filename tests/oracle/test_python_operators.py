"""Python operators against plain Python over the rows in canonical order, for any epoch size."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.oracle.operators import CountedBatches, Echo, Mapped, Order, Ports, RunningByKey, Totals, Twice
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE, epoch_sizes, rows_of, run_flow, write_files

import samovar as sv

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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("tables")
    return {
        "a": write_files(root / "a", table("a"), [9, 9, 5]),
        "b": write_files(root / "b", table("b", 7), [4, 3]),
        "empty": write_files(root / "empty", table("e").slice(0, 0), [0, 0]),
    }


def results(
    spark: SparkSession, tmp_path: Path, build: Callable[[sv.Workflow], Any], sinks: tuple[str, ...] = ("S",)
) -> Iterator[tuple[Any, ...]]:
    """The results of the sinks for each epoch size."""
    for size in epoch_sizes():
        flow = sv.Workflow("python")
        build(flow)
        run = run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size)
        yield tuple(run.result(s) for s in sinks) if len(sinks) > 1 else run.result(sinks[0])


def tags(result: pa.Table) -> list[str]:
    """The tags in the order the operator saw them."""
    return [t for _, t in sorted(zip(result["seq"].to_pylist(), result["tag"].to_pylist(), strict=True))]


def rows(name: str, count: int = ROWS) -> list[dict[str, Any]]:
    return table(name, count).to_pylist()  # type: ignore[no-any-return]


A = [f"a{i}" for i in range(ROWS)]
B = [f"b{i}" for i in range(7)]


def in_order(flow: sv.Workflow, data: dict[str, str], case: str) -> sv.Frame:
    """The frame whose order a test asks for."""
    a = flow.read.parquet(data["a"], name="a")
    b = flow.read.parquet(data["b"], name="b")
    match case:
        case "source":
            return a
        case "filtered":
            return a.filter("n > 2").withColumn("x", "n + 1")
        case "exploded":
            return a.selectExpr("tag AS old", "explode(list) AS e").selectExpr("concat(old, '.', e) AS tag")
        case "branches":
            return a.filter("n < 6").union(a.filter("n > 3"))
        case "two sources":
            return b.select("tag", "n").union(a.select("tag", "n"))
        case "sorted":
            return a.dropna(subset=["n"]).sort("n", "tag")
        case "limited":
            return a.filter("n > 1").limit(12)
        case "joined":
            return a.join(b.selectExpr("k", "tag AS other"), on="k").selectExpr(
                "concat(tag, '/', other) AS tag"
            )
        case "limit of a join":
            return (
                a.join(b.selectExpr("k", "tag AS other"), on="k")
                .selectExpr("concat(tag, '/', other) AS tag")
                .limit(5)
            )
        case "aggregated":
            return a.groupBy("k").agg("count(*) AS n").selectExpr("string(k) AS tag", "n")
        case "stateless":
            return a.apply(Twice(), name="twice")
        case "behind another":
            return a.apply(Echo(), name="echo")
        case "behind a keyed one":
            return a.apply(RunningByKey(), by="k", name="by k").filter("k IS NULL OR k >= 0")
        case "ended and not":
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
        case "two sources":
            return [*A, *B]  # in the order in which the workflow reads them
        case "sorted":
            return [
                r["tag"]
                for r in sorted((r for r in a if r["n"] is not None), key=lambda r: (r["n"], r["tag"]))
            ]
        case "limited":
            return [r["tag"] for r in a if (r["n"] or 0) > 1][:12]
        case "joined" | "limit of a join":
            pairs = [
                f"{r['tag']}/{s['tag']}" for r in a for s in b if r["k"] is not None and r["k"] == s["k"]
            ]
            return pairs if case == "joined" else pairs[:5]
        case "aggregated" | "ended and not":
            keys = sorted({r["k"] for r in a}, key=lambda k: (k is not None, k or 0))
            return [str(k) for k in keys] + (B if case == "ended and not" else [])
        case "stateless":
            return [f"{r['tag']}.{i}" for r in a for i in range((r["n"] or 0) % 3)]
    return A


@pytest.mark.parametrize(
    "case",
    [
        "source",
        "filtered",
        "exploded",
        "branches",
        "two sources",
        "sorted",
        "limited",
        "joined",
        "limit of a join",
        "aggregated",
        "stateless",
        "behind another",
        "behind a keyed one",
        "ended and not",
    ],
)
def test_an_operator_sees_rows_in_canonical_order(
    case: str, spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        in_order(flow, data, case).apply(Order(), name="order").sink("S")

    for result in results(spark, tmp_path, build):
        assert tags(result) == expected_order(case)


def test_two_sinks_of_one_operator_see_the_same_rows_and_state_counts_once(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        made = flow.read.parquet(data["a"]).apply(Totals(), name="totals")
        made.sink("S")
        made.filter("total > 20").sink("T")

    total = 0
    wanted = []
    for row in rows("a"):
        total += row["n"] or 0
        wanted.append((row["tag"], total))
    wanted.append((f"end of {ROWS}", total))
    for first, second in results(spark, tmp_path, build, ("S", "T")):
        assert Counter(rows_of(first)) == Counter(wanted)
        assert Counter(rows_of(second)) == Counter(w for w in wanted if w[1] > 20)


def test_keys_keep_their_order_and_null_is_a_key(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        flow.read.parquet(data["a"]).apply(RunningByKey(), by="k", key_partitions=3, name="by k").sink("S")

    counts: dict[Any, int] = {}
    sums: dict[Any, int] = {}
    wanted = []
    for row in rows("a"):
        k = row["k"]
        counts[k] = counts.get(k, 0) + 1
        sums[k] = sums.get(k, 0) + (row["n"] or 0)
        wanted.append((k, row["tag"], counts[k], sums[k]))
    for result in results(spark, tmp_path, build):
        got = rows_of(result)
        ends = [r for r in got if r[1] == "end"]
        assert Counter(r for r in got if r[1] != "end") == Counter(wanted)
        assert len(ends) == 3  # once for each instance, also one that got no rows
        assert sum(r[2] for r in ends) == ROWS


def test_two_operators_with_different_keys_in_a_row(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        first = flow.read.parquet(data["a"]).apply(RunningByKey(), by="k", name="by k").filter("tag <> 'end'")
        again = first.selectExpr("nth AS k", "tag", "total AS n")
        again.apply(RunningByKey(), by="k", name="by nth").filter("tag <> 'end'").sink("S")

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
    for result in results(spark, tmp_path, build):
        assert Counter(rows_of(result)) == wanted


def test_ports_are_read_in_the_order_of_positions_and_each_ends_once(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        a = flow.read.parquet(data["a"], name="a")
        odd, even = a.filter("n % 2 = 1"), a.filter("n % 2 = 0")
        flow.apply(Ports(), odd, even, flow.read.parquet(data["b"], name="b"), name="ports").sink("S")

    known = [r for r in rows("a") if r["n"] is not None]
    wanted = [(r["tag"], 0 if r["n"] % 2 else 1) for r in known] + [(t, 2) for t in B]
    for result in results(spark, tmp_path, build):
        got = rows_of(result)
        seen = sorted((r for r in got if not r[0].startswith("end")), key=lambda r: r[2])
        assert [r[:2] for r in seen] == wanted
        ends = {r[0]: r[2] for r in got if r[0].startswith("end")}
        assert ends == {f"end {p}": sum(1 for w in wanted if w[1] == p) for p in range(3)}


def test_ports_with_keys_of_different_types_meet(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        a = flow.read.parquet(data["a"], name="a").select("tag", "k")
        b = flow.read.parquet(data["b"], name="b").selectExpr("tag", "bigint(k) AS k")
        flow.apply(PairsByKey(), a, b, by="k", key_partitions=5, name="pairs").sink("S")

    wanted = Counter((k, n) for k, n in Counter(r["k"] for r in [*rows("a"), *rows("b", 7)]).items())
    for result in results(spark, tmp_path, build):
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


def test_an_aggregate_feeds_an_operator_that_feeds_a_join(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        a = flow.read.parquet(data["a"], name="a")
        sums = a.groupBy("k").agg("sum(n) AS n").selectExpr("string(k) AS tag", "n")
        judged = sums.apply(Totals(), name="totals").selectExpr("int(try_cast(tag AS int)) AS k", "total")
        a.join(judged, on="k", how="left").select("tag", "total").sink("S")

    sums: dict[Any, int] = {}
    for row in rows("a"):
        sums[row["k"]] = sums.get(row["k"], 0) + (row["n"] or 0)
    running, total = {}, 0
    for k in sorted(sums, key=lambda k: (k is not None, k or 0)):
        total += sums[k]
        running[k] = total
    wanted = Counter((r["tag"], None if r["k"] is None else running[r["k"]]) for r in rows("a"))
    for result in results(spark, tmp_path, build):
        assert Counter(rows_of(result)) == wanted


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_an_operator_on_the_build_side_of_a_join(
    how: str, spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        a = flow.read.parquet(data["a"], name="a").select("tag", "k")
        b = (
            flow.read.parquet(data["b"], name="b")
            .apply(Echo(), name="echo")
            .selectExpr("int(n) AS k", "tag AS other")
        )
        joined = a.join(b, on="k", how=how)
        joined.sink("S")

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
    for result in results(spark, tmp_path, build):
        assert Counter(rows_of(result)) == wanted


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


def test_order_holds_where_a_stored_edge_meets_another_source(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    """`totals` is on a level below its consumer, whose other input is read from files."""

    def build(flow: sv.Workflow) -> None:
        a = flow.read.parquet(data["a"], name="a")
        b = flow.read.parquet(data["b"], name="b")
        totals = a.apply(Totals(), name="totals").select("tag")
        late = b.join(b.groupBy("k").agg("count(*) AS c"), on="k", how="left").select("tag")
        late.union(totals).apply(Order(), name="order").sink("S")

    wanted = [*A, *B, f"end of {ROWS}"]
    for result in results(spark, tmp_path, build):
        assert tags(result) == wanted


def test_finish_comes_after_what_an_earlier_finish_gave(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        one = flow.read.parquet(data["b"], name="b").apply(Totals(), name="one")
        two = one.selectExpr("tag", "total AS n").apply(Totals(), name="two")
        two.selectExpr("tag", "total AS n").apply(Order(), name="order").sink("S")

    for result in results(spark, tmp_path, build):
        assert tags(result) == [*B, "end of 7", "end of 8"]


def test_an_empty_source_still_ends(spark: SparkSession, tmp_path: Path, data: dict[str, str]) -> None:
    def build(flow: sv.Workflow) -> None:
        e = flow.read.parquet(data["empty"], name="e")
        e.apply(Totals(), name="totals").sink("S")
        e.apply(CountedBatches(), name="batches").sink("T")

    for one, two in results(spark, tmp_path, build, ("S", "T")):
        assert rows_of(one) == [("end of 0", 0)]
        assert rows_of(two) == [("rows", 0)]


def test_the_batch_form_sees_every_row_once(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        made = flow.read.parquet(data["a"], name="a").apply(CountedBatches(), name="batches")
        made.apply(Order(), name="order").sink("S")

    for result in results(spark, tmp_path, build):
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
    for result in results(spark, tmp_path, build):
        got = sorted(result.to_pylist(maps_as_pydicts="strict"), key=lambda r: r["tag"])
        assert got == wanted


@pytest.mark.parametrize("form", ["csv", "json"])
def test_rows_of_text_files_come_in_the_order_of_lines(
    form: str, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / form
    folder.mkdir()
    count = 0
    for file in range(3):
        lines = ["tag,n"] if form == "csv" else []
        for _ in range(40):
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

    for result in results(spark, tmp_path, build):
        assert tags(result) == [f"r{i}" for i in range(120) if i % 3]


def test_first_rows_are_first_in_canonical_order(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    def build(flow: sv.Workflow) -> None:
        a = flow.read.parquet(data["a"], name="a")
        a.limit(11).select("tag").sink("limit")
        a.filter("n > 2").offset(4).select("tag").sink("offset")
        a.dropDuplicates(["k"]).select("k", "tag").sink("unique")
        a.groupBy("k").agg("first(tag) AS f", "last(tag) AS l", "collect_list(tag) AS all").sink("ends")
        a.groupBy("k").agg("first(tag) AS f", "collect_list(tag) AS all", "median(n) AS m").drop("m").sink(
            "kept"
        )
        a.agg("first(tag) AS f", "collect_list(tag) AS all", "percentile(n, 0.5) AS m").drop("m").sink(
            "kept all"
        )
        a.sample(0.4, 7).select("tag").sink("sample")

    groups: dict[Any, list[str]] = {}
    for row in rows("a"):
        groups.setdefault(row["k"], []).append(row["tag"])
    sinks = ("limit", "offset", "unique", "ends", "kept", "kept all", "sample")
    sampled = set()
    for limit, offset, unique, ends, kept, kept_all, sample in results(spark, tmp_path, build, sinks):
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
        sampled.add(tuple(sorted(sample["tag"].to_pylist())))
        assert set(sample["tag"].to_pylist()) < set(A)
    assert len(sampled) == 1  # the same rows however the input is cut


def test_a_second_epoch_size_is_really_another_cut(
    spark: SparkSession, tmp_path: Path, data: dict[str, str]
) -> None:
    counts = []
    for size in (ONE_FILE, ALL_AT_ONCE):
        flow = sv.Workflow("python")
        flow.read.parquet(data["a"], name="a").sink("S")
        counts.append(run_flow(spark, flow, tmp_path / "runs", epoch_bytes=size).progress.epoch)
    assert counts == [3, 1]
