"""Checks evidence and protected files: each is what its name says, and the protected files of a session exist."""

from collections.abc import Iterator

from detent.core.session.session import Session
from detent.doctor.finding import ERROR, WARNING, Finding, finding
from detent.engine.bundles.importing import without_files
from detent.engine.gates.stored import EVIDENCE, PROTECTED, is_intact
from detent.engine.project import Project

_ENDED = "restore the file from a backup; the session has ended, and no gate needs it any more"
_WAYS_OUT = {
    EVIDENCE: "run the check of the gate again: detent gate run GATE",
    PROTECTED: "restore the file from a backup, or start the session again: its tests cannot be compared any more",
}


def check_evidence(project: Project, session: Session) -> Iterator[Finding]:
    store, has_ended = project.store, session.ended_at is not None

    def damage(kind: str, name: str, message: str) -> Finding:
        return finding("I5", name, message, _ENDED if has_ended else _WAYS_OUT[kind], WARNING if has_ended else ERROR)

    for kind in _WAYS_OUT:
        directory = f"{session.id}/{kind}/"
        for name in store.names(directory):
            data = store.get(name)
            if data is not None and not is_intact(name.removeprefix(directory), data):
                yield damage(kind, name, "its content is not what was recorded")
    if without_files(store, session.id) is not None:
        return
    for digest in {session.protected, session.now_protected} - {None}:
        kept = f"{session.id}/{PROTECTED}/{digest}"
        if store.get(kept) is None:
            yield damage(PROTECTED, kept, "the protected files of the session are gone")
