"""Step options of W1 to W5 with 10,000 tuples a source (IcedTea, Figure 21 and Table 4), and what a step takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.data import Data
from benchmarks.travel.setting import Row, Setting, interesting, median, percentile, taken_by
from benchmarks.workflows import WORKFLOWS, w4_samovar

if TYPE_CHECKING:
    import samovar as sv

__all__ = ["PAPER", "overlapping", "stepped", "steps"]

TUPLES = 10_000
PAPER = {"w1": 10_000, "w2": 13_000, "w3": 10_000, "w4": 9_982, "w5": 20_000}
"""Step-overs the paper counts; of W4's 10,000 tuples 18 have none."""


@dataclass(frozen=True)
class Cut(Data):
    """The first rows of every data set, in two files each."""

    folder: Path = Path()
    tuples: int = TUPLES

    def path(self, name: str) -> str:
        target = self.folder / name
        if not target.exists():
            target.mkdir(parents=True)
            files = sorted(Path(super().path(name)).glob("*.parquet"))
            left = self.tuples
            for i, file in enumerate(files):
                if left:
                    table = pq.read_table(file).slice(0, min(left, self.tuples // 2))
                    left -= table.num_rows
                    pq.write_table(table, target / f"{i:05d}.parquet")
        return str(target)


def steps(setting: Setting) -> list[Row]:
    """Every tuple of the interesting operator stepped over; in the order of arrival, how many cannot be."""
    rows = [stepped(setting, name) for name in WORKFLOWS]
    without, taken, operator = overlapping(setting)
    row = {"operator": operator, "tuples": taken, "step-overs": taken - without}
    return [*rows, {"workflow": "w4, as tuples arrive", **row}]


def stepped(setting: Setting, name: str, tuples: int = TUPLES) -> Row:
    """The steps of one workflow over so many tuples a source."""
    setting.tick(f"steps of {name}")
    return _stepped(setting, name, setting.pair(name).samovar(_cut(setting, tuples)))


def overlapping(
    setting: Setting,
    words: tuple[str, str] = ("happy", "glad"),
    tuples: int = TUPLES,
    *,
    arrival: bool = True,
) -> tuple[int, int, str]:
    """How many tuples of W4 have no step-over, of how many, at which operator (IcedTea, Table 4)."""
    setting.tick(f"overlaps of w4, {' and '.join(words)}")
    setting.pair("w4")
    flow = w4_samovar(_cut(setting, tuples), words)
    return _overlaps(setting, _as_they_arrive(flow) if arrival else flow)


def _cut(setting: Setting, tuples: int) -> Cut:
    return Cut(setting.data.scale, setting.data.root, setting.scratch / f"cut-{tuples}", tuples)


def _stepped(setting: Setting, name: str, flow: sv.Workflow) -> Row:
    operator = interesting(name, flow)
    past = setting.open(setting.run(flow))
    start = time.perf_counter()
    moment = past.jump(operator, tuples=0)
    jump = time.perf_counter() - start
    taken = taken_by(past, operator)
    inside: list[float] = []
    traced: list[float] = []
    over = 0
    outputs = 0
    seen: set[Any] = set()
    while over < taken:
        if moment._traced.place not in seen:
            seen.add(moment._traced.place)
            outputs += _given_behind(moment, operator)
        before = moment._traced
        start = time.perf_counter()
        possible = bool(moment.can_step_over(operator))
        moment = moment.step_over(operator)
        (inside if moment._traced is before else traced).append(time.perf_counter() - start)
        over += possible
    past.close()
    return {
        "workflow": name,
        "operator": operator,
        "tuples": taken,
        "step-overs": over,
        "paper": PAPER[name],
        "step-intos": outputs,
        "jump s": jump,
        "step ms": 1000 * median(inside),
        "step p99 ms": 1000 * percentile(inside, 0.99),
        "window s": median(traced) if traced else None,
    }


def _given_behind(moment: sv.Moment, operator: str) -> int:
    """Tuples the operator and those behind it give in a window: each can be stepped into."""
    trace = moment._traced.trace
    within = trace.edges.downstream(operator)
    return sum(len(step.outputs) for op, own in trace.steps.items() if op in within for step in own)


def _as_they_arrive(flow: sv.Workflow) -> sv.Workflow:
    """The same with the counting operator taking tuples as they come."""
    for name, op in flow._ops.items():
        if type(op).__name__ == "Python":
            flow._ops[name] = _arriving(op)
    return flow


def _arriving(op: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(op, order="arrival")


def _overlaps(setting: Setting, flow: sv.Workflow) -> tuple[int, int, str]:
    operator = interesting("w4", flow)
    past = setting.open(setting.run(flow))
    moment = past.jump(operator, tuples=0)
    taken = taken_by(past, operator)
    without = 0
    for _ in range(taken):
        if moment.can_step_over(operator):
            moment = moment.step_over(operator)
        else:
            without += 1
            moment = moment.step_into(operator)
    past.close()
    return without, taken, operator
