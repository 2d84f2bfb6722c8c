"""Options of the wrong kind, folders that cannot be written, Spark sessions that are gone or never come."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.bad_input.support import checked, flow_of, payments

from samovar.errors import StorageProblem, WorkflowError


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("workers", "key_partitions"),
        ("checkpoints", "marks"),
        ("watch", "interactive"),
        ("epoch_byte", "epoch_bytes"),
    ],
)
def test_an_option_that_is_not_there_is_refused_with_the_one_that_is_meant(option: str, meant: str) -> None:
    flow, src = flow_of("nowhere")
    src.sink("S")
    with pytest.raises(WorkflowError, match=f"no argument '{option}'") as caught:
        flow.start(**{option: 1})
    assert caught.value.hint == f"Did you mean {meant}?"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epoch_bytes": -1}, "epoch_bytes"),
        ({"epoch_bytes": 0}, "epoch_bytes"),
        ({"epoch_bytes": "64MB"}, "epoch_bytes"),
        ({"key_partitions": 0}, "key_partitions"),
        ({"key_partitions": 2.5}, "key_partitions"),
        ({"tau": -1.0}, "tau"),
        ({"on_error": "explode"}, "on_error"),
        ({"record": 7}, "record="),
        ({"run_id": "../elsewhere"}, "run_id"),
        ({"run_id": "a,b"}, "run_id without a comma"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_at_once(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.sink("S")
    with pytest.raises(WorkflowError, match=said) as caught:
        flow.start(**{"record": tmp_path / "runs", **options})
    checked(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_recording_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.sink("S")
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(StorageProblem, match="got a file") as caught:
        flow.start(record=tmp_path / "runs")
    assert "record=" in str(caught.value.hint)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_recording_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    flow, src = flow_of(payments(tmp_path / "payments"))
    src.sink("S")
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(StorageProblem, match="no permission"):
        flow.start(record=tmp_path / "locked" / "runs")


BROKEN = {
    "unreadable": ("samovar: 1\nname: d\noperators:\n  - {name: a, op: [values\n  - b: c: d\n", "line 5"),
    "unknown operator": (
        "samovar: 1\nname: d\noperators:\n  - {name: a, op: fliter, inputs: [b]}\n",
        "Did you mean 'filter'?",
    ),
    "cycle": (
        "samovar: 1\nname: d\noperators:\n  - {name: a, op: filter, inputs: [b], condition: x}\n"
        "  - {name: b, op: filter, inputs: [a], condition: x}\n  - {name: S, op: sink, inputs: [b]}\n",
        "circle",
    ),
    "unconnected port": (
        "samovar: 1\nname: d\noperators:\n  - {name: a, op: filter, condition: x}\n"
        "  - {name: S, op: sink, inputs: [a]}\n",
        "Operator 'a' (filter) has 1 input port(s), 0 connected",
    ),
    "duplicate names": (
        "samovar: 1\nname: d\noperators:\n  - {name: a, op: values, schema: x int, rows: [[1]]}\n"
        "  - {name: a, op: filter, inputs: [a], condition: x}\n  - {name: S, op: sink, inputs: [a]}\n",
        "already has an operator 'a'",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_document_is_shown_on_one_screen(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from samovar.cli.main import main

    text, said = BROKEN[kind]
    (tmp_path / "flow.yaml").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(tmp_path / "flow.yaml"), "--record", str(tmp_path / "runs")])
    assert ended.value.code == 1
    shown = capsys.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) <= 20
    assert not (tmp_path / "runs").exists()


def outside(script: str, tmp_path: Path, *, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, where Spark may die."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=timeout,
        check=False,
    )


DYING = """
import samovar as sv
from samovar.runtime.spark.session import spark_session
spark = spark_session(master="local[2]", conf={"spark.ui.enabled": "false", "spark.driver.memory": "512m"})
flow = sv.Workflow("shop")
src = flow.read.parquet("payments", name="src")
src.filter("amount >= 0", name="F").sink("S")
run = flow.start(spark=spark, record="runs", epoch_bytes=1)
%s
try:
    run.wait(timeout=60, progress=False)
except sv.SamovarError as error:
    print(type(error).__name__, error)
try:
    flow.run(spark=spark, record="runs2", progress=False)
except sv.SamovarError as error:
    print(type(error).__name__, error)
"""
STOPPED = "run.on_progress(lambda p: spark.stop() if p.epoch == 1 else None)"
KILLED = """
import os, signal
java = spark.sparkContext._gateway.proc.pid
run.on_progress(lambda p: os.kill(java, signal.SIGKILL) if p.epoch == 1 else None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [STOPPED, KILLED], ids=["stopped", "killed"])
def test_a_session_that_dies_in_mid_run_is_told_with_what_to_do(tmp_path: Path, how: str) -> None:
    payments(tmp_path / "payments", files=6)
    done = outside(DYING % how, tmp_path)
    assert "EnvironmentProblem The Spark session ended while the run was going on." in done.stdout, (
        done.stderr
    )
    assert "resume()" in done.stdout
    assert "Expected a live Spark session, got one that has ended." in done.stdout
    assert not (tmp_path / "runs2").exists()


def test_a_master_that_does_not_answer_is_told_in_time(tmp_path: Path) -> None:
    payments(tmp_path / "payments")
    (tmp_path / "flow.yaml").write_text(
        "samovar: 1\nname: shop\noperators:\n  - {name: src, op: read, format: parquet, path: [payments]}\n"
        "  - {name: S, op: sink, inputs: [src]}\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "samovar.cli.main", "run", "flow.yaml", "--master", "spark://127.0.0.1:1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert time.monotonic() - started < 60
    assert "spark://127.0.0.1:1" in done.stderr
    assert "\tat " not in done.stderr
    assert len(done.stderr.splitlines()) <= 12
    assert not (tmp_path / "runs").exists()
