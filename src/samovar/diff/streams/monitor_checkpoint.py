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
from typing import Any, Protocol

import msgspec

from samovar.diff.comparison_errors import CheckpointProblem
from samovar.diff.dependence import Dependence
from samovar.diff.equality import Equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher import matcher_checkpoint
from samovar.diff.verdict import Verdict
from samovar.files import write_file

__all__ = ["Judge", "Store"]

_FORMAT = 1


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


class Judge(Protocol):
    """What a monitor compares with: a `Matcher`, or one in parts."""

    depends: Dependence
    equal: Equality

    def seen(self, side: Side) -> int:
        """How many events of a side were taken in."""

    def waiting(self, side: Side) -> int:
        """How many events of a side are without a partner."""

    def oldest(self, side: Side, since: int = 0) -> int | None:
        """The first position from `since` on whose event is without a partner."""

    def push_batch(self, side: Side, batch: Any) -> Verdict | None:
        """Take a batch in."""

    def if_ended(self) -> Verdict:
        """The verdict if both streams ended here."""

    def undecided(self, seconds: float) -> Verdict:
        """The verdict if nobody waits any longer."""

    def save(self, path: Path) -> None:
        """Write a checkpoint."""

    def restored(self, path: Path) -> Judge:
        """As it was saved, for the same comparison."""

    def tidy(self) -> None:
        """What was saved before the last checkpoint may go."""


class Store:
    """The folder of a monitor's checkpoint. `sides` says what each side is; a saved one has to say the same."""

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
        """What was saved, for the same comparison as that of `matcher`; None if nothing was."""
        path = self.folder / "monitor.json"
        if not path.exists():
            left_over = [side for side in SIDES if (self.folder / side).exists()]
            if left_over and any((self.folder / s / "commits").exists() for s in left_over):
                raise CheckpointProblem(
                    f"Expected monitor.json in {self.folder}, beside the checkpoints of queries, got none.",
                    hint="Name an empty folder to start anew.",
                )
            return None
        try:
            raw = path.read_bytes()
            if (version := msgspec.json.decode(raw).get("format", 0)) > _FORMAT:
                raise CheckpointProblem(
                    f"{self.folder} has format {version}; this Samovar reads up to {_FORMAT}.",
                    hint="Update Samovar to go on from it.",
                )
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
                nothing: dict[Side, int] = dict.fromkeys(SIDES, 0)
                matcher_checkpoint.write(
                    self._place(1), matcher_checkpoint.Saved(nothing, matcher.depends, matcher.equal)
                )
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
        """Let another monitor have the folder."""
        self._lock.close()

    def _place(self, state: int) -> Path:
        return self.folder / f"matcher-{state}"

    def _check(self, header: _Header, matcher: Judge) -> None:
        said = {"depends": header.depends, "equal": header.equal, "parts": str(header.parts or "none")}
        now = {"depends": matcher.depends.describe(), "equal": matcher.equal.describe()}
        now["parts"] = str(self._parts or "none")
        for side in SIDES:
            said[side], now[side] = header.sides[side], self._sides[side]
        for name, was in said.items():
            if was != now[name]:
                raise CheckpointProblem(
                    f"Expected a checkpoint of this comparison ({name}: {now[name]}), "
                    f"got one of another ({name}: {was}) in {self.folder}.",
                    hint="Name another folder, or an empty one to start anew.",
                )
        saved = matcher_checkpoint.read(self._place(header.state))
        for given, known, name in (
            (matcher.depends, saved.depends, "depends"),
            (matcher.equal, saved.equal, "equal"),
        ):
            if known is not None and known != given:
                raise CheckpointProblem(
                    f"Expected a checkpoint of this comparison, got one with another {name}= in {self.folder}.",
                    hint="Name another folder, or an empty one to start anew.",
                )
