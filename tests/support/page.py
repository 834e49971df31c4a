"""The server of the page as a process of its own, and a client that speaks to it as the page does."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
ANSWER_S_MAX = 60.0


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def ok(self) -> Any:
        assert self.status == 200, (self.status, self.body[:2000])
        return self.json

    @property
    def error(self) -> tuple[int, str, str]:
        """Status, kind and message of a refusal."""
        told = self.json["error"]
        return self.status, told["kind"], told["message"]


class Message(NamedTuple):
    """One event of a stream."""

    id: str
    event: str
    data: Any


class Page:
    """A server, and the token of a page that was opened there."""

    def __init__(
        self, directory: Path, *arguments: str, token: str = "", tls: ssl.SSLContext | None = None, **environment: str
    ) -> None:
        self._tls = tls
        self.process = subprocess.Popen(
            [DETENT, "ui", "--no-open", "--json", *(arguments or ("--port", "0"))],
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.said = json.loads(self.process.stdout.readline())
        self.port: int = self.said["port"]
        self.origin: str = self.said["url"]
        self.link_token: str = self.said["link"].partition("#token=")[2]
        self.token = token or self.exchange(self.link_token).ok()["token"]

    # Requests

    def exchange(self, token: str) -> Answer:
        return self.raw("POST", "/api/exchange", {"Origin": self.origin}, {"token": token})

    def get(self, path: str, /, **query: object) -> Answer:
        asked = f"{path}?{urlencode({name: str(value) for name, value in query.items()})}" if query else path
        return self.raw("GET", asked, self.authorization)

    def post(self, path: str, /, **body: object) -> Answer:
        return self.raw("POST", path, {**self.authorization, "Origin": self.origin}, body)

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def raw(self, method: str, path: str, headers: Mapping[str, str] = {}, body: object = None) -> Answer:
        """A request with just these headers; Host is that of the server unless it is one of them."""
        connection = self._connection()
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        typed = {"Content-Type": "application/json"} if data is not None else {}
        try:
            connection.request(method, path, data, {"Host": f"localhost:{self.port}", **typed, **headers})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection("localhost", self.port, timeout=ANSWER_S_MAX, context=self._tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S_MAX)

    @contextmanager
    def stream(self, path: str, **headers: str) -> Iterator[Iterator[Message]]:
        """The events of a stream as they come, without signs of life."""
        connection = self._connection()
        try:
            connection.request("GET", path, headers={"Host": f"localhost:{self.port}", **self.authorization, **headers})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield _messages(answer)
        finally:
            if connection.sock is not None:
                connection.sock.close()
            connection.close()

    # The process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()


def _messages(lines: http.client.HTTPResponse) -> Iterator[Message]:
    fields: dict[str, str] = {}
    end = time.monotonic() + ANSWER_S_MAX
    try:
        for line in lines:
            assert time.monotonic() < end, "the stream said nothing more"
            text = line.decode().rstrip("\n")
            if text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif "event" in fields:
                yield Message(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
                fields = {}
            else:
                fields = {}
    except (OSError, http.client.HTTPException):
        # The server was killed.
        return


@contextmanager
def opened(directory: Path, *arguments: str, tls: ssl.SSLContext | None = None, **environment: str) -> Iterator[Page]:
    page = Page(directory, *arguments, tls=tls, **environment)
    try:
        yield page
    finally:
        if page.process.poll() is None:
            page.process.terminate()
        page.process.wait(timeout=ANSWER_S_MAX)
        page.close()


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, SHA256())
    )
    pem = serialization.Encoding.PEM
    certificate, private = directory / "certificate.pem", directory / "key.pem"
    certificate.write_bytes(signed.public_bytes(pem))
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return certificate, private
