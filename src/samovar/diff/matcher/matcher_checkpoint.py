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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from samovar.diff.comparison_errors import CheckpointProblem
from samovar.diff.dependence import Clause, Dependence, Key, Predicate, Punctuating, Synchronising
from samovar.diff.equality import Equality, Tolerance
from samovar.diff.event_values import SIDES, Side
from samovar.diff.matcher.queues import Ids

__all__ = ["FORMAT", "Saved", "read", "write"]

FORMAT = 1
_POSITION = "__sv_position"


class _Clause(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str
    columns: list[str] = []
    time: str = ""
    by: list[tuple[str, list[Any]]] = []


class _Equality(msgspec.Struct, frozen=True, omit_defaults=True):
    columns: list[str] | None = None
    absolute: float | None = None
    relative: float = 0.0
    by_column: list[tuple[str, float]] | None = None


class _Header(msgspec.Struct, frozen=True, omit_defaults=True):
    format: int
    seen: dict[str, int]
    depends: list[_Clause] | None
    """None if a function is part of it."""
    equal: _Equality | None
    form: str
    """`rows`, `events`, or `empty`."""


class Saved(msgspec.Struct, frozen=True):
    """What a checkpoint holds. `rows` is set if events came in batches, else `events`."""

    seen: Mapping[Side, int]
    depends: Dependence | None
    equal: Equality | None
    rows: Mapping[Side, tuple[Ids, pa.Table | None]] | None = None
    events: Mapping[Side, list[tuple[int, Any]]] | None = None
    settled: list[tuple[int, Any, int, Any]] = []


def write(path: Path, saved: Saved) -> None:
    """Write a checkpoint, in place of the one that is there if there is one."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        new.mkdir(parents=True)
        if saved.rows is not None:
            for side in SIDES:
                positions, table = saved.rows[side]
                if table is not None:
                    _write_rows(new / f"{side}.arrow", table.append_column(_POSITION, pa.array(positions)))
        elif saved.events is not None:
            (new / "events.pickle").write_bytes(pickle.dumps((dict(saved.events), saved.settled)))
        header = _Header(
            format=FORMAT,
            seen={side: saved.seen[side] for side in SIDES},
            depends=_plain_dependence(saved.depends),
            equal=_plain_equality(saved.equal),
            form="rows" if saved.rows is not None else "events" if saved.events is not None else "empty",
        )
        (new / "matcher.json").write_bytes(msgspec.json.encode(header))
        old = path.with_name(f"{new.name}.old")
        if path.exists():
            os.rename(path, old)
        os.rename(new, path)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, pickle.PicklingError, TypeError, AttributeError) as error:
        shutil.rmtree(new, ignore_errors=True)
        raise CheckpointProblem(f"The matcher could not be saved to {path}: {error}.") from error


def read(path: Path) -> Saved:
    """Read a checkpoint."""
    try:
        raw = (path / "matcher.json").read_bytes()
        version = msgspec.json.decode(raw).get("format", 0)
        if version > FORMAT:
            raise CheckpointProblem(
                f"{path} has format {version}; this Samovar reads up to {FORMAT}.",
                hint="Update Samovar to open it.",
            )
        header = msgspec.json.decode(raw, type=_Header)
        rows = None
        events: Mapping[Side, list[tuple[int, Any]]] | None = None
        settled: list[tuple[int, Any, int, Any]] = []
        if header.form == "rows":
            rows = {side: _read_rows(path / f"{side}.arrow") for side in SIDES}
        elif header.form == "events":
            events, settled = pickle.loads((path / "events.pickle").read_bytes())
    except FileNotFoundError as error:
        raise CheckpointProblem(f"Expected a saved matcher, got none at {path}.") from error
    except (OSError, ValueError, pickle.UnpicklingError, EOFError, pa.ArrowException) as error:
        raise CheckpointProblem(f"The saved matcher at {path} is damaged: {error}.") from error
    depends = None if header.depends is None else Dependence(tuple(map(_clause, header.depends)))
    seen: dict[Side, int] = {side: header.seen[side] for side in SIDES}
    return Saved(seen, depends, _equality(header.equal), rows, events, settled)


def _write_rows(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read_rows(path: Path) -> tuple[Ids, pa.Table | None]:
    if not path.exists():
        return np.zeros(0, np.int64), None
    with pa.OSFile(str(path), "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    positions = table.column(_POSITION).to_numpy()
    return positions, table.drop_columns([_POSITION])


def _plain_dependence(depends: Dependence | None) -> list[_Clause] | None:
    clauses = []
    for clause in depends.clauses if depends is not None else ():
        if isinstance(clause, Key) and clause.by is None:
            clauses.append(_Clause("key", list(clause.columns)))
        elif isinstance(clause, Synchronising) and (by := _plain_predicate(clause.by)) is not None:
            clauses.append(_Clause("synchronising", list(clause.within), by=by))
        elif isinstance(clause, Punctuating) and (by := _plain_predicate(clause.by)) is not None:
            clauses.append(_Clause("punctuating", time=clause.time, by=by))
        else:
            return None
    return clauses


def _plain_predicate(by: Predicate) -> list[tuple[str, list[Any]]] | None:
    simple = all(isinstance(v, (str, int, bool, type(None))) for _, values in by.columns for v in values)
    return None if by.function is not None or not simple else [(c, list(v)) for c, v in by.columns]


def _clause(plain: _Clause) -> Clause:
    by = Predicate(tuple((c, tuple(values)) for c, values in plain.by))
    if plain.kind == "key":
        return Key(tuple(plain.columns))
    if plain.kind == "synchronising":
        return Synchronising(by, tuple(plain.columns))
    return Punctuating(plain.time, by)


def _plain_equality(equal: Equality | None) -> _Equality | None:
    if equal is None or not equal.in_columns:
        return None
    columns = None if equal.columns is None else list(equal.columns)
    tolerance = equal.tolerance
    if tolerance is None:
        return _Equality(columns)
    by_column = None if tolerance.columns is None else list(tolerance.columns)
    return _Equality(columns, tolerance.absolute, tolerance.relative, by_column)


def _equality(plain: _Equality | None) -> Equality | None:
    if plain is None:
        return None
    columns = None if plain.columns is None else tuple(plain.columns)
    if plain.absolute is None:
        return Equality(columns)
    by_column = None if plain.by_column is None else tuple((c, t) for c, t in plain.by_column)
    return Equality(columns, Tolerance(plain.absolute, plain.relative, by_column))
