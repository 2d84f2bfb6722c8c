"""PySpark's own documentation examples, executed twice: on DataFrames, and on Frames.

Every statement of a docstring is executed as it stands, once with the session and once with a stand-in whose
`createDataFrame`, `range`, `sql`, `table` and `read` give Frames of the same rows. Where a statement looks at rows
(`show`, `collect`, `count` and so on) or shows a frame, the frame becomes a sink, and the rows that Spark had there are
what is expected of it. An action on a Frame returns what it returned on the DataFrame, so that the example goes on.

The workflows of some docstrings are one, since a run has a fixed cost; it is run with one row of each table an epoch
and with everything in one epoch. Executed as a program (`python -m tests.oracle.doctest_frames group --out group.json`)
it writes a report as JSON: that is how a test gets a process whose session is the user's own, made by
`SparkSession.builder` alone.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import importlib
import inspect
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE, assert_same
from tests.spark_profile import TEST_PROFILE

import samovar as sv
from samovar.errors import SamovarError, UnsupportedMethod
from samovar.graph.writer import Writer

ACTIONS = ("show", "collect", "count", "first", "head", "take", "tail", "toPandas", "toArrow")
ACTIONS += ("toLocalIterator", "isEmpty", "printSchema", "explain")
MODES = {"one row an epoch": ONE_FILE, "one epoch": ALL_AT_ONCE}
EPOCHS = 3
"""A table of more rows is cut into so many epochs: enough for rows of a group to be apart."""
TOGETHER = 10
"""Docstrings in one workflow: fewer cost more fixed cost, more make one bad example the trouble of many others."""
LEFT_OUT = {
    "DataFrame.foreach": "has no result",
    "DataFrame.foreachPartition": "has no result",
    "DataFrame.mergeInto": "needs a catalog with tables that can be merged into",
    "DataFrame.observe": "starts a stream",
    "DataFrame.pandas_api": "leaves PySpark's DataFrame for pandas on Spark",
    "DataFrame.plot": "draws",
    "DataFrame.withWatermark": "starts a stream",
    "DataFrame.writeStream": "starts a stream",
    "DataFrame.writeTo": "needs a catalog with tables that can be written to",
}
_ODD_TYPES = re.compile(r"void|interval|variant|\btime\b|geo(graphy|metry)|udt")
"""Types that pyarrow does not write as Spark reads them."""


@dataclass
class Report:
    """What became of the examples of one module. Each entry of a list is a docstring, a statement and what was said."""

    statements: int = 0
    values: int = 0
    """Statements whose plain value (`df.columns`) was the same."""
    compared: dict[str, int] = field(default_factory=dict)
    """Results that were equal, by mode."""
    docstrings: list[str] = field(default_factory=list)
    """Docstrings with at least one result that was equal in every mode."""
    differs: list[list[str]] = field(default_factory=list)
    refused: list[list[str]] = field(default_factory=list)
    """Samovar raised one of its own errors."""
    errors: list[list[str]] = field(default_factory=list)
    """Anything else was raised on Frames."""
    unsupported: dict[str, int] = field(default_factory=dict)
    raises_in_spark: int = 0
    after_a_failure: int = 0
    """Statements that use a name which an earlier one, refused or unsupported, would have set."""


@dataclass
class Look:
    """A look at rows in the execution on DataFrames: what is expected of the Frame, and what the action returned."""

    expected: pa.Table | None
    returned: Any


@dataclass
class Comparison:
    docstring: str
    source: str
    frame: sv.Frame
    expected: pa.Table
    sink: str = ""


@dataclass(frozen=True)
class Statement:
    docstring: str
    number: int
    source: str


class Recorder:
    """Numbers what a statement does, so that both executions can be put beside each other."""

    def __init__(self) -> None:
        self.at: Statement | None = None
        self.counts: Counter[str] = Counter()
        self.depth = 0

    def begin(self, statement: Statement) -> None:
        self.at = statement
        self.counts.clear()

    def key(self, what: str) -> tuple[Any, ...]:
        self.counts[what] += 1
        return (self.at, what, self.counts[what])


class Session:
    """Stands for `spark` in an example: what gives a frame goes through `made`, anything else to the real session."""

    def __init__(self, spark: SparkSession, made: Callable[[Callable[[], DataFrame]], Any]) -> None:
        self._spark = spark
        self._made = made

    def __getattr__(self, name: str) -> Any:
        if name in ("createDataFrame", "range", "table", "sql"):
            return self._giving(getattr(self._spark, name))
        if name == "read":
            return Read(self._spark.read, self._giving)
        return getattr(self._spark, name)

    def _giving(self, method: Callable[..., DataFrame]) -> Callable[..., Any]:
        def give(*arguments: Any, **named: Any) -> Any:
            if any(isinstance(a, sv.Frame) for a in (*arguments, *named.values())):
                raise UnsupportedMethod("Frames cannot be handed to 'spark.sql'.")
            return self._made(lambda: method(*arguments, **named))

        return give


class Read:
    """Stands for `spark.read`."""

    def __init__(self, reader: Any, giving: Callable[..., Any]) -> None:
        self._reader = reader
        self._giving = giving

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._reader, name)
        if name not in ("format", "option", "options", "schema"):
            return self._giving(method)
        return lambda *a, **k: Read(method(*a, **k), self._giving)


class Examples:
    """Executes the examples of a module and reports."""

    def __init__(
        self, spark: SparkSession, folder: Path, modes: Sequence[str], out: Path | None = None
    ) -> None:
        self.out = out
        """The report so far goes there after each workflow."""
        self.spark = spark
        self.folder = folder
        self.modes = modes
        self.report = Report(compared=dict.fromkeys(modes, 0))
        self.recorder = Recorder()
        self.looks: dict[tuple[Any, ...], Look] = {}
        self.tables: dict[tuple[Any, ...], tuple[DataFrame, pa.Table | None]] = {}
        self.comparisons: list[Comparison] = []
        self._patch()

    # --- both executions ----------------------------------------------------------------------------------------

    def run(
        self, examples: Sequence[tuple[str, list[str]]], globs: dict[str, Any], *, first_look: bool
    ) -> None:
        """Execute docstrings (a name and its statements); `first_look`: no further than the first look at rows."""
        settings = dict(self.spark.conf.getAll)
        for number, some in enumerate(_batches(examples, TOGETHER * (3 if first_look else 1))):
            self.looks.clear()
            self.tables.clear()
            self.comparisons.clear()
            done = {name: self._on_spark(name, sources, globs, first_look) for name, sources in some}
            flow = sv.Workflow(f"examples {number}")
            frames = self._sources(flow, self.folder / f"tables-{number}")
            for name, _ in some:
                self._on_frames(name, done[name], globs, frames)
            self._compare(flow)
            self._restore(settings)
            if self.out is not None:
                self.out.write_text(json.dumps(asdict(self.report), indent=1), encoding="utf-8")

    def _restore(self, settings: dict[str, str]) -> None:
        """Settings of the session that an example changed, as they were."""
        for key, value in self.spark.conf.getAll.items():
            if settings.get(key) == value or not self.spark.conf.isModifiable(key):
                continue
            if key in settings:
                self.spark.conf.set(key, settings[key])
            else:
                self.spark.conf.unset(key)

    def _on_spark(
        self, name: str, sources: list[str], globs: dict[str, Any], first_look: bool
    ) -> list[tuple[Statement, Any]]:
        """The statements that Spark executed, each with its value."""

        def made(make: Callable[[], DataFrame]) -> DataFrame:
            df = make()
            self.tables[self.recorder.key("table")] = (df, self._rows(df))
            return df

        space = {**globs, "spark": Session(self.spark, made)}
        done: list[tuple[Statement, Any]] = []
        for number, source in enumerate(sources):
            statement = Statement(name, number, source)
            self.recorder.begin(statement)
            self.report.statements += 1
            try:
                value = _execute(source, space)
                if isinstance(value, DataFrame):
                    self._look(value, None)
            except Exception:
                self.report.raises_in_spark += 1
                continue
            done.append((statement, value))
            if first_look and any(key[0] == statement for key in self.looks):
                break
        return done

    def _rows(self, df: DataFrame) -> pa.Table | None:
        """The rows of a table, at once, since its files may go; None: they cannot be written for Frames to read."""
        self.recorder.depth += 1
        try:
            table = df.toArrow() if _is_plain(df) else None
            return table if table is not None and not _requires_values(table.schema) else None
        finally:
            self.recorder.depth -= 1

    def _on_frames(
        self,
        name: str,
        done: list[tuple[Statement, Any]],
        globs: dict[str, Any],
        frames: dict[tuple[Any, ...], sv.Frame],
    ) -> None:
        def made(_: Callable[[], DataFrame]) -> sv.Frame:
            return frames[self.recorder.key("table")]

        space = {**globs, "spark": Session(self.spark, made)}
        lost: set[str] = set()
        for statement, wanted in done:
            self.recorder.begin(statement)
            targets = _targets(statement.source)
            if lost & _names(statement.source):
                self.report.after_a_failure += 1
                lost |= targets
                continue
            try:
                value = _execute(statement.source, space)
                if isinstance(value, sv.Frame) and isinstance(wanted, DataFrame):
                    self._look_at_frame(value)
                elif isinstance(wanted, list | str | int) and wanted == value:
                    self.report.values += 1
            except Exception as error:
                self._note(statement, error)
                lost |= targets
            else:
                lost -= targets

    def _note(self, at: Statement | Comparison, error: Exception) -> None:
        said = [at.docstring, at.source.strip(), f"{type(error).__name__}: {error}"[:600]]
        if isinstance(error, UnsupportedMethod):
            named = None if at.docstring == "broadcast" else re.search(r"'(\w[\w.]*)'", str(error))
            name = named[1] if named else at.docstring.split(".")[-1]
            self.report.unsupported[name] = self.report.unsupported.get(name, 0) + 1
        elif isinstance(error, SamovarError):
            self.report.refused.append(said)
        else:
            self.report.errors.append(said)

    # --- looks at rows ------------------------------------------------------------------------------------------

    def _patch(self) -> None:
        """Actions of DataFrames are recorded, and Frames have them."""
        cls: Any = importlib.import_module("pyspark.sql.classic.dataframe").DataFrame
        for name in ACTIONS:
            setattr(cls, name, self._recording(name, getattr(cls, name)))
            looks = name not in ("printSchema", "explain")
            act = self._look_at_frame if looks else lambda frame: None
            setattr(sv.Frame, name, lambda frame, *_, act=act, **__: act(frame))
        Writer.save = lambda writer, *_, **__: writer._frame  # type: ignore[method-assign]  # Spark has written it

    def _recording(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def act(df: DataFrame, *arguments: Any, **named: Any) -> Any:
            if self.recorder.depth or self.recorder.at is None:
                return real(df, *arguments, **named)
            self.recorder.depth += 1
            try:
                if name in ("printSchema", "explain"):
                    return None
                return self._look(df, None if name == "show" else real(df, *arguments, **named))
            finally:
                self.recorder.depth -= 1

        return act

    def _look(self, df: DataFrame, returned: Any) -> Any:
        self.recorder.depth += 1
        try:
            expected = _unique(df).toArrow()
        except Exception:
            expected = None  # a type that Arrow does not have
        finally:
            self.recorder.depth -= 1
        self.looks[self.recorder.key("look")] = Look(expected, returned)
        return returned

    def _look_at_frame(self, frame: sv.Frame) -> Any:
        at = self.recorder.at
        look = self.looks.get(self.recorder.key("look"))
        if look is None or at is None:
            raise LookupError("the DataFrame was not looked at here")
        if look.expected is not None:
            self.comparisons.append(Comparison(at.docstring, at.source, frame, look.expected))
        return look.returned

    # --- sources and results ------------------------------------------------------------------------------------

    def _sources(self, flow: sv.Workflow, folder: Path) -> dict[tuple[Any, ...], sv.Frame]:
        """A frame for each table that the examples made.

        All tables are columns of one: an epoch that reads a row of it reads a row of each table, so a run has as many
        epochs as the longest table has rows, and not as many as all tables have together.
        """
        held: list[tuple[DataFrame, pa.Table]] = []
        places: dict[tuple[Any, ...], int | DataFrame] = {}
        self.recorder.at = None
        for key, (df, table) in self.tables.items():
            if table is None or not table.num_rows:
                places[key] = df
                continue
            same = [i for i, (d, t) in enumerate(held) if d.schema == df.schema and t.equals(table)]
            places[key] = same[0] if same else len(held)
            if not same:
                held.append((df, table))
        frames: list[sv.Frame] = []
        if held:
            _write_side_by_side([t for _, t in held], folder)
            all_tables = flow.read.parquet(str(folder), name="tables")
            frames = [
                all_tables.filter(f"t{i} IS NOT NULL", name=f"rows_{i}").select(f"t{i}.*", name=f"table_{i}")
                for i in range(len(held))
            ]
        return {
            key: frames[place] if isinstance(place, int) else flow.read.frame(place)
            for key, place in places.items()
        }

    def _compare(self, flow: sv.Workflow) -> None:
        checked: list[Comparison] = []
        for one in self.comparisons:
            self.recorder.at = None
            try:
                one.sink = f"result_{len(checked)}"
                _unique(one.frame).sink(one.sink)  # asks for its columns, and so has it checked
                checked.append(one)
            except Exception as error:
                flow._ops.pop(one.sink, None)
                self._note(one, error)
        if not checked:
            return
        right: dict[str, list[bool]] = {}
        for mode in self.modes:
            for one, got in self._results(flow, checked, MODES[mode]):
                good = False
                try:
                    if isinstance(got, Exception):
                        raise got
                    sorts = flow._ops[one.frame._name].kind == "sort"
                    assert_same(one.expected, got, ordered=sorts)
                    self.report.compared[mode] += 1
                    good = True
                except AssertionError as difference:
                    self.report.differs.append(
                        [one.docstring, one.source.strip(), f"{mode}: {difference}"[:600]]
                    )
                except Exception as error:
                    self._note(one, error)
                right.setdefault(one.docstring, []).append(good)
        self.report.docstrings += [name for name, all_good in right.items() if all(all_good)]

    def _results(
        self, flow: sv.Workflow, wanted: list[Comparison], epoch_bytes: int
    ) -> Iterator[tuple[Comparison, pa.Table | Exception]]:
        options: dict[str, Any] = {"spark": self.spark, "progress": False, "epoch_bytes": epoch_bytes}
        try:
            run = flow.run(record=self.folder / "runs", **options)
            yield from [(one, run.result(one.sink)) for one in wanted]
        except Exception:  # one of them failed: find out which
            if len(wanted) == 1:
                yield wanted[0], sys.exc_info()[1]  # type: ignore[misc]
                return
            for half in (wanted[: len(wanted) // 2], wanted[len(wanted) // 2 :]):
                names = {one.sink for one in half}
                part = sv.Workflow.of(
                    flow.name,
                    [o for n, o in flow._ops.items() if not n.startswith("result_") or n in names],
                    flow._live,
                )
                yield from self._results(part, half, epoch_bytes)


def _batches(
    examples: Sequence[tuple[str, list[str]]], together: int
) -> Iterator[list[tuple[str, list[str]]]]:
    """Docstrings to be run together; one that changes a setting of the session is alone."""
    waiting: list[tuple[str, list[str]]] = []
    for one in examples:
        if any("conf.set(" in source for source in one[1]):
            yield [one]
            continue
        waiting.append(one)
        if len(waiting) == together:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _execute(source: str, space: dict[str, Any]) -> Any:
    """Execute a statement; the value of its last expression, if it ends with one."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "<example>", "exec"), space)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "<example>", "exec"), space)
    return eval(compile(ast.Expression(last.value), "<example>", "eval"), space)


def _targets(source: str) -> set[str]:
    """The names a statement sets."""
    nodes = ast.walk(ast.parse(source))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _names(source: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)}


def _unique(frame: Any) -> Any:
    """The frame, or one with names by position where names are not unique: a sink needs unique names."""
    names = frame.columns
    if len({n.lower() for n in names}) == len(names):
        return frame
    return frame.toDF(*(f"c{i}" for i in range(len(names))))


def _is_plain(df: DataFrame) -> bool:
    kinds = df.schema.simpleString().lower()
    names = df.columns
    return bool(names) and not _ODD_TYPES.search(kinds) and len({n.lower() for n in names}) == len(names)


def _requires_values(fields: Iterable[pa.Field]) -> bool:
    """Whether a part of a value may not be missing, which a struct that is padded with nulls would not allow."""
    for one in fields:
        inside = [one.type.field(i) for i in range(one.type.num_fields)]
        entries = pa.types.is_map(one.type)  # their keys are never missing
        if not entries and (any(not f.nullable for f in inside) or _requires_values(inside)):
            return True
    return False


def _write_side_by_side(tables: Sequence[pa.Table], folder: Path) -> None:
    """Files that hold a slice of each table, as structs; row n of each table that is short enough is in file n."""
    folder.mkdir(parents=True)
    for place in range(min(EPOCHS, max(t.num_rows for t in tables))):
        columns: list[pa.Array] = []
        slices = [_slice(t, place) for t in tables]
        rows = max(s.num_rows for s in slices)
        for part in slices:
            values = [c.combine_chunks() if c.num_chunks else pa.array([], c.type) for c in part.columns]
            values = [pa.concat_arrays(v.chunks) if isinstance(v, pa.ChunkedArray) else v for v in values]
            array = pa.StructArray.from_arrays(values, fields=[f.with_nullable(True) for f in part.schema])
            padding = pa.nulls(rows - len(array), array.type)
            columns.append(pa.concat_arrays([array, padding]))
        made = pa.table(columns, names=[f"t{i}" for i in range(len(columns))])
        pq.write_table(made, folder / f"part-{place:03d}.parquet")


def _slice(table: pa.Table, place: int) -> pa.Table:
    if table.num_rows <= EPOCHS:
        return table.slice(place, 1)
    step = -(-table.num_rows // EPOCHS)
    return table.slice(place * step, step)


def module_examples(module: str) -> tuple[list[tuple[str, list[str]]], dict[str, Any]]:
    """The docstrings of a module of `pyspark.sql`, each with its statements, and the names its examples may use."""
    loaded = importlib.import_module(f"pyspark.sql.{module}")
    found = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(loaded, module):
        name = test.name.removeprefix(f"{module}.")
        private = any(part.startswith("_") and not part.startswith("__") for part in name.split("."))
        if name not in LEFT_OUT and test.examples and not private:
            found.append((name, _sources_of(test.examples)))
    return found, dict(loaded.__dict__)


def function_examples() -> tuple[list[tuple[str, list[str]]], dict[str, Any]]:
    """Each function of `pyspark.sql.functions` with the statements of its docstring."""
    loaded = importlib.import_module("pyspark.sql.functions.builtin")
    functions = importlib.import_module("pyspark.sql.functions")
    found = []
    for name in sorted(set(functions.__all__)):
        text = inspect.getdoc(getattr(functions, name))
        examples = doctest.DocTestParser().get_examples(text or "")
        if examples:
            found.append((name, _sources_of(examples)))
    return found, dict(loaded.__dict__)


def _sources_of(examples: Sequence[doctest.Example]) -> list[str]:
    return [e.source for e in examples if not e.options.get(doctest.SKIP)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="dataframe, group, column, window or functions")
    parser.add_argument("--every", type=int, default=1, help="only every n-th docstring")
    parser.add_argument("--only", default="", help="only docstrings whose name this expression finds")
    parser.add_argument("--out", type=Path, required=True, help="where the report goes, as JSON")
    parser.add_argument("--mode", action="append", choices=list(MODES))
    chosen = parser.parse_args(arguments)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config(map=TEST_PROFILE)
    spark = builder.config(
        "spark.sql.shuffle.partitions", 2
    ).getOrCreate()  # 200 take their time for ten rows
    functions = chosen.module == "functions"
    found, globs = function_examples() if functions else module_examples(chosen.module)
    found = [one for one in found if re.search(chosen.only, one[0])][:: chosen.every]
    with tempfile.TemporaryDirectory() as folder:
        out = chosen.out.absolute()
        os.chdir(folder)  # examples leave files where they are executed
        examples = Examples(spark, Path(folder), chosen.mode or list(MODES), out)
        examples.run(found, globs, first_look=functions)
        examples.recorder.at = None
        spark.stop()


if __name__ == "__main__":
    main()
