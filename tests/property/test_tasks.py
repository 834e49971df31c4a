"""Random commands and hand edits on the tasks of a session, against a model in plain dicts that shares no code with it.

After every step the doctor is asked, the journal is replayed, and files and views are compared with the model.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from detent.core.session.evolve import evolve, fingerprint
from detent.core.task.document import new_document
from detent.doctor.invariants import check
from detent.engine import journal
from detent.engine.project import open_project
from detent.engine.projections import write_behind
from detent.errors import DetentError
from tests.support.campaign import examples
from tests.support.project import build_project
from tests.support.values import TickingClock

MEMORY = "/dev/shm"
MOVES = {
    ("pending", "start"): "active",
    ("pending", "block"): "blocked",
    ("active", "done"): "completed",
    ("active", "fail"): "failed",
    ("active", "block"): "blocked",
    ("active", "release"): "pending",
    ("blocked", "unblock"): "pending",
    ("blocked", "resume"): "active",
    ("failed", "retry"): "pending",
    ("completed", "reopen"): "pending",
}
ACTIONS = sorted({action for _, action in MOVES})
STATUSES = ("pending", "active", "completed", "blocked", "failed", "container")
LEVELS = ("simple", "medium", "complex")
SAID = {"fail": ("it broke",), "block": ("ask first",), "done": ("what was done",)}


class Model:
    """The rules again, as a person would write them on a sheet of paper."""

    def __init__(self):
        #: Id to title, status, needs and attempts.
        self.tasks = {}
        self.gone = set()
        self.level = 0
        self.paused = False

    def parts(self, task):
        return [other for other in self.tasks if other.startswith(f"{task}.")]

    def above(self, task):
        return task.partition(".")[0] if "." in task else None

    def needs(self, task):
        above = self.above(task)
        return [*self.tasks[task]["needs"], *(self.tasks[above]["needs"] if above in self.tasks else ())]

    def is_done(self, task):
        parts = self.parts(task)
        return all(map(self.is_done, parts)) if parts else self.tasks[task]["status"] == "completed"

    def waits(self, task):
        return not all(map(self.is_done, self.needs(task)))

    def leaves(self):
        return [task for task in self.tasks if not self.parts(task)]

    def has_circle(self):
        """Whether something waits for itself, along needs, the needs of containers, and parts."""
        settled, grew = set(), True
        while grew:
            free = {t for t in self.tasks if t not in settled and {*self.needs(t), *self.parts(t)} <= settled}
            grew = bool(free)
            settled |= free
        return len(settled) < len(self.tasks)

    def can_need(self, task, needs):
        kin = {task, self.above(task), *self.parts(task)}
        if not set(needs) <= self.tasks.keys() - kin:
            return False
        before, self.tasks[task]["needs"] = self.tasks[task]["needs"], list(needs)
        circle = self.has_circle()
        self.tasks[task]["needs"] = before
        return not circle

    def add(self, task, title, needs=()):
        self.tasks[task] = {"title": title, "status": "pending", "needs": [], "attempts": 0}
        if not self.can_need(task, needs):
            del self.tasks[task]
            return False
        self.tasks[task]["needs"] = list(needs)
        self.count()
        return True

    def next_main(self):
        return 1 + max([int(re.split(r"[-.]", task)[1]) for task in {*self.tasks, *self.gone}], default=0)

    def next_part(self, task):
        used = [int(other.rpartition(".")[2]) for other in {*self.tasks, *self.gone} if other.startswith(f"{task}.")]
        return 1 + max(used, default=0)

    def count(self):
        leaves = len(self.leaves())
        level = 2 if leaves > 15 else 1 if leaves >= 5 or any("." in task for task in self.tasks) else 0
        self.level = max(self.level, level)

    def can_move(self, task, action):
        status = self.tasks[task]["status"]
        if (status, action) not in MOVES:
            return False
        return action not in ("start", "resume") or not (self.parts(task) or self.waits(task))

    def move(self, task, action):
        self.tasks[task]["status"] = MOVES[self.tasks[task]["status"], action]
        self.tasks[task]["attempts"] += action == "start"

    def can_remove(self, task):
        needed = any(task in other["needs"] for other in self.tasks.values())
        return self.tasks[task]["status"] != "active" and not needed and not self.parts(task)

    def remove(self, task):
        del self.tasks[task]
        self.gone.add(task)
        above = self.above(task)
        if above and not self.parts(above):
            self.tasks[above]["status"] = "pending"
        self.count()


class TaskMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        place = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.directory = Path(tempfile.mkdtemp(prefix="detent-tasks-", dir=place))
        self.delays = write_behind.DELAY_S, journal.SNAPSHOT_EVERY
        write_behind.DELAY_S, journal.SNAPSHOT_EVERY = 3_600, 7
        build_project(self.directory)
        self.clock = TickingClock()
        self.project = self.opened()
        self.model = Model()
        #: What a person wrote and Detent did not take.
        self.refused = []

    def opened(self):
        return open_project(self.directory, actor="tester", clock=self.clock)

    def teardown(self):
        self.project.close()
        write_behind.DELAY_S, journal.SNAPSHOT_EVERY = self.delays
        shutil.rmtree(self.directory)

    @property
    def handle(self):
        return self.project.session("try-it")

    def file(self, task):
        return self.directory / ".workflow/WFS-try-it/.task" / f"{task}.json"

    def pick(self, at):
        known = sorted(self.model.tasks)
        return known[at % len(known)]

    def expect(self, allowed, act):
        """The engine agrees with the model whether `act` is allowed; a refusal says why and changes nothing."""
        before, refusal = self.handle.state, None
        try:
            act()
        except DetentError as error:
            refusal = error
        note(f"refused: {refusal}" if refusal else "done")
        assert (refusal is None) == allowed
        if refusal:
            assert refusal.message
            assert self.handle.state == before
        return allowed

    @initialize()
    def begin(self):
        self.project.start("plan-implement-review", "Try it")

    going = precondition(lambda self: not self.model.paused)
    some = precondition(lambda self: self.model.tasks and not self.model.paused)
    at = st.integers(0, 30)

    @going
    @rule(needs=st.lists(at, max_size=2))
    def add(self, needs):
        task = f"IMPL-{self.model.next_main()}"
        wanted = [self.pick(n) for n in needs] if self.model.tasks else []
        self.expect(self.model.add(task, "A task", wanted), lambda: self.handle.tasks.add("A task", depends_on=wanted))

    @some
    @rule(at=at)
    def add_a_part(self, at):
        above = self.pick(at)
        allowed = self.model.tasks[above]["status"] == "container" and self.model.add(
            f"{above}.{self.model.next_part(above)}", "A part"
        )
        self.expect(allowed, lambda: self.handle.tasks.add("A part", parent=above))

    @some
    @rule(at=at, count=st.integers(1, 4))
    def split(self, at, count):
        task = self.pick(at)
        allowed = "." not in task and self.model.tasks[task]["status"] == "pending"
        first = self.model.next_part(task)
        if self.expect(allowed, lambda: self.handle.tasks.split(task, ["A part"] * count)):
            self.model.tasks[task]["status"] = "container"
            for number in range(first, first + count):
                self.model.add(f"{task}.{number}", "A part")

    @some
    @rule(at=at)
    def remove(self, at):
        task = self.pick(at)
        if self.expect(self.model.can_remove(task), lambda: self.handle.tasks.remove(task)):
            self.model.remove(task)

    @some
    @rule(at=at, action=st.sampled_from(ACTIONS))
    def move(self, at, action):
        task = self.pick(at)
        command = getattr(self.handle.tasks, action)
        if self.expect(self.model.can_move(task, action), lambda: command(task, *SAID.get(action, ()))):
            self.model.move(task, action)

    @some
    @rule()
    def finish_something(self):
        """Otherwise little would ever be done."""
        ready = [t for t in self.model.leaves() if self.model.can_move(t, "start")]
        following = self.handle.tasks.next()
        assert (following is None) == (not ready)
        if following is not None:
            claimed = self.handle.tasks.start()
            assert claimed.task == following.id
            assert following.id in ready
            self.handle.tasks.done(claimed.task, "what was done", fence=claimed.fence)
            self.model.move(claimed.task, "start")
            self.model.move(claimed.task, "done")

    @some
    @rule(at=at, needs=st.lists(at, max_size=2))
    def replan(self, at, needs):
        task, wanted = self.pick(at), [self.pick(n) for n in needs]
        allowed = self.model.tasks[task]["status"] in ("pending", "blocked", "failed")
        allowed = allowed and self.model.can_need(task, wanted)
        changes = {"title": "Changed", "context": {"depends_on": wanted}}
        if self.expect(allowed, lambda: self.handle.tasks.replan(task, changes, reason="better")):
            self.model.tasks[task] |= {"title": "Changed", "needs": list(dict.fromkeys(wanted))}

    @going
    @rule(level=st.sampled_from(LEVELS))
    def set_complexity(self, level):
        wanted = LEVELS.index(level)
        if self.expect(wanted >= self.model.level, lambda: self.handle.tasks.set_complexity(level)):
            self.model.level = wanted

    @going
    @rule()
    def pause(self):
        self.project.sessions.pause("lunch")
        self.model.paused = True
        for task in self.model.tasks.values():
            task["status"] = "pending" if task["status"] == "active" else task["status"]

    @precondition(lambda self: self.model.paused)
    @rule()
    def resume(self):
        self.project.sessions.resume()
        self.model.paused = False

    @rule()
    def reopen(self):
        self.project.close()
        self.project = self.opened()

    @going
    @rule()
    def lose_every_document(self):
        self.project.flush()
        for path in self.directory.glob(".workflow/**/*.json"):
            path.unlink()
        for path in self.directory.glob(".workflow/WFS-*/*.md"):
            path.unlink()
        self.project.rebuild()
        self.project.reconcile()

    @some
    @rule(at=at, status=st.sampled_from(STATUSES), title=st.sampled_from(("A task", "By hand")))
    def edit_by_hand(self, at, status, title):
        """A person sets title and status in a task's file; Detent takes it as the commands it amounts to."""
        task = self.pick(at)
        own = self.model.tasks[task]
        if (own["title"], own["status"]) == (title, status):
            return
        self.project.flush()
        document = json.loads(self.file(task).read_text()) | {"title": title, "status": status}
        text = json.dumps(document, indent=1)
        self.file(task).write_text(text)
        before = self.handle.state

        (adoption,) = self.project.reconcile()

        action = next((a for (s, a), to in MOVES.items() if (s, to) == (own["status"], status)), None)
        allowed = status == own["status"] or (action is not None and self.model.can_move(task, action))
        allowed = allowed and (title == own["title"] or own["status"] != "completed")
        assert adoption.adopted == allowed, adoption
        if allowed:
            own["title"] = title
            if action:
                self.model.move(task, action)
        else:
            assert adoption.reasons
            assert self.handle.state == before
            self.refused.append(text.encode())

    @going
    @rule(number=st.integers(1, 12), needs=st.lists(at, max_size=1))
    def write_a_new_file_by_hand(self, number, needs):
        self.project.flush()
        task, wanted = f"IMPL-{number}", [self.pick(n) for n in needs] if self.model.tasks else []
        if task in self.model.tasks:
            return
        text = json.dumps(new_document(task, "By hand", depends_on=wanted))
        self.file(task).write_text(text)

        (adoption,) = self.project.reconcile()

        assert adoption.adopted == (task not in self.model.gone and self.model.add(task, "By hand", wanted))
        if not adoption.adopted:
            self.refused.append(text.encode())

    @some
    @rule(at=at, text=st.binary(max_size=20) | st.sampled_from((b"", b"{}", b"[]", b"null", b"{" * 50)))
    def write_nonsense_by_hand(self, at, text):
        self.project.flush()
        before = self.handle.state
        self.file(self.pick(at)).write_bytes(text)

        (adoption,) = self.project.reconcile()

        assert not adoption.adopted
        assert self.handle.state == before
        self.refused.append(text)

    @some
    @rule(at=at)
    def delete_by_hand(self, at):
        self.project.flush()
        self.file(self.pick(at)).unlink()
        self.project.reconcile()

    @some
    @rule(at=at, other=at)
    def copy_over_by_hand(self, at, other):
        self.project.flush()
        self.file(self.pick(at)).write_bytes(self.file(self.pick(other)).read_bytes())
        self.project.reconcile()

    @invariant()
    def the_tasks_are_what_the_model_says(self):
        if not self.project.store.sessions():
            return
        session = self.handle.state
        rows = {
            row.id: {
                "title": row.title,
                "status": str(row.status),
                "needs": list(row.depends_on),
                "attempts": row.attempts,
            }
            for row in session.tasks
        }
        told = {task: own | {"needs": list(dict.fromkeys(own["needs"]))} for task, own in self.model.tasks.items()}
        assert rows == told
        active = sorted(task for task, own in told.items() if own["status"] == "active")
        assert sorted(session.claims) == active
        assert str(session.complexity) == LEVELS[self.model.level]
        ready = {t for t in self.model.leaves() if told[t]["status"] == "pending" and not self.model.waits(t)}
        assert set(session.tasks.ready) == ready
        assert session.tasks.is_completed == (bool(told) and all(map(self.model.is_done, told)))

    @invariant()
    def the_files_are_what_the_model_says(self):
        if not self.project.store.sessions():
            return
        self.project.flush()
        found = {}
        for path in self.file("x").parent.glob("IMPL-*.json"):
            document = json.loads(path.read_text())
            assert document["id"] == path.stem
            found[path.stem] = (document["title"], document["status"], document["context"]["depends_on"])
        assert found.keys() == self.model.tasks.keys()
        for task, (title, status, needs) in found.items():
            own = self.model.tasks[task]
            assert (title, status, list(dict.fromkeys(needs))) == (
                own["title"],
                own["status"],
                list(dict.fromkeys(own["needs"])),
            )
        document = json.loads((self.file("x").parent.parent / "workflow-session.json").read_text())
        active = {task for task, own in self.model.tasks.items() if own["status"] == "active"}
        assert set(document["progress"]["current_tasks"]) == active
        assert document["type"] == LEVELS[self.model.level]
        assert document["status"] == ("paused" if self.model.paused else "active")
        assert not active or document["current_phase"] == "IMPLEMENT"

    @invariant()
    def the_todo_list_is_what_the_model_says(self):
        if not self.project.store.sessions():
            return
        self.project.flush()
        text = (self.file("x").parent.parent / "TODO_LIST.md").read_text()
        ticked = {m[1]: m[0] for m in re.findall(r"^ *(▸|- \[.\]) \*\*([^*]+)\*\*", text, re.MULTILINE)}
        marks = {"completed": "- [x]", "container": "▸"}
        assert ticked == {task: marks.get(own["status"], "- [ ]") for task, own in self.model.tasks.items()}

    @invariant()
    def the_doctor_finds_nothing(self):
        self.project.flush()
        assert check(self.project) == []

    @invariant()
    def replaying_the_journal_gives_what_the_last_commit_recorded(self):
        if not self.project.store.sessions():
            return
        session, recorded = None, ""
        for commit in self.handle.log():
            session, recorded = evolve(session, commit), commit.state
        assert session is not None
        assert fingerprint(session) == recorded
        assert session == self.handle.state

    @invariant()
    def nothing_that_was_written_by_hand_is_gone(self):
        kept = {path.read_bytes() for path in self.directory.glob(".workflow/WFS-*/.task/*.rejected-*")}
        assert kept.issuperset(self.refused)


TestTasks = TaskMachine.TestCase
TestTasks.settings = settings(
    max_examples=examples(30),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
