"""Rooms: what people edit at the same time converges, survives, and cannot be spoiled by one of them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pycrdt import Doc, Text, create_update_message
from tests.server.support import SMALL, Client, edit, read_all

from samovar.graph.document import load_operators
from samovar.server.documents.document_form import Reading, read, shared_form
from samovar.server.documents.rooms import JOURNAL, MESSAGE_BYTES, Member, Refused, Room
from samovar.server.documents.yjs_protocol import awareness_message, parse, read_states


def settle(clients: list[Client]) -> None:
    while any(client.deliver() for client in clients):
        pass


def assert_valid(reading: Reading) -> None:
    """Names are unique, edges lead somewhere and in no circle, and every operator can be read."""
    operators = reading.document["operators"]
    names = [op["name"] for op in operators]
    assert len(names) == len(set(names))
    _, wrong = load_operators(reading.document)
    assert wrong == []
    done: set[str] = set()
    waiting = {op["name"]: set(op.get("inputs", ())) for op in operators}
    assert set().union(*waiting.values()) <= set(names)
    while waiting:
        ready = [name for name, ups in waiting.items() if ups <= done]
        assert ready, f"a circle among {sorted(waiting)}"
        done.update(ready)
        for name in ready:
            del waiting[name]


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_edits_of_five_clients_with_lost_connections_converge(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    room = Room(tmp_path)
    clients = [Client() for _ in range(5)]
    for client in clients:
        client.connect(room)
    for _ in range(1000):
        client = random.choice(clients)
        edit(client.doc, random)
        for _ in range(random.randrange(4)):
            random.choice(clients).deliver(random)
        if random.random() < 0.03:
            client.disconnect()
        for lost in clients:
            if lost.room is None and random.random() < 0.1:
                lost.connect(room)
        if random.random() < 0.004:  # the server is killed and started again
            for other in clients:
                other.disconnect()
            room.close()
            room = Room(tmp_path)
    for client in clients:
        if client.room is None:
            client.connect(room)
    settle(clients)
    readings = read_all(clients, room)
    assert all(reading == readings[0] for reading in readings)
    assert_valid(readings[0])
    room.close()
    assert Room(tmp_path).read() == readings[0]


def test_edits_survive_a_server_that_was_killed(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.write(SMALL)
    # no close: the process is gone
    again = Room(tmp_path).read()
    assert [op["name"] for op in again.document["operators"]] == ["numbers", "large", "S"]


def test_a_record_cut_off_by_a_crash_is_dropped_and_those_before_it_kept(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.write(SMALL)
    journal = tmp_path / JOURNAL
    whole = journal.read_bytes()
    room.write({**SMALL, "name": "other"})
    journal.write_bytes(journal.read_bytes()[:-3])
    again = Room(tmp_path)
    assert again.read().document["name"] == "small"
    assert journal.read_bytes() == whole
    again.write({**SMALL, "name": "third"})
    assert Room(tmp_path).read().document["name"] == "third"


def test_a_long_history_is_compacted_when_the_last_one_leaves(tmp_path: Path) -> None:
    room = Room(tmp_path)
    member = Member(lambda _: None)
    room.join(member)
    for number in range(4000):
        room.write({**SMALL, "name": f"name_{number}"})
    before = (tmp_path / JOURNAL).stat().st_size
    room.leave(member)
    assert (tmp_path / JOURNAL).stat().st_size < before / 4
    assert Room(tmp_path).read().document["name"] == "name_3999"


def test_a_history_that_grows_while_people_are_there_is_compacted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("samovar.server.documents.rooms.BUSY_BYTES", 20_000)
    room = Room(tmp_path)
    client = Client()
    client.connect(room)
    settle([client])
    for number in range(1500):
        shared_form(client.doc)[0]["name"] = f"name_{number}"
        settle([client])
        assert (tmp_path / JOURNAL).stat().st_size < 60_000
    assert Room(tmp_path).read() == room.read() == read(client.doc)


def some_update() -> bytes:
    doc: Doc[Any] = Doc()
    shared_form(doc)[0]["name"] = "x"
    return doc.get_update()


UNREADABLE = {
    "nothing": b"",
    "a kind alone": b"\x00",
    "an unknown kind": b"\x09",
    "a length beyond the end": b"\x00\x02\x7f",
    "an unknown step of synchronising": b"\x00\x07\x01\x00",
    "an update of noise": create_update_message(b"\xff" * 40),
    "an update cut short": create_update_message(some_update()[:-2]),
    "a state vector of noise": b"\x00\x00" + b"\x02\xff\xff",
    "awareness of noise": b"\x01\x03\x01\x05\x05",
    "awareness that is not JSON": awareness_message([(1, 1, "{")]),
    "a length without an end": b"\x00\x02" + b"\xff" * 12,
    "a message too large": bytes(MESSAGE_BYTES + 1),
}


@pytest.mark.parametrize("message", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused_and_changes_nothing(tmp_path: Path, message: bytes) -> None:
    room = Room(tmp_path)
    room.write(SMALL)
    told: list[bytes] = []
    bad, good = Member(lambda _: None), Member(told.append)
    room.join(bad)
    room.join(good)
    before, told[:] = room.read(), []
    with pytest.raises(Refused):
        room.receive(bad, message)
    room.leave(bad)
    assert told == []
    assert room.read() == before
    room.write({**SMALL, "name": "goes_on"})
    assert told
    assert Room(tmp_path).read().document["name"] == "goes_on"


@pytest.mark.parametrize("seed", range(200))
def test_updates_with_wrong_bytes_never_break_a_room(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    source: Doc[Any] = Doc()
    for _ in range(5):
        edit(source, random)
    update = bytearray(source.get_update())
    for _ in range(random.randrange(1, 6)):
        update[random.randrange(len(update))] = random.randrange(256)
    room = Room(tmp_path)
    member = Member(lambda _: None)
    room.join(member)
    with contextlib.suppress(Refused):
        room.receive(member, create_update_message(bytes(update)))
    assert_names(room.read())
    room.write(SMALL)
    assert {"numbers", "large", "S"} <= {op["name"] for op in room.read().document["operators"]}
    assert Room(tmp_path).read() == room.read()


def assert_names(reading: Reading) -> None:
    names = [op["name"] for op in reading.document["operators"]]
    assert len(names) == len(set(names))


def test_nonsense_of_a_broken_client_is_left_out_and_told(tmp_path: Path) -> None:
    doc: Doc[Any] = Doc()
    workflow, operators, edges = shared_form(doc)
    workflow["name"] = "../../etc"
    operators["a"] = "text"
    operators["b"] = {"op": "filter"}
    edges["a/0"] = 5.0
    edges["nonsense"] = "a"
    doc.get("text", type=Text).insert(0, "unasked")
    reading = read(doc)
    assert reading.document == {"samovar": 1, "name": "workflow", "operators": []}
    assert len(reading.problems) == 2


def test_two_operators_with_one_name_and_a_circle_are_read_the_same_by_all(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.write(
        {
            **SMALL,
            "operators": [
                {"name": "a", "op": "distinct"},
                {"name": "b", "op": "distinct", "inputs": ["a"]},
            ],
        }
    )
    one, two = Client(), Client()
    one.connect(room)
    two.connect(room)
    settle([one, two])
    ids = room.read().ids
    shared_form(one.doc)[1][ids["a"]]["name"] = "same"
    shared_form(two.doc)[1][ids["b"]]["name"] = "same"
    shared_form(two.doc)[2][f"{ids['a']}/0"] = ids["b"]
    settle([one, two])
    readings = read_all([one, two], room)
    assert readings[0] == readings[1] == readings[2]
    assert [op["name"] for op in readings[0].document["operators"]] == ["same", "same_2"]
    assert {p.kind for p in readings[0].problems} == {"DuplicateName", "CyclicWorkflow"}
    assert_valid(readings[0])


def test_those_who_leave_are_gone_for_the_others(tmp_path: Path) -> None:
    room = Room(tmp_path)
    told: list[bytes] = []
    ana, bob = Member(lambda _: None), Member(told.append)
    room.join(ana)
    room.join(bob)
    room.receive(ana, awareness_message([(7, 1, '{"user": "Ana"}')]))
    assert read_states(parse(told[-1])[1]) == [(7, 1, '{"user": "Ana"}')]
    room.receive(bob, awareness_message([(7, 1, '{"user": "Ana"}')]))  # clients repeat what they hear
    assert room.people == [{"user": "Ana"}]
    room.leave(bob)
    assert room.people == [{"user": "Ana"}]
    room.join(bob)
    room.leave(ana)
    assert read_states(parse(told[-1])[1]) == [(7, 2, "null")]
    assert room.people == []


def test_numbers_keep_their_kind_through_the_shared_form(tmp_path: Path) -> None:
    room = Room(tmp_path)
    operators = [
        {"name": "few", "op": "limit", "n": 3},
        {"name": "P", "op": "python", "code": "x = 1\n", "params": {"floor": 5.0, "count": 2, "big": 2**60}},
    ]
    room.write({**SMALL, "operators": operators})
    few, python = room.read().document["operators"]
    assert few["n"] == 3
    assert type(few["n"]) is int
    assert [type(v) for v in python["params"].values()] == [float, int, int]
    assert python["params"]["big"] == 2**60
