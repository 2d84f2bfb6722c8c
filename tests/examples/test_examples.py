"""Every example runs, and gives what it says."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import samovar as sv
from samovar.demo import findings
from samovar.demo.payments import payments_folder

EXAMPLES = Path(__file__).parents[2] / "examples"


def imported(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def fraud(run: Any) -> None:
    found = findings.cut_off(payments_folder(4_000), run.result("S"))
    bob = next(c for c in found if c.customer == "Bob")
    assert (bob.rejected, bob.payments, bob.paid) == (23, 61, "¥5,000")


def wordcount(run: Any) -> None:
    rows = run.result("S").to_pylist()
    text = (EXAMPLES / "data" / "tea.txt").read_text(encoding="utf-8").lower()
    words = Counter("".join(c if c.isalpha() else " " for c in text).split())
    expected = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:10]
    assert [(r["word"], r["n"]) for r in rows] == expected


def tpch_q1_small(run: Any) -> None:
    rows = run.result("S").to_pylist()
    assert [(r["l_returnflag"], r["l_linestatus"]) for r in rows] == [("A", "F"), ("N", "O"), ("R", "F")]
    assert 19_000 < sum(r["count_order"] for r in rows) <= 20_000


def join_and_enrich(run: Any) -> None:
    rows = {r["order_id"]: r for r in run.result("S").to_pylist()}
    assert rows[7] == {
        "order_id": 7,
        "customer": "Bob",
        "country": "JP",
        "amount": 61.25,
        "points": 30 + 20 + 5 + 61,
    }
    assert rows[6]["customer"] == "unknown"
    assert run.progress.rejected == {"orders": 1}


def functions_on_frames(run: Any) -> None:
    recorded = Counter(tuple(row.values()) for row in run.result("S").to_pylist())
    assert recorded == Counter(sys.modules["example_functions_on_frames"].plain())
    assert sum(recorded.values()) == 3


CHECKS: dict[str, Callable[[Any], None]] = {
    "fraud.py": fraud,
    "wordcount.py": wordcount,
    "tpch_q1_small.py": tpch_q1_small,
    "join_and_enrich.yaml": join_and_enrich,
    "functions_on_frames.py": functions_on_frames,
}


@pytest.mark.parametrize("name", CHECKS)
def test_example(name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMOVAR_CACHE", str(tmp_path / "cache"))
    if name.endswith(".yaml"):
        flow = sv.Workflow.from_document(EXAMPLES / name)
    else:
        module = imported(Path(name).stem)
        arguments: dict[str, Any] = {"rows": 4_000} if name == "fraud.py" else {}
        if name == "tpch_q1_small.py":
            arguments = {"lineitem": module.make_lineitem(tmp_path / "lineitem")}
        flow = module.build(**arguments)
    run = flow.run(spark=spark, record=tmp_path / "runs", progress=False)
    CHECKS[name](run)


def test_every_example_is_tested_and_listed() -> None:
    there = {p.name for p in EXAMPLES.iterdir() if p.suffix in (".py", ".yaml", ".json")}
    assert there == set(CHECKS)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in there if name not in listed] == []
