from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.spark_profile import TEST_PROFILE

from samovar.errors import EnvironmentProblem
from samovar.runtime.spark import session as session_module
from samovar.runtime.spark.session import (
    driver_memory_mib,
    free_ui_port,
    local_cores,
    memory_bytes,
    quiet_query_errors,
    spark_session,
    warm_up,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIB = 1024**3


# ---- with the session of the test run


def test_a_live_session_is_reused(spark: SparkSession) -> None:
    assert spark_session() is spark
    assert spark_session(master="local[2]") is spark


def test_another_master_than_the_live_one_is_refused(spark: SparkSession) -> None:
    with pytest.raises(EnvironmentProblem, match=r"already has a Spark session on 'local\[2\]'"):
        spark_session(master="local[7]")


def test_settings_that_can_change_reach_a_live_session(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert before is not None
    try:
        spark_session(conf={"spark.sql.shuffle.partitions": 3})
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_settings_that_come_too_late_are_warned_about(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        spark_session(conf={"spark.driver.memory": "17g"})
    assert "spark.driver.memory=17g has no effect" in caplog.text


def test_defaults_are_in_force(spark: SparkSession, users_session: bool) -> None:
    if users_session:
        pytest.skip("a session of the user's own has his settings")
    defaults = session_module._sql_defaults("local[2]")
    assert defaults["spark.sql.shuffle.partitions"] == "4"
    assert defaults["spark.sql.adaptive.enabled"] == "true"
    assert defaults["spark.sql.execution.arrow.pyspark.enabled"] == "true"
    expected = {**defaults, **TEST_PROFILE}  # settings that are handed in win over the defaults
    assert {key: spark.conf.get(key) for key in defaults} == {key: expected[key] for key in defaults}
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"


def test_starting_leaves_the_environment_as_it_was(spark: SparkSession, users_session: bool) -> None:
    if users_session:
        pytest.skip("a session of the user's own was not started by Samovar")
    assert "samovar-java" not in os.environ.get("JAVA_HOME", "")


def test_warm_up_runs_a_python_worker(spark: SparkSession) -> None:
    warm_up(spark)


def test_warm_up_never_raises() -> None:
    warm_up(object())  # type: ignore[arg-type]


def test_a_failing_query_prints_no_json(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    quiet_query_errors()
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        spark.range(1).selectExpr("cast('a' as int) + id").collect()
    assert "stacktrace" not in capfd.readouterr().err


# ---- what the user has set


def test_spark_defaults_are_read(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# comment\n\nspark.master   spark://host:7077\nspark.driver.memory=3g\nspark.x: a b  \n"
    )
    assert session_module._user_settings({"SPARK_CONF_DIR": str(tmp_path)}) == {
        "spark.master": "spark://host:7077",
        "spark.driver.memory": "3g",
        "spark.x": "a b",
    }


def test_submit_arguments_win_over_spark_defaults(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.master local[1]\n")
    submit = "--master=yarn --conf spark.ui.port=5 -c 'spark.y=a b' --driver-memory 2g pyspark-shell"
    environ = {"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": submit}
    assert session_module._user_settings(environ) == {
        "spark.master": "yarn",
        "spark.ui.port": "5",
        "spark.y": "a b",
        "spark.driver.memory": "2g",
    }


def test_a_cluster_gets_no_local_defaults() -> None:
    local = session_module._defaults("local[2]", "x")
    cluster = session_module._defaults("spark://host:7077", "x")
    only_local = {
        "spark.driver.memory",
        "spark.driver.host",
        "spark.driver.bindAddress",
        "spark.python.daemon.module",
        "spark.sql.shuffle.partitions",
    }
    assert set(local) - set(cluster) == only_local


def test_workers_of_another_python_are_forked_from_pysparks_own_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/other/bin/python")
    assert "spark.python.daemon.module" not in session_module._defaults("local[2]", "x")


def test_a_new_worker_has_imported_already_what_it_needs(spark: SparkSession, users_session: bool) -> None:
    if users_session:
        pytest.skip("a session of the user's own has PySpark's daemon")

    def imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import psutil

        for batch in batches:
            parent = " ".join(psutil.Process().parent().cmdline())
            yield pa.record_batch({"parent": [parent] * batch.num_rows})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(imported, "parent string").collect()
    assert "samovar.runtime.worker.daemon" in row.parent


def test_own_logging_settings_of_the_user_are_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log4j2.properties").write_text("")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert "log4j2" not in session_module._defaults("local", "x")["spark.driver.defaultJavaOptions"]


def test_environment_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMOVAR_TEST_A", "before")
    monkeypatch.delenv("SAMOVAR_TEST_B", raising=False)
    with session_module._environment({"SAMOVAR_TEST_A": "x", "SAMOVAR_TEST_B": "y"}):
        assert (os.environ["SAMOVAR_TEST_A"], os.environ["SAMOVAR_TEST_B"]) == ("x", "y")
    assert os.environ["SAMOVAR_TEST_A"] == "before"
    assert "SAMOVAR_TEST_B" not in os.environ


@pytest.mark.parametrize(("resolves", "address"), [(True, None), (False, "127.0.0.1")])
def test_a_host_name_that_does_not_resolve_is_worked_around(
    monkeypatch: pytest.MonkeyPatch, resolves: bool, address: str | None
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setattr(session_module, "hostname_resolves", lambda: resolves)
    assert session_module._launch_environment("local[2]", submitted=False).get("SPARK_LOCAL_IP") == address


# ---- the machine


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[5,2]", 5)])
def test_cores_of_a_local_master(master: str, cores: int) -> None:
    assert local_cores(master) == cores


def test_all_cores_of_the_machine() -> None:
    assert local_cores("local[*]") >= 1


@pytest.mark.parametrize(
    ("memory", "mib"), [(2 * GIB, 1024), (8 * GIB, 2048), (16 * GIB, 4096), (256 * GIB, 8192)]
)
def test_driver_memory_is_a_quarter_within_bounds(memory: int, mib: int) -> None:
    assert driver_memory_mib(memory) == mib


def test_memory_is_found() -> None:
    assert memory_bytes() > GIB // 4


def test_a_taken_ui_port_is_passed_over() -> None:
    first = free_ui_port()
    with socket.socket() as taken:
        taken.bind(("", first))
        taken.listen()
        assert free_ui_port() > first
