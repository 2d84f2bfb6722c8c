"""What was measured, in one JSON file: each part is written as soon as it is there.

A part is kept with the numbers it was measured with, when, at which commit, how long it took and how busy the machine
was just before. Taking up an interrupted measurement means to open its file again: parts that are there with the same
numbers are not measured again; those that failed are. The file is replaced by a rename, so an interruption harms
nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.papers.experiment import Raw, Size
from benchmarks.session import machine

__all__ = ["FORMAT", "NotResults", "Store", "commit"]

FORMAT = 1
_ROOT = Path(__file__).resolve().parents[2]


class NotResults(Exception):
    """A file that does not hold results of this format, or of another size; the message says what to do."""


class Store:
    """The measurements of one file."""

    def __init__(self, path: Path, size: str) -> None:
        """Open a file, or begin one. Raises `NotResults` for what cannot be gone on with."""
        self.path = path
        self.document: dict[str, Any] = {"format": FORMAT, "size": size, "machine": machine(), "parts": {}}
        if path.exists():
            self.document = read(path)
            if self.document["size"] != size:
                held = self.document["size"]
                raise NotResults(f"Expected results of size {size} in {path}, got {held}. Name another file.")

    @property
    def parts(self) -> dict[str, dict[str, Any]]:
        """All that was measured, as `experiment/part`."""
        parts: dict[str, dict[str, Any]] = self.document["parts"]
        return parts

    def has(self, experiment: str, part: str, size: Size) -> bool:
        """Whether a part was measured with these numbers, and did not fail."""
        held = self.parts.get(f"{experiment}/{part}")
        return held is not None and "error" not in held and held["size"] == _plain(size)

    def put(self, experiment: str, part: str, size: Size, seconds: float, busy: float, data: Any) -> None:
        """Keep what was measured."""
        self._keep(experiment, part, size, seconds, busy, {"data": data})

    def fail(
        self, experiment: str, part: str, size: Size, seconds: float, busy: float, error: Exception
    ) -> None:
        """Keep that a part failed; what was measured before, with the same numbers, is not overwritten."""
        told = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        if not self.has(experiment, part, size):
            self._keep(experiment, part, size, seconds, busy, {"error": told[:300]})

    def _keep(
        self, experiment: str, part: str, size: Size, seconds: float, busy: float, what: dict[str, Any]
    ) -> None:
        self.parts[f"{experiment}/{part}"] = {
            "size": _plain(size),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit(),
            "seconds": round(seconds, 1),
            "busy_before": round(busy, 2),
            **what,
        }
        self.save()

    def save(self) -> None:
        """Write the file anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        scratch.write_text(json.dumps(self.document, indent=1, default=_number) + "\n")
        scratch.replace(self.path)

    def raw(self, experiment: str) -> Raw:
        """An experiment's measurements by part."""
        start = f"{experiment}/"
        return {
            name.removeprefix(start): held["data"]
            for name, held in self.parts.items()
            if name.startswith(start) and "data" in held
        }

    def size(self, experiment: str) -> Size:
        """The numbers its parts were measured with: one for all, or by part where they differ."""
        start = f"{experiment}/"
        held = {n.removeprefix(start): p["size"] for n, p in self.parts.items() if n.startswith(start)}
        names = dict.fromkeys(name for size in held.values() for name in size)
        by = {name: {part: size[name] for part, size in held.items() if name in size} for name in names}
        return {
            name: next(iter(values.values())) if _all_the_same(values) else values
            for name, values in by.items()
        }

    def errors(self) -> dict[str, str]:
        """Parts that failed, and why."""
        return {name: held["error"] for name, held in self.parts.items() if "error" in held}


def read(path: Path) -> dict[str, Any]:
    """A file's document; raises `NotResults` when it is none."""
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        held = document["format"], document["size"], document["parts"]
    except (ValueError, KeyError, TypeError) as error:
        raise NotResults(
            f"Expected results of a benchmark in {path}, got something else ({error})."
        ) from None
    if held[0] != FORMAT:
        raise NotResults(f"Expected results of format {FORMAT} in {path}, got {held[0]}. Name another file.")
    return document


def commit() -> str:
    """The commit at hand, with a `+` where files differ from it."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        return name + (
            "+" if _git("status", "--porcelain", "--untracked-files=no", "src", "benchmarks") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _plain(size: Mapping[str, Any]) -> Any:
    """As it comes back from a file."""
    return json.loads(json.dumps(dict(size)))


def _all_the_same(values: Mapping[str, Any]) -> bool:
    first, *rest = values.values()
    return all(value == first for value in rest)


def _number(value: Any) -> Any:
    """Numbers of numpy, and tuples inside of dataclasses."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"Expected what JSON can hold, got {type(value).__name__}")
