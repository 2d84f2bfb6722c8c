"""Workflows as Python programs: run, they give the same workflow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.graph.documents import EVERY

from samovar.graph import operators as ops
from samovar.graph.python_form import as_python
from samovar.graph.workflow import Workflow

TWICE = """class Twice(sv.Operator):
    output = 'a int'

    def __init__(self, by=2):
        self.by = by

    def process(self, row, port=0):
        yield {'a': row['a'] * self.by}
"""


def run(text: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), scope)
    return scope


def test_the_program_gives_equal_operators() -> None:
    code = [op.name for op in EVERY if isinstance(op, ops.Python | ops.Batches)]
    plain = [op for op in EVERY if op.name not in code and not set(op.inputs) & set(code)]
    flow = Workflow.of("every one", plain)
    text = as_python(flow.name, flow._ops)
    made = run(text)["flow"]
    assert made.name == flow.name
    assert made._ops == flow._ops


def test_people_read_methods_they_know() -> None:
    flow = Workflow("shop")
    orders = flow.read.csv("orders.csv", header=True, name="orders")
    large = orders.filter("amount > 100", name="large orders")
    large.groupBy("customer").agg("sum(amount) AS total", name="totals").sink("S")
    text = as_python(flow.name, flow._ops)
    assert "orders = flow.read.csv('orders.csv', name='orders', header='true')" in text
    assert "large_orders = orders.filter('amount > 100', name='large orders')" in text
    assert "totals = large_orders.groupBy('customer').agg('sum(amount) AS total', name='totals')" in text
    assert "\ntotals.sink('S')" in text
    assert "ops." not in text


def test_code_stands_as_it_was_written_and_is_applied() -> None:
    made = [
        ops.Values(name="class", schema="a int", rows=((1,),)),
        ops.Python(name="t", inputs=("class",), code=TWICE, params={"by": 3}, by=("a",)),
        ops.Sink(name="S", inputs=("t",)),
    ]
    scope = run(as_python("code", {op.name: op for op in made}))
    applied = scope["flow"]._ops["t"]
    assert (applied.class_name, applied.by, applied.inputs) == ("Twice", ("a",), ("class",))
    assert scope["flow"]._live["t"].by == 3


@pytest.mark.parametrize("name", ["flow", "a-b c", "été", "for", "1"])
def test_odd_names_become_variables(name: str) -> None:
    made = [ops.Values(name=f"x{name}", schema="a int"), ops.Sink(name="S", inputs=(f"x{name}",))]
    assert list(run(as_python("odd", {op.name: op for op in made}))["flow"]._ops) == [f"x{name}", "S"]


def test_disabled_operators_stay_disabled() -> None:
    flow = Workflow.of(
        "off",
        [
            ops.Values(name="v", schema="a int"),
            ops.Limit(name="l", inputs=("v",), n=1, enabled=False),
            ops.Sink(name="S", inputs=("l",)),
        ],
    )
    assert run(as_python("off", flow._ops))["flow"]._ops == flow._ops


def test_names_of_users_do_not_disturb_the_program() -> None:
    code = TWICE.replace("by=2", "function=2, by=5").replace("self.by = by", "self.by = (function, by)")
    made = [
        ops.Read(name="r", format="csv", path=("a.csv",), options={"name": "x", "a b": "1"}),
        ops.Query(name="q", sql="SELECT 1", options={"name": "x"}),
        ops.Python(name="t", inputs=("r", "q"), code=code, params={"function": 3, "by": None}),
        ops.Sink(name="S", inputs=("t",)),
    ]
    flow = run(as_python("odd", {op.name: op for op in made}))["flow"]
    assert [flow._ops[name] for name in ("r", "q")] == made[:2]
    assert flow._live["t"].by == (3, None)
