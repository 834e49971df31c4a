"""Random commands on random graphs, against a model of the rules in plain dicts that shares no code with them.

After every step the doctor is asked, the journal is replayed, and the documents are compared with the model.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.token import Token
from detent.doctor.invariants import check
from detent.engine import journal
from detent.engine.project import open_project
from detent.engine.projections import write_behind
from detent.errors import DetentError, Invalid
from tests.support.campaign import examples
from tests.support.project import build_project
from tests.support.values import TickingClock, workflow

KEYS = ("a", "b", "c", "d", "e")
SETTLED = {"completed", "skipped"}
OPEN = {"pending", "in_progress", "failed"}
MEMORY = "/dev/shm"


@st.composite
def graphs(draw):
    keys = KEYS[: draw(st.integers(1, len(KEYS)))]
    return {
        key: tuple(need for need in keys[:index] if draw(st.booleans(), label=f"{key} needs {need}"))
        for index, key in enumerate(keys)
    }


class Model:
    """The rules again, as a person would write them on a sheet of paper."""

    def __init__(self, needs):
        self.needs = needs
        self.status = dict.fromkeys(needs, "pending")
        self.attempt = dict.fromkeys(needs, 0)
        self.ended = None
        self.commits = 1
        first = next(key for key in needs if not needs[key])
        self.status[first], self.attempt[first] = "in_progress", 1

    def waits(self, key):
        """A skipped phase passes on what it would have waited for."""
        return any(
            self.waits(need) if self.status[need] == "skipped" else self.status[need] != "completed"
            for need in self.needs[key]
        )

    def behind(self, key):
        found, grew = {key}, True
        while grew:
            more = {other for other in self.needs if found & set(self.needs[other])} | found
            grew, found = more != found, more
        return {other for other in found - {key} if self.status[other] in ("in_progress", "completed", "failed")}

    def begin(self, key):
        if self.status[key] != "pending" or self.waits(key):
            return False
        self.status[key] = "in_progress"
        self.attempt[key] += 1
        return True

    def end_attempt(self, key, status):
        if self.status[key] != "in_progress":
            return False
        self.status[key] = status
        self.close_if_settled()
        return True

    def redo(self, key, cascade):
        write_behind = self.behind(key)
        if self.status[key] == "pending" or self.waits(key) or (write_behind and not cascade):
            return False
        for other in write_behind:
            self.status[other] = "pending"
        self.status[key] = "in_progress"
        self.attempt[key] += 1
        return True

    def skip(self, keys):
        if any(self.status[key] not in OPEN for key in keys):
            return False
        for key in keys:
            self.status[key] = "skipped"
        self.close_if_settled()
        return True

    def complete(self, force):
        if any(status in OPEN for status in self.status.values()) and not force:
            return False
        self.ended = "completed"
        return True

    def cancel(self):
        self.ended = "cancelled"
        return True

    def close_if_settled(self):
        if all(status in SETTLED for status in self.status.values()):
            self.ended = "completed"


keys = st.sampled_from(KEYS)


class EngineMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.kept = write_behind.DELAY_S, journal.SNAPSHOT_EVERY
        write_behind.DELAY_S, journal.SNAPSHOT_EVERY = 3_600, 3
        self.directory = Path(tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
        build_project(self.directory)
        self.clock = TickingClock()
        self.project = self.opened()
        self.ended = {}
        self.torn = False
        self.tokens = []
        self.written = []

    def teardown(self):
        self.project.close()
        write_behind.DELAY_S, journal.SNAPSHOT_EVERY = self.kept
        shutil.rmtree(self.directory)

    def opened(self):
        return open_project(self.directory, actor="machine", clock=self.clock)

    @property
    def state_file(self):
        return self.directory / ".workflow/state.json"

    def start_session(self, needs):
        self.handle = self.project.start(workflow(needs), "try it")
        self.model = Model(needs)
        self.tokens = []
        self.torn = False

    def key(self, wanted):
        """A phase of this graph, whatever was drawn."""
        present = list(self.model.needs)
        return wanted if wanted in present else present[KEYS.index(wanted) % len(present)]

    def expect(self, allowed, act):
        """The engine agrees with the model whether `act` is allowed; a refusal says why and changes nothing."""
        before = self.handle.state
        result = refusal = None
        try:
            result = act()
        except DetentError as error:
            refusal = error
        note(f"refused: {refusal}" if refusal else "done")
        assert (refusal is None) == allowed
        if refusal:
            assert refusal.message
            assert not isinstance(refusal, Invalid)
            assert self.handle.state == before
            return None
        self.model.commits += 1
        self.torn = False
        return result

    def ask(self, change, act):
        """Ask the model first, unless the session is over, in which case nothing is allowed."""
        allowed = not self.model.ended and change()
        result = self.expect(allowed, act)
        if allowed and self.model.ended:
            self.ended[self.handle.id] = self.model.ended
        return result

    @initialize(needs=graphs())
    def begin_with(self, needs):
        self.start_session(needs)

    @rule(wanted=keys)
    def begin(self, wanted):
        key = self.key(wanted)
        begun = self.ask(lambda: self.model.begin(key), lambda: self.handle.begin(key))
        if begun:
            assert begun.token == (key, self.model.attempt[key], self.handle.state.version)
            self.tokens.append(begun.token)

    @rule()
    def begin_whatever_is_ready(self):
        ready = [k for k in self.model.needs if self.model.status[k] == "pending" and not self.model.waits(k)]
        begun = self.ask(lambda: bool(ready) and self.model.begin(ready[0]), self.handle.begin)
        if begun:
            assert begun.phase == ready[0]
            self.tokens.append(begun.token)

    @rule(wanted=keys, by_token=st.booleans(), failing=st.booleans())
    def end_attempt(self, wanted, by_token, failing):
        key = self.key(wanted)
        which = {"token": self.handle.state.token(key)} if by_token else {"phase": key}
        end = self.handle.fail if failing else self.handle.finish
        self.ask(
            lambda: self.model.end_attempt(key, "failed" if failing else "completed"), lambda: end("it ended", **which)
        )

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def finish_with_an_old_token(self, data):
        token = data.draw(st.sampled_from(self.tokens))
        live = self.model.status[token.phase] == "in_progress" and self.handle.state.token(token.phase) == token
        self.ask(
            lambda: live and self.model.end_attempt(token.phase, "completed"),
            lambda: self.handle.finish("it ended", token=str(token)),
        )

    @rule(wanted=keys, attempt=st.integers(0, 4), fence=st.integers(0, 9))
    def finish_with_an_invented_token(self, wanted, attempt, fence):
        token = Token(self.key(wanted), attempt, fence)
        right = self.handle.state.token(token.phase) == token
        self.ask(
            lambda: right and self.model.end_attempt(token.phase, "completed"),
            lambda: self.handle.finish("it ended", token=token),
        )

    @rule(wanted=keys, cascade=st.booleans())
    def redo(self, wanted, cascade):
        key = self.key(wanted)
        begun = self.ask(lambda: self.model.redo(key, cascade), lambda: self.handle.redo(key, cascade=cascade))
        if begun:
            self.tokens.append(begun.token)

    @rule(wanted=st.sets(keys, min_size=1, max_size=2))
    def skip(self, wanted):
        chosen = sorted({self.key(key) for key in wanted})
        self.ask(lambda: self.model.skip(chosen), lambda: self.handle.skip(*chosen, reason="not needed"))

    @rule(force=st.sampled_from((False, False, True)))
    def complete(self, force):
        self.ask(lambda: self.model.complete(force), lambda: self.handle.complete(force=force))

    @rule(really=st.sampled_from((False, False, False, True)))
    def cancel(self, really):
        if really:
            self.ask(self.model.cancel, lambda: self.handle.cancel("no longer wanted"))

    @precondition(lambda self: len(self.ended) < 4)
    @rule(needs=graphs(), meanwhile=st.sampled_from((False, False, True)))
    def start_another(self, needs, meanwhile):
        if self.model.ended or (meanwhile and not self.torn):
            self.start_session(needs)

    @rule()
    def reopen(self):
        self.project.close()
        self.project = self.opened()
        self.handle = self.project.session(self.handle.id)

    @rule()
    def lose_every_document(self):
        self.project.flush()
        for path in self.directory.glob(".workflow/**/*.json"):
            path.unlink()
        self.project.rebuild()

    @precondition(lambda self: not self.torn and not self.model.ended)
    @rule(size=st.integers(1, 300))
    def tear_the_journal(self, size):
        with (self.directory / ".workflow" / self.handle.id / "journal.jsonl").open("ab") as file:
            file.write(b"x" * size)
        self.torn = True

    @precondition(lambda self: not self.model.ended)
    @rule(wanted=keys, status=st.sampled_from(("completed", "failed", "in_progress")))
    def edit_by_hand(self, wanted, status):
        """A person sets one phase in the state document; Detent takes it as the command it amounts to."""
        key = self.key(wanted)
        self.project.flush()
        document = json.loads(self.state_file.read_text())
        if key not in document["phases"] or document["phases"][key]["status"] not in ("pending", "in_progress"):
            return
        document["phases"][key]["status"] = status
        document["active_workflow"]["phase_status"][key] = status
        before, changed = self.handle.state, status != self.model.status[key]
        self.state_file.write_text(json.dumps(document, indent=1))

        (adoption,) = self.project.reconcile()

        trial = Model(self.model.needs)
        trial.status, trial.attempt = dict(self.model.status), dict(self.model.attempt)
        allowed = trial.status[key] == "in_progress" or trial.begin(key)
        if allowed and status in ("completed", "failed"):
            trial.end_attempt(key, status)
        assert adoption.adopted == allowed
        if allowed:
            trial.commits = self.model.commits + changed
            self.model, self.torn = trial, self.torn and not changed
            if trial.ended:
                self.ended[self.handle.id] = trial.ended
        else:
            assert adoption.reasons
            assert (self.directory / ".workflow" / adoption.kept).read_text() == json.dumps(document, indent=1)
            assert self.handle.state == before

    @precondition(lambda self: not self.model.ended)
    @rule(text=st.text(max_size=20) | st.sampled_from(("", "{}", "[]", "null", '{"active_workflow": 3}', "{" * 50)))
    def write_nonsense_by_hand(self, text):
        self.project.flush()
        before = self.handle.state
        self.state_file.write_text(text)
        self.written.append(self.state_file.read_bytes())

        (adoption,) = self.project.reconcile()

        assert not adoption.adopted
        assert adoption.reasons
        assert self.handle.state == before

    @invariant()
    def the_state_is_what_the_model_says(self):
        if not hasattr(self, "model"):
            return
        state = self.handle.state
        assert {key: str(phase.status) for key, phase in state.phases.items()} == self.model.status
        assert {key: phase.attempt for key, phase in state.phases.items()} == self.model.attempt
        assert (state.ended_at is not None, str(state.status)) == (bool(self.model.ended), self.model.ended or "active")
        assert state.version == self.model.commits

    @invariant()
    def the_doctor_finds_nothing(self):
        self.project.flush()
        found = [finding for finding in check(self.project) if "unfinished write" not in finding.message]
        assert found == []

    @invariant()
    def replaying_the_journal_gives_what_the_last_commit_recorded(self):
        if not hasattr(self, "handle"):
            return
        session, recorded = None, ""
        for commit in self.handle.log():
            session, recorded = evolve(session, commit), commit.state
        assert session is not None
        assert fingerprint(session) == recorded
        assert session == self.handle.state

    @invariant()
    def the_documents_agree_with_the_model_in_every_redundant_field(self):
        self.project.flush()
        if not hasattr(self, "model") or self.project.active() != self.handle.id:
            return
        document = json.loads(self.state_file.read_text())
        flow = document["active_workflow"]
        shown = {key: status for key, status in self.model.status.items() if status != "skipped"}
        assert flow["phase_status"] == shown
        assert {key: record["status"] for key, record in document["phases"].items()} == shown
        assert set(flow["phases"]) == set(shown)
        assert document["current_phase"] == flow["current_phase"]
        assert flow["current_phase_index"] == sum(status == "completed" for status in shown.values())
        live = [key for key in flow["phases"] if shown[key] == "in_progress"]
        assert not live or document["current_phase"] == live[0]
        assert document["state_version"] == self.handle.state.state_version
        own = json.loads((self.directory / ".workflow" / self.handle.id / "workflow-session.json").read_text())
        assert {phase["key"]: phase["status"] for phase in own["phases"]} == self.model.status
        assert (own["version"], own["current_phase"]) == (self.model.commits, document["current_phase"])

    @invariant()
    def each_session_that_ended_has_one_line_in_the_history(self):
        self.project.flush()
        lines = [(entry["session_id"], entry["status"]) for entry in self.project.history()]
        assert sorted(lines) == sorted(self.ended.items())

    @invariant()
    def nothing_that_was_written_by_hand_is_gone(self):
        kept = [path.read_bytes() for path in self.directory.glob(".workflow/state.json.rejected-*")]
        assert all(text in kept for text in self.written)


TestEngine = EngineMachine.TestCase
TestEngine.settings = settings(
    max_examples=examples(35),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
