"""What a rollback makes of the phases, in values alone."""

from datetime import timedelta
from itertools import product

import msgspec
import pytest

from detent.core.checkpoint.checkpoint import CheckpointKind, Taken, Tree, checkpoint_id, checkpoint_name
from detent.core.checkpoint.manifest import Changes, Entry, changes
from detent.core.checkpoint.rollback import kept_paths, live_beside, restored, rolled_back
from detent.core.gate.evidence import Facts
from detent.core.session.commands import Begin, Fail, Finish, Redo, Rollback, TakeCheckpoint
from detent.core.session.decide import decide
from detent.core.session.decide_checkpoint import current
from detent.core.session.events import CheckpointTaken, PhaseBegun, PhaseRedone, RolledBack
from detent.core.session.status import Status
from detent.core.session.token import Token
from detent.errors import Conflict, Refused
from tests.support.values import NOON, after, diamond, opened, row, session_at, workflow

TREE = Tree(manifest="0" * 64, files=3, bytes=30)
PENDING, LIVE, DONE, FAILED, SKIPPED = (
    Status.PENDING,
    Status.IN_PROGRESS,
    Status.COMPLETED,
    Status.FAILED,
    Status.SKIPPED,
)


def facts(minutes=0):
    return Facts(now=NOON + timedelta(minutes=minutes), tree=TREE)


def done(session, command, minutes=0):
    events = decide(session, command, facts(minutes))
    return after(session, events), events


def taken_by(events):
    return [event for event in events if isinstance(event, CheckpointTaken)]


def finish(phase):
    return Finish(phase=phase, summary="done")


def back(session, past, checkpoint, **settings):
    return Rollback(to=checkpoint, past=past, version=session.version, before=TREE, after=TREE, **settings)


@pytest.mark.parametrize(("then", "now"), list(product(Status, repeat=2)))
@pytest.mark.parametrize("key", ["a", "b", "c", "d"])
def test_every_phase_stands_as_the_rules_say_after_a_rollback_of_b(key, then, now):
    past = session_at({"a": DONE} | {key: then}, graph=diamond())
    present = session_at({"a": DONE} | {key: now}, graph=diamond(), version=20)

    changed = rolled_back(present, past, "b", 21)
    standing = changed.get(key, present.phases[key]).status

    match key:
        case "c":
            assert key not in changed, "what stands beside stays"
        case "d":
            assert standing is (SKIPPED if then is SKIPPED else PENDING)
        case _:
            assert standing is (PENDING if then is LIVE else then)


@pytest.mark.parametrize(("then", "now"), list(product(Status, repeat=2)))
def test_undoing_restores_every_status_work_in_progress_too(then, now):
    past, present = session_at({"b": then}), session_at({"b": now}, version=20)

    changed = restored(present, past, 21)

    assert changed.get("b", present.phases["b"]).status is then
    assert set(changed) <= {"b"}


def test_counting_never_goes_back():
    past = session_at({"a": DONE})
    now = session_at({"a": FAILED}, version=20)
    spent = msgspec.structs.replace(now.phases["a"], attempt=5, fence=19, pre=5, post=4)
    now = msgspec.structs.replace(now, phases=now.phases.replaced("a", spent))

    [state] = rolled_back(now, past, "a", 21).values()

    assert (state.status, state.attempt, state.pre, state.post) == (DONE, 5, 5, 4)
    assert state.tokens == spent.tokens
    assert restored(now, session_at({"a": LIVE}), 21)["a"].fence == 21


def test_only_what_siblings_declared_since_is_kept():
    past = session_at({"a": DONE}, graph=diamond())
    now = session_at({"a": DONE, "b": DONE, "c": DONE}, graph=diamond())
    declared = {key: msgspec.structs.replace(now.phases[key], artifacts=(f"{key}.md",)) for key in "abc"}
    now = msgspec.structs.replace(now, phases=now.phases.updated(declared))

    assert kept_paths(now, past, "b") == {"c.md"}
    assert kept_paths(now, now, "b") == frozenset()
    assert kept_paths(now, past, "a") == frozenset()


def test_work_beside_is_what_a_rollback_would_leave_in_progress():
    session = session_at({"a": DONE, "b": LIVE, "c": LIVE}, graph=diamond())

    assert live_beside(session, "b") == ("c",)
    assert live_beside(session, "a") == ()
    assert live_beside(session_at({"a": LIVE}, graph=diamond()), "b") == (), "what it builds on stands as it did"


def test_each_event_takes_the_checkpoint_that_the_table_says():
    session = opened(row("a", "b"))
    seen = []
    for minutes, command in enumerate(
        [Fail(phase="a", error="broke"), Redo(phase="a"), finish("a"), Begin(phase="b"), TakeCheckpoint(note="x")]
    ):
        session, events = done(session, command, minutes)
        [made] = taken_by(events)
        seen.append((made.name, made.kind, made.taken, made.attempt))

    assert seen == [
        ("POST_a_v1", CheckpointKind.POST, Taken.FAILED, 1),
        ("PRE_a_v2", CheckpointKind.PRE, Taken.STARTED, 2),
        ("POST_a_v2", CheckpointKind.POST, Taken.SUCCESS, 2),
        ("PRE_b_v1", CheckpointKind.PRE, Taken.STARTED, 1),
        ("PRE_b_v1_at6", CheckpointKind.PRE, Taken.NOTE, 1),
    ]


def test_a_rollback_takes_what_stood_and_what_stands():
    start = opened(row("a", "b"))
    past, events = done(start, TakeCheckpoint(note="here"))
    [target] = taken_by(events)
    session, _ = done(past, finish("a"), 1)

    events = decide(session, back(session, past, target), facts(2))

    safety, rolled, made = events
    assert isinstance(rolled, RolledBack)
    assert (safety.name, safety.taken, safety.parent) == ("PRE_a_v1_at4_safety", Taken.SAFETY, session.checkpoint)
    assert (made.name, made.taken, made.attempt, made.parent) == ("PRE_a_v2", Taken.ROLLBACK, 2, target.id)
    assert (rolled.to, rolled.safety, rolled.source) == (target.id, safety.id, session.checkpoint)


def test_no_name_and_no_id_is_ever_used_twice():
    session = opened(row("a", "b"))
    session, events = done(session, TakeCheckpoint())
    [target] = taken_by(events)
    past, made = session, [target]
    commands = [finish("a"), None, Begin(phase="a"), None, None, Begin(phase="a"), TakeCheckpoint(), finish("a"), None]
    for minutes, command in enumerate(commands):
        session, events = done(session, command or back(session, past, target), minutes)
        made += taken_by(events)

    assert len({one.name for one in made}) == len({one.id for one in made}) == len(made)


def test_an_attempt_begun_after_a_rollback_is_the_next_one_and_old_tokens_are_refused():
    session = opened(row("a", "b"))
    old = Token("a", 1, session.phases["a"].fence)
    past, events = done(session, TakeCheckpoint())
    session, _ = done(past, back(past, past, taken_by(events)[0]), 1)

    for token in (old, Token("a", 2, 3)):
        with pytest.raises(Refused):
            decide(session, Finish(token=token, summary="late"), facts(2))
    session, events = done(session, Begin(phase="a"), 3)
    begun = next(event for event in events if isinstance(event, PhaseBegun | PhaseRedone))

    assert begun.attempt == 2
    with pytest.raises(Refused):
        decide(session, Finish(token=old, summary="late"), facts(4))
    decide(session, Finish(token=Token("a", 2, session.phases["a"].fence), summary="in time"), facts(4))


def test_a_rollback_that_was_worked_out_for_another_version_is_refused():
    past, events = done(opened(), TakeCheckpoint())
    session, _ = done(past, finish("a"), 1)

    with pytest.raises(Conflict, match="moved on from version 2 to 3"):
        decide(session, msgspec.structs.replace(back(session, past, taken_by(events)[0]), version=2), facts(2))


@pytest.mark.parametrize(("settings", "allowed"), [({}, False), ({"paths": ("x",)}, True), ({"files": 0}, True)])
def test_work_beside_refuses_a_rollback_of_files_only_where_it_would_change_them(settings, allowed):
    session = session_at({"a": DONE, "b": LIVE, "c": LIVE}, graph=diamond())
    past, events = done(session, TakeCheckpoint())
    command = back(past, past, taken_by(events)[0], **{"files": 1, **settings})

    if allowed:
        decide(past, command, facts(1))
    else:
        with pytest.raises(Refused, match="c is in progress beside b"):
            decide(past, command, facts(1))


def test_paths_change_no_phase():
    past, events = done(opened(), TakeCheckpoint())
    session, _ = done(past, finish("a"), 1)

    safety, rolled, *_ = decide(session, back(session, past, taken_by(events)[0], paths=("x",), files=1), facts(2))

    assert safety.taken is Taken.SAFETY
    assert rolled.phases == {}
    assert after(session, (safety, rolled)).phases == session.phases


def test_the_present_belongs_to_the_phase_in_progress_else_to_the_one_begun_last():
    session = opened(workflow({"a": (), "b": ("a",)}))
    assert current(session) == "a"
    session, _ = done(session, finish("a"))
    assert current(session) == "a"
    session, _ = done(session, Begin(phase="b"), 1)
    assert current(session) == "b"
    session, _ = done(session, Fail(phase="b", error="broke"), 2)
    assert current(session) == "b"


def test_ids_are_uuids_that_follow_from_what_they_are_of():
    one = checkpoint_id("WFS-x", NOON, "PRE_a_v1")

    assert one == checkpoint_id("WFS-x", NOON, "PRE_a_v1")
    assert len({one, checkpoint_id("WFS-y", NOON, "PRE_a_v1"), checkpoint_id("WFS-x", NOON, "PRE_a_v2")}) == 3
    assert (len(one), one[14], one[19] in "89ab") == (36, "8", True)


def test_names_say_kind_phase_and_attempt():
    assert checkpoint_name(CheckpointKind.PRE, "plan", 3, 17, first=True) == "PRE_plan_v3"
    assert checkpoint_name(CheckpointKind.POST, "plan", 3, 17, first=False) == "POST_plan_v3_at17"


def test_what_separates_two_manifests():
    one, other = Entry("f", "1", 1), Entry("x", "1", 1)

    found = changes({"a": one, "b": one, "c": one}, {"b": one, "c": other, "d": one})

    assert found == Changes(added=("d",), removed=("a",), modified=("c",))
    assert found
    assert not changes({"a": one}, {"a": one})
