"""What runs tell, at fixed times: for the views of them."""

from datetime import datetime, timedelta
from typing import Any

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import (
    AgentEvent,
    Failed,
    Failure,
    Finished,
    Said,
    Started,
    ToolStarted,
    ToolUsed,
    Used,
)
from detent.core.run.run_event import (
    AgentDid,
    End,
    GateJudged,
    GateStarted,
    Need,
    PersonNeeded,
    PhaseEnded,
    Retrying,
    RunEnded,
    RunEvent,
    RunStarted,
    StepRan,
    TaskEnded,
    TurnStarted,
)
from detent.core.run.run_view import RunView, fold
from detent.core.session.commands import Begin, Finish
from detent.core.session.phase_state import Report, Tokens
from tests.support.story import Story, shipped
from tests.support.values import NOON

HOSTILE_QUESTION = {
    "need": Need.ANSWER,
    "text": "Which \x1b[2J colour? " * 20,
    "about": "q-1",
    "choices": ("red", "blue"),
    "way_out": "detent reply q-1 " + "x" * 300,
}
FIRST_TURN = Tokens(input=9000, output=700, cost=0.2)
RUN_AT = NOON + timedelta(minutes=40)


def at(seconds: float) -> datetime:
    return RUN_AT + timedelta(seconds=seconds)


def started(seconds: float = 0, **fields: Any) -> RunStarted:
    return RunStarted(**{"at": at(seconds), "run": "run-1a2b3c4d", "session": "WFS-add-login", **fields})


def turn(seconds: float, phase: str, agent: str = "claude", **fields: Any) -> TurnStarted:
    return TurnStarted(**{"at": at(seconds), "phase": phase, "attempt": 1, "turn": 1, "agent": agent, **fields})


def did(seconds: float, phase: str, event: AgentEvent, task: str | None = None) -> AgentDid:
    return AgentDid(at=at(seconds), phase=phase, task=task, did=event)


def judged(seconds: float, phase: str, gate: str, verdict: Verdict, reason: str = "") -> GateJudged:
    return GateJudged(at=at(seconds), phase=phase, gate=gate, verdict=verdict, reason=reason)


def needed(seconds: float, phase: str, **fields: Any) -> PersonNeeded:
    default = {
        "need": Need.APPROVAL,
        "text": "gate approval is PENDING: 0 of 1 approvals",
        "way_out": f"detent approve {phase} --gate approval -m WHY",
        "about": "approval",
    }
    return PersonNeeded(at=at(seconds), phase=phase, **{**default, **fields})


def view(*events: RunEvent) -> RunView:
    folded = RunView()
    for event in events:
        folded = fold(folded, event)
    return folded


def chain_run() -> list[RunEvent]:
    """An agent at the third phase of a feature, whose tests failed once."""
    phase = "03-architecture"
    return [
        started(),
        turn(1, phase, role="solution-architect"),
        did(2, phase, Started(conversation="c1", model="opus")),
        did(10, phase, Said(text="I read the two modules first.\nThen I draw the borders.")),
        did(20, phase, ToolUsed(tool="Read", input="src/login.py")),
        did(
            60, phase, Finished(report=Report(summary="Borders drawn", tokens=Tokens(input=9000, output=700, cost=0.2)))
        ),
        GateStarted(at=at(61), phase=phase, gate="tests", command="uv run pytest -q"),
        judged(80, phase, "artifacts", Verdict.PASS, "all are there"),
        judged(81, phase, "tests", Verdict.FAIL, "run 1 of 10 failed: 2 failed, 10 passed"),
        turn(82, phase, role="solution-architect", turn=2),
        did(90, phase, Said(text="The token was compared with the wrong clock.")),
        did(95, phase, Used(tokens=Tokens(input=30_100, output=2_050, cost=0.61))),
        did(90, phase, ToolStarted(tool="Bash", input="uv run pytest -q tests/test_login.py")),
        did(100, phase, ToolUsed(tool="Bash", input="uv run pytest -q tests/test_login.py")),
    ]


def parallel_run() -> list[RunEvent]:
    """Two phases at once, one of them waiting for a rate limit, and a person who is asked."""
    return [
        started(parallel=2),
        turn(1, "data"),
        turn(2, "architecture", agent="codex", role="designer"),
        did(30, "data", ToolUsed(tool="Write", input="docs/data.md", succeeded=False)),
        did(105, "architecture", Failed(failure=Failure.TRANSIENT, reason="429 too many requests")),
        Retrying(at=at(105), phase="architecture", reason="429 too many requests", pause_s=16, again=2, of=3),
        needed(106, "data"),
    ]


def task_run() -> list[RunEvent]:
    """Three tasks of one phase, of which one is done."""
    return [
        started(parallel=3),
        turn(1, "06-implementation", task="IMPL-1"),
        turn(1, "06-implementation", task="IMPL-2", agent="codex"),
        StepRan(at=at(3), phase="06-implementation", task="IMPL-2", step="load", said="read 3 files"),
        did(4, "06-implementation", ToolUsed(tool="Edit", input="src/a.py"), task="IMPL-1"),
        turn(5, "06-implementation", task="IMPL-3"),
        TaskEnded(at=at(9), phase="06-implementation", task="IMPL-3", status="completed", said="done"),
    ]


def whole_run() -> list[RunEvent]:
    """One of everything that can be told, hostile text included."""
    return [
        started(taken_over=("attempt 1 of a was interrupted",)),
        *chain_run()[1:],
        *parallel_run()[1:],
        *task_run()[1:],
        did(130, "data", Said(text="\x1b[2J把登录 page 🎉 " + "very long " * 40)),
        needed(131, "architecture", **HOSTILE_QUESTION),
        PhaseEnded(
            at=at(140), phase="data", attempt=1, status="completed", said="Tables", warnings=("x is not there",)
        ),
        PhaseEnded(at=at(141), phase="architecture", attempt=2, status="failed", said="refused\nfor good"),
        RunEnded(at=at(150), end=End.WAITING, said="03-architecture: a person must decide"),
    ]


def both_branches() -> Story:
    """The session that `parallel_run` is about."""
    return (
        Story(shipped("canonical"), task="Make the login faster")
        .then(4, Finish(summary="Understood"))
        .then(0, Begin())
        .then(15, Finish(summary="Planned"))
        .then(1, Begin(phase="data"))
        .then(1, Begin(phase="architecture"))
    )


def at_third_phase() -> Story:
    """The session that `chain_run` is about."""
    return (
        Story(shipped("feature"), number=5)
        .then(12, Finish(summary="Wrote down 12 requirements and the two questions that are still open"))
        .then(1, Begin())
        .then(22, Finish(summary="Touches 3 modules"))
        .then(5, Begin())
    )
