"""A matcher on disk: what is unmatched, how many events were seen, and the comparison as far as it is data.

A checkpoint is a folder: `matcher.json` with the format's version, and for each side the unmatched events, as an Arrow
file if they came in batches, else pickled (reading it runs code of the checkpoint: open only what you trust). It is
written under another name and moved into place, so a reader sees a whole one or none. Nothing else is needed: a fresh
matcher that is fed the unmatched events of both sides is in the same state.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from samovar.diff.comparison_errors import CheckpointProblem
from samovar.diff.dependence import Clause, Dependence, Function, Key, Punctuating, Synchronising
from samovar.diff.equality import Equality
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher.queues import Ids
from samovar.diff.matcher.stepwise import SettledPair

__all__ = ["FORMAT", "Saved", "check_format", "read", "write"]

FORMAT = 2
_POSITION = "__sv_position"
_KINDS: dict[str, type[Key | Synchronising | Punctuating]] = {
    "key": Key,
    "synchronising": Synchronising,
    "punctuating": Punctuating,
}


class _Header(msgspec.Struct, frozen=True):
    format: int
    seen: dict[Side, int]
    depends: list[tuple[str, Any]] | None
    """The kind of each clause, and its fields; None if a function is part of one."""
    equal: Equality | None
    """None if it is a function."""
    form: str
    """`rows`, `events`, or `empty`."""


class Saved(msgspec.Struct, frozen=True):
    """The contents of a checkpoint. `rows` is set if events came in batches, else `events`."""

    seen: Mapping[Side, int]
    depends: Dependence | None
    equal: Equality | None
    rows: Mapping[Side, tuple[Ids, pa.Table | None]] | None = None
    events: Mapping[Side, list[tuple[int, Any]]] | None = None
    settled: Sequence[SettledPair] = ()


def write(path: Path, saved: Saved) -> None:
    """Write a checkpoint; it replaces the one at this path, if there is one."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    old = path.with_name(f"{new.name}.old")
    try:
        new.mkdir(parents=True)
        for side, (positions, table) in (saved.rows or {}).items():
            if table is not None:
                _write_rows(new / f"{side}.arrow", table.append_column(_POSITION, pa.array(positions)))
        if saved.events is not None:
            events = (dict(saved.events), [tuple(pair) for pair in saved.settled])
            (new / "events.pickle").write_bytes(pickle.dumps(events))
        header = _Header(
            format=FORMAT,
            seen=dict(saved.seen),
            depends=_plain_clauses(saved.depends),
            equal=saved.equal if saved.equal is not None and saved.equal.in_columns else None,
            form="rows" if saved.rows is not None else "events" if saved.events is not None else "empty",
        )
        (new / "matcher.json").write_bytes(msgspec.json.encode(header))
        if path.exists():
            os.rename(path, old)
        os.rename(new, path)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, pickle.PicklingError, TypeError, AttributeError) as error:
        shutil.rmtree(new, ignore_errors=True)
        raise CheckpointProblem(f"The matcher could not be saved to {path}: {error}.") from error


def read(path: Path) -> Saved:
    """Read a checkpoint."""
    rows, events = None, None
    settled: Sequence[Any] = ()
    try:
        raw = (path / "matcher.json").read_bytes()
        check_format(raw, FORMAT, path)
        header = msgspec.json.decode(raw, type=_Header)
        if header.form == "rows":
            rows = {side: _read_rows(path / f"{side}.arrow") for side in SIDES}
        elif header.form == "events":
            events, settled = pickle.loads((path / "events.pickle").read_bytes())
        depends = None
        if header.depends is not None:
            depends = Dependence(tuple(msgspec.convert(c, _KINDS[kind]) for kind, c in header.depends))
    except FileNotFoundError as error:
        raise CheckpointProblem(f"Expected a saved matcher, got none at {path}.") from error
    except (OSError, ValueError, KeyError, pickle.UnpicklingError, EOFError, pa.ArrowException) as error:
        raise CheckpointProblem(f"The saved matcher at {path} is damaged: {error}.") from error
    pairs = [SettledPair(*pair) for pair in settled]
    return Saved(header.seen, depends, header.equal, rows, events, pairs)


def check_format(raw: bytes, version: int, path: Path) -> None:
    """Raise unless the header of a checkpoint, as JSON, has the format that this Samovar reads."""
    if (written := msgspec.json.decode(raw).get("format", version)) != version:
        raise CheckpointProblem(
            f"{path} has format {written}; this Samovar reads format {version}.",
            hint="Open it with the Samovar that wrote it, or start again with an empty folder.",
        )


def _write_rows(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read_rows(path: Path) -> tuple[Ids, pa.Table | None]:
    if not path.exists():
        return np.zeros(0, np.int64), None
    with pa.OSFile(str(path), "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    return table.column(_POSITION).to_numpy(), table.drop_columns([_POSITION])


def _plain_clauses(depends: Dependence | None) -> list[tuple[str, Any]] | None:
    clauses = depends.clauses if depends is not None else ()
    if not all(map(_is_plain, clauses)):
        return None
    names = {kind: name for name, kind in _KINDS.items()}
    return [(names[type(clause)], clause) for clause in clauses if not isinstance(clause, Function)]


def _is_plain(clause: Clause) -> bool:
    """Whether JSON can hold the clause, so that it is the same when it is read again."""
    if isinstance(clause, (Synchronising, Punctuating)):
        values = [value for _, allowed in clause.by.columns for value in allowed]
        return clause.by.function is None and all(isinstance(v, (str, int, type(None))) for v in values)
    return isinstance(clause, Key) and clause.by is None
