"""Before a change: finishes the work of an interrupted command, and adopts edits made by hand."""

from typing import TYPE_CHECKING

from detent.config.place import INTENT
from detent.core.checkpoint.checkpoint import checkpoint_id
from detent.core.gate.evidence import Facts
from detent.core.testrun.seen import SEEN
from detent.engine.outside import edited_session_documents, edited_workflow, notice_settings
from detent.engine.projections.projector import Projector
from detent.engine.projections.publish import shown_session
from detent.errors import Corrupt
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from detent.engine.journal import SessionJournal
    from detent.engine.project import Project
    from detent.engine.projections.adopt import Adoption


class Reconciler:
    def __init__(self, project: "Project", projector: Projector) -> None:
        self._project, self._projector, self._store = project, projector, project.store

    def reconcile(self, *, every: bool, publish: bool) -> "list[Adoption]":
        """See `Project.reconcile`."""
        notices = self._project.notices
        if self._store.repairs is not None:
            notices.extend(filter(None, [self._store.repairs.catch_up()]))
        with self._store.lock(PROJECT):
            if self._store.get(INTENT) is not None:
                notices.extend(filter(None, [self._project.rollbacks.recover()]))
            active = self._projector.clear_markers()
            if active is None and self._store.is_shared:
                self._follow_ended()
            if active is None or self._project.is_damaged(active):
                return []
            try:
                self._pause_former(active)
                return self._reconcile_active(active, every=every, publish=publish)
            except Corrupt as error:
                # A snapshot can hide damage until older commits are read. Commands about other sessions go on.
                notices.append(error.message)
                return []

    def _reconcile_active(self, active: str, *, every: bool, publish: bool) -> "list[Adoption]":
        from detent.engine.projections.adopt import adopt  # noqa: PLC0415

        project, journal = self._project, self._project.journal(active)
        self._resume_marked(journal)
        if self._store.names(f"{active}/{SEEN}"):
            from detent.engine.gates.seen import record_seen  # noqa: PLC0415 - few commands follow a test run at once

            project.just_seen = record_seen(project, active)
        notice_settings(project, active)
        tasks = self._adopt_tasks(active, every=every)
        adoptions = [
            adopt(self._store, journal, name, actor=project.actor, facts=edit_facts(project, active))
            for name in edited_session_documents(project, active)
        ]
        adoptions += self._adopt_workflow(active)
        if adoptions or publish:
            # An adopted edit is written over at once: after a later commit and a kill it would look like a new one.
            project.publish_now(active, overwrite=bool(adoptions))
        else:
            project.touched(active)
        return [*tasks, *adoptions]

    def _adopt_workflow(self, active: str) -> "list[Adoption]":
        data = edited_workflow(self._project)
        if data is None:
            return []
        from detent.engine.projections.adopt import adopt_workflow  # noqa: PLC0415

        journal = self._project.journal(active)
        adopted = adopt_workflow(
            self._store, journal, data, actor=self._project.actor, facts=edit_facts(self._project, active)
        )
        return [adopted] if adopted is not None else []

    def _adopt_tasks(self, active: str, *, every: bool) -> "list[Adoption]":
        if not self._project.journal(active).has_tasks() and not self._store.names(f"{active}/.task/IMPL"):
            return []
        from detent.engine.projections.adopt_task import TaskAdoption  # noqa: PLC0415 - many sessions have no tasks

        return TaskAdoption(self._project, active).adopt_all(every=every)

    def _resume_marked(self, journal: "SessionJournal") -> None:
        """Resume a session that has the marker but is recorded as paused: a command was interrupted."""
        from detent.core.session.commands import Resume  # noqa: PLC0415
        from detent.core.session.decide import decide  # noqa: PLC0415

        session = journal.session()
        if session.paused_at is not None and not session.has_ended:
            facts = Facts(now=self._project.clock())
            journal.commit(lambda current: decide(current, Resume(), facts), actor=self._project.actor, now=facts.now)

    def _pause_former(self, active: str) -> None:
        """Pause the session of the state document if a person moved the marker to another one."""
        name = self._former()
        if name is not None and name != active:
            self._project.release_tasks(name, active)
            self._projector.publish(name)

    def _follow_ended(self) -> None:
        """Publish the session of the state document: another machine ended it, or has paused it."""
        name = self._former()
        if name is not None:
            self._project.publish_now(name)

    def _former(self) -> str | None:
        """The session that is active in the state document; None if there is none, or its journal is damaged."""
        name = shown_session(self._store)
        is_known = name is not None and name in self._store.sessions()
        return name if is_known and not self._project.is_damaged(str(name)) else None


def edit_facts(project: "Project", active: str) -> Facts:
    """The facts for the gates of every phase: an edit may finish any of them. The caller holds PROJECT."""
    from detent.engine.gates.checks import GateChecks  # noqa: PLC0415 - only an edit needs it

    checkpoints = project.checkpoints
    session, now = project.journal(active).session(), project.clock()
    checks = GateChecks(project.store, project.place, active, checkpoints)
    owner = checkpoint_id(active, now, "edit")
    moment = checkpoints.moment(owner)
    rewrites = session.protected is not None and any(phase.rewrites_tests for phase in session.workflow.phases)
    by_phase = [checks.facts(session, key, now, moment) for key in session.workflow.order]
    return Facts(
        now=now,
        exists=frozenset().union(*(facts.exists or () for facts in by_phase)),
        changed={digest: files for facts in by_phase for digest, files in facts.changed.items()},
        differs={digest: differs for facts in by_phase for digest, differs in facts.differs.items()},
        files=next((facts.files for facts in by_phase if facts.files), ""),
        protected=checks.retake(session, moment, locked=True) if rewrites else None,
        tree=checkpoints.tree(owner, session, moment=moment) if project.takes_checkpoints else None,
    )
