"""PySpark Columns as SQL text, so that a recording or a workflow document can keep them.

A Column prints itself in a prefix form (`=(x, 'abc')`) that loses information: dates are unquoted, DISTINCT
is gone, names with spaces have no backticks. This module parses the printed form, writes SQL candidates, the
most likely first, and lets Spark judge them: a candidate counts only if the original Column and the
candidate, applied to the same input, have the same semantics (`DataFrame.sameSemantics`, which compares the
analysed plans including the types of literals) and the same schema.

Guarantee: the text returned means what the Column means on the given inputs; otherwise the result is None.
Not promised: that every Column has a text. None is returned for Python UDFs, binary, NaN and infinite literals, struct
updates (`withField`, `dropFields`), metadata on an alias, and whatever Spark itself rejects. A text may name
a function registered in the session, if the user's own text did.

Cost: no job runs. One analysis for the Column and one per candidate tried, 5 to 20 ms each on a warm session;
nearly always the first candidate holds, and at most `MAX_CANDIDATES` are tried.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from samovar.compile.kept_types import has_map, type_parts
from samovar.compile.printed_columns import (
    Call,
    Case,
    Cast,
    Lambda,
    Leaf,
    Node,
    Over,
    PrintedAlias,
    PrintedIndex,
    PrintedSort,
    parse_printed,
    string_end,
)
from samovar.compile.sqltext import AGGREGATES, SqlTextError, is_plain_name, tokenise
from samovar.graph.operators.base import expr
from samovar.text import quote_name

__all__ = ["MAX_CANDIDATES", "Usage", "column_to_sql", "quiet_analysis", "sort_column"]

Usage = Literal["project", "filter", "aggregate", "sort", "join"]

MAX_CANDIDATES = 32
"""Nearly always the first is right; trying 32 takes about half a second."""


def column_to_sql(column: Column, *inputs: DataFrame, usage: Usage = "project") -> str | None:
    """The SQL text of a Column that is used on `inputs` (two of them for a join condition), or None.

    The text has `AS alias` if the Column has one; a sort order reads `a DESC NULLS LAST`.
    """
    expected = 2 if usage == "join" else 1
    if len(inputs) != expected:
        raise ValueError(f"Expected {expected} input(s) for usage={usage!r}, got {len(inputs)}.")
    with quiet_analysis():
        try:
            apply = _application(column, inputs, usage)
            wanted = apply(column)
        except Exception:
            return None  # Spark rejects the Column itself; the run reports why
        texts = list(itertools.islice(_candidates(str(expr(column)), inputs, wanted), MAX_CANDIDATES))
        for text in texts:
            verified = _verified(text, wanted, apply, usage)
            if verified is not None:
                return verified
        if len({t.replace("`", "") for t in texts}) == 1 and not apply(column).sameSemantics(wanted):
            # `expr("uuid()")` draws a seed each time it is analysed, and so differs from itself: nothing can be
            # compared, but there is only one way to read what it prints
            return _verified(texts[0], wanted, apply, usage, compare=False)
    return None


def sort_column(text: str) -> Column:
    """The Column for the text of a sort order, such as `a DESC NULLS LAST`, `a desc` or `a`."""
    tokens = tokenise(text)
    words = [token.lower for token in tokens]
    end = len(tokens)
    nulls = None
    if words[-2:] in (["nulls", "first"], ["nulls", "last"]):
        nulls, end = words[-1], end - 2
    direction = None
    if end > 1 and words[end - 1] in ("asc", "desc"):
        direction, end = words[end - 1], end - 1
    elif nulls is None:
        return F.expr(text)
    key = F.expr(text[: tokens[end - 1].end])
    if direction == "desc":
        return key.desc_nulls_first() if nulls == "first" else key.desc_nulls_last()
    return key.asc_nulls_last() if nulls == "last" else key.asc_nulls_first()


@contextmanager
def quiet_analysis() -> Iterator[None]:
    """Keep PySpark from logging this thread's analysis errors: some candidates are expected to fail."""
    # The first call for a logger's name decides its class. PySpark logs query errors with arguments that only its own
    # class takes, so a plain `logging.getLogger` here would break every such error.
    from pyspark.logger import PySparkLogger

    thread = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        return record.thread != thread

    loggers = [
        PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    ]
    for logger in loggers:
        logger.addFilter(keep)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)


# --- verification ---------------------------------------------------------------------------------------------------


def _application(
    column: Column, inputs: tuple[DataFrame, ...], usage: Usage
) -> Callable[[Column], DataFrame]:
    """How a Column with this usage is applied to the inputs."""
    first = inputs[0]
    match usage:
        case "project":
            return first.select
        case "filter":
            return first.filter
        case "sort":
            return first.sort
        case "join":
            return lambda c: first.join(inputs[1], c)
    try:
        first.agg(column)
    except Exception:
        # It may refer to grouping keys, which are not known here: group by all that can be grouped by.
        keys = [F.col(quote_name(f.name)) for f in first.schema.fields if not has_map(f.dataType)]
        return first.groupBy(*keys).agg
    return first.agg


def _verified(
    text: str,
    wanted: DataFrame,
    apply: Callable[[Column], DataFrame],
    usage: Usage,
    *,
    compare: bool = True,
) -> str | None:
    """The candidate, with an alias if its name needs one, if it means the same to Spark; otherwise None.

    `compare=False`: only columns and types are compared.
    """
    try:
        got = apply(sort_column(text) if usage == "sort" else F.expr(text))
        if compare and not got.sameSemantics(wanted):
            return None
        if got.schema == wanted.schema:
            return text
        if usage not in ("project", "aggregate") or got.columns[:-1] != wanted.columns[:-1]:
            return None
        named = f"{text} AS {quote_name(wanted.columns[-1])}"
        again = apply(F.expr(named))
        same = again.schema == wanted.schema and (not compare or again.sameSemantics(wanted))
        return named if same else None
    except Exception:
        return None  # whatever Spark reports, this candidate is not verified


# --- candidates -----------------------------------------------------------------------------------------------------


def _candidates(printed: str, inputs: tuple[DataFrame, ...], wanted: DataFrame) -> Iterator[str]:
    """Distinct SQL texts for the printed form, the most likely first."""
    if "columnnodeexpression(" in printed:  # how a Python UDF's arguments print
        return
    names = _Names.of(inputs)
    # The output name tells where an alias with odd characters starts.
    alias = f" AS {wanted.columns[-1]}" if wanted.columns else ""
    if alias and printed.endswith(alias):
        node: Node = PrintedAlias(
            parse_printed(names.shield(printed.removesuffix(alias))), (wanted.columns[-1],)
        )
    else:
        node = parse_printed(names.shield(printed))
    renderings = _renderings(node, names)
    seen: set[str] = set()
    for candidate in itertools.chain((next(renderings), printed), renderings):
        if candidate not in seen and _well_formed(candidate):
            seen.add(candidate)
            yield candidate


def _well_formed(sql: str) -> bool:
    try:
        return bool(tokenise(sql))
    except SqlTextError:
        return False


@dataclass(frozen=True)
class _Names:
    """Names of the inputs that the printed form does not delimit, and stand-ins for them while parsing."""

    strange: tuple[str, ...]

    @staticmethod
    def of(inputs: tuple[DataFrame, ...]) -> _Names:
        parts = [
            part for frame in inputs for part in type_parts(frame.schema) if isinstance(part, StructType)
        ]
        names = {name for part in parts for name in part.names if re.search(r"\W", name)}
        return _Names(tuple(sorted(names, key=len, reverse=True)))

    def shield(self, text: str) -> str:
        """The text with each strange name outside strings replaced by a word that stands for it."""
        if not self.strange:
            return text
        forms = {
            form: i
            for i, name in reversed(list(enumerate(self.strange)))
            for form in (name, f"`{name}`", quote_name(name))
        }
        names = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
        pattern = rf"(?<![^( ,\[.])(?P<name>{names})(?=[),\] .\[]|\Z)|'(?:[^'\\]|\\.)*'?"
        return re.sub(
            pattern,
            lambda part: f"\ue000{forms[part['name']]}\ue001" if part["name"] else part[0],
            text,
            flags=re.DOTALL,
        )

    def restore(self, text: str, *, quoted: bool = False) -> str:
        def name(match: re.Match[str]) -> str:
            strange = self.strange[int(match.group(1))]
            return quote_name(strange) if quoted else strange

        return re.sub("\ue000(\\d+)\ue001", name, text)


# --- the tree as SQL ------------------------------------------------------------------------------------------------

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _UNARY, _PRIMARY = 1, 2, 3, 4, 8, 9, 10, 11
_INFIX = {
    "or": ("OR", _OR),
    "and": ("AND", _AND),
    **{op: (op, _COMPARE) for op in ("=", "==", "<=>", "<", ">", "<=", ">=", "!=", "<>")},
    "like": ("LIKE", _COMPARE),
    "ilike": ("ILIKE", _COMPARE),
    "rlike": ("RLIKE", _COMPARE),
    "|": ("|", 5),
    "^": ("^", 6),
    "&": ("&", 7),
    "+": ("+", _ADD),
    "-": ("-", _ADD),
    "*": ("*", _MULTIPLY),
    "/": ("/", _MULTIPLY),
    "%": ("%", _MULTIPLY),
}
_RENAMED = {"isNaN": "isnan", "extract": "date_part"}
_PATH = re.compile(r"(?:[^\W\d]\w*|`[^`]+`)(?:\.(?:\w+|`[^`]+`))*\Z")
_DURATION = re.compile(r"PT(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d+))?S)?(?<!PT)\Z")
_KINDS = {
    "integer": re.compile(r"-?\d+\Z"),
    "long": re.compile(r"-?\d+L\Z"),
    "fraction": re.compile(r"-?\d+(?:\.\d+)?(?:E[+-]?\d+)?\Z"),
    "date": re.compile(r"[+-]?\d{4,}-\d\d-\d\d\Z"),
    "timestamp": re.compile(r"[+-]?\d{4,}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?\Z"),
    "time": re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?\Z"),
    "constant": re.compile(r"(?:NULL|true|false)\Z"),
    "duration": _DURATION,
    "star": re.compile(r"(?:.*\.)?\*\Z", re.DOTALL),
}


def _renderings(node: Node, names: _Names) -> Iterator[str]:
    """The SQL texts of a tree: first the likeliest reading of each ambiguous part, then less likely ones.

    Parts that print alike are read alike, which keeps the number of combinations small.
    """
    first = _Writer(names, {})
    yield first.whole(node)
    sizes = list(first.options.values())
    for cost in range(1, sum(sizes) - len(sizes) + 1):
        for choice in _choices(sizes, cost):
            yield _Writer(names, dict(zip(first.options, choice, strict=True))).whole(node)


def _choices(sizes: list[int], cost: int) -> Iterator[tuple[int, ...]]:
    """All ways to pick one of `size` options for each part with the given total of option numbers."""
    if not sizes:
        if cost == 0:
            yield ()
        return
    rest = sum(size - 1 for size in sizes[1:])
    for here in range(min(sizes[0] - 1, cost), max(0, cost - rest) - 1, -1):
        for others in _choices(sizes[1:], cost - here):
            yield (here, *others)


class _Writer:
    """Writes one SQL text; afterwards `options` has the number of readings of each ambiguous part."""

    def __init__(self, names: _Names, chosen: dict[str, int]) -> None:
        self.options: dict[str, int] = {}
        self._names = names
        self._chosen = chosen
        self._lambda_names: dict[str, str] = {}

    def whole(self, node: Node) -> str:
        return self._write(node)[0]

    def _choose(self, key: str, readings: list[tuple[str, int]]) -> tuple[str, int]:
        if len(readings) > 1:
            self.options[key] = len(readings)
        return readings[min(self._chosen.get(key, 0), len(readings) - 1)]

    def _at(self, node: Node, level: int) -> str:
        """The text of a part, in brackets if it binds weaker than `level`."""
        text, binds = self._write(node)
        return text if binds >= level else f"({text})"

    def _write(self, node: Node) -> tuple[str, int]:
        match node:
            case Leaf():
                return self._leaf(node.text)
            case Call():
                return self._call(node)
            case PrintedAlias():
                return self._alias(node)
            case PrintedSort():
                return f"{self._at(node.child, _OR)} {node.order}", 0
            case Cast():
                return f"{node.keyword}({self._at(node.child, _OR)} AS {node.type})", _PRIMARY
            case PrintedIndex():
                return f"{self._at(node.child, _PRIMARY)}[{self._at(node.key, _OR)}]", _PRIMARY
            case Case():
                parts = [
                    f"WHEN {self._at(when, _OR)} THEN {self._at(then, _OR)}" for when, then in node.branches
                ]
                if node.otherwise is not None:
                    parts.append(f"ELSE {self._at(node.otherwise, _OR)}")
                return f"CASE {' '.join(parts)} END", _PRIMARY
            case Lambda():
                return self._lambda(node)
            case Over():
                return self._over(node)

    def _alias(self, node: PrintedAlias) -> tuple[str, int]:
        child = self._at(node.child, _OR)
        shown = [self._names.restore(name) for name in node.names]
        quoted = [name if is_plain_name(name) else quote_name(name) for name in shown]
        return f"{child} AS {quoted[0] if len(quoted) == 1 else '(' + ', '.join(quoted) + ')'}", 0

    def _lambda(self, node: Lambda) -> tuple[str, int]:
        # PySpark numbers lambda variables per process; count from 1 so that equal Columns have equal texts.
        outer = dict(self._lambda_names)
        for param in node.params:
            stem = param.rstrip("0123456789").rstrip("_")
            self._lambda_names[param] = f"{stem}_{len(self._lambda_names) + 1}"
        params = [self._lambda_names[param] for param in node.params]
        head = params[0] if len(params) == 1 else f"({', '.join(params)})"
        text = f"{head} -> {self._at(node.body, _OR)}"
        self._lambda_names = outer
        return text, 0

    def _over(self, node: Over) -> tuple[str, int]:
        parts: list[str] = []
        if node.partition:
            parts.append("PARTITION BY " + ", ".join(self._at(item, _OR) for item in node.partition))
        if node.order:
            parts.append("ORDER BY " + ", ".join(self._at(item, 0) for item in node.order))
        if node.frame:
            parts.append(node.frame)
        return f"{self._at(node.child, _PRIMARY)} OVER ({' '.join(parts)})", _PRIMARY

    def _call(self, node: Call) -> tuple[str, int]:
        name, args = node.name, node.args
        if name in _INFIX and len(args) == 2:
            word, level = _INFIX[name]
            # Comparisons do not chain; other operators group to the left.
            left = self._at(args[0], level + 1 if level == _COMPARE else level)
            return f"{left} {word} {self._at(args[1], level + 1)}", level
        if len(args) == 1 and name in ("!", "not"):
            return f"NOT {self._at(args[0], _NOT)}", _NOT
        if len(args) == 1 and name == "~":
            return f"~{self._at(args[0], _PRIMARY)}", _UNARY
        if len(args) == 1 and name in ("isNull", "isNotNull"):
            return f"{self._at(args[0], _COMPARE + 1)} IS {'NOT ' * (name != 'isNull')}NULL", _COMPARE
        if len(args) > 1 and name == "in":
            listed = ", ".join(self._at(arg, _OR) for arg in args[1:])
            return f"{self._at(args[0], _COMPARE + 1)} IN ({listed})", _COMPARE
        shown = self._names.restore(_RENAMED.get(name, name))
        if not re.fullmatch(r"\w+(\.\w+)*", shown):
            shown = quote_name(shown)
        listed = ", ".join(self._at(arg, 0) for arg in args)
        readings = [(f"{shown}({listed})", _PRIMARY)]
        if name.lower() in AGGREGATES and args:
            readings.append((f"{shown}(DISTINCT {listed})", _PRIMARY))
        written = (self._names.restore(node.text, quoted=True), _PRIMARY)  # as the user's own SQL text
        if any(isinstance(arg, Leaf) and _kind(arg.text) == "other" for arg in args):
            readings.insert(0 if re.match(r"distinct\b", listed, re.IGNORECASE) else 1, written)
        return self._choose(node.text, readings)

    def _leaf(self, text: str) -> tuple[str, int]:
        head, dot, tail = text.partition(".")
        if head in self._lambda_names:
            return self._lambda_names[head] + dot + tail, _PRIMARY
        return self._choose(text, self._readings(text))

    def _readings(self, text: str) -> list[tuple[str, int]]:
        number = _UNARY if text.startswith("-") else _PRIMARY
        shown = self._names.restore(text)
        as_name = (quote_name(shown), _PRIMARY)
        match _kind(text):
            case "string" | "long":
                return [(text, number)]
            case "integer":
                return [(text, number), (f"{text}BD", number), as_name]
            case "fraction":
                return [(f"{text}{suffix}", number) for suffix in ("D", "BD", "F")]
            case "date":
                return [(f"DATE'{text}'", _PRIMARY), (text, _ADD), as_name]
            case "timestamp":
                value = text.replace("T", " ")
                return [(f"TIMESTAMP'{value}'", _PRIMARY), (f"TIMESTAMP_NTZ'{value}'", _PRIMARY), as_name]
            case "time":
                return [(f"TIME'{text}'", _PRIMARY), as_name]
            case "duration":
                return [(_interval(text), _PRIMARY), as_name]
            case "constant":
                return [(text, _PRIMARY), as_name]
            case "star":
                star = text.removesuffix(".*") if text.count("*") > 1 else text
                return [(self._names.restore(star), _PRIMARY)]
            case "path":
                return self._path(text)
        as_text = (self._names.restore(text, quoted=True), 0)
        plain = re.fullmatch(r"[\w ]*", shown) is not None
        return [as_name, as_text] if plain else [as_text, as_name]

    def _path(self, text: str) -> list[tuple[str, int]]:
        parts = [
            part[1:-1] if part.startswith("`") else self._names.restore(part)
            for part in re.findall(r"`[^`]+`|[^.`]+", text)
        ]
        relaxed = ".".join(part if is_plain_name(part) else quote_name(part) for part in parts)
        strict = ".".join(quote_name(part) for part in parts)
        return [(relaxed, _PRIMARY)] if relaxed == strict else [(relaxed, _PRIMARY), (strict, _PRIMARY)]


def _kind(text: str) -> str:
    """What a leaf of the printed form looks like; it may still be a column of that name."""
    if text.startswith("'") and string_end(text, 0) == len(text) and len(text) > 1:
        return "string"
    for kind, pattern in _KINDS.items():
        if pattern.match(text):
            return kind
    return "path" if _PATH.match(text.replace("\ue000", "x").replace("\ue001", "")) else "other"


def _interval(text: str) -> str:
    """An ISO duration, as a timedelta literal prints, as a SQL interval literal."""
    parts = _DURATION.match(text)
    assert parts is not None
    hours, minutes, sign, seconds, fraction = parts.groups()
    micros = (int(hours or 0) * 3600 + int(minutes or 0) * 60) * 1_000_000
    below = int(seconds or 0) * 1_000_000 + int((fraction or "0").ljust(6, "0")[:6])
    micros += -below if sign else below
    minus = "-" if micros < 0 else ""
    rest, micro = divmod(abs(micros), 1_000_000)
    days, rest = divmod(rest, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"INTERVAL '{minus}{days} {clock}{f'.{micro:06}' if micro else ''}' DAY TO SECOND"
