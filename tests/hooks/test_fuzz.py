"""Whatever comes in, the hook exits with 0, answers what a client honours or nothing, and guards what it guards."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detent.clients.registry import dialect
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.hooks.answer import main
from tests.support.hook_answers import check_answer
from tests.support.hook_calls import NAMES, PAYLOADS, client_of
from tests.support.hooked_project import FAST, Place

CLIENTS = ("claude-code", "codex", "gemini")
EVENTS = {event for client in CLIENTS for event in dialect(client).EVENTS}
OF_GEMINI = {"BeforeAgent", "BeforeTool", "AfterTool", "PreCompress", "AfterAgent"}
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
#: As they come from JSON: lone surrogates included.
TEXTS = st.text(st.characters(codec=None), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SETTINGS = """
[workflows.row]
phases = [
    { key = "06-implementation", agent = "general-purpose", gates = [{ kind = "tests" }, { kind = "delegation" }] },
    "08-code-review",
]
"""


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("busy"), settings=SETTINGS)
    place.detent("start", "row", "Add search")
    return place


def paths_in(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths_in(inner, (*path, key))


def with_value(value, path, new):
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = with_value(value[path[0]], path[1:], new)
    return copied


@st.composite
def mutated_payloads(draw):
    """A real payload in which up to three values are something else, or are gone."""
    name = draw(st.sampled_from(NAMES))
    payload = json.loads((PAYLOADS / name).read_text())
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([path for path in paths_in(payload) if path]))
        if draw(st.booleans()) and isinstance(path[-1], str):
            holder = payload
            for key in path[:-1]:
                holder = holder[key]
            payload = with_value(payload, path[:-1], {k: v for k, v in holder.items() if k != path[-1]})
        else:
            payload = with_value(payload, path, draw(VALUES))
    return client_of(name), payload


def honoured(client, payload, text):
    event = payload.get("hook_event_name") if isinstance(payload, dict) else None
    if isinstance(event, str) and event in EVENTS and (event in OF_GEMINI) != (client == "gemini"):
        assert isinstance(json.loads(text or "{}"), dict)  # no client sends the events of another
    else:
        check_answer(client, event, text)


@FUZZ
@given(sent=mutated_payloads(), in_project=st.booleans())
def test_a_payload_with_anything_in_it_is_answered(busy, sent, in_project):
    client, payload = sent
    if isinstance(payload, dict) and in_project:
        payload = {**payload, "cwd": str(busy.root)}
    data = json.dumps(payload).encode().replace(b"/home/dev/app", str(busy.root).encode())

    honoured(client, payload, main([client], data))


@FUZZ
@given(
    client=st.sampled_from(CLIENTS),
    event=st.sampled_from(sorted(EVENTS)) | TEXTS,
    tool=st.sampled_from(["Agent", "Bash", "Write", "Edit", "apply_patch", "Skill", "TodoWrite", "write_todos"])
    | VALUES,
    inputs=st.dictionaries(
        st.sampled_from(["command", "prompt", "subagent_type", "file_path", "content", "todos", "skill", "args"]),
        VALUES,
    )
    | VALUES,
    response=VALUES,
    more=st.dictionaries(
        st.sampled_from(["agent_id", "agent_type", "background_tasks", "error", "session_id"]), VALUES
    ),
)
def test_fields_of_any_type_are_answered(busy, client, event, tool, inputs, response, more):
    payload = {
        "cwd": str(busy.root),
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": inputs,
        "tool_response": response,
        **more,
    }

    honoured(client, payload, main([client], json.dumps(payload).encode()))


@FUZZ
@given(data=st.binary(max_size=300) | mutated_payloads().map(lambda sent: json.dumps(sent[1]).encode()), at=st.data())
def test_bytes_of_any_kind_are_answered(busy, data, at):
    cut = at.draw(st.integers(0, len(data)))
    garbled = data[:cut] + at.draw(st.binary(max_size=8)) + data[cut:]

    text = main(["claude-code"], garbled)

    assert text == "" or isinstance(json.loads(text), dict)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   \n",
        b"null",
        b"[]",
        b"17",
        b'"PreToolUse"',
        b"{",
        b"{}{}",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"hook_event_name":"PreToolUse","tool_name":"Agent"' + b" " * 1_000,
        b"[" * 50 + b"]" * 50,
    ],
)
@pytest.mark.parametrize("arguments", [["claude-code"], [], ["gemini", "--explain"], ["nobody"]])
def test_what_is_no_payload_is_answered_with_nothing(busy, monkeypatch, data, arguments):
    monkeypatch.chdir(busy.root)

    assert main(arguments, data) == ""


# As processes


def run_hook(cwd, data=None, **options):
    return subprocess.run(
        [sys.executable, "-I", "-S", str(FAST), "claude-code"],
        cwd=cwd,
        capture_output=True,
        timeout=60,
        check=False,
        **({"input": data} if data is not None else {}),
        **options,
    )


@pytest.mark.parametrize(
    ("tool", "inputs"),
    [
        ("Bash", {"command": "echo " + "x" * 10_000_000}),
        ("Write", {"file_path": "big.py", "content": "x = 1\n" * 1_700_000}),
        ("Agent", {"subagent_type": "general-purpose", "prompt": "x" * 10_000_000}),
    ],
)
def test_ten_megabytes_are_answered(busy, tool, inputs):
    payload = {"cwd": str(busy.root), "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": inputs}

    done = run_hook(busy.root, json.dumps(payload).encode())

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_ten_megabytes_do_not_hide_a_write(busy):
    payload = {
        "cwd": str(busy.root),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo " + "x" * 10_000_000 + "; echo y > detent.toml"},
    }

    done = run_hook(busy.root, json.dumps(payload).encode())

    assert b'"permissionDecision":"deny"' in done.stdout


@pytest.mark.parametrize("how", ["empty", "none", "closed", "deaf", "gone"])
def test_a_process_without_input_or_without_a_listener_ends_well(busy, how, tmp_path):
    match how:
        case "empty":
            done = run_hook(busy.root, b"")
        case "none":
            done = run_hook(busy.root, stdin=subprocess.DEVNULL)
        case "closed":
            done = run_hook(busy.root, preexec_fn=lambda: os.close(0))
        case "deaf":
            payload = {"cwd": str(busy.root), "hook_event_name": "SessionStart"}
            done = run_hook(busy.root, json.dumps(payload).encode(), preexec_fn=lambda: os.close(1))
        case "gone":
            gone = tmp_path / "gone"
            gone.mkdir()
            remove = f"rmdir {gone}; exec {sys.executable} -I -S {FAST} claude-code"
            done = subprocess.run(["bash", "-c", remove], cwd=gone, input=b"{}", capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Traceback" not in done.stderr


# Where Detent's own files are not what they should be

ORDINARY = [
    ("Bash", {"command": "pytest -q"}),
    ("Bash", {"command": "detent doctor"}),
    ("Read", {"file_path": "src/a.py"}),
    ("Write", {"file_path": "src/a.py", "content": "x = 1\n"}),
    ("Edit", {"file_path": "src/a.py", "old_string": "1", "new_string": "2"}),
    ("Grep", {"pattern": "x"}),
]
GUARDED = [
    ("Agent", {"subagent_type": "general-purpose", "prompt": "go on"}),
    ("Agent", {"subagent_type": "qa-engineer", "prompt": "review it"}),
    ("Skill", {"skill": "detent", "args": "advance"}),
    ("Write", {"file_path": ".workflow/state.json", "content": "{}"}),
    ("Bash", {"command": "echo x >> .workflow/history.jsonl"}),
]


def damage(place, how):
    state, journal = place.disk.state_path, place.disk.journal_path("WFS-add-search")
    match how:
        case "corrupt state":
            state.write_bytes(b'{"active_workflow": {"phases": [')
        case "state is a list":
            state.write_bytes(b"[1, 2]")
        case "state of nonsense":
            state.write_bytes(b"\xff\x00\xfe")
        case "missing state":
            state.unlink()
        case "missing journal":
            journal.unlink()
        case "empty journal":
            journal.write_bytes(b"")
        case "other journal":
            journal.write_bytes(journal.read_bytes().replace(b"Add search", b"Add nothing"))
    return place


DAMAGES = [
    "corrupt state",
    "state is a list",
    "state of nonsense",
    "missing state",
    "missing journal",
    "empty journal",
    "other journal",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("whole"), settings=SETTINGS)
    place.detent("start", "row", "Add search")
    return place


@pytest.fixture(scope="module", params=DAMAGES)
def damaged(request, whole, tmp_path_factory):
    return damage(whole.copied(tmp_path_factory.mktemp("damaged")), request.param)


@pytest.mark.parametrize(("tool", "inputs"), GUARDED)
def test_what_is_guarded_is_denied_while_the_state_is_in_doubt(damaged, tool, inputs):
    denied = damaged.before(tool, **inputs).denied

    assert denied is not None
    assert any(way in denied for way in ("detent doctor", "detent release", "a person do it"))


@pytest.mark.parametrize(("tool", "inputs"), ORDINARY)
def test_the_work_goes_on_while_the_state_is_in_doubt(damaged, tool, inputs):
    assert damaged.before(tool, **inputs).text == ""


def test_doctor_finds_what_is_wrong(damaged):
    done = damaged.run("doctor")

    assert "all is well" not in done.stdout


# Crashes


@pytest.fixture
def crashing(whole, tmp_path, monkeypatch):
    place = whole.copied(tmp_path)

    def crash(*_arguments):
        raise RuntimeError("a bug\nin two lines")

    monkeypatch.setattr("detent.core.guard.rules.guard", crash)
    return place


def sent(place, tool, **inputs):
    payload = {"cwd": str(place.root), "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": inputs}
    return json.dumps(payload).encode()


@pytest.mark.parametrize(("tool", "inputs"), GUARDED)
def test_a_crash_denies_what_is_guarded(crashing, tool, inputs):
    answer = json.loads(main(["claude-code"], sent(crashing, tool, **inputs)))["hookSpecificOutput"]

    assert answer["permissionDecision"] == "deny"
    assert "a bug" in answer["permissionDecisionReason"]
    assert "detent release" in answer["permissionDecisionReason"]


@pytest.mark.parametrize(("tool", "inputs"), ORDINARY)
def test_a_crash_lets_everything_else_through(crashing, tool, inputs):
    assert main(["claude-code"], sent(crashing, tool, **inputs)) == ""


def test_crashes_are_counted_and_the_doctor_says_so(crashing):
    for _ in range(3):
        main(["claude-code"], sent(crashing, "Bash", command="ls"))

    lines = (crashing.root / ".workflow" / "hook-failures.log").read_text().splitlines()
    assert lines == ["PreToolUse RuntimeError: a bug in two lines"] * 3
    with open_project(crashing.root) as project:
        [finding] = check(project)
    assert finding.severity == "warning"
    assert finding.message.startswith("hooks failed 3 times")
    assert "hooks failed 3 times" in crashing.detent("doctor")


def test_a_crash_that_cannot_be_counted_denies_all_the_same(crashing):
    (crashing.root / ".workflow" / "hook-failures.log").mkdir()

    answer = main(["claude-code"], sent(crashing, "Agent", subagent_type="x"))

    assert json.loads(answer)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_what_is_no_json_is_counted_where_it_came_in(crashing, monkeypatch):
    monkeypatch.chdir(crashing.root)

    main(["claude-code"], b'{"hook_event_name": tru')

    log = (Path(crashing.root) / ".workflow" / "hook-failures.log").read_text()
    assert log.startswith("unreadable event ")
