"""Checks evidence and protected files: each is what its name says, and the protected files of a session exist."""

from collections.abc import Iterator

from detent.core.session.session import Session
from detent.doctor.finding import Finding, finding
from detent.engine.bundles.importing import without_files
from detent.engine.gates.stored import EVIDENCE, PROTECTED, is_intact
from detent.engine.project import Project

_WAYS_OUT = {
    EVIDENCE: "run the check of the gate again: detent gate run GATE",
    PROTECTED: "restore the file from a backup, or start the session again: its tests cannot be compared any more",
}


def check_evidence(project: Project, session: Session) -> Iterator[Finding]:
    store = project.store
    for kind, way_out in _WAYS_OUT.items():
        directory = f"{session.id}/{kind}/"
        for name in store.names(directory):
            data = store.get(name)
            if data is not None and not is_intact(name.removeprefix(directory), data):
                yield finding("I5", name, "its content is not what was recorded", way_out)
    if without_files(store, session.id) is not None:
        return
    for digest in {session.protected, session.now_protected} - {None}:
        kept = f"{session.id}/{PROTECTED}/{digest}"
        if store.get(kept) is None:
            yield finding("I5", kept, "the protected files of the session are gone", _WAYS_OUT[PROTECTED])
