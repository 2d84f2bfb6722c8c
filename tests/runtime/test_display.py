"""The live display: pure pictures of a progress."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from samovar.runtime.display import Eta, count, duration, line, render, size
from samovar.runtime.progress import OperatorProgress, Progress, Status


def progress(epoch: int = 3, fraction: float = 0.5, status: Status = "running") -> Progress:
    return Progress(
        "shop-1",
        "shop",
        status,
        epoch,
        fraction,
        12.3,
        (
            OperatorProgress("a_source_with_a_name_longer_than_any_column", "read", 0, 1_234_567, 250_000.0),
            OperatorProgress("tally", "python", 1_234_567, 12_345_678_901, 250_000.0, 9_999_999, 123_456_789),
            OperatorProgress("S", "sink", 99, 0),
        ),
        {"orders": 2},
    )


def drawn(given: Progress, width: int = 80, left: float | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(render(given, left=left, width=width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_picture_fits_the_terminal(width: int) -> None:
    lines = drawn(progress(), width)
    assert max(len(text.rstrip()) for text in lines) <= width
    assert len(lines) == 7  # where it stands, the bar, the header, three operators, rejected rows


def test_a_picture_says_how_far_the_run_is() -> None:
    text = "\n".join(drawn(progress(), left=4.2))
    for part in (
        "shop",
        "running",
        "epoch 3",
        "50%",
        "4.2 s left",
        "1,234,567",
        "9,999,999 in 123 MB",
        "2 rows of 'orders'",
    ):
        assert part in text


def test_columns_stay_where_they_are() -> None:
    few = [text.index("python") for text in drawn(progress(epoch=1, fraction=0.01)) if "python" in text]
    many = [text.index("python") for text in drawn(progress(epoch=900, fraction=0.99)) if "python" in text]
    assert few == many


def test_a_line_for_where_there_is_no_terminal() -> None:
    assert line(progress(), left=2.0) == (
        "shop: running, epoch 3, 50%, 1,234,567 tuples read, 12 s, 2.0 s left, 2 rows rejected"
    )


def test_the_time_left_follows_the_last_epochs_and_counts_down() -> None:
    eta = Eta()
    assert eta.left(progress(0, 0.0), now=0.0) is None
    assert eta.left(progress(1, 0.1), now=10.0) == pytest.approx(90.0)  # all there is to go by
    assert eta.left(progress(2, 0.2), now=11.0) == pytest.approx(8.0)  # the first epoch was slow
    assert eta.left(progress(2, 0.2), now=12.0) == pytest.approx(7.0)
    assert eta.left(progress(3, 1.0, "completed"), now=19.0) is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (count(9_999_999), "9,999,999"),
        (count(12_345_678), "12.3 M"),
        (count(123_456_789_012), "123.5 G"),
        (size(0), "0 B"),
        (size(999), "999 B"),
        (size(1_500), "1.5 kB"),
        (size(123_456_789), "123 MB"),
        (size(5_000_000_000), "5.0 GB"),
        (duration(7.25), "7.2 s"),
        (duration(185), "3 min 05 s"),
        (duration(7_800), "2 h 10 min"),
    ],
)
def test_numbers_as_people_read_them(said: str, expected: str) -> None:
    assert said == expected
