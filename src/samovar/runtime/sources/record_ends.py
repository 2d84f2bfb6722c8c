"""Where a large text file can be cut: behind line breaks that end a record.

In most text formats every line break ends a record. In CSV with `multiLine` a line break inside quotes does not.
Counting quotes tells them apart as long as every quote opens a field, closes one or is doubled, as RFC 4180,
spreadsheets and pandas write it. A file with any other quote (`5" disk`) is not cut: Spark's parser has rules for such
quotes that are not repeated here.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

__all__ = ["Piece", "RecordLayout", "layout_of", "pieces"]

_WINDOW = 16 << 20  # bytes looked at in one go: enough for numpy's speed, little beside a chunk
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz")
_ENCODINGS = ("utf-8", "utf8", "us-ascii", "iso-8859-1")  # where a byte 10 is always a line break
_NEWLINE, _RETURN = 10, 13


@dataclass(frozen=True)
class RecordLayout:
    """How a file is divided into records."""

    header: bool = False
    comment: str = ""
    quote: str = ""
    """The quotes between which a line break ends no record; "": every line break ends one."""
    separator: str = ","


@dataclass(frozen=True)
class Piece:
    """Bytes of a file that hold whole records; `line` counts line breaks before them."""

    start: int
    stop: int
    line: int


def layout_of(path: str, format: str, options: Mapping[str, str]) -> RecordLayout | None:
    """How a text file can be cut, by the reader's options (whose names have no case); None: it must stay whole."""
    given = {k.lower(): str(v) for k, v in options.items()}
    yes = {k for k, v in given.items() if v.lower() == "true"}
    encoding = given.get("encoding", given.get("charset", "utf-8")).lower()
    if path.endswith(_COMPRESSED) or encoding not in _ENCODINGS or "linesep" in given or "wholetext" in yes:
        return None
    if format != "csv":
        return None if "multiline" in yes else RecordLayout()
    layout = RecordLayout(header="header" in yes, comment=given.get("comment", ""))
    if "multiline" not in yes:
        return layout
    quote, separator = given.get("quote", '"'), given.get("sep", given.get("delimiter", ","))
    if not (_is_byte(quote) and _is_byte(separator) and given.get("escape", "\\") == quote) or layout.comment:
        return None
    return RecordLayout(header=layout.header, quote=quote, separator=separator)


def pieces(path: str, layout: RecordLayout, size: int) -> tuple[bytes, list[Piece]] | None:
    """The header (b"": none), and the pieces behind it of about `size` bytes; None: the file cannot be cut safely.

    Reads the file once, by numpy: a second or two for a gigabyte.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        top = _header(content, layout)
        if top is None or (layout.quote and not _line_ends_are_told(content, layout)):
            return None
        data = np.frombuffer(content, np.uint8)
        try:
            ends = list(_ends(data, layout, len(top), size))
        except ValueError:
            return None
        finally:
            del data  # a view of the mapping, which cannot be closed before it is gone
    starts = [(len(top), 1 if top else 0), *ends]
    return top, [Piece(a, b, line) for (a, line), (b, _) in pairwise(starts)]


def _is_byte(text: str) -> bool:
    return len(text) == 1 and text.isascii()


def _header(content: mmap.mmap, layout: RecordLayout) -> bytes | None:
    """The first line, with its line break; None when Spark would not take it for the whole header."""
    if not layout.header:
        return b""
    top = content[: content.find(b"\n") + 1]
    # Spark passes over blank lines and comments to find the header, and takes a lone carriage return for a line end
    passed_over = not top.strip() or (layout.comment and top.lstrip().startswith(layout.comment.encode()))
    several = b"\r" in top.removesuffix(b"\r\n") or (layout.quote and top.count(layout.quote.encode()) % 2)
    return None if passed_over or several else top


def _line_ends_are_told(content: mmap.mmap, layout: RecordLayout) -> bool:
    """Whether Spark's parser finds the same line ends in each piece as in the whole file.

    It takes the first that it meets, which is the header's; without a header it may meet one in quotes.
    """
    return layout.header or content.find(b"\r") < 0


def _ends(data: np.ndarray, layout: RecordLayout, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Where pieces end, and the line breaks before that. Raises ValueError at a quote that is out of place."""
    quote = ord(layout.quote) if layout.quote else -1
    cut, quotes, lines = start, 0, 1 if start else 0
    for at in range(start, len(data), _WINDOW):
        window = data[at : at + _WINDOW]
        breaks = np.flatnonzero(window == _NEWLINE) + at
        ends = breaks
        if layout.quote:
            marks = np.flatnonzero(window == quote) + at
            _check_quotes(data, marks, quotes, quote, ord(layout.separator))
            ends = breaks[(quotes + np.searchsorted(marks, breaks)) % 2 == 0]
            quotes += len(marks)
        while (i := int(np.searchsorted(ends, cut + size - 1))) < len(ends):
            cut = int(ends[i]) + 1
            yield cut, lines + int(np.searchsorted(breaks, cut))
        lines += len(breaks)
    if quotes % 2:
        raise ValueError("quotes that are never closed")
    if cut < len(data):
        yield len(data), lines


def _check_quotes(data: np.ndarray, marks: np.ndarray, before: int, quote: int, separator: int) -> None:
    """Whether each quote opens a field, closes one, or is doubled, given how many came before."""
    last = len(data) - 1
    opening, closing = marks[before % 2 :: 2], marks[1 - before % 2 :: 2]
    left = data[np.maximum(opening - 1, 0)]
    opens = (opening == 0) | (left == separator) | (left == _NEWLINE) | (left == quote)
    right, second = data[np.minimum(closing + 1, last)], data[np.minimum(closing + 2, last)]
    ends_line = (right == _NEWLINE) | ((right == _RETURN) & (second == _NEWLINE))
    closes = (closing == last) | (right == separator) | ends_line | (right == quote)
    if not (opens.all() and closes.all()):
        raise ValueError("a quote that neither opens nor closes a field")
