"""Breakpoints in the state machine: conditions pause where they are met, counts are exact over all workers."""

from __future__ import annotations

import random

import pytest
from tests.control.test_machine import Story

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m


@pytest.fixture
def story() -> Story:
    return Story()


def condition(name: str = "B1", operator: str = "Y") -> m.Breakpoint:
    return m.Breakpoint(name, operator, "amount > 3")


def reached(number: int = 7, name: str = "B1") -> m.Reached:
    return m.Reached(breakpoint=name, place=m.TuplePlace("Y", 0, 0, 0, number))


def test_a_condition_that_is_met_pauses_everybody_and_then_is_seen(story: Story) -> None:
    story.begin("a", "b")
    story.ask(e.BreakRequested, breakpoint=condition())
    assert {o.worker for o in story.last if isinstance(o, i.Send)} == {"a", "b"}
    story.worker("a", m.Armed(breakpoints=("B1",)))
    assert not story.has(i.CommandAnswer)
    story.worker("b", m.Armed(breakpoints=("B1",)))
    assert story.has(i.CommandAnswer)
    story.worker("a", reached())
    told = [type(o.message) for o in story.last if isinstance(o, i.Send) and o.worker == "a"]
    assert told == [m.PauseOrder, m.ReachedNoted]  # it must know that it is paused before it looks on
    assert story.told(m.PauseOrder, "b")
    story.stop_all("a", "b")
    assert story.machine.state == "paused"
    assert [r.place.number for r in story.machine.breaks.at] == [7]
    story.ask(e.ResumeRequested)
    assert story.machine.breaks.at == []


def test_a_number_of_tuples_is_watched_for_before_the_command_returns(story: Story) -> None:
    story.begin("a", "b")
    story.ask(e.BreakRequested, breakpoint=m.Breakpoint("B1", "Y", counts="given"), limit=20)
    for worker in ("a", "b"):
        assert not story.has(i.CommandAnswer)
        story.worker(worker, m.TuplesCounted(breakpoint="B1", used=0))
        assert not story.has(i.CommandAnswer)
        story.worker(worker, m.Armed(breakpoints=("B1",)))
    assert story.has(i.CommandAnswer)


def test_a_tuple_of_an_epoch_that_is_done_again_does_not_pause_twice(story: Story) -> None:
    story.begin("a")
    story.ask(e.BreakRequested, breakpoint=condition())
    story.worker("a", reached())
    story.stop_all("a")
    story.ask(e.ResumeRequested)
    story.say(e.EpochGivenUp(epoch=0))
    story.begin("a", attempt="b")
    assert story.told(m.Orders, "a")[0].breakpoints == (condition(),)
    story.worker("a", reached())
    assert not story.told(m.PauseOrder)
    assert story.told(m.ReachedNoted)
    story.worker("a", reached(8))
    assert story.told(m.PauseOrder)


def test_a_breakpoint_taken_back_is_told_and_no_longer_pauses(story: Story) -> None:
    story.begin("a")
    story.ask(e.BreakRequested, breakpoint=condition())
    story.ask(e.BreakTakenBack, name="B1")
    assert story.told(m.Breakpoints, "a")[0].breakpoints == ()
    story.worker("a", reached())
    assert not story.told(m.PauseOrder)
    assert story.told(m.ReachedNoted)
    story.ask(e.BreakTakenBack, name="B1")
    assert story.has(i.Refuse)


def test_a_number_that_is_behind_is_refused(story: Story) -> None:
    story.say(e.EpochBegun(epoch=1, attempt="a", counts={"Y": (100, 90)}))
    story.ask(e.BreakRequested, breakpoint=m.Breakpoint("B1", "Y", counts="taken"), limit=100)
    assert "has taken 100" in str(story.only(i.Refuse).error)
    story.ask(e.BreakRequested, breakpoint=m.Breakpoint("B2", "Y", counts="given"), limit=91)
    assert story.has(i.CommandAnswer)


def test_a_count_that_an_epoch_of_spark_reaches_pauses_at_its_end(story: Story) -> None:
    story.begin()
    story.ask(e.BreakRequested, breakpoint=m.Breakpoint("B1", "N", counts="taken"), limit=10)
    story.say(e.EpochDone(epoch=0, counts={"N": (12, 12)}))
    assert story.machine.state == "paused"
    assert story.only(i.Gate).open is False
    assert [r.place.number for r in story.machine.breaks.at] == [12]


class Counting:
    """Workers that count as `runtime/worker/breakpoints.py` does, against a machine."""

    def __init__(self, story: Story, workers: int, late: bool) -> None:
        self.story = story
        self.names = [f"w{n}" for n in range(workers)]
        self.used = dict.fromkeys(self.names, 0)
        self.upto = dict.fromkeys(self.names, 0)
        self.armed: set[str] = set()
        self.waiting: set[str] = set()
        self.paused: set[str] = set()
        self.mail: dict[str, list[m.ToWorker]] = {n: [] for n in self.names}
        self.hear(late)

    def hear(self, late: bool = False) -> None:
        for order in self.story.last:
            if isinstance(order, i.Send):
                self.mail[order.worker].append(order.message)

    def say(self, worker: str, message: m.FromWorker) -> None:
        self.story.worker(worker, message)
        self.hear()

    def read(self, name: str) -> None:
        while self.mail[name]:
            message = self.mail[name].pop(0)
            if isinstance(message, m.Breakpoints | m.Orders):
                if message.breakpoints:
                    self.armed.add(name)
                else:
                    self.armed.discard(name)
                    self.waiting.discard(name)
                self.upto[name] = 0
                if name in self.armed:
                    said = m.TuplesCounted(breakpoint="B1", used=self.used[name], wants=name in self.waiting)
                    self.say(name, said)
            elif isinstance(message, m.Credit):
                self.upto[name] = message.upto
                self.waiting.discard(name)
            elif isinstance(message, m.PauseOrder):
                self.paused.add(name)
                self.say(name, m.Stopped(order=message.order))

    def work(self, name: str) -> None:
        """A tuple, if it may."""
        self.read(name)
        if name in self.paused or name in self.waiting:
            return
        if name in self.armed and self.used[name] >= self.upto[name]:
            self.waiting.add(name)
            self.say(name, m.TuplesCounted(breakpoint="B1", used=self.used[name], wants=True))
            return
        self.used[name] += 1


@pytest.mark.parametrize("seed", range(20))
def test_a_count_over_several_workers_stops_them_at_exactly_that_many_tuples(story: Story, seed: int) -> None:
    chance = random.Random(seed)
    workers = chance.randint(1, 5)
    story.begin(*[f"w{n}" for n in range(workers)])
    counting = Counting(story, workers, late=False)
    for _ in range(chance.randint(0, 40)):  # before anybody sets a breakpoint
        counting.work(chance.choice(counting.names))
    limit = sum(counting.used.values()) + chance.randint(1, 200)
    story.ask(e.BreakRequested, breakpoint=m.Breakpoint("B1", "Y", counts="taken"), limit=limit)
    counting.hear()
    ended = 0
    for step in range(20_000):
        if story.machine.state == "paused":
            break
        name = chance.choice(counting.names)
        if step == 30 and len(counting.names) > 1:  # a task ends with credit left
            counting.names.remove(name)
            ended = counting.used.pop(name)
            counting.say(name, m.TaskEnded(task=f"a-{name}", counts={"Y": (ended, 0)}))
            continue
        counting.work(name)
    assert story.machine.state == "paused"
    assert sum(counting.used.values()) + ended == limit
    assert story.machine.breaks.active == {}


def test_a_command_whose_breakpoint_is_gone_before_all_workers_have_it_is_answered(story: Story) -> None:
    story.begin("a", "b")
    counts = m.Breakpoint("B1", "Y", counts="taken")
    command = story.ask(e.BreakRequested, breakpoint=counts, limit=5)
    story.worker("a", m.TaskEnded(task="a-a", counts={"Y": (5, 5)}))  # reached, and b has not confirmed it
    assert story.only(i.CommandAnswer).command == command
    second = story.ask(e.BreakRequested, breakpoint=condition("B2"))
    story.ask(e.BreakTakenBack, name="B2")
    assert second in [one.command for one in story.last if isinstance(one, i.CommandAnswer)]
