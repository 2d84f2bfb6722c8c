"""Whether input files are as they were when a run listed them: checked before they are read, and before an epoch that
has read them is committed.

Files are compared by size and time of change, which for remote files come from Spark's listing. Chunks of large files
and rows kept in a recording are compared by size alone: they may have been cut or copied again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from samovar.errors import SourceChanged

if TYPE_CHECKING:
    from samovar.runtime.sources.unit_list import Unit
    from samovar.runtime.sources.units import Source

__all__ = ["check_files", "check_unchanged", "is_remote", "listed"]

_SAME_TIME = 1e-6
"""Seconds by which times of the same change may differ: they went through JSON, or through Spark's microseconds."""


def is_remote(path: str) -> bool:
    """Whether only Spark can read a path: it names another file system than this machine's."""
    return len(urlparse(path).scheme) > 1 and urlparse(path).scheme != "file"


def check_unchanged(source: Source, spark: SparkSession) -> None:
    """Raise SourceChanged when an input file has changed, or one that was copied into the recording is gone."""
    check_files(source, source.files or (source.spans if source.kept else ()), spark)


def check_files(source: Source, files: Iterable[Unit], spark: SparkSession | None) -> None:
    """Raise SourceChanged when one of these files has changed. Without `spark`, remote files are skipped."""
    files = list(files)
    remote = [file.path for file in files if is_remote(file.path)] if spark is not None else []
    now = listed(spark, remote) if spark is not None and remote else {}
    for file in files:
        if is_remote(file.path):
            if not remote:
                continue
            present = now.get(file.path)
        else:
            present = _stat(file.path)
        if present is None:
            raise SourceChanged(
                f"The input file {file.path} of source '{source.name}' is gone.",
                operator=source.name,
                hint="Put it back to go on with this run, or start a new run.",
            )
        size, time = present
        timed = not source.kept and file.origin is None
        if size != file.size or (timed and abs(time - file.mtime) > _SAME_TIME):
            how = (
                f"it had {file.size:,} bytes, and has {size:,}"
                if size != file.size
                else f"it was last changed at {_clock(file.mtime)}, and now at {_clock(time)}"
            )
            raise SourceChanged(
                f"The input file {file.path} of source '{source.name}' has changed since the run listed it: {how}. "
                "What was read of it since is not committed.",
                operator=source.name,
                hint="Restore it to go on with this run, or start a new run.",
            )


def listed(spark: SparkSession, paths: Iterable[str]) -> Mapping[str, tuple[int, float]]:
    """Size and time of change of remote files, as far as they are there. A Spark job that reads no contents."""
    paths = list(paths)
    try:
        frame = spark.read.format("binaryFile").load(paths)
        rows = frame.select("path", "length", F.col("modificationTime").cast("double")).collect()
    except PySparkException as error:
        if "PATH_NOT_FOUND" not in str(error.getCondition()):
            raise
        if len(paths) == 1:
            return {}
        half = len(paths) // 2  # Spark refuses all of them if one is missing: halve until it is alone
        return {**listed(spark, paths[:half]), **listed(spark, paths[half:])}
    return {path: (size, time) for path, size, time in rows}


def _stat(path: str) -> tuple[int, float] | None:
    """Size and time of change of a local file; None: it is gone."""
    try:
        stat = os.stat(unquote(urlparse(path).path) if path.startswith("file:") else path)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time).isoformat(sep=" ", timespec="milliseconds")
