"""The unmatched rows of one side: their words in memory, the rows themselves as Arrow batches, past a bound on disk.

A row has an id, its place in the arrays. Rows that were matched stay as dead places until there are more of them than
live ones; then the arrays are packed and ids change. So memory and time stay in proportion to what is unmatched.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from samovar.diff.comparison_errors import DiffError
from samovar.diff.matcher.queues import Flags, Ids

__all__ = ["Pending", "Spill"]

_PACK_AT = 4096
"""Dead places that are always tolerated, so that small arrays are not packed all the time."""
_ROOM = 8
"""Packed arrays keep their memory up to this many times what they need: the next batches may need it again."""
_CHUNKS = 128
"""Batches kept as they came; joining them copies their rows."""
Array = npt.NDArray[Any]


class Spill:
    """A folder for rows that do not fit in memory; made when first needed, removed with its owner."""

    def __init__(self, bound: int, folder: Path | None) -> None:
        self.bound = bound
        self._parent = folder
        self._folder: Path | None = None
        self._files = 0

    def write(self, batches: Sequence[pa.RecordBatch]) -> tuple[Any, list[pa.RecordBatch]]:
        """The same batches, mapped into memory from a file. The first result is the reader of the file, which is
        removed once nothing refers to the reader: keep it as long as the batches."""
        try:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="samovar-diff-", dir=self._parent))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            self._files += 1
            path = self._folder / f"{self._files}.arrow"
            schema = batches[0].schema
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
        except OSError as error:
            raise DiffError(
                f"Unmatched rows could not be written to disk: {error}.",
                hint="Free some space, name another folder (spill_folder=), or raise the bound (spill_bytes=).",
            ) from error
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        weakref.finalize(reader, path.unlink, missing_ok=True)
        return reader, [reader.get_batch(i) for i in range(reader.num_record_batches)]


class _Chunk:
    """A batch of rows, and the id of the first of them."""

    def __init__(self, first: int, batch: pa.RecordBatch) -> None:
        self.first = first
        self.batch = batch
        self.end: int = first + batch.num_rows
        self.bytes = batch.nbytes
        self.file: Any = None
        """Keeps the file on disk that holds the rows; None for rows in memory."""

    @property
    def spilled(self) -> bool:
        return self.file is not None


class Pending:
    """Arrays of one length, the same for every call of `append`, and the rows they describe."""

    def __init__(self, spill: Spill) -> None:
        self.length = 0
        """Ids in use: live and dead."""
        self.alive_count = 0
        self.alive: Flags = np.zeros(0, np.bool_)
        self.positions: Ids = np.zeros(0, np.int64)
        self.arrays: list[Array] = []
        self._chunks: list[_Chunk] = []
        self._spill = spill
        self._first = 0
        self.memory = 0
        """Bytes of rows held in memory."""

    def append(self, arrays: Sequence[Array], positions: Ids, batch: pa.RecordBatch) -> int:
        """Add rows; the id of the first."""
        first, count = self.length, len(positions)
        self._reserve(first + count, arrays)
        self.alive[first : first + count] = True
        self.positions[first : first + count] = positions
        for mine, new in zip(self.arrays, arrays, strict=True):
            mine[first : first + count] = new
        self.length += count
        self.alive_count += count
        self._chunks.append(_Chunk(first, batch))
        self.memory += self._chunks[-1].bytes
        if self.memory > self._spill.bound:
            self._spill_chunks()
        return first

    def kill(self, ids: Ids) -> None:
        """Mark rows as matched; their places stay until `pack`."""
        self.alive[ids] = False
        self.alive_count -= len(ids)

    def revive(self, ids: Ids) -> None:
        """Take a `kill` back, before anything else happened."""
        self.alive[ids] = True
        self.alive_count += len(ids)
        self._first = 0

    def first_alive(self) -> int | None:
        """The id of the oldest live row."""
        if not self.alive_count:
            return None
        step = 256
        while True:
            piece = self.alive[self._first : min(self._first + step, self.length)]
            at = int(piece.argmax())
            if piece[at]:
                self._first += at
                return self._first
            self._first += len(piece)
            step *= 2

    def rows(self, ids: Ids) -> pa.RecordBatch:
        """The rows of some ids, in that order."""
        if len(self._chunks) == 1:
            return self._chunks[0].batch.take(pa.array(ids - self._chunks[0].first))
        firsts = np.array([c.first for c in self._chunks])
        places = np.searchsorted(firsts, ids, side="right") - 1
        used = np.unique(places)
        if len(used) == 1:
            chunk = self._chunks[used[0]]
            return chunk.batch.take(pa.array(ids - chunk.first))
        lengths = np.array([self._chunks[c].batch.num_rows for c in used])
        shift = firsts[used] - (np.cumsum(lengths) - lengths)
        table = concatenated([self._chunks[c].batch for c in used])
        taken = table.take(pa.array(ids - shift[np.searchsorted(used, places)]))
        return taken.combine_chunks().to_batches()[0]

    def table(self) -> tuple[Ids, pa.Table | None]:
        """Positions and rows of all live rows, in order; None for no rows at all."""
        kept = np.flatnonzero(self.alive[: self.length])
        if not len(kept):
            return np.zeros(0, np.int64), None
        batches = [self._live(chunk) for chunk in self._chunks]
        return self.positions[kept], concatenated([b for b in batches if b.num_rows])

    def pack(self) -> Ids | None:
        """Drop dead places if there are many: the new id of each old one. None if nothing changed."""
        count, oldest = self.alive_count, self.first_alive() or 0
        self._forget(oldest)
        if self.length - count <= max(_PACK_AT, count):
            return None
        # the usual case of two streams in the same order, one behind the other
        together = self.length - oldest == count
        kept = slice(oldest, self.length) if together else np.flatnonzero(self.alive[: self.length])
        new_ids = np.arange(-oldest, count) if together else np.cumsum(self.alive[: self.length]) - 1
        chunks = []
        first = 0
        for chunk in self._chunks:
            batch = chunk.batch if together and chunk.first >= oldest else self._live(chunk)
            if batch.num_rows:
                moved = chunk if batch is chunk.batch else _Chunk(first, batch)
                moved.first, moved.end = first, first + batch.num_rows
                chunks.append(moved)
                first = moved.end
        self._chunks = _joined(chunks) if len(chunks) > _CHUNKS else chunks
        self.memory = sum(c.bytes for c in self._chunks if not c.spilled)
        if self.memory > self._spill.bound:
            self._spill_chunks()
        room = len(self.alive) if len(self.alive) <= _ROOM * count else count
        self.positions = _moved(self.positions, kept, count, room)
        self.arrays = [_moved(a, kept, count, room) for a in self.arrays]
        self.alive = np.zeros(room, np.bool_)  # the caller still holds the old one
        self.alive[:count] = True
        self.length = count
        self._first = 0
        return new_ids

    def _forget(self, oldest: int) -> None:
        """Drop batches without a live row."""
        while self._chunks and self._chunks[0].end <= oldest:
            chunk = self._chunks.pop(0)
            if not chunk.spilled:
                self.memory -= chunk.bytes

    def reset(self) -> None:
        """Start again with id 0; only when no row lives."""
        self.length = 0
        self._first = 0
        self._chunks = []
        self.memory = 0

    def _live(self, chunk: _Chunk) -> pa.RecordBatch:
        flags = self.alive[chunk.first : chunk.end]
        count = int(np.count_nonzero(flags))
        if count == len(flags):
            return chunk.batch
        return chunk.batch.filter(pa.array(flags)) if count else chunk.batch.slice(0, 0)

    def _reserve(self, size: int, like: Sequence[Array]) -> None:
        if not self.arrays:
            self.arrays = [np.zeros(0, a.dtype) for a in like]
        for number, new in enumerate(like):
            if self.arrays[number].dtype != new.dtype:  # times that were whole numbers so far
                self.arrays[number] = self.arrays[number].astype(new.dtype)
        if size <= len(self.alive):
            return
        room = max(size, 2 * len(self.alive), 1024)
        self.alive = _grown(self.alive, room, self.length)
        self.positions = _grown(self.positions, room, self.length)
        self.arrays = [_grown(a, room, self.length) for a in self.arrays]

    def _spill_chunks(self) -> None:
        by_schema: dict[pa.Schema, list[_Chunk]] = {}
        for chunk in self._chunks:
            if not chunk.spilled:
                by_schema.setdefault(chunk.batch.schema, []).append(chunk)
        for chunks in by_schema.values():
            file, batches = self._spill.write([c.batch for c in chunks])
            for chunk, batch in zip(chunks, batches, strict=True):
                chunk.batch = batch
                chunk.file = file
        self.memory = 0


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """One table; types of one kind are widened to the widest."""
    tables = [pa.Table.from_batches([b]) for b in batches]
    return pa.concat_tables(tables, promote_options="permissive")


def _grown(array: npt.NDArray[Any], room: int, used: int) -> npt.NDArray[Any]:
    grown = np.empty(room, array.dtype)
    grown[:used] = array[:used]
    return grown


def _moved(array: Array, kept: slice | Ids, count: int, room: int) -> Array:
    """What is kept, at the start: in place, unless less room will do."""
    if room < len(array):
        return np.array(array[kept])
    array[:count] = array[kept]
    return array


def _joined(chunks: list[_Chunk]) -> list[_Chunk]:
    """Neighbouring chunks in memory as one, so that there are never many."""
    joined: list[_Chunk] = []
    for (spilled, _), group in groupby(chunks, key=lambda chunk: (chunk.spilled, chunk.batch.schema)):
        members = list(group)
        if spilled or len(members) == 1:
            joined += members
        else:
            batch = concatenated([c.batch for c in members]).combine_chunks().to_batches()[0]
            joined.append(_Chunk(members[0].first, batch))
    return joined
