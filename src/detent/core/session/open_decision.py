"""The open decisions of a session: everything that waits for a person, and the command for each.

Every surface takes the list from `open_decisions`. A command of it is complete, and is not refused to the person whom
it is for. A word in capitals stands for a text of that person.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from detent.core.actor import Assurance
from detent.core.gate import Gate, Opener, gate_name
from detent.core.gate.closed import closed_gates, is_held, is_personal
from detent.core.gate.evidence import GateState, Judgement, Result, Verdict
from detent.core.gate.judge import judge_recorded
from detent.core.gate.kind import GIVEN_COMMAND, required_paths
from detent.core.gate.program import accepted_name, other_program
from detent.core.gate.voted import Voted
from detent.core.session.escalation import BUDGET_EXCEEDED
from detent.core.session.phase_name import phase_name
from detent.core.session.phase_state import is_of_worker
from detent.core.session.session import RESOLUTIONS, Escalation, Question, Session, resolve_commands
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus

#: The most tasks of one status that are listed.
MAX_TASKS = 20
#: The most tests that a command names.
MAX_NAMED = 3
#: Commands that are signed, where a session asks for more than a person at a terminal.
_SIGNED = (
    *("approve ", "resolve ", "review ", "reply ", "skip ", "complete --force"),
    *("gate answer ", "gate report ", "gate accept ", "gate set ", "gate baseline "),
)

Judged = Mapping[str, Sequence[Judgement]]


def way_out(decisions: Sequence["OpenDecision"]) -> str:
    """The commands of the first of them, as one sentence."""
    return " or ".join(decisions[0].commands)


class DecisionKind(StrEnum):
    #: An agent asks.
    QUESTION = "question"
    ESCALATION = "escalation"
    BUDGET = "budget"
    #: A finished phase waits for a person to look at it.
    REVIEW = "review"
    #: A gate waits for votes, for an answer, or for the report of a reviewer.
    VOTE = "vote"
    ANSWER = "answer"
    REPORT = "report"
    #: Tests that stood at the start are gone, or a check used another program.
    ACCEPT = "accept"
    #: A check has to run again, or for the first time by a command that is not named yet.
    STALE = "stale"
    CLOSED = "closed"
    COMMAND = "command"
    #: An attempt failed.
    FAILED = "failed"
    #: A task is blocked or failed, or one of its steps waits.
    TASK = "task"
    STEP = "step"
    #: All phases are done and tasks are left.
    TASKS_LEFT = "tasks_left"


class OpenDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: DecisionKind
    #: The reason; it does not name the phase.
    what: str
    since: datetime | None = None
    phase: str | None = None
    #: The phase as people read it.
    where: str = ""
    task: str | None = None
    gate: str | None = None
    question: str | None = None
    command: str
    #: Further commands that decide it in another way.
    others: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    #: The people for whom the command is, if it is not for the viewer.
    waits_for: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        return self.command, *self.others

    @property
    def headline(self) -> str:
        """The phase and the reason."""
        return f"{self.where}: {self.what}" if self.where else self.what

    @property
    def is_yours(self) -> bool:
        return not self.waits_for


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The viewer, and what the session itself does not tell."""

    #: The account whose votes count; None for a viewer that cannot decide, such as an agent.
    identity: str | None = ""
    #: Whether this is the active session; commands name any other.
    active: bool = True
    #: A run works on the session: it runs checks and begins attempts itself.
    running: bool = False
    #: Whether tests without a command can be run or seen without a person.
    sees_tests: bool = True
    #: Whether the settings name a test command, which runs for a test gate without one.
    knows_tests: bool = False
    #: Blocked task to the step of it that waits for a person, with the reason.
    steps: Mapping[str, str] = {}


#: One of whom nothing is known.
ANYONE = View()


def open_decisions(session: Session, judged: Judged | None = None, view: View = ANYONE) -> tuple[OpenDecision, ...]:
    """Everything that waits for a person, the most urgent first: agents that wait for an answer.

    `judged` are the verdicts of the phases in progress; without them, the verdicts that the journal supports.
    """
    if session.has_ended:
        return ()
    verdicts = recorded_verdicts(session) if judged is None else judged
    listed = _Listed(session, view)
    entries = (
        *map(listed.question, session.questions),
        *listed.escalations(),
        *listed.reviews(),
        *(entry for key, entries in verdicts.items() for entry in listed.gates(key, entries)),
        *listed.failed(),
        *listed.tasks(),
    )
    return tuple(_placed(session, entry) for entry in entries)


def escalations_open(session: Session, view: View = ANYONE) -> tuple[OpenDecision, ...]:
    """One for each phase with escalations, the first escalation first."""
    return tuple(_placed(session, entry) for entry in _Listed(session, view).escalations())


def reviews_open(session: Session) -> tuple[OpenDecision, ...]:
    return tuple(_placed(session, entry) for entry in _Listed(session, ANYONE).reviews())


def _placed(session: Session, entry: OpenDecision) -> OpenDecision:
    return entry if entry.phase is None else msgspec.structs.replace(entry, where=phase_name(session, entry.phase))


def recorded_verdicts(
    session: Session, exists: Callable[[str], bool] = lambda _: True
) -> dict[str, tuple[Judgement, ...]]:
    """The verdicts of the phases in progress, as far as the journal tells. `exists` tells of a required path."""
    if not session.gates_apply:
        return {}
    verdicts = {}
    for key in session.in_progress:
        gates = session.workflow.by_key[key].gates
        there = frozenset(path for gate in gates for path in required_paths(gate, session.folder) if exists(path))
        verdicts[key] = tuple(judge_recorded(session, key, gate, exists=there) for gate in gates)
    return verdicts


#: Phases that do the tasks if the workflow declares none; the first that it has.
_TASK_PHASES = ("IMPLEMENT", "06-implementation", "development")


def task_phase(session: Session) -> str | None:
    """The phase that does the session's tasks; None without tasks."""
    if not len(session.tasks):
        return None
    declared = (phase.key for phase in session.workflow.phases if phase.tasks)
    return next((key for key in (*declared, *_TASK_PHASES) if key in session.phases), None)


def is_run(session: Session) -> bool:
    """Whether a run has begun the phases in progress: the next run goes on with them."""
    return any(agent.startswith("run-") for agents in _live_agents(session) for agent in agents)


def is_on_workers(session: Session) -> bool:
    """Whether workers did the last work on a phase in progress: its files are not in this checkout."""
    return any(is_of_worker(agents[-1]) for agents in _live_agents(session) if agents)


def _live_agents(session: Session) -> Iterator[list[str]]:
    """The ids of the agents of each phase in progress or failed, the last one last."""
    for key in session.with_status(Status.IN_PROGRESS, Status.FAILED):
        yield [delegation.agent_id for delegation in session.phases[key].delegations]


class _Listed:
    """Makes the entries of one session."""

    def __init__(self, session: Session, view: View) -> None:
        self._session, self._view = session, view
        self._named = "" if view.active else f" --session {session.id}"
        #: A run repeats checks and attempts, now or when it goes on.
        self._is_run = view.running or is_run(session)
        self._is_alone = len(session.in_progress) == 1

    def question(self, question: Question) -> OpenDecision:
        return OpenDecision(
            kind=DecisionKind.QUESTION,
            what=f"{question.id} asks: {question.text}",
            since=question.at,
            phase=question.phase,
            question=question.id,
            command=self._typed(f"reply {question.id} {answer_word(question.choices)}"),
            choices=question.choices,
        )

    def escalations(self) -> Iterator[OpenDecision]:
        by_phase: dict[str, list[Escalation]] = {}
        for escalation in self._session.escalations:
            by_phase.setdefault(escalation.phase, []).append(escalation)
        for phase, entries in by_phase.items():
            is_budget = all(entry.kind == BUDGET_EXCEEDED for entry in entries)
            yield OpenDecision(
                kind=DecisionKind.BUDGET if is_budget else DecisionKind.ESCALATION,
                what="; ".join(dict.fromkeys(entry.detail for entry in entries)),
                since=min(entry.at for entry in entries),
                phase=phase,
                gate=next((entry.gate for entry in entries if entry.gate), None),
                command=self._typed(resolve_commands(phase)[0]),
                others=tuple(map(self._typed, resolve_commands(phase)[1:])),
                choices=RESOLUTIONS,
            )

    def reviews(self) -> Iterator[OpenDecision]:
        supervised = self._session.options.supervised
        for key in self._session.awaiting_review:
            state = self._session.phases[key]
            begun = self._session.workflow.descendants(key)
            can_redo = (
                supervised is not None
                and state.review_redos < supervised.max_redos
                and all(self._session.phases[after].status is Status.PENDING for after in begun)
            )
            choices = ("continue", *(["redo"] if can_redo else []), "review")
            yield OpenDecision(
                kind=DecisionKind.REVIEW,
                what=f"finished, waits for a person's review: {state.summary}",
                since=state.completed,
                phase=key,
                command=self._typed(f"review continue {key}"),
                others=tuple(self._typed(f"review {choice} {key}") for choice in choices[1:]),
                choices=choices,
            )

    # Gates

    def gates(self, phase: str, judged: Sequence[Judgement]) -> Iterator[OpenDecision]:
        gates = self._session.workflow.by_key[phase].gates
        held = is_held(gates, judged, sees_tests=self._view.sees_tests)
        escalated = {entry.gate for entry in self._session.escalations if entry.phase == phase}
        for judgement in closed_gates(judged):
            if judgement.gate in escalated:
                continue
            gate = next(gate for gate in gates if gate_name(gate) == judgement.gate)
            if is_personal(gates, judgement, sees_tests=self._view.sees_tests):
                if held or judgement.verdict is Verdict.FAIL:
                    yield from self._personal(phase, gate, judgement)
            elif not self._is_run:
                yield from self._closed(phase, gate, judgement)

    def _personal(self, phase: str, gate: Gate, judgement: Judgement) -> Iterator[OpenDecision]:
        name, chosen = shlex.quote(judgement.gate), self._in(phase)
        what = f"gate {judgement.gate} is {judgement.verdict}: {judgement.reason}"
        approve = f"approve {phase} --gate {name} -m WHY"
        kind, command, waits_for = DecisionKind.VOTE, approve, self._voters_left(phase, gate, judgement)
        others: tuple[str, ...] = (f"{approve} --reject",)
        if judgement.verdict is Verdict.FAIL and gate.opened_by is Opener.VOTE:
            if self._is_run:
                # The run begins a new attempt with the reason.
                return
            kind, command = DecisionKind.CLOSED, f"redo {phase}"
            others, waits_for = () if waits_for else (approve,), ()
        elif gate.opened_by is Opener.ANSWER:
            kind, others = DecisionKind.ANSWER, (approve,)
            command = f"gate answer {name} --choice {shlex.quote(gate.choices[0])}{chosen}"
        elif gate.is_reported:
            kind = DecisionKind.REPORT
            command = f"gate report {name} --compliant{chosen}"
            others = (f"gate report {name} --not-compliant -m WHY{chosen}",)
        elif gate.is_reviewed:
            kind, others, what = DecisionKind.CLOSED, (), gate.person_task(phase) or what
        elif gate.opened_by is Opener.RUN:
            kind, others = DecisionKind.COMMAND, (approve,)
            what = gate.person_task(phase) or what
            command = f"gate set {name} --command COMMAND -m WHY{chosen}"
        yield self._gate_entry(kind, phase, judgement, what, command, others, gate.choices, waits_for)

    def _closed(self, phase: str, gate: Gate, judgement: Judgement) -> Iterator[OpenDecision]:
        """A closed gate that no person has to open, where no run opens it either."""
        name, chosen = shlex.quote(judgement.gate), self._in(phase)
        what = f"gate {judgement.gate} is {judgement.verdict}: {judgement.reason}"
        approve = f"approve {phase} --gate {name} -m WHY"
        run = run_command(gate, phase if chosen else None, knows_tests=self._view.knows_tests)
        if gate.opened_by is Opener.DELEGATION and judgement.verdict is Verdict.FAIL:
            yield self._gate_entry(DecisionKind.CLOSED, phase, judgement, what, f"redo {phase}", (approve,))
        if gate.opened_by is not Opener.RUN or judgement.verdict is Verdict.PENDING:
            return
        if gate.is_reviewed:
            yield self._gate_entry(DecisionKind.CLOSED, phase, judgement, what, approve, ())
        elif judgement.verdict is Verdict.STALE:
            yield self._gate_entry(DecisionKind.STALE, phase, judgement, what, run, ())
        elif (accept := self._acceptance(phase, gate)) is not None:
            yield self._gate_entry(DecisionKind.ACCEPT, phase, judgement, what, run, (f"{accept}{chosen}",))
        else:
            yield self._gate_entry(DecisionKind.CLOSED, phase, judgement, what, run, (approve,))

    def _acceptance(self, phase: str, gate: Gate) -> str | None:
        """The command with which a person accepts lost tests or another program; None if there is nothing to accept."""
        name, receipt = shlex.quote(gate_name(gate)), self._state(phase, gate_name(gate)).receipt
        if receipt is None:
            return None
        failing = receipt.protected.failing if receipt.protected is not None else ()
        if 0 < len(failing) <= MAX_NAMED:
            return f"gate accept {name} {shlex.join(failing)} -m WHY"
        if receipt.result is not Result.PASSED:
            return None
        if receipt.program is not None and other_program(self._session.programs, receipt.program) is not None:
            return f"gate accept {name} {shlex.quote(accepted_name(receipt.program))} -m WHY"
        if receipt.lost or (receipt.findings and gate.accepts_findings):
            return f"gate accept {name} --all -m WHY"
        return f"gate baseline {name} -m WHY" if receipt.lost_count else None

    def _gate_entry(
        self,
        kind: DecisionKind,
        phase: str,
        judgement: Judgement,
        what: str,
        command: str,
        others: Sequence[str],
        choices: tuple[str, ...] = (),
        waits_for: tuple[str, ...] = (),
    ) -> OpenDecision:
        return OpenDecision(
            kind=kind,
            what=what,
            since=self._since(phase),
            phase=phase,
            gate=judgement.gate,
            command=self._typed(command, self._needed(phase, judgement.gate)),
            others=tuple(self._typed(other, self._needed(phase, judgement.gate)) for other in others),
            choices=choices,
            waits_for=waits_for,
        )

    def _needed(self, phase: str, name: str) -> Assurance:
        """The weakest assurance of a vote at the gate."""
        gate = self._session.workflow.by_key[phase].gate(name)
        return (gate and gate.assurance) or self._session.options.assurance

    def _voters_left(self, phase: str, gate: Gate, judgement: Judgement) -> tuple[str, ...]:
        """The people who can still vote, if the viewer cannot; empty if the viewer can."""
        identity = self._view.identity
        if not isinstance(gate, Voted) or not identity or judgement.verdict is Verdict.STALE:
            # Approvers of other files vote again.
            return ()
        votes, voters = self._state(phase, gate_name(gate)).votes, gate.voters
        if self._needed(phase, gate_name(gate)) is not Assurance.ATTENDED and not votes:
            # An owner of a key votes; the account does not tell which approver that is.
            return ()
        if identity not in votes and (voters is None or identity in voters):
            return ()
        left = (voters or frozenset()) - votes.keys()
        return tuple(sorted(left)) or ("another person",)

    def _state(self, phase: str, gate: str) -> GateState:
        return self._session.phases[phase].at_gate(gate)

    def _since(self, phase: str) -> datetime | None:
        """The last time that something happened at a gate of the phase, or an agent of it ended."""
        state = self._session.phases[phase]
        times = [state.begun, *(entry.ended_at for entry in state.delegations)]
        for gate in state.gates.values():
            times += [gate.checked_at, *(vote.at for vote in gate.votes.values())]
        return max((at for at in times if at is not None), default=None)

    # Attempts and tasks

    def failed(self) -> Iterator[OpenDecision]:
        if self._is_run:
            return
        asked = {entry.phase for entry in self._session.escalations}
        for key in self._session.with_status(Status.FAILED):
            if key in asked or self._session.open_needs(key):
                continue
            state = self._session.phases[key]
            error = (state.error or "no reason was given").partition("\n")[0]
            yield OpenDecision(
                kind=DecisionKind.FAILED,
                what=f"attempt {state.attempt} failed: {error}",
                since=state.completed,
                phase=key,
                command=self._typed(redo_command(self._session, key)),
                others=(self._typed(f"skip {key} --reason WHY"),),
            )

    def tasks(self) -> Iterator[OpenDecision]:
        session = self._session
        if not len(session.tasks):
            return
        if not session.tasks.is_completed and not session.unfinished:
            yield self._left_over()
            return
        for status, action in ((TaskStatus.BLOCKED, "unblock"), (TaskStatus.FAILED, "retry")):
            for task in session.tasks.with_status(status)[:MAX_TASKS]:
                yield self._task(task, action)

    def _task(self, task: str, action: str) -> OpenDecision:
        row = self._session.tasks[task]
        what = f"{task} is {row.status}: {row.reason or 'no reason was given'}"
        show = self._typed(f"task show {task}")
        if row.status is TaskStatus.BLOCKED and task in self._view.steps:
            return self._step(task)
        return self._task_entry(DecisionKind.TASK, task, what, self._typed(f"task {action} {task}"), (show,))

    def _step(self, task: str) -> OpenDecision:
        reason = self._session.tasks[task].reason or "no reason was given"
        step = self._view.steps[task]
        what = f"{task} waits: {reason}" if step in reason else f"step {step} of {task} waits: {reason}"
        if not self._view.active:
            # Steps only run in the active session.
            return self._task_entry(DecisionKind.STEP, task, what, f"detent resume {self._session.id}")
        ways = ("--retry", "--skip", "--set VALUE", "--abort")
        command, *others = (self._typed(f"flow resume {task} {way}") for way in ways)
        return self._task_entry(DecisionKind.STEP, task, what, command, tuple(others))

    def _task_entry(
        self, kind: DecisionKind, task: str, what: str, command: str, others: tuple[str, ...] = ()
    ) -> OpenDecision:
        return OpenDecision(
            kind=kind,
            what=what,
            since=self._at(self._session.tasks[task].changed),
            phase=task_phase(self._session),
            task=task,
            command=command,
            others=others,
        )

    def _left_over(self) -> OpenDecision:
        phase = task_phase(self._session)
        force = self._typed("complete --force")
        if phase is None:
            name = self._session.workflow.name
            what = f"tasks are left, and no phase of {name} does tasks: set tasks = true for one in detent.toml"
            return OpenDecision(kind=DecisionKind.TASKS_LEFT, what=what, command=force)
        return OpenDecision(
            kind=DecisionKind.TASKS_LEFT,
            what=f"tasks are left, and the phase is {self._session.phases[phase].status}",
            phase=phase,
            command=self._typed(redo_command(self._session, phase)),
            others=(force,),
        )

    def _at(self, version: int) -> datetime | None:
        """The time of a commit, if the session has a note of it: it has one for each of its last commits."""
        before = self._session.version - version
        notes = self._session.notes
        return notes[-1 - before].timestamp if 0 <= before < len(notes) else None

    # Commands

    def _typed(self, command: str, assurance: Assurance | None = None) -> str:
        """The whole command. `assurance` is that of the gate which it is about."""
        verb, dashes, rest = command.partition(" -- ")
        needed = assurance if assurance is not None and verb.startswith("approve ") else self._session.options.assurance
        signed = " --sign" if needed is not Assurance.ATTENDED and verb.startswith(_SIGNED) else ""
        return f"detent {verb}{self._named}{signed}{dashes}{rest}"

    def _in(self, phase: str) -> str:
        """The option that names the phase, where several are in progress."""
        return "" if self._is_alone else f" --phase {phase}"


def redo_command(session: Session, phase: str) -> str:
    """`redo` of the phase, with the option that it needs if other phases built on it."""
    begun = (session.phases[key].status for key in session.workflow.descendants(phase))
    built = any(status in (Status.IN_PROGRESS, Status.COMPLETED, Status.FAILED) for status in begun)
    return f"redo {phase}{' --cascade' if built else ''}"


def run_command(gate: Gate, phase: str | None = None, *, knows_tests: bool) -> str:
    """`gate run` of a gate that a check decides; `phase` where several are in progress."""
    command = f"gate run {shlex.quote(gate_name(gate))}" + (f" --phase {phase}" if phase else "")
    is_given = gate.runs_tests and not gate.takes_names and gate.runnable() is None and not knows_tests
    return f"{command}{GIVEN_COMMAND}" if is_given else command


def answer_word(choices: Sequence[str]) -> str:
    """The last word of a reply: a number for choices, if none of them is a number itself."""
    if not choices:
        return "ANSWER"
    return shlex.quote(choices[0]) if any(choice.isdecimal() for choice in choices) else "1"
