"""`shake`: does a program return the same rows however Spark runs it?

One program, many ways to run it: partitions of the input and their order, shuffle partitions, adaptive execution,
sizes of Arrow batches, tasks that are done again, and for streams the cuts into micro-batches. Outputs have to be
equivalent under a dependence. Where they are not, the two settings that differ least are named.

Outputs are taken to the driver: this is for inputs of the size of a test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from samovar.diff.comparison_errors import ProgramProblem
from samovar.diff.dependence import Dependence, as_dependence, independent
from samovar.diff.equality import as_equality
from samovar.diff.programs.generated_rows import Rows, is_strategy
from samovar.diff.programs.micro_batches import Mode, as_streams, taken_from_stream
from samovar.diff.programs.program import Outcome, Plain, named_inputs, outcome_of, same_outcome
from samovar.diff.programs.shake_settings import Setting, applied, can_retry, dealt, plan, taken_twice
from samovar.diff.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Shaken", "shake"]

_NO_RETRIES = "tasks done again, since this Spark does not do so (local[2,4] would)"


@dataclass(frozen=True)
class Shaken:
    """The finding of `shake`. `pair` are the two settings whose outputs differ, as near to each other as was found."""

    passed: bool
    executions: int
    tried: tuple[Setting, ...]
    pair: tuple[Setting, Setting] | None = None
    verdict: Verdict | None = None
    problem: str = ""
    left_out: tuple[str, ...] = ()
    outcomes: tuple[Outcome, Outcome] | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """The finding for a person: the two settings, and how the outputs differ."""
        note = [f"Not tried: {text}." for text in self.left_out]
        if self.passed or self.pair is None:
            return "\n".join([f"The program gave the same in {self.executions} executions.", *note])
        calm, other = self.pair
        lines = [
            f"The program gives different results, found in {self.executions} executions:",
            f"  left:  {calm.describe(other)}",
            f"  right: {other.describe(calm)}",
            "",
            self.problem,
        ]
        if other.changed(calm) == ["again"]:
            lines.insert(3, "  Nothing was changed between the two: the program is not deterministic.")
        return "\n".join([*lines, *note])


def shake(
    program: Any,
    inputs: Any,
    *,
    depends: Any = independent,
    equal: Any = None,
    arrives: Any = independent,
    stream: Mode | None = None,
    runs: int = 20,
    seed: int = 0,
    sink: str | None = None,
    spark: SparkSession | None = None,
) -> Shaken:
    """Run a program on the same inputs in at most `runs` ways, and compare its results.

    `depends` and `equal` define when two outputs are equivalent. `arrives` names the rows of the input that keep
    their order, and stay in one partition: none by default; `keyed("taxi")` for an input that is partitioned by taxi
    and in order there. `stream` is the output mode of a streaming program (`append`, `update` or `complete`): it gets
    streaming DataFrames, and the cuts into micro-batches are changed, too. With `accepts(...)`, the output of the
    calmest setting is the reference.
    """
    from samovar.diff.tables.table_inputs import as_side, session_of

    as_dependence(depends), as_equality(equal), as_dependence(arrives)
    if runs < 2:
        raise ProgramProblem(f"Expected at least two runs to compare, got {runs}.")
    if isinstance(program, Plain):
        raise ProgramProblem(
            "Expected a program that Spark runs, got one in plain Python.", hint="Use check(...) for that."
        )
    named = named_inputs(inputs)
    if not named:
        raise ProgramProblem("Expected inputs to run the program on, got none.")
    session = session_of(*named.values(), spark=spark)
    tables: dict[str, pa.Table] = {}
    for name, value in named.items():
        if is_strategy(value):
            raise ProgramProblem(
                f"Expected a table as input '{name}', got a strategy.",
                hint="Use check(program, program, ...) for generated inputs, or shake one of its examples.",
            )
        is_rows = isinstance(value, Rows)
        tables[name] = value.table() if is_rows else as_side(value, "left", session).df.toArrow()
    if stream not in (None, "append", "update", "complete"):
        raise ProgramProblem(f"Expected stream='append', 'update' or 'complete', got {stream!r}.")
    shaker = _Shaker(program, tables, depends, equal, as_dependence(arrives), sink, session, stream)
    return shaker.search(runs, seed)


@dataclass
class _Shaker:
    program: Any
    tables: Mapping[str, pa.Table]
    depends: Any
    equal: Any
    arrives: Dependence
    sink: str | None
    spark: Any
    stream: Mode | None = None
    executions: int = 0

    def search(self, runs: int, seed: int) -> Shaken:
        """Try settings until one differs from the calmest; then bring the two as near to each other as runs allow."""
        retries = can_retry(self.spark)
        settings = plan(runs, seed, retries=retries, stream=self.stream is not None)
        calm = settings[0]
        reference = self.run(calm)
        for number, setting in enumerate(settings[1:], start=2):
            if (difference := self.difference(calm, setting, reference)) is not None:
                nearest = self.reduced(calm, difference, reference, runs)
                return replace(nearest, executions=self.executions, tried=tuple(settings[:number]))
        if reference.error:
            raise ProgramProblem(
                f"Expected a program that returns a result, got one that raised in all of {self.executions} "
                f"executions: {reference.message}"
            )
        skipped = () if retries or self.stream else (_NO_RETRIES,)
        return Shaken(True, self.executions, tuple(settings), left_out=skipped)

    def difference(self, calm: Setting, setting: Setting, reference: Outcome) -> Shaken | None:
        """Run with a setting; the finding if the outcome (left) differs from that of the calmest setting (right)."""
        outcome = self.run(setting)
        same, verdict, problem = same_outcome(outcome, reference, self.depends, self.equal)
        if same:
            return None
        pair, outcomes = (setting, calm), (outcome, reference)
        return Shaken(False, self.executions, (), pair, verdict, problem, outcomes=outcomes)

    def reduced(self, calm: Setting, finding: Shaken, reference: Outcome, runs: int) -> Shaken:
        """Put one setting after the other back to calm, as long as the outputs still differ."""
        assert finding.pair is not None
        setting = finding.pair[0]
        for name in setting.changed(calm):
            if self.executions >= runs or len(setting.changed(calm)) == 1:
                break
            calmer = replace(setting, **{name: getattr(calm, name)})
            if (nearer := self.difference(calm, calmer, reference)) is not None:
                setting, finding = calmer, nearer
        return finding

    def run(self, setting: Setting) -> Outcome:
        """Execute the program once with a setting."""
        self.executions += 1
        take: Callable[[DataFrame], pa.Table] | None = None
        with applied(setting, self.spark), tempfile.TemporaryDirectory() as folder:
            if self.stream is not None:
                take = taken_from_stream(self.stream, Path(folder))
            elif setting.retry:
                take = taken_twice

            def frames(tables: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
                if self.stream is not None:
                    return as_streams(tables, setting, self.arrives, self.spark, Path(folder))
                return {n: dealt(table, setting, self.arrives, self.spark) for n, table in tables.items()}

            return outcome_of(
                self.program, dict(self.tables), self.spark, sink=self.sink, frames=frames, take=take
            )
