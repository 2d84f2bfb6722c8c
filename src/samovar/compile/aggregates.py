"""Group aggregates cut into accumulators that epochs add to and that merge.

`decompose` turns `groupBy(keys).agg(...)` into three lists of SQL: *partial* aggregates over one epoch's
input, *merge* aggregates over rows of partials (of any epochs, in any grouping: merging is associative and
gives rows of the same columns and types), and *final* scalar expressions that give the user's columns from
merged rows.

Guarantee: final columns have the names and types that plain Spark gives (checked by analysis) and the same
values; for floating-point sums and moments up to the order of addition, for first, last, collect_list, max_by
and min_by up to the order of the input, unless `position` columns fix that order. Decimal averages are exact,
rounding included.
Not promised: that every aggregate can be cut. None means "keep the input until the end": sketches,
percentiles, modes, listagg, skewness, kurtosis, regr_*, grouping(), windows, generators, subqueries, types or
expressions that cannot be made exact, and anything that is not known here.

Without keys, `merge` over no rows at all still gives one row, and `final` over it what Spark gives for empty
input.

Cost: no job runs; six analyses, together some 50 to 150 ms on a warm session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from samovar.compile.columns import quiet_analysis
from samovar.compile.sqltext import (
    AggregateCall,
    SqlTextError,
    UnsupportedSqlError,
    aggregate_calls,
    is_call,
    split_alias,
    tokenise,
)
from samovar.text import quote_name

__all__ = [
    "ORDER_SENSITIVE",
    "Accumulators",
    "decompose",
    "final_frame",
    "merge_frame",
    "partial_frame",
    "uses_order",
]

_ANY_OF_ORDER = ("any_value", "first", "first_value", "last", "last_value")
ORDER_SENSITIVE = frozenset(
    (*_ANY_OF_ORDER, "array_agg", "collect_list", "listagg", "string_agg", "max_by", "min_by")
)
"""Aggregates whose result depends on the order of their input (for max_by and min_by: among equal maxima)."""


@dataclass(frozen=True)
class Accumulators:
    """What one epoch adds to a group, how that merges, and what the user sees; SQL texts, all with aliases.

    `partial` and `merge` are aliased `__a0`, `__a1`, ...; `final` has the user's output names.
    """

    partial: tuple[str, ...]
    merge: tuple[str, ...]
    final: tuple[str, ...]
    keyless: bool = False
    """Whether the user's columns are those of `final` alone, without the key columns."""


def uses_order(aggs: Sequence[str]) -> bool:
    """Whether one of these aggregate expressions depends on the order of its input; unreadable text does."""
    for sql in aggs:
        try:
            tokens = tokenise(sql)
        except SqlTextError:
            return True
        if any(is_call(tokens, i) and tokens[i].name.lower() in ORDER_SENSITIVE for i in range(len(tokens))):
            return True
    return False


def decompose(
    df: DataFrame, keys: Sequence[str], aggs: Sequence[str], position: Sequence[str] = ()
) -> Accumulators | None:
    """Cut `df.groupBy(keys).agg(aggs)` into mergeable accumulators, or None if that cannot be done exactly.

    `df` gives the schema only. A key is a column name of `df` or a SQL expression, with an alias if wanted.
    `position` names columns of `df` that order its rows; the order-sensitive aggregates then follow them.
    """
    with quiet_analysis():
        try:
            return _decompose(df, keys, aggs, position)
        except (SqlTextError, UnsupportedSqlError, _Refused):
            return None


def partial_frame(df: DataFrame, keys: Sequence[str], accumulators: Accumulators) -> DataFrame:
    """One row of partials per group of `df`: the key columns, then `__a0`, `__a1`, ..."""
    if not accumulators.partial:
        return df.select(*_key_columns(df, keys)).distinct()
    return df.groupBy(*_key_columns(df, keys)).agg(*map(F.expr, accumulators.partial))


def merge_frame(partials: DataFrame, accumulators: Accumulators) -> DataFrame:
    """Rows of partials (or of merged ones) merged to one row per group."""
    if not accumulators.merge:
        return partials.distinct()
    return partials.groupBy(*_group_names(partials, accumulators)).agg(*map(F.expr, accumulators.merge))


def final_frame(merged: DataFrame, accumulators: Accumulators) -> DataFrame:
    """The user's result from merged rows: the key columns, then one column per aggregate expression."""
    keys = [] if accumulators.keyless else _group_names(merged, accumulators)
    return merged.select(*keys, *map(F.expr, accumulators.final))


def _group_names(df: DataFrame, accumulators: Accumulators) -> list[Column]:
    count = len(df.columns) - len(accumulators.partial)
    return [F.col(quote_name(name)) for name in df.columns[:count]]


def _key_columns(df: DataFrame, keys: Sequence[str]) -> list[Column]:
    return [F.col(quote_name(key)) if key in df.columns else F.expr(key) for key in keys]


class _Refused(Exception):
    """This aggregate cannot be cut into accumulators; the reason is for debugging."""


# --- decomposition --------------------------------------------------------------------------------------------------

_known: dict[tuple[object, ...], Accumulators] = {}
"""Decompositions found before, by their texts, the columns they are about and what Spark gives for them: five analyses
that a workflow run again, and a recording opened after its run, need not wait for (0.2 s for TPC-H Q1)."""
KNOWN = 256
"""Decompositions that are kept."""


def _decompose(
    df: DataFrame, keys: Sequence[str], aggs: Sequence[str], position: Sequence[str]
) -> Accumulators | None:
    calls = [aggregate_calls(sql) for sql in aggs]
    flat = [call for each in calls for call in each]
    if not flat:
        return None  # nothing to accumulate; not worth a special form
    try:
        plain = df.groupBy(*_key_columns(df, keys)).agg(*map(F.expr, aggs))
    except Exception:
        return None  # Spark rejects it; the run reports why
    if len(plain.columns) != len(keys) + len(aggs):
        return None
    key_names = {name.lower() for name in plain.columns[: len(keys)]}
    if len(key_names) != len(keys) or any(name.startswith("__a") for name in key_names):
        return None
    conf = df.sparkSession.conf
    ansi = conf.get("spark.sql.ansi.enabled") == "true"
    legacy = conf.get("spark.sql.legacy.statisticalAggregate", "false") == "true"
    asked = (tuple(keys), tuple(aggs), tuple(position), ansi, legacy, df.schema.json(), plain.schema.json())
    if (known := _known.get(asked)) is not None:  # one look: another thread may empty it
        return known
    try:
        types = _argument_types(df, flat)
    except Exception:
        return None  # Spark rejects it; the run reports why
    accumulators = _checked(df, keys, aggs, calls, plain, _Plan(types, tuple(position), ansi, legacy))
    if accumulators is not None:
        if len(_known) >= KNOWN:
            _known.clear()
        _known[asked] = accumulators
    return accumulators


def _checked(
    df: DataFrame,
    keys: Sequence[str],
    aggs: Sequence[str],
    calls: Sequence[Sequence[AggregateCall]],
    plain: DataFrame,
    plan: _Plan,
) -> Accumulators | None:
    """The accumulators, if Spark gives what `plain` gives for them."""
    final: list[str] = []
    for sql, inside, name in zip(aggs, calls, plain.columns[len(keys) :], strict=True):
        expression, _ = split_alias(sql, name)
        final.append(f"{_substitute(expression, inside, plan)} AS {quote_name(name)}")
    accumulators = Accumulators(
        tuple(f"{text} AS __a{i}" for i, text in enumerate(plan.partial)),
        tuple(f"{text} AS __a{i}" for i, text in enumerate(plan.merge)),
        tuple(final),
    )
    return accumulators if _fits(df, keys, accumulators, plain) else None


def _argument_types(df: DataFrame, calls: Sequence[AggregateCall]) -> dict[str, DataType]:
    """The types of all arguments, by one analysis."""
    texts = sorted({arg for call in calls for arg in call.args if not arg.endswith("*")})
    if not texts:
        return {}
    schema = df.select(*(F.expr(f"({text})").alias(f"t{i}") for i, text in enumerate(texts))).schema
    if len(schema.fields) != len(texts):
        raise _Refused("an argument that is several columns")
    return {text: column.dataType for text, column in zip(texts, schema.fields, strict=True)}


def _substitute(expression: str, calls: Sequence[AggregateCall], plan: _Plan) -> str:
    out: list[str] = []
    place = 0
    for call in calls:
        out += [expression[place : call.start], _cut(call, plan)]
        place = call.end
    out.append(expression[place:])
    # A comment to the end of the line would hide the alias that follows.
    return "".join(out) + ("\n" if "--" in expression else "")


def _fits(df: DataFrame, keys: Sequence[str], accumulators: Accumulators, plain: DataFrame) -> bool:
    """Whether all three analyse, merge keeps the schema, and final has the schema of plain Spark."""
    try:
        partial = partial_frame(df, keys, accumulators)
        merged = merge_frame(partial, accumulators)
        final = final_frame(merged, accumulators)
        # With accumulators beside them, final expressions must be row by row: no unknown aggregate hides.
        merged.select("*", *map(F.expr, accumulators.final))
    except Exception:
        return False
    if "void" in partial.schema.simpleString():
        return False  # the type of a bare NULL: no file format keeps it
    return _shape(partial.schema) == _shape(merged.schema) and _shape(final.schema) == _shape(plain.schema)


def _shape(schema: StructType) -> list[tuple[str, str]]:
    """Names and types without nullability, which merging cannot always keep."""
    return [(column.name, column.dataType.simpleString()) for column in schema.fields]


@dataclass
class _Plan:
    """The accumulators so far; equal ones are shared."""

    types: dict[str, DataType]
    position: tuple[str, ...]
    ansi: bool
    legacy: bool
    partial: list[str] = field(default_factory=list)
    merge: list[str] = field(default_factory=list)

    def add(self, partial: str, merge: str) -> str:
        """The column of an accumulator; in `merge`, `{a}` stands for that column."""
        for index, (known, merging) in enumerate(zip(self.partial, self.merge, strict=True)):
            if known == partial and merging == merge.replace("{a}", f"__a{index}"):
                return f"__a{index}"
        column = f"__a{len(self.partial)}"
        self.partial.append(partial)
        self.merge.append(merge.replace("{a}", column))
        return column

    def where(self, call: AggregateCall) -> str:
        return f" FILTER (WHERE {call.where})" if call.where is not None else ""

    def ordering(self) -> str:
        fields = ", ".join(f"'p{i}', {quote_name(name)}" for i, name in enumerate(self.position))
        return f"named_struct({fields})"

    def type_of(self, text: str) -> DataType:
        if text not in self.types:
            raise _Refused(f"no type for {text}")
        return self.types[text]


def _cut(call: AggregateCall, plan: _Plan) -> str:
    """The scalar expression, over accumulators added to the plan, that stands for the call."""
    rule = _RULES.get(call.name)
    if rule is None:
        raise _Refused(f"{call.name} is not mergeable")
    if call.ignore_nulls and call.name not in _ANY_OF_ORDER:
        raise _Refused(f"{call.name} with IGNORE NULLS")
    arity = len(call.args)
    if call.name in _ANY_OF_ORDER and arity == 2:
        flag = call.args[1].lower()
        if flag not in ("true", "false"):
            raise _Refused("ignore-nulls that is not a literal")
        call = replace(call, args=call.args[:1], ignore_nulls=flag == "true")
    elif arity != _ARGUMENTS.get(call.name, 1) and call.name != "count":
        raise _Refused(f"{call.name} with {arity} arguments")
    if call.distinct and call.name not in _DISTINCT:
        raise _Refused(f"{call.name} with DISTINCT")
    return rule(call, plan)


def _count(call: AggregateCall, plan: _Plan) -> str:
    if not call.args:
        raise _Refused("count()")
    if call.distinct:
        return f"CAST(size({_distinct_set(call, plan)}) AS BIGINT)"
    text = f"{call.name}({', '.join(call.args)}){plan.where(call)}"
    return plan.add(text, "coalesce(sum({a}), 0L)")


def _non_null_count(call: AggregateCall, plan: _Plan) -> str:
    return plan.add(f"count({call.args[0]}){plan.where(call)}", "coalesce(sum({a}), 0L)")


def _self_merging(call: AggregateCall, plan: _Plan) -> str:
    """Aggregates of which an aggregate of partial results is the result: min, max, bit_or."""
    return plan.add(f"{call.name}({call.args[0]}){plan.where(call)}", f"{call.name}({{a}})")


def _sum(call: AggregateCall, plan: _Plan) -> str:
    lenient = call.name == "try_sum"
    argument = plan.type_of(call.args[0])
    if call.distinct:
        return _fold_sum(_distinct_set(call, plan), argument)
    _check_summable(call, argument)
    where = plan.where(call)
    partial = f"{call.name}({call.args[0]}){where}"
    wide = isinstance(argument, DecimalType) and argument.precision > 28
    if lenient or (wide and not plan.ansi):
        # NULL means "no values" or "overflow", which must stay NULL when merged: the count distinguishes them.
        count = _non_null_count(call, plan)
        overflow = f"coalesce(bool_or({{a}} IS NULL AND {count} > 0L), false)"
        total = _cast_back(f"{call.name}({{a}})", argument)
        return plan.add(partial, f"CASE WHEN {overflow} THEN NULL ELSE {total} END")
    return plan.add(partial, _cast_back("sum({a})", argument))


def _check_summable(call: AggregateCall, argument: DataType) -> None:
    if not _is_number(argument) and not isinstance(argument, StringType):
        raise _Refused(f"{call.name} of {argument.simpleString()}")


def _cast_back(text: str, argument: DataType) -> str:
    """The sum of partial sums in the type of a partial sum."""
    return f"CAST({text} AS {_sum_type(argument)})" if isinstance(argument, DecimalType) else text


def _sum_type(argument: DataType) -> str:
    if isinstance(argument, DecimalType):
        return f"DECIMAL({min(argument.precision + 10, 38)},{argument.scale})"
    return "BIGINT" if isinstance(argument, IntegralType) else "DOUBLE"


def _fold_sum(values: str, argument: DataType) -> str:
    """The sum of an array's elements as sum() would give it, NULL for an empty array."""
    if not _is_number(argument):
        raise _Refused(f"sum of distinct {argument.simpleString()}")
    if isinstance(argument, DecimalType) and argument.precision > 27:
        raise _Refused("adding would lose digits")
    kind = _sum_type(argument)
    total = f"aggregate({values}, CAST(0 AS {kind}), (s, e) -> CAST(s + e AS {kind}))"
    return f"CASE WHEN size({values}) > 0 THEN {total} END"


def _avg(call: AggregateCall, plan: _Plan) -> str:
    argument = plan.type_of(call.args[0])
    if isinstance(argument, DecimalType):
        name = "try_sum" if call.name == "try_avg" else "sum"
        total = _sum(replace(call, name=name), plan)
        if call.distinct:
            return _decimal_average(total, f"size({_distinct_set(call, plan)})", argument)
        return _decimal_average(total, _non_null_count(call, plan), argument)
    _check_summable(call, argument)
    if call.distinct:
        if isinstance(argument, StringType):
            raise _Refused("avg of distinct strings")
        values = _distinct_set(call, plan)
        total = f"aggregate({values}, 0D, (s, e) -> s + CAST(e AS DOUBLE))"
        return f"CASE WHEN size({values}) > 0 THEN {total} / size({values}) END"
    total = plan.add(f"sum(CAST({call.args[0]} AS DOUBLE)){plan.where(call)}", "sum({a})")
    return f"({total} / nullif({_non_null_count(call, plan)}, 0L))"


def _decimal_average(total: str, count: str, argument: DecimalType) -> str:
    """total / count rounded half up at four more digits, as Spark's avg does, by exact integer arithmetic.

    SQL division will not do: its own result type rounds first. |total| is cut into whole part and fraction so
    that no step needs more than 38 digits, and the digits are put together as text.
    """
    precision, scale = argument.precision, argument.scale
    if precision - scale > 32 or scale > 8:
        raise _Refused("a decimal average that needs more than 38 digits")
    width = scale + 4
    result = f"DECIMAL({min(precision + 4, 38)},{min(width, 38)})"
    whole_type = f"DECIMAL({min(precision + 10, 38) - scale},0)"
    # Spark's abs() and unary minus round at 34 digits; a difference does not.
    unsigned_total = f"(CASE WHEN {total} < 0 THEN 0BD - {total} ELSE {total} END)"
    # SQL has no LET: a one-element array binds each step. n: count, w and f: whole and fraction of |total|.
    start = (
        f"named_struct('n', CAST(nullif({count}, 0) AS DECIMAL(15,0)), "
        f"'w', CAST(floor({unsigned_total}) AS {whole_type}), "
        f"'f', CAST({unsigned_total} % 1BD AS DECIMAL({scale + 1},{scale})))"
    )
    # q: whole part of the average; r: the rest of |total|, in units of the last digit of the result.
    divided = (
        "named_struct('n', v.n, 'q', CAST((v.w - v.w % v.n) / v.n AS DECIMAL(32,0)), "
        f"'r', CAST((CAST(v.w % v.n AS DECIMAL(15,0)) + v.f) * {10**width}BD AS DECIMAL({20 + scale},0)))"
    )
    rounded = (
        "named_struct('q', u.q, 'd', CAST((u.r - u.r % u.n) / u.n AS BIGINT) "
        "+ CASE WHEN 2BD * (u.r % u.n) >= u.n THEN 1L ELSE 0L END)"
    )
    # Rounding up may carry into the whole part.
    digits = (
        f"concat(CAST(t.q + t.d div {10**width}L AS STRING), '.', "
        f"lpad(CAST(t.d % {10**width}L AS STRING), {width}, '0'))"
    )
    unsigned = _let(start, "v", _let(divided, "u", _let(rounded, "t", digits)))
    return f"CAST(concat(CASE WHEN {total} < 0 THEN '-' ELSE '' END, {unsigned}) AS {result})"


def _let(value: str, name: str, body: str) -> str:
    return f"transform(array({value}), {name} -> {body})[0]"


def _moments(call: AggregateCall, plan: _Plan) -> str:
    """Variance and standard deviation, from (n, mean, m2) merged by the stable formula of Chan et al."""
    if plan.legacy:
        raise _Refused("spark.sql.legacy.statisticalAggregate")
    _check_summable(call, plan.type_of(call.args[0]))
    x, where = f"CAST({call.args[0]} AS DOUBLE)", plan.where(call)
    partial = (
        f"named_struct('n', CAST(count({x}){where} AS DOUBLE), 'm', {_mean(x, where)}, "
        f"'s', var_pop({x}){where} * count({x}){where})"
    )
    a = plan.add(partial, _merged_moments("m", {"s": ("m", "m")}))
    population = call.name.endswith("_pop")
    variance = f"{a}.s / {a}.n" if population else f"{a}.s / ({a}.n - 1D)"
    value = f"sqrt({variance})" if call.name.startswith("std") else variance
    return f"CASE WHEN {a}.n > {'0D' if population else '1D'} THEN {value} END"


def _merged_moments(means: str, products: dict[str, tuple[str, str]]) -> str:
    """SQL that merges structs of a count `n`, means, and sums of products of two deviations from means.

    An epoch without values has n = 0 and NULL moments.
    """
    empty = "".join(f", '{name}', CAST(NULL AS DOUBLE)" for name in (*means, *products))
    merged = "".join(f", '{m}', l.{m} + (r.{m} - l.{m}) * (r.n / (l.n + r.n))" for m in means)
    for name, (x, y) in products.items():
        between = f"(r.{x} - l.{x}) * (r.{y} - l.{y}) * (l.n * r.n / (l.n + r.n))"
        merged += f", '{name}', l.{name} + r.{name} + {between}"
    return (
        f"aggregate(filter(collect_list({{a}}), e -> e.n > 0D), named_struct('n', 0D{empty}), "
        f"(l, r) -> CASE WHEN l.n = 0D THEN r ELSE named_struct('n', l.n + r.n{merged}) END)"
    )


def _mean(x: str, where: str) -> str:
    # The mean of equal values is that value, without rounding: their variance must be 0, not nearly 0.
    low, high = f"min({x}){where}", f"max({x}){where}"
    return f"CASE WHEN {low} = {high} THEN {low} ELSE avg({x}){where} END"


def _comoments(call: AggregateCall, plan: _Plan) -> str:
    """Covariance and correlation, from (n, means, co-moment, second moments)."""
    if plan.legacy:
        raise _Refused("spark.sql.legacy.statisticalAggregate")
    for arg in call.args:
        if not _is_number(plan.type_of(arg)):
            raise _Refused("covariance of something else than numbers")
    first, second = (f"CAST({arg} AS DOUBLE)" for arg in call.args)
    x = f"CASE WHEN {second} IS NOT NULL THEN {first} END"
    y = f"CASE WHEN {first} IS NOT NULL THEN {second} END"
    where = plan.where(call)
    count = f"count({x}){where}"
    partial = (
        f"named_struct('n', CAST({count} AS DOUBLE), 'x', {_mean(x, where)}, 'y', {_mean(y, where)}, "
        f"'c', covar_pop({x}, {y}){where} * {count}, "
        f"'p', var_pop({x}){where} * {count}, 'q', var_pop({y}){where} * {count})"
    )
    a = plan.add(partial, _merged_moments("xy", {"c": ("x", "y"), "p": ("x", "x"), "q": ("y", "y")}))
    if call.name == "covar_pop":
        return f"CASE WHEN {a}.n > 0D THEN {a}.c / {a}.n END"
    if call.name == "covar_samp":
        return f"CASE WHEN {a}.n > 1D THEN {a}.c / ({a}.n - 1D) END"
    return f"CASE WHEN {a}.n > 1D THEN {a}.c / nullif(sqrt({a}.p * {a}.q), 0D) END"


def _extreme_by(call: AggregateCall, plan: _Plan) -> str:
    value, order = call.args
    where = plan.where(call)
    by, merge_by = order, "{a}.o"
    fields = f"'v', {value}, 'o', {order}"
    if plan.position:
        # Among equal extremes the position decides; a NULL extreme still does not count.
        fields += f", 'p', {plan.ordering()}"
        by = f"CASE WHEN ({order}) IS NOT NULL THEN named_struct('o', {order}, 'p', {plan.ordering()}) END"
        merge_by = "CASE WHEN {a} IS NOT NULL THEN named_struct('o', {a}.o, 'p', {a}.p) END"
    a = plan.add(f"{call.name}(named_struct({fields}), {by}){where}", f"{call.name}({{a}}, {merge_by})")
    return f"{a}.v"


def _end_of_order(call: AggregateCall, plan: _Plan) -> str:
    """first, last and any_value. A struct around the value distinguishes a NULL value from no value."""
    value, where = call.args[0], plan.where(call)
    last = call.name.startswith("last")
    if plan.position:
        choose = "max_by" if last else "min_by"
        order = plan.ordering()
        by = f"CASE WHEN ({value}) IS NOT NULL THEN {order} END" if call.ignore_nulls else order
        a = plan.add(
            f"{choose}(named_struct('p', {order}, 'v', {value}), {by}){where}", f"{choose}({{a}}, {{a}}.p)"
        )
        return f"{a}.v"
    choose = "last" if last else "first"
    wrapped = f"named_struct('v', {value})"
    if call.ignore_nulls:
        wrapped = f"CASE WHEN ({value}) IS NOT NULL THEN {wrapped} END"
    a = plan.add(f"{choose}({wrapped}, {str(call.ignore_nulls).lower()}){where}", f"{choose}({{a}}, true)")
    return f"{a}.v"


def _collect(call: AggregateCall, plan: _Plan) -> str:
    if call.distinct:
        return _distinct_list(call, plan)
    value, where = call.args[0], plan.where(call)
    merge = "flatten(collect_list({a}))"
    if not plan.position:
        return plan.add(f"collect_list({value}){where}", merge)
    item = f"CASE WHEN ({value}) IS NOT NULL THEN named_struct('p', {plan.ordering()}, 'v', {value}) END"
    a = plan.add(f"collect_list({item}){where}", merge)
    by_position = "(l, r) -> CASE WHEN l.p < r.p THEN -1 WHEN l.p > r.p THEN 1 ELSE 0 END"
    orderable = _is_orderable(plan.type_of(value))
    return f"transform({f'sort_array({a})' if orderable else f'array_sort({a}, {by_position})'}, e -> e.v)"


def _distinct_list(call: AggregateCall, plan: _Plan) -> str:
    values = _distinct_set(call, plan)
    # The order of a set is Spark's choice: choose one that does not depend on how the input was cut.
    return f"sort_array({values})" if _is_orderable(plan.type_of(call.args[0])) else values


def _distinct_set(call: AggregateCall, plan: _Plan) -> str:
    """An accumulator with the distinct arguments, without those that are NULL or have a NULL part."""
    args: list[str] = []
    for arg in call.args:
        kind = plan.type_of(arg)
        if not _has_plain_equality(kind):
            raise _Refused(f"distinct {kind.simpleString()}")
        # Adding 0 makes -0.0 and 0.0 the same value, which they are to DISTINCT.
        floating = isinstance(kind, FloatType | DoubleType)
        args.append(f"(({arg}) + CAST(0 AS {kind.simpleString()}))" if floating else f"({arg})")
    if len(args) == 1:
        value = args[0]
    else:
        fields = ", ".join(f"'v{i}', {arg}" for i, arg in enumerate(args))
        present = " AND ".join(f"{arg} IS NOT NULL" for arg in args)
        value = f"CASE WHEN {present} THEN named_struct({fields}) END"
    return plan.add(f"collect_set({value}){plan.where(call)}", "array_distinct(flatten(collect_list({a})))")


# --- types ----------------------------------------------------------------------------------------------------------


def _is_number(kind: DataType) -> bool:
    return isinstance(kind, IntegralType | FloatType | DoubleType | DecimalType)


def _has_plain_equality(kind: DataType, *, nested: bool = False) -> bool:
    """Whether sets and DISTINCT agree on what is equal; collations and nested floats may not."""
    if isinstance(kind, FloatType | DoubleType):
        return not nested
    if isinstance(kind, StructType):
        return all(_has_plain_equality(f.dataType, nested=True) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_plain_equality(kind.elementType, nested=True)
    # a string with a collation has another name
    return isinstance(kind, _PLAINLY_EQUAL) or kind.simpleString() == "string"


def _is_orderable(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_is_orderable(f.dataType) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_orderable(kind.elementType)
    return isinstance(kind, FloatType | DoubleType) or _has_plain_equality(kind)


_PLAINLY_EQUAL = (
    IntegralType | DecimalType | BooleanType | BinaryType | DateType | TimestampType | TimestampNTZType
)
_ARGUMENTS = {"max_by": 2, "min_by": 2, "covar_pop": 2, "covar_samp": 2, "corr": 2}
"""How many arguments an aggregate has, if not one."""
_SELF_MERGING = ("min", "max", "bool_and", "every", "bool_or", "some", "any", "bit_and", "bit_or", "bit_xor")
_MOMENTS = ("std", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
_SETS = {"count", "sum", "avg", "mean", "collect_list", "array_agg", "collect_set"}
_DISTINCT = (_SETS | set(_SELF_MERGING)) - {"bit_xor"}
"""Aggregates that may have DISTINCT here. It changes nothing for those that merge by themselves, except bit_xor."""
_RULES: dict[str, Callable[[AggregateCall, _Plan], str]] = {
    **dict.fromkeys(("count", "count_if"), _count),
    **dict.fromkeys(("sum", "try_sum"), _sum),
    **dict.fromkeys(("avg", "mean", "try_avg"), _avg),
    **dict.fromkeys(_SELF_MERGING, _self_merging),
    **dict.fromkeys(_MOMENTS, _moments),
    **dict.fromkeys(("covar_pop", "covar_samp", "corr"), _comoments),
    **dict.fromkeys(("max_by", "min_by"), _extreme_by),
    **dict.fromkeys(_ANY_OF_ORDER, _end_of_order),
    **dict.fromkeys(("collect_list", "array_agg"), _collect),
    "collect_set": _distinct_list,
}
