"""Rows that a chain of Python operators gave up to a mark, kept beside its state there.

A fork that begins inside an epoch takes them over instead of having the operators make them once more. They are written
by the worker as Arrow streams, one file for the rows between two marks of a key partition and one for those behind the
last mark it passed; what operators give at the end of their input is not among them. Writing them may take `share` of
the time, as marks may: a chain whose rows cost more than that has them removed and keeps none in this epoch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from samovar.errors import RecordingCorrupt
from samovar.files import temporary_beside
from samovar.record.state_files import Header, mark_name
from samovar.record.store import slug_unique
from samovar.runtime.exchange.task import Task

__all__ = ["Keeper", "Keeping", "kept_files", "kept_folder", "read_kept"]

GRACE = 0.02
"""Seconds that may be spent in any case: the first batch pays for opening a file."""
MOST = 64 << 20
"""Bytes of a key partition and epoch at most."""


def kept_folder(attempt: Path, operator: str) -> Path:
    """Where the rows of a chain lie, in the folder of an attempt; `operator`: its last one."""
    return attempt / "kept" / slug_unique(operator)


def kept_files(folder: Path, header: Header, mark: int) -> list[Path]:
    """The files that hold what a key partition gave up to a mark, in order; those without rows do not exist."""
    names = [mark_name(header.bucket, n) for n in header.marks if n <= mark]
    if mark > header.passed:
        names.append(_rest(header.bucket))
    return [path for name in names if (path := folder / name).exists()]


def read_kept(files: Iterable[str], schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of some files, batch by batch; raises RecordingCorrupt when they are not as many as they were."""
    found, last = 0, ""
    for last in files:
        try:
            with pa.OSFile(last) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    found += batch.num_rows
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        except (OSError, ValueError) as error:
            raise RecordingCorrupt(f"Rows kept in {last} cannot be read: {error}.") from None
    if found != rows:
        raise RecordingCorrupt(f"Expected {rows} kept rows up to {last or 'a mark'}, found {found}.")


class Keeper:
    """Writes what a chain gives in one key partition of an epoch, until that costs too much."""

    def __init__(self, folder: Path, bucket: int, share: float) -> None:
        self.keeps = True
        """Whether everything so far is kept."""
        self._folder = folder
        self._bucket = bucket
        self._share = share
        self._began = time.perf_counter()
        self._cost = 0.0
        self._bytes = 0
        self._temporary = temporary_beside(folder / f"{bucket:04d}")
        self._file: IO[bytes] | None = None
        self._stream: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """The next rows given."""
        if not self.keeps or not batch.num_rows:
            return
        start = time.perf_counter()
        try:
            if self._stream is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = self._temporary.open("wb")
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._stream = pa.ipc.new_stream(self._file, batch.schema, options=options)
            self._stream.write_batch(batch)
        except (OSError, pa.ArrowException):  # a full disk, say: the run goes on without
            self._give_up()
            return
        now = time.perf_counter()
        self._cost += now - start
        size = self._bytes + (self._file.tell() if self._file is not None else 0)
        if size > MOST or self._cost > GRACE + self._share * (now - self._began):
            self._give_up()

    def cut(self, mark: int) -> None:
        """A mark: the rows so far belong before it."""
        self._close(mark_name(self._bucket, mark))

    def end(self) -> None:
        """The end of the rows, or of those that count."""
        self._close(_rest(self._bucket))

    def _close(self, name: str) -> None:
        if self._stream is None or self._file is None:
            return
        start = time.perf_counter()
        try:
            self._stream.close()
            self._bytes += self._file.tell()
            self._file.close()
            self._temporary.replace(self._folder / name)
        except (OSError, pa.ArrowException):
            self._give_up()
        self._stream = self._file = None
        self._cost += time.perf_counter() - start

    def _give_up(self) -> None:
        self.keeps = False
        if self._file is not None:
            self._file.close()
        self._stream = self._file = None
        for path in (self._temporary, *self._folder.glob(f"{self._bucket:04d}.*")):
            path.unlink(missing_ok=True)


class Keeping:
    """A chain's part in it: what it gives goes to a keeper, in an epoch with marks."""

    rows: list[tuple[Any, ...]]
    """Rows that wait to be sent on."""
    keeper: Keeper | None = None
    keeps = False
    """Whether all that was given in this bucket is kept."""
    ready: tuple[pa.RecordBatch, ...] = ()
    """Batches to be sent on before anything else."""

    def _flush(self) -> pa.RecordBatch:
        raise NotImplementedError

    def keep_from(self, bucket: int, task: Task) -> None:
        """Begin with a bucket."""
        self.keeps = False
        if task.marks and task.saves:
            folder = kept_folder(Path(task.errors).parent, task.stages[-1].name)
            self.keeper = Keeper(folder, bucket, task.mark_share)

    def _noted(self, made: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keeper = self.keeper
        if keeper is None:
            yield from made
            return
        for batch in made:
            keeper.add(batch)
            yield batch

    def _keep_waiting(self) -> None:
        """Have rows that wait to be sent on kept, and sent on apart from what follows."""
        if self.keeper is not None and self.keeper.keeps and self.rows:
            batch = self._flush()
            self.keeper.add(batch)
            self.ready = (*self.ready, batch)

    def _cut_kept(self, mark: int) -> None:
        self._keep_waiting()
        if self.keeper is not None:
            self.keeper.cut(mark)

    def _end_kept(self) -> None:
        """What comes now is not kept: another bucket, or the end of the input."""
        self._keep_waiting()
        if self.keeper is not None:
            self.keeper.end()
            self.keeps, self.keeper = self.keeper.keeps, None

    def _drained(self) -> Iterator[pa.RecordBatch]:
        yield from self.ready
        self.ready = ()


def _rest(bucket: int) -> str:
    return f"{bucket:04d}.rest"
