"""A scanner for SQL expression text: tokens, brackets, top-level splits, quoting.

Purpose: look *at* the text of a Spark SQL expression without a session, enough to find aggregate calls,
their arguments and the alias, while never being fooled by strings, quoted names, comments or brackets.

Guarantee: joining `sql[t.start:t.end]` of all tokens loses only white space and comments.
Not promised: that the text is valid SQL; Spark's own parser remains the judge of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, cast

__all__ = [
    "AGGREGATES",
    "GENERATORS",
    "AggregateCall",
    "SqlTextError",
    "Star",
    "Token",
    "UnsupportedSqlError",
    "aggregate_calls",
    "function_names",
    "is_call",
    "is_plain_name",
    "matching_bracket",
    "replace_calls",
    "split_alias",
    "split_top_level",
    "stars",
    "tokenise",
    "unqualified",
]

TokenKind = Literal["word", "quoted", "string", "number", "symbol"]

_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())
_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|--[^\n]*|/\*.*?\*/)+)
    |(?P<string>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|bd|Bd|bD|[LSYDFlsydf])?(?!\w))
    |(?P<word>\w+)
    |(?P<symbol><=>|->|=>|::|\|\||<=|>=|<>|!=|==|<<|>>|(?!/\*)[^'"`])""",
    re.DOTALL | re.VERBOSE,
)
"""White space with comments, and the five kinds of tokens. An open quote or comment matches nothing."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that do not read as a column name in every place an expression can stand.
_KEYWORDS = _words(
    """all and anti any array as asc between both by case cast collate cross current_date current_time
    current_timestamp current_user date desc distinct div else end escape except exists extract
    false fetch filter first for from full group having ilike in inner intersect interval into is
    join lateral leading left like limit localtimestamp map minus natural not null nulls offset on
    or order outer over overlay partition position regexp right rlike select semi session_user set
    some struct substr substring table then time timestamp timestamp_ltz timestamp_ntz trailing trim
    true try_cast union unique user using values when where window with within"""
)


GENERATORS = _words(
    """collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack
    variant_explode variant_explode_outer"""
)

# Every aggregate function of Spark 4.3 (and `grouping`, which only makes sense among them), in lower case.
AGGREGATES = _words(
    """any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set collect_union corr count count_if
    count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric
    hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max
    max_by mean measure median min min_by mode percentile percentile_approx percentile_cont
    percentile_disc product regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum
    theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
    tuple_union_agg_integer var_pop var_samp variance"""
)


class SqlTextError(ValueError):
    """The text has an unterminated string, quoted name or bracket."""

    def __init__(self, message: str, sql: str, position: int) -> None:
        super().__init__(f"{message} at character {position} of {sql!r}")
        self.sql = sql
        self.position = position


class UnsupportedSqlError(ValueError):
    """The text can be scanned, but has something in it that a scanner cannot judge."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` is as written, `start` and `end` are its place in the text."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        """The text in lower case for a bare word, otherwise unchanged: what keywords are compared with."""
        return self.text.lower() if self.kind == "word" else self.text

    @property
    def name(self) -> str:
        """The identifier this token stands for: the text itself, or without its backticks."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text


def tokenise(sql: str) -> list[Token]:
    """The tokens of `sql`, without white space and comments. Linear in the length of the text."""
    tokens: list[Token] = []
    place = 0
    while place < len(sql):
        token = _TOKEN.match(sql, place)
        if token is None:
            raise SqlTextError("Expected a closing quote or comment, got the end of the text", sql, place)
        if token.lastgroup != "space":
            tokens.append(Token(cast(TokenKind, token.lastgroup), token.group(), place, token.end()))
        place = token.end()
    return tokens


def matching_bracket(tokens: Sequence[Token], opening: int) -> int | None:
    """The index of the token that closes the bracket at index `opening`, or None."""
    expected: list[str] = []
    for index in range(opening, len(tokens)):
        text = tokens[index].text
        if text in _OPEN:
            expected.append(_OPEN[text])
        elif text in _CLOSE:
            if not expected or expected.pop() != text:
                return None
            if not expected:
                return index
    return None


def split_top_level(tokens: Sequence[Token], separator: str = ",") -> list[list[Token]]:
    """The runs of tokens between separators (a symbol or a word) outside all brackets; [] for no tokens."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0 and token.lower == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if tokens else []


def split_alias(sql: str, name: str | None = None) -> tuple[str, str | None]:
    """The expression and its alias, if it has one: `("sum(x)", "total")` for "sum(x) AS total".

    An alias without AS is only recognised when `name`, the output name that Spark gives, shows that the last
    word is one: "x IS NULL" and "sum(x) total" look alike. A list of aliases, `AS (a, b)`, is left in the
    expression.
    """
    tokens = tokenise(sql)
    if len(tokens) < 2 or tokens[-1].kind not in ("word", "quoted"):
        return sql, None
    last, before = tokens[-1], tokens[-2]
    if before.lower == "as" and len(tokens) > 2:
        return sql[: before.start].rstrip(), last.name
    ends_a_value = before.kind != "symbol" or before.text in (")", "]")
    if name is not None and last.name == name and ends_a_value:
        return sql[: last.start].rstrip(), last.name
    return sql, None


@dataclass(frozen=True)
class Star:
    """A `*` that stands for columns: `prefix` is what qualifies it (`t` of `t.*`), `end` the place behind it.

    `excluded` is the place of the first name in its `EXCEPT (...)`, if it has one.
    """

    prefix: str
    end: int
    excluded: int | None = None


def stars(sql: str) -> list[Star]:
    """Each `*` that stands for columns, from left to right; not products, and not `count(*)`, which counts rows."""
    try:
        tokens = tokenise(sql)
    except SqlTextError:
        return []
    columns: list[Star] = []
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else None
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        if token.text != "*" or token.kind != "symbol":
            continue
        excluded = None
        if after is not None and after.lower == "except" and i + 3 < len(tokens):
            excluded = tokens[i + 3].start
        elif after is not None and after.text not in (")", ","):
            continue
        start = i
        while start >= 2 and tokens[start - 1].text == "." and tokens[start - 2].kind in ("word", "quoted"):
            start -= 2
        if start == i and before is not None and before.text not in ("(", ",") and before.lower != "distinct":
            continue
        counts = start == i and i >= 2 and before is not None and before.text == "("
        if counts and tokens[i - 2].lower == "count" and excluded is None:
            continue
        prefix = sql[tokens[start].start : tokens[i - 1].start] if start < i else ""
        columns.append(Star(prefix, token.end, excluded))
    return columns


def unqualified(sql: str, qualifiers: Collection[str]) -> str:
    """The text with `orders.id` written as `id` for each of the qualifiers; unchanged if it cannot be read."""
    try:
        tokens = tokenise(sql)
    except SqlTextError:
        return sql
    dropped = {q.lower() for q in qualifiers}
    written, place = "", 0
    for i, token in enumerate(tokens[:-2]):
        names = token.kind in ("word", "quoted") and tokens[i + 2].kind in ("word", "quoted")
        first = i == 0 or tokens[i - 1].text != "."
        if names and first and tokens[i + 1].text == "." and token.name.lower() in dropped:
            written += sql[place : token.start]
            place = tokens[i + 2].start
    return written + sql[place:]


def function_names(text: str) -> frozenset[str]:
    """The functions a SQL text (or a printed Column) calls, in lower case; more rather than fewer when in doubt."""
    try:
        tokens = tokenise(text)
    except SqlTextError:
        return frozenset(w.lower() for w in re.findall(r"(\w+)\s*\(", text))
    return frozenset(token.text.lower() for token, after in pairwise(tokens) if after.text == "(")


def replace_calls(sql: str, replacement: Callable[[str, list[str]], str | None]) -> str:
    """The text with some function calls replaced; unchanged if it cannot be read.

    `replacement` is called for each call, inner ones first, with the function's name in lower case and the texts of its
    arguments; it returns None to keep the call.
    """
    try:
        tokens = tokenise(sql)
    except SqlTextError:
        return sql
    text, place, index = "", 0, 0
    while index < len(tokens):
        closing = matching_bracket(tokens, index + 1) if is_call(tokens, index) else None
        if closing is None:
            index += 1
            continue
        token, opening = tokens[index], tokens[index + 1]
        inside = replace_calls(sql[opening.end : tokens[closing].start], replacement)
        args = [inside[arg[0].start : arg[-1].end] for arg in split_top_level(tokenise(inside)) if arg]
        qualified = index > 0 and tokens[index - 1].text == "."
        written = None if qualified else replacement(token.name.lower(), args)
        text += sql[place : token.start]
        text += f"{sql[token.start : opening.end]}{inside})" if written is None else written
        place, index = tokens[closing].end, closing + 1
    return text + sql[place:]


def is_plain_name(name: str) -> bool:
    """Whether a name can stand in SQL text without backticks."""
    return _PLAIN.match(name) is not None and name.lower() not in _KEYWORDS


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate call found in the text, from `start` to `end`, the FILTER and NULLS clauses included."""

    name: str
    args: tuple[str, ...]
    distinct: bool
    where: str | None
    ignore_nulls: bool
    start: int
    end: int


def is_call(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token is the name of a function that is called."""
    token = tokens[index]
    if index + 1 >= len(tokens) or tokens[index + 1].text != "(" or token.kind not in ("word", "quoted"):
        return False
    # `x LIKE ANY (...)` does not call any().
    compared = index > 0 and tokens[index - 1].lower in _COMPARISONS
    return not (compared and token.lower in ("any", "some", "all"))


_COMPARISONS = frozenset(("like", "ilike", "rlike", "=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>"))


def aggregate_calls(sql: str) -> list[AggregateCall]:
    """The outermost aggregate calls, left to right; refuses what only the whole input can answer."""
    tokens = tokenise(sql)
    calls: list[AggregateCall] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "word" and token.lower in ("over", "select", "within"):
            raise UnsupportedSqlError(f"{token.text} in an aggregate expression")
        if is_call(tokens, index):
            name = token.name.lower()
            if name in GENERATORS:
                raise UnsupportedSqlError(f"{name} makes rows")
            if name in AGGREGATES:
                if index and tokens[index - 1].text == ".":
                    raise UnsupportedSqlError("a qualified function name")
                call, index = _read_call(sql, tokens, index, name)
                calls.append(call)
                continue
        index += 1
    return calls


def _read_call(sql: str, tokens: list[Token], index: int, name: str) -> tuple[AggregateCall, int]:
    closing = matching_bracket(tokens, index + 1)
    if closing is None:
        raise UnsupportedSqlError("unbalanced brackets")
    inside = tokens[index + 2 : closing]
    for place, token in enumerate(inside):
        called = is_call(inside, place) and token.name.lower() in AGGREGATES
        if called or token.text == "=>" or token.lower in ("over", "select", "order", "limit"):
            raise UnsupportedSqlError(f"{token.text} inside {name}")
    distinct = bool(inside) and inside[0].lower == "distinct"
    if distinct or (len(inside) > 1 and inside[0].lower == "all"):
        inside = inside[1:]
    args = split_top_level(inside)
    if any(not arg for arg in args):
        raise UnsupportedSqlError("an empty argument")
    ignore_nulls = False
    # `first(x IGNORE NULLS)` is another way to write it.
    if args and [t.lower for t in args[-1][-2:]] in (["ignore", "nulls"], ["respect", "nulls"]):
        ignore_nulls = args[-1][-2].lower == "ignore"
        args[-1] = args[-1][:-2]
        if not args[-1]:
            raise UnsupportedSqlError("an empty argument")
    where: str | None = None
    end = closing
    while end + 1 < len(tokens):
        following = [t.lower for t in tokens[end + 1 : end + 3]]
        if following in (["ignore", "nulls"], ["respect", "nulls"]):
            ignore_nulls = following[0] == "ignore"
            end += 2
        elif following == ["filter", "("] and where is None:
            stop = matching_bracket(tokens, end + 2)
            condition = tokens[end + 4 : stop]
            subquery = any(t.lower == "select" for t in condition)
            if stop is None or tokens[end + 3].lower != "where" or not condition or subquery:
                raise UnsupportedSqlError("a FILTER that cannot be read")
            where = sql[condition[0].start : condition[-1].end]
            end = stop
        else:
            break
    texts = tuple(sql[arg[0].start : arg[-1].end] for arg in args)
    call = AggregateCall(name, texts, distinct, where, ignore_nulls, tokens[index].start, tokens[end].end)
    return call, end + 1
