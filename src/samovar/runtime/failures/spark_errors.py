"""Spark's exceptions as a condition, a message and the user's traceback, without Java's stack."""

from __future__ import annotations

import re
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

__all__ = ["SPARK_ERRORS", "SparkError"]

SPARK_ERRORS = (PySparkException, Py4JError)
"""What a failed job raises. PySpark passes py4j's on where it does not know Java's exception."""


@dataclass(frozen=True)
class SparkError:
    """An exception of Spark's, read from its text."""

    condition: str
    message: str
    fragments: tuple[str, ...] = ()
    python: str = ""
    """The traceback of a Python function, limited to the user's code."""

    @classmethod
    def of(cls, error: BaseException) -> SparkError:
        text = str(error)
        condition = ""
        fragments: list[str] = []
        if isinstance(error, PySparkException):
            condition = str(error.getCondition() or "")
            try:
                fragments = [str(c.fragment()) for c in error.getQueryContext() if str(c.fragment() or "")]
            except Exception:
                fragments = []
        python = _python_traceback(text)
        if python:
            lines = python.splitlines()
            return cls(condition, lines[-1], tuple(fragments), python if len(lines) > 1 else "")
        coded = re.search(r"\[([A-Z][A-Z_0-9.]+)\] ?([^\n]*(?:\n(?!==|\tat |JVM)[^\n]+)?)", text)
        if coded:
            condition, line = condition or coded.group(1), coded.group(2)
        elif causes := re.findall(r"Caused by: [\w.$]+: ([^\n]+)", text):
            line = causes[-1]
        else:
            lines = [ln.strip() for ln in text.splitlines() if ln.strip()]
            line = next((ln for ln in lines if not ln.startswith(("py4j.", "at "))), text)
        line = re.sub(r"\s*SQLSTATE: \w+", "", line)
        line = re.sub(r' If necessary set "[\w.]+" to "false" to bypass this error\.', "", line)
        return cls(condition, line.strip()[:600], tuple(fragments))

    @property
    def line(self) -> str:
        """The message's first line, without condition and SQLSTATE, to be part of another message."""
        return next(iter(self.message.splitlines()), "") or self.condition or "(no message)"

    @property
    def text(self) -> str:
        """The message, and on a second line the expression it is about."""
        about = f"\n    in: {self.fragments[0]}" if self.fragments and not self.python else ""
        return f"{self.message}{about}"


_FRAME = re.compile(r'  File "(?P<file>[^"]+)", line \d+, in [^\n]*\n(?:    [^\n]*\n)*')


def _python_traceback(text: str) -> str:
    """The last Python traceback in a text, without the frames of Spark, of Samovar and of libraries."""
    start = text.rfind("Traceback (most recent call last):")
    if start < 0:
        return ""
    body = text[start:].split("\n\tat ")[0].split("\n\nJVM stacktrace")[0]
    frames = [m for m in _FRAME.finditer(body) if not _foreign(m.group("file"))]
    ends = [m.end() for m in _FRAME.finditer(body)]
    last = body[ends[-1] :].strip() if ends else body.splitlines()[-1]
    last = re.sub(r"^[\w.]+\.(\w+(?:Error|Exception|Warning)):", r"\1:", last)
    if not frames:
        return last[:800].splitlines()[0]
    return "Traceback (most recent call last):\n" + "".join(m.group(0) for m in frames[-8:]) + last[:800]


def _foreign(file: str) -> bool:
    return any(
        part in file for part in ("/pyspark/", "pyspark.zip", "/samovar/", "site-packages", "/lib/python3")
    )
