"""The run's state machine: what is told to whom, what is answered, what is refused. One story a test."""

from __future__ import annotations

from typing import Any

import pytest

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.machine import Machine
from samovar.errors import CommandRefused


class Story:
    """A machine, and what it said last."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.last: list[i.Instruction] = []
        self._commands = 0

    def say(self, event: e.Event, at: float | None = None) -> list[i.Instruction]:
        self.last = self.machine.handle(event, at)
        return self.last

    def ask(self, kind: type[e.RunCommand], /, **arguments: Any) -> str:
        self._commands += 1
        name = f"c{self._commands}"
        self.say(kind(command=name, by="Alice", **arguments))
        return name

    def worker(self, worker: str, message: m.FromWorker) -> list[i.Instruction]:
        return self.say(e.Reported(worker=worker, message=message))

    def begin(
        self, *workers: str, epoch: int = 0, attempt: str = "a", expected: float | None = None, **task: Any
    ) -> None:
        """An epoch with a task in each of these workers, begun at time 0."""
        self.say(e.EpochBegun(epoch=epoch, attempt=attempt, at=0.0, expected=expected))
        for worker in workers:
            self.worker(worker, m.Hello(worker=worker, pid=1))
            self.task(worker, epoch=epoch, attempt=attempt, **task)

    def task(self, worker: str, epoch: int = 0, attempt: str = "a", **task: Any) -> None:
        wanted = {"task": f"{attempt}-{worker}", "operators": ("X", "Y"), **task}
        self.worker(worker, m.TaskBegun(run="r", epoch=epoch, attempt=attempt, **wanted))

    def told(self, kind: type, worker: str | None = None) -> list[Any]:
        found = [o for o in self.last if isinstance(o, i.Send) and isinstance(o.message, kind)]
        return [o.message for o in found if worker is None or o.worker == worker]

    def only(self, kind: type) -> Any:
        (found,) = [o for o in self.last if isinstance(o, kind)]
        return found

    def has(self, kind: type) -> bool:
        return any(isinstance(o, kind) for o in self.last)

    def stop_all(self, *workers: str) -> None:
        """The workers do what they were told last."""
        orders = {
            o.worker: o.message.order
            for o in self.last
            if isinstance(o, i.Send) and isinstance(o.message, m.PauseOrder)
        }
        for worker in workers:
            self.worker(worker, m.Stopped(order=orders[worker]))

    def pause(self, *workers: str) -> None:
        self.ask(e.PauseRequested)
        self.stop_all(*workers)
        assert self.machine.state == "paused"

    def resume(self, at: float) -> None:
        """Resume at that time."""
        self._commands += 1
        self.say(e.ResumeRequested(command=f"c{self._commands}"), at)


def held(hold: str = "h1", operator: str = "Y", number: int = 7, like: str = "ValueError:3") -> m.Held:
    return m.Held(
        hold=hold, place=m.TuplePlace(operator, 0, 0, 0, number), error="ValueError: bad", like=like
    )


@pytest.fixture
def story() -> Story:
    return Story()


# --- pause and resume -----------------------------------------------------------------------------------------------


def test_a_direct_pause_is_answered_when_the_last_worker_has_stopped(story: Story) -> None:
    story.begin("A", "B")
    command = story.ask(e.PauseRequested)
    a, b = story.told(m.PauseOrder, "A")[0], story.told(m.PauseOrder, "B")[0]
    assert story.machine.state == "pausing"
    assert not story.has(i.CancelEpoch)
    story.worker("A", m.Stopped(order=a.order))
    assert not story.has(i.CommandAnswer)
    story.worker("B", m.Stopped(order=b.order))
    assert story.only(i.CommandAnswer) == i.CommandAnswer(command, "paused")


def test_resume_lets_all_go_and_is_answered_when_they_do(story: Story) -> None:
    story.begin("A", "B")
    story.pause("A", "B")
    command = story.ask(e.ResumeRequested)
    orders = {w: story.told(m.ResumeOrder, w)[0].order for w in "AB"}
    assert story.only(i.Gate).open
    assert story.machine.state == "resuming"
    story.worker("A", m.WentOn(order=orders["A"]))
    story.worker("B", m.WentOn(order=orders["B"]))
    assert story.only(i.CommandAnswer) == i.CommandAnswer(command, "running")


def test_native_work_is_cancelled_by_a_direct_pause_and_done_again_after_it(story: Story) -> None:
    story.begin()
    command = story.ask(e.PauseRequested, at=1.0)
    assert story.only(i.CancelEpoch).epoch == 0
    story.say(e.EpochGivenUp(epoch=0, why="cancelled"))
    assert story.only(i.CommandAnswer) == i.CommandAnswer(command, "paused")
    story.ask(e.ResumeRequested)
    assert story.only(i.CommandAnswer).state == "running"
    story.say(e.EpochBegun(epoch=0, attempt="b"))


def test_native_work_that_is_nearly_over_is_let_finish(story: Story) -> None:
    story.say(e.EpochBegun(epoch=0, attempt="a", at=10.0, expected=2.0))
    story.ask(e.PauseRequested, at=11.9)
    assert not story.has(i.CancelEpoch)
    story.say(e.EpochDone(epoch=0))
    assert story.machine.state == "paused"


def test_an_aligned_pause_waits_for_the_epochs_end_and_tells_no_worker_to_stop(story: Story) -> None:
    story.begin("A")
    command = story.ask(e.PauseRequested, mode="aligned")
    assert not story.told(m.PauseOrder)
    assert not story.only(i.Gate).open
    story.worker("A", m.TaskEnded(task="a-A"))
    story.say(e.EpochDone(epoch=0))
    assert story.only(i.CommandAnswer) == i.CommandAnswer(command, "paused")


def test_a_worker_that_begins_while_paused_stops_before_its_first_tuple(story: Story) -> None:
    story.begin("A")
    story.pause("A")
    story.task("B")
    (orders,) = story.told(m.Orders, "B")
    assert orders.stop is not None
    assert story.machine.state == "paused"


def test_a_late_answer_to_an_older_order_says_nothing(story: Story) -> None:
    story.begin("A")
    story.ask(e.PauseRequested)
    old = story.told(m.PauseOrder, "A")[0].order
    story.ask(e.ResumeRequested)
    story.ask(e.PauseRequested)
    story.worker("A", m.Stopped(order=old))
    assert story.machine.state == "pausing"


def test_an_epoch_begins_only_when_the_gate_is_open(story: Story) -> None:
    story.ask(e.PauseRequested)
    with pytest.raises(CommandRefused, match=r"cannot begin now: the run is paused.*Alice asked to pause"):
        story.say(e.EpochBegun(epoch=0, attempt="a"))


def test_a_worker_that_does_not_stop_in_time_loses_its_epoch_but_not_the_pause(story: Story) -> None:
    story.begin("A", "B")
    command = story.ask(e.PauseRequested)
    story.say(e.PatienceEnded(command=command))
    assert story.has(i.CancelEpoch)
    assert len(story.told(m.Abandon)) == 2
    story.say(e.EpochGivenUp(epoch=0))
    assert story.only(i.CommandAnswer) == i.CommandAnswer(command, "paused")


@pytest.mark.parametrize("ask", [e.ResumeRequested])
def test_resuming_what_is_not_paused_is_refused_with_the_story(story: Story, ask: type[e.RunCommand]) -> None:
    story.begin("A")
    story.ask(ask)
    error = story.only(i.Refuse).error
    assert error.state == "running"
    assert error.story[-1] == "worker A began a task of epoch 0 (X, Y)"
    assert "epoch 0 began" in str(error)


def test_a_pause_at_the_epochs_end_gives_way_to_a_direct_one_and_not_the_reverse(story: Story) -> None:
    story.begin("A")
    first = story.ask(e.PauseRequested, mode="aligned")
    story.ask(e.PauseRequested, mode="direct")
    assert story.only(i.Refuse).command == first
    story.stop_all("A") if story.told(m.PauseOrder) else None
    third = story.ask(e.PauseRequested, mode="aligned")
    assert story.only(i.Refuse).command == third


# --- inspect --------------------------------------------------------------------------------------------------------


def test_an_operators_state_comes_from_every_worker_that_runs_it(story: Story) -> None:
    story.begin("A", "B")
    story.task("C", operators=("Z",))
    command = story.ask(e.InspectRequested, operator="X")
    assert [o.worker for o in story.last if isinstance(o, i.Send)] == ["A", "B"]
    story.worker("A", m.StateGiven(request=command, operator="X", body=b"1"))
    story.say(e.WorkerVanished(worker="B"))
    answer = story.only(i.CommandAnswer)
    assert [(w, g.body) for w, g in answer.given] == [("A", b"1")]
    assert answer.missing == ("B",)


def test_an_operator_that_nobody_runs_is_answered_at_once(story: Story) -> None:
    story.begin("A")
    story.ask(e.InFlightRequested, operator="Q")
    assert story.only(i.CommandAnswer).note == "no worker runs 'Q' now"


def test_a_worker_that_is_back_is_asked_again(story: Story) -> None:
    story.begin("A")
    command = story.ask(e.InspectRequested, operator="X")
    story.say(e.WorkerDropped(worker="A"))
    task = m.TaskBegun(task="a-A", run="r", epoch=0, attempt="a", operators=("X", "Y"))
    story.worker("A", m.Hello(worker="A", pid=1, task=task))
    assert story.told(m.StateWanted, "A")[0].request == command


# --- modify ---------------------------------------------------------------------------------------------------------

BODIES = {"X": (b"x", b""), "Y": (b"y", b"t")}


def test_strict_waits_for_an_epoch_that_is_about_to_end(story: Story) -> None:
    story.begin("A", expected=5.0)
    command = story.ask(e.ModifyRequested, bodies=BODIES, at=4.5)
    assert story.last == []
    assert story.machine.state == "modifying"
    story.say(e.EpochDone(epoch=0))
    assert story.only(i.UseCode).codes == {
        "X": (m.CodeVersion(1, b"x"),),
        "Y": (m.CodeVersion(1, b"y", b"t"),),
    }
    assert story.only(i.CommandAnswer).command == command


@pytest.mark.parametrize("expected", [None, 60.0])
def test_strict_gives_a_long_epoch_up_and_does_it_again(story: Story, expected: float | None) -> None:
    story.begin("A", expected=expected)
    command = story.ask(e.ModifyRequested, bodies=BODIES, at=4.5)
    assert story.only(i.CancelEpoch).epoch == 0
    assert not story.has(i.CommandAnswer)
    story.say(e.EpochGivenUp(epoch=0))
    assert story.only(i.UseCode).version == 1
    answer = story.only(i.CommandAnswer)
    assert answer == i.CommandAnswer(command, "running", epoch=0, taken={"X": 0, "Y": 0})


def test_strict_gives_an_epoch_up_that_takes_longer_than_expected(story: Story) -> None:
    story.begin("A", expected=5.0)
    command = story.ask(e.ModifyRequested, bodies=BODIES, at=4.5)
    story.say(e.PatienceEnded(command=command))
    assert story.has(i.CancelEpoch)
    story.say(e.EpochGivenUp(epoch=0))
    assert story.only(i.CommandAnswer).command == command


def test_a_modification_that_comes_too_late_is_refused(story: Story) -> None:
    story.begin("A", expected=5.0)
    story.ask(e.ModifyRequested, bodies=BODIES, at=4.5)
    story.say(e.RunOver())
    assert story.has(i.Refuse)


def test_strict_does_a_paused_epoch_again_with_the_new_code(story: Story) -> None:
    story.begin("A")
    story.pause("A")
    command = story.ask(e.ModifyRequested, bodies=BODIES)
    assert story.has(i.CancelEpoch)
    story.say(e.EpochGivenUp(epoch=0))
    assert story.only(i.UseCode).version == 1
    answer = story.only(i.CommandAnswer)
    assert answer == i.CommandAnswer(command, "paused", epoch=0, taken={"X": 0, "Y": 0})


def test_backward_stops_all_switches_all_and_lets_all_go(story: Story) -> None:
    story.begin("A", "B")
    command = story.ask(e.ModifyRequested, bodies=BODIES, consistency="backward")
    orders = {w: story.told(m.PauseOrder, w)[0].order for w in "AB"}
    story.worker("A", m.Stopped(order=orders["A"]))
    assert not story.told(m.SwitchOrder)
    story.worker("B", m.Stopped(order=orders["B"]))
    assert len(story.told(m.SwitchOrder)) == 2
    story.worker("A", m.Switched(version=1, switches=(m.SwitchPoint(1, m.TuplePlace("X", 0, 0, 0, 5)),)))
    assert story.only(i.NoteSwitched).switches[0].place.number == 5
    assert not story.told(m.ResumeOrder)
    story.worker("B", m.Switched(version=1))
    assert len(story.told(m.ResumeOrder)) == 2
    assert story.only(i.CommandAnswer).command == command


def test_none_tells_each_worker_at_once_and_stops_nobody(story: Story) -> None:
    story.begin("A", "B")
    story.ask(e.ModifyRequested, bodies={"X": (b"x", b"")}, consistency="none")
    assert len(story.told(m.SwitchOrder)) == 2
    assert not story.told(m.PauseOrder)


def test_a_task_that_begins_later_gets_every_version_it_lacks(story: Story) -> None:
    story.begin("A")
    for body in (b"1", b"2"):
        story.ask(e.ModifyRequested, bodies={"X": (body, b"")}, consistency="none")
        version = story.told(m.SwitchOrder)[0].version
        story.worker("A", m.Switched(version=version))
    story.task("B", versions={"X": 0})
    assert [c.body for c in story.told(m.Orders, "B")[0].codes["X"]] == [b"1", b"2"]
    story.task("C", versions={"X": 2})
    assert story.told(m.Orders, "C")[0].codes == {}


def test_operators_of_sparks_plan_change_between_epochs(story: Story) -> None:
    story.begin("A", expected=0.5)
    story.ask(e.ModifyRequested, bodies=BODIES, native=("F",), consistency="none")
    assert story.last == []
    story.say(e.EpochDone(epoch=0))
    assert story.only(i.UseCode).native == ("F",)


def test_code_that_a_worker_cannot_take_is_taken_back_and_the_epoch_done_again(story: Story) -> None:
    story.begin("A", "B")
    command = story.ask(e.ModifyRequested, bodies=BODIES, consistency="none")
    story.worker("A", m.Switched(version=1))
    story.worker("B", m.Switched(version=1, error="KeyError: 'n'"))
    assert story.only(i.UseCode).codes == {}
    assert story.only(i.Refuse).command == command
    assert "KeyError" in str(story.only(i.Refuse).error)
    assert story.has(i.CancelEpoch)
    story.say(e.EpochGivenUp(epoch=0))
    story.ask(e.ModifyRequested, bodies=BODIES)
    assert story.only(i.UseCode).version == 2  # a number is never given twice


def test_a_second_modification_has_to_wait(story: Story) -> None:
    story.begin("A")
    story.ask(e.ModifyRequested, bodies=BODIES)
    story.ask(e.ModifyRequested, bodies=BODIES)
    assert "not yet in force" in str(story.only(i.Refuse).error)


# --- hold and fix ---------------------------------------------------------------------------------------------------


def test_a_held_tuple_stops_everybody_until_it_is_decided(story: Story) -> None:
    story.begin("A", "B")
    story.worker("A", held())
    assert len(story.told(m.PauseOrder)) == 2
    assert story.only(i.NoteHeld).held.hold == "h1"
    story.stop_all("A", "B")
    assert story.machine.state == "holding"
    story.ask(e.DecisionMade, hold="h1", kind="retry")
    messages = [type(o.message) for o in story.last if isinstance(o, i.Send) and o.worker == "A"]
    assert messages == [m.Decision, m.ResumeOrder]
    assert story.told(m.ResumeOrder, "B")


def test_a_decision_while_paused_takes_effect_on_resume(story: Story) -> None:
    story.begin("A", "B")
    story.worker("A", held())
    story.stop_all("A", "B")
    story.ask(e.PauseRequested)
    assert story.only(i.CommandAnswer).state == "paused"
    story.ask(e.DecisionMade, hold="h1", kind="skip")
    assert story.told(m.Decision, "A")
    assert not story.told(m.ResumeOrder)
    assert story.only(i.CommandAnswer).note == "takes effect on resume"
    story.ask(e.ResumeRequested)
    assert len(story.told(m.ResumeOrder)) == 2


def test_resuming_a_pause_leaves_what_is_held_held(story: Story) -> None:
    story.begin("A")
    story.worker("A", held())
    story.stop_all("A")
    story.ask(e.PauseRequested)
    story.ask(e.ResumeRequested)
    assert story.only(i.CommandAnswer).state == "holding"
    assert not story.told(m.ResumeOrder)


def test_modify_and_retry(story: Story) -> None:
    story.begin("A")
    story.worker("A", held())
    story.stop_all("A")
    story.ask(e.ModifyRequested, bodies={"Y": (b"new", b"")}, consistency="backward")
    assert story.told(m.SwitchOrder, "A")
    story.worker("A", m.Switched(version=1))
    assert story.only(i.CommandAnswer).state == "holding"
    story.ask(e.DecisionMade, hold="h1", kind="retry")
    assert story.told(m.Decision, "A")[0].kind == "retry"


def test_skip_all_decides_about_others_like_it_and_tells_the_rule(story: Story) -> None:
    story.begin("A", "B", "C")
    for worker, hold, like in (("A", "h1", "v"), ("B", "h2", "v"), ("C", "h3", "other")):
        story.worker(worker, held(hold, like=like, number=len(hold)))
    story.ask(e.DecisionMade, hold="h1", kind="skip-all")
    assert {d.hold for d in story.told(m.Decision)} == {"h1", "h2"}
    assert len(story.told(m.SkipAllDecision)) == 3
    assert list(story.machine.holds.open) == ["h3"]
    story.worker("A", held("h4", like="v", number=9))
    assert story.told(m.Decision, "A")[0].kind == "skip"


def test_a_ruling_stands_when_the_epoch_is_done_again(story: Story) -> None:
    story.begin("A")
    story.worker("A", held())
    story.ask(e.DecisionMade, hold="h1", kind="edit", row=b"new")
    story.say(e.EpochGivenUp(epoch=0, why="an executor died"))
    story.begin("B", attempt="b")
    assert story.told(m.Orders, "B")[0].decisions == (m.TupleDecision(held().place, "edit", b"new"),)


def test_decisions_about_nothing_held_and_edits_without_a_tuple_are_refused(story: Story) -> None:
    story.begin("A")
    story.ask(e.DecisionMade, hold="h9", kind="skip")
    assert "No held tuple 'h9'" in str(story.only(i.Refuse).error)
    story.worker("A", held())
    story.ask(e.DecisionMade, hold="h1", kind="edit")
    assert story.has(i.Refuse)


def test_a_row_that_failed_inside_spark_is_held_between_epochs(story: Story) -> None:
    story.begin()
    story.say(e.EpochGivenUp(epoch=0, why="an expression failed"))
    story.say(e.RowHeld(held=held()))
    assert not story.only(i.Gate).open
    story.ask(e.DecisionMade, hold="h1", kind="skip")
    assert story.only(i.Gate).open


def test_the_holder_vanishes_and_the_others_go_on(story: Story) -> None:
    story.begin("A", "B")
    story.worker("A", held())
    story.stop_all("A", "B")
    story.say(e.WorkerVanished(worker="A"))
    assert story.told(m.ResumeOrder, "B")
    assert story.machine.state == "running"


# --- lost connections, restarts, the end ----------------------------------------------------------------------------


def test_a_dropped_worker_is_waited_for_until_it_is_back_or_gone(story: Story) -> None:
    story.begin("A", "B")
    story.say(e.WorkerDropped(worker="A"))
    story.ask(e.PauseRequested)
    assert [o.worker for o in story.last if isinstance(o, i.Send)] == ["B"]
    story.stop_all("B")
    assert story.machine.state == "pausing"
    task = m.TaskBegun(task="a-A", run="r", epoch=0, attempt="a", operators=("X", "Y"))
    story.worker("A", m.Hello(worker="A", pid=1, task=task))
    story.worker("A", m.Stopped(order=story.told(m.Orders, "A")[0].stop))
    assert story.machine.state == "paused"


def test_where_a_worker_switched_is_noted_once_also_when_it_had_to_say_it_twice(story: Story) -> None:
    story.begin("A")
    story.ask(e.ModifyRequested, bodies={"X": (b"x", b"")}, consistency="none")
    switch = m.SwitchPoint(1, m.TuplePlace("X", 0, 0, 0, 3))
    story.worker("A", m.Switched(version=1, switches=(switch,)))
    task = m.TaskBegun(task="a-A", run="r", epoch=0, attempt="a", operators=("X", "Y"))
    story.say(e.WorkerDropped(worker="A"))
    story.worker("A", m.Hello(worker="A", pid=1, task=task, switches=(switch,)))
    assert not story.has(i.NoteSwitched)
    assert story.told(m.Orders, "A")[0].codes == {}


def test_a_task_of_an_old_attempt_is_told_to_end(story: Story) -> None:
    story.begin("A")
    story.task("B", attempt="older")
    assert story.told(m.Abandon, "B")


def test_decisions_made_before_a_driver_restarted_are_in_the_orders_of_its_tasks(story: Story) -> None:
    skipped = m.TupleDecision(held().place, "skip")
    skip_all = m.SkipAllDecision(operator="X", like="ValueError:1")
    story.say(e.DriverRestarted(skip_all=(skip_all,), decisions=(skipped,)))
    assert story.machine.state == "running"
    story.begin("A")
    orders = story.told(m.Orders, "A")[0]
    assert orders.decisions == (skipped,)
    assert orders.skip_all == (skip_all,)
    with pytest.raises(CommandRefused, match="only before anything else"):
        story.say(e.DriverRestarted())


def test_stop_ends_what_waits_and_everything_after_it_is_refused(story: Story) -> None:
    story.begin("A")
    pause = story.ask(e.PauseRequested)
    stop = story.ask(e.StopRequested)
    assert story.only(i.Refuse).command == pause
    assert story.has(i.CancelEpoch)
    assert story.has(i.EndRun)
    story.ask(e.InspectRequested, operator="X")
    assert "is being stopped" in str(story.only(i.Refuse).error)
    story.say(e.EpochGivenUp(epoch=0))
    story.say(e.RunOver())
    assert story.only(i.CommandAnswer) == i.CommandAnswer(stop, "ended")
    assert story.told(m.Bye, "A")
    story.ask(e.StopRequested)
    assert story.only(i.CommandAnswer).note == "the run had ended"


def test_an_engine_that_contradicts_itself_is_told_so(story: Story) -> None:
    with pytest.raises(CommandRefused, match="none is under way"):
        story.say(e.EpochDone(epoch=3))
    story.begin()
    with pytest.raises(CommandRefused, match="while epoch 0 is under way"):
        story.say(e.EpochBegun(epoch=1, attempt="b"))


def test_a_look_at_one_moment_stops_everybody_and_lets_them_go(story: Story) -> None:
    story.begin("A", "B")
    command = story.ask(e.FreezeRequested)
    assert len(story.told(m.PauseOrder)) == 2
    story.stop_all("A", "B")
    assert story.only(i.CommandAnswer).command == command
    assert not story.has(i.Gate)
    story.say(e.FreezeEnded(command=command))
    assert len(story.told(m.ResumeOrder)) == 2
    assert story.only(i.Gate).open


def test_a_look_leaves_a_pause_as_it_is(story: Story) -> None:
    story.begin("A")
    story.ask(e.PauseRequested)
    story.stop_all("A")
    command = story.ask(e.FreezeRequested)
    assert story.only(i.CommandAnswer).command == command
    story.say(e.FreezeEnded(command=command))
    assert not story.told(m.ResumeOrder)
    assert story.machine.state == "paused"


def test_a_look_that_a_worker_keeps_waiting_is_refused_and_all_go_on(story: Story) -> None:
    story.begin("A", "B")
    command = story.ask(e.FreezeRequested)
    story.say(e.PatienceEnded(command=command))
    assert "stopped in time" in str(story.only(i.Refuse).error)
    assert len(story.told(m.ResumeOrder)) == 2
    assert not story.has(i.CancelEpoch)


def test_without_consistency_a_slow_worker_is_not_waited_for(story: Story) -> None:
    story.begin("A", "B")
    command = story.ask(e.ModifyRequested, bodies={"X": (b"new", b"")}, consistency="none")
    story.worker("A", m.Switched(version=1))
    story.say(e.PatienceEnded(command=command))
    assert "next tuple" in story.only(i.CommandAnswer).note
    assert not story.has(i.CancelEpoch)


def test_a_part_of_an_epoch_that_is_computed_twice_is_noticed(story: Story) -> None:
    story.begin("A", partition=3)
    assert not story.machine.repeated
    story.worker("A", m.TaskEnded(task="a-A"))
    story.task("A", task="again", partition=3)
    assert story.machine.repeated
