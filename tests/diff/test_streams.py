"""Two iterables read side by side: to the end, to a difference, or for a while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from samovar.diff import keyed, match, ordered
from samovar.diff.comparison_errors import SideProblem


def numbers(end: int | None = None) -> Iterator[dict[str, Any]]:
    for n in count() if end is None else range(end):
        yield {"k": n % 3, "n": n}


def test_streams_that_end() -> None:
    assert match(numbers(2_500), reversed(list(numbers(2_500))))
    assert match(numbers(100), numbers(100), depends=ordered)
    verdict = match(numbers(100), numbers(99))
    assert (verdict.equivalent, verdict.undecided, verdict.event) == (False, False, {"k": 0, "n": 99})


def test_batches() -> None:
    batches = [pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3]})]
    assert match(batches, [pa.table({"n": [3, 2, 1]})])


def test_a_difference_ends_streams_that_do_not_end() -> None:
    verdict = match(numbers(), ({"k": n % 3, "n": n + (n > 50)} for n in count()), depends=keyed("k"))
    assert verdict.against is not None
    assert {verdict.event["n"], verdict.against["n"]} == {51, 52}


def test_a_side_that_never_ends_is_undecided_with_what_is_unmatched() -> None:
    verdict = match(numbers(5), numbers(), seconds=0.05)
    assert verdict.undecided
    assert not verdict
    assert verdict.unmatched("left") == []
    assert verdict.unmatched("right")[0] == {"k": 2, "n": 5}
    assert verdict.explain().startswith("Undecided after 0.05 s: no difference so far (independent).")


def test_a_side_that_yields_nothing_is_undecided() -> None:
    release = threading.Event()

    def silent() -> Iterator[Any]:
        release.wait(5)
        yield from ()

    verdict = match(numbers(3), silent(), seconds=0.05)
    release.set()
    assert verdict.undecided
    assert len(verdict.unmatched("left")) == 3


def test_a_side_that_raises_is_named_in_the_error() -> None:
    def broken() -> Iterator[Any]:
        yield {"k": 0, "n": 0}
        raise ValueError("no more")

    with pytest.raises(SideProblem, match="The right side raised ValueError: no more"):
        match(numbers(), broken())
    with pytest.raises(SideProblem, match="Expected an iterable of events on the left side"):
        match(3, [])  # type: ignore[arg-type]
