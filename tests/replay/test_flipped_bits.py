"""One flipped bit in any file of a recording is told, with the file's name, when it is used: never a wrong answer."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.choice import by_default
from tests.runtime.steered import Gated, numbers, wait_for

import samovar as sv
from samovar.errors import RecordingCorrupt
from samovar.replay.trace.leaves import Leaves
from samovar.runtime.epochs import checkpoint_policy

FLIPS = 100
"""In the slow run, over all kinds; the default run has one of each kind."""


class Running(sv.Operator):
    """A running total; refuses one tuple, if it is told so."""

    output = "x bigint, key string, total bigint"
    total: Any = sv.ValueState(0)
    last = sv.MapState()

    def __init__(self, refused: int = -1) -> None:
        self.refused = refused

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any]]:
        if row["x"] == self.refused:
            raise ValueError("not this one")
        self.total += row["x"]
        self.last[row["key"]] = row["x"]
        yield {"x": row["x"], "key": row["key"], "total": self.total}


class Other(Gated):
    """Code to go over to."""


@dataclass(frozen=True)
class Kind:
    """Files of one kind: where they lie, in which recording, and what uses them."""

    recording: str
    pattern: str
    use: Callable[[sv.Past], Any]


def _jump(operator: str, tuples: int) -> Callable[[sv.Past, Path], Any]:
    return lambda past: past.jump(operator, tuples=tuples).state(operator)


KINDS = {
    "log": Kind("main", "log.jsonl", lambda past: past.history),
    "workflow": Kind("main", "workflow.json", lambda past: past.workflow.graph().ops),
    "sources": Kind("main", "sources.json", _jump("R", 3)),
    "code": Kind("main", "code/R.pkl", _jump("R", 3)),
    "inputs": Kind("main", "inputs/*/*.parquet", _jump("R", 3)),
    "results": Kind("main", "epochs/*/results/S/*.parquet", lambda past: past.result("S")),
    "deltas": Kind("main", "epochs/000000-*/deltas/A/*.parquet", lambda past: past.jump().state("A")),
    "stash": Kind("main", "epochs/000000-*/stash/V/*.parquet", _jump("W", 7)),
    "states": Kind("main", "epochs/000000-*/state/R/*.delta", _jump("R", 230)),
    "marks": Kind("main", "epochs/000000-*/state/R/*.mark0001", _jump("R", 110)),
    "rejected": Kind("parsed", "epochs/*/rejected/*/*.parquet", lambda past: past.rejected("lines")),
    "decisions": Kind("decided", "epochs/*/decisions/*", lambda past: past.rejected("R")),
    "switches": Kind("switched", "epochs/*/switches/*", lambda past: past.jump("G", tuples=9).state("G")),
    "later code": Kind("switched", "code/G.1.pkl", lambda past: past.jump("G", tuples=29).state("G")),
    "arrival": Kind("arrived", "epochs/*/state/R/arrival-0.arrow", _jump("R", 7)),
}
NO_CONTENT = {"LOCK", "_SUCCESS"}
"""Files without bytes: their names say it all."""


@pytest.fixture(scope="module")
def recorded(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """The path of a recording by name, which is made when the first test asks for it."""
    base = tmp_path_factory.mktemp("flips")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint_policy, "EVERY", 50)
        patch.setattr(Leaves, "smallest", 3)
        yield functools.cache(lambda name: RECORDINGS[name](spark, base / name))


def _rows(folder: Path, rows: int = 120) -> str:
    (folder / "in").mkdir(parents=True)
    for i in range(2):
        xs = range(i * rows, (i + 1) * rows)
        pq.write_table(pa.table({"x": xs, "key": [f"k{x % 5}" for x in xs]}), folder / "in" / f"{i}.parquet")
    return str(folder / "in")


def _main(spark: Any, folder: Path) -> Path:
    flow = sv.Workflow("main")
    rates = flow.values("key string, f bigint", [(f"k{i}", i) for i in range(5)], name="rates")
    rows = flow.read.parquet(_rows(folder), name="rows").join(rates, "key", name="joined")
    made = rows.apply(Running(), name="R")
    made.sink("S")
    made.groupBy("key").agg("sum(total) AS total", name="A").sink("T")
    made.withColumn("luck", "rand()", name="V").filter("luck >= 0", name="W").sink("U")
    file = max(
        path.stat().st_size for path in (folder / "in").iterdir()
    )  # an epoch a file, with marks inside
    run = flow.run(
        spark=spark, record=folder / "runs", epoch_bytes=file, marks="every", progress=False, run_id="main"
    )
    return Path(str(run.recording))


def _parsed(spark: Any, folder: Path) -> Path:
    folder.mkdir()
    (folder / "lines.csv").write_text("n,m\n1,2\nthree,4\n5,6\n")
    flow = sv.Workflow("parsed")
    flow.read.csv(str(folder / "lines.csv"), schema="n bigint, m bigint", header=True, name="lines").sink("S")
    return Path(str(flow.run(spark=spark, record=folder / "runs", progress=False).recording))


def _decided(spark: Any, folder: Path) -> Path:
    flow = sv.Workflow("decided")
    flow.read.parquet(_rows(folder, 10), name="rows").apply(Running(refused=7), name="R").sink("S")
    run = flow.start(spark=spark, record=folder / "runs", on_error="hold")
    assert run.wait_until("holding", timeout=60) == "holding", run.error
    run.skip()
    run.wait(60, progress=False)
    return Path(str(run.recording))


def _switched(spark: Any, folder: Path) -> Path:
    flow = sv.Workflow("switched")
    source = numbers(folder, 20, files=2)
    flow.read.parquet(source, name="numbers").apply(Gated(str(folder)), name="G").sink("S")
    run = flow.start(spark=spark, record=folder / "runs", epoch_bytes=1)
    wait_for(folder / "arrived")
    run.modify({"G": Other(str(folder))}, consistency="none")
    (folder / "go").touch()
    run.wait(60, progress=False)
    return Path(str(run.recording))


def _arrived(spark: Any, folder: Path) -> Path:
    flow = sv.Workflow("arrived")
    rows = flow.read.parquet(_rows(folder, 10), name="rows")
    flow.apply(Running(), rows, name="R", order="arrival").sink("S")
    return Path(str(flow.run(spark=spark, record=folder / "runs", progress=False).recording))


RECORDINGS: dict[str, Callable[[Any, Path], Path]] = {
    "main": _main,
    "parsed": _parsed,
    "decided": _decided,
    "switched": _switched,
    "arrived": _arrived,
}


def _use(kind: Kind, path: Path, spark: Any) -> Any:
    past = sv.open(path, spark=spark)
    try:
        return kind.use(past)
    finally:
        past.close()


def _flip_and_use(kind: Kind, path: Path, seed: str, spark: Any) -> None:
    """Flip one bit, use the file, and put the bit back."""
    chance = random.Random(seed)
    file = chance.choice(sorted(p for p in path.glob(kind.pattern) if p.stat().st_size))
    whole = file.read_bytes()
    bit = chance.randrange(8 * len(whole))
    flipped = bytearray(whole)
    flipped[bit // 8] ^= 1 << bit % 8
    file.write_bytes(flipped)
    try:
        with pytest.raises(RecordingCorrupt) as caught:
            _use(kind, path, spark)
    finally:
        file.write_bytes(whole)
    assert file.name in str(caught.value), f"bit {bit} of {file}: {caught.value}"
    assert caught.value.hint


@pytest.mark.parametrize("kind", by_default(KINDS, ["log", "states", "results", "marks"]))
def test_a_flipped_bit_is_told_when_the_file_is_used(
    kind: str, recorded: Callable[[str], Path], spark: Any
) -> None:
    one = KINDS[kind]
    path = recorded(one.recording)
    assert _use(one, path, spark) is not None  # works while the file is whole
    _flip_and_use(one, path, kind, spark)


@pytest.mark.parametrize("name", by_default(RECORDINGS, ["main"]))
def test_no_file_of_a_recording_is_of_a_kind_that_is_not_tested(
    name: str, recorded: Callable[[str], Path]
) -> None:
    path = recorded(name)
    patterns = [k.pattern.replace("000000-*", "*").replace(".mark0001", ".*") for k in KINDS.values()]
    similar = {"epochs/*/state/*/*.*", "epochs/*/results/*/*.parquet", "code/*.pkl"}
    known = {p for pattern in (*patterns, *similar) for p in path.glob(pattern)}
    files = {p for p in path.rglob("*") if p.is_file() and p.name not in NO_CONTENT}
    assert {p.relative_to(path) for p in files - known if not p.name.startswith("ran-")} == set()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_flipped_bits_are_told(recorded: Callable[[str], Path], spark: Any) -> None:
    names = list(KINDS)
    for number in range(FLIPS):
        kind = KINDS[names[number % len(names)]]
        _flip_and_use(kind, recorded(kind.recording), f"flip {number}", spark)
