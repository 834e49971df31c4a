"""The projects that the page shows: all of the user that are still there, each package of a monorepo by itself."""

import os
import shutil

from detent.engine.project import open_project
from detent.store.state_home import digest
from tests.support.project import UNGATED, build_project

PACKAGES = UNGATED + '[projects.api]\npath = "api"\n[projects.web]\npath = "web"\n'


def listed(page, root):
    """The projects at the root, by id."""
    projects = page.get("/api/projects").ok()["projects"]
    return {each["id"]: each for each in projects if each["root"] == str(root.resolve())}


def test_each_package_is_a_project_of_its_own(page, tmp_path):
    build_project(tmp_path, PACKAGES, files={"api/a.py": "", "web/b.py": ""})
    for package in ("api", "web"):
        with open_project(tmp_path, project=package) as project:
            project.start("fix", f"mend the {package}").ask("Which way?")
    own = digest(os.fsencode(tmp_path.resolve()))

    projects = listed(page, tmp_path)

    assert {name: each["name"] for name, each in projects.items()} == {
        f"{own}.api": f"{tmp_path.name}/api",
        f"{own}.web": f"{tmp_path.name}/web",
    }
    asked = {need["project"]: need["what"] for need in page.get("/api/needs").ok()["needs"] if own in need["project"]}
    assert asked.keys() == projects.keys()
    session = page.get(f"/api/p/{own}.web/sessions").ok()["sessions"][0]["session"]
    assert page.get(f"/api/p/{own}.web/s/{session}").ok()["task"] == "mend the web"
    question = page.get(f"/api/p/{own}.web/s/{session}").ok()["needs"][0]
    assert page.post(
        f"/api/p/{own}.web/s/{session}/decide", decision="reply", question=question["question"], answer="so"
    ).ok()


def test_a_project_that_is_gone_is_left_out(page, tmp_path):
    root = tmp_path / "gone"
    build_project(root)
    with open_project(root) as project:
        project.start("fix", "mend it")
    assert len(listed(page, root)) == 1

    shutil.rmtree(root)

    assert listed(page, root) == {}
    assert page.get(f"/api/p/{digest(os.fsencode(root))}/sessions").error[0] == 404


def test_settings_that_change_count_at_once(page, tmp_path):
    build_project(tmp_path, UNGATED)
    with open_project(tmp_path) as project:
        project.start("fix", "mend it")
    own = f"/api/p/{digest(os.fsencode(tmp_path.resolve()))}"
    assert "short" not in str(page.get(f"{own}/workflows").ok())

    build_project(tmp_path, f'{UNGATED}[workflows.short]\nphases = ["work"]\n')

    assert "short" in str(page.get(f"{own}/workflows").ok())


def test_a_damaged_session_hides_nothing_else(page, tmp_path):
    build_project(tmp_path, UNGATED)
    with open_project(tmp_path) as project:
        broken, whole = project.start("fix", "the broken one").id, project.start("fix", "the whole one").id
        project.session(whole).ask("Which way?")
    own = f"/api/p/{digest(os.fsencode(tmp_path.resolve()))}"
    journal = tmp_path / ".workflow" / broken / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"broken", b"BROKEN", 1))

    needs = page.get("/api/needs").ok()

    assert [need["session"] for need in needs["needs"] if need["project"] in own] == [whole]
    assert [problem["session"] for problem in needs["problems"] if problem["project"] in own] == [broken]
    listed = {each["session"]: each["status"] for each in page.get(f"{own}/sessions").ok()["sessions"]}
    assert listed == {broken: "damaged", whole: "active"}
    assert page.get(f"{own}/s/{broken}").error[:2] == (500, "corrupt")
    assert page.get(f"{own}/s/{whole}").status == 200
