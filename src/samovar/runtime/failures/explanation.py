"""From what Spark raises to what a person can act on: which operator, which row, what to do."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession

from samovar.errors import (
    EnvironmentProblem,
    ExpressionFailed,
    OperatorFailed,
    OutputMismatch,
    RecordingCorrupt,
    RecordingError,
    RunError,
    SamovarError,
    SourceError,
    StorageProblem,
)
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.record.digests import DAMAGED, forget
from samovar.runtime.epochs.run_context import RunContext
from samovar.runtime.failures.row_search import FoundRow, RowSearch
from samovar.runtime.failures.spark_errors import SPARK_ERRORS, SparkError
from samovar.runtime.sources.rejected_rows import first_bad_row

__all__ = ["damage_in", "explain_failure", "explain_start", "what_was_lost"]

log = logging.getLogger("samovar.failures")

_FULL = ("No space left on device", "Disk quota exceeded", "ENOSPC")
_GONE = (
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "stopped SparkContext",
    "Answer from Java side is empty",
    "Error while obtaining a new communication channel",
    "Error while sending or receiving",
    "An error occurred while trying to connect to the Java server",
    "Connection refused",
    "INVALID_HANDLE.SESSION",
)
_UNUSABLE = re.compile(r"samovar\.errors\.(RecordingCorrupt|RecordingError): (.+)(?:\s+Hint: (.+))?")
_UNREADABLE = re.compile(r"FAILED_READ_FILE\S* .*?reading file (?:file:)?(/\S+?)\.(?:\s|$)")
_LOST = (
    ("Python worker exited unexpectedly", "a Python worker died"),
    ("Python worker failed to connect back", "a Python worker did not start"),
    ("ExecutorLostFailure", "an executor died"),
    ("ExecutorDeadException", "an executor died"),
    ("Remote RPC client disassociated", "an executor died"),
    ("MetadataFetchFailed", "what an executor held was lost"),
    ("FetchFailed", "what an executor held was lost"),
    ("Missing an output location for shuffle", "what an executor held was lost"),
    ("Could not find block", "what an executor held was lost"),
    ("Failed to get broadcast", "what an executor held was lost"),
    ("BlockNotFoundException", "what an executor held was lost"),
    ("Connection reset by peer", "a connection to a worker broke"),
)


def explain_failure(context: RunContext, error: BaseException) -> BaseException:
    """The error to show for what ended a run. Runs Spark jobs to find operator and row when an expression failed."""
    if isinstance(error, SamovarError) or not isinstance(error, Exception):
        return error
    text = str(error)
    if any(sign in text for sign in _FULL):
        return StorageProblem(
            "The disk is full: the epoch could not be written.",
            hint="Free some space and resume the run; every committed epoch is kept.",
        )
    if any(sign in text for sign in _GONE) or _stopped(context.spark):
        done = len(context.history.epochs)
        kept = f"{done} epochs are committed: go on with" if done else "Start it anew, or go on with"
        return EnvironmentProblem(
            "The Spark session ended while the run was going on.",
            hint=f"{kept} sv.open({str(context.recording.path)!r}).resume(). "
            "If Java was killed, look whether the machine ran out of memory (spark.driver.memory).",
        )
    if isinstance(error, OSError):
        return StorageProblem(f"The recording could not be written: {error}.")
    if not isinstance(error, SPARK_ERRORS):
        return error
    if (damage := damage_in(text, context.recording.path)) is not None:
        return damage
    epoch = len(context.history.epochs)
    said = SparkError.of(error)
    present = context.progress.present
    try:
        found = RowSearch(context, present).find(said) if present is not None else None
    except Exception:  # what is known already is worth showing
        log.debug("the search for the cause failed", exc_info=True)
        found = None
    if found is None:
        operator = present.working if present is not None else None
        about = f"Operator '{operator}' failed" if operator else "Spark could not go on"
        return RunError(f"{about} in epoch {epoch}: {said.text}", operator=operator, hint=_advice(said, None))
    return _to_show(context, found, epoch)


def damage_in(text: str, recording: Path) -> RecordingError | None:
    """What an error of Spark's says of a file of a recording that cannot be used; None: nothing.

    Workers check what they read themselves; Spark names the file that it cannot read.
    """
    if (told := _UNUSABLE.search(text)) is not None:
        kind = RecordingCorrupt if told.group(1) == "RecordingCorrupt" else RecordingError
        return kind(told.group(2), hint=told.group(3) or DAMAGED)
    named = _UNREADABLE.search(text)
    path = "/" + unquote(named.group(1)).lstrip("/") if named else ""
    if not path.startswith(f"{recording}/"):
        return None
    forget(Path(path))  # a bit may flip behind the file's looks: whoever resumes must not trust those
    return RecordingCorrupt(f"{path} cannot be read: it is damaged, or gone.", hint=DAMAGED)


def explain_start(spark: SparkSession | None, error: Exception) -> SamovarError | None:
    """The error to show for what kept a run from starting; None when it explains itself."""
    if isinstance(error, SamovarError):
        return None
    if any(sign in str(error) for sign in _GONE) or (spark is not None and _stopped(spark)):
        return EnvironmentProblem(
            "Expected a live Spark session, got one that has ended.",
            hint="Make a new one (SparkSession.builder.getOrCreate()), or leave spark= out.",
        )
    if isinstance(error, SPARK_ERRORS):
        said = SparkError.of(error)
        return RunError(f"Spark could not prepare the run: {said.text}", hint=_advice(said, None))
    return None


def what_was_lost(error: BaseException) -> str | None:
    """In a few words, what Spark lost (a Python worker, an executor, what it held); None for any other failure."""
    if isinstance(error, SamovarError) or not isinstance(error, SPARK_ERRORS):
        return None
    text = str(error)
    return next((words for sign, words in _LOST if sign in text), None)


def _to_show(context: RunContext, found: FoundRow, epoch: int) -> SamovarError:
    op = context.plan.graph.ops[found.operator]
    said = found.said
    if isinstance(op, ops.SOURCES):
        return _source_problem(context, op, said)
    crashed = "exited unexpectedly" in said.message or "crashed" in said.message
    if crashed:
        return OperatorFailed(
            op.name,
            row=None,
            error="an error: the Python process running it ended without a word",
            traceback="",
            epoch=epoch,
            during="its input",
            hint="It may have run out of memory, or called os._exit or native code that crashed.",
        )
    if isinstance(op, ops.Batches):
        return OutputMismatch(
            op.name,
            row=None,
            error=re.sub(r"^PySpark\w+: | It can be caused by.*$", "", said.message),
            traceback="",
            epoch=epoch,
            during="its output",
            hint=f"Its batches must fit its schema: {context.plan.schemas[op.name].simpleString()[7:-1][:300]}.",
        )
    return ExpressionFailed(
        op.name,
        error=said.text,
        row=found.row,
        epoch=epoch,
        hint=_advice(said, op),
        note=found.note,
        traceback=said.python,
    )


def _source_problem(context: RunContext, op: Op, said: SparkError) -> SourceError:
    source = context.sources[op.name]
    if "MALFORMED" in said.condition or "failfast" in str(source.options.get("mode", "")).lower():
        present, every = context.progress.present, (0, len(source.units))
        units = present.covers.units.get(op.name, every) if present is not None else every
        bad = first_bad_row(context.spark, source, source.units[units[0] : units[1]] or source.units)
        if bad is not None:
            file, line, text = bad
            return SourceError(
                f"Expected rows of {source.struct.simpleString()[:300]}, got a row that does not parse:\n"
                f"    {file}, line {line or '?'}: {text[:300]}",
                operator=op.name,
                hint='Mend the file, or read it with mode="PERMISSIVE": such rows are then kept as rejected.',
            )
    named = re.search(r"reading file (?:file:/*)?(/?\S+?)\.(?:\s|$)", said.message)
    where = "/" + named.group(1).lstrip("/") if named else ", ".join(getattr(op, "path", ()))
    detail = re.sub(r"^Encountered error while reading file \S+\s*", "", said.message)
    return SourceError(
        f"Expected {source.format} data that can be read, got a file that cannot: {where}"
        + (f"\n    {detail}" if detail else ""),
        operator=op.name,
        hint="All files of a source need the same columns and types: move this one away or rewrite it."
        if "MISMATCH" in said.condition
        else "The file is damaged or of another format: replace it, or move it out of the folder.",
    )


def _advice(said: SparkError, op: Op | None) -> str | None:
    condition = f"{said.condition} {said.message}"
    coerced = isinstance(op, ops.Union | ops.Join)
    if "DIVIDE_BY_ZERO" in condition or "Division by zero" in condition or "REMAINDER_BY_ZERO" in condition:
        return "Filter such rows out first, or use try_divide(a, b), which gives null."
    if "CAST_INVALID_INPUT" in condition and coerced:
        kind = "columns of a union" if isinstance(op, ops.Union) else "two sides of a join condition"
        return (
            f"The {kind} differ in type, so Spark casts: cast one side yourself, or use try_cast(... AS ...)."
        )
    if "CAST" in condition or "CANNOT_PARSE" in condition:
        return "Clean the value first, or use try_cast(... AS ...), which gives null."
    if "OVERFLOW" in condition or "NUMERIC_VALUE_OUT_OF_RANGE" in condition:
        return "Cast to a wider type first (decimal(38, 0), double), or use try_add / try_multiply / try_sum."
    if "INVALID_ARRAY_INDEX" in condition or "INVALID_INDEX_OF_ZERO" in condition:
        return "Use get(array, index) or try_element_at(array, position), which give null."
    if said.python:
        return "Handle such values in the function, or filter the rows out before."
    return None


def _stopped(spark: SparkSession) -> bool:
    try:
        spark_context = spark.sparkContext
    except Exception:  # Spark Connect has none
        return False
    try:
        return spark_context._jsc is None or not spark_context.defaultParallelism
    except Exception:
        return True
