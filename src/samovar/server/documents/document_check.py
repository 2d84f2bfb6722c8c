"""What is wrong with a document, operator by operator, in the words of the library's own errors.

The library stops at the first error; people at a canvas want all. So an operator with an error is set aside together
with the operators after it, and the rest is checked: each operator shows the errors in itself, and none that only
follows from another operator's. Fields and edges are checked without Spark; columns, expressions and types by Spark,
when a session is there. Checking instantiates Python operators from their code, as starting a run does.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from samovar.errors import SamovarError
from samovar.graph import operators as ops
from samovar.graph.document import load_operators
from samovar.graph.operators.base import Op
from samovar.graph.subgraph import enabled
from samovar.graph.workflow import Graph, check_edges
from samovar.server.documents.confinement import problem_of
from samovar.server.documents.document_form import Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CheckedDocument", "Checker", "check"]

Result = TypeVar("Result")

_SEPARATORS = (";", "\t", "|", ",")
"""What separates columns of CSV files, besides what the options name."""


@dataclass(frozen=True)
class CheckedDocument:
    """Problems, and the output columns of each operator without one (empty without Spark)."""

    problems: tuple[Problem, ...] = ()
    schemas: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    deep: bool = False
    """Whether Spark checked it."""


def check(document: Mapping[str, Any], files: Path, spark: SparkSession | None) -> CheckedDocument:
    """All that is wrong with a document whose paths are relative to `files`."""
    loaded, errors = load_operators(document, folder=files)
    items = [item for item in document["operators"] if isinstance(item, Mapping)]
    problems = [problem(error) for error in errors]
    problems += [problem(error) for item in items if (error := problem_of(item, files)) is not None]
    unsound = {p.operator for p in problems}
    sound = {op.name: op for op in loaded if op.name not in unsound}
    aside = {str(item.get("name")) for item in items} - sound.keys()
    sound, _ = _checked(_without(sound, aside), problems, check_edges)
    sound = enabled(sound)
    if not any(isinstance(op, ops.SINKS) for op in sound.values()) and not problems:
        end = "End it with a 'sink' (kept in the recording) or a 'write'."
        no_sink = Problem("The workflow has no sink: nothing would be kept.", end)
        empty = Problem("The workflow is empty.", "Add a source from the palette.")
        problems.append(no_sink if items else empty)
    if spark is None:
        return CheckedDocument(tuple(problems))
    _, schemas = _checked(sound, problems, lambda sound: _schemas(sound, spark, problems))
    return CheckedDocument(tuple(problems), schemas or {}, True)


def problem(error: SamovarError) -> Problem:
    """An error of the library as a problem to show at its operator."""
    message = error.message.replace(" (the document)", "")
    return Problem(message, error.hint, error.operator, type(error).__name__)


def _without(sound: Mapping[str, Op], aside: set[str]) -> dict[str, Op]:
    """The operators that neither are set aside nor come after one that is."""
    gone = set(aside)
    while True:
        more = {n for n, op in sound.items() if n not in gone and gone & set(op.inputs)}
        if not more:
            return {n: op for n, op in sound.items() if n not in gone}
        gone |= more


def _checked(
    sound: dict[str, Op], problems: list[Problem], check: Callable[[dict[str, Op]], Result]
) -> tuple[dict[str, Op], Result | None]:
    """Check operators until no error is left: an operator with an error is set aside with those after it.

    Returns the operators that are sound, and what `check` returned for them; None when none is left.
    """
    while sound:
        try:
            return sound, check(sound)
        except SamovarError as error:
            problems.append(problem(error))
            if error.operator is None or error.operator not in sound:
                return {}, None
            sound = _without(sound, {error.operator})
    return {}, None


def _schemas(
    sound: dict[str, Op], spark: SparkSession, problems: list[Problem]
) -> dict[str, list[dict[str, str]]]:
    from samovar.compile.analysis import analyse
    from samovar.runtime.plans import made_live
    from samovar.runtime.sources.units import source_schema

    graph = made_live(Graph("checked", {n: sound[n] for n in check_edges(sound)}, {}))
    sources = {op.name: source_schema(spark, op, graph.live.get(op.name)) for op in graph.sources}
    one_column = [_one_column(op, sources[op.name].names) for op in graph.sources]
    problems += [p for p in one_column if p is not None and p not in problems]
    return {
        name: [{"name": f.name, "type": f.dataType.simpleString()} for f in struct.fields]
        for name, struct in analyse(spark, graph, sources).schemas.items()
    }


def _one_column(op: Op, names: list[str]) -> Problem | None:
    """CSV whose header looks as if its columns were separated by something else."""
    if not isinstance(op, ops.Read) or op.format != "csv" or len(names) != 1:
        return None
    other = max(_SEPARATORS, key=names[0].count)
    if other not in names[0]:
        return None
    return Problem(
        f"The file seems to have several columns, read as one column {names[0]!r}.",
        "Its columns look as if they were separated by something else: set the option sep to "
        + other.replace("\t", "\\t"),
        op.name,
        "SchemaProblem",
    )


class Checker:
    """Checks documents, and remembers the last few answers: several people look at the same document."""

    def __init__(self, files: Path) -> None:
        self._files = files
        self._known: OrderedDict[tuple[str, bool], CheckedDocument] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, document: Mapping[str, Any], spark: SparkSession | None) -> CheckedDocument:
        """As `check`. One at a time, so that a burst of edits does not occupy Spark."""
        key = (json.dumps(document, sort_keys=True, default=str), spark is not None)
        with self._lock:
            checked = self._known.get(key)
            if checked is None or '"op": "read"' in key[0] or '"op": "table"' in key[0]:  # files come and go
                checked = self._known[key] = check(document, self._files, spark)
                while len(self._known) > 16:
                    self._known.popitem(last=False)
            return checked
