"""A monitor on disk: a matcher, the last batch of each side that it has, and the verdict once there is one.

`monitor.json` names the folder that holds the matcher and is replaced in one step, so after a crash of the process it
names a whole one, together with the batches that are in it. The checkpoints of Spark's queries are beside it (`left`,
`right`). One monitor at a time holds the folder.
"""

from __future__ import annotations

import fcntl
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from samovar.diff.comparison_errors import CheckpointProblem
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher import matcher_checkpoint
from samovar.diff.matcher.matcher import Matcher
from samovar.diff.verdict import Verdict
from samovar.files import write_file

if TYPE_CHECKING:
    from samovar.diff.streams.keyed_matchers import Divided

__all__ = ["Judge", "Store"]

_FORMAT = 2
Judge: TypeAlias = "Matcher | Divided"
"""What a monitor compares with: one matcher on the driver, or one in parts on the executors."""


class _Header(msgspec.Struct, frozen=True):
    format: int
    last: dict[Side, int]
    state: int
    """The number of the folder with the matcher."""
    depends: str
    equal: str
    sides: dict[Side, str]
    differs: bool
    parts: int = 0
    """Into how many the matcher is divided; 0 for one on the driver."""


class Store:
    """The folder of a monitor's checkpoint. `sides` describes each side; a saved checkpoint must have the same."""

    def __init__(self, folder: Path, sides: Mapping[Side, str], *, parts: int = 0) -> None:
        self.folder = folder
        self._parts = parts
        self._sides = dict(sides)
        self._state = 0
        self._decided = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("w", encoding="utf-8")
        except OSError as error:
            raise CheckpointProblem(
                f"Expected a folder for the checkpoint at {folder}, got: {error}."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise CheckpointProblem(
                f"Expected a checkpoint that no other monitor uses, got {folder}, which one does.",
                hint="Stop the other monitor first, or name another folder.",
            ) from error

    def load(self, matcher: Judge) -> tuple[Judge, dict[Side, int], Verdict | None] | None:
        """The saved judge, last batches and verdict, if there are any; raises if they are of another comparison."""
        path = self.folder / "monitor.json"
        if not path.exists():
            if any((self.folder / side / "commits").exists() for side in SIDES):
                raise CheckpointProblem(
                    f"Expected monitor.json in {self.folder}, beside the checkpoints of queries, got none.",
                    hint="Name an empty folder to start again.",
                )
            return None
        try:
            raw = path.read_bytes()
            matcher_checkpoint.check_format(raw, _FORMAT, self.folder)
            header = msgspec.json.decode(raw, type=_Header)
            self._check(header, matcher)
            self._state = header.state
            restored = matcher.restored(self._place(header.state))
            verdict = pickle.loads((self.folder / "verdict.pickle").read_bytes()) if header.differs else None
            self._decided = header.differs
        except (OSError, msgspec.DecodeError, pickle.UnpicklingError, EOFError, AttributeError) as error:
            raise CheckpointProblem(f"The checkpoint {self.folder} is damaged: {error}.") from error
        return restored, dict(header.last), verdict

    def save(
        self, matcher: Judge, last: Mapping[Side, int], verdict: Verdict | None, *, changed: bool
    ) -> None:
        """Write it all, so that a reader sees this or what was there before. Time in proportion to what is unmatched,
        unless nothing `changed` but the numbers of batches."""
        old = self._state
        try:
            if verdict is not None and not self._decided:
                (self.folder / "verdict.pickle").write_bytes(pickle.dumps(verdict))
                self._decided = True
            if verdict is not None and not old:
                self._state = 1
                saved = matcher_checkpoint.Saved(dict.fromkeys(SIDES, 0), matcher.depends, matcher.equal)
                matcher_checkpoint.write(self._place(1), saved)
            elif verdict is None and (changed or not old):
                self._state += 1
                matcher.save(self._place(self._state))
            header = _Header(
                _FORMAT,
                dict(last),
                self._state,
                matcher.depends.describe(),
                matcher.equal.describe(),
                self._sides,
                verdict is not None,
                self._parts,
            )
            write_file(self.folder / "monitor.json", msgspec.json.encode(header))
        except (OSError, pickle.PicklingError, TypeError, AttributeError) as error:
            raise CheckpointProblem(f"The monitor could not be saved to {self.folder}: {error}.") from error
        if old != self._state:
            shutil.rmtree(self._place(old), ignore_errors=True)

    def close(self) -> None:
        """Release the folder, so that another monitor can use it."""
        self._lock.close()

    def _place(self, state: int) -> Path:
        return self.folder / f"matcher-{state}"

    def _check(self, header: _Header, matcher: Judge) -> None:
        """Raise if the checkpoint is one of another comparison."""
        saved = matcher_checkpoint.read(self._place(header.state))
        depends, equal = matcher.depends, matcher.equal
        for name, was, now in (
            ("depends", header.depends, depends.describe()),
            ("equal", header.equal, equal.describe()),
            ("parts", str(header.parts or "none"), str(self._parts or "none")),
            *((side, header.sides[side], self._sides[side]) for side in SIDES),
            # two different ones may have the same description
            ("depends", saved.depends or depends, depends),
            ("equal", saved.equal or equal, equal),
        ):
            if was != now:
                raise CheckpointProblem(
                    f"Expected a checkpoint of this comparison ({name}: {now}), "
                    f"got one of another ({name}: {was}) in {self.folder}.",
                    hint="Name another folder, or an empty one to start again.",
                )
