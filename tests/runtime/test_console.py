"""What operators print reaches whoever looks at the run, with the operator's name."""

# ruff: noqa: T201

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.runtime.steered import numbers

import samovar as sv
from samovar.runtime.exchange.console import MOST, Console


class Loud(sv.Operator):
    output = "x bigint"

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        if row["x"] % 10 == 0:
            print("loud", row["x"], end="!\n")
        yield dict(row)


class Quiet(sv.Operator):
    output = "x bigint"

    def say(self, row: Mapping[str, Any]) -> None:
        print("quiet", row["x"])

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[Mapping[str, Any] | None]:
        if row["x"] == 5:
            self.say(row)
        yield dict(row)


def test_prints_of_operators_in_a_chain_come_with_their_names(spark: Any, tmp_path: Path) -> None:
    flow = sv.Workflow("printing")
    read = flow.read.parquet(numbers(tmp_path, 20), name="numbers")
    read.apply(Loud(), name="L").apply(Quiet(), name="Q").sink("S")
    run = flow.start(spark=spark, record=tmp_path / "runs")
    run.wait(progress=False)
    told = [(line.operator, line.epoch, line.text) for line in run.console]
    assert told == [("L", 0, "loud 0!"), ("Q", 0, "quiet 5"), ("L", 0, "loud 10!")]
    assert all(line.at > 1e9 for line in run.console)


def test_a_console_sends_whole_lines_and_not_too_many_and_gives_the_stream_back() -> None:
    sent: list[Any] = []
    before = sys.stdout
    console = Console(sent.append, 3, lambda: {1: "P"})
    print("a", end="")
    print("b\nc", end="")
    assert [(p.operator, p.epoch, p.text) for p in sent] == [("P", 3, "ab")]
    for i in range(MOST + 50):
        print(i)
    console.close()
    assert sys.stdout is before
    assert len(sent) == MOST + 1
    assert sent[1].text == "c0"
    assert "not shown" in sent[-1].text
