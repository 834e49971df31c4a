"""`kill -9` before every call that changes the disk, and in the middle of every write, of whatever moves files.

The next command finds the tree and the session as they were before or as they are after: both of the same side.
"""

import signal
import sys
from pathlib import Path

import pytest

from detent.core.session.evolve import fingerprint
from detent.core.session.session import SessionStatus
from detent.doctor.invariants import check
from tests.support import faults
from tests.support.campaign import IS_WHOLE, STRIDE, struck_calls
from tests.support.faults import DONE, Counter, die, die_halfway, in_child, watching
from tests.support.rollback_scenarios import (
    ALSO_WATCHED,
    LEFTOVERS,
    SCENARIOS,
    copy_of,
    prepare,
    quick_tree,
    tree_of,
    world,
)
from tests.support.scenarios import carry_out, documents, history_lines, reopen

pytestmark = pytest.mark.usefixtures("watch_everything", "small_large_files")
PERSON = b"a person wrote this"


def struck(scenario, template, place, strike, number):
    copy_of(template, place)
    return in_child(lambda said: carry_out(scenario, place, said), Counter(strike, number))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_kill_at_every_call_leaves_files_and_phases_of_the_same_side(scenario, quick_path, capsys):
    template = prepare(scenario, quick_path / "template")
    before = world(template)
    whole = copy_of(template, quick_path / "whole")
    assert in_child(lambda said: carry_out(scenario, whole, said), Counter()) == (DONE, True)
    after, written = world(whole), documents(whole)
    assert before != after
    names = calls_of(scenario, copy_of(template, quick_path / "counted"))
    halves = 0
    sides = []

    for number in struck_calls():
        place = quick_path / "struck"
        status, acknowledged = struck(scenario, template, place, die, number)
        if status == DONE:
            break
        assert status == -signal.SIGKILL
        sides.append(settled(place, before, after, written, number, acknowledged=acknowledged))
        if number % 6 == 0:
            next_rollback(place)
        if names[number - 1] == "write":
            status, acknowledged = struck(scenario, template, place, die_halfway, number)
            assert status == -signal.SIGKILL
            settled(place, before, after, None, number, acknowledged=acknowledged)
            halves += 1

    with capsys.disabled():
        sys.stdout.write(
            f"\n  {scenario}: {len(sides)} calls, {halves} halved writes, {sides.count(False)} end before it "
        )
    assert len(names) >= scenario.least
    assert len(sides) == len(names) // STRIDE
    assert halves == names[STRIDE - 1 :: STRIDE].count("write")
    assert sides == sorted(sides), "a later kill lost what an earlier one kept"
    assert set(sides) == {False, True}


def calls_of(scenario, directory):
    """The calls in their order, each of which is struck."""
    counter = Counter()
    with watching(counter):
        carry_out(scenario, directory, lambda: None)
    return counter.calls


def settled(place, before, after, written, number, *, acknowledged):
    """True if the command has happened once the next one has looked after it."""
    with reopen(place, late=True) as project:
        project.reconcile()
        project.flush()
        found = world(place)
        findings = [one for one in check(project) if "unfinished write" not in one.message]
        assert findings == [], f"call {number}"
        for name in project.store.sessions():
            session = project.session(name).state
            assert history_lines(place, name) == (session.status is not SessionStatus.ACTIVE)
            assert list(project.session(name).log())[-1].state == fingerprint(session)
    assert found in (before, after), f"call {number}: {difference(found, before, after)}"
    assert found == after or not acknowledged, f"call {number}: what was acknowledged is gone"
    left = [name for name in LEFTOVERS if (place / ".workflow/checkpoints" / name).exists()]
    assert left == [], f"call {number}"
    if found == after and written is not None:
        assert documents(place) == written, f"call {number}"
    return found == after


def difference(found, before, after):
    """In words, for the reader of a failed test."""
    sides = {
        "tree": [side for side, one in (("before", before), ("after", after)) if one.tree == found.tree],
        "state": [side for side, one in (("before", before), ("after", after)) if one.standing == found.standing],
    }
    missing = {path for path in {*found.tree, *before.tree} if found.tree.get(path) != before.tree.get(path)}
    return f"a mixture, {sides}; differs from before in {sorted(missing)}"


def next_rollback(place):
    """Whatever happened, every checkpoint can still be returned to, and that be undone."""
    with reopen(place, late=True) as project:
        handle = project.session("WFS-try-it")
        now = tree_of(place)
        first = handle.checkpoints.all()[0].event
        handle.checkpoints.rollback(first.id, remove_unknown=True)
        expected = quick_tree(place.parent)
        assert {path: tree_of(place).get(path) for path in expected} == expected
        handle.checkpoints.undo()
        assert tree_of(place) == now
        project.flush()
        assert check(project) == []


def write_if_possible(path):
    """As a person would who finds the tree half restored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PERSON)
    except (NotADirectoryError, FileExistsError, IsADirectoryError):
        pass


def two_at_once(directory):
    """So that the rollback has to be undone, and one of its files cannot come back."""
    (directory / "modified").write_bytes(PERSON)
    if not (directory / "added/new").exists():
        write_if_possible(directory / "added/new/inside")


EDITS = {
    "a file that is modified": lambda d: (d / "modified").write_bytes(PERSON),
    "a file that is removed": lambda d: write_if_possible(d / "added/new"),
    "a file that comes back": lambda d: write_if_possible(d / "removed later"),
    "a file that belongs where a directory is": lambda d: write_if_possible(d / "swapped/deep/z"),
    "a directory where a file belongs": lambda d: write_if_possible(d / "removed later/inside"),
    "a file beside": lambda d: (d / "mine").write_bytes(PERSON),
    "one of the files, and a directory where another was": two_at_once,
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_a_person_writes_after_a_kill_survives_the_next_command(edit, quick_path):
    scenario = SCENARIOS[0]
    template = prepare(scenario, quick_path / "template")
    before = world(template)
    whole = copy_of(template, quick_path / "whole")
    in_child(lambda said: carry_out(scenario, whole, said), Counter())
    after = world(whole)
    calls = len(calls_of(scenario, copy_of(template, quick_path / "counted")))
    edited = 0

    # Each edit at every third call of those that are struck, another third for the next edit.
    step = 3 if IS_WHOLE else 9
    for number in range(1 + list(EDITS).index(edit) % step, calls + 1, step):
        place = quick_path / "struck"
        assert struck(scenario, template, place, die, number)[0] == -signal.SIGKILL
        EDITS[edit](place)
        mine = {path for path, (_, content) in tree_of(place).items() if content == PERSON}
        edited += bool(mine)
        with reopen(place, late=True) as project:
            project.reconcile()
            project.flush()
            found = world(place)
            for path in mine:
                assert found.tree[path][1] == PERSON, f"call {number}: {path} was overwritten"
            side = next((one for one in (before, after) if one.standing == found.standing), None)
            assert side is not None, f"call {number}: a state that never was"
            rest = [path for path in {*found.tree, *side.tree} if not is_about(path, mine)]
            assert {p: found.tree.get(p) for p in rest} == {p: side.tree.get(p) for p in rest}, f"call {number}"
            assert [one for one in check(project) if "unfinished write" not in one.message] == []
            project.session("WFS-try-it").checkpoints.take("the next command works")
        left = [name for name in LEFTOVERS if (place / ".workflow/checkpoints" / name).exists()]
        assert left == []

    assert edited > 20 // step


def is_about(path, mine):
    """Whether the person's file is there, or stands in its way."""
    return any(path == one or path.startswith(one + "/") or one.startswith(path + "/") for one in mine)


def test_restoring_uses_no_call_that_is_not_watched():
    import ast

    import detent.engine.checkpoints.rollback
    import detent.objects

    changing = {"truncate", "removedirs", "renames", "pwrite", "writev", "pwritev", "sendfile", "remove", "utime"}
    changing |= {"lchown", "chown", "mknod", "mkfifo", "posix_fallocate", *ALSO_WATCHED}
    sources = [Path(detent.engine.checkpoints.rollback.__file__), *Path(detent.objects.__path__[0]).glob("*.py")]
    used = {
        node.attr
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }

    assert not used & (changing - set(faults.WATCHED))
    assert {"rename", "symlink", "chmod", "fchmod", "rmdir", "unlink"} <= used
