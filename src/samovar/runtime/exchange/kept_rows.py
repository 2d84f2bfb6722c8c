"""The output of a chain of Python operators up to a mark, kept beside its state there.

A fork that begins inside an epoch takes these rows over instead of computing them once more. The worker writes them as
Arrow streams, one file for the rows between two marks of a key partition and one for those behind the last mark it
passed; what operators produce at the end of their input is not among them. Writing them may take `share` of the time,
as marks may: a chain whose rows cost more than that removes them and keeps none in this epoch.
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
"""Bytes kept of a key partition and epoch: reading more back would take longer than computing it again."""


def kept_folder(attempt: Path, operator: str) -> Path:
    """The folder of a chain's rows in the folder of an attempt; `operator`: the last of the chain."""
    return attempt / "kept" / slug_unique(operator)


def kept_files(folder: Path, header: Header, mark: int) -> list[Path]:
    """The files that hold the output of a key partition up to a mark, in order; a file without rows does not exist."""
    names = [mark_name(header.bucket, n) for n in header.marks if n <= mark]
    if mark > header.passed:
        names.append(_rest(header.bucket))
    return [path for name in names if (path := folder / name).exists()]


def read_kept(files: Iterable[str], schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of some files, batch by batch; raises RecordingCorrupt when their number is not `rows`."""
    count, last = 0, ""
    for last in files:
        try:
            with pa.OSFile(last) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    count += batch.num_rows
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        except (OSError, ValueError) as error:
            raise RecordingCorrupt(f"Rows kept in {last} cannot be read: {error}.") from None
    if count != rows:
        raise RecordingCorrupt(f"Expected {rows} kept rows up to {last or 'a mark'}, found {count}.")


class Keeper:
    """Writes the output of a chain in one key partition of an epoch, until that costs too much."""

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
        """Write the next rows of the output."""
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
        except (OSError, pa.ArrowException):  # for example a full disk: the run goes on without kept rows
            self._give_up()
            return
        now = time.perf_counter()
        self._cost += now - start
        size = self._bytes + (self._file.tell() if self._file is not None else 0)
        if size > MOST or self._cost > GRACE + self._share * (now - self._began):
            self._give_up()

    def cut(self, mark: int) -> None:
        """End a file at a mark."""
        self._close(mark_name(self._bucket, mark))

    def end(self) -> None:
        """End the last file."""
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
    """The part of a chain that sends its output to a keeper, in an epoch with marks."""

    rows: list[tuple[Any, ...]]
    """Rows that wait to be sent on."""
    keeper: Keeper | None = None
    keeps = False
    """Whether all of this bucket's output is kept."""
    ready: tuple[pa.RecordBatch, ...] = ()
    """Batches that are sent on before anything else."""

    def flush(self) -> pa.RecordBatch:
        raise NotImplementedError

    def keep_from(self, bucket: int, task: Task) -> None:
        """Begin to keep the output of a bucket."""
        self.keeps = False
        if task.marks and task.saves:
            folder = kept_folder(Path(task.errors).parent, task.stages[-1].name)
            self.keeper = Keeper(folder, bucket, task.mark_share)

    def _noted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, each kept as it passes."""
        keeper = self.keeper
        for batch in batches:
            if keeper is not None:
                keeper.add(batch)
            yield batch

    def _keep_waiting(self) -> None:
        """Keep the rows that wait to be sent on, as a batch apart from what follows."""
        if self.keeper is not None and self.keeper.keeps and self.rows:
            batch = self.flush()
            self.keeper.add(batch)
            self.ready = (*self.ready, batch)

    def _cut_kept(self, mark: int) -> None:
        self._keep_waiting()
        if self.keeper is not None:
            self.keeper.cut(mark)

    def _end_kept(self) -> None:
        """Stop keeping: another bucket begins, or the end of the input."""
        self._keep_waiting()
        if self.keeper is not None:
            self.keeper.end()
            self.keeps, self.keeper = self.keeper.keeps, None

    def _drained(self) -> Iterator[pa.RecordBatch]:
        yield from self.ready
        self.ready = ()


def _rest(bucket: int) -> str:
    return f"{bucket:04d}.rest"
