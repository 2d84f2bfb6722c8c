"""Fingerprints of the output of Python operators, so that a replay knows whether it is faithful.

Of every `EVERY` tuples an operator produces in an epoch, the first `BLOCK` go into a checksum. A replay computes the
same checksums, of whole blocks only, and stops at the first that differs from the run's: then something in the
operator, or before it, is not deterministic. An eighth of the tuples costs about 0.05 us for each tuple.
"""

from __future__ import annotations

import copy
import marshal
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from samovar.errors import ReplayDiffers

__all__ = ["BLOCK", "EVERY", "Fingerprints", "difference_in"]

EVERY = 512
BLOCK = 64
"""An eighth: a difference shows after a few hundred tuples, and a run is not slowed down measurably."""
_PLAIN = 2
"""The last form of `marshal` that looks at values alone, not at which object they are."""
_DIFFERS = "Computed again, '{}' gives something else than in the run, among its tuples {} to {} of the epoch"


class Fingerprints:
    """The fingerprints of one operator's outputs in one key partition: made in a run, compared in a replay."""

    def __init__(self, operator: str, recorded: Sequence[int] | None = None, start: int = 0) -> None:
        """`recorded`: a run's fingerprints, to compare with. `start`: how many tuples came before."""
        self.checksums: list[int] = []
        self._operator = operator
        self._recorded = recorded
        self._at = start
        self._sum = 0
        self._begun = -1
        """The block whose start was seen."""

    def copy(self) -> Fingerprints:
        """The same fingerprints so far, to go on from independently."""
        other = copy.copy(self)
        other.checksums = list(self.checksums)
        return other

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add the next rows of the output."""
        self._add(len(rows), lambda start, stop: rows[start:stop])

    def add_one(self, row: tuple[Any, ...]) -> None:
        """Add one row: most rows are only counted."""
        if self._at % EVERY < BLOCK:
            self.add((row,))
        else:
            self._at += 1

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Add a batch; only rows that belong to a block are converted."""

        def part(start: int, stop: int) -> list[tuple[Any, ...]]:
            return [tuple(row.values()) for row in batch.slice(start, stop - start).to_pylist()]

        self._add(batch.num_rows, part)

    def _add(self, rows: int, part: Callable[[int, int], Sequence[tuple[Any, ...]]]) -> None:
        first = 0
        while first < rows:
            number, offset = divmod(self._at, EVERY)
            if offset < BLOCK:
                taken = min(BLOCK - offset, rows - first)
                if offset == 0:
                    self._sum, self._begun = 0, number
                self._sum = zlib.crc32(_bytes(part(first, first + taken)), self._sum)
                if offset + taken == BLOCK and self._begun == number:
                    self._done(number)
            else:
                taken = min(EVERY - offset, rows - first)
            self._at += taken
            first += taken

    def _done(self, number: int) -> None:
        if self._recorded is None:
            self.checksums.append(self._sum)
        elif number < len(self._recorded) and self._recorded[number] != self._sum:
            raise ReplayDiffers(_DIFFERS.format(self._operator, number * EVERY + 1, number * EVERY + BLOCK))


def difference_in(text: str) -> ReplayDiffers | None:
    """The error a worker raised, from the text of Spark's exception; None: it is about something else."""
    match = re.search(_DIFFERS.format("(.+?)", r"(\d+)", r"(\d+)"), text)
    if match is None:
        return None
    return ReplayDiffers(
        match.group(0),
        operator=match.group(1),
        hint="Something in it, or before it, differs from run to run: a clock, chance, the order of a set, a file or "
        "a service. Wrap such calls in sv.log_result(...), which records what they returned.",
    )


def _bytes(rows: Sequence[tuple[Any, ...]]) -> bytes:
    return b"".join(map(_row, rows))


def _row(row: tuple[Any, ...]) -> bytes:
    try:
        return marshal.dumps(row, _PLAIN)
    except ValueError:  # a date, a decimal
        return repr(row).encode()
