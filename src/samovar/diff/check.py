"""`check`: does a program do what a reference does? On given inputs, or on generated ones, shrunk where they differ.

Generated inputs are reproducible: the same seed, the same inputs. What is reported is the smallest input found on which
the two differ.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from samovar.diff.comparison_errors import ProgramProblem
from samovar.diff.dependence import as_dependence, independent
from samovar.diff.equality import as_equality
from samovar.diff.programs.generated_rows import Rows, hypothesis, is_strategy
from samovar.diff.programs.program import Outcome, named_inputs, outcome_of, same_outcome
from samovar.diff.verdict import Verdict
from samovar.text import row_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Checked", "check"]

_SHOWN = 20  # rows of an input


@dataclass(frozen=True)
class Checked:
    """Whether a program did what its reference did; if not, the smallest input found on which it did not."""

    passed: bool
    examples: int
    seed: int | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    problem: str = ""
    left: Outcome | None = field(default=None, repr=False)
    right: Outcome | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.explain()

    def explain(self) -> str:
        """The finding for a person: the input, and what differs."""
        if self.passed:
            tried = "1 input" if self.examples == 1 else f"{self.examples} inputs"
            both = f": both raised ({self.left.said()})" if self.left is not None and self.left.error else ""
            return f"The program did what the reference did, on {tried}{both}."
        lines = ["The program (left) and the reference (right) differ."]
        for name, given in self.inputs.items():
            if isinstance(given, (Rows, pa.Table)):
                count = len(given)
                title = "Input" if len(self.inputs) == 1 else f"Input '{name}'"
                lines += ["", f"{title}, {count} row{'s' * (count > 1)}:" if count else f"{title}: no rows."]
                rows = given.slice(0, _SHOWN).to_pylist() if isinstance(given, pa.Table) else given[:_SHOWN]
                lines += [f"  {row_text(row, 160)}" for row in rows]
                lines += [f"  ... and {count - _SHOWN} more"] if count > _SHOWN else []
        lines += ["", self.problem]
        if self.seed is not None:
            lines += ["", f"Found with seed={self.seed} after {self.examples} inputs."]
        return "\n".join(lines)


def check(
    program: Any,
    reference: Any,
    inputs: Any = None,
    *,
    depends: Any = independent,
    equal: Any = None,
    examples: int = 30,
    seed: int = 0,
    seconds: float = 60.0,
    sink: str | None = None,
    spark: SparkSession | None = None,
) -> Checked:
    """Run two programs on the same inputs and compare what they give.

    Programs are functions of DataFrames, `on_frames(function)`, `plain(function)`, workflows, recordings or tables.
    `inputs` is a strategy (`rows(...)`), a table (pyarrow, DataFrame, path, list of rows), or several, as a list (in
    the order of the programs' arguments) or by name. With a strategy, `examples` inputs are tried, and what fails is
    shrunk for at most `seconds`. A program that raises while the other does not is a difference.
    """
    as_dependence(depends), as_equality(equal)
    if examples < 1:
        raise ProgramProblem(f"Expected at least one example, got {examples}.")
    from samovar.diff.tables.table_inputs import session_of

    given = named_inputs(inputs)
    session = session_of(*given.values(), program, reference, spark=spark)
    trial = _Trial(program, reference, depends, equal, sink, session)
    strategies = {n: v for n, v in given.items() if is_strategy(v)}
    if not strategies:
        return trial.on({n: _table(v, session) for n, v in given.items()}, None)
    fixed = {n: _table(v, session) for n, v in given.items() if n not in strategies}
    return _searched(trial, strategies, fixed, list(given), examples, seed, seconds)


@dataclass
class _Trial:
    """Two programs, and what was seen of them."""

    program: Any
    reference: Any
    depends: Any
    equal: Any
    sink: str | None
    spark: Any
    runs: int = 0

    def on(self, inputs: dict[str, Any], seed: int | None) -> Checked:
        """Run both on one input."""
        self.runs += 1
        left = outcome_of(self.program, inputs, self.spark, sink=self.sink)
        right = outcome_of(self.reference, inputs, self.spark, sink=self.sink)
        same, verdict, problem = same_outcome(left, right, self.depends, self.equal)
        return Checked(same, self.runs, seed, inputs, verdict, problem, left, right)


class _Different(Exception):
    pass


class _OutOfTime(BaseException):
    """Ends a search at once: hypothesis catches only exceptions of tests."""


def _searched(
    trial: _Trial,
    strategies: Mapping[str, Any],
    fixed: Mapping[str, Any],
    order: list[str],
    examples: int,
    seed: int,
    seconds: float,
) -> Checked:
    h = hypothesis()
    found: list[Checked] = []
    tried = 0
    since = 0.0

    def body(drawn: dict[str, Any]) -> None:
        nonlocal tried, since
        if found and time.monotonic() - since > seconds:
            raise _OutOfTime
        tried += not found
        result = trial.on({n: drawn[n] if n in drawn else fixed[n] for n in order}, seed)
        if result.passed:
            return
        if not found:
            since = time.monotonic()
        found.append(result)
        raise _Different

    tested = h.given(h.strategies.fixed_dictionaries(dict(strategies)))(body)
    tested = h.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(h.HealthCheck),
        verbosity=h.Verbosity.quiet,
    )(tested)
    with contextlib.suppress(_Different, _OutOfTime, h.errors.Flaky):
        h.seed(seed)(tested)()
    if not found:
        return Checked(True, tried, seed)
    best = min(found, key=_size)
    return Checked(False, tried, seed, best.inputs, best.verdict, best.problem, best.left, best.right)


def _size(result: Checked) -> tuple[int, int]:
    rows = [r for r in result.inputs.values() if isinstance(r, Rows)]
    return sum(map(len, rows)), sum(len(repr(list(r))) for r in rows)


def _table(value: Any, spark: Any) -> Any:
    from samovar.diff.tables.table_inputs import as_side

    if isinstance(value, (Rows, pa.Table)):
        return value
    if isinstance(value, (list, tuple)) and value and all(isinstance(row, Mapping) for row in value):
        return pa.Table.from_pylist(list(value))
    return as_side(value, "left", spark).df
