"""The handle of one session: a method for each command."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent.core.actor import Actor, Assurance, Proof
from detent.core.checkpoint.checkpoint import Tree, checkpoint_id
from detent.core.decision.statement import Statement
from detent.core.decision.subject import subject
from detent.core.gate.evidence import Facts, Verdict
from detent.core.limits import MAX_SUMMARY
from detent.core.run.choices import RunChoices
from detent.core.session.budget import budget_warnings
from detent.core.session.commands import (
    Answer,
    Approve,
    Ask,
    Begin,
    Cancel,
    CheckGate,
    Command,
    Complete,
    Escalate,
    Fail,
    Finish,
    MoveTask,
    Override,
    RecordAgentEnded,
    RecordAgentStarted,
    RecordBaseline,
    Redo,
    Reopen,
    Reply,
    Resolve,
    Review,
    SetRunOptions,
    Skip,
    TakeCheckpoint,
)
from detent.core.session.decide import decide
from detent.core.session.decide_phase import live_phase
from detent.core.session.events import (
    CheckpointTaken,
    Commit,
    Event,
    GateChecked,
    PhaseBegun,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    QuestionAsked,
    QuestionReplied,
)
from detent.core.session.handover import Handover, expected_paths, handover
from detent.core.session.obstacle import Obstacle, obstacles
from detent.core.session.phase_state import Report, Tokens, ToolUse
from detent.core.session.session import Session
from detent.core.session.token import Token, parse_token
from detent.core.task.lifecycle import Action
from detent.engine.actor import account
from detent.engine.attempt import Attempt, attempting
from detent.engine.checkpoints.session_checkpoints import SessionCheckpoints
from detent.engine.decisions import view_now
from detent.engine.gates.session_gates import SessionGates
from detent.engine.outside import notice_settings
from detent.engine.policy import (
    Decision,
    Witness,
    authorize_limits,
    authorize_or_sign,
    check_strength,
    decision_of,
)
from detent.engine.policy import decided as decided_in
from detent.engine.redact_command import redact_command
from detent.engine.results import Begun, Outcome
from detent.engine.signing import Preview, Shown, check_files_are_here, is_signed, proven, statement_about, witness_of
from detent.errors import Refused
from detent.store.port import all_commits

if TYPE_CHECKING:
    from detent.engine.journal import Committed
    from detent.engine.project import Project
    from detent.engine.proofs import Signer
    from detent.engine.tasks.tasks import Tasks
    from detent.objects.universe import Moment


class SessionHandle:
    def __init__(
        self, project: "Project", session: str, actor: Actor | None = None, signer: "Signer | None" = None
    ) -> None:
        """`actor` is the author of what is done through this handle; by default the project's own actor.

        `signer` signs the decisions that are made through it.
        """
        self.id = session
        self._project = project
        self._actor = actor or project.actor
        self._signer = signer or project.signer
        self._journal = project.journal(session)
        #: Whether the files of the project are those of the session.
        self._has_files = True

    @cached_property
    def gates(self) -> SessionGates:
        return SessionGates(self._project, self)

    @cached_property
    def checkpoints(self) -> SessionCheckpoints:
        return SessionCheckpoints(self._project, self)

    @property
    def state(self) -> Session:
        return self._journal.session()

    @property
    def _sandboxed(self) -> bool:
        return self._project.sandbox is not None

    def begin(
        self,
        phase: str | None = None,
        *,
        agent: str | None = None,
        launch: str | None = None,
        is_next: bool = False,
    ) -> Begun:
        """Activate a phase, in one commit and before anything is delegated; the first ready one if none is named.

        `launch` is the id of an agent that is launched with the phase. `is_next` says that the caller has just
        finished a phase and that none of its agents has worked since: the PRE checkpoint then reuses the files of the
        POST checkpoint, if nothing was committed in between.
        """
        moment = None
        if is_next and self._project.takes_checkpoints:
            moment = self._project.checkpoints.recall(self.id, self._journal.known().version)
        command = Begin(phase=phase, agent=agent, launch=launch, sandboxed=self._sandboxed)
        return self._begun(command, moment)

    def redo(
        self,
        phase: str,
        *,
        agent: str | None = None,
        reason: str = "",
        cascade: bool = False,
        launch: str | None = None,
        failed: int | None = None,
    ) -> Begun:
        """Begin a further attempt of a phase. With `cascade`, phases that built on it become pending again.

        `failed` names the attempt that failed: if another process has begun a further one since, this is refused.
        """
        return self._begun(
            Redo(
                phase=phase,
                failed=failed,
                agent=agent,
                reason=reason,
                cascade=cascade,
                launch=launch,
                sandboxed=self._sandboxed,
            )
        )

    def finish(
        self,
        summary: str,
        *,
        token: Token | str | None = None,
        phase: str | None = None,
        artifacts: Iterable[str] = (),
        deliverables: Iterable[str] = (),
        context: str = "",
        tokens: Tokens = Tokens(),
        tools: Iterable[ToolUse] = (),
        merged_commit: str | None = None,
    ) -> Outcome:
        """Complete an attempt. The next phase is not touched; after the last one the session is complete.

        Without a token the attempt in progress is finished, of `phase` if there are several.
        """
        paths = tuple(map(self.relative_path, artifacts))
        warnings = [f"artifact {path} is not there" for path in paths if not self._exists(path)]
        if len(summary.strip()) > MAX_SUMMARY:
            warnings.append(f"the summary was cut from {len(summary.strip())} to {MAX_SUMMARY} characters")
        command = Finish(
            token=_token(token),
            phase=phase,
            summary=summary,
            artifacts=paths,
            deliverables=tuple(deliverables),
            context=context,
            tokens=tokens,
            tools=tuple(tools),
            merged_commit=merged_commit,
        )
        return self.execute(command, warnings, looked=self._run_due_checks(command))

    def fail(
        self,
        error: str,
        *,
        token: Token | str | None = None,
        phase: str | None = None,
        artifacts: Iterable[str] = (),
        tokens: Tokens = Tokens(),
        tools: Iterable[ToolUse] = (),
    ) -> Outcome:
        """End an attempt that did not succeed; `redo` begins the next one."""
        paths = tuple(map(self.relative_path, artifacts))
        command = Fail(
            token=_token(token),
            phase=phase,
            error=error,
            artifacts=paths,
            tokens=tokens,
            tools=tuple(tools),
        )
        return self.execute(command)

    def skip(self, *phases: str, reason: str, size: str | None = None) -> Outcome:
        """Skip the named phases, or those that a size of the workflow leaves out."""
        return self.execute(Skip(phases=phases, size=size, reason=reason))

    def complete(self, *, force: bool = False, merged_commit: str | None = None) -> Outcome:
        return self.execute(Complete(force=force, merged_commit=merged_commit))

    def cancel(self, reason: str) -> Outcome:
        return self.execute(Cancel(reason=reason))

    def attempt(self, phase: str | None = None, *, agent: str | None = None) -> AbstractContextManager[Attempt]:
        """A phase as a `with` block: begun first, and failed if the block raises or ends without `finish`."""
        return attempting(self, lambda: self.begin(phase, agent=agent))

    def why(self) -> tuple[Obstacle, ...]:
        """The obstacles between this session and its next step."""
        view = view_now(self._project, self.state)
        return obstacles(self.state, self.gates.judgements(), now=self._project.clock(), view=view)

    def handover(self, phase: str) -> Handover:
        """The handover of a phase."""
        return self._handover(self.state, phase)

    # Decisions, questions and agents

    def answer(self, *, choice: str | None = None, gate: str | None = None, phase: str | None = None) -> Outcome:
        """Record a person's answer at an elicitation gate."""
        return self.execute(Answer(phase=live_phase(self.state, phase), gate=gate, choice=choice))

    def approve(
        self,
        reason: str,
        *,
        gate: str | None = None,
        phase: str | None = None,
        stands_for: str = "",
        approve: bool = True,
        proof: Proof | None = None,
    ) -> Outcome:
        """Vote at a gate that asks for votes, or open another one by hand.

        The vote is that of the approver whose key signed it (`proof`, see `statement`), else that of the account that
        this process belongs to. With `stands_for` it is cast in the place of an approver or role, and shown as such; it
        is still one vote of the approver or account.
        """
        if proof is not None:
            return self.with_proof(proof).approve(
                reason, gate=gate, phase=phase, stands_for=stands_for, approve=approve
            )
        key, who = live_phase(self.state, phase), self._voter()
        vote = Approve(phase=key, gate=gate, identity=who, stands_for=stands_for, reason=reason, approve=approve)
        return self.execute(vote)

    def _voter(self) -> str:
        """The identity that votes."""
        from detent.engine.proofs import verify_proof  # noqa: PLC0415 - few decisions are signed

        if self._signer is not None:
            return self._signer.identity(self._project.approvers.read())
        proof = self._actor.proof
        if proof is None or not proof.signature:
            return account()
        return verify_proof(proof, self._project.approvers.read()).name

    # Signatures

    def with_proof(self, proof: Proof) -> "SessionHandle":
        """The session for one decision that was signed elsewhere: `with_proof(proof).resolve("retry")`."""
        return SessionHandle(self._project, self.id, msgspec.structs.replace(self._actor, proof=proof))

    def statement(self, decide: "Callable[[SessionHandle], object]", *, approver: str) -> Statement:
        """A statement to sign for a decision: `statement(lambda session: session.approve("looks good"), …)`.

        Nothing is committed. The statement is about the journal and the files of this moment.
        """
        preview = Preview(approver)
        with suppress(Shown):
            decide(SessionHandle(self._project, self.id, self._actor, preview))
        if preview.statement is None:
            raise Refused("nothing was decided, so there is nothing to sign")
        return preview.statement

    @property
    def _is_signed(self) -> bool:
        """Whether what is decided through this handle is signed."""
        return self._signer is not None or is_signed(self._actor)

    def check_may_decide(self, decision: Decision) -> None:
        """Refuse a decision before work is done for it. The commit checks it again."""
        authorize_or_sign(self._actor, decision, is_signed=self._is_signed)

    def _proven(self, command: Command, facts: Facts) -> "tuple[Actor, Witness | None]":
        """The actor after the person has signed or confirmed the decision: before the session's lock is taken."""
        if self._signer is None and is_signed(self._actor):
            return self._actor, witness_of(self._project, self._actor, self.id)
        with self._journal.reading() as session:
            position, decisions = self._journal.end, decided_in(session, decide(session, command, facts))
        if not decisions:
            return self._actor, None
        if self._signer is None:
            check_strength(session, decisions, Assurance.ATTENDED)
        about = subject([event for _, event in decisions])
        there = self._project.working_on(self.id, about.phase or None)
        is_about_files = about.about_files
        if is_about_files and self._signer is None and about.phase:
            # Without a signature the decision is about the work, and that is in the files of another machine.
            is_about_files = self._project.checkpoints.newest_elsewhere(session, about.phase) is None
        files = there.files() if is_about_files else None
        if files is not None and self._signer is not None:
            check_files_are_here(self._project, session, about.phase)
        statement = statement_about(
            self._project, session, decisions[0][0], about, position=position, now=facts.now, files=files
        )
        return proven(there, self._actor, statement, self._signer, files)

    def record_agent_started(self, phase: str, agent: str, agent_id: str) -> Outcome:
        sandboxed = self._sandboxed
        return self.execute(RecordAgentStarted(phase=phase, agent=agent, agent_id=agent_id, sandboxed=sandboxed))

    def record_agent_ended(
        self, agent_id: str, *, succeeded: bool, report: Report | None = None, phase: str | None = None
    ) -> Outcome:
        """Record the end of an agent, with its report."""
        return self.execute(RecordAgentEnded(agent_id=agent_id, succeeded=succeeded, report=report, phase=phase))

    def ask(self, text: str, *, phase: str | None = None, choices: Iterable[str] = ()) -> str:
        """Ask a person something and return the id of the question."""
        offered = tuple(choices)

        def numbered(session: Session) -> Ask:
            key = live_phase(session, phase)
            return Ask(id=f"Q{session.version + 1}", phase=key, text=text, choices=offered)

        # Under the lock, so that two questions at once get different numbers.
        outcome = self.execute_chosen(numbered)
        return next(event.id for event in outcome.events if isinstance(event, QuestionAsked))

    def reply(self, answer: str, *, question: str | None = None) -> Outcome:
        """Answer an agent's question."""
        return self.execute(Reply(id=question, answer=answer))

    def answer_to(self, question: str) -> str | None:
        """The reply of a person; None before there is one, and an empty text if the question was dropped."""
        if any(entry.id == question for entry in self.state.questions):
            return None
        replies = (event for commit in self.log() for event in commit.events if isinstance(event, QuestionReplied))
        return next((event.answer for event in replies if event.id == question), "")

    def escalate(self, kind: str, phase: str, detail: str) -> Outcome:
        """Raise an escalation, which holds the session until a person decides."""
        return self.execute(Escalate(kind=kind, phase=phase, detail=detail))

    def set_run_options(self, given: RunChoices) -> Outcome:
        """Keep the options that its run was given; those that were not given stay."""
        known = msgspec.structs.replace(self._project.declared.run, **self.state.options.run.overrides())
        authorize_limits(self._actor, known, given)
        return self.execute(SetRunOptions(given=given))

    def resolve(self, action: str, reason: str = "", *, phase: str | None = None) -> Outcome:
        """Resolve the open escalations, or those of a phase: retry, skip or cancel."""
        return self.execute(Resolve(action=action, reason=reason, phase=phase))

    def release(self, reason: str, *, phase: str | None = None) -> Outcome:
        """Open every closed gate of the phase by hand, and resolve the open escalations."""
        if self.state.escalations:
            self.resolve("retry", reason)
        live = self.state.in_progress if phase is None else (phase,)
        outcome: Outcome | None = None
        for key in live:
            for judged in self.gates.judgements(key)[key]:
                if judged.verdict is not Verdict.PASS:
                    outcome = self.execute(Override(phase=key, gate=judged.gate, reason=reason))
        if outcome is None:
            raise Refused("no gate of a phase in progress is closed", way_out="detent why")
        return outcome

    def review(self, decision: str, *, phase: str | None = None, note: str = "") -> Outcome:
        """Record a person's decision about a finished phase: continue, review or redo."""
        return self.execute(Review(phase=phase, decision=decision, note=note))

    def notice_settings(self) -> None:
        """Record it if detent.toml was changed since the session last saw it."""
        notice_settings(self._project, self.id)

    def back_up(self) -> None:
        """Bring the second copy of the journal up to date: before a program that may change the journal is started."""
        self._project.store.back_up(self.id)

    def now(self) -> datetime:
        return self._project.clock()

    def log(self) -> Iterator[Commit]:
        """Every commit, oldest first."""
        return all_commits(self._project.store, self.id)

    # Commits

    @cached_property
    def tasks(self) -> "Tasks":
        from detent.engine.tasks.tasks import Tasks  # noqa: PLC0415 - many sessions have none

        return Tasks(self._project, self)

    def execute_chosen(self, choose: Callable[[Session], Command]) -> Outcome:

        def chosen(session: Session) -> Command:
            return redact_command(choose(session))

        commit, session = self._commit(chosen(self.state), chosen)
        return Outcome(session=session, events=commit.events)

    def reading(self) -> AbstractContextManager[Session]:
        """The session while no other thread changes it, for reading its tasks."""
        return self._journal.reading()

    def _handover(self, session: Session, phase: str) -> Handover:
        there = frozenset(path for path in expected_paths(session, phase) if self._exists(path))
        return handover(session, phase, now=self._project.clock(), exists=there)

    def _commit(
        self,
        command: Command,
        choose: Callable[[Session], Command] | None = None,
        then: Callable[[], object] | None = None,
        moment: "Moment | None" = None,
        looked: "_Looked | None" = None,
    ) -> "Committed":
        decision = decision_of(command)
        if decision is not None:
            # Before any work is done for it. The events are authorized with the commit.
            self.check_may_decide(decision)
        if choose is None:
            command = redact_command(command)
        # Facts are gathered before the lock: that may take a while. `decide` refuses if a receipt changed since.
        if looked is None and moment is None and isinstance(command, _LOOKED_AT):
            looked = self._look(command)
        if looked is not None:
            moment, epoch = looked
        else:
            epoch = self._epoch(command)
        facts, foreseen = self._facts(command, moment), None
        if epoch is not None:
            facts, foreseen = self._with_tree(command, facts, choose, moment)

        def decided(session: Session) -> tuple[Event, ...]:
            if epoch is not None:
                self._project.checkpoints.check_current(epoch)
            if foreseen is not None and session is foreseen.session and choose is None:
                # Nothing was committed since, so only the files are added.
                events = tuple(_with_files(event, facts.tree) for event in foreseen.events)
            else:
                events = decide(session, choose(session) if choose else command, facts)
            if then is not None:
                then()
            return events

        may_decide = decision is not None or isinstance(command, _MAY_DECIDE)
        actor, witness = self._proven(command, facts) if may_decide else (self._actor, None)
        committed = self._journal.commit(decided, actor=actor, now=facts.now, witness=witness)
        if moment is not None and facts.tree is not None:
            self._project.checkpoints.remember(moment, self.id, committed.commit.version)
        self._project.touched(self.id, urgent=self._journal.is_crowded)
        return committed

    def _epoch(self, command: Command) -> int | None:
        """The epoch of the files; None if the command takes no checkpoint of them."""
        is_taken = self._has_files and self._project.takes_checkpoints and isinstance(command, _CHECKPOINTED)
        return self._project.checkpoints.epoch() if is_taken else None

    def without_checkpoints(self) -> "SessionHandle":
        """The same session, for commits of a process whose files are not those of the work."""
        handle = SessionHandle(self._project, self.id, self._actor, self._signer)
        handle._has_files = False
        return handle

    @property
    def is_seen_elsewhere(self) -> bool:
        """Whether people on other machines can see the files of a checkpoint."""
        project = self._project
        return project.store.is_shared and project.takes_checkpoints and project.checkpoints.travel is not None

    def _with_tree(
        self,
        command: Command,
        facts: Facts,
        choose: Callable[[Session], Command] | None,
        moment: "Moment | None",
    ) -> "tuple[Facts, _Foreseen | None]":
        """Add the files to the facts if the events include a checkpoint. A refusal comes before any file is read."""
        with self._journal.reading() as session:
            # Choose again: another worker may have taken the task.
            command = choose(session) if choose else command
            foreseen = decide(session, command, msgspec.structs.replace(facts, tree=_NO_FILES))
        taken = next((event for event in foreseen if isinstance(event, CheckpointTaken)), None)
        if taken is None:
            return facts, None
        artifacts = command.artifacts if isinstance(command, Finish | Fail) else ()
        tree = self._project.checkpoints.tree(taken.id, session, artifacts, moment=moment)
        return msgspec.structs.replace(facts, tree=tree), _Foreseen(session, foreseen)

    def _facts(self, command: Command, moment: "Moment | None") -> Facts:
        if isinstance(command, _ENDING):
            # The end of a session may finish its last phase.
            session = self._journal.known()
            phase = None if isinstance(command, Complete) else command.token.phase if command.token else command.phase
            live = session.in_progress
            key = live[0] if phase is None and live else phase or ""
            if key in session.phases and session.gates_apply:
                facts = self._phase_facts(session, key, moment)
                return msgspec.structs.replace(facts, in_run=self._project.binding is not None)
        if isinstance(command, MoveTask):
            return self._task_facts(command, moment)
        return Facts(now=self._project.clock())

    def _phase_facts(self, session: Session, phase: str, moment: "Moment | None") -> Facts:
        """The facts for the gates of a phase, and for its end: a phase that may rewrite tests protects them anew."""
        declared = session.workflow.by_key[phase]
        facts = self.gates.checks.facts(session, phase, self._project.clock(), moment) if declared.gates else None
        facts = facts or Facts(now=self._project.clock())
        if not declared.rewrites_tests or session.protected is None:
            return facts
        return msgspec.structs.replace(facts, protected=self.gates.checks.retake(session, moment))

    def _run_due_checks(self, command: Finish) -> "_Looked | None":
        """Run the checks of the attempt that were not run on the present files, unless a runner does that.

        If there are none, the look at the files serves the commit too.
        """
        # A session has gates from its start, or never: the journal is not read to learn that.
        if not self._journal.known().gates_apply:
            return None
        session = self.state
        live = session.in_progress
        named = command.token.phase if command.token else command.phase
        phase = named if named is not None else live[0] if len(live) == 1 else ""
        is_current = phase in live and command.token in (None, session.token(phase))
        gates = session.workflow.by_key[phase].gates if is_current else ()
        if self._project.binding is not None or not any(gate.runnable() for gate in gates):
            return None
        looked = self._look(command)
        return None if self.gates.run_due(phase, looked.moment) else looked

    def _look(self, command: Command) -> "_Looked":
        """A look at the files for the gates and the checkpoint of a command, which are about the same files."""
        epoch = self._epoch(command)
        owner = checkpoint_id(self.id, self._project.clock(), "commit") if epoch is not None else None
        return _Looked(self._project.checkpoints.moment(owner), epoch)

    def _task_facts(self, command: MoveTask, moment: "Moment | None") -> Facts:
        """The abandoned tasks, and the facts for the gates of the phase that tasks move."""
        session = self._journal.known()
        live = session.in_progress
        is_gated = bool(live) and session.gates_apply
        facts = self._phase_facts(session, live[0], moment) if is_gated else Facts(now=self._project.clock())
        if command.action is not Action.START:
            return facts
        return msgspec.structs.replace(facts, abandoned=self.tasks.abandoned())

    def execute(
        self,
        command: Command,
        warnings: Iterable[str] = (),
        *,
        then: Callable[[], object] | None = None,
        looked: "_Looked | None" = None,
    ) -> Outcome:
        commit, session = self._commit(command, then=then, looked=looked)
        near: tuple[str, ...] = ()
        if session.options.budget is not None and isinstance(command, Finish | Fail | CheckGate):
            near = _near_limits(session, commit)
        return Outcome(session=session, events=commit.events, warnings=(*warnings, *near))

    def _begun(self, command: Command, moment: "Moment | None" = None) -> Begun:
        commit, session = self._commit(command, moment=moment)
        begun = next(event for event in commit.events if isinstance(event, _BEGUN))
        return Begun(
            session=session,
            events=commit.events,
            token=Token(begun.phase, begun.attempt, commit.version),
            look=lambda: self._handover(session, begun.phase),
        )

    def _exists(self, path: str) -> bool:
        return os.path.exists(os.path.join(self._project.place.base, path))

    def relative_path(self, path: str) -> str:
        """`path` relative to the project's directory."""
        base = self._project.place.base
        if os.path.isabs(path):
            return os.path.relpath(path, base)
        return os.path.normpath(path) if path.strip() else path


#: Commands that gates are judged for.
_LOOKED_AT = (Finish, MoveTask)
_ENDING = (Finish, Complete)
#: Commands without a decision of their own whose events may be a person's decision.
_MAY_DECIDE = (CheckGate, RecordBaseline)
_CHECKPOINTED = (Begin, Redo, Finish, Fail, Review, Reopen, MoveTask, TakeCheckpoint)


_BEGUN = (PhaseBegun, PhaseRedone)
_WORKED = (PhaseFinished, PhaseFailed, GateChecked)


class _Looked(NamedTuple):
    """A look at the files, and the epoch before it."""

    moment: "Moment"
    epoch: int | None


class _Foreseen(NamedTuple):
    """The events of a command before the files are captured."""

    session: Session
    events: tuple[Event, ...]


def _with_files(event: Event, tree: Tree | None) -> Event:
    is_open = isinstance(event, CheckpointTaken) and event.tree is _NO_FILES
    return msgspec.structs.replace(event, tree=tree) if is_open else event


#: Placeholder for files that are not captured yet.
_NO_FILES = Tree(manifest="", files=0, bytes=0)


def _near_limits(session: Session, commit: Commit) -> tuple[str, ...]:
    """Budget warnings after work was done."""
    about = next((event for event in commit.events if isinstance(event, _WORKED)), None)
    return budget_warnings(session, about.phase, commit.at) if about is not None else ()


def _token(token: Token | str | None) -> Token | None:
    return parse_token(token) if isinstance(token, str) else token
