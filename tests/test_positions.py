"""The laws of positions: order, packing, prefixes, windows, and SQL that says the same as Python."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from samovar.positions import (
    AT_END,
    BEFORE_ALL,
    BLOCKING,
    END,
    NEVER,
    PAD,
    ROW_BITS,
    START,
    STASH,
    Position,
    Window,
    chunk_of,
    chunk_start,
    counting_partition,
    end_position,
    input_of,
    is_position_column,
    output_width,
    pack,
    packed_sql,
    padded,
    padded_columns,
    position_columns,
    reaches,
    reaches_sql,
    row_sql,
    same_place,
    unit_of,
    unit_sql,
    unpack,
)

COMMON = settings(deadline=None, database=None, max_examples=300)

units = st.integers(0, (1 << 22) - 1)
rows = st.integers(0, (1 << ROW_BITS) - 1)
small = st.integers(-1, 3)
"""Few numbers, so that parts are often equal."""
positions = st.lists(small, min_size=1, max_size=4).map(tuple)
leaves = st.tuples(st.integers(0, 3), st.builds(pack, st.integers(0, 3), st.integers(0, 20)))
windows = st.builds(Window, st.none() | leaves, st.none() | leaves)


def rows_of(source: int, unit: int, count: int) -> list[Position]:
    return [(source, pack(unit, row)) for row in range(count)]


def inside(window: Window, at: Position) -> bool:
    return (window.low is None or reaches(at, window.low)) and (
        window.high is None or not reaches(at, window.high)
    )


# --- packing --------------------------------------------------------------------------------------------------------


@COMMON
@given(units, rows)
def test_a_place_tells_its_unit_and_row(unit: int, row: int) -> None:
    place = pack(unit, row)
    assert unpack(place) == (unit, row)
    assert unit_of(place) == unit
    assert 0 <= place < END


@COMMON
@given(units, rows, units, rows)
def test_places_are_ordered_by_unit_then_row(unit: int, row: int, unit2: int, row2: int) -> None:
    assert (pack(unit, row) < pack(unit2, row2)) == ((unit, row) < (unit2, row2))


@COMMON
@given(leaves, st.integers(0, ROW_BITS))
def test_a_chunk_holds_the_places_from_its_start_on(at: Position, bits: int) -> None:
    source, number = chunk_of(at, bits)
    assert chunk_start((source, number), bits) <= at < chunk_start((source, number + 1), bits)


@COMMON
@given(
    st.integers(0, (1 << 20) - 1), st.integers(0, 1000), st.integers(0, (1 << 20) - 1), st.integers(0, 1000)
)
def test_tuples_are_counted_apart_by_key_partition_and_task(a: int, task: int, b: int, task2: int) -> None:
    assert (counting_partition(a, task) == counting_partition(b, task2)) == ((a, task) == (b, task2))


# --- order ----------------------------------------------------------------------------------------------------------


def test_the_first_parts_are_in_the_order_of_the_run() -> None:
    operators = 100_000
    first_parts = [BEFORE_ALL, STASH, STASH + operators, BLOCKING, BLOCKING + operators, PAD, 0, END]
    assert first_parts == sorted(set(first_parts))
    assert START < (BEFORE_ALL,) < (0, 0) < AT_END < (END + operators,) < NEVER


@COMMON
@given(positions, st.integers(0, 4))
def test_padding_keeps_a_position_and_its_place(at: Position, more: int) -> None:
    wide = padded(at, len(at) + more)
    assert wide[: len(at)] == at
    assert same_place(at, wide)
    assert wide >= at


@COMMON
@given(positions, positions)
def test_same_place_is_equality_but_for_padding(a: Position, b: Position) -> None:
    assert same_place(a, b) == same_place(b, a) == (padded(a, 4) == padded(b, 4))


@COMMON
@given(st.lists(positions, min_size=2, max_size=5), leaves)
def test_a_tuple_reaches_an_edge_if_its_leaf_tuple_does(parts: list[Position], edge: Position) -> None:
    assert reaches(edge, edge)
    assert reaches((*edge, *parts[0]), edge)
    assert reaches(AT_END, edge)
    assert reaches(edge, START)
    assert not reaches(edge, AT_END)
    assert not reaches(end_position(7, 0, 0, 0, 3), NEVER)


@COMMON
@given(st.lists(st.tuples(leaves, positions), min_size=2, max_size=2), leaves)
def test_what_reaches_an_edge_lies_behind_what_does_not(
    tuples: list[tuple[Position, Position]], edge: Position
) -> None:
    a, b = sorted((*leaf, *more) for leaf, more in tuples)
    assert reaches(b, edge) or not reaches(a, edge)


@COMMON
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 4), min_size=2, max_size=2), st.integers(1, 6))
def test_what_is_given_at_ends_is_ordered_by_operator_partition_port_and_child(
    keys: list[tuple[int, int, int, int]], width: int
) -> None:
    a, b = (end_position(*key, width) for key in sorted(keys))
    assert len(a) == len(b) == width
    assert a <= b
    assert (a == b) == (sorted(keys)[0] == sorted(keys)[1]) or width < 3
    assert a > AT_END or width == 1


# --- from an output back to its input -------------------------------------------------------------------------------


@COMMON
@given(positions, positions, st.integers(0, 9), st.sampled_from([0, 1]))
def test_an_output_leads_back_to_its_input(a: Position, b: Position, child: int, port: int) -> None:
    widths = (len(a), len(b))
    taken = (a, b)[port]
    wide = padded(taken, max(widths))
    made = {
        "one": ((a,), 0, a),
        "many": ((a,), 0, (*a, child)),
        "python": ((a, b), port, (*wide, port, child)),
        "batches": ((a,), 0, (*a, child)),
        "union": ((a, b), port, (*wide, port)),
        "join": ((a, b), port, (*taken, *(a, b)[1 - port])),
    }
    for shape, (inputs, source, position) in made.items():
        own = [len(at) for at in inputs]
        assert output_width(shape, own) == len(position), shape
        assert input_of(shape, position, own, probe=port) == (source, inputs[source]), shape


def test_rows_of_ends_and_of_whole_functions_come_from_no_single_tuple() -> None:
    for shape in ("accumulate", "keep", "opaque"):
        assert output_width(shape, [4]) == 2
        assert input_of(shape, (0, 1), [4]) is None


# --- windows --------------------------------------------------------------------------------------------------------


@COMMON
@given(windows, st.integers(0, 3), st.integers(0, 3), st.integers(0, 20))
def test_rows_of_a_window_are_those_between_its_edges(
    window: Window, source: int, unit: int, count: int
) -> None:
    every = rows_of(source, unit, count)
    chosen = window.rows(source, unit, count)
    assert [every[row] for row in chosen] == [at for at in every if inside(window, at)]


@COMMON
@given(windows, st.integers(0, 3), st.integers(0, 3), st.integers(0, 4))
def test_units_outside_of_a_window_have_no_rows_in_it(
    window: Window, source: int, start: int, count: int
) -> None:
    touched = window.units(source, start, start + count)
    skipped = set(range(start, start + count)) - set(touched)
    assert not any(inside(window, at) for unit in skipped for at in rows_of(source, unit, 21))


# --- columns and SQL ------------------------------------------------------------------------------------------------


def test_position_columns_are_told_from_other_hidden_columns() -> None:
    assert all(map(is_position_column, position_columns(12)))
    assert not any(map(is_position_column, ["p0", "__sv_port", "__sv_p", *position_columns(2, "q")]))


@settings(deadline=None, database=None, max_examples=12)
@given(st.lists(positions, min_size=1, max_size=30), positions)
def test_sql_compares_as_python_does(spark: SparkSession, every: list[Position], edge: Position) -> None:
    names = position_columns(4)
    wide = [padded(at, 4) for at in every]
    df = spark.createDataFrame(wide, ", ".join(f"{name} BIGINT" for name in names))
    chosen = df.selectExpr(
        f"array({', '.join(names)}) AS at", f"{reaches_sql(names, edge)} AS reached"
    ).collect()
    assert {tuple(row.at): row.reached for row in chosen} == {at: reaches(at, edge) for at in wide}


def test_sql_packs_and_pads_as_python_does(spark: SparkSession) -> None:
    cases = [(0, 0), (0, 7), (3, 0), (5, (1 << ROW_BITS) - 1), ((1 << 22) - 1, 9)]
    df = spark.createDataFrame(cases, "unit INT, row BIGINT")
    packed = df.selectExpr(
        "unit", "row", f"CAST({packed_sql('CAST(unit AS BIGINT)', 'row')} AS BIGINT) AS place"
    )
    found = packed.selectExpr(
        "place",
        f"{unit_sql('place')} AS unit",
        f"{row_sql('place')} AS row",
        *padded_columns(["unit"], 3)[1:],
    ).collect()
    assert [tuple(row) for row in found] == [(pack(*case), *case, PAD, PAD) for case in cases]


def test_executors_import_positions_without_spark() -> None:
    code = (
        "import sys, samovar.positions; sys.exit(any(name in sys.modules for name in ('pyspark', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
