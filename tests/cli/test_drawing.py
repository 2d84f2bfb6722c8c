"""Workflows drawn in text."""

from __future__ import annotations

from samovar.cli.graph_picture import draw


def drawn(**inputs: str) -> list[str]:
    """`draw`, with inputs as words."""
    lines = draw({name: ups.split() for name, ups in inputs.items()})
    return [f"{line.lanes} {line.operator or ''}".rstrip() for line in lines]


def test_a_chain_is_a_column() -> None:
    assert drawn(a="", b="a", c="b") == ["● a", "● b", "● c"]


def test_inputs_of_a_join_meet() -> None:
    assert drawn(a="", b="", j="a b", s="j") == ["● a", "│ ● b", "├─╯", "● j", "● s"]


def test_a_fan_out_opens_lanes_and_a_union_closes_them() -> None:
    assert drawn(a="", b="a", c="a", u="b c", s="u") == [
        "● a",
        "├─╮",
        "● │ b",
        "│ ● c",
        "├─╯",
        "● u",
        "● s",
    ]


def test_three_ways_out_and_in() -> None:
    assert drawn(a="", b="a", c="a", d="a", u="b c d") == [
        "● a",
        "├─┬─╮",
        "● │ │ b",
        "│ ● │ c",
        "│ │ ● d",
        "├─┴─╯",
        "● u",
    ]


def test_a_lane_is_crossed() -> None:
    assert drawn(a="", b="", c="", j="a c", k="j b") == [
        "● a",
        "│ ● b",
        "│ │ ● c",
        "├─┼─╯",
        "● │ j",
        "├─╯",
        "● k",
    ]


def test_a_sink_frees_its_lane() -> None:
    assert drawn(a="", s="a", t="a", b="", u="b") == ["● a", "├─╮", "● │ s", "  ● t", "● b", "● u"]


def test_both_ports_on_one_operator_are_one_lane() -> None:
    assert drawn(a="", j="a a") == ["● a", "● j"]
