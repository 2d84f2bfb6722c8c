"""Commands all the way to tuple loops and back, over real sockets: pause, look, change, hold, stop."""

from __future__ import annotations

import socket
import threading

import pytest
from tests.control.support import WAIT, Loop, command, running

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.errors import CommandRefused


def goes_on(loop: Loop) -> bool:
    loop.moved.clear()
    return loop.moved.wait(WAIT)


def test_pause_stops_every_loop_and_resume_lets_all_go() -> None:
    with running(3) as (desk, _, loops):
        assert command(desk, e.PauseRequested).state == "paused"
        numbers = [loop.number for loop in loops]
        assert all(loop.client.status.stopped is not None for loop in loops)
        assert [loop.number for loop in loops] == numbers
        assert command(desk, e.ResumeRequested).state == "running"
        assert all(goes_on(loop) for loop in loops)


def test_states_and_tuples_in_flight_can_be_seen_running_and_paused() -> None:
    with running(2) as (desk, _, loops):
        assert len(command(desk, e.InspectRequested, operator="X").given) == 2
        command(desk, e.PauseRequested)
        answer = command(desk, e.InspectRequested, operator="X")
        totals = {loop.client.worker: str(loop.total).encode() for loop in loops}
        assert {w: g.body for w, g in answer.given if isinstance(g, m.StateGiven)} == totals
        answer = command(desk, e.InFlightRequested, operator="X", limit=2)
        assert [len(g.rows) for _, g in answer.given if isinstance(g, m.InFlightGiven)] == [2, 2]
        assert command(desk, e.InspectRequested, operator="Q").given == ()


@pytest.mark.parametrize("consistency", ["backward", "none"])
def test_other_code_is_in_force_in_every_loop_and_its_first_tuple_is_noted(consistency: str) -> None:
    with running(2) as (desk, engine, loops):
        command(desk, e.ModifyRequested, bodies={"X": (b"10", b"")}, consistency=consistency)
        assert [loop.factor for loop in loops] == [10, 10]
        notes = engine.wait_noted(i.NoteSwitched, 2)
        assert {n.worker for n in notes} == {loop.client.worker for loop in loops}
        assert engine.codes[-1].codes["X"] == (m.CodeVersion(1, b"10"),)
        late = Loop(desk, "late")
        loops.append(late)
        assert goes_on(late)
        assert late.factor == 10


def test_code_that_a_loop_cannot_take_is_refused_and_the_epoch_given_up() -> None:
    with running(2) as (desk, engine, loops):
        with pytest.raises(CommandRefused, match="ValueError: invalid literal"):
            command(desk, e.ModifyRequested, bodies={"X": (b"ten", b"")}, consistency="none")
        assert engine.cancelled.get(timeout=WAIT)[0] == 0
        for loop in loops:
            loop.thread.join(WAIT)
            assert "could not be put into force" in str(loop.stopped_by)


def test_what_a_loop_sends_before_it_gives_up_is_heard_before_the_next_attempt() -> None:
    with running(2) as (desk, _, _):
        with pytest.raises(CommandRefused):
            command(desk, e.ModifyRequested, bodies={"X": (b"ten", b"")}, consistency="none")
        desk.hear_out()
        assert desk.machine.workers.busy == []


@pytest.mark.parametrize(("kind", "row", "total"), [("skip", b"", 0), ("edit", b"100", 100)])
def test_a_held_tuple_is_decided_and_the_run_goes_on(kind: m.DecisionKind, row: bytes, total: int) -> None:
    with running(2, bad=0) as (desk, engine, loops):
        (note,) = engine.wait_noted(i.NoteHeld)
        assert desk.state == "holding"
        assert note.held.place.number == 0
        command(desk, e.DecisionMade, hold=note.held.hold, kind=kind, row=row)
        assert all(goes_on(loop) for loop in loops)
        assert loops[0].skipped == ([0] if kind == "skip" else [])
        command(desk, e.PauseRequested)
        assert loops[0].total == total + sum(range(loops[0].number))


def test_a_held_tuple_is_retried_with_other_code() -> None:
    with running(1, bad=0) as (desk, engine, loops):
        (note,) = engine.wait_noted(i.NoteHeld)
        command(desk, e.ModifyRequested, bodies={"X": (b"2", b"")}, consistency="backward")
        command(desk, e.DecisionMade, hold=note.held.hold, kind="retry")
        assert goes_on(loops[0])
        assert desk.state == "running"


def test_a_loop_whose_connection_breaks_while_paused_stays_paused_and_can_be_resumed() -> None:
    with running(2) as (desk, _, loops):
        command(desk, e.PauseRequested)
        sock = loops[0].client._sock
        assert sock is not None
        sock.shutdown(socket.SHUT_RDWR)
        assert command(desk, e.ResumeRequested).state == "running"
        assert all(goes_on(loop) for loop in loops)


def test_a_pause_that_a_loop_does_not_heed_gives_the_epoch_up_in_time() -> None:
    with running(1, patience=0.05) as (desk, engine, loops):
        loops[0].agent.check = lambda: None  # type: ignore[method-assign]
        answer = desk.ask(lambda name: e.PauseRequested(command=name))
        assert engine.cancelled.get(timeout=WAIT)[0] == 0
        desk.report(e.EpochGivenUp(epoch=0, why="cancelled"))
        assert answer.result(WAIT).state == "paused"


def test_a_worker_that_dies_is_noticed_and_the_pause_goes_without_it() -> None:
    with running(2, grace=0.01) as (desk, _, loops):
        loops[0].agent.check = lambda: None  # type: ignore[method-assign]
        answer = desk.ask(lambda name: e.PauseRequested(command=name))
        loops[0].client._finish("killed")
        assert answer.result(WAIT).state == "paused"


def test_the_gate_keeps_the_engine_until_resume_and_lets_it_out_on_stop() -> None:
    with running(0) as (desk, _, _):
        desk.report(e.EpochDone(epoch=0))
        command(desk, e.PauseRequested)
        began: list[bool] = []
        engine = threading.Thread(target=lambda: began.append(desk.begin_epoch(1, "b")), daemon=True)
        engine.start()
        assert began == []
        command(desk, e.ResumeRequested)
        engine.join(WAIT)
        assert began == [True]
        stop = desk.ask(lambda name: e.StopRequested(command=name))
        assert not desk.begin_epoch(1, "c")
        desk.report(e.RunOver())
        assert stop.result(WAIT).state == "ended"


def test_stop_ends_every_task() -> None:
    with running(2) as (desk, engine, loops):
        stop = desk.ask(lambda name: e.StopRequested(command=name))
        for loop in loops:
            loop.thread.join(WAIT)
            assert loop.stopped_by is not None
        assert engine.ended
        desk.report(e.EpochGivenUp(epoch=0))
        desk.report(e.RunOver())
        assert stop.result(WAIT).state == "ended"
        with pytest.raises(CommandRefused, match="has ended"):
            command(desk, e.PauseRequested)


def test_figures_of_every_worker_arrive_while_it_works_and_while_it_is_paused() -> None:
    came = threading.Semaphore(0)
    with running(1, progress=lambda worker, figures: came.release()) as (desk, _, loops):
        command(desk, e.PauseRequested)
        assert came.acquire(timeout=WAIT)
        assert came.acquire(timeout=WAIT)
        assert desk.progress[loops[0].client.worker].operators["X"].taken == loops[0].number


def test_when_all_workers_have_stopped_the_number_of_tuples_taken_is_exact() -> None:
    with running(2) as (desk, _, loops):
        for _ in range(3):
            command(desk, e.PauseRequested)
            assert desk.taken("X") == sum(loop.number for loop in loops)
            command(desk, e.ResumeRequested)
            for loop in loops:
                loop.moved.clear()
                assert loop.moved.wait(WAIT)
        assert desk.taken("nothing") == 0
