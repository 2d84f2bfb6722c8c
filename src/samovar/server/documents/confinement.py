"""Documents confined to the workspace: what a document reads and writes by path lies below the workspace's files, and
its SQL stays there too (see sql_reach.py).

This keeps a document from reaching other files by accident or by a path somebody typed. It is not a sandbox: Python
operators run as the user who started the server, which is why every request needs the token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samovar.errors import OutsideWorkspace
from samovar.server.documents.sql_reach import check_texts
from samovar.server.workspace import inside

__all__ = ["confine"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SERVER = re.compile(
    r"jdbc:(postgresql|mysql|mariadb|sqlserver|oracle|db2|snowflake|redshift)[:@/]", re.IGNORECASE
)
_TABLE = re.compile(r"\w+(\.\w+)*\Z")
_PATH_OPTIONS = (
    "path", "paths", "location", "url", "dbtable", "query", "rowvalidationxsdpath", "avroschemaurl",
)  # fmt: skip
_PATHS = {"read": "path", "write": "path", "query": "database"}
"""The field of an operator that holds its paths."""
_NO_SQL = ("name", "op", "inputs", "path", "code", "rows", "terms", "sql")
"""Fields whose texts are not Spark SQL: names, data, Python, and queries to a database."""


def confine(document: Mapping[str, Any], files: Path) -> None:
    """Raise OutsideWorkspace, naming the operator, if a path of the document leads out of `files`."""
    operators = document.get("operators")
    for item in operators if isinstance(operators, list | tuple) else ():
        if isinstance(item, Mapping):
            problem = problem_of(item, files)
            if problem is not None:
                raise problem


def problem_of(item: Mapping[str, Any], files: Path) -> OutsideWorkspace | None:
    """What is wrong with the paths of one operator, if something is."""
    name = item.get("name")
    operator = name if isinstance(name, str) else None
    kind = str(item.get("op"))
    try:
        if kind in _PATHS:
            for path in _texts(item.get(_PATHS[kind])):
                _check(path, files)
            _check_options(item.get("options"))
        if kind == "query":
            _check_address(item.get("url"))
        if kind == "table":
            _check_table(item.get("table"))
        check_texts(value for field, value in item.items() if field not in _NO_SQL)
    except OutsideWorkspace as error:
        return OutsideWorkspace(error.message, hint=error.hint, operator=operator)
    return None


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [v for v in value if isinstance(v, str)] if isinstance(value, list | tuple) else []


def _check(path: str, files: Path) -> None:
    if _URI.match(path):
        raise OutsideWorkspace(
            f"Expected a path inside the workspace, got the address {path!r}.",
            hint="Upload the file, or run the document with `samovar run`, which reads from anywhere.",
        )
    inside(files, path)


def _check_options(options: Any) -> None:
    for key in options if isinstance(options, Mapping) else ():
        if str(key).lower() in _PATH_OPTIONS:
            raise OutsideWorkspace(
                f"Expected the place of the data in 'path', got the option '{key}'.",
                hint="Leave the option out, and name files of the workspace in 'path'.",
            )


def _check_address(url: Any) -> None:
    if isinstance(url, str) and not _SERVER.match(url):
        raise OutsideWorkspace(
            f"Expected the address of a database server, got {url!r}.",
            hint="For example jdbc:postgresql://host/db; a SQLite file of the workspace goes into 'database'.",
        )


def _check_table(table: Any) -> None:
    if isinstance(table, str) and not _TABLE.match(table):
        raise OutsideWorkspace(
            f"Expected the name of a table, got {table!r}.", hint="Read files with the operator 'read'."
        )
