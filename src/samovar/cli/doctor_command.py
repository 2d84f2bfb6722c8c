"""`samovar doctor`: is this machine ready, and if not, what is to be done?

Each check looks at one thing and returns a `Check`; none raises. Checks that need Spark run it in a process of its own
with a time limit, so that a Spark that hangs cannot hang the doctor.
"""

from __future__ import annotations

import contextlib
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
    """Say whether this machine is ready, and what to do if not.

    Exits with 1 if something keeps Samovar from running. Takes some seconds, because it runs a small Spark job;
    --quick leaves that out.
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
        check = look()
        done.append(check)
        yield check
    if quick:
        return
    if _ready(done):
        yield check_job()
    else:
        yield Check(
            "Spark job", "warning", "not tried", "Solve the problems above, then run samovar doctor again."
        )


def _ready(checks: Iterable[Check]) -> bool:
    return all(check.status != "problem" for check in checks)


# ---- the checks


def check_python() -> Check:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        return Check("Python", "problem", found, "Samovar needs Python 3.11 or newer.")
    return Check("Python", "ok", found)


def check_java() -> Check:
    try:
        java = find_java()
    except EnvironmentProblem as problem:
        return Check("Java", "problem", problem.message, problem.hint)
    return Check("Java", "ok", f"{java.version} in {java.home} (by way of {java.origin})")


def check_pyspark() -> Check:
    check = _check_package("pyspark", (4, 3), (4, 4))
    outer = os.environ.get("SPARK_HOME")
    if check.status == "ok" and outer:
        return Check(
            check.name,
            "warning",
            f"{check.found}, but SPARK_HOME is {outer}",
            "Spark is started from SPARK_HOME: unset it, unless that is a Spark 4.3.",
        )
    return check


def check_pandas() -> Check:
    return _check_package("pandas", (2, 2), (3,))


def check_pyarrow() -> Check:
    return _check_package("pyarrow", (18,), None)


def check_ports() -> Check:
    port = free_ui_port()
    if port == 0:
        return Check(
            "UI port",
            "warning",
            "none free from 4040 on; any other is taken",
            "Other Spark sessions may have been left running: look for them with `ps aux | grep SparkSubmit`.",
        )
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as problem:
        return Check(
            "UI port",
            "problem",
            f"no port can be opened on 127.0.0.1: {problem.strerror}",
            "Spark and its Python workers talk through local ports: allow them in this sandbox or firewall.",
        )
    return Check("UI port", "ok", f"{port} is free for Spark's own pages")


def check_hostname() -> Check:
    name = socket.gethostname()
    if hostname_resolves():
        return Check("Host name", "ok", f"{name} resolves")
    return Check(
        "Host name",
        "warning",
        f"{name} does not resolve; local runs use 127.0.0.1",
        f"For a cluster, add it to /etc/hosts: 127.0.1.1 {name}",
    )


def check_memory() -> Check:
    total = memory_bytes()
    cores = local_cores("local[*]")
    found = f"{total / _GIB:.1f} GiB, {cores} cores; a local Spark gets {driver_memory_mib() / 1024:.1f} GiB"
    if total < 2 * _GIB:
        return Check("Memory", "warning", found, "Spark and its Python workers want 2 GiB or more.")
    return Check("Memory", "ok", found)


def check_disk() -> Check:
    """Recordings go to the current folder by default, Spark's shuffle files to the temporary one."""
    places = {
        "here": Path.cwd(),
        "temporary files": Path(os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()),
    }
    found = []
    short = False
    for what, folder in places.items():
        try:
            free = shutil.disk_usage(folder).free
        except OSError as problem:
            return Check(
                "Disk", "problem", f"{folder}: {problem.strerror}", "Create that folder or name another."
            )
        found.append(f"{free / _GIB:.1f} GiB free for {what} ({folder})")
        short = short or free < 2 * _GIB
        if not os.access(folder, os.W_OK):
            return Check(
                "Disk",
                "problem" if what == "temporary files" else "warning",
                f"{folder} cannot be written to",
                "Set TMPDIR to a folder that can."
                if what == "temporary files"
                else "Record elsewhere: --record.",
            )
    advice = (
        "Less than 2 GiB is soon full: free some, or set SPARK_LOCAL_DIRS to another disk." if short else None
    )
    return Check("Disk", "warning" if short else "ok", ", ".join(found), advice)


def check_job(timeout: float = _JOB_TIMEOUT) -> Check:
    """Starts Spark as a run would, with a Python worker, in a process of its own."""
    command = [sys.executable, "-c", "from samovar.cli.doctor_command import _job; _job()"]
    started = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return Check(
            "Spark job",
            "problem",
            f"not finished after {timeout:.0f} s",
            "Something keeps Spark from talking to its workers, often a firewall or a proxy for 127.0.0.1. "
            "SAMOVAR_SPARK_LOG=info samovar run ... shows where it waits.",
        )
    seconds = time.monotonic() - started
    if done.returncode == 0:
        return Check(
            "Spark job", "ok", f"ran in {seconds:.0f} s, with a Python worker ({done.stdout.strip()})"
        )
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return Check(
        "Spark job",
        "problem",
        said[-1][:300] if said else f"the process ended with exit code {done.returncode}",
        "SAMOVAR_DEBUG=1 samovar doctor shows all that Spark said."
        if os.environ.get("SAMOVAR_DEBUG", "0") == "0"
        else "Spark said:\n" + "\n".join(said[-60:]),
    )


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


def _check_package(name: str, oldest: tuple[int, ...], before: tuple[int, ...] | None) -> Check:
    wanted = f">={_dotted(oldest)}" + (f",<{_dotted(before)}" if before else "")
    advice = f"Install a version that fits: pip install '{name}{wanted}'"
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        version = importlib.metadata.version(name)
        numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
        if numbers < oldest or (before is not None and numbers >= before):
            return Check(name, "problem", f"{version}, expected {wanted}", advice)
        return Check(name, "ok", version)
    return Check(name, "problem", "not installed", advice)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


_CHECKS: tuple[Callable[[], Check], ...] = (
    check_python,
    check_java,
    check_pyspark,
    check_pandas,
    check_pyarrow,
    check_ports,
    check_hostname,
    check_memory,
    check_disk,
)


# ---- showing them


def _show(checks: Iterable[Check]) -> list[Check]:
    """Prints each finding as it comes, with a spinner while the next one is awaited."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    marks = {"ok": ("ok", "green"), "warning": ("!!", "yellow"), "problem": ("XX", "bold red")}
    done = []
    with console.status("Looking ..."):
        for check in checks:
            done.append(check)
            mark, style = marks[check.status]
            line = Table.grid(padding=(0, 1))
            line.add_column(width=2)
            line.add_column(width=10)
            line.add_column(overflow="fold")
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
