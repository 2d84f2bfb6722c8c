"""Files and folders that appear whole or not at all.

They are written beside their final path under a temporary name and renamed. The name is a UUID and not a process id:
the tasks of a cluster write into one shared folder, and two hosts can have the same process ids. A reader sees the old
content or the new one; of several writers the last one wins. After a crash a file named `.*.tmp` may be left behind.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["new_file", "new_folder", "temporary_beside", "write_file"]


def temporary_beside(path: Path) -> Path:
    """A path in the same folder that no other process writes to."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path to write to; the file moves to `path` when the block ends, and is removed when the block raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: bytes | str, *, durable: bool = False, mode: int | None = None) -> None:
    """Write a file. `durable`: it survives a crash of the machine too, which costs milliseconds."""
    with new_file(path) as temporary, open(temporary, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            os.chmod(temporary, mode)
        if durable:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which moves to `path` when the block ends, unless another process has made one there before."""
    temporary = temporary_beside(path)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
