"""The bytes on the wire: a handshake of fixed length, then frames. Pure: no sockets here.

Handshake, with `key` the secret of the run (32 random bytes) and `|` concatenation:

    coordinator  ->  SMVR, protocol (1 byte), nonce_c (32)
    worker       ->  SMVR, protocol (1 byte), nonce_w (32),
                     HMAC-SHA256(key, "worker" | protocol | run | nonce_c | nonce_w)
    coordinator  ->  HMAC-SHA256(key, "coordinator" | protocol | run | nonce_w | nonce_c)

Both sides know afterwards that the other one has the secret and answered to this very nonce, so a recorded handshake
cannot be played back. Nothing is decoded and no length is trusted before that.

A frame is its length (4 bytes, big endian), a tag (16 bytes) and a message in MessagePack. The tag is HMAC-SHA256,
cut to 16 bytes, over the frame's number and the message, with a key of this connection and direction: frames cannot
be forged, altered, repeated or reordered. Nothing is encrypted.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from functools import reduce
from operator import or_
from typing import Generic, TypeVar

import msgspec

from samovar.control.messages import FRAME_LIMIT, PROTOCOL, FromWorker, Message, ToWorker
from samovar.errors import ChannelProblem

__all__ = [
    "ANSWER_BYTES",
    "CHALLENGE_BYTES",
    "PROOF_BYTES",
    "Challenge",
    "Wire",
    "new_secret",
    "prove",
    "verify_answer",
]

MAGIC = b"SMVR"
NONCE = 32
TAG = 16
HEAD = struct.Struct(">I")
CHALLENGE_BYTES = len(MAGIC) + 1 + NONCE
PROOF_BYTES = CHALLENGE_BYTES + 32
ANSWER_BYTES = 32

T = TypeVar("T")
_pack = msgspec.msgpack.Encoder().encode


def _decoder(direction: type[T]) -> msgspec.msgpack.Decoder[T]:
    """Decodes the messages of one direction, and refuses all others."""
    return msgspec.msgpack.Decoder(reduce(or_, direction.__subclasses__()))


_from_worker, _to_worker = _decoder(FromWorker), _decoder(ToWorker)


def new_secret() -> bytes:
    """A secret for one run."""
    return secrets.token_bytes(32)


def _mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"\0".join(parts), "sha256")


class Wire(Generic[T]):
    """One side of a connection after the handshake: seals messages, opens frames. Sealing and opening are independent;
    each is for one thread at a time."""

    def __init__(
        self, *, out_key: bytes, in_key: bytes, decoder: msgspec.msgpack.Decoder[T], limit: int = FRAME_LIMIT
    ) -> None:
        self._out_key = out_key
        self._in_key = in_key
        self._decode = decoder.decode
        self._limit = limit
        self._sent = 0
        self._received = 0
        self._buffer = bytearray()

    def seal(self, message: Message) -> bytes:
        """A message as a frame. Frames must leave in the order they were sealed."""
        body = _pack(message)
        if len(body) > self._limit:
            raise ChannelProblem(
                f"Expected a message of at most {self._limit:,} bytes, got {len(body):,} ({type(message).__name__}).",
                hint="Ask for less at once, or raise the limit on both sides.",
            )
        tag = hmac.digest(self._out_key, self._sent.to_bytes(8, "big") + body, "sha256")[:TAG]
        self._sent += 1
        return HEAD.pack(len(body)) + tag + body

    def open(self, data: bytes) -> list[T]:
        """The messages that these bytes complete. Raises ChannelProblem; the connection cannot be used after that."""
        buffer = self._buffer
        buffer += data
        messages: list[T] = []
        at = 0
        while len(buffer) - at >= HEAD.size:
            (length,) = HEAD.unpack_from(buffer, at)
            if length > self._limit:
                raise ChannelProblem(
                    f"Expected a frame of at most {self._limit:,} bytes, got one of {length:,}."
                )
            start = at + HEAD.size + TAG
            if len(buffer) < start + length:
                break
            body = bytes(buffer[start : start + length])
            tag = hmac.digest(self._in_key, self._received.to_bytes(8, "big") + body, "sha256")[:TAG]
            if not hmac.compare_digest(tag, bytes(buffer[at + HEAD.size : start])):
                raise ChannelProblem(
                    "A frame does not match its tag: it was altered, repeated or sealed with another key."
                )
            self._received += 1
            try:
                messages.append(self._decode(body))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise ChannelProblem(f"Expected a message of protocol {PROTOCOL}, got {error}.") from None
            at = start + length
        del buffer[:at]
        return messages


def _keys(secret: bytes, run: str, nonce_c: bytes, nonce_w: bytes) -> tuple[bytes, bytes]:
    """Keys for frames to the coordinator and to the worker."""
    base = _mac(secret, b"keys", run.encode(), nonce_c, nonce_w)
    return _mac(base, b"to-coordinator"), _mac(base, b"to-worker")


def _head(data: bytes, expected: int) -> bytes:
    """The nonce of a challenge or proof."""
    if len(data) != expected or data[: len(MAGIC)] != MAGIC:
        raise ChannelProblem("Expected a Samovar handshake, got other bytes.")
    if data[len(MAGIC)] != PROTOCOL:
        raise ChannelProblem(
            f"Expected protocol {PROTOCOL}, got {data[len(MAGIC)]}.",
            hint="Driver and executors must have the same version of Samovar.",
        )
    return data[len(MAGIC) + 1 : CHALLENGE_BYTES]


def _transcript(who: bytes, run: str, secret: bytes, first: bytes, second: bytes) -> bytes:
    return _mac(secret, who, bytes([PROTOCOL]), run.encode(), first, second)


class Challenge:
    """The coordinator's side of one handshake."""

    def __init__(self) -> None:
        self.nonce = secrets.token_bytes(NONCE)
        self.bytes = MAGIC + bytes([PROTOCOL]) + self.nonce

    def check(self, proof: bytes, secret: bytes, run: str) -> tuple[bytes, bytes]:
        """The answer to a worker's proof, and the worker's nonce. Raises ChannelProblem for a wrong one."""
        nonce = _head(proof[:CHALLENGE_BYTES], CHALLENGE_BYTES)
        expected = _transcript(b"worker", run, secret, self.nonce, nonce)
        if not hmac.compare_digest(expected, proof[CHALLENGE_BYTES:]):
            raise ChannelProblem("A peer does not know the run's secret.")
        return _transcript(b"coordinator", run, secret, nonce, self.nonce), nonce

    def wire(self, nonce: bytes, secret: bytes, run: str, limit: int = FRAME_LIMIT) -> Wire[FromWorker]:
        """The coordinator's end of the connection."""
        up, down = _keys(secret, run, self.nonce, nonce)
        return Wire(out_key=down, in_key=up, decoder=_from_worker, limit=limit)


def prove(challenge: bytes, secret: bytes, run: str) -> tuple[bytes, bytes, bytes]:
    """A worker's proof for a challenge, then both nonces (the coordinator's first)."""
    nonce_c = _head(challenge, CHALLENGE_BYTES)
    nonce_w = secrets.token_bytes(NONCE)
    proof = _transcript(b"worker", run, secret, nonce_c, nonce_w)
    return MAGIC + bytes([PROTOCOL]) + nonce_w + proof, nonce_c, nonce_w


def verify_answer(
    answer: bytes, secret: bytes, run: str, nonce_c: bytes, nonce_w: bytes, limit: int = FRAME_LIMIT
) -> Wire[ToWorker]:
    """The worker's end, once the coordinator has shown that it knows the secret, too."""
    expected = _transcript(b"coordinator", run, secret, nonce_w, nonce_c)
    if not hmac.compare_digest(expected, answer):
        raise ChannelProblem("The coordinator does not know the run's secret.")
    up, down = _keys(secret, run, nonce_c, nonce_w)
    return Wire(out_key=up, in_key=down, decoder=_to_worker, limit=limit)
