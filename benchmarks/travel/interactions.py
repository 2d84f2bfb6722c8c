"""What interactions cost a run: every 10 s, 1 s and 0.1 s against none (IcedTea, Figure 18)."""

from __future__ import annotations

import time

from benchmarks.travel.setting import Row, Setting, interesting, median
from benchmarks.workflows import WORKFLOWS

__all__ = ["GAPS", "interactions", "interrupted"]

GAPS = (None, 10.0, 1.0, 0.1)


def interactions(setting: Setting) -> list[Row]:
    """Median seconds of a run by the gap between interactions; ratios of neighbours in time."""
    rows = []
    for name in WORKFLOWS:
        times, made = interrupted(setting, name)
        row: Row = {"workflow": name, "none s": median(times[None])}
        for gap in GAPS[1:]:
            ratios = [a / b for a, b in zip(times[gap], times[None], strict=True)]
            row[f"every {gap} s"] = median(ratios)
            row[f"made at {gap} s"] = made[gap]
        rows.append(row)
    return rows


def interrupted(
    setting: Setting, name: str
) -> tuple[dict[float | None, list[float]], dict[float | None, int]]:
    """Seconds of a workflow's runs by gap, after a run that warms up; and how many interactions were made."""
    times: dict[float | None, list[float]] = {gap: [] for gap in GAPS}
    made: dict[float | None, int] = {}
    pair = setting.pair(name)
    for number in range(setting.runs + 1):
        for gap in GAPS if number else (None,):
            setting.tick(f"interactions of {name}, every {gap} s, round {number}")
            flow = pair.samovar(setting.data)
            operator = interesting(name, flow)
            start = time.perf_counter()
            record = setting.scratch / f"{name}-{number}-{gap}"
            run = flow.start(spark=setting.spark, record=record, interactive=False)
            if gap is not None:
                run.interact(operator, every=gap)
            run.wait(progress=False)
            if number:
                times[gap].append(time.perf_counter() - start)
            past = setting.open(run)
            made[gap] = len(past.interactions)
            past.close()
    return times, made
