"""A door to a run for people in other processes: requests and replies over a loopback socket.

The handshake and the frames are those of the workers' channel (`channel.py`), with a secret of its own that lies in a
file only the user can read. Each visitor has a thread, and requests of one visitor are carried out one after the other;
several visitors do not wait for each other. What a request means is up to `answer`.

A visitor who is gone, hangs or talks nonsense harms nobody: its thread ends, or waits for it alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from samovar.control.channel import (
    ANSWER_BYTES,
    CHALLENGE_BYTES,
    PROOF_BYTES,
    Challenge,
    Wire,
    new_secret,
    prove,
    verify_answer,
    wire_with,
)
from samovar.control.messages import FRAME_LIMIT, Message
from samovar.errors import ChannelProblem, RecordingError

__all__ = ["ADDRESS", "Door", "Reply", "Request", "Visit", "read_address"]

log = logging.getLogger("samovar.control")

ADDRESS = "attach.json"
"""The file in a recording that says where its run can be visited."""
VISITORS = 32
HANDSHAKE = 5.0
READ = 1 << 18


class Request(Message, tag="request", frozen=True, kw_only=True):
    """What a visitor wants: a name, and arguments that only the run itself unpickles."""

    do: str
    body: bytes = b""


class Reply(Message, tag="reply", frozen=True, kw_only=True):
    """What came of it. With an `error`, its fields as plain data."""

    body: bytes = b""
    error: dict[str, str | None] | None = None


_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


class Door:
    """Listens for the visitors of one run, on loopback."""

    def __init__(self, run: str, answer: Callable[[Request], Reply], folder: Path) -> None:
        """`answer` is called on a visitor's thread and must not raise. The address goes into a file in `folder`."""
        self.run = run
        self.secret = new_secret()
        self._answer = answer
        self._visitors: set[socket.socket] = set()
        self._busy: set[socket.socket] = set()
        self._turn = threading.Lock()
        self._closed = threading.Event()
        self._file = folder / ADDRESS
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        try:
            self._write()
        except BaseException:
            self._listener.close()
            raise
        self._thread = threading.Thread(target=self._serve, name=f"samovar-door-{run}", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    def _write(self) -> None:
        told = {
            "host": self.address[0],
            "port": self.address[1],
            "run": self.run,
            "secret": self.secret.hex(),
        }
        self._file.unlink(missing_ok=True)
        with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({**told, "pid": os.getpid()}, file)

    def close(self) -> None:
        """Nobody can visit any more; those who are there are sent away, after the answer they wait for."""
        with self._turn:
            self._closed.set()
            visitors = list(self._visitors - self._busy)
        self._file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in visitors:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                if self._closed.is_set():
                    return
                log.debug("door of %s: a visitor could not be let in", self.run, exc_info=True)
                continue
            with self._turn:
                full = self._closed.is_set() or len(self._visitors) >= VISITORS
                if not full:
                    self._visitors.add(sock)
            if full:
                sock.close()
                continue
            threading.Thread(
                target=self._receive, args=(sock,), name=f"samovar-visitor-{self.run}", daemon=True
            ).start()

    def _receive(self, sock: socket.socket) -> None:
        try:
            with sock:
                wire = self._greet(sock)
                while True:
                    data = sock.recv(READ)
                    if not data:
                        return
                    for request in wire.open(data):
                        if not self._carry_out(sock, wire, request):
                            return
        except (ChannelProblem, OSError) as error:
            log.debug("door of %s: a visitor is gone: %s", self.run, error)
        finally:
            with self._turn:
                self._visitors.discard(sock)

    def _carry_out(self, sock: socket.socket, wire: Wire[Request], request: Request) -> bool:
        """Answer a request; False when it was the last."""
        with self._turn:
            if self._closed.is_set():
                return False
            self._busy.add(sock)
        try:
            sock.sendall(self._sealed(wire, self._answer(request)))
        finally:
            with self._turn:
                self._busy.discard(sock)
        return not self._closed.is_set()

    def _sealed(self, wire: Wire[Request], reply: Reply) -> bytes:
        try:
            return wire.seal(reply)
        except ChannelProblem as problem:  # too large
            return wire.seal(
                Reply(error={"type": "ChannelProblem", "message": problem.message, "hint": problem.hint})
            )

    def _greet(self, sock: socket.socket) -> Wire[Request]:
        sock.settimeout(HANDSHAKE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        challenge = Challenge()
        sock.sendall(challenge.bytes)
        answer, nonce = challenge.check(_exactly(sock, PROOF_BYTES), self.secret, self.run)
        sock.sendall(answer)
        sock.settimeout(None)
        return wire_with(_requests, self.secret, self.run, (challenge.nonce, nonce), host=True)


class Visit:
    """A visitor's end. For one thread at a time."""

    def __init__(self, address: tuple[str, int], run: str, secret: bytes) -> None:
        self.run = run
        try:
            self._sock = socket.create_connection(address, timeout=HANDSHAKE)
        except OSError as error:
            raise ChannelProblem(
                f"Expected run {run} at {address[0]}:{address[1]}, found nobody: {error}.",
                hint="Its process is gone: `samovar run --resume` goes on with it.",
            ) from None
        try:
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            proof, nonce_c, nonce_w = prove(_exactly(self._sock, CHALLENGE_BYTES), secret, run)
            self._sock.sendall(proof)
            verify_answer(_exactly(self._sock, ANSWER_BYTES), secret, run, nonce_c, nonce_w)
            self._wire = wire_with(_replies, secret, run, (nonce_c, nonce_w), host=False, limit=FRAME_LIMIT)
            self._sock.settimeout(None)
        except (OSError, EOFError) as error:
            self._sock.close()
            raise ChannelProblem(f"Run {run} did not let us in: {error}.") from None
        except BaseException:
            self._sock.close()
            raise

    def ask(self, do: str, **arguments: Any) -> Reply:
        """Ask for something and wait for the reply."""
        try:
            self._sock.sendall(self._wire.seal(Request(do=do, body=pickle.dumps(arguments))))
            while True:
                data = self._sock.recv(READ)
                if not data:
                    raise ChannelProblem(
                        f"Run {self.run} has ended.", hint="`samovar debug` looks at what it left."
                    )
                replies = self._wire.open(data)
                if replies:
                    return replies[0]
        except OSError as error:
            raise ChannelProblem(f"The connection to run {self.run} broke: {error}.") from None

    def close(self) -> None:
        """Leave. The run goes on as it is."""
        self._sock.close()


def read_address(folder: Path) -> tuple[tuple[str, int], str, bytes]:
    """Where a run can be visited: address, name, secret. Raises RecordingError when it cannot."""
    try:
        told = json.loads((folder / ADDRESS).read_text())
        return (told["host"], told["port"]), told["run"], bytes.fromhex(told["secret"])
    except FileNotFoundError:
        raise RecordingError(
            f"Expected a run that goes on, got {folder.name}, which does not.",
            hint=f"`samovar debug {folder.name}` travels in it; `samovar run --resume {folder.name}` goes on with it.",
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise RecordingError(f"The address of run {folder.name} cannot be read: {error}.") from None


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError("the connection was closed")
        data += part
    return data
