"""A door to a run for people in other processes: requests and replies over HTTP, on loopback.

A visitor posts the name of a command and its arguments, in MessagePack, with the run's name and secret as user and
password. The secret lies in a file that only the user can read. Each request has a connection and a thread, so that
visitors do not wait for each other; what a command does is up to the `answer` of the door.

A peer that is silent, sends nonsense or asks for too much cannot hold up the run: it is dropped after `SILENCE`
seconds, no body is read before its secret is checked, and at most `VISITORS` connections are open at once. Peers
without the secret can use these up, so that nobody can attach; the run goes on.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import json
import logging
import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any

import msgspec

from samovar import errors
from samovar.control.messages import FRAME_LIMIT
from samovar.errors import ChannelProblem, RecordingError, SamovarError

__all__ = ["ADDRESS", "Door", "Visit", "read_address"]

log = logging.getLogger("samovar.control")

ADDRESS = "attach.json"
"""The file in a recording with the address and the secret of its run."""
VISITORS = 32
"""Connections that are open at once. People at prompts need one each, and only while a command is carried out."""
SILENCE = 5.0
"""Seconds a peer on the same machine may take to send or to read the next bytes."""


class Reply(msgspec.Struct, frozen=True):
    """What a command returned, or its error: the name of the class, the text and the hint."""

    value: Any = None
    error: tuple[str, str, str | None] | None = None


class Door(ThreadingTCPServer):
    """Listens for the visitors of one run, on loopback."""

    daemon_threads = True

    def __init__(self, run: str, answer: Callable[[str, dict[str, Any]], Any], folder: Path) -> None:
        """`answer` carries out a command on the thread of its request, and returns plain data. The address goes into
        a file in `folder`."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.run = run
        self.secret = secrets.token_bytes(32)
        self._answer = answer
        self._free = threading.BoundedSemaphore(VISITORS)
        self._closed = False
        self._file = folder / ADDRESS
        try:
            self._file.unlink(missing_ok=True)
            with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                host, port = self.address
                json.dump({"host": host, "port": port, "run": run, "secret": self.secret.hex()}, file)
        except BaseException:
            self.server_close()
            raise
        self._thread = threading.Thread(target=self._serve, name=f"samovar-door-{run}", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self.socket.getsockname()
        return host, port

    def close(self) -> None:
        """Let nobody in any more. Requests that are being carried out still get their replies."""
        self._closed = True
        self._file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a connection wakes the thread that waits for visitors
            socket.create_connection(self.address, SILENCE).close()
        self._thread.join(SILENCE)

    def carry_out(self, request: bytes) -> bytes:
        """The reply to a request."""
        try:
            command, arguments = msgspec.msgpack.decode(request, type=tuple[str, dict[str, Any]])
            reply = msgspec.msgpack.encode(Reply(self._answer(command, arguments)))
            if len(reply) > FRAME_LIMIT:
                raise ChannelProblem(
                    f"Expected a reply of at most {FRAME_LIMIT:,} bytes, got {len(reply):,}.",
                    hint="Ask for less at once.",
                )
            return reply
        except Exception as error:
            log.debug("door of %s: a request failed", self.run, exc_info=True)
            text, hint = (error.text, error.hint) if isinstance(error, SamovarError) else (str(error), None)
            return msgspec.msgpack.encode(Reply(error=(type(error).__name__, text, hint)))

    def _serve(self) -> None:
        with self:
            while not self._closed:
                self.handle_request()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("door of %s: a visitor is gone: %r", self.run, sys.exception())


class _Handler(BaseHTTPRequestHandler):
    server: Door
    timeout = SILENCE

    def do_POST(self) -> None:
        """Check the visitor, then carry out its request. Without a body nothing is asked but to be let in."""
        door = self.server
        shown = self.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(shown, _credentials(door.run, door.secret).encode()):
            self.send_error(401)
            return
        length = int(self.headers.get("Content-Length", 0))
        if not 0 <= length <= FRAME_LIMIT:
            self.send_error(413)
            return
        reply = door.carry_out(self.rfile.read(length)) if length else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("door of %s: " + format, self.server.run, *args)


class Visit:
    """A visitor of a run. For any thread; nothing is kept open between two requests."""

    def __init__(self, address: tuple[str, int], run: str, secret: bytes) -> None:
        """Raises ChannelProblem when nobody listens at the address, or the visitor is not let in."""
        self.run = run
        self._address = address
        self._headers = {"Authorization": _credentials(run, secret)}
        try:
            self._post(b"")
        except ConnectionRefusedError as error:
            raise ChannelProblem(
                f"Expected run {run} at {address[0]}:{address[1]}, found nobody: {error}.",
                hint="Its process is gone: `samovar run --resume` goes on with it.",
            ) from None
        except (OSError, HTTPException) as error:
            raise ChannelProblem(f"Run {run} did not let us in: {error}.") from None

    def ask(self, command: str, **arguments: Any) -> Any:
        """What a command returns. Raises the error that it raised in the run's process, as far as it is Samovar's."""
        try:
            reply = self._post(msgspec.msgpack.encode((command, arguments)))
        except ConnectionRefusedError:
            raise ChannelProblem(
                f"Run {self.run} has ended.", hint="`samovar debug` looks at what it left."
            ) from None
        except (OSError, HTTPException) as error:
            raise ChannelProblem(f"The connection to run {self.run} broke: {error}.") from None
        if reply.error is not None:
            raise _as_raised(*reply.error)
        return reply.value

    def _post(self, body: bytes) -> Reply:
        connection = HTTPConnection(*self._address, timeout=SILENCE)
        with contextlib.closing(connection):
            connection.connect()
            if body:
                connection.sock.settimeout(None)  # a command may wait for the run
            connection.request("POST", "/", body, self._headers)
            response = connection.getresponse()
            content = response.read(FRAME_LIMIT)
        if response.status != 200:
            raise HTTPException(response.reason)
        return msgspec.msgpack.decode(content, type=Reply) if content else Reply()


def read_address(folder: Path) -> tuple[tuple[str, int], str, bytes]:
    """Where a run can be visited: address, name, secret. Raises RecordingError when it cannot."""
    try:
        content = json.loads((folder / ADDRESS).read_text())
        return (content["host"], content["port"]), content["run"], bytes.fromhex(content["secret"])
    except FileNotFoundError:
        raise RecordingError(
            f"Expected a run that goes on, got {folder.name}, which does not.",
            hint=f"`samovar debug {folder.name}` travels in it; `samovar run --resume {folder.name}` goes on with it.",
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise RecordingError(f"The address of run {folder.name} cannot be read: {error}.") from None


def _credentials(run: str, secret: bytes) -> str:
    return "Basic " + base64.b64encode(f"{run}:{secret.hex()}".encode()).decode()


def _as_raised(kind: str, text: str, hint: str | None) -> SamovarError:
    """An error of the run's process as one of this process."""
    known: type[SamovarError] = getattr(errors, kind, SamovarError)
    error = known.__new__(known)
    SamovarError.__init__(error, text, hint=hint)  # the constructors of kinds take other arguments
    return error
