"""Time travel on random workflows: every moment shows what a run over exactly those tuples would have left.

The other way to get the answer is `Simulation`: the same operators in plain Python, row by row in canonical order. At
any moment, however it was reached, an operator's state is the one after as many steps as its counters say.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, currently_in_test_context, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.oracle.support import ALL_AT_ONCE, ONE_FILE
from tests.oracle.travel_flows import PYTHON, Simulation, draw_flow

import samovar as sv
from samovar.replay.state.windows import Windows
from samovar.replay.trace.leaves import Leaves
from samovar.runtime.sources import unit_list
from samovar.runtime.sources.units import Source
from samovar.runtime.workflow_file import read_sources

COMMON = settings(
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
BLOCKING = ("aggregate", "distinct", "dropDuplicates")


@dataclass
class World:
    """A run, its past, and the same run in plain Python."""

    run: Any
    past: Any
    sim: Simulation
    rnd: random.Random

    @property
    def heads(self) -> list[str]:
        """Operators fed straight by one source."""
        specs = self.sim.specs
        return [
            n
            for n, s in specs.items()
            if n in self.sim.steps
            and s.kind not in ("join", "sink")
            and len(s.inputs) == 1
            and specs[s.inputs[0]].kind in ("parquet", "csv")
        ]

    def stateful(self, names: list[str]) -> list[str]:
        return [n for n in names if self.sim.specs[n].kind in (*PYTHON, *BLOCKING)]


@contextmanager
def world(spark: SparkSession, seed: int, window: int | None) -> Iterator[World]:
    rnd = random.Random(seed)
    with (
        tempfile.TemporaryDirectory(prefix="samovar-travel-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        if window is not None:
            patch.setattr(Windows, "size", window)
            patch.setattr(Windows, "margin", max(1, window // 3))
            patch.setattr(Leaves, "smallest", seed % 3)  # else all rows lie in one chunk
        if grain := (0, 3, 2)[seed // 3 % 3]:
            patch.setattr(unit_list, "SMALLEST_GRAIN", grain)
        drawn = draw_flow(rnd, Path(folder) / "data")
        size = rnd.choice([ONE_FILE, ALL_AT_ONCE])
        say = note if currently_in_test_context() else print
        say(
            f"seed {seed}, epochs of {size} bytes, windows of {window}, units of {grain or 'all'} rows\n{drawn}"
        )
        run = drawn.build().run(spark=spark, record=Path(folder) / "runs", epoch_bytes=size, progress=False)
        past = sv.open(run.recording, spark=spark)
        epochs = [e.units for e in past.history.epochs if e.level == 0]
        units = {name: rows for name, rows in map(_units, read_sources(past._recording).values()) if rows}
        yield World(run, past, Simulation(drawn, epochs, units), rnd)
        past.close()


def _units(source: Source) -> tuple[str, list[int]]:
    """The numbers of rows of a source's units; none where its files do not tell them."""
    return source.name, [source.units[n].rows or 0 for n in range(len(source.units))] if source.grain else []


# --- judges ---------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else value


def taken(w: World, m: Any, operator: str) -> int:
    """How many tuples an operator has taken as steps: of a join, those of the side that streams."""
    counted = m.counters[operator].taken if operator in m.counters else ()
    return sum(counted[:1] if w.sim.specs[operator].kind == "join" else counted)


def check_states(w: World, m: Any, names: list[str], *, ends: bool = False) -> None:
    """The state of each operator is the one after as many tuples as it has taken; `ends`: or after its end."""
    for name in w.stateful(names):
        kind = w.sim.specs[name].kind
        states = w.sim.steps[name].states
        count = taken(w, m, name)
        got = {k: plain(v) for k, v in m.state(name).items()}
        if kind in BLOCKING:
            wanted = [
                {
                    "groups": {
                        key: {c: v for c, v in group.items() if c != "all"}
                        for key, group in (states[count] if states else {}).items()
                    }
                }
            ]
            got["groups"] = {k: _without_position(v) for k, v in got["groups"].items()}
        else:
            wanted = [states[count]] if states else [got]
            if ends and count == len(w.sim.steps[name].taken) and states:
                wanted.append(states[-1])
        assert got in wanted, f"{name} after {count} tuples: expected {wanted}, got {got}"


def _without_position(group: Any) -> dict[str, Any]:
    return {c: v for c, v in group.items() if not c.startswith("__")}


def check_jump(w: World, head: str, count: int, m: Any) -> None:
    """Just the tuples so far and what came of them, at every operator behind."""
    names = w.sim.downstream(head)
    assert taken(w, m, head) == count
    for name in names:
        low, high = w.sim.bounds(head, count, name)
        assert low <= taken(w, m, name) <= high, (
            f"{name}: expected {low} to {high} tuples, got {taken(w, m, name)}"
        )
    check_states(w, m, names)


def fingerprint(w: World, m: Any, names: list[str]) -> Any:
    return (
        {n: m.counters.get(n) for n in names},
        {n: {k: plain(v) for k, v in m.state(n).items()} for n in w.stateful(names)},
    )


def multiset(rows: Any) -> Counter[str]:
    return Counter(repr(sorted(r.items())) for r in rows)


# --- tests ----------------------------------------------------------------------------------------------------------


def jumps(w: World, most: int) -> None:
    for head in w.heads:
        total = len(w.sim.steps[head].taken)
        counts = sorted({0, total, *w.rnd.sample(range(total + 1), min(most, total + 1))})
        for count in counts:
            check_jump(w, head, count, w.past.jump(head, tuples=count))


def steps(w: World) -> None:
    for head in w.heads:
        names = w.sim.downstream(head)
        total = len(w.sim.steps[head].taken)
        m = w.past.jump(head, tuples=0)
        way = [m]
        for count in range(1, total + 1):
            assert m.can_step_over(head)
            m = m.step_over(head)
            way.append(m)
            check_jump(w, head, count, m)
        some = w.rnd.randrange(total + 1)
        jumped = w.past.jump(head, tuples=some)
        exact = [n for n in names if len(set(w.sim.bounds(head, some, n))) == 1]
        assert fingerprint(w, way[some], exact) == fingerprint(w, jumped, exact)
        for earlier in reversed(way[:-1]):
            m = m.step_back()
            assert m == earlier


def walks(w: World) -> None:
    """Into, out of and over, at any operator; every moment is right, and the way back is the way there."""
    if not w.heads:
        return
    head = w.rnd.choice(w.heads)
    names = w.sim.downstream(head)
    m = w.past.jump(head, tuples=w.rnd.randrange(len(w.sim.steps[head].taken) + 1))
    way = [(m, fingerprint(w, m, names))]
    for _ in range(20):
        choice = w.rnd.choice(["over", "into", "into", "into", "out"])
        waits = [n for n in names if m.pending(n, 1)]
        if not waits:
            break
        if choice == "out":
            try:
                m = m.step_out()
            except sv.errors.TimeTravelError:
                continue
        else:
            name = w.rnd.choice(waits)
            if not has_its_turn(w, m, name):
                with pytest.raises(sv.errors.TimeTravelError, match="not there yet"):
                    m.step_into(name) if choice == "into" else m.step_over(name)
                continue
            if choice == "into":
                before = taken(w, m, name)
                m = m.step_into(name)
                assert taken(w, m, name) == before + 1
            else:
                m = m.step_over(name)
        check_states(w, m, names, ends=True)
        way.append((m, fingerprint(w, m, names)))
    for earlier, seen in reversed(way[:-1]):
        m = m.step_back()
        assert m == earlier
        assert fingerprint(w, m, names) == seen


def has_its_turn(w: World, m: Any, name: str) -> bool:
    """Whether the first tuple that waits at an operator is the next one it took, and not one that came early.

    An operator with several inputs takes tuples in the order of the run (IcedTea, section 5.1), so one of them may wait
    for a tuple of another input. What one operator produces is taken in order: the first to wait tells for all.
    """
    port, item = w.sim.steps[name].taken[taken(w, m, name)]
    first = m.pending(name, 1)[0]
    if first.operator != w.sim.specs[name].inputs[port]:
        return False
    assert dict(first.row) == item.row
    return True


def outputs(w: World) -> None:
    """All steps from the beginning to the end give the result, and count what the run counted."""
    sinks = [n for n, s in w.sim.specs.items() if s.kind == "sink"]
    for name in sinks:
        assert multiset(w.run.result(name).to_pylist()) == multiset(w.sim.results.get(name, []))
    m = w.past.jump(epoch=0)
    rows: dict[str, list[Any]] = {n: [] for n in sinks}
    working = [n for n, s in w.sim.specs.items() if s.inputs]
    while True:
        moved = False
        for name in working:
            while m.pending(name, 1) or m.can_step_over(name):
                m = m.step_into(name)
                moved = True
                for step in m.steps:
                    if step.operator in rows and step.row is not None:
                        rows[step.operator].append(step.row)
        if not moved:
            break
    for name in sinks:
        assert multiset(rows[name]) == multiset(w.run.result(name).to_pylist()), name
    check_end(w, w.past.jump())
    check_end(w, m)


def check_end(w: World, m: Any) -> None:
    for told in w.past.progress.operators:
        found = m.counters[told.name]
        assert (sum(found.taken), found.given) == (told.taken, told.given), told.name
    for name, own in w.sim.steps.items():
        if w.sim.specs[name].kind in PYTHON and own.states:
            assert {k: plain(v) for k, v in m.state(name).items()} == own.states[-1], name
    check_states(w, m, [n for n in w.sim.steps if w.sim.specs[n].kind in BLOCKING])
    for name, spec in w.sim.specs.items():
        if spec.kind == "tally":
            assert {k: plain(v) for k, v in m.state(name).items()} == w.sim.ended_state(name)


CHOSEN = [(0, None), (17376, 4), (3993, None)]
"""Seeds of the workflows of the default run, with windows: they are small, and have operators of nearly all kinds, one
of two ports behind another, a join behind Python, epochs of one unit and of all."""


@pytest.fixture(scope="module", params=CHOSEN, ids=str)
def shared(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[World]:
    """A world that several tests look at."""
    with world(spark, *request.param) as made:
        yield made


@pytest.fixture
def small(shared: World, request: pytest.FixtureRequest) -> World:
    """The shared world, with choices that follow from the test's name."""
    return replace(shared, rnd=random.Random(request.node.name))


def test_the_chosen_workflows_have_operators_of_nearly_all_kinds(tmp_path: Path) -> None:
    drawn = [draw_flow(random.Random(seed), tmp_path / str(seed)) for seed, _ in CHOSEN]
    kinds = {spec.kind for one in drawn for spec in one.specs.values()}
    assert {*PYTHON, *BLOCKING, "map", "limit", "union", "join", "csv", "parquet"} <= kinds


def test_a_jump_shows_what_a_run_over_the_first_tuples_leaves(small: World) -> None:
    jumps(small, most=2)


def test_stepping_over_reaches_what_jumping_reaches_and_back_again(small: World) -> None:
    steps(small)


def test_any_walk_shows_the_states_its_counters_tell(small: World) -> None:
    walks(small)


def test_all_steps_together_give_the_result(small: World) -> None:
    outputs(small)


SEEDS = st.integers(0, 1 << 32)
MANY = settings(COMMON, max_examples=40)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(seed=SEEDS, window=st.sampled_from([None, 3, 7, 20]), which=st.sampled_from([steps, walks, outputs]))
@MANY
def test_many_random_workflows(spark: SparkSession, seed: int, window: int | None, which: Any) -> None:
    with world(spark, seed, window) as w:
        which(w)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(seed=SEEDS, window=st.sampled_from([None, 3, 7, 20]))
@MANY
def test_many_jumps(spark: SparkSession, seed: int, window: int | None) -> None:
    with world(spark, seed, window) as w:
        jumps(w, most=6)
