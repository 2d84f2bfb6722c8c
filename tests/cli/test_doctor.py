from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from samovar.cli import doctor_command as doctor_module
from samovar.cli import main as main_module
from samovar.cli.doctor_command import Check
from samovar.errors import EnvironmentProblem


def run(*arguments: str) -> int:
    """The exit code of `samovar <arguments>`."""
    with pytest.raises(SystemExit) as ended:
        main_module.main(list(arguments))
    code = ended.value.code
    return code if isinstance(code, int) else 0 if code is None else 1


def finding(check: Check) -> Callable[[], Check]:
    return lambda: check


GOOD = Check("Python", "ok", "3.11")
DUBIOUS = Check("Memory", "warning", "1 GiB", "Get more.")
BAD = Check("Java", "problem", "none", "Install one.")


def test_ready_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor_module, "_CHECKS", (finding(GOOD), finding(DUBIOUS)))
    assert run("doctor", "--quick") == 0
    shown = capsys.readouterr().out
    assert "Ready." in shown
    assert "Get more." in shown


def test_problem_gives_advice_and_a_failing_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_module, "_CHECKS", (finding(GOOD), finding(BAD)))
    assert run("doctor") == 1
    shown = capsys.readouterr().out
    assert "Install one." in shown
    assert "Not ready: 1 problem" in shown
    assert "not tried" in shown  # Spark is not started on a machine that cannot run it


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor_module, "_CHECKS", (finding(GOOD), finding(BAD)))
    assert run("doctor", "--json", "--quick") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["ready"] is False
    assert said["checks"][1] == {
        "name": "Java",
        "status": "problem",
        "found": "none",
        "advice": "Install one.",
    }


def test_this_machine_is_examined_without_spark() -> None:
    names = [check.name for check in doctor_module.examine(quick=True)]
    expected = [
        "Python", "Java", "pyspark", "pandas", "pyarrow", "UI port", "Host name", "Memory", "Disk",
    ]  # fmt: skip
    assert names == expected


def test_missing_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise EnvironmentProblem("Expected Java, found none.", hint="Install it.")

    monkeypatch.setattr(doctor_module, "find_java", none)
    assert doctor_module.check_java() == Check("Java", "problem", "Expected Java, found none.", "Install it.")


@pytest.mark.parametrize(("version", "status"), [("2.1.9", "problem"), ("2.2.0", "ok"), ("3.0.0", "problem")])
def test_package_versions(monkeypatch: pytest.MonkeyPatch, version: str, status: str) -> None:
    monkeypatch.setattr(doctor_module.importlib.metadata, "version", lambda _: version)
    assert doctor_module.check_package("pandas").status == status


def test_host_name_that_does_not_resolve_is_only_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_module, "hostname_resolves", lambda: False)
    assert doctor_module.check_hostname().status == "warning"


def test_a_spark_that_hangs_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("spark", 5)

    monkeypatch.setattr(doctor_module.subprocess, "run", hang)
    check = doctor_module.check_job(timeout=5)
    assert (check.status, check.found) == ("problem", "not finished after 5 s")


@pytest.mark.slow
def test_a_spark_job_runs_on_this_machine() -> None:
    check = doctor_module.check_job()
    assert check.status == "ok", check


# ---- the command itself


def test_an_error_is_one_screen_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*, quick: bool) -> list[Check]:
        raise EnvironmentProblem("line\n" * 500 + "last line", hint="Do this.", operator="FE")

    monkeypatch.delenv("SAMOVAR_DEBUG", raising=False)
    monkeypatch.setattr(doctor_module, "examine", fail)
    assert run("doctor") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Environment problem\nOperator 'FE': line\n")
    assert "last line\nHint: Do this." in shown.err
    assert "Traceback" not in shown.err
    assert shown.err.count("\n") < 30


def test_debug_lets_the_traceback_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*, quick: bool) -> list[Check]:
        raise EnvironmentProblem("no")

    monkeypatch.setenv("SAMOVAR_DEBUG", "1")
    monkeypatch.setattr(doctor_module, "examine", fail)
    with pytest.raises(EnvironmentProblem):
        main_module.main(["doctor"])


def test_an_unexpected_error_is_called_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*, quick: bool) -> list[Check]:
        raise KeyError("oops")

    monkeypatch.delenv("SAMOVAR_DEBUG", raising=False)
    monkeypatch.setattr(doctor_module, "examine", fail)
    assert run("doctor") == 1
    assert "Unexpected KeyError" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["doctr"], ["doctor", "--no-such-option"], ["--no-such-option"]])
def test_a_wrong_command_line_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().out == ""


def test_help_lists_every_verb_and_imports_none() -> None:
    code = (
        "import sys\n"
        "from samovar.cli.main import main, VERBS\n"
        "try: main(['--help'])\n"
        "except SystemExit as e: assert not e.code\n"
        "verbs = [m for m in sys.modules if m.startswith('samovar.cli.') and m.endswith('_command')]\n"
        "print(verbs, 'pyspark' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] False"
    for verb in main_module.VERBS:
        assert verb in done.stdout


@pytest.mark.parametrize("verb", list(main_module.VERBS))
def test_every_registered_verb_loads(verb: str) -> None:
    assert run(verb, "--help") == 0
