"""States that Python operators kept at marks inside a past epoch, and the mark that a window starts from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from samovar.compile.plan import Plan
from samovar.positions import Position, Window
from samovar.record.log import EpochCommitted, EpochFailed
from samovar.record.state_files import Header, mark_name, mark_of, read_header
from samovar.record.store import Recording, slug_unique
from samovar.replay.trace.segments import Segment
from samovar.runtime.exchange.task import Version

__all__ = ["EpochMarks"]

_ALL = 1 << 32
"""More marks than an epoch has: a bucket that failed has not passed the last one."""


class EpochMarks:
    """The marks of a segment's epoch, seen from a window in it. `fact`: what the log says of the epoch."""

    def __init__(
        self,
        plan: Plan,
        recording: Recording,
        fact: EpochCommitted | EpochFailed | None,
        segment: Segment,
        window: Window,
        *,
        near: bool = False,
    ) -> None:
        self.plan = plan
        self.recording = recording
        self.fact = fact
        self.segment = segment
        self.window = window
        self.near = near

    @cached_property
    def prefix(self) -> bool:
        """Whether rows before the window must flow too."""
        plan, level = self.plan, self.segment.level
        return not self.near and any(
            plan.shape(n) in ("python", "limit") and plan.placement.works(n, level) for n in plan.graph.ops
        )

    @cached_property
    def mark(self) -> int:
        """The last mark before the window at which all Python operators of the level kept their state; 0: none."""
        low = self.window.low
        if low is None or not self.prefix:
            return 0
        return next((n for n, at in reversed(self.usable) if at[: len(low)] <= low), 0)

    @cached_property
    def usable(self) -> list[tuple[int, Position]]:
        """The marks of the epoch at which all Python operators of the level kept their state, and where they lie."""
        fact = self.fact
        if fact is None or not fact.marks or self.segment.level != fact.level:
            return []
        headers = [h for name in self.stateful for h in self.headers(name).values()]
        return [
            (number, at)
            for number, at in enumerate(fact.marks, 1)
            if all(number > h.passed or number in h.marks for h in headers)
        ]

    @property
    def start(self) -> Position | None:
        """Where the rows begin that must flow; None: at the epoch's start."""
        if not self.prefix:
            return self.window.low
        return self.fact.marks[self.mark - 1] if self.fact is not None and self.mark else None

    @cached_property
    def stateful(self) -> list[str]:
        """The Python operators at work here whose states the epoch changed."""
        fact, shapes = self.fact, self.plan.placement.shapes
        names = (
            fact.state if isinstance(fact, EpochCommitted) else [n for n in shapes if shapes[n] == "python"]
        )
        return [n for n in names if self.plan.placement.works(n, self.segment.level)]

    def _folder(self, name: str) -> Path:
        """The folder of the run's state files of this epoch."""
        fact = self.fact
        assert fact is not None
        return self.recording.attempt_folder(fact.epoch, fact.attempt) / "state" / slug_unique(name)

    def headers(self, name: str) -> dict[int, Header]:
        """The headers of the run's state files of this epoch, by bucket."""
        fact, folder = self.fact, self._folder(name)
        if isinstance(fact, EpochCommitted):
            deltas = [f.bucket for f in fact.state[name] if not f.full]
            return {bucket: read_header(folder / f"{bucket:04d}.delta") for bucket in deltas}
        # Of an epoch that failed only marks are left. A bucket without a mark may have had rows before it that never
        # reached it, or were never begun with.
        marks: dict[int, list[int]] = {bucket: [] for bucket in range(self.plan.buckets[name])}
        for bucket, number in map(mark_of, sorted(folder.glob("*.mark*"))):
            marks.setdefault(bucket, []).append(number)
        return {
            bucket: Header(
                operator="", bucket=bucket, epoch=self.segment.epoch, passed=_ALL, marks=tuple(numbers)
            )
            for bucket, numbers in marks.items()
        }

    def kept(self, name: str) -> dict[int, tuple[list[str], Header]]:
        """For each bucket: the files that lead from the epoch's start to the mark, and the header of the last.

        A bucket whose rows all lie before the mark is at its state of the epoch's end by then.
        """
        folder = self._folder(name)
        kept: dict[int, tuple[list[str], Header]] = {}
        for bucket, header in self.headers(name).items():
            if self.mark > header.passed:
                kept[bucket] = ([str(folder / f"{bucket:04d}.delta")], header)
            else:
                files = [folder / mark_name(bucket, n) for n in header.marks if n <= self.mark]
                kept[bucket] = ([str(f) for f in files], read_header(files[-1]))
        return kept

    def versions(self, name: str, before: Mapping[int, Version]) -> dict[int, Version]:
        """The states of an operator at the mark, from those at the epoch's start."""
        versions = dict(before)
        if self.fact is None or not self.mark or name not in self.stateful:
            return versions
        for bucket, (files, _) in self.kept(name).items():
            start = versions.get(bucket, Version())
            tokens = [f"{self.fact.attempt}/{Path(f).name}" for f in files]
            versions[bucket] = Version((*start.files, *files), (*start.tokens, *tokens))
        return versions

    def given_before(self) -> dict[str, dict[int, int]]:
        """For each Python operator and bucket: how many tuples it gave from the epoch's start to the mark."""
        if not self.mark:
            return {}
        return {n: {b: header.given for b, (_, header) in self.kept(n).items()} for n in self.stateful}

    def taken_before(self, name: str) -> int:
        """How many tuples a Python operator took from the epoch's start to the mark."""
        return sum(sum(header.taken) for _, header in self.kept(name).values()) if self.mark else 0
