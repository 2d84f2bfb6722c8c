"""Sinks: where results stay."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from samovar.graph.operators.base import Op

__all__ = ["Sink", "Write"]


class Sink(Op, tag="sink", frozen=True, kw_only=True):
    """Keeps the rows in the recording, to be read with `run.result(name)`."""

    summary: ClassVar[str] = "keeps the result in the recording"


class Write(Op, tag="write", frozen=True, kw_only=True):
    """Writes files to `path`; they appear there when the run has ended well, never half-written."""

    format: str
    path: str
    mode: Literal["error", "overwrite", "append", "ignore"] = "error"
    options: dict[str, str] = msgspec.field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    summary: ClassVar[str] = "writes files"
