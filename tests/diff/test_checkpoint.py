"""A matcher saved and taken up again goes on as if nothing had happened; unmatched rows that do not fit go to disk."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.diff.support import cut, outcome, reordered, stream, table
from tests.diff.test_columnar import DEPENDENCES

from samovar.diff import CheckpointProblem, Matcher, equality, independent, keyed

SAVED = [name for name in DEPENDENCES if name != "by a function"]


@pytest.mark.parametrize("form", ["events", "batches"])
@pytest.mark.parametrize("name", SAVED)
def test_a_restored_matcher_gives_the_same_verdict(name: str, form: str, tmp_path: Path) -> None:
    depends = DEPENDENCES[name]
    for seed in range(6):
        rng = random.Random(seed)
        left = stream(rng, 60)
        right = reordered(rng, left, depends, 200, 0.01 * (seed % 2))
        whole, broken = Matcher(depends=depends), Matcher(depends=depends)
        for number, (side, rows) in enumerate(cut(rng, left, right, 15)):
            for matcher in (whole, broken):
                for row in rows if form == "events" else ():
                    matcher.push(side, row)
                if form == "batches":
                    matcher.push_batch(side, table(rows))
            if broken.verdict is None and number % 3 == 1:
                broken.save(tmp_path / "matcher")
                broken = Matcher.restore(tmp_path / "matcher")
                assert (broken.seen("left"), broken.seen("right")) == (
                    whole.seen("left"),
                    whole.seen("right"),
                )
        assert outcome(broken, broken.close()) == outcome(whole, whole.close())


def test_settled_pairs_of_a_tolerance_are_saved(tmp_path: Path) -> None:
    matcher = Matcher(depends=independent, equal=equality(tolerance=0.5))
    matcher.push("left", {"x": 1.0})
    matcher.push("right", {"x": 1.5})
    matcher.save(tmp_path / "m")
    matcher = Matcher.restore(tmp_path / "m")
    matcher.push("left", {"x": 2.0})
    matcher.push("right", {"x": 0.5})
    assert matcher.close().equivalent


def test_functions_have_to_be_passed_again(tmp_path: Path) -> None:
    def depends(a: Any, b: Any) -> bool:
        return bool(a["k"] == b["k"])

    matcher = Matcher(depends=depends)
    matcher.push("left", {"k": 1, "when": pa.scalar(0, pa.timestamp("s")).as_py()})
    matcher.save(tmp_path / "m")
    with pytest.raises(CheckpointProblem, match="Expected depends="):
        Matcher.restore(tmp_path / "m")
    again = Matcher.restore(tmp_path / "m", depends=depends)
    assert again.unmatched("left") == matcher.unmatched("left")
    by_key = Matcher(depends=independent, equal=equality(key=len))
    by_key.save(tmp_path / "k")
    with pytest.raises(CheckpointProblem, match="Expected equal="):
        Matcher.restore(tmp_path / "k")


def test_what_cannot_be_restored_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointProblem, match="got none"):
        Matcher.restore(tmp_path / "nothing")
    matcher = Matcher(depends=keyed("key"))
    matcher.push_batch("left", pa.table({"key": [1, 2]}))
    matcher.save(tmp_path / "m")
    (tmp_path / "m" / "left.arrow").write_bytes(b"ARROW1\0\0 and then nothing")
    with pytest.raises(CheckpointProblem, match="damaged"):
        Matcher.restore(tmp_path / "m")
    header = tmp_path / "m" / "matcher.json"
    header.write_text(header.read_text().replace('"format":2', '"format":9'))
    with pytest.raises(CheckpointProblem, match="format 9"):
        Matcher.restore(tmp_path / "m")
    matcher.push_batch("right", pa.table({"key": [1, 3]}))
    matcher.close()
    with pytest.raises(CheckpointProblem, match="verdict"):
        matcher.save(tmp_path / "m")


def test_saving_again_replaces_the_old_checkpoint_and_leaves_nothing_behind(tmp_path: Path) -> None:
    matcher = Matcher(depends=independent)
    for n in range(3):
        matcher.push("left", n)
        matcher.save(tmp_path / "m")
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    assert Matcher.restore(tmp_path / "m").unmatched("left") == [0, 1, 2]


@pytest.mark.parametrize("name", ["independent", "keyed", "keyed, synchronised", "punctuated"])
def test_unmatched_rows_past_the_bound_are_on_disk_and_are_found_there(name: str, tmp_path: Path) -> None:
    rows = [
        {"key": i % 7, "city": 1, "mark": i % 100 == 99, "time": i, "amount": i / 2, "note": f"note {i}"}
        for i in range(6_000)
    ]
    matcher = Matcher(depends=DEPENDENCES[name], spill_bytes=50_000, spill_folder=tmp_path)
    data = table(rows)
    for start in range(0, 6_000, 250):
        matcher.push_batch("left", data.slice(start, 250))
    assert matcher._columnar is not None
    assert matcher._columnar.pending["left"].memory <= 50_000
    files = list(tmp_path.glob("*/*.arrow"))
    assert len(files) > 1
    assert sum(f.stat().st_size for f in files) > data.nbytes / 2
    assert len(matcher.unmatched("left")) == 6_000
    matcher.save(tmp_path / "saved")
    for start in range(0, 6_000, 400):
        assert matcher.push_batch("right", data.slice(start, 400)) is None
    assert matcher.close().equivalent
    assert list(tmp_path.glob("*/*.arrow")) == [
        tmp_path / "saved" / "left.arrow"
    ]  # what is matched needs no file
    assert Matcher.restore(tmp_path / "saved").waiting("left") == 6_000
    del matcher
    gc.collect()
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]
