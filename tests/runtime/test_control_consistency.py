"""Texera's Table 1 on Spark: which versions of operators one tuple may meet, and that a replay meets the same."""

from __future__ import annotations

import contextlib
import random
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.conftest import Start, local_start, spark_start
from tests.runtime.stamping import (
    SlowNetwork,
    Stamps,
    diamond,
    jitter,
    local_diamond,
    replayed_stamps,
    stamps,
    versions,
)
from tests.runtime.steered import WAIT, wait_for

import samovar as sv
from samovar.control import messages as m
from samovar.errors import CommandRefused


def new_then_old(found: Stamps) -> Stamps:
    """Tuples that met a newer version before an older one."""
    return [s for s in found if any(one > two for one, two in pairwise(s[1:]))]


def old_then_new(found: Stamps) -> Stamps:
    return [s for s in found if any(one < two for one, two in pairwise(s[1:]))]


def begun(run: Any, tmp_path: Path) -> None:
    """The run stands inside its second epoch, at x = 15."""
    wait_for(tmp_path / "arrived")


def test_without_consistency_a_late_message_makes_a_tuple_meet_new_before_old(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delay(message: m.ToWorker) -> float | None:
        return None if isinstance(message, m.SwitchOrder) and "B" in message.codes else 0.0

    SlowNetwork(monkeypatch, delay)  # B's worker does not hear of it
    run = diamond(tmp_path, rows=10, files=2, stop=15).start(
        spark=spark, record=tmp_path / "runs", epoch_bytes=1
    )
    begun(run, tmp_path)
    run.modify(versions(2, tmp_path), consistency="none")
    (tmp_path / "go").touch()
    found = stamps(run)
    for x, a, b, c, d in found:
        old_c = 1 if x % 2 else 2  # odd tuples meet no C
        if x < 10:
            assert (a, b, c, d) == (1, 1, 1, 1)
        elif x <= 15:  # A was at work on 15
            assert (a, b, c, d) == (1, 1, old_c, 2)
        else:
            assert (a, b, c, d) == (2, 1, old_c, 2)
    assert new_then_old(found)
    assert old_then_new(found)
    past = sv.open(str(run.recording), spark=spark)
    assert replayed_stamps(past) == found
    assert past.jump("A", tuples=16).state("A")["version"] == 1
    after = past.jump("A", tuples=17).state("A")
    assert (after["version"], after["n"]) == (2, 17)
    assert past.jump("D", tuples=20).state("D")["n"] == 20


def test_backward_consistency_waits_for_the_last_worker(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delay(message: m.ToWorker) -> float | None:
        return 0.3 if isinstance(message, m.SwitchOrder) and "B" in message.codes else 0.0

    SlowNetwork(monkeypatch, delay)
    run = diamond(tmp_path, rows=10, files=2, stop=15).start(
        spark=spark, record=tmp_path / "runs", epoch_bytes=1
    )
    begun(run, tmp_path)
    (tmp_path / "go").touch()  # A would go on at once
    run.modify(versions(2, tmp_path), consistency="backward")
    found = stamps(run)
    assert not new_then_old(found)
    mixed = [x for x, a, b, c, d in found if len({a, b, c, d}) > 1]
    assert all(x >= 10 for x in mixed)
    past = sv.open(str(run.recording), spark=spark)
    assert replayed_stamps(past) == found


def modified_at_random(
    start: Start,
    flow: sv.Workflow,
    folder: Path,
    consistency: Any,
    seed: int,
    wanted: int,
    *,
    rows: int = 50,
    files: int = 2,
) -> tuple[Stamps, Any]:
    """A run with so many modifications at random instants; its stamps."""
    chance = random.Random(seed)
    run = start(flow, record=folder / "runs", epoch_bytes=1)
    number = 2
    while number < wanted + 2 and run.status == "running":
        time.sleep(chance.random() * 0.25)  # the instant is what is random
        with contextlib.suppress(CommandRefused):  # the one before is not in force yet, or the run is over
            run.modify(versions(number, folder, seconds=0.002), consistency=consistency)
            number += 1
    run.wait(progress=False, timeout=WAIT)
    found = stamps(run)
    assert [s[0] for s in found] == list(range(rows * files))
    if consistency == "strict":
        assert all(len(set(s[1:])) == 1 for s in found)
        assert not switches_inside(run)
    if consistency == "backward":
        assert not new_then_old(found)
    return found, run


def replayed_at_random(
    spark: Any, folder: Path, consistency: Any, seed: int, wanted: int, *, rows: int = 50, files: int = 2
) -> tuple[Stamps, Any]:
    """The same on Spark; a replay meets the same versions."""
    folder.mkdir()
    found, run = modified_at_random(
        spark_start(spark),
        diamond(folder, rows=rows, files=files, seconds=0.002),
        folder,
        consistency,
        seed,
        wanted,
        rows=rows,
        files=files,
    )
    assert replayed_stamps(sv.open(str(run.recording), spark=spark)) == found
    return found, run


def switches_inside(run: Any) -> int:
    return sum(bool(e.switched) for e in sv.open(str(run.recording)).history.epochs)


@pytest.mark.parametrize("consistency", ["strict", "backward", "none"])
def test_each_level_keeps_its_promise_at_random_instants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consistency: str
) -> None:
    SlowNetwork(monkeypatch, jitter(7, 0.02))
    flow = local_diamond(tmp_path, rows=50, files=2, seconds=0.002)
    found, _ = modified_at_random(local_start, flow, tmp_path, consistency, 7, 2)
    assert max(s[4] for s in found) > 1


@pytest.mark.parametrize(
    "consistency",
    [
        pytest.param("strict", marks=pytest.mark.slow),
        pytest.param("backward", marks=pytest.mark.slow),
        "none",
    ],
)
def test_a_replay_meets_the_same_versions_at_random_instants(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consistency: str
) -> None:
    SlowNetwork(monkeypatch, jitter(7, 0.02))
    replayed_at_random(spark, tmp_path / "run", consistency, 7, 2, rows=30)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_hundred_modifications_at_random_instants(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SlowNetwork(monkeypatch, jitter(11, 0.1))
    made = {"strict": 0, "backward": 0, "none": 0}
    seed = inside = mixed = 0
    while sum(made.values()) < 100:
        for consistency in made:
            seed += 1
            folder = tmp_path / f"{consistency}-{seed}"
            found, run = replayed_at_random(spark, folder, consistency, seed, 8, rows=80, files=4)
            made[consistency] += max(s[4] for s in found) - 1
            if consistency == "none":
                mixed += len(old_then_new(found))  # new before old needs a late message: see the first test
            inside += switches_inside(run)
    assert inside >= 10
    assert mixed
