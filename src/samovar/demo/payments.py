"""Payments for the demo: deterministic, seeded, made in about a second, kept in the cache.

Some four hundred customers pay in dollars for a month. A few cards are stolen and used for thousands of dollars. Some
customers travel to Japan and pay in yen for a while. Two of them are written by hand, with the numbers of IcedTea's
Figures 4 to 11. Bob has never paid more than $5 and Chris never more than $40, until three payments in a row, a little
after the middle: Bob $20, Chris $10, Bob ¥5,000. Bob has 61 payments, 22 of them after these three.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from samovar.files import new_folder

__all__ = [
    "FEWEST",
    "FILES",
    "ROWS",
    "VERSION",
    "YEN_PER_DOLLAR",
    "make_payments",
    "payments_folder",
    "write_payments",
]

ROWS = 200_000
FEWEST = 2_000
FILES = 8
VERSION = 1
"""Another number for other data: part of the name of the cached folder."""

YEN_PER_DOLLAR = 150.0

_SEED = 20_250_301
_START = np.datetime64("2026-03-01T06:00:00", "us")
_DAYS = 30
_CUSTOMERS = 400
_TRAVELLERS = 24
_STOLEN = 9
_NAMES = """
    Aisha Amir Ana Andrei Anh Astrid Bea Bruno Carla Cem Chloe Dana David Deniz Ece Elif Emil Eva Femi Finn
    Gita Goran Hana Hugo Ida Igor Ines Ivan Jan Jia Jonas Kaia Kemal Lars Leila Lena Luca Maja Marco Mei
    Mila Nadia Nils Noor Olga Omar Otto Paula Pedro Petra Priya Quinn Rafa Rita Rosa Sami Sana Sofia Tariq
    Tom Uma Vera Wei Yara Yusuf Zoe
"""
_SHOPS = np.array(
    ["coffee", "groceries", "books", "fuel", "lunch", "pharmacy", "cinema", "train", "clothes", "phone"]
)
_SHOPS_IN_JAPAN = np.array(["ramen bar", "ryokan", "train", "museum", "convenience store"])


def payments_folder(rows: int = ROWS, *, cache: Path | None = None) -> Path:
    """The folder of payments in the cache, made if it is not there."""
    root = cache or Path(os.environ.get("SAMOVAR_CACHE") or Path.home() / ".cache" / "samovar")
    folder = root / "demo" / f"payments-v{VERSION}-{rows}"
    if not folder.is_dir():
        with new_folder(folder) as temporary:
            write_payments(temporary, rows)
    return folder


def write_payments(folder: Path, rows: int = ROWS, *, files: int = FILES) -> None:
    """Write payments as Parquet files of equal length, in the order of time."""
    table = make_payments(rows)
    folder.mkdir(parents=True, exist_ok=True)
    bounds = np.linspace(0, rows, files + 1).astype(int)
    for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
        pq.write_table(table.slice(start, stop - start), folder / f"payments-{number:02d}.parquet")


def make_payments(rows: int = ROWS) -> pa.Table:
    """All payments in the order of time; the same table for the same number of rows."""
    if rows < FEWEST:
        raise ValueError(f"expected at least {FEWEST} rows, got {rows}")
    random = np.random.default_rng(_SEED)
    share = np.sort(random.random(rows))  # when, as a part of the month
    names = np.array(_customer_names())
    activity = random.gamma(2.0, size=_CUSTOMERS - 2)
    customer = random.choice(np.arange(2, _CUSTOMERS), size=rows, p=activity / activity.sum())
    amount = np.clip(random.lognormal(3.1, 0.9, rows), 1.0, 1_900.0).round(2)
    shop = _SHOPS[random.integers(len(_SHOPS), size=rows)].astype(object)
    yen = np.zeros(rows, dtype=bool)

    chosen = random.permutation(np.arange(2, _CUSTOMERS))[: _TRAVELLERS + _STOLEN]
    leaving = random.uniform(0.1, 0.8, _CUSTOMERS)
    travels = np.isin(customer, chosen[:_TRAVELLERS])
    yen |= travels & (share > leaving[customer]) & (share < leaving[customer] + 0.12)
    amount[yen] = np.clip((amount[yen] * YEN_PER_DOLLAR).round(-1), 300.0, 30_000.0)
    shop[yen] = _SHOPS_IN_JAPAN[random.integers(len(_SHOPS_IN_JAPAN), size=int(yen.sum()))]
    stolen = (
        np.isin(customer, chosen[_TRAVELLERS:]) & (share > leaving[customer]) & (random.random(rows) < 0.6)
    )
    amount[stolen] = random.uniform(3_000.0, 9_000.0, int(stolen.sum())).round(2)
    shop[stolen] = "electronics"

    for place, who, paid, in_yen, where in _story(rows, random):
        customer[place], amount[place], yen[place], shop[place] = who, paid, in_yen, where
    offset = np.round(share * _DAYS * 86_400 * 1e6).astype("int64").astype("timedelta64[us]")
    return pa.table(
        {
            "payment": pa.array(np.arange(1, rows + 1)),
            "at": pa.array(_START + offset, pa.timestamp("us", tz="UTC")),
            "customer": pa.array(names[customer]),
            "amount": pa.array(amount),
            "currency": pa.array(np.where(yen, "JPY", "USD")),
            "merchant": pa.array(shop, pa.string()),
        }
    )


def _customer_names() -> list[str]:
    others = [f"{name} {letter}." for letter in "ABCDEFGH" for name in _NAMES.split()]
    return ["Bob", "Chris", *others[: _CUSTOMERS - 2]]


_Payment = tuple[int, int, float, bool, str]
"""A row number, a customer's number, an amount, whether it is in yen, a merchant."""


def _story(rows: int, random: np.random.Generator) -> list[_Payment]:
    """The payments of Bob (customer 0) and Chris (customer 1)."""
    middle = int(rows * 0.52)
    before = np.linspace(5, middle - 10, 37).astype(int)
    after = np.linspace(middle + 8, rows - 6, 22).astype(int)
    coffee = random.uniform(2.5, 4.9, 37).round(2)
    coffee[0] = 5.0
    lunch = random.uniform(4.0, 38.0, 37).round(2)
    lunch[0] = 40.0

    def pay(places: NDArray[Any], who: int, amounts: NDArray[Any], where: str) -> list[_Payment]:
        return [(int(p), who, float(a), False, where) for p, a in zip(places, amounts, strict=True)]

    return [
        *pay(before, 0, coffee, "coffee"),
        *pay(before + 3, 1, lunch, "lunch"),
        (middle, 0, 20.0, False, "books"),
        (middle + 1, 1, 10.0, False, "lunch"),
        (middle + 2, 0, 5_000.0, True, "ramen bar"),
        *pay(after, 0, random.uniform(3, 9, 22).round(2), "coffee"),
        *pay(after + 3, 1, random.uniform(5, 38, 22).round(2), "lunch"),
    ]
