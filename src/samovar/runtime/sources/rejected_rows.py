"""Rows that did not parse: read from an epoch's units, and located later by file and line.

A row is kept as its text and its file; its line is found when somebody asks, by reading the file again. Of equal rows
in one file the first gets the first line, and so on. A row that spans lines gets the line it begins on.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from samovar.errors import UnknownName
from samovar.record.store import Recording
from samovar.runtime.exchange.decisions import skipped_tuples
from samovar.runtime.sources.units import CORRUPT, Source, is_bad, read_units
from samovar.runtime.workflow_file import read_graph, read_sources

__all__ = ["bad_rows", "first_bad_row", "read_rejected", "reading_hint", "rejection"]


def rejection(name: str, rows: int, source: Source | None) -> str:
    """The notice at the end of a run that rejected rows."""
    noun = "row" if rows == 1 else "rows"
    text = f"{rows:,} {noun} of '{name}' did not parse: not in the results, kept as rejected"
    return f"{text}; run.rejected('{name}') shows them. {reading_hint(source)}".rstrip()


def reading_hint(source: Source | None) -> str:
    """Reader options that might read the rows after all; empty when none are known."""
    if source is None or source.format != "csv":
        return ""
    doubled = source.option("escape", "\\") == source.option("quote", '"')
    if doubled and source.option("multiline").lower() == "true":
        return ""
    return "CSV as spreadsheets and pandas write it needs escape='\"' and multiLine=True."


def bad_rows(spark: SparkSession, source: Source, units: range) -> DataFrame:
    """The rows of some units that do not parse, as `file` and `text`. Reads the units again."""
    df = read_units(spark, source, units, positions=False, corrupt=True)
    bad = df.select("*", F.col("_metadata.file_path").alias("__sv_file")).filter(is_bad(df))
    return bad.select(F.col("__sv_file").alias("file"), F.col(CORRUPT).alias("text"))


def first_bad_row(spark: SparkSession, source: Source, units: range) -> tuple[str, int | None, str] | None:
    """File, line and text of a row that does not parse, or None."""
    rows = [(row[0], row[1] or "") for row in bad_rows(spark, source, units).limit(1).collect()]
    return next(iter(_placed(source, rows)), None)


def read_rejected(recording: Recording, source: str) -> pa.Table:
    """The rejected rows of a source as file, line and text, in that order. Reads the input again to find the lines.

    For another operator: the tuples that were skipped, as epoch, error and row.
    """
    known = read_sources(recording)
    if source not in known:
        others = read_graph(recording).ops
        if source in others:
            return skipped_tuples(recording, source)
        raise UnknownName(source, others, what="a source or an operator")
    folders = recording.parts("rejected", source, recording.history().epochs)
    rows = [
        (row["file"], row["text"])
        for folder in folders
        for path in sorted(folder.glob("*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]
    placed = sorted(_placed(known[source], rows), key=lambda r: (r[0], r[1] is None, r[1] or 0))
    return pa.table(
        {
            "file": pa.array([r[0] for r in placed], pa.string()),
            "line": pa.array([r[1] for r in placed], pa.int64()),
            "text": pa.array([r[2] for r in placed], pa.string()),
        }
    )


def _placed(source: Source, rows: Iterable[tuple[str, str]]) -> list[tuple[str, int | None, str]]:
    units = {u.path: u for u in source.spans}
    header = source.format == "csv" and source.option("header").lower() == "true"
    by_file: dict[str, list[str]] = {}
    for file, text in rows:
        by_file.setdefault(unquote(urlparse(file).path), []).append(text or "")
    placed: list[tuple[str, int | None, str]] = []
    for path, texts in by_file.items():
        unit = units.get(path)
        origin = unit.origin if unit is not None else None
        # a chunk begins with the header again, and its lines count from `start` of the original
        shift = unit.start - int(header) if unit is not None and origin is not None else 0
        for text, line in _find(Path(path), texts):
            placed.append((origin or path, None if line is None else line + shift, text))
    return placed


def _find(path: Path, texts: list[str]) -> list[tuple[str, int | None]]:
    """Line numbers (from 1) of raw rows; equal rows get successive lines."""
    wanted = Counter(text.rstrip("\r\n") for text in texts)
    parts = {key: [line.rstrip("\r") for line in key.split("\n")] for key in wanted}
    ending: dict[str, list[str]] = {}  # rows by their last line: the lines before it are known when it is met
    for key, lines in parts.items():
        ending.setdefault(lines[-1], []).append(key)
    recent: deque[str] = deque(maxlen=max(map(len, parts.values()), default=1))
    located: list[tuple[str, int | None]] = []
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for number, raw in enumerate(file, 1):
                text = raw.rstrip("\r\n")
                if number == 1:
                    text = text.removeprefix("\ufeff")
                recent.append(text)
                for key in ending.get(text, ()):
                    lines = parts[key]
                    if wanted[key] > 0 and (len(lines) == 1 or list(recent)[-len(lines) :] == lines):
                        wanted[key] -= 1
                        located.append((key, number - len(lines) + 1))
                        break
    except OSError:
        pass
    return located + [(text, None) for text in wanted.elements()]
