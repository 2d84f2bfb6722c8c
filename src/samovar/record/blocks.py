"""Large opaque values in blocks: of a pickled value that changed a little, only the blocks that differ are kept.

A patch leads from one string of bytes to another: the new length, and the blocks that differ with their places. Pure.
"""

from __future__ import annotations

__all__ = ["BLOCK", "Patch", "changed_blocks", "joined", "patched"]

BLOCK = 4096
"""Bytes of a block: a page, so that a change in one place costs little and there are few blocks to compare."""
WORTH = 4 * BLOCK
"""Shorter values are kept whole: a patch would save less than its bookkeeping costs."""

Patch = tuple[int, tuple[tuple[int, bytes], ...]]
"""The new length; places and contents of the blocks that differ."""


def changed_blocks(before: bytes | None, after: bytes) -> bytes | Patch:
    """What leads from one value to the next: a patch where that is at most half as long, else the value itself."""
    if before is None or len(after) < WORTH:
        return after
    old, new = memoryview(before), memoryview(after)
    blocks: list[tuple[int, bytes]] = []
    start = size = 0
    while start < len(after):
        stop = start
        while stop < len(after) and old[stop : stop + BLOCK] != new[stop : stop + BLOCK]:
            stop += BLOCK
        if stop > start:
            blocks.append((start, bytes(new[start:stop])))
            size += stop - start
            if size > len(after) // 2:
                return after
        start = stop + BLOCK
    return len(after), tuple(blocks)


def patched(before: bytes | None, change: bytes | Patch) -> bytes:
    """The value that a change leads to."""
    if isinstance(change, bytes):
        return change
    length, blocks = change
    value = bytearray(before or b"")
    for place, content in blocks:
        value[place : place + len(content)] = content
    return bytes(value[:length])


def joined(first: bytes | Patch, then: bytes | Patch) -> bytes | Patch:
    """The change that does what two changes do one after the other."""
    if isinstance(then, bytes):
        return then
    if isinstance(first, bytes):
        return patched(first, then)
    return then[0], (*first[1], *then[1])
