"""Jumps to moments of W1 to W5, and to interactions under three policies (IcedTea, Figure 19)."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from benchmarks.travel.setting import Row, Setting, interesting, median, percentile, taken_by
from benchmarks.workflows import WORKFLOWS

if TYPE_CHECKING:
    import samovar as sv

__all__ = ["MOMENTS", "jumped", "jumps", "to_interactions"]

MOMENTS = 12
INTERACTIONS = {"w3": 60, "w5": 20}
TAU = 2.0


def jumps(setting: Setting) -> list[Row]:
    """Seconds to a random moment with the state of its operator, the first step there, steps behind it."""
    rows = []
    for name in WORKFLOWS:
        setting.tick(f"jumps in {name}")
        flow = setting.pair(name).samovar(setting.data)
        run = setting.run(flow, tau=TAU)
        found = jumped(setting, run, interesting(name, flow))
        rows.append(setting.told({"workflow": name, "policy": "tau", **found}))
    for name in INTERACTIONS:
        for policy in ("none", "every", "tau"):
            setting.tick(f"interactions of {name}, {policy}")
            rows.append(setting.told(_interactions(setting, name, policy)))
    return rows


def jumped(setting: Setting, run: sv.Run, operator: str, moments: int = MOMENTS) -> Row:
    """Random moments of an operator."""
    past = setting.open(run)
    taken = taken_by(past, operator)
    chance = random.Random(19)
    past.jump(operator, tuples=1)  # the first one makes the plans
    there: list[float] = []
    first: list[float] = []
    steps: list[float] = []
    for _ in range(moments):
        start = time.perf_counter()
        moment = past.jump(operator, tuples=chance.randint(1, taken - 10))
        moment.state(operator)
        there.append(time.perf_counter() - start)
        for number in range(5):
            start = time.perf_counter()
            moment = moment.step_over(operator)
            (steps if number else first).append(time.perf_counter() - start)
    seconds = sum(fact.seconds for fact in past.history.epochs)
    past.close()
    return {
        "moments": moments,
        "run s": seconds,
        "jump s": median(there),
        "jump p95 s": percentile(there, 0.95),
        "jump max s": max(there),
        "first step s": max(first),
        "step ms": 1000 * max(steps),
    }


def _interactions(setting: Setting, name: str, policy: str) -> Row:
    points, kept, _ = to_interactions(setting, name, policy, INTERACTIONS[name])
    there = [seconds for _, seconds in points]
    return {
        "workflow": f"{name}, interactions",
        "policy": policy,
        "moments": len(points),
        "jump s": median(there),
        "jump p95 s": percentile(there, 0.95),
        "jump max s": max(there),
        "marks bytes": kept,
    }


def to_interactions(
    setting: Setting, name: str, policy: str, wanted: int, *, tau: float = TAU
) -> tuple[list[tuple[float, float]], int, float]:
    """Jumps to interactions spread over a run: the second of each and those to get there; bytes kept; the run's."""
    flow = setting.pair(name).samovar(setting.data)
    operator = interesting(name, flow)
    run = flow.start(spark=setting.spark, record=setting.scratch / f"{name}-{policy}", tau=tau, marks=policy)
    run.interact(operator, every=0.05)
    run.wait(progress=False)
    past = setting.open(run)
    every = past.interactions
    chosen = every[:: max(1, len(every) // wanted)][:wanted]
    past.jump(chosen[0])
    points = []
    for interaction in chosen:
        start = time.perf_counter()
        past.jump(interaction).state(operator)
        points.append((interaction.at - every[0].at, time.perf_counter() - start))
    kept = past.sizes()["marks"]
    seconds = sum(fact.seconds for fact in past.history.epochs)
    past.close()
    return points, kept, seconds
