"""A workflow: operators and the edges between them, built by `Frame` methods or read from a document.

Building never runs Spark and needs no Spark session. A `Graph` is frozen; `Workflow` is the notebook in which it is
written. Live objects that are not data (operator instances, functions, DataFrames) are beside the graph in `live`.
"""

from __future__ import annotations

import heapq
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from samovar.errors import (
    CyclicWorkflow,
    DuplicateName,
    UnconnectedPort,
    UnknownName,
    WorkflowError,
    did_you_mean,
)
from samovar.graph import operators as ops
from samovar.graph.arguments import checked_arguments
from samovar.graph.class_check import check_class
from samovar.graph.operator import Operator
from samovar.graph.operator_names import is_name
from samovar.graph.operators.base import Op, column_of, expr
from samovar.graph.subgraph import enabled, up_to
from samovar.graph.values import columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from samovar.graph.frame import Frame
    from samovar.graph.reader import Reader
    from samovar.runtime.run import Run

__all__ = ["Graph", "Workflow", "no_starts"]

Marks = Literal["tau", "every", "none"]
OnError = Literal["fail", "hold"]
OLD_OPTIONS = {"workers": "key_partitions", "checkpoints": "marks", "watch": "interactive"}
"""Options of runs under names they no longer have, for the hint."""


@dataclass(frozen=True)
class Graph:
    """A checked DAG. `ops` maps names to operators in topological order; `live` holds objects that are not data."""

    name: str
    ops: Mapping[str, Op]
    live: Mapping[str, Any] = field(default_factory=dict)

    def consumers(self, name: str) -> list[tuple[str, int]]:
        """(operator, port) pairs fed by an operator, in the order of the workflow."""
        return [(o.name, p) for o in self.ops.values() for p, up in enumerate(o.inputs) if up == name]

    @property
    def sinks(self) -> list[Op]:
        return [o for o in self.ops.values() if isinstance(o, ops.SINKS)]

    @property
    def sources(self) -> list[Op]:
        return [o for o in self.ops.values() if not o.inputs]

    def upstream(self, name: str) -> Iterator[Op]:
        """All operators that feed `name`, directly or not, each once."""
        seen: set[str] = set()
        stack = list(self.ops[name].inputs)
        while stack:
            up = stack.pop()
            if up not in seen:
                seen.add(up)
                yield self.ops[up]
                stack.extend(self.ops[up].inputs)


_no_start: ContextVar[Callable[[Workflow], WorkflowError] | None] = ContextVar("_no_start", default=None)


@contextmanager
def no_starts(problem: Callable[[Workflow], WorkflowError]) -> Iterator[None]:
    """Have `start` and `run` raise inside the block, for example while a file that defines a workflow is imported."""
    token = _no_start.set(problem)
    try:
        yield
    finally:
        _no_start.reset(token)


def _engine() -> Any:
    """The module that runs workflows. Found by name when something runs: this layer works without Spark."""
    return importlib.import_module("samovar.engine")


class Workflow:
    """A named DAG of operators under construction.

    >>> import samovar as sv
    >>> flow = sv.Workflow("shop")
    >>> orders = flow.values("id int, amount double", [(1, 9.5), (2, 120.0)], name="orders")
    >>> large = orders.filter("amount > 100", name="large").sink("S")
    >>> [op.name for op in flow.graph().ops.values()]
    ['orders', 'large', 'S']
    """

    def __init__(self, name: str) -> None:
        if not is_name(name):
            raise WorkflowError(
                f"Expected a workflow name of letters, digits, '_', '.', '-' or blanks, got {name!r}.",
                hint='Write for example sv.Workflow("fraud").',
            )
        self.name = name
        self._ops: dict[str, Op] = {}
        self._live: dict[str, Any] = {}
        self._schemas: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Workflow({self.name!r}, {len(self._ops)} operators)"

    @classmethod
    def of(cls, name: str, all_ops: Iterable[Op], live: Mapping[str, Any] | None = None) -> Workflow:
        """A workflow of ready operators in any order. Names, edges and ports are checked; a sink may be missing yet.

        all_ops: the operators. live: objects that are not data (operator instances, functions, DataFrames), by
        operator.

        >>> sv.Workflow.of("copy", flow.graph().ops.values())
        Workflow('copy', 3 operators)
        """
        flow = cls(name)
        for op in all_ops:
            check_name(op, flow._ops)
            flow._ops[op.name] = op
        check_edges(flow._ops)
        flow._live.update(live or {})
        return flow

    # --- building ---------------------------------------------------------------------------------------------

    @property
    def read(self) -> Reader:
        """Sources with PySpark's names.

        >>> flow.read.format("csv").option("header", True).load("orders.csv", name="file")
        Frame('file' of workflow 'shop')
        """
        from samovar.graph.reader import Reader

        return Reader(self)

    def values(self, schema: str, rows: Any, *, name: str | None = None) -> Frame:
        """A source of rows given here.

        schema: DDL text. rows: tuples in the schema's order, or mappings.

        >>> flow.values("n int", [(1,), {"n": 2}], name="numbers")
        Frame('numbers' of workflow 'shop')
        """
        chosen = name or self.fresh("values")
        names = [column for column, _ in columns(schema)]
        checked_rows = tuple(row_of(names, row, index, chosen) for index, row in enumerate(rows))
        return self.add(ops.Values(name=chosen, schema=schema, rows=checked_rows))

    def generate(
        self, rows: int, columns: Mapping[str, str], *, seed: int = 0, name: str | None = None
    ) -> Frame:
        """A source of made-up rows.

        rows: how many. columns: SQL by column name, over `id`, `u` (even, 0 to 1) and `z` (bell-shaped). seed: other
        rows.

        >>> flow.generate(1000, {"id": "id", "amount": "u * 100"}, name="made up").columns
        ['id', 'amount']
        """
        chosen = name or self.fresh("generate")
        return self.add(ops.Generate(name=chosen, rows=rows, columns=dict(columns), seed=seed))

    @checked_arguments(**OLD_OPTIONS)
    def apply(
        self,
        operator: Operator,
        *inputs: Frame,
        by: str | tuple[str, ...] | list[str] | None = None,
        order: ops.Order = "canonical",
        key_partitions: int | None = None,
        name: str | None = None,
    ) -> Frame:
        """A Python operator over one or more inputs; port numbers follow the order of the inputs.

        operator: an instance of your subclass of `sv.Operator`. inputs: frames of this workflow.
        by: the columns of the key, for one instance a key partition. order: "canonical", or "arrival": as tuples come,
        which is logged. key_partitions: how many `by` makes; by default twice the cores.

        >>> flow.apply(Highest(), orders, by="customer", name="H").columns
        ['customer', 'amount']
        """
        if isinstance(operator, type) and issubclass(operator, Operator):
            raise WorkflowError(
                f"Expected an operator instance, got the class {operator.__name__}.",
                hint=f"Write {operator.__name__}() with its parameters.",
            )
        if not isinstance(operator, Operator):
            raise WorkflowError(
                f"Expected an instance of sv.Operator, got {type(operator).__name__}.",
                hint="Derive your class from sv.Operator, or use mapInArrow / mapInPandas for a plain function.",
            )
        if not type(operator).output.strip():
            raise WorkflowError(
                f"Operator class {type(operator).__name__} has no `output`.",
                hint='Say what rows it gives: output = "customer string, amount double".',
            )
        if order not in ("canonical", "arrival"):
            raise WorkflowError(f"Expected order='canonical' or 'arrival', got {order!r}.")
        chosen = name or self.fresh(type(operator).__name__)
        check_class(operator, chosen)
        keys = (by,) if by is not None and not isinstance(by, tuple | list) else tuple(by or ())
        op = ops.Python(
            name=chosen,
            inputs=tuple(self._own(f) for f in inputs),
            class_name=type(operator).__name__,
            by=tuple(expr(k) for k in keys),
            order=order,
            key_partitions=key_partitions,
        )
        return self.add(op, live=operator)

    def add(self, op: Op, *, live: Any = None) -> Frame:
        """Add an operator whose inputs are already there; the general form behind all Frame methods.

        op: the operator as data. live: its instance, function or DataFrame.

        >>> from samovar.graph import operators as ops
        >>> flow.add(ops.Filter(name="F", inputs=("orders",), condition="amount > 100"))
        Frame('F' of workflow 'shop')
        """
        from samovar.graph.frame import Frame

        check_name(op, self._ops)
        for up in op.inputs:
            self._check_known(up)
        self._ops[op.name] = op
        if live is not None:
            self._live[op.name] = live
        return Frame(self, op.name)

    def fresh(self, kind: str) -> str:
        """A name no operator has yet: `filter_1`, `filter_2`, ...

        kind: what it begins with.

        >>> flow.fresh("clean")
        'clean_1'
        """
        while True:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            name = f"{kind}_{self._counts[kind]}"
            if name not in self._ops:
                return name

    def frame(self, name: str) -> Frame:
        """The frame of an operator by name.

        >>> flow.frame("orders") is orders, flow.frame("orders").columns
        (False, ['id', 'customer', 'amount'])
        """
        from samovar.graph.frame import Frame

        self._check_known(name)
        return Frame(self, name)

    def _check_known(self, name: str) -> None:
        if name not in self._ops:
            raise UnknownName(name, self._ops)

    def _own(self, frame: Frame) -> str:
        if getattr(frame, "_flow", None) is not self:
            raise WorkflowError(
                f"Expected a frame of workflow '{self.name}', got {frame!r}.",
                hint="Both sides must come from the same sv.Workflow; bring a DataFrame in with flow.read.frame(df).",
            )
        return frame._name

    def up_to(self, name: str) -> Workflow:
        """A workflow of an operator and what leads to it, ending in a sink `<name>_result` unless it is one itself.

        >>> list(flow.up_to("orders").graph().ops)
        ['orders', 'orders_result']
        """
        return Workflow.of(self.name, up_to(self._ops, name).values(), self._live)

    # --- looking ------------------------------------------------------------------------------------------------

    def graph(self) -> Graph:
        """The checked, frozen graph of what leads to a sink. Raises a WorkflowError when it is not sound.

        >>> list(flow.graph().ops)
        ['orders', 'large', 'S']
        """
        return checked(self.name, self._ops, self._live)

    def to_document(self) -> dict[str, Any]:
        """The workflow as plain data (see docs/reference/document.md). PySpark Columns are turned into SQL text.

        >>> flow.to_document()["operators"][1]["condition"]
        'amount > 100'
        """
        from samovar.graph.document import to_document

        return to_document(self._as_sql())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the workflow as a document: JSON when the path ends in `.json`, else YAML.

        >>> flow.save("shop.yaml")
        """
        from samovar.graph.document import dump

        target = Path(path)
        form: Literal["yaml", "json"] = "json" if target.suffix == ".json" else "yaml"
        target.write_text(dump(self._as_sql(), form, relative_to=target.absolute().parent), encoding="utf-8")

    def _as_sql(self) -> Graph:
        graph = self.graph()
        if all(column_of(text) is None for op in graph.ops.values() for text in op.expressions()):
            return graph
        as_sql: Graph = _engine().as_sql(graph)
        return as_sql

    @classmethod
    def from_document(cls, document: Any) -> Workflow:
        """A workflow from plain data, a JSON or YAML text, or the path of such a file.

        document: the data, the text or the path.

        >>> sv.Workflow.from_document("shop.yaml")
        Workflow('shop', 3 operators)
        """
        from samovar.graph.document import load

        return load(document)

    # --- running ------------------------------------------------------------------------------------------------

    @checked_arguments(**OLD_OPTIONS)
    def start(
        self,
        *,
        spark: SparkSession | None = None,
        record: str | os.PathLike[str] | bool = "runs",
        tau: float = 2.0,
        marks: Marks = "tau",
        on_error: OnError = "fail",
        master: str | None = None,
        conf: dict[str, str] | None = None,
        epoch_bytes: int | None = None,
        interactive: bool | None = None,
        key_partitions: int | None = None,
        run_id: str | None = None,
    ) -> Run:
        """Start a run and return it at once.

        Problems of the workflow and its sources are raised here; what happens later is raised by `wait` and `result`.

        spark: a session to use; it is left running. master, conf: the Spark to start if there is no session yet.
        record: the folder recordings go to; False leaves none.
        tau: the seconds that a jump into an epoch may take. marks: how often the state of Python operators is
            kept inside an epoch for it: "tau": as that needs; "every": every thousand tuples; "none": not at all.
        on_error: "fail" ends the run at a tuple that a Python operator raises on; "hold" stops it there until a person
            decides (`run.held`).
        epoch_bytes: the input an epoch takes; by default as much as takes two seconds.
        interactive: whether a person watches, so that it takes one second; by default while a display is drawn.
        key_partitions: how many key partitions operators with `by=` have; by default twice the cores.
        run_id: the run's name; by default made of the workflow's name and the time.

        >>> flow = sv.Workflow("few")
        >>> kept = flow.values("n int", [(1,), (2,)], name="numbers").sink("S")
        >>> run = flow.start(record=False)
        >>> run.result("S").num_rows
        2
        """
        return self._start({k: v for k, v in locals().items() if k != "self"})

    @checked_arguments(**OLD_OPTIONS)
    def run(
        self,
        *,
        progress: bool | None = None,
        spark: SparkSession | None = None,
        record: str | os.PathLike[str] | bool = "runs",
        tau: float = 2.0,
        marks: Marks = "tau",
        on_error: OnError = "fail",
        master: str | None = None,
        conf: dict[str, str] | None = None,
        epoch_bytes: int | None = None,
        interactive: bool | None = None,
        key_partitions: int | None = None,
        run_id: str | None = None,
    ) -> Run:
        """Start a run, wait for its end and return it. Options as for `start`.

        progress: whether a progress bar is drawn; by default on a terminal.

        >>> flow = sv.Workflow("few")
        >>> kept = flow.values("n int", [(1,), (2,)], name="numbers").filter("n > 1").sink("S")
        >>> flow.run(record=False).result("S").to_pylist()
        [{'n': 2}]
        """
        options = {k: v for k, v in locals().items() if k not in ("self", "progress")}
        return self._start(options).wait(progress=progress)

    def _start(self, options: dict[str, Any]) -> Run:
        problem = _no_start.get()
        if problem is not None:
            raise problem(self)
        run: Run = _engine().start(self, **options)
        return run

    def schema_of(self, name: str) -> Any:
        """The schema of an operator's output (a pyspark StructType); asks Spark once, runs no job.

        >>> flow.schema_of("orders").names
        ['id', 'customer', 'amount']
        """
        if name not in self._schemas:
            self._schemas[name] = _engine().schema(self, name)
        return self._schemas[name]


def checked(name: str, all_ops: Mapping[str, Op], live: Mapping[str, Any]) -> Graph:
    """Check names, ports and acyclicity; keep what leads to a sink, in topological order."""
    check_edges(all_ops)
    all_ops = enabled(all_ops)
    order = check_edges(all_ops)
    needed: set[str] = set()
    for op_name in reversed(order):
        if isinstance(all_ops[op_name], ops.SINKS) or op_name in needed:
            needed.update((op_name, *all_ops[op_name].inputs))
    if not needed:
        raise WorkflowError(
            f"Workflow '{name}' has no sink: nothing would be kept.",
            hint='End it with .sink("S") (kept in the recording) or .write.parquet("path/").',
        )
    kept = {n: all_ops[n] for n in order if n in needed}
    return Graph(name, kept, {n: live[n] for n in kept if n in live})


def check_name(op: Op, known: Mapping[str, Op]) -> None:
    """Raise unless the operator's name is well formed and not among the known ones."""
    if not is_name(op.name):
        raise WorkflowError(
            f"Expected an operator name of letters, digits, '_', '.', '-' or blanks, got {op.name!r}.",
            hint="A name starts with a letter or '_': for example name=\"large_orders\".",
        )
    if op.name in known:
        raise DuplicateName(
            f"The workflow already has an operator '{op.name}' ({known[op.name].kind}).",
            hint=f"Give one of them another name, for example '{op.name}_2'.",
            operator=op.name,
        )


def check_edges(all_ops: Mapping[str, Op]) -> list[str]:
    """The names in topological order, the given order where it is one; raises when inputs, ports or edges are wrong."""
    for op in all_ops.values():
        for up in op.inputs:
            if up not in all_ops:
                raise UnknownName(up, all_ops, what=f"an operator to feed '{op.name}'")
        low, high = type(op).ports
        fits = low <= len(op.inputs) and (high is None or len(op.inputs) <= high)
        if not fits and op.enabled:  # a disabled operator may lack its edges
            expected = f"{low}" if low == high else f"{low} or more" if high is None else f"{low} to {high}"
            raise UnconnectedPort(
                f"Operator '{op.name}' ({op.kind}) has {expected} input port(s), {len(op.inputs)} connected.",
                hint="Connect each port to one operator (`inputs` in a document)."
                if high != 0
                else "A source has no inputs: leave them out.",
                operator=op.name,
            )
        for up in op.inputs:
            if isinstance(all_ops[up], ops.SINKS):
                raise WorkflowError(
                    f"Operator '{op.name}' reads from the sink '{up}'.", hint="A sink has no output."
                )
    return _topological(all_ops)


def row_of(names: Sequence[str], row: Any, index: int, operator: str) -> tuple[Any, ...]:
    """A row of a `values` operator as a tuple in the schema's order; rows come as sequences or as mappings."""
    if isinstance(row, Mapping):
        for unknown in (key for key in row if key not in names):
            raise WorkflowError(
                f"Row {index} has no column '{unknown}' to go to; the columns are {', '.join(names)}.",
                hint=did_you_mean(unknown, names),
                operator=operator,
            )
        return tuple(row.get(n) for n in names)
    if isinstance(row, str | bytes) or not isinstance(row, Iterable):
        raise WorkflowError(
            f"Expected row {index} to be a tuple, list or mapping, got {row!r}.",
            hint=f"Write ({row!r},) for a row of one value.",
            operator=operator,
        )
    values = tuple(row)
    if len(values) != len(names):
        raise WorkflowError(
            f"Expected rows of {len(names)} values ({', '.join(names)}), got {values!r} as row {index}.",
            operator=operator,
        )
    return values


def _topological(all_ops: Mapping[str, Op]) -> list[str]:
    rank = {name: i for i, name in enumerate(all_ops)}
    sorter = TopologicalSorter({name: op.inputs for name, op in all_ops.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        raise CyclicWorkflow(
            f"These operators feed each other in a circle: {' -> '.join(error.args[1])}.",
            hint="A workflow is acyclic: remove one of these edges.",
        ) from None
    names = list(all_ops)
    order: list[str] = []
    ready = sorted(rank[name] for name in sorter.get_ready())  # sorted, hence a heap
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        sorter.done(name)
        for freed in sorter.get_ready():
            heapq.heappush(ready, rank[freed])
    return order
