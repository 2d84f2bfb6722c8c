"""What the Python operators of the benchmarks compute, apart from any engine.

Both the plain jobs and the Samovar operators call this code, so a comparison of the two measures the engines.
Results depend on the order of calls and on nothing else: no clock, no randomness, no hash seed.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import datetime
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt

__all__ = ["KnnSentiment", "count_month", "judged", "sentiment_of_rating"]

_WORDS = 4  # a signature is 4 x 64 bits
_BITS = _WORDS * 64
_LABELS = ("negative", "neutral", "positive")


def count_month(counts: MutableMapping[str, int], created_at: datetime) -> None:
    """Add one to the count of the month, ``2019-11``, that ``created_at`` lies in."""
    month = f"{created_at.year}-{created_at.month:02d}"
    counts[month] = counts.get(month, 0) + 1


def sentiment_of_rating(overall: float) -> str:
    """What a rating of one to five stars says: up to 2 is negative, 3 is neutral."""
    return _LABELS[_label(overall)]


class KnnSentiment:
    """Online k-nearest-neighbour sentiment over a sliding window of the latest labelled texts.

    A text is a bag of words hashed into 256 bits. Its neighbours are the ``k`` texts in the window that
    overlap most with it (Jaccard similarity, the later text first among equals); they vote. Afterwards the
    text joins the window with the label of its rating, and the oldest leaves. The answers therefore depend on
    the order of the texts. A call costs about 25 microseconds with a window of 512.
    """

    def __init__(self, k: int = 7, window: int = 512) -> None:
        if not 0 < k <= window:
            raise ValueError(f"Expected 0 < k <= window, got k={k}, window={window}.")
        self.k = k
        self.window = window
        self.seen = 0
        self.signatures = np.zeros((_WORDS, window), dtype=np.uint64)
        self.sizes = np.zeros(window, dtype=np.int64)
        self.labels = np.zeros(window, dtype=np.int64)

    def step(self, text: str | None, overall: float) -> str:
        """The sentiment of ``text`` by the model so far; then the model learns it with its rating."""
        signature = 0
        for word in (text or "").lower().split():
            signature |= _bit(word)
        parts = np.frombuffer(signature.to_bytes(_BITS // 8, "little"), dtype=np.uint64)
        size = signature.bit_count()
        predicted = self._predict(parts, size)
        self._learn(parts, size, _label(overall))
        return _LABELS[predicted]

    def _predict(self, parts: npt.NDArray[np.uint64], size: int) -> int:
        known = min(self.seen, self.window)
        if known < self.k:
            return 2  # too little to go by: most reviews are positive
        shared = np.bitwise_count(self.signatures & parts[:, None]).sum(axis=0, dtype=np.int64)
        # Similarity in 1/65536ths, then recency: all scores differ, so the choice of k is well defined.
        similarity = (shared << 16) // (self.sizes + (size + 1) - shared)
        # The slot to be overwritten next has recency 0, the one written last window - 1.
        score = similarity * self.window + (_slots(self.window) - self.seen) % self.window
        if known < self.window:
            score[known:] = -1
        nearest = score.argpartition(self.window - self.k)[self.window - self.k :]
        return int(np.bincount(self.labels[nearest], minlength=3).argmax())

    def _learn(self, parts: npt.NDArray[np.uint64], size: int, label: int) -> None:
        slot = self.seen % self.window
        self.signatures[:, slot] = parts
        self.sizes[slot] = size
        self.labels[slot] = label
        self.seen += 1


def _label(overall: float) -> int:
    return 0 if overall <= 2 else 1 if overall < 4 else 2


@lru_cache(maxsize=8)
def _slots(window: int) -> npt.NDArray[np.int64]:
    return np.arange(window)


@lru_cache(maxsize=100_000)
def _bit(word: str) -> int:
    """The bit of a word: CRC-32, because Python's own hash differs between processes."""
    return 1 << (crc32(word.encode()) % _BITS)


_GOOD = frozenset(
    ["love", "great", "best", "thanks", "good", "happy", "glad", "better", "live", "right", "well", "please"]
)
_BAD = frozenset(["never", "don't", "hate", "bad", "off", "last", "why", "fire", "no", "not"])


def judged(text: str) -> float:
    """The sentiment of a text, from -1 to 1: good and bad words, and what a negation before them makes of them."""
    words = text.lower().split()
    total = weight = 0
    for before, word in zip(["", *words], words, strict=False):
        value = (word in _GOOD) - (word in _BAD)
        if value:
            total += -value if before in ("not", "no", "never") else value
            weight += 1
    return total / weight if weight else 0.0
