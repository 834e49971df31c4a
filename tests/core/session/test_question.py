"""Questions of agents to people, and what agents report while an attempt goes on."""

from typing import Any

import msgspec
import pytest

from detent.core.gate.evidence import Facts, Verdict
from detent.core.gate.judge import judgements
from detent.core.gate.kinds.elicitation import ElicitationGate
from detent.core.limits import MAX_NAME, MAX_REASON, MAX_SUMMARY, MAX_TOOLS
from detent.core.session.commands import (
    Ask,
    Begin,
    Cancel,
    Complete,
    Fail,
    Finish,
    RecordAgentEnded,
    RecordAgentStarted,
    Redo,
    Reply,
    Skip,
)
from detent.core.session.decide import decide
from detent.core.session.decide_gate import MAX_CHOICES, MAX_QUESTIONS
from detent.core.session.events import (
    AgentEnded,
    Options,
    PhaseFailed,
    PhaseFinished,
    QuestionAnswered,
    QuestionReplied,
)
from detent.core.session.evolve import fingerprint
from detent.core.session.obstacle import obstacles
from detent.core.session.phase_state import Report, Tokens, ToolUse
from detent.core.workflow.graph import Phase, Workflow
from detent.errors import Invalid, NotFound, Refused
from tests.support.values import NOON, after, opened, workflow

PARALLEL = {"a": (), "b": (), "c": ("a", "b")}


def run(session, *commands):
    for command in commands:
        session = after(session, decide(session, command))
    return session


def parallel():
    """Two phases in progress beside each other."""
    return run(opened(workflow(PARALLEL)), Begin(phase="b"))


def ask(name="Q1", *, phase="a", text="Which?", choices=()):
    return Ask(id=name, phase=phase, text=text, choices=choices)


def gated(**settings):
    """A session whose only phase asks for answers of a person."""
    phase = Phase(key="a", gates=(ElicitationGate(**settings),))
    session = opened(Workflow(name="trial", phases=(phase,)))
    return msgspec.structs.replace(session, options=Options(gates=True))


def verdict(session):
    [judged] = judgements(session, "a", Facts(now=NOON))
    return judged.verdict


# Asking


def test_what_was_asked_is_open_until_it_is_answered():
    session = run(opened(), ask(text=" Which?\n", choices=("x", "y", "x")))

    [question] = session.questions
    assert (question.id, question.phase, question.text, question.choices) == ("Q1", "a", "Which?", ("x", "y"))
    assert question.at == NOON
    assert run(session, Reply(answer="x")).questions == ()


@pytest.mark.parametrize("phase", ["b", "c", "nowhere"])
def test_only_a_phase_in_progress_can_ask(phase):
    with pytest.raises(Refused, match=f"phase {phase} is not in progress"):
        decide(opened(), ask(phase=phase))


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": " "},
        {"text": "x" * (MAX_REASON + 1)},
        {"text": "a\0b"},
        {"choices": ("x", "")},
        {"choices": ("x" * (MAX_NAME + 1),)},
    ],
)
def test_a_question_is_text_of_some_length(wrong):
    with pytest.raises(Invalid):
        decide(opened(), ask(**wrong))


def test_there_is_a_limit_to_what_a_person_can_be_asked():
    session = run(opened(), *(ask(f"Q{number}") for number in range(MAX_QUESTIONS)))

    assert len(session.questions) == MAX_QUESTIONS
    with pytest.raises(Refused, match="questions"):
        decide(session, ask("one more"))
    with pytest.raises(Refused, match="choices"):
        decide(opened(), ask(choices=tuple(map(str, range(MAX_CHOICES + 1)))))


def test_an_id_is_open_once():
    with pytest.raises(Refused, match="Q1"):
        decide(run(opened(), ask("Q1")), ask("Q1", text="Another?"))


def test_an_open_question_stands_in_the_way_and_says_what_to_type():
    session = run(opened(), ask("Q7", text="Which database?"))

    [found] = [one for one in obstacles(session) if "database" in one.message]
    assert (found.phase, found.way_out) == ("a", "detent reply Q7 ANSWER")


def test_a_question_is_part_of_what_the_journal_vouches_for():
    session = opened()

    assert fingerprint(run(session, ask())) != fingerprint(run(session, ask(text="What?")))


# Answering


def test_one_of_several_questions_has_to_be_named_and_the_others_stay():
    session = run(parallel(), ask("Q1"), ask("Q2", phase="b"))

    with pytest.raises(Refused, match="2 questions are open: Q1, Q2"):
        decide(session, Reply(answer="x"))
    [event] = decide(session, Reply(id="Q2", answer=" x "))

    assert event == QuestionReplied(id="Q2", phase="b", answer="x")
    assert [one.id for one in after(session, [event]).questions] == ["Q1"]


@pytest.mark.parametrize("name", [None, "Q1", ""])
def test_what_nobody_asked_cannot_be_answered(name):
    with pytest.raises(NotFound):
        decide(opened(), Reply(id=name, answer="x"))


def test_only_one_of_the_choices_is_an_answer_where_there_are_any():
    session = run(opened(), ask(choices=("x", "y")))

    with pytest.raises(Invalid, match="'z' is none of the choices: x, y"):
        decide(session, Reply(answer="z"))
    assert decide(run(opened(), ask()), Reply(answer="z"))


def test_an_answer_is_not_empty():
    with pytest.raises(Invalid):
        decide(run(opened(), ask()), Reply(answer=" \n"))


@pytest.mark.parametrize(
    "ending",
    [
        Finish(phase="a", summary="done"),
        Fail(phase="a", error="broke"),
        Redo(phase="a"),
        Skip(phases=("a",), reason="no"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_question_goes_with_the_attempt_that_asked_it(ending):
    session = run(parallel(), ask("Q1"), ask("Q2", phase="b"))

    assert [one.id for one in run(session, ending).questions] == ["Q2"]


@pytest.mark.parametrize("ending", [Cancel(reason="no"), Complete(force=True)], ids=lambda one: type(one).__name__)
def test_nothing_is_asked_any_more_when_the_session_is_over(ending):
    session = run(opened(), ask(), ending)

    assert session.questions == ()
    with pytest.raises(Refused):
        decide(session, ask("Q2"))


# Answers open the gate that asks for them


def test_answers_open_the_gate_when_there_are_enough_and_one_says_how_to_go_on():
    session = gated(interactions=2, final=("save", "continue"))
    verdicts = [verdict(session)]

    for name, answer in (("Q1", "blue"), ("Q2", "red"), ("Q3", "save")):
        session = run(session, ask(name), Reply(answer=answer))
        verdicts.append(verdict(session))

    assert verdicts == [Verdict.PENDING, Verdict.PENDING, Verdict.PENDING, Verdict.PASS]
    assert session.phases["a"].gates["elicitation"].interactions == 3


def test_an_answer_that_does_not_say_how_to_go_on_leaves_what_was_chosen():
    session = gated()

    [_, first] = decide(run(session, ask()), Reply(answer="continue"))
    session = run(session, ask(), Reply(answer="continue"), ask("Q2"), Reply(answer="blue"))

    assert first == QuestionAnswered(phase="a", gate="elicitation", choice="continue")
    assert verdict(session) is Verdict.PASS


def test_without_gates_an_answer_is_only_an_answer():
    session = msgspec.structs.replace(gated(), options=Options(gates=False))

    events = decide(run(session, ask()), Reply(answer="save"))

    assert [type(event) for event in events] == [QuestionReplied]


# Reports


def working(session=None, *, agent_id="x-1", phase="a"):
    return run(session or opened(), RecordAgentStarted(phase=phase, agent="a-agent", agent_id=agent_id))


def land(report, agent_id="x-1"):
    return RecordAgentEnded(agent_id=agent_id, succeeded=True, report=report)


FIRST = Report(
    summary="first",
    artifacts=("a.md", "b.md"),
    deliverables=("a.md",),
    context="mind the gap",
    tokens=Tokens(input=1, output=2, cost=0.5),
    tools=(ToolUse(tool="Read"),),
)


def test_what_agents_report_adds_up_over_the_turns_of_an_attempt():
    second = Report(
        summary="second", artifacts=("b.md", "c.md"), tokens=Tokens(input=10), tools=(ToolUse(tool="Edit"),)
    )

    session = run(working(run(working(), land(FIRST)), agent_id="x-2"), land(second, "x-2"))

    assert session.phases["a"].report == Report(
        summary="second",
        artifacts=("a.md", "b.md", "c.md"),
        deliverables=("a.md",),
        context="mind the gap",
        tokens=Tokens(input=11, output=2, cost=0.5),
        tools=(ToolUse(tool="Read"), ToolUse(tool="Edit")),
    )


def test_an_agent_that_reports_nothing_takes_nothing_away():
    session = run(working(run(working(), land(FIRST)), agent_id="x-2"), land(None, "x-2"))

    assert session.phases["a"].report == FIRST


@pytest.mark.parametrize("kind", [PhaseFinished, PhaseFailed])
def test_the_end_of_the_attempt_has_all_that_was_reported_and_what_is_said_with_it(kind):
    session = run(working(), land(FIRST))
    more: dict[str, Any] = {"artifacts": ("z.md",), "tokens": Tokens(input=5), "tools": (ToolUse(tool="Bash"),)}
    command = Finish(summary="done", **more) if kind is PhaseFinished else Fail(error="broke", **more)

    event = next(one for one in decide(session, command) if isinstance(one, kind))

    assert event.artifacts == ("a.md", "b.md", "z.md")
    assert event.tokens == Tokens(input=6, output=2, cost=0.5)
    assert [use.tool for use in event.tools] == ["Read", "Bash"]
    if kind is PhaseFinished:
        assert (event.summary, event.deliverables, event.context) == ("done", ("a.md",), "mind the gap")


@pytest.mark.parametrize(
    "ending", [Finish(summary="done"), Fail(error="broke"), Redo(phase="a")], ids=lambda one: type(one).__name__
)
def test_the_next_attempt_starts_without_a_report(ending):
    session = run(working(), land(FIRST), ending)

    assert session.phases["a"].report is None


def test_what_only_informs_is_cut():
    many = tuple(ToolUse(tool=str(number)) for number in range(MAX_TOOLS + 5))
    long = Report(summary="s" * 1000, context="c" * (MAX_REASON + 1), tools=many, tools_dropped=2)

    [event] = decide(working(), land(long))

    assert isinstance(event, AgentEnded)
    assert len(event.report.summary) == MAX_SUMMARY
    assert len(event.report.context) == MAX_REASON
    assert [use.tool for use in event.report.tools] == [str(number) for number in range(5, MAX_TOOLS + 5)]
    assert event.report.tools_dropped == 7


def test_tools_are_dropped_from_the_front_and_counted_over_all_turns():
    full = Report(tools=tuple(ToolUse(tool="old") for _ in range(MAX_TOOLS)))
    session = run(
        working(run(working(), land(full)), agent_id="x-2"), land(Report(tools=(ToolUse(tool="new"),)), "x-2")
    )

    report = session.phases["a"].report
    assert (len(report.tools), report.tools[-1].tool, report.tools_dropped) == (MAX_TOOLS, "new", 1)


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../../b", " "])
def test_a_path_that_leads_out_of_the_project_is_refused(path):
    with pytest.raises(Invalid):
        decide(working(), land(Report(artifacts=(path,))))
