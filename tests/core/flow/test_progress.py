import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.flow.progress import (
    TRANSITIONS,
    Abort,
    Decision,
    FlowRun,
    Move,
    Next,
    Outcome,
    Retry,
    SetValue,
    Skip,
    StepState,
    _moved,
    begin,
    decide,
    output_text,
    record,
    resume,
    start,
)
from detent.core.flow.step import OnError, steps_of
from detent.errors import Invalid, NotFound, Refused

GOOD = Outcome(passed=True, output="out", exit_code=0, duration_s=1.5)
BAD = Outcome(passed=False, output="noise", exit_code=1, duration_s=0.5, reason="the exit code is 1")


def document(*on_errors, commands=()):
    steps = [
        {
            "step": f"s{at}",
            "action": "a",
            "command": f"bash({commands[at] if at < len(commands) else at})",
            "output_to": f"o{at}",
            "on_error": on_error,
        }
        for at, on_error in enumerate(on_errors)
    ]
    return {"id": "IMPL-1", "flow_control": {"pre_analysis": steps}}


def played(task, *outcomes):
    """The run after the outcomes, each for the step whose turn it is, and what was to be done last."""
    run, following = begin(task), None
    steps = {step.step: step for step in steps_of(task)}
    for outcome in outcomes:
        run, following = record(run, steps[run.current], outcome)
    return run, following


def outputs(run, task):
    """The outputs of the finished steps, by name; a skipped step has none."""
    finished = {each.step: each.output or "" for each in run.steps if each.is_finished}
    return {step.output_to: finished[step.step] for step in steps_of(task) if step.step in finished}


def states(run):
    return [str(each.state) for each in run.steps]


@pytest.mark.parametrize(("state", "move"), list(itertools.product(StepState, Move)))
def test_every_cell_of_the_table(state, move):
    run = begin(document("fail"))
    step = msgspec.structs.replace(run.steps[0], state=state)

    if (state, move) in TRANSITIONS:
        assert _moved(run, step, move).steps[0].state is TRANSITIONS[state, move]
    else:
        with pytest.raises(Refused, match=str(state)):
            _moved(run, step, move)


def test_all_steps_in_turn():
    task = document("fail", "fail")

    run, following = played(task, GOOD)
    assert (states(run), following) == (["done", "pending"], Next.GO_ON)
    run, following = played(task, GOOD, GOOD)
    assert (states(run), following, run.current) == (["done", "done"], Next.FINISHED, None)
    assert outputs(run, task) == {"o0": "out", "o1": "out"}
    assert (run.steps[0].attempts, run.steps[0].exit_code, run.steps[0].duration_s) == (1, 0, 1.5)
    assert run.steps[0].output_hash == run.steps[1].output_hash != run.steps[0].template_hash


@pytest.mark.parametrize(
    ("on_error", "outcomes", "found", "following", "attempts"),
    [
        ("fail", [BAD], "failed", Next.FAILED, 1),
        ("skip_optional", [BAD], "skipped", Next.GO_ON, 1),
        ("manual_intervention", [BAD], "waiting", Next.WAITING, 1),
        ("retry_once", [BAD], "pending", Next.AGAIN, 1),
        ("retry_once", [BAD, GOOD], "done", Next.GO_ON, 2),
        ("retry_once", [BAD, BAD], "failed", Next.FAILED, 2),
    ],
)
def test_what_a_failure_leads_to(on_error, outcomes, found, following, attempts):
    run, said = played(document(on_error, "fail"), *outcomes)

    assert (states(run), said, run.steps[0].attempts) == ([found, "pending"], following, attempts)


def test_a_skipped_step_has_an_empty_output_and_a_failed_one_none():
    task = document("skip_optional", "fail")

    assert outputs(played(task, BAD)[0], task) == {"o0": ""}
    assert outputs(played(task, BAD, BAD)[0], task) == {"o0": ""}


@pytest.mark.parametrize(
    ("decision", "found", "following", "output"),
    [
        (Retry(), "pending", Next.AGAIN, {}),
        (Skip(), "skipped", Next.GO_ON, {"o0": ""}),
        (SetValue(value="by hand"), "done", Next.GO_ON, {"o0": "by hand"}),
        (Abort(), "failed", Next.FAILED, {}),
    ],
)
def test_what_a_person_decides(decision, found, following, output):
    task = document("manual_intervention", "fail")
    waiting, _ = played(task, BAD)

    run, said = decide(waiting, "s0", decision)

    assert (states(run), said, outputs(run, task)) == ([found, "pending"], following, output)
    assert msgspec.json.decode(msgspec.json.encode(decision), type=Decision) == decision


def test_only_a_waiting_step_takes_a_decision_and_only_text_is_a_value():
    task = document("manual_intervention")

    with pytest.raises(Refused, match="does not wait for a person"):
        decide(begin(task), "s0", Retry())
    with pytest.raises(NotFound):
        decide(begin(task), "s9", Retry())
    for value in ("a\0b", "\udcff"):
        with pytest.raises(Invalid):
            decide(played(task, BAD)[0], "s0", SetValue(value=value))


def test_steps_are_taken_in_order_and_as_they_were():
    task = document("fail", "fail")
    first, second = steps_of(task)

    with pytest.raises(Refused, match="the turn is at 's0'"):
        record(begin(task), second, GOOD)
    with pytest.raises(Refused, match="another command"):
        start(begin(task), msgspec.structs.replace(first, command="bash(other)"))
    with pytest.raises(Refused, match="failed"):
        start(played(task, BAD)[0], first)
    with pytest.raises(Refused, match="running"):
        start(start(begin(task), first), first)


def test_a_step_that_was_interrupted_is_run_again_and_not_counted():
    task = document("retry_once")
    (step,) = steps_of(task)
    interrupted = start(begin(task), step)
    assert states(interrupted) == ["running"]

    resumed = resume(interrupted, task)
    run, following = record(start(resumed, step), step, BAD)

    assert (states(run), following) == (["pending"], Next.AGAIN)


def test_a_run_is_resumed_at_the_first_step_that_is_not_finished():
    task = document("skip_optional", "fail", "fail")
    run, _ = played(task, BAD, BAD)

    resumed = resume(run, task)

    assert states(resumed) == ["skipped", "pending", "pending"]
    assert resumed.steps[1].attempts == 0
    assert outputs(resumed, task) == {"o0": ""}


def test_a_step_that_waits_goes_on_waiting_unless_it_is_another_one_now():
    task = document("fail", "manual_intervention")
    run, _ = played(task, GOOD, BAD)

    assert resume(run, task) == run
    assert states(resume(run, document("fail", "manual_intervention", commands=["0", "new"]))) == ["done", "pending"]


def test_a_finished_step_that_changed_is_refused_unless_it_is_run_again():
    task = document("fail", "fail", "fail")
    changed = document("fail", "fail", "fail", commands=["0", "new"])
    run, _ = played(task, GOOD, GOOD)

    with pytest.raises(Refused, match="'s1' has another command") as refusal:
        resume(run, changed)
    assert "--rerun-from" in refusal.value.way_out
    with pytest.raises(Refused):
        resume(run, changed, rerun_from="s2")
    assert states(resume(run, changed, rerun_from="s1")) == ["done", "pending", "pending"]
    assert states(resume(run, changed, rerun_from="s0")) == ["pending", "pending", "pending"]
    with pytest.raises(NotFound):
        resume(run, changed, rerun_from="s9")


def test_how_a_failure_is_taken_may_change_without_running_again():
    run, _ = played(document("fail", "fail"), GOOD)

    assert states(resume(run, document("retry_once", "skip_optional"))) == ["done", "pending"]


def test_steps_that_went_or_came_before_finished_ones_are_noticed():
    task = document("fail", "fail", "fail")
    run, _ = played(task, GOOD, GOOD)
    steps = task["flow_control"]["pre_analysis"]

    def with_steps(*chosen):
        return task | {"flow_control": {"pre_analysis": list(chosen)}}

    new = steps[0] | {"step": "new"}
    for other in (
        with_steps(steps[1], steps[2]),
        with_steps(new, *steps),
        with_steps(steps[1], steps[0], steps[2]),
        task | {"id": "IMPL-2"},
    ):
        with pytest.raises(Refused):
            resume(run, other)
    assert states(resume(run, with_steps(*steps, new))) == ["done", "done", "pending", "pending"]
    assert states(resume(run, with_steps(new, *steps), rerun_from="new")) == ["pending"] * 4


@given(st.lists(st.sampled_from(list(OnError)), min_size=1, max_size=4), st.lists(st.booleans(), max_size=10))
def test_any_run_ends_survives_being_written_and_never_repeats_a_step_more_than_once(on_errors, luck):
    task = document(*map(str, on_errors))
    steps = {step.step: step for step in steps_of(task)}
    run, following = begin(task), Next.GO_ON
    for passed in luck:
        if following not in (Next.GO_ON, Next.AGAIN):
            break
        run, following = record(run, steps[run.current], GOOD if passed else BAD)
        run = msgspec.json.decode(msgspec.json.encode(run), type=FlowRun)

    assert all(each.attempts <= 2 for each in run.steps)
    assert (following is Next.FINISHED) == all(each.is_finished for each in run.steps)
    assert [each.is_finished for each in run.steps] == sorted((each.is_finished for each in run.steps), reverse=True)
    assert set(outputs(run, task)) == {f"o{each.step[1:]}" for each in run.steps if each.is_finished}


def test_the_output_of_a_program_as_a_value():
    assert output_text(b"a\n") == "a"
    assert output_text(b"a\n\n") == "a\n"
    assert output_text(b"a\0b\xff") == "ab\ufffd"
    assert output_text(b"") == ""
