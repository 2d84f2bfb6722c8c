"""Sources as lists of units, in canonical order. A unit is a file, a chunk of a large file (see chunks.py), or a range
of rows in a Parquet file (see unit_list.py).

An epoch reads a range of units with Spark's own reader. Each row's position is (source, unit and row): Parquet has row
numbers for free; other formats have the block a row was read from, and in it the order of reading. An epoch that begins
or ends inside a file reads all of it, and filters by the rows' numbers.

Rows that cannot be read again (a catalog table, a live DataFrame, rows in the workflow, a format without files) are
written to the recording as Parquet when the run starts, and read from there.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, reduce
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlparse

import msgspec
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.compile.native import positioned, visible
from samovar.errors import SourceError, nearest
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.ids import HIDDEN
from samovar.positions import ROW_WIDTH, TEXT_WIDTH, RowRange, packed_sql, position_columns
from samovar.runtime.failures.spark_errors import SparkError
from samovar.runtime.parquet_files import CHECKED
from samovar.runtime.sources.chunks import chunked
from samovar.runtime.sources.generated import generated, queried
from samovar.runtime.sources.unit_list import Unit, UnitList, grain_of
from samovar.runtime.spark.shared_storage import check_shared, some_files
from samovar.text import quote_name

__all__ = [
    "CORRUPT",
    "Source",
    "Unit",
    "first_file",
    "is_bad",
    "list_source",
    "number_by_file",
    "read_units",
    "row_ranges",
    "source_frame",
    "source_schema",
]

CORRUPT = f"{HIDDEN}corrupt"
"""Our column for the text of rows that do not parse: users' columns have other names."""
DEFAULT_CORRUPT = "_corrupt_record"
"""Spark's name for the same."""
_TASK = f"{HIDDEN}task"
_PASSING_OVER = (
    "pathglobfilter",
    "modifiedbefore",
    "modifiedafter",
    "ignorecorruptfiles",
    "ignoremissingfiles",
)


class Source(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A source as it was when the run started. `files` are the originals, to see whether they have changed."""

    name: str
    number: int
    format: str
    schema: str
    """The schema as Spark's JSON."""
    options: dict[str, str] = {}
    base: str | None = None
    spans: tuple[Unit, ...] = msgspec.field(default=(), name="units")
    """What is read, file by file; in recordings without a grain each is a unit, which gave the field its name there."""
    grain: int = 0
    """Rows of a unit; 0: each span is one."""
    fine: bool = False
    """Whether text files are cut into small chunks."""
    files: tuple[Unit, ...] = ()
    kept: bool = False
    """Whether its rows were copied into the recording."""

    @cached_property
    def units(self) -> UnitList:
        """What epochs take: made once."""
        return UnitList(self.spans, self.grain)

    @property
    def size(self) -> int:
        return sum(span.share for span in self.spans)

    @property
    def struct(self) -> StructType:
        return StructType.fromJson(msgspec.json.decode(self.schema))

    @property
    def parses(self) -> bool:
        """Whether rows that do not parse are rejected: not when they end the run, or the user asked for them."""
        if self.format not in ("csv", "json") or self.option("mode", "permissive").lower() == "failfast":
            return False
        return self.option("columnnameofcorruptrecord", DEFAULT_CORRUPT) not in self.struct.names

    @property
    def passes_over(self) -> bool:
        """Whether options make Spark skip some files or rows, so that the files' footers do not count the rows read."""
        return any(k.lower() in _PASSING_OVER and str(v).lower() != "false" for k, v in self.options.items())

    def option(self, name: str, default: str = "") -> str:
        """An option of the reader, whose name Spark compares without case; `name` is in lower case."""
        return str(next((v for k, v in self.options.items() if k.lower() == name), default))


def is_bad(df: DataFrame) -> Column:
    """Whether a row did not parse; for frames read with `corrupt`.

    The condition names every column, so that Spark parses all of them, whichever are needed later: the same rows are
    bad in every reading. (A length is never negative, but Spark's optimizer does not know that.)
    """
    others = [F.col(quote_name(c)).isNull() for c in visible(df)]
    raw = F.col(CORRUPT)
    return raw.isNotNull() & reduce(lambda a, b: a | b, others, F.length(raw) >= 0)


def list_source(
    spark: SparkSession,
    op: Op,
    number: int,
    *,
    live: Any = None,
    keep_in: Path,
    note: Callable[[str], None] = lambda _: None,
    fine: bool = False,
    cuts: bool = True,
) -> Source:
    """Find the units of a source. Raises SourceError when nothing is there to read.

    `fine`: for workflows with Python operators. These are slow for their bytes, so an epoch must be able to end inside
    a file. `cuts`: whether chunks may take the place of large files.
    """
    if isinstance(op, ops.Read) and op.format in ops.FILE_FORMATS:
        source = _list_files(spark, op, number, note, fine=fine, cuts=cuts)
    else:
        source = _keep(spark, op, number, live, keep_in)
    return _with_grain(source) if fine else source


def first_file(spark: SparkSession, op: ops.Read) -> str:
    """The path of the first file a source reads, in canonical order."""
    if not op.path:
        raise SourceError("Expected a path to read, got none.", operator=op.name)
    return _files_at(spark, op, op.path[0])[0].path


def source_schema(spark: SparkSession, op: Op, live: Any = None) -> StructType:
    """A source's schema alone: reads no rows beyond what finding the schema needs."""
    if isinstance(op, ops.Read) and op.format in ops.FILE_FORMATS:
        for path in op.path:
            _files_at(spark, op, path)  # raises a clear error when nothing is there
        return _file_schema(spark, op)
    return source_frame(spark, op, live).schema


def _with_grain(source: Source) -> Source:
    """The source with its files cut into units of some rows, if the files tell how many they have."""
    counted = source.format == "parquet" and not source.passes_over
    if not counted or any(span.rows is None for span in source.spans):
        return source
    return msgspec.structs.replace(source, grain=grain_of(source.spans))


def read_units(
    spark: SparkSession,
    source: Source,
    units: range,
    *,
    positions: bool,
    corrupt: bool = False,
    tasks: int = 1,
) -> DataFrame:
    """The rows of some units. `corrupt` adds the raw text of bad rows.

    `tasks`: where units are parts of files, their rows are dealt out to so many tasks, in order. Spark divides a file
    by its row groups, so that all rows of an epoch might come from one task.

    Numbers that differ from epoch to epoch stand in map literals only: Spark does not compile those into its code,
    which is then the same for all epochs.
    """
    schema = source.struct
    reader = spark.read.format(source.format).options(**source.options)
    if source.base:
        reader = reader.option("basePath", source.base)
    if source.kept:
        reader = reader.options(**CHECKED)
    if corrupt:
        schema = StructType([*schema.fields]).add(CORRUPT, "string", True)
        reader = reader.option("columnNameOfCorruptRecord", CORRUPT).option("mode", "PERMISSIVE")
        if source.format == "csv":
            reader = reader.option("columnPruning", "false")
    if source.format != "text":
        reader = reader.schema(schema)
    frames = []
    spans_of_units = source.units.spans_of(units)
    for spans in _apart(spans_of_units) if source.format == "parquet" else [spans_of_units]:
        df = reader.load([span.path for _, span in spans])
        parts = any(span.file_rows is not None for _, span in spans)
        if parts:
            df = df.filter(_within(spans))
        deals = parts and tasks > 1
        if deals:
            df = df.withColumn(_TASK, F.expr(_share(spans, tasks)))
        if positions:
            df = _placed(df, source, spans)
        frames.append(df.repartitionById(tasks, _TASK).drop(_TASK) if deals else df)
    return reduce(DataFrame.unionAll, frames)


def _apart(spans: list[tuple[int, Unit]]) -> list[list[tuple[int, Unit]]]:
    """Spans in groups in which no two are of the same file: that is read twice, or a fork has put others between."""
    groups: list[dict[str, tuple[int, Unit]]] = [{}]
    for number, span in spans:
        if span.path in groups[-1]:
            groups.append({})
        groups[-1][span.path] = number, span
    return [list(group.values()) for group in groups]


def _within(spans: Sequence[tuple[int, Unit]]) -> str:
    """SQL for whether a row lies in the spans."""
    row = "_metadata.row_index"
    first = number_by_file({span.path: span.first for _, span in spans})
    behind = number_by_file({span.path: span.first + (span.rows or 0) for _, span in spans})
    return f"{row} >= {first} AND {row} < {behind}"


def _share(spans: Sequence[tuple[int, Unit]], tasks: int) -> str:
    """SQL for the number of the task that gets a row: as many rows each, one task's behind those of the one before."""
    before = [0, *accumulate(span.rows or 0 for _, span in spans)]
    shift = number_by_file({span.path: n - span.first for n, (_, span) in zip(before, spans, strict=False)})
    rows = number_by_file({span.path: before[-1] for _, span in spans})
    return f"CAST((_metadata.row_index + {shift}) * {tasks} div {rows} AS INT)"


def _placed(df: DataFrame, source: Source, spans: Sequence[tuple[int, Unit]]) -> DataFrame:
    """Rows of files with their positions."""
    if source.format != "parquet":
        file = number_by_file({span.path: number for number, span in spans})
        block = packed_sql(file, "_metadata.file_block_start")
        parts = [str(source.number), block, "monotonically_increasing_id()"]
        return positioned(df, position_columns(TEXT_WIDTH), parts)
    unit, row = number_by_file({span.path: number for number, span in spans}), "_metadata.row_index"
    if grain := source.grain:
        unit = number_by_file({span.path: number - span.first // grain for number, span in spans})
        unit, row = f"({unit} + {row} div {grain})", f"{row} % {grain}"
    parts = [str(source.number), packed_sql(unit, row)]
    return positioned(df, position_columns(ROW_WIDTH), parts)


def row_ranges(source: Source, units: range) -> list[RowRange] | None:
    """Units as ranges of rows, where the number of rows of each file is known; else None."""
    return source.units.ranges_of(units, source.number) if source.format == "parquet" else None


# --- files --------------------------------------------------------------------------------------------------


def _list_files(
    spark: SparkSession, op: ops.Read, number: int, note: Callable[[str], None], *, fine: bool, cuts: bool
) -> Source:
    if not op.path:
        raise SourceError("Expected a path to read, got none.", operator=op.name)
    files = [file for path in op.path for file in _files_at(spark, op, path)]
    options = dict(op.options)
    try:
        schema = _file_schema(spark, op)
    except Exception:
        check_shared(spark, (), some_files(op.name, files))  # executors look into files to find a schema
        raise
    base = None
    if any("=" in part for f in files for part in Path(f.path).parent.parts) and len(op.path) == 1:
        base = _spark_path(op.path[0])
    if op.format == "parquet":
        files = _with_rows(files, op.name)
    spans = (
        tuple(files)
        if base or not cuts
        else tuple(u for f in files for u in chunked(spark, f, op.format, options, note, fine=fine))
    )
    return Source(
        name=op.name,
        number=number,
        format=op.format,
        schema=schema.json(),
        options=options,
        base=base,
        spans=spans,
        fine=fine and op.format != "parquet",
        files=tuple(files),
    )


def _file_schema(spark: SparkSession, op: ops.Read) -> StructType:
    try:
        reader = spark.read.format(op.format).options(**op.options)
        if op.schema is not None and op.format != "text":
            reader = reader.schema(op.schema)
        schema = reader.load([_spark_path(p) for p in op.path]).schema
    except PySparkException as error:
        first = SparkError.of(error).line
        raise SourceError(
            f"Spark cannot read {', '.join(op.path)} as {op.format}: {first}",
            operator=op.name,
            hint="Check the format and the options, or give a schema.",
        ) from None
    if op.schema is None and op.format == "json" and DEFAULT_CORRUPT in schema.names:
        # Spark adds it for rows that do not parse; here these are kept as rejected
        schema = StructType([f for f in schema.fields if f.name != DEFAULT_CORRUPT])
        if not schema.fields:
            raise SourceError(
                f"Expected JSON rows in {', '.join(op.path)}, but no row parses.",
                operator=op.name,
                hint="One JSON object a line is expected; use multiLine=True for objects that span lines, "
                "or check the format of the files.",
            )
    return schema


def _files_at(spark: SparkSession, op: ops.Read, path: str) -> list[Unit]:
    scheme = urlparse(path).scheme
    if scheme not in ("", "file") and len(scheme) > 1:
        return _remote_files(spark, op, path)
    local = _local(path)
    matches = [local] if os.path.exists(local) else glob.glob(local)
    paths = [file for match in matches for file in _files_below(match)]
    if not paths and not os.path.isdir(local):
        raise SourceError(
            f"Expected something to read at {path}, found nothing.", operator=op.name, hint=_near(local)
        )
    if (locked := next((p for p in paths if not os.access(p, os.R_OK)), None)) is not None:
        raise SourceError(f"The file {locked} of {path} cannot be read: no permission.", operator=op.name)
    stats = {p: os.stat(p) for p in sorted(map(os.path.abspath, paths))}
    files = [Unit(p, stat.st_size, stat.st_mtime) for p, stat in stats.items() if stat.st_size > 0]
    if not files:
        got = f"{len(paths)} empty file(s)" if paths else "an empty folder"
        raise SourceError(
            f"Expected {op.format} files in {path}, found {got}.",
            operator=op.name,
            hint="Check the path; files starting with '_' or '.' and empty files do not count.",
        )
    return files


def _files_below(path: str) -> list[str]:
    """A file itself, or the files of a folder and its folders; names that Spark skips are skipped."""
    if not os.path.isdir(path):
        return [path]
    files: list[str] = []
    for folder, folders, names in os.walk(path):
        folders[:] = [f for f in folders if not f.startswith(("_", "."))]
        files += [os.path.join(folder, n) for n in names if not n.startswith(("_", "."))]
    return files


def _near(local: str) -> str:
    """A hint for a path that does not exist: names like the first part that is missing, or what is there instead."""
    at = os.path.abspath(local)
    while not os.path.isdir(os.path.dirname(at)):
        at = os.path.dirname(at)
    folder, name = os.path.split(at)
    try:
        there = [n for n in os.listdir(folder) if not n.startswith(".")]
    except OSError:
        return f"The folder {folder} cannot be listed."
    rest = os.path.relpath(os.path.abspath(local), at)
    close = nearest(name, (n for n in there if os.path.exists(os.path.join(folder, n, rest))))
    if close:
        return f"Did you mean {os.path.normpath(os.path.join(folder, close, rest))}?"
    shown = ", ".join(sorted(there)[:8]) + (", ..." if len(there) > 8 else "")
    return f"{folder} holds {shown or 'nothing'}; a relative path starts at {os.getcwd()}."


def _remote_files(spark: SparkSession, op: ops.Read, path: str) -> list[Unit]:
    try:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
        rows = listed.select("path", "length", F.col("modificationTime").cast("double")).collect()
    except PySparkException as error:
        raise SourceError(f"Cannot list {path}: {SparkError.of(error).line}", operator=op.name) from None
    files = [Unit(r[0], r[1], r[2]) for r in sorted(rows) if r[1] > 0]
    if not files:
        raise SourceError(f"Expected {op.format} files in {path}, found none.", operator=op.name)
    return files


def _with_rows(files: list[Unit], operator: str) -> list[Unit]:
    def rows(unit: Unit) -> Unit:
        if urlparse(unit.path).scheme not in ("", "file"):
            return unit
        try:
            return msgspec.structs.replace(unit, rows=pq.read_metadata(unit.path).num_rows)
        except Exception as error:
            raise SourceError(
                f"Cannot read {unit.path} as a Parquet file:\n    {SparkError.of(error).line}",
                operator=operator,
                hint="The file is damaged or of another format: replace it, or move it out of the folder.",
            ) from None

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(rows, files))


def number_by_file(numbers: Mapping[str, int]) -> str:
    """SQL for the number that belongs to the file a row was read from.

    A row compares hashes of paths: the paths themselves are long, and alike up to their ends.
    """
    keys = _file_keys(numbers)
    known = ", ".join(f"xxhash64(CAST(X'{key.encode().hex()}' AS STRING)), {n}L" for key, n in keys.items())
    unknown = "CAST(raise_error(concat('unknown file ', _metadata.file_path)) AS BIGINT)"
    return f"coalesce(element_at(map({known}), xxhash64(_metadata.file_path)), {unknown})"


def _file_keys(numbered: Mapping[str, int]) -> dict[str, int]:
    """The same numbers under all names that Spark may have for a file.

    Spark names local files file:/a or file:///a, with special ASCII characters (or all special ones) escaped; the plain
    form comes last, since the plain form of one name (a%20b) can be the escaped form of another (a b).
    """
    safe = "/:=,+$@!*'()~;&"
    keys: dict[str, int] = {}
    for form in (
        lambda path: "".join(c if ord(c) > 127 else quote(c, safe=safe) for c in path),
        lambda path: quote(path, safe=safe),
        lambda path: path,
    ):
        for path, n in numbered.items():
            for key in (path,) if urlparse(path).scheme else (f"file:{form(path)}", f"file://{form(path)}"):
                keys.setdefault(key, n)
    return keys


def _local(path: str) -> str:
    return unquote(urlparse(path).path) if path.startswith("file:") else os.path.expanduser(path)


def _spark_path(path: str) -> str:
    scheme = urlparse(path).scheme
    return path if scheme and len(scheme) > 1 else os.path.abspath(os.path.expanduser(path))


# --- what cannot be read again ------------------------------------------------------------------------------


def _keep(spark: SparkSession, op: Op, number: int, live: Any, keep_in: Path) -> Source:
    df = source_frame(spark, op, live)
    folder = keep_in / op.name
    try:
        df.write.mode("overwrite").parquet(str(folder))
    except PySparkException as error:
        raise SourceError(
            f"The rows of source '{op.name}' could not be read: {SparkError.of(error).line}",
            operator=op.name,
        ) from None
    files = sorted(p for p in folder.iterdir() if p.suffix == ".parquet")
    spans = _with_rows([Unit(str(p), p.stat().st_size, p.stat().st_mtime) for p in files], op.name)
    return Source(
        name=op.name, number=number, format="parquet", schema=df.schema.json(), spans=tuple(spans), kept=True
    )


def source_frame(spark: SparkSession, op: Op, live: Any = None) -> DataFrame:
    """All rows of a source as a plain DataFrame, without positions."""
    try:
        match op:
            case ops.Values():
                return spark.createDataFrame([tuple(r) for r in op.rows], op.schema)
            case ops.Table():
                return spark.read.table(op.table)
            case ops.Generate():
                return generated(spark, op)
            case ops.Query():
                return queried(spark, op)
            case ops.FrameSource() | ops.Sample() | ops.Split():
                if live is None:
                    raise SourceError("The live DataFrame is gone.", operator=op.name)
                df: DataFrame = live
                return df
            case ops.Read():
                reader = spark.read.format(op.format).options(**op.options)
                reader = reader.schema(op.schema) if op.schema else reader
                return reader.load(list(op.path)) if op.path else reader.load()
    except PySparkException as error:
        raise SourceError(SparkError.of(error).line, operator=op.name) from None
    raise AssertionError(op.kind)
