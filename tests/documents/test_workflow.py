"""The workflow document: which moves are legal, what its files look like, and that no writer loses anything."""

import copy
import itertools
import json
import threading
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.clients.registry import generated_files, guarded_files
from detent.core.session.session import SessionStatus
from detent.core.session.status import Status
from detent.documents.workflow import (
    ARCHIVE,
    MARKDOWN,
    STATE,
    check,
    create_workflow_state,
    file,
    from_session,
    generate_markdown,
    get_workflow_state,
    new,
    todos,
    update_phase_status,
    with_phase_status,
)
from detent.errors import Corrupt, DetentError, Invalid, NotFound, Refused, StoreFailed
from tests.support.values import NOON, diamond, opened, row, session_at
from tests.support.workers import ROUNDS, forked, write_rounds

TASK = "Create calculator.py with tests and verify they pass"
PHASES = [("Create calculator module", "general-purpose"), ("Write and run tests", "task-completion-verifier")]
AT = datetime(2025, 1, 5, 14, 30, 22, tzinfo=UTC)
STATUSES = ("pending", "active", "completed", "failed")

WORKFLOW_KEYS = ["id", "task", "status", "current_phase", "phases"]
PHASE_KEYS = ["id", "title", "agent", "status", "deliverables", "context_for_next"]


def workflow(*statuses: str, current: int | None = None) -> dict[str, Any]:
    """Phases that stand as told."""
    doc = new("wf_20250105_143022", TASK, [(f"Step {index}", "agent") for index in range(len(statuses))])
    for phase, status in zip(doc["phases"], statuses, strict=True):
        phase["status"] = status
    doc["current_phase"] = None if current is None else f"phase_{current}"
    return doc


def stands(doc: dict[str, Any]) -> tuple[str, str | None, list[str]]:
    return doc["status"], doc["current_phase"], [phase["status"] for phase in doc["phases"]]


def moved(doc: dict[str, Any], index: int, status: str, **how: Any) -> tuple[str, str | None, list[str]]:
    return stands(with_phase_status(doc, f"phase_{index}", status, **how))


def test_a_new_workflow_has_exactly_the_keys_of_the_document() -> None:
    doc = new("wf_20250105_143022", TASK, PHASES)

    assert list(doc) == WORKFLOW_KEYS
    assert [list(phase) for phase in doc["phases"]] == [PHASE_KEYS, PHASE_KEYS]
    assert doc == {
        "id": "wf_20250105_143022",
        "task": TASK,
        "status": "pending",
        "current_phase": None,
        "phases": [
            {
                "id": f"phase_{index}",
                "title": title,
                "agent": agent,
                "status": "pending",
                "deliverables": [],
                "context_for_next": "",
            }
            for index, (title, agent) in enumerate(PHASES)
        ],
    }


def test_phases_are_pairs_or_objects() -> None:
    as_objects = [{"title": title, "agent": agent} for title, agent in PHASES]

    assert new("wf_1", TASK, as_objects) == new("wf_1", TASK, PHASES) == new("wf_1", TASK, [list(p) for p in PHASES])


def test_everything_that_is_wrong_with_a_new_workflow_is_told_at_once() -> None:
    with pytest.raises(Invalid) as refusal:
        new("wf_1", "  ", [("a", "b"), ("", "b"), "ab", ("a",), {"title": "a"}, None, ("a", 1)])

    assert len(refusal.value.problems) == 7
    with pytest.raises(Invalid, match="no phases"):
        new("wf_1", TASK, [])


LEGAL = {("pending", "active"), ("active", "completed"), ("active", "failed"), ("failed", "active")}
FORCED = LEGAL | {("completed", "active"), ("pending", "completed"), ("pending", "failed")}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATUSES, STATUSES)))
@pytest.mark.parametrize("force", [False, True])
def test_every_move_of_a_phase_is_legal_or_refused(before: str, after: str, force: bool) -> None:
    doc = workflow(before, "pending", current=0)
    untouched = copy.deepcopy(doc)

    if before == after or (before, after) in (FORCED if force else LEGAL):
        assert moved(doc, 0, after, force=force)[2][0] == after
    else:
        with pytest.raises(Refused, match=f"phase_0 is {before}"):
            moved(doc, 0, after, force=force)
    assert doc == untouched


def test_starting_the_first_phase_starts_the_workflow() -> None:
    assert moved(workflow("pending", "pending"), 0, "active") == ("active", "phase_0", ["active", "pending"])


def test_completing_the_current_phase_starts_the_lowest_pending_one() -> None:
    doc = workflow("completed", "active", "completed", "pending", "pending", current=1)

    assert moved(doc, 1, "completed") == (
        "active",
        "phase_3",
        ["completed", "completed", "completed", "active", "pending"],
    )


def test_without_advance_the_next_phase_waits() -> None:
    doc = workflow("active", "pending", current=0)

    assert moved(doc, 0, "completed", advance=False) == ("active", "phase_0", ["completed", "pending"])


def test_a_phase_that_is_started_after_a_completed_one_becomes_current() -> None:
    doc = workflow("completed", "pending", current=0)

    assert moved(doc, 1, "active") == ("active", "phase_1", ["completed", "active"])


def test_completing_another_phase_does_not_move_the_current_one() -> None:
    doc = workflow("active", "active", "pending", current=0)

    assert moved(doc, 1, "completed") == ("active", "phase_0", ["active", "completed", "pending"])


def test_the_current_phase_stays_even_if_an_earlier_one_is_under_way() -> None:
    doc = workflow("active", "active", "active", current=1)

    assert moved(doc, 2, "completed")[1] == "phase_1"


def test_starting_another_phase_does_not_move_the_current_one() -> None:
    doc = workflow("active", "pending", current=0)

    assert moved(doc, 1, "active") == ("active", "phase_0", ["active", "active"])


def test_after_the_current_phase_comes_one_that_is_under_way_already() -> None:
    doc = workflow("active", "pending", "active", current=0)

    assert moved(doc, 0, "completed") == ("active", "phase_2", ["completed", "pending", "active"])


@pytest.mark.parametrize("advance", [True, False])
def test_the_last_phase_completes_the_workflow(advance: bool) -> None:
    doc = workflow("completed", "active", current=1)

    assert moved(doc, 1, "completed", advance=advance) == ("completed", None, ["completed", "completed"])


def test_the_last_phase_out_of_order_does_not_complete_the_workflow() -> None:
    doc = workflow("active", "active", current=0)

    assert moved(doc, 1, "completed") == ("active", "phase_0", ["active", "completed"])


def test_a_failure_fails_the_workflow_and_stays_current() -> None:
    doc = workflow("active", "pending", current=0)

    assert moved(doc, 0, "failed") == ("failed", "phase_0", ["failed", "pending"])


def test_a_retry_of_the_failed_phase_makes_the_workflow_active_again() -> None:
    doc = workflow("failed", "pending", current=0)

    assert moved(doc, 0, "active") == ("active", "phase_0", ["active", "pending"])


def test_nothing_advances_past_a_failed_phase() -> None:
    doc = workflow("active", "failed", "pending", current=0)

    assert moved(doc, 0, "completed") == ("failed", "phase_1", ["completed", "failed", "pending"])


def test_a_completed_phase_done_over_by_force_reopens_the_workflow() -> None:
    doc = workflow("completed", "completed")

    assert moved(doc, 0, "active", force=True) == ("active", "phase_0", ["active", "completed"])


def test_a_phase_that_nobody_saw_start_can_be_completed_by_force() -> None:
    doc = workflow("pending", "pending")

    assert moved(doc, 0, "completed", force=True) == ("active", "phase_1", ["completed", "active"])


def test_the_same_status_again_moves_nothing_and_still_takes_what_was_delivered() -> None:
    doc = workflow("completed", "active", current=1)

    again = with_phase_status(doc, "phase_0", "completed", deliverables=["late.py"])

    assert stands(again) == stands(workflow("completed", "active", current=1) | {"status": "active"})
    assert again["phases"][0]["deliverables"] == ["late.py"]


def test_none_keeps_what_the_phase_has_and_anything_else_replaces_it() -> None:
    doc = with_phase_status(workflow("active"), "phase_0", "active", deliverables=["a"], context_for_next="b")

    kept = with_phase_status(doc, "phase_0", "completed")["phases"][0]
    cleared = with_phase_status(doc, "phase_0", "completed", deliverables=[], context_for_next="")["phases"][0]

    assert (kept["deliverables"], kept["context_for_next"]) == (["a"], "b")
    assert (cleared["deliverables"], cleared["context_for_next"]) == ([], "")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("phase_9", "active"), NotFound),
        (("phase_0 ", "active"), NotFound),
        (("phase_0", "bogus"), Invalid),
        (("phase_0", ""), Invalid),
        (("phase_0", None), Invalid),
        (("phase_0", "active", "a.py"), Invalid),
        (("phase_0", "active", [1]), Invalid),
        (("phase_0", "active", None, 7), Invalid),
        (("phase_1", "completed"), Refused),
    ],
)
def test_what_is_refused_writes_nothing(arguments: tuple[Any, ...], error: type[DetentError], tmp_path: Any) -> None:
    id_ = create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    before = files(tmp_path)

    with pytest.raises(error):
        update_phase_status(id_, *arguments, root=tmp_path)

    assert files(tmp_path) == before


def test_another_workflow_id_writes_nothing(tmp_path: Any) -> None:
    create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    before = files(tmp_path)

    with pytest.raises(NotFound, match="wf_20250105_143022"):
        update_phase_status("wf_20250105_143021", "phase_0", "active", root=tmp_path)

    assert files(tmp_path) == before


moves = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(STATUSES), st.booleans(), st.booleans()), max_size=25)


@given(moves)
def test_whatever_is_done_to_it_the_document_is_consistent(steps: list[tuple[int, str, bool, bool]]) -> None:
    doc = workflow("pending", "pending", "pending", "pending")
    for index, status, advance, force in steps:
        try:
            doc = with_phase_status(doc, f"phase_{index}", status, advance=advance, force=force)
        except Refused:
            continue
        assert list(check(doc)) == WORKFLOW_KEYS
        statuses = [phase["status"] for phase in doc["phases"]]
        assert (doc["status"] == "completed") == (set(statuses) == {"completed"})
        assert (doc["status"] == "failed") == ("failed" in statuses)
        assert (doc["status"] == "pending") == (set(statuses) == {"pending"})
        assert (doc["current_phase"] is None) == (doc["status"] in ("pending", "completed"))
        if "active" in statuses and "failed" not in statuses:
            assert statuses[int(doc["current_phase"].removeprefix("phase_"))] == "active"


def test_the_markdown_is_the_template() -> None:
    doc = new("wf_20250105_143022", TASK, [*PHASES, ("Publish", "general-purpose")])
    doc = with_phase_status(doc, "phase_0", "active")
    doc = with_phase_status(doc, "phase_0", "completed", deliverables=["/path/to/calculator.py", "4 functions"])

    assert generate_markdown(doc) == (
        "# Workflow Status: Create calculator.py with tests and verify they pass\n"
        "\n"
        "Status: active | Current Phase: Write and run tests\n"
        "\n"
        "## Phases\n"
        "\n"
        "- [x] Phase 0: Create calculator module → /path/to/calculator.py, 4 functions\n"
        "- [ ] Phase 1: Write and run tests\n"
        "- [ ] Phase 2: Publish\n"
    )


def test_the_markdown_of_a_workflow_that_has_not_started_or_has_failed() -> None:
    doc = new("wf_20250105_143022", "Line one\nline two", [("A\r\n # B", "x")])
    failed = with_phase_status(with_phase_status(doc, "phase_0", "active"), "phase_0", "failed", deliverables=["a\nb"])

    assert generate_markdown(doc) == (
        "# Workflow Status: Line one line two\n\nStatus: pending | Current Phase: none\n\n## Phases\n\n"
        "- [ ] Phase 0: A # B\n"
    )
    assert generate_markdown(failed) == (
        "# Workflow Status: Line one line two\n\nStatus: failed | Current Phase: A # B\n\n## Phases\n\n"
        "- [ ] Phase 0: A # B (failed) → a b\n"
    )


@given(st.text(), st.lists(st.text(), max_size=3))
def test_no_text_adds_a_line_to_the_markdown(text: str, deliverables: list[str]) -> None:
    doc = new("wf_1", "x" + text, [("y" + text, "agent")])
    doc = with_phase_status(doc, "phase_0", "active", deliverables=deliverables)

    assert len(generate_markdown(doc).splitlines()) == 7


def test_the_todo_list_has_one_entry_for_each_phase() -> None:
    doc = workflow("completed", "active", "failed", "pending", current=1)

    assert todos(doc) == [
        {"content": "Step 0", "status": "completed", "activeForm": "Working on Step 0"},
        {"content": "Step 1", "status": "in_progress", "activeForm": "Working on Step 1"},
        {"content": "Step 2", "status": "pending", "activeForm": "Working on Step 2"},
        {"content": "Step 3", "status": "pending", "activeForm": "Working on Step 3"},
    ]


def test_a_workflow_of_one_phase_from_start_to_end(tmp_path: Any) -> None:
    id_ = create_workflow_state("Create one file", [("Create it", "general-purpose")], root=tmp_path, now=AT)
    assert stands(on_disk(tmp_path)) == ("pending", None, ["pending"])

    update_phase_status(id_, "phase_0", "active", root=tmp_path)
    update_phase_status(id_, "phase_0", "completed", ["one.py"], root=tmp_path)

    assert stands(on_disk(tmp_path)) == ("completed", None, ["completed"])
    assert "Status: completed | Current Phase: none" in (tmp_path / MARKDOWN).read_text("utf-8")


def test_a_workflow_of_two_phases_hands_its_context_on(tmp_path: Any) -> None:
    id_ = create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    update_phase_status(id_, "phase_0", "active", root=tmp_path)

    update_phase_status(id_, "phase_0", "completed", ["calculator.py"], "4 functions in calculator.py", root=tmp_path)
    between = on_disk(tmp_path)
    update_phase_status(id_, "phase_1", "completed", ["test_calculator.py"], root=tmp_path)

    assert stands(between) == ("active", "phase_1", ["completed", "active"])
    assert between["phases"][0]["deliverables"] == ["calculator.py"]
    assert between["phases"][0]["context_for_next"] == "4 functions in calculator.py"
    assert stands(on_disk(tmp_path)) == ("completed", None, ["completed", "completed"])


def test_the_todo_list_follows_the_workflow(tmp_path: Any) -> None:
    id_ = create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    seen = [todos(on_disk(tmp_path))]
    for phase, status in (("phase_0", "active"), ("phase_0", "completed"), ("phase_1", "completed")):
        update_phase_status(id_, phase, status, root=tmp_path)
        seen.append(todos(on_disk(tmp_path)))

    assert [[entry["status"] for entry in each] for each in seen] == [
        ["pending", "pending"],
        ["in_progress", "pending"],
        ["completed", "in_progress"],
        ["completed", "completed"],
    ]


def test_the_markdown_on_disk_is_always_that_of_the_document(tmp_path: Any) -> None:
    id_ = create_workflow_state("Tâche → \udc80", PHASES, root=tmp_path, now=AT)
    update_phase_status(id_, "phase_0", "active", ["ü"], root=tmp_path)

    written = (tmp_path / MARKDOWN).read_bytes()

    assert written == generate_markdown(on_disk(tmp_path)).encode("utf-8", "replace")
    assert on_disk(tmp_path)["task"] == "Tâche → \udc80"


def test_a_workflow_that_is_replaced_goes_to_the_archive(tmp_path: Any) -> None:
    first = create_workflow_state("First", PHASES, root=tmp_path, now=AT)
    update_phase_status(first, "phase_0", "active", root=tmp_path)
    before = get_workflow_state(root=tmp_path)

    second = create_workflow_state("Second", PHASES, root=tmp_path, now=AT)

    assert (first, second) == ("wf_20250105_143022", "wf_20250105_143023")
    assert get_workflow_state(first, root=tmp_path) == before
    assert json.loads((tmp_path / ARCHIVE / f"{first}.json").read_text("utf-8")) == before
    assert get_workflow_state(root=tmp_path)["task"] == "Second"
    with pytest.raises(NotFound, match="not the live one"):
        update_phase_status(first, "phase_0", "completed", root=tmp_path)


def test_ids_of_one_second_are_never_the_same(tmp_path: Any) -> None:
    ids = [create_workflow_state(str(number), PHASES, root=tmp_path, now=AT) for number in range(5)]

    assert ids == [f"wf_20250105_1430{second}" for second in range(22, 27)]
    assert [get_workflow_state(id_, root=tmp_path)["task"] for id_ in ids] == ["0", "1", "2", "3", "4"]


def test_a_workflow_that_cannot_be_created_leaves_the_present_one(tmp_path: Any) -> None:
    create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    before = files(tmp_path)

    with pytest.raises(Invalid):
        create_workflow_state(TASK, [], root=tmp_path)

    assert files(tmp_path) == before


def test_absent_and_corrupt_are_different_errors(tmp_path: Any) -> None:
    with pytest.raises(NotFound):
        get_workflow_state(root=tmp_path)
    with pytest.raises(NotFound):
        update_phase_status("wf_20250105_143022", "phase_0", "active", root=tmp_path)
    assert files(tmp_path) == {}

    create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    good = json.loads((tmp_path / STATE).read_text())
    broken: list[Any] = [
        "{",
        "[]",
        "null",
        "\udcff",
        "[" * 100_000,
        {**good, "phases": None},
        {**good, "status": "bogus"},
        {**good, "current_phase": "phase_7"},
        {**good, "id": "../../etc/passwd"},
        {**good, "phases": [*good["phases"], good["phases"][0]]},
        {**good, "phases": [{**good["phases"][0], "deliverables": "a"}]},
        {key: value for key, value in good.items() if key != "task"},
    ]
    for content in broken:
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / STATE).write_bytes(text.encode("utf-8", "surrogateescape"))
        before = files(tmp_path)
        with pytest.raises(Corrupt):
            get_workflow_state(root=tmp_path)
        with pytest.raises(Corrupt):
            update_phase_status(good["id"], "phase_0", "active", root=tmp_path)
        with pytest.raises(Corrupt):
            create_workflow_state(TASK, PHASES, root=tmp_path)
        assert files(tmp_path) == before


@pytest.mark.parametrize("id_", ["../workflow", "wf_20250105_143022/../x", "", "wf_1", "wf_20250105_143022\n"])
def test_only_an_id_finds_a_workflow(id_: str, tmp_path: Any) -> None:
    create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)

    with pytest.raises(NotFound):
        get_workflow_state(id_, root=tmp_path)


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Any) -> None:
    (tmp_path / ".claude").write_text("a file where the directory should be")

    with pytest.raises(StoreFailed, match="could not"):
        create_workflow_state(TASK, PHASES, root=tmp_path)
    with pytest.raises(StoreFailed, match="could not read"):
        get_workflow_state(root=tmp_path)


def test_keys_that_a_person_added_are_kept(tmp_path: Any) -> None:
    id_ = create_workflow_state(TASK, PHASES, root=tmp_path, now=AT)
    doc = on_disk(tmp_path)
    doc["note"] = doc["phases"][0]["note"] = "mine"
    (tmp_path / STATE).write_text(json.dumps(doc))

    update_phase_status(id_, "phase_0", "active", root=tmp_path)

    assert (on_disk(tmp_path)["note"], on_disk(tmp_path)["phases"][0]["note"]) == ("mine", "mine")


WRITERS = 8


def test_eight_writers_lose_nothing(tmp_path: Any) -> None:
    id_ = create_workflow_state(TASK, [(f"Step {n}", "agent") for n in range(WRITERS)], root=tmp_path, now=AT)
    processes = [forked().Process(target=write_rounds, args=(str(tmp_path), id_, n)) for n in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)

    assert [process.exitcode for process in processes] == [0] * WRITERS
    delivered = [phase["deliverables"] for phase in on_disk(tmp_path)["phases"]]
    assert delivered == [[f"{number}-{count}" for count in range(ROUNDS)] for number in range(WRITERS)]
    assert (tmp_path / MARKDOWN).read_text("utf-8") == generate_markdown(on_disk(tmp_path))


def test_threads_lose_nothing_either(tmp_path: Any) -> None:
    id_ = create_workflow_state(TASK, [(f"Step {n}", "agent") for n in range(4)], root=tmp_path, now=AT)
    threads = [threading.Thread(target=write_rounds, args=(str(tmp_path), id_, n)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [len(phase["deliverables"]) for phase in on_disk(tmp_path)["phases"]] == [ROUNDS] * 4


def test_a_session_that_has_started() -> None:
    doc = from_session(opened(row("a", "b")))

    assert list(doc) == WORKFLOW_KEYS
    assert [list(phase) for phase in doc["phases"]] == [PHASE_KEYS, PHASE_KEYS]
    assert doc["id"] == f"wf_{NOON:%Y%m%d_%H%M%S}"
    assert [(phase["id"], phase["title"], phase["agent"]) for phase in doc["phases"]] == [
        ("phase_0", "A", "a-agent"),
        ("phase_1", "B", "b-agent"),
    ]
    assert check(doc) is doc
    assert generate_markdown(doc).startswith("# Workflow Status: try it\n")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, ("pending", None, ["pending"] * 4)),
        ({"a": Status.IN_PROGRESS}, ("active", "phase_0", ["active", *["pending"] * 3])),
        ({"a": Status.COMPLETED}, ("active", None, ["completed", *["pending"] * 3])),
        (
            {"a": Status.COMPLETED, "b": Status.FAILED, "c": Status.IN_PROGRESS},
            ("failed", "phase_2", ["completed", "failed", "active", "pending"]),
        ),
        ({"a": Status.FAILED}, ("failed", "phase_0", ["failed", *["pending"] * 3])),
        (
            {"a": Status.COMPLETED, "b": Status.SKIPPED, "c": Status.IN_PROGRESS},
            ("active", "phase_1", ["completed", "active", "pending"]),
        ),
        (dict.fromkeys("abcd", Status.COMPLETED), ("completed", None, ["completed"] * 4)),
    ],
)
def test_a_session_stands_where_its_phases_stand(statuses: dict[str, Status], expected: tuple[Any, ...]) -> None:
    assert stands(from_session(session_at(statuses, graph=diamond()))) == expected


@pytest.mark.parametrize(
    ("ended", "status"), [(SessionStatus.COMPLETED, "completed"), (SessionStatus.CANCELLED, "failed")]
)
def test_a_session_that_has_ended_executes_nothing(ended: SessionStatus, status: str) -> None:
    session = msgspec.structs.replace(session_at({"a": Status.IN_PROGRESS}), status=ended)

    assert stands(from_session(session))[:2] == (status, None)


def on_disk(root: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((root / STATE).read_text("utf-8"))
    return loaded


def files(root: Any) -> dict[str, bytes]:
    """Everything but the lock, which is empty."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"}


def test_the_client_that_reads_the_document_is_registered_with_its_paths():
    assert generated_files() == (file.STATE, file.MARKDOWN)
    assert guarded_files()["document"] == (file.STATE,)
