"""The language of `samovar debug`: lines taken apart, commands found, words completed, values shown. No Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from samovar.cli.debug.debug_arguments import declared, search_and_page
from samovar.cli.debug.debug_values import brief, page_of, plain, row_text
from samovar.cli.debug.debug_words import COMMANDS, Names, completions, find_command, split_commands, words
from samovar.errors import TimeTravelError, UnknownName

NAMES = Names(
    ["orders", "tally", "my sink"],
    ["my sink"],
    ["I1", "I2"],
    "tally",
    lambda op: ["totals"] if op == "tally" else [],
)


@pytest.mark.parametrize(
    ("word", "command"),
    [("o", "over"), ("i", "into"), ("b", "back"), ("?", "help"), ("pe", "pending"), ("JUMP", "jump")],
)
def test_commands_can_be_shortened(word: str, command: str) -> None:
    assert find_command(word).name == command


def test_an_unknown_or_ambiguous_command_is_refused() -> None:
    with pytest.raises(TimeTravelError, match="several commands: when, where, why"):
        find_command("wh")
    with pytest.raises(UnknownName) as raised:
        find_command("ovre")
    assert raised.value.hint == "Did you mean 'over'?"


def test_several_commands_stand_on_a_line() -> None:
    text = "jump FE 42; over  # a comment\n# only that\n\nwhen FD ';' in names; log FE f(a; b)"
    assert split_commands(text) == ["jump FE 42", "over", "when FD ';' in names", "log FE f(a; b)"]
    assert split_commands("state FE search it's") == ["state FE search it's"]


def test_names_with_spaces_are_quoted() -> None:
    assert [w.text for w in words("pending \"my sink\" 'x y' FE=a.py:B")] == [
        "pending",
        "my sink",
        "x y",
        "FE=a.py:B",
    ]


@pytest.mark.parametrize(
    ("typed", "choices"),
    [
        ("ju", ["jump"]),
        ("jump ", ["orders", "tally", '"my sink"', "I1", "I2", "epoch", "start", "end"]),
        ("jump I", ["I1", "I2"]),
        ("over t", ["tally"]),
        ("jump tally 3; over o", ["orders"]),
        ("state tal", ["tally"]),
        ("state to", ["totals"]),
        ("state tally ", ["totals", "search", "page"]),
        ("state tally totals s", ["search"]),
        ("when tally to", ["totals"]),
        ("why ", ['"my sink"']),
        ("fork ta", ["tally="]),
        ("help wh", ["when", "where", "why"]),
        ("nonsense ", []),
        ("out ", []),
    ],
)
def test_words_are_completed(typed: str, choices: list[str]) -> None:
    assert completions(typed, NAMES) == choices


def test_every_command_can_be_completed_from_nothing() -> None:
    assert completions("", NAMES) == list(COMMANDS)


def test_a_search_may_have_several_words() -> None:
    rest = "search Eva E. page 3"
    assert search_and_page(rest, words(rest)) == ("Eva E.", 3)
    assert search_and_page("", []) == (None, 1)
    with pytest.raises(TimeTravelError, match="search TEXT"):
        search_and_page("serch x", words("serch x"))


def test_declared_states_are_read_from_the_text() -> None:
    code = "class A(sv.Operator):\n    seen = sv.MapState()\n    n = ValueState(0)\n    other = 3\n"
    assert declared(code) == ("seen", "n")
    assert declared("not python (") == ()


# --- values ---------------------------------------------------------------------------------------------------------


class Endless(Mapping[int, int]):
    """A map of many entries that notes how far somebody went through it."""

    def __init__(self) -> None:
        self.reached = 0

    def __getitem__(self, key: int) -> int:
        return key

    def __len__(self) -> int:
        return 1_000_000

    def __iter__(self) -> Iterator[int]:
        for i in range(len(self)):
            self.reached = i
            yield i


def test_a_page_of_a_large_map_goes_no_further_than_it_must() -> None:
    large = Endless()
    page = page_of("seen", large, page=2)
    assert [item["key"] for item in page["items"]] == list(range(20, 40))
    assert page["entries"] == 1_000_000
    assert page["pages"] == 50_000
    assert large.reached < 100


def test_entries_are_searched_by_key_and_value() -> None:
    page = page_of("seen", {"Bob": "yen", "Chris": "bob", "Dana": 3}, search="BOB")
    assert [item["key"] for item in page["items"]] == ["Bob", "Chris"]
    assert (page["entries"], page["matches"], page["pages"]) == (3, 2, 1)
    assert page_of("list", ["a", "b"], search="b")["items"] == [{"key": 1, "value": "b"}]


def test_a_page_past_the_end_is_refused() -> None:
    with pytest.raises(TimeTravelError, match="from 1 to 1, got 2"):
        page_of("seen", {}, page=2)


def test_values_are_short_on_the_screen() -> None:
    assert brief(datetime(2026, 3, 1, 12, tzinfo=UTC)) == "2026-03-01 12:00:00"
    assert brief(None) == "null"
    assert len(brief("x" * 1000)) <= 60
    assert len(brief(dict.fromkeys(range(100_000)))) <= 60
    assert row_text({"a": 1, "b": "x"}) == "a=1, b='x'"
    assert row_text(None) == "the end of its input"


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ((1, 2), [1, 2]),
        ({("a", 1): {2}}, {"('a', 1)": [2]}),
        (float("nan"), "nan"),
        (Decimal("1.10"), "1.10"),
        (datetime(2026, 3, 1), "2026-03-01T00:00:00"),
        (b"x", "b'x'"),
    ],
)
def test_json_takes_any_value(value: Any, made: Any) -> None:
    assert plain(value) == made


def test_containers_inside_values_are_cut() -> None:
    assert len(plain({"value": {"a": {"b": list(range(1000))}}})["value"]["a"]["b"]) == 100
