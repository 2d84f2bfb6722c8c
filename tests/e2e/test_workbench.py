"""The workbench in a real browser, and a server that is killed while people edit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import websockets.sync.client as ws
from pycrdt import Doc, create_sync_message, create_update_message
from tests.server.support import SMALL

from samovar.server.app import STATIC
from samovar.server.documents.document_form import read, shared_form, write
from samovar.server.documents.yjs_protocol import parse

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PATIENCE = float(os.environ.get("SAMOVAR_PATIENCE", "1"))
"""How many times as long as usual a story may take: for a machine that is busy with other things."""


@contextmanager
def workbench(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`samovar serve` as a process, and the link it prints."""
    command = [
        sys.executable,
        "-m",
        "samovar.cli.main",
        "serve",
        "--port",
        "0",
        "--workspace",
        str(folder),
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder.parent)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()


def missing() -> str | None:
    """Why the browser tests cannot run here; None when they can."""
    if shutil.which("node") is None:
        return "Node is not installed (20 or newer is needed)"
    if not (ROOT / "web/node_modules/playwright-core").is_dir():
        return "the packages of web/ are not installed: run `npm ci` there"
    if not (STATIC / "index.html").is_file():
        return "the pages are not built: run `npm run build` in web/"
    if not Path(CHROMIUM).is_file():
        return f"there is no browser at {CHROMIUM}: install Debian's chromium, or name one in CHROMIUM"
    return None


@pytest.mark.slow
@pytest.mark.timeout(640 * PATIENCE)
@pytest.mark.parametrize(
    "story", ["canvas", "workbench", "fraud", "steering", "journey", "restart", "large", "csv"]
)
def test_the_workbench_in_a_browser(tmp_path: Path, story: str) -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with workbench(tmp_path / "workspace", "--master", "local[2]") as (link, _):
        pictures = os.environ.get("SAMOVAR_PICTURES", str(tmp_path / "pictures"))
        code, told = story_told(story, link, pictures)
    assert code == 0, told[-8000:]


def story_told(story: str, link: str, pictures: str) -> tuple[int, str]:
    """The exit code of a story's tests and what they said, also when they had to be ended.

    Each test has a time limit of its own (`watched` in web/e2e/browser.mjs); the one here is for what that cannot end.
    """
    serve = [sys.executable, "-m", "samovar.cli.main", "serve"]
    variables = {
        "SAMOVAR_LINK": link,
        "SAMOVAR_SERVE": json.dumps(serve),
        "SAMOVAR_PICTURES": pictures,
        "CHROMIUM": CHROMIUM,
    }
    process = subprocess.Popen(
        ["node", "--test", "--test-concurrency=1", "--test-reporter=spec", f"e2e/{story}.test.mjs"],
        cwd=ROOT / "web",
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        told, _ = process.communicate(timeout=600 * PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        told, _ = process.communicate()
        told += (
            f"\nThe story {story} was not done in {600 * PATIENCE:.0f} s; above is what it said until then."
        )
    return process.returncode, told


@pytest.mark.slow
def test_a_killed_server_loses_no_edit(tmp_path: Path) -> None:
    doc: Doc[Any] = Doc()
    shared_form(doc)
    folder = tmp_path / "workspace"
    (folder / "workflows" / "shop").mkdir(parents=True)
    with workbench(folder) as (link, process):
        with _room(link) as socket:
            write(doc, SMALL)
            socket.send(create_update_message(doc.get_update()))
            _exchange(socket, doc)  # the answer comes after all that was sent before
        process.kill()
    late: Doc[Any] = Doc()
    with workbench(folder) as (link, _), _room(link) as socket:
        _exchange(socket, late)
    assert read(late) == read(doc)


def _room(link: str) -> ws.ClientConnection:
    address, _, query = link.partition("?")
    return ws.connect(f"{address.replace('http', 'ws', 1)}api/documents/shop?{query}")


def _exchange(socket: ws.ClientConnection, doc: Doc[Any]) -> None:
    """Ask for what is missing and take it."""
    socket.send(create_sync_message(doc))
    while True:
        data = bytes(socket.recv(timeout=30))  # type: ignore[arg-type]
        kind, payload = parse(data)
        if kind == "update":
            doc.apply_update(payload)
            if data[1] == 1:
                return
