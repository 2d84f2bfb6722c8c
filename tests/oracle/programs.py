"""Random tables, and programs over them that are written once for PySpark's DataFrames and for Frames.

A program is built step by step on DataFrames, whose columns and types say what can come next; each step is kept as a
function of frames and is then applied to Frames as it is.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

import samovar as sv

__all__ = ["PLAIN", "TYPES", "Program", "Step", "columns_of", "pick", "quoted", "random_table"]

TYPES: dict[str, pa.DataType] = {
    "rid": pa.int64(),
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.decimal128(12, 2),
    "x": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "t": pa.timestamp("us", tz="UTC"),
    "st": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "arr": pa.list_(pa.int32()),
    "m": pa.map_(pa.string(), pa.int32()),
}


def random_table(rnd: random.Random, rows: int, start: int, columns: Sequence[str]) -> pa.Table:
    """A table of these columns; `rid` counts from `start`."""

    def value(name: str, row: int) -> Any:
        if name == "rid":
            return start + row
        if rnd.random() < 0.2:
            return None
        match name:
            case "i":
                return rnd.randrange(-2, 4)
            case "l":
                return rnd.choice([0, 1, 2, 3, 2**40])
            case "d":
                return decimal.Decimal(rnd.randrange(-300, 300)).scaleb(-2)
            case "x":
                return rnd.choice([0.0, -0.0, 0.25, 1.5, -2.75, 1e6, math.nan, math.inf])
            case "s":
                return rnd.choice(["a", "b", "", "it's", "Ünï", "a b"])
            case "b":
                return rnd.random() < 0.5
            case "day":
                return dt.date(2020, 2, 28) + dt.timedelta(days=rnd.randrange(3))
            case "t":
                return dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=rnd.randrange(4) * 1000)
            case "st":
                return {"a": rnd.choice([None, 1, 2]), "b": rnd.choice([None, "p"])}
            case "arr":
                return [rnd.choice([None, 1, 2]) for _ in range(rnd.randrange(3))]
        return {k: rnd.randrange(3) for k in rnd.sample(["p", "q"], rnd.randrange(3))}

    return pa.table({c: pa.array([value(c, r) for r in range(rows)], TYPES[c]) for c in columns})


@dataclass(frozen=True)
class Step:
    """One call: `plain` on DataFrames, `frame` on Frames; the same function unless order counts."""

    text: str
    inputs: tuple[int, ...]
    plain: Callable[..., Any]
    frame: Callable[..., Any]
    sorted: bool = False


@dataclass
class Program:
    """Sources and steps; the last step's result is the program's."""

    paths: list[str]
    steps: list[Step] = field(default_factory=list)
    plain: list[DataFrame] = field(default_factory=list)
    ordered: list[frozenset[int] | None] = field(default_factory=list)
    """For each frame, the sources it comes from when `rid` still tells the order of its rows."""

    def text(self) -> str:
        """The program as one can read it."""
        lines = [f"f{i} = read({p!r})" for i, p in enumerate(self.paths)]
        for i, step in enumerate(self.steps, len(self.paths)):
            lines.append(f"f{i} = {step.text.format(*(f'f{j}' for j in step.inputs))}")
        return "\n".join(lines)

    @property
    def is_sorted(self) -> bool:
        return bool(self.steps) and self.steps[-1].sorted

    def on_frames(self, flow: sv.Workflow) -> list[sv.Frame]:
        """The same on Frames: one for each source and step."""
        made = [flow.read.parquet(p, name=f"source {i}") for i, p in enumerate(self.paths)]
        for step in self.steps:
            made.append(step.frame(*(made[i] for i in step.inputs)))
        return made

    def add(
        self,
        text: str,
        inputs: Sequence[int],
        call: Callable[..., Any],
        *,
        plain: Callable[..., Any] | None = None,
        ordered: frozenset[int] | None = None,
        is_sorted: bool = False,
    ) -> None:
        step = Step(text, tuple(inputs), plain or call, call, is_sorted)
        made = step.plain(*(self.plain[i] for i in inputs))
        self.steps.append(step)
        self.plain.append(made)
        self.ordered.append(ordered if "rid" in made.columns else None)


def pick(rnd: random.Random, program: Program) -> int:
    """A frame to go on from: mostly the newest."""
    last = len(program.plain) - 1
    return last if rnd.random() < 0.6 else rnd.randrange(last + 1)


def columns_of(df: DataFrame, *kinds: str) -> list[str]:
    return [c for c, t in df.dtypes if not kinds or t.startswith(kinds)]


def quoted(name: str) -> str:
    return f"`{name}`"


PLAIN = ("int", "bigint", "decimal", "double", "string", "boolean", "date", "timestamp")
