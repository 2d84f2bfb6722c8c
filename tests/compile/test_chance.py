"""Draws and numbers that follow positions, and the present time of a run, as text."""

from __future__ import annotations

import re
import statistics
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from samovar.compile.chance import by_position, draws, seeded, uniform_as_rand
from samovar.compile.clock import at_time
from samovar.compile.sqltext import replace_calls

PLACES = ["__sv_p0", "__sv_p1"]


def drawn(spark: Any, text: str, rows: int = 2000) -> list[Any]:
    """What the text gives for the rows of two files."""
    half = rows // 2
    placed = spark.range(rows).selectExpr(
        "0L AS __sv_p0", f"shiftleft(id div {half}, 40) + id % {half} AS __sv_p1", "array(1, 2, 3, 4) AS a"
    )
    made = placed.select(F.expr(by_position(seeded(text, "salt"), PLACES, 0)).alias("v"))
    return [row[0] for row in made.collect()]


def test_numbers_between_0_and_1_are_even_and_do_not_repeat(spark: Any) -> None:
    numbers = drawn(spark, "rand(7)")
    assert len(set(numbers)) == 2000
    assert 0 <= min(numbers) < max(numbers) < 1
    assert abs(statistics.mean(numbers) - 0.5) < 0.03  # 4 deviations of a mean of 2,000
    assert abs(statistics.stdev(numbers) - 0.2887) < 0.02
    assert drawn(spark, "random(7)") == numbers
    assert drawn(spark, "rand(8)") != numbers


def test_normal_numbers_are_normal(spark: Any) -> None:
    numbers = drawn(spark, "randn(7)")
    assert abs(statistics.mean(numbers)) < 0.1
    assert abs(statistics.stdev(numbers) - 1) < 0.07
    assert 0.63 < sum(abs(n) < 1 for n in numbers) / 2000 < 0.73


def test_uuids_are_random_uuids(spark: Any) -> None:
    found = drawn(spark, "uuid()")
    assert len(set(found)) == 2000
    parsed = [uuid.UUID(each) for each in found]
    assert {(u.version, u.variant) for u in parsed} == {(4, uuid.RFC_4122)}
    assert [str(u) for u in parsed] == found


def test_a_shuffled_array_has_the_same_values_in_many_orders(spark: Any) -> None:
    found = drawn(spark, "shuffle(a)")
    assert {tuple(sorted(each)) for each in found} == {(1, 2, 3, 4)}
    assert len({tuple(each) for each in found}) == 24


def test_random_text_has_its_length(spark: Any) -> None:
    found = drawn(spark, "randstr(6)")
    assert len(set(found)) == 2000
    assert all(re.fullmatch(r"[0-9a-zA-Z]{6}", each) for each in found)
    assert drawn(spark, "randstr(0)", 4) == [""] * 4


def test_numbers_of_a_range_have_sparks_type(spark: Any) -> None:
    def kind(call: str) -> str:
        return spark.range(1).select(F.expr(call)).schema.fields[0].dataType.simpleString()

    text = uniform_as_rand("uniform(10, 20, 3)", kind)
    found = drawn(spark, text)
    assert set(found) == set(range(10, 20))


def test_ids_are_unique_and_rise_with_the_position(spark: Any) -> None:
    ids = drawn(spark, "monotonically_increasing_id()", 10)
    assert ids == [0, 1, 2, 3, 4, *((1 << 33) + i for i in range(5))]


def test_ids_of_longer_positions_have_the_epoch_above_sparks_number(spark: Any) -> None:
    text = by_position("monotonically_increasing_id() + 1", ["a", "b", "c"], 3)
    assert [r[0] for r in spark.range(2, numPartitions=1).select(F.expr(text)).collect()] == [
        (3 << 48) + 1,
        (3 << 48) + 2,
    ]
    assert by_position("monotonically_increasing_id()", [], 0) == "monotonically_increasing_id()"
    assert "raise_error" in by_position("monotonically_increasing_id()", [], 1 << 15)


def test_calls_without_a_seed_get_one_each() -> None:
    text = seeded("rand() + rand() + rand(7)", "run/op/0")
    first, second, own = re.findall(r"rand\((\d+L?)\)", text)
    assert first != second
    assert own == "7"
    assert seeded("rand() + rand() + rand(7)", "run/op/0") == text
    assert seeded("rand()", "run/op/1") != seeded("rand()", "run/op/0")


def test_text_that_only_looks_like_a_call_is_left_alone() -> None:
    for text in ("'rand()'", "`rand`", "t.rand()", "random_ AS rand", "x"):
        assert seeded(text, "s") == text
        assert by_position(text, PLACES, 1) == text
    assert not draws("'rand()'")
    assert draws("1 + Rand()")


NOW = 1_700_000_000_123_456


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("current_timestamp()", "2023-11-14 22:13:20.123456"),
        ("CURRENT_TIMESTAMP", "2023-11-14 22:13:20.123456"),
        ("`current_timestamp`", "2023-11-14 22:13:20.123456"),
        ("now() + INTERVAL 1 DAY", "2023-11-15 22:13:20.123456"),
        ("localtimestamp()", "2023-11-14 22:13:20.123456"),
        ("date_add(current_date, 1)", "2023-11-15"),
        ("curdate()", "2023-11-14"),
        ("unix_timestamp()", "1700000000"),
        ("current_time()", "22:13:20.123456"),
    ],
)
def test_the_present_is_the_moment_the_run_started(text: str, value: str, spark: Any) -> None:
    written = at_time(text, NOW, ["x"])
    shown = F.expr(f"CAST({written} AS STRING)")
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.timeType.enabled": "true"}
    before_settings = {name: spark.conf.get(name) for name in settings}
    for name, setting in settings.items():
        spark.conf.set(name, setting)
    try:
        assert spark.range(1).select(shown).head()[0] == value
        before, after = (spark.range(1).select(F.expr(t)).schema.fields[0].dataType for t in (text, written))
        assert before == after
    finally:
        for name, setting in before_settings.items():
            spark.conf.set(name, setting)


def test_columns_and_aliases_named_like_the_time_stay() -> None:
    assert at_time("current_date + 1", NOW, ["Current_Date"]) == "current_date + 1"
    assert at_time("x AS current_date", NOW, ["x"]) == "x AS current_date"
    assert at_time("t.current_date", NOW, ["x"]) == "t.current_date"
    assert at_time("'now()'", NOW, []) == "'now()'"
    assert at_time("unix_timestamp(x)", NOW, ["x"]) == "unix_timestamp(x)"


_texts = st.recursive(
    st.sampled_from(["x", "'a, b)'", "`c(`", "1.5", "*"]),
    lambda inner: st.builds(
        lambda f, args: f"{f}({', '.join(args)})", st.sampled_from("fgh"), st.lists(inner, max_size=3)
    ),
)


@given(_texts)
def test_replacing_nothing_changes_nothing_and_inner_calls_come_first(text: str) -> None:
    seen: list[str] = []

    def look(name: str, args: list[str]) -> str | None:
        seen.append(f"{name}({', '.join(args)})")
        return None

    assert replace_calls(text, look) == text
    assert len(seen) == len(re.findall(r"\b[fgh]\(", text))
    assert replace_calls(text, lambda name, args: f"{name}({', '.join(args)})") == text
    swapped = replace_calls(text, lambda name, args: f"({'+'.join(args)})" if name == "f" else None)
    assert "f(" not in swapped
