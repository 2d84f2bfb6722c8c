"""A worker's end: cheap to look at, back after a lost connection, and not shared with forked children."""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from typing import Any

import pytest
from tests.control.support import WAIT, Heard, client, coordinator

from samovar.control import messages as m
from samovar.control.client import KEEP, Client, client_for, forget_clients
from samovar.control.coordinator import Coordinator
from samovar.errors import ChannelProblem

TASK = m.TaskBegun(task="t1", run="run", epoch=2, attempt="a", operators=("X",))


def break_connection(one: Client) -> None:
    """As a network would: both directions are gone, and nobody said so."""
    assert one.wait_connected(WAIT)  # its Hello is heard before it knows that it is connected
    assert one._sock is not None
    one._sock.shutdown(socket.SHUT_RDWR)


def test_nothing_is_new_until_something_comes() -> None:
    with coordinator() as (made, heard), client(made) as one:
        heard.next(m.Hello)
        assert not one.news
        assert not one.wait(0.001)
        made.send(one.worker, m.PauseOrder(order=1))
        made.send(one.worker, m.ResumeOrder(order=2))
        assert one.wait(WAIT)
        got: list[m.ToWorker] = []
        while len(got) < 2:
            assert one.wait(WAIT)
            got += one.take()
        assert got == [m.PauseOrder(order=1), m.ResumeOrder(order=2)]
        assert not one.news


def test_after_a_drop_it_is_back_with_all_that_stands() -> None:
    with coordinator() as (made, heard), client(made) as one:
        heard.next(m.Hello)
        one.status.task, one.status.stopped = TASK, 5
        break_connection(one)
        assert heard.lost.get(timeout=WAIT)[0] == one.worker
        worker, hello = heard.next(m.Hello)
        assert (worker, hello.task, hello.stopped) == (one.worker, TASK, 5)
        made.send(one.worker, m.PauseOrder(order=6))
        assert one.wait(WAIT)


def test_it_waits_for_a_coordinator_that_comes_back_at_the_same_address() -> None:
    heard = Heard()

    def start(port: int, secret: bytes | None = None) -> Coordinator:
        return Coordinator(
            "run",
            lambda w, x: heard.messages.put((w, x)),
            lambda w, why: heard.lost.put((w, why)),
            port=port,
            secret=secret,
        )

    first = start(0)
    port, secret = first.address[1], first.secret
    with client(first, back_off=(0.005, 0.05)) as one:
        heard.next(m.Hello)
        first.send = lambda worker, message: False  # type: ignore[method-assign]  # it dies without a goodbye
        first.close()
        second = start(port, secret)
        try:
            assert heard.next(m.Hello)[0] == one.worker
        finally:
            second.close()


def test_goodbye_means_not_to_come_back() -> None:
    with coordinator() as (made, heard), client(made) as one:
        heard.next(m.Hello)
        made.close("the run has ended")
        with pytest.raises(ChannelProblem, match="the run has ended"):
            one.wait(WAIT)
        assert one.closed


def test_it_gives_up_when_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    one = Client(address, "run", bytes(32), give_up=0.05, back_off=(0.005, 0.01))
    with pytest.raises(ChannelProblem, match=r"no connection for 0\.05 s"):
        one.wait(WAIT)
    assert not one.send(m.Alive())


def test_figures_come_at_least_twice_a_second_without_the_processing_thread() -> None:
    with coordinator() as (made, heard), client(made) as one:
        one.gauge = lambda: m.TaskProgress(task="t", at=0.0, operators={"X": m.Figures(taken=3)})
        heard.next(m.Hello)
        assert one._figures_seconds <= 0.5
        assert heard.next(m.TaskProgress)[1].operators["X"].taken == 3
        heard.next(m.TaskProgress)


def test_figures_that_cannot_be_read_just_now_harm_nothing() -> None:
    def broken() -> m.TaskProgress:
        raise RuntimeError("dictionary changed size during iteration")

    with coordinator() as (made, heard), client(made, figures_seconds=0.01) as one:
        one.gauge = broken
        heard.next(m.Hello)
        made.send(one.worker, m.PauseOrder(order=1))
        assert one.wait(WAIT)


def test_a_process_has_one_client_for_a_run_and_keeps_few() -> None:
    try:
        with coordinator() as (made, heard):
            first = client_for(made.address, "run", made.secret)
            heard.next(m.Hello)
            assert client_for(made.address, "run", made.secret) is first
            others = [client_for(made.address, f"other{n}", made.secret) for n in range(KEEP)]
            assert first.closed
            assert len({id(o) for o in others}) == KEEP
            assert client_for(made.address, "run", made.secret) is not first
    finally:
        forget_clients()


def _child(address: Any, secret: bytes, inherited: Client, results: Any) -> None:
    sent = inherited.send(m.TaskEnded(task="from the child"))
    own = client_for(address, "run", secret)
    own.wait_connected(WAIT)
    own.send(m.TaskEnded(task="the child's own"))
    results.put((sent, inherited.closed, own is inherited, own.worker))
    results.close()
    results.join_thread()
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_client_of_its_own_and_leaves_the_parents_alone() -> None:
    context = multiprocessing.get_context("fork")
    try:
        with coordinator() as (made, heard):
            parent = client_for(made.address, "run", made.secret)
            heard.next(m.Hello)
            results = context.Queue()
            child = context.Process(target=_child, args=(made.address, made.secret, parent, results))
            child.start()
            sent, closed, same, worker = results.get(timeout=WAIT)
            child.join(WAIT)
            assert (sent, closed, same) == (False, True, False)
            assert heard.next(m.TaskEnded) == (worker, m.TaskEnded(task="the child's own"))
            assert heard.lost.get(timeout=WAIT)[0] == worker  # the child is gone, and that is noticed
            assert parent.send(m.TaskEnded(task="the parent's"))
            assert heard.next(m.TaskEnded) == (parent.worker, m.TaskEnded(task="the parent's"))
    finally:
        forget_clients()


def test_many_threads_may_send_at_once() -> None:
    with coordinator() as (made, heard), client(made) as one:
        heard.next(m.Hello)
        threads = [
            threading.Thread(target=lambda n=n: [one.send(m.WentOn(order=n)) for _ in range(50)])
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        got = [heard.next(m.WentOn)[1].order for _ in range(400)]
        for thread in threads:
            thread.join(WAIT)
        assert sorted(got) == sorted(n for n in range(8) for _ in range(50))
