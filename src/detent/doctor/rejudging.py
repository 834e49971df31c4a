"""Judges the gates of a finished phase again, with the one judge, from receipts, votes and the files of its checkpoint.

When the phase was finished, the judge looked at the files themselves. The checkpoint of the same commit has them.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from detent.core.checkpoint.checkpoint import CheckpointKind, Tree
from detent.core.checkpoint.manifest import Manifest, tree_digest
from detent.core.gate import gate_name
from detent.core.gate.evidence import Facts, Result, Verdict
from detent.core.gate.judge import judgements
from detent.core.gate.kind import Gate, required_paths
from detent.core.session.events import CheckpointTaken, Commit, PhaseFinished
from detent.core.session.session import Session
from detent.doctor.deciders import Approved
from detent.doctor.record import Record
from detent.doctor.verified import Check, note, unchecked, wrong
from detent.engine.gates.inputs import FileDigests, changed_since
from detent.engine.gates.session_check import last_receipt
from detent.engine.gates.stored import is_intact
from detent.errors import Corrupt
from detent.objects.manifest_object import Manifests

_SHOWN = 3
_CAPTURE = 'capture = "tree" under [checkpoint] in detent.toml takes checkpoints that have all files'


class _Files(NamedTuple):
    """The files of a checkpoint."""

    files: Manifest
    left_out: frozenset[str]
    #: Artifacts that phases declared: a checkpoint takes them whatever the rules for all files say.
    declared: frozenset[str]

    @property
    def has_only_declared(self) -> bool:
        """Whether it may be a checkpoint that takes nothing else."""
        return self.files.keys() <= self.declared

    def exists(self, path: str) -> bool:
        inside = path.rstrip("/") + "/"
        return path in self.files or path in self.left_out or any(name.startswith(inside) for name in self.files)


class Rejudge:
    """Judges the finished phases of one record again. `count` gates were judged."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.manifests = Manifests(record.objects)
        self.count = 0

    def finish(self, session: Session, event: PhaseFinished, commit: Commit) -> Iterator[Check]:
        """The problems of a finish; `session` is the one right before the event."""
        gates = session.gates(event.phase)
        self.count += len(gates)
        tree = _taken(event, commit)
        files: _Files | None = None
        if tree is not None:
            try:
                contents = self.manifests.read(tree.manifest)
                declared = frozenset((*session.declared, *event.artifacts))
                files = _Files(contents.files, frozenset(contents.left_out), declared)
            except Corrupt as error:
                yield unchecked(f"the files that {event.phase} was finished with: {error.message}", commit.version)
        facts = msgspec.structs.replace(_as_recorded(session, event.phase, gates), now=commit.at)
        if files is None:
            problems = _without_files(session, event.phase, gates)
        else:
            facts, problems = self._facts(session, event.phase, gates, files, facts)
        yield from (msgspec.structs.replace(problem, commit=commit.version) for problem in problems)
        for judged in judgements(session, event.phase, facts):
            if judged.verdict is not Verdict.PASS:
                what = f"{event.phase} was finished, and its gate {judged.gate} was {judged.verdict}"
                yield wrong(f"{what}: {judged.reason}", commit.version)

    def _facts(
        self, session: Session, phase: str, gates: tuple[Gate, ...], files: _Files, facts: Facts
    ) -> tuple[Facts, list[Check]]:
        """The facts that the files of the checkpoint show, and what they cannot show."""
        problems: list[Check] = []
        required = {path for gate in gates for path in required_paths(gate, session.folder)}
        absent = sorted(path for path in required if not files.exists(path))
        if absent:
            shown = ", ".join(absent[:_SHOWN])
            message = f"{shown} must exist for {phase} and is in no checkpoint: it was not there, or it is ignored"
            problems.append(unchecked(message, way_out="do not ignore the artifacts of phases in .gitignore"))
        changed = dict(facts.changed)
        for gate in gates:
            receipt = last_receipt(session, phase, gate)
            if receipt is None or receipt.inputs is None or receipt.result is not Result.PASSED:
                continue
            recorded = self._recorded(receipt.inputs)
            if isinstance(recorded, Check):
                problems.append(recorded)
                continue
            differing = changed_since(recorded, files.files, gate.inputs or (), files.declared)
            if files.has_only_declared and any(path not in files.files for path in differing):
                problems += _without_files(session, phase, (gate,))
            else:
                changed[receipt.inputs] = tuple(differing)
        return msgspec.structs.replace(facts, changed=changed, differs=self._differs(session, phase, files)), problems

    def _differs(self, session: Session, phase: str, files: _Files) -> dict[str, bool]:
        begun = session.phases[phase].tree
        if begun is None:
            return {}
        try:
            return {begun: self.manifests.read(begun).files != files.files}
        except Corrupt:
            return {}

    def _recorded(self, digest: str) -> FileDigests | Check:
        data = self._record.evidence(digest)
        if data is None:
            return unchecked(f"the digests of the input files of a check are missing (evidence {digest})")
        if not is_intact(digest, data):
            return wrong(f"the digests of the input files of a check are not those that were recorded ({digest})")
        try:
            return msgspec.json.decode(data, type=FileDigests)
        except msgspec.DecodeError as error:
            return wrong(f"the digests of the input files of a check cannot be read: {error} ({digest})")

    def approved_other_files(
        self, session: Session, event: PhaseFinished, commit: Commit, approved: Mapping[tuple[str, str], Approved]
    ) -> Iterator[Check]:
        """Signed approvals of the attempt that are about other files than those that the phase was finished with.

        `approved` are the approvals by gate and approver.
        """
        taken = _taken(event, commit)
        if not approved or taken is None:
            return
        try:
            contents = self.manifests.read(taken.manifest)
        except Corrupt:
            return
        finished = tree_digest(contents.files)
        for (gate, by), (version, shown) in approved.items():
            if shown == finished:
                continue
            if contents.left_out or session.declared or event.artifacts:
                # Declared files that are ignored, and files that cannot be read, are seen by one of the two only.
                ruled = {path: entry for path, entry in contents.files.items() if path not in session.declared}
                if shown == tree_digest(ruled) or contents.left_out:
                    yield note(f"whether the files changed after {by} approved {gate} cannot be told", commit.version)
                    continue
            message = f"{event.phase} was finished with other files than {by} approved for {gate} in commit {version}"
            yield wrong(message, commit.version)


def _taken(event: PhaseFinished, commit: Commit) -> Tree | None:
    """The files of the checkpoint that was taken with the finish."""
    return next(
        (
            taken.tree
            for taken in commit.events
            if isinstance(taken, CheckpointTaken)
            and (taken.kind, taken.phase, taken.attempt) == (CheckpointKind.POST, event.phase, event.attempt)
        ),
        None,
    )


def _as_recorded(session: Session, phase: str, gates: tuple[Gate, ...]) -> Facts:
    """The facts if the files are as the journal implies: unchanged since a run, and all that must exist is there."""
    receipts = [receipt for gate in gates if (receipt := last_receipt(session, phase, gate)) is not None]
    begun = session.phases[phase].tree
    return Facts(
        exists=frozenset(path for gate in gates for path in required_paths(gate, session.folder)),
        changed={receipt.inputs: () for receipt in receipts if receipt.inputs is not None},
        differs={} if begun is None else {begun: True},
        now=session.updated_at,
    )


def _without_files(session: Session, phase: str, gates: tuple[Gate, ...]) -> list[Check]:
    """The gates that look at files and cannot be judged again without them."""
    blind = [
        gate_name(gate)
        for gate in gates
        if gate.paths
        or gate.needs_changes
        or ((receipt := last_receipt(session, phase, gate)) is not None and receipt.inputs is not None)
    ]
    message = f"no checkpoint has all files that {phase} was finished with, which {', '.join(blind)} looked at"
    return [unchecked(message, way_out=_CAPTURE)] if blind else []
