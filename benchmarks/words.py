"""Seeded text of realistic shape, made column by column rather than word by word.

Words follow Zipf's law over a fixed vocabulary: common English words first, then pronounceable made-up ones.
Words that a workflow searches for never come up by chance; they are planted as phrases, so their frequencies
are what the data set says they are. Everything is a function of the numpy generator handed in: the same seed
gives the same bytes with the same numpy version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Ints", "Vocabulary", "Zipf", "joined", "listed", "maybe", "random_strings", "vocabulary"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def listed(text: str, *, separator: str = " ") -> tuple[str, ...]:
    """The items of a list that reads better as one string."""
    return tuple(text.split(separator))


_COMMON = listed(
    "the to and a of in i is for you it that on my with this be have are was not but at so me just "
    "all like we your what they out can do up get if from about as when no he now one how her his "
    "will more or there people time good she know think see go day an love want who today really by "
    "has need don't it's them got some would been our right even make back never their going still "
    "new much after say because us take then where only thank best why well look way over off work "
    "always here every am please world great thing thanks man very being life let life's which too "
    "first than into come year please many last its other show before home someone next those god "
    "these night game team feel video better again follow live"
)
_SEARCHED = ("happy", "glad", "climate", "fire", "birthday", "christmas", "holiday", "thanksgiving")
_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", dtype=np.uint8)
_TABLE_SIZE = 1 << 20


@dataclass(frozen=True)
class Zipf:
    """Draws ranks 0..n-1 with chances proportional to ``1 / (rank + shift) ** exponent``.

    The distribution is quantised to a table of a million entries, which makes a draw one array lookup.
    """

    table: npt.NDArray[np.int32]

    @classmethod
    def over(cls, n: int, *, exponent: float = 1.0, shift: float = 2.7) -> Zipf:
        """The distribution over ``n`` ranks; ``shift`` flattens the head (Mandelbrot's refinement)."""
        weights = 1.0 / (np.arange(n) + shift) ** exponent
        bounds = np.cumsum(weights) / weights.sum()
        points = (np.arange(_TABLE_SIZE) + 0.5) / _TABLE_SIZE
        return cls(np.minimum(np.searchsorted(bounds, points), n - 1).astype(np.int32))

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """``n`` ranks."""
        return self.table[rng.integers(0, _TABLE_SIZE, n)].astype(np.int64)


@dataclass(frozen=True)
class Vocabulary:
    """Words by falling frequency, followed by planted phrases that the Zipf draw never picks."""

    words: pa.Array
    zipf: Zipf
    phrases: dict[str, int]

    def sentences(
        self, rng: np.random.Generator, lengths: Ints, planted: Sequence[tuple[Bools, Sequence[str]]] = ()
    ) -> pa.Array:
        """One string of ``lengths[i]`` words a row; rows marked by ``planted`` get one of the phrases in it.

        A phrase replaces one word at a random place. Two phrases of one row may fall on the same place, and
        then the later one stays: with sentences of 15 words about one in 15 such rows loses a phrase.
        """
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        ids = self.zipf.draw(rng, int(offsets[-1]))
        for chosen, phrases in planted:
            rows = np.flatnonzero(chosen & (lengths > 0))
            variants = np.array([self.phrases[phrase] for phrase in phrases])
            places = offsets[rows] + (rng.random(len(rows)) * lengths[rows]).astype(np.int64)
            ids[places] = variants[rng.integers(0, len(variants), len(rows))]
        return self._join(offsets, ids)

    def mixed(self, rng: np.random.Generator, lengths: Ints, lexicons: Sequence[Sequence[str]], pick: Ints,
              share: float) -> pa.Array:  # fmt: skip
        """Sentences in which about ``share`` of row i's words come from ``lexicons[pick[i]]``."""
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        ids = self.zipf.draw(rng, int(offsets[-1]))
        sizes = np.array([len(words) for words in lexicons])
        members = np.zeros((len(lexicons), sizes.max()), dtype=np.int64)
        for row, words in enumerate(lexicons):
            members[row, : len(words)] = [self.phrases[word] for word in words]
        places = np.flatnonzero(rng.random(len(ids)) < share)
        lexicon = np.repeat(pick, lengths)[places]
        # A square skews the draw towards a lexicon's first words, as real text does.
        ids[places] = members[lexicon, (rng.random(len(places)) ** 2 * sizes[lexicon]).astype(np.int64)]
        return self._join(offsets, ids)

    def _join(self, offsets: Ints, ids: Ints) -> pa.Array:
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), self.words.take(pa.array(ids)))
        return pc.binary_join(lists, " ")


@cache
def vocabulary(phrases: tuple[str, ...] = (), size: int = 20_000) -> Vocabulary:
    """The vocabulary of ``size`` words plus ``phrases``; the same for every call with the same arguments."""
    rng = np.random.default_rng(20191101)
    consonants, vowels = listed("b c d f g h j k l m n p r s t v w z br ch cl dr gr pl sh st th tr"), "aeiou"
    words = dict.fromkeys(_COMMON)
    while len(words) < size:
        # Rarer words are longer: one syllable more for each tenfold rank.
        syllables = 1 + int(np.log10(len(words))) - int(rng.random() < 0.4)
        word = "".join(
            consonants[rng.integers(len(consonants))] + vowels[rng.integers(5)] for _ in range(syllables)
        )
        word += ["", "n", "s", "r"][rng.integers(4)]
        if not any(searched in word for searched in _SEARCHED):
            words.setdefault(word)
    return Vocabulary(
        pa.array([*words, *phrases], pa.string()),
        Zipf.over(size),
        {phrase: size + i for i, phrase in enumerate(phrases)},
    )


def random_strings(rng: np.random.Generator, n: int, width: int, *, symbols: int = 62) -> pa.Array:
    """``n`` strings of ``width`` letters and digits (the first ``symbols`` of a-zA-Z0-9)."""
    letters = _ALPHABET[rng.integers(0, symbols, n * width)]
    offsets = np.arange(n + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(letters))


def joined(*parts: pa.Array | str, skip_nulls: bool = False) -> pa.Array:
    """Element-wise concatenation; a null part makes the row null, or is left out with ``skip_nulls``."""
    handling = "skip" if skip_nulls else "emit_null"
    return pc.binary_join_element_wise(*parts, "", null_handling=handling)


def maybe(values: pa.Array, present: Bools) -> pa.Array:
    """``values`` where ``present``, null elsewhere."""
    return pc.if_else(pa.array(present), values, pa.scalar(None, values.type))
