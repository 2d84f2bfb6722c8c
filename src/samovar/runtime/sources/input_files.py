"""Whether input files are as they were when a run listed them: looked at before they are read, and before what was
read of them is committed.

Local files are told by size and time of change, remote ones by what their listing says of the same. Chunks of large
files and rows kept in a recording are told by size alone: they may have been cut or copied again.
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
    from samovar.runtime.sources.units import Source, Unit

__all__ = ["check_files", "check_unchanged", "is_remote", "listed"]

_SAME_TIME = 1e-6
"""Seconds by which times of the same change may differ: they went through JSON, or through Spark's microseconds."""


def is_remote(path: str) -> bool:
    """Whether Spark alone can look at a path."""
    return len(urlparse(path).scheme) > 1 and urlparse(path).scheme != "file"


def check_unchanged(source: Source, spark: SparkSession) -> None:
    """Raise SourceChanged when an input file is not what it was, or one copied into the recording is gone."""
    check_files(source, source.files or (source.units if source.kept else ()), spark)


def check_files(source: Source, files: Iterable[Unit], spark: SparkSession | None) -> None:
    """Raise SourceChanged when one of these files is not what it was. Without `spark`, remote ones are passed over."""
    files = list(files)
    remote = [file.path for file in files if is_remote(file.path)] if spark is not None else []
    now = listed(spark, remote) if spark is not None and remote else {}
    for file in files:
        if is_remote(file.path):
            if not remote:
                continue
            found = now.get(file.path)
        else:
            found = _looked_at(file.path)
        if found is None:
            raise SourceChanged(
                f"The input file {file.path} of source '{source.name}' is gone.",
                operator=source.name,
                hint="Put it back to go on with this run, or start a new run.",
            )
        size, time = found
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
        half = len(paths) // 2  # Spark refuses all of them if one is not there: find it
        return {**listed(spark, paths[:half]), **listed(spark, paths[half:])}
    return {path: (size, time) for path, size, time in rows}


def _looked_at(path: str) -> tuple[int, float] | None:
    try:
        found = os.stat(unquote(urlparse(path).path) if path.startswith("file:") else path)
    except OSError:
        return None
    return found.st_size, found.st_mtime


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time).isoformat(sep=" ", timespec="milliseconds")
