"""Large single files cut into chunks, once, in a cache.

For workflows with Python operators, which are slow for their bytes, text files are cut into smaller ones.

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
    from samovar.runtime.sources.unit_list import Unit
    from samovar.runtime.sources.units import Source

__all__ = ["chunked", "restore_chunks"]

LARGE = {"parquet": 96 << 20, "csv": 256 << 20, "json": 256 << 20, "text": 256 << 20}
"""Bytes above which a file is cut: it would be an epoch of many seconds by itself."""
CHUNK = {"parquet": 16 << 20, "csv": 48 << 20, "json": 48 << 20, "text": 48 << 20}
"""Bytes of a chunk: about a second of Spark's reader on two cores. Text has fewer rows for its bytes than Parquet."""
FINE_LARGE = 1 << 20
"""Bytes above which a text file is cut for Python operators: some ten thousand rows, minutes for a slow operator."""
FINE_CHUNK = 256 << 10
"""Bytes of such a chunk at least, and the file has some `FINE_CHUNKS` of them: each is a file that Spark opens."""
FINE_CHUNKS = 64

Chunk = tuple[str, int, int | None]
"""A chunk's file, its first row or line in the original, and its rows where they are counted."""


def chunked(
    spark: SparkSession,
    file: Unit,
    format: str,
    options: Mapping[str, str],
    note: Callable[[str], None],
    *,
    fine: bool = False,
) -> list[Unit]:
    """The spans of one file: itself, or its chunks. `fine`: small chunks of text, which has no units of some rows."""
    if format not in LARGE or urlparse(file.path).scheme not in ("", "file"):
        return [file]
    fine = fine and format != "parquet"
    large = int(os.environ.get("SAMOVAR_LARGE_FILE", FINE_LARGE if fine else LARGE[format]))
    if file.size <= large:
        return [file]
    layout = None if format == "parquet" else layout_of(file.path, format, options)
    if format != "parquet" and layout is None:
        return [file]
    size = max(FINE_CHUNK, -(-file.size // FINE_CHUNKS)) if fine else CHUNK[format]
    size = min(size, CHUNK[format], large)
    key = f"{file.path}|{file.size}|{file.mtime}|{format}|{layout}|{size}"
    folder = cache_folder() / hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
    if not (folder / "units.json").exists():
        note(f"cutting {os.path.basename(file.path)} ({file.size >> 20} MB) into chunks, once")
        if format == "parquet":
            check_shared(spark, [cache_folder()])  # Spark's executors write them
        _sweep(folder.parent)
        with new_folder(folder) as target:
            if layout is None:
                chunks = _cut_parquet(spark, file, target, size)
            else:
                chunks = _cut_lines(file, target, size, layout)
            (target / "units.json").write_bytes(msgspec.json.encode(chunks))
    os.utime(folder)
    listed = msgspec.json.decode((folder / "units.json").read_bytes(), type=list[Chunk])
    units = []
    for name, start, rows in listed:
        path = folder / name
        size = path.stat().st_size
        units.append(
            msgspec.structs.replace(file, path=str(path), size=size, rows=rows, origin=file.path, start=start)
        )
    return units or [file]  # no chunks, which is cached too: the file cannot be cut


def restore_chunks(spark: SparkSession, source: Source, note: Callable[[str], None]) -> None:
    """Cut files again whose chunks are gone from the cache. Raises SourceChanged when the chunks are not the same."""
    gone = {u.origin: Path(u.path).parent for u in source.spans if u.origin and not os.path.exists(u.path)}
    for file in source.files:
        if file.path not in gone:
            continue
        shutil.rmtree(gone[file.path], ignore_errors=True)
        units = chunked(spark, file, source.format, source.options, note, fine=source.fine)
        # where a fork has cut a chunk in two, some rows of it are not read any more
        before = {(u.path, u.start, u.file_rows or u.rows) for u in source.spans if u.origin == file.path}
        if not before <= {(u.path, u.start, u.rows) for u in units}:
            raise SourceChanged(
                f"The chunks of {file.path} are gone from the cache and cannot be cut as they were.",
                operator=source.name,
                hint="Resume with the Spark settings and $SAMOVAR_CACHE the run started with, or start a new run.",
            )


def _cut_parquet(spark: SparkSession, file: Unit, folder: Path, size: int) -> list[Chunk]:
    rows = file.rows or pq.read_metadata(file.path).num_rows
    per_chunk = max(1, int(rows * size / file.size))
    writer = spark.read.parquet(file.path).write.option("maxRecordsPerFile", per_chunk).mode("append")
    writer.parquet(str(folder))
    chunks: list[Chunk] = []
    start = 0
    for path in sorted((p for p in folder.iterdir() if p.suffix == ".parquet"), key=_task_and_number):
        count = pq.read_metadata(path).num_rows
        if count:
            name = f"{len(chunks):06d}.parquet"  # the same when it is cut again
            path.rename(folder / name)
            chunks.append((name, start, count))
            start += count
        else:
            path.unlink()
    if start != rows:
        raise RuntimeError(f"Cutting {file.path} wrote {start} rows of {rows}")
    return chunks


def _task_and_number(path: Path) -> tuple[int, int]:
    """The order of Spark's files: by task, then by number (which has three digits or more)."""
    numbers = re.match(r"part-(\d+)-.*-c(\d+)\.", path.name)
    return (int(numbers.group(1)), int(numbers.group(2))) if numbers else (0, 0)


def _cut_lines(file: Unit, folder: Path, size: int, layout: RecordLayout) -> list[Chunk]:
    """The chunks of a text file; none, if it cannot be cut safely."""
    header, cut = pieces(file.path, layout, size) or (b"", [])
    chunks: list[Chunk] = []
    with open(file.path, "rb") as source:
        for number, piece in enumerate(cut):
            source.seek(piece.start)
            name = f"{number:06d}{Path(file.path).suffix}"
            (folder / name).write_bytes(header + source.read(piece.stop - piece.start))
            chunks.append((name, piece.line, None))
    return chunks


def _sweep(folder: Path, days: float = 30) -> None:
    if not folder.is_dir():
        return
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > days * 86400:
            shutil.rmtree(old, ignore_errors=True)
