"""Spark's Java classes, parsed and verified once: with this archive a start of Spark costs a third less.

`python -m tests.class_archive` makes the archive in the Python environment, unless it is there for the same Java and
PySpark (`scripts/test` calls it); that takes half a minute and 200 MB. `OPTIONS` is for every Java of the tests' own.

Guarantees: a Java that the archive does not fit (another version, other jars) ignores it and prints nothing, as if it
were not there; an archive is there whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["OPTIONS"]

ARCHIVE = Path(sys.prefix) / "samovar-tests" / "classes.jsa"
MADE_FOR = ARCHIVE.with_suffix(".made-for")

OPTIONS = f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:disable" if ARCHIVE.exists() else ""
"""Java writes to stdout why it ignores an archive, unless its log is off."""


def main() -> int:
    """Make the archive if need be. Never fails: tests run without one."""
    from samovar.errors import EnvironmentProblem

    try:
        wanted = _fingerprint()
    except EnvironmentProblem:
        return 0  # no Java: the tests that start Spark will say so
    try:
        _make(wanted)
    except OSError as problem:
        sys.stderr.write(f"test: no archive of Spark's classes: {problem}\n")
    return 0


def _make(wanted: str) -> None:
    if MADE_FOR.exists() and MADE_FOR.read_text(encoding="utf-8") == wanted:
        return
    sys.stderr.write("test: making an archive of Spark's classes (once; half a minute)\n")
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="samovar-classes-", dir=ARCHIVE.parent) as folder:
        made = Path(folder) / "classes.jsa"
        command = [sys.executable, "-m", "tests.load_classes", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and made.exists():
            os.replace(made, ARCHIVE)
        else:
            sys.stderr.write(f"test: no archive; tests take a little longer\n{done.stderr[-2000:]}\n")
    MADE_FOR.write_text(wanted, encoding="utf-8")  # also without an archive: it is not tried again each time


def _fingerprint() -> str:
    import pyspark
    from tests.spark_profile import JAVA_OPTIONS

    from samovar.runtime.spark.java import find_java

    java = find_java()
    own = hashlib.sha256(Path(__file__).with_name("load_classes.py").read_bytes()).hexdigest()
    options = JAVA_OPTIONS.replace(OPTIONS, "").strip()
    return "\n".join([str(java.home), java.version, pyspark.__version__, options, own])


if __name__ == "__main__":
    sys.exit(main())
