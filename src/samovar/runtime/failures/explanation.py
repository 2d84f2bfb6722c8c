"""From Spark's exceptions to errors that people can act on: which operator, which row, what to do."""

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

# Texts of Spark, Java and the operating system that tell the kinds of failure apart: they raise no classes for them.
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
    """The error to show for the exception that ended a run. Runs Spark jobs to find the operator and row at fault."""
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
        kept = f"{done} epochs are committed: go on with" if done else "Start it again, or go on with"
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
    spark_error = SparkError.of(error)
    present = context.progress.present
    try:
        row = RowSearch(context, present).find(spark_error) if present is not None else None
    except Exception:  # the error itself is worth showing without operator and row
        log.debug("the search for the cause failed", exc_info=True)
        row = None
    if row is None:
        operator = present.working if present is not None else None
        about = f"Operator '{operator}' failed" if operator else "Spark could not go on"
        text = f"{about} in epoch {epoch}: {spark_error.text}"
        return RunError(text, operator=operator, hint=_advice(spark_error, None))
    return _to_show(context, row, epoch)


def damage_in(text: str, recording: Path) -> RecordingError | None:
    """The error for a damaged file of a recording that a text of Spark's names; None: it names none.

    Workers check the files they read and raise our own errors; Spark names the file that it cannot read.
    """
    if (raised := _UNUSABLE.search(text)) is not None:
        kind = RecordingCorrupt if raised.group(1) == "RecordingCorrupt" else RecordingError
        return kind(raised.group(2), hint=raised.group(3) or DAMAGED)
    named = _UNREADABLE.search(text)
    path = "/" + unquote(named.group(1)).lstrip("/") if named else ""
    if not path.startswith(f"{recording}/"):
        return None
    forget(Path(path))  # size and time do not show a flipped bit: a resumed run must read the file again
    return RecordingCorrupt(f"{path} cannot be read: it is damaged, or gone.", hint=DAMAGED)


def explain_start(spark: SparkSession | None, error: Exception) -> SamovarError | None:
    """The error to show for an exception at the start of a run; None when it explains itself."""
    if isinstance(error, SamovarError):
        return None
    if any(sign in str(error) for sign in _GONE) or (spark is not None and _stopped(spark)):
        return EnvironmentProblem(
            "Expected a live Spark session, got one that has ended.",
            hint="Make a new one (SparkSession.builder.getOrCreate()), or leave spark= out.",
        )
    if isinstance(error, SPARK_ERRORS):
        spark_error = SparkError.of(error)
        text = f"Spark could not prepare the run: {spark_error.text}"
        return RunError(text, hint=_advice(spark_error, None))
    return None


def what_was_lost(error: BaseException) -> str | None:
    """In a few words, what Spark lost (a Python worker, an executor, its data); None for any other failure."""
    if isinstance(error, SamovarError) or not isinstance(error, SPARK_ERRORS):
        return None
    text = str(error)
    return next((words for sign, words in _LOST if sign in text), None)


def _to_show(context: RunContext, found: FoundRow, epoch: int) -> SamovarError:
    """The error for a row that was found to make Spark fail."""
    op = context.plan.graph.ops[found.operator]
    error = found.said
    if isinstance(op, ops.SOURCES):
        return _source_problem(context, op, error)
    if "exited unexpectedly" in error.message or "crashed" in error.message:
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
            error=re.sub(r"^PySpark\w+: | It can be caused by.*$", "", error.message),
            traceback="",
            epoch=epoch,
            during="its output",
            hint=f"Its batches must fit its schema: {context.plan.schemas[op.name].simpleString()[7:-1][:300]}.",
        )
    return ExpressionFailed(
        op.name,
        error=error.text,
        row=found.row,
        epoch=epoch,
        hint=_advice(error, op),
        note=found.note,
        traceback=error.python,
    )


def _source_problem(context: RunContext, op: Op, error: SparkError) -> SourceError:
    source = context.sources[op.name]
    if "MALFORMED" in error.condition or "failfast" in str(source.options.get("mode", "")).lower():
        present, every = context.progress.present, (0, len(source.units))
        units = present.covers.units.get(op.name, every) if present is not None else every
        bad = first_bad_row(context.spark, source, range(*units) or range(*every))
        if bad is not None:
            file, line, text = bad
            return SourceError(
                f"Expected rows of {source.struct.simpleString()[:300]}, got a row that does not parse:\n"
                f"    {file}, line {line or '?'}: {text[:300]}",
                operator=op.name,
                hint='Mend the file, or read it with mode="PERMISSIVE": such rows are then kept as rejected.',
            )
    named = re.search(r"reading file (?:file:/*)?(/?\S+?)\.(?:\s|$)", error.message)
    where = "/" + named.group(1).lstrip("/") if named else ", ".join(getattr(op, "path", ()))
    detail = re.sub(r"^Encountered error while reading file \S+\s*", "", error.message)
    return SourceError(
        f"Spark cannot read {where} as {source.format}" + (f":\n    {detail}" if detail else "."),
        operator=op.name,
        hint="All files of a source need the same columns and types: move this one away or rewrite it."
        if "MISMATCH" in error.condition
        else "The file is damaged or of another format: replace it, or move it out of the folder.",
    )


def _advice(error: SparkError, op: Op | None) -> str | None:
    """A hint for an error of an expression."""
    text = f"{error.condition} {error.message}"
    if "CAST_INVALID_INPUT" in text and isinstance(op, ops.Union | ops.Join):
        kind = "columns of a union" if isinstance(op, ops.Union) else "two sides of a join condition"
        return (
            f"The {kind} differ in type, so Spark casts: cast one side yourself, or use try_cast(... AS ...)."
        )
    if re.search("DIVIDE_BY_ZERO|Division by zero|REMAINDER_BY_ZERO", text):
        return "Filter such rows out first, or use try_divide(a, b), which gives null."
    if re.search("CAST|CANNOT_PARSE", text):
        return "Clean the value first, or use try_cast(... AS ...), which gives null."
    if re.search("OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE", text):
        return "Cast to a wider type first (decimal(38, 0), double), or use try_add / try_multiply / try_sum."
    if re.search("INVALID_ARRAY_INDEX|INVALID_INDEX_OF_ZERO", text):
        return "Use get(array, index) or try_element_at(array, position), which give null."
    return "Handle such values in the function, or filter the rows out before." if error.python else None


def _stopped(spark: SparkSession) -> bool:
    try:
        spark_context = spark.sparkContext
    except Exception:  # Spark Connect has none
        return False
    try:
        return spark_context._jsc is None or not spark_context.defaultParallelism
    except Exception:
        return True
