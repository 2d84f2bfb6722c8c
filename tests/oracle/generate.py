"""Random tables and random programs over them, written once for PySpark's DataFrames and for Frames.

A program is built step by step on DataFrames, whose columns and types say what can come next; each step is kept as a
function of frames and is then applied to Frames as it is. Where a result depends on the order of rows, the plain side
spells the canonical order out: `rid` numbers the rows of all sources as they are read.

Values are chosen so that plain Spark has one answer: doubles are multiples of 0.25, sorts are by all columns.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from tests.oracle.support import write_files

import samovar as sv

__all__ = ["Program", "Step", "random_program", "random_table"]

Row = dict[str, Any]
TYPES: dict[str, pa.DataType] = {
    "rid": pa.int64(),
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.decimal128(12, 2),
    "x": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "t": pa.timestamp("us", tz="UTC"),
    "st": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "arr": pa.list_(pa.int32()),
    "m": pa.map_(pa.string(), pa.int32()),
}


def random_table(rnd: random.Random, rows: int, start: int, columns: Sequence[str]) -> pa.Table:
    """A table of these columns; `rid` counts from `start`."""

    def value(name: str, row: int) -> Any:
        if name == "rid":
            return start + row
        if rnd.random() < 0.2:
            return None
        match name:
            case "i":
                return rnd.randrange(-2, 4)
            case "l":
                return rnd.choice([0, 1, 2, 3, 2**40])
            case "d":
                return decimal.Decimal(rnd.randrange(-300, 300)).scaleb(-2)
            case "x":
                return rnd.choice([0.0, -0.0, 0.25, 1.5, -2.75, 1e6, math.nan, math.inf])
            case "s":
                return rnd.choice(["a", "b", "", "it's", "Ünï", "a b"])
            case "b":
                return rnd.random() < 0.5
            case "day":
                return dt.date(2020, 2, 28) + dt.timedelta(days=rnd.randrange(3))
            case "t":
                return dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=rnd.randrange(4) * 1000)
            case "st":
                return {"a": rnd.choice([None, 1, 2]), "b": rnd.choice([None, "p"])}
            case "arr":
                return [rnd.choice([None, 1, 2]) for _ in range(rnd.randrange(3))]
        return {k: rnd.randrange(3) for k in rnd.sample(["p", "q"], rnd.randrange(3))}

    return pa.table({c: pa.array([value(c, r) for r in range(rows)], TYPES[c]) for c in columns})


@dataclass(frozen=True)
class Step:
    """One call: `plain` on DataFrames, `frame` on Frames; the same function unless order counts."""

    text: str
    inputs: tuple[int, ...]
    plain: Callable[..., Any]
    frame: Callable[..., Any]
    sorted: bool = False


@dataclass
class Program:
    """Sources and steps; the last step's result is the program's."""

    paths: list[str]
    steps: list[Step] = field(default_factory=list)
    plain: list[DataFrame] = field(default_factory=list)
    ordered: list[frozenset[int] | None] = field(default_factory=list)
    """For each frame, the sources it comes from when `rid` still tells the order of its rows."""

    def text(self) -> str:
        """The program as one can read it."""
        lines = [f"f{i} = read({p!r})" for i, p in enumerate(self.paths)]
        for i, step in enumerate(self.steps, len(self.paths)):
            lines.append(f"f{i} = {step.text.format(*(f'f{j}' for j in step.inputs))}")
        return "\n".join(lines)

    @property
    def is_sorted(self) -> bool:
        return bool(self.steps) and self.steps[-1].sorted

    def on_frames(self, flow: sv.Workflow) -> list[sv.Frame]:
        """The same on Frames: one for each source and step."""
        made = [flow.read.parquet(p, name=f"source {i}") for i, p in enumerate(self.paths)]
        for step in self.steps:
            made.append(step.frame(*(made[i] for i in step.inputs)))
        return made

    def add(
        self,
        text: str,
        inputs: Sequence[int],
        call: Callable[..., Any],
        *,
        plain: Callable[..., Any] | None = None,
        ordered: frozenset[int] | None = None,
        is_sorted: bool = False,
    ) -> None:
        step = Step(text, tuple(inputs), plain or call, call, is_sorted)
        made = step.plain(*(self.plain[i] for i in inputs))
        self.steps.append(step)
        self.plain.append(made)
        self.ordered.append(ordered if "rid" in made.columns else None)


# --- steps --------------------------------------------------------------------------------------------------------


def random_program(rnd: random.Random, spark: SparkSession, folder: Path, *, steps: int) -> Program:
    """Two or three small sources in a few files each, and some steps over them."""
    program = Program([])
    start = 0
    for i in range(rnd.choice([1, 2, 2, 3])):
        names = ["rid", *rnd.sample([c for c in TYPES if c != "rid"], rnd.randrange(3, 7))]
        cuts = [rnd.randrange(0, 6) for _ in range(rnd.randrange(1, 4))]
        table = random_table(rnd, sum(cuts), start, names)
        start += 1000
        program.paths.append(write_files(folder / f"t{i}", table, cuts))
        program.plain.append(spark.read.parquet(program.paths[-1]))
        program.ordered.append(frozenset({i}))
    tries = 0
    while len(program.steps) < steps and tries < 20 * steps:
        tries += 1
        with contextlib.suppress(AnalysisException):  # what Spark rejects is not part of the program
            _STEPS[rnd.randrange(len(_STEPS))](rnd, program)
    return program


def _pick(rnd: random.Random, program: Program) -> int:
    """A frame to go on from: mostly the newest."""
    last = len(program.plain) - 1
    return last if rnd.random() < 0.6 else rnd.randrange(last + 1)


def _columns(df: DataFrame, *kinds: str) -> list[str]:
    return [c for c, t in df.dtypes if not kinds or t.startswith(kinds)]


def _quoted(name: str) -> str:
    return f"`{name}`"


_PLAIN = ("int", "bigint", "decimal", "double", "string", "boolean", "date", "timestamp")
_NUMBERS = ("int", "bigint", "decimal", "double")


def _select(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    if rnd.random() < 0.2:
        text = ["*", "1 AS one"]
    else:
        chosen = rnd.sample(df.columns, rnd.randrange(1, len(df.columns) + 1))
        chosen += ["rid"] if "rid" in df.columns and "rid" not in chosen else []
        text = [_quoted(c) for c in chosen]
        structs = [c for c, t in df.dtypes if t == "struct<a:int,b:string>" and c in chosen]
        if structs and not {"a", "b"} & set(df.columns):
            text.append(f"{_quoted(structs[0])}.*")
    names = [t.split(" AS ")[-1].strip("`") for t in text]
    if len(set(names)) < len(names) or ("one" in df.columns and "*" in text):
        return
    program.add(f"{{}}.selectExpr({text})", [at], lambda f: f.selectExpr(*text), ordered=program.ordered[at])


def _with_column(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    name, kind = rnd.choice(df.dtypes)
    q = _quoted(name)
    choices = {
        "int": f"{q} + 1",
        "bigint": f"{q} % 3",
        "double": f"CASE WHEN {q} > 0 THEN {q} * 2 ELSE NULL END",
        "string": f"concat({q}, '-', length({q}))",
        "boolean": f"NOT {q}",
        "date": f"date_add({q}, 1)",
        "timestamp": f"date_trunc('HOUR', {q})",
        "array<int>": f"array_sort({q})",
        "struct<a:int,b:string>": f"named_struct('a', {q}.a, 'b', upper({q}.b))",
        "map<string,int>": f"get(map_keys({q}), 0)",
    }
    if name == "rid" or kind not in choices:
        return
    target = name if rnd.random() < 0.4 and not kind.startswith("map") else f"n{len(program.plain)}"
    text = choices[kind]
    program.add(
        f"{{}}.withColumn({target!r}, expr({text!r}))",
        [at],
        lambda f: f.withColumn(target, F.expr(text)),
        ordered=program.ordered[at],
    )


def _filter(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    name, kind = rnd.choice(df.dtypes)
    q = _quoted(name)
    if kind.startswith(("int", "bigint", "decimal", "double")):
        text = rnd.choice([f"{q} > 0", f"{q} IS NULL OR {q} < 2", f"{q} IN (1, 2, 0.25)"])
    elif kind == "string":
        text = rnd.choice([f"{q} LIKE '%a%'", f"{q} <> 'b'", f"coalesce({q}, 'zz') > 'a'"])
    elif kind == "boolean":
        text = q
    else:
        text = f"{q} IS NOT NULL"
    program.add(f"{{}}.filter({text!r})", [at], lambda f: f.filter(text), ordered=program.ordered[at])


def _nulls(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    plain = _columns(df, *_PLAIN)
    calls: list[tuple[str, Callable[[Any], Any]]] = [
        ("{}.fillna(0)", lambda f: f.fillna(0)),
        ("{}.fillna('none')", lambda f: f.fillna("none")),
        ("{}.fillna(True)", lambda f: f.fillna(True)),
        ("{}.dropna()", lambda f: f.dropna()),
        ("{}.dropna('all')", lambda f: f.dropna("all")),
        ("{}.dropna(thresh=3)", lambda f: f.dropna(thresh=3)),
        ("{}.replace('a', 'A')", lambda f: f.replace("a", "A")),
        ("{}.replace([1, 2], [2, 1])", lambda f: f.replace([1, 2], [2, 1])),
    ]
    if plain:
        chosen = rnd.sample(plain, rnd.randrange(1, len(plain) + 1))
        calls.append((f"{{}}.dropna(subset={chosen})", lambda f: f.dropna(subset=chosen)))
    text, call = rnd.choice(calls)
    if "rid" in df.columns and "replace([1" in text:  # would change the order
        return
    program.add(text, [at], call, ordered=program.ordered[at])


def _names(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    name = rnd.choice(df.columns)
    mark = len(program.plain)
    new = rnd.choice([f"my col {mark}", f"a.b{mark}", f"Upper{mark}", f"count{mark}", f"__x{mark}"])
    match rnd.randrange(3):
        case 0 if name != "rid":
            program.add(
                f"{{}}.withColumnRenamed({name!r}, {new!r})",
                [at],
                lambda f: f.withColumnRenamed(name, new),
                ordered=program.ordered[at],
            )
        case 1 if name != "rid" and len(df.columns) > 1:
            program.add(f"{{}}.drop({name!r})", [at], lambda f: f.drop(name), ordered=program.ordered[at])
        case 2:
            names = [f"{c}_{mark}" if c != "rid" else c for c in df.columns]
            program.add(f"{{}}.toDF(*{names})", [at], lambda f: f.toDF(*names), ordered=program.ordered[at])


def _explode(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    arrays = _columns(program.plain[at], "array<int>")
    if not arrays:
        return
    name, outer, new = arrays[0], rnd.random() < 0.5, f"e{len(program.plain)}"
    function = F.explode_outer if outer else F.explode
    program.add(
        f"{{}}.withColumn({new!r}, {function.__name__}({name!r}))",
        [at],
        lambda f: f.withColumn(new, function(F.col(_quoted(name)))),
    )


def _union(rnd: random.Random, program: Program) -> None:
    one, two = _pick(rnd, program), rnd.randrange(len(program.plain))
    types = dict(program.plain[two].dtypes)
    common = [c for c, t in program.plain[one].dtypes if types.get(c) == t]
    a, b = program.ordered[one], program.ordered[two]
    ordered = a | b if a is not None and b is not None and not a & b and "rid" in common else None
    if rnd.random() < 0.5 and all(types.get(c, t) == t for c, t in program.plain[one].dtypes):
        program.add(
            "{}.unionByName({}, allowMissingColumns=True)",
            [one, two],
            lambda f, g: f.unionByName(g, allowMissingColumns=True),
            ordered=ordered,
        )
    elif common:
        program.add(
            f"{{}}.select({common}).union({{}}.select({common}))",
            [one, two],
            lambda f, g: f.select(*map(_quoted, common)).union(g.select(*map(_quoted, common))),
            ordered=ordered,
        )


def _set_operation(rnd: random.Random, program: Program) -> None:
    one, two = _pick(rnd, program), rnd.randrange(len(program.plain))
    types = dict(program.plain[two].dtypes)
    common = [c for c, t in program.plain[one].dtypes if types.get(c) == t and "map" not in t and c != "rid"]
    if not common:
        return
    method = rnd.choice(["intersect", "intersectAll", "subtract", "exceptAll"])
    program.add(
        f"{{}}.select({common}).{method}({{}}.select({common}))",
        [one, two],
        lambda f, g: getattr(f.select(*map(_quoted, common)), method)(g.select(*map(_quoted, common))),
    )


def _join(rnd: random.Random, program: Program) -> None:
    one, two = _pick(rnd, program), rnd.randrange(len(program.plain))
    left, right = program.plain[one], program.plain[two]
    how = rnd.choice(["inner", "left", "right", "full", "left_semi", "left_anti", "cross"])
    mark = f"r{len(program.plain)}_"
    types = dict(left.dtypes)
    keys = [c for c, t in right.dtypes if types.get(c) == t and "map" not in t and c != "rid"]
    if how == "cross":
        renamed = {c: mark + c for c in right.columns}
        program.add(
            "{}.limit-free crossJoin({} renamed)",
            [one, two],
            lambda f, g: f.crossJoin(g.withColumnsRenamed(renamed)),
        )
        return
    if not keys:
        return
    key = rnd.choice(keys)
    if rnd.random() < 0.5:
        renamed = {c: mark + c for c in right.columns if c != key}
        program.add(
            f"{{}}.join({{}} renamed, {key!r}, {how!r})",
            [one, two],
            lambda f, g: f.join(g.withColumnsRenamed(renamed), _bare(key), how),
        )
        return
    renamed = {c: mark + c for c in right.columns}
    text = (
        f"{_quoted(key)} <=> {_quoted(mark + key)}"
        if rnd.random() < 0.3
        else f"{_quoted(key)} = {_quoted(mark + key)}"
    )
    others = [c for c, t in right.dtypes if t in ("int", "bigint") and c in types and types[c] == t]
    if others and rnd.random() < 0.5:
        text += f" AND {_quoted(others[0])} >= {_quoted(mark + others[0])}"
    program.add(
        f"{{}}.join({{}} renamed, expr({text!r}), {how!r})",
        [one, two],
        lambda f, g: f.join(g.withColumnsRenamed(renamed), F.expr(text), how),
    )


def _bare(name: str) -> list[str]:
    return [name]


def _qualified_join(rnd: random.Random, program: Program) -> None:
    """As people write it: `a.join(b, a["k"] == b["k"]).drop(b["k"])`, with names on both sides."""
    one, two = _pick(rnd, program), rnd.randrange(len(program.paths))
    left, right = program.plain[one], program.plain[two]
    types = dict(left.dtypes)
    keys = [c for c, t in right.dtypes if types.get(c) == t and "map" not in t and c != "rid"]
    if not keys or (one < len(program.paths) and one == two) or two in _sources_of(program, one):
        return
    key = rnd.choice(keys)
    kept = [key, *[c for c in right.columns if c not in left.columns]]
    how = rnd.choice(["inner", "left"])

    def call(f: Any, g: Any) -> Any:
        small = g.select(*map(_quoted, kept))
        return f.join(small, f[_quoted(key)] == small[_quoted(key)], how).drop(small[_quoted(key)])

    program.add(
        f"a={{}}; b={{}}.select({kept}); a.join(b, a.{key} == b.{key}, {how!r}).drop(b.{key})",
        [one, two],
        call,
    )


def _sources_of(program: Program, at: int) -> set[int]:
    if at < len(program.paths):
        return {at}
    return set().union(*(_sources_of(program, i) for i in program.steps[at - len(program.paths)].inputs))


def _aggregate(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    keys = (
        rnd.sample([c for c, t in df.dtypes if "map" not in t and c != "rid"] or [], rnd.choice([0, 1, 1, 2]))
        if (len(df.columns) > 3)
        else []
    )
    texts = ["count(*) AS n"]
    for number, (name, kind) in enumerate(rnd.sample(df.dtypes, min(len(df.dtypes), rnd.randrange(1, 4)))):
        q = _quoted(name)
        choices = [f"count({q})"]
        if kind.startswith(("int", "bigint", "decimal")):
            choices += [f"sum({q})", f"avg({q})", f"max({q})", f"stddev_samp({q})", f"sum(DISTINCT {q})"]
        if kind.startswith(("int", "bigint", "double")):
            choices += [f"median({q})", f"percentile({q}, 0.25)"]
        if "map" not in kind:
            choices += [f"count(DISTINCT {q})", f"min({q})", f"sort_array(collect_set({q}))"]
        if kind == "boolean":
            choices += [f"bool_and({q})", f"count_if({q})"]
        texts.append(f"{rnd.choice(choices)} AS g{number}")
    texts = [t for t in texts if not ("min(" in t and "array" in t)]
    grouping = rnd.choice(["groupBy", "groupBy", "groupBy", "rollup"]) if keys else "groupBy"
    if len({*keys, *(t.split(" AS ")[-1] for t in texts)}) < len(keys) + len(texts):
        return
    program.add(
        f"{{}}.{grouping}({keys}).agg({texts})",
        [at],
        lambda f: getattr(f, grouping)(*map(_quoted, keys)).agg(*map(F.expr, texts)),
    )


def _pivot(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    strings, numbers = _columns(df, "string"), _columns(df, "int", "bigint")
    values = ["a", "b"]  # they become columns, and must not be called as the key is
    keys = [c for c in _columns(df, "boolean", "date") if c.lower() not in values]
    if not (strings and numbers and keys) or not strings[0].isidentifier():
        return
    program.add(
        f"{{}}.groupBy({keys[0]!r}).pivot({strings[0]!r}, {values}).agg(count)",
        [at],
        lambda f: (
            f.groupBy(_quoted(keys[0])).pivot(strings[0], values).agg(F.expr(f"count({_quoted(numbers[0])})"))
        ),
    )


def _distinct(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    chosen = [c for c, t in df.dtypes if "map" not in t and c != "rid"]
    if not chosen:
        return
    chosen = rnd.sample(chosen, rnd.randrange(1, min(4, len(chosen) + 1)))
    method = rnd.choice(["distinct", "dropDuplicates"])
    program.add(
        f"{{}}.select({chosen}).{method}()",
        [at],
        lambda f: getattr(f.select(*map(_quoted, chosen)), method)(),
    )


def _window(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    order = [_quoted(c) for c, t in df.dtypes if "map" not in t]
    keys = [c for c, t in df.dtypes if "map" not in t and c != "rid"]
    numbers = _columns(df, "int", "bigint")
    if not keys or not numbers:
        return
    key, number, mark = _quoted(rnd.choice(keys)), _quoted(numbers[0]), len(program.plain)

    def call(f: Any) -> Any:
        by = Window.partitionBy(F.col(key))
        return f.withColumn(f"w{mark}", F.sum(F.col(number)).over(by)).select(
            "*", F.row_number().over(by.orderBy(*map(F.col, order))).alias(f"row{mark}")
        )

    program.add(f"{{}} with windows over {key}", [at], call)


def _sort(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    kinds = dict(df.dtypes)
    names = [c for c in df.columns if "map" not in kinds[c]]
    if len(names) < len(df.columns):
        return
    rnd.shuffle(names)
    keys = [
        F.col(_quoted(n)).desc() if rnd.random() < 0.4 else F.col(_quoted(n)).asc_nulls_last() for n in names
    ]
    limit = rnd.choice([None, 0, 3, 8])

    def call(f: Any) -> Any:
        made = f.orderBy(*keys)
        return made if limit is None else made.limit(limit)

    program.add(f"{{}}.orderBy({names}).limit({limit})", [at], call, is_sorted=True)


def _upper(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        values = [None if v is None else f"{v}!" for v in batch.column(0).to_pylist()]
        yield pa.RecordBatch.from_arrays([pa.array(values, pa.string())], names=["u"])


def _upper_pandas(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield pd.DataFrame({"u": [None if v is None else f"{v}!" for v in frame.iloc[:, 0]]})


def _batches(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    strings = _columns(program.plain[at], "string")
    if not strings:
        return
    name = _quoted(strings[0])
    if rnd.random() < 0.5:
        program.add(
            f"{{}}.select({name}).mapInArrow(upper)",
            [at],
            lambda f: f.select(name).mapInArrow(_upper, "u string"),
        )
    else:
        program.add(
            f"{{}}.select({name}).mapInPandas(upper)",
            [at],
            lambda f: f.select(name).mapInPandas(_upper_pandas, "u string"),
        )


# --- where the order of rows counts -------------------------------------------------------------------------------


def _limit(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    if program.ordered[at] is None:
        return
    n, skip = rnd.choice([0, 1, 4, 9]), rnd.choice([0, 0, 2])
    program.add(
        f"{{}}.offset({skip}).limit({n})",
        [at],
        lambda f: f.offset(skip).limit(n) if skip else f.limit(n),
        plain=lambda f: f.orderBy("rid").offset(skip).limit(n),
        ordered=program.ordered[at],
    )


def _first_rows(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    names = [c for c, t in df.dtypes if c != "rid" and t.startswith(_PLAIN)]
    if program.ordered[at] is None or not names:
        return
    subset = rnd.sample(names, min(len(names), rnd.randrange(1, 3)))
    place = Window.partitionBy(*map(_quoted, subset)).orderBy("rid")
    program.add(
        f"{{}}.dropDuplicates({subset})",
        [at],
        lambda f: f.dropDuplicates(subset),
        plain=lambda f: f.withColumn("__n", F.row_number().over(place)).filter("__n = 1").drop("__n"),
    )


def _ends(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    names = [c for c, t in df.dtypes if c != "rid" and "map" not in t]
    if program.ordered[at] is None or len(names) < 2:
        return
    key, name = (_quoted(n) for n in rnd.sample(names, 2))
    exotic = rnd.random() < 0.4
    more = ["median(rid) AS mid"] if exotic else []
    texts = [f"first({name}) AS f", f"last({name}) AS z", f"collect_list({name}) AS every", *more]
    same = [
        f"min_by(struct({name} AS v), rid).v AS f",
        f"max_by(struct({name} AS v), rid).v AS z",
        f"transform(array_sort(filter(collect_list(struct(rid, {name} AS v)), e -> e.v IS NOT NULL), "
        "(p, q) -> CASE WHEN p.rid < q.rid THEN -1 WHEN p.rid > q.rid THEN 1 ELSE 0 END), e -> e.v) AS every",
        *more,
    ]
    program.add(
        f"{{}}.groupBy({key}).agg({texts})",
        [at],
        lambda f: f.groupBy(key).agg(*map(F.expr, texts)),
        plain=lambda f: f.groupBy(key).agg(*map(F.expr, same)),
    )


class Running(sv.Operator):
    """A running count and a weighed sum: sensitive to order. At its end the count."""

    output = "rid bigint, seen int, mix bigint"

    def __init__(self, ends: bool = False) -> None:
        self.seen = 0
        self.mix = 0
        self.ends = ends

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        self.seen += 1
        self.mix = (self.mix * 31 + row["rid"] + (row["v"] or 0)) % 1_000_003
        if row["rid"] % 4 == 3:
            return
        yield None
        for copy in range(1 + row["rid"] % 2):
            yield {"rid": row["rid"], "seen": self.seen + copy, "mix": self.mix}

    def finish(self, port: int = 0) -> Iterator[Row]:
        if self.ends:
            yield {"rid": 10_000_000, "seen": self.seen, "mix": self.mix}


class PerKey(sv.Operator):
    """For each key the number of rows so far; sensitive to the order within a key."""

    output = "rid bigint, v int, nth int"
    counts = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.counts[row["v"]] = self.counts.get(row["v"], 0) + 1
        yield {"rid": row["rid"], "v": row["v"], "nth": self.counts[row["v"]]}


def _run_plainly(operator: sv.Operator, df: DataFrame) -> DataFrame:
    rows = [r.asDict() for r in df.orderBy("rid").collect()]
    made = [m for r in rows for m in (operator.process(r) or ()) if m is not None]
    made += [m for m in (operator.finish() or ()) if m is not None]
    names = [c.split()[0] for c in type(operator).output.split(", ")]
    return df.sparkSession.createDataFrame([tuple(m[n] for n in names) for m in made], type(operator).output)


def _python(rnd: random.Random, program: Program) -> None:
    at = _pick(rnd, program)
    df = program.plain[at]
    numbers = [c for c in _columns(df, "int") if c != "rid"]
    if program.ordered[at] is None or not numbers:
        return
    columns = ["rid", f"{_quoted(numbers[0])} AS v"]
    if rnd.random() < 0.5:
        ends = rnd.random() < 0.5
        program.add(
            f"{{}}.selectExpr({columns}).apply(Running({ends}))",
            [at],
            lambda f: f.selectExpr(*columns).apply(Running(ends)),
            plain=lambda f: _run_plainly(Running(ends), f.selectExpr(*columns)),
        )
    else:
        program.add(
            f"{{}}.selectExpr({columns}).apply(PerKey(), by='v')",
            [at],
            lambda f: f.selectExpr(*columns).apply(PerKey(), by="v", workers=3),
            plain=lambda f: _run_plainly(PerKey(), f.selectExpr(*columns)),
            ordered=program.ordered[at],
        )


_STEPS: tuple[Callable[[random.Random, Program], None], ...] = (
    _select,
    _with_column,
    _filter,
    _nulls,
    _names,
    _explode,
    _union,
    _union,
    _set_operation,
    _join,
    _join,
    _qualified_join,
    _aggregate,
    _aggregate,
    _pivot,
    _distinct,
    _window,
    _sort,
    _batches,
    _limit,
    _first_rows,
    _ends,
    _python,
    _python,
)
