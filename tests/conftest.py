"""Fixtures for all tests. There is one Spark session for the whole run: starting Java takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The same inputs in every run, so that a failure is one of the change at hand. `--hypothesis-profile=default` looks
# further afield.
settings.register_profile("seeded", derandomize=True)
settings.load_profile("seeded")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session of the whole run, on two local cores. Tests must not stop it or leave settings changed."""
    from samovar.runtime.session import spark_session

    session = spark_session(
        master="local[2]",
        app_name="samovar tests",
        conf={
            "spark.ui.enabled": False,
            "spark.driver.memory": "2g",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()
