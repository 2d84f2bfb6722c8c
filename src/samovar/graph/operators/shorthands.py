"""Shorthands: operators for common tasks with text and samples, each short for one relational operator.

`plain()` returns that operator. The engine knows no other, so a shorthand runs natively, and is counted, traced and
stepped through as that operator.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from samovar.errors import WorkflowError
from samovar.graph.lexicon import sentiment_score
from samovar.graph.operators.base import Op
from samovar.graph.operators.relational import Filter, Sample, WithColumns
from samovar.text import quote_name, quote_text

__all__ = ["Clean", "CleanStep", "Search", "Sentiment", "Split"]

CleanStep = Literal[
    "trim", "spaces", "lower", "upper", "title", "punctuation", "digits", "tags", "empty_to_null"
]

_STEPS: dict[str, str] = {
    "trim": "trim({0})",
    "spaces": "trim(regexp_replace({0}, '\\\\s+', ' '))",
    "lower": "lower({0})",
    "upper": "upper({0})",
    "title": "initcap({0})",
    "punctuation": "regexp_replace({0}, '\\\\p{{Punct}}+', ' ')",
    "digits": "regexp_replace({0}, '\\\\d+', '')",
    "tags": "regexp_replace({0}, '<[^>]*>', ' ')",
    "empty_to_null": "nullif({0}, '')",
}


class Search(Op, tag="search", frozen=True, kw_only=True):
    """Keeps the rows whose text holds what is searched for; short for a `filter`.

    `how` says what the terms are: `contains` finds them anywhere in the text, `words` as whole words or phrases (a
    dictionary), `regex` takes them as regular expressions. With several columns, each term may be in any of them.
    """

    columns: tuple[str, ...]
    terms: tuple[str, ...]
    how: Literal["contains", "words", "regex"] = "contains"
    require: Literal["any", "all"] = "any"
    case_sensitive: bool = False
    invert: bool = False
    summary: ClassVar[str] = "keeps rows whose text holds words or patterns"

    def plain(self) -> Op:
        if not self.columns or not self.terms:
            what = "column" if not self.columns else "term"
            raise WorkflowError(
                f"Expected at least one {what} to search, got none.",
                hint=f"Name it in '{what}s'.",
                operator=self.name,
            )
        conditions = [
            "(" + " OR ".join(self._contains(quote_name(column), term) for column in self.columns) + ")"
            for term in self.terms
        ]
        condition = (" AND " if self.require == "all" else " OR ").join(conditions)
        if self.invert:
            condition = f"NOT coalesce({condition}, false)"
        return Filter(name=self.name, inputs=self.inputs, condition=condition)

    def _contains(self, column: str, term: str) -> str:
        if self.how == "contains":
            if self.case_sensitive:
                return f"contains({column}, {quote_text(term)})"
            return f"contains(lower({column}), {quote_text(term.lower())})"
        pattern = term
        if self.how == "words":
            escaped = re.sub(r"([^\w\s])", r"\\\1", term.strip())
            pattern = r"(?<!\w)" + re.sub(r"\s+", r"\\s+", escaped) + r"(?!\w)"
        flags = "(?U)" if self.case_sensitive else "(?iuU)"
        return f"{column} RLIKE {quote_text(flags + pattern)}"


class Clean(Op, tag="clean", frozen=True, kw_only=True):
    """Tidies up text columns, step by step in the order given; short for `with_columns`.

    `as_type` turns the text into another type at the end; what does not fit becomes null.
    """

    columns: tuple[str, ...]
    steps: tuple[CleanStep, ...] = ("trim",)
    as_type: str | None = None
    summary: ClassVar[str] = "tidies up text"

    def plain(self) -> Op:
        if self.as_type is not None and not re.fullmatch(r"[\w\s(),<>:]+", self.as_type):
            raise WorkflowError(
                f"Expected a type of Spark's in 'as_type', got {self.as_type!r}.",
                hint="For example: int, double, decimal(10,2), date, timestamp.",
                operator=self.name,
            )
        columns: dict[str, str] = {}
        for column in self.columns:
            text = quote_name(column)
            for step in self.steps:
                text = _STEPS[step].format(text)
            columns[column] = f"try_cast({text} AS {self.as_type})" if self.as_type else text
        return WithColumns(name=self.name, inputs=self.inputs, columns=columns)


class Sentiment(Op, tag="sentiment", frozen=True, kw_only=True):
    """Adds how positive or negative an English text is, by a small word list; short for `with_columns`.

    `into` gets a number from -1 to 1, and `<into>_label` positive, neutral or negative. Negations ("not good") and
    words that strengthen ("very") count. It is meant for a first look, and knows no irony.
    """

    column: str
    into: str = "sentiment"
    summary: ClassVar[str] = "says how positive a text is"

    def plain(self) -> Op:
        score = sentiment_score(quote_name(self.column))
        label = (
            f"CASE WHEN {score} >= 0.05 THEN 'positive' WHEN {score} <= -0.05 THEN 'negative' "
            f"WHEN {quote_name(self.column)} IS NOT NULL THEN 'neutral' END"
        )
        return WithColumns(
            name=self.name, inputs=self.inputs, columns={self.into: score, f"{self.into}_label": label}
        )


class Split(Op, tag="split", frozen=True, kw_only=True):
    """One part of a random split, as `randomSplit` makes it; without a seed short for a `sample`.

    Operators with the same input, `weights` and `seed` and different parts share no row, and together have all. With a
    seed they are the parts that Spark makes, before the run.
    """

    weights: tuple[float, ...] = (0.8, 0.2)
    part: int = 0
    seed: int | None = None
    summary: ClassVar[str] = "keeps one part of a random split"

    def plain(self) -> Op:
        if not self.weights or min(self.weights) < 0 or sum(self.weights) <= 0:
            raise WorkflowError(
                f"Expected weights of 0 or more, some above 0, got {list(self.weights)}.",
                hint="For example 0.8 and 0.2.",
                operator=self.name,
            )
        if not 0 <= self.part < len(self.weights):
            raise WorkflowError(
                f"Expected a part from 0 to {len(self.weights) - 1}, got {self.part}.",
                hint="Each weight has a part; the first is 0.",
                operator=self.name,
            )
        if self.seed is not None:
            return self
        total = sum(self.weights)
        start = sum(self.weights[: self.part]) / total
        stop = 1.0 if self.part == len(self.weights) - 1 else sum(self.weights[: self.part + 1]) / total
        return Sample(name=self.name, inputs=self.inputs, fraction=stop - start, start=start)
