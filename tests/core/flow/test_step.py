import pytest

from detent.core.flow.reference import task_properties
from detent.core.flow.step import (
    DEFAULT_TIMEOUT_S,
    OnError,
    Step,
    is_balanced,
    is_wrapped,
    step_problems,
    steps_of,
    unwrap,
)
from detent.errors import Invalid
from tests.support.hostile import task

DECLARED = task_properties(task(own_field=1))


def flow(*steps):
    return {
        "pre_analysis": [
            {"step": f"s{at}", "action": "a", "command": "bash(true)"} | step for at, step in enumerate(steps)
        ]
    }


def found(*steps):
    return [(each.rule, each.path, each.severity) for each in step_problems(flow(*steps), declared=DECLARED)]


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("bash(ls)", "ls"),
        ("  bash(ls -l)\n", "ls -l"),
        ("bash((a; b) | c $(d))", "(a; b) | c $(d)"),
        ("bash(echo ')')", "echo ')'"),
        ("bash()", ""),
        ("bash(bash(x))", "bash(x)"),
        ("ls (x)", "ls (x)"),
        ("ls", "ls"),
        ("bash -c 'x'", "bash -c 'x'"),
    ],
)
def test_the_wrapper_goes_and_what_is_inside_stays(command, inner):
    assert unwrap(command) == inner
    assert is_balanced(command)
    assert is_wrapped(command) == (command.strip().startswith("bash("))


@pytest.mark.parametrize("command", ["bash(ls", "bash(ls) && rm", "bash("])
def test_a_wrapper_that_is_not_closed_at_the_end_is_noticed(command):
    assert not is_balanced(command)
    assert unwrap(command) == command


def test_steps_are_read_with_their_defaults():
    document = {"flow_control": flow({}, {"on_error": "retry_once", "timeout": 5, "cwd": "session", "output_to": None})}

    first, second = steps_of(document)

    assert first == Step(step="s0", action="a", command="bash(true)")
    assert (first.on_error, first.timeout, first.cwd, first.script) == (
        OnError.FAIL,
        DEFAULT_TIMEOUT_S,
        None,
        "true",
    )
    assert (second.on_error, second.timeout, second.cwd, second.output_to) == (OnError.RETRY_ONCE, 5.0, "session", None)
    assert steps_of({"flow_control": {"pre_analysis": []}}) == steps_of({}) == ()
    for broken in ([1], [{"step": 1}], 5, [None]):
        with pytest.raises(Invalid):
            steps_of({"flow_control": {"pre_analysis": broken}})


@pytest.mark.parametrize(
    ("step", "rule", "key"),
    [
        ({"step": None}, "step_step", "step"),
        ({"step": 5}, "step_step", "step"),
        ({"action": ""}, "step_action", "action"),
        ({"command": ["ls"]}, "step_command", "command"),
        ({"command": "  "}, "step_command", "command"),
        ({"command": "bash( )"}, "step_command", "command"),
        ({"command": "bash(ls"}, "unbalanced_wrapper", "command"),
        ({"command": "bash(echo [out])", "output_to": "out"}, "produced_later", "command"),
        ({"command": "bash(echo $(([id])))"}, "unsafe_reference", "command"),
        ({"command": "bash(echo '[id])"}, "unsafe_reference", "command"),
        ({"command": "bash(eval [title])"}, "unsafe_reference", "command"),
        ({"output_to": "two words"}, "output_to", "output_to"),
        ({"output_to": "é"}, "output_to", "output_to"),
        ({"output_to": "a.b"}, "output_to", "output_to"),
        ({"output_to": 1}, "output_to", "output_to"),
        ({"output_to": ""}, "output_to", "output_to"),
        ({"output_to": "focus_paths"}, "shadows_property", "output_to"),
        ({"output_to": "session"}, "shadows_property", "output_to"),
        ({"output_to": "own_field"}, "shadows_property", "output_to"),
        ({"on_error": "ignore"}, "on_error", "on_error"),
        ({"on_error": ["fail"]}, "on_error", "on_error"),
        ({"timeout": 0}, "timeout", "timeout"),
        ({"timeout": -1}, "timeout", "timeout"),
        ({"timeout": True}, "timeout", "timeout"),
        ({"timeout": "5"}, "timeout", "timeout"),
        ({"timeout": float("inf")}, "timeout", "timeout"),
        ({"timeout": float("nan")}, "timeout", "timeout"),
        ({"timeout": 10**400}, "timeout", "timeout"),
        ({"cwd": "/tmp"}, "cwd", "cwd"),
        ({"success_criteria": "works"}, "success_criteria", "success_criteria"),
        ({"success_criteria": 0}, "success_criteria", "success_criteria"),
        ({"success_criteria": ["exit_code:0", "matches:("]}, "success_criteria", "success_criteria[1]"),
        ({"success_criteria": [None]}, "success_criteria", "success_criteria[0]"),
    ],
)
def test_each_problem_is_reported_where_it_is(step, rule, key):
    assert found({}, step) == [(rule, f"flow_control.pre_analysis[1].{key}", "error")]


@pytest.mark.parametrize(
    "step",
    [
        {"timeout": 0.5},
        {"timeout": None, "on_error": None, "output_to": None, "success_criteria": None, "cwd": None},
        {"success_criteria": []},
        {"success_criteria": ["exit_code:!=1", "non_empty"]},
        {"command": "bash(echo '[focus_paths]' [ -n x ] [unknown])"},
        {"output_to": "_x1"},
    ],
)
def test_what_is_right_has_no_problem(step):
    assert found(step) == []


def test_a_command_without_its_wrapper_is_a_warning_only():
    assert found({"command": "ls"}) == [("unwrapped_command", "flow_control.pre_analysis[0].command", "warning")]


def test_a_variable_may_be_used_only_after_the_step_that_makes_it():
    use, make = {"command": "bash(echo [out])"}, {"output_to": "out"}

    assert found(make, use) == []
    assert found(use, make) == [("produced_later", "flow_control.pre_analysis[0].command", "error")]


def test_all_problems_are_reported_at_once():
    steps = flow({"output_to": "x", "timeout": 0}, {"step": "s0", "output_to": "x", "on_error": "?"}, {"action": None})
    steps["pre_analysis"].append("no step")

    problems = step_problems(steps, declared=DECLARED)

    assert sorted((each.rule, each.path.removeprefix("flow_control.pre_analysis")) for each in problems) == [
        ("duplicate_output_to", "[1].output_to"),
        ("duplicate_step", "[1].step"),
        ("on_error", "[1].on_error"),
        ("step_action", "[2].action"),
        ("step_object", "[3]"),
        ("timeout", "[0].timeout"),
    ]


@pytest.mark.parametrize("flow_control", [None, [], "x", {}, {"pre_analysis": {}}, {"pre_analysis": None}])
def test_flow_control_without_an_array_of_steps_is_one_problem(flow_control):
    (problem,) = step_problems(flow_control, declared=DECLARED)

    assert problem.severity == "error"
    assert problem.path.startswith("flow_control")


def test_there_is_an_end_to_the_number_of_steps():
    (problem,) = step_problems(flow(*[{}] * 201), declared=DECLARED)

    assert problem.rule == "pre_analysis"
