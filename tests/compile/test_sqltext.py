"""The scanner of SQL text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.compile.sqltext import (
    SqlTextError,
    is_plain_name,
    matching_bracket,
    split_alias,
    split_top_level,
    tokenise,
)
from samovar.text import quote_name, quote_text


def test_strings_names_and_comments_hide_what_is_in_them() -> None:
    tokens = tokenise("f('a)b', `c(`, r'\\', 1.5e3D) -- x(\n /* ( */ <=> \"q\\\"\"")
    assert [t.text for t in tokens] == [
        "f", "(", "'a)b'", ",", "`c(`", ",", "r'\\'", ",", "1.5e3D", ")", "<=>", '"q\\""',
    ]  # fmt: skip
    assert [t.kind for t in tokens[:3]] == ["word", "symbol", "string"]
    assert matching_bracket(tokens, 1) == 9
    assert len(split_top_level(tokens[2:9])) == 4


@pytest.mark.parametrize("sql", ["'", "a + `b", "/* x", '"'])
def test_unterminated_text_is_an_error_with_its_place(sql: str) -> None:
    with pytest.raises(SqlTextError) as caught:
        tokenise(sql)
    assert caught.value.sql == sql


@pytest.mark.parametrize(
    ("sql", "name", "expected"),
    [
        ("sum(x) AS total", None, ("sum(x)", "total")),
        ("sum(x) as `a``b`", None, ("sum(x)", "a`b")),
        ("sum(x) total", "total", ("sum(x)", "total")),
        ("sum(x) total", None, ("sum(x) total", None)),
        ("x IS NULL", "(x IS NULL)", ("x IS NULL", None)),
        ("a.b", "b", ("a.b", None)),
        ("CAST(x AS int)", "x", ("CAST(x AS int)", None)),
        ("x", "x", ("x", None)),
    ],
)
def test_split_alias(sql: str, name: str | None, expected: tuple[str, str | None]) -> None:
    assert split_alias(sql, name) == expected


def test_plain_names_need_no_backticks() -> None:
    assert is_plain_name("l_tax")
    assert not any(map(is_plain_name, ["a b", "1a", "select", "a.b", "", "é"]))


@given(st.text())
def test_quoting_gives_one_token(text: str) -> None:
    (name,) = tokenise(quote_name(text))
    assert (name.kind, name.name) == ("quoted", text)
    (string,) = tokenise(quote_text(text))
    assert string.kind == "string"


@given(st.text(alphabet="ab1 .'\"`()[],-/*\\\n<=>", max_size=30))
def test_tokens_lose_only_space_and_comments(sql: str) -> None:
    try:
        tokens = tokenise(sql)
    except SqlTextError:
        return
    assert all(sql[t.start : t.end] == t.text for t in tokens)
    ends = [0, *(t.end for t in tokens)]
    starts = [*(t.start for t in tokens), len(sql)]
    for end, start in zip(ends, starts, strict=True):
        gap = sql[end:start].strip()
        assert not gap or gap.startswith(("--", "/*"))
