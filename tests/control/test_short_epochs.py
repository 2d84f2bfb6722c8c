"""The state machine and the length of epochs: what takes too long is cut, pauses lose little, commands are prompt."""

from __future__ import annotations

from typing import Any

import pytest
from tests.control.test_machine import Story

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.machine import CUTS

BODIES = {"X": (b"x", b"")}


@pytest.fixture
def story() -> Story:
    return Story()


def begun(story: Story, *workers: str, epoch: int = 0, at: float = 100.0, **known: Any) -> None:
    story.say(e.EpochBegun(epoch=epoch, attempt=f"t{at}", at=at, **{"aim": 2.0, **known}))
    for worker in workers:
        story.worker(worker, m.Hello(worker=worker, pid=1))
        story.task(worker, epoch=epoch, attempt=f"t{at}")


def counted(story: Story, at: float, taken: int) -> None:
    story.say(e.OperatorsCounted(taken={"X": taken}, at=at))


# --- epochs that take too long --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "at"), [(1000, 101.0), (400, 101.5), (140, 102.5)])
def test_an_epoch_that_will_take_far_too_long_is_given_up_the_sooner_the_longer_it_would_take(
    story: Story, rows: int, at: float
) -> None:
    begun(story, "A", rows={"X": rows})
    for tenth in range(5, int(10 * (at - 100)), 5):
        counted(story, 100 + tenth / 10, 2 * tenth)  # 20 a second: 50, 20 and 7 seconds
        assert not story.has(i.CancelEpoch)
    counted(story, at, int(20 * (at - 100)))
    order = story.only(i.CancelEpoch)
    assert (order.cause, order.shorter) == ("overrun", True)
    assert order.expected == pytest.approx(rows / 20, rel=0.1)
    assert story.told(m.Abandon, "A")


def test_an_epoch_that_takes_up_to_three_times_its_aim_goes_on(story: Story) -> None:
    begun(story, "A", rows={"X": 100})
    for tenth in range(5, 55, 5):
        counted(story, 100 + tenth / 10, 2 * tenth)
        assert not story.has(i.CancelEpoch)


def test_an_epoch_that_has_done_half_of_its_work_goes_on_however_long_it_takes(story: Story) -> None:
    begun(story, "A", rows={"X": 1000})
    counted(story, 100.5, 100)
    counted(story, 105.0, 600)
    counted(story, 106.0, 601)  # slower all at once
    counted(story, 107.0, 602)
    assert not story.has(i.CancelEpoch)


def test_tuples_of_a_worker_that_has_vanished_are_no_reason_to_cut(story: Story) -> None:
    begun(story, "A", rows={"X": 100})
    counted(story, 100.5, 10)
    counted(story, 102.0, 40)
    story.say(e.OperatorsCounted(taken={}, at=103.0))
    counted(story, 103.5, 30)
    assert not story.has(i.CancelEpoch)


def test_where_rows_are_not_known_three_aims_of_work_are_enough(story: Story) -> None:
    begun(story, "A")
    counted(story, 104.0, 1)  # Spark worked before
    for second in range(105, 111):
        counted(story, second, second)
        assert not story.has(i.CancelEpoch)
    counted(story, 110.5, 110)  # nothing has come since: it may be its last tuple
    assert not story.has(i.CancelEpoch)
    counted(story, 111.0, 111)
    assert story.only(i.CancelEpoch).expected is None


def test_the_time_of_a_pause_does_not_count(story: Story) -> None:
    begun(story, "A", rows={"X": 100})
    counted(story, 100.5, 10)
    story.ask(e.PauseRequested, at=101.0)
    story.stop_all("A")
    counted(story, 200.0, 20)
    assert not story.has(i.CancelEpoch)
    story.resume(200.0)
    story.worker("A", m.WentOn(order=story.told(m.ResumeOrder, "A")[0].order))
    counted(story, 201.0, 40)
    counted(story, 202.0, 60)
    assert not story.has(i.CancelEpoch)
    assert story.machine.clock.worked(202.0) == pytest.approx(3.0)


@pytest.mark.parametrize("wish", ["pause", "hold", "look", "modify"])
def test_nothing_is_cut_while_somebody_has_a_hand_in_it(story: Story, wish: str) -> None:
    begun(story, "A", rows={"X": 1000})
    counted(story, 100.5, 10)
    match wish:
        case "pause":
            story.ask(e.PauseRequested, mode="aligned", at=101.0)
        case "hold":
            story.worker("A", m.Held(hold="h", place=m.TuplePlace("X", 0, 0, 0, 7), error="E", like="E"))
        case "look":
            story.ask(e.FreezeRequested)
        case "modify":
            story.ask(e.ModifyRequested, bodies=BODIES, consistency="none", at=101.0)
            story.worker("A", m.Switched(version=1))
    for second in range(102, 110):
        counted(story, second, second)
        assert not story.has(i.CancelEpoch)


def test_what_cannot_be_shorter_is_not_cut_nor_is_anything_more_than_twice(story: Story) -> None:
    begun(story, "A", aim=None, rows={"X": 1000})
    counted(story, 100.5, 10)
    counted(story, 190.0, 20)
    assert not story.has(i.CancelEpoch)
    story.say(e.EpochDone(epoch=0, counts={}))
    for attempt in range(CUTS + 1):
        at = 200.0 + 100 * attempt
        begun(story, "A", epoch=1, at=at, rows={"X": 1000})
        counted(story, at + 0.5, 10)
        counted(story, at + 3.0, 20)
        assert story.has(i.CancelEpoch) == (attempt < CUTS)
        if story.has(i.CancelEpoch):
            story.say(e.EpochGivenUp(epoch=1))


def test_a_decision_about_a_tuple_keeps_its_epoch_as_long_as_it_is(story: Story) -> None:
    begun(story, "A")
    place = m.TuplePlace("X", 0, 0, 0, 900)
    story.worker("A", m.Held(hold="h", place=place, error="E", like="E"))
    story.ask(e.DecisionMade, hold="h", kind="skip")
    story.worker("A", m.TaskEnded(task="t100.0-A"))
    story.ask(e.PauseRequested, at=100.5)
    assert not story.only(i.CancelEpoch).shorter


# --- epochs in which only Spark works -------------------------------------------------------------------------------


def tasks(
    story: Story, at: float, finished: int, total: int, attempt: str = "t100.0", stage: int = 1
) -> None:
    """Two cores work on a stage."""
    counted = e.StageTasks(finished, min(2, total - finished), total)
    story.say(e.TasksCounted(attempt=attempt, stages={stage: counted}, at=at))


def native(story: Story, *, at: float = 100.0, **known: Any) -> None:
    begun(story, at=at, **{"task_seconds": 1.5, **known})


def test_an_epoch_of_spark_in_which_no_task_finishes_is_given_up(story: Story) -> None:
    """Nobody knows how long it will take."""
    native(story)
    tasks(story, 100.5, 0, 7)
    tasks(story, 101.75, 0, 7)
    assert not story.has(i.CancelEpoch)
    tasks(story, 102.25, 0, 7)
    order = story.only(i.CancelEpoch)
    assert (order.cause, order.shorter, order.expected, order.worked) == ("overrun", True, None, 2.25)


def test_the_time_before_spark_runs_a_stage_does_not_count(story: Story) -> None:
    native(story)
    story.say(e.TasksCounted(attempt="t100.0", stages={}, at=105.0))  # the driver plans
    tasks(story, 106.0, 0, 7)
    tasks(story, 107.25, 0, 7)
    assert not story.has(i.CancelEpoch)
    tasks(story, 107.75, 0, 7)
    assert story.has(i.CancelEpoch)


@pytest.mark.parametrize(("total", "cut"), [(12, False), (60, True)])
def test_finished_tasks_tell_how_long_an_epoch_of_spark_will_take(
    story: Story, total: int, cut: bool
) -> None:
    native(story)
    tasks(story, 100.0, 0, total)
    for second in range(101, 104):
        tasks(story, second, 4 * (second - 100), total)
        if story.has(i.CancelEpoch):
            break
    assert story.has(i.CancelEpoch) == cut
    if cut:
        assert story.only(i.CancelEpoch).expected == pytest.approx(total / 4, rel=0.3)


def test_tasks_that_finished_before_an_epochs_turn_tell_nothing_of_its_rate(story: Story) -> None:
    native(story, expected=2.0, task_seconds=6.0)  # it was ahead, and half of it was done
    tasks(story, 100.5, 20, 100)
    tasks(story, 103.0, 24, 100)
    order = story.only(i.CancelEpoch)
    assert order.expected == pytest.approx(3.0 + 75 * 2.5 / 5)


def test_an_epoch_of_spark_that_has_done_half_of_its_tasks_goes_on(story: Story) -> None:
    native(story, expected=2.0, task_seconds=6.0)
    tasks(story, 100.5, 0, 8)
    for second in range(102, 150, 4):
        tasks(story, second, 4, 8)  # slower all at once
        assert not story.has(i.CancelEpoch)


def test_a_first_epoch_of_many_bytes_is_not_judged_by_its_first_slow_tasks(story: Story) -> None:
    """Java has just started."""
    native(story, task_seconds=8.0)
    tasks(story, 100.5, 0, 40)
    for second in range(101, 108):
        tasks(story, second, second - 100, 40)
        assert not story.has(i.CancelEpoch)
    tasks(story, 109.0, 28, 40)  # then they are quick
    assert not story.has(i.CancelEpoch)


def test_stages_that_have_ended_tell_nothing_of_the_next_one(story: Story) -> None:
    native(story, task_seconds=4.0)
    tasks(story, 100.5, 0, 2)
    tasks(story, 104.0, 1, 2)
    tasks(story, 104.5, 0, 2, stage=2)
    tasks(story, 108.0, 0, 2, stage=2)
    assert not story.has(i.CancelEpoch)


def test_tasks_do_not_count_beside_python_workers_nor_of_another_attempt(story: Story) -> None:
    native(story)
    assert story.machine.counted_by_tasks == "t100.0"
    for second in range(101, 105):
        tasks(story, second, 0, 7, attempt="of the epoch ahead")
        assert not story.has(i.CancelEpoch)
    story.worker("A", m.Hello(worker="A", pid=1))
    story.task("A", attempt="t100.0")
    assert story.machine.counted_by_tasks is None
    for second in range(105, 110):
        tasks(story, second, 0, 7)
        assert not story.has(i.CancelEpoch)


@pytest.mark.parametrize("known", [{"aim": None}, {"task_seconds": None}])
def test_an_epoch_of_spark_that_a_shorter_one_would_not_help_goes_on(
    story: Story, known: dict[str, Any]
) -> None:
    native(story, **known)
    assert story.machine.counted_by_tasks is None
    tasks(story, 101.0, 0, 2)
    tasks(story, 150.0, 0, 2)
    assert not story.has(i.CancelEpoch)


def test_epochs_of_spark_are_cut_twice_in_a_run_at_most(story: Story) -> None:
    for attempt in range(CUTS + 1):
        at = 100.0 * (attempt + 1)
        native(story, at=at)
        tasks(story, at + 0.5, 0, 7, attempt=f"t{at}")
        tasks(story, at + 2.5, 0, 7, attempt=f"t{at}")
        assert story.has(i.CancelEpoch) == (attempt < CUTS)
        if story.has(i.CancelEpoch):
            assert story.machine.counted_by_tasks is None
            story.say(e.EpochGivenUp(epoch=0))


# --- pauses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["direct", "aligned"])
def test_a_pause_does_not_wait_for_an_epoch_of_spark_that_takes_far_too_long(
    story: Story, mode: e.PauseMode
) -> None:
    native(story, task_seconds=3.0)
    tasks(story, 100.25, 0, 40)
    command = story.ask(e.PauseRequested, mode=mode, at=102.5)
    assert not story.has(
        i.CancelEpoch
    )  # it has worked too long for a pause to cancel it, and may be over soon
    tasks(story, 103.0, 0, 40)
    assert not story.has(i.CancelEpoch)
    tasks(story, 103.5, 0, 40)
    assert story.only(i.CancelEpoch).cause == "overrun"
    story.say(e.EpochGivenUp(epoch=0))
    assert story.only(i.CommandAnswer) == i.CommandAnswer(command, "paused")


def test_a_pause_at_the_end_of_an_epoch_that_will_take_long_by_its_tasks_gives_it_up(story: Story) -> None:
    native(story)
    tasks(story, 100.25, 0, 20)
    tasks(story, 101.0, 4, 20)
    story.ask(e.PauseRequested, mode="aligned", at=101.25)
    assert story.only(i.CancelEpoch).cause == "pause"


def cancelled(story: Story, at: float, epoch: int = 0) -> bool:
    """Whether a pause cancels the epoch; then it is resumed."""
    story.ask(e.PauseRequested, at=at)
    order = next((one for one in story.last if isinstance(one, i.CancelEpoch)), None)
    if order is not None:
        assert (order.cause, order.shorter) == ("pause", True)
        story.say(e.EpochGivenUp(epoch=epoch))
        story.ask(e.ResumeRequested)
    return order is not None


def test_an_epoch_that_pauses_have_cancelled_twice_is_let_finish(story: Story) -> None:
    for attempt in range(2):
        begun(story, at=100.0 + attempt)
        assert cancelled(story, 100.3 + attempt)
    begun(story, at=103.0)
    assert not cancelled(story, 103.3)
    assert story.machine.state == "pausing"
    story.say(e.EpochDone(epoch=0))
    assert story.machine.state == "paused"
    story.ask(e.ResumeRequested)
    begun(story, epoch=1, at=110.0)
    assert cancelled(story, 110.3, epoch=1)


def test_a_pause_does_not_cancel_what_has_worked_for_more_than_two_seconds(story: Story) -> None:
    begun(story)
    assert not cancelled(story, 102.5)
    command = story.machine.pending[0]
    story.say(e.PatienceEnded(command=command))
    assert not story.has(i.CancelEpoch)
    assert "when the epoch is over" in story.only(i.CommandAnswer).note


def test_pauses_cancel_but_a_share_of_what_was_committed(story: Story) -> None:
    lost = kept = 0.0
    at = 100.0
    for number in range(60):
        begun(story, epoch=number, at=at)
        story.ask(e.PauseRequested, at=at + 0.7)
        if story.has(i.CancelEpoch):
            lost += 0.7
            story.say(e.EpochGivenUp(epoch=number))
            story.resume(at + 1)
            begun(story, epoch=number, at=at + 1)
        else:
            story.say(e.EpochDone(epoch=number), at=at + 1)
            kept += 1.0
            story.resume(at + 1)
            at += 2
            continue
        story.say(e.EpochDone(epoch=number), at=at + 2)
        kept += 1.0
        at += 3
    assert lost <= 2.0 + 0.3 * kept
    assert lost > 0.25 * kept


def test_a_pause_at_the_end_of_a_long_epoch_that_has_just_begun_gives_it_up(story: Story) -> None:
    begun(story, "A", expected=30.0)
    command = story.ask(e.PauseRequested, mode="aligned", at=101.0)
    assert story.only(i.CancelEpoch).shorter
    story.say(e.EpochGivenUp(epoch=0))
    assert story.only(i.CommandAnswer) == i.CommandAnswer(command, "paused")


@pytest.mark.parametrize(("expected", "at"), [(3.0, 101.5), (None, 101.0), (30.0, 104.0)])
def test_a_pause_at_the_end_waits_for_an_epoch_that_ends_soon_or_has_worked_long(
    story: Story, expected: float | None, at: float
) -> None:
    begun(story, "A", expected=expected)
    story.ask(e.PauseRequested, mode="aligned", at=at)
    assert not story.has(i.CancelEpoch)


# --- commands that come late ----------------------------------------------------------------------------------------


def test_in_the_last_epoch_strict_does_not_wait_for_its_end(story: Story) -> None:
    begun(story, "A", expected=2.0, last=True)
    command = story.ask(e.ModifyRequested, bodies=BODIES, at=101.9)
    assert story.has(i.CancelEpoch)
    story.say(e.PatienceEnded(command=command))
    assert not story.has(i.CommandAnswer)  # it may have come too late
    story.say(e.EpochGivenUp(epoch=0))
    answer = story.only(i.CommandAnswer)
    assert (answer.epoch, answer.taken, answer.late) == (0, {"X": 0}, False)


def test_a_modification_that_the_commit_of_the_last_epoch_overtakes_is_late(story: Story) -> None:
    begun(story, "A", expected=2.0, last=True)
    command = story.ask(e.ModifyRequested, bodies=BODIES, at=101.9)
    story.say(e.EpochDone(epoch=0, counts={"X": (10, 10)}))  # the engine had decided to commit
    answer = story.only(i.CommandAnswer)
    assert (answer.command, answer.late) == (command, True)
    assert not story.has(i.UseCode)
    story.ask(e.ModifyRequested, bodies=BODIES, at=103.0)
    assert story.only(i.CommandAnswer).late
    story.say(e.RunOver())
    story.ask(e.ModifyRequested, bodies=BODIES, at=104.0)
    assert story.has(i.Refuse)


def test_an_operator_that_no_worker_runs_takes_other_code_from_the_start_of_the_last_epoch(
    story: Story,
) -> None:
    begun(story, last=True)
    story.ask(e.ModifyRequested, bodies=BODIES, consistency="none", at=101.0)
    assert story.has(i.CancelEpoch)
    story.say(e.EpochGivenUp(epoch=0))
    assert story.only(i.CommandAnswer).epoch == 0


def test_workers_whose_tasks_end_before_they_switch_make_it_late_in_the_last_epoch(story: Story) -> None:
    begun(story, "A", last=True)
    command = story.ask(e.ModifyRequested, bodies=BODIES, consistency="none", at=101.0)
    story.worker("A", m.TaskEnded(task="t100.0-A"))
    assert not story.has(i.CommandAnswer)
    story.say(e.PatienceEnded(command=command))
    assert not story.has(i.CommandAnswer)
    story.say(e.EpochDone(epoch=0))
    assert story.only(i.CommandAnswer).late


def test_the_answer_says_since_which_epoch_and_tuple_it_is_in_force(story: Story) -> None:
    begun(story, "A", epoch=3, expected=2.0)
    story.ask(e.ModifyRequested, bodies=BODIES, at=101.5)
    assert not story.has(i.CancelEpoch)  # it is about to end
    story.say(e.EpochDone(epoch=3, counts={"X": (1200, 7)}))
    answer = story.only(i.CommandAnswer)
    assert (answer.epoch, answer.taken) == (4, {"X": 1200})
    begun(story, "A", epoch=4, at=103.0)
    story.ask(e.ModifyRequested, bodies=BODIES, consistency="none", at=103.5)
    story.worker("A", m.Switched(version=2))
    answer = story.only(i.CommandAnswer)
    assert (answer.epoch, answer.taken) == (4, {})  # inside: workers know how many
