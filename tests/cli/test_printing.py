"""Tables in the terminal: values stand there as they are."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from rich.console import Console

from samovar.cli.terminal import row_table

VALUES = {
    "money": pa.array([251013.62, 12345678901.25, 0.1 + 0.2], pa.float64()),
    "small": pa.array([0.1, 251013.62, 1e-7], pa.float32()),
    "exact": pa.array(
        [Decimal("1234567890123456789012345678.0100000000"), None, Decimal("0.10")], pa.decimal128(38, 10)
    ),
    "whole": pa.array([2**62, -1, 0], pa.int64()),
}


def test_numbers_keep_all_their_digits() -> None:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(row_table(pa.table(VALUES), 200))
    console.file.close()
    text = console.export_text()
    for number in (
        "251013.62",
        "12345678901.25",
        "0.30000000000000004",
        "251013.62",
        "1e-07",
        "1234567890123456789012345678.0100000000",
        "4611686018427387904",
    ):
        assert number in text.split(), text
    assert "0.10000000149011612" not in text, "a float of 32 bits has the digits of one"
