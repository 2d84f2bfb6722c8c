"""The gallery of examples: a document for each, and the files it reads, written into the workspace."""

from __future__ import annotations

from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from samovar.errors import UnknownName
from samovar.files import new_folder
from samovar.graph.document import load, to_document

__all__ = ["EXAMPLES", "STORIES", "write_example"]

EXAMPLES = {
    "fraud": "Card payments, a fraud detector, and a bug: why are Bob's payments refused?",
    "tweets": "Made-up tweets about hot drinks: a dictionary search, their mood, and the words they use.",
    "reviews": "Product reviews to clean up; which say the opposite of their stars?",
    "taxi": "Taxi trips: income by hour, distances, and a Python operator that counts kilometres.",
    "tpch-q1": "TPC-H's pricing summary over a small made-up table: filter, aggregate, sort.",
    "tpch-q10": "TPC-H's returned items over four small made-up tables: three joins.",
}
"""The examples by name, each with its story in a line."""

STORIES = {
    "fraud": (
        "FE adds to each payment the customer's highest so far, FD labels it, FF drops the frauds, S keeps the rest.\n"
        "Something is wrong: all of Bob's payments are refused from some day on. To find out why, run it, open the "
        "panel Time and ask when it happened: operator FD, when 'Bob' in blacklist. Then step back, and look at FE."
    ),
}
"""What stands on the canvas beside an example, where there is more to say."""
_ROWS = 20_000


def write_example(name: str, files: Path) -> dict[str, Any]:
    """Write what an example reads below `files`, unless it is there, and return its document."""
    if name not in EXAMPLES:
        raise UnknownName(name, EXAMPLES, what="an example")
    if name == "fraud":
        return _fraud(files)
    text = resources("samovar.demo").joinpath("gallery", f"{name}.yaml").read_text("utf-8")
    return to_document(load(text))


def _fraud(files: Path) -> dict[str, Any]:
    from samovar.demo import fraud
    from samovar.demo.payments import write_payments

    data = files / "payments"
    if not data.is_dir():
        with new_folder(data) as folder:
            write_payments(folder, _ROWS)
    return to_document(fraud.build(data), relative_to=files)
