"""The rooms of the house: module names that tell what is in them, and the border between driver and executors."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "samovar"
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.stem != "__init__"]
PACKAGES = [path.parent for path in sorted(PACKAGE.rglob("__init__.py"))]
IN_EXECUTORS = ["runtime/worker", "runtime/exchange"]


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    return names | {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}


def test_a_module_name_occurs_once() -> None:
    counts = Counter(path.stem for path in MODULES)
    assert [name for name, count in counts.items() if count > 1] == []


def test_a_module_is_a_noun() -> None:
    assert [str(path.relative_to(ROOT)) for path in MODULES if path.stem.endswith("ing")] == []


def test_every_package_says_what_it_holds() -> None:
    """In its docstring, and in the walk through the house."""
    walk = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for package in PACKAGES:
        assert ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))), package
    names = [
        ".".join(package.relative_to(PACKAGE.parent).parts) for package in PACKAGES if package != PACKAGE
    ]
    assert [name for name in names if f"`{name}`" not in walk] == []


@pytest.mark.parametrize("room", IN_EXECUTORS)
def test_what_runs_in_executors_needs_no_sql_of_spark(room: str) -> None:
    """A worker that imports pyspark.sql pays for it in every new process."""
    offending = [
        f"{path.name}: {name}"
        for path in (PACKAGE / room).glob("*.py")
        for name in imports(path)
        if name.startswith("pyspark.sql")
    ]
    assert offending == []


def test_no_module_is_imported_that_does_not_exist() -> None:
    """Also in functions, where an import fails only when it is reached."""
    known = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in MODULES}
    known |= {".".join(package.relative_to(PACKAGE.parent).parts) for package in PACKAGES}
    files = [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    offending = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imports(path)
        if name.split(".")[0] == "samovar" and name not in known
    ]
    assert offending == []


def test_replays_and_searches_hand_in_what_differs_and_inherit_nothing_from_an_epoch() -> None:
    """An epoch and its frames are put together from inputs and strategies (compile/strategy.py)."""
    inheriting = [
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and {ast.unparse(base) for base in node.bases} & {"Epoch", "EpochFrames", "EpochInputs"}
    ]
    assert inheriting == []


def test_the_modules_that_the_architecture_names_exist() -> None:
    """By their name alone, or with the folders they lie in."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w/]+\.py)`", text))
    paths = [
        f"/{path.relative_to(ROOT).as_posix()}" for path in [*MODULES, *(ROOT / "benchmarks").rglob("*.py")]
    ]
    paths += [f"/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "tests").rglob("*.py")]
    assert [name for name in sorted(names) if not any(path.endswith(f"/{name}") for path in paths)] == []


def test_a_public_class_name_occurs_once() -> None:
    """So that a word of the glossary has one class. (Operators of the library are read as text, imported by nobody.)"""
    counts = Counter(
        node.name
        for path in MODULES
        if "library" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in counts.items() if count > 1] == []
