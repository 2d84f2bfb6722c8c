"""SQL confined to the workspace: expressions neither read files by name nor call Java.

Two guards, because SQL cannot be searched for everything. The session answers no query on a file
(`spark.sql.runSQLOnFiles`), however the file is named. Functions that call Java cannot be switched off in Spark, so
texts that call them are refused, and texts that put a function's name together (`IDENTIFIER('refl' || 'ect')`).
The search is not misled by comments, quotes or strings: it takes them for what they might be, and refuses too much
rather than too little. Python operators are not confined: they run as the user who started the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from samovar.errors import OutsideWorkspace

__all__ = ["SESSION", "check_sql", "check_texts"]

SESSION = {"spark.sql.runSQLOnFiles": "false"}
"""Settings of the server's session."""

_CALL = re.compile(
    r"\b(reflect|try_reflect|java_method|identifier|from_protobuf|to_protobuf)\b`?\s*(\(|/\*|--)",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"\b(from|join|table)\s+`?(text|csv|json|parquet|orc|avro|xml|binaryfile|delta)`?\s*\.", re.IGNORECASE
)


def check_sql(text: str | None, operator: str | None = None) -> None:
    """Raise OutsideWorkspace for SQL that would reach outside of the workspace."""
    if text is None:
        return
    if (call := _CALL.search(text)) is not None:
        raise OutsideWorkspace(
            f"Expected SQL over columns, got a call of '{call[1]}', which reaches outside of the workspace.",
            operator=operator,
            hint="Use other functions, or a Python operator: it runs as the user who started the server.",
        )
    if _FILE.search(text) is not None:
        raise OutsideWorkspace(
            f"Expected SQL over columns, got a query on a file: {text[:200]!r}.",
            operator=operator,
            hint="Upload the file and read it with the operator 'read', so that the recording knows of it.",
        )


def check_texts(values: Iterable[Any], operator: str | None = None) -> None:
    """The same for all texts in some values, however deep they lie."""
    for value in values:
        if isinstance(value, str):
            check_sql(value, operator)
        elif isinstance(value, Mapping):
            check_texts([*value.keys(), *value.values()], operator)
        elif isinstance(value, list | tuple):
            check_texts(value, operator)
