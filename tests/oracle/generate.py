"""Random programs: sources in a few files, and steps over them.

`rid` numbers the rows of all sources as they are read: where a result depends on the order of rows, the plain side
spells the canonical order out (`ordered_steps`).

Values are chosen so that plain Spark has one answer: doubles are multiples of 0.25, sorts are by all columns.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F
from tests.oracle.chance_steps import CHANCE_STEPS
from tests.oracle.ordered_steps import ORDERED_STEPS
from tests.oracle.programs import PLAIN, TYPES, Program, columns_of, pick, quoted, random_table
from tests.oracle.support import write_files

__all__ = ["random_program"]


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


def _select(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    if rnd.random() < 0.2:
        text = ["*", "1 AS one"]
    else:
        chosen = rnd.sample(df.columns, rnd.randrange(1, len(df.columns) + 1))
        chosen += ["rid"] if "rid" in df.columns and "rid" not in chosen else []
        text = [quoted(c) for c in chosen]
        structs = [c for c, t in df.dtypes if t == "struct<a:int,b:string>" and c in chosen]
        if structs and not {"a", "b"} & set(df.columns):
            text.append(f"{quoted(structs[0])}.*")
    names = [t.split(" AS ")[-1].strip("`") for t in text]
    if len(set(names)) < len(names) or ("one" in df.columns and "*" in text):
        return
    program.add(f"{{}}.selectExpr({text})", [at], lambda f: f.selectExpr(*text), ordered=program.ordered[at])


def _with_column(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    name, kind = rnd.choice(df.dtypes)
    q = quoted(name)
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
    at = pick(rnd, program)
    df = program.plain[at]
    name, kind = rnd.choice(df.dtypes)
    q = quoted(name)
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
    at = pick(rnd, program)
    df = program.plain[at]
    plain = columns_of(df, *PLAIN)
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
    at = pick(rnd, program)
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
    at = pick(rnd, program)
    arrays = columns_of(program.plain[at], "array<int>")
    if not arrays:
        return
    name, outer, new = arrays[0], rnd.random() < 0.5, f"e{len(program.plain)}"
    function = F.explode_outer if outer else F.explode
    program.add(
        f"{{}}.withColumn({new!r}, {function.__name__}({name!r}))",
        [at],
        lambda f: f.withColumn(new, function(F.col(quoted(name)))),
    )


def _union(rnd: random.Random, program: Program) -> None:
    one, two = pick(rnd, program), rnd.randrange(len(program.plain))
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
            lambda f, g: f.select(*map(quoted, common)).union(g.select(*map(quoted, common))),
            ordered=ordered,
        )


def _set_operation(rnd: random.Random, program: Program) -> None:
    one, two = pick(rnd, program), rnd.randrange(len(program.plain))
    types = dict(program.plain[two].dtypes)
    common = [c for c, t in program.plain[one].dtypes if types.get(c) == t and "map" not in t and c != "rid"]
    if not common:
        return
    method = rnd.choice(["intersect", "intersectAll", "subtract", "exceptAll"])
    program.add(
        f"{{}}.select({common}).{method}({{}}.select({common}))",
        [one, two],
        lambda f, g: getattr(f.select(*map(quoted, common)), method)(g.select(*map(quoted, common))),
    )


def _join(rnd: random.Random, program: Program) -> None:
    one, two = pick(rnd, program), rnd.randrange(len(program.plain))
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
        f"{quoted(key)} <=> {quoted(mark + key)}"
        if rnd.random() < 0.3
        else f"{quoted(key)} = {quoted(mark + key)}"
    )
    others = [c for c, t in right.dtypes if t in ("int", "bigint") and c in types and types[c] == t]
    if others and rnd.random() < 0.5:
        text += f" AND {quoted(others[0])} >= {quoted(mark + others[0])}"
    program.add(
        f"{{}}.join({{}} renamed, expr({text!r}), {how!r})",
        [one, two],
        lambda f, g: f.join(g.withColumnsRenamed(renamed), F.expr(text), how),
    )


def _bare(name: str) -> list[str]:
    return [name]


def _qualified_join(rnd: random.Random, program: Program) -> None:
    """As people write it: `a.join(b, a["k"] == b["k"]).drop(b["k"])`, with names on both sides."""
    one, two = pick(rnd, program), rnd.randrange(len(program.paths))
    left, right = program.plain[one], program.plain[two]
    types = dict(left.dtypes)
    keys = [c for c, t in right.dtypes if types.get(c) == t and "map" not in t and c != "rid"]
    if not keys or (one < len(program.paths) and one == two) or two in _sources_of(program, one):
        return
    key = rnd.choice(keys)
    kept = [key, *[c for c in right.columns if c not in left.columns]]
    how = rnd.choice(["inner", "left"])

    def call(f: Any, g: Any) -> Any:
        small = g.select(*map(quoted, kept))
        return f.join(small, f[quoted(key)] == small[quoted(key)], how).drop(small[quoted(key)])

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
    at = pick(rnd, program)
    df = program.plain[at]
    keys = (
        rnd.sample([c for c, t in df.dtypes if "map" not in t and c != "rid"] or [], rnd.choice([0, 1, 1, 2]))
        if (len(df.columns) > 3)
        else []
    )
    texts = ["count(*) AS n"]
    for number, (name, kind) in enumerate(rnd.sample(df.dtypes, min(len(df.dtypes), rnd.randrange(1, 4)))):
        q = quoted(name)
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
        lambda f: getattr(f, grouping)(*map(quoted, keys)).agg(*map(F.expr, texts)),
    )


def _pivot(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    strings, numbers = columns_of(df, "string"), columns_of(df, "int", "bigint")
    values = ["a", "b"]  # they become columns, and must not be called as the key is
    keys = [c for c in columns_of(df, "boolean", "date") if c.lower() not in values]
    if not (strings and numbers and keys) or not strings[0].isidentifier():
        return
    program.add(
        f"{{}}.groupBy({keys[0]!r}).pivot({strings[0]!r}, {values}).agg(count)",
        [at],
        lambda f: (
            f.groupBy(quoted(keys[0])).pivot(strings[0], values).agg(F.expr(f"count({quoted(numbers[0])})"))
        ),
    )


def _distinct(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    chosen = [c for c, t in df.dtypes if "map" not in t and c != "rid"]
    if not chosen:
        return
    chosen = rnd.sample(chosen, rnd.randrange(1, min(4, len(chosen) + 1)))
    method = rnd.choice(["distinct", "dropDuplicates"])
    program.add(
        f"{{}}.select({chosen}).{method}()",
        [at],
        lambda f: getattr(f.select(*map(quoted, chosen)), method)(),
    )


def _window(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    order = [quoted(c) for c, t in df.dtypes if "map" not in t]
    keys = [c for c, t in df.dtypes if "map" not in t and c != "rid"]
    numbers = columns_of(df, "int", "bigint")
    if not keys or not numbers:
        return
    key, number, mark = quoted(rnd.choice(keys)), quoted(numbers[0]), len(program.plain)

    def call(f: Any) -> Any:
        by = Window.partitionBy(F.col(key))
        return f.withColumn(f"w{mark}", F.sum(F.col(number)).over(by)).select(
            "*", F.row_number().over(by.orderBy(*map(F.col, order))).alias(f"row{mark}")
        )

    program.add(f"{{}} with windows over {key}", [at], call)


def _sort(rnd: random.Random, program: Program) -> None:
    at = pick(rnd, program)
    df = program.plain[at]
    kinds = dict(df.dtypes)
    names = [c for c in df.columns if "map" not in kinds[c]]
    if len(names) < len(df.columns):
        return
    rnd.shuffle(names)
    keys = [
        F.col(quoted(n)).desc() if rnd.random() < 0.4 else F.col(quoted(n)).asc_nulls_last() for n in names
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
    at = pick(rnd, program)
    strings = columns_of(program.plain[at], "string")
    if not strings:
        return
    name = quoted(strings[0])
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
    *ORDERED_STEPS,
    *CHANCE_STEPS,
)
