"""Rows that did not parse, with the file and line they stand on."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from samovar.record.store import Recording
from samovar.runtime.written import read_sources

__all__ = ["read_rejected"]


def read_rejected(recording: Recording, source: str) -> pa.Table:
    """The rejected rows of a source as file, line and text. Reads the input again to find the lines."""
    listed = read_sources(recording)[source]
    origins = {u.path: (u.origin or u.path, u.start) for u in listed.units}
    header = int(listed.format == "csv" and str(listed.options.get("header", "")).lower() == "true")
    files: list[str] = []
    lines: list[int | None] = []
    texts: list[str] = []
    for folder in recording.parts("rejected", source, recording.history().epochs):
        rows = pa.concat_tables([pq.read_table(p) for p in sorted(folder.glob("*.parquet"))]).to_pylist()
        by_file: dict[str, list[str]] = {}
        for row in rows:
            by_file.setdefault(unquote(urlparse(row["file"]).path), []).append(row["text"])
        for path, bad in by_file.items():
            origin, start = origins.get(path, (path, 0))
            chunk_header = header if origin != path else 0
            for text, line in _find(Path(path), bad):
                files.append(origin)
                lines.append(None if line is None else line + start - (chunk_header if start else 0))
                texts.append(text)
    return pa.table({"file": files, "line": pa.array(lines, pa.int64()), "text": texts})


def _find(path: Path, texts: list[str]) -> list[tuple[str, int | None]]:
    """Line numbers (from 1) of raw rows; equal rows get successive lines."""
    wanted: dict[str, int] = {}
    for text in texts:
        key = text.rstrip("\r\n")
        wanted[key] = wanted.get(key, 0) + 1
    found: list[tuple[str, int | None]] = []
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, raw in enumerate(file, 1):
                text = raw.rstrip("\r\n")
                if wanted.get(text, 0) > 0:
                    wanted[text] -= 1
                    found.append((text, number))
    except OSError:
        pass
    found += [(text, None) for text, n in wanted.items() for _ in range(n)]
    return found
