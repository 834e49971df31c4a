"""Payloads that real clients sent, through the hook command: it always exits with 0 and answers what they honour."""

import json

import pytest

from detent.clients.registry import dialect
from detent.hooks.answer import main
from tests.support.campaign import sampled
from tests.support.hook_answers import CONTEXT, DENIES, MAX_CHARS, check_answer
from tests.support.hook_calls import NAMES, PAYLOADS, client_of
from tests.support.hooked_project import Place
from tests.support.installed_project import FORMS

INSTALLED = [(client, event) for client, form in FORMS.items() for event in form.events]
SETTINGS = """
[workflows.row]
phases = [
    { key = "06-implementation", agent = "general-purpose", gates = [{ kind = "tests" }, { kind = "delegation" }] },
    "08-code-review",
]
"""


def payload(name, root):
    """The payload as it would be in a project at `root`."""
    text = (PAYLOADS / name).read_text().replace("/home/dev/app", str(root))
    return json.loads(text)


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("idle"), settings=SETTINGS)


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("busy"), settings=SETTINGS)
    place.detent("start", "row", "Add search")
    return place


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    """A session that is driven by delegation, and will be at its end before all payloads were seen."""
    place = Place(tmp_path_factory.mktemp("driven"))
    place.detent("start", "adhoc", "Do it", "--phase", "One:general-purpose", "--phase", "Two:Explore")
    return place


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """No project at all."""
    place = object.__new__(Place)
    place.root = tmp_path_factory.mktemp("elsewhere")
    return place


#: Where no session is active the answer is empty, whatever the payload.
_QUIET = [(name, where) for where in ("elsewhere", "idle") for name in NAMES]
_ACTIVE = [(name, where) for where in ("busy", "driven") for name in NAMES]


@pytest.mark.parametrize(("name", "where"), [*sampled(_QUIET, 40, "quiet payloads"), *_ACTIVE])
def test_a_real_payload_is_answered_as_its_client_expects(request, name, where):
    place = request.getfixturevalue(where)
    event = payload(name, place.root)
    (place.root / "sub").mkdir(exist_ok=True)

    text = place.raw(json.dumps(event).encode(), client=client_of(name))

    answer = check_answer(client_of(name), event.get("hook_event_name"), text)
    if where in ("elsewhere", "idle"):
        assert answer == {}
    assert not (place.root / ".workflow" / "hook-failures.log").exists()


def test_the_payloads_are_all_of_the_events_that_are_installed():
    seen = {(client_of(name), json.loads((PAYLOADS / name).read_text()).get("hook_event_name")) for name in NAMES}
    # These are not recorded from a client; they have no fields that the hook reads.
    assert set(INSTALLED) - seen <= {("codex", "PreCompact"), ("gemini", "PreCompress")}


@pytest.mark.parametrize(("client", "event"), INSTALLED)
def test_what_is_said_is_said_where_the_client_hears_it(client, event):
    answer = check_answer(client, event, dialect(client).tell(event, "look out"))

    heard = answer.get("hookSpecificOutput", {}).get("additionalContext") == "look out"
    assert heard == (event in CONTEXT[client])
    assert heard or answer == {"systemMessage": "look out"}


@pytest.mark.parametrize("client", DENIES)
@pytest.mark.parametrize("reason", ["no", 'é \u2028 \ud800 \x00 " \\', "x" * 50_000])
def test_every_reason_can_be_said(client, reason):
    check_answer(client, DENIES[client], dialect(client).deny(reason))
    stop = "AfterAgent" if client == "gemini" else "Stop"
    answer = check_answer(client, stop, dialect(client).keep_going(reason))
    assert answer["reason"] == reason[: MAX_CHARS - 1_000]


def test_a_denial_reaches_each_client_in_its_own_words(busy):
    for client, tool, inputs in (
        ("claude-code", "Bash", {"command": "echo x > detent.toml"}),
        ("codex", "Bash", {"command": "echo x > detent.toml"}),
        ("codex", "apply_patch", {"command": "*** Begin Patch\n*** Update File: detent.toml\n+x\n*** End Patch\n"}),
        ("gemini", "run_shell_command", {"command": "echo x > detent.toml"}),
        ("gemini", "write_file", {"file_path": "detent.toml", "content": "x"}),
        ("gemini", "replace", {"file_path": "detent.toml", "old_string": "a", "new_string": "b"}),
    ):
        event = "BeforeTool" if client == "gemini" else "PreToolUse"
        answer = busy.hook(event, client=client, tool_name=tool, tool_input=inputs)

        check_answer(client, event, answer.text)
        assert answer.denied is not None
        assert "detent.toml" in answer.denied


def test_explaining_shows_what_each_rule_found(busy):
    event = {
        "cwd": str(busy.root),
        "hook_event_name": "PreToolUse",
        "tool_name": "Agent",
        "tool_input": {"subagent_type": "qa-engineer"},
    }

    text = busy.raw(json.dumps(event).encode(), "--explain")

    assert "guarded files: ok" in text
    assert "order of phases: qa-engineer works on phase 08-code-review" in text
    assert text.endswith("=> deny")
    assert main(["claude-code", "--explain"], json.dumps(event).encode()) == text
