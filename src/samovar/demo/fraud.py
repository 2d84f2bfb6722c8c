"""A fraud-detection workflow over card payments (IcedTea, Figure 1). There is a bug in it.

    payments -> FE -> FD -> FF -> S

FE adds features to each payment, FD labels it "Approved" or "Fraud", FF drops and counts the frauds, and S keeps the
rest. Each operator is one instance with one global order, so what it knows grows payment by payment.
"""
# mypy: disable-error-code="var-annotated"

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

import samovar as sv


class FeatureEnrichment(sv.Operator):
    """Adds the amount in dollars, and the highest payment of the customer so far."""

    output = (
        "payment bigint, at timestamp, customer string, amount double, currency string, merchant string, "
        "dollars double, highest double"
    )
    highest = sv.MapState()

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any] | None]:
        dollars = row["amount"]
        highest = self.highest.get(row["customer"], 0.0)
        if dollars > highest:
            self.highest[row["customer"]] = highest = dollars
        yield {**row, "dollars": dollars, "highest": highest}


class FraudDetector(sv.Operator):
    """Labels payments by a small logistic model. After one fraud a customer is blacklisted: all the rest is fraud."""

    output = (
        "payment bigint, at timestamp, customer string, amount double, currency string, merchant string, "
        "score double, label string"
    )
    blacklist = sv.MapState()

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def score(self, dollars: float, highest: float) -> float:
        """How likely a payment is a fraud; the weights were fitted to payments in dollars."""
        return 1 / (1 + math.exp(9.5 - 0.0032 * min(highest, 10_000) - 0.5 * dollars / highest))

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any] | None]:
        known = row["customer"] in self.blacklist
        score = 1.0 if known else self.score(row["dollars"], row["highest"])
        if score > self.threshold and not known:
            self.blacklist[row["customer"]] = row["payment"]
        yield {**row, "score": score, "label": "Fraud" if score > self.threshold else "Approved"}


class FraudFilter(sv.Operator):
    """Drops the frauds and counts them."""

    output = (
        "payment bigint, at timestamp, customer string, amount double, currency string, merchant string, "
        "score double"
    )
    frauds = sv.ValueState(0)

    def process(self, row: Mapping[str, Any], port: int = 0) -> Iterator[dict[str, Any] | None]:
        if row["label"] == "Fraud":
            self.frauds += 1
        else:
            yield dict(row)


def build(payments: str | os.PathLike[str]) -> sv.Workflow:
    """The workflow over a folder of payments in Parquet."""
    flow = sv.Workflow("fraud")
    enriched = flow.read.parquet(payments, name="payments").apply(FeatureEnrichment(), name="FE")
    enriched.apply(FraudDetector(), name="FD").apply(FraudFilter(), name="FF").sink("S")
    return flow
