"""`samovar demo`, its payments and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.shop import Samovar

import samovar as sv
from samovar.cli.named_workflows import load_flow
from samovar.demo import fraud
from samovar.demo.export import export
from samovar.demo.findings import CutOff, cut_off, sentences
from samovar.demo.payments import make_payments, payments_folder, write_payments
from samovar.errors import StorageProblem

ROWS = 4_000


def processed(payments: pa.Table) -> tuple[list[dict[str, Any]], fraud.FraudFilter]:
    """The workflow's operators applied in plain Python: what must come out, and the filter at the end."""
    fe, fd, ff = fraud.FeatureEnrichment(), fraud.FraudDetector(), fraud.FraudFilter()
    kept: list[dict[str, Any]] = []
    for row in payments.to_pylist():
        for enriched in fe.process(row):
            assert enriched is not None
            for labelled in fd.process(enriched):
                assert labelled is not None
                kept.extend(r for r in ff.process(labelled) if r is not None)
    return kept, ff


def test_payments_are_the_same_every_time() -> None:
    table = make_payments(ROWS)
    assert table.equals(make_payments(ROWS))
    assert table.num_rows == ROWS
    assert set(table["currency"].to_pylist()) == {"USD", "JPY"}


def test_payments_tell_the_story() -> None:
    rows = make_payments(ROWS).to_pylist()
    middle = next(i for i, r in enumerate(rows) if r["customer"] == "Bob" and r["currency"] == "JPY")
    told = [(r["customer"], r["amount"], r["currency"]) for r in rows[middle - 2 : middle + 1]]
    assert told == [("Bob", 20.0, "USD"), ("Chris", 10.0, "USD"), ("Bob", 5000.0, "JPY")]
    assert max(r["amount"] for r in rows[: middle - 2] if r["customer"] == "Bob") == 5.0
    assert max(r["amount"] for r in rows if r["customer"] == "Chris") == 40.0


def test_the_bug_cuts_off_travellers_and_spares_the_rest() -> None:
    payments = make_payments(ROWS)
    kept, counter = processed(payments)
    assert counter.frauds == ROWS - len(kept)
    approved = {r["payment"] for r in kept}
    bob = [r for r in payments.to_pylist() if r["customer"] == "Bob"]
    assert [r["payment"] in approved for r in bob] == [True] * 38 + [False] * 23
    assert all(r["payment"] in approved for r in payments.to_pylist() if r["customer"] == "Chris")


def test_payments_are_made_once(tmp_path: Path) -> None:
    folder = payments_folder(ROWS, cache=tmp_path)
    before = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
    assert len(before) > 1
    assert payments_folder(ROWS, cache=tmp_path) == folder
    assert {p: p.stat().st_mtime_ns for p in folder.iterdir()} == before


def test_findings_come_from_the_result(tmp_path: Path) -> None:
    write_payments(tmp_path, ROWS)
    kept, _ = processed(make_payments(ROWS))
    found = cut_off(tmp_path, pa.table({"payment": [r["payment"] for r in kept]}))
    said = sentences(found)
    assert said[0].startswith("Bob: 23 of 61 payments rejected")
    assert "¥5,000" in said[0]
    assert "in yen" in said[1]
    everything = pa.table({"payment": make_payments(ROWS)["payment"]})
    assert sentences(cut_off(tmp_path, everything)) == ["Nothing is odd: every payment was approved."]


def test_real_frauds_are_not_odd() -> None:
    stolen = CutOff("Eva A.", 100, 40, 60, 5_000.0, "USD", "electronics")
    assert sentences([stolen])[0].startswith("Nothing is odd")


def test_the_export_is_a_document_and_a_python_file_that_agree(tmp_path: Path) -> None:
    export(tmp_path, ROWS)
    document = load_flow(str(tmp_path / "fraud.yaml"))
    python = load_flow(str(tmp_path / "fraud.py"))
    assert document.to_document() == python.to_document()
    assert [op.name for op in document.graph().ops.values()] == ["payments", "FE", "FD", "FF", "S"]
    with pytest.raises(StorageProblem, match="exists already"):
        export(tmp_path, ROWS)


def test_the_demo_runs_and_says_what_is_odd(
    samovar: Samovar, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMOVAR_CACHE", str(tmp_path / "cache"))
    said = samovar("demo", "--once", "--rows", ROWS)
    assert said.code == 0, said.err
    assert "Bob: 23 of 61 payments rejected" in said.out
    assert "samovar show latest" in said.out
    shown = samovar("show", "latest")
    assert "● FE" in shown.out
    kept, _ = processed(make_payments(ROWS))
    assert f"S: {len(kept):,} rows" in said.out
    (path,) = (tmp_path / "runs").iterdir()
    assert sv.open(path).result("S").num_rows == len(kept)


@pytest.mark.usefixtures("spark")
def test_the_demo_can_be_exported(samovar: Samovar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = samovar("demo", "--export", "mine", "--rows", ROWS)
    assert said.code == 0, said.err
    assert "samovar run mine/fraud.yaml" in said.out
    ran = samovar(
        "run", "mine/fraud.yaml", "--quiet"
    )  # as the demo says, from the folder it was exported from
    assert ran.code == 0, ran.err
    assert samovar("demo", "--rows", 10).code == 2
