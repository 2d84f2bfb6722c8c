"""Operator classes that do otherwise than they say: refused or warned of before a tuple is processed."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict, deque
from typing import Any

import pytest

import samovar as sv
from samovar.errors import SamovarWarning, WorkflowError
from samovar.graph.code import operator_from_code
from samovar.graph.lint import remarks
from samovar.graph.operators import Python

ROWS: list[Any] = []


def applied(operator: sv.Operator) -> sv.Frame:
    flow = sv.Workflow("w")
    return flow.values("id int", [(1,)], name="src").apply(operator, name="X")


class DropsRow(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        {"id": row["id"]}


class DropsSpread(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        self.seen = row
        {**row, "id": 1}  # noqa: B018


class DropsBesideYield(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        if row["id"] > 3:
            yield row
        else:
            {**row, "id": 0}  # noqa: B018


class DoesNothing(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        made = {"id": row["id"]}  # noqa: F841


class Returns(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        if row["id"]:
            return {"id": row["id"]}
        return None


class ReturnsBesideYield(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        if row["id"] > 3:
            return [row]
        yield row


class FinishReturns(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        yield row

    def finish(self, port=0):
        return {"id": 0}


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (DropsRow, "makes a row and drops it"),
        (DropsSpread, "makes a row and drops it"),
        (DropsBesideYield, "makes a row and drops it"),
        (DoesNothing, "neither yields nor returns rows"),
        (Returns, "returns a row instead of yielding it"),
        (ReturnsBesideYield, "yields rows and returns others"),
        (FinishReturns, "finish() returns a row instead of yielding it"),
    ],
)
def test_rows_that_nobody_gets_are_refused(cls: type[sv.Operator], said: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        applied(cls())
    assert said in caught.value.message
    assert caught.value.operator == "X"
    assert "ield" in str(caught.value.hint)


def test_the_line_of_a_lost_row_is_told() -> None:
    with pytest.raises(WorkflowError, match=rf"\(line {DropsRow.process.__code__.co_firstlineno + 1}\)"):
        applied(DropsRow())


class Counts(sv.Operator):
    output = "id int"
    n = sv.ValueState(0)

    def process(self, row, port=0):
        self.n += 1


class CallsGenerator(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        self.rows(row)

    def rows(self, row):
        yield row


class EmptyBatches(sv.Operator):
    output = "id int"

    def process_batch(self, batch, port=0):
        ROWS.append(batch)


@pytest.mark.parametrize("cls", [Counts, CallsGenerator, EmptyBatches])
def test_an_operator_that_acts_and_gives_no_rows_is_warned_of(cls: type[sv.Operator]) -> None:
    with pytest.warns(SamovarWarning, match=r"Operator 'X': .* neither yields nor returns rows.*return \(\)"):
        applied(cls())


class MeansIt(Counts):
    def process(self, row, port=0):
        self.n += 1
        return ()


class OnlyAtTheEnd(Counts):
    def finish(self, port=0):
        yield {"id": self.n}


class MiniSteps(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        ROWS.append(row)
        yield


class ReturnsList(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        if row["id"] < 0:
            return None
        return [{"id": row["id"]}]


class ReturnsGenerator(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        return ({"id": n} for n in range(row["id"]))


class Delegates(ReturnsList):
    def process(self, row, port=0):
        return super().process(row, port)


class EndsEarly(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        if row["id"] < 0:
            return
        yield dict(row)


class AlwaysRaises(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        raise ValueError("never")


class Conditional(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        return [row] if row["id"] else None


def noted(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Wrapped(sv.Operator):
    output = "id int"

    @noted
    def process(self, row, port=0):
        yield row


class Partial(sv.Operator):
    output = "id int"
    process = functools.partialmethod(lambda self, row: [row])


class DictInside(sv.Operator):
    output = "id int"

    def process(self, row, port=0):
        ROWS.append({"id": row["id"]})
        yield from [{"id": 1}, {**row, "id": 2}]


@pytest.mark.parametrize(
    "cls",
    [
        MeansIt,
        OnlyAtTheEnd,
        MiniSteps,
        ReturnsList,
        ReturnsGenerator,
        Delegates,
        EndsEarly,
        AlwaysRaises,
        Conditional,
        Wrapped,
        Partial,
        DictInside,
    ],
)
def test_what_may_give_rows_or_says_that_it_gives_none_is_taken(cls: type[sv.Operator]) -> None:
    applied(cls())


class Stateless(sv.Operator):
    output = "id int"
    stateless = True
    n = sv.ValueState(0)

    def process(self, row, port=0):
        self.n += 1
        yield {"id": self.n}


class StatelessByInheritance(OnlyAtTheEnd):
    stateless = True


class StatelessCounter(sv.Operator):
    output = "id int"
    stateless = True

    def __init__(self) -> None:
        self.n = 0

    def process(self, row, port=0):
        self.n += 1
        yield {"id": self.n}


@pytest.mark.parametrize("cls", [Stateless, StatelessByInheritance, StatelessCounter])
def test_a_stateless_operator_with_state_is_refused(cls: type[sv.Operator]) -> None:
    with pytest.raises(WorkflowError, match=r"is stateless and .*\bn\b.*: nothing keeps it"):
        applied(cls())


class StatelessOpens(sv.Operator):
    output = "id int"
    stateless = True
    model = None

    def process(self, row, port=0):
        if self.model is None:
            self.model = {"a": 1}
        yield row


def test_a_stateless_operator_may_open_what_it_needs() -> None:
    applied(StatelessOpens())


class SharedList(sv.Operator):
    output = "id int"
    seen = []  # noqa: RUF012

    def process(self, row, port=0):
        seen = self.seen  # by another name: only that it is empty tells
        seen.append(row["id"])
        yield row


class SharedCounts(sv.Operator):
    output = "id int"
    totals = {"n": 0}  # noqa: RUF012

    def process(self, row, port=0):
        self.totals["n"] += 1
        yield row


class SharedSet(sv.Operator):
    output = "id int"
    seen = {0}  # noqa: RUF012

    def process(self, row, port=0):
        type(self).seen.add(row["id"])
        yield row


class SharedGrows(sv.Operator):
    output = "id int"
    seen = [0]  # noqa: RUF012

    def process(self, row, port=0):
        self.seen += [row["id"]]
        yield row


class SharedByName(sv.Operator):
    output = "id int"
    seen = deque([0])  # noqa: RUF012

    def process(self, row, port=0):
        SharedByName.seen.appendleft(row["id"])
        yield row


class SharedDefault(sv.Operator):
    output = "id int"
    counts = defaultdict(int)  # noqa: RUF012

    def process(self, row, port=0):
        self.counts[row["id"]] += 1
        yield row


class SharedBase(sv.Operator):
    output = "id int"
    counts = Counter(a=1)  # noqa: RUF012

    def note(self, row):
        self.counts.update(row)


class SharedInherited(SharedBase):
    def process(self, row, port=0):
        self.note(row)
        yield row


@pytest.mark.parametrize(
    "cls",
    [SharedList, SharedCounts, SharedSet, SharedGrows, SharedByName, SharedDefault, SharedInherited],
)
def test_a_container_in_the_class_body_that_is_changed_is_refused(cls: type[sv.Operator]) -> None:
    with pytest.raises(WorkflowError, match=r"in the class body: it is shared") as caught:
        applied(cls())
    assert "sv." in str(caught.value.hint)


class Constant(sv.Operator):
    output = "id int"
    RATES = {"EUR": 1.1, "JPY": 0.007}  # noqa: RUF012
    seen: list[int] = []  # noqa: RUF012
    last: list[int] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.seen = []

    def process(self, row, port=0):
        self.seen.append(self.RATES["EUR"])
        self.last = [*self.last, row["id"]]
        yield row


def test_constants_and_containers_of_the_instance_are_taken() -> None:
    applied(Constant())


CODE = """
import samovar as sv

class Drops(sv.Operator):
    output = "id int"
    def process(self, row, port=0):
        {"id": row["id"]}

class Silent(sv.Operator):
    output = "id int"
    def process(self, row, port=0):
        print(row)

class Counts(sv.Operator):
    output = "id int"
    stateless = True
    n = sv.ValueState(0)
    def process(self, row, port=0):
        self.n += 1
        yield {"id": self.n}

class Shared(sv.Operator):
    output = "id int"
    seen = {1: 2}
    def process(self, row, port=0):
        self.seen[row["id"]] = 1
        yield row

class Sound(sv.Operator):
    output = "id int"
    RATES = {"EUR": 1}
    def process(self, row, port=0):
        print(row)
        return ()
"""


@pytest.mark.parametrize("name", ["Drops", "Counts", "Shared"])
def test_code_of_documents_is_checked_the_same(name: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        operator_from_code(Python(name="X", inputs=("src",), code=CODE, class_name=name))
    assert caught.value.operator == "X"
    assert operator_from_code(Python(name="X", inputs=("src",), code=CODE, class_name="Sound"))


def test_editors_are_told_the_same_without_running_the_code() -> None:
    assert [(r.line, r.message.split(":")[0]) for r in remarks(CODE)] == [
        (7, "process() makes a row and drops it"),
        (11, "Silent gives no rows"),
        (14, "Counts is stateless and declares state (n)"),
        (24, "seen is shared by all instances"),
    ]
