"""Large single files cut into chunks, once, in a cache.

A Parquet file is cut by Spark (rows keep their order), a CSV, JSON-lines or text file where records end
(see record_ends.py), each CSV chunk with the header. Chunks are cached by path, size and time of change, in
`$SAMOVAR_CACHE` or `~/.cache/samovar`, and swept when unused for 30 days. Files that cannot be cut safely (compressed
text, multi-line JSON, odd encodings, odd quotes) stay whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from samovar.errors import SourceChanged
from samovar.files import new_folder
from samovar.runtime.folders import cache_folder
from samovar.runtime.sources.record_ends import RecordLayout, layout_of, pieces
from samovar.runtime.spark.shared_storage import check_shared

if TYPE_CHECKING:
    from samovar.runtime.sources.units import Source, Unit

__all__ = ["chunked", "restore_chunks"]

LARGE = {"parquet": 96 << 20, "csv": 256 << 20, "json": 256 << 20, "text": 256 << 20}
CHUNK = {"parquet": 16 << 20, "csv": 48 << 20, "json": 48 << 20, "text": 48 << 20}


def chunked(
    spark: SparkSession, file: Unit, format: str, options: Mapping[str, str], note: Callable[[str], None]
) -> list[Unit]:
    """The units of one file: itself, or its chunks."""
    large = int(os.environ.get("SAMOVAR_LARGE_FILE", LARGE.get(format, 1 << 62)))
    if file.size <= large or format not in LARGE or urlparse(file.path).scheme not in ("", "file"):
        return [file]
    layout = None if format == "parquet" else layout_of(file.path, format, options)
    if format != "parquet" and layout is None:
        return [file]
    size = min(CHUNK[format], large)
    key = f"{file.path}|{file.size}|{file.mtime}|{format}|{layout}|{size}"
    folder = cache_folder() / hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    if not (folder / "units.json").exists():
        note(f"cutting {os.path.basename(file.path)} ({file.size >> 20} MB) into chunks, once")
        if format == "parquet":
            check_shared(spark, [cache_folder()])  # Spark's executors write them
        _sweep(folder.parent)
        with new_folder(folder) as chunks:
            if layout is None:
                starts = _cut_parquet(spark, file, chunks, size)
            else:
                starts = _cut_lines(file, chunks, size, layout)
            (chunks / "units.json").write_bytes(msgspec.json.encode(starts))
    os.utime(folder)
    found = msgspec.json.decode((folder / "units.json").read_bytes(), type=list[tuple[str, int, int | None]])
    made = []
    for name, start, rows in found:
        path = folder / name
        made.append(
            msgspec.structs.replace(
                file, path=str(path), size=path.stat().st_size, rows=rows, origin=file.path, start=start
            )
        )
    return made or [file]  # cached too: it could not be cut


def restore_chunks(spark: SparkSession, source: Source, note: Callable[[str], None]) -> None:
    """Cut again what a run needs and the cache no longer has. Raises SourceChanged when it comes out otherwise."""
    gone = {u.origin: Path(u.path).parent for u in source.units if u.origin and not os.path.exists(u.path)}
    for file in source.files:
        if file.path not in gone:
            continue
        shutil.rmtree(gone[file.path], ignore_errors=True)
        made = [(u.path, u.start, u.rows) for u in chunked(spark, file, source.format, source.options, note)]
        if made != [(u.path, u.start, u.rows) for u in source.units if u.origin == file.path]:
            raise SourceChanged(
                f"The chunks of {file.path} are gone from the cache and cannot be cut as they were.",
                operator=source.name,
                hint="Resume with the Spark settings and $SAMOVAR_CACHE the run started with, or start a new run.",
            )


def _cut_parquet(
    spark: SparkSession, file: Unit, folder: Path, size: int
) -> list[tuple[str, int, int | None]]:
    rows = file.rows or pq.read_metadata(file.path).num_rows
    per_chunk = max(1, int(rows * size / file.size))
    spark.read.parquet(file.path).write.option("maxRecordsPerFile", per_chunk).mode("append").parquet(
        str(folder)
    )
    made: list[tuple[str, int, int | None]] = []
    start = 0
    for path in sorted((p for p in folder.iterdir() if p.suffix == ".parquet"), key=_task_and_number):
        count = pq.read_metadata(path).num_rows
        if count:
            name = f"{len(made):06d}.parquet"  # the same when it is cut again
            path.rename(folder / name)
            made.append((name, start, count))
            start += count
        else:
            path.unlink()
    if start != rows:
        raise RuntimeError(f"cutting {file.path} gave {start} rows of {rows}")
    return made


def _task_and_number(path: Path) -> tuple[int, int]:
    """The order of Spark's files: by task, then by number (which has three digits or more)."""
    found = re.match(r"part-(\d+)-.*-c(\d+)\.", path.name)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def _cut_lines(
    file: Unit, folder: Path, size: int, layout: RecordLayout
) -> list[tuple[str, int, int | None]]:
    """The chunks of a text file; none, if it cannot be cut safely."""
    found = pieces(file.path, layout, size)
    if found is None:
        return []
    top, cut = found
    made: list[tuple[str, int, int | None]] = []
    with open(file.path, "rb") as source:
        for number, piece in enumerate(cut):
            source.seek(piece.start)
            name = f"{number:06d}{Path(file.path).suffix}"
            (folder / name).write_bytes(top + source.read(piece.stop - piece.start))
            made.append((name, piece.line, None))
    return made


def _sweep(folder: Path, days: float = 30) -> None:
    if not folder.is_dir():
        return
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > days * 86400:
            shutil.rmtree(old, ignore_errors=True)
