"""The answers of the server, each for a real session on disk."""

from detent.engine.project import open_project
from tests.support.project import write


def needs(page, base):
    """What waits for a person in the session."""
    _, _, _, project, _, session = base.split("/")
    listed = page.get("/api/needs").ok()["needs"]
    return [need for need in listed if (need["project"], need["session"]) == (project, session)]


def test_the_list_of_what_waits_has_the_decision_and_the_actions_for_it(page, base):
    [need] = needs(page, base)

    assert (need["kind"], need["phase"], need["gate"], need["is_yours"]) == ("vote", "work", "approval", True)
    assert need["command"] == "detent approve work --gate approval -m WHY"
    assert [(action["decision"], action["needs_tree"]) for action in need["actions"]] == [
        ("approve", True),
        ("reject", False),
    ]


def test_a_session_has_its_phases_its_graph_and_its_position(page, base):
    record = page.get(base).ok()

    assert record["task"] == "try it"
    assert [(phase["phase"], phase["status"]) for phase in record["phases"]] == [
        ("work", "in_progress"),
        ("after", "pending"),
    ]
    assert [(node["phase"], node["column"], node["consensus"]) for node in record["graph"]["nodes"]] == [
        ("work", 0, True),
        ("after", 1, False),
    ]
    assert record["position"]["version"] == 1
    assert record["gates"]["work"][0]["verdict"] == "PENDING"


def test_the_review_shows_the_diff_and_the_tree(page, base):
    review = page.get(f"{base}/review", phase="work").ok()
    [file] = review["files"]

    assert (file["path"], file["status"], file["added"], file["removed"]) == ("calc.py", "modified", 1, 1)
    diff = page.get(f"{base}/diff", **{"from": review["since"], "to": "now", "path": "calc.py"}).ok()
    assert [(line["op"], line["old"], line["new"], line["text"]) for line in diff["hunks"][0]["lines"]] == [
        (" ", 1, 1, "def add(a, b):"),
        ("-", 2, None, "    return a + b"),
        ("+", None, 2, "    return b + a"),
    ]


def test_the_review_of_a_finished_phase_shows_the_files_with_which_it_was_finished(page, base, root):
    tree = page.get(f"{base}/review", phase="work").ok()["tree"]
    page.post(f"{base}/decide", decision="approve", phase="work", reason="fine", tree=tree).ok()
    page.post(f"{base}/decide", decision="finish", phase="work", summary="done").ok()
    write(root, "later.py", "x = 1\n")
    write(root, "calc.py", "# all gone\n")

    review = page.get(f"{base}/review", phase="work").ok()

    assert (review["since"], review["until"]) == ("PRE_work_v1", "POST_work_v1")
    assert [file["path"] for file in review["files"]] == ["calc.py"]
    asked = {"from": review["since"], "to": review["until"], "path": "calc.py"}
    [hunk] = page.get(f"{base}/diff", **asked).ok()["hunks"]
    assert "    return b + a" in [line["text"] for line in hunk["lines"]]
    assert page.get(f"{base}/review", phase="work").ok()["tree"] == review["tree"] != tree


def test_what_is_approved_is_the_tree_that_was_shown(page, base, root):
    tree = page.get(f"{base}/review", phase="work").ok()["tree"]
    vote = {"decision": "approve", "phase": "work", "gate": "approval", "reason": "looks good"}
    write(root, "calc.py", "def add(a, b):\n    return 5\n")

    refused = page.post(f"{base}/decide", **vote, tree=tree)

    assert refused.error[:2] == (409, "tree_changed")
    assert refused.json["error"]["paths"] == ["calc.py"]
    assert page.post(f"{base}/decide", **vote).error[0] == 400
    tree = page.get(f"{base}/review", phase="work").ok()["tree"]
    assert page.post(f"{base}/decide", **vote, tree=tree).ok()["needs"] == []
    with open_project(root) as project:
        commit = list(project.session("WFS-try-it").log())[-1]
    assert (commit.actor.channel, commit.actor.proof.method, commit.actor.proof.identity != "") == (
        "page",
        "page",
        True,
    )


def test_a_gate_shows_its_votes_with_their_proofs(page, base):
    tree = page.get(f"{base}/review", phase="work").ok()["tree"]
    page.post(f"{base}/decide", decision="approve", phase="work", gate="approval", reason="good", tree=tree).ok()

    gate = page.get(f"{base}/gate", phase="work", gate="approval").ok()

    assert gate["verdict"] == "PASS"
    assert [(vote["approve"], vote["reason"], vote["proof"]["method"]) for vote in gate["votes"]] == [
        (True, "good", "page")
    ]
    assert [entry["version"] for entry in gate["history"]] == [2]


def test_a_rollback_is_carried_out_as_it_was_shown(page, base, root):
    name = page.get(f"{base}/checkpoints").ok()["checkpoints"][0]["name"]
    shown = page.post(f"{base}/rollback", to=name, dry_run=True).ok()
    assert shown["plan"]["files"]["restored"] == ["calc.py"]
    assert page.post(f"{base}/rollback", to=name).error[0] == 400

    done = page.post(f"{base}/rollback", to=name, plan_id=shown["plan_id"]).ok()

    assert done["result"]["files"] == 1
    assert (root / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    back = page.post(f"{base}/undo", dry_run=True).ok()
    page.post(f"{base}/undo", plan_id=back["plan_id"]).ok()
    assert (root / "calc.py").read_text() == "def add(a, b):\n    return b + a\n"


def test_tasks_are_added_and_moved(page, base):
    added = page.post(f"{base}/tasks", title="Write the parser", requirements=["reads a line"]).ok()["task"]
    page.post(f"{base}/tasks", title="Use the parser", depends_on=[added]).ok()
    page.post(f"{base}/tasks/{added}/block", reason="no grammar yet").ok()

    board = page.get(f"{base}/tasks", status="blocked").ok()

    assert [(task["id"], task["reason"]) for task in board["tasks"]] == [(added, "no grammar yet")]
    assert board["counts"]["waiting"] == 1
    assert page.get(f"{base}/tasks/{added}").ok()["dependents"] == ["IMPL-2"]
    assert page.post(f"{base}/tasks/{added}/unblock").ok()["done"]
    assert page.post(f"{base}/tasks/{added}/vanish").error[0] == 404


def test_history_has_the_sessions_that_ended(page, base, own):
    page.post(f"{base}/decide", decision="cancel", reason="enough").ok()

    history = page.get(f"{own}/history").ok()
    [row] = history["sessions"]
    [gate] = [gate for gate in history["gates"] if gate["gate"] == "approval"]

    assert (gate["phase"], gate["passages"], gate["opened"], gate["first_try_rate"]) == ("work", 1, 0, None)
    assert [phase["phase"] for phase in history["phases"]] == ["work"]
    assert (row["session"], row["status"], row["attempts"]) == ("WFS-try-it", "cancelled", 1)
    assert page.get(f"{own}/compare", a="WFS-try-it", b="WFS-try-it").ok()["phases"][0]["phase"] == "work"
    assert page.get(f"{base}/timeline").ok()["attempts"][0]["how"] == "left"
    assert needs(page, base) == []


def test_a_session_is_started_from_the_form(page, own):
    assert "short" in [workflow["name"] for workflow in page.get(f"{own}/workflows").ok()["workflows"]]

    started = page.post(f"{own}/start", workflow="short", task="the next one").ok()

    listed = page.get(f"{own}/sessions").ok()["sessions"]
    assert [(entry["session"], entry["is_active"]) for entry in listed] == [
        (started["session"], True),
        ("WFS-try-it", False),
    ]


def test_a_log_names_a_phase_by_its_position_first(page, base):
    page.post(f"{base}/decide", decision="redo", phase="plan", reason="again")

    lines = [line for commit in page.get(f"{base}/log").ok()["commits"] for line in commit["lines"]]

    assert any(line.startswith("began 1 of ") for line in lines), lines


def test_a_log_has_its_filters_and_pages(page, base):
    for number in range(5):
        page.post(f"{base}/tasks", title=f"Task {number}").ok()

    newest = page.get(f"{base}/log", limit=2).ok()

    assert ([commit["version"] for commit in newest["commits"]], newest["more"]) == ([6, 5], True)
    assert [commit["version"] for commit in page.get(f"{base}/log", before=3, limit=10).ok()["commits"]] == [2, 1]
    assert [commit["version"] for commit in page.get(f"{base}/log", kind="phase").ok()["commits"]] == [1]
    assert [commit["version"] for commit in page.get(f"{base}/log", q="IMPL-3").ok()["commits"]] == [4]
