"""The demo's fraud workflow: which customers are cut off, and at which payment?

The operators are in `samovar.demo.fraud`; `samovar demo --export DIR` writes them down to edit.
"""

from __future__ import annotations

import samovar as sv
from samovar.demo import findings, fraud
from samovar.demo.payments import ROWS, payments_folder


def build(rows: int = ROWS) -> sv.Workflow:
    """The workflow over that many payments, which are made if they are not there."""
    return fraud.build(payments_folder(rows))


def main() -> None:
    run = build().run()
    for sentence in findings.sentences(findings.cut_off(payments_folder(), run.result("S"))):
        print(sentence)


if __name__ == "__main__":
    main()
