"""A worker's end of the control channel: one connection per worker and run, kept between tasks.

The processing thread looks at one attribute, `news`, between tuples: that is the whole cost of a tuple without orders.
A thread of the client reads the socket, sends the figures of `gauge` twice a second, and reconnects when the connection
breaks, with growing pauses; its first message then is the worker's `status`. When the coordinator sends `Bye`, or
cannot be reached for `give_up` seconds, the client is closed.

A forked child does not inherit a client: it starts one when it needs it. Nothing that a forked child does with an
inherited client reaches the parent's connection.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex

from samovar.control import messages as m
from samovar.control.channel import ANSWER_BYTES, CHALLENGE_BYTES, Wire, prove, verify_answer
from samovar.errors import ChannelProblem
from samovar.ids import VERSION

__all__ = ["Client", "WorkerStatus", "client_for", "forget_clients"]

log = logging.getLogger("samovar.control")

READ = 1 << 18
KEEP = 3
"""Clients that a process keeps, of the runs it worked for last. A process that serves more runs in turn reconnects."""


@dataclass
class WorkerStatus:
    """What a worker reports when it reconnects. Set by the processing thread, before it sends."""

    task: m.TaskBegun | None = None
    stopped: int | None = None
    held: m.Held | None = None
    switches: tuple[m.SwitchPoint, ...] = ()


class Client:
    """A connection to the coordinator of a run. `send`, `take` and `wait` are for the processing thread."""

    def __init__(
        self,
        address: tuple[str, int],
        run: str,
        secret: bytes,
        *,
        limit: int = m.FRAME_LIMIT,
        figures_seconds: float = 0.5,
        silence_seconds: float = 15.0,
        give_up: float = 60.0,
        back_off: tuple[float, float] = (0.02, 2.0),
    ) -> None:
        self.news = False
        """Whether there is something to `take`. Reading it costs what an attribute costs."""
        self.address = address
        self.run = run
        self.pid = os.getpid()
        self.worker = f"{socket.gethostname()}-{self.pid}-{token_hex(3)}"
        self.status = WorkerStatus()
        self.gauge: Callable[[], m.TaskProgress | None] | None = None
        """Returns the figures of the task; called on the client's thread, so it must only read."""
        self.on_news: Callable[[], None] | None = None
        """Called on the client's thread when messages have arrived."""
        self.closed = False
        self.why = ""
        """Why it is closed."""
        self._secret = secret
        self._limit = limit
        self._figures_seconds = figures_seconds
        self._silence_seconds = silence_seconds
        self._give_up = give_up
        self._back_off = back_off
        self._inbox: deque[m.ToWorker] = deque()
        self._changed = threading.Condition()
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._wire: Wire[m.ToWorker] | None = None
        _living.add(self)
        self._thread = threading.Thread(target=self._serve, name=f"samovar-client-{run}", daemon=True)
        self._thread.start()

    # --- the processing thread --------------------------------------------------------------------------------------

    def take(self) -> list[m.ToWorker]:
        """The messages that have arrived, in order."""
        self.news = False  # first: a message that arrives from now on sets it again
        taken = []
        while self._inbox:
            taken.append(self._inbox.popleft())
        return taken

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is something to take; False after `timeout`. Raises ChannelProblem when none will come."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: self.news or self.closed, timeout)
        if self.closed and not self.news:
            raise ChannelProblem(f"The coordinator of run {self.run} is gone: {self.why}.")
        return arrived

    def wait_connected(self, timeout: float) -> bool:
        """Wait until the connection stands."""
        with self._changed:
            return (
                self._changed.wait_for(lambda: self._sock is not None or self.closed, timeout)
                and not self.closed
            )

    @property
    def connected(self) -> bool:
        """Whether the connection stands, as far as is known."""
        return self._sock is not None

    def send(self, message: m.Message) -> bool:
        """Send; False when there is no connection. The message is lost then: `status` is sent on reconnecting."""
        with self._lock:
            if self._sock is None or self._wire is None or self.pid != os.getpid():
                return False
            try:
                self._sock.sendall(self._wire.seal(message))
            except OSError as error:
                log.debug("control: %s could not be sent: %s", type(message).__name__, error)
                self._hang_up()
                return False
            return True

    def report(self) -> None:
        """Send the figures of the task, or a sign of life where there are none."""
        gauge = self.gauge
        figures = None
        try:
            figures = gauge() if gauge is not None else None
        except Exception:  # a dictionary changed size meanwhile, for example: the next report has them
            log.debug("control: no figures", exc_info=True)
        self.send(figures or m.Alive())

    def close(self, why: str = "closed") -> None:
        """Send `Bye`, and close for good."""
        self.send(m.Bye(why=why))
        self._finish(why)

    # --- the client's thread ----------------------------------------------------------------------------------------

    def _serve(self) -> None:
        shortest, longest = self._back_off
        pause = shortest
        lost = time.monotonic()
        while not self.closed:
            try:
                self._connect()
                pause = shortest
                self._listen()
            except ChannelProblem as error:
                self._hang_up_safely()
                if not self._met:
                    # another program listens there, or the secret is wrong: trying again does not help
                    self._finish(error.message)
                    return
            except OSError as error:
                log.debug("control: no connection to %s: %s", self.address, error)
                self._hang_up_safely()
            if self._met:
                self._met, lost = False, time.monotonic()
            if time.monotonic() - lost > self._give_up:
                self._finish(f"no connection for {self._give_up:g} s")
                return
            with self._changed:
                self._changed.wait_for(lambda: self.closed, pause)
            pause = min(2 * pause, longest)

    _met = False
    """Whether the last connection got through its handshake."""

    def _connect(self) -> None:
        sock = socket.create_connection(self.address, timeout=5)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            proof, nonce_c, nonce_w = prove(_exactly(sock, CHALLENGE_BYTES), self._secret, self.run)
            sock.sendall(proof)
            answer = _exactly(sock, ANSWER_BYTES, refused=True)
            wire = verify_answer(answer, self._secret, self.run, nonce_c, nonce_w, self._limit)
            sock.settimeout(self._silence_seconds)
            # under the lock, so that messages sent from now on come after the Hello, which has all that was before
            with self._lock:
                sock.sendall(wire.seal(self._hello()))
                self._sock, self._wire = sock, wire
        except BaseException:
            sock.close()
            raise
        self._met = True
        with self._changed:
            self._changed.notify_all()

    def _hello(self) -> m.Hello:
        at = self.status
        return m.Hello(
            worker=self.worker,
            pid=self.pid,
            host=socket.gethostname(),
            samovar=VERSION,
            task=at.task,
            stopped=at.stopped,
            held=at.held,
            switches=at.switches,
        )

    def _listen(self) -> None:
        """Read until the connection ends; figures and signs of life go out in between."""
        sock, wire = self._sock, self._wire
        if sock is None or wire is None:
            return
        received = sent = time.monotonic()
        while not self.closed:
            ready = _readable(sock, self._figures_seconds)
            now = time.monotonic()
            if ready:
                data = sock.recv(READ)
                if not data:
                    raise ConnectionResetError("closed by the coordinator")
                received = now
                self._receive(wire.open(data))
            elif now - received > self._silence_seconds:
                raise ConnectionResetError("the coordinator is silent")
            if now - sent >= self._figures_seconds:
                sent = now
                self.report()

    def _receive(self, messages: list[m.ToWorker]) -> None:
        bye = next((x for x in messages if isinstance(x, m.Bye)), None)
        real = [x for x in messages if not isinstance(x, m.Alive | m.Bye)]
        if real:
            self._inbox.extend(real)
            with self._changed:
                self.news = True
                self._changed.notify_all()
            on_news = self.on_news
            if on_news is not None:
                on_news()
        if bye is not None:
            self._finish(bye.why or "the coordinator closed the connection")

    def _hang_up(self) -> None:
        """The caller holds the lock."""
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads
            self._sock.close()
        self._sock = self._wire = None

    def _hang_up_safely(self) -> None:
        with self._lock:
            self._hang_up()

    def _finish(self, why: str) -> None:
        if self.pid != os.getpid():
            return
        with self._changed:
            if not self.closed:
                self.why = why
            self.closed = True
            self._changed.notify_all()
        self._hang_up_safely()

    def _after_fork(self) -> None:
        """In a forked child: the connection and the thread are the parent's. Close the copy, and send nothing."""
        if self._sock is not None:
            with contextlib.suppress(OSError):
                os.close(self._sock.detach())
        self._sock = self._wire = None
        self._lock, self._changed = threading.Lock(), threading.Condition()
        self._inbox = deque()
        self.news, self.closed, self.why = False, True, "this process was forked from the one that had it"


def _exactly(sock: socket.socket, size: int, *, refused: bool = False) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part and refused:
            raise ChannelProblem(
                "The coordinator refused the handshake: it does not know this run or its secret."
            )
        if not part:
            raise ConnectionResetError("closed during the handshake")
        data += part
    return data


def _readable(sock: socket.socket, seconds: float) -> bool:
    waiter = select.poll()  # not select.select: a process may have more than 1,024 files open
    try:
        waiter.register(sock, select.POLLIN)
    except ValueError:
        raise ConnectionResetError("hung up") from None
    return bool(waiter.poll(seconds * 1000))


_living: weakref.WeakSet[Client] = weakref.WeakSet()


class _Thread(threading.local):
    """The clients of a thread, the one used last at the end. A worker has one thread that processes; in a local run
    (samovar.testing) each thread stands for a worker."""

    def __init__(self) -> None:
        self.clients: dict[tuple[tuple[str, int], str], Client] = {}


_thread = _Thread()


def client_for(address: tuple[str, int], run: str, secret: bytes) -> Client:
    """This thread's client for a run; connects in the background if there is none. Clients of old runs are closed."""
    key = ((address[0], address[1]), run)  # the address is a list, if it came through JSON
    clients = _thread.clients
    client = clients.pop(key, None)
    if client is None or client.closed or client.pid != os.getpid():
        client = Client(key[0], run, secret)
    clients[key] = client  # at the end: the first ones are those not used for longest
    for old in [clients.pop(k) for k in list(clients)[:-KEEP]]:
        old.close("other runs took its place")
    return client


def forget_clients() -> None:
    """Close all clients of this thread."""
    for client in _thread.clients.values():
        client.close("the worker has no more use for it")
    _thread.clients.clear()


def _after_fork() -> None:
    _thread.clients.clear()
    for client in list(_living):
        client._after_fork()


os.register_at_fork(after_in_child=_after_fork)
