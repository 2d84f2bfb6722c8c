"""Disabled operators, and workflows up to an operator. No Spark."""

from __future__ import annotations

import pytest

from samovar.errors import UnknownName, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.operators.base import Op
from samovar.graph.workflow import Workflow


def flow(*off: str) -> Workflow:
    made: list[Op] = [
        ops.Values(name="v", schema="a int", enabled="v" not in off),
        ops.Values(name="w", schema="a int", enabled="w" not in off),
        ops.Filter(name="f", inputs=("v",), condition="a > 1", enabled="f" not in off),
        ops.Limit(name="l", inputs=("f",), n=3, enabled="l" not in off),
        ops.Union(name="u", inputs=("l", "w"), enabled="u" not in off),
        ops.Sink(name="S", inputs=("l",), enabled="S" not in off),
        ops.Sink(name="T", inputs=("u",)),
    ]
    return Workflow.of("parts", made)


def edges(of: Workflow) -> dict[str, tuple[str, ...]]:
    return {op.name: op.inputs for op in of.graph().ops.values()}


def test_a_disabled_operator_with_one_input_is_passed_by() -> None:
    assert edges(flow("f")) == {"v": (), "w": (), "l": ("v",), "u": ("l", "w"), "S": ("l",), "T": ("u",)}
    assert edges(flow("f", "l"))["S"] == ("v",)


def test_a_disabled_sink_is_left_out() -> None:
    assert "S" not in edges(flow("S"))


def test_without_a_source_or_a_union_what_follows_is_left_out() -> None:
    assert edges(flow("w")) == {"v": (), "f": ("v",), "l": ("f",), "S": ("l",)}
    assert edges(flow("u")) == {"v": (), "f": ("v",), "l": ("f",), "S": ("l",)}
    with pytest.raises(WorkflowError, match="no sink"):
        flow("v").graph()


def test_a_disabled_operator_may_wait_for_its_edges() -> None:
    made = [
        ops.Values(name="v", schema="a int"),
        ops.Filter(name="f", inputs=(), condition="a > 1", enabled=False),
        ops.Sink(name="S", inputs=("v",)),
        ops.Sink(name="T", inputs=("f",)),
    ]
    assert edges(Workflow.of("parts", made)) == {"v": (), "S": ("v",)}
    made[1] = ops.Filter(name="f", inputs=(), condition="a > 1")
    with pytest.raises(WorkflowError, match=r"'f'.*1 input port"):
        Workflow.of("parts", made).graph()


def test_a_workflow_up_to_an_operator_ends_in_a_sink() -> None:
    assert edges(flow().up_to("f")) == {"v": (), "f": ("v",), "f_result": ("f",)}
    assert edges(flow().up_to("S")) == {"v": (), "f": ("v",), "l": ("f",), "S": ("l",)}
    with pytest.raises(UnknownName, match="nope"):
        flow().up_to("nope")
