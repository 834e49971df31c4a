"""Sessions that stopped, each in another way, so that a person has to do something."""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from detent.core.session.status import Status
from detent.core.task.document import new_document
from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle
from tests.support.people import ANN, ME, acting, roles
from tests.support.project import build_project, write
from tests.support.task_documents import step

UNITTEST = f"{sys.executable} -m unittest discover"
TWO_TESTS = """import unittest


class T(unittest.TestCase):
    def test_one(self):
        pass

    def test_two(self):
        pass
"""
#: What a person types in place of a word in capitals.
_FILLED = {"WHY": "because", "ANSWER": "yes", "VALUE": "x", "COMMAND": "true", "SUMMARY": "done"}

Make = Callable[[Project, SessionHandle], object]


class Stop:
    """A project on disk in which a session waits for something."""

    def __init__(self, make: Make | None = None, *, gates: str = "", phases: str = "", settings: str = "") -> None:
        self._make = make
        listed = phases or f'{{ key = "work", gates = [{gates}] }}, "after"'
        self._settings = f"{settings}\n[workflows.short]\nphases = [{listed}]\n"

    def build(self, root: Path) -> None:
        files = {"a.py": "A = 1\n", "tests/__init__.py": "", "tests/test_a.py": TWO_TESTS}
        build_project(root, self._settings, files=files, agent=True, constitution=True)
        with open_project(root) as project:
            handle = project.start("short", "try it")
            if self._make is not None:
                self._make(project, handle)


def typed(command: str) -> list[str]:
    """The words after `detent`, with a text in place of each word in capitals."""
    command = command.replace("YOUR TEST COMMAND", UNITTEST)
    filled = re.sub(rf"\b({'|'.join(_FILLED)})\b", lambda word: _FILLED[word[0]], command)
    program, verb, *words = shlex.split(filled)
    assert program == "detent", command
    return [verb, *words[:1], "--json", *words[1:]]


def _check(gate: str = "check") -> Make:
    return lambda _, handle: handle.gates.run(gate, phase="work")


def _stale(project: Project, handle: SessionHandle) -> None:
    for phase in handle.state.with_status(Status.IN_PROGRESS):
        handle.gates.run("check", phase=phase)
    write(project.place.base, "a.py", "A = 2\n")


def _both_stale(project: Project, handle: SessionHandle) -> None:
    handle.begin("b")
    _stale(project, handle)


def _lost(project: Project, handle: SessionHandle) -> None:
    handle.gates.run("tests")
    write(project.place.base, "tests/test_a.py", TWO_TESTS.replace("test_two", "other_two"))
    handle.gates.run("tests")


def _rejected(_project: Project, handle: SessionHandle) -> None:
    handle.approve("no", approve=False)


def _task(action: str) -> Make:
    def make(_project: Project, handle: SessionHandle) -> None:
        handle.tasks.write([new_document("IMPL-1", "Try it")])
        if action == "block":
            handle.tasks.block("IMPL-1", "the server is down")
            return
        claimed = handle.tasks.start("IMPL-1")
        handle.tasks.fail("IMPL-1", "it broke", fence=claimed.fence)

    return make


def _waiting_step(project: Project, handle: SessionHandle) -> None:
    from detent.engine.flow.flow import Flow

    document = new_document("IMPL-1", "Try it")
    document["flow_control"] |= {
        "pre_analysis": [step("look", "exit 1", on_error="manual_intervention")],
        "implementation_approach": "work",
    }
    handle.tasks.write([document])
    Flow(project, handle).run("IMPL-1")


def _working(_project: Project, handle: SessionHandle) -> None:
    handle.tasks.add("Form", acceptance=["the tests pass", "Ada has seen it"])
    handle.tasks.start("IMPL-1")


def _tasks_left(_project: Project, handle: SessionHandle) -> None:
    handle.tasks.write([new_document("IMPL-1", "Try it")])
    handle.finish("done")
    handle.begin()
    handle.finish("done")


def _first_vote(_project: Project, handle: SessionHandle) -> None:
    handle.approve("fine")


def _others_vote(_project: Project, handle: SessionHandle) -> None:
    with acting(ANN):
        handle.approve("fine")


def _ask(text: str, *choices: str) -> Make:
    return lambda _, handle: handle.ask(text, choices=choices)


CHECK = '{ kind = "command", name = "check", command = "true" }'
FAILING = '{ kind = "command", name = "check", command = "false", circuit_breaker = 3 }'
PARALLEL = f'{{ key = "a", needs = [], gates = [{CHECK}] }}, {{ key = "b", needs = [], gates = [{CHECK}] }}'
TESTS = f'{{ kind = "tests", command = "{UNITTEST}" }}'
QUORUM = '{ kind = "consensus", approvers = ["author", "reader"], quorum = 2 }'
PEOPLE = roles(author=ME, reader=ANN)
TASKS = '{ key = "work", tasks = true }, "after"'

#: The kind of decision, a name, and the session that waits for it.
STOPS: dict[str, tuple[str, Stop]] = {
    "question": ("question", Stop(_ask("Which way?"))),
    "question with choices": ("question", Stop(_ask("Which one?", "the first", "the second"))),
    "question with numbers": ("question", Stop(_ask("How many?", "2", "3"))),
    "escalation": ("escalation", Stop(lambda _, handle: handle.escalate("stuck", "work", "it is stuck"))),
    "escalation of a gate": (
        "escalation",
        Stop(lambda _, handle: [handle.gates.run("check") for _ in range(3)], gates=FAILING),
    ),
    "two escalations": (
        "escalation",
        Stop(
            lambda _, handle: [
                handle.begin("b"),
                *(handle.escalate("stuck", key, f"{key} is stuck") for key in ("a", "b")),
            ],
            phases=PARALLEL,
        ),
    ),
    "budget": ("budget", Stop(lambda _, handle: handle.escalate("budget_exceeded", "work", "3 minutes used"))),
    "review": ("review", Stop(lambda _, handle: handle.finish("did it"), settings="[supervised]\n")),
    "vote": ("vote", Stop(gates='{ kind = "approval" }')),
    "rejected": ("closed", Stop(_rejected, gates='{ kind = "approval" }')),
    "answer": ("answer", Stop(gates='{ kind = "elicitation" }')),
    "report": ("report", Stop(gates='{ kind = "constitution", articles = ["I"] }')),
    "stale gate": ("stale", Stop(_stale, gates=CHECK)),
    "stale gates of two phases": (
        "stale",
        Stop(_both_stale, phases=PARALLEL),
    ),
    "closed gate": ("closed", Stop(_check(), gates=FAILING)),
    "lost tests": ("accept", Stop(_lost, gates=TESTS)),
    "failed attempt": ("failed", Stop(lambda _, handle: handle.fail("it broke"))),
    "blocked task": ("task", Stop(_task("block"), phases=TASKS)),
    "failed task": ("task", Stop(_task("fail"), phases=TASKS)),
    "waiting step": ("step", Stop(_waiting_step, phases=TASKS)),
    "tasks left": ("tasks_left", Stop(_tasks_left, phases=TASKS)),
}
#: Votes of several accounts.
VOTES: dict[str, Stop] = {
    "no vote is cast": Stop(gates=QUORUM, settings=PEOPLE),
    "my vote is cast": Stop(_first_vote, gates=QUORUM, settings=PEOPLE),
    "another vote is cast": Stop(_others_vote, gates=QUORUM, settings=PEOPLE),
}
#: Sessions in which a person has nothing to decide.
FREE: dict[str, Stop] = {
    "begun": Stop(),
    "due check": Stop(gates=CHECK),
    "no command": Stop(gates='{ kind = "tests" }'),
    "missing file": Stop(gates='{ kind = "artifacts", paths = ["out.txt"] }'),
    "an agent has to run": Stop(gates='{ kind = "delegation" }'),
    "a task is worked on": Stop(_working, phases=TASKS),
    "ready": Stop(lambda _, handle: handle.finish("did it")),
    "passed": Stop(_check(), gates=CHECK),
}
