"""Values as JSON: small whatever they were, and nothing that JSON cannot hold."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from samovar.replay.trace.model import ABSENT
from samovar.server.json_values import plain


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (2**60, str(2**60)),
        (float("nan"), "nan"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 12, 30), "2026-01-31 12:30:00"),
        (b"\x00\xff", {"$binary": "AP8="}),
        (ABSENT, {"$absent": True}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ({1: "x"}, {"$map": [[1, "x"]], "$more": 0}),
        ({"$absent": 1}, {"$map": [["$absent", 1]], "$more": 0}),
        (np.float64(1.5), 1.5),
        (np.int32(7), 7),
        (Rude(), {"$text": "<Rude: its repr raised RuntimeError>"}),
    ],
)
def test_values_that_json_lacks_are_marked(value: Any, wanted: Any) -> None:
    assert plain(value) == wanted


def test_large_values_are_cut_and_say_so() -> None:
    assert plain(list(range(1000)))["$more"] == 900
    assert plain({i: i for i in range(1000)})["$more"] == 900
    deep: Any = []
    for _ in range(1000):
        deep = [deep]
    huge = {"text": "x" * 10**6, "rows": [list(range(500))] * 500, "deep": deep}
    assert len(json.dumps(plain(huge), allow_nan=False)) < 100_000
