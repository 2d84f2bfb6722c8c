"""A matcher in parts, on executors: for live streams whose dependence groups events by columns.

Events that depend on each other agree in those columns, and so do partners; a hash of them names an event's part. A
micro-batch goes, in the order of its rows, to the matchers of the parts it touches, one Spark job for all of them. To
the driver come counts, the oldest event that waits, and a difference.

Guarantee: verdicts are those of one matcher for all, event and position included; what is left unmatched is that after
the micro-batch in which the difference was found. A part's state lies in a folder that is written anew and counts once
the driver knows its name: a task may run twice, and a micro-batch that was not taken in leaves no trace. Needs this
package and that folder where the executors run.
"""

from __future__ import annotations

import pickle
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

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
from samovar.diff.tables.executor_matcher import common_columns
from samovar.diff.tables.order_columns import counts_of, indexed
from samovar.diff.tables.row_hash import quoted, row_hashes
from samovar.diff.verdict import Rest, Verdict, at_end, joined

__all__ = ["Counted", "Divided", "counted"]

_AT, _PART = "__samovar_at", "__samovar_part"
_NONE = -1
_REPORT = pa.schema(
    [
        ("part", pa.int32()),
        ("name", pa.string()),
        ("left", pa.int64()),
        ("right", pa.int64()),
        ("oldest_left", pa.int64()),
        ("oldest_right", pa.int64()),
        ("found", pa.binary()),
    ]
)
_REPORT_SQL = (
    "part int, name string, left bigint, right bigint, oldest_left bigint, oldest_right bigint, found binary"
)


@dataclass(frozen=True)
class Counted:
    """A micro-batch whose rows are counted. Keep it persisted until it is taken in."""

    df: DataFrame
    counts: tuple[int, ...]
    """Rows in each partition."""

    @property
    def num_rows(self) -> int:
        """Rows in all."""
        return sum(self.counts)


def counted(df: DataFrame) -> Counted:
    """Count the rows of a micro-batch: one Spark job."""
    return Counted(df, tuple(counts_of(df)))


class _Part(msgspec.Struct, frozen=True):
    """What the driver knows of a part: the folder of its state, how many events wait there, and the oldest."""

    name: str
    waiting: dict[Side, int]
    oldest: dict[Side, int | None]


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
        found = (self._oldest(number, side, since) for number in self._parts)
        return min((p for p in found if p is not None), default=None)

    def push_batch(self, side: Side, batch: Counted) -> Verdict | None:
        """Take the rows of a micro-batch in: one Spark job. The verdict if there is one."""
        names = {number: part.name for number, part in self._parts.items()}
        task = _task(self._folder, names, side, self.depends, self.equal)
        lines = self._dealt(side, batch).mapInArrow(task, _REPORT_SQL).toArrow().to_pylist()
        verdicts = []
        for line in lines:
            found = None if line["found"] is None else pickle.loads(line["found"])
            if isinstance(found, DiffError):
                raise found
            if found is not None:
                verdicts.append(found)
        touched = {line["part"]: _part(line) for line in lines}
        if verdicts:
            return self._first(verdicts, touched)
        for number in touched:
            if number in self._parts:
                self._stale.append(self._place(number, self._parts[number].name))
        self._parts |= touched
        self._seen[side] += batch.num_rows
        self._later.clear()
        return None

    def if_ended(self) -> Verdict:
        """The verdict if both streams ended here. What is unmatched is read from its files."""
        return at_end(self._rest(self._parts), self.depends.describe())

    def undecided(self, seconds: float) -> Verdict:
        """The verdict if nobody waits any longer, after so many seconds."""
        rest = self._rest(self._parts)
        return Verdict(False, depends=self.depends.describe(), rest=rest, undecided_after=seconds)

    def save(self, path: Path) -> None:
        """Write down which folders count; what they hold is there already."""
        matcher_checkpoint.write(path, matcher_checkpoint.Saved(dict(self._seen), self.depends, self.equal))
        (path / "parts.json").write_bytes(msgspec.json.encode(self._parts))

    def restored(self, path: Path) -> Divided:
        """This one, as it was saved. Folders that do not count are removed."""
        self._seen = dict(matcher_checkpoint.read(path).seen)
        try:
            saved = (path / "parts.json").read_bytes()
            self._parts = msgspec.json.decode(saved, type=dict[int, _Part])
        except FileNotFoundError:  # a difference was found before anything was saved
            self._parts = {}
        except (OSError, msgspec.DecodeError) as error:
            raise CheckpointProblem(f"The checkpoint {path} is damaged: {error}.") from error
        missing = next(
            (p for n, q in self._parts.items() if not (p := self._place(n, q.name)).is_dir()), None
        )
        if missing is not None:
            raise CheckpointProblem(f"The checkpoint {path} is damaged: {missing} is missing.")
        counts = {self._place(number, part.name) for number, part in self._parts.items()}
        for found in self._folder.glob("*/*"):
            if found not in counts:
                shutil.rmtree(found, ignore_errors=True)
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
        columns = [quoted(f.name).cast(f.dataType).alias(f.name) for f in self._schema.fields]
        rows = numbered.select(at.alias(_AT), part.alias(_PART), *columns)
        return rows.repartition(self.parts, _PART).sortWithinPartitions(_PART, _AT)

    def _first(self, verdicts: Sequence[Verdict], touched: Mapping[int, _Part]) -> Verdict:
        """Of the verdicts of several parts on one micro-batch that of the first event, with what is left of all."""
        others = {n: p for n, p in {**self._parts, **touched}.items() if p.name}
        held = self._rest(others)
        rest = {s: joined([held[s], *(v.rest[s] for v in verdicts)]) for s in SIDES}
        return replace(min(verdicts, key=lambda v: v.position or 0), rest=rest)

    def _rest(self, parts: Mapping[int, _Part]) -> dict[Side, Rest]:
        found: dict[Side, list[Rest]] = {side: [] for side in SIDES}
        for number, part in parts.items():
            if any(part.waiting.values()):
                for side, rest in self._read(number, part).items():
                    found[side].append(rest)
        return {side: joined(rests) for side, rests in found.items()}

    def _read(self, number: int, part: _Part) -> dict[Side, Rest]:
        place = self._place(number, part.name)
        matcher = Matcher.restore(place, depends=self.depends, equal=self.equal)
        return dict(matcher.undecided(0.0).rest)

    def _oldest(self, number: int, side: Side, since: int) -> int | None:
        first = self._parts[number].oldest[side]
        if first is None or first >= since:
            return first
        asked = (number, side, since)
        if asked not in self._later:
            positions = self._read(number, self._parts[number])[side].positions
            self._later[asked] = next((p for p in positions if p >= since), None)
        return self._later[asked]

    def _place(self, number: int, name: str) -> Path:
        return self._folder / str(number) / name


def _part(line: Mapping[str, Any]) -> _Part:
    oldest: dict[Side, int | None] = {
        s: None if line[f"oldest_{s}"] == _NONE else line[f"oldest_{s}"] for s in SIDES
    }
    return _Part(line["name"], {s: line[s] for s in SIDES}, oldest)


def _task(folder: Path, names: Mapping[int, str], side: Side, depends: Dependence, equal: Equality) -> Any:
    """What runs on an executor: rows sorted by part in, a line for each part out."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, matcher = _NONE, None
        try:
            for piece in _pieces(batches):
                if (part := piece.column(_PART)[0].as_py()) != number:
                    if matcher is not None:
                        yield _line(folder, number, matcher)
                    number, matcher = part, _matcher(folder, part, names.get(part), depends, equal)
                assert matcher is not None
                at = piece.column(_AT).to_numpy()
                matcher.push_batch(side, piece.drop_columns([_PART, _AT]), positions=at)
            if matcher is not None:
                yield _line(folder, number, matcher)
        except DiffError as error:  # told on the driver: Spark would wrap it into a stack of others
            yield _batch(number, "", None, pickle.dumps(error))

    return run


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows cut where a part ends."""
    for batch in batches:
        parts = batch.column(_PART).to_numpy()
        cuts = [0, *(np.flatnonzero(parts[1:] != parts[:-1]) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(cuts):
            if end > start:
                yield batch.slice(start, end - start)


def _matcher(folder: Path, part: int, name: str | None, depends: Dependence, equal: Equality) -> Matcher:
    if name is None:
        return Matcher(depends=depends, equal=equal)
    return Matcher.restore(folder / str(part) / name, depends=depends, equal=equal)


def _line(folder: Path, part: int, matcher: Matcher) -> pa.RecordBatch:
    if matcher.verdict is not None:
        return _batch(part, "", None, pickle.dumps(matcher.verdict))
    name = secrets.token_hex(8)
    matcher.save(folder / str(part) / name)
    return _batch(part, name, matcher, None)


def _batch(part: int, name: str, matcher: Matcher | None, found: bytes | None) -> pa.RecordBatch:
    waiting = [0 if matcher is None else matcher.waiting(s) for s in SIDES]
    first = [None if matcher is None else matcher.oldest(s) for s in SIDES]
    oldest = [_NONE if p is None else p for p in first]
    row = dict(zip(_REPORT.names, (part, name, *waiting, *oldest, found), strict=True))
    return pa.RecordBatch.from_pylist([row], schema=_REPORT)
