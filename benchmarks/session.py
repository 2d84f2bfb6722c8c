"""The Spark session that benchmarks share, and a description of the machine they ran on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["machine", "session"]

_ROOT = Path(__file__).resolve().parent.parent


def session(
    *, master: str = "local[*]", memory: str = "4g", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A session whose Python workers can import ``benchmarks``; a running one keeps its settings."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    cores = os.cpu_count() or 2
    builder = (
        SparkSession.builder.master(master)
        .appName("samovar-bench")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.sql.shuffle.partitions", str(2 * cores))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for name, value in (conf or {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def machine() -> dict[str, Any]:
    """Cores, memory, versions and date, for a result's header."""
    versions: dict[str, str | None] = {}
    for package in ("samovar", "pyspark", "pyarrow", "numpy"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
