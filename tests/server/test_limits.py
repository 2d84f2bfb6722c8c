"""What one person sends or does not read cannot take the server's memory or time from the others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.support import SMALL, TOKEN, Served, serving

from samovar.errors import WorkspaceError
from samovar.server.limits import Limits
from samovar.server.outbox import Outbox
from samovar.server.runs import notebook as notebooks
from samovar.server.runs.notebook import Notebooks

KB = 1000


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = Limits(body=10 * KB, upload=30 * KB, quota=70 * KB)
    with serving(tmp_path_factory.mktemp("workspace"), limits=limits) as served:
        yield served


def parts_of(size: int) -> Iterator[bytes]:
    """A body whose length is not announced."""
    for _ in range(size // KB):
        yield b"x" * KB


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_beyond_the_limit_is_refused(small: Served, announced: bool) -> None:
    body: Any = b'{"name": "' + b"x" * 20 * KB + b'"}' if announced else parts_of(20 * KB)
    answer = small.http.post("/api/workflows", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 413, answer.text
    error = answer.json()["error"]
    assert "at most 10.0 kB" in error["message"]
    assert "--max-body" in error["hint"]
    assert small.json("POST", "/api/workflows", json={"name": "fits"})["workflow"].startswith("fits")


@pytest.mark.parametrize("announced", [True, False])
def test_an_upload_beyond_the_limit_leaves_nothing(small: Served, announced: bool) -> None:
    body: Any = b"x" * 40 * KB if announced else parts_of(40 * KB)
    answer = small.http.put("/api/files/large.csv", content=body)
    assert answer.status_code == 413, answer.text
    assert "--max-upload" in answer.json()["error"]["hint"]
    assert list(small.parts.workspace.files.iterdir()) == []


def test_all_files_together_have_a_limit(small: Served) -> None:
    for name in ("a", "b"):
        small.json("PUT", f"/api/files/{name}.csv", content=b"x" * 30 * KB)
    refused = small.http.put("/api/files/c.csv", content=b"x" * 20 * KB)
    assert refused.status_code == 413
    assert "--quota" in refused.json()["error"]["hint"]
    small.http.delete("/api/files/a.csv").raise_for_status()
    small.json("PUT", "/api/files/c.csv", content=b"x" * 20 * KB)
    for name in ("b", "c"):
        small.http.delete(f"/api/files/{name}.csv").raise_for_status()


def bomb(depth: int) -> str:
    """A few lines that stand for 10 ** depth texts."""
    lines = ["samovar: 1", "name: x", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, depth)]
    return "\n".join([*lines, f"operators: *a{depth - 1}", ""])


def test_aliases_of_aliases_hold_nobody(server: Served) -> None:
    stop, slowest = threading.Event(), [0.0]

    def others() -> None:
        with httpx.Client(
            base_url=server.url, headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False
        ) as http:
            while not stop.is_set():
                before = time.monotonic()
                http.get("/api/workflows").raise_for_status()
                slowest[0] = max(slowest[0], time.monotonic() - before)

    other = threading.Thread(target=others)
    other.start()
    try:
        answer = server.http.post("/api/workflows", json={"name": "bomb", "document": bomb(7)})
    finally:
        stop.set()
        other.join()
    assert answer.status_code == 422, answer.text
    assert "aliases" in answer.json()["error"]["message"]
    assert slowest[0] < 3


# --- people who do not keep up ----------------------------------------------------------------------------------------


def test_what_waits_for_a_slow_reader_is_bounded_by_bytes() -> None:
    async def story() -> None:
        waiting: Outbox[bytes] = Outbox(bytes=10 * KB)
        waiting.put(b"x" * 50 * KB)  # a whole document is one message
        assert waiting.bytes == 50 * KB
        assert await waiting.get() == b"x" * 50 * KB
        for _ in range(10):
            waiting.put(b"x" * KB)
        assert waiting.bytes == 10 * KB
        waiting.put(b"one more")
        assert waiting.bytes == 0
        waiting.put(b"and another")  # nothing is added behind the end
        assert waiting.bytes == 0
        assert await waiting.get() is None

    asyncio.run(story())


def test_what_waits_is_bounded_by_number() -> None:
    async def story() -> None:
        waiting: Outbox[str] = Outbox(messages=3)
        for text in ("a", "b", "c"):
            waiting.put(text)
        assert await waiting.get() == "a"
        waiting.put("d")
        waiting.put("e")
        assert await waiting.get() is None

    asyncio.run(story())


# --- notebooks --------------------------------------------------------------------------------------------------------


def test_a_full_notebook_drops_its_oldest_deeds_and_keeps_its_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "_MOST", 20)
    kept = Notebooks(tmp_path, lambda _: None)
    kept.note("r", "Ana", "look here", {}, 0)
    for i in range(50):
        kept.did("r", {"at": float(i), "by": "Ana", "did": f"deed {i}"})
    entries = kept.read("r")
    assert len(entries) <= 21
    assert [e["text"] for e in entries if e["kind"] == "note"] == ["look here"]
    assert entries[-1]["did"] == "deed 49"
    assert any("the notebook was full" in e.get("did", "") for e in entries)
    monkeypatch.setattr(notebooks, "_MOST", 2)  # notes are never dropped, so they have a limit
    with pytest.raises(WorkspaceError, match="is full"):
        kept.note("r", "Ana", "one more", {}, 0)
    kept.did("r", {"at": 99.0, "by": "Ana", "did": "the last"})
    assert kept.read("r")[-1]["did"] == "the last"


def test_a_document_within_the_limits_is_taken(small: Served) -> None:
    made = small.json("POST", "/api/workflows", json={"name": "ok", "document": SMALL})
    assert made["workflow"] == "ok"
