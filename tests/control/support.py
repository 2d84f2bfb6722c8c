"""Peers and tuple loops for tests of the control channel."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import Queue
from typing import Any

from samovar.control import events as e
from samovar.control import instructions as i
from samovar.control import messages as m
from samovar.control.agent import Agent, TaskAbandoned
from samovar.control.channel import ANSWER_BYTES, CHALLENGE_BYTES, Wire, prove, verify_answer
from samovar.control.client import Client
from samovar.control.coordinator import Coordinator
from samovar.control.desk import Desk

WAIT = 10.0
"""Seconds after which a test gives up on something that should happen at once."""


class Heard:
    """What a coordinator heard, to be waited for."""

    def __init__(self) -> None:
        self.messages: Queue[tuple[str, m.FromWorker]] = Queue()
        self.lost: Queue[tuple[str, str]] = Queue()

    def next(self, kind: type[m.Message]) -> tuple[str, Any]:
        """The next message of a kind; others are passed over."""
        while True:
            worker, message = self.messages.get(timeout=WAIT)
            if isinstance(message, kind):
                return worker, message


@contextmanager
def coordinator(**options: Any) -> Iterator[tuple[Coordinator, Heard]]:
    heard = Heard()
    made = Coordinator(
        "run", lambda w, x: heard.messages.put((w, x)), lambda w, why: heard.lost.put((w, why)), **options
    )
    try:
        yield made, heard
    finally:
        made.close()


@contextmanager
def client(made: Coordinator, **options: Any) -> Iterator[Client]:
    one = Client(made.address, made.run, options.pop("secret", made.secret), **options)
    try:
        yield one
    finally:
        one.close()


def raw(made: Coordinator) -> socket.socket:
    """A connection of somebody who has not said anything yet."""
    sock = socket.create_connection(made.address, timeout=WAIT)
    sock.settimeout(WAIT)
    return sock


def exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError(f"closed after {len(data)} of {size} bytes")
        data += part
    return data


def shaken(made: Coordinator) -> tuple[socket.socket, Wire[m.ToWorker]]:
    """A connection after the handshake, before Hello."""
    sock = raw(made)
    proof, nonce_c, nonce_w = prove(exactly(sock, CHALLENGE_BYTES), made.secret, made.run)
    sock.sendall(proof)
    return sock, verify_answer(exactly(sock, ANSWER_BYTES), made.secret, made.run, nonce_c, nonce_w)


def is_closed(sock: socket.socket) -> bool:
    """Whether the other side closes the connection; waits for it, reading what comes before."""
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


class Recorder:
    """An engine that only notes what it is asked."""

    def __init__(self) -> None:
        self.cancelled: Queue[tuple[int, str]] = Queue()
        self.codes: list[i.UseCode] = []
        self.notes: list[i.NoteHeld | i.NoteDecision | i.NoteSwitched] = []
        self.ended: list[str] = []
        self.noted = threading.Condition()

    def cancel(self, order: i.CancelEpoch) -> None:
        self.cancelled.put((order.epoch, order.why))

    def use_code(self, used: i.UseCode) -> None:
        self.codes.append(used)

    def note(self, note: i.NoteHeld | i.NoteDecision | i.NoteSwitched) -> None:
        with self.noted:
            self.notes.append(note)
            self.noted.notify_all()

    def end(self, why: str) -> None:
        self.ended.append(why)

    def wait_noted(self, kind: type, number: int = 1) -> list[Any]:
        """Wait until so many notes of a kind are there."""
        with self.noted:
            assert self.noted.wait_for(lambda: len(self._of(kind)) >= number, WAIT), self.notes
            return self._of(kind)

    def _of(self, kind: type) -> list[Any]:
        return [n for n in self.notes if isinstance(n, kind)]


class Loop:
    """A tuple loop over numbers: adds them up, with code that is a number to multiply by. Runs in a thread."""

    def __init__(self, desk: Desk, name: str, *, bad: int | None = None, **options: Any) -> None:
        self.client = Client(
            desk.coordinator.address, desk.coordinator.run, desk.coordinator.secret, **options
        )
        self.agent = Agent(self.client, self)
        self.task = m.TaskBegun(task=name, run="run", epoch=0, attempt="a", operators=("X",))
        self.number = 0
        self.total = 0
        self.factor = 1
        self.bad = bad
        self.skipped: list[int] = []
        self.enough = threading.Event()
        self.stopped_by: BaseException | None = None
        self.moved = threading.Event()
        """Set after each tuple: clear it, then wait for it, to see whether the loop goes on."""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        client, agent = self.client, self.agent
        try:
            agent.begin(self.task)
            while not self.enough.is_set():
                if client.news:
                    agent.check()
                self._process()
                self.number += 1
                self.moved.set()
                self.enough.wait(0.0005)
        except TaskAbandoned as error:
            self.stopped_by = error
        finally:
            agent.end()

    def _process(self) -> None:
        value = self.number
        while value == self.bad:
            place = m.TuplePlace("X", 0, 0, 0, self.number)
            held = m.Held(
                hold=self.agent.new_hold(), place=place, error="ValueError: bad", like="ValueError:1"
            )
            decision = self.agent.hold(held)
            if decision.kind == "skip":
                self.skipped.append(value)
                return
            if decision.kind == "edit":
                value = int(decision.row)
            elif self.factor > 1:
                break  # the new code can do it
        self.total += self.factor * value

    # --- what the agent asks ----------------------------------------------------------------------------------------

    def place(self) -> m.TuplePlace:
        return m.TuplePlace("X", 0, 0, 0, self.number)

    def state(self, operator: str) -> tuple[int, bytes]:
        return 0, str(self.total).encode()

    def in_flight(self, operator: str, limit: int) -> tuple[list[bytes], int]:
        return [str(self.number + n).encode() for n in range(min(limit, 5))], max(0, 5 - limit)

    def switch(self, codes: Mapping[str, m.CodeVersion]) -> tuple[m.SwitchPoint, ...]:
        code = codes["X"]
        self.factor = int(code.body)
        return (m.SwitchPoint(code.version, self.place()),)

    def breakpoints(self, standing: tuple[m.Breakpoint, ...]) -> None:
        pass

    def counted(self) -> list[m.TuplesCounted]:
        return []

    def credit(self, breakpoint: str, upto: int) -> None:
        pass

    def counts(self) -> dict[str, tuple[int, int]]:
        return {}

    def figures(self) -> dict[str, m.Figures]:
        return {"X": m.Figures(taken=self.number, given=self.number)}


@contextmanager
def running(
    workers: int = 2, *, bad: int | None = None, **options: Any
) -> Iterator[tuple[Desk, Recorder, list[Loop]]]:
    """A desk with an epoch under way, and loops that work on it."""
    engine = Recorder()
    desk = Desk("run", engine, **options)
    loops: list[Loop] = []
    try:
        assert desk.begin_epoch(0, "a")
        loops += [Loop(desk, f"task{n}", bad=bad if n == 0 else None) for n in range(workers)]
        for loop in loops:
            assert bad is not None or loop.moved.wait(WAIT)
        yield desk, engine, loops
    finally:
        for loop in loops:
            loop.enough.set()
        desk.close()  # those that are paused hear that nobody will resume them
        for loop in loops:
            loop.thread.join(WAIT)
            loop.client.close()


def command(desk: Desk, kind: Callable[..., e.RunCommand], /, **arguments: Any) -> i.CommandAnswer:
    """Hand a command in and wait for its answer."""
    return desk.ask(lambda name: kind(command=name, **arguments)).result(WAIT)
