"""`kill -9` at every write, sync and rename: afterwards there is the state before or the state after, never another."""

import signal
import sys
from itertools import count

import pytest

from detent.core.session.evolve import fingerprint
from detent.core.session.session import SessionStatus
from detent.doctor.invariants import check
from tests.support.campaign import STRIDE, struck_calls
from tests.support.faults import DONE, NO_WRITE, Counter, die, die_halfway, in_child
from tests.support.scenarios import (
    EDIT,
    SCENARIOS,
    carry_out,
    copy_of,
    documents,
    history_lines,
    picture,
    prepare,
    reopen,
)
from tests.support.values import row


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_a_kill_at_every_call_leaves_the_state_before_or_the_state_after(scenario, quick_path, capsys):
    template = prepare(scenario, quick_path / "template")
    before = picture(template)
    whole = copy_of(template, quick_path / "whole")
    assert in_child(lambda said: carry_out(scenario, whole, said), Counter()) == (DONE, True)
    after, written = picture(whole), documents(whole)
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
            found = picture(place)
            assert found in (before, after), f"call {number}: neither before nor after"
            assert found == after or not acknowledged, f"call {number}: what was acknowledged is gone"
            died = found == after
            recover(scenario, place, found, written if found == after else None)
        if died is None:
            break
        outcomes.append(died)

    with capsys.disabled():
        sys.stdout.write(f"\n  {scenario}: {len(outcomes)} calls, {outcomes.count(False)} of them before the commit ")
    assert len(outcomes) >= scenario.least // STRIDE
    assert outcomes == sorted(outcomes), "a later kill lost what an earlier one kept"


def recover(scenario, place, found, written):
    """What anybody finds who opens the project after the kill."""
    with reopen(place, late=True) as project:
        scenario.repair(project)
        torn = [finding for finding in check(project) if "unfinished write" in finding.message]
        assert [finding for finding in check(project) if finding not in torn] == []
        assert len(torn) <= 1
        for name, session in found.sessions.items():
            assert history_lines(place, name) == (session.status is not SessionStatus.ACTIVE)
        assert written is None or documents(place) == written

        for name, session in found.sessions.items():
            if session.status is SessionStatus.ACTIVE:
                project.session(name).cancel("the next command works")
        project.start(row("next"), "the next session works").finish("done")
        project.flush()

        assert check(project) == []
        for name in found.sessions:
            assert list(project.session(name).log())[-1].state == fingerprint(project.session(name).state)


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if "edit" in s.name], ids=str)
def test_what_a_person_wrote_survives_a_kill_at_every_call(scenario, quick_path):
    template = prepare(scenario, quick_path / "template")
    edited = (template / ".workflow/state.json").read_bytes()

    for number in count(1):
        place = copy_of(template, quick_path / "struck")
        status, _ = in_child(lambda said, place=place: carry_out(scenario, place, said), Counter(die, number))
        with reopen(place, late=True) as project:
            adoptions = project.reconcile()
            state = project.session().state

        kept = [path for path in place.glob(".workflow/state.json*") if path.read_bytes() == edited]
        if scenario.name == "adopt an edit":
            assert state.phases["a"].summary == EDIT
            assert [adoption.reasons for adoption in adoptions if not adoption.adopted] == []
        else:
            assert kept, f"call {number}: the edited text is gone"
        if status == DONE:
            break

    assert number > scenario.least
