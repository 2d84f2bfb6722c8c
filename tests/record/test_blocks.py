"""Blocks of large values: any two changes lead where they should, and small changes cost little."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from samovar.record.blocks import BLOCK, WORTH, changed_blocks, joined, patched

sizes = st.integers(0, 12)


def value(blocks: int, changed: list[int], extra: int) -> bytes:
    made = bytearray(BLOCK * blocks + extra)
    for place in changed:
        if made:
            made[place % len(made)] ^= 1 + place % 255
    return bytes(made)


values = st.builds(value, sizes, st.lists(st.integers(0, 1 << 30), max_size=4), st.integers(0, 9))


@given(values, values, values)
def test_changes_lead_from_one_value_to_the_next(a: bytes, b: bytes, c: bytes) -> None:
    first, then = changed_blocks(a, b), changed_blocks(b, c)
    assert patched(a, first) == b
    assert patched(b, then) == c
    assert patched(a, joined(first, then)) == c
    assert changed_blocks(None, a) == a


def test_a_small_change_of_a_large_value_is_a_small_patch() -> None:
    before = bytes(100 * BLOCK)
    after = before[: 50 * BLOCK] + b"x" + before[50 * BLOCK + 1 :]
    patch = changed_blocks(before, after)
    assert isinstance(patch, tuple)
    assert [(place, len(content)) for place, content in patch[1]] == [(50 * BLOCK, BLOCK)]
    assert changed_blocks(before, before + b"more") == (100 * BLOCK + 4, ((100 * BLOCK, b"more"),))
    short = bytes(WORTH - 1)
    assert changed_blocks(bytes(WORTH), short) == short
