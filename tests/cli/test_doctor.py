"""`doctor` and `forget` on a damaged record: what is said, what is asked, and what is there afterwards."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from detent.store.journal_tail import sum_at_end
from tests.support.command import Tool

AGENT = {"CLAUDECODE": "1"}
PHASES = ("Wrote it down", "Looked around")


@pytest.fixture
def tool(tmp_path):
    """Three sessions, of which the last is active and has four commits."""
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "notes.txt").write_text("older than any session")
    tool = Tool(directory)
    (directory / "detent.toml").write_text('gates = "off"\n[checkpoint]\ncapture = "off"\n')
    tool("init").ok()
    for task in ("one", "two", "three"):
        tool("start", "feature", task).ok()
    tool("finish", "-m", PHASES[0]).ok()
    tool("begin").ok()
    tool("finish", "-m", PHASES[1]).ok()
    return tool


def journal(tool, name="WFS-three") -> Path:
    return tool.state / name / "journal.jsonl"


def cut(tool, count=2):
    path = journal(tool)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-count]))


def commits(tool, name="WFS-three"):
    return [json.loads(line) for line in journal(tool, name).read_bytes().splitlines()]


def damage(tool):
    with journal(tool).open("ab") as file:
        file.write(b"oops\n")


def append_with_its_sum(tool, body):
    """One more line, whose sum is right."""
    path = journal(tool)
    total = sum_at_end(path.read_bytes())
    own = hashlib.sha256(total.encode() + body).hexdigest()[:32]
    with path.open("ab") as file:
        file.write(body + b',"sum":"' + own.encode() + b'"}\n')


def works(tool):
    """Every session can be looked at and worked on."""
    for name in ("one", "two", "three"):
        tool("switch", name).ok()
        assert tool("status", "--json").ok().json()["session"] == f"WFS-{name}"
    tool("begin").ok()
    assert tool("doctor").ok().out == "all is well\n"


def test_one_appended_line_stops_only_its_own_session(tool):
    damage(tool)

    code, message, way_out = tool("status").error()
    assert (code, "line 5 of the journal of WFS-three is damaged" in message) == (5, True)
    assert way_out == "detent doctor shows what is damaged, detent doctor --restore WFS-three mends it"

    tool("status", "--session", "WFS-one").ok()
    tool("cancel", "--reason", "no longer wanted", "--session", "WFS-two").ok()
    tool("start", "fix", "four").ok()
    tool("finish", "-m", "works").ok()
    tool("switch", "one").ok()


def test_doctor_shows_how_far_the_journal_verifies_and_what_the_rest_is(tool):
    damage(tool)

    shown = tool("doctor", "--json")

    assert shown.code == 1
    [finding] = shown.json()["findings"]
    assert finding["message"] == (
        "the journal of WFS-three is damaged behind commit 4: 5 bytes in 1 line, no JSON, beginning 'oops'; its second "
        "copy has 4 commits. Mended, it has 4 commits"
    )
    assert finding["way_out"] == "detent doctor --restore WFS-three keeps what verifies and sets the rest aside"


def test_fix_asks_and_without_an_answer_changes_no_journal(tool):
    damage(tool)
    before = journal(tool).read_bytes()

    assert tool("doctor", "--fix").code == 1

    assert journal(tool).read_bytes() == before


@pytest.mark.parametrize("how", [("--fix", "--yes"), ("--restore", "--yes"), ("--restore", "three", "--yes")])
def test_the_damaged_part_is_set_aside_and_recorded(tool, how):
    damage(tool)

    said = tool("doctor", *how).ok().out

    kept = next((tool.state / "WFS-three").glob("set-aside-*"))
    assert kept.read_bytes() == b"oops\n"
    assert said == f"mended WFS-three: 4 commits, 5 bytes were set aside as WFS-three/{kept.name}\nall is well\n"
    event = commits(tool)[4]["events"][0]
    assert (event["type"], event["reason"], event["bytes"]) == ("tail_set_aside", "damaged", 5)
    assert "mended the journal, which was damaged" in tool("log").ok().out
    outside = Path(tool.environment["XDG_STATE_HOME"]).glob(f"detent/*/journals/{kept.name}.WFS-three")
    assert [path.read_bytes() for path in outside][-1:] == [b"oops\n"]
    works(tool)


LAUNCHED = b'{"type":"agent_launched","phase":"%b","agent":"a","agent_id":"1"}'


def body(version, phase):
    """A commit that says that an agent was launched, without its sum."""
    author = b'"at":"2026-02-09T12:00:00Z","actor":{"name":"ada","kind":"person","channel":"terminal"}'
    return b'{"version":%d,%b,"events":[%b],"state":"0"' % (version, author, LAUNCHED % phase)


@pytest.mark.parametrize("line", [b'{"x":1', body(9, b"06-implementation"), body(5, b"no-such-phase")])
def test_a_commit_that_no_detent_wrote_is_set_aside_although_its_sum_is_right(tool, line):
    append_with_its_sum(tool, line)

    # Meanwhile the second copy catches up with it.
    code, _, way_out = tool("status").error()
    assert (code, way_out.startswith("detent doctor")) == (5, True)
    assert "detent doctor --restore WFS-three sets" in tool("doctor").out
    tool("start", "fix", "four").ok()
    tool("doctor", "--fix", "--yes").ok()

    kept = next((tool.state / "WFS-three").glob("set-aside-*"))
    assert kept.read_bytes().startswith(line)
    assert commits(tool)[4]["events"][0]["reason"] == "unreadable"
    works(tool)


def test_a_commit_that_recorded_another_state_stays_a_finding(tool):
    append_with_its_sum(tool, body(5, b"06-implementation"))

    tool("doctor", "--fix", "--yes")

    [finding] = [each for each in tool("doctor", "--json").json()["findings"] if each["severity"] == "error"]
    assert (finding["invariant"], "but commit 5 recorded 0" in finding["message"]) == ("I10", True)


def test_lines_cut_off_the_end_are_noticed_and_come_back(tool):
    whole = journal(tool).read_bytes()
    cut(tool)

    code, message, _ = tool("status", "--session", "WFS-three").error()
    assert code == 5
    assert message.splitlines()[-1] == (
        "detent: the journal of WFS-three ends at commit 2, and its second copy at commit 4: commits were cut off, or "
        "an older backup was restored"
    )
    assert "WFS-three lack commits" in tool("status", "--session", "WFS-one").ok().err
    assert tool("doctor", "--fix").code == 1

    assert "2 came back from its second copy" in tool("doctor", "--restore", "--yes").ok().out

    assert journal(tool).read_bytes().startswith(whole)
    assert commits(tool)[4]["events"][0]["reason"] == "shorter"
    works(tool)


def test_a_journal_that_was_cut_and_gone_on_with_under_another_state_directory_is_noticed(tool, tmp_path):
    cut(tool)
    elsewhere = AGENT | {"XDG_STATE_HOME": str(tmp_path / "elsewhere")}
    tool("begin", **elsewhere).ok()

    code, message, _ = tool("status").error()

    assert (code, "behind commit 2 it holds other commits than its second copy" in message) == (5, True)
    tool("doctor", "--restore", "--yes").ok()
    assert PHASES[1] in tool("log").ok().out
    works(tool)


def test_a_person_may_go_on_from_the_shorter_journal(tool):
    cut(tool)

    assert tool("forget", "three", "--yes").ok().out == "forgot WFS-three\n"

    assert len(commits(tool)) == 2
    works(tool)


def test_a_journal_that_is_gone_comes_back(tool):
    shutil.rmtree(journal(tool).parent)

    code, message, _ = tool("status").error()
    assert (code, "the journal of WFS-three is gone; its second copy has 4 commits" in message) == (5, True)
    assert "damaged" in tool("sessions").ok().out

    tool("doctor", "--restore", "three", "--yes").ok()

    works(tool)


@pytest.mark.parametrize("what", ["a directory", "a pipe", "a link to itself", "a file for its directory"])
def test_whatever_is_in_the_place_of_a_journal_the_journal_comes_back(tool, what):
    path = journal(tool)
    if what == "a file for its directory":
        shutil.rmtree(path.parent)
        path.parent.write_text("kept")
    else:
        path.unlink()
        {"a directory": path.mkdir, "a pipe": lambda: os.mkfifo(path)}.get(what, lambda: path.symlink_to(path))()

    code, message, _ = tool("status").error()
    assert (code, "the journal of WFS-three is gone; its second copy has 4 commits" in message) == (5, True)
    assert "damaged" in tool("sessions").ok().out

    tool("doctor", "--fix", "--yes")

    works(tool)


@pytest.mark.parametrize("name", ["detent.toml", "approvers.toml"])
def test_a_pipe_in_the_place_of_settings_is_not_waited_for(tool, name):
    (tool.directory / name).unlink(missing_ok=True)
    os.mkfifo(tool.directory / name)

    assert f"{name} is not a file" in tool("doctor").out + tool("approver", "list").err


@pytest.mark.parametrize(
    "arguments", [("status",), ("start", "fix", "again"), ("init",), ("doctor",), ("doctor", "--fix")]
)
def test_a_project_whose_record_is_gone_says_so(tool, arguments):
    shutil.rmtree(tool.state)

    code, message, way_out = tool(*arguments).error()

    assert code == 5
    assert message == (
        f"the project {tool.directory} had 3 sessions, and the record is gone: WFS-one, WFS-three, WFS-two"
    )
    assert way_out == "detent doctor --restore brings it back, detent forget ends it"
    assert not tool.state.exists()


@pytest.mark.parametrize("how", [("--restore", "--yes"), ("--fix", "--yes")])
def test_the_whole_record_comes_back(tool, how):
    shutil.rmtree(tool.state)

    tool("doctor", *how).ok()

    assert tool("status", "--json").ok().json()["session"] == "WFS-three"
    assert [entry["summary"] for entry in phases(tool)] == list(PHASES)
    works(tool)


def phases(tool):
    return [entry for entry in tool("status", "--json").ok().json()["phases"] if entry["status"] == "completed"]


def test_the_record_of_a_package_comes_back(tmp_path):
    tool = Tool(tmp_path)
    (tmp_path / "api").mkdir()
    (tmp_path / "detent.toml").write_text(
        'gates = "off"\n[checkpoint]\ncapture = "off"\n[projects.api]\npath = "api"\n'
    )
    tool("init").ok()
    tool("start", "fix", "in the package", "--project", "api").ok()
    shutil.rmtree(tool.state)

    assert "had 1 session, and the record is gone: api/WFS-in-the-package" in tool("status", "--project", "api").err

    tool("doctor", "--restore", "--yes", "--project", "api").ok()
    assert tool("status", "--project", "api").ok().out.startswith("WFS-in-the-package")


def test_a_project_can_be_ended_on_purpose(tool):
    shutil.rmtree(tool.state)

    assert tool("forget", "--yes").ok().out == "forgot WFS-one, WFS-three, WFS-two\n"

    tool("start", "fix", "anew").ok()
    assert tool("sessions", "--json").ok().json()["active"] == "WFS-anew"


@pytest.mark.parametrize(
    "arguments", [("doctor", "--restore", "--yes"), ("doctor", "--fix", "--yes"), ("forget", "--yes")]
)
def test_mending_and_forgetting_are_decisions_of_a_person(tool, arguments):
    cut(tool)
    before = journal(tool).read_bytes()

    code, message, _ = tool(*arguments, **AGENT).error()

    assert (code, "is a person's decision" in message) == (1, True)
    assert journal(tool).read_bytes() == before
    assert "ends at commit 2" in tool("doctor").out


@pytest.mark.parametrize("verb", [("doctor", "--restore"), ("forget",)])
def test_where_nobody_can_be_asked_nothing_is_decided(tool, verb):
    cut(tool)

    assert tool(*verb).code == 2


def test_commits_in_a_sandbox_are_no_damage_and_are_caught_up_with(tool):
    sandbox = {"XDG_STATE_HOME": str(tool.directory / "notes.txt")}
    tool("begin", **sandbox).ok()

    warning = tool("doctor", "--json", **sandbox).ok().json()["findings"]
    behind = tool("doctor", "--json").ok().json()["findings"]

    assert [entry["subject"] for entry in warning] == ["second copies"]
    assert "cannot be written" in warning[0]["message"]
    assert [entry["message"] for entry in behind] == ["its second copy is 1 commit behind"]
    tool("adopt").ok()
    assert tool("doctor").ok().out == "all is well\n"


def test_without_a_home_doctor_says_that_there_is_no_second_copy(tool):
    [finding] = tool("doctor", "--json", XDG_STATE_HOME="").ok().json()["findings"]

    assert "neither XDG_STATE_HOME nor HOME names a directory" in finding["message"]


def test_a_moved_project_says_so_once_and_goes_on(tool):
    moved = Tool(tool.directory.rename(tool.directory.with_name("moved")))

    assert moved("adopt").ok().err == f"detent: this project was moved here from {tool.directory}\n"
    assert moved("adopt").ok().err == ""
    works(moved)


# Settings


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('gates = "of"\n', ", line 1: Invalid enum value 'of'"),
        ('gates = "off"\n\n[run]\nparalel = 2\n', ", line 4: Object contains unknown field `paralel`"),
        ('[agents.x]\nadapter = "command"\nretries = "many"\n', ", line 3: Expected `int`, got `str`"),
        ("gates = \n", " is not valid TOML: Invalid value (at line 1"),
        ("a = " + "[" * 5_000, " is nested too deeply"),
    ],
)
def test_doctor_says_what_is_wrong_with_the_settings_and_every_other_verb_refuses(tool, text, where):
    path = tool.directory / "detent.toml"
    path.write_text(text)

    shown = tool("doctor", "--json")
    [finding] = [entry for entry in shown.json()["findings"] if entry["severity"] == "error"]
    assert finding["message"].startswith(f"{path}{where}")
    assert finding["way_out"].startswith("correct it, or rename it")
    for verb in (["status"], ["start", "fix", "x"], ["finish", "-m", "x"], ["sessions"]):
        code, message, way_out = tool(*verb).error()
        assert (code, message.startswith(f"{path}{where}"), way_out) == (1, True, finding["way_out"])


def test_a_change_of_the_settings_is_recorded_once_with_who_was_at_work(tool):
    tool("begin").ok()
    with (tool.directory / "detent.toml").open("a") as file:
        file.write("# an agent was here\n")
    noticed = "noticed that detent.toml was changed; at work: solution-architect at 03-architecture"

    assert f"{noticed}; the next command records it" in tool("status").ok().err
    assert noticed in tool("finish", "-m", "planned", **AGENT).ok().err
    assert noticed not in tool("adopt").ok().err

    assert len([commit for commit in commits(tool) if commit["events"][0]["type"] == "settings_changed"]) == 1
    assert "noticed that detent.toml was changed" in tool("log").ok().out
    assert "noticed that detent.toml was changed" in tool("report").ok().out
