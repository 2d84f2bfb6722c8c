"""Names, ports, edges and sinks of a workflow under construction."""

from __future__ import annotations

import copy
import pickle

import pytest

from samovar.errors import CyclicWorkflow, DuplicateName, UnconnectedPort, UnknownName, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.operator import Operator
from samovar.graph.workflow import Workflow


class Double(Operator):
    output = "a int"

    def process(self, row, port=0):
        yield {"a": row["a"] * 2}


def _source(flow: Workflow, name: str = "v"):
    return flow.values("a int", [(1,)], name=name)


def test_a_graph_lists_operators_in_the_order_they_were_added() -> None:
    flow = Workflow("w")
    a, b = _source(flow, "a"), _source(flow, "b")
    a.filter("a > 1", name="fa").union(b.filter("a > 2", name="fb"), name="u").sink("S")
    assert list(flow.graph().ops) == ["a", "b", "fa", "fb", "u", "S"]


def test_a_graph_keeps_only_what_leads_to_a_sink() -> None:
    flow = Workflow("w")
    a = _source(flow)
    a.filter("a > 1", name="unused")
    a.sink("S")
    assert list(flow.graph().ops) == ["v", "S"]


def test_consumers_and_upstream_follow_edges() -> None:
    flow = Workflow("w")
    a = _source(flow)
    f = a.filter("a > 1", name="f")
    a.union(f, name="u").sink("S")
    graph = flow.graph()
    assert graph.consumers("v") == [("f", 0), ("u", 0)]
    assert {op.name for op in graph.upstream("S")} == {"u", "f", "v"}
    assert [op.name for op in graph.sources] == ["v"]
    assert [op.name for op in graph.sinks] == ["S"]


@pytest.mark.parametrize("name", ["", "1a", "a/b", "a\nb", None, 5, "€"])
def test_bad_names_are_refused(name: object) -> None:
    with pytest.raises(WorkflowError, match="name"):
        Workflow(name)  # type: ignore[arg-type]
    if name:
        with pytest.raises(WorkflowError, match="operator name"):
            _source(Workflow("w"), name)  # type: ignore[arg-type]


def test_a_name_used_twice_is_refused_with_a_way_out() -> None:
    flow = Workflow("w")
    _source(flow)
    with pytest.raises(DuplicateName, match=r"already has an operator 'v' \(values\)(.|\n)*'v_2'"):
        _source(flow)


def test_fresh_names_avoid_taken_ones() -> None:
    flow = Workflow("w")
    a = _source(flow)
    a.filter("a > 1", name="filter_1")
    assert a.filter("a > 2")._name == "filter_2"


def test_a_workflow_without_a_sink_is_refused() -> None:
    flow = Workflow("w")
    _source(flow)
    with pytest.raises(WorkflowError, match="no sink"):
        flow.graph()


def test_a_sink_has_no_output() -> None:
    flow = Workflow("w")
    written = _source(flow).write.parquet("out/", name="out")
    written.filter("a > 1").sink("S")
    with pytest.raises(WorkflowError, match="reads from the sink 'out'"):
        flow.graph()


def test_frames_of_two_workflows_do_not_mix() -> None:
    a, b = _source(Workflow("one")), _source(Workflow("two"))
    with pytest.raises(WorkflowError, match="Expected a frame of workflow 'one'"):
        a.union(b)


def test_an_unknown_operator_gets_the_nearest_name() -> None:
    flow = Workflow("w")
    _source(flow, "payments")
    with pytest.raises(UnknownName, match="Did you mean 'payments'"):
        flow.frame("payment")


def _loop(*edges: tuple[str, tuple[str, ...]]) -> list[ops.Op]:
    return [ops.Union(name=n, inputs=i) for n, i in edges]


def test_a_cycle_is_shown_as_a_path() -> None:
    source = ops.Values(name="v", schema="a int")
    with pytest.raises(CyclicWorkflow) as caught:
        Workflow.of("w", [source, *_loop(("a", ("v", "c")), ("b", ("v", "a")), ("c", ("v", "b")))])
    assert (
        "a -> b -> c -> a" in str(caught.value)
        or "b -> c -> a -> b" in str(caught.value)
        or ("c -> a -> b -> c" in str(caught.value))
    )


def test_an_operator_that_feeds_itself_is_a_cycle() -> None:
    with pytest.raises(CyclicWorkflow, match="f -> f"):
        Workflow.of("w", [ops.Filter(name="f", inputs=("f",), condition="a > 1")])


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (ops.Filter(name="x", condition="true"), r"has 1 input port\(s\), 0 connected"),
        (ops.Filter(name="x", inputs=("v", "v"), condition="true"), r"has 1 input port\(s\), 2 connected"),
        (ops.Join(name="x", inputs=("v",)), r"has 2 input port\(s\), 1 connected"),
        (ops.Union(name="x", inputs=("v",)), r"has 2 or more input port\(s\), 1 connected"),
        (ops.Table(name="x", inputs=("v",), table="t"), r"has 0 input port\(s\), 1 connected"),
    ],
)
def test_ports_are_all_connected(op: ops.Op, message: str) -> None:
    with pytest.raises(UnconnectedPort, match=message):
        Workflow.of("w", [ops.Values(name="v", schema="a int"), op])


def test_operators_may_come_in_any_order() -> None:
    flow = Workflow.of(
        "w", [ops.Sink(name="S", inputs=("f",)), ops.Filter(name="f", inputs=("v",), condition="a > 1"),
              ops.Values(name="v", schema="a int")]
    )  # fmt: skip
    assert list(flow.graph().ops) == ["v", "f", "S"]


class TestValues:
    def test_rows_come_as_tuples_lists_or_mappings(self) -> None:
        flow = Workflow("w")
        flow.values(
            "a int, `b c` string", [(1, "x"), [2, "y"], {"b c": "z", "a": 3}, {"a": 4}], name="v"
        ).sink("S")
        assert flow.graph().ops["v"].rows == ((1, "x"), (2, "y"), (3, "z"), (4, None))

    def test_a_schema_may_nest_commas(self) -> None:
        flow = Workflow("w")
        flow.values("m decimal(10,2), s struct<a: int, b: string>, t int COMMENT 'a, b'", [(1, (1, "x"), 2)])

    @pytest.mark.parametrize(
        ("row", "message"),
        [((1, 2), "Expected rows of 1 values"), (5, "Expected row 0 to be a tuple"), ("x", "Expected row 0"),
         ({"b": 1}, "has no column 'b'")],
    )  # fmt: skip
    def test_rows_that_do_not_fit_are_refused(self, row: object, message: str) -> None:
        with pytest.raises(WorkflowError, match=message):
            Workflow("w").values("a int", [row], name="v")


class TestApply:
    def test_ports_follow_the_order_of_the_inputs(self) -> None:
        flow = Workflow("w")
        a, b = _source(flow, "a"), _source(flow, "b")
        flow.apply(Double(), b, a, name="X").sink("S")
        op = flow.graph().ops["X"]
        assert op.inputs == ("b", "a")
        assert isinstance(flow.graph().live["X"], Double)

    def test_keys_order_and_key_partitions_are_kept(self) -> None:
        flow = Workflow("w")
        _source(flow).apply(Double(), by="a", order="arrival", key_partitions=3, name="X").sink("S")
        op = flow.graph().ops["X"]
        assert (op.by, op.order, op.key_partitions, op.class_name) == (("a",), "arrival", 3, "Double")

    def test_a_class_is_not_an_instance(self) -> None:
        flow = Workflow("w")
        with pytest.raises(WorkflowError, match=r"got the class Double(.|\n)*Double\(\)"):
            _source(flow).apply(Double)  # type: ignore[arg-type]

    def test_something_else_is_not_an_operator(self) -> None:
        with pytest.raises(WorkflowError, match="got function"):
            _source(Workflow("w")).apply(lambda row: row)  # type: ignore[arg-type]

    def test_an_operator_says_its_output(self) -> None:
        class Silent(Operator):
            pass

        with pytest.raises(WorkflowError, match="Silent has no `output`"):
            _source(Workflow("w")).apply(Silent())

    def test_an_unknown_order_is_refused(self) -> None:
        with pytest.raises(WorkflowError, match="order="):
            _source(Workflow("w")).apply(Double(), order="any")  # type: ignore[arg-type]


def test_a_workflow_can_be_copied_and_pickled() -> None:
    flow = Workflow("w")
    frame = _source(flow)
    frame.sink("S")
    for again in (copy.deepcopy(flow), pickle.loads(pickle.dumps(flow))):
        assert again.graph().ops == flow.graph().ops
    assert copy.copy(frame)._flow is flow
    assert pickle.loads(pickle.dumps(frame))._name == "v"
