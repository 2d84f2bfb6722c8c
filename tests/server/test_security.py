"""No request works without the token, none from another site's page, and no path leads out of the workspace."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets.sync.client as ws
from tests.server.support import TOKEN, Served, filled, sockets
from websockets.exceptions import ConnectionClosed, InvalidStatus

from samovar.errors import OutsideWorkspace
from samovar.server.documents.confinement import confine
from samovar.server.workspace import inside


def test_every_route_is_refused_without_the_token(server: Served) -> None:
    tried = filled(server.app, {"path": "a/b.csv", "number": "1"})
    tried += [("WEBSOCKET", path) for path in sockets(server.app)]
    assert len(tried) > 35
    assert ("WEBSOCKET", "/api/documents/x") in tried
    with httpx.Client(base_url=server.url, trust_env=False) as stranger:
        for method, path in tried:
            if method == "WEBSOCKET":
                with pytest.raises(InvalidStatus) as refused:
                    ws.connect(f"ws://127.0.0.1:{server.port}{path}")
                assert refused.value.response.status_code in (401, 403), path
            else:
                assert stranger.request(method, path).status_code == 401, (method, path)
                wrong = stranger.request(method, path, headers={"authorization": "Bearer nonsense"})
                assert wrong.status_code == 401, (method, path)
                assert stranger.request(method, path, params={"token": ""}).status_code == 401


def test_an_unknown_path_tells_a_stranger_nothing(server: Served) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as stranger:
        assert stranger.get("/nowhere").status_code == 401
    assert server.http.get("/nowhere").status_code == 404


def test_a_script_that_is_not_there_is_not_found_whether_the_pages_are_built_or_not(server: Served) -> None:
    assert server.http.get("/assets/none.js").status_code == 404


def test_the_printed_link_sets_a_cookie_and_takes_the_token_out_of_the_address(server: Served) -> None:
    with httpx.Client(base_url=server.url, trust_env=False) as browser:
        answer = browser.get("/", params={"token": TOKEN, "workflow": "a"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/?workflow=a"
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert TOKEN not in cookie
        assert browser.get("/api/workflows").status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1.evil.example"]
)
def test_other_sites_pages_are_refused_though_they_have_the_cookie(server: Served, origin: str) -> None:
    answer = server.http.post("/api/workflows", json={"name": "foreign"}, headers={"origin": origin})
    assert answer.status_code == 403
    for path in ("/api/live", "/api/documents/x"):
        with pytest.raises(InvalidStatus) as refused:
            ws.connect(f"ws://127.0.0.1:{server.port}{path}?token={TOKEN}", origin=origin)  # type: ignore[arg-type]
        assert refused.value.response.status_code == 403
    assert "foreign" not in server.http.get("/api/workflows").text


def test_the_servers_own_pages_are_let_in(server: Served) -> None:
    with ws.connect(
        f"ws://127.0.0.1:{server.port}/api/live?token={TOKEN}",
        origin=server.url,  # type: ignore[arg-type]
    ) as socket:
        assert '"executions"' in str(socket.recv(timeout=10))


def test_a_request_to_another_name_of_this_machine_is_refused(server: Served) -> None:
    answer = server.http.get("/api/workflows", headers={"host": f"evil.example:{server.port}"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "a/../../secret",
        "..%2f..%2fsecret",
        "%2e%2e/secret",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "~root",
        "a%00b",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_files_outside_the_workspace_are_out_of_reach(server: Served, method: str, path: str) -> None:
    secret = server.parts.workspace.root / "secret"
    secret.write_text("what nobody may read")
    # a raw request line: clients tidy '..' away
    status, body = asyncio.run(_raw(server.port, method, f"/api/files/{path}"))
    assert status in (403, 404, 405), body
    assert "what nobody may read" not in body
    assert secret.read_text() == "what nobody may read"


async def _raw(port: int, method: str, target: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = "x" if method == "PUT" else ""
    writer.write(
        f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
    )
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(" ")[1]), answer.partition("\r\n\r\n")[2]


def test_a_link_out_of_the_workspace_is_not_followed(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    os.symlink(tmp_path, files / "out")
    with pytest.raises(OutsideWorkspace, match="leads out"):
        inside(files, "out/secret")


@pytest.mark.parametrize(
    "operator",
    [
        {"op": "read", "format": "text", "path": ["/etc/passwd"]},
        {"op": "read", "format": "text", "path": "file:/etc/passwd"},
        {"op": "read", "format": "text", "path": "a/{b,../../x}"},
        {"op": "read", "format": "text", "options": {"Path": "/etc/passwd"}},
        {"op": "write", "format": "csv", "path": "../out"},
        {"op": "table", "table": "text.`/etc/passwd`"},
        {"op": "query", "sql": "SELECT 1", "database": "/var/lib/other.db"},
        {"op": "query", "sql": "SELECT 1", "url": "jdbc:sqlite:/var/lib/other.db"},
    ],
)
def test_documents_cannot_name_data_outside_the_workspace(
    server: Served, operator: dict[str, Any], tmp_path: Path
) -> None:
    document = {"samovar": 1, "name": "out", "operators": [{"name": "a", **operator}]}
    with pytest.raises(OutsideWorkspace) as refused:
        confine(document, tmp_path)
    assert refused.value.operator == "a"
    checked = server.http.post("/api/check", json=document).json()
    assert [p["kind"] for p in checked["problems"]] == ["OutsideWorkspace"]


def test_a_malformed_message_closes_its_connection_and_no_other(server: Served) -> None:
    server.json("POST", "/api/workflows", json={"name": "room"})
    url = f"ws://127.0.0.1:{server.port}/api/documents/room?token={TOKEN}"
    with ws.connect(url) as good, ws.connect(url) as bad:
        good.recv(timeout=10)
        bad.recv(timeout=10)
        bad.send(b"\x00\x02\x05\xff\xff\xff\xff\xff")
        with pytest.raises(ConnectionClosed) as closed:
            bad.recv(timeout=10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1007
        good.send(b"\x00\x00\x01\x00")  # what do you have?
        assert bytes(good.recv(timeout=10))[:2] == b"\x00\x01"


def test_an_unknown_room_is_told_apart_from_a_lost_connection(server: Served) -> None:
    with ws.connect(f"ws://127.0.0.1:{server.port}/api/documents/nothing?token={TOKEN}") as socket:
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4404
