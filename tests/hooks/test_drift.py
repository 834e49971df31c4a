"""What no reading of commands can prevent is noticed afterwards: by the agent at its next call, and by the doctor."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from detent.hooks import files
from tests.support.campaign import sampled
from tests.support.guard_corpus import NOTICED
from tests.support.hooked_project import Place

SETTINGS = 'gates = "off"\n[workflows.row]\nphases = ["06-implementation", "16-quality-loop", "08-code-review"]\n'
SESSION = "WFS-add-search"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A session with some commits, and one that has ended before it."""
    place = Place(tmp_path_factory.mktemp("whole"), settings=SETTINGS)
    place.detent("start", "row", "Earlier work")
    place.detent("cancel", "--reason", "something else comes first")
    place.detent("start", "row", "Add search")
    place.detent("finish", "-m", "done")
    place.detent("begin")
    return place


@pytest.fixture
def place(whole, tmp_path):
    root = tmp_path / "project"
    return whole.copied(root)


def a_call(place, command="python helper.py", session="s-1"):
    """The next shell call of the agent, which itself does nothing odd."""
    return place.hook(
        "PostToolUse",
        session_id=session,
        tool_name="Bash",
        tool_input={"command": command},
        tool_response={"stdout": "", "stderr": ""},
    )


def journal_of(place):
    return place.disk.journal_path(SESSION)


def truncate(place):
    path = journal_of(place)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def cut(place):
    path = journal_of(place)
    path.write_bytes(path.read_bytes()[:-20])


def empty(place):
    journal_of(place).write_bytes(b"")


def remove_journal(place):
    journal_of(place).unlink()


def append_garbage(place):
    with journal_of(place).open("ab") as file:
        file.write(b'{"events": []}')


def append_line(place):
    with journal_of(place).open("ab") as file:
        file.write(journal_of(place).read_bytes().splitlines(keepends=True)[-1])


def replace_journal(place):
    other = place.disk.journal_path("WFS-earlier-work").read_bytes()
    journal_of(place).write_bytes(other)


def change_last_line(place):
    path = journal_of(place)
    *before, last = path.read_bytes().splitlines(keepends=True)
    changed = last.replace(b'"attempt":1', b'"attempt":7')
    assert changed != last
    path.write_bytes(b"".join((*before, changed)))


def overwrite_state(place):
    document = place.disk.state()
    document["phases"]["16-quality-loop"]["summary"] = "all green, believe me"
    place.disk.edit(document)


def break_state(place):
    place.disk.state_path.write_bytes(b"{")


def remove_state(place):
    place.disk.state_path.unlink()


def edit_history(place):
    path = place.root / ".workflow" / "history.jsonl"
    path.write_bytes(path.read_bytes().replace(b"cancelled", b"completed"))


def remove_history(place):
    (place.root / ".workflow" / "history.jsonl").write_bytes(b"")


def remove_marker(place):
    (place.root / ".workflow" / f".active-{SESSION}").unlink()


def remove_ledger(place):
    (place.root / ".workflow" / ".documents.json").unlink()


#: What was done, a word of what the agent is told, and what the doctor names.
EFFECTS = [
    (truncate, "journal", SESSION),
    (cut, "journal", SESSION),
    (empty, "journal", SESSION),
    (remove_journal, "journal", SESSION),
    (append_garbage, "14 bytes follow the last commit", SESSION),
    (append_line, SESSION, SESSION),
    (replace_journal, "journal", SESSION),
    (overwrite_state, "kept as state.json.rejected-1", "state.json"),
    (break_state, "kept as state.json.rejected-1", "state.json"),
    (remove_state, "state.json was missing", "state.json"),
    (edit_history, "history.jsonl was changed", "history.jsonl"),
    (remove_history, "history.jsonl was changed", "history.jsonl"),
    (remove_marker, f"the marker .active-{SESSION} was removed", SESSION),
    (remove_ledger, "state.json", "state.json"),
]
BY_NAME = {effect.__name__: (effect, word, named) for effect, word, named in EFFECTS}


def test_nothing_is_said_where_nothing_was_changed(place):
    assert a_call(place).text == ""
    assert "all is well" in place.detent("doctor")


@pytest.mark.parametrize("name", BY_NAME)
def test_the_agent_hears_of_it_at_its_next_call(place, name):
    effect, word, _ = BY_NAME[name]
    effect(place)

    told = a_call(place).told

    assert word in told
    assert not (place.root / ".workflow" / "hook-failures.log").exists()


@pytest.mark.parametrize("name", BY_NAME)
def test_the_doctor_finds_it(place, name):
    effect, _, named = BY_NAME[name]
    effect(place)

    findings = json.loads(place.run("doctor", "--json").stdout)["findings"]

    assert any(named in finding["subject"] for finding in findings), findings


def test_the_doctor_says_that_the_marker_is_gone(place):
    remove_marker(place)

    findings = json.loads(place.run("doctor", "--json").stdout)["findings"]

    assert ("I3", SESSION) in [(finding["invariant"], finding["subject"]) for finding in findings]


@pytest.mark.parametrize("effect", [truncate, cut, empty, remove_journal, replace_journal, change_last_line])
def test_a_changed_record_is_not_written_over(place, effect):
    """The state document still says what stood in the journal; it is what a person can compare with."""
    before = place.disk.state_path.read_bytes()
    effect(place)
    damaged = journal_of(place).read_bytes() if journal_of(place).exists() else None

    a_call(place)
    place.hook("Stop")
    place.hook("SessionStart", source="resume")

    assert place.disk.state_path.read_bytes() == before
    assert (journal_of(place).read_bytes() if journal_of(place).exists() else None) == damaged


def test_a_line_that_was_changed_in_place_is_found_by_the_doctor(place):
    change_last_line(place)

    findings = json.loads(place.run("doctor", "--json").stdout)["findings"]

    assert ("I1", SESSION) in [(finding["invariant"], finding["subject"]) for finding in findings]


@pytest.mark.parametrize("effect", [edit_history, remove_marker, append_garbage])
def test_the_same_is_not_said_after_every_call(place, effect):
    effect(place)
    first = a_call(place).told

    assert first
    assert a_call(place).told == ""
    assert a_call(place, session="s-2").told == first


@pytest.mark.parametrize("effect", [truncate, remove_journal])
def test_a_record_in_doubt_is_said_after_every_call_and_nothing_is_handed_on(place, effect):
    effect(place)

    assert a_call(place).told == a_call(place).told != ""
    denied = place.delegate("quality-loop-engineer").denied
    assert denied is not None
    assert "the journal of WFS-add-search is not what Detent wrote" in denied


def test_a_record_that_went_on_is_no_drift(place):
    """The document may be behind the journal for a moment; what it was made from still stands there."""
    old = place.disk.state_path.read_bytes()
    ledger = (place.root / ".workflow" / ".documents.json").read_bytes()
    place.detent("finish", "-m", "done")
    place.disk.state_path.write_bytes(old)
    (place.root / ".workflow" / ".documents.json").write_bytes(ledger)

    assert place.delegate("quality-loop-engineer").denied is None
    assert a_call(place).text == ""
    assert place.status("16-quality-loop") == "completed"


def test_doctor_can_mend_what_can_be_mended(place):
    for effect in (edit_history, remove_state, remove_marker):
        effect(place)

        place.run("doctor", "--fix")

        assert "all is well" in place.detent("doctor")
        assert a_call(place).text == ""
    assert place.disk.history()[0]["status"] == "cancelled"
    assert place.disk.markers() == [f".active-{SESSION}"]


# Commands that show nothing, executed


@pytest.mark.parametrize("case", sampled(NOTICED, 10, "noticed"), ids=lambda case: case.note)
def test_what_a_command_does_unseen_is_noticed_after_it(place, case):
    (place.root / ".claude").mkdir(exist_ok=True)
    (place.root / ".claude/settings.json").write_text("{}")
    subprocess.run(["git", "init", "-q"], cwd=place.root, check=True)
    for path, text in case.files.items():
        with (place.root / path).open("a") if path == ".git/config" else place.write(path, "").open("w") as file:
            file.write(diff_of(place) if text == "PATCH" else text)
        (place.root / path).chmod(0o755)
    assert place.hook("SessionStart", source="startup").fields  # the session is told where it stands
    before = guarded_bytes(place)
    assert place.before("Bash", command=case.command).denied is None  # nothing to see

    subprocess.run(
        ["bash", "-c", case.command],
        cwd=place.root,
        env={**case.environment, "PATH": os.environ["PATH"], **GIT},
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert guarded_bytes(place) != before  # it had an effect
    assert a_call(place, command=case.command).told != ""


GIT = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def diff_of(place):
    """A patch that adds a line in front of the history."""
    first = (place.root / ".workflow/history.jsonl").read_text().splitlines()[0]
    return f"--- a/.workflow/history.jsonl\n+++ b/.workflow/history.jsonl\n@@ -1 +1,2 @@\n+x\n {first}\n"


def guarded_bytes(place):
    """What stands in the guarded files, with the kind of each."""
    roots = (place.root / ".workflow", place.root / ".claude", place.root / "detent.toml")
    paths = sorted(path for root in roots for path in (root, *root.rglob("*")) if ".settings" not in path.name)
    return {
        str(path): path.read_bytes() if path.is_file() else path.is_fifo() for path in paths if ".lock" not in path.name
    }


@pytest.mark.parametrize("name", BY_NAME)
def test_what_a_tool_of_an_mcp_server_does_is_noticed_after_it(place, name):
    BY_NAME[name][0](place)
    call = {"tool_name": "mcp__x__do", "tool_input": {"what": "it"}, "tool_response": "done", "session_id": "s-1"}

    assert BY_NAME[name][1] in place.hook("PostToolUse", **call).told


def test_a_change_of_the_settings_is_said_once(place):
    place.hook("SessionStart", source="startup")
    with (place.root / "detent.toml").open("a") as file:
        file.write("# changed\n")

    assert "detent.toml changed during the session" in a_call(place).told
    assert a_call(place).text == ""


def test_that_the_second_copy_was_removed_is_said_once(place):
    place.detent("task", "add", "one")
    place.hook("SessionStart", source="startup")
    known = (place.root / ".workflow/project-id").read_text().strip()
    copy = Path(os.environ["XDG_STATE_HOME"], "detent", known, "journals", f"{SESSION}.jsonl")
    copy.unlink()

    assert f"{copy} changed during the session" in a_call(place).told
    assert a_call(place).text == ""
    assert "it has no second copy" in place.detent("doctor")
    place.detent("task", "add", "two")
    assert "all is well" in place.detent("doctor")


def test_settings_that_changed_between_two_sessions_are_no_drift(place):
    place.hook("SessionStart", source="startup")
    place.detent("cancel", "--reason", "later")
    with (place.root / "detent.toml").open("a") as file:
        file.write("# changed\n")
    place.detent("start", "row", "Another")

    assert a_call(place).text == ""


def test_looking_for_drift_reads_no_more_than_it_must(place, monkeypatch):
    """However long the journal is, only its end is read."""
    read = []
    original = files.read_file
    monkeypatch.setattr(files, "read_file", lambda path: read.append(path.rpartition("/")[2]) or original(path))

    document = files.read_document(str(place.root / ".workflow"))
    assert files.has_drifted(document, str(place.root / ".workflow")) is False

    assert sorted(set(read)) == [".documents.json", "history.jsonl", "state.json"]
