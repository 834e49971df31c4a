"""Who runs a session: one at a time, and the dead are succeeded."""

import subprocess
from datetime import timedelta

import msgspec
import pytest

from detent import process
from detent.engine.run_lease import LEASE_S, NAME, RunLease, live_lease
from detent.errors import Conflict
from detent.run.lease import BEAT_S, Lease
from tests.support.values import NOON

ELSEWHERE = "a-machine-far-away"


@pytest.fixture
def session(project):
    return project.start("feature", "try it").id


def noted(project, session, **changed):
    """What another runner would have noted; by default one in this very process."""
    lease = Lease(project, session)
    found = msgspec.json.decode(project.store.get(f"{session}/{NAME}"), type=RunLease)
    lease.give_back()
    other = msgspec.structs.replace(found, **changed)
    project.store.put(f"{session}/{NAME}", msgspec.json.encode(other))
    return other


@pytest.fixture
def alive():
    """A process of another runner."""
    child = subprocess.Popen(["sleep", "60"])
    yield child.pid
    child.kill()
    child.wait()


def test_who_runs_is_known_while_it_runs_and_nobody_before_or_after(project, session):
    assert live_lease(project.store, session, now=NOON) is None

    lease = Lease(project, session)
    assert live_lease(project.store, session, now=NOON).run == lease.run

    lease.give_back()
    assert live_lease(project.store, session, now=NOON) is None


def test_a_session_that_is_run_is_not_run_by_another(project, session, alive):
    noted(project, session, pid=alive, born=process.born(alive), owner="ada")

    with pytest.raises(Conflict, match=rf"{session} is being run by ada \(process {alive} on") as refused:
        Lease(project, session)
    assert refused.value.way_out == "detent watch"


def test_a_runner_of_the_same_scheduler_takes_over_unless_it_yields(project, session, alive):
    noted(project, session, pid=alive, born=process.born(alive), run="run-f-2", on="temporal://h")

    with pytest.raises(Conflict, match="is being run by"):
        Lease(project, session, run="run-f-1", on="temporal://h", yields_to=lambda run: run == "run-f-2")
    taken = Lease(project, session, run="run-f-3", on="temporal://h", yields_to=lambda run: run == "run-f-4")
    assert taken.took_over
    taken.give_back()
    assert not Lease(project, session, run="run-f-4", on="temporal://h").took_over


def test_one_session_of_a_project_may_be_run_beside_another(project, session):
    first = Lease(project, session)

    Lease(project, project.start("feature", "something else").id).give_back()

    assert first.keep()
    first.give_back()


@pytest.mark.parametrize("what", ["the process ended", "its number was given to another"])
def test_who_died_here_is_succeeded_however_fresh_its_beat(project, session, alive, what):
    ended = what == "the process ended"
    noted(project, session, pid=2**22 + 1 if ended else alive, born="1", run="run-dead", beat=NOON)

    lease = Lease(project, session)

    assert lease.run != "run-dead"
    lease.give_back()


@pytest.mark.parametrize(("silent_s", "is_held"), [(0, True), (LEASE_S - 1, True), (LEASE_S, False), (3600, False)])
def test_who_runs_on_another_machine_is_believed_for_as_long_as_it_is_heard_of(project, session, silent_s, is_held):
    noted(project, session, host=ELSEWHERE, beat=NOON, run="run-far")

    found = live_lease(project.store, session, now=NOON + timedelta(seconds=silent_s))

    assert (found is not None) is is_held


@pytest.mark.parametrize("content", [b"{", b'{"run": 7}', b"[]", b"\xff\xfe", b""])
def test_a_note_that_cannot_be_read_is_of_nobody(project, session, content):
    project.store.put(f"{session}/{NAME}", content)

    assert live_lease(project.store, session, now=NOON) is None
    Lease(project, session).give_back()


def test_a_beat_is_told_now_and_then_and_not_each_time(project, session, clock):
    lease = Lease(project, session)
    clock.step = timedelta(seconds=1)
    first = project.store.get(f"{session}/{NAME}")

    assert lease.keep()
    assert project.store.get(f"{session}/{NAME}") == first
    clock.now += timedelta(seconds=BEAT_S)
    assert lease.keep()
    later = msgspec.json.decode(project.store.get(f"{session}/{NAME}"), type=RunLease)

    assert later.beat - later.since >= timedelta(seconds=BEAT_S)
    lease.give_back()


def test_who_lost_the_session_notices_and_takes_nothing_from_the_other(project, session, clock):
    lease = Lease(project, session)
    found = msgspec.json.decode(project.store.get(f"{session}/{NAME}"), type=RunLease)
    project.store.put(f"{session}/{NAME}", msgspec.json.encode(msgspec.structs.replace(found, run="run-other")))
    clock.now += timedelta(seconds=BEAT_S)

    assert not lease.keep()
    lease.give_back()

    assert live_lease(project.store, session, now=NOON).run == "run-other"
    project.store.delete(f"{session}/{NAME}")


def test_two_beats_may_be_missed_before_a_holder_counts_as_dead():
    assert BEAT_S * 3 <= LEASE_S
