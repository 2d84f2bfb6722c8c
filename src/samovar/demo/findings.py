"""What is odd in the demo's result: customers whose payments stop being approved, and at which payment that began.

Found by comparing the payments with those that were approved, as a person would who knows nothing of the workflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from samovar.demo.payments import YEN_PER_DOLLAR

__all__ = ["CutOff", "cut_off", "sentences"]


@dataclass(frozen=True)
class CutOff:
    """A customer whose payments were rejected: how many, and from which payment on."""

    customer: str
    payments: int
    rejected: int
    payment: int
    amount: float
    currency: str
    merchant: str

    @property
    def dollars(self) -> float:
        """What the first rejected payment was worth."""
        return self.amount / YEN_PER_DOLLAR if self.currency == "JPY" else self.amount

    @property
    def paid(self) -> str:
        """The first rejected payment as people write it."""
        return f"¥{self.amount:,.0f}" if self.currency == "JPY" else f"${self.amount:,.0f}"


def cut_off(payments: Path, approved: pa.Table) -> list[CutOff]:
    """Customers with rejected payments, most of them first."""
    paid = pq.read_table(payments, columns=["payment", "customer", "amount", "currency", "merchant"])
    missing = paid.filter(
        pc.invert(pc.is_in(paid["payment"], value_set=approved["payment"].combine_chunks()))
    )
    totals = {r["customer"]: r["payment_count"] for r in _counted(paid, ["count"])}
    counted = {r["payment_min"]: r for r in _counted(missing, ["count", "min"])}
    firsts = missing.filter(pc.is_in(missing["payment"], value_set=pa.array(list(counted), pa.int64())))
    cut = [
        CutOff(
            customer=row["customer"],
            payments=totals[row["customer"]],
            rejected=counted[row["payment"]]["payment_count"],
            payment=row["payment"],
            amount=row["amount"],
            currency=row["currency"],
            merchant=row["merchant"],
        )
        for row in firsts.to_pylist()
    ]
    return sorted(cut, key=lambda c: (-c.rejected, c.customer))


def _counted(table: pa.Table, functions: list[str]) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = (
        table.group_by("customer").aggregate([("payment", f) for f in functions]).to_pylist()
    )
    return rows


def sentences(cut: list[CutOff], *, small: float = 1_000.0, hero: str = "Bob") -> list[str]:
    """What there is to say about them; `small` is the worth in dollars below which a first rejection is odd."""
    odd = [c for c in cut if c.dollars < small]
    if not cut:
        return ["Nothing is odd: every payment was approved."]
    if not odd:
        return ["Nothing is odd: every customer was cut off at a payment worth thousands of dollars."]
    shown = next((c for c in odd if c.customer == hero), odd[0])
    lines = [
        f"{shown.customer}: {shown.rejected:,} of {shown.payments:,} payments rejected, from number "
        f"{shown.payment:,} on: {shown.paid} at a {shown.merchant}. That is about ${shown.dollars:,.0f}."
    ]
    if len(odd) > 1:
        low, high = min(c.dollars for c in odd), max(c.dollars for c in odd)
        yen = sum(c.currency == "JPY" for c in odd)
        where = "all of them in yen" if yen == len(odd) else f"{yen} of them in yen"
        lines.append(
            f"{len(odd)} of the {len(cut)} customers who were cut off had paid ${low:,.0f} to ${high:,.0f} then, "
            f"{where}."
        )
    rest = [c for c in cut if c.dollars >= small]
    if rest:
        low, high = min(c.dollars for c in rest), max(c.dollars for c in rest)
        lines.append(
            f"The other {len(rest)} had paid ${low:,.0f} to ${high:,.0f}: for those the workflow was made."
        )
    return lines
