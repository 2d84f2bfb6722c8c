"""How costs grow: W1 and W5 by rows, and by the number of epochs."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.papers.charts import Chart, Series
from benchmarks.papers.context import Context
from benchmarks.papers.experiment import Experiment, Figure, Raw, Row, Size

__all__ = ["EXPERIMENTS"]

_TIMES = ("x1", "x2", "x4", "x8")


def _by_rows(context: Context, part: str) -> dict[str, Any]:
    name, factor = part.split()
    scale = context.size["base"][name] * int(factor[1:])
    return {"factor": int(factor[1:]), "scale": scale, **_measured(context, name, scale, {})}


def _by_epochs(context: Context, part: str) -> dict[str, Any]:
    from benchmarks.workflows import WORKFLOWS

    name, wanted = part.split()[:2]
    scale = context.size["base"][name]
    data = context.data(scale)
    data.ensure(WORKFLOWS[name].inputs, progress=False)
    taken = data.size(*WORKFLOWS[name].inputs)
    options = {"epoch_bytes": max(1, taken // int(wanted))}
    return {"wanted": int(wanted), **_measured(context, name, scale, options)}


def _measured(context: Context, name: str, scale: float, options: dict[str, Any]) -> dict[str, Any]:
    """The plain job and the recorded run by turns; then jumps and steps in the last run."""
    from benchmarks.overhead import recorded_bytes
    from benchmarks.travel.jumps import jumped
    from benchmarks.travel.setting import Setting, interesting
    from benchmarks.workflows import WORKFLOWS

    pair, data = WORKFLOWS[name], context.data(scale)
    data.ensure(pair.inputs, progress=False)
    setting = Setting(context.spark, data, context.scratch, 1, context.tick)
    plain: list[float] = []
    recorded: list[float] = []
    for number in range(context.size["runs"] + 1):
        context.tick(f"plain, round {number}")
        start = time.perf_counter()
        pair.plain(context.spark, data).write.parquet(str(context.scratch / f"plain-{number}"))
        middle = time.perf_counter()
        context.tick(f"recorded, round {number}")
        flow = pair.samovar(data)
        run = setting.run(flow, **options)
        if number:
            plain.append(middle - start)
            recorded.append(time.perf_counter() - middle)
    assert run.recording is not None
    sizes = recorded_bytes(run.recording)
    past = setting.open(run)
    epochs = len(past.history.epochs)
    past.close()
    context.tick("jumping")
    found = jumped(setting, run, interesting(name, flow), context.size["moments"])
    return {
        "plain": plain,
        "recorded": recorded,
        "epochs": epochs,
        "log": sizes.log,
        "deltas": sizes.deltas,
        "input": data.size(*pair.inputs),
        "jump": found["jump s"],
        "jump_worst": found["jump max s"],
        "step_ms": found["step ms"],
    }


def _row(text: str, found: Any, more: dict[str, Any]) -> Row:
    return Row(
        text,
        ours=statistics.median(found["recorded"]),
        other=statistics.median(found["plain"]),
        instead="plain PySpark job",
        ratios=[a / b for a, b in zip(found["recorded"], found["plain"], strict=True)],
        more={
            **more,
            "epochs": found["epochs"],
            "recording KB": (found["log"] + found["deltas"]) / 1e3,
            "jump s": found["jump"],
            "worst jump s": found["jump_worst"],
            "step ms": found["step_ms"],
        },
    )


def _rows_rows(raw: Raw, size: Size) -> list[Row]:
    made = []
    for part, found in raw.items():
        name = part.split()[0]
        base = raw.get(f"{name} x1")
        grown = None
        if base is not None:
            grown = (
                statistics.median(found["recorded"]) / statistics.median(base["recorded"]) / found["factor"]
            )
        text = f"{name.upper()}, {part.split()[1]} (scale {found['scale']:g})"
        made.append(_row(text, found, {"time a row against x1": grown}))
    return made


def _rows_chart(raw: Raw, size: Size) -> Chart:
    series = []
    for name in ("w1", "w5"):
        there = [found for part, found in raw.items() if part.split()[0] == name]
        factors = [found["factor"] for found in there]
        series.append(
            Series(f"{name.upper()} run", [statistics.median(f["recorded"]) for f in there], factors)
        )
        series.append(
            Series(f"{name.upper()} plain", [statistics.median(f["plain"]) for f in there], factors)
        )
        series.append(Series(f"{name.upper()} jump", [f["jump"] for f in there], factors))
    return Chart(
        "Seconds by rows", "lines", "s", tuple(series), x="times the rows of x1", log_x=False, log_y=True
    )


def _epoch_rows(raw: Raw, size: Size) -> list[Row]:
    return [
        _row(f"{part.split()[0].upper()} in {part.split()[1]} epochs", found, {})
        for part, found in raw.items()
    ]


ROWS = Experiment(
    "scaling.rows",
    _by_rows,
    (
        Figure(
            "scaling.rows",
            "By rows",
            "The papers keep to one size.",
            "W1, native, and W5, with a Python operator, on 1, 2, 4 and 8 times the rows: the run, its recording, "
            "jumps to random tuples and steps from there. Cost a row should not grow.",
            _rows_rows,
            _rows_chart,
        ),
    ),
    quick={
        "parts": ("w1 x1", "w1 x4", "w5 x1", "w5 x4"),
        "base": {"w1": 0.05, "w5": 0.0125},
        "runs": 1,
        "moments": 4,
    },
    full={
        "parts": tuple(f"{name} {times}" for name in ("w1", "w5") for times in _TIMES),
        "base": {"w1": 0.5, "w5": 0.0625},
        "runs": 3,
        "moments": 8,
    },
)

EPOCHS = Experiment(
    "scaling.epochs",
    _by_epochs,
    (
        Figure(
            "scaling.epochs",
            "By epochs",
            "Its unit is the tuple; there are no epochs.",
            "The same data in more and shorter epochs. By itself Samovar chooses their length so that they cost "
            "little; here it is set by hand, and may come out smaller where files are the unit.",
            _epoch_rows,
        ),
    ),
    quick={"parts": ("w1 1 epochs", "w1 4 epochs"), "base": {"w1": 0.1}, "runs": 1, "moments": 4},
    full={
        "parts": tuple(f"{name} {n} epochs" for name in ("w1", "w5") for n in (1, 4, 16)),
        "base": {"w1": 2, "w5": 0.25},
        "runs": 3,
        "moments": 8,
    },
)

EXPERIMENTS = (ROWS, EPOCHS)
