"""Who may talk to the server: every request that is not that of its own page is refused, and says why."""

import hashlib
import json
import os
import re
import socket
import stat
import subprocess
import sys

import pytest

from tests.support.page import opened

FOREIGN = "http://evil.example"


def posted(page, path="/api/exchange", **headers):
    """A POST with these headers; a header that is None is left out."""
    given = {"Origin": page.origin, **page.authorization, **headers}
    return page.raw("POST", path, {name: value for name, value in given.items() if value is not None}, {"token": "x"})


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "localhost", "localhost:80", "", "localhost.evil.example"]
)
@pytest.mark.parametrize("path", ["/", "/api/me", "/assets/app.js"])
def test_a_foreign_host_is_refused(page, host, path):
    assert page.raw("GET", path, {**page.authorization, "Host": host}).error[:2] == (403, "forbidden")


@pytest.mark.parametrize(
    "origin",
    [None, "null", FOREIGN, "http://localhost", "http://localhost:1", "https://localhost:{port}", "{origin}.evil"],
)
def test_a_change_without_the_own_origin_is_refused(page, origin):
    sent = origin.format(port=page.port, origin=page.origin) if origin else origin

    assert posted(page, Origin=sent).error[:2] == (403, "forbidden")


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_a_header_that_decides_stands_there_once(page, header):
    body = b'{"token": "x"}'
    given = [("Host", f"localhost:{page.port}"), ("Origin", page.origin), ("Content-Type", "application/json")]
    lines = [*given, ("Content-Length", str(len(body))), *((name, value) for name, value in given if name == header)]
    with socket.create_connection(("127.0.0.1", page.port)) as raw:
        head = "".join(f"{name}: {value}\r\n" for name, value in lines)
        raw.sendall(f"POST /api/exchange HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = raw.recv(4096)

    assert answer.startswith(b"HTTP/1.1 400" if header == "Host" else b"HTTP/1.1 403")
    assert b"unauthorized" not in answer


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_a_request_of_another_site_is_refused(page, site):
    marks = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}

    assert page.raw("GET", "/api/me", {**page.authorization, **marks}).error[:2] == (403, "forbidden")
    assert posted(page, **marks).error[:2] == (403, "forbidden")


def test_another_site_cannot_load_the_page_as_a_part_of_itself(page):
    marks = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}

    assert page.raw("GET", "/", {**marks, "Sec-Fetch-Dest": "iframe"}).status == 403
    assert page.raw("GET", "/assets/app.js", {**marks, "Sec-Fetch-Dest": "script"}).status == 403


def test_a_person_may_follow_a_link_to_the_page(page):
    opened_by_link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    assert page.raw("GET", "/", opened_by_link).status != 403
    assert page.raw("GET", "/", {"Sec-Fetch-Site": "none"}).status != 403


@pytest.mark.parametrize("path", ["/api/me", "/api/projects", "/api/needs", "/api/events", "/api/p/x/sessions"])
@pytest.mark.parametrize("token", ["", "Bearer", "Bearer wrong", "Basic {token}", "{token}"])
def test_nothing_is_told_without_a_token(page, path, token):
    sent = {"Authorization": token.format(token=page.token)} if token else {}

    assert page.raw("GET", path, sent).error[:2] == (403, "unauthorized")


def test_a_token_in_the_address_or_in_a_cookie_counts_for_nothing(page):
    assert page.raw("GET", f"/api/me?token={page.token}").status == 403
    assert page.raw("GET", "/api/me", {"Cookie": f"token={page.token}"}).status == 403
    assert "set-cookie" not in page.get("/api/me").headers


def test_a_link_is_for_one_use(page):
    assert page.exchange(page.link_token).error[:2] == (403, "unauthorized")
    assert page.exchange("never made").error[:2] == (403, "unauthorized")


def test_tokens_are_kept_as_hashes_for_their_owner_alone(page, state):
    kept = state / "detent" / "page" / "tokens.json"

    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert page.token not in kept.read_text()
    assert re.search(r'"digest":"[0-9a-f]{64}"', kept.read_text())


def test_no_token_is_in_the_arguments_of_a_process(page):
    with open(f"/proc/{page.process.pid}/cmdline", "rb") as arguments:
        told = arguments.read()
    with open(f"/proc/{page.process.pid}/environ", "rb") as variables:
        told += variables.read()

    assert page.token.encode() not in told
    assert page.link_token.encode() not in told


def test_every_answer_has_the_policy(page):
    for answer in (page.get("/api/me"), page.raw("GET", "/nowhere"), page.raw("GET", "/", {"Host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers


def test_requests_have_a_size(page, base):
    sender = {**page.authorization, "Origin": page.origin}
    longest = page.raw("POST", f"{base}/decide", sender, b'{"reason":"' + b"x" * 1_100_000 + b'"}')

    assert longest.error[:2] == (413, "too_large")
    assert page.get("/api/needs", q="x" * 9_000).error[:2] == (413, "too_large")
    # The parser refuses what has not arrived at once.
    assert page.raw("GET", "/api/me", {"X-Long": "x" * 20_000}).status in (400, 413)


@pytest.mark.parametrize("body", [b"", b"[]", b"nothing", b'"text"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(page, base, body):
    assert page.raw("POST", f"{base}/decide", {**page.authorization, "Origin": page.origin}, body).status == 400


def test_a_body_of_another_type_is_refused(page, base):
    """A form of another site can post text without asking the browser first."""
    typed = {"Content-Type": "text/plain", **page.authorization, "Origin": page.origin}

    assert page.raw("POST", f"{base}/decide", typed, {"decision": "cancel"}).status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/%2e%2e/pyproject.toml",
        "/assets//etc/passwd",
        "/etc/passwd",
        "/assets/",
        "/api/p/..%2f..%2fetc/sessions",
    ],
)
def test_no_path_of_the_file_system_is_served(page, path):
    answer = page.raw("GET", path, page.authorization)

    assert answer.status == 404
    assert b"root:" not in answer.body


def test_a_path_outside_of_the_project_is_no_file_of_a_diff(page, base):
    since = page.get(f"{base}/review", phase="work").ok()["since"]
    for path in ("../../etc/passwd", "/etc/passwd", "calc.py/../../x", ".git/config"):
        assert page.get(f"{base}/diff", **{"from": since, "to": "now", "path": path}).status == 404


def test_hostile_text_stays_text(page, base):
    hostile = "<img src=x onerror=alert(1)> \x1b[31m \u202e </script>" + "y" * 5_000
    added = page.post(f"{base}/tasks", title=hostile[:200]).ok()["task"]

    answer = page.get(f"{base}/tasks/{added}")

    assert answer.headers["content-type"] == "application/json"
    assert answer.ok()["task"]["title"] == hostile[:200]


def test_a_page_opened_in_an_agents_shell_only_reads_and_says_why(root, base):
    with opened(root, "--port", "0", GEMINI_CLI="1") as page:
        me = page.get("/api/me").ok()
        assert me["can_decide"] is False
        assert "GEMINI_CLI" in me["read_only_because"]
        refused = page.post(f"{base}/decide", decision="cancel", reason="no")
        assert refused.error[:2] == (403, "read_only")
        assert "GEMINI_CLI" in refused.error[2]
        assert page.post(f"{base}/undo", dry_run=True).status == 409
        own_token = page.token
    # The token of such a page decides nothing at the server of a person either.
    with opened(root) as page:
        page.token = own_token
        assert page.get("/api/me").ok()["can_decide"] is False
        assert page.post(f"{base}/decide", decision="cancel", reason="no").error[:2] == (403, "read_only")


CANCEL = """
import http.client, json, sys
c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
c.request('POST', sys.argv[2], json.dumps({'decision': 'cancel', 'reason': 'no'}), json.loads(sys.argv[3]))
print(c.getresponse().read().decode())
"""


def cancelled_by(page, base, token, **environment):
    """The answer to a program that posts a decision with this token."""
    headers = {
        "Host": f"localhost:{page.port}",
        "Origin": page.origin,
        "Content-Type": "application/json",
        "Authorization": f"Bearer {token}",
    }
    ran = subprocess.run(
        [sys.executable, "-c", CANCEL, str(page.port), f"{base}/decide", json.dumps(headers)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def forged(state):
    """A token that no person was given: its hash is written into the file of the tokens."""
    kept = state / "detent" / "page" / "tokens.json"
    tokens = json.loads(kept.read_text())
    digest = hashlib.sha256(b"mine").hexdigest()
    tokens["sessions"].append({"digest": digest, "expires": "2999-01-01T00:00:00Z", "can_decide": True})
    kept.write_text(json.dumps(tokens))
    return "mine"


def test_a_program_of_an_agent_cannot_use_the_token_of_a_person(page, base):
    """The token may leak. The process at the other end of the connection is judged too."""
    answer = cancelled_by(page, base, page.token, CLAUDECODE="1")["error"]

    assert answer["kind"] == "refused"
    assert "CLAUDECODE" in answer["message"]
    assert page.get(base).ok()["status"] == "active"


def test_an_agent_that_forges_a_token_is_refused_as_an_agent(page, base, state):
    assert "GEMINI_CLI" in cancelled_by(page, base, forged(state), GEMINI_CLI="1")["error"]["message"]


def test_a_forged_token_of_a_program_that_no_agent_seems_to_have_started_decides(page, base, state):
    """As a program with a terminal of its own does: docs/page.md says so. The record names the program."""
    assert cancelled_by(page, base, forged(state))["done"]

    [commit, *_] = page.get(f"{base}/log", limit=1).ok()["commits"]
    assert "page opened from an unknown terminal; used by python" in commit["proof"]["statement"]
