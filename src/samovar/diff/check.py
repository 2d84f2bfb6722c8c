"""`check`: does a program do what a reference does? On given inputs, or on generated ones, shrunk where they differ.

Generated inputs are reproducible: the same seed, the same inputs. The report shows the smallest input found on which
the two programs differ.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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

_SHOWN = 20
"""Rows of an input that a report shows."""


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
            both = f": both raised ({self.left.message})" if self.left is not None and self.left.error else ""
            return f"The program did what the reference did, on {tried}{both}."
        lines = ["The program (left) and the reference (right) differ."]
        for name, table in self.inputs.items():
            if isinstance(table, (Rows, pa.Table)):
                count = len(table)
                title = "Input" if len(self.inputs) == 1 else f"Input '{name}'"
                lines += ["", f"{title}, {count} row{'s' * (count > 1)}:" if count else f"{title}: no rows."]
                rows = table.slice(0, _SHOWN).to_pylist() if isinstance(table, pa.Table) else table[:_SHOWN]
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
    """Run two programs on the same inputs and compare their results.

    Programs are functions of DataFrames, `on_frames(function)`, `plain(function)`, workflows, recordings or tables.
    `inputs` is a strategy (`rows(...)`), a table (pyarrow, DataFrame, path, list of rows), or several, as a list (in
    the order of the programs' arguments) or by name. With a strategy, `examples` inputs are tried, and an input on
    which the programs differ is shrunk for at most `seconds`. If only one program raises, they differ.
    """
    as_dependence(depends), as_equality(equal)
    if examples < 1:
        raise ProgramProblem(f"Expected at least one example, got {examples}.")
    from samovar.diff.tables.table_inputs import session_of

    named = named_inputs(inputs)
    session = session_of(*named.values(), program, reference, spark=spark)
    strategies = {n: v for n, v in named.items() if is_strategy(v)}
    fixed = {n: _table(v, session) for n, v in named.items() if n not in strategies}

    def run(drawn: Mapping[str, Any]) -> Checked:
        tables = {n: drawn[n] if n in drawn else fixed[n] for n in named}
        left, right = (outcome_of(each, tables, session, sink=sink) for each in (program, reference))
        same, verdict, problem = same_outcome(left, right, depends, equal)
        return Checked(same, 1, None, tables, verdict, problem, left, right)

    return _searched(run, strategies, examples, seed, seconds) if strategies else run({})


class _Different(Exception):
    """The two programs differ on an input: tells hypothesis to shrink it."""


class _OutOfTime(BaseException):
    """Ends a search at once: hypothesis catches only exceptions of tests."""


def _searched(
    run: Callable[[Mapping[str, Any]], Checked],
    strategies: dict[str, Any],
    examples: int,
    seed: int,
    seconds: float,
) -> Checked:
    """Run on generated inputs; the smallest one seen on which the programs differ, if there is one."""
    h = hypothesis()
    failures: list[Checked] = []
    tried = 0
    since = 0.0

    def body(drawn: dict[str, Any]) -> None:
        nonlocal tried, since
        if failures and time.monotonic() - since > seconds:
            raise _OutOfTime
        tried += not failures
        result = run(drawn)
        if result.passed:
            return
        if not failures:
            since = time.monotonic()
        failures.append(result)
        raise _Different

    settings = h.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(h.HealthCheck),
        verbosity=h.Verbosity.quiet,
    )
    with contextlib.suppress(_Different, _OutOfTime, h.errors.Flaky):
        h.seed(seed)(settings(h.given(h.strategies.fixed_dictionaries(strategies))(body)))()
    if not failures:
        return Checked(True, tried, seed)
    return replace(min(failures, key=_size), examples=tried, seed=seed)


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
