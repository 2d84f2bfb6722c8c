"""Spark settings for tests: jobs over a few rows, where compiling code costs more than it saves."""

from __future__ import annotations

from tests.class_archive import OPTIONS

__all__ = ["JAVA_OPTIONS", "QUICK_SQL", "TEST_PROFILE"]

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=256m "
    + OPTIONS
).strip()
"""The quick compiler alone, with the room that both compilers have by default (in its own 48 MB, code is thrown out and
compiled again all the time), and a collector without threads of its own: two processes share two cores. Metaspace is
there from the start: while it grows step by step, all memory is collected again and again. Classes come from an archive
where there is one."""

QUICK_SQL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""What the fixture `users_settings` takes back."""

TEST_PROFILE = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Xms768m -Xmn384m",
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    **QUICK_SQL,
}
