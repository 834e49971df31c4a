"""Random work on a real tree, with checkpoints and rollbacks between, against pictures that the test takes itself.

The test walks the tree on its own right before every command and decides on its own what is ignored. A checkpoint has
to give back what it `must` have recorded; nothing may touch what no checkpoint `may` have recorded.
"""

import hashlib
import os
import shutil
import tempfile
import time
from typing import NamedTuple

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from detent.doctor.invariants import check
from detent.engine import journal
from detent.engine.project import open_project
from detent.engine.projections import write_behind
from detent.errors import DetentError
from detent.objects import stat_cache
from tests.support.campaign import examples
from tests.support.project import build_project
from tests.support.values import TickingClock, row

MEMORY = "/dev/shm"
PHASES = ("a", "b", "c")
PLAIN = ("a.txt", "b.txt", "sub", "sub/x", "sub/deep", "sub/deep/y", "other/x")
ODD = ("with space", "new\nline", "-dash", "caf\udce9", "\\xe9", "sub/\udcff\udcfe", "sub/ünï", "*")
IGNORABLE = ("c.log", "sub/c.log", "out", "out/z", "out/deep/z", "secret", "d.tmp")
PATHS = PLAIN + ODD + IGNORABLE
RULES = ("*.log", "out/", "/secret", "sub/deep")
CONTENTS = (b"", b"one", b"two", b"same length 1", b"same length 2", b"line\n" * 200, b"line\n" * 200 + b"more")
TARGETS = ("a.txt", "sub", "other", "../elsewhere", "nowhere", "\udcff")
#: Coarser than any kernel's clock, and short enough to be waited for.
RACE_NS = 20_000_000

paths = st.sampled_from(PATHS)
contents = st.sampled_from(CONTENTS)
indices = st.integers(0, 1_000)


class File(NamedTuple):
    kind: str
    content: bytes


class Taken(NamedTuple):
    """What the test knows of a checkpoint."""

    id: str
    name: str
    phase: str
    must: dict[str, File]
    may: frozenset[str]
    statuses: dict[str, str]
    safety: bool


class Undoable(NamedTuple):
    """Everything as it was before a rollback."""

    safety: str
    tree: dict[str, File]
    statuses: dict[str, str]
    #: What the rollback was about; none means everything.
    only: frozenset[str] | None


def look(directory):
    """Every file of the tree but Detent's and git's own."""
    found, waiting = {}, [""]
    while waiting:
        inside = waiting.pop()
        for entry in os.scandir(os.path.join(directory, inside)):
            path = inside + entry.name
            if path in (".git", ".workflow", "detent.toml"):
                continue
            if entry.is_symlink():
                found[path] = File("link", os.fsencode(os.readlink(entry.path)))
            elif entry.is_dir():
                waiting.append(path + "/")
            else:
                with open(entry.path, "rb") as file:
                    found[path] = File("exec" if os.stat(entry.path).st_mode & 0o100 else "file", file.read())
    return found


def times(directory, names):
    return {path: os.lstat(os.path.join(directory, path)).st_mtime_ns for path in names}


def below(path, directory):
    return path.startswith(directory + "/")


class RollbackMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.kept = write_behind.DELAY_S, journal.SNAPSHOT_EVERY, stat_cache.RACE_NS
        write_behind.DELAY_S, journal.SNAPSHOT_EVERY, stat_cache.RACE_NS = 3_600, 4, RACE_NS
        self.directory = tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.clock = TickingClock()
        self.taken = []
        self.stored = {}
        self.undoable = None
        self.edited_since = False

    def teardown(self):
        if hasattr(self, "project"):
            self.check_all_is_well()
            self.project.close()
        write_behind.DELAY_S, journal.SNAPSHOT_EVERY, stat_cache.RACE_NS = self.kept
        shutil.rmtree(self.directory)

    @initialize(git=st.sampled_from(["none", "present", "with excludes"]), compress=st.booleans(), first=contents)
    def start(self, git, compress, first):
        with open(self.at("detent.toml"), "w") as file:
            file.write(f'gates = "off"\n[checkpoint]\ncompress = {str(compress).lower()}\n')
        build_project(self.directory)
        self.excluded = git == "with excludes"
        if git != "none":
            os.makedirs(self.at(".git/info"))
            with open(self.at(".git/info/exclude"), "w") as file:
                file.write("*.tmp\n" if self.excluded else "")
        self.put("a.txt", first)
        self.put("sub/x", first)
        self.project = self.opened()
        tree = look(self.directory)
        self.handle = self.project.start(row(*PHASES), "try it")
        self.learn(self.handle.state, tree)

    def opened(self):
        return open_project(self.directory, actor="machine", clock=self.clock)

    def at(self, path):
        return os.path.join(self.directory, path)

    # What people do to files

    def clear(self, path):
        """Whatever is there goes, and so does a file that stands where one of its directories belongs."""
        parts = path.split("/")
        for above in ("/".join(parts[:depth]) for depth in range(1, len(parts))):
            if os.path.islink(self.at(above)) or os.path.isfile(self.at(above)):
                os.unlink(self.at(above))
        if os.path.isdir(self.at(path)) and not os.path.islink(self.at(path)):
            shutil.rmtree(self.at(path))
        elif os.path.lexists(self.at(path)):
            os.unlink(self.at(path))

    def put(self, path, content):
        self.clear(path)
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        with open(self.at(path), "wb") as file:
            file.write(content)
        self.edited_since = True

    def existing(self, index):
        found = sorted(look(self.directory))
        return found[index % len(found)] if found else None

    @rule(path=paths, content=contents)
    def write(self, path, content):
        self.put(path, content)

    @rule(index=indices, content=contents)
    def write_in_place(self, index, content):
        path = self.existing(index)
        if path and not os.path.islink(self.at(path)):
            with open(self.at(path), "wb") as file:
                file.write(content)
            self.edited_since = True

    @rule(index=indices, content=contents)
    def append(self, index, content):
        path = self.existing(index)
        if path and not os.path.islink(self.at(path)):
            with open(self.at(path), "ab") as file:
                file.write(content)
            self.edited_since = True

    @rule(index=indices)
    def delete(self, index):
        path = self.existing(index)
        if path:
            os.unlink(self.at(path))
            self.edited_since = True

    @rule(index=indices, path=paths)
    def rename(self, index, path):
        source = self.existing(index)
        if source and source != path and not below(path, source) and not below(source, path):
            self.clear(path)
            os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
            os.rename(self.at(source), self.at(path))
            self.edited_since = True

    @rule(index=indices)
    def change_whether_it_can_be_executed(self, index):
        path = self.existing(index)
        if path and not os.path.islink(self.at(path)):
            os.chmod(self.at(path), os.stat(self.at(path)).st_mode ^ 0o111)
            self.edited_since = True

    @rule(path=paths, to=st.sampled_from(TARGETS))
    def link(self, path, to):
        self.clear(path)
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        os.symlink(to, self.at(path))
        self.edited_since = True

    @rule(path=paths)
    def make_directory(self, path):
        self.clear(path)
        os.makedirs(self.at(path))
        self.edited_since = True

    @rule(chosen=st.sets(st.sampled_from(RULES)))
    def ignore(self, chosen):
        self.put(".gitignore", "".join(f"{one}\n" for one in sorted(chosen)).encode())

    @rule()
    def wait(self):
        """Until nothing that was done can happen again at the same time."""
        time.sleep(RACE_NS / 1e9 * 1.25)

    # What Detent does

    @rule(action=st.sampled_from(["begin", "finish", "fail", "redo"]), index=indices)
    def work(self, action, index):
        phases = self.handle.state.phases
        live = [key for key in PHASES if phases[key].status == "in_progress"]
        tree = look(self.directory)
        try:
            match action:
                case "begin":
                    self.handle.begin()
                case "finish":
                    self.handle.finish("done")
                case "fail":
                    self.handle.fail("broke")
                case "redo":
                    self.handle.redo(PHASES[index % 3], cascade=True)
        except DetentError:
            assert not (live and action in ("finish", "fail"))
            return
        self.learn(self.handle.state, tree)

    @rule(text=st.sampled_from(["", "before lunch"]))
    def checkpoint(self, text):
        tree = look(self.directory)
        event = self.handle.checkpoints.take(text)
        self.learn(self.handle.state, tree)
        assert self.taken[-1].id == event.id

    @precondition(lambda self: self.taken)
    @rule(index=indices, by_name=st.booleans())
    def roll_back(self, index, by_name):
        target = self.taken[index % len(self.taken)]
        self.go_to(
            target, lambda: self.handle.checkpoints.rollback(target.name if by_name else target.id, remove_unknown=True)
        )

    @precondition(lambda self: self.taken)
    @rule(index=indices, chosen=paths)
    def roll_paths_back(self, index, chosen):
        target = self.taken[index % len(self.taken)]
        if "\udc80" <= max(chosen) <= "\udcff" or chosen not in target.must:
            chosen = "sub"
        before = look(self.directory)
        statuses = self.statuses()
        meant = {path for path in {*before, *target.must} if path == chosen or below(path, chosen)}

        def check_rest():
            after = look(self.directory)
            assert {p: f for p, f in before.items() if p not in meant} == {
                p: f for p, f in after.items() if p not in meant
            }
            assert self.statuses() == statuses

        if not meant & target.must.keys():
            return
        self.go_to(
            target,
            lambda: self.handle.checkpoints.rollback(target.id, paths=[chosen], remove_unknown=True),
            only=meant,
            then=check_rest,
        )

    @precondition(lambda self: self.taken)
    @rule(index=indices)
    def roll_phases_back(self, index):
        target = self.taken[index % len(self.taken)]
        before = look(self.directory)
        stamps = times(self.directory, before)

        def check_files():
            assert look(self.directory) == before
            assert times(self.directory, before) == stamps

        self.go_to(
            target,
            lambda: self.handle.checkpoints.rollback(target.id, phase_only=True),
            only=frozenset(),
            then=check_files,
        )

    @precondition(lambda self: self.undoable)
    @rule()
    def undo(self):
        undoable, edited = self.undoable, self.edited_since
        target = next(one for one in self.taken if one.id == undoable.safety)

        def check_everything():
            if not undoable.only:
                # Restoring some files moved no phase, so undoing it moves none either.
                assert self.statuses() == undoable.statuses
            if not edited:
                assert look(self.directory) == undoable.tree

        self.go_to(target, self.handle.checkpoints.undo, only=undoable.only, undoes=True, then=check_everything)

    @rule()
    def reopen(self):
        self.project.close()
        self.project = self.opened()
        self.handle = self.project.session(self.handle.id)

    @rule()
    def collect(self):
        self.project.checkpoints.collect(dry_run=False)
        self.check_contents()

    # What must hold

    def go_to(self, target, command, *, only=None, undoes=False, then=lambda: None):
        before, statuses, version = look(self.directory), self.statuses(), self.handle.state.version
        later = self.taken[self.taken.index(target) + 1 :]
        since = frozenset().union(*(one.must for one in later)) if only is None or only else frozenset()
        known = {*target.must, *since} if only is None or only else set()
        never = [path for path in before if not any(path in one.may for one in self.taken)]
        stamps = times(self.directory, never)
        try:
            made = command()
        except DetentError as error:
            note(f"refused: {error}")
            made = None
        if made is None:
            assert look(self.directory) == before
            assert self.handle.state.version == version
            assert self.is_in_the_way(target, before, since, only), "refused without need"
            return
        after = look(self.directory)
        wanted = {path: file for path, file in target.must.items() if only is None or path in only}
        assert {path: after.get(path) for path in wanted} == wanted
        assert {path: after.get(path) for path in never} == {path: before[path] for path in never}
        assert times(self.directory, never) == stamps
        gone = {path for path in since if path not in target.may and (only is None or path in only)}
        # What was ignored then may have been there: the model cannot tell, so it stays.
        unknown = set() if target.safety else {path for path in gone if self.is_ignored(path, target.must)}
        assert not (gone - unknown) & after.keys()
        if only is None or only:
            assert {path: after.get(path) for path in unknown} == {path: before.get(path) for path in unknown}
        if only is None and not undoes:
            assert self.statuses() == self.expected_statuses(target, statuses)
        then()
        self.learn_rollback(made, before, after, statuses, known)
        self.undoable = Undoable(self.taken_by(made, "safety").id, before, statuses, only)
        self.edited_since = False
        self.check_contents()
        self.check_all_is_well()

    def is_in_the_way(self, target, before, since, only):
        """Whether something that was not recorded since stands where a file of the checkpoint belongs."""
        wanted = [path for path in target.must if only is None or path in only]
        return any(
            (below(path, other) or below(other, path)) and (other not in since or (only and other not in only))
            for path in wanted
            for other in before
        )

    def expected_statuses(self, target, now):
        at = PHASES.index(target.phase)
        then = {key: "pending" if found == "in_progress" else found for key, found in target.statuses.items()}
        return {key: then[key] if PHASES.index(key) <= at else "pending" for key in now}

    def statuses(self):
        return {key: str(state.status.value) for key, state in self.handle.state.phases.items()}

    def is_ignored(self, path, tree):
        """By the rules that the tree itself holds."""
        parts = path.split("/")
        file = tree.get(".gitignore")
        rules = file.content.decode().split("\n") if file and file.kind != "link" else []
        return (
            ("*.log" in rules and any(part.endswith(".log") for part in parts))
            or ("out/" in rules and "out" in parts[:-1])
            or ("/secret" in rules and parts[0] == "secret")
            or ("sub/deep" in rules and parts[:2] == ["sub", "deep"])
            or (self.excluded and any(part.endswith(".tmp") for part in parts))
        )

    def learn(self, state, tree):
        """The commit that was just made took one checkpoint, of `tree`."""
        must = {path: file for path, file in tree.items() if not self.is_ignored(path, tree)}
        position = self.handle.checkpoints.all()[-1]
        assert position.version == state.version
        self.remember(position, must, frozenset(must), self.statuses())

    def learn_rollback(self, made, before, after, statuses, known):
        inside = {path for path in before if any(below(path, one) for one in known)}
        must = {path: file for path, file in before.items() if path in known or not self.is_ignored(path, before)}
        may = frozenset({*must, *inside})
        new = [one for one in self.handle.checkpoints.all() if one.version == self.handle.state.version]
        self.remember(new[0], must, may, statuses)
        if len(new) > 1:
            there = {path: file for path, file in after.items() if path in must or (path in known)}
            self.remember(new[1], there, frozenset({*there, *(may & after.keys())}), self.statuses())

    def remember(self, position, must, may, statuses):
        event = position.event
        assert event.name not in [one.name for one in self.taken], "a name was used twice"
        assert event.id not in [one.id for one in self.taken]
        self.taken.append(Taken(event.id, event.name, event.phase, must, may, statuses, event.taken == "safety"))
        self.stored.update((hashlib.sha256(file.content).hexdigest(), file.content) for file in must.values())

    def taken_by(self, made, kind):
        found = next(event for event in made.events if getattr(event, "taken", None) == kind)
        return next(one for one in self.taken if one.id == found.id)

    def check_contents(self):
        for digest, content in self.stored.items():
            assert self.project.checkpoints.objects.read(digest) == content

    def check_all_is_well(self):
        self.project.flush()
        assert check(self.project) == []
        left = [name for name in os.listdir(self.at(".workflow/checkpoints")) if name in ("restoring", "rollback.json")]
        assert left == []


TestRollback = RollbackMachine.TestCase
TestRollback.settings = settings(
    max_examples=examples(25),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
