"""Checkpoints, rollback, undo and diff as people use them, in processes of their own."""

import hashlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detent.engine.project import open_project
from detent.render.terminal.canvas import columns_of
from tests.support.command import (
    DETENT,
    RUN_S_MAX,
    Ran,
    Tool,
    make_project,
    next_command,
    normalised,
    on_a_terminal,
    read_to_end,
)
from tests.support.golden_file import check_golden
from tests.support.privilege import without_privilege
from tests.support.typed_terminal import take_terminal

GOLDEN = Path(__file__).parent / "golden"
FIRST = "PRE_01-requirements_v1"
AFTER = "POST_01-requirements_v1"
SESSION = "WFS-add-login-with-passkeys"
MANY = 1_500


def tree(tool: Tool) -> dict[bytes, bytes]:
    """Every file of the project with its content, and links with their target; what is Detent's own apart."""
    found = {}
    for directory, folders, names in os.walk(os.fsencode(tool.directory)):
        folders[:] = [name for name in folders if name != b".workflow"]
        for name in names:
            path = os.path.join(directory, name)
            found[path] = os.readlink(path) if os.path.islink(path) else Path(os.fsdecode(path)).read_bytes()
    return found


def write(tool: Tool, **files: str) -> None:
    for name, text in files.items():
        (tool.directory / name.replace("__", ".")).write_text(text)


def without_ids(text: str) -> str:
    """Without what differs between two runs."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "0" * 8 + "-id", normalised(text))
    return re.sub(r"(?<![\d:])\d\d:\d\d(?!:)", "00:00", text)


@pytest.fixture
def work(detent, once) -> Tool:
    """A feature in its second phase, with files that the first one changed, made and deleted."""
    return once(make_work, detent)


def make_work(project: Tool) -> None:
    make_project(project)
    write(project, plan__md="one\ntwo\nthree\n", old__txt="goes\n")
    (project.directory / "src").mkdir()
    (project.directory / "src" / "m.py").write_text("def f():\n\treturn 1\n")
    project("start", "feature", "Add login with passkeys").ok()
    write(project, plan__md="one\n2\nthree\n", new__txt="fresh\n")
    (project.directory / "old.txt").unlink()
    project(
        *[
            "finish",
            "-m",
            "Wrote it down",
            "--artifact",
            "plan.md",
            "--artifact",
            "new.txt",
            "--tokens-in",
            "1200",
            "--tokens-out",
            "340",
        ]
    ).ok()
    project("begin").ok()
    (project.directory / "src" / "m.py").write_text("def f():\n\treturn 2\n")
    project("checkpoint", "create", "before the big refactoring").ok()


def unchanged(tool: Tool, *arguments: str, **environment: Any) -> Ran:
    """Carry it out; neither files nor state may be different afterwards."""
    before = tree(tool), tool.digest()
    ran = tool(*arguments, **environment)
    assert (tree(tool), tool.digest()) == before
    return ran


SHOWN = {
    "checkpoint-list": ["checkpoint", "list"],
    "checkpoint-show": ["checkpoint", "show", AFTER, "--files"],
    "checkpoint-create": ["checkpoint", "create", "again"],
    "rollback-dry-run": ["rollback", FIRST, "--dry-run"],
    "rollback": ["rollback", FIRST, "--yes"],
    "diff": ["diff", FIRST],
    "diff-stat": ["diff", FIRST, "now", "--stat"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_looks_as_it_did(work, name):
    check_golden(GOLDEN / f"{name}.txt", without_ids(work(*SHOWN[name]).ok().out).rstrip("\n"))


def test_undo_looks_as_it_did(work):
    work("rollback", FIRST, "--yes").ok()
    check_golden(GOLDEN / "checkpoint-list-rolled-back.txt", without_ids(work("checkpoint", "list").ok().out).rstrip())
    check_golden(GOLDEN / "undo.txt", without_ids(work("undo", "--yes").ok().out).rstrip("\n"))


# Listing and showing


def test_the_list_as_json_is_an_array_with_the_newest_last(work):
    found = work("checkpoint", "list", "--json").ok()
    listed = found.json()
    assert [(one["name"], one["outcome"]) for one in listed] == [
        (FIRST, "started"),
        (AFTER, "success"),
        ("PRE_02-impact-analysis_v1", "started"),
        ("PRE_02-impact-analysis_v1_at4", "note"),
    ]
    asked = {"id", "name", "phase", "type", "version", "outcome", "created_at", "parent_checkpoint_id"}
    assert asked | {"files", "size_bytes", "left_out", "note"} <= set(listed[0])
    assert [one["parent_checkpoint_id"] for one in listed] == [None, *(one["id"] for one in listed[:-1])]
    assert listed[-1]["note"] == "before the big refactoring"
    assert work("checkpoint", "list", "-n", "1", "--json").json() == listed[-1:]
    assert work("--json", "checkpoint", "list").json() == listed
    assert found.err == ""


def test_a_long_list_is_cut_for_people_and_not_for_programs(work):
    for _ in range(20):
        work("checkpoint", "create").ok()
    shown = work("checkpoint", "list").ok().out
    assert shown.startswith("4 earlier left out; detent checkpoint list -n 0 shows all\n")
    assert len(work("checkpoint", "list", "--json").json()) == 24
    assert len(work("checkpoint", "list", "-n", "0").out.splitlines()) == 1 + 24 + 1


def test_a_notice_does_not_spoil_the_array(work):
    document = work.state / "state.json"
    document.write_bytes(document.read_bytes().replace(b"Wrote it down", b"Wrote it up"))
    listed = work("checkpoint", "list", "--json").ok()
    assert len(listed.json()) == 4
    assert "edited by hand" in listed.err


def test_show_says_what_the_document_says(work):
    shown = work("checkpoint", "show", AFTER, "--json", "--files").ok().json()
    document = msgspec.json.decode((work.state / "checkpoints" / f"run-{SESSION}" / f"{AFTER}.json").read_bytes())
    assert {key: shown[key] for key in document} == document
    assert [one["path"] for one in shown["files"]] == ["new.txt", "plan.md", "src/m.py"]
    digest = hashlib.sha256(b"fresh\n").hexdigest()
    assert shown["files"][0] == {"path": "new.txt", "kind": "f", "size_bytes": 6, "sha256": digest}


def test_what_was_left_out_is_told_with_the_reason(project):
    (project.directory / "detent.toml").write_text('gates = "off"\n[checkpoint]\nmax_file_mb = 1\n')
    (project.directory / "big.iso").write_bytes(b"x" * 1_100_000)
    os.mkfifo(project.directory / "pipe")
    project("start", "fix", "It").ok()
    name = project("checkpoint", "list", "--json").json()[0]["name"]
    shown = project("checkpoint", "show", name).ok().out
    assert "left out: 2 files" in shown
    assert re.search(r"big\.iso: larger than 1048576 bytes\n +pipe: neither a file nor a link", shown)
    assert set(project("checkpoint", "show", name, "--json").json()["left_out"]) == {"big.iso", "pipe"}


def test_a_checkpoint_by_its_id_and_by_the_start_of_it(work):
    listed = work("checkpoint", "list", "--json").json()
    for name in (listed[1]["id"], listed[1]["id"][:8], AFTER.lower()):
        assert work("checkpoint", "show", name).ok().out.startswith(AFTER)


def test_create_says_how_to_go_back(work):
    made = work("checkpoint", "create", "-", stdin=b"from a pipe").ok()
    assert next_command(made.out) == ["rollback", "PRE_02-impact-analysis_v1_at5"]
    as_json = work("checkpoint", "create", "--json").ok().json()["checkpoint"]
    assert work("checkpoint", "list", "--json").json()[-1] == as_json
    assert work("checkpoint", "list", "--json").json()[-2]["note"] == "from a pipe"


# Going back


def test_a_dry_run_tells_all_and_changes_nothing(work):
    told = unchanged(work, "rollback", FIRST, "--dry-run").ok()
    plan = unchanged(work, "rollback", FIRST, "--dry-run", "--json").ok().json()
    assert plan["dry_run"] is True
    assert plan["result"] is None
    assert plan["plan"]["files"] == {
        "restored": ["plan.md", "src/m.py"],
        "removed": ["new.txt"],
        "added": ["old.txt"],
    }
    assert plan["plan"]["phases"]["01-requirements"] == {"before": "completed", "after": "pending"}
    assert told.err == ""
    unchanged(work, "rollback", FIRST, "--dry-run", "--yes").ok()


def test_rollback_and_undo(work):
    before = tree(work)
    status = work("status", "--json").json()
    rolled = work("rollback", FIRST, "--yes", "--json").ok().json()
    assert (work.directory / "plan.md").read_text() == "one\ntwo\nthree\n"
    assert (work.directory / "old.txt").read_text() == "goes\n"
    assert not (work.directory / "new.txt").exists()
    assert rolled["result"]["safety"]["name"] == "PRE_02-impact-analysis_v1_at5_safety"
    assert rolled["result"]["files"] == 4
    assert rolled["result"]["session"]["next"] == ["detent begin 01-requirements"]
    after = tree(work)
    work("undo", "--yes").ok()
    assert tree(work) == before
    assert work("status", "--json").json()["phases"][0]["status"] == status["phases"][0]["status"]
    assert work("status", "--json").json()["in_progress"] == ["02-impact-analysis"]
    work("undo", "--yes").ok()
    assert tree(work) == after
    assert "all is well" in work("doctor").ok().out
    assert "rolled back to PRE_01-requirements_v1, 4 files" in work("log", COLUMNS="120").ok().out


def test_only_the_phases(work):
    before = tree(work)
    shown = work("rollback", FIRST, "--phase-only", "--yes").ok().out
    assert "files: none, because of --phase-only" in shown
    assert tree(work) == before
    assert work("status", "--json").json()["ready"] == ["01-requirements"]


def test_only_some_files_named_from_where_one_is(work):
    shown = work("-C", "src", "rollback", FIRST, "--paths", "m.py", "--paths", "../plan.md", "--yes").ok().out
    assert "phases: none, because of --paths" in shown
    assert (work.directory / "src" / "m.py").read_text() == "def f():\n\treturn 1\n"
    assert (work.directory / "plan.md").read_text() == "one\ntwo\nthree\n"
    assert (work.directory / "new.txt").exists()
    assert work("status", "--json").json()["in_progress"] == ["02-impact-analysis"]
    work("undo", "--yes").ok()
    assert (work.directory / "src" / "m.py").read_text() == "def f():\n\treturn 2\n"


def test_a_directory_and_an_absolute_path(work):
    work("rollback", FIRST, "--paths", "src", "--paths", str(work.directory / "old.txt"), "--yes").ok()
    assert (work.directory / "src" / "m.py").read_text() == "def f():\n\treturn 1\n"
    assert (work.directory / "old.txt").exists()
    assert (work.directory / "plan.md").read_text() == "one\n2\nthree\n"


def test_a_name_that_no_terminal_and_no_json_can_hold(project):
    """It is shown as text, and what is shown can be typed."""
    odd = os.path.join(os.fsencode(project.directory), b"caf\xe9\x1b[31m.txt")
    Path(os.fsdecode(odd)).write_text("one\n")
    project("start", "feature", "Add login with passkeys").ok()
    Path(os.fsdecode(odd)).write_text("two\n")
    shown = project("rollback", FIRST, "--dry-run").ok().out
    assert r"~ caf\xe9\x1b[31m.txt" in shown
    assert r"+++ b/caf\xe9\x1b[31m.txt" in project("diff", FIRST).ok().out
    listed = project("rollback", FIRST, "--dry-run", "--json").ok().json()["plan"]["files"]["restored"]
    project("rollback", FIRST, "--paths", listed[0], "--yes").ok()
    assert Path(os.fsdecode(odd)).read_text() == "one\n"


def test_a_session_that_has_ended_can_be_gone_back_in(work):
    work("complete", "--force").ok()
    code, message, way_out = work("rollback", FIRST, "--yes").error()
    assert (code, message) == (1, "no session is active")
    assert "--session" in way_out
    work("rollback", FIRST, "--yes", "--session", SESSION).ok()
    assert "detent begin 01-requirements" in work("status").ok().out


def test_elsewhere_than_on_a_terminal_yes_is_needed(work):
    for verb in (["rollback", FIRST], ["undo"]):
        ran = unchanged(work, *verb)
        code, _, way_out = ran.error()
        assert code == 2
        assert "--yes" in way_out
        as_json = unchanged(work, *verb, "--json")
        assert (as_json.code, as_json.json()["error"]["kind"]) == (2, "usage")
        assert "--yes" in as_json.json()["error"]["message"]


def asked(tool: Tool, *arguments: str, answer: bytes, meanwhile=lambda _: None) -> tuple[int, str]:
    """What a person at a terminal sees who answers the question; `meanwhile` is done before the answer."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [DETENT, *arguments],
        cwd=tool.directory,
        env=tool.environment | {"TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 - no other thread is there
    )
    os.close(theirs)
    seen = b""
    while True:
        if not select.select([ours], [], [], RUN_S_MAX)[0]:
            process.kill()
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
        if answer and b"[y/N]" in seen:
            meanwhile(process)
            os.write(ours, answer)
            answer = b""
    os.close(ours)
    return process.wait(RUN_S_MAX), seen.decode("utf-8", "replace").replace("\r\n", "\n")


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04", b"yess\n", b"\xff\n"])
def test_whoever_does_not_say_yes_says_no(work, answer):
    before = tree(work), work.digest()
    code, seen = asked(work, "rollback", FIRST, answer=answer)
    assert code == 1
    assert "files: 2 restored, 1 removed, 1 added" in seen
    assert seen.endswith("nothing was changed\n")
    assert (tree(work), work.digest()) == before


def test_whoever_says_yes_is_shown_what_was_done(work):
    code, seen = asked(work, "rollback", FIRST, answer=b"y\n")
    assert code == 0
    assert seen.count("roll back to ") == 1
    assert "✓ rolled back to PRE_01-requirements_v1" in seen
    code, seen = asked(work, "undo", answer=b"YES\n")
    assert code == 0
    assert "undo the rollback? [y/N]" in seen


def test_yes_leaves_out_the_plan_and_not_the_decision(work):
    before = tree(work), work.digest()
    code, seen = asked(work, "rollback", FIRST, "--yes", answer=b"n\n")
    assert code == 1
    assert "files: 2 restored" not in seen
    assert "Is that your decision? [y/N]" in seen
    assert "rollback was not confirmed, and nothing was changed" in seen
    assert (tree(work), work.digest()) == before
    assert asked(work, "rollback", FIRST, "--yes", answer=b"y\n")[0] == 0


def test_what_was_agreed_to_is_what_happens(work):
    before = work.digest()
    code, seen = asked(
        *[work, "rollback", FIRST],
        answer=b"y\n",
        meanwhile=lambda _: (work.directory / "plan.md").write_text("in the meantime\n"),
    )
    assert code == 4
    assert "changed since the plan was shown" in seen
    assert (work.directory / "plan.md").read_text() == "in the meantime\n"
    assert not (work.directory / "old.txt").exists()
    assert work.digest()[f"{SESSION}/journal.jsonl"] == before[f"{SESSION}/journal.jsonl"]


def test_an_interrupt_instead_of_an_answer(work):
    before = tree(work), work.digest()

    def interrupt(process):
        # Once it waits for the answer: right before that a signal would only be looked at after it.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)

    code, seen = asked(work, "rollback", FIRST, answer=b"\0", meanwhile=interrupt)
    assert code == 130
    assert re.search(r"\[y/N\] (\^@)?\n(\^@)?detent: interrupted\n", seen)
    assert (tree(work), work.digest()) == before


@pytest.mark.parametrize("shell", ["CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "DETENT_PHASE"])
def test_an_agent_may_look_and_not_go_back(work, shell):
    for verb in (["rollback", FIRST, "--yes"], ["undo", "--yes"]):
        code, message, way_out = unchanged(work, *verb, **{shell: "1"}).error()
        assert code == 1
        assert "rollback is a person's decision" in message
        assert "terminal of your own" in way_out
    unchanged(work, "rollback", FIRST, "--dry-run", **{shell: "1"}).ok()
    work("checkpoint", "create", **{shell: "1"}).ok()


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.15])
def test_an_interrupt_during_a_rollback_undoes_it(project, delay_s):
    files = project.directory / "many"
    files.mkdir()
    for number in range(MANY):
        (files / f"{number}.txt").write_text(f"one {number}\n")
    project("start", "feature", "Add login with passkeys").ok()
    for number in range(MANY):
        (files / f"{number}.txt").write_text(f"two {number}\n")
    before, log = tree(project), project("log").out
    intent = project.state / "checkpoints" / "rollback.json"
    process = subprocess.Popen(
        [DETENT, "rollback", FIRST, "--yes"],
        cwd=project.directory,
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not intent.exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=RUN_S_MAX)
    assert not intent.exists()
    assert b"Traceback" not in errors
    if process.returncode == 130 and project("log").out != log:
        # It came after the commit, while documents were written: then all of it was done.
        assert b"two" not in b"".join(data for path, data in tree(project).items() if b"/many/" in path)
    elif process.returncode == 130:
        assert (out, errors) == (b"", b"detent: interrupted\n")
        assert tree(project) == before
        assert project("log").out == log
    else:
        # It was faster than the signal, which is only allowed to be too late for the last of them.
        assert process.returncode == 0
        assert delay_s
    assert project("doctor").ok().out == "all is well\n"
    project("rollback", FIRST, "--yes").ok()
    assert (files / "7.txt").read_text() == "one 7\n"


# Comparing


def test_diff_for_programs(work):
    diff = unchanged(work, "diff", FIRST, "--json").ok().json()
    assert (diff["a"], diff["b"], diff["newly_completed"]) == (FIRST, "now", ["01-requirements"])
    assert (diff["added"], diff["removed"], diff["modified"]) == (["new.txt"], ["old.txt"], ["plan.md", "src/m.py"])
    assert diff["agents"][0]["input_tokens"] == 1200
    assert diff["diffs"]["new.txt"].splitlines() == ["--- /dev/null", "+++ b/new.txt", "@@ -0,0 +1 @@", "+fresh"]
    stat = work("diff", FIRST, AFTER, "--stat", "--json").json()["stat"]
    assert stat["plan.md"] == {"change": "modified", "lines_added": 1, "lines_removed": 1}


def test_where_nothing_differs_it_says_so(work):
    assert "nothing differs" in work("diff", AFTER, AFTER).ok().out
    assert work("diff", AFTER, AFTER, "--exit-code").code == 0
    assert work("diff", AFTER, "--exit-code").code == 1
    assert work("diff", AFTER, "--exit-code", "--json").code == 1
    assert work("diff", AFTER).code == 0


def test_what_a_terminal_would_obey_is_shown_instead(work):
    write(work, evil__txt="\x1b[2J\tboo\r\nno end")
    shown = work("diff", AFTER, "now").ok().out
    assert "\x1b" not in shown
    assert "+\\x1b[2J    boo\\r\n+no end\n\\ No newline at end of file\n" in shown


def test_what_has_no_lines_to_show(work):
    write(work, empty__txt="")
    (work.directory / "b.bin").write_bytes(b"\0\1\2")
    (work.directory / "new.txt").chmod(0o755)
    (work.directory / "link").symlink_to("nowhere")
    shown = work("diff", AFTER).ok().out
    for line in ("empty.txt: added, empty", "b.bin: binary", "new.txt: was a file, is an executable file", "+nowhere"):
        assert line in shown
    stat = work("diff", AFTER, "--stat").ok().out
    assert re.search(r"^\+ b\.bin +binary", stat, re.MULTILINE)
    assert re.search(r"^~ new\.txt +was a file, is an executable file$", stat, re.MULTILINE)


def test_a_long_diff_is_cut_and_says_so(work):
    write(work, long__txt="".join(f"{number}\n" for number in range(3000)), zz__txt="z\n")
    shown = work("diff", AFTER).ok().out
    assert "2000 lines shown, 3 files not or not in full; -n 0 shows all, --stat counts" in " ".join(shown.split())
    assert "+2999" not in shown
    whole = work("diff", AFTER, "-n", "0").ok().out
    assert "+2999" in whole
    assert "+z" in whole
    assert re.search(r"^\+ long\.txt +\+3000 -0$", work("diff", AFTER, "--stat").out, re.MULTILINE)


# Keeping them whole


def test_verify_finds_all_whole(work):
    ran = unchanged(work, "checkpoint", "verify").ok()
    assert re.fullmatch(r"\d+ objects, all intact\n", ran.out)
    assert work("checkpoint", "verify", "--json").json()["damaged"] == []


def damage(tool: Tool, content: bytes) -> None:
    """Flip a byte of stored content, wherever it is."""
    for path in (tool.state / "checkpoints" / "artifacts").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        at = data.find(content)
        if at >= 0:
            path.chmod(0o644)
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_verify_names_what_is_damaged_and_whom_it_concerns(work):
    damage(work, b"fresh\n")
    ran = work("checkpoint", "verify")
    assert ran.code == 5
    told = " ".join(ran.out.split())
    assert "1 damaged or missing" in told
    assert f"new.txt in {AFTER}, PRE_02-impact-analysis_v1, PRE_02-impact-analysis_v1_at4 of {SESSION}" in told
    as_json = work("checkpoint", "verify", "--json")
    assert as_json.code == 5
    (found,) = as_json.json()["damaged"]
    assert found["digest"] == hashlib.sha256(b"fresh\n").hexdigest()
    assert {"session": SESSION, "checkpoint": AFTER, "path": "new.txt"} in found["used_by"]


def test_a_damaged_object_stops_a_rollback_before_it_touches_anything(work):
    (work.directory / "new.txt").write_text("changed since\n")
    damage(work, b"fresh\n")
    before = tree(work)
    ran = work("rollback", AFTER, "--yes")
    assert ran.code == 5
    assert tree(work) == before


def test_verify_notices_what_is_missing(work):
    for path in (work.state / "checkpoints" / "artifacts").rglob("*"):
        if path.is_file() and path.read_bytes() == b"one\n2\nthree\n":
            path.unlink()
    ran = work("checkpoint", "verify")
    assert ran.code == 5
    assert "plan.md in" in ran.out


def test_verify_notices_what_left_no_trace(work):
    """Objects that are gone with their records, and a list of files that cannot be read."""
    digest = hashlib.sha256(b"fresh\n").hexdigest()
    with open_project(work.directory) as project:
        objects = project.checkpoints.objects
        objects.collect(set(objects.digests()) - {digest}, dry_run=False)
    (found,) = work("checkpoint", "verify", "--json").json()["damaged"]
    assert (found["digest"], found["reason"]) == (digest, f"object {digest} is missing")
    assert {"session": SESSION, "checkpoint": AFTER, "path": "new.txt"} in found["used_by"]
    shutil.rmtree(work.state / "checkpoints" / "artifacts")
    ran = work("checkpoint", "verify")
    assert ran.code == 5
    assert f"the list of its files in {FIRST} of {SESSION}" in " ".join(ran.out.split())


def test_gc_tells_first_and_removes_with_yes(work):
    assert "nothing to remove" in work("checkpoint", "gc").ok().out
    write(work, huge__txt="only of a session that goes\n")
    work("start", "fix", "Another").ok()
    other = next(path for path in work.state.glob("WFS-another*") if path.is_dir())
    work("cancel", "--reason", "no").ok()
    for path in sorted(other.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    other.rmdir()
    # Its second copy can bring the session back, so its objects stay until a person gives it up.
    assert unchanged(work, "checkpoint", "gc").code == 5
    work("forget", "another", "--yes").ok()
    told = unchanged(work, "checkpoint", "gc").ok()
    assert re.match(r"would remove \d+ objects, .* that nothing references", told.out)
    assert next_command(told.out) == ["checkpoint", "gc", "--yes"]
    assert work("checkpoint", "gc", "--yes").ok().out.startswith("removed ")
    assert "nothing to remove" in work("checkpoint", "gc").ok().out
    work("checkpoint", "verify").ok()
    work("rollback", FIRST, "--yes", "--session", SESSION).ok()


def test_a_session_travels_with_its_checkpoints(work, tmp_path_factory):
    file = tmp_path_factory.mktemp("out") / "login.bundle"
    told = unchanged(work, "export", "bundle", "--with-files", "-o", str(file)).ok().out
    assert "with the contents of files" in " ".join(told.split())
    assert work("export", "bundle", "--with-files", "-o", str(file), "--json").json()["with_files"]
    other = Tool(tmp_path_factory.mktemp("other"))
    (other.directory / "detent.toml").write_text('gates = "off"\n')
    other("init").ok()
    imported = other("import", str(file)).ok()
    assert next_command(imported.out) == ["checkpoint", "list", "--session", SESSION]
    theirs = other(*next_command(imported.out), "--json").json()
    assert theirs == work("checkpoint", "list", "--json").json()
    other("rollback", AFTER, "--yes", "--session", SESSION).ok()
    assert (other.directory / "new.txt").read_text() == "fresh\n"
    file.write_bytes(file.read_bytes()[:-10])
    assert other("import", str(file)).code == 5


def test_a_bundle_without_files_is_imported_with_a_word_about_what_it_lacks(work, tmp_path_factory):
    file = tmp_path_factory.mktemp("out") / "login.bundle"
    file.write_bytes(work.run("export", "bundle").stdout)
    other = Tool(tmp_path_factory.mktemp("other"))
    (other.directory / "detent.toml").write_text('gates = "off"\n')
    other("init").ok()

    imported = other("import", str(file)).ok()

    assert "none of its 4 checkpoints can be restored" in imported.err
    assert "without the contents of files" in other("doctor").ok().out


def test_an_export_of_a_bundle_replaces_no_other_file(work):
    (work.directory / "precious").write_text("mine")

    code, message, _ = work("export", "bundle", "-o", "precious").error()

    assert (code, "is no bundle" in message) == (4, True)
    assert work("export", "state", "--with-files").error()[0] == 2


# Whatever is wrong


@pytest.mark.parametrize(
    ("arguments", "code", "message", "way_out"),
    [
        ("rollback PRE_01-requirments_v1 --yes", 1, f"did you mean {FIRST}?", "detent checkpoint list"),
        ("checkpoint show nonsense", 1, "has no checkpoint 'nonsense'", "detent checkpoint list"),
        ("diff nonsense", 1, "has no checkpoint 'nonsense'", "detent checkpoint list"),
        ("undo --yes", 1, "no rollback to undo", "detent rollback CHECKPOINT"),
        (f"rollback {FIRST} --yes --paths ../x", 1, "outside the project", "name a path in"),
        (f"rollback {FIRST} --yes --paths /etc/passwd", 1, "outside the project", "name a path in"),
        (f"rollback {FIRST} --yes --paths nowhere.txt", 1, "none of nowhere.txt", "detent checkpoint show"),
        (f"rollback {FIRST} --yes --paths x --phase-only", 2, "leave one of them out", "detent rollback --help"),
        (f"rollback {FIRST} --yes --session nowhere", 1, "there is no session", "detent sessions"),
        ("rollback --yes", 2, "name a checkpoint, a phase, or -N", "detent rollback --help"),
        ("checkpoint nonsense", 2, "there is no verb checkpoint nonsense", "detent checkpoint --help"),
        ("import nowhere", 1, "nowhere", ""),
        ("export bundle -o nowhere/x", 1, "nowhere/x", ""),
    ],
)
def test_bad_input(work, arguments, code, message, way_out):
    ran = unchanged(work, *arguments.split())
    told = ran.error()
    assert told[0] == code
    assert message in told[1]
    assert way_out in told[2]


def test_an_ambiguous_start_of_an_id(work):
    script = (
        "import itertools, detent.core.session.decide_checkpoint as decide\n"
        "from detent.cli.main import run\n"
        "ids = itertools.count()\n"
        "decide.checkpoint_id = lambda *_: f'abcdef0{next(ids)}-0000-8000-8000-000000000000'\n"
        "assert run(['checkpoint', 'create', 'a']) == run(['checkpoint', 'create', 'b']) == 0\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=work.directory, env=work.environment, check=True)
    code, message, _ = unchanged(work, "rollback", "abcdef", "--yes").error()
    assert code == 1
    assert "may be any of 2 checkpoints: abcdef00-000 (PRE_02-impact-analysis_v1_at5), abcdef01" in message
    assert work("checkpoint", "show", "abcdef01").ok().out.startswith("PRE_02-impact-analysis_v1_at6")
    assert unchanged(work, "checkpoint", "show", "abcde").code == 1


def test_without_a_session_and_without_checkpoints(project):
    for arguments in ("checkpoint list", "checkpoint create", "diff now", f"rollback {FIRST} --yes", "undo --yes"):
        code, message, way_out = unchanged(project, *arguments.split()).error()
        assert (code, message) == (1, "no session is active")
        assert way_out.startswith("detent start")
    assert project("checkpoint", "verify").ok().out == "0 objects, all intact\n"
    assert "nothing to remove" in project("checkpoint", "gc").ok().out


def test_where_checkpoints_are_switched_off(project):
    (project.directory / "detent.toml").write_text('gates = "off"\n[checkpoint]\ncapture = "off"\n')
    project("start", "fix", "It").ok()
    assert "switches them off" in " ".join(project("checkpoint", "list").ok().out.split())
    assert project("checkpoint", "list", "--json").json() == []
    code, message, way_out = unchanged(project, "checkpoint", "create").error()
    assert (code, "switched off" in message, "[checkpoint]" in way_out) == (1, True, True)
    assert unchanged(project, "rollback", "PRE_01_v1", "--yes").code == 1


def test_checkpoints_that_were_never_taken(project):
    (project.directory / "detent.toml").write_text('gates = "off"\n[checkpoint]\ncapture = "off"\n')
    project("start", "fix", "It").ok()
    (project.directory / "detent.toml").write_text('gates = "off"\n')
    assert "has no checkpoints yet" in project("checkpoint", "list").ok().out


@pytest.mark.parametrize(
    "arguments",
    [
        "checkpoint list",
        f"checkpoint show {AFTER}",
        f"diff {FIRST}",
        "checkpoint verify",
        f"rollback {FIRST} --dry-run",
    ],
)
def test_looking_needs_no_right_to_write(work, arguments):
    paths = [work.directory, work.state, *work.state.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = work.digest()
    looked = Ran(work.run(*arguments.split(), preexec_fn=without_privilege))
    for path, mode in modes.items():
        path.chmod(mode)
    assert (looked.code, looked.err) == (0, "")
    assert work.digest() == before


# The form of answers


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_it_fits_the_terminal(work, columns):
    work("rollback", FIRST, "--yes").ok()
    for arguments in (
        ["checkpoint", "list"],
        ["checkpoint", "show", AFTER],
        ["rollback", AFTER, "--dry-run"],
        ["undo", "--dry-run"],
        ["diff", AFTER, "--stat"],
        ["checkpoint", "gc"],
    ):
        text = on_a_terminal(work, *arguments, columns=columns, TERM="dumb")
        assert max(columns_of(line) for line in text.splitlines()) <= columns, arguments


def test_colour_is_for_terminals_only(work):
    for arguments in (["rollback", FIRST, "--dry-run"], ["diff", FIRST], ["checkpoint", "show", AFTER]):
        coloured = without_ids(on_a_terminal(work, *arguments, TERM="xterm"))
        piped = without_ids(work(*arguments).ok().out)
        assert "\x1b[" in coloured
        assert "\x1b" not in piped
        assert re.sub(r"\x1b\[\d+m", "", coloured) == piped


def test_an_encoding_without_the_glyphs(work):
    for arguments in (["rollback", FIRST, "--dry-run"], ["diff", FIRST], ["checkpoint", "list"]):
        ran = work.run(*arguments, PYTHONIOENCODING="ascii")
        assert ran.returncode == 0
        ran.stdout.decode("ascii")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("detent rollback PO", [AFTER]),
        ("detent checkpoint show PRE_01", [FIRST]),
        ("detent diff n", ["now"]),
        ("detent diff now PO", [AFTER]),
        ("detent checkpoint ver", ["verify"]),
        (f"detent rollback --session {SESSION} PO", [AFTER]),
    ],
)
def test_completion_knows_checkpoints(work, words, offered):
    ran = work(_DETENT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1)).ok()
    assert ran.out.split() == [f"plain,{word}" for word in offered]


def slow(tool: Tool, *arguments: str, terminal: bool) -> tuple[str, str]:
    """Standard output and error of a command for which nothing is too quick to be told."""
    script = (
        "import sys, detent.cli.progress as progress, detent.objects.universe as universe\n"
        "progress._QUIET_S = progress._REDRAW_S = progress._REPEAT_S = 0\n"
        "universe._PROGRESS_EVERY = 10\n"
        "from detent.cli.main import run\n"
        f"sys.exit(run({list(arguments)!r}))\n"
    )
    ours, theirs = pty.openpty() if terminal else os.pipe()
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tool.directory,
        env=tool.environment,
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    return ran.stdout.decode(), read_to_end(ours)


@pytest.mark.parametrize("arguments", [["checkpoint", "create"], ["finish", "-m", "x"], ["diff", FIRST]])
def test_how_far_it_is_goes_to_standard_error(work, arguments):
    for number in range(25):
        write(work, **{f"f{number}": "x"})
    out, seen = slow(work, *arguments, terminal=False)
    assert "capturing" not in out
    # A file that was changed in the very moment of the last capture is read again.
    first, second, *_ = seen.splitlines()
    assert re.fullmatch(r"detent: working on files, 0 of 2\d", first)
    assert re.fullmatch(r"detent: working on files, 10 of 2\d", second)


def test_on_a_terminal_it_is_drawn_over_and_taken_away(work):
    for number in range(25):
        write(work, **{f"f{number}": "x"})
    _, seen = slow(work, "checkpoint", "create", terminal=True)
    assert "\n" not in seen
    assert re.search(r"\rdetent: working on files, 20 of 2\d", seen)
    assert seen.endswith(f"\r{' ' * len('detent: working on files, 20 of 25')}\r")
    _, seen = slow(work, "checkpoint", "verify", terminal=True)
    assert "hashing objects" in seen


def test_programs_are_not_told_how_far_it_is(work):
    write(work, more="x")
    out, seen = slow(work, "checkpoint", "create", "--json", terminal=False)
    assert seen == ""
    assert msgspec.json.decode(out)["notices"] == []
