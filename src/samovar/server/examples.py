"""Examples for an empty workspace: a document, and the files it reads, written into the workspace."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from samovar.errors import UnknownName
from samovar.graph.document import to_document

__all__ = ["EXAMPLES", "write_example"]

EXAMPLES = {"fraud": "Card payments, a fraud detector, and a bug: why are Bob's payments refused?"}
"""The examples by name, each with its story in a line."""
_ROWS = 20_000


def write_example(name: str, files: Path) -> dict[str, Any]:
    """Write what an example reads below `files`, unless it is there, and return its document."""
    if name not in EXAMPLES:
        raise UnknownName(name, EXAMPLES, what="an example")
    from samovar.demo import fraud
    from samovar.demo.payments import write_payments

    data = files / "payments"
    if not data.is_dir():
        fresh = files / f".payments-{os.getpid()}"
        shutil.rmtree(fresh, ignore_errors=True)
        write_payments(fresh, _ROWS)
        os.replace(fresh, data)
    return to_document(fraud.build(data), relative_to=files)
