"""A process of its own that runs or resumes the workflow of `flows`, and can kill itself at a chosen instant.

`python -m tests.e2e.child SPEC` with a JSON object: `record`, `run`, and for a start `source` and `target`; optional
`master`, `conf`, `epoch_bytes`, `gates` and `at` (see `flows.Gate`), and `kill`, as {"at": "commit" or "publish",
"nth": n, "when": "before", "torn" or "after"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark_profile import TEST_PROFILE

__all__ = ["Child", "die_with_parent", "wait_until"]

ROOT = Path(__file__).resolve().parents[2]


class Child:
    """A child process with its output in a file, in a process group of its own."""

    def __init__(self, folder: Path, spec: dict[str, Any], *, module: str = "tests.e2e.child") -> None:
        self.output = folder / f"{spec['run']}-{time.monotonic_ns()}.out"
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, json.dumps(spec)],
                cwd=folder,
                env=environ,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        """What it has printed so far."""
        return self.output.read_text(errors="replace")

    def kill(self, *, group: bool) -> None:
        """SIGKILL for the driver's Python process alone, or for all of its process group (Java, Python workers)."""
        if group:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()

    def end(self, timeout: float = 180) -> int:
        """Wait for the end and clear away what of its process group is left; the exit code."""
        try:
            return self.process.wait(timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def wait_until(true: Callable[[], bool], child: Child, timeout: float = 120) -> None:
    """Look every few milliseconds; fails when the child ends or time is up before."""
    deadline = time.monotonic() + timeout
    while not true():
        if child.process.poll() is not None:
            raise AssertionError(f"the child ended too early:\n{child.said()}")
        if time.monotonic() > deadline:
            child.kill(group=True)
            raise AssertionError(f"waited {timeout} s in vain:\n{child.said()}")
        time.sleep(0.002)


def die_with_parent() -> None:
    """Have this process killed when the test that started it is gone (Linux); its Java process then ends by itself."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _arm(at: str, nth: int, when: str) -> None:
    """Have this process kill itself in the nth commit of an epoch, or the nth move of a published file."""
    from samovar.record import log
    from samovar.runtime import publication

    count = 0
    append, move = log.Log.append, publication._move

    def deadly_append(self: log.Log, fact: log.Fact) -> None:
        nonlocal count
        if at == "commit" and isinstance(fact, log.EpochCommitted):
            count += 1
            if count == nth and when == "before":
                _die()
            if count == nth and when == "torn":
                with self.path.open("ab") as file:
                    file.write(b"0123abcd " + log._encode(fact)[:40])
                _die()
        append(self, fact)
        if at == "commit" and isinstance(fact, log.EpochCommitted) and count == nth:
            _die()

    def deadly_move(file: Path, to: Path) -> None:
        nonlocal count
        count += at == "publish"
        if at == "publish" and count == nth and when == "before":
            _die()
        move(file, to)
        if at == "publish" and count == nth:
            _die()

    log.Log.append = deadly_append  # type: ignore[method-assign]
    publication._move = deadly_move


def main(spec: dict[str, Any]) -> int:
    """Run, or resume when no source is given."""
    from tests.e2e.flows import build

    import samovar as sv
    from samovar.runtime.spark.session import spark_session

    die_with_parent()
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    if spec.get("kill"):
        _arm(**spec["kill"])
    spark = spark_session(spec.get("master", "local[2]"), {**TEST_PROFILE, **spec.get("conf", {})})
    path = Path(spec["record"])
    if "source" in spec:
        target = Path(spec["target"]) if "target" in spec else None
        gates = Path(spec["gates"]) if "gates" in spec else None
        flow = build(Path(spec["source"]), target, gates=gates, at=spec.get("at", 0))
        run = flow.start(spark=spark, record=path, run_id=spec["run"], epoch_bytes=spec.get("epoch_bytes", 1))
    else:
        run = sv.open(path / spec["run"]).resume(spark)
    try:
        run.wait(progress=False)
    except sv.SamovarError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
