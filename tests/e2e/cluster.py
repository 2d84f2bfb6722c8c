"""A real standalone Spark cluster on loopback: one master, two workers of one core each, from the pip package.

Workers may be hidden from folders of the driver's: they then run in a mount namespace of their own with an empty file
system in the place of each folder, as if they were on another host (`can_hide` says whether this machine allows it).

Used by tests and benchmarks. It takes about ten seconds to start, and `close` kills all its processes, executors
included. Executors get the interpreter and import path of this process, so that samovar is importable there.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType

import psutil
from tests.spark_profile import JAVA_OPTIONS, TEST_PROFILE

from samovar.runtime.spark.java import find_java, launch_home

__all__ = ["Cluster", "can_hide"]

_ROOT = Path(__file__).resolve().parents[2]
_HOST = "127.0.0.1"


class Cluster:
    """A running cluster: `master` is its address. Use as a context manager."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        memory: str = "1g",
        hidden: Sequence[Path] = (),
        hidden_from: Sequence[int] = (),
        quick: bool = False,
    ) -> None:
        """`hidden`: folders that exist, and that the workers numbered in `hidden_from` do not see.

        `quick`: with the tests' settings of Spark, for jobs over a few rows; benchmarks take users' settings.
        """
        import pyspark

        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._home = Path(pyspark.__file__).parent
        self._memory = memory
        self._quick = quick
        self._processes: list[subprocess.Popen[bytes]] = []
        self._java = str(launch_home(find_java()))
        port, page = _free_port(), _free_port()
        self.master = f"spark://{_HOST}:{port}"
        try:
            self._start("master", "Master", "--host", _HOST, "--port", str(port), "--webui-port", str(page))
            self._wait_for("master", "I have been elected leader")
            for n in range(workers):
                self._start_worker(n, hidden if n in hidden_from else ())
            for n in range(workers):
                self._wait_for(f"worker-{n}", "Successfully registered with master")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def join(self, *, hidden: Sequence[Path] = ()) -> None:
        """One worker more, which does not see some folders."""
        n = len(self._processes) - 1
        self._start_worker(n, hidden)
        self._wait_for(f"worker-{n}", "Successfully registered with master")

    @property
    def conf(self) -> dict[str, str]:
        """Settings for a session on this cluster: small executors, loopback addresses, our interpreter and path."""
        return {
            **(TEST_PROFILE if self._quick else {}),
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.driver.memory": "1g",
            "spark.executor.memory": "700m",
            "spark.executor.cores": "1",
            "spark.executorEnv.PYTHONPATH": _python_path(),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            # the first tasks wait for both executors, so that a test that kills one finds two
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "30s",
        }

    def kill_worker(self, n: int) -> None:
        """Kill a worker and its executor, as if its host were gone."""
        worker = psutil.Process(self._processes[1 + n].pid)
        for victim in [worker, *worker.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()

    def executors(self) -> list[psutil.Process]:
        """The executors' Java processes that live now, oldest first."""
        found = []
        for worker in self._processes[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(worker.pid).children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                        if any("CoarseGrainedExecutorBackend" in a for a in child.cmdline()):
                            found.append(child)
        return sorted(found, key=lambda p: p.create_time())

    def said(self, who: str) -> str:
        """What `master`, `worker-0` or `worker-1` has printed."""
        return (self.folder / f"{who}.out").read_text(errors="replace")

    def said_by_executors(self, n: int) -> str:
        """What the executors of a worker have printed."""
        files = (self.folder / f"worker-{n}").glob("app-*/*/stderr")
        return "".join(file.read_text(errors="replace") for file in files)

    def close(self) -> None:
        """Kill everything."""
        doomed: list[psutil.Process] = []
        for process in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                parent = psutil.Process(process.pid)
                doomed += [parent, *parent.children(recursive=True)]
        for victim in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        for process in self._processes:
            process.wait()
        self._processes.clear()

    def _start_worker(self, n: int, hidden: Sequence[Path]) -> None:
        page, work = str(_free_port()), str(self.folder / f"worker-{n}")
        places = ["--host", _HOST, "--webui-port", page, "--work-dir", work]
        self._start(
            f"worker-{n}", "Worker", "-c", "1", "-m", self._memory, *places, self.master, hidden=hidden
        )

    def _start(self, who: str, kind: str, *arguments: str, hidden: Sequence[Path] = ()) -> None:
        environ = {
            **os.environ,
            "JAVA_HOME": self._java,
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_DIRS": str(self.folder / "local"),
        }
        command = [
            str(self._home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{kind.lower()}.{kind}",
            *arguments,
        ]
        with (self.folder / f"{who}.out").open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    _without(hidden, command),
                    env=environ,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )

    def _wait_for(self, who: str, line: str, timeout: float = 90) -> None:
        deadline = time.monotonic() + timeout
        while line not in self.said(who):
            if time.monotonic() > deadline or any(p.poll() is not None for p in self._processes):
                raise RuntimeError(f"{who} did not say {line!r}:\n{self.said(who)[-3000:]}")
            time.sleep(0.05)


@lru_cache(maxsize=1)
def can_hide() -> bool:
    """Whether this process may make mount namespaces (root on Linux)."""
    try:
        done = subprocess.run(_without([Path("/mnt")], ["true"]), capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _without(folders: Sequence[Path], command: list[str]) -> list[str]:
    """The command where some folders are empty."""
    if not folders:
        return command
    mounts = [f"mount -t tmpfs none {shlex.quote(str(folder))}" for folder in folders]
    return ["unshare", "-m", "sh", "-c", " && ".join([*mounts, f"exec {shlex.join(command)}"])]


def _python_path() -> str:
    import samovar

    own = [str(_ROOT), str(Path(samovar.__file__).parents[1])]
    return os.pathsep.join(
        dict.fromkeys([*own, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
