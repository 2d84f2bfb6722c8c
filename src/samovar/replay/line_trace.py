"""Inside one step of a Python operator: the lines that ran, and the locals at each."""

from __future__ import annotations

import copy
import inspect
import linecache
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa

from samovar.graph.logged_results import Results, using
from samovar.graph.operator import Operator, is_batch_form

__all__ = ["ExecutedLine", "run_lines"]

LIMIT = 10_000
"""Lines that are recorded: a loop in an operator can run millions, and each keeps a copy of the locals."""


@dataclass(frozen=True)
class ExecutedLine:
    """A line that is about to run, the locals before it, and the value it returned or yielded, if any."""

    number: int
    text: str
    locals: Mapping[str, Any] = field(repr=False)
    function: str = ""
    event: str = "line"
    """`line`, `return` (`value` is what was returned or yielded) or `exception`."""
    value: Any = None


def run_lines(
    instance: Operator, row: Mapping[str, Any] | None, port: int, results: Sequence[Any] = ()
) -> list[ExecutedLine]:
    """Process a tuple (None: the end of the input) and record every line that runs in the operator's file.

    `results` are what `log_result` returned in this step: the calls are not made again.
    """
    with using(Results(list(results))):
        if is_batch_form(type(instance)):
            batch = pa.RecordBatch.from_pylist([dict(row or {})])
            return _traced(type(instance), lambda: instance.process_batch(batch, port))  # type: ignore[attr-defined]
        if row is None:
            return _traced(type(instance), lambda: _called(instance.finish, port))
        return _traced(type(instance), lambda: _called(instance.process, dict(row), port))


def _called(function: Any, *arguments: Any) -> Any:
    """Call a method with as many arguments as it takes: `port` may be missing."""
    count = len(inspect.signature(function).parameters)
    return function(*arguments[:count])


def _traced(kind: type, call: Any) -> list[ExecutedLine]:
    files = {
        code.co_filename
        for base in kind.__mro__
        for value in vars(base).values()
        if (code := _code_of(value)) is not None and base is not Operator and base is not object
    }
    lines: list[ExecutedLine] = []

    def trace(frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        if event in ("line", "return", "exception") and len(lines) < LIMIT:
            lines.append(
                ExecutedLine(
                    frame.f_lineno,
                    linecache.getline(frame.f_code.co_filename, frame.f_lineno).rstrip("\n"),
                    {k: _copied(v) for k, v in frame.f_locals.items() if k != "self"},
                    frame.f_code.co_name,
                    event,
                    _copied(value[1]) if event == "exception" else _copied(value),
                )
            )
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for _ in call() or ():
            pass
    except Exception:  # recorded as the event of the last line
        pass
    finally:
        sys.settrace(before)
    return lines


def _code_of(value: Any) -> CodeType | None:
    code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:
        return repr(value)
