"""Targets: what Samovar was meant to reach, each beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.papers.experiment import Raw

__all__ = ["Finding", "Measured", "Target"]

Measured: TypeAlias = Mapping[str, Raw]
"""Measurements by experiment, then by part."""


@dataclass(frozen=True)
class Target:
    """A bound that a number is to keep."""

    area: str
    text: str
    value: Callable[[Measured], float | None]
    """The number, or None where it was not measured."""
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""
    only_full: bool = False
    """Whether it is about sizes that `--quick` does not have."""


@dataclass(frozen=True)
class Finding:
    """A target, and how it stands: `met` is None where it was not measured."""

    target: Target
    value: float | None

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        low, high = self.target.at_least, self.target.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)


def find(target: Target, measured: Measured) -> Finding:
    """How a target stands; what lacks a part it needs counts as not measured."""
    try:
        return Finding(target, target.value(measured))
    except (KeyError, IndexError, ZeroDivisionError):
        return Finding(target, None)
