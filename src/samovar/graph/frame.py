"""`sv.Frame`: PySpark's DataFrame methods over a workflow under construction.

Every method takes the arguments PySpark's method of the same name takes (SQL strings or Columns) plus `name=`, adds an
operator to the workflow and returns the frame of its output. Nothing runs. A function written for a DataFrame that
uses these methods runs on a Frame unchanged.
"""

from __future__ import annotations

import importlib
import re
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, TypeGuard

from samovar.errors import NoEffect, NotAValue, UnsupportedMethod, WorkflowError, did_you_mean
from samovar.graph import operators as ops
from samovar.graph.arguments import column_text, ddl, directed, flat, named, names_of, quoted
from samovar.graph.grouped import GroupedFrame
from samovar.graph.operator import Operator
from samovar.graph.operators.base import Op, expr
from samovar.graph.pyspark_names import FRAME, missing
from samovar.graph.shorthand_methods import Shorthands
from samovar.graph.writer import Writer
from samovar.text import quote_name

if TYPE_CHECKING:
    from samovar.graph.workflow import Workflow

__all__ = ["Frame"]

_SPELLINGS: dict[ops.JoinType, tuple[str, ...]] = {
    "inner": ("inner",),
    "cross": ("cross",),
    "left": ("left", "leftouter", "left_outer"),
    "right": ("right", "rightouter", "right_outer"),
    "full": ("full", "outer", "fullouter", "full_outer"),
    "semi": ("semi", "leftsemi", "left_semi"),
    "anti": ("anti", "leftanti", "left_anti"),
}
_HOW = {spelling: how for how, spellings in _SPELLINGS.items() for spelling in spellings}
"""Join types by PySpark's spellings."""

# why methods and arguments of PySpark's change nothing here
_TASKS = "Spark chooses an epoch's tasks, and each task sees a part of the rows"
_PARTITIONS = "epochs and Spark's adaptive execution choose the partitions"
_COMPUTED_ONCE = "what several operators read is computed once an epoch"

# a text in join(on=...) that has one of these is a SQL condition and not a column's name
_CONDITION = re.compile(r"[=<>()]|\s(?:is|in|like|rlike|between|and|or|not)\s", re.IGNORECASE)


class Frame(Shorthands):
    """The output of one operator of a workflow, with PySpark's DataFrame methods to go on from."""

    def __init__(self, flow: Workflow, name: str) -> None:
        self._flow = flow
        self._name = name

    def __repr__(self) -> str:
        return f"Frame({self._name!r} of workflow {self._flow.name!r})"

    def _add(
        self, op_type: type[Op], name: str | None, *more: Frame, live: Any = None, **fields: Any
    ) -> Frame:
        inputs = (self._name, *(self._flow._own(f) for f in more))
        chosen = name or self._flow.fresh(str(op_type.__struct_config__.tag))
        return self._flow.add(op_type(name=chosen, inputs=inputs, **fields), live=live)

    # --- columns ------------------------------------------------------------------------------------------------

    def select(self, *cols: Any, name: str | None = None) -> Frame:
        """The named columns; `*` stands for all. SQL expressions are for `selectExpr`.

        cols: names or Columns; `explode(...)` gives several rows.

        >>> orders.select("id", "amount").columns
        ['id', 'amount']
        """
        return self._add(ops.Select, name, columns=named(flat(cols)))

    def selectExpr(self, *exprs: Any, name: str | None = None) -> Frame:
        """Columns as SQL expressions.

        exprs: SQL texts, each with its own name (`amount * 2 AS double`).

        >>> orders.selectExpr("id", "amount * 2 AS twice").columns
        ['id', 'twice']
        """
        return self._add(ops.Select, name, columns=tuple(expr(e) for e in flat(exprs)))

    def filter(self, condition: Any, *, name: str | None = None) -> Frame:
        """The rows for which a condition is true.

        condition: SQL text or a Column.

        >>> orders.filter("amount > 100", name="large")
        Frame('large' of workflow 'shop')
        """
        return self._add(ops.Filter, name, condition=expr(condition))

    where = filter

    def withColumn(self, colName: str, col: Any, *, name: str | None = None) -> Frame:
        """Add or replace a column.

        colName: its name. col: SQL text or a Column.

        >>> orders.withColumn("tax", "amount * 0.2").columns
        ['id', 'customer', 'amount', 'tax']
        """
        return self.withColumns({colName: col}, name=name)

    def withColumns(self, colsMap: Mapping[str, Any], *, name: str | None = None) -> Frame:
        """Add or replace several columns; all are computed from the input's columns.

        colsMap: SQL texts or Columns by name.

        >>> orders.withColumns({"tax": "amount * 0.2", "net": "amount * 0.8"}).columns
        ['id', 'customer', 'amount', 'tax', 'net']
        """
        return self._add(ops.WithColumns, name, columns={k: expr(v) for k, v in colsMap.items()})

    def withColumnRenamed(self, existing: str, new: str, *, name: str | None = None) -> Frame:
        """Rename a column.

        existing: its name. new: its new name.

        >>> orders.withColumnRenamed("amount", "paid").columns
        ['id', 'customer', 'paid']
        """
        return self._add(ops.Rename, name, columns={existing: new})

    def withColumnsRenamed(self, colsMap: Mapping[str, str], *, name: str | None = None) -> Frame:
        """Rename several columns.

        colsMap: new names by old ones.

        >>> orders.withColumnsRenamed({"amount": "paid", "customer": "buyer"}).columns
        ['id', 'buyer', 'paid']
        """
        return self._add(ops.Rename, name, columns=dict(colsMap))

    def toDF(self, *cols: str, name: str | None = None) -> Frame:
        """Rename all columns by position.

        >>> orders.toDF("a", "b", "c").columns
        ['a', 'b', 'c']
        """
        return self._add(ops.ToDF, name, names=tuple(cols))

    def drop(self, *cols: Any, name: str | None = None) -> Frame:
        """Remove columns.

        >>> orders.drop("customer").columns
        ['id', 'amount']
        """
        return self._add(ops.Drop, name, columns=tuple(expr(c) for c in cols))

    def alias(self, alias: str, *, name: str | None = None) -> Frame:
        """A name to qualify columns with, for example in a join's condition.

        >>> orders.alias("o").join(customers.alias("c"), "o.customer = c.name").columns
        ['id', 'customer', 'amount', 'name', 'country']
        """
        return self._add(ops.Alias, name, alias=alias)

    # --- nulls and values -----------------------------------------------------------------------------------------

    def dropna(
        self,
        how: str = "any",
        thresh: int | None = None,
        subset: str | Sequence[str] | None = None,
        *,
        name: str | None = None,
    ) -> Frame:
        """Remove rows with nulls.

        how: "any" null, or "all" of them. thresh: the least number of values a row must have, in place of `how`.
        subset: the columns to look at; by default all.

        >>> orders.dropna(subset=["customer"]).columns
        ['id', 'customer', 'amount']
        """
        if how not in ("any", "all"):
            raise WorkflowError(f"Expected how='any' or 'all', got {how!r}.")
        return self._add(ops.DropNa, name, how=how, thresh=thresh, subset=names_of(subset))

    def fillna(
        self, value: Any, subset: str | Sequence[str] | None = None, *, name: str | None = None
    ) -> Frame:
        """Put values in place of nulls.

        value: for all columns of its type, or a mapping by column. subset: the columns to fill; by default all.

        >>> orders.fillna({"customer": "unknown"}).columns
        ['id', 'customer', 'amount']
        """
        filling = dict(value) if isinstance(value, Mapping) else value
        for scalar in filling.values() if isinstance(filling, dict) else (filling,):
            if not isinstance(scalar, bool | int | float | str):
                raise WorkflowError(
                    f"Expected a number, text, boolean or a mapping of these to fill in, got {scalar!r}."
                )
        return self._add(ops.FillNa, name, value=filling, subset=names_of(subset))

    def replace(
        self,
        to_replace: Any,
        value: Any = None,
        subset: str | Sequence[str] | None = None,
        *,
        name: str | None = None,
    ) -> Frame:
        """Put values in place of values.

        to_replace: a value, a list of them, or a mapping from old to new. value: what comes in their place.
        subset: the columns to look at; by default all of the values' type.

        >>> orders.replace({"Bob": "Robert"}, subset="customer").columns
        ['id', 'customer', 'amount']
        """
        if isinstance(to_replace, Mapping):
            pairs = tuple(to_replace.items())
        elif isinstance(to_replace, list | tuple):
            values = value if isinstance(value, list | tuple) else [value] * len(to_replace)
            if len(values) != len(to_replace):
                raise WorkflowError(f"Expected {len(to_replace)} values to put in place, got {len(values)}.")
            pairs = tuple(zip(to_replace, values, strict=True))
        else:
            pairs = ((to_replace, value),)
        return self._add(ops.Replace, name, pairs=pairs, subset=names_of(subset))

    @property
    def na(self) -> _Na:
        """`na.drop`, `na.fill`, `na.replace`, as on a DataFrame.

        >>> orders.na.fill(0.0).columns
        ['id', 'customer', 'amount']
        """
        return _Na(self)

    # --- rows -----------------------------------------------------------------------------------------------------

    def distinct(self, *, name: str | None = None) -> Frame:
        """Each different row once.

        >>> orders.select("customer").distinct().columns
        ['customer']
        """
        return self._add(ops.Distinct, name)

    def dropDuplicates(self, subset: Sequence[str] | None = None, *, name: str | None = None) -> Frame:
        """The first row, in canonical order, for each different value of the subset.

        subset: the columns to compare; by default all.

        >>> orders.dropDuplicates(["customer"]).columns
        ['id', 'customer', 'amount']
        """
        return self._add(ops.DropDuplicates, name, subset=names_of(subset))

    drop_duplicates = dropDuplicates

    def orderBy(self, *cols: Any, ascending: Any = None, name: str | None = None) -> Frame:
        """Order all rows.

        cols: names, Columns, or numbers of columns from 1 on (negative: descending). ascending: a flag, or one for
        each.

        >>> orders.orderBy("amount", ascending=False, name="by amount")
        Frame('by amount' of workflow 'shop')
        """
        keys = [
            directed(self._numbered(abs(c)), c > 0) if _is_number(c) else column_text(c) for c in flat(cols)
        ]
        if not keys:
            raise WorkflowError("Expected at least one column to sort by, got none.")
        if ascending is not None:
            flags = list(ascending) if isinstance(ascending, list | tuple) else [ascending] * len(keys)
            if len(flags) != len(keys):
                raise WorkflowError(f"Expected `ascending` for {len(keys)} columns, got {len(flags)}.")
            keys = [directed(k, bool(flag)) for k, flag in zip(keys, flags, strict=True)]
        return self._add(ops.Sort, name, keys=tuple(keys))

    sort = orderBy

    def limit(self, num: int, *, name: str | None = None) -> Frame:
        """The first rows in canonical order (after a sort: in its order).

        num: how many.

        >>> orders.orderBy("amount").limit(10, name="ten smallest")
        Frame('ten smallest' of workflow 'shop')
        """
        if num < 0:
            raise WorkflowError(f"Expected a limit of 0 or more, got {num}.")
        return self._add(ops.Limit, name, n=num)

    def offset(self, num: int, *, name: str | None = None) -> Frame:
        """All but the first rows in canonical order.

        num: how many to skip.

        >>> orders.offset(10, name="rest")
        Frame('rest' of workflow 'shop')
        """
        if num < 0:
            raise WorkflowError(f"Expected an offset of 0 or more, got {num}.")
        return self._add(ops.Limit, name, offset=num)

    def sample(
        self, withReplacement: Any = None, fraction: Any = None, seed: Any = None, *, name: str | None = None
    ) -> Frame:
        """Keep each row with a probability. Arguments as in PySpark.

        With a seed these are the rows that Spark draws, before the run, as one query; that works behind a source and
        operators that look at one row at a time. Without a seed each row is decided by its place in the source.

        withReplacement: whether a row may be kept twice. fraction: from 0 to 1. seed: a number.

        >>> orders.sample(0.1, name="a tenth")
        Frame('a tenth' of workflow 'shop')
        """
        replacing = withReplacement
        if withReplacement is not None and not isinstance(withReplacement, bool):  # sample(fraction, seed)
            replacing, fraction, seed = None, withReplacement, fraction if fraction is not None else seed
        if replacing and seed is None:
            seed = secrets.randbits(31)  # only Spark can draw a row twice
        if fraction is None or not (float(fraction) >= 0 and (replacing or float(fraction) <= 1)):
            raise WorkflowError(f"Expected a fraction between 0 and 1, got {fraction!r}.")
        number = None if seed is None else int(seed)
        return self._add(ops.Sample, name, fraction=float(fraction), seed=number, replacement=bool(replacing))

    # --- several inputs ---------------------------------------------------------------------------------------------

    def union(self, other: Frame, *, name: str | None = None) -> Frame:
        """All rows of both, columns by position.

        >>> orders.union(orders).columns
        ['id', 'customer', 'amount']
        """
        return self._add(ops.Union, name, other)

    unionAll = union  # noqa: N815

    def unionByName(
        self, other: Frame, allowMissingColumns: bool = False, *, name: str | None = None
    ) -> Frame:
        """All rows of both, columns by name.

        allowMissingColumns: whether a column that one side lacks is filled with nulls.

        >>> orders.unionByName(customers, allowMissingColumns=True).columns
        ['id', 'customer', 'amount', 'name', 'country']
        """
        return self._add(ops.Union, name, other, by_name=True, allow_missing=allowMissingColumns)

    def intersect(self, other: Frame, *, name: str | None = None) -> Frame:
        """Rows that both have, each once.

        >>> orders.select("customer").intersect(customers.select("name")).columns
        ['customer']
        """
        return self._add(ops.SetOperation, name, other, kind_of_set="intersect")

    def intersectAll(self, other: Frame, *, name: str | None = None) -> Frame:
        """Rows that both have, as often as both have them.

        >>> orders.select("customer").intersectAll(customers.select("name")).columns
        ['customer']
        """
        return self._add(ops.SetOperation, name, other, kind_of_set="intersectAll")

    def subtract(self, other: Frame, *, name: str | None = None) -> Frame:
        """Rows that the other frame does not have, each once.

        >>> orders.select("customer").subtract(customers.select("name")).columns
        ['customer']
        """
        return self._add(ops.SetOperation, name, other, kind_of_set="subtract")

    def exceptAll(self, other: Frame, *, name: str | None = None) -> Frame:
        """Rows that the other frame does not have, duplicates counted.

        >>> orders.select("customer").exceptAll(customers.select("name")).columns
        ['customer']
        """
        return self._add(ops.SetOperation, name, other, kind_of_set="exceptAll")

    def join(
        self,
        other: Frame,
        on: Any = None,
        how: str | None = None,
        *,
        build: str | None = None,
        name: str | None = None,
    ) -> Frame:
        """Join with another frame.

        on: a column name, a list of them, a Column, or a SQL condition. how: PySpark's join types; by default "inner".
        build: which side is read whole first, "left" or "right"; by default the smaller one.

        >>> orders.join(customers, "customer = name", "left").columns
        ['id', 'customer', 'amount', 'name', 'country']
        """
        keys = list(on) if isinstance(on, list | tuple) else [] if on is None else [on]
        join_type = _HOW.get((how or ("inner" if keys else "cross")).lower())
        if join_type is None:
            raise WorkflowError(
                f"Expected a join type of {', '.join(sorted(set(_HOW.values())))}, got {how!r}.",
                hint=did_you_mean(how, _HOW),
            )
        if build not in (None, "left", "right"):
            raise WorkflowError(f"Expected build='left' or 'right', got {build!r}.")
        names: tuple[str, ...] | None = None
        condition: str | None = None
        if isinstance(on, str) and _CONDITION.search(on):
            condition = on
        elif keys and all(isinstance(key, str) for key in keys):
            names = tuple(keys)
        elif keys:
            condition = expr(reduce(and_, keys))
        return self._add(ops.Join, name, other, on=names, condition=condition, how=join_type, build=build)

    def crossJoin(self, other: Frame, *, name: str | None = None) -> Frame:
        """Every row with every row.

        >>> orders.crossJoin(customers).columns
        ['id', 'customer', 'amount', 'name', 'country']
        """
        return self._add(ops.Join, name, other, how="cross")

    # --- groups -----------------------------------------------------------------------------------------------------

    def groupBy(self, *cols: Any) -> GroupedFrame:
        """Groups, to be aggregated with `agg`, or with `count`, `sum`, `avg`, `min`, `max`.

        >>> orders.groupBy("customer").agg("sum(amount) AS total").columns
        ['customer', 'total']
        """
        return GroupedFrame(self, self._keys(cols))

    groupby = groupBy

    def cube(self, *cols: Any) -> GroupedFrame:
        """Groups over all subsets of the columns.

        >>> orders.cube("customer", "id").count().columns
        ['customer', 'id', 'count']
        """
        return GroupedFrame(self, self._keys(cols), grouping="cube")

    def rollup(self, *cols: Any) -> GroupedFrame:
        """Groups over all prefixes of the columns.

        >>> orders.rollup("customer", "id").count().columns
        ['customer', 'id', 'count']
        """
        return GroupedFrame(self, self._keys(cols), grouping="rollup")

    def _keys(self, cols: Sequence[Any]) -> tuple[str, ...]:
        return named([self._numbered(c) if _is_number(c) else c for c in flat(cols)])

    def _numbered(self, number: int) -> str:
        """The name, as SQL, of a column given by its number from 1 on, as PySpark counts in sorts and groups."""
        if not _session_is_live():
            raise UnsupportedMethod(
                f"A column by its number ({number}) needs a live Spark session.", hint="Name the column."
            )
        names = self.columns
        if not 1 <= number <= len(names):
            raise WorkflowError(
                f"Expected the number of a column from 1 to {len(names)}, got {number}.",
                hint=f"Columns: {', '.join(names)}.",
            )
        return quote_name(names[number - 1])

    def agg(self, *exprs: Any, name: str | None = None) -> Frame:
        """Aggregates over all rows.

        exprs: Columns, SQL texts, or a mapping of column to function.

        >>> orders.agg("count(*) AS n", "max(amount) AS most").columns
        ['n', 'most']
        """
        return self.groupBy().agg(*exprs, name=name)

    # --- Python -----------------------------------------------------------------------------------------------------

    def apply(
        self,
        operator: Operator,
        *more: Frame,
        by: str | tuple[str, ...] | list[str] | None = None,
        order: ops.Order = "canonical",
        key_partitions: int | None = None,
        name: str | None = None,
    ) -> Frame:
        """A Python operator over this frame, and more of them on ports 1, 2, ...

        operator: an instance of your subclass of `sv.Operator`. by: the columns of the key, for one instance a key
        partition.
        order: "canonical", or "arrival": as tuples come, which is logged. key_partitions: how many `by` makes.

        >>> orders.apply(Highest(), by="customer").columns
        ['customer', 'amount']
        """
        return self._flow.apply(
            operator, self, *more, by=by, order=order, key_partitions=key_partitions, name=name
        )

    def mapInArrow(
        self,
        func: Callable[..., Any],
        schema: Any,
        barrier: bool = False,
        profile: Any = None,
        *,
        name: str | None = None,
    ) -> Frame:
        """A function over iterators of Arrow record batches, without state or order.

        schema: of the batches it yields, as DDL text or a StructType. barrier, profile: have no effect here.

        >>> orders.mapInArrow(lambda batches: batches, "id int, customer string, amount double").columns
        ['id', 'customer', 'amount']
        """
        return self._batches("mapInArrow", "arrow", func, schema, barrier or profile is not None, name)

    def mapInPandas(
        self,
        func: Callable[..., Any],
        schema: Any,
        barrier: bool = False,
        profile: Any = None,
        *,
        name: str | None = None,
    ) -> Frame:
        """A function over iterators of pandas DataFrames, without state or order.

        schema: of the frames it yields, as DDL text or a StructType. barrier, profile: have no effect here.

        >>> orders.mapInPandas(lambda frames: frames, "id int, customer string, amount double").columns
        ['id', 'customer', 'amount']
        """
        return self._batches("mapInPandas", "pandas", func, schema, barrier or profile is not None, name)

    def _batches(
        self, method: str, form: str, func: Callable[..., Any], schema: Any, warn: bool, name: str | None
    ) -> Frame:
        if warn:
            self._without_effect(f"{method}(barrier=, profile=)", _TASKS, stacklevel=4)
        return self._add(ops.Batches, name, live=func, schema=ddl(schema), form=form)

    def transform(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Frame:
        """`func(self, *args, **kwargs)`, for chains.

        >>> orders.transform(lambda frame, least: frame.filter(f"amount > {least}"), 100).columns
        ['id', 'customer', 'amount']
        """
        frame = func(self, *args, **kwargs)
        if not isinstance(frame, Frame):
            raise WorkflowError(f"Expected {func!r} to return a Frame, got {type(frame).__name__}.")
        return frame

    # --- hints that change nothing here -----------------------------------------------------------------------------

    def repartition(self, *_: Any, **__: Any) -> Frame:
        """Accepted with a warning: epochs and Spark's adaptive execution choose the partitions.

        >>> with warnings.catch_warnings(record=True) as caught:
        ...     same = orders.repartition(8)
        >>> same is orders, caught[0].category.__name__
        (True, 'NoEffect')
        """
        return self._without_effect("repartition", _PARTITIONS)

    def coalesce(self, *_: Any, **__: Any) -> Frame:
        """Accepted with a warning, as `repartition`.

        >>> with warnings.catch_warnings(record=True) as caught:
        ...     same = orders.coalesce(1)
        >>> same is orders, caught[0].category.__name__
        (True, 'NoEffect')
        """
        return self._without_effect("coalesce", _PARTITIONS)

    def hint(self, *_: Any, **__: Any) -> Frame:
        """Accepted with a warning; `join(build=...)` chooses the side that is read first.

        >>> with warnings.catch_warnings(record=True) as caught:
        ...     same = orders.hint("broadcast")
        >>> same is orders, caught[0].category.__name__
        (True, 'NoEffect')
        """
        return self._without_effect("hint", "join(build='right') chooses the side that is read whole")

    def cache(self, *_: Any, **__: Any) -> Frame:
        """Accepted with a warning: what several operators read is computed once an epoch.

        >>> with warnings.catch_warnings(record=True) as caught:
        ...     same = orders.cache()
        >>> same is orders, caught[0].category.__name__
        (True, 'NoEffect')
        """
        return self._without_effect("cache", _COMPUTED_ONCE)

    def persist(self, *_: Any, **__: Any) -> Frame:
        """Accepted with a warning, as `cache`.

        >>> with warnings.catch_warnings(record=True) as caught:
        ...     same = orders.persist()
        >>> same is orders, caught[0].category.__name__
        (True, 'NoEffect')
        """
        return self._without_effect("persist", _COMPUTED_ONCE)

    def unpersist(self, *_: Any, **__: Any) -> Frame:
        """Accepted with a warning, as `cache`.

        >>> with warnings.catch_warnings(record=True) as caught:
        ...     same = orders.unpersist()
        >>> same is orders, caught[0].category.__name__
        (True, 'NoEffect')
        """
        return self._without_effect("unpersist", "a Frame keeps nothing in memory")

    def _without_effect(self, method: str, why: str, *, stacklevel: int = 3) -> Frame:
        """This frame, and a warning at the user's line; Python shows it once for each line."""
        called = method if method.endswith(")") else f"{method}()"
        warnings.warn(f"{called} changes nothing on a Frame: {why}.", NoEffect, stacklevel=stacklevel)
        return self

    # --- results ----------------------------------------------------------------------------------------------------

    def sink(self, name: str = "S") -> Frame:
        """Keep the rows in the recording under this name; returns this frame.

        >>> orders.filter("amount > 100", name="over 100").sink("kept")
        Frame('over 100' of workflow 'shop')
        """
        self._add(ops.Sink, name)
        return self

    @property
    def write(self) -> Writer:
        """Write files when the run has ended well, with the names of PySpark's DataFrameWriter.

        >>> orders.write.mode("overwrite").parquet("approved/", name="approved")
        Frame('approved' of workflow 'shop')
        """
        return Writer(self)

    # --- columns by name ----------------------------------------------------------------------------------------------

    @property
    def schema(self) -> Any:
        """The schema (a pyspark StructType); asks Spark, runs no job.

        >>> orders.schema["amount"].dataType.simpleString()
        'double'
        """
        return self._flow.schema_of(self._name)

    @property
    def columns(self) -> list[str]:
        """The column names; asks Spark, runs no job.

        >>> orders.columns
        ['id', 'customer', 'amount']
        """
        return list(self.schema.names)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """Column names with their types; asks Spark, runs no job.

        >>> orders.dtypes
        [('id', 'int'), ('customer', 'string'), ('amount', 'double')]
        """
        return [(f.name, f.dataType.simpleString()) for f in self.schema.fields]

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, str):
            return self._column(item)
        if isinstance(item, list | tuple):
            return self.select(*item)
        if _is_number(item):
            name = self._numbered(item + 1 if item >= 0 else len(self.columns) + 1 + item)
            return self._column(name)
        return self.filter(item)

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "_jdf":  # PySpark's functions that take a DataFrame read this attribute
            raise UnsupportedMethod(
                "A Frame is a plan, not a DataFrame: F.broadcast and spark.sql cannot take it.",
                hint="Leave F.broadcast out: join(build='right') chooses the side that is read whole.",
            )
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        if hasattr(type(self), attribute):  # a property that raised AttributeError: let that error be seen
            return object.__getattribute__(self, attribute)
        columns = self.columns if attribute not in FRAME and _session_is_live() else []
        if attribute in columns:
            return self._column(attribute)
        raise missing(
            "A Frame is a plan and has" if attribute in FRAME else "A Frame has no method and",
            attribute,
            FRAME,
            [*columns, *(m for m in dir(type(self)) if not m.startswith("_"))],
            "Use .apply(YourOperator()) for what has no method here.",
        )

    # --- what a plan is not -------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise NotAValue(
            "A Frame is a plan: it is neither true nor false before it has run.",
            hint="For 'is there a row?' add .limit(1).sink('S'), run, and look at run.result('S').num_rows; "
            "for 'is it set?' write `frame is not None`.",
        )

    def __iter__(self) -> Iterator[Any]:
        raise NotAValue(
            "A Frame is a plan: it has no rows to go through before it has run.",
            hint="Add .sink('S'), run, and go through run.result('S').to_pylist(); "
            "or use .apply(YourOperator()) for Python code on each row. For column.isin(frame) use "
            ".join(frame, on, 'left_semi'). Columns are in frame.columns.",
        )

    def __contains__(self, item: object) -> bool:
        raise NotAValue(
            "A Frame is a plan: what it holds is not known before it has run.",
            hint="For a column write `'amount' in frame.columns`.",
        )

    def __len__(self) -> int:
        raise NotAValue(
            "A Frame is a plan: it has no length before it has run.",
            hint="Add .agg('count(*)').sink('S'), run, and read run.result('S'); "
            "len(frame.columns) is the number of columns.",
        )

    def __dir__(self) -> list[str]:
        return [m for m in super().__dir__() if not m.startswith("_")]

    def _column(self, column: str) -> Any:
        functions = importlib.import_module("pyspark.sql.functions")
        origin = self._origin(column)
        text = f"`{origin}`.{quoted(column)}" if origin else quoted(column)
        try:
            return functions.col(text)
        except (AssertionError, RuntimeError) as error:
            raise WorkflowError(
                f"A Column such as frame[{column!r}] needs a live Spark session.",
                hint="Call sv.spark_session() first, or write the expression as a SQL string.",
            ) from error

    def _origin(self, column: str) -> str | None:
        """The operator (or alias) to qualify a column of this frame by; None when only its name can be used.

        Spark knows a column by the last operator that renamed all of its columns: filters, joins and added columns
        keep the qualifiers of their input.
        """
        name = column.split(".")[0].strip("`").lower()
        at = self._flow._ops[self._name].plain()
        while True:
            up = at.inputs[0] if at.inputs else ""
            match at:
                case ops.Filter() | ops.Limit() | ops.Sample() | ops.DropNa() | ops.Drop():
                    pass
                case ops.WithColumns():
                    if name in (c.lower() for c in at.columns):
                        return None
                case ops.Alias():
                    return at.alias
                case ops.Join(how="full"):
                    return at.name
                case ops.Join():
                    side = self._side(at, name)
                    if side is None:
                        return None
                    up = at.inputs[side]
                case _:
                    return at.name
            at = self._flow._ops[up].plain()

    def _side(self, join: ops.Join, name: str) -> int | None:
        """The port of a join that a column of its output comes from; None when it is ambiguous."""
        if join.how in ("semi", "anti"):
            return 0

        def has_it(columns: Sequence[str]) -> bool:
            return name in (column.lower() for column in columns)

        ports = [port for port, up in enumerate(join.inputs) if has_it(self._flow.schema_of(up).names)]
        if len(ports) == 2 and has_it(join.on or ()):
            return 1 if join.how == "right" else 0
        return ports[0] if len(ports) == 1 else None


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _session_is_live() -> bool:
    """Whether a session runs that knows columns: a misspelt method must not start one."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and module.SparkSession.getActiveSession() is not None


class _Na:
    def __init__(self, frame: Frame) -> None:
        self.drop = frame.dropna
        self.fill = frame.fillna
        self.replace = frame.replace
