"""Inputs for programs under test: rows of a Spark schema, as a hypothesis strategy.

    rows("taxi int, ts timestamp, fare double", keyed={"taxi": 3}, sorted_by="ts")

Needs hypothesis, which the extra `samovar[test]` brings. A strategy is built without Spark; the schema is read by
Spark when the first rows are drawn.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from samovar.diff.comparison_errors import ProgramProblem, did_you_mean
from samovar.errors import EnvironmentProblem
from samovar.graph.values import columns as parsed

if TYPE_CHECKING:
    import pyarrow as pa
    from hypothesis.strategies import SearchStrategy
    from pyspark.sql.types import DataType, StructField, StructType

__all__ = ["Rows", "hypothesis", "is_strategy", "rows"]

Columns = str | Sequence[str]
Values = Any  # a hypothesis strategy, or a list to choose from


class Rows(list[dict[str, Any]]):
    """Rows with their schema: the input of programs under test, as a DataFrame, a Frame or this list."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], schema: StructType) -> None:
        super().__init__(dict(row) for row in rows)
        self.schema = schema

    def table(self) -> pa.Table:
        """The rows as a pyarrow table with the types Spark has for them."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        return pa.Table.from_pylist(list(self), schema=to_arrow_schema(self.schema, timezone="UTC"))


def hypothesis() -> Any:
    """The hypothesis package, or an error with the command that installs it."""
    try:
        import hypothesis
    except ImportError as error:
        raise EnvironmentProblem(
            "Generated inputs need the package hypothesis, which is not installed.",
            hint="pip install 'samovar[test]'",
        ) from error
    return hypothesis


def is_strategy(value: Any) -> bool:
    """Whether a value is a hypothesis strategy; asked without importing hypothesis."""
    module = sys.modules.get("hypothesis.strategies")
    return module is not None and isinstance(value, module.SearchStrategy)


def rows(
    schema: str,
    *,
    min_size: int = 0,
    max_size: int = 20,
    keyed: Mapping[str, int] | None = None,
    sorted_by: Columns | None = None,
    late: Mapping[str, int] | None = None,
    functional: Mapping[str, Columns | Callable[[Mapping[str, Any]], Any]] | None = None,
    values: Mapping[str, Values] | None = None,
    nulls: bool = True,
    odd_floats: bool = False,
) -> SearchStrategy[Rows]:
    """Tables of a schema such as "id int, ts timestamp not null", between `min_size` and `max_size` rows.

    `keyed={"taxi": 3}`: at most 3 different values in the column. `sorted_by`: rows in the order of these columns.
    `late={"ts": 4}`: in the order of this column, but some rows come up to 4 places late.
    `functional={"y": "x"}`: y is a function of x (of several columns, or a Python function of the row). `values`: a
    hypothesis strategy or a list to choose from, by column. `nulls=False` generates no nulls, as `not null` does for
    one column; NaN and infinities come with `odd_floats`.
    """
    st = hypothesis().strategies
    names = [name for name, _ in parsed(schema)]
    determining = [_listed(by) for by in (functional or {}).values() if not callable(by)]
    for columns in (keyed, late, functional, values, _listed(sorted_by), *determining):
        _check_names(columns or (), names)
    if not 0 <= min_size <= max_size:
        raise ProgramProblem(f"Expected 0 <= min_size <= max_size, got {min_size} and {max_size}.")
    order = _listed(sorted_by) or list(late or ())

    def strategy() -> Any:
        struct = _struct(schema)
        by_name = {f.name: f for f in struct.fields}
        cells = {n: _cell(st, f, (values or {}).get(n), nulls, odd_floats) for n, f in by_name.items()}

        @st.composite  # type: ignore[untyped-decorator]
        def draw_rows(draw: Any) -> Rows:
            here = dict(cells)
            for name, count in (keyed or {}).items():
                unique = st.lists(cells[name], min_size=1, max_size=count, unique_by=repr)
                here[name] = st.sampled_from(draw(unique))
            drawn = draw(st.lists(st.fixed_dictionaries(here), min_size=min_size, max_size=max_size))
            for name, by in (functional or {}).items():
                _determine(drawn, name, by)
            if order:
                drawn.sort(key=lambda row: [_sortable(row[c]) for c in order])
            for places in (late or {}).values():
                delays = st.lists(st.integers(0, places), min_size=len(drawn), max_size=len(drawn))
                after = [i + d + 0.5 * (d > 0) for i, d in enumerate(draw(delays))]
                drawn = [drawn[i] for i in sorted(range(len(drawn)), key=lambda i: after[i])]
            return Rows([{n: row[n] for n in struct.names} for row in drawn], struct)

        return draw_rows()

    deferred: SearchStrategy[Rows] = st.deferred(strategy)
    return deferred


def _check_names(columns: Iterable[str], names: Sequence[str]) -> None:
    for name in columns:
        if name not in names:
            raise ProgramProblem(
                f"Expected a column of the schema ({', '.join(names)}), got '{name}'.",
                hint=did_you_mean(str(name), names),
            )


def _listed(columns: Columns | None) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns or ())


def _struct(schema: str) -> StructType:
    from pyspark.sql.types import StructType

    from samovar.runtime.spark.session import spark_session

    spark_session()  # Spark parses the schema
    struct = StructType.fromDDL(schema)
    assert isinstance(struct, StructType)
    return struct


def _determine(drawn: list[dict[str, Any]], name: str, by: Any) -> None:
    """Make a column a function of others: the value of the first row that has the same ones."""
    if callable(by):
        for row in drawn:
            row[name] = by(row)
        return
    seen: dict[str, Any] = {}
    for row in drawn:
        key = repr([row[c] for c in _listed(by)])
        row[name] = seen.setdefault(key, row[name])


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else 0)


def _cell(st: Any, field: StructField, chosen: Values, nulls: bool, odd_floats: bool) -> Any:
    if chosen is not None:
        return chosen if is_strategy(chosen) else st.sampled_from(list(chosen))
    return _nullable(st, field.dataType, field.nullable, nulls, odd_floats)


def _nullable(st: Any, kind: DataType, nullable: bool, nulls: bool, odd_floats: bool) -> Any:
    values = _of_type(st, kind, nulls, odd_floats)
    return st.one_of(values, st.none()) if nulls and nullable else values


def _of_type(st: Any, kind: Any, nulls: bool, odd_floats: bool) -> Any:
    """Values of a type; small ones come first, because what fails is shrunk towards them."""
    name = kind.typeName()
    widths = {"byte": 8, "short": 16, "integer": 32, "long": 64}
    if name in widths:
        half = 2 ** (widths[name] - 1)
        return st.one_of(st.integers(0, 9), st.integers(-half, half - 1))
    if name in ("float", "double"):
        width = 32 if name == "float" else 64
        return st.one_of(
            st.integers(0, 9).map(float),
            st.floats(width=width, allow_nan=odd_floats, allow_infinity=odd_floats, allow_subnormal=False),
        )
    if name in ("string", "char", "varchar"):
        longest = getattr(kind, "length", 8)
        return st.text(alphabet="ab cAB\u00e9,@'0\u4e2d", max_size=min(8, longest))
    if name == "boolean":
        return st.booleans()
    if name == "binary":
        return st.binary(max_size=6)
    if name == "date":
        return st.dates(datetime.date(2000, 1, 1), datetime.date(2030, 12, 31))
    if name in ("timestamp", "timestamp_ntz"):
        zones = st.just(datetime.UTC) if name == "timestamp" else st.none()
        first, last = datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)
        times = st.one_of(
            st.integers(0, 120).map(lambda s: first + datetime.timedelta(seconds=s)),
            st.datetimes(first, last),
        )
        return st.builds(lambda t, z: t.replace(tzinfo=z), times, zones)
    if name == "decimal":
        bound = 10**kind.precision - 1
        numbers = st.one_of(st.integers(0, min(9, bound)), st.integers(-bound, bound))
        return numbers.map(lambda n: Decimal(n).scaleb(-kind.scale))
    if name == "void":
        return st.none()
    if name == "array":
        elements = _nullable(st, kind.elementType, kind.containsNull, nulls, odd_floats)
        return st.lists(elements, max_size=4)
    if name == "map":
        values = _nullable(st, kind.valueType, kind.valueContainsNull, nulls, odd_floats)
        return st.dictionaries(_of_type(st, kind.keyType, False, False), values, max_size=3)
    if name == "struct":
        fields = {f.name: _nullable(st, f.dataType, f.nullable, nulls, odd_floats) for f in kind.fields}
        return st.fixed_dictionaries(fields)
    raise ProgramProblem(
        f"Expected a type whose values can be generated, got {kind.simpleString()}.",
        hint="State the values to use: rows(..., values={'column': [...]}).",
    )
