"""A disk that is full or broken at any call: the command says so and nothing has happened, or it has happened."""

import errno

import pytest

from detent.core.session.session import SessionStatus
from detent.doctor.invariants import check
from detent.errors import StoreFailed
from tests.support.campaign import struck_calls
from tests.support.faults import WATCHED, Counter, failing, watching
from tests.support.scenarios import SCENARIOS, copy_of, picture, prepare, reopen
from tests.support.values import row

WRITING = ("write", "open", "mkdir", "fdatasync", "fsync")
FAULTS = {
    "an error once": (failing(errno.EIO), False, "the disk reported an error"),
    "full from then on": (failing(errno.ENOSPC, WRITING), True, "the disk is full"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_call_that_fails_is_told_and_leaves_the_state_before_or_the_command_was_done(scenario, fault, quick_path):
    strike, lasting, reason = FAULTS[fault]
    template = prepare(scenario, quick_path / "template")
    before = picture(template)
    whole = copy_of(template, quick_path / "whole")
    with reopen(whole) as project:
        scenario.act(project)
    after = picture(whole)

    for number in struck_calls():
        place = copy_of(template, quick_path / "struck")
        with reopen(place) as project:
            failures, counter = strike_at(project, scenario, Counter(strike, number, lasting=lasting))
            done = "act" not in failures
            assert picture(place) == (after if done else before), f"call {number} ({counter.calls[-1]})"
            told = [failure.message for failure in failures.values()] + project.notices
            assert any(reason in message for message in told) == bool(counter.failed), f"call {number}: {told}"
            assert all(reason in failure.message and failure.way_out for failure in failures.values())
            carry_on(project, scenario)
        if len(counter.calls) < number:
            break

    assert number > scenario.least


def strike_at(project, scenario, counter):
    """What the command and the writing of documents after it raised; anything but `StoreFailed` is a bug."""
    failures = {}
    with watching(counter):
        try:
            scenario.act(project)
        except StoreFailed as failure:
            failures["act"] = failure
        try:
            project.flush()
        except StoreFailed as failure:
            failures["flush"] = failure
    return failures, counter


def carry_on(project, scenario):
    """The same process goes on once the disk works again."""
    project.flush()
    scenario.repair(project)
    found = [finding for finding in check(project) if "unfinished write" not in finding.message]
    assert found == []
    for name in project.store.sessions():
        if project.session(name).state.status is SessionStatus.ACTIVE:
            project.session(name).cancel("the next command works")
    project.start(row("next"), "the next session works")
    project.flush()
    assert check(project) == []


def test_a_commit_that_failed_can_be_repeated_at_once(project):
    handle = project.start(row("a", "b"), "try it")

    for name in ("write", "fdatasync"):
        full = watching(Counter(failing(errno.ENOSPC, (name,)), 1, lasting=True))
        with full, pytest.raises(StoreFailed, match="the disk is full") as failure:
            handle.fail("broke")
        assert failure.value.way_out
        assert handle.state.version == 1

    assert handle.fail("broke").version == 2


def test_documents_that_could_not_be_written_are_written_by_the_next_flush(project):
    handle = project.start(row("a", "b"), "try it")
    handle.fail("broke")

    with watching(Counter(failing(errno.ENOSPC), 1, lasting=True)), pytest.raises(StoreFailed):
        project.flush()
    behind = check(project)
    project.flush()

    assert {finding.invariant for finding in behind} == {"I2"}
    assert check(project) == []


def test_a_write_that_the_disk_takes_only_in_part_is_no_commit(project):
    handle = project.start(row("a", "b"), "try it")

    def half_then_full(name, args):
        if name == "write" and len(args[1]) > 1:
            original_write(args[0], bytes(args[1])[:10])
            raise OSError(errno.ENOSPC, "full")

    from tests.support.faults import _original

    original_write = _original["write"]
    with watching(Counter(half_then_full, 1)), pytest.raises(StoreFailed):
        handle.fail("broke")

    assert handle.state.version == 1
    assert [commit.version for commit in handle.log()] == [1]
    assert handle.fail("broke").version == 2


def test_a_disk_that_writes_a_few_bytes_at_a_time_gets_everything(project, monkeypatch):
    import os

    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    handle = project.start(row("a", "b"), "try it")

    handle.finish("done")
    project.flush()

    assert [commit.version for commit in handle.log()] == [1, 2]


def test_each_transition_makes_exactly_one_sync(project):
    handle = project.start(row("a", "b"), "try it")
    counter = Counter()

    with watching(counter):
        for _ in range(50):
            handle.fail("broke")
            handle.redo("a")

    syncs = [counter.calls.count(name) for name in ("fdatasync", "fsync")]
    assert 100 <= sum(syncs) <= 110
    assert syncs == [100, 0]


def test_the_sync_comes_after_the_write_and_before_the_command_returns(project):
    handle = project.start(row("a", "b"), "try it")
    project.flush()
    counter = Counter()

    with watching(counter):
        handle.fail("broke")

    # The second copy is written later, with the documents.
    assert counter.calls == ["write", "fdatasync"]


def test_starting_a_session_syncs_the_journal_its_directory_and_the_project(project):
    counter = Counter()

    with watching(counter):
        project.start(row("a"), "try it")

    calls = " ".join(counter.calls)
    assert "write fdatasync fsync rename fsync" in calls


def test_every_way_to_change_the_disk_is_watched():
    """The store uses no call that changes files and that the fault points do not count."""
    import ast
    from pathlib import Path

    import detent.store

    changing = {"truncate", "link", "symlink", "removedirs", "renames", "pwrite", "writev", "pwritev", "sendfile"}
    changing |= {"copy_file_range", "posix_fallocate", "remove", "chmod", "utime"}
    used = {
        node.attr
        for path in Path(detent.store.__path__[0]).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }

    assert not used & (changing - set(WATCHED))
    assert {"write", "fdatasync", "fsync", "rename", "replace", "ftruncate"} <= used
