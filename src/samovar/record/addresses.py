"""Addresses of folders for recordings: paths, and file: addresses as the paths they stand for. Others are refused.

A recording needs a file system of the operating system's (locks, renaming, appending), local or shared. An address of
an object store or of HDFS, taken as a path, would be a folder here with an odd name, and be lost with this machine.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from samovar.errors import StorageProblem

__all__ = ["local_folder"]

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
"""A scheme of two letters or more. One slash is enough: a Path has made one of two."""


def local_folder(address: str | os.PathLike[str]) -> Path:
    """The folder a path or a file: address stands for. Raises StorageProblem for other addresses."""
    text = os.fspath(address)
    scheme = _ADDRESS.match(text)
    if scheme is None:
        return Path(text)
    rest = text[scheme.end() :].removeprefix("localhost/")
    host = text.startswith("file://") and not text.startswith(("file:///", "file://localhost/"))
    if scheme.group(1).lower() != "file" or host:
        raise StorageProblem(
            f"Expected a folder of a file system for recordings, got {text}.",
            hint="Recordings cannot be kept on object stores or HDFS. Name a folder: on a cluster one that all hosts "
            'share, at the same path everywhere (record="/shared/runs").',
        )
    return Path("/" + unquote(rest))
