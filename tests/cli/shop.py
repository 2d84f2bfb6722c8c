"""A small shop to run, and what a command said about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FLOW = """\
samovar: 1
name: shop
operators:
  - name: orders
    op: read
    format: csv
    path: orders.csv
    schema: id int, customer string, amount double
    options: {header: true}
  - name: tally
    op: python
    input: orders
    code: |
      class Tally(sv.Operator):
          output = "id int, customer string, amount double, total double"
          totals = sv.MapState()

          def process(self, row, port=0):
              total = self.totals.get(row["customer"], 0.0) + row["amount"]
              self.totals[row["customer"]] = total
              yield {**row, "total": total}
  - {name: large, op: filter, input: tally, condition: amount > 10}
  - {name: S, op: sink, input: large}
  - {name: all, op: write, input: tally, format: parquet, path: out}
"""

ORDERS = "id,customer,amount\n1,Bob,20\n2,Chris,10\n3,Bob,5000\n4,Dana,12.5\n"


@dataclass(frozen=True)
class CommandOutput:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Samovar = Callable[..., CommandOutput]
"""`samovar <arguments>` in this process."""


def write_shop(folder: Path, orders: str = ORDERS) -> Path:
    (folder / "orders.csv").write_text(orders, encoding="utf-8")
    (folder / "shop.yaml").write_text(FLOW, encoding="utf-8")
    return folder
