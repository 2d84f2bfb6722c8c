"""Fixtures for all tests. There is one Spark session for the whole run: starting Java takes seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The same inputs in every run, so that a failure is one of the change at hand. `--hypothesis-profile=default` looks
# further afield.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")


#: Settings for jobs over a few rows: nothing is compiled that runs once. `tests/oracle/test_tpch.py` keeps users' settings.
TEST_PROFILE = {
    "spark.ui.enabled": False,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.adaptive.enabled": False,
    "spark.sql.shuffle.partitions": 2,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--users-session",
        action="store_true",
        help="run on a session made by SparkSession.builder alone, without any of Samovar's settings",
    )


@pytest.fixture(scope="session")
def users_session(request: pytest.FixtureRequest) -> bool:
    """Whether the session is one that the user made (`--users-session`)."""
    return bool(request.config.getoption("--users-session"))


@pytest.fixture(scope="session")
def spark(users_session: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session of this process's tests, on two local cores. Tests must not stop it or leave settings changed."""
    from samovar.runtime.spark.session import spark_session

    conf = {**TEST_PROFILE, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    if users_session:
        session = plain_session(conf)
    else:
        session = spark_session(master="local[2]", app_name="samovar tests", conf=conf)
    yield session
    session.stop()


def plain_session(conf: Mapping[str, Any]) -> SparkSession:
    """A session as PySpark's documentation makes it; Samovar only says where Java and Python are."""
    from pyspark.sql import SparkSession

    from samovar.runtime.spark.java import find_java, launch_home

    os.environ.setdefault("JAVA_HOME", str(launch_home(find_java())))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("a user's own")
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
