"""What a table of one phase cannot say: needs, tokens, limits, the end of the session."""

import msgspec
import pytest

from detent.core.limits import MAX_ARTIFACTS, MAX_ERROR, MAX_PATH, MAX_REASON, MAX_SUMMARY, MAX_TASK
from detent.core.session.commands import Begin, Cancel, Complete, Fail, Finish, Redo, Skip
from detent.core.session.decide import decide, decide_start
from detent.core.session.events import (
    PhaseBegun,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseSkipped,
    SessionCancelled,
    SessionCompleted,
    SessionStarted,
)
from detent.core.session.evolve import evolve
from detent.core.session.session import SessionStatus
from detent.core.session.status import Status
from detent.core.session.token import Token, parse_token
from detent.errors import DetentError, Invalid, NotFound, Refused
from tests.support.values import NOON, after, commit, diamond, opened, row, session_at, start, workflow

LIVE, DONE, FAILED, SKIPPED = Status.IN_PROGRESS, Status.COMPLETED, Status.FAILED, Status.SKIPPED
COMMANDS = [
    Begin(),
    Begin(phase="a"),
    Finish(summary="done"),
    Fail(error="broke"),
    Redo(phase="a"),
    Skip(phases=("a",), reason="no"),
    Complete(force=True),
    Cancel(reason="no"),
]


def test_a_session_opens_with_its_first_phase_in_progress_in_one_commit():
    events = decide_start(start(workflow()))

    assert [type(event) for event in events] == [SessionStarted, PhaseBegun]
    assert evolve(None, commit(1, *events)).phases["a"].status is LIVE


def test_a_size_leaves_phases_out_and_the_first_that_is_left_begins():
    graph = workflow(sizes={"light": ("a",)})

    session = opened(graph, size="light")

    assert [session.phases[key].status for key in "abc"] == [SKIPPED, LIVE, Status.PENDING]


def test_a_size_that_leaves_nothing_is_refused():
    with pytest.raises(Refused, match="leaves no phase"):
        decide_start(start(workflow(sizes={"none": ("a", "b", "c")}), size="none"))


def test_a_size_that_names_a_phase_twice_leaves_it_out_once():
    session = opened(workflow(sizes={"light": ("a", "a")}), size="light")

    assert session.phases["a"].status is SKIPPED


def test_an_unknown_size_is_told_with_those_there_are():
    with pytest.raises(NotFound, match="no size huge; it has light"):
        decide_start(start(workflow(sizes={"light": ("a",)}), size="huge"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
@pytest.mark.parametrize("status", [SessionStatus.COMPLETED, SessionStatus.CANCELLED])
def test_nothing_can_happen_in_a_session_that_ended(command, status):
    ended = msgspec.structs.replace(session_at({"a": LIVE}), status=status, ended_at=NOON)

    with pytest.raises(Refused, match=f"was {status} at 2026-02-09 12:00"):
        decide(ended, command)


@pytest.mark.parametrize("need", [Status.PENDING, LIVE, FAILED])
def test_a_phase_waits_for_all_that_it_needs(need):
    session = session_at({"a": DONE, "b": DONE, "c": need}, graph=diamond())

    with pytest.raises(Refused, match=rf"d waits for c \({need}\)"):
        decide(session, Begin(phase="d"))


@pytest.mark.parametrize("need", [DONE, SKIPPED])
def test_a_phase_begins_when_its_needs_are_settled(need):
    session = session_at({"a": DONE, "b": DONE, "c": need}, graph=diamond())

    (event,) = decide(session, Begin(phase="d", agent="me"))

    assert event == PhaseBegun(phase="d", attempt=1, agent="me")


def test_begin_without_a_name_takes_the_first_that_is_ready():
    session = session_at({"a": DONE, "b": LIVE}, graph=diamond())

    assert decide(session, Begin()) == (PhaseBegun(phase="c", attempt=1, agent="c-agent"),)


@pytest.mark.parametrize(("statuses", "named"), [({"a": LIVE}, "a must be finished"), ({"a": FAILED}, "a failed")])
def test_begin_with_nothing_ready_tells_what_holds_it_up(statuses, named):
    with pytest.raises(Refused, match=named) as refusal:
        decide(session_at(statuses), Begin())

    assert refusal.value.way_out


def test_begin_with_everything_settled_tells_that_nothing_is_left():
    with pytest.raises(Refused, match="no phase is left to begin"):
        decide(session_at({"a": DONE, "b": DONE, "c": DONE}), Begin())


def test_an_unknown_phase_is_told_with_those_there_are():
    with pytest.raises(NotFound, match="no phase z; it has a, b, c"):
        decide(session_at(), Begin(phase="z"))


def test_an_older_spelling_of_a_phase_is_understood():
    session = opened(row("12-test-deploy"))

    (event, *_) = decide(session, Finish(phase="13-test-deploy", summary="done"))

    assert event.phase == "12-test-deploy"


def test_finishing_does_not_touch_the_next_phase():
    assert [type(event) for event in decide(opened(), Finish(summary="done"))] == [PhaseFinished]


@pytest.mark.parametrize("rest", [DONE, SKIPPED])
def test_finishing_the_last_phase_completes_the_session_in_the_same_commit(rest):
    session = session_at({"a": DONE, "b": rest, "c": LIVE})

    events = decide(session, Finish(summary="done", merged_commit="abc123"))

    assert [type(event) for event in events] == [PhaseFinished, SessionCompleted]
    assert events[-1].merged_commit == "abc123"


def test_skipping_the_last_open_phase_completes_the_session():
    events = decide(session_at({"a": DONE, "b": DONE}), Skip(phases=("c",), reason="not needed"))

    assert [type(event) for event in events] == [PhaseSkipped, SessionCompleted]


def test_a_merged_commit_before_the_end_is_refused():
    with pytest.raises(Invalid, match="other phases are still open"):
        decide(opened(), Finish(summary="done", merged_commit="abc123"))


@pytest.mark.parametrize("ending", [Finish, Fail], ids=lambda ending: ending.__name__)
@pytest.mark.parametrize("token", [Token("a", 1, 1), Token("a", 2, 99), Token("a", 3, 2)])
def test_a_token_of_another_attempt_is_refused_and_both_are_named(ending, token):
    session = after(opened(), [PhaseRedone(phase="a", attempt=2)])
    said = {"summary": "done"} if ending is Finish else {"error": "broke"}

    with pytest.raises(Refused) as refusal:
        decide(session, ending(token=token, **said))

    assert f"attempt {token.attempt} (fence {token.fence})" in refusal.value.message
    assert "attempt 2 (fence 2) is in progress" in refusal.value.message


def test_an_attempt_begun_after_a_reset_has_another_token_than_all_before():
    session = session_at({"a": DONE, "b": DONE})
    seen = {session.token("b")}
    for _ in range(3):
        session = after(session, decide(session, Redo(phase="a", cascade=True)))
        session = after(session, decide(session, Finish(phase="a", summary="done")))
        session = after(session, decide(session, Begin(phase="b")))
        assert session.token("b") not in seen
        seen.add(session.token("b"))
        session = after(session, decide(session, Finish(phase="b", summary="done")))


def test_without_a_token_the_only_attempt_in_progress_is_meant():
    (event,) = decide(session_at({"a": DONE, "b": LIVE}, graph=diamond()), Fail(error="broke"))

    assert (event.phase, event.attempt) == ("b", 1)


def test_without_a_token_several_attempts_in_progress_must_be_told_apart():
    session = session_at({"a": DONE, "b": LIVE, "c": LIVE}, graph=diamond())

    with pytest.raises(Refused, match="2 phases are in progress: b, c"):
        decide(session, Finish(summary="done"))
    assert decide(session, Finish(phase="c", summary="done"))[0].phase == "c"


def test_finishing_with_nothing_in_progress_says_what_to_do_instead():
    with pytest.raises(Refused, match="no phase is in progress") as refusal:
        decide(session_at({"a": DONE}), Finish(summary="done"))

    assert refusal.value.way_out == "detent begin"


@pytest.mark.parametrize("behind", [LIVE, DONE, FAILED])
def test_redo_is_refused_while_others_built_on_the_phase(behind):
    session = session_at({"a": DONE, "b": behind})

    with pytest.raises(Refused, match="b built on a") as refusal:
        decide(session, Redo(phase="a"))

    assert refusal.value.way_out == "detent redo a --cascade"


def test_redo_with_cascade_resets_what_built_on_the_phase_last_first_and_nothing_else():
    session = session_at({"a": DONE, "b": DONE, "c": SKIPPED, "d": LIVE}, graph=diamond())

    events = decide(session, Redo(phase="a", cascade=True))
    again = after(session, events)

    assert [(type(event), event.phase) for event in events] == [
        (PhaseReset, "d"),
        (PhaseReset, "b"),
        (PhaseRedone, "a"),
    ]
    assert [again.phases[key].status for key in "abcd"] == [LIVE, Status.PENDING, SKIPPED, Status.PENDING]


def test_redo_of_one_branch_leaves_the_other_alone():
    session = session_at({"a": DONE, "b": DONE, "c": LIVE}, graph=diamond())

    assert [event.phase for event in decide(session, Redo(phase="b"))] == ["b"]


def test_redo_of_a_phase_whose_needs_are_open_is_refused():
    session = session_at({"a": FAILED, "b": SKIPPED})

    with pytest.raises(Refused, match=r"b waits for a \(failed\)"):
        decide(session, Redo(phase="b"))


def test_skip_by_size_takes_only_phases_that_have_not_begun():
    session = session_at({"a": DONE}, graph=workflow(sizes={"light": ("a", "b")}))

    assert [event.phase for event in decide(session, Skip(size="light", reason="small"))] == ["b"]


def test_skip_names_each_phase_once():
    session = session_at(graph=workflow(sizes={"light": ("b", "b")}))

    assert [event.phase for event in decide(session, Skip(phases=("a", "a"), size="light", reason="small"))] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize("command", [Skip(reason="small"), Skip(size="light", reason="small")])
def test_skip_of_nothing_is_refused(command):
    session = session_at({"a": DONE}, graph=workflow(sizes={"light": ("a",)}))

    with pytest.raises(Refused):
        decide(session, command)


def test_complete_lists_everything_that_is_not_finished():
    session = session_at({"a": DONE, "b": FAILED})

    with pytest.raises(Refused, match=r"2 of 3 phases are not finished: b \(failed\), c \(pending\)"):
        decide(session, Complete())


@pytest.mark.parametrize(("statuses", "forced"), [({"a": LIVE}, True), (dict.fromkeys("abc", DONE), False)])
def test_complete_with_force_records_whether_force_was_needed(statuses, forced):
    assert decide(session_at(statuses), Complete(force=True)) == (SessionCompleted(forced=forced),)


def test_cancel_needs_a_reason():
    with pytest.raises(Invalid, match="a reason to cancel is needed"):
        decide(opened(), Cancel(reason="  "))
    assert decide(opened(), Cancel(reason=" no money ")) == (SessionCancelled(reason="no money"),)


@pytest.mark.parametrize(
    ("command", "length", "limit"),
    [
        (lambda text: Finish(summary=text), lambda event: len(event.summary), MAX_SUMMARY),
        (lambda text: Fail(error=text), lambda event: len(event.error), MAX_ERROR),
        (lambda text: Redo(phase="a", reason=text), lambda event: len(event.reason), MAX_REASON),
    ],
)
def test_text_that_only_informs_is_cut(command, length, limit):
    for count in (limit - 1, limit, limit + 1, limit * 2):
        event = decide(opened(), command("x" * count))[-1]

        assert length(event) == min(count, limit)


@pytest.mark.parametrize(
    "command",
    [
        lambda text: Cancel(reason=text),
        lambda text: Skip(phases=("a",), reason=text),
        lambda text: Finish(summary="x", context=text),
    ],
)
def test_text_that_must_not_be_lost_is_refused_when_it_is_too_long(command):
    decide(opened(), command("x" * MAX_REASON))

    with pytest.raises(Invalid, match=f"{MAX_REASON} characters and this one has {MAX_REASON + 1}"):
        decide(opened(), command("x" * (MAX_REASON + 1)))


def test_a_task_may_be_as_long_as_the_limit_and_no_longer():
    decide_start(start(task="x" * MAX_TASK))

    with pytest.raises(Invalid, match="a task may have 16384 characters and this one has 16385"):
        decide_start(start(task="x" * (MAX_TASK + 1)))


@pytest.mark.parametrize("bad", ["lone surrogate \ud800", "nul \0 character"])
@pytest.mark.parametrize(
    "command",
    [
        lambda text: Begin(phase="a", agent=text),
        lambda text: Redo(phase="a", agent=text),
        lambda text: Redo(phase="a", reason=text),
        lambda text: Finish(summary=text),
        lambda text: Finish(summary="x", context=text),
        lambda text: Finish(summary="x", artifacts=(text,)),
        lambda text: Finish(summary="x", deliverables=(text,)),
        lambda text: Complete(force=True, merged_commit=text),
        lambda text: Fail(error=text),
        lambda text: Skip(phases=("a",), reason=text),
        lambda text: Cancel(reason=text),
    ],
)
def test_text_that_no_journal_could_hold_is_refused_in_words(command, bad):
    session = session_at() if isinstance(command("x"), Begin) else opened()

    with pytest.raises(Invalid):
        decide(session, command(bad))


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../b", "", "  ", "a\0b", "x" * (MAX_PATH + 1), "\ud800"])
def test_an_artifact_outside_the_project_is_refused(path):
    with pytest.raises(Invalid):
        decide(opened(), Finish(summary="done", artifacts=("fine.md", path)))


def test_all_wrong_artifacts_are_reported_at_once():
    with pytest.raises(Invalid) as refusal:
        decide(opened(), Finish(summary="done", artifacts=("/a", "ok", "../b")))

    assert len(refusal.value.problems) == 2


def test_more_artifacts_than_the_limit_are_refused_and_the_same_one_counts_once():
    decide(opened(), Finish(summary="done", artifacts=tuple(map(str, range(MAX_ARTIFACTS)))))

    with pytest.raises(Invalid, match="1000 artifacts and 1001 were given"):
        decide(opened(), Finish(summary="done", artifacts=tuple(map(str, range(MAX_ARTIFACTS + 1)))))
    assert decide(opened(), Finish(summary="done", artifacts=("a", "b", "a")))[0].artifacts == ("a", "b")


@pytest.mark.parametrize("text", ["", "a", "a:1", "a:1:2:3", "a:x:2", "a:-1:2", "a:1:²", "a:1:"])
def test_what_is_no_token_is_refused(text):
    with pytest.raises(Invalid, match="is not a token"):
        parse_token(text)


def test_a_token_reads_back_as_it_was_written():
    token = Token("06-implementation", 2, 17)

    assert parse_token(f" {token}\n") == token


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_refusal_always_says_something(command):
    for statuses in ({}, {"a": LIVE}, {"a": DONE, "b": FAILED}, dict.fromkeys("abc", SKIPPED)):
        try:
            decide(session_at(statuses), command)
        except DetentError as refusal:
            assert refusal.message  # noqa: PT017


@pytest.mark.parametrize("bad", ["lone surrogate \ud800", "nul \0 character"])
@pytest.mark.parametrize("field", ["task", "branch"])
def test_a_start_with_text_that_no_journal_could_hold_is_refused_in_words(field, bad):
    command = msgspec.structs.replace(start(), **{field: bad})

    with pytest.raises(Invalid):
        decide_start(command)
