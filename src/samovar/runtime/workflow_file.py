"""The workflow in a recording: operators as data, code as pickles by value (and as text where it is available).

Unlike a document for people, it holds everything: live DataFrames (as names of kept inputs) and Columns without a SQL
form (as the text they print, named in `opaque`, so that nobody takes that text for SQL).
"""

from __future__ import annotations

import pickle
from typing import Any, Union

import msgspec

from samovar.errors import RecordingCorrupt, RecordingError, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.code import function_from_code, operator_from_code, with_source
from samovar.graph.operators.base import Op, current_fields
from samovar.graph.workflow import Graph, Workflow
from samovar.record.state_files import PYTHON
from samovar.record.store import History, Recording
from samovar.runtime import pickles
from samovar.runtime.sources.units import Source

__all__ = ["is_code", "read_code", "read_graph", "read_sources", "read_workflow", "write_down"]

_AnyOp: Any = Union[ops.ALL]  # noqa: UP007


def is_code(op: Op) -> bool:
    """Whether an operator runs Python code of the user's."""
    return isinstance(op, ops.Python | ops.Batches)


def write_down(
    recording: Recording, graph: Graph, sources: dict[str, Source], pickled: dict[str, bytes]
) -> None:
    """Keep the workflow, its sources and its code."""
    opaque = [
        n
        for n, op in graph.ops.items()
        if any(getattr(t, "column", None) is not None for t in op.expressions())
    ]
    written = []
    for name, op in graph.ops.items():
        plain = op.with_expressions(tuple(str.__str__(t) for t in op.expressions()))
        if isinstance(plain, ops.Values):
            plain = msgspec.structs.replace(plain, rows=())  # kept as an input
        written.append(msgspec.to_builtins(_with_text(plain, graph.live.get(name))))
    recording.write_json(
        "workflow.json", {"samovar": 1, "name": graph.name, "opaque": opaque, "operators": written}
    )
    recording.write_json("sources.json", {n: msgspec.to_builtins(s) for n, s in sources.items()})
    if pickled:
        (recording.path / "code").mkdir(exist_ok=True)
        for name, body in pickled.items():
            recording.code_path(name).write_bytes(body)


def _with_text(op: Op, live: Any) -> Op:
    """The operator with its code as text beside the pickle, for people; as it is where no text is available."""
    try:
        return with_source(op, live) if isinstance(op, ops.Python | ops.Batches) and not op.code else op
    except WorkflowError:
        return op


def read_graph(recording: Recording) -> Graph:
    """The workflow as it was, without live code. Runs nothing."""
    written = recording.read_json("workflow.json")
    try:
        operators = [msgspec.convert(current_fields(o), _AnyOp) for o in written["operators"]]
    except (msgspec.ValidationError, KeyError) as error:
        raise RecordingCorrupt(f"The workflow of {recording.path} cannot be read: {error}.") from error
    return Graph(written["name"], {o.name: o for o in operators})


def read_workflow(recording: Recording) -> Workflow:
    """The workflow as it was, to look at or to run again."""
    graph = read_graph(recording)
    flow = Workflow(graph.name)
    for op in graph.ops.values():
        flow.add(op)
    return flow


def read_code(recording: Recording, graph: Graph, history: History) -> tuple[Graph, dict[str, bytes]]:
    """The graph with its recorded code loaded, and the pickles. Loading them runs code of the recording.

    Code that another version of Python compiled would crash this one: it is compiled from its text, where there is one.
    """
    opaque = recording.read_json("workflow.json").get("opaque") or []
    if opaque:
        raise RecordingError(
            f"Operators {', '.join(opaque)} use Columns that have no SQL form.",
            hint="Pass the workflow: past.resume(flow=flow).",
        )
    pickled: dict[str, bytes] = {}
    live: dict[str, Any] = {}
    python = _other_python(history)
    for name, op in graph.ops.items():
        if not is_code(op):
            continue
        if python:
            live[name] = _from_text(op, python, history)
            pickled[name] = pickles.by_value(live[name], name)
            continue
        try:
            pickled[name] = recording.read_code(name)
            live[name] = pickle.loads(pickled[name])
        except Exception as error:
            kind = RecordingCorrupt if isinstance(error, RecordingCorrupt) else RecordingError
            raise kind(
                f"The recorded code of operator '{name}' cannot be loaded: {getattr(error, 'message', error)}",
                operator=name,
                hint="Pass the workflow: past.resume(flow=flow).",
            ) from error
    return Graph(graph.name, graph.ops, live), pickled


def _other_python(history: History) -> str:
    """The version of Python that compiled a run's code, such as 3.11, if it is another than this one; else empty."""
    python = ".".join(history.started.python.split(".")[:2]) if history.started is not None else ""
    return python if python.count(".") and python != PYTHON else ""


def _from_text(op: Op, python: str, history: History) -> Any:
    """An operator's code compiled from its text. Raises RecordingError where there is no text."""
    later = any(
        op.name in change.operators for change in history.changes
    )  # modified code is kept without its text
    try:
        if isinstance(op, ops.Python) and op.code and not later:
            return operator_from_code(op)
        if isinstance(op, ops.Batches) and op.code and not later:
            return function_from_code(op)
    except WorkflowError as error:
        raise _compiled(op, python) from error
    raise _compiled(op, python)


def _compiled(op: Op, python: str) -> RecordingError:
    return RecordingError(
        f"The code of operator '{op.name}' was compiled by Python {python} and cannot run in {PYTHON}.",
        operator=op.name,
        hint=f"Use Python {python}, or pass the workflow: past.resume(flow=flow). Results stay readable.",
    )


def read_sources(recording: Recording) -> dict[str, Source]:
    """The sources as they were listed at the start."""
    return {n: msgspec.convert(s, Source) for n, s in recording.read_json("sources.json").items()}
