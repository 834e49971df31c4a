"""A record is verified on its own: an honest one holds, and a forged one is found, with the commit."""

import json
from pathlib import Path

import msgspec
import pytest

from detent.config.place import at_root
from detent.config.settings import Settings, parse_settings
from detent.core.actor import ActorKind, Assurance, Proof
from detent.core.gate.evidence import RanBy, Receipt, Result
from detent.core.session.events import (
    BaselineRecorded,
    CheckpointTaken,
    EscalationRaised,
    GateApproved,
    GateChecked,
    ImportedPhase,
    PhaseBegun,
    PhaseFinished,
    PhaseRedone,
    PhasesImported,
    PhaseSkipped,
    QuestionAnswered,
    RolledBack,
    SessionCancelled,
    SessionCompleted,
    TaskWritten,
    VoteCast,
)
from detent.core.task.document import new_document
from detent.core.testrun.baseline import KnownTests
from detent.doctor.verification import Demands, verify_bundle, verify_session
from detent.doctor.verified import Outcome
from detent.engine.bundles.exporting import export_session
from detent.engine.bundles.importing import import_session
from detent.engine.project import Project, open_project
from detent.errors import Corrupt, DetentError
from detent.store.memory import MemoryStore
from tests.support.gated import UNITTEST, calculator, started
from tests.support.people import ME
from tests.support.project import build_project
from tests.support.records import AGENT, PRETENDER, add, alter, append_by_hand, problems, tampered, verified_elsewhere
from tests.support.values import TickingClock, actor

CHECK, APPROVAL = '{ kind = "command", command = "true" }', '{ kind = "approval" }'
SIGNED = Demands(assurance=Assurance.SIGNED)


@pytest.fixture
def tmp_path(quick_path):
    """In memory: these tests sync a lot."""
    return quick_path


def worked(root, gates, *, finish=True, **settings):
    """A project with a session whose first phase was done; its gates are the given ones."""
    project, session = started(root, gates, clock=TickingClock(), **settings)
    (root / "a.txt").write_text("work\n")
    for judged in session.gates.judgements()["work"]:
        if judged.kind == "approval":
            session.approve("looked at it", gate=judged.gate)
        elif judged.kind in ("command", "tests"):
            session.gates.run(judged.gate, phase="work")
    if finish:
        session.finish("done")
    project.flush()
    return project, session


@pytest.fixture
def honest(tmp_path):
    """The bundle of an honest session with a check and an approval."""
    project, session = worked(tmp_path / "project", f"{CHECK}, {APPROVAL}")
    with project:
        export_session(project, session.id, tmp_path / "record.bundle")
    return tmp_path / "record.bundle"


@pytest.fixture
def unfinished(tmp_path):
    """The bundle of a session whose gates are closed."""
    project, session = started(tmp_path / "project", f"{CHECK}, {APPROVAL}", clock=TickingClock())
    with project:
        export_session(project, session.id, tmp_path / "record.bundle")
    return tmp_path / "record.bundle"


# What holds


def test_an_honest_record_holds_here_and_elsewhere(tmp_path):
    calculator(tmp_path)
    tests = f'{{ kind = "tests", command = "{UNITTEST}" }}'
    gates = f'{tests}, {APPROVAL}, {{ kind = "artifacts", paths = ["a.txt"] }}, {{ kind = "changes" }}'
    project, session = worked(tmp_path, gates)
    with project:
        session.begin("after")
        session.checkpoints.rollback("POST_work_v1", remove_unknown=True)
        session.checkpoints.undo()
        session.finish("all done")
        project.flush()

        here = verify_session(project, session.id, Demands(completed=True))
        there = verified_elsewhere(project, session.id, tmp_path / ".workflow", Demands(completed=True))

    assert problems(here) == []
    assert problems(there) == []
    assert here.is_sound
    assert (here.commits, here.sum, here.gates) == (there.commits, there.sum, there.gates)
    assert (here.finishes, here.gates) == (2, 4)
    assert [(one.decision, one.by) for one in here.decisions] == [("approve", ME), *[("rollback", ME)] * 2]
    notes = [check.message for check in there.findings]
    assert any("attended decisions rest on the word of the machine" in note for note in notes)
    assert any("receipts of checks rest on the word of the machine" in note for note in notes)


def test_a_record_in_memory_holds_as_one_in_files(honest, tmp_path):
    (tmp_path / "memory").mkdir()
    with Project(MemoryStore(), at_root(str(tmp_path / "memory")), Settings(), actor=actor()) as memory:
        session = import_session(memory, honest)
        result = verify_session(memory, session.id)

    assert problems(result) == []
    assert result.commits == verify_bundle(honest).commits


def test_every_changed_byte_of_a_bundle_is_found(honest, tmp_path):
    data = honest.read_bytes()
    bad = tmp_path / "bad"

    for at in range(0, len(data), 13):
        bad.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            result = verify_bundle(bad)
        except DetentError:
            continue
        assert not result.is_sound, at


def test_the_bundle_of_a_damaged_project_is_not_written_and_its_record_does_not_hold(tmp_path):
    project, session = worked(tmp_path / "project", CHECK)
    with project:
        journal = Path(project.store.location(f"{session.id}/journal.jsonl"))
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([lines[0], lines[1].replace(b"true", b"flse"), *lines[2:]]))

        result = verify_session(project, session.id)
        with pytest.raises(Corrupt, match="damaged"):
            export_session(project, session.id, tmp_path / "x")

    assert [check.outcome for check in result.findings] == [Outcome.WRONG]
    assert "damaged" in problems(result)[0]
    assert not (tmp_path / "x").exists()


# Forged decisions


def test_an_approval_that_was_appended_by_hand_is_found_with_its_commit(tmp_path):
    project, session = started(tmp_path / "project", APPROVAL, clock=TickingClock())
    with project:
        vote = VoteCast(phase="work", gate="approval", approver="ada", approve=True, reason="ok")
        append_by_hand(project, session.id, vote, actor=AGENT)

        found = problems(verify_session(project, session.id))

    assert found[0] == (
        "wrong 2: approve of work (approval) is a person's decision, and the commit of claude has no proof of one"
    )


@pytest.mark.parametrize(
    "event",
    [
        VoteCast(phase="work", gate="approval", approver="ada", approve=True, reason="ok"),
        GateApproved(phase="work", gate="command", reason="ok"),
        PhaseSkipped(phase="after", reason="not needed"),
        SessionCompleted(forced=True),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_decision_without_a_signature_is_found_where_one_is_asked_for(unfinished, event):
    by_agent = problems(verify_bundle(tampered(unfinished, add(event, actor=AGENT))))
    pretended = tampered(unfinished, add(event, actor=PRETENDER))

    assert any("wrong 2" in line and "no proof" in line for line in by_agent)
    assert problems(verify_bundle(pretended)) == []
    [found] = problems(verify_bundle(pretended, SIGNED))
    assert "by ada is attended, and signed is needed" in found


@pytest.mark.parametrize("assurance", [Assurance.SIGNED, Assurance.HARDWARE])
def test_an_assurance_that_nothing_was_signed_for_is_found(unfinished, assurance):
    proof = Proof(assurance=assurance, method="ssh", identity="ada")
    liar = msgspec.structs.replace(PRETENDER, proof=proof)
    forged = tampered(unfinished, add(GateApproved(phase="work", gate="command", reason="ok"), actor=liar))

    [found] = problems(verify_bundle(forged))

    assert f"says that it is {assurance}, and nothing is signed" in found


def test_a_proof_of_another_than_a_person_is_found(unfinished):
    run = msgspec.structs.replace(PRETENDER, kind=ActorKind.RUNNER)
    forged = tampered(unfinished, add(GateApproved(phase="work", gate="command", reason="ok"), actor=run))

    [found] = problems(verify_bundle(forged))

    assert "it is by runner ada, by terminal" in found


def test_a_vote_for_another_and_a_vote_of_no_approver_are_found(tmp_path):
    gates = '{ kind = "consensus", approvers = ["bob", "cem"], quorum = 1 }'
    project, session = started(tmp_path / "project", gates, more='[decisions.roles]\nx = ["bob"]\n')
    with project:
        export_session(project, session.id, tmp_path / "x")

    def vote(approver):
        return VoteCast(phase="work", gate="consensus", approver=approver, approve=True, reason="ok")

    own = problems(verify_bundle(tampered(tmp_path / "x", add(vote("ada"), actor=PRETENDER))))
    other = problems(verify_bundle(tampered(tmp_path / "x", add(vote("bob"), actor=PRETENDER))))

    assert own == ["wrong 2: ada is not an approver of consensus; bob, cem are"]
    assert other == ["wrong 2: the vote of bob was cast by ada"]


def test_a_role_is_filled_by_the_settings_of_the_verifier_and_not_by_the_session(tmp_path):
    gates = '{ kind = "consensus", approvers = ["architect"], quorum = 1 }'
    roles = '[decisions.roles]\narchitect = ["NAME"]\n'
    project, session = worked(tmp_path / "project", gates, finish=False, more=roles.replace("NAME", ME))
    with project:
        session.approve("looked at it", gate="consensus")
        text = f'{roles}[workflows.short]\nphases = [{{ key = "work", gates = [{gates}] }}, "after"]\n'

        def found(name):
            demands = Demands(settings=parse_settings(text.replace("NAME", name), "base.toml"))
            return problems(verify_session(project, session.id, demands))

        assert found(ME) == []
        assert found("bob") == [f"wrong 2: {ME} is not an approver of consensus; architect (bob) are"]


def test_a_lowered_quorum_is_said_and_wrong_where_decisions_must_be_proven(tmp_path):
    gates = '{ kind = "consensus", approvers = ["bob", "cem"], quorum = 2 }'
    project, _ = started(tmp_path / "project", gates, more='[decisions.roles]\nx = ["bob", "cem"]\n')
    with project:
        session = project.start("short", "try it again", quorum=1)

        assert problems(verify_session(project, session.id)) == []
        assert problems(verify_session(project, session.id, SIGNED)) == [
            "wrong 1: the quorum of consensus was lowered when the session started, and nothing proves who decided that"
        ]
        assert any("was lowered" in check.message for check in verify_session(project, session.id).findings)


# Forged work


def finished(phase="work", attempt=1):
    return PhaseFinished(phase=phase, attempt=attempt, summary="done")


def test_a_finish_past_closed_gates_is_found(unfinished):
    found = problems(verify_bundle(tampered(unfinished, add(finished()))))

    assert "wrong 2: work was finished, and its gate command was PENDING: no run yet" in found
    assert any("its gate approval was PENDING" in line for line in found)


AFTER = (PhaseBegun(phase="after", attempt=1), finished("after"))
RECEIPT = Receipt(result=Result.PASSED, command="true", exit_code=0, inputs="0" * 32)


@pytest.mark.parametrize(
    ("receipt", "told"),
    [
        (Receipt(result=Result.PASSED, command="true", exit_code=1, inputs="0"), "passed with the exit code 1"),
        (Receipt(result=Result.PASSED, command="true", inputs="0"), "passed with the exit code None"),
        (Receipt(result=Result.PASSED, command=":", exit_code=0, inputs="0"), "the command of the gate is `true`"),
        (Receipt(result=Result.PASSED, command="true", exit_code=0), "it names no input files"),
    ],
)
def test_a_receipt_that_no_run_leaves_is_found(unfinished, receipt, told):
    forged = tampered(unfinished, add(GateChecked(phase="work", gate="command", receipt=receipt)))

    [found] = problems(verify_bundle(forged))

    assert found.startswith("wrong 2: the receipt of gate command of work is of no run")
    assert told in found


def test_a_receipt_without_its_evidence_is_not_taken_for_checked(unfinished):
    checked = GateChecked(phase="work", gate="command", receipt=RECEIPT)
    opened = GateApproved(phase="work", gate="approval", reason="ok")

    def change(known):
        return add(finished())(add(opened, actor=PRETENDER)(add(checked)(known)))

    assert problems(verify_bundle(tampered(unfinished, change))) == [
        "unchecked 4: no checkpoint has all files that work was finished with, which command looked at"
    ]


def test_a_receipt_for_other_files_than_those_of_the_finish_is_found(tmp_path):
    project, session = worked(tmp_path / "project", CHECK, finish=False)
    with project:
        (tmp_path / "project" / "b.py").write_text("added after the run\n")
        session.approve("opened by hand", gate="command")
        session.finish("done")
        export_session(project, session.id, tmp_path / "x")
    assert problems(verify_bundle(tmp_path / "x")) == []

    forged = tampered(tmp_path / "x", without_approval)

    [found] = problems(verify_bundle(forged))
    assert found == (
        "wrong 3: work was finished, and its gate command was STALE: b.py changed after the run that passed"
    )


def without_approval(known):
    kept = [commit for commit in known if not any(isinstance(event, GateApproved) for event in commit.events)]
    return [msgspec.structs.replace(commit, version=number) for number, commit in enumerate(kept, 1)]


def test_evidence_that_was_changed_is_found(honest):
    with_digests = next(name for name in parts(honest) if name.startswith("files/evidence/"))
    changed = json.dumps({"a.txt": "0" * 32}).encode()

    found = problems(verify_bundle(tampered(honest, list, **{with_digests: changed})))
    gone = problems(verify_bundle(tampered(honest, list, **{with_digests: None})))

    assert any("are not those that were recorded" in line for line in found)
    assert any(line.startswith("unchecked") and "are missing" in line for line in gone)


def parts(path):
    import tarfile

    with tarfile.open(path) as tar:
        return tar.getnames()


def test_a_missing_manifest_is_said(honest):
    manifests = {name: None for name in parts(honest) if name.startswith("objects/")}

    found = problems(verify_bundle(tampered(honest, list, **manifests)))

    assert found
    assert all(line.startswith("unchecked") for line in found)


def test_an_artifact_that_is_in_no_checkpoint_is_said(tmp_path):
    project, session = worked(tmp_path / "project", '{ kind = "artifacts", paths = ["a.txt"] }')
    with project:
        export_session(project, session.id, tmp_path / "x")

    def elsewhere(commit):
        start, *rest = commit.events
        gate = msgspec.structs.replace(start.workflow.phases[0].gates[0], paths=("never.txt",))
        first = msgspec.structs.replace(start.workflow.phases[0], gates=(gate,))
        workflow = msgspec.structs.replace(start.workflow, phases=(first, *start.workflow.phases[1:]))
        return msgspec.structs.replace(commit, events=(msgspec.structs.replace(start, workflow=workflow), *rest))

    [found] = problems(verify_bundle(tampered(tmp_path / "x", alter(1, elsewhere))))

    assert found.startswith("unchecked 2: never.txt must exist for work and is in no checkpoint")


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (PhaseBegun(phase="after", attempt=1), "after was begun before work"),
        (finished(attempt=2), "attempt 2 of work ended, and attempt 1 was in progress"),
        (SessionCompleted(), "the session was completed without work, after"),
        (GateChecked(phase="after", gate="command", receipt=RECEIPT), "got evidence while the phase was pending"),
        (GateChecked(phase="work", gate="nothing", receipt=RECEIPT), "work has no gate nothing"),
        (GateChecked(phase="work", gate="approval", receipt=RECEIPT), "has a receipt, and no run opens it"),
        (VoteCast(phase="work", gate="command", approver="ada", approve=True), "has a vote, and no vote opens it"),
    ],
)
def test_an_event_that_the_rules_forbid_is_found(unfinished, event, told):
    found = problems(verify_bundle(tampered(unfinished, add(event, actor=PRETENDER))))

    assert any(line.startswith("wrong 2") and told in line for line in found)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([finished(), PhaseBegun(phase="after", attempt=7)], "after was begun as attempt 7 after attempt 0"),
        (
            [EscalationRaised(kind="x", phase="work", detail="y"), finished(), PhaseBegun(phase="after", attempt=1)],
            "after was begun while a person had to decide",
        ),
        (
            [finished(), PhaseBegun(phase="after", attempt=1), PhaseRedone(phase="work", attempt=2)],
            "work was begun again, and after built on it",
        ),
        (
            [SessionCancelled(reason="x"), GateApproved(phase="work", gate="command", reason="ok")],
            "work went on after the session was cancelled",
        ),
        ([QuestionAnswered(phase="work", gate="command")], "has an answer, and no answer opens it"),
        (
            [RolledBack(id="1", to="never-was", name="PRE_work_v1", safety="2")],
            "rolled back to PRE_work_v1, and the journal has no such checkpoint",
        ),
        (
            [
                TaskWritten(task="IMPL-1", document=new_document("IMPL-1", "A task")),
                finished(),
                *AFTER,
                SessionCompleted(),
            ],
            "the session was completed with open tasks",
        ),
        ([PhasesImported(source="x", phases={"work": ImportedPhase(status="completed")})], "a session starts once"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_events_that_the_rules_forbid_one_after_another_are_found(unfinished, events, told):
    found = problems(verify_bundle(tampered(unfinished, add(*events, actor=PRETENDER))))

    assert any(line.startswith("wrong 2") and told in line for line in found), found


def test_a_session_that_was_completed_before_its_review_is_found(tmp_path):
    project, session = started(tmp_path / "project", "", more="[supervised]\n", clock=TickingClock())
    with project:
        session.finish("done")
        export_session(project, session.id, tmp_path / "x")
    forged = tampered(tmp_path / "x", add(PhaseSkipped(phase="after", reason="x"), SessionCompleted(), actor=PRETENDER))

    assert "wrong 3: the session was completed before the review of work" in problems(verify_bundle(forged))


def test_a_phase_that_changed_nothing_is_found_if_it_had_to(tmp_path):
    project, session = started(tmp_path / "project", '{ kind = "changes" }', clock=TickingClock())
    with project:
        (tmp_path / "project" / "a.txt").write_text("work\n")
        session.finish("done")
        export_session(project, session.id, tmp_path / "x")
    assert problems(verify_bundle(tmp_path / "x")) == []

    def unchanged(known):
        taken = known[0].events[-1]
        events = [
            msgspec.structs.replace(event, tree=taken.tree) if isinstance(event, CheckpointTaken) else event
            for event in known[1].events
        ]
        return [known[0], msgspec.structs.replace(known[1], events=tuple(events))]

    [found] = problems(verify_bundle(tampered(tmp_path / "x", unchanged)))
    assert "its gate changes was FAIL: no file has changed since the phase began" in found


def test_files_that_no_checkpoint_took_are_not_taken_for_changed(tmp_path):
    settings = '[checkpoint]\ncapture = "declared"\n'
    calculator(tmp_path / "project")
    project, session = worked(tmp_path / "project", CHECK, more=settings)
    with project:
        [found] = problems(verify_session(project, session.id))

    assert found.startswith("unchecked 3: no checkpoint has all files that work was finished with")


def test_the_phases_that_a_size_leaves_out_are_no_decision_and_all_others_are(tmp_path):
    phases = '["work", "extra", "after"]\nsizes = { small = ["extra"] }'
    project, session = started(tmp_path / "project", "", phases=phases, clock=TickingClock())
    with project:
        export_session(project, session.id, tmp_path / "x")

    def skipping(phase):
        def change(commit):
            start, begun, *rest = commit.events
            return msgspec.structs.replace(
                commit, actor=AGENT, events=(start, PhaseSkipped(phase=phase, reason="size small"), begun, *rest)
            )

        return problems(verify_bundle(tampered(tmp_path / "x", alter(1, change))))

    assert skipping("extra") == []
    assert "skip of after is a person's decision" in skipping("after")[0]


def test_a_decision_that_says_not_who_decided_is_found(unfinished):
    nobody = msgspec.structs.replace(PRETENDER, proof=Proof(assurance=Assurance.ATTENDED, method="tty"))
    forged = tampered(unfinished, add(GateApproved(phase="work", gate="command", reason="ok"), actor=nobody))

    assert problems(verify_bundle(forged)) == ["wrong 2: approve of work (command) does not say who decided"]


def test_a_baseline_that_was_recorded_again_is_found(unfinished):
    def tests(count):
        return add(BaselineRecorded(command="pytest", tests=KnownTests(count=count)))

    [found] = problems(verify_bundle(tampered(unfinished, lambda known: tests(1)(tests(9)(known)))))

    assert found == "wrong 3: the baseline of `pytest` was recorded again, and only a person replaces one"


def test_a_rollback_that_brings_back_what_never_was_is_found(tmp_path):
    project, session = worked(tmp_path / "project", APPROVAL)
    with project:
        session.checkpoints.rollback("PRE_work_v1", remove_unknown=True)
        export_session(project, session.id, tmp_path / "x")
    assert problems(verify_bundle(tmp_path / "x")) == []

    def completed(commit):
        events = [
            msgspec.structs.replace(event, phases={}) if hasattr(event, "undoes") else event for event in commit.events
        ]
        return msgspec.structs.replace(commit, events=tuple(events))

    found = problems(verify_bundle(tampered(tmp_path / "x", alter(4, completed))))

    assert "wrong 4: the rollback to PRE_work_v1 brought back other phases or tasks than its checkpoint has" in found


def test_a_state_that_a_commit_does_not_lead_to_is_found(honest, monkeypatch):
    monkeypatch.setattr("tests.support.records.fingerprint", lambda _: "00ff")

    found = problems(verify_bundle(tampered(honest, list)))

    assert found[0].startswith("wrong 1: replaying it gives state ")
    assert "it recorded 00ff" in found[0]


def test_a_journal_of_another_session_is_found(honest):
    def renamed(commit):
        start, *rest = commit.events
        other = msgspec.structs.replace(start, session="WFS-other")
        return msgspec.structs.replace(commit, events=(other, *rest))

    assert "is not that of 'WFS-try-it'" in problems(verify_bundle(tampered(honest, alter(1, renamed))))[0]


def test_a_journal_that_was_copied_to_another_name_is_found(honest, tmp_path):
    (tmp_path / "memory").mkdir()
    with Project(MemoryStore(), at_root(str(tmp_path / "memory")), Settings(), actor=actor()) as memory:
        first, *rest = import_session(memory, honest).log()
        memory.store.create("WFS-copy", first, rest)

        found = problems(verify_session(memory, "WFS-copy"))

    assert "wrong 1: the journal does not begin with the start of WFS-copy" in found


def test_a_receipt_that_an_agent_showed_may_have_no_exit_code(tmp_path):
    calculator(tmp_path / "project")
    project, session = started(tmp_path / "project", '{ kind = "tests" }', clock=TickingClock())
    with project:
        seen = Receipt(result=Result.PASSED, command="pytest", by=RanBy.SEEN, inputs="0" * 32)
        session.gates.record("tests", phase="work", receipt=seen)

        assert problems(verify_session(project, session.id)) == []


# What the verifier asks for


def test_a_session_that_is_not_completed_is_told_if_that_is_asked_for(honest):
    [found] = problems(verify_bundle(honest, Demands(completed=True)))

    assert found == "wrong 0: the session is active, not completed; after are not finished"


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ('{ key = "work", gates = [CHECK, APPROVAL] }, "after"', None),
        ('{ key = "work", gates = [CHECK] }, "after"', None),
        ('{ key = "work", gates = [CHECK, APPROVAL, { kind = "delegation" }] }, "after"', None),
        ('{ key = "work", gates = [CHECK, APPROVAL] }, "review", "after"', "has no phase review"),
        ('{ key = "work", gates = [CHECK, APPROVAL] }, { key = "after", gates = [APPROVAL] }', "no gate approval"),
        ('{ key = "work", gates = [CHECK, { kind = "approval", approvers = ["ada"] }] }, "after"', "gate approval"),
        (
            '{ key = "work", gates = [CHECK, { kind = "approval", assurance = "hardware" }] }, "after"',
            "less assurance than in the settings",
        ),
        ('{ key = "work", gates = [{ kind = "command", command = "make" }, APPROVAL] }, "after"', "gate command"),
    ],
)
def test_a_session_that_pinned_looser_gates_than_the_settings_is_found(honest, declared, told):
    text = f"[workflows.short]\nphases = [{declared.replace('CHECK', CHECK).replace('APPROVAL', APPROVAL)}]\n"

    found = problems(verify_bundle(honest, Demands(settings=parse_settings(text, "detent.toml"))))

    assert found == [] if told is None else any(told in line and line.startswith("wrong 1") for line in found)


@pytest.mark.parametrize(
    ("base", "own", "told"),
    [
        ("", 'gates = "off"\n', "has its gates off"),
        ("", 'sizes = { small = ["after"] }', "the sizes of short are others"),
        ("", '{ key = "work", rewrites_tests = true }', "work may rewrite tests"),
        ("", '{ key = "after", needs = [] }', "after does not need work"),
    ],
)
def test_a_session_that_was_started_with_looser_settings_is_found(tmp_path, base, own, told):
    def text(changed):
        phases = ['"work"', '"after"']
        if changed.startswith("{"):
            phases[0 if "work" in changed else 1] = changed
        sizes, more = (changed, "") if changed.startswith("sizes") else ("", changed)
        head = more if more.startswith("gates") else ""
        return f"{head}[workflows.short]\nphases = [{', '.join(phases)}]\n{sizes}\n"

    build_project(tmp_path / "project", text(own), files={"a.txt": "one\n"})
    with open_project(tmp_path / "project", actor="tester", clock=TickingClock()) as project:
        session = project.start("short", "try it")
        result = verify_session(project, session.id, Demands(settings=parse_settings(text(base), "base.toml")))

    assert any(line.startswith("wrong 1") and told in line for line in problems(result))


def test_other_settings_of_decisions_gates_and_workflows_are_found(honest):
    def found(text):
        return problems(verify_bundle(honest, Demands(settings=parse_settings(text, "detent.toml"))))

    short = f'[workflows.short]\nphases = [{{ key = "work", gates = [{CHECK}, {APPROVAL}] }}, "after"]\n'
    assert found(short) == []
    assert "asks for signed" in found(f'[decisions]\nassurance = "signed"\n{short}')[0].replace("ask for", "asks for")
    assert "not supervised" in found(f"[supervised]\n{short}")[0]
    assert "do not have the workflow" in found("")[0]


def test_the_files_of_a_checkout_are_compared_with_the_last_checkpoint(honest, tmp_path):
    demands = Demands(files=str(tmp_path / "project"))
    assert problems(verify_bundle(honest, demands)) == []
    (tmp_path / "project" / ".detent").mkdir()
    (tmp_path / "project" / ".detent" / "WFS-try-it.bundle").write_bytes(honest.read_bytes())
    assert problems(verify_bundle(honest, demands)) == []

    (tmp_path / "project" / "a.txt").write_text("other work\n")
    (tmp_path / "project" / "b.txt").write_text("slipped in\n")

    [found] = problems(verify_bundle(honest, demands))
    assert found.endswith("are not those of the last checkpoint: a.txt, b.txt")
