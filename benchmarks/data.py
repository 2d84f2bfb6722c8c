"""The data sets of the benchmarks: made once, kept in a cache, the same bytes for the same scale and seed.

``Data(scale)`` names the Parquet folders of the TPC-H tables (through ``tpchgen-cli``), of the generated
tweets, of the two review categories, and of the data of Texera's workflows. ``ensure`` makes what is missing. A
folder appears in the cache by a rename, complete or not at all, so an interrupted or a second process does no harm.
File names sort in the order of their rows.

Scale 1 is TPC-H scale factor 1, 1 M tweets and 945 K reviews.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.reviews import CATEGORIES, reviews
from benchmarks.texera_data import ROWS_AT_SCALE_1, rows_of
from benchmarks.tweets import TWEETS_AT_SCALE_1, tweets

__all__ = ["DATASETS", "Data", "DataError", "default_root"]

_VERSION = 1  # part of every cache path: raise it when a generator changes what it makes
_SEED = 2019
_ROW_GROUP = 65_536
_FILE_ROWS = 65_536
_MIN_FILES = 8  # so that small scales have something to cut into epochs
_TPCH_FILE_BYTES = 24_000_000
# Parquet bytes at scale 1, measured; tables of fixed size have none.
_TPCH_BYTES = {
    "lineitem": 232e6,
    "orders": 64e6,
    "partsupp": 45e6,
    "customer": 14e6,
    "part": 7e6,
    "supplier": 1e6,
    "nation": 0.0,
    "region": 0.0,
}
_MIN_TPCH_FILES = {"lineitem": 8, "orders": 4}

DATASETS: tuple[str, ...] = (*_TPCH_BYTES, "tweets", *CATEGORIES, *ROWS_AT_SCALE_1)
"""Every name that ``Data`` knows."""


class DataError(Exception):
    """A data set could not be made; the message says what to do."""


def default_root() -> Path:
    """``$SAMOVAR_BENCH_DATA``, or ``~/.cache/samovar/bench``."""
    configured = os.environ.get("SAMOVAR_BENCH_DATA")
    return Path(configured).expanduser() if configured else Path.home() / ".cache" / "samovar" / "bench"


@dataclass(frozen=True)
class Data:
    """The data sets of one scale under one root folder."""

    scale: float = 1.0
    root: Path = field(default_factory=default_root)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise DataError(f"Expected a scale above 0, got {self.scale}.")

    def path(self, name: str) -> str:
        """The folder of a data set's Parquet files, whether or not it has been made yet."""
        return str(self._folder(name))

    def size(self, *names: str) -> int:
        """Bytes of the data sets' files together."""
        return sum(file.stat().st_size for name in names for file in self._folder(name).glob("*.parquet"))

    def ensure(self, names: Iterable[str], *, progress: bool = True) -> None:
        """Make the data sets that are missing, with a progress bar on a terminal's stderr."""
        missing = [name for name in dict.fromkeys(names) if not self._folder(name).is_dir()]
        if not missing:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, disable=not progress) as bar:
            for name in missing:
                task = bar.add_task(f"{name}, scale {self.scale:g}", total=None)
                with _appearing(self._folder(name)) as folder:
                    for done, total in self._make(name, folder):
                        bar.update(task, completed=done, total=total)

    def _folder(self, name: str) -> Path:
        if name not in DATASETS:
            raise DataError(f"Expected one of {', '.join(DATASETS)}, got {name!r}.")
        return self.root / f"v{_VERSION}" / f"scale-{self.scale:g}" / name

    def _make(self, name: str, folder: Path) -> Iterator[tuple[int, int]]:
        if name in _TPCH_BYTES:
            return _tpch(name, self.scale, folder)
        if name == "tweets":
            rows = _rows(TWEETS_AT_SCALE_1, self.scale)
            users = max(500, rows // 4)
            return _write(folder, rows, lambda chunk, chunks, size: tweets(_SEED, chunk, chunks, size, users))
        if name in ROWS_AT_SCALE_1:
            fixed = name in ("places", "prices")  # what is joined with stays
            rows = _rows(ROWS_AT_SCALE_1[name], 1.0 if fixed else self.scale)
            return _write(folder, rows, lambda chunk, chunks, size: rows_of(name, _SEED, chunk, chunks, size))
        rows = _rows(CATEGORIES[name].rows_at_scale_1, self.scale)
        return _write(folder, rows, lambda chunk, _, size: reviews(_SEED, name, chunk, size))


def _rows(at_scale_1: int, scale: float) -> int:
    return max(_MIN_FILES, round(at_scale_1 * scale))


def _write(folder: Path, rows: int, make: Callable[[int, int, int], pa.Table]) -> Iterator[tuple[int, int]]:
    """Write ``rows`` rows as files of nearly equal size; yields (files done, files) after each."""
    files = max(_MIN_FILES, math.ceil(rows / _FILE_ROWS))
    for number in range(files):
        size = rows * (number + 1) // files - rows * number // files
        table = make(number, files, size)
        pq.write_table(table, folder / f"part-{number:05d}.parquet", row_group_size=_ROW_GROUP)
        yield number + 1, files


def _tpch(table: str, scale: float, folder: Path) -> Iterator[tuple[int, int]]:
    """Run ``tpchgen-cli`` for one table and give its files names that sort in row order."""
    parts = max(_MIN_TPCH_FILES.get(table, 1), math.ceil(_TPCH_BYTES[table] * scale / _TPCH_FILE_BYTES))
    command = [_tpchgen(), "parquet", "--quiet", f"--scale-factor={scale:g}", f"--tables={table}",
               f"--parts={parts}", f"--output-dir={folder}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DataError(f"tpchgen-cli failed for {table} at scale {scale:g}: {done.stderr.strip()}")
    made = folder / table
    for file in made.glob("*.parquet"):
        number = re.search(r"\.(\d+)\.parquet$", file.name)
        if number is None:
            raise DataError(f"Expected tpchgen-cli to write {table}.<part>.parquet, got {file.name}.")
        file.rename(folder / f"part-{int(number[1]) - 1:05d}.parquet")
    made.rmdir()
    yield parts, parts


def _tpchgen() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    found = str(beside) if beside.is_file() else shutil.which("tpchgen-cli")
    if found is None:
        raise DataError("tpchgen-cli was not found. It makes the TPC-H tables: pip install tpchgen-cli.")
    return found


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A scratch folder that takes ``folder``'s place when the block ends well and vanishes otherwise."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield scratch
        scratch.chmod(0o755)
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was first, with the same bytes
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
