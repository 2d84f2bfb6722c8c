"""Every public method of the classes that people use says how it is called, and the examples in its docstring run."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs import shop

import samovar as sv

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def members(cls: type) -> dict[str, str]:
    """The docstrings of a class's public methods and properties, in the order in which they are written."""
    names = {n: None for c in reversed(cls.__mro__) for n in vars(c) if not n.startswith("_")}
    return {n: inspect.getdoc(inspect.getattr_static(cls, n)) or "" for n in names}


def run_examples(cls: type, names: dict[str, Any]) -> list[str]:
    """Run the examples of a class one after the other, each with the same names; returns what went wrong."""
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    problems: list[str] = []
    for name, text in members(cls).items():
        test = doctest.DocTestParser().get_doctest(text, dict(names), f"{cls.__name__}.{name}", None, None)
        runner.run(test, out=problems.append)
    return problems


@pytest.mark.parametrize("cls", [sv.Workflow, sv.Frame, sv.Run, sv.Past, sv.Moment])
def test_every_public_method_has_an_example(cls: type) -> None:
    assert [name for name, text in members(cls).items() if ">>> " not in text] == []


@pytest.mark.parametrize("cls", [sv.Workflow, sv.Frame, sv.Run, sv.Past, sv.Moment])
def test_every_parameter_is_explained(cls: type) -> None:
    """By its name in the docstring; what PySpark's method of the same name takes needs no more than an example."""
    missing = []
    for name, text in members(cls).items():
        member = inspect.getattr_static(cls, name)
        if not inspect.isfunction(member):
            continue
        known = {
            "self",
            "name",
            "operator",
            "sink",
            "other",
            "cols",
            "exprs",
            "alias",
            "func",
            "args",
            "kwargs",
        }
        start = "Options as for `start`" in text  # run has all of its options
        missing += [
            f"{name}({parameter})"
            for parameter in inspect.signature(member).parameters
            if parameter not in known
            and not parameter.startswith("_")
            and parameter not in text
            and not start
        ]
    assert missing == []


@pytest.fixture(scope="module")
def names(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The runs that examples speak of."""
    folder: Path = tmp_path_factory.mktemp("runs")
    finished = shop.finished(spark, folder)
    past = sv.open(finished.recording or "", spark=spark)
    known = {
        "sv": sv,
        "Highest": shop.Highest,
        "finished": finished,
        "charted": shop.charted(spark, folder),
        "past": past,
        "moment": past.jump("H", tuples=4),
    }
    yield known
    past.close()


@pytest.mark.parametrize("cls", [sv.Workflow, sv.Frame])
def test_examples_of_workflows_and_frames(
    cls: type, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    problems = run_examples(cls, shop.frames())
    assert not problems, "".join(problems)


def test_examples_of_runs(names: dict[str, Any], spark: Any, tmp_path: Path) -> None:
    run = shop.going(spark, tmp_path)
    holding = shop.holding(spark, tmp_path)
    try:
        problems = run_examples(sv.Run, {**names, "run": run, "holding": holding})
        assert not problems, "".join(problems)
        assert holding.wait(60).result("S").num_rows == 9
    finally:
        run.stop()


@pytest.mark.parametrize("cls", [sv.Moment, sv.Past])
def test_examples_of_the_past(names: dict[str, Any], cls: type) -> None:
    problems = run_examples(cls, names)
    assert not problems, "".join(problems)
