"""Verifies the record of a session: what `detent verify` does, on the machine that ran it or on any other.

It checks the chain, replays every commit, asks the rules again under which each event was made, judges every gate again
at every finish, and verifies every decision of a person. A record says what the machine that made it wrote down. What
rests on that word alone is said in a note.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from detent.config.place import read_settings
from detent.config.settings import Settings
from detent.core.actor import Assurance
from detent.core.decision.approvers import Approvers
from detent.core.gate import gate_name
from detent.core.gate.voted import Voted
from detent.core.session.events import (
    CheckpointTaken,
    Commit,
    Event,
    GateChecked,
    PhaseFinished,
    PhasesImported,
    SessionStarted,
    TailSetAside,
)
from detent.core.session.evolve import apply, evolve, fingerprint
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.doctor.checkout import other_files
from detent.doctor.deciders import Deciders
from detent.doctor.pinned import loosened
from detent.doctor.record import BundleRecord, Record, StoreRecord
from detent.doctor.rejudging import Rejudge
from detent.doctor.rules import Past, broken_rules
from detent.doctor.verified import Check, Verification, listed_commits, note, unchecked, wrong
from detent.engine.bundles import bundle_file
from detent.errors import Corrupt, DetentError

if TYPE_CHECKING:
    from detent.engine.bundles.bundle_file import Progress
    from detent.engine.project import Project

#: A journal that cannot be followed: it names phases that its workflow does not have, or the like.
_CANNOT_FOLLOW = (DetentError, LookupError, ValueError, TypeError, RecursionError)


class Demands(NamedTuple):
    """The verifier's requirements, from places that the author of the record cannot change."""

    #: Whose signatures count; None if that is not known here.
    approvers: Approvers | None = None
    #: The weakest assurance that counts, whatever the session asked for.
    assurance: Assurance = Assurance.ATTENDED
    #: The settings that the session must have pinned; None for any.
    settings: Settings | None = None
    #: The directory whose files must be those of the last checkpoint; None for none.
    files: str | None = None
    #: Whether the session must be completed.
    completed: bool = False
    #: The git tree that the record must be about, without published bundles; None for any.
    tree: str | None = None


NO_DEMANDS = Demands()


def verify_session(project: "Project", session: str, demands: Demands = NO_DEMANDS) -> Verification:
    """Verify a session of a project, see `verify_record`."""
    return verify_record(StoreRecord(project, session), demands)


def verify_bundle(
    path: str | os.PathLike[str], demands: Demands = NO_DEMANDS, *, progress: "Progress | None" = None
) -> Verification:
    """Verify a bundle, see `verify_record`. No project is needed. A damaged bundle is a finding."""
    with bundle_file.opened(os.fspath(path)) as reader:
        try:
            reader.verify(progress)
        except Corrupt as error:
            damaged = wrong(error.message, way_out=error.way_out or "")
            header = reader.header
            return Verification(session=header.session, git=header.git, findings=(damaged,))
        return verify_record(BundleRecord(reader), demands)


def verify_record(record: Record, demands: Demands = NO_DEMANDS) -> Verification:
    """Everything that does not hold in the record, or could not be checked."""
    walk = _Walk(record, demands)
    findings = [*walk.findings(), *walk.demanded()]
    session = walk.session
    return Verification(
        session=record.session,
        status=session.status if session is not None else "unknown",
        commits=len(walk.sums),
        sum=walk.sums[-1] if walk.sums else "",
        finishes=walk.finishes,
        gates=walk.rejudge.count,
        git=record.git,
        decisions=tuple(walk.deciders.decisions),
        findings=(*findings, *walk.notes()),
    )


class _Walk:
    """One pass over the commits of a record."""

    def __init__(self, record: Record, demands: Demands) -> None:
        self._record, self._demands = record, demands
        self.rejudge = Rejudge(record)
        self.deciders = Deciders(demands.approvers, demands.assurance, demands.settings)
        self.session: Session | None = None
        self.sums: list[str] = []
        self.finishes = 0
        self._pasts: dict[str, Past] = {}
        self._runs: list[int] = []
        self._notes: list[Check] = []
        #: The manifests of the checkpoints, and the last of them.
        self._manifests: set[str] = set()
        self._last: str | None = None

    def findings(self) -> Iterator[Check]:
        try:
            for commit, total in self._record.lines():
                yield from self._commit(commit)
                self.sums.append(total)
        except _CANNOT_FOLLOW as error:
            reason = error.message if isinstance(error, DetentError) else f"it cannot be followed: {error!r}"
            yield wrong(reason, len(self.sums) + 1)
            return
        if self.session is None:
            yield wrong("the journal is empty")

    def demanded(self) -> Iterator[Check]:
        """The verifier's requirements that the record as a whole does not meet."""
        demands, session = self._demands, self.session
        if demands.completed and (session is None or session.status is not SessionStatus.COMPLETED):
            left = f"; {', '.join(session.unfinished)} are not finished" if session and session.unfinished else ""
            yield wrong(f"the session is {session.status if session else 'empty'}, not completed{left}")
        if demands.tree is not None:
            yield from self._other_tree(demands.tree)
        if demands.files is not None:
            settings = demands.settings or read_settings(demands.files)
            yield from other_files(demands.files, settings, self.rejudge.manifests, self._last)

    def _other_tree(self, tree: str) -> Iterator[Check]:
        if self._record.git is None:
            yield unchecked(
                "the record does not say which git tree it is about", way_out="detent publish, and commit it"
            )
        elif self._record.git.tree != tree:
            message = f"the record is about git tree {self._record.git.tree}, and the tree to merge is {tree}"
            yield wrong(message, way_out="detent publish after the last change, and commit the bundle")

    def _commit(self, commit: Commit) -> Iterator[Check]:
        before = self.session
        if before is None:
            yield from self._check_start(commit)
        now = before
        for event in commit.events:
            if now is not None:
                yield from (
                    wrong(problem, commit.version) for problem in broken_rules(now, event, commit.version, self._pasts)
                )
                if isinstance(event, PhaseFinished):
                    self.finishes += 1
                    yield from self.rejudge.finish(now, event, commit)
                    approved = self.deciders.approved.get(event.phase, {})
                    yield from self.rejudge.approved_other_files(now, event, commit, approved)
            now = apply(now, event, at=commit.at, version=commit.version, actor=commit.actor)
            if isinstance(event, GateChecked) and event.receipt.command:
                self._runs.append(commit.version)
            if isinstance(event, CheckpointTaken):
                self._pasts[event.id] = Past(event.phase, now)
                yield from self._check_manifest(event, commit.version)
            self._note(event, commit.version)
        after = evolve(before, commit)
        if (state := fingerprint(after)) != commit.state:
            yield wrong(f"replaying it gives state {state}, and it recorded {commit.state}", commit.version)
        started = before if before is not None else _started(commit)
        yield from self.deciders.commit(started, commit, self.sums)
        self.session = after

    def _check_start(self, commit: Commit) -> Iterator[Check]:
        first = commit.events[0] if commit.events else None
        if not isinstance(first, SessionStarted) or first.session != self._record.session:
            yield wrong(f"the journal does not begin with the start of {self._record.session}", commit.version)
            return
        yield from self._check_quorums(first)
        if self._demands.settings is not None:
            yield from loosened(first, self._demands.settings)

    def _check_quorums(self, started: SessionStarted) -> Iterator[Check]:
        """Lowering a quorum is a person's decision that leaves no proof of its own."""
        gates = [gate for phase in started.workflow.phases for gate in phase.gates if isinstance(gate, Voted)]
        lowered = dict.fromkeys(gate_name(gate) for gate in gates if gate.lowered_from is not None)
        if lowered:
            message = f"the quorum of {', '.join(lowered)} was lowered when the session started"
            needs_proof = self._demands.assurance is not Assurance.ATTENDED
            yield wrong(f"{message}, and nothing proves who decided that", 1) if needs_proof else note(message, 1)

    def _check_manifest(self, event: CheckpointTaken, version: int) -> Iterator[Check]:
        digest = self._last = event.tree.manifest
        if digest in self._manifests:
            return
        self._manifests.add(digest)
        try:
            self.rejudge.manifests.read(digest)
        except Corrupt as error:
            yield unchecked(f"the manifest of {event.name}: {error.message}", version)

    def _note(self, event: Event, version: int) -> None:
        if isinstance(event, SessionStarted) and not event.options.gates:
            self._notes.append(note("gates are off in this session, so no gate was judged", version))
        if isinstance(event, PhasesImported):
            done = ", ".join(key for key, phase in event.phases.items() if phase.status == Status.COMPLETED)
            evidence = f"the evidence of {done or 'its phases'}"
            self._notes.append(note(f"imported from {event.source}: nothing shows {evidence}", version))
        if isinstance(event, TailSetAside):
            message = f"the journal was mended here ({event.reason}): {event.bytes} bytes were set aside"
            self._notes.append(note(message, version))

    def notes(self) -> Iterator[Check]:
        """The claims that rest on the word of the machine that made the record."""
        yield from self._notes
        attended = [made.commit for made in self.deciders.decisions if made.assurance is Assurance.ATTENDED]
        if attended:
            yield note(f"attended decisions rest on the word of the machine that ran: {listed_commits(attended)}")
        if self._runs:
            runs = listed_commits(list(dict.fromkeys(self._runs)))
            yield note(f"receipts of checks rest on the word of the machine that ran them: {runs}; run them here too")


def _started(commit: Commit) -> Session:
    """The session of the first event of a journal."""
    return apply(None, commit.events[0], at=commit.at, version=commit.version, actor=commit.actor)
