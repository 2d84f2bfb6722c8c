"""Where operators work: placement on levels, build sides, what is stashed. Pure: no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

import pytest

import samovar as sv
from samovar.compile.levels import SMALL, Placement, place
from samovar.compile.shapes import Nature, nature_by_names, shape_of
from samovar.graph.operator import Operator

BIG = 100 * SMALL


class Pass(sv.Operator):
    """Gives each row back."""

    output = "k int"

    def process(self, row: dict[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        yield row


def placed(build: Callable[[sv.Workflow], Any], sizes: Mapping[str, int] | None = None) -> Placement:
    flow = sv.Workflow("levels")
    build(flow)
    graph = flow.graph()
    shapes, volatile = {}, set()
    for name, op in graph.ops.items():
        live = graph.live.get(name)
        nature = reduce(Nature.__or__, map(nature_by_names, op.expressions()), Nature())
        shapes[name] = shape_of(op, nature, stateless=isinstance(live, Operator) and live.stateless)
        if nature.volatile:
            volatile.add(name)
    known = {s.name: (sizes or {}).get(s.name, 1000) for s in graph.sources}
    placement = place(graph, shapes, frozenset(volatile), known)
    check(placement, graph)
    return placement


def check(placement: Placement, graph: Any) -> None:
    """What must hold of every placement."""
    for name, op in graph.ops.items():
        for port, up in enumerate(op.inputs):
            ready = placement.level[up] + placement.ends(up)
            is_build = name in placement.build and port == (0 if placement.build[name] == "left" else 1)
            if placement.free(name):
                continue  # computed on every level that asks for it
            if is_build and name not in placement.inline:
                ready = placement.level[up] + 1
            if not placement.free(up):
                assert placement.level[name] >= ready, f"{name} works before {up} is ready"
            if not is_build and placement.works(name, placement.level[name]):
                assert placement.level[name] in placement.streams[up], f"{up} does not flow to {name}"
    for name in placement.stashed:
        assert any(at > placement.level[name] for at in placement.streams[name] | placement.whole[name])


def read(flow: sv.Workflow, name: str) -> sv.Frame:
    return flow.read.parquet(f"/data/{name}", name=name)


def test_a_chain_is_one_level() -> None:
    p = placed(lambda f: read(f, "a").filter("x > 1", name="f").selectExpr("k", name="s").sink("S"))
    assert p.levels == 1
    assert p.stashed == frozenset()
    assert set(p.level.values()) == {0}
    assert p.sources(0) == ["a"]


def test_an_aggregate_gives_its_output_on_the_next_level() -> None:
    p = placed(
        lambda f: read(f, "a").groupBy("k").agg("count(*) AS n", name="g").sort("n", name="o").sink("S")
    )
    assert [p.level[n] for n in ("a", "g", "o", "S")] == [0, 0, 1, 2]
    assert p.levels == 3
    assert p.sources(0) == ["a"]
    assert p.sources(1) == p.sources(2) == []
    assert p.streams["g"] == {1}


def test_both_branches_of_a_diamond_flow_together() -> None:
    def build(f: sv.Workflow) -> None:
        a = read(f, "a")
        a.filter("x > 1", name="l").union(a.filter("x < 1", name="r"), name="u").sink("S")

    p = placed(build)
    assert p.levels == 1
    assert p.streams["a"] == {0}


def test_a_join_takes_a_source_whole() -> None:
    p = placed(lambda f: read(f, "a").join(read(f, "b"), on="k", name="j").sink("S"))
    assert p.levels == 1
    assert p.inline == {"j"}
    assert p.whole["b"] == {0}
    assert p.streams["b"] == frozenset()


@pytest.mark.parametrize(
    ("how", "side"), [("left", "right"), ("semi", "right"), ("anti", "right"), ("right", "left")]
)
def test_outer_joins_build_the_side_that_is_only_looked_up(how: str, side: str) -> None:
    sizes = {"a": 10, "b": BIG} if side == "right" else {"a": BIG, "b": 10}
    p = placed(lambda f: read(f, "a").join(read(f, "b"), on="k", how=how, name="j").sink("S"), sizes)
    assert p.build["j"] == side


def test_an_inner_join_builds_the_smaller_side_unless_told() -> None:
    sizes = {"a": 10, "b": BIG}
    p = placed(lambda f: read(f, "a").join(read(f, "b"), on="k", name="j").sink("S"), sizes)
    assert p.build["j"] == "left"
    p = placed(lambda f: read(f, "a").join(read(f, "b"), on="k", build="right", name="j").sink("S"), sizes)
    assert p.build["j"] == "right"


def test_an_aggregate_on_the_build_side_ends_before_the_join() -> None:
    def build(f: sv.Workflow) -> None:
        a = read(f, "a")
        sums = a.groupBy("k").agg("sum(x) AS s", name="g")
        a.join(sums, on="k", name="j").sink("S")

    p = placed(build)
    assert (p.level["g"], p.level["j"]) == (0, 1)
    assert p.streams["a"] == {0, 1}  # read again for the probe
    assert p.whole["g"] == {1}
    assert p.stashed == frozenset()


def test_a_large_filtered_build_side_is_stashed_and_a_small_one_taken_whole() -> None:
    def build(f: sv.Workflow) -> None:
        read(f, "a").join(read(f, "b").filter("x > 1", name="f"), on="k", how="left", name="j").sink("S")

    large = placed(build, {"a": BIG, "b": BIG})
    assert large.stashed == {"f"}
    assert (large.level["f"], large.level["j"]) == (0, 1)
    small = placed(build, {"a": BIG, "b": 10})
    assert small.stashed == frozenset()
    assert small.levels == 1


def test_python_on_the_build_side_is_stashed() -> None:
    def build(f: sv.Workflow) -> None:
        read(f, "a").join(read(f, "b").apply(Pass(), name="p"), on="k", how="left", name="j").sink("S")

    p = placed(build)
    assert p.stashed == {"p"}
    assert (p.level["p"], p.level["j"]) == (0, 1)
    assert p.sources(0) == ["b"]
    assert p.sources(1) == ["a"]  # the stash is taken whole
    assert p.whole["p"] == {1}


def test_what_nothing_asks_for_before_works_late_and_is_not_stashed() -> None:
    def build(f: sv.Workflow) -> None:
        a = read(f, "a")
        sums = a.groupBy("k").agg("sum(x) AS s", name="g")
        a.apply(Pass(), name="p").join(sums, on="k", how="left", name="j").sink("S")

    p = placed(build)
    assert p.level["p"] == p.level["j"] == 1
    assert p.stashed == frozenset()


def test_python_that_two_levels_ask_for_is_stashed_for_the_higher() -> None:
    def build(f: sv.Workflow) -> None:
        made = read(f, "a").apply(Pass(), name="p")
        sums = made.groupBy("k").agg("count(*) AS n", name="g")
        made.join(sums, on="k", how="left", name="j").sink("S")

    p = placed(build)
    assert p.level["p"] == 0
    assert p.stashed == {"p"}
    assert p.streams["p"] == {0, 1}
    assert p.sources(1) == ["p"]


def test_a_self_join_reads_its_source_whole_and_in_slices() -> None:
    def build(f: sv.Workflow) -> None:
        a = read(f, "a")
        a.join(a.selectExpr("k", "x AS y", name="s"), on="k", name="j").sink("S")

    p = placed(build)
    assert p.levels == 1
    assert p.streams["a"] == {0}
    assert p.whole["a"] == {0}


def test_random_expressions_are_computed_once() -> None:
    def build(f: sv.Workflow) -> None:
        noisy = read(f, "a").selectExpr("k", "rand() AS r", name="noise")
        low = noisy.groupBy("k").agg("min(r) AS m", name="g")
        noisy.join(low, on="k", how="left", name="j").sink("S")

    p = placed(build)
    assert p.stashed == {"noise"}
    assert not p.free("noise")


def test_levels_follow_each_other_through_several_aggregates() -> None:
    def build(f: sv.Workflow) -> None:
        a = read(f, "a")
        one = a.groupBy("k").agg("count(*) AS n", name="one")
        two = a.join(one, on="k", name="j1").groupBy("n").agg("count(*) AS m", name="two")
        a.join(one, on="k", name="j2").join(two, on="n", name="j3").sort("k", name="o").sink("S")

    p = placed(build)
    assert [p.level[n] for n in ("one", "j1", "two", "j3", "o", "S")] == [0, 1, 1, 2, 2, 3]
    assert p.level["j2"] == 2
    assert p.streams["a"] == {0, 1, 2}


def test_full_joins_and_set_operations_keep_both_inputs() -> None:
    def build(f: sv.Workflow) -> None:
        a, b = read(f, "a"), read(f, "b")
        a.join(b, on="k", how="full", name="j").sink("S")
        a.select("k").intersect(b.select("k"), name="i").sink("T")

    p = placed(build)
    assert p.ends("j")
    assert p.ends("i")
    assert p.level["S"] == p.level["T"] == 1


def test_a_limit_is_no_part_of_what_is_taken_whole() -> None:
    def build(f: sv.Workflow) -> None:
        read(f, "a").join(read(f, "b").limit(5, name="l"), on="k", how="left", name="j").sink("S")

    assert placed(build).stashed == {"l"}


def heavy_join(f: sv.Workflow, *, filtered: bool = True, how: str = "inner") -> None:
    dates = read(f, "orders")
    if filtered:
        dates = dates.filter("day > 7", name="recent")
    sold = read(f, "items").join(dates, on="o", how=how, name="sold").selectExpr("c", "o", name="narrow")
    sold.join(read(f, "customers"), on="c", name="named").groupBy("c").count(name="n").sink("S")


HEAVY_SIZES = {"items": BIG, "orders": BIG // 8, "customers": SMALL}


def test_a_join_with_a_large_side_waits_until_a_filtered_one_has_left_few_rows() -> None:
    p = placed(heavy_join, HEAVY_SIZES)
    assert p.deferred == {"named"}
    assert p.stashed == {"narrow"}
    assert [p.level[n] for n in ("sold", "narrow", "named", "n")] == [0, 0, 1, 1]
    assert p.sources(0) == ["items"]
    assert p.sources(1) == ["narrow"]
    assert p.whole["customers"] == {1}


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ({**HEAVY_SIZES, "customers": 1000}, {}),
        ({name: size // 1000 for name, size in HEAVY_SIZES.items()}, {}),
        (HEAVY_SIZES, {"filtered": False}),
        (HEAVY_SIZES, {"how": "left"}),
    ],
    ids=["a small side", "few bytes", "nothing filtered", "every row stays"],
)
def test_a_join_is_not_deferred_for_nothing(sizes: dict[str, int], options: dict[str, Any]) -> None:
    p = placed(lambda f: heavy_join(f, **options), sizes)
    assert p.deferred == p.stashed == frozenset()
    assert set(p.level.values()) == {0, 1}


def test_recordings_of_older_versions_have_no_deferred_joins() -> None:
    flow = sv.Workflow("levels")
    heavy_join(flow)
    graph = flow.graph()
    shapes = {
        n: shape_of(op, reduce(Nature.__or__, map(nature_by_names, op.expressions()), Nature()))
        for n, op in graph.ops.items()
    }
    assert place(graph, shapes, frozenset(), HEAVY_SIZES).deferred
    assert not place(graph, shapes, frozenset(), HEAVY_SIZES, defers=False).deferred
