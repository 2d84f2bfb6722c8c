"""Jumps to random moments with the state there, split into both; the first of each session apart.

A recording is opened several times. The run went before in the same Spark, so that Spark itself is warm; the first
session is the first to travel in this workflow, and its first jump meets code that Java has not compiled yet.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.travel.setting import Row, Setting, interesting, median, taken_by

if TYPE_CHECKING:
    import samovar as sv

__all__ = ["Landing", "landings"]

SESSIONS = 3
MOMENTS = 12


@dataclass(frozen=True)
class Landing:
    """A jump and the question for the state there, in seconds."""

    jump: float
    state: float

    @property
    def both(self) -> float:
        return self.jump + self.state


def landings(setting: Setting) -> list[Row]:
    """Seconds to a random moment and to its state: the first jumps of sessions, and those after them."""
    rows = []
    for name in setting.workflows:
        setting.tick(f"landings in {name}")
        flow = setting.pair(name).samovar(setting.data)
        run = setting.run(flow)
        operator = interesting(name, flow)
        sessions = [_session(setting, run, operator, 19 + number) for number in range(SESSIONS)]
        row: Row = {"workflow": name, "scale": setting.data.scale, **_epochs(run), "jumps": MOMENTS}
        for number, (opened, first, _) in enumerate(sessions, 1):
            row |= {f"open {number} s": opened, f"first {number} s": first.both}
        worst = max((first for _, first, _ in sessions), key=lambda landing: landing.both)
        later = [landing for _, _, others in sessions for landing in others]
        rows.append(setting.told(row | _figures("first", [worst]) | _figures("later", later)))
    return rows


def _epochs(run: sv.Run) -> Row:
    import samovar as sv

    assert run.recording is not None
    facts = sv.open(run.recording).history.epochs
    return {"epochs": len(facts), "epoch s": max(fact.seconds for fact in facts)}


def _session(setting: Setting, run: sv.Run, operator: str, seed: int) -> tuple[float, Landing, list[Landing]]:
    """Seconds to open a recording for time travel, the first landing, and the others."""
    past, chance = setting.open(run), random.Random(seed)
    start = time.perf_counter()
    taken = taken_by(past, operator)
    opened = time.perf_counter() - start
    first, *others = (_landed(past, operator, chance.randint(1, taken)) for _ in range(MOMENTS + 1))
    past.close()
    return opened, first, others


def _landed(past: sv.Past, operator: str, tuples: int) -> Landing:
    start = time.perf_counter()
    moment = past.jump(operator, tuples=tuples)
    there = time.perf_counter()
    moment.state(operator)
    return Landing(there - start, time.perf_counter() - there)


def _figures(which: str, found: list[Landing]) -> Row:
    worst = max(found, key=lambda landing: landing.both)
    figures = {f"{which} worst s": worst.both, f"{which} jump s": worst.jump, f"{which} state s": worst.state}
    if len(found) > 1:
        figures[f"{which} median s"] = median([landing.both for landing in found])
    return figures
