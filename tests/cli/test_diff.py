"""`samovar diff` and `samovar shake`: what they say, and the code they end with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shop import Samovar

import samovar as sv

PROGRAMS = """
from pyspark.sql import functions as F

def total(df):
    return df.groupBy("customer").agg(F.sum("amount").alias("amount"))

def first(df):
    return df.groupBy("customer").agg(F.first("amount").alias("amount"))
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("customer,amount\nBob,1.0\nBob,2.0\nAnn,3.0\n")
    (tmp_path / "b.csv").write_text("customer,amount\nAnn,3.0\nBob,2.0\nBob,1.0\n")
    (tmp_path / "c.csv").write_text("customer,amount\nAnn,3.0\nBob,2.001\nBob,1.0\n")
    (tmp_path / "d.csv").write_text("customer,total\nAnn,3.0\n")
    (tmp_path / "programs.py").write_text(PROGRAMS)
    return tmp_path


def test_files_that_are_equivalent_and_files_that_are_not(spark: Any, files: Path, samovar: Samovar) -> None:
    same = samovar("diff", "a.csv", "b.csv")
    assert (same.code, "equivalent" in same.out) == (0, True)
    ordered = samovar("diff", "a.csv", "b.csv", "--keyed", "customer")
    assert ordered.code == 1
    assert "in order for each customer" in ordered.out
    changed = samovar("diff", "a.csv", "c.csv")
    assert changed.code == 1
    assert "*2.001*" in changed.out
    assert samovar("diff", "a.csv", "c.csv", "--tolerance", "amount=0.01").code == 0
    assert samovar("diff", "a.csv", "c.csv", "--columns", "customer").code == 0


def test_the_verdict_as_json(spark: Any, files: Path, samovar: Samovar) -> None:
    said = samovar("diff", "a.csv", "c.csv", "--json")
    assert said.code == 1
    verdict = json.loads(said.out)
    assert verdict["equivalent"] is False
    assert verdict["without_partner"] == {"left": 1, "right": 1}
    assert verdict["left"] == [{"customer": "Bob", "amount": 2.0}]


def test_what_cannot_be_compared_ends_with_2_and_other_columns_with_1(
    spark: Any, files: Path, samovar: Samovar
) -> None:
    missing = samovar("diff", "a.csv", "nowhere.csv")
    assert missing.code == 2
    assert "found nothing at 'nowhere.csv'" in missing.err
    columns = samovar("diff", "a.csv", "d.csv")
    assert columns.code == 1
    assert "total" in columns.out
    assert "To compare only what both have: --columns customer." in columns.out
    typo = samovar("diff", "a.csv", "b.csv", "--keyed", "custmer")
    assert (typo.code, "Did you mean 'customer'" in typo.err) == (2, True)
    past = samovar("diff", "a.csv", "c.csv", "--debug", "left")
    assert (past.code, "a recording on the left side" in past.err) == (2, True)
    unknown = samovar("diff", "a.csv", "no-such-run")
    assert unknown.code == 2
    assert "No recording 'no-such-run' in runs" in unknown.err
    assert samovar("diff", "a.csv", "b.csv", "--schema", "loose").code == 2
    assert samovar("diff", "a.csv", "b.csv", "--ordered", "--keyed", "customer").code == 2


def test_recordings_and_workflows(spark: Any, files: Path, samovar: Samovar) -> None:
    flow = sv.Workflow("big")
    read = flow.read.csv("a.csv", schema="customer string, amount double", header=True, name="orders")
    read.filter("amount > 1.5", name="big").sink("S")
    flow.save("big.yaml")
    run = flow.run(spark=spark, record="runs", progress=False)
    assert samovar("diff", "latest", "big.yaml").code == 0
    assert samovar("diff", str(run.recording), "big.yaml", "--sink", "S").code == 0
    differing = samovar("diff", "latest", "c.csv", "--debug", "left")
    assert differing.code == 1
    assert "2.0" in differing.out


def test_shake(spark: Any, files: Path, samovar: Samovar) -> None:
    calm = samovar("shake", "programs.py:total", "a.csv", "--runs", "4")
    assert (calm.code, "the same in 4 executions" in calm.out) == (0, True)
    found = samovar("shake", "programs.py:first", "a.csv", "--json")
    assert found.code == 1
    assert json.loads(found.out)["pair"][0]["order"] == "input reversed"
    wrong = samovar("shake", "programs.py:frist", "a.csv")
    assert wrong.code == 2
    assert "Did you mean 'first'" in wrong.err
