"""Taxi distance: positions of taxis lose their order where a program is parallel before it divides by taxi.

The first stage drops what the second does not need; the second adds up the way of each taxi, position by position. So
the first has to keep the order of each taxi, and no other: `keyed("taxi")`. Both programs below look alike; `check`
tells them apart on a few positions, `shake` without any reference.

    python examples/diffstream/taxi.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pandas as pd

from samovar.diff import check, keyed, plain, rows, shake

POSITIONS = "taxi int not null, x double not null, y double not null, meta string"
IN_ORDER = keyed("taxi")
DISTANCES = "taxi int, distance double"


def divided_first(df: Any) -> Any:
    """Right: divide by taxi, then project. What is in order for a taxi stays so."""
    return df.repartition("taxi").select("taxi", "x", "y")


def projected_first(df: Any) -> Any:
    """Wrong: project on all cores, then divide by taxi. The positions of a taxi come together in another order."""

    def project(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame[["taxi", "x", "y"]]

    return df.repartition(4).mapInPandas(project, "taxi int, x double, y double").repartition("taxi")


def sequential(positions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The reference: one position after the other."""
    for row in positions:
        yield {"taxi": row["taxi"], "x": row["x"], "y": row["y"]}


def distances(df: Any) -> Any:
    """The second stage: how far each taxi went, in the order its positions arrive."""

    def way(frame: pd.DataFrame) -> pd.DataFrame:
        points = list(zip(frame["x"], frame["y"], strict=True))
        total = sum(math.dist(a, b) for a, b in pairwise(points))
        return pd.DataFrame({"taxi": [int(frame["taxi"].iloc[0])], "distance": [total]})

    return df.groupBy("taxi").applyInPandas(way, DISTANCES)


def some_positions(taxis: int = 5, each: int = 12) -> list[dict[str, Any]]:
    """Taxis that drive in circles, their positions in the order of time."""
    return [
        {"taxi": t, "x": math.cos(n + t) * (t + 1), "y": math.sin(n + t) * (t + 1), "meta": f"{t}-{n}"}
        for n in range(each)
        for t in range(taxis)
    ]


def random_positions() -> Any:
    """A few positions of up to three taxis, drawn by hypothesis."""
    numbers = [0.0, 1.0, 2.0, 3.0, 5.0, 8.0]
    return rows(POSITIONS, keyed={"taxi": 3}, values={"x": numbers, "y": numbers, "meta": [""]}, max_size=12)


def main() -> None:
    """Both programs against the reference, and shaken."""
    for program in (divided_first, projected_first):
        print(f"--- {program.__name__}, checked")
        print(
            check(program, plain(sequential), random_positions(), depends=IN_ORDER, examples=15, seconds=15)
        )
        print(f"--- {program.__name__}, shaken")
        print(shake(program, some_positions(), depends=IN_ORDER, arrives=IN_ORDER))


if __name__ == "__main__":
    main()
