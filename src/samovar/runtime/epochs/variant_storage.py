"""VARIANT columns of results, stored whole.

Spark's Parquet writer cuts a VARIANT into typed columns ("shredding"), by what it finds in the first rows of a file.
Only Spark puts them together again; a result is read without Spark. No option of a writer turns that off, only a
setting of the session: it is changed while a result with a VARIANT is written, and put back.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from samovar.compile.kept_types import has_variant

__all__ = ["whole_variants"]

_SETTING = "spark.sql.variant.writeShredding.enabled"
_lock = threading.Lock()
_writing: Counter[int] = Counter()
"""How many results are being written in each session: the last to end puts the setting back."""
_before: dict[int, str | None] = {}


@contextmanager
def whole_variants(spark: SparkSession, schema: StructType) -> Iterator[None]:
    """Have VARIANT columns written whole. Does nothing for a schema without them. For any thread."""
    if not has_variant(schema):
        yield
        return
    session = id(spark)
    with _lock:
        if not _writing[session]:
            _before[session] = spark.conf.get(_SETTING, None)
            spark.conf.set(_SETTING, "false")
        _writing[session] += 1
    try:
        yield
    finally:
        with _lock:
            _writing[session] -= 1
            if not _writing[session]:
                del _writing[session]
                known = _before.pop(session)
                if known is None:
                    spark.conf.unset(_SETTING)
                else:
                    spark.conf.set(_SETTING, known)
