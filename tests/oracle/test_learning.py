"""Models of scikit-learn in a workflow, against scikit-learn called by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.oracle.support import run_flow

import samovar as sv
from samovar.errors import SamovarError
from samovar.graph import operators as ops

SPLIT = {"weights": (0.7, 0.3), "seed": 3}


class Add(sv.Operator):
    output = "*, twice bigint"

    def process(self, row: Any, port: int = 0) -> Any:
        yield {**row, "twice": row["id"] * 2}


class AddToSecond(Add):
    output = "*1, id string"

    def process(self, row: Any, port: int = 0) -> Any:
        if port == 1:
            yield {**row, "id": str(row["id"])}


def test_an_output_may_start_with_the_columns_of_an_input(spark: SparkSession, tmp_path: Path) -> None:
    flow = sv.Workflow("star")
    left = flow.generate(5, {"id": "id", "a": "'x'"}, name="left")
    right = flow.generate(3, {"id": "id", "b": "u"}, name="right")
    left.apply(Add(), name="add").sink("S")
    flow.apply(AddToSecond(), left, right, name="second").sink("T")
    run = run_flow(spark, flow, tmp_path)
    assert run.result("S").to_pylist()[2] == {"id": 2, "a": "x", "twice": 4}
    assert run.result("T").column_names == ["b", "id"]
    assert sorted(run.result("T").column("id").to_pylist()) == ["0", "1", "2"]
    AddToSecond.output = "*7, id string"
    try:
        flow._schemas.clear()
        with pytest.raises(SamovarError, match="a port from 0 to 1"):
            flow.schema_of("second")
    finally:
        AddToSecond.output = "*1, id string"


def learning(model: Any, kind: Any, **fields: Any) -> sv.Workflow:
    flow = sv.Workflow("learning")
    columns = {
        "x": "round(z, 3)",
        "colour": "element_at(array('red', 'blue'), 1 + int(u * 2))",
        "said": "if(colour = 'red', 'good tea', 'bad coffee')",
        "label": "if(x + if(colour = 'red', 1, -1) > 0, 'yes', 'no')",
        "number": "3 * x + 1",
    }
    flow.generate(400, columns, name="rows")
    flow.add(ops.Split(name="some", inputs=("rows",), part=0, **SPLIT))  # type: ignore[arg-type]
    flow.add(ops.Split(name="others", inputs=("rows",), part=1, **SPLIT))  # type: ignore[arg-type]
    flow.add(ops.Train(name="model", inputs=("some",), model=model, **fields))
    flow.add(ops.Predict(name="guess", inputs=("model", "others"), type=kind))
    for sink, of in (("some_rows", "some"), ("models", "model"), ("S", "guess")):
        flow.frame(of).sink(sink)
    return flow


def test_predictions_are_those_of_scikit_learn(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    flow = learning("logistic_regression", "string", label="label", features=("x", "colour"))
    run = run_flow(spark, flow, tmp_path)
    some, guessed = run.result("some_rows").to_pylist(), run.result("S").to_pylist()
    model = make_pipeline(DictVectorizer(sparse=False), LogisticRegression(max_iter=1000))
    inputs = [{"x": r["x"], "colour": r["colour"]} for r in some]
    model.fit(inputs, [r["label"] for r in some])
    wanted = model.predict([{"x": r["x"], "colour": r["colour"]} for r in guessed]).tolist()
    assert [r["prediction"] for r in guessed] == wanted
    assert len(some) + len(guessed) == 400
    (made,) = run.result("models").to_pylist()
    assert made["rows"] == len(some)
    assert made["score"] == pytest.approx(model.score(inputs, [r["label"] for r in some]))


@pytest.mark.slow
def test_numbers_and_texts_are_learnt_as_well(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    line = run_flow(
        spark, learning("linear_regression", "double", label="number", features=("x",)), tmp_path / "1"
    )
    for row in line.result("S").to_pylist():
        assert row["prediction"] == pytest.approx(row["number"])
    words = run_flow(spark, learning("naive_bayes", "string", label="colour", text="said"), tmp_path / "2")
    assert all(r["prediction"] == r["colour"] for r in words.result("S").to_pylist())


def test_what_to_learn_from_has_to_be_said(spark: SparkSession) -> None:
    flow = learning("decision_tree", "string", label="label")
    with pytest.raises(SamovarError, match="'features'"):
        flow.schema_of("model")
