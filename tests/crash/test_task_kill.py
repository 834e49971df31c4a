"""`kill -9` at every write of what is done to tasks and sessions: afterwards it has happened or it has not.

Some of it is a commit in each of two sessions. A kill in between leaves the first one made; the next command finishes
the other, so what is compared is where everything stands once that has been done.
"""

import json
import signal
import sys
from datetime import timedelta

import pytest

from detent.core.session.evolve import fingerprint
from detent.core.session.session import SessionStatus
from detent.doctor.invariants import check
from detent.engine.project import open_project
from tests.support.campaign import STRIDE, struck_calls
from tests.support.faults import DONE, NO_WRITE, Counter, die, die_halfway, in_child
from tests.support.scenarios import Scenario, carry_out, copy_of, prepare
from tests.support.values import NOON, TickingClock, written_tasks

FLOW = "plan-implement-review"
BY_HAND = "a person wrote this"


def planned(project, topic="try it", tasks=3):
    handle = project.start(FLOW, topic)
    for number in range(tasks):
        handle.tasks.add(f"Task {number}", requirements=["something"])
    return handle


def in_progress(project):
    planned(project).tasks.start("IMPL-1")


def parts(project):
    planned(project).tasks.split("IMPL-2", ["Left"])


def last_in_progress(project):
    planned(project, tasks=1).tasks.start("IMPL-1")


def two(project):
    """The first is paused, the second is being worked on."""
    planned(project)
    planned(project, "another thing").tasks.start("IMPL-1")


def three(project):
    two(project)
    project.sessions.pause()


def task_file(directory, stem="IMPL-1"):
    return next(directory.glob(".workflow/WFS-*")) / ".task" / f"{stem}.json"


def edited(**changes):
    def edit(directory):
        path = task_file(directory)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"title": BY_HAND} | changes))

    return edit


def broken(directory):
    task_file(directory).write_text("{" + BY_HAND)


def new_file(directory):
    document = json.loads(task_file(directory).read_text()) | {"id": "IMPL-9", "title": BY_HAND}
    del document["_detent"]
    task_file(directory, "IMPL-9").write_text(json.dumps(document))


def deleted(directory):
    task_file(directory).unlink()


def act(name, *arguments):
    return lambda project: getattr(project.session().tasks, name)(*arguments)


SCENARIOS = [
    Scenario(name="add", prepare=planned, act=act("add", "One more"), least=10),
    Scenario(name="split", prepare=planned, act=act("split", "IMPL-1", ["Left", "Right"]), least=15),
    Scenario(name="start", prepare=planned, act=act("start", "IMPL-1"), least=10),
    Scenario(name="done", prepare=in_progress, act=act("done", "IMPL-1", "What was done."), least=12),
    Scenario(name="done with the last", prepare=last_in_progress, act=act("done", "IMPL-1", "All."), least=12),
    Scenario(name="fail", prepare=in_progress, act=act("fail", "IMPL-1", "it broke"), least=10),
    Scenario(name="remove", prepare=planned, act=act("remove", "IMPL-3"), least=8),
    Scenario(name="remove the last part", prepare=parts, act=act("remove", "IMPL-2.1"), least=8),
    Scenario(name="pause", prepare=in_progress, act=lambda p: p.sessions.pause("lunch"), least=8),
    Scenario(name="resume", prepare=three, act=lambda p: p.sessions.resume(), least=10),
    Scenario(name="switch", prepare=two, act=lambda p: p.sessions.switch("try-it"), least=15),
    Scenario(name="start a session", prepare=in_progress, act=lambda p: planned(p, "another", 0), least=25),
    Scenario(name="adopt a text", prepare=planned, edit=edited(), act=lambda p: p.reconcile(), least=8),
    Scenario(name="adopt a start", prepare=planned, edit=edited(status="active"), act=lambda p: p.reconcile(), least=8),
    Scenario(name="adopt a new file", prepare=planned, edit=new_file, act=lambda p: p.reconcile(), least=8),
    Scenario(name="refuse an edit", prepare=planned, edit=broken, act=lambda p: p.reconcile(), least=4),
    Scenario(name="write a lost file", prepare=planned, edit=deleted, act=lambda p: p.reconcile(), least=2),
]


def later(directory):
    """After all that was done, and before any claim has run out."""
    return open_project(directory, actor="tester", clock=TickingClock(NOON + timedelta(minutes=30)))


def standing(directory):
    """Where everything stands once the next command has finished what was left."""
    with later(directory) as project:
        project.reconcile()
        project.flush()
        torn = [finding for finding in check(project) if "unfinished write" in finding.message]
        assert [finding for finding in check(project) if finding not in torn] == []
        sessions = {name: project.session(name).state for name in project.store.sessions()}
        return project.active(), {name: told(session) for name, session in sessions.items()}


def told(session):
    rows = [(row.id, row.title, str(row.status), row.attempts, row.depends_on) for row in session.tasks]
    claims = sorted((task, claim.owner) for task, claim in session.claims.items())
    phases = {key: str(state.status) for key, state in session.phases.items()}
    return rows, claims, phases, str(session.status), session.paused_at is not None, session.retired


def halfway(before, after):
    """A pause gives tasks back before the marker goes. The marker is what counts: the session goes on without them."""
    was, _ = before
    active, sessions = after
    if active is not None or was is None:
        return after
    rows, claims, phases, status, _, retired = sessions[was]
    return was, sessions | {was: (rows, claims, phases, status, False, retired)}


def every_byte(directory):
    return b"\0".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_kill_at_every_call_leaves_it_done_or_not_done(scenario, quick_path, capsys):
    template = prepare(scenario, quick_path / "template")
    is_edit = "edit" in scenario.name or "adopt" in scenario.name or "lost" in scenario.name
    before = standing(copy_of(template, quick_path / "whole"))
    whole = copy_of(template, quick_path / "whole")
    assert in_child(lambda said: carry_out(scenario, whole, said), Counter()) == (DONE, True)
    after = standing(whole)
    assert (before == after) == is_edit
    outcomes = []

    for number in struck_calls():
        died = None
        for strike in (die, die_halfway):
            place = copy_of(template, quick_path / "struck")
            status, acknowledged = in_child(
                lambda said, place=place: carry_out(scenario, place, said), Counter(strike, number)
            )
            if status in (DONE, NO_WRITE):
                continue
            assert status == -signal.SIGKILL
            found = standing(place)
            assert found in (before, after, halfway(before, after)), f"call {number}: neither before nor after"
            assert found != before or is_edit or not acknowledged, f"call {number}: what was acknowledged is gone"
            died = found != before
            if number % 3 == 0:
                goes_on(place)
            if is_edit and "lost" not in scenario.name:
                assert BY_HAND.encode() in every_byte(place), f"call {number}: the edited text is gone"
        if died is None:
            break
        outcomes.append(died)

    with capsys.disabled():
        sys.stdout.write(f"\n  {scenario}: {len(outcomes)} calls, {outcomes.count(False)} of them before the commit ")
    assert len(outcomes) >= scenario.least // STRIDE
    assert outcomes == sorted(outcomes), "a later kill lost what an earlier one kept"


def goes_on(place):
    """The next commands work, and leave everything as it should be."""
    with later(place) as project:
        if project.active() is None:
            project.sessions.resume()
        handle = project.session()
        for task in handle.state.tasks.with_status("active"):
            handle.tasks.release(task)
        (added,) = written_tasks(handle.tasks.add("The next command works"))
        claimed = handle.tasks.start(added)
        handle.tasks.done(added, "It does.", fence=claimed.fence)
        project.flush()

        assert check(project) == []
        for name in project.store.sessions():
            *_, last = project.session(name).log()
            assert last.state == fingerprint(project.session(name).state)
        assert handle.state.status is SessionStatus.ACTIVE
