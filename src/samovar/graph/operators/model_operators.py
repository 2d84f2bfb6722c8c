"""Models: trained and used with scikit-learn (the extra `learn`); short for Python operators."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal

import msgspec

from samovar.errors import WorkflowError
from samovar.graph.operators.base import Op
from samovar.graph.operators.python import Python
from samovar.text import quote_name

__all__ = ["Predict", "Train"]


@cache
def _code() -> str:
    return files("samovar.library").joinpath("models.py").read_text("utf-8")


class Train(Op, tag="train", frozen=True, kw_only=True):
    """Trains a model of scikit-learn on its rows, and at their end gives one row with the model, for `predict`.

    Texts among the features count as categories; `text` instead takes one column apart into weighted words. Rows with a
    null in a feature or in the label are left out. `score` in its output is how well the model fits its own rows.
    """

    model: Literal[
        "logistic_regression",
        "linear_regression",
        "decision_tree",
        "random_forest",
        "random_forest_regression",
        "naive_bayes",
        "nearest_neighbours",
    ] = "logistic_regression"
    label: str
    features: tuple[str, ...] = ()
    text: str | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    summary: ClassVar[str] = "trains a model (scikit-learn)"

    def plain(self) -> Op:
        if bool(self.features) == bool(self.text):
            raise WorkflowError(
                f"Expected columns to learn from in 'features', or 'text', got {'both' if self.text else 'none'}.",
                operator=self.name,
            )
        given = {
            "kind": self.model,
            "features": list(self.features),
            "label": self.label,
            "text": self.text,
            "params": self.params,
        }
        return Python(name=self.name, inputs=self.inputs, code=_code(), class_name="Train", params=given)


class Predict(Op, tag="predict", frozen=True, kw_only=True):
    """Adds a prediction to each row. Port 0: the model of a `train`; port 1: the rows.

    Rows that come before the model wait in its state, so let the model come from a smaller input, or from another run.
    """

    into: str = "prediction"
    type: Literal["double", "bigint", "string", "boolean"] = "double"
    ports: ClassVar[tuple[int, int | None]] = (2, 2)
    summary: ClassVar[str] = "uses a trained model (scikit-learn)"

    def plain(self) -> Op:
        output = f"*1, {quote_name(self.into)} {self.type}"
        code = f"{_code()}\n\nclass Predicting(Predict):\n    output = {output!r}\n"
        given = {"into": self.into, "kind": self.type}
        return Python(name=self.name, inputs=self.inputs, code=code, class_name="Predicting", params=given)
