"""A real cluster whose workers do not see the driver's folders: no run completes with rows missing.

Workers are in mount namespaces of their own, with an empty file system over the folder `closed`; `open` is shared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.e2e.child import Child, wait_until
from tests.e2e.cluster import Cluster, can_hide
from tests.e2e.flows import payments

pytestmark = [
    pytest.mark.skipif(not can_hide(), reason="mount namespaces need root on Linux"),
    pytest.mark.timeout(900),  # a cluster, a driver and up to eight runs, on a machine that may be busy
]

FILES, ROWS = 4, 100


class Hosts:
    """A cluster, and the folders `open` and `closed`, each with the same input in `in` and `csv`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open, self.closed = folder / "open", folder / "closed"
        for place in (self.open, self.closed):
            payments(place / "in", files=FILES, rows=ROWS)
            (place / "csv").mkdir()
            for file in (place / "in").iterdir():
                pyarrow.csv.write_csv(pq.read_table(file), place / "csv" / f"{file.stem}.csv")
            (place / "tmp").mkdir()

    def outcomes(
        self, cluster: Cluster, *cases: dict[str, Any], cache: Path | None = None
    ) -> dict[str, dict[str, Any]]:
        """What became of each case; where it says nothing else, its input is shared and its recording is not."""
        return self.ended(self.begin(cluster, *cases, cache=cache))

    def begin(
        self,
        cluster: Cluster,
        *cases: dict[str, Any],
        cache: Path | None = None,
    ) -> Child:
        """Start a driver for the cases."""
        usual = {"source": str(self.open / "in"), "record": str(self.closed / "runs")}
        spec = {
            "run": "unshared",
            "master": cluster.master,
            "conf": cluster.conf,
            "temp": str(self.closed / "tmp"),
            "cache": str(cache or self.open / "cache"),
            "cases": [{"name": f"case-{n}", **usual, **case} for n, case in enumerate(cases)],
        }
        return Child(self.folder, spec, module="tests.e2e.cluster_unshared")

    def ended(self, child: Child) -> dict[str, dict[str, Any]]:
        """What became of the cases of a driver, when it has ended."""
        assert child.end(400) == 0, child.said()
        lines = [ln for ln in child.said().splitlines() if ln.startswith("outcome ")]
        found = [json.loads(line.removeprefix("outcome ")) for line in lines]
        return {case.pop("name"): case for case in found}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    return Hosts(tmp_path_factory.mktemp("hosts"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, hosts: Hosts) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(folder, hidden=[hosts.closed], hidden_from=[0, 1], quick=True) as made:
        yield made


def _refused(outcome: dict[str, Any], *said: str) -> None:
    assert outcome.get("error") == "StorageNotShared", outcome
    assert outcome["epochs"] == 0, outcome
    for words in said:
        assert words in outcome["text"], outcome


@pytest.mark.slow
def test_runs_whose_workers_do_not_see_the_recording_fail_at_the_start(
    hosts: Hosts, cluster: Cluster
) -> None:
    found = hosts.outcomes(
        cluster,
        {"name": "python", "kind": "python"},
        {"name": "raises", "kind": "raises"},
        {"name": "scratch", "kind": "python", "record": False},
        {"name": "shared", "kind": "python", "record": str(hosts.open / "runs")},
    )
    _refused(found["python"], str(hosts.closed / "runs"), "record=")
    _refused(found["raises"])
    _refused(found["scratch"], str(hosts.closed / "tmp"), "SAMOVAR_SCRATCH")
    assert found["shared"] == {"status": "completed", "rows": FILES * ROWS, "epochs": 1}
    assert not (hosts.closed / "runs" / "python").exists()  # nothing is left of a run that did not start


@pytest.mark.slow
def test_native_runs_trials_and_inputs_in_hidden_folders_fail_at_the_start(
    hosts: Hosts, cluster: Cluster
) -> None:
    shared = str(hosts.open / "runs")
    found = hosts.outcomes(
        cluster,
        {"name": "native", "kind": "native"},
        {"name": "csv", "kind": "csv", "source": str(hosts.open / "csv")},
        {"name": "values", "kind": "values"},
        {"name": "trial", "kind": "trial"},
        {"name": "source", "kind": "python", "record": shared, "source": str(hosts.closed / "in")},
        {"name": "text", "kind": "csv", "record": shared, "source": str(hosts.closed / "csv")},
        {"name": "chunks", "kind": "python", "record": shared, "large": 1000},
        {"name": "lines", "kind": "csv", "record": shared, "large": 1000, "source": str(hosts.open / "csv")},
        cache=hosts.closed / "cache",
    )
    for name in ("native", "csv", "values"):
        _refused(found[name], str(hosts.closed / "runs"))
    _refused(found["trial"], str(hosts.closed / "tmp"), "SAMOVAR_SCRATCH")
    _refused(found["source"], str(hosts.closed / "in"), "'src'")
    _refused(found["text"], str(hosts.closed / "csv"), "'src'")
    _refused(found["chunks"], str(hosts.closed / "cache"), "SAMOVAR_CACHE")
    _refused(found["lines"], str(hosts.closed / "cache"), "SAMOVAR_CACHE")


@pytest.mark.slow
def test_runs_of_which_one_worker_in_two_does_not_see_the_recording_fail_at_the_start(
    hosts: Hosts, tmp_path: Path
) -> None:
    with Cluster(tmp_path / "cluster", hidden=[hosts.closed], hidden_from=[1], quick=True) as cluster:
        found = hosts.outcomes(
            cluster,
            {"name": "one epoch", "kind": "python"},
            {"name": "epochs", "kind": "python", "epoch_bytes": 1},
            {"name": "raises", "kind": "raises"},
            {"name": "native", "kind": "native"},
            {"name": "scratch", "kind": "native", "record": False},
        )
    for outcome in found.values():
        _refused(outcome)


@pytest.mark.slow
def test_an_exception_on_a_worker_that_joined_later_and_sees_nothing_reaches_the_driver(
    hosts: Hosts, tmp_path: Path
) -> None:
    gate = hosts.open / "gate"
    gate.mkdir()
    with Cluster(tmp_path / "cluster", workers=1, quick=True) as cluster:
        child = hosts.begin(cluster, {"name": "late", "kind": "raises", "gate": str(gate)})
        wait_until((gate / "waits").exists, child, 300)
        cluster.join(hidden=[hosts.closed])
        wait_until(lambda: len(cluster.executors()) == 2, child, 300)
        cluster.kill_worker(0)  # all that is left to do is done by the other one
        (gate / "passed").touch()
        outcome = hosts.ended(child)["late"]
    assert outcome["error"] == "OperatorFailed", outcome
    assert "no payments of c7, please" in outcome["text"]
    assert "'customer': 'c7'" in outcome["text"] or "customer: 'c7'" in outcome["text"]
    assert outcome["epochs"] == 0


@pytest.mark.slow
def test_a_worker_that_joined_during_an_epoch_is_probed_before_its_commit(
    hosts: Hosts, tmp_path: Path
) -> None:
    gate = hosts.open / "second gate"
    gate.mkdir()
    with Cluster(tmp_path / "cluster", quick=True) as cluster:
        child = hosts.begin(cluster, {"name": "joined", "kind": "python", "gate": str(gate)})
        wait_until((gate / "waits").exists, child, 300)
        cluster.join(hidden=[hosts.closed])
        wait_until(lambda: "Successfully registered with driver" in cluster.said_by_executors(2), child, 300)
        (gate / "passed").touch()
        outcome = hosts.ended(child)["joined"]
    _refused(outcome, str(hosts.closed / "runs"))
