"""The rule for names of workflows and operators: a letter of any script or `_`, then letters, digits, `_ . -` and
blanks."""

from __future__ import annotations

import re
from collections.abc import Container

__all__ = ["SCHEMA_PATTERN", "is_name", "unused"]

_NAME = re.compile(r"[^\W\d][\w .-]*\Z")
SCHEMA_PATTERN = r"^(?![0-9 .-])[^\x00-\x1f!-,/:-@\[-^`{-\x7f]+$"
"""The rule as a pattern for JSON Schema, whose regular expressions know letters of ASCII only: it takes every such
name, and some with other signs outside of ASCII that `is_name` does not take."""


def is_name(name: object) -> bool:
    """Whether an operator or a workflow can have this name."""
    return isinstance(name, str) and _NAME.match(name) is not None


def unused(name: str, taken: Container[str]) -> str:
    """The name, or with a number behind it the first that is not taken: `totals`, `totals_2`, `totals_3`."""
    numbered, number = name, 1
    while numbered in taken:
        number += 1
        numbered = f"{name}_{number}"
    return numbered
