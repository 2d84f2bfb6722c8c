"""A matcher in parts, on executors: for live streams whose dependence groups events by columns.

Events that depend on each other agree in those columns, and so do partners; a hash of them names an event's part. A
micro-batch goes, in the order of its rows, to the matchers of the parts it touches, one Spark job for all of them. To
the driver come counts, the oldest event that waits, and a difference.

Guarantee: verdicts are those of one matcher for all events, event and position included; the unmatched events are those
after the micro-batch in which the difference was found. Each micro-batch writes a part's state to a new folder, which
is used once the driver knows its name: a task may run twice, and a micro-batch that failed leaves no trace. The
executors need this package, and access to that folder.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.diff.comparison_errors import CheckpointProblem, DiffError
from samovar.diff.dependence import Dependence
from samovar.diff.equality import Equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher import matcher_checkpoint
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.tables.executor_matcher import common_columns, reports_of
from samovar.diff.tables.order_columns import counts_of, indexed
from samovar.diff.tables.row_hash import cast_columns, row_hashes
from samovar.diff.verdict import Rest, Verdict, at_end, joined

__all__ = ["Counted", "Divided", "counted"]

_AT, _PART = "__samovar_at", "__samovar_part"


@dataclass(frozen=True)
class Counted:
    """A micro-batch whose rows are counted. Keep it persisted until it is taken in."""

    df: DataFrame
    counts: tuple[int, ...]
    """Rows in each partition."""

    @property
    def num_rows(self) -> int:
        """Rows in all partitions together."""
        return sum(self.counts)


def counted(df: DataFrame) -> Counted:
    """Count the rows of a micro-batch: one Spark job."""
    return Counted(df, tuple(counts_of(df)))


class _Part(msgspec.Struct, frozen=True):
    """What the driver knows of a part: the folder of its state, how many events wait there, and the oldest."""

    name: str
    waiting: dict[Side, int]
    oldest: dict[Side, int | None]


Report = tuple[int, _Part | Verdict]
"""A part by its number, and its state after a micro-batch, or the difference in it."""


class Divided:
    """Takes the place of a `Matcher` in a monitor. Not for use by several threads."""

    def __init__(
        self, depends: Dependence, equal: Equality, schema: StructType, *, parts: int, folder: Path
    ) -> None:
        self.depends = depends
        self.equal = equal
        self.parts = parts
        self._schema = schema
        self._by = common_columns(depends)
        if not self._by:
            raise DiffError(
                f"Expected, with parts=, a dependence that groups events by columns, got: {depends.describe()}.",
                hint="Use keyed('taxi'), or leave parts= out to compare on the driver.",
            )
        self._folder = folder.absolute()
        self._seen: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._parts: dict[int, _Part] = {}
        self._stale: list[Path] = []
        self._later: dict[tuple[int, Side, int], int | None] = {}

    def seen(self, side: Side) -> int:
        """How many events of a side were taken in."""
        return self._seen[side]

    def waiting(self, side: Side) -> int:
        """How many events of a side are without a partner."""
        return sum(part.waiting[side] for part in self._parts.values())

    def oldest(self, side: Side, since: int = 0) -> int | None:
        """The first position of a side, from `since` on, whose event is without a partner; None if all have theirs."""
        positions = (self._oldest(number, side, since) for number in self._parts)
        return min((p for p in positions if p is not None), default=None)

    def push_batch(self, side: Side, batch: Counted) -> Verdict | None:
        """Take the rows of a micro-batch in: one Spark job. The verdict if there is one."""
        folders = self._folders()
        reports = reports_of(self._dealt(side, batch), self._task(side, folders))
        touched = {number: report for number, report in reports if isinstance(report, _Part)}
        verdicts = {number: report for number, report in reports if isinstance(report, Verdict)}
        if verdicts:
            others = {n: p for n, p in {**self._parts, **touched}.items() if n not in verdicts}
            held = self._rest(others)
            rest = {s: joined([held[s], *(v.rest[s] for v in verdicts.values())]) for s in SIDES}
            return replace(min(verdicts.values(), key=lambda v: v.position or 0), rest=rest)
        self._stale += [folders[number] for number in touched if number in folders]
        self._parts |= touched
        self._seen[side] += batch.num_rows
        self._later.clear()
        return None

    def if_ended(self) -> Verdict:
        """The verdict if both streams ended here. What is unmatched is read from its files."""
        return at_end(self._rest(self._parts), self.depends.describe())

    def undecided(self, seconds: float) -> Verdict:
        """The verdict if the comparison is given up now, after `seconds`."""
        rest = self._rest(self._parts)
        return Verdict(False, depends=self.depends.describe(), rest=rest, undecided_after=seconds)

    def save(self, path: Path) -> None:
        """Write the names of the folders in use; their files are written already."""
        matcher_checkpoint.write(path, matcher_checkpoint.Saved(dict(self._seen), self.depends, self.equal))
        (path / "parts.json").write_bytes(msgspec.json.encode(self._parts))

    def restored(self, path: Path) -> Divided:
        """Go back to a saved state. Folders that are not part of it are removed."""
        self._seen = dict(matcher_checkpoint.read(path).seen)
        try:
            saved = (path / "parts.json").read_bytes()
            self._parts = msgspec.json.decode(saved, type=dict[int, _Part])
        except FileNotFoundError:  # a difference was found before anything was saved
            self._parts = {}
        except (OSError, msgspec.DecodeError) as error:
            raise CheckpointProblem(f"The checkpoint {path} is damaged: {error}.") from error
        named = set(self._folders().values())
        missing = next((folder for folder in named if not folder.is_dir()), None)
        if missing is not None:
            raise CheckpointProblem(f"The checkpoint {path} is damaged: {missing} is missing.")
        self._stale = [folder for folder in self._folder.glob("*/*") if folder not in named]
        self.tidy()
        return self

    def tidy(self) -> None:
        """Remove folders that no checkpoint names any more."""
        for place in self._stale:
            shutil.rmtree(place, ignore_errors=True)
        self._stale.clear()

    def _dealt(self, side: Side, batch: Counted) -> DataFrame:
        """Rows with their position in the stream, by part and in order."""
        numbered = indexed(batch.df, _AT, batch.counts)
        at = F.col(_AT) + F.lit(self._seen[side])
        part = F.pmod(row_hashes([self._schema[c] for c in self._by])[0], F.lit(self.parts)).cast("int")
        rows = numbered.select(at.alias(_AT), part.alias(_PART), *cast_columns(self._schema))
        return rows.repartition(self.parts, _PART).sortWithinPartitions(_PART, _AT)

    def _rest(self, parts: Mapping[int, _Part]) -> dict[Side, Rest]:
        rests = [self._read(number, part) for number, part in parts.items() if any(part.waiting.values())]
        return {side: joined(rest[side] for rest in rests) for side in SIDES}

    def _read(self, number: int, part: _Part) -> Mapping[Side, Rest]:
        place = self._folder / str(number) / part.name
        return Matcher.restore(place, depends=self.depends, equal=self.equal).undecided(0.0).rest

    def _oldest(self, number: int, side: Side, since: int) -> int | None:
        first = self._parts[number].oldest[side]
        if first is None or first >= since:
            return first
        asked = (number, side, since)
        if asked not in self._later:
            positions = self._read(number, self._parts[number])[side].positions
            self._later[asked] = next((p for p in positions if p >= since), None)
        return self._later[asked]

    def _folders(self) -> dict[int, Path]:
        """The folder of each part's state."""
        return {number: self._folder / str(number) / part.name for number, part in self._parts.items()}

    def _task(self, side: Side, folders: Mapping[int, Path]) -> Callable[..., Iterator[Report]]:
        """The function that runs on an executor: rows sorted by part in, a report on each part out."""
        # only these go to the executors, and not the state of the driver
        depends, equal, parent = self.depends, self.equal, self._folder

        def report(number: int, matcher: Matcher) -> Report:
            if matcher.verdict is not None:
                return number, matcher.verdict
            name = secrets.token_hex(8)
            matcher.save(parent / str(number) / name)
            waiting = {s: matcher.waiting(s) for s in SIDES}
            return number, _Part(name, waiting, {s: matcher.oldest(s) for s in SIDES})

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[Report]:
            for number, pieces in groupby(_pieces(batches), key=lambda piece: piece.column(_PART)[0].as_py()):
                matcher = Matcher(depends=depends, equal=equal)
                if number in folders:
                    matcher = matcher.restored(folders[number])
                for piece in pieces:
                    at = piece.column(_AT).to_numpy()
                    matcher.push_batch(side, piece.drop_columns([_PART, _AT]), positions=at)
                yield report(number, matcher)

        return run


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows cut where a part ends."""
    for batch in batches:
        parts = batch.column(_PART).to_numpy()
        cuts = [0, *(np.flatnonzero(parts[1:] != parts[:-1]) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(cuts):
            if end > start:
                yield batch.slice(start, end - start)
