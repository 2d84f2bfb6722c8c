"""The workbench behind a reverse proxy, as the manual describes it: with either's `Host`, with TLS and without."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets.sync.client as ws
from tests.server.support import TOKEN, serving
from websockets.exceptions import InvalidStatus

from samovar.errors import EnvironmentProblem
from samovar.server.startup import public_address

NAME = "bench.example.org"


class Proxy:
    """A reverse proxy of one connection a request: keeps the `Host` it was asked for, or puts the server's there."""

    def __init__(self, upstream: int, *, keep_host: bool, tls: ssl.SSLContext | None) -> None:
        self._upstream, self._keep, self._tls = upstream, keep_host, tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            if self._tls is None:
                self._hand_on(client)
            else:
                with self._tls.wrap_socket(client, server_side=True) as inner:
                    self._hand_on(inner)

    def _hand_on(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head and (more := client.recv(65536)):
            head += more
        head, _, body = head.partition(b"\r\n\r\n")
        if not self._keep:
            head = re.sub(rb"(?im)^host:[^\r]*", b"Host: 127.0.0.1:%d" % self._upstream, head)
        if b"upgrade: websocket" not in head.lower():
            head = re.sub(rb"(?im)^connection:[^\r]*", b"Connection: close", head)
        with socket.create_connection(("127.0.0.1", self._upstream)) as server:
            server.sendall(head + b"\r\n\r\n" + body)
            way = threading.Thread(target=_pipe, args=(client, server), daemon=True)
            way.start()
            _pipe(server, client)
            way.join()


def _pipe(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its key in one file, for the proxy's name."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: it makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    files = ["-addext", f"subjectAltName=DNS:{NAME}", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(["openssl", "req", *made, *files], cwd=folder, check=True, capture_output=True)
    whole = folder / "both.pem"
    whole.write_text((folder / "certificate.pem").read_text() + (folder / "key.pem").read_text())
    return whole


@contextmanager
def behind(
    folder: Path, *, keep_host: bool, certificate: Path | None = None, public: bool = True
) -> Iterator[tuple[str, int, Any, Any]]:
    """A server behind a proxy: the public address, the proxy's port, a browser there, and its TLS."""
    at = serving_tls = trusted = None
    if certificate is not None:
        serving_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving_tls.load_cert_chain(certificate)
        trusted = ssl.create_default_context(cafile=str(certificate))
    address = f"{'https' if certificate else 'http'}://{NAME}"
    with serving(folder, public=public_address(address) if public else None) as served:
        proxy = Proxy(served.port, keep_host=keep_host, tls=serving_tls)
        at = f"{'https' if certificate else 'http'}://127.0.0.1:{proxy.port}"
        extensions = {"sni_hostname": NAME}
        with httpx.Client(
            base_url=at, headers={"host": NAME}, verify=trusted or True, trust_env=False
        ) as http:
            send = http.request
            http.request = lambda *a, **k: send(*a, extensions=extensions, **k)  # type: ignore[method-assign]
            try:
                yield address, proxy.port, http, trusted
            finally:
                proxy.close()


def connected(address: str, port: int, trusted: Any, cookie: str, origin: str) -> None:
    """A WebSocket through the proxy, as a page of some origin opens it."""
    scheme = "wss" if address.startswith("https") else "ws"
    raw = socket.create_connection(("127.0.0.1", port))
    tls = {"ssl": trusted, "server_hostname": NAME} if trusted else {}
    with ws.connect(
        f"{scheme}://{NAME}/api/live", sock=raw, origin=origin, additional_headers={"cookie": cookie}, **tls
    ) as live:  # type: ignore[arg-type]
        assert '"executions"' in str(live.recv(timeout=30))


@pytest.mark.parametrize("keep_host", [True, False], ids=["its own Host", "the server's Host"])
@pytest.mark.parametrize("tls", [True, False], ids=["https", "http"])
def test_pages_requests_and_sockets_work_through_a_proxy(
    tmp_path: Path, request: pytest.FixtureRequest, keep_host: bool, tls: bool
) -> None:
    certificate = request.getfixturevalue("certificate") if tls else None
    with behind(tmp_path / "w", keep_host=keep_host, certificate=certificate) as (
        address,
        port,
        http,
        trusted,
    ):
        welcome = http.request("GET", "/", params={"token": TOKEN})
        assert welcome.status_code == 303, welcome.text
        given = welcome.headers["set-cookie"]
        assert ("; Secure" in given) is tls
        cookie = given.partition(";")[0]
        own = {"cookie": cookie, "origin": address}
        assert http.request("GET", "/api/workflows", headers={"cookie": cookie}).status_code == 200
        made = http.request("POST", "/api/workflows", json={"name": "shop"}, headers=own)
        assert made.status_code == 201, made.text
        connected(address, port, trusted, cookie, address)
        for other in ("https://evil.example", "null", f"{address}.evil.example", f"{address}:81"):
            foreign = {"cookie": cookie, "origin": other}
            refused = http.request("POST", "/api/workflows", json={"name": "x"}, headers=foreign)
            assert refused.status_code == 403, other
            with pytest.raises(InvalidStatus):
                connected(address, port, trusted, cookie, other)


def test_without_the_option_the_refusal_names_it(tmp_path: Path) -> None:
    with behind(tmp_path / "w", keep_host=True, public=False) as (_, _, http, _):
        refused = http.request("GET", "/", params={"token": TOKEN})
        assert refused.status_code == 403
        assert "--public-url" in refused.json()["error"]["hint"]


def test_another_name_is_refused_behind_a_proxy_too(tmp_path: Path) -> None:
    with behind(tmp_path / "w", keep_host=True) as (_, _, http, _):
        elsewhere = http.request("GET", "/", params={"token": TOKEN}, headers={"host": "evil.example"})
        assert elsewhere.status_code == 403


def test_a_public_address_is_written_as_browsers_send_it() -> None:
    assert public_address("HTTPS://Bench.example.org:443/") == "https://bench.example.org"
    assert public_address("http://bench.example.org:8080") == "http://bench.example.org:8080"
    for wrong in (
        "bench.example.org",
        "https://",
        "https://a.b/path",
        "ftp://a.b",
        "https://a.b:x",
        "https://a@b.c",
    ):
        with pytest.raises(EnvironmentProblem, match=re.escape("https://bench.example.org")):
            public_address(wrong)
