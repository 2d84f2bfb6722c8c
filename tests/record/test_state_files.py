"""State files: restoring what the epochs wrote gives the instance back; damage is seen before anything is unpickled."""

from __future__ import annotations

import copy
import pickle
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import samovar as sv
from samovar.errors import RecordingCorrupt, WorkflowError
from samovar.graph import operators as ops
from samovar.graph.code import operator_from_code
from samovar.record.state_files import (
    PYTHON,
    Header,
    StateCapture,
    composed,
    read_header,
    read_state,
    restore,
    write_state,
)
from samovar.runtime.pickles import by_value


class Everything(sv.Operator):
    """All kinds of state."""

    output = "x int"
    m: Any = sv.MapState()
    n: Any = sv.MapState({"start": [1]})
    items: Any = sv.ListState()
    v: Any = sv.ValueState(0)

    def __init__(self) -> None:
        self.plain: Any = {"a": [1]}
        self.other = 3


_keys = st.sampled_from(["a", "b", "c", "d", "e"])
_values = st.one_of(st.integers(-9, 9), st.text(max_size=2), st.lists(st.integers(0, 3), max_size=2))


def _change(op: Everything, step: tuple[Any, ...]) -> None:
    """One change of the kind that user code makes."""
    match step:
        case ("set", name, key, value):
            getattr(op, name)[key] = copy.deepcopy(value)
        case ("pop", name, key):
            getattr(op, name).pop(key, None)
        case ("inside", name, key):
            found = getattr(op, name).get(key)
            if isinstance(found, list):
                found.append(7)
        case ("clear", name):
            getattr(op, name).clear()
        case ("replace", name, value):
            setattr(op, name, dict(value))
        case ("popitem", name):
            if getattr(op, name):
                getattr(op, name).popitem()
        case ("append", value):
            op.items.append(copy.deepcopy(value))
        case ("poplist",):
            if op.items:
                op.items.pop(0)
        case ("item", value):
            if op.items:
                op.items[-1] = copy.deepcopy(value)
        case ("sublist",):
            for item in op.items:
                if isinstance(item, list):
                    item.append(8)
        case ("value", value):
            op.v = copy.deepcopy(value)
        case ("add",):
            op.v = [op.v]
        case ("plain", key, value):
            op.plain[key] = copy.deepcopy(value)
        case ("attribute", value):
            op.fresh = copy.deepcopy(value)  # type: ignore[attr-defined]
        case ("forget",):
            op.__dict__.pop("fresh", None)


_maps = st.sampled_from(["m", "n"])
_steps = st.one_of(
    st.tuples(st.just("set"), _maps, _keys, _values),
    st.tuples(st.just("pop"), _maps, _keys),
    st.tuples(st.just("inside"), _maps, _keys),
    st.tuples(st.just("clear"), _maps),
    st.tuples(st.just("popitem"), _maps),
    st.tuples(st.just("replace"), _maps, st.dictionaries(_keys, _values, max_size=3)),
    st.tuples(st.just("append"), _values),
    st.tuples(st.just("poplist")),
    st.tuples(st.just("item"), _values),
    st.tuples(st.just("sublist")),
    st.tuples(st.just("value"), _values),
    st.tuples(st.just("add")),
    st.tuples(st.just("plain"), _keys, _values),
    st.tuples(st.just("attribute"), _values),
    st.tuples(st.just("forget")),
)


def _content(op: sv.Operator) -> dict[str, Any]:
    """The state with the order of its keys, which user code can see."""
    made: dict[str, Any] = {"m": [], "n": [("start", [1])], "items": []}  # before they are touched
    for name, value in vars(op).items():
        if name.startswith("_sv_"):
            continue
        if isinstance(value, dict):
            made[name] = list(dict.items(value))
        else:
            made[name] = list(list.__iter__(value)) if isinstance(value, list) else value
    return made


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.lists(_steps, max_size=6), st.booleans()), min_size=1, max_size=6))
def test_any_changes_over_epochs_are_restored_from_their_files(
    tmp_path: Path, epochs: list[tuple[list[tuple[Any, ...]], bool]]
) -> None:
    code = pickle.dumps(Everything())
    live: Everything = pickle.loads(code)
    capture = StateCapture("op", live)
    files: list[Path] = []
    for number, (steps, full) in enumerate(epochs):
        for step in steps:
            _change(live, step)
        header = Header(operator="op", bucket=3, epoch=number, taken=(len(steps),), entries=capture.entries())
        path = tmp_path / f"{number}.delta"
        size = write_state(path, header, capture.changes())
        assert size == path.stat().st_size
        assert read_header(path) == msgspec.structs.replace(header, python=PYTHON)
        files.append(path)
        if full:
            path = tmp_path / f"{number}.full"
            write_state(path, Header(operator="op", bucket=3, epoch=number, full=True), capture.whole())
            files = [path]
        fresh: Everything = pickle.loads(code)
        restore(fresh, (read_state(f)[1] for f in files))
        assert _content(fresh) == _content(live)
        # and a restored instance goes on as the first one does: nothing counts as changed in it
        again = StateCapture("op", fresh)
        again.settle()
        assert again.changes() == {"maps": {}, "lists": {}, "values": {}, "gone": ()}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(_steps, max_size=6), min_size=1, max_size=5))
def test_changes_put_together_do_what_they_do_one_after_the_other(parts: list[list[tuple[Any, ...]]]) -> None:
    code = pickle.dumps(Everything())
    live: Everything = pickle.loads(code)
    capture = StateCapture("op", live)
    kept: dict[str, Any] | None = None
    for steps in parts:
        for step in steps:
            _change(live, step)
        changes = capture.changes()
        kept = changes if kept is None else composed(kept, changes)
    fresh: Everything = pickle.loads(code)
    restore(fresh, [pickle.loads(pickle.dumps(kept))])
    assert _content(fresh) == _content(live)


def test_a_worker_that_is_behind_catches_up_by_the_files_since(tmp_path: Path) -> None:
    live, behind = Everything(), Everything()
    capture, other = StateCapture("op", live), StateCapture("op", behind)
    for number in range(3):
        live.m[f"k{number}"] = number
        live.items.append(number)
        live.m.pop("k0", None)
        live.m["k0"] = number
        write_state(tmp_path / str(number), Header(operator="op", bucket=0, epoch=number), capture.changes())
        if number == 0:
            restore(behind, [read_state(tmp_path / "0")[1]])
            other.settle()
    restore(behind, (read_state(tmp_path / str(n))[1] for n in (1, 2)))
    other.settle()
    assert _content(behind) == _content(live)
    assert list(behind.m) == ["k1", "k2", "k0"]


def test_a_delta_costs_what_changed_not_what_there_is(tmp_path: Path) -> None:
    live = Everything()
    capture = StateCapture("op", live)
    live.m.update({str(i): i for i in range(20_000)})
    whole = write_state(tmp_path / "0", Header(operator="op", bucket=0, epoch=0), capture.changes())
    live.m["5"] = 0
    live.m["new"] = 1
    delta = write_state(tmp_path / "1", Header(operator="op", bucket=0, epoch=1), capture.changes())
    assert whole > 100_000
    assert delta < 400


class _Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("unpickled damaged bytes",))


@pytest.mark.parametrize("at", [0, 5, 30, -30, -1])
def test_damage_is_seen_before_anything_is_unpickled(tmp_path: Path, at: int) -> None:
    path = tmp_path / "0000.delta"
    write_state(path, Header(operator="op", bucket=0, epoch=0), {"maps": {"m": (True, {"a": _Bomb()}, ())}})
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)
    with pytest.raises(RecordingCorrupt, match=r"0000\.delta"):
        read_state(path)


def test_a_file_cut_short_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "0000.delta"
    write_state(path, Header(operator="op", bucket=0, epoch=0), {"maps": {"m": (True, {"a": _Bomb()}, ())}})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RecordingCorrupt):
            read_state(path)
        if length < 16:
            with pytest.raises(RecordingCorrupt):
                read_header(path)


def test_sound_bytes_that_are_no_state_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    body = b"NOPE" + b"\0" * 40
    path.write_bytes(body + struct.pack("<I", zlib.crc32(body)))
    with pytest.raises(RecordingCorrupt, match="not a state file"):
        read_state(path)


@pytest.mark.parametrize("where", ["m", "plain"])
def test_state_that_cannot_be_pickled_is_named(tmp_path: Path, where: str) -> None:
    live = Everything()
    capture = StateCapture("FE", live)
    getattr(live, where)["lock"] = (i for i in range(3))
    with pytest.raises(WorkflowError, match="'FE' cannot be pickled") as caught:
        write_state(tmp_path / "0", Header(operator="FE", bucket=0, epoch=0), capture.changes())
    assert caught.value.operator == "FE"
    assert not (tmp_path / "0").exists()


_DOCUMENT = """
from dataclasses import dataclass, field
import samovar as sv

@dataclass
class Account:
    spent: float = 0.0
    items: list = field(default_factory=list)

class Accounts(sv.Operator):
    output = "x int"
    accounts = sv.MapState()
    seen = sv.ListState()

    def __init__(self):
        self.best = Account()

    def process(self, row, port=0):
        account = self.accounts.setdefault(row["who"], Account())
        account.spent += row["amount"]
        account.items.append(row["amount"])
        self.seen.append(Account(row["amount"]))
        self.best = max(self.best, account, key=lambda a: a.spent)
        yield {"x": isinstance(self.accounts[row["who"]], Account)}
"""

_ELSEWHERE = """
import pickle, sys
from pathlib import Path
from samovar.record.state_files import read_state, restore

folder = Path(sys.argv[1])
op = pickle.loads((folder / "code.pkl").read_bytes())
restore(op, [read_state(folder / name)[1] for name in sys.argv[2:]])
Account = type(op.best)
assert isinstance(op.accounts["Bob"], Account), "the class of the code, not a copy of it"
assert all(type(a) is Account for a in op.seen)
print(op.best.spent, op.accounts["Bob"].items, len(op.seen), flush=True)
print(next(op.process({"who": "Bob", "amount": 1.0})))
"""


def test_state_of_classes_from_document_code_is_restored_in_another_process(tmp_path: Path) -> None:
    op = operator_from_code(
        ops.Python(name="A", inputs=("in",), code=_DOCUMENT, class_name="Accounts", params={})
    )
    (tmp_path / "code.pkl").write_bytes(by_value(op))
    live: Any = pickle.loads((tmp_path / "code.pkl").read_bytes())
    capture = StateCapture("A", live)
    for number in range(2):
        for amount in (1.0, 2.0):
            list(live.process({"who": "Bob", "amount": amount}))
        write_state(tmp_path / str(number), Header(operator="A", bucket=0, epoch=number), capture.changes())
    write_state(tmp_path / "full", Header(operator="A", bucket=0, epoch=1, full=True), capture.whole())
    for files in (["0", "1"], ["full"]):
        done = subprocess.run(
            [sys.executable, "-c", _ELSEWHERE, str(tmp_path), *files],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "6.0 [1.0, 2.0, 1.0, 2.0] 4\n{'x': True}\n", done.stderr
