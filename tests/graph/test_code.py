"""Python operators as text: made from code, written down as code, sent to other processes."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from samovar.errors import WorkflowError
from samovar.graph import operators as ops
from samovar.graph.code import (
    function_from_code,
    function_source,
    operator_from_code,
    recall_source,
    source_of,
)
from samovar.graph.operator import Operator

CODE = """\
from samovar.graph.operator import Operator

FACTOR = 2


def scaled(n):
    return n * FACTOR


class Scale(Operator):
    output = "a int"

    def __init__(self, limit, extra=0):
        self.limit = limit
        self.extra = extra

    def process(self, row, port=0):
        if row["a"] > self.limit:
            raise ValueError("too large")
        yield {"a": scaled(row["a"]) + self.extra}
"""


def python(code: str = CODE, cls: str = "Scale", name: str = "FE", **params: Any) -> ops.Python:
    return ops.Python(name=name, inputs=("v",), code=code, class_name=cls, params=params)


def rows(operator: Operator, *values: int) -> list[Any]:
    return [out["a"] for v in values for out in operator.process({"a": v}) or () if out]


class TestFromCode:
    def test_the_class_is_made_with_its_parameters(self) -> None:
        assert rows(operator_from_code(python(limit=5, extra=1)), 1, 2) == [3, 5]

    def test_each_call_gives_a_new_instance(self) -> None:
        assert operator_from_code(python(limit=5)) is not operator_from_code(python(limit=5))

    def test_the_class_may_be_left_out_when_there_is_one(self) -> None:
        assert type(operator_from_code(python(cls="", limit=5))).__name__ == "Scale"

    def test_sv_is_there_without_an_import(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import samovar

        monkeypatch.setattr(samovar, "Operator", Operator, raising=False)
        made = operator_from_code(python("class A(sv.Operator):\n    output = 'a int'\n", "A"))
        assert isinstance(made, Operator)
        operator_from_code(python("import samovar as sv\nclass A(sv.Operator):\n    output = 'a int'\n", "A"))

    def test_the_module_is_not_left_behind(self) -> None:
        before = set(sys.modules)
        operator_from_code(python(limit=5))
        assert not {m for m in set(sys.modules) - before if m.startswith("samovar_code")}

    def test_dataclasses_with_postponed_annotations_work(self) -> None:
        code = (
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "from typing import ClassVar\nfrom samovar.graph.operator import Operator\n"
            "@dataclass\nclass A(Operator):\n    output: ClassVar[str] = 'a int'\n    n: int = 1\n"
        )
        assert operator_from_code(python(code, "A", n=4)).n == 4  # type: ignore[attr-defined]

    def test_tracebacks_show_the_operators_lines(self) -> None:
        with pytest.raises(ValueError) as caught:
            rows(operator_from_code(python(limit=0, name="Shown")), 1)
        text = "".join(traceback.format_tb(caught.value.__traceback__))
        assert 'File "<operator Shown>", line 19, in process' in text
        assert 'raise ValueError("too large")' in text

    def test_two_versions_of_an_operator_show_each_its_own_lines(self) -> None:
        old = operator_from_code(python(limit=0, name="Twice"))
        new = operator_from_code(python(CODE.replace("too large", "far too large"), limit=0, name="Twice"))
        for operator, expected in ((old, '("too large")'), (new, '("far too large")')):
            with pytest.raises(ValueError) as caught:
                rows(operator, 1)
            assert expected in "".join(traceback.format_tb(caught.value.__traceback__))


class TestBadCode:
    def test_a_syntax_error_shows_line_and_caret(self) -> None:
        with pytest.raises(WorkflowError) as caught:
            operator_from_code(python("x = 1\ny = (2 +\n"))
        assert caught.value.operator == "FE"
        assert "line 2:\n    y = (2 +\n        ^" in str(caught.value)

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("", "has no code"),
            ("x = \0", "not valid Python|cannot be read"),
            (
                "import not_there_at_all",
                r"No module named 'not_there_at_all'\n  line 1: import(.|\n)*Install",
            ),
            ("x = 1\n1 / 0", r"ZeroDivisionError: division by zero\n  line 2: 1 / 0"),
            (CODE.replace("class Scale", "class Scales"), "got Scales.\nHint: Did you mean 'Scales'"),
            ("Scale = 5", "derived from sv.Operator, got 5"),
            ("class Scale: pass", "derived from sv.Operator"),
            ("x = 1", "got no operator class"),
            (CODE.replace('output = "a int"', ""), "Scale has no `output`"),
        ],
    )
    def test_errors_name_the_operator(self, code: str, message: str) -> None:
        with pytest.raises(WorkflowError, match=message) as caught:
            operator_from_code(python(code, limit=1))
        assert caught.value.operator == "FE"
        assert "FE" in str(caught.value)

    @pytest.mark.parametrize(
        ("params", "message"),
        [({}, "missing a required argument: 'limit'"), ({"limits": 3}, "Did you mean 'limit'"),
         ({"limit": 1, "zzz": 2}, "unexpected keyword argument 'zzz'")],
    )  # fmt: skip
    def test_params_that_do_not_fit(self, params: dict[str, Any], message: str) -> None:
        with pytest.raises(WorkflowError, match=message):
            operator_from_code(python(**params))

    def test_params_for_a_class_that_takes_none(self) -> None:
        code = "from samovar.graph.operator import Operator\nclass A(Operator):\n    output = 'a int'\n"
        with pytest.raises(WorkflowError, match=r"fit A\(\)"):
            operator_from_code(python(code, "A", n=1))

    def test_a_constructor_that_raises(self) -> None:
        code = CODE.replace("self.limit = limit", "self.limit = 1 / limit")
        with pytest.raises(
            WorkflowError, match=r"Scale\(limit=0\) raised ZeroDivisionError(.|\n)*line 14: self.limit"
        ):
            operator_from_code(python(code, limit=0))


class TestFunctions:
    def test_a_function_is_made_from_code(self) -> None:
        op = ops.Batches(
            name="B", inputs=("v",), schema="a int", code="def f(it):\n    yield from it\n", function="f"
        )
        assert list(function_from_code(op)([1, 2])) == [1, 2]
        made = function_from_code(ops.Batches(name="B", schema="a int", code=op.code))
        assert function_source(made) == function_source(function_from_code(op))

    def test_a_missing_function_gets_the_nearest_name(self) -> None:
        op = ops.Batches(name="B", schema="a int", code="def rows(it):\n    yield from it\n", function="row")
        with pytest.raises(WorkflowError, match="Did you mean 'rows'"):
            function_from_code(op)

    def test_lambdas_and_other_callables_are_refused(self) -> None:
        with pytest.raises(WorkflowError, match=r"lambda(.|\n)*def"):
            function_source(lambda it: it)
        with pytest.raises(WorkflowError, match="written with def"):
            function_source(print)


IN_ANOTHER_PROCESS = """
import pickle, sys, traceback
operator, function = pickle.load(open(sys.argv[1], "rb"))
print([r["a"] for r in operator.process({"a": 2})], list(function([1])), operator._sv_params)
try:
    list(operator.process({"a": 100}))
except ValueError:
    print(traceback.format_exc())
"""


def test_operators_and_functions_travel_to_another_process_by_value(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    operator = operator_from_code(python(limit=5, name="Far"))
    function = function_from_code(
        ops.Batches(name="B", schema="a int", code="N = 3\ndef f(it):\n    yield N\n", function="f")
    )
    (tmp_path / "sent").write_bytes(cloudpickle.dumps((operator, function)))
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path / "sent")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[4] [3] ((), {'limit': 5})" in done.stdout
    assert 'raise ValueError("too large")' in done.stdout
    again, function_again = cloudpickle.loads(cloudpickle.dumps((operator, function)))
    assert source_of(again) == source_of(operator)
    recall_source(function_again)
    assert function_source(function_again) == function_source(function)


MODULE = '''\
"""A module as a user would have it."""
from __future__ import annotations

import functools
import os.path
import re
import math as m
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from samovar.graph.operator import Operator
from samovar.graph.state import MapState

if TYPE_CHECKING:
    from nowhere import Nothing

LIMIT = 10
NAMES = {"a": [1, 2], "b": None}
NOT_A_NUMBER = float("nan")
PATTERN = re.compile(r"[a-z]+")
RATE = Decimal("1.5")
unused = object()
half = lambda n: n / 2


def clean(text: str) -> str:
    return "".join(PATTERN.findall(text))


@functools.lru_cache
def slow(n):
    return m.floor(n) if even(n) else slow(n - 1)


def even(n, seen=LIMIT):
    return n % 2 == 0 or (n > 1000 and slow(n))


class Base(Operator):
    """Its name shows up in a string: unused."""

    stateless = False

    def describe(self):
        return os.path.join("x", type(self).__name__)


@dataclass
class Point:
    x: int
    unused: int = 0


class Mine(Base):
    output = "a int, text string"
    seen = MapState()

    def __init__(self, limit: int, *, tags: list[str] | None = None, **more: Any) -> None:
        super().__init__()
        self.limit = limit
        self.tags = tags
        self.more = more

    def process(self, row: dict[str, Any], port: int = 0) -> Any:
        unused = 5
        self.seen[row["a"]] = Point(row["a"]).x
        other = {n: self.limit for n in NAMES}
        yield {"a": min(slow(row["a"]), LIMIT), "text": clean("A b" + self.describe()) + str(RATE) + str(half(4))}


def batches(it):
    for b in it:
        yield [slow(x) for x in b]


def make(step):
    base = 7

    class Local(Operator):
        output = "a int"

        def process(self, row, port=0):
            yield {"a": row["a"] + step + base}

    def local(it):
        yield step + base + LIMIT

    return Local(), local


class Odd(Operator):
    output = "a int"

    def __init__(self, *rest, what=None):
        pass


handle = open(os.devnull) if False else (x for x in [1])
first, second = object(), 2


class Unwritable(Operator):
    output = "a int"

    def process(self, row, port=0):
        yield first
'''


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("user") / "user_module.py"
    path.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("user_module", path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["user_module"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["user_module"]


def again(operator: Operator) -> Operator:
    return operator_from_code(ops.Python(name="again", **source_of(operator)))


class TestSourceOf:
    def test_the_code_stands_on_its_own_and_behaves_the_same(self, user: Any) -> None:
        operator = user.Mine(3, tags=["x"], depth=2)
        made = again(operator)
        assert type(made) is not type(operator)
        for n in (1, 2, 50):
            assert list(made.process({"a": n})) == list(operator.process({"a": n}))  # type: ignore[arg-type]
        assert dict(made.seen) == dict(operator.seen)  # type: ignore[attr-defined]
        assert (made.limit, made.tags, made.more) == (3, ["x"], {"depth": 2})  # type: ignore[attr-defined]

    def test_only_what_is_needed_comes_along(self, user: Any) -> None:
        code = source_of(user.Mine(3))["code"]
        assert code.startswith("from __future__ import annotations\n")
        for needed in (
            "import re",
            "import os.path",
            "import math as m",
            "LIMIT = 10",
            "class Base(Operator):",
            "from samovar.graph.state import MapState",
            "@dataclass\nclass Point",
            "half = lambda",
        ):
            assert needed in code
        for not_needed in ("unused = object", "class Odd", "nowhere", "NOT_A_NUMBER", "def batches"):
            assert not_needed not in code
        assert code.index("class Base") < code.index("class Mine")

    def test_code_made_from_text_is_given_back_as_it_was(self) -> None:
        operator = operator_from_code(python(limit=5))
        assert source_of(operator) == {"code": CODE, "class_name": "Scale", "params": {"limit": 5}}

    def test_a_class_inside_a_function_brings_the_variables_it_uses(self, user: Any) -> None:
        operator, function = user.make(30)
        assert rows(again(operator), 1) == [38]
        op = ops.Batches(name="B", schema="a int", **function_source(function))
        assert list(function_from_code(op)([])) == [47]

    def test_a_function_brings_its_helpers(self, user: Any) -> None:
        op = ops.Batches(name="B", schema="a int", **function_source(user.batches))
        assert list(function_from_code(op)([[3, 4]])) == [[2, 4]]

    def test_positional_only_parameters_are_refused(self, user: Any) -> None:
        with pytest.raises(WorkflowError, match="'rest' by position only"):
            source_of(user.Odd(1, 2))

    @pytest.mark.parametrize("value", [object(), {1: 2}, math.nan, [b"x"], {"a": {1, 2}}])
    def test_parameters_that_are_not_plain_data_are_refused(self, user: Any, value: Any) -> None:
        with pytest.raises(WorkflowError, match="parameter 'what' is not plain data"):
            source_of(user.Odd(what=value))

    def test_something_without_textual_form_is_named(self, user: Any) -> None:
        with pytest.raises(WorkflowError, match="uses 'first', a object"):
            source_of(user.Unwritable())

    def test_a_class_typed_at_a_prompt_is_refused_with_a_hint(self) -> None:
        namespace: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(CODE, "<stdin>", "exec"), namespace)
        with pytest.raises(WorkflowError, match=r"source of Scale(.|\n)*Hint: Define it"):
            source_of(namespace["Scale"](1))

    def test_a_class_in_a_notebook_cell_is_found(self) -> None:
        from samovar.graph.operator import remember_source

        namespace: dict[str, Any] = {"__name__": "__main__"}
        remember_source("<ipython-input-7>", CODE)
        exec(compile(CODE, "<ipython-input-7>", "exec"), namespace)
        assert rows(again(namespace["Scale"](9)), 2) == [4]
