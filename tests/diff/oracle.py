"""Equivalence of streams straight from its definition, for alphabets of a few letters. Knows nothing of the matcher.

A stream is a tuple of letters. Two streams are equivalent if one becomes the other by swapping neighbours that do not
depend on each other; classes of that relation are found by trying all swaps in all streams up to a length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, product
from typing import Any

Letter = Any
Stream = tuple[Letter, ...]


class Traces:
    """All streams over an alphabet up to a length, by class. Letters are equal if they are the same letter."""

    def __init__(
        self, letters: tuple[Letter, ...], depends: Callable[[Letter, Letter], bool], longest: int
    ) -> None:
        self.letters = letters
        self.depends = depends
        self.longest = longest
        self.class_of: dict[Stream, Stream] = {}
        """A stream's class, named by one of its streams."""
        for length in range(longest + 1):
            for stream in product(letters, repeat=length):
                if stream not in self.class_of:
                    self._spread(stream)
        self._extensions: dict[Stream, set[Stream]] = {s: set() for s in self.class_of}
        for stream, named in self.class_of.items():
            for end in range(len(stream) + 1):
                self._extensions[stream[:end]].add(named)

    def equivalent(self, left: Stream, right: Stream) -> bool:
        return self.class_of[left] == self.class_of[right]

    def hopeful(self, left: Stream, right: Stream) -> bool:
        """Whether some continuation makes the streams equivalent; the shortest is not longer than both together."""
        assert len(left) + len(right) <= self.longest
        return not self._extensions[left].isdisjoint(self._extensions[right])

    def unmatched(self, left: Stream, right: Stream) -> tuple[Stream, Stream]:
        """The classes of what is left of both streams when their largest equivalent prefixes are taken away."""
        rests: dict[Stream, list[tuple[Stream, Stream]]] = {}
        for prefix, rest in self._prefixes(right):
            rests.setdefault(self.class_of[prefix], []).append((prefix, rest))
        found: tuple[int, Stream, Stream] = (-1, (), ())
        for prefix, rest in self._prefixes(left):
            for _, other in rests.get(self.class_of[prefix], ()):
                if len(prefix) > found[0]:
                    found = (len(prefix), rest, other)
        return self.class_of[found[1]], self.class_of[found[2]]

    def _prefixes(self, stream: Stream) -> Iterator[tuple[Stream, Stream]]:
        """Every set of places that holds, with a place, all places before it on which it depends."""
        places = range(len(stream))
        for size in range(len(stream) + 1):
            for chosen in combinations(places, size):
                if all(
                    i in chosen or not self.depends(stream[i], stream[j]) for j in chosen for i in range(j)
                ):
                    rest = tuple(stream[i] for i in places if i not in chosen)
                    yield tuple(stream[i] for i in chosen), rest

    def _spread(self, start: Stream) -> None:
        self.class_of[start] = start
        queue = [start]
        while queue:
            stream = queue.pop()
            for i in range(len(stream) - 1):
                if not self.depends(stream[i], stream[i + 1]):
                    swapped = (*stream[:i], stream[i + 1], stream[i], *stream[i + 2 :])
                    if swapped not in self.class_of:
                        self.class_of[swapped] = start
                        queue.append(swapped)


def logical_order(stream: Stream, depends: Callable[[Letter, Letter], bool]) -> list[list[bool]]:
    """Which place logically precedes which: dependent, directly or through places in between."""
    size = len(stream)
    order = [[i < j and depends(stream[i], stream[j]) for j in range(size)] for i in range(size)]
    for k, i, j in product(range(size), repeat=3):
        order[i][j] = order[i][j] or (order[i][k] and order[k][j])
    return order


def matching_exists(
    left: Stream,
    right: Stream,
    depends: Callable[[Letter, Letter], bool],
    equal: Callable[[Letter, Letter], bool],
) -> bool:
    """The other form of the definition: a bijection of equal letters that keeps the logical order both ways."""
    if len(left) != len(right):
        return False
    orders = logical_order(left, depends), logical_order(right, depends)

    def extend(partners: tuple[int, ...]) -> bool:
        i = len(partners)
        if i == len(left):
            return True
        return any(
            j not in partners
            and equal(left[i], right[j])
            and all(
                orders[0][k][i] == orders[1][partners[k]][j] and orders[0][i][k] == orders[1][j][partners[k]]
                for k in range(i)
            )
            and extend((*partners, j))
            for j in range(len(right))
        )

    return extend(())


def hopeful_by_matching(
    letters: tuple[Letter, ...],
    depends: Callable[[Letter, Letter], bool],
    equal: Callable[[Letter, Letter], bool],
) -> Callable[[Stream, Stream], bool]:
    """As `Traces.hopeful`, for a relation that is no equality: tries every continuation that could be needed."""
    exists = cache(lambda a, b: matching_exists(a, b, depends, equal))

    @cache
    def hopeful(left: Stream, right: Stream) -> bool:
        for more in range(len(right) + 1):
            length = len(left) + more - len(right)
            if length < 0 or length > len(left):
                continue
            for a in product(letters, repeat=more):
                for b in product(letters, repeat=length):
                    if exists(left + a, right + b):
                        return True
        return False

    return hopeful


def interleavings(left: int, right: int) -> Iterator[tuple[str, ...]]:
    """Every way in which events of two sides can arrive."""
    for places in combinations(range(left + right), left):
        yield tuple("left" if i in places else "right" for i in range(left + right))
