"""A fork from 70 % of W5 with a fixed operator, against running all of it again."""

from __future__ import annotations

import time

from benchmarks.operators import SentimentAnalyzer
from benchmarks.travel.setting import Row, Setting, median, taken_by

__all__ = ["forked_and_rerun", "forks"]

SHARE = 0.7


class Fixed(SentimentAnalyzer):
    """The same with neutral judgements told apart from the others."""

    def process(self, row, port=0):  # type: ignore[no-untyped-def]
        """Predict, then learn; odd ratings are judged neutral."""
        for made in super().process(row, port):
            yield made if row["overall"] != 3.0 else {**made, "sentiment": "neutral"}


class FixedLater(Fixed):
    """What a rerun needs to give the same: the old logic up to a tuple, the new one from there."""

    def __init__(self, until: int) -> None:
        super().__init__()
        self.until = until
        self.seen = 0

    def process(self, row, port=0):  # type: ignore[no-untyped-def]
        """The logic of its time."""
        self.seen += 1
        chosen = SentimentAnalyzer if self.seen <= self.until else Fixed
        yield from chosen.process(self, row, port)


def forks(setting: Setting) -> list[Row]:
    """Seconds to the result with the fix from 70 % on."""
    forked, rerun, taken = forked_and_rerun(setting)
    return [
        {
            "fork at": f"{SHARE:.0%} of {taken:,} tuples",
            "fork s": median(forked),
            "full rerun s": median(rerun),
            "ratio": median([a / b for a, b in zip(forked, rerun, strict=True)]),
            "results": "equal",
        }
    ]


def forked_and_rerun(setting: Setting) -> tuple[list[float], list[float], int]:
    """Seconds of forks and of reruns, round by round after one that warms up, and the tuples of a run."""
    pair = setting.pair("w5")
    run = setting.run(pair.samovar(setting.data))
    past = setting.open(run)
    taken = taken_by(past, "sentiment")
    at = int(SHARE * taken)
    forked: list[float] = []
    rerun: list[float] = []
    for number in range(setting.runs + 1):
        setting.tick(f"fork, round {number}")
        start = time.perf_counter()
        fork = past.jump("sentiment", tuples=at).fork({"sentiment": Fixed()})
        fork.wait(progress=False)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        flow = pair.samovar(setting.data)
        flow._live["sentiment"] = FixedLater(at)
        again = setting.run(flow)
        if number:
            forked.append(seconds)
            rerun.append(time.perf_counter() - start)
        one = sorted(map(str, fork.result("S").to_pylist()))
        other = sorted(map(str, again.result("S").to_pylist()))
        assert one == other, (one, other)
    past.close()
    return forked, rerun, taken
