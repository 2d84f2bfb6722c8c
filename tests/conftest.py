"""Fixtures for all tests, and which of them are run. A process has one Spark session: starting Java takes seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from tests.spark_profile import QUICK_SQL, TEST_PROFILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

# The same inputs in every run, so that a failure is one of the change at hand. `--hypothesis-profile=default` looks
# further afield.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")

ALL_SIZES = "SAMOVAR_TESTS_ALL_SIZES"
"""Environment variable: oracle tests run at each epoch size (see `tests/oracle/support.py`)."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow", action="store_true", help="also the slow tests, and oracles at every epoch size"
    )
    parser.addoption("--fast", action="store_true", help="only tests that need no Spark")
    parser.addoption(
        "--users-session",
        action="store_true",
        help="run on a session made by SparkSession.builder alone, without any of Samovar's settings",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--slow"):
        os.environ[ALL_SIZES] = "1"
    if config.getoption("--fast"):
        from pyspark.core import context

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("This test starts Spark: mark it with @pytest.mark.starts_spark.")

        context.launch_gateway = refuse


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose by `--slow` and `--fast`; long files come first.

    The tests that use the fixture `spark` are known by it; others that start Spark are marked `starts_spark`.
    """
    chosen, left_out = [], []
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "spark" in fixtures:
            item.add_marker("starts_spark")
        slow = item.get_closest_marker("slow") and not config.getoption("--slow")
        spark = item.get_closest_marker("starts_spark") and config.getoption("--fast")
        if slow or spark:
            left_out.append(item)
            continue
        chosen.append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(chosen, key=_turn)


@pytest.hookimpl(optionalhook=True)  # a hook of xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """The tests of a file go to one process, for they share fixtures that cost seconds; those of `e2e` too.

    Not by the marks `xdist_group`: xdist 3.8 writes them where pytest 9.2 no longer looks, and nothing says so.
    """
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return Scheduling(config, log)


def scope_of(nodeid: str) -> str:
    """What is kept together in one process."""
    file = nodeid.partition("::")[0]
    # processes and clusters of their own: one after the other, beside the tests of a session
    return "tests/e2e" if file.startswith("tests/e2e/") else file


FIRST = ("e2e", "oracle", "replay", "runtime", "server", "bad_input")
"""Folders whose files take long. They come first, so that both processes end at about the same time."""


def _turn(item: pytest.Item) -> int:
    folder = item.nodeid.split("/")[1]
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


@pytest.fixture(scope="session")
def users_session(request: pytest.FixtureRequest) -> bool:
    """Whether the session is one that the user made (`--users-session`)."""
    return bool(request.config.getoption("--users-session"))


@pytest.fixture(scope="session")
def spark(users_session: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session of this process's tests, on two local cores. Tests must not stop it or change its settings."""
    from samovar.runtime.spark.session import spark_session

    conf = {**TEST_PROFILE, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    if users_session:
        session = plain_session({key: value for key, value in conf.items() if key not in QUICK_SQL})
    else:
        session = spark_session(master="local[2]", app_name="samovar tests", conf=conf)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def users_settings(spark: SparkSession) -> Iterator[None]:
    """While a module's tests run, Spark plans and runs queries as it does for users."""
    before = {key: spark.conf.get(key) for key in QUICK_SQL}
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    yield
    for key, value in before.items():
        spark.conf.set(key, value or "")


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
