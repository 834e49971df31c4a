"""Records of sessions that were tampered with, and sealed again so that every sum and every digest fits."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from detent.core.actor import Actor, ActorKind, Assurance, Channel, Proof
from detent.core.session.events import Commit, Event
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session
from detent.doctor.verification import Demands, verify_bundle
from detent.doctor.verified import Outcome, Verification
from detent.engine.bundles import bundle_file
from detent.engine.bundles.contents import commits
from detent.engine.bundles.exporting import export_session
from detent.engine.project import Project
from detent.store.line import GENESIS, encode_line

JOURNAL = "journal.jsonl"
AGENT = Actor(name="claude", kind=ActorKind.AGENT, channel=Channel.TERMINAL, mark="CLAUDECODE")
#: An actor that claims to be a person at a terminal, as code that writes the journal itself can.
PRETENDER = Actor(
    name="ada",
    kind=ActorKind.PERSON,
    channel=Channel.TERMINAL,
    proof=Proof(assurance=Assurance.ATTENDED, method="tty", identity="ada", statement="terminal /dev/pts/1"),
)


def verified_elsewhere(project: Project, session: str, directory: Path, demands: Demands) -> Verification:
    """The session verified by its bundle alone, as another machine does it."""
    path = directory / f"{session}.bundle"
    export_session(project, session, path)
    return verify_bundle(path, demands)


def problems(result: Verification) -> list[str]:
    """The findings that keep the record from holding: outcome, commit and message."""
    found = [check for check in result.findings if check.outcome is not Outcome.NOTE]
    return [f"{check.outcome} {check.commit}: {check.message}" for check in found]


def add(*events: Event, actor: Actor = AGENT) -> Callable[[list[Commit]], list[Commit]]:
    """A change that appends a commit with these events."""

    def change(known: list[Commit]) -> list[Commit]:
        last = known[-1]
        return [*known, Commit(version=last.version + 1, at=last.at, actor=actor, events=events, state="")]

    return change


def alter(version: int, change: Callable[[Commit], Commit]) -> Callable[[list[Commit]], list[Commit]]:
    """A change of the commit with this version."""
    return lambda known: [change(commit) if commit.version == version else commit for commit in known]


def sealed(known: list[Commit]) -> tuple[bytes, str]:
    """The journal of these commits, each with the state that it leads to; and its last sum."""
    session: Session | None = None
    total, data = GENESIS, b""
    for commit in known:
        session = evolve(session, commit)
        line, total = encode_line(msgspec.structs.replace(commit, state=fingerprint(session)), total)
        data += line
    return data, total


def append_by_hand(project: Project, session: str, *events: Event, actor: Actor) -> None:
    """Append a commit to the journal of a project, with a valid chain, without asking the engine."""
    known = list(project.session(session).log())
    data, _ = sealed(add(*events, actor=actor)(known))
    path = Path(project.store.location(f"{session}/{JOURNAL}"))
    path.write_bytes(data)


def tampered(path: Path, change: Callable[[list[Commit]], list[Commit]], **parts: bytes | None) -> Path:
    """The bundle with other commits; `parts` replace or remove (None) others, `__` in a name is a slash."""
    with bundle_file.opened(str(path)) as reader:
        contents = {part.name: reader.read(part.name) for part in reader.header.parts}
        header, known = reader.header, list(commits(reader))
    contents[JOURNAL], total = sealed(change(known))
    for name, data in parts.items():
        if data is None:
            del contents[name.replace("__", "/")]
        else:
            contents[name.replace("__", "/")] = data
    order = sorted(contents, key=lambda name: (name != JOURNAL, name.startswith("files/"), name))
    header = msgspec.structs.replace(
        header,
        commits=contents[JOURNAL].count(b"\n"),
        sum=total,
        parts=[
            bundle_file.Part(name, len(contents[name]), hashlib.sha256(contents[name]).hexdigest()) for name in order
        ],
    )
    made = path.with_name(f"tampered-{path.name}")
    with made.open("wb+") as file:
        copies = [_writer(contents[part.name]) for part in header.parts]
        bundle_file.write(file.fileno(), header, copies, None)
    return made


def _writer(data: bytes) -> Callable[[int], None]:
    def write(fd: int) -> None:
        os.write(fd, data)

    return write
