"""For tests with pytest: `assert_equivalent`, and one Spark session for the whole run. Loaded by pytest itself.

Importing this imports neither PySpark nor pyarrow; a test run that compares nothing pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["assert_equivalent", "pytest_addoption", "samovar_spark"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of a test run; each has an entry of the same name for the configuration file."""
    group = parser.getgroup("samovar", "comparing tables and programs with Samovar")
    for name, default, text in (
        ("master", "", "the Spark that tests run on (default: local[2], or the session that is there)"),
        ("examples", "", "how many generated inputs a check tries"),
        ("seed", "", "the seed of generated inputs"),
    ):
        group.addoption(
            f"--samovar-{name}", dest=f"samovar_{name}", default=None, metavar=name.upper(), help=text
        )
        parser.addini(f"samovar_{name}", text, default=default)


@pytest.fixture(scope="session")
def samovar_spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """One Spark session for the whole run. A session that is there already is used, and left as it is."""
    from pyspark.sql import SparkSession

    from samovar.runtime.spark.session import spark_session

    live = SparkSession.getActiveSession()
    if live is not None:
        yield live
        return
    master = _setting(request.config, "master") or "local[2]"
    session = spark_session(master=master, app_name="tests", conf={"spark.ui.enabled": False})
    yield session
    session.stop()


@pytest.fixture
def assert_equivalent(request: pytest.FixtureRequest, samovar_spark: SparkSession) -> Callable[..., None]:
    """`assert_equivalent(left, right, ...)` on the session of the run, with its examples and seed for programs."""
    from samovar.diff.assertions import assert_equivalent as asserting

    chosen: dict[str, Any] = {}
    for name in ("examples", "seed"):
        given = _setting(request.config, name)
        if given:
            chosen[name] = _number(name, given)

    def asserted(left: Any, right: Any, inputs: Any = None, **options: Any) -> None:
        __tracebackhide__ = True
        call = partial(asserting, left, right, inputs, spark=samovar_spark)
        call(**({**chosen, **options} if inputs is not None else options))

    return asserted


def _setting(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"samovar_{name}")
    return str(given if given is not None else config.getini(f"samovar_{name}"))


def _number(name: str, given: str) -> int:
    try:
        return int(given)
    except ValueError:
        raise pytest.UsageError(f"Expected a whole number for --samovar-{name}, got '{given}'.") from None
