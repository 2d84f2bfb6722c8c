"""Frame methods for shorthands and charts: search, clean, sentiment, randomSplit, chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from samovar.errors import WorkflowError, did_you_mean
from samovar.graph import operators as ops
from samovar.graph.arguments import names_of

if TYPE_CHECKING:
    from samovar.graph.frame import Frame

__all__ = ["Shorthands"]


class Shorthands:
    """What `sv.Frame` has beyond PySpark's methods."""

    if TYPE_CHECKING:
        _add: Callable[..., Frame]

    def search(
        self,
        columns: str | Sequence[str],
        terms: str | Sequence[str],
        *,
        how: str = "contains",
        require: str = "any",
        case_sensitive: bool = False,
        invert: bool = False,
        name: str | None = None,
    ) -> Frame:
        """The rows whose text has a term.

        columns: the columns to search. terms: what to look for. how: anywhere ("contains"), as whole words ("words") or
        as a "regex". require: "any" or "all" of the terms. case_sensitive: whether case counts. invert: the other rows.

        >>> orders.search("customer", ["ann", "bob"], name="found")
        Frame('found' of workflow 'shop')
        """
        _choice("how", how, ("contains", "words", "regex"))
        _choice("require", require, ("any", "all"))
        return self._add(
            ops.Search,
            name,
            columns=names_of(columns),
            terms=names_of(terms),
            how=how,
            require=require,
            case_sensitive=case_sensitive,
            invert=invert,
        )

    def clean(
        self,
        columns: str | Sequence[str],
        steps: str | Sequence[str] = ("trim",),
        *,
        as_type: str | None = None,
        name: str | None = None,
    ) -> Frame:
        """Text columns tidied up, step by step.

        steps: trim, spaces, lower, upper, title, punctuation, digits, tags, empty_to_null. as_type: the type to cast
        to.

        >>> orders.clean("customer", ["trim", "lower"]).columns
        ['id', 'customer', 'amount']
        """
        chosen = names_of(steps) or ()
        for step in chosen:
            _choice("steps", step, ops.CleanStep.__args__)  # type: ignore[attr-defined]
        return self._add(ops.Clean, name, columns=names_of(columns), steps=chosen, as_type=as_type)

    def sentiment(self, column: str, into: str = "sentiment", *, name: str | None = None) -> Frame:
        """How positive or negative an English text is.

        into: the column that gets a number from -1 to 1; `<into>_label` gets a word.

        >>> orders.sentiment("customer").columns
        ['id', 'customer', 'amount', 'sentiment', 'sentiment_label']
        """
        return self._add(ops.Sentiment, name, column=column, into=into)

    def randomSplit(
        self, weights: Sequence[float], seed: int | None = None, *, name: str | None = None
    ) -> list[Frame]:
        """Frames that share no row and together have all, in these shares; the same rows every time.

        weights: the shares. seed: with one, these are the parts that Spark makes, as `sample` has it.

        >>> most, few = orders.randomSplit([0.9, 0.1])
        >>> few.columns
        ['id', 'customer', 'amount']
        """
        shares = tuple(float(w) for w in weights)
        drawn = None if seed is None else int(seed)
        return [
            self._add(ops.Split, f"{name}_{i}" if name else None, weights=shares, part=i, seed=drawn)
            for i in range(len(shares))
        ]

    def chart(
        self,
        chart: str,
        x: str | None = None,
        y: str | None = None,
        *,
        by: str | None = None,
        measure: str | None = None,
        bins: int = 20,
        top: int = 30,
        title: str = "",
        name: str | None = None,
    ) -> Frame:
        """Keep the rows in the recording, to be drawn; returns this frame.

        chart: bar, line, scatter, histogram, box, heatmap, pie, wordcloud or table. x, y, by: the columns to draw.
        measure: count, sum, avg, min or max of `y`. bins: of a histogram. title: of the picture. top: how many values
        of `x` are shown at most.

        >>> orders.chart("bar", "customer", "amount", measure="sum", name="by customer") is orders
        True
        """
        _choice("chart", chart, ops.CHARTS)
        if measure is not None:
            _choice("measure", measure, ("count", "sum", "avg", "min", "max"))
        self._add(
            ops.Chart, name, chart=chart, x=x, y=y, by=by, measure=measure, bins=bins, top=top, title=title
        )
        return self  # type: ignore[return-value]


def _choice(field: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise WorkflowError(
            f"Expected {field} to be one of {', '.join(known)}, got {given!r}.",
            hint=did_you_mean(given, known),
        )
