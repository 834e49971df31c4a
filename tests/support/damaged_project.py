"""A project with three sessions whose record is damaged in many ways, and what must survive each of them."""

import os
import random
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from detent.core.session.session import Session
from detent.engine.project import Project, open_project
from detent.store.journal_tail import sum_at_end
from detent.store.line import GENESIS, encode_line
from detent.store.port import START
from tests.support.faults import Counter, die, die_halfway, in_child
from tests.support.project import build_project
from tests.support.values import TickingClock, row

NAMES = ("WFS-one", "WFS-two", "WFS-three")
SETTINGS = 'gates = "off"\n[checkpoint]\ncapture = "off"\n'
#: The most calls that are watched before a kill.
LAST_CALL = 40


class DamagedProject:
    """`root` is the project, `home` the state directory of its user; `restore` makes both new for the next damage."""

    def __init__(self, directory: Path, *, commits: int = 12) -> None:
        self.root, self.home = directory / "project", directory / "home"
        self._saved = directory / "saved"
        os.environ["XDG_STATE_HOME"] = str(self.home)
        build_project(self.root, SETTINGS)
        with self.open() as project:
            for number, name in enumerate(NAMES, 1):
                handle = project.start(row("a", "b"), name.removeprefix("WFS-"), name=name)
                for count in range(commits - number):
                    handle.tasks.add(f"task {count}")
            self.commits = {name: project.store.read(name, START).commits for name in NAMES}
        self.lines = {name: self.journal(name).read_bytes().splitlines(keepends=True) for name in NAMES}
        shutil.copytree(self.state, self._saved / "state")
        shutil.copytree(self.home, self._saved / "home")

    def restore(self) -> None:
        for place, saved in ((self.state, "state"), (self.home, "home")):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self._saved / saved, place)

    @property
    def state(self) -> Path:
        return self.root / ".workflow"

    def open(self) -> Project:
        clock = TickingClock()
        return open_project(self.root, actor="tester", clock=clock)

    def journal(self, name: str) -> Path:
        return self.state / name / "journal.jsonl"

    def copy(self, name: str) -> Path:
        return next(self.home.glob("detent/*/journals"), self.home) / f"{name}.jsonl"

    def survivors(self, name: str) -> list[bytes]:
        """The commits from the first on whose lines are still whole in the journal or in its second copy."""
        held: set[bytes] = set()
        for path in (self.journal(name), self.copy(name)):
            if path.is_file():
                data = path.read_bytes()
                held |= {line + b"\n" for line in data.split(b"\n")}
        kept = []
        for line in self.lines[name]:
            if line not in held:
                break
            kept.append(line)
        return kept

    def states(self, project: Project) -> dict[str, Session]:
        return {name: project.session(name).state for name in NAMES}


class Strike(NamedTuple):
    """A damage to one session; `spares` says whether the other sessions keep their files."""

    name: str
    act: Callable[[DamagedProject, str, random.Random], None]
    spares: bool = True


def _edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    if path.is_file():
        path.write_bytes(change(path.read_bytes()))


def _flipped(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    position = chance.randrange(len(data))
    return data[:position] + bytes([data[position] ^ (1 << chance.randrange(8))]) + data[position + 1 :]


def _truncate(place: DamagedProject, name: str, chance: random.Random) -> None:
    _edit(place.journal(name), lambda data: data[: chance.randrange(len(data) + 1)])


def _cut_lines(place: DamagedProject, name: str, chance: random.Random) -> None:
    _edit(place.journal(name), lambda data: b"".join(data.splitlines(keepends=True)[: -chance.randrange(1, 5)]))


def _flip(place: DamagedProject, name: str, chance: random.Random) -> None:
    _edit(place.journal(name), lambda data: _flipped(data, chance))


def _append(place: DamagedProject, name: str, chance: random.Random) -> None:
    text = chance.choice([b"oops\n", b'{"version":99}\n', b"half a line", b"\n", bytes(200), b"one\ntwo\nthree\n"])
    _edit(place.journal(name), lambda data: data + text)


def _append_commit(place: DamagedProject, name: str, chance: random.Random) -> None:
    """A line that no Detent wrote, with a sum that is right; the copy may have caught up with it."""
    commit = place.commits[name][chance.randrange(len(place.commits[name]))]
    files = [place.journal(name), *([place.copy(name)] if chance.random() < 0.5 else [])]
    for path in files:
        _edit(path, lambda data: data + encode_line(commit, sum_at_end(data) or GENESIS)[0])


def _insert(place: DamagedProject, name: str, chance: random.Random) -> None:
    def change(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        lines.insert(chance.randrange(len(lines) + 1), b"in between\n")
        return b"".join(lines)

    _edit(place.journal(name), change)


def _drop_newline(place: DamagedProject, name: str, _: random.Random) -> None:
    _edit(place.journal(name), lambda data: data.rstrip(b"\n"))


def _rewrite(place: DamagedProject, name: str, chance: random.Random) -> None:
    """Another journal, with sums that verify."""
    commits = place.commits[name]
    changed, total, lines = chance.randrange(len(commits)), GENESIS, []
    for number, commit in enumerate(commits):
        actor = msgspec.structs.replace(commit.actor, name="nobody") if number >= changed else commit.actor
        line, total = encode_line(msgspec.structs.replace(commit, actor=actor), total)
        lines.append(line)
    _edit(place.journal(name), lambda _: b"".join(lines))


def _remove_journal(place: DamagedProject, name: str, _: random.Random) -> None:
    place.journal(name).unlink(missing_ok=True)


def _remove_session(place: DamagedProject, name: str, _: random.Random) -> None:
    shutil.rmtree(place.state / name, ignore_errors=True)


def _remove_state(place: DamagedProject, _name: str, _: random.Random) -> None:
    shutil.rmtree(place.state)


def _remove_documents(place: DamagedProject, name: str, chance: random.Random) -> None:
    files = [path for path in place.state.rglob("*") if path.is_file() and path.suffix in (".json", ".md")]
    for path in chance.sample(files, min(3, len(files))):
        path.unlink()
    _flip(place, name, chance)


def _damage_copy(place: DamagedProject, name: str, chance: random.Random) -> None:
    change = chance.choice([lambda data: _flipped(data, chance), lambda data: data[: chance.randrange(len(data) + 1)]])
    _edit(place.copy(name), change)


def _remove_copy(place: DamagedProject, name: str, _: random.Random) -> None:
    place.copy(name).unlink(missing_ok=True)


def _kill(place: DamagedProject, name: str, chance: random.Random) -> None:
    """A process dies while it commits, at any of its writes."""

    def work(_acknowledge: Callable[[], None]) -> None:
        with place.open() as project:
            project.session(name).tasks.add("interrupted")

    status, _ = in_child(work, Counter(chance.choice([die, die_halfway]), chance.randrange(1, LAST_CALL)))
    assert status in (0, 77, -signal.SIGKILL)


STRIKES = (
    Strike("truncate", _truncate),
    Strike("cut lines", _cut_lines),
    Strike("flip a bit", _flip),
    Strike("append", _append),
    Strike("append a commit", _append_commit),
    Strike("insert", _insert),
    Strike("drop the newline", _drop_newline),
    Strike("rewrite", _rewrite),
    Strike("remove the journal", _remove_journal),
    Strike("remove the session", _remove_session),
    Strike("remove .workflow", _remove_state, spares=False),
    Strike("remove documents", _remove_documents),
    Strike("damage the copy", _damage_copy),
    Strike("remove the copy", _remove_copy),
    Strike("kill", _kill),
)


def chosen_strikes(chance: random.Random) -> tuple[Strike, ...]:
    """One damage, or two of the same session. A kill comes first: a process cannot commit to a damaged journal."""
    first, second = chance.choice(STRIKES), chance.choice(STRIKES)
    both = (first, second) if chance.random() < 0.3 and first.spares else (first,)
    return tuple(sorted(both, key=lambda strike: (strike.name != "kill", not strike.spares)))


def texts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
