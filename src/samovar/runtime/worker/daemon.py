"""Where Python workers are forked from: PySpark's daemon, which has imported already what every worker needs.

A worker of PySpark's own daemon imports pandas, PyArrow and Samovar with its first task: 2 s of a core. It ends with
every task that fails or is cancelled, so that a run with many pauses or failures pays for it again and again. Sessions
that Samovar starts on this machine use this module instead (`spark.python.daemon.module`).
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401
import pyarrow as pa
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

from samovar.runtime.worker import entry  # noqa: F401

if __name__ == "__main__":
    pa.array(())  # with its first array, PyArrow looks for pandas
    gc.freeze()  # a collection in a worker would touch, and so copy, all pages that it shares with the daemon
    manager()
