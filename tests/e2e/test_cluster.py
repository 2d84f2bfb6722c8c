"""A real standalone cluster on loopback: the same results as plain Spark there, also when an executor is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from benchmarks.data import Data
from tests.e2e.child import Child, wait_until
from tests.e2e.cluster import Cluster
from tests.e2e.flows import build, everything, payments

import samovar as sv

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 150
TABLES = ("lineitem", "orders", "customer", "nation", "part", "tweets", "all_beauty", "luxury_beauty")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), quick=True) as made:
        yield made


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return payments(tmp_path_factory.mktemp("executor") / "in", files=4, rows=ROWS)


def _suite(cluster: Cluster, folder: Path, names: list[str]) -> None:
    data = Data(0.001, root=folder / "data")
    data.ensure(TABLES, progress=False)
    spec = {
        "run": "suite",
        "master": cluster.master,
        "conf": cluster.conf,
        "data": str(folder / "data"),
        "record": str(folder / "runs"),
        "names": names,
        "epoch_bytes": 150_000,
    }
    child = Child(folder, spec, module="tests.e2e.cluster_suite")
    assert child.end(280) == 0, child.said()
    said = child.said()
    assert [line.split()[:2] for line in said.splitlines() if " in " in line and "epochs" in line] == [
        [name, "equal"] for name in names
    ], said
    assert "attempt 1 of" not in said, said  # nothing died, so nothing was done again


@pytest.mark.slow
def test_workflows_equal_their_plain_jobs_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    _suite(cluster, tmp_path, ["w3", "w5"])


@pytest.mark.slow
def test_queries_equal_their_plain_jobs_on_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    _suite(cluster, tmp_path, ["w1", "w2", "w4", "q1", "q3", "q4", "q6", "q10", "q12", "q14"])


def _killed(
    cluster: Cluster, folder: Path, source: Path, spark: SparkSession, victim: str
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """A run on the cluster of which the executor behind a gate was killed, an undisturbed local one, and the log."""
    gates = folder / "gates"
    gates.mkdir()
    two_files = 2 * (source / "000.parquet").stat().st_size + 100
    spec = {
        "master": cluster.master,
        "conf": cluster.conf,
        "source": str(source),
        "target": str(folder / "out"),
        "record": str(folder / "runs"),
        "run": "killed",
        "epoch_bytes": two_files,
        "gates": str(gates),
        "at": 2 * ROWS + 60,  # in the second of two epochs
    }
    child = Child(folder, spec)
    wait_until(
        lambda: (gates / "second.waits").exists() and bool((gates / "second.waits").read_text()), child
    )
    worker = psutil.Process(int((gates / victim).read_text()))
    executors = {p.pid: p for p in cluster.executors()}
    assert len(executors) == 2
    executor = next(executors[p.pid] for p in worker.parents() if p.pid in executors)
    executor.kill()
    (gates / "passed").touch()
    assert child.end() == 0, child.said()
    flow = build(source, folder / "out2", gates=gates)
    flow.run(spark=spark, record=folder / "runs", run_id="whole", epoch_bytes=two_files)
    killed = everything(sv.open(folder / "runs" / "killed"), folder / "out")
    whole = everything(sv.open(folder / "runs" / "whole"), folder / "out2")
    for found in (killed, whole):
        found.pop("files")  # how many files Spark writes for an epoch depends on its tasks
    return killed, whole, child.said()


def test_the_executor_that_holds_an_epochs_shuffle_data_is_killed_and_everything_counts_once(
    cluster: Cluster, tmp_path: Path, source: Path, spark: SparkSession
) -> None:
    killed, whole, said = _killed(cluster, tmp_path, source, spark, "first.pid")
    assert killed == whole, said


@pytest.mark.slow
def test_the_executor_at_work_is_killed_and_everything_counts_once(
    cluster: Cluster, tmp_path: Path, source: Path, spark: SparkSession
) -> None:
    killed, whole, said = _killed(cluster, tmp_path, source, spark, "second.waits")
    assert killed == whole, said


@pytest.mark.slow
def test_a_run_on_two_executors_is_paused_looked_into_and_stopped_at_a_number_of_tuples(
    cluster: Cluster, tmp_path: Path
) -> None:
    spec = {"run": "control", "master": cluster.master, "conf": cluster.conf, "folder": str(tmp_path)}
    child = Child(tmp_path, spec, module="tests.e2e.cluster_control")
    assert child.end(240) == 0, child.said()
    line = next(line for line in child.said().splitlines() if line.startswith("said "))
    said = json.loads(line.removeprefix("said "))
    assert said["workers"] == 2, said
    assert said["in_flight"] > 0, said
    assert said["pause_ms"] < 3000, said
    assert (said["status"], said["reached"]) == ("paused", ["200 tuples"]), said
