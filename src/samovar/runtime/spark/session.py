"""The Spark session of a run whose caller passes none.

`spark_session` returns the live session, or starts one whose defaults suit a workflow on one machine: every core, few
shuffle partitions, memory sized to the machine, a quiet console. The user's settings win over every default: in `conf`,
in `spark-defaults.conf`, in `PYSPARK_SUBMIT_ARGS` or on the command line of `spark-submit`. Spark itself would let a
default that is set here win over `spark-defaults.conf`, which is why that file is read here.

Cost: several seconds for the first session of a process (a Java process is started; more on a busy machine), about a
millisecond after that. Threads may call it at the same time: they get the same session, and wait while it starts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samovar.errors import EnvironmentProblem
from samovar.runtime.spark.java import find_java, launch_home

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = [
    "driver_memory_mib",
    "free_ui_port",
    "hostname_resolves",
    "local_cores",
    "memory_bytes",
    "quiet_query_errors",
    "spark_session",
    "warm_up",
]

_log = logging.getLogger(__name__)

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_LOOPBACK = "127.0.0.1"
_FIRST_UI_PORT = 4040
_UI_PORTS_TRIED = 64
"""Spark itself tries 16 ports and logs a warning for each that is taken."""
_MASTER_SECONDS = 5.0
"""Seconds to wait for a master's answer: one in the same network answers in milliseconds."""
_GIB = 1024**3

_starting = threading.Lock()


def spark_session(
    master: str | None = None,
    conf: Mapping[str, Any] | None = None,
    app_name: str = "samovar",
) -> SparkSession:
    """The live Spark session of this process, or a new one.

    A live session is returned as it is, apart from those entries of `conf` that Spark lets change at run time. Asking
    for a `master` other than the live session's raises `EnvironmentProblem`, as does a machine on which Spark cannot
    start. Without `master` and without one in Spark's own settings, all cores of this machine are used.
    """
    wanted = {key: _text(value) for key, value in (conf or {}).items()}
    if master is None:
        master = wanted.get("spark.master")
    with _starting:
        live = _live_session()
        if live is not None:
            return _adopt(live, master, wanted)
        if _is_connect(master):
            return _start_connect(master, wanted)
        return _start(master, wanted, app_name)


def warm_up(spark: SparkSession) -> None:
    """Run a tiny job with a shuffle and a Python worker, so that Spark has loaded everything before the first real job.

    For a background thread while other things are prepared; takes a few seconds in a fresh session. Never raises: in a
    session that does not work, the first real job raises.
    """

    # Nested, so that it is pickled by value and a worker needs no samovar for it.
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    try:
        with contextlib.suppress(Exception):  # Spark Connect has no job descriptions
            spark.sparkContext.setJobDescription("samovar: warm-up")
        frame = spark.range(0, 8, 1, 2).selectExpr("id", "id % 2 as parity")
        frame.mapInArrow(same, "id long, parity long").groupBy("parity").count().toArrow()
    except Exception as problem:
        _log.debug("The warm-up job failed: %s", problem)
    finally:
        with contextlib.suppress(Exception):
            spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]


def end_java() -> None:
    """End the Java process of this Python process, so that its memory is free. No session may be in use.

    `SparkSession.stop` ends Spark and leaves Java running with the memory it had taken. PySpark starts a new Java
    process when the next session is asked for, provided it has forgotten the old one.
    """
    from pyspark import SparkContext

    with _starting:
        gateway = SparkContext._gateway
        if gateway is None or SparkContext._active_spark_context is not None:
            return
        SparkContext._gateway = SparkContext._jvm = None
        process = getattr(gateway, "proc", None)
        with contextlib.suppress(Exception):
            gateway.shutdown()
        if process is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()  # Java ends with the pipe it reads from
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def quiet_query_errors() -> None:
    """Keep PySpark from printing each failed query's whole Java stack as one line of JSON on stderr.

    The exception, which is raised all the same, has the message. Called for the sessions started here; for a session of
    the user's it is the user's choice.
    """
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


# ---- a live session


def _live_session() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.active()
        session.version  # noqa: B018  a stopped session raises here
    except Exception:  # PySpark's, or py4j's when the Java process is gone
        return None
    return session


def _adopt(session: SparkSession, master: str | None, wanted: Mapping[str, str]) -> SparkSession:
    if master is not None and not _is_connect(master):
        current = session.conf.get("spark.master", None)
        if current is not None and current != master:
            raise EnvironmentProblem(
                f"Expected to run on '{master}', but this process already has a Spark session on '{current}'.",
                hint="Stop that session first (spark.stop()), or leave the master out to use it.",
            )
    for key, value in wanted.items():
        if key == "spark.master" or session.conf.get(key, None) == value:
            continue
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
        else:
            _log.warning("%s=%s has no effect: the Spark session was started without it.", key, value)
    return session


# ---- a new session


def _start_connect(master: str | None, wanted: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder if master is None else SparkSession.builder.remote(master)
    for key, value in wanted.items():
        if key != "spark.master":
            builder = builder.config(key, value)
    return builder.getOrCreate()


def _start(master: str | None, wanted: dict[str, str], app_name: str) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started Java, with its own settings
    users = {} if submitted else _user_settings(os.environ)
    if master is None:
        master = users.get("spark.master")
    if master is None and not submitted:
        master = "local[*]"

    settings = dict(wanted)
    if master is not None:
        settings["spark.master"] = master
    if not submitted:
        for key, value in _defaults(master or "", app_name).items():
            if key not in users:
                settings.setdefault(key, value)

    if master is not None:
        _check_master(master)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _environment(_launch_environment(master, submitted)):
            session = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as problem:
        raise EnvironmentProblem(
            f"Spark did not start on '{master}': {_cause(problem)}",
            hint="`samovar doctor` looks for the cause; SAMOVAR_SPARK_LOG=info shows Spark's own messages.",
        ) from problem
    if submitted:
        _set_missing(session, _sql_defaults(master or ""))
    if not os.environ.get("SAMOVAR_SPARK_LOG"):
        quiet_query_errors()
    return session


def _check_master(master: str) -> None:
    """Raise for a master that does not answer, before Spark tries for a minute and a half."""
    if not re.match(r"local(\[(\*|\d+)(,\s*\d+)?\]|-cluster\[.*)?\Z|spark://|yarn\Z|k8s://", master):
        raise EnvironmentProblem(
            f"Expected a Spark master such as local[4], spark://host:7077, yarn or k8s://..., got '{master}'.",
            hint="Leave it out to use all cores of this machine.",
        )
    if not master.startswith("spark://"):
        return
    reason = ""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_MASTER_SECONDS):
                return
        except (OSError, ValueError) as problem:
            reason = _first_line(problem)
    raise EnvironmentProblem(
        f"Expected a Spark master that answers at '{master}', got: {reason}.",
        hint="Check host and port (the master's web page shows its URL), and that the master runs.",
    )


def _defaults(master: str, app_name: str) -> dict[str, str]:
    """The settings of a new session, unless the user has set them."""
    defaults = {
        "spark.app.name": app_name,
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.port": str(free_ui_port()),
        **_sql_defaults(master),
    }
    # These options come before spark.driver.extraJavaOptions, which stay the user's.
    options = ["-XX:MetaspaceSize=256m"]  # from Java's own 20 MB up, each step collects the whole memory
    if not _has_own_logging(os.environ):
        options.append(f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}")
    defaults["spark.driver.defaultJavaOptions"] = " ".join(options)
    if master.startswith("local"):
        defaults |= {
            "spark.driver.memory": f"{driver_memory_mib()}m",
            # A local Spark is one process: it needs no name and no outside address, which a change of network could
            # take away.
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
        }
        if os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable:  # another Python may lack Samovar
            defaults["spark.python.daemon.module"] = "samovar.runtime.worker.daemon"
    return defaults


def _sql_defaults(master: str) -> dict[str, str]:
    defaults = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Listing files with a Spark job is slower than listing them here, up to thousands of folders.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    }
    if master.startswith("local"):
        defaults["spark.sql.shuffle.partitions"] = str(max(4, 2 * local_cores(master)))
    return defaults


def _set_missing(session: SparkSession, defaults: Mapping[str, str]) -> None:
    started_with = session.sparkContext.getConf()
    for key, value in defaults.items():
        if not started_with.contains(key) and session.conf.isModifiable(key):
            session.conf.set(key, value)


def _launch_environment(master: str | None, submitted: bool) -> dict[str, str]:
    """The environment variables that Spark reads when it starts; the user's own stay as they are."""
    variables = {}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if not os.environ.get(name):
            variables[name] = sys.executable
    if submitted:
        return variables
    variables["JAVA_HOME"] = str(launch_home(find_java()))
    local = (master or "").startswith("local")
    if local and not os.environ.get("SPARK_LOCAL_IP") and not hostname_resolves():
        # Spark looks its own host up before it reads spark.driver.host, and gives up if that fails.
        variables["SPARK_LOCAL_IP"] = _LOOPBACK
    return variables


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while Spark starts, and restore them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# ---- the user's settings


def _user_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Spark settings from `spark-defaults.conf` and, above it, `PYSPARK_SUBMIT_ARGS`."""
    settings: dict[str, str] = {}
    if (folder := _conf_folder(environ)) is not None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            settings |= _parse_properties((folder / "spark-defaults.conf").read_text(encoding="utf-8"))
    return settings | _parse_submit_args(environ.get("PYSPARK_SUBMIT_ARGS", ""))


def _conf_folder(environ: Mapping[str, str]) -> Path | None:
    if folder := environ.get("SPARK_CONF_DIR"):
        return Path(folder)
    if home := environ.get("SPARK_HOME"):
        return Path(home) / "conf"
    return None


def _has_own_logging(environ: Mapping[str, str]) -> bool:
    folder = _conf_folder(environ)
    return folder is not None and any(folder.glob("log4j2*"))


def _parse_properties(text: str) -> dict[str, str]:
    """`spark-defaults.conf`: a key, then white space, `=` or `:`, then the value; `#` starts a comment line."""
    matches = (re.match(r"\s*(?![#!])([^\s=:]+)\s*[=:\s]\s*(.*?)\s*$", line) for line in text.splitlines())
    return {match.group(1): match.group(2) for match in matches if match}


_SUBMIT_OPTIONS = {
    "--master": "spark.master",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
}


def _parse_submit_args(text: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    arguments = iter(shlex.split(text))
    for argument in arguments:
        option, joined, value = argument.partition("=")
        if option in ("--conf", "-c") or option in _SUBMIT_OPTIONS:
            value = value if joined else next(arguments, "")
            if option in _SUBMIT_OPTIONS:
                settings[_SUBMIT_OPTIONS[option]] = value
            else:
                key, _, setting = value.partition("=")
                settings[key] = setting
    return settings


def _is_connect(master: str | None) -> bool:
    return master.startswith("sc://") if master is not None else bool(os.environ.get("SPARK_REMOTE"))


# ---- the machine


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def local_cores(master: str) -> int:
    """The cores a local master uses: `local` one, `local[3]` and `local[3,2]` three, `local[*]` all."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", master)
    if match is None:
        return _cores()
    count = match.group(1)
    return 1 if count is None else _cores() if count == "*" else int(count)


def memory_bytes() -> int:
    """The memory this process may use: the machine's, or less if a container limits it."""
    limits = []
    with contextlib.suppress(ValueError, OSError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(ValueError, OSError):  # "max": there is no limit
            limits.append(int(Path(file).read_text(encoding="ascii")))
    return min(limits, default=4 * _GIB)


def driver_memory_mib(memory: int | None = None) -> int:
    """A quarter of the memory, at least 1 and at most 8 GiB: the rest is for Python workers and the file cache."""
    memory = memory_bytes() if memory is None else memory
    return min(max(memory // 4, _GIB), 8 * _GIB) // 1024**2


def free_ui_port() -> int:
    """A port for Spark's web page: the first free port from 4040 on, or 0 (any) if all that are tried are taken."""
    for port in range(_FIRST_UI_PORT, _FIRST_UI_PORT + _UI_PORTS_TRIED):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("", port))
                return port
    return 0


def hostname_resolves() -> bool:
    """Whether this machine's name has an address: Spark looks it up when it starts, and fails without one."""
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return False
    return True


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cause(problem: BaseException) -> str:
    """The message of an exception, without Java's stack."""
    if getattr(problem, "java_exception", None) is None:
        return _first_line(problem)
    lines = [ln.strip() for ln in str(problem).splitlines() if ln.strip()]
    line = next((ln for ln in lines if re.match(r":?\s*[\w.$]+(Exception|Error)\b", ln)), lines[0])
    return re.sub(r"^:?\s*[\w.$]+: ", "", line)


def _first_line(problem: BaseException) -> str:
    return next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
