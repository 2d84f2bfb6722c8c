"""`samovar doctor`: is this machine ready, and if not, what to do?

Each check looks at one thing and returns a `Check`; none raises. Checks that need Spark run it in a process of its own
with a time limit, so that a Spark that hangs cannot hang the doctor.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from samovar.errors import EnvironmentProblem
from samovar.runtime.spark.java import find_java
from samovar.runtime.spark.session import (
    driver_memory_mib,
    free_ui_port,
    hostname_resolves,
    local_cores,
    memory_bytes,
)

__all__ = ["Check", "doctor", "examine"]

Status = Literal["ok", "warning", "problem"]

_GIB = 1024**3
_JOB_TIMEOUT = 120.0
_OLDEST_PYTHON = (3, 11)
_PACKAGES: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
    "pyspark": ((4, 3), (4, 4)),
    "pandas": ((2, 2), (3,)),
    "pyarrow": ((18,), None),
}
"""The oldest version that works, and the first one after it that does not (None: all newer ones work)."""


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, and what to do about it; only a `problem` keeps Samovar from running."""

    name: str
    status: Status
    found: str
    advice: str | None = None


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Do not start Spark.")] = False,
) -> None:
    """Check whether this machine is ready, and what to do if not.

    Exits with 1 if something keeps Samovar from running. Takes some seconds, because it runs a small Spark job;
    --quick skips the job.
    """
    if as_json:
        checks = list(examine(quick=quick))
        print(json.dumps({"ready": _ready(checks), "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        checks = _show(examine(quick=quick))
    if not _ready(checks):
        raise typer.Exit(1)


def examine(*, quick: bool) -> Iterable[Check]:
    """Runs the checks one by one; the Spark job comes last, and only if nothing before it stands in its way."""
    done = []
    for look in _CHECKS:
        done.append(look())
        yield done[-1]
    if quick:
        return
    advice = "Solve the problems above, then run samovar doctor again."
    yield check_job() if _ready(done) else Check("Spark job", "warning", "not tried", advice)


def _ready(checks: Iterable[Check]) -> bool:
    return all(check.status != "problem" for check in checks)


# ---- the checks


def check_python() -> Check:
    version = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        return Check("Python", "problem", version, "Samovar needs Python 3.11 or newer.")
    return Check("Python", "ok", version)


def check_java() -> Check:
    try:
        java = find_java()
    except EnvironmentProblem as problem:
        return Check("Java", "problem", problem.message, problem.hint)
    return Check("Java", "ok", f"{java.version} in {java.home} (by way of {java.origin})")


def check_pyspark() -> Check:
    check = check_package("pyspark")
    outer = os.environ.get("SPARK_HOME")
    if check.status != "ok" or not outer:
        return check
    advice = "Spark is started from SPARK_HOME: unset it, unless that is a Spark 4.3."
    return Check("pyspark", "warning", f"{check.found}, but SPARK_HOME is {outer}", advice)


def check_package(name: str) -> Check:
    """Whether a package is installed in one of the versions of `_PACKAGES`."""
    oldest, before = _PACKAGES[name]
    wanted = f">={_dotted(oldest)}" + (f",<{_dotted(before)}" if before else "")
    advice = f"Install a version that fits: pip install '{name}{wanted}'"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, "problem", "not installed", advice)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < oldest or (before and numbers >= before):
        return Check(name, "problem", f"{version}, expected {wanted}", advice)
    return Check(name, "ok", version)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def check_ports() -> Check:
    port = free_ui_port()
    if port == 0:
        found = "no port from 4040 on is free; Spark takes any other"
        advice = "Other Spark sessions may still be running: `ps aux | grep SparkSubmit` lists them."
        return Check("UI port", "warning", found, advice)
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as problem:
        found = f"no port can be opened on 127.0.0.1: {problem.strerror}"
        advice = "Spark and its Python workers use local ports: allow them in this sandbox or firewall."
        return Check("UI port", "problem", found, advice)
    return Check("UI port", "ok", f"{port} is free for Spark's own pages")


def check_hostname() -> Check:
    name = socket.gethostname()
    if hostname_resolves():
        return Check("Host name", "ok", f"{name} resolves")
    found = f"{name} does not resolve; local runs use 127.0.0.1"
    return Check("Host name", "warning", found, f"For a cluster, add it to /etc/hosts: 127.0.1.1 {name}")


def check_memory() -> Check:
    total, cores = memory_bytes(), local_cores("local[*]")
    found = f"{total / _GIB:.1f} GiB, {cores} cores; a local Spark gets {driver_memory_mib() / 1024:.1f} GiB"
    if total < 2 * _GIB:
        return Check("Memory", "warning", found, "Spark and its Python workers want 2 GiB or more.")
    return Check("Memory", "ok", found)


def check_disk() -> Check:
    """Recordings go to the current folder by default, Spark's shuffle files to the temporary one."""
    here, temporary = Path.cwd(), Path(os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir())
    try:
        free = {folder: shutil.disk_usage(folder).free for folder in (here, temporary)}
    except OSError as problem:
        found = f"{problem.filename}: {problem.strerror}"
        return Check("Disk", "problem", found, "Create that folder or name another.")
    if not os.access(temporary, os.W_OK):
        return Check("Disk", "problem", f"{temporary} is not writable", "Set TMPDIR to a folder that is.")
    if not os.access(here, os.W_OK):
        return Check("Disk", "warning", f"{here} is not writable", "Record elsewhere: --record.")
    found = (
        f"{free[here] / _GIB:.1f} GiB free for recordings ({here}), "
        f"{free[temporary] / _GIB:.1f} GiB free for temporary files ({temporary})"
    )
    if min(free.values()) < 2 * _GIB:
        advice = "Less than 2 GiB is soon full: free some, or set SPARK_LOCAL_DIRS to another disk."
        return Check("Disk", "warning", found, advice)
    return Check("Disk", "ok", found)


def check_job(timeout: float = _JOB_TIMEOUT) -> Check:
    """Starts Spark as a run would, with a Python worker, in a process of its own."""
    command = [sys.executable, "-c", "from samovar.cli.doctor_command import _job; _job()"]
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        advice = (
            "Something keeps Spark from reaching its workers, often a firewall or a proxy for 127.0.0.1. "
            "SAMOVAR_SPARK_LOG=info samovar run ... shows where it waits."
        )
        return Check("Spark job", "problem", f"not finished after {timeout:.0f} s", advice)
    if done.returncode == 0:
        seconds = time.monotonic() - started
        found = f"ran in {seconds:.0f} s, with a Python worker ({done.stdout.strip()})"
        return Check("Spark job", "ok", found)
    errors = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    found = errors[-1][:300] if errors else f"the process ended with exit code {done.returncode}"
    if os.environ.get("SAMOVAR_DEBUG", "0") == "0":
        return Check("Spark job", "problem", found, "SAMOVAR_DEBUG=1 samovar doctor shows Spark's log.")
    return Check("Spark job", "problem", found, "Spark's log:\n" + "\n".join(errors[-60:]))


def _job() -> None:
    """The job of `check_job`: counts through a Python worker and prints which Spark did it."""
    from samovar.runtime.spark.session import spark_session

    spark = spark_session(app_name="samovar doctor")

    def same(batches):  # type: ignore[no-untyped-def]
        yield from batches

    counted = spark.range(1000).mapInArrow(same, "id long").count()
    if counted != 1000:
        raise EnvironmentProblem(f"Expected the job to count 1000 rows, got {counted}.")
    print(f"Spark {spark.version}, {spark.conf.get('spark.master')}")
    spark.stop()


_CHECKS: tuple[Callable[[], Check], ...] = (
    check_python,
    check_java,
    check_pyspark,
    partial(check_package, "pandas"),
    partial(check_package, "pyarrow"),
    check_ports,
    check_hostname,
    check_memory,
    check_disk,
)


# ---- showing them


def _show(checks: Iterable[Check]) -> list[Check]:
    """Prints each finding as it comes, with a spinner while the next one is awaited."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console(highlight=False)
    marks = {"ok": ("ok", "green"), "warning": ("!!", "yellow"), "problem": ("XX", "bold red")}
    done = []
    with console.status("Looking ..."):
        for check in checks:
            done.append(check)
            mark, style = marks[check.status]
            line = Table.grid(Column(width=2), Column(width=10), Column(overflow="fold"), padding=(0, 1))
            line.add_row(Text(mark, style=style), Text(check.name, style="bold"), Text(check.found))
            if check.advice:
                line.add_row("", "", Text(check.advice, style=style))
            console.print(line)
    problems = sum(check.status == "problem" for check in done)
    if problems:
        verdict = f"Not ready: {problems} problem{'s' if problems > 1 else ''} to solve (marked XX)."
        console.print(Text(verdict, style="bold red"))
    else:
        console.print(Text("Ready.", style="bold green"))
    return done
