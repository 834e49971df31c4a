"""The tools by name: their arguments, and the words and hints that a client shows. The engine is not loaded for them.

A decision of a person is no tool. A call that needs one answers `pending`.
"""

from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from detent.core.limits import MAX_ARTIFACTS, MAX_ERROR, MAX_NAME, MAX_REASON, MAX_TASK

#: Seconds that a call waits for a check or an answer before it says that it goes on. Clients end calls after a minute.
WAIT_S = 45.0
MAX_WAIT_S = 600.0
MAX_CHECKPOINTS = 200

Name = Annotated[str, Meta(max_length=MAX_NAME)]
Long = Annotated[str, Meta(max_length=MAX_REASON)]
Phase = Annotated[Name, Meta(description="Phase key; needed only if several are in progress.")]
Token = Annotated[Name, Meta(description="The token that begin returned.")]
Paths = Annotated[list[str], Meta(max_length=MAX_ARTIFACTS, description="Files made, relative to the project.")]
Task = Annotated[Name, Meta(description="A task id such as IMPL-3.")]
Wait = Annotated[float, Meta(ge=0, le=MAX_WAIT_S, description="Seconds to wait before answering that it goes on.")]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a tool. Text that is not given is empty."""


class Nothing(Arguments, frozen=True):
    pass


class Why(Arguments, frozen=True):
    phase: Annotated[Name, Meta(description="Explain only this phase.")] = ""


class Begin(Arguments, frozen=True):
    phase: Annotated[Name, Meta(description="Phase key; without it the first phase that is ready.")] = ""
    agent: Annotated[Name, Meta(description="Who does the work, if not the phase's own agent.")] = ""


class Finish(Arguments, frozen=True):
    summary: Annotated[Long, Meta(min_length=1, description="What was done; 150 characters are kept.")]
    phase: Phase = ""
    token: Token = ""
    artifacts: Paths = []
    deliverables: Annotated[list[str], Meta(max_length=MAX_ARTIFACTS, description="What was delivered.")] = []
    context: Annotated[Long, Meta(description="What the next phase must know.")] = ""


class Fail(Arguments, frozen=True):
    error: Annotated[str, Meta(min_length=1, max_length=MAX_ERROR, description="What went wrong.")]
    phase: Phase = ""
    token: Token = ""
    artifacts: Paths = []


class GateRun(Arguments, frozen=True):
    gate: Annotated[Name, Meta(min_length=1, description="The gate, as status and why name it.")]
    phase: Phase = ""
    tests: Annotated[
        list[str], Meta(max_length=100, description="For a regression gate: the tests that show the bug.")
    ] = []
    wait_s: Wait = WAIT_S


class TaskStart(Arguments, frozen=True):
    task: Annotated[Name, Meta(description="A task id; without it the next one that is ready.")] = ""


class TaskDone(Arguments, frozen=True):
    task: Task
    summary: Annotated[Long, Meta(description="What was done, for tasks that depend on it.")] = ""
    met: Annotated[
        list[Long], Meta(max_length=100, description="How each acceptance criterion was met, in their order.")
    ] = []
    claim: Annotated[int, Meta(ge=0, description="The number of your claim, from task_start.")] = 0


class TaskAdd(Arguments, frozen=True):
    title: Annotated[str, Meta(min_length=1, max_length=MAX_TASK)]
    parent: Annotated[Name, Meta(description="The task that it is a part of.")] = ""
    depends_on: Annotated[list[Name], Meta(max_length=100, description="Tasks that come first.")] = []
    requirements: Annotated[list[Long], Meta(max_length=100)] = []
    focus_paths: Annotated[list[str], Meta(max_length=100, description="Files that it is about.")] = []
    acceptance: Annotated[list[Long], Meta(max_length=100, description="Acceptance criteria.")] = []


class Ask(Arguments, frozen=True):
    question: Annotated[Long, Meta(min_length=1)]
    choices: Annotated[list[Name], Meta(max_length=20, description="Possible answers.")] = []
    phase: Phase = ""
    wait_s: Wait = WAIT_S


class ListCheckpoints(Arguments, frozen=True):
    count: Annotated[int, Meta(ge=1, le=MAX_CHECKPOINTS, description="How many, newest last.")] = 20


class Diff(Arguments, frozen=True):
    a: Annotated[Name, Meta(min_length=1, description="A checkpoint by name or id, or now.")]
    b: Annotated[Name, Meta(description="Another one; now if it is not given.")] = "now"
    stat: Annotated[bool, Meta(description="Only count the lines of each file.")] = False


class Tool(NamedTuple):
    """A tool. `detent.mcp.calls` has a function of the same name."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    reads: bool = False
    #: Calling it again with the same arguments changes nothing more.
    is_repeatable: bool = False

    def as_record(self) -> dict[str, Any]:
        hints: dict[str, Any] = {"openWorldHint": False}
        if self.reads:
            hints["readOnlyHint"] = True
        else:
            # Nothing that Detent records is deleted.
            hints |= {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": self.is_repeatable}
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input_schema(self.arguments),
            "annotations": hints,
        }


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "status",
            "Session status",
            "Where the session stands: phases, tokens of attempts, gates, what waits for a person, the next calls.",
            Nothing,
            reads=True,
        ),
        Tool(
            "why",
            "Why it is blocked",
            "What holds the session or one phase, with the evidence and the way out.",
            Why,
            reads=True,
        ),
        Tool(
            "begin",
            "Begin a phase",
            "Begin a phase, before work is done or delegated. Returns its token and the handover of earlier phases.",
            Begin,
        ),
        Tool(
            "finish",
            "Finish a phase",
            "Finish the attempt in progress. Runs the checks of its gates that are due; refused if a gate is closed. "
            "Answers running while a check goes on (call it again), pending if a person must decide.",
            Finish,
        ),
        Tool("fail", "Fail a phase", "End an attempt that did not succeed.", Fail),
        Tool(
            "gate_run",
            "Run a gate's check",
            "Run the check of a gate now, and return its verdict. Answers running if it takes longer than wait_s; "
            "call it again to wait. Cancelling the call ends the check.",
            GateRun,
            is_repeatable=True,
        ),
        Tool("task_next", "Next task", "The task to do next, or why there is none.", Nothing, reads=True),
        Tool(
            "task_start",
            "Start a task",
            "Claim a task. Returns its context and the number of the claim.",
            TaskStart,
        ),
        Tool(
            "task_done", "Complete a task", "Complete a task. Every acceptance criterion needs a text in met.", TaskDone
        ),
        Tool("task_add", "Add a task", "Add a task to the plan.", TaskAdd),
        Tool(
            "ask",
            "Ask a person",
            "Ask a person, and wait for the answer. Answers pending if none came in time; "
            "the same question again waits for the same answer.",
            Ask,
            is_repeatable=True,
        ),
        Tool("checkpoints", "Checkpoints", "The checkpoints of the session, newest last.", ListCheckpoints, reads=True),
        Tool(
            "diff",
            "Compare checkpoints",
            "What differs between two checkpoints, or one and the present.",
            Diff,
            reads=True,
        ),
    )
}


@cache
def input_schema(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of the arguments, in its shortest form: no titles, and no defaults that are empty."""
    schema: dict[str, Any] = msgspec.json.schema(arguments)["$defs"][arguments.__name__]
    for field in schema["properties"].values():
        if not field.get("default", True):
            del field["default"]
    kept = {key: schema[key] for key in ("type", "properties", "required", "additionalProperties") if schema.get(key)}
    return {**kept, "additionalProperties": False}
