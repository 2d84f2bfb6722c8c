"""Whether all hosts of a cluster see the folders of a run: checked before anything is computed.

Executors write epochs into the recording, and read sources and chunks, by the driver's paths. On a host where such a
path is another folder Spark notices nothing: files go to that host's disk, and the run would end with rows missing.

The probe is two small jobs with a task for each slot. In the first, Python workers read a word that the driver wrote,
write a file for the driver, look at some files of each source, and report their versions of Python and Samovar. In the
second, Spark itself writes rows, which the driver counts. A local Spark is not probed.

Executors may come and go, so the number of cores is compared before each epoch and before each commit (a call, no job),
and the probe is repeated when it has changed. Not noticed here: an executor that is replaced by one on another host, or
a second slot where there was one, since Spark reports at least two. On such a host a task of a Python operator fails
(delivery.py), and rows that Spark's tasks lose there are missed when the epoch's rows are added up (balance.py), except
where the input is text, whose rows nobody has counted.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import pyarrow as pa
from pyspark.sql import SparkSession

from samovar.errors import EnvironmentProblem, StorageNotShared
from samovar.ids import VERSION
from samovar.runtime.failures.spark_errors import SPARK_ERRORS, SparkError
from samovar.runtime.folders import cache_folder, is_scratch
from samovar.runtime.parquet_files import rows_in

if TYPE_CHECKING:
    from samovar.runtime.sources.unit_list import Unit
    from samovar.runtime.sources.units import Source

__all__ = ["SharedStorage", "check_shared", "cores", "is_local", "not_seen", "some_files"]

log = logging.getLogger("samovar")

_FOLDERS = 16
"""Folders of a source of which a file is checked: nearly always a source is on one file system."""
_PATIENCE = (0.0, 0.3, 1.0, 3.0)
"""Seconds to wait before each look for the files of other hosts: network file systems may show them late."""
_CONNECT_SLOTS = 8
"""Tasks of a probe with Spark Connect, which does not report the number of slots."""


@dataclass(frozen=True)
class Seen:
    """A file that workers must see: its operator, its path and its size."""

    operator: str
    path: str
    size: int


def cores(session: SparkSession) -> int:
    """The slots of the present executors; with Spark Connect, which does not report them, the cores of this machine."""
    context = getattr(session, "sparkContext", None)
    return int(context.defaultParallelism) if context is not None else os.cpu_count() or 2


def is_local(spark: SparkSession) -> bool:
    """Whether Spark's workers are certainly on the driver's host. A Connect server may be anywhere."""
    context = getattr(spark, "sparkContext", None)
    return context is not None and str(context.master).startswith("local")


class SharedStorage:
    """The folders of one run, and the cluster they were last probed on."""

    def __init__(self, spark: SparkSession, recording: Path, *, python: bool) -> None:
        """`python`: whether the run has Python operators."""
        self._spark = spark
        self._recording = recording
        self._python = python
        self._local = is_local(spark)
        self._files: tuple[Seen, ...] = ()
        self._cores = -1

    def check(self) -> None:
        """Raise StorageNotShared unless all workers see the folders; quick if the number of cores has not changed."""
        if self._local:
            return
        for _ in range(3):  # executors may join during a probe; those that join later are probed next time
            now = cores(self._spark)
            if now == self._cores:
                return
            check_shared(self._spark, [self._recording], self._files, python=self._python)
            self._cores = now

    def check_sources(self, sources: Iterable[Source]) -> None:
        """Raise StorageNotShared unless all workers see the files of sources."""
        self._files = tuple(seen for source in sources for seen in some_files(source.name, source.spans))
        if self._files and not self._local:
            check_shared(self._spark, (), self._files, python=self._python)


def some_files(source: str, files: Iterable[Unit]) -> list[Seen]:
    """The first file of each folder of a source, for local folders, up to a number of them."""
    folders: dict[str, Seen] = {}
    for file in files:
        if urlparse(file.path).scheme in ("", "file"):
            folders.setdefault(os.path.dirname(file.path), Seen(source, file.path, file.size))
        if len(folders) == _FOLDERS:
            break
    return list(folders.values())


def check_shared(
    spark: SparkSession, folders: Sequence[Path], files: Sequence[Seen] = (), *, python: bool = False
) -> None:
    """Raise unless all worker slots see and can write the folders, and see the files; `python`: and have Samovar."""
    if is_local(spark):
        return
    nonce = secrets.token_hex(8)
    places = [folder / f"probe-{nonce}" for folder in folders]
    try:
        for place in places:
            place.mkdir(parents=True)
            (place / "driver").write_text(nonce)
        answers = _ask(
            spark, _look(nonce, [str(p) for p in places], [(f.path, f.size) for f in files]), python
        )
        if python:
            _check_python(answers)
        _check_answers(answers, files, nonce)
        for place in places:
            _check_writes(spark, place)
    finally:
        for place in places:
            shutil.rmtree(place, ignore_errors=True)


def _slots(spark: SparkSession) -> int:
    return cores(spark) if hasattr(spark, "sparkContext") else _CONNECT_SLOTS


def _look(nonce: str, places: list[str], files: list[tuple[str, int]]) -> Callable[..., Any]:
    """The function of a task. A nested function is pickled by value: a worker without Samovar can run and report it."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import json
        import os
        import platform
        import socket
        import uuid

        import pyarrow

        for _ in batches:
            pass
        try:
            from samovar import ids

            version = ids.VERSION
        except ImportError:
            version = ""
        wrote, problems = {}, {}
        for place in places:
            try:
                with open(os.path.join(place, "driver"), encoding="ascii") as file:
                    if file.read() != nonce:
                        raise OSError("another file than the driver's")
                wrote[place] = uuid.uuid4().hex
                with open(os.path.join(place, wrote[place]), "w", encoding="ascii") as file:
                    file.write(nonce)
            except OSError as error:
                problems[place] = error.strerror or str(error)
        for path, size in files:
            try:
                seen = os.stat(path.removeprefix("file://")).st_size
                if seen != size:
                    raise OSError(f"{seen} bytes there, {size} on the driver")
            except OSError as error:
                problems[path] = error.strerror or str(error)
        answer = {
            "host": socket.gethostname(),
            "python": ".".join(platform.python_version_tuple()[:2]),
            "samovar": version,
            "wrote": wrote,
            "problems": problems,
        }
        yield pyarrow.RecordBatch.from_pydict({"answer": [json.dumps(answer)]})

    return look


def _ask(spark: SparkSession, look: Callable[..., Any], python: bool) -> list[dict[str, Any]]:
    """The answer of each slot's worker; none, where the workers have no Python and none is needed."""
    slots = _slots(spark)
    try:
        answers = spark.range(0, slots, 1, slots).mapInArrow(look, "answer string").toArrow()
    except SPARK_ERRORS as error:
        if not python:
            log.debug("no Python on the workers", exc_info=True)
            return []
        raise EnvironmentProblem(
            f"Python could not be used on the cluster's workers: {SparkError.of(error).text}",
            hint="They need the driver's Python (the same 3.x) with pyarrow, pandas and samovar: install them on all "
            "hosts and name that Python in PYSPARK_PYTHON.",
        ) from None
    return [json.loads(answer) for answer in answers.column(0).to_pylist()]


def _check_python(answers: Sequence[Mapping[str, Any]]) -> None:
    for answer in answers:
        if answer["samovar"] == VERSION:
            continue
        got = f"samovar {answer['samovar']}" if answer["samovar"] else "none"
        raise EnvironmentProblem(
            f"Expected samovar {VERSION} on the cluster's workers, as on the driver, got {got} on host "
            f"{answer['host']} (Python {answer['python']}).",
            hint="Python operators run there: install the same version of samovar in the Python that PYSPARK_PYTHON "
            "names on all hosts, or set spark.executorEnv.PYTHONPATH to where it is.",
        )


def _check_answers(answers: Sequence[Mapping[str, Any]], files: Sequence[Seen], nonce: str) -> None:
    problems: dict[str, dict[str, str]] = {}
    for answer in answers:
        for place, name in answer["wrote"].items():
            if not _appears(Path(place) / name, nonce):
                problems.setdefault(place, {})[answer["host"]] = (
                    "what it writes there is not seen by the driver"
                )
        for path, problem in answer["problems"].items():
            problems.setdefault(path, {})[answer["host"]] = problem
    of_file = {file.path: file for file in files}
    for path, hosts in problems.items():
        seen = of_file.get(path)
        where = os.path.dirname(path)
        who = ", ".join(sorted(hosts))
        why = "; ".join(sorted(set(hosts.values())))
        reader = f", which source '{seen.operator}' reads," if seen is not None else ""
        raise StorageNotShared(
            f"Expected all workers to see {path if seen else where}{reader} as the driver does; not so on host {who}: "
            f"{why}.",
            folder=where,
            hosts=sorted(hosts),
            hint=_what_to_share(where, reading=seen is not None),
            operator=seen.operator if seen is not None else None,
        )


def _appears(file: Path, nonce: str) -> bool:
    for wait in _PATIENCE:
        time.sleep(wait)
        try:
            if file.read_text() == nonce:
                return True
        except OSError:
            continue
    return False


def _check_writes(spark: SparkSession, place: Path) -> None:
    """Have Spark itself write a row in each slot: Spark's file system may differ, or its user may not be allowed to."""
    slots, rows = _slots(spark), place / "rows"
    problem = "their files are not seen by the driver"
    try:
        spark.range(0, slots, 1, slots).write.parquet(str(rows))
    except SPARK_ERRORS as error:
        problem = SparkError.of(error).text
    count = 0
    for wait in _PATIENCE:
        time.sleep(wait)
        count = rows_in([rows]) if rows.is_dir() else 0
        if count == slots:
            return
    raise StorageNotShared(
        f"Expected Spark's executors to write {slots} rows into {place.parent}, of which the driver found {count}: "
        f"{problem}. What they write would be lost.",
        folder=str(place.parent),
        hint=_what_to_share(str(place.parent)),
    )


def not_seen(host: str, folder: str) -> StorageNotShared:
    """The error for a worker that found during a run that it does not see the recording."""
    return StorageNotShared(
        f"Expected all workers to see {folder} as the driver does; not so on host {host}. The epoch is not committed.",
        folder=folder,
        hosts=[host],
        hint=_what_to_share(folder),
    )


def _what_to_share(folder: str, *, reading: bool = False) -> str:
    if Path(folder).is_relative_to(cache_folder().absolute()):
        return "Large files are cut into chunks there: set SAMOVAR_CACHE to a folder that all hosts share."
    if reading:
        return "Put the files of a source on a file system that all hosts share, at the same path everywhere."
    if is_scratch(Path(folder)):
        return (
            "A run without a recording (record=False, a trial) keeps its files there: set SAMOVAR_SCRATCH to a folder "
            "that all hosts share, or record into one (record=)."
        )
    return (
        "Put recordings on a file system that all hosts share, at the same path everywhere: "
        'record="/shared/runs", or --record /shared/runs.'
    )
