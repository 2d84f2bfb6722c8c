"""What the routes answer, as types: the OpenAPI description has them, and web/ is compiled against it.

FastAPI checks every answer against these, so the description is true; a key that is not listed here is not sent.
"""

from __future__ import annotations

from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,  # typing's own serves pydantic from Python 3.12 on
)

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

__all__ = [
    "CanStepData",
    "CauseData",
    "CheckedData",
    "ColumnFiguresData",
    "ComparisonData",
    "ConsoleLineData",
    "ExecutionData",
    "FileData",
    "FoundMomentData",
    "HeldTupleData",
    "InspectionData",
    "LineData",
    "LintData",
    "MarkedData",
    "MomentData",
    "NoteEntryData",
    "NotebookEntryData",
    "OperatorKindData",
    "OperatorStateData",
    "PageData",
    "PendingTupleData",
    "RangeData",
    "RecordingData",
    "RecordingSummaryData",
    "RejectedData",
    "ScopeData",
    "SqlFunctionData",
    "SqlVerdictData",
    "TrialData",
    "UploadData",
    "ValueCountData",
    "VersionData",
    "WorkflowData",
    "WorkflowSummaryData",
]

Json = Annotated[Any, WithJsonSchema({"x-json": True})]
"""Any JSON, as it is: the compiler of web/ reads the mark."""
Row = dict[str, Json]


class ProblemData(TypedDict):
    """An error of the library."""

    kind: str
    message: str
    hint: str | None
    operator: str | None


class ColumnData(TypedDict):
    name: str
    type: str


# --- workflows ------------------------------------------------------------------------------------------------------


class PortsData(TypedDict):
    """How many inputs an operator has; `most` is null where there is no limit."""

    least: int
    most: int | None


class PresetData(TypedDict):
    """One of the things an operator can do, and the fields that it starts with."""

    title: str
    summary: str
    start: Row


class OperatorKindData(TypedDict):
    """An operator of documents; `schema` is the JSON Schema of its fields."""

    op: str
    group: str
    summary: str
    description: str
    ports: PortsData
    output: bool
    start: Row
    presets: list[PresetData]
    schema: Row


class WorkflowSummaryData(TypedDict):
    workflow: str
    people: int
    changed: float


class WorkflowData(WorkflowSummaryData):
    """A workflow as it is now; `ids` are those of its operators in the shared document."""

    document: Row
    layout: dict[str, tuple[float, float]]
    ids: dict[str, str]


class DocumentProblemData(ProblemData):
    field: str | None


class CheckedData(TypedDict):
    """What is wrong with a workflow, and the columns each operator gives; `deep`: whether Spark had a say."""

    problems: list[DocumentProblemData]
    schemas: dict[str, list[ColumnData]]
    deep: bool


class VersionData(TypedDict):
    version: int
    name: str
    by: str
    at: float


class FileData(TypedDict):
    path: str
    bytes: int
    changed: float


class UploadData(TypedDict):
    path: str
    bytes: int


# --- editors --------------------------------------------------------------------------------------------------------


class RemarkData(TypedDict):
    line: int
    column: int
    message: str


class LintData(TypedDict):
    problems: list[RemarkData]


class SqlFunctionData(TypedDict):
    name: str


class SqlProblemData(TypedDict):
    message: str
    hint: str | None


class SqlVerdictData(TypedDict):
    problem: SqlProblemData | None
    type: str | None


class TrialData(TypedDict):
    """Rows an operator was tried on, rows it gave, and what went wrong."""

    given: list[Row]
    rows: list[Row]
    columns: list[ColumnData]
    error: ProblemData | None


# --- executions -----------------------------------------------------------------------------------------------------


class OperatorProgressData(TypedDict):
    name: str
    kind: str
    taken: int
    given: int
    rate: float
    state_entries: int
    state_bytes: int


class ProgressData(TypedDict):
    """Counters of a run. `rejected`: rows that did not parse, by source; they are not in the results."""

    run: str
    workflow: str
    status: str
    epoch: int
    fraction: float
    seconds: float
    operators: list[OperatorProgressData]
    rejected: dict[str, int]
    note: str


class LiveFiguresData(TypedDict):
    """Figures of an operator now, with the epoch under way. `a_tuple`: seconds of work for a tuple."""

    taken: int
    given: int
    rate: float
    busy: float
    queue: int
    workers: int
    state_entries: int
    state_bytes: int
    skew: float
    a_tuple: float | None


class HoldData(TypedDict):
    hold: str
    operator: str
    epoch: int
    error: str


class HeldTupleData(HoldData):
    """A tuple that waits for a decision, with where it raised."""

    row: Row
    traceback: str
    locals: dict[str, str]
    state: str


class ReachedData(TypedDict):
    """A breakpoint at which a run is paused."""

    operator: str
    epoch: int
    row: Row | None
    note: str


class WatchData(TypedDict):
    """A watch, or a breakpoint (`pause`)."""

    name: str
    operator: str
    condition: str | None
    tuples: int | None
    outputs: int | None
    pause: bool
    by: str


class DeedData(TypedDict):
    """Something a person did to a run."""

    at: float
    by: str
    did: str
    operator: NotRequired[str | None]


class ExecutionData(TypedDict):
    """A run that was asked for. `printed`: how many lines Python operators have printed."""

    execution: str
    workflow: str | None
    title: str
    by: str
    asked: float
    status: str
    stopped_by: str | None
    paused_by: str | None
    parent: str | None
    run: str | None
    progress: ProgressData | None
    live: dict[str, LiveFiguresData]
    held: list[HoldData]
    reached: list[ReachedData]
    watches: list[WatchData]
    printed: int
    deeds: list[DeedData]
    error: ProblemData | None


class ConsoleLineData(TypedDict):
    at: float
    operator: str
    epoch: int
    text: str


class MapStateData(TypedDict):
    """A page of a map's entries."""

    kind: Literal["map"]
    size: int
    start: int
    entries: list[tuple[Json, Json]]


class ValueStateData(TypedDict):
    kind: Literal["value"]
    value: Json


StateData = Annotated[MapStateData | ValueStateData, Field(discriminator="kind")]


class InspectionData(TypedDict):
    """The state of an operator now; `in_flight` is null while the run goes on."""

    operator: str
    epoch: int
    consistent: bool
    note: str
    state: dict[str, StateData]
    tuples: int
    in_flight: list[Row] | None
    more: int


class MarkedData(TypedDict):
    interaction: str


# --- recordings -----------------------------------------------------------------------------------------------------


class RecordingSummaryData(TypedDict):
    """A recording; of one that cannot be read (`damaged`) the error."""

    run: str
    workflow: str | None
    parent: str | None
    started: float | None
    status: str
    epochs: int
    error: ProblemData | None


class EpochData(TypedDict):
    epoch: int
    level: int
    seconds: float
    at: float
    taken: dict[str, int]


class InteractionData(TypedDict):
    """A marked moment."""

    id: str
    at: float
    operator: str
    epoch: int
    tuples: NotRequired[int]
    position: NotRequired[Json]
    note: NotRequired[str]
    by: NotRequired[str]


class RecordedOperatorData(TypedDict):
    name: str
    op: str
    inputs: list[str]


class RecordingData(RecordingSummaryData):
    progress: ProgressData
    epoch_list: list[EpochData]
    failed_epoch: int | None
    message: str | None
    interactions: list[InteractionData]
    operators: list[RecordedOperatorData]
    code: dict[str, str | None]
    sinks: list[str]


class PageData(TypedDict):
    """Rows of a sink from `start` on, of `total` that meet the filter (null: not counted)."""

    columns: list[ColumnData]
    rows: list[Row]
    start: int
    total: int | None


class RejectedData(TypedDict):
    """The first rows of a source that did not parse; of a Python operator, tuples that were skipped."""

    operator: str
    total: int
    rows: list[Row]


class ColumnFiguresData(TypedDict):
    """A column of a result in figures."""

    name: str
    type: str
    rows: int
    nulls: int
    distinct: Json
    least: Json
    greatest: Json
    mean: Json


class ValueCountData(TypedDict):
    value: Json
    rows: int


RangeData = TypedDict("RangeData", {"from": Json, "to": Json, "rows": int})
"""How many numbers lie in a range."""


# --- travelling -----------------------------------------------------------------------------------------------------


class CountersData(TypedDict):
    """Tuples an operator had taken, by port, and given."""

    taken: list[int]
    given: int


class ChangeData(TypedDict):
    """A value of an operator's state, or an entry of one (`keyed`), before and after a step."""

    operator: str
    name: str
    key: Json
    keyed: bool
    before: Json
    after: Json


class StepData(TypedDict):
    operator: str
    port: int
    row: Row | None
    outputs: list[Row]
    changes: list[ChangeData]


class AddressData(TypedDict):
    """Where a moment is: where was jumped to, and the steps (how, operator) from there."""

    to: dict[str, str | int | bool]
    steps: list[tuple[str, str | None]]


class MomentData(TypedDict):
    moment: str
    epoch: int
    counters: dict[str, CountersData]
    last: StepData | None
    changes: list[ChangeData]
    address: AddressData


class FoundMomentData(TypedDict):
    found: MomentData | None


class OperatorStateData(TypedDict):
    operator: str
    state: dict[str, StateData]


PendingTupleData = TypedDict("PendingTupleData", {"from": str, "row": Row})
"""A tuple that waits at an operator, and the operator that gave it."""


class CanStepData(TypedDict):
    operator: str
    over: bool
    why_not: str | None


class LineData(TypedDict):
    """A line that a step ran."""

    number: int
    text: str
    event: str
    locals: Row
    value: Json


class ScopeTupleData(TypedDict):
    operator: str
    row: Row


ScopeData = TypedDict(
    "ScopeData", {"operators": list[str], "from": list[str], "tuples": list[ScopeTupleData]}
)
"""A tuple and what was made from it: operators it went through, those that gave something, the tuples."""


class DeedEntryData(DeedData):
    kind: Literal["did"]
    id: str


class NoteEntryData(TypedDict):
    """A note that is pinned to a moment."""

    kind: Literal["note"]
    id: str
    at: float
    by: str
    text: str
    address: AddressData
    epoch: int


NotebookEntryData = Annotated[DeedEntryData | NoteEntryData, Field(discriminator="kind")]


# --- differences ----------------------------------------------------------------------------------------------------


class SidesData(TypedDict):
    left: NotRequired[int]
    right: NotRequired[int]


class PairData(TypedDict):
    """Two rows that belong together, and the columns in which they differ; null: no partner."""

    left: Row | None
    right: Row | None
    differ: list[str]


class ComparisonData(TypedDict):
    comparison: str
    equivalent: bool
    depends: str
    rows: SidesData
    without_partner: SidesData
    explanation: str
    pairs: list[PairData]


class CauseData(TypedDict):
    """The moment just before the first row that differs was made."""

    run: str
    operator: str | None
    moment: MomentData
