"""`detent ui` as a command: its port, its links, and what it refuses."""

import os
import socket
import ssl

import pytest

from detent.web.access import Unauthorized
from detent.web.tokens import LINK_FOR, MAX_SESSIONS, SESSION_FOR, Tokens
from tests.support.command import Tool
from tests.support.page import free_port, make_certificate, opened
from tests.support.project import write
from tests.support.values import TickingClock


@pytest.fixture
def tool(root):
    own = Tool(root)
    own.environment["XDG_STATE_HOME"] = os.environ["XDG_STATE_HOME"]
    return own


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_taken_port_names_its_holder(tool, family):
    """At either address: a browser tries both for localhost."""
    with socket.socket(family) as taken:
        taken.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        code, message, way_out = tool("ui", "--port", str(port), "--no-open").error()

    assert code == 4
    assert f"port {port} is taken by " in message
    assert f"(process {os.getpid()})" in message
    assert "--link" in way_out


def test_the_port_is_a_setting(root, base):
    port = free_port()
    write(root, "detent.toml", f"[ui]\nport = {port}\n[workflows.short]\nphases = ['work']\n")

    with opened(root, "--no-open") as page:
        assert page.origin == f"http://localhost:{port}"
        assert page.get("/api/me").ok()["project"] == base.split("/")[3]


def test_another_host_needs_a_certificate(tool):
    code, message, way_out = tool("ui", "--host", "0.0.0.0", "--no-open").error()

    assert (code, "--tls-cert and --tls-key" in message, "ssh -L" in way_out) == (1, True, True)


def test_with_a_certificate_the_page_is_served_at_the_name_of_the_host(root, base, tmp_path_factory):
    certificate, key = make_certificate(tmp_path_factory.mktemp("tls"))
    arguments = ("--port", "0", "--host", "localhost", "--tls-cert", str(certificate), "--tls-key", str(key))
    trusting = ssl.create_default_context(cafile=str(certificate))

    with opened(root, *arguments, tls=trusting) as page:
        assert page.origin == f"https://localhost:{page.port}"
        assert page.get(base).ok()["session"] == "WFS-try-it"
        assert page.raw("GET", "/api/me", {"Host": f"127.0.0.1:{page.port}"}).status == 403


def test_another_link_opens_another_page(root, tool):
    with opened(root) as page:
        told = tool("ui", "--link", "--no-open", "--json", "--port", str(page.port)).ok().json()
        token = told["link"].partition("#token=")[2]

        assert told["url"] == page.origin
        assert page.exchange(token).ok()["can_decide"] is True


def test_an_agent_gets_no_link(root, tool):
    with opened(root) as page:
        code, message, _ = tool("ui", "--link", "--no-open", "--port", str(page.port), CODEX_CI="1").error()

    assert code == 1
    assert "CODEX_CI is set" in message


def test_a_link_needs_a_server(tool):
    code, message, way_out = tool("ui", "--link", "--no-open", "--port", str(free_port())).error()

    assert (code, "no server listens" in message, way_out) == (1, True, "detent ui starts one")


def test_the_page_says_which_packages_are_missing(tool, tmp_path):
    write(tmp_path, "without/starlette.py", "raise ImportError('No module named starlette', name='starlette')\n")

    code, message, way_out = tool("ui", "--no-open", PYTHONPATH=str(tmp_path / "without")).error()

    assert (code, message) == (1, "the page needs packages that are not installed: starlette")
    assert way_out == "pip install 'detent[ui]'"


# Tokens


def test_a_link_ends_after_minutes_and_a_page_after_hours(tmp_path):
    clock = TickingClock()
    tokens = Tokens(str(tmp_path), clock)
    late = tokens.new_link(can_decide=True, opened="here")
    session, grant = tokens.exchange(tokens.new_link(can_decide=True, opened="here"))

    assert tokens.grant(session) == grant
    clock.now += LINK_FOR
    with pytest.raises(Unauthorized):
        tokens.exchange(late)
    clock.now += SESSION_FOR
    with pytest.raises(Unauthorized):
        tokens.grant(session)


def test_tokens_outlast_the_server_and_the_oldest_make_way(tmp_path):
    tokens = Tokens(str(tmp_path), TickingClock())
    sessions = [tokens.exchange(tokens.new_link(can_decide=False, opened=""))[0] for _ in range(MAX_SESSIONS + 1)]

    again = Tokens(str(tmp_path), TickingClock())

    assert again.grant(sessions[-1]).can_decide is False
    with pytest.raises(Unauthorized):
        again.grant(sessions[0])


@pytest.mark.parametrize("content", [b"", b"nothing", b"[]", b'{"sessions": [{"digest": 1}]}', b"\xff"])
def test_a_damaged_file_of_tokens_grants_nothing(tmp_path, content):
    tokens = Tokens(str(tmp_path), TickingClock())
    session, _ = tokens.exchange(tokens.new_link(can_decide=True, opened=""))
    (tmp_path / "tokens.json").write_bytes(content)

    with pytest.raises(Unauthorized):
        tokens.grant(session)
    assert tokens.exchange(tokens.new_link(can_decide=True, opened=""))
