"""Recordings as a command line names them, and what can be read of one, damaged or not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from samovar.errors import RecordingCorrupt, RecordingNotFound, SamovarError, nearest
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Graph
from samovar.record.addresses import local_folder
from samovar.record.log import AnyFact, RunResumed, read_log
from samovar.record.store import LOG, History, Recording, find_recordings
from samovar.runtime.progress import OperatorProgress

__all__ = [
    "RecordingView",
    "find_run",
    "head_of",
    "look",
    "operator_data",
    "rejected_place",
    "result_data",
]


def find_run(named: str, folder: str | os.PathLike[str] = "runs") -> Path:
    """The recording that a path, an id, the beginning of an id, or `latest` stands for."""
    path = local_folder(named)
    if (path / LOG).is_file():
        return path
    there = find_recordings(folder)
    if named == "latest":
        if not there:
            raise RecordingNotFound(
                f"No recordings in {folder}.",
                hint="`samovar demo` makes one; --dir names another folder.",
            )
        return there[-1]
    exact = [p for p in there if p.name == named]
    matching = exact or [p for p in there if p.name.startswith(named)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(p.name for p in matching[-6:])
        raise RecordingNotFound(
            f"'{named}' stands for {len(matching)} recordings in {folder}: {names}.",
            hint="Write more of the name.",
        )
    if path.is_dir() and find_recordings(path):
        raise RecordingNotFound(
            f"Expected a recording, got the folder of recordings {path}.",
            hint=f"Name one of them: `samovar runs --dir {path}` lists them.",
        )
    close = nearest(named, [p.name for p in there])
    listed = "`samovar runs` lists the recordings; --dir names another folder."
    raise RecordingNotFound(
        f"No recording '{named}' in {folder}.", hint=f"Did you mean '{close}'?" if close else listed
    )


@dataclass(frozen=True)
class RecordingView:
    """What could be read of a recording. `damage`: what could not be read, and why."""

    recording: Recording
    facts: list[AnyFact]
    history: History
    graph: Graph | None
    damage: str | None

    @property
    def path(self) -> Path:
        return self.recording.path

    @property
    def status(self) -> str:
        """As `Past.status`, or `damaged`; `starting` before the first fact."""
        if self.damage is not None:
            return "damaged"
        if self.recording.is_written():
            return "running" if self.history.started else "starting"
        return self.history.ended.status if self.history.ended is not None else "interrupted"

    @property
    def seconds(self) -> float:
        """From the first fact to the last, without the time between an end and a resume."""
        total = 0.0
        for before, after in zip(self.facts, self.facts[1:], strict=False):
            if not isinstance(after, RunResumed):
                total += max(0.0, after.at - before.at)
        return total

    @property
    def tuples(self) -> int:
        """The number of tuples that the sources gave."""
        totals = self.history.totals()
        if self.graph is None:
            return 0
        return sum(totals[op.name].given for op in self.graph.sources if op.name in totals)


def look(path: Path) -> RecordingView:
    """Read what can be read of a recording. Takes no lock, unpickles nothing, and does not raise for damage."""
    facts: list[AnyFact] = []
    damage: str | None = None
    try:
        for fact in read_log(path / LOG):
            facts.append(fact)  # noqa: PERF402  those before an error count
    except SamovarError as error:
        damage = str(error)
    except (OSError, msgspec.DecodeError) as error:
        damage = f"{path / LOG} cannot be read: {error}."
    history = History()
    for fact in facts:
        try:
            history.add(fact)
        except RecordingCorrupt as error:
            damage = str(error)
            break
    recording = Recording(path)
    graph: Graph | None = None
    if history.started is not None:
        from samovar.runtime.workflow_file import read_graph

        try:
            graph = read_graph(recording)
        except SamovarError as error:
            damage = damage or str(error)
    return RecordingView(recording, facts, history, graph, damage)


def operator_data(op: OperatorProgress) -> dict[str, Any]:
    """An operator's counters as plain data."""
    return {name: value for name, value in asdict(op).items() if name != "rate"}


def result_data(recording: Recording, history: History, op: Op, *, kept: bool = True) -> dict[str, Any]:
    """What a sink kept or wrote, as plain data. `kept`: whether the recording stays after the run."""
    counters = history.totals().get(op.name)
    rows = sum(counters.taken) if counters else 0
    if isinstance(op, ops.Write):
        published = op.name in history.published
        return {"kind": "write", "rows": rows, "format": op.format, "path": op.path, "published": published}
    folders = recording.parts("results", op.name, history.epochs, check=False) if kept else []
    return {"kind": "sink", "rows": rows, "format": "parquet", "path": [str(f.absolute()) for f in folders]}


def rejected_place(row: Mapping[str, Any]) -> str:
    """Where a row that did not parse stands."""
    return str(row["file"]) if row["line"] is None else f"{row['file']}, line {row['line']}"


def head_of(recording: Recording, history: History, sink: str, rows: int) -> pa.Table | None:
    """The first rows a sink kept, reading no more files than they take; None when it kept no file."""
    tables: list[Any] = []
    wanted = rows
    for folder in (f for epoch in history.epochs for f in recording.parts("results", sink, [epoch])):
        for file in sorted(folder.glob("*.parquet")):
            with pq.ParquetFile(file) as opened:
                schema = opened.schema_arrow
                if not tables:
                    tables.append(schema.empty_table())
                for batch in opened.iter_batches(max(1, min(wanted, 8192))):
                    if wanted <= 0:
                        break
                    part = batch.slice(0, wanted)
                    tables.append(pa.Table.from_batches([part]))
                    wanted -= part.num_rows
            if wanted <= 0:
                return pa.concat_tables(tables)
    return pa.concat_tables(tables) if tables else None
