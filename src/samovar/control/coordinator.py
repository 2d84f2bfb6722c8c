"""The coordinator's end of the control channel: one listening socket, one thread, any number of workers.

`send` can be called from any thread and never blocks: it hands the frame to the kernel at once, which is what makes a
pause quick; what the kernel does not take is queued, and a peer whose queue outgrows its bound is dropped. Nothing a
peer does, with or without the secret, delays another one: everything is non-blocking, a handshake has to be done in
time, and a peer that completes no message for too long is dropped.

`heard` (for each message) and `lost` (for each worker whose connection ends) are called on the coordinator's
thread, in the order things happened; they must not block.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from samovar.control import messages as m
from samovar.control.channel import PROOF_BYTES, Challenge, Wire, new_secret
from samovar.errors import ChannelProblem, EnvironmentProblem

__all__ = ["Coordinator"]

log = logging.getLogger("samovar.control")

READ = 1 << 18
STRANGERS = 256
"""Peers that may be in the middle of a handshake at once; one more, and the oldest is dropped."""


class _Peer:
    """A connection. `wire` is there after the handshake, `worker` after the first message."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        self.sock = sock
        self.challenge = Challenge()
        self.wire: Wire[m.FromWorker] | None = None
        self.worker = ""
        self.proof = bytearray()
        self.since = now
        self.heard = now
        self.seen = 0
        self.lock = threading.Lock()
        self.queue: deque[memoryview] = deque()
        self.queued = 0
        self.condemned = ""

    def write(self, data: bytes, bound: int) -> bool:
        """Send what the kernel takes, queue the rest; whether there is a rest. The caller holds the lock."""
        if not self.queue:
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                self.condemned = self.condemned or f"the connection broke: {error}"
                return True
            if sent == len(data):
                return False
            data = data[sent:]
        self.queue.append(memoryview(data))
        self.queued += len(data)
        if self.queued > bound:
            self.condemned = self.condemned or f"it does not read: {self.queued:,} bytes wait"
        return True

    def flush(self) -> None:
        """Send what waits, as far as the kernel takes it. The caller holds the lock."""
        while self.queue:
            try:
                sent = self.sock.send(self.queue[0])
            except BlockingIOError:
                return
            self.queued -= sent
            if sent < len(self.queue[0]):
                self.queue[0] = self.queue[0][sent:]
                return
            self.queue.popleft()


class Coordinator:
    """Listens for the workers of one run."""

    def __init__(
        self,
        run: str,
        heard: Callable[[str, m.FromWorker], None],
        lost: Callable[[str, str], None],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        secret: bytes | None = None,
        limit: int = m.FRAME_LIMIT,
        queue_bound: int | None = None,
        handshake_seconds: float = 5.0,
        silence_seconds: float = 15.0,
    ) -> None:
        self.run = run
        self.secret = new_secret() if secret is None else secret
        self._heard = heard
        self._lost = lost
        self._limit = limit
        self._bound = limit + (8 << 20) if queue_bound is None else queue_bound
        self._handshake_seconds = handshake_seconds
        self._silence_seconds = silence_seconds
        self._selector = selectors.DefaultSelector()
        self._peers: dict[str, _Peer] = {}
        self._strangers: dict[_Peer, None] = {}
        self._jobs: deque[_Peer] = deque()
        self._closing = False
        try:
            self._listener = socket.create_server((host, port), backlog=1024)
        except OSError as error:
            raise EnvironmentProblem(
                f"The control channel could not listen at {host}:{port}: {error}.",
                hint="Choose an address of this machine that the executors reach, and a free port.",
            ) from error
        self._listener.setblocking(False)
        self._waker, self._wake = socket.socketpair()
        self._waker.setblocking(False)
        self._wake.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._waker, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name=f"samovar-control-{run}", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def workers(self) -> list[str]:
        """Workers that are connected now."""
        return list(self._peers)

    def send(self, worker: str, message: m.Message) -> bool:
        """Send without blocking; False when the worker is not connected. For any thread."""
        peer = self._peers.get(worker)
        if peer is None or peer.wire is None:
            return False
        with peer.lock:
            if peer.condemned:
                return False
            left = peer.write(peer.wire.seal(message), self._bound)
        if left:
            self._jobs.append(peer)
            self._stir()
        return True

    def close(self, why: str = "the run has ended") -> None:
        """Send `Bye` to all workers, so that none reconnects, and close everything."""
        for worker in self.workers:
            self.send(worker, m.Bye(why=why))
        self._closing = True
        self._stir()
        if threading.current_thread() is not self._thread:
            self._thread.join(10)

    def _stir(self) -> None:
        with contextlib.suppress(OSError):  # full: the thread wakes up anyway; closed: nothing is left to do
            self._wake.send(b"\0")

    # --- the thread -------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        step = min(self._handshake_seconds, self._silence_seconds, 2.0) / 4
        swept = greeted = time.monotonic()
        while not self._closing:
            for key, mask in self._selector.select(step):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._waker:
                    with contextlib.suppress(BlockingIOError):
                        self._waker.recv(4096)
                else:
                    self._attend(key.data, mask)
            while self._jobs:
                self._attend(self._jobs.popleft(), selectors.EVENT_WRITE)
            now = time.monotonic()
            if now - swept >= step:
                swept = now
                self._sweep(now)
            if now - greeted >= self._silence_seconds / 4:
                greeted = now
                for worker in self.workers:  # a broken connection shows only when something is sent
                    self.send(worker, m.Alive())
        self._shut()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no file descriptors left, for example: connections that stand go on
                log.warning("control: a connection could not be accepted: %s", error)
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = _Peer(sock, time.monotonic())
            self._selector.register(sock, selectors.EVENT_READ, peer)
            self._strangers[peer] = None
            if len(self._strangers) > STRANGERS:
                self._drop(next(iter(self._strangers)), "too many handshakes at once")
            with peer.lock:
                peer.write(peer.challenge.bytes, self._bound)

    def _attend(self, peer: _Peer, mask: int) -> None:
        """Read and write as far as possible without blocking; drop the peer if it is broken or misbehaves."""
        try:
            if mask & selectors.EVENT_READ:
                self._read(peer)
            with peer.lock:
                if not peer.condemned:
                    peer.flush()
            if peer.condemned:
                raise ChannelProblem(peer.condemned)
            if peer.sock.fileno() >= 0:
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.queue else 0)
                self._selector.modify(peer.sock, wanted, peer)
        except (ChannelProblem, OSError) as error:
            self._drop(peer, str(error))
        except Exception:  # whatever one peer causes, the others are served
            log.exception("control: a peer is dropped")
            self._drop(peer, "an error of the coordinator")

    def _read(self, peer: _Peer) -> None:
        try:
            data = peer.sock.recv(READ)
        except BlockingIOError:
            return
        if not data:
            raise ChannelProblem("the connection was closed")
        if peer.wire is None:
            peer.proof += data
            if len(peer.proof) < PROOF_BYTES:
                return
            data = self._admit(peer)
        assert peer.wire is not None
        messages = peer.wire.open(data)
        peer.seen += len(data)
        # a large message that keeps arriving is a sign of life; a byte now and then is not
        if messages or peer.seen >= READ:
            peer.heard, peer.seen = time.monotonic(), 0
        for message in messages:
            self._hear(peer, message)

    def _admit(self, peer: _Peer) -> bytes:
        """Check the proof; returns the bytes that came after it."""
        proof, rest = bytes(peer.proof[:PROOF_BYTES]), bytes(peer.proof[PROOF_BYTES:])
        answer, nonce = peer.challenge.check(proof, self.secret, self.run)
        with peer.lock:
            peer.write(answer, self._bound)
            peer.wire = peer.challenge.wire(nonce, self.secret, self.run, self._limit)
        peer.proof.clear()
        return rest

    def _hear(self, peer: _Peer, message: m.FromWorker) -> None:
        if isinstance(message, m.Hello):
            if peer.worker and peer.worker != message.worker:
                raise ChannelProblem(f"Worker {peer.worker} presented itself as {message.worker}.")
            before = self._peers.get(message.worker)
            peer.worker = message.worker
            self._peers[message.worker] = peer
            self._strangers.pop(peer, None)
            if before is not None and before is not peer:
                before.worker = ""  # the worker is connected: the end of its old connection is not reported
                self._drop(before, "it reconnected")
        elif not peer.worker:
            raise ChannelProblem(f"Expected Hello, got {type(message).__name__}.")
        if not isinstance(message, m.Alive):
            self._heard(peer.worker, message)

    def _sweep(self, now: float) -> None:
        """Drop peers whose handshake takes too long, and workers that are silent."""
        for peer in list(self._strangers):
            if now - peer.since > self._handshake_seconds:
                self._drop(peer, "its handshake took too long")
        for peer in list(self._peers.values()):
            if now - peer.heard > self._silence_seconds:
                self._drop(peer, f"it was silent for {self._silence_seconds:g} s")

    def _drop(self, peer: _Peer, why: str) -> None:
        if peer.sock.fileno() < 0:
            return
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(peer.sock)
        with peer.lock:
            peer.condemned = peer.condemned or why
            peer.sock.close()
            peer.queue.clear()
        self._strangers.pop(peer, None)
        log.debug("control %s: %s dropped: %s", self.run, peer.worker or "a stranger", why)
        if peer.worker and self._peers.get(peer.worker) is peer:
            del self._peers[peer.worker]
            self._lost(peer.worker, why)

    def _shut(self) -> None:
        for peer in [*self._peers.values(), *self._strangers]:
            peer.worker = ""
            with peer.lock:
                with contextlib.suppress(OSError):
                    peer.flush()
                peer.sock.close()
        self._peers.clear()
        self._strangers.clear()
        self._selector.close()
        for sock in (self._listener, self._waker, self._wake):
            sock.close()
