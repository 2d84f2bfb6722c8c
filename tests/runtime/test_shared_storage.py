"""The probe of a cluster's workers: what it asks, and what it says of their answers. The real one is in e2e."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import cloudpickle

from samovar.errors import EnvironmentProblem, StorageNotShared
from samovar.ids import VERSION
from samovar.runtime.folders import is_scratch, new_scratch
from samovar.runtime.spark import shared_storage
from samovar.runtime.spark.shared_storage import Seen, SharedStorage, check_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NONCE = "ab12"


def _answer(place: Path, files: list[tuple[str, int]]) -> dict[str, Any]:
    (batch,) = shared_storage._look(NONCE, [str(place)], files)(iter(()))
    made: dict[str, Any] = json.loads(batch.column(0)[0].as_py())
    return made


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "probe-1"
    folder.mkdir(parents=True)
    (folder / "driver").write_text(NONCE)
    return folder


def test_a_worker_that_sees_everything_is_content(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("a,b")
    answer = _answer(place, [(str(file), 3)])
    assert answer["problems"] == {}
    assert answer["samovar"] == VERSION
    shared_storage._check_python([answer])
    shared_storage._check_answers([answer], [Seen("src", str(file), 3)], NONCE)


def test_a_folder_with_the_same_name_and_other_contents_is_not_shared(place: Path) -> None:
    (place / "driver").write_text("other")
    with pytest.raises(StorageNotShared, match="another file than the driver's") as caught:
        shared_storage._check_answers([_answer(place, [])], [], NONCE)
    assert caught.value.folder == str(place.parent)
    assert caught.value.hosts
    assert "record=" in str(caught.value.hint)


def test_what_a_worker_writes_must_be_seen(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_storage, "_PATIENCE", (0.0,))
    answer = _answer(place, [])
    (place / answer["wrote"][str(place)]).unlink()  # it lies on that host's disk
    with pytest.raises(StorageNotShared, match="what it writes there is not seen by the driver"):
        shared_storage._check_answers([answer], [], NONCE)


def test_an_input_of_another_size_is_named_with_its_source(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("a,b")
    answer = _answer(place, [(str(file), 4)])
    with pytest.raises(
        StorageNotShared, match=r"source 'src' reads.*3 bytes there, 4 on the driver"
    ) as caught:
        shared_storage._check_answers([answer], [Seen("src", str(file), 4)], NONCE)
    assert caught.value.operator == "src"


@pytest.mark.parametrize(("version", "got"), [("0.0.1", "samovar 0.0.1"), ("", "none")])
def test_another_samovar_on_a_worker_is_refused(place: Path, version: str, got: str) -> None:
    with pytest.raises(EnvironmentProblem, match=f"Expected samovar {VERSION} .* got {got} on host"):
        shared_storage._check_python([{**_answer(place, []), "samovar": version}])


def test_the_hint_says_which_setting_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAMOVAR_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("SAMOVAR_CACHE", str(tmp_path / "cache"))
    scratch = new_scratch()
    assert scratch.parent == tmp_path / "scratch"
    assert is_scratch(scratch / "run")
    assert not is_scratch(tmp_path / "scratch" / "mine")
    assert "SAMOVAR_SCRATCH" in shared_storage._what_to_share(str(scratch / "run"))
    assert "SAMOVAR_CACHE" in shared_storage._what_to_share(str(tmp_path / "cache" / "chunks" / "x"))
    assert "record=" in shared_storage._what_to_share(str(tmp_path / "runs"))


def test_a_local_spark_is_not_probed(spark: SparkSession, tmp_path: Path) -> None:
    check_shared(spark, [tmp_path / "runs"], python=True)
    assert not (tmp_path / "runs").exists()


def test_a_worker_without_samovar_can_answer(place: Path) -> None:
    body = cloudpickle.dumps(shared_storage._look(NONCE, [str(place)], []))
    script = (
        "import pickle, sys\n"
        "sys.modules['samovar'] = None\n"  # no such package
        "(batch,) = pickle.loads(sys.stdin.buffer.read())(iter(()))\n"
        "print(batch.column(0)[0].as_py())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], input=body, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answer = json.loads(done.stdout)
    assert (answer["samovar"], answer["problems"]) == ("", {})


def test_the_probe_is_repeated_when_the_number_of_slots_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots, probed = [2], []
    monkeypatch.setattr(shared_storage, "cores", lambda _: slots[0])
    monkeypatch.setattr(shared_storage, "is_local", lambda _: False)
    monkeypatch.setattr(shared_storage, "check_shared", lambda *_, **__: probed.append(slots[0]))
    storage = SharedStorage(None, tmp_path, python=True)  # type: ignore[arg-type]
    for now in (2, 2, 3, 3, 2):
        slots[0] = now
        storage.check()
    assert probed == [2, 3, 2]
