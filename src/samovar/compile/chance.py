"""Functions that draw at random or number rows, so that it does not matter how a run is cut into epochs.

Spark draws by partition: `rand(7)` is the same row of numbers in each partition number n of each query. Epochs are
queries of their own, so every one of them would repeat the numbers of the first. Here a draw is a function of the seed
and of the tuple's position, which does not depend on the length of epochs: no numbers repeat, and watching a run does
not change them. They are as random as Spark's, but not the same numbers.

`monotonically_increasing_id()` numbers the tuples of a file as Spark numbers those of a partition. Where a position has
more parts than file and row, the epoch's number goes into the bits above Spark's own number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from samovar.compile.sqltext import function_names, replace_calls
from samovar.positions import ROW_WIDTH, row_sql, unit_sql

__all__ = ["CHANCE", "NUMBERING", "PLACES", "by_position", "draws", "seeded", "uniform_as_rand"]

_BEFORE_SEED = {"rand": 0, "random": 0, "randn": 0, "uuid": 0, "shuffle": 1, "randstr": 1, "uniform": 2}
"""Functions that draw, with the number of arguments before the seed."""
CHANCE = frozenset(_BEFORE_SEED)
NUMBERING = "monotonically_increasing_id"
PLACES = frozenset(
    ("spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length")
)
"""Functions of where Spark processes a row, which may change when it is computed again and from epoch to epoch."""

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SPARK_ROW_BITS = 33
"""Spark's bits for the row of a partition; positions have more for the row of a file."""
_EPOCH_SHIFT = 48
"""Leaves 15 bits for the epoch, and 15 for the partition above Spark's 33 for the row."""


def draws(text: str) -> bool:
    """Whether the text draws at random or numbers rows, so that epochs compute it in another form."""
    return bool(function_names(text) & (CHANCE | {NUMBERING}))


def seeded(text: str, salt: str) -> str:
    """The text with a seed in each call that has none; the same salt gives the same seeds."""
    drawn = 0

    def call(name: str, args: list[str]) -> str | None:
        nonlocal drawn
        if len(args) != _BEFORE_SEED.get(name, -1):
            return None
        drawn += 1
        digest = hashlib.sha256(f"{salt}/{drawn}".encode()).digest()
        seed = int.from_bytes(digest[:7], "big")  # a positive literal, whatever the last bits are
        return f"{name}({', '.join([*args, f'{seed}L'])})"

    return replace_calls(text, call)


def uniform_as_rand(text: str, type_of: Callable[[str], str]) -> str:
    """The text with `uniform(low, high, seed)` as what it is short for, in the type that Spark gives it."""

    def call(name: str, args: list[str]) -> str | None:
        if name != "uniform" or len(args) != 3:
            return None
        low, high, seed = args
        kind = type_of(f"uniform({low}, {high}, {seed})")
        return f"CAST(({low}) + (({high}) - ({low})) * rand({seed}) AS {kind})"

    return replace_calls(text, call)


def by_position(text: str, positions: Sequence[str], epoch: int | None) -> str:
    """The text with draws and numbers that follow from the tuple's position, and if need be from `epoch`."""
    at = ", ".join(positions)

    def call(name: str, args: list[str]) -> str | None:
        if name == NUMBERING and not args:
            return _number(positions, epoch)
        if not positions or len(args) != _BEFORE_SEED.get(name, -2) + 1:
            return None
        seed = f"CAST({args[-1]} AS BIGINT)"

        def word(part: str) -> str:
            return f"xxhash64({seed}, {part}, {at})"

        def even(part: str) -> str:
            return f"(shiftrightunsigned({word(part)}, 11) * {2.0**-53!r}D)"

        match name:
            case "rand" | "random":
                return even("0")
            case "randn":
                return f"(sqrt(-2D * ln(1D - {even('1')})) * cos(2D * pi() * {even('2')}))"
            case "uuid":
                return _uuid(word("3"), word("4"))
            case "shuffle":
                paired = f"transform({args[0]}, (x, i) -> struct({word('i')} AS h, x AS x))"
                order = "(l, r) -> CASE WHEN l.h < r.h THEN -1 WHEN l.h > r.h THEN 1 ELSE 0 END"
                return f"transform(array_sort({paired}, {order}), e -> e.x)"
            case "randstr":
                letter = f"substr('{_LETTERS}', CAST(1 + pmod({word('i')}, 62) AS INT), 1)"
                letters = f"transform(sequence(1, CAST({args[0]} AS INT)), i -> {letter})"
                return f"IF({args[0]} < 1, '', array_join({letters}, ''))"
        return None

    return replace_calls(text, call)


def _number(positions: Sequence[str], epoch: int | None) -> str | None:
    if len(positions) == ROW_WIDTH:
        place = positions[1]
        return f"(shiftleft({unit_sql(place)}, {_SPARK_ROW_BITS}) + {row_sql(place)})"
    if not epoch:
        return None
    room = 1 << (63 - _EPOCH_SHIFT)
    full = f"raise_error('{NUMBERING}() has no numbers left: a run has at most {room} epochs of {room} partitions')"
    if epoch >= room:
        return f"CAST({full} AS BIGINT)"
    fits = f"IF(spark_partition_id() < {room}, {epoch << _EPOCH_SHIFT}L, CAST({full} AS BIGINT))"
    return f"({fits} + {NUMBERING}())"


def _uuid(high: str, low: str) -> str:
    """A random UUID (version 4, variant 1) of two numbers."""
    one, two = (f"lpad(lower(hex({n})), 16, '0')" for n in (high, low))
    parts = (
        f"substr({one}, 1, 8)",
        f"substr({one}, 9, 4)",
        f"concat('4', substr({one}, 14, 3))",
        f"concat(substr('89ab', CAST(1 + pmod({low}, 4) AS INT), 1), substr({two}, 2, 3))",
        f"substr({two}, 5, 12)",
    )
    return f"concat_ws('-', {', '.join(parts)})"
