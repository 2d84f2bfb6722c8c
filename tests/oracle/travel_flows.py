"""Random small workflows for time travel, and the same in plain Python: every operator's steps, in canonical order.

`Simulation` runs a workflow row by row without Spark. It knows, for each operator, the tuples it takes one after the
other, which steps each of them comes from, and the operator's state after each. How sources are cut into epochs is
taken from the recording; everything else is computed here.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import samovar as sv
from samovar.replay.state.state_changes import attributes

__all__ = ["FINISH", "Drawn", "Simulation", "Spec", "draw_flow"]

Row = dict[str, Any]
SCHEMA = "id bigint, k int, n bigint, x double"
NAMES = ("id", "k", "n", "x")
FINISH = 1 << 62


# --- operators ------------------------------------------------------------------------------------------------------


class Running(sv.Operator):
    """Per key a sum and the ids seen; gives each row none, one or two times."""

    output = SCHEMA
    sums = sv.MapState()
    seen = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row | None]:
        k = row["k"]
        self.sums[k] = self.sums.get(k, 0) + (row["n"] or 0)
        held = self.seen.setdefault(k, [])
        held.append(row["id"])
        if len(held) > 3:
            del self.seen[k]
        yield None
        for i in range(1 + (row["id"] or 0) % 2):
            yield {**row, "n": self.sums[k] + i}


class Logged(sv.Operator):
    """A list that grows and is cut, by ports; at the end one row for each port."""

    output = SCHEMA
    log = sv.ListState()
    count = sv.ValueState(0)

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.count += 1  # type: ignore[operator, assignment]
        self.log.append((port, row["id"]))
        if len(self.log) == 6:
            del self.log[:3]
        if self.count % 3:
            yield {**row, "n": self.count}

    def finish(self, port: int = 0) -> Iterator[Row]:
        self.log.append((port, "end"))
        yield {"id": 1000 + port, "k": port, "n": self.count, "x": 0.5}


class Plain(sv.Operator):
    """Plain attributes: a number, a dict, a list; one of them comes and goes."""

    output = SCHEMA

    def __init__(self, start: int = 0) -> None:
        self.total = start
        self.by_key: dict[Any, int] = {}
        self.recent: list[Any] = []

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.total += row["n"] or 0
        self.by_key[row["k"]] = self.by_key.get(row["k"], 0) + 1
        self.recent = [*self.recent[-2:], row["id"]]
        if self.total % 2:
            self.odd = row["id"]
        elif hasattr(self, "odd"):
            del self.odd
        yield {**row, "n": self.total}


class Keyed(sv.Operator):
    """By key: maps only, so that its state does not depend on how keys are put together."""

    output = SCHEMA
    sums = sv.MapState()
    last = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        k = row["k"]
        self.sums[k] = self.sums.get(k, 0) + (row["n"] or 0)
        self.last[k] = {"id": row["id"], "port": port}
        yield {**row, "n": self.sums[k]}

    def finish(self, port: int = 0) -> Iterator[Row]:
        for k in list(self.sums):
            self.sums[k] = -1
        return iter(())


class Tally(sv.Operator):
    """Counts what it takes, in whatever order."""

    output = "c bigint"
    counts = sv.MapState()

    def process(self, row: Row, port: int = 0) -> Iterator[Row]:
        self.counts[str(row["k"])] = self.counts.get(str(row["k"]), 0) + 1
        yield {"c": sum(self.counts.values())}


PYTHON: dict[str, Callable[[], sv.Operator]] = {
    "running": Running,
    "logged": Logged,
    "plain": Plain,
    "keyed": Keyed,
    "tally": Tally,
}
FILTERS: list[tuple[str, Callable[[Row], bool]]] = [
    ("n > 2", lambda r: r["n"] is not None and r["n"] > 2),
    ("k IS NOT NULL", lambda r: r["k"] is not None),
    ("pmod(id, 3) <> 1", lambda r: r["id"] is not None and r["id"] % 3 != 1),
]


# --- workflows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """One operator of a random workflow."""

    name: str
    kind: str
    inputs: tuple[str, ...] = ()
    choice: Any = None
    rows: tuple[Row, ...] = ()
    cuts: tuple[int, ...] = ()

    def __str__(self) -> str:
        told = f"{self.name} = {self.kind}({', '.join(self.inputs)}{'' if self.choice is None else f'; {self.choice}'})"
        return told if not self.rows else f"{told}  # {len(self.rows)} rows in files of {self.cuts}"


@dataclass
class Drawn:
    """A random workflow and where its sources lie."""

    specs: dict[str, Spec]
    folder: Path

    def __str__(self) -> str:
        return "\n".join(map(str, self.specs.values()))

    def build(self) -> sv.Workflow:
        flow = sv.Workflow("travel")
        made: dict[str, Any] = {}
        for name, spec in self.specs.items():
            ins = [made[i] for i in spec.inputs]
            match spec.kind:
                case "parquet":
                    made[name] = flow.read.parquet(str(self.folder / name), name=name)
                case "csv":
                    read = flow.read.schema(SCHEMA).option("header", True)
                    made[name] = read.csv(str(self.folder / name), name=name)
                case "dim":
                    made[name] = flow.read.parquet(str(self.folder / name), name=name)
                case "filter":
                    made[name] = ins[0].filter(FILTERS[spec.choice][0], name=name)
                case "map":
                    made[name] = ins[0].withColumn("n", "n + 1", name=name)
                case "explode":
                    copies = "explode(array_repeat(n, cast(pmod(coalesce(n, 0), 3) AS int))) AS n"
                    made[name] = ins[0].selectExpr("id", "k", copies, "x", name=name)
                case "limit":
                    made[name] = ins[0].limit(spec.choice, name=name)
                case "union":
                    made[name] = ins[0].union(ins[1], name=name)
                case "join":
                    made[name] = ins[0].join(ins[1], on="k", how=spec.choice, build="right", name=name)
                case "joined":
                    n = "n" if spec.choice == "semi" else "n + coalesce(w, 0) AS n"
                    made[name] = ins[0].selectExpr("id", "k", n, "x", name=name)
                case "aggregate":
                    made[name] = (
                        ins[0]
                        .groupBy("k")
                        .agg(
                            "sum(n) AS s",
                            "count(*) AS c",
                            "avg(x) AS a",
                            "max(n) AS m",
                            "first(id) AS f",
                            name=name,
                        )
                    )
                case "distinct":
                    made[name] = ins[0].distinct(name=name)
                case "dropDuplicates":
                    made[name] = ins[0].dropDuplicates(["k"], name=name)
                case "sink":
                    ins[0].sink(name)
                case _:
                    more = {"by": "k", "key_partitions": 3} if spec.kind == "keyed" else {}
                    made[name] = ins[0].apply(PYTHON[spec.kind](), *ins[1:], name=name, **more)
        return flow


def draw_flow(rnd: random.Random, folder: Path) -> Drawn:
    """Sources of a few rows, some operators behind them, and sinks at all ends."""
    specs: dict[str, Spec] = {}
    open_ends: list[str] = []
    joinable = False
    for i in range(rnd.choice([1, 1, 2])):
        spec = _source(rnd, f"s{i}", folder)
        specs[spec.name] = spec
        open_ends.append(spec.name)
    if rnd.random() < 0.5:
        rows: list[Row] = [{"k": rnd.choice([None, 0, 1, 2]), "w": rnd.randrange(5)} for _ in range(4)]
        specs["dim"] = Spec("dim", "dim", rows=tuple(rows), cuts=(4,))
        _write(folder / "dim", "parquet", rows, (4,), pa.schema([("k", pa.int32()), ("w", pa.int64())]))
        joinable = True
    kinds = ["filter", "map", "explode", "running", "logged", "plain", "keyed", "union", "limit", "join"]
    last = "s0"
    for i in range(rnd.randrange(2, 6)):
        streams = [n for n, s in specs.items() if s.kind not in ("dim", "join")]
        at = last if rnd.random() < 0.7 else rnd.choice(streams)
        kind = rnd.choice(kinds)
        name = f"{kind}{i}"
        match kind:
            case "filter":
                spec = Spec(name, kind, (at,), rnd.randrange(len(FILTERS)))
            case "limit":
                spec = Spec(name, kind, (at,), rnd.choice([3, 8]))
            case "union":
                spec = Spec(name, kind, (at, rnd.choice(streams)))
            case "join":
                if not joinable:
                    continue
                how = rnd.choice(["inner", "left", "semi"])
                specs[name] = Spec(name, kind, (at, "dim"), how)
                spec = Spec(f"joined{i}", "joined", (name,), how)
            case "logged" | "keyed" if rnd.random() < 0.4:
                spec = Spec(name, kind, (at, rnd.choice(streams)))
            case _:
                spec = Spec(name, kind, (at,))
        specs[spec.name] = last_spec = spec
        last = last_spec.name
    used = {i for s in specs.values() for i in s.inputs}
    for end in [n for n, s in specs.items() if n not in used and s.kind != "dim"]:
        kind = rnd.choice(["sink", "aggregate", "distinct", "dropDuplicates"])
        if kind != "sink":
            specs[f"{kind} {end}"] = Spec(f"{kind} {end}", kind, (end,))
            behind = f"{kind} {end}"
            if rnd.random() < 0.5:
                specs[f"tally {end}"] = Spec(f"tally {end}", "tally", (behind,))
                behind = f"tally {end}"
            specs[f"S {end}"] = Spec(f"S {end}", "sink", (behind,))
        if kind == "sink" or rnd.random() < 0.5:
            specs[f"S2 {end}"] = Spec(f"S2 {end}", "sink", (end,))
    if "dim" in specs and not any("dim" in s.inputs for s in specs.values()):
        del specs["dim"]
    return Drawn(specs, folder)


def _source(rnd: random.Random, name: str, folder: Path) -> Spec:
    kind = rnd.choice(["parquet", "parquet", "csv"])
    cuts = tuple(rnd.randrange(1, 8) for _ in range(rnd.randrange(1, 4)))
    start = 0 if name == "s0" else 100
    rows = [
        {
            "id": start + i,
            "k": rnd.choice([None, 0, 1, 2]),
            "n": rnd.choice([None, 0, 1, 2, 3, 4, 5]),
            "x": rnd.randrange(-8, 8) / 4,
        }
        for i in range(sum(cuts))
    ]
    schema = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("n", pa.int64()), ("x", pa.float64())])
    _write(folder / name, kind, rows, cuts, schema)
    return Spec(name, kind, rows=tuple(rows), cuts=cuts)


def _write(folder: Path, kind: str, rows: Sequence[Row], cuts: Sequence[int], schema: pa.Schema) -> None:
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(list(rows), schema=schema)
    start = 0
    for i, count in enumerate(cuts):
        part = table.slice(start, count)
        if kind == "csv":
            pc.write_csv(part, folder / f"part-{i:03d}.csv")
        else:
            pq.write_table(part, folder / f"part-{i:03d}.parquet")
        start += count


# --- the same in plain Python ---------------------------------------------------------------------------------------

Key = tuple[str, int]


@dataclass(frozen=True)
class Item:
    """A tuple: where it stands in canonical order, its values, and the steps it comes from."""

    at: tuple[int, ...]
    row: Row
    past: frozenset[Key] = frozenset()


@dataclass
class Steps:
    """What one operator did."""

    taken: list[tuple[int, Item]] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)
    """The state before the first step, after each, and after the end of the input."""
    given: int = 0


class Simulation:
    """A whole run. `steps[op]` for operators that work while their input streams.

    `units`: the rows of each unit, of sources whose files are cut into several.
    """

    def __init__(
        self,
        drawn: Drawn,
        epochs: Sequence[Mapping[str, tuple[int, int]]],
        units: Mapping[str, Sequence[int]],
    ) -> None:
        self.specs = {n: replace(s, cuts=tuple(units.get(n, s.cuts))) for n, s in drawn.specs.items()}
        self.rank = {n: i for i, n in enumerate(drawn.specs)}
        self.steps: dict[str, Steps] = {}
        self.results: dict[str, list[Row]] = {}
        self.ended: dict[str, list[Row]] = {}
        self._operators: dict[str, sv.Operator] = {}
        for number, units in enumerate(epochs):
            self._epoch(units, last=number == len(epochs) - 1)
        self._blocking()

    def downstream(self, name: str) -> list[str]:
        """The operators behind one that work while its tuples stream, itself included."""
        found = {name}
        for other, spec in self.specs.items():
            ups = spec.inputs[:1] if spec.kind == "join" else spec.inputs
            if found & set(ups) and other in self.steps:
                found.add(other)
        return [n for n in self.specs if n in found]

    def bounds(self, interesting: str, tuples: int, operator: str) -> tuple[int, int]:
        """How many tuples an operator may have taken when another has processed so many with all that came of them."""
        own = [{n for op, n in item.past if op == interesting} for _, item in self.steps[operator].taken]
        low = max((i + 1 for i, past in enumerate(own) if any(n < tuples for n in past)), default=0)
        high = next(
            (i for i, past in enumerate(own) if i >= low and any(n >= tuples for n in past)), len(own)
        )
        return low, high

    # --- one epoch ---

    def _epoch(self, units: Mapping[str, tuple[int, int]], *, last: bool) -> None:
        flow: dict[str, list[Item]] = {}
        sources = [n for n, s in self.specs.items() if s.kind in ("parquet", "csv", "dim")]
        for name, spec in self.specs.items():
            if spec.kind in ("parquet", "csv", "dim"):
                flow[name] = self._slice(spec, sources.index(name), units.get(name, (0, 0)))
                continue
            if any(i not in flow for i in spec.inputs):
                continue  # behind a blocking operator
            steps = self.steps.setdefault(name, Steps())
            wide = max((len(i.at) for i in flow[spec.inputs[0]]), default=0)
            if len(spec.inputs) > 1:
                wide = max((len(i.at) for up in spec.inputs for i in flow[up]), default=0)
            ports = spec.inputs[:1] if spec.kind == "join" else spec.inputs
            queue = [(p, item) for p, up in enumerate(ports) for item in flow[up]]
            queue.sort(key=lambda pi: ((*pi[1].at, *([-1] * (wide - len(pi[1].at)))), pi[0]))
            made: list[Item] = []
            for port, item in queue:
                past = item.past | {(name, len(steps.taken))}
                here = Item(item.at, item.row, past)
                rows = self._step(spec, port, here)
                steps.taken.append((port, here))
                made += [Item(at, row, past) for at, row in self._placed(spec, port, wide, item.at, rows)]
            if last and spec.kind in PYTHON:
                rows = self._finish(spec)
                end = FINISH + self.rank[name]
                past = frozenset({(name, len(steps.taken))})
                made += [Item((end, i), row, past) for i, row in enumerate(rows)]
            steps.given += len(made)
            if spec.kind not in ("aggregate", "distinct", "dropDuplicates", "sink"):
                flow[name] = made

    def _placed(
        self, spec: Spec, port: int, wide: int, at: tuple[int, ...], rows: Sequence[Row]
    ) -> Iterator[tuple[tuple[int, ...], Row]]:
        """Each output with its position: that of the input, and more where that alone does not tell them apart."""
        if len(spec.inputs) > 1 and spec.kind != "join":
            at = (*at, *([-1] * (wide - len(at))), port)
        for i, row in enumerate(rows):
            if spec.kind in ("explode", *PYTHON):
                yield (*at, i), row
            elif spec.kind == "join":
                yield (*at, *row.pop("at")), row
            else:
                yield at, row

    def _slice(self, spec: Spec, number: int, units: tuple[int, int]) -> list[Item]:
        made: list[Item] = []
        start = 0
        for unit, count in enumerate(spec.cuts):
            if units[0] <= unit < units[1]:
                part = spec.rows[start : start + count]
                made += [Item((number, unit, i), row) for i, row in enumerate(part)]
            start += count
        return made

    def _step(self, spec: Spec, port: int, item: Item) -> list[Row]:
        row, steps = item.row, self.steps[spec.name]
        match spec.kind:
            case "filter":
                return [row] if FILTERS[spec.choice][1](row) else []
            case "map":
                return [{**row, "n": None if row["n"] is None else row["n"] + 1}]
            case "explode":
                return [row] * ((row["n"] or 0) % 3)
            case "limit":
                return [row] if len(steps.taken) < spec.choice else []
            case "union":
                return [row]
            case "join":
                return self._join(spec, row)
            case "joined":
                n = row["n"] if spec.choice == "semi" or row["n"] is None else row["n"] + (row["w"] or 0)
                return [{**{c: row[c] for c in NAMES}, "n": n}]
            case "sink":
                self.results.setdefault(spec.name, []).append(row)
                return []
            case "aggregate" | "distinct" | "dropDuplicates":
                if not steps.states:
                    steps.states.append({})
                steps.states.append(_grouped(spec.kind, steps.states[-1], row))
                return []
        operator = self._operator(spec)
        process: Callable[..., Any] = operator.process
        made = process(copy.deepcopy(row), port) if len(spec.inputs) > 1 else process(copy.deepcopy(row))
        rows = [copy.deepcopy(m) for m in made or () if m is not None]
        steps.states.append(copy.deepcopy(attributes(operator)))
        return rows

    def _operator(self, spec: Spec) -> sv.Operator:
        if spec.name not in self._operators:
            self._operators[spec.name] = made = PYTHON[spec.kind]()
            self.steps[spec.name].states.append(copy.deepcopy(attributes(made)))
        return self._operators[spec.name]

    def _finish(self, spec: Spec) -> list[Row]:
        operator = self._operator(spec)
        finish: Callable[..., Any] = operator.finish
        rows: list[Row] = []
        for port in range(len(spec.inputs)):
            made = finish(port) if len(spec.inputs) > 1 else finish()
            rows += [copy.deepcopy(m) for m in made or () if m is not None]
        self.steps[spec.name].states.append(copy.deepcopy(attributes(operator)))
        return rows

    def _join(self, spec: Spec, row: Row) -> list[Row]:
        sources = [n for n, s in self.specs.items() if s.kind in ("parquet", "csv", "dim")]
        number = sources.index("dim")
        rows = list(enumerate(self.specs["dim"].rows))
        found = [(i, d["w"]) for i, d in rows if d["k"] is not None and d["k"] == row["k"]]
        match spec.choice:
            case "semi":
                return [{**row, "at": (-1, -1)}] if found else []
            case "left" if not found:
                return [{**row, "w": None, "at": (-1, -1)}]
        return [{**row, "w": w, "at": (number, i)} for i, w in found]

    # --- behind blocking operators, where no order is known ---

    def _blocking(self) -> None:
        for name, spec in self.specs.items():
            if spec.kind in ("aggregate", "distinct", "dropDuplicates"):
                steps = self.steps.get(name)
                groups = steps.states[-1] if steps is not None and steps.states else {}
                self.ended[name] = [_shown(spec.kind, key, group) for key, group in groups.items()]
            elif spec.inputs and spec.inputs[0] in self.ended:
                rows = self.ended[spec.inputs[0]]
                if spec.kind == "tally":
                    operator = Tally()
                    self.ended[name] = [m for row in rows for m in operator.process(row)]
                    self._operators[name] = operator
                else:
                    self.results[name] = rows

    def ended_state(self, name: str) -> dict[str, Any]:
        """The state at the end of an operator behind a blocking one."""
        return attributes(self._operators[name])


def _grouped(kind: str, groups: Mapping[Any, Any], row: Row) -> dict[Any, Any]:
    key = tuple(row[c] for c in NAMES) if kind == "distinct" else row["k"]
    old = groups.get(key)
    rows = [*(old["all"] if old else ()), row]
    return {**groups, key: {"all": rows, **_values(kind, rows), "rows": len(rows)}}


def _values(kind: str, rows: Sequence[Row]) -> Row:
    if kind == "distinct":
        return {}
    if kind == "dropDuplicates":
        return dict(rows[0])
    numbers = [r["n"] for r in rows if r["n"] is not None]
    xs = [r["x"] for r in rows if r["x"] is not None]
    return {
        "s": sum(numbers) if numbers else None,
        "c": len(rows),
        "a": sum(xs) / len(xs) if xs else None,
        "m": max(numbers, default=None),
        "f": rows[0]["id"],
    }


def _shown(kind: str, key: Any, group: Row) -> Row:
    if kind == "distinct":
        return dict(zip(NAMES, key, strict=True))
    if kind == "dropDuplicates":
        return {c: group[c] for c in NAMES}
    return {"k": key, **{c: group[c] for c in ("s", "c", "a", "m", "f")}}
