"""The copy of the page that needs no server."""

import json
import re

import pytest

from detent.engine.project import open_project
from tests.support.command import Tool
from tests.support.project import write

SECRET = "AKIAIOSFODNN7EXAMPLE"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + "A" * 60 + "\n" + "B" * 60 + "\n-----END RSA PRIVATE KEY-----\n"


@pytest.fixture
def tool(root, monkeypatch):
    import os

    own = Tool(root)
    own.environment["XDG_STATE_HOME"] = os.environ["XDG_STATE_HOME"]
    return own


def answers(directory):
    text = (directory / "data.js").read_text()
    stated = re.fullmatch(r"window\.DETENT_EXPORT = JSON\.parse\((.*)\);\n", text, re.DOTALL)
    assert stated is not None
    return json.loads(json.loads(stated[1]))


def test_the_copy_has_the_answers_under_the_addresses_that_the_page_asks_for(
    tool, root, base, own, page, tmp_path_factory
):
    target = tmp_path_factory.mktemp("copy") / "page"
    with open_project(root) as project:
        for number in range(3):
            project.session("WFS-try-it").tasks.add(f"Task {number}")

    done = tool("ui", "--export", str(target), "--json").ok().json()

    found = answers(target)["answers"]
    assert done["sessions"] == 1
    assert found["/api/me"]["can_decide"] is False
    assert found[base]["position"] == page.get(base).ok()["position"]
    assert found[f"{base}/log?limit=100"] == page.get(f"{base}/log", limit=100).ok()
    assert found[f"{base}/review?phase=work"]["files"][0]["path"] == "calc.py"
    since = found[f"{base}/review?phase=work"]["since"]
    assert found[f"{base}/diff?from={since}&to=now&path=calc.py"]["hunks"]
    assert found[f"{base}/gate?phase=work&gate=approval"]["verdict"] == "PENDING"
    board = found[f"{base}/tasks?status=ready&offset=0&limit=200"]
    assert [task["id"] for task in board["tasks"]] == ["IMPL-1", "IMPL-2", "IMPL-3"]
    assert found[f"{base}/tasks/IMPL-1"]["document"]["title"] == "Task 0"
    assert [each["id"] for each in found["/api/projects"]["projects"]] == [own.rpartition("/")[2]]


def test_the_page_loads_the_data_before_its_scripts(tool, tmp_path_factory):
    target = tmp_path_factory.mktemp("copy") / "page"
    tool("ui", "--export", str(target)).ok()
    index = (target / "index.html").read_text()

    assert index.index('<script src="data.js"></script>') <= index.index("<script")
    assert 'type="module"' not in index


def test_secrets_in_files_are_not_part_of_the_copy(tool, root, base, tmp_path_factory):
    target = tmp_path_factory.mktemp("copy") / "page"
    write(root, "calc.py", f"aws_key = '{SECRET}'\n")
    write(root, "notes.py", KEY)

    tool("ui", "--export", str(target)).ok()

    text = (target / "data.js").read_text()
    assert SECRET not in text
    assert "B" * 60 not in text
    assert "left out of this copy" in text


def test_a_copy_does_not_tell_where_the_project_was(tool, root, tmp_path_factory):
    target = tmp_path_factory.mktemp("copy") / "page"
    tool("ui", "--export", str(target)).ok()

    assert answers(target)["answers"]["/api/projects"]["projects"][0]["root"] == root.name


def test_a_directory_with_other_files_is_left_alone(tool, tmp_path_factory):
    target = tmp_path_factory.mktemp("copy")
    (target / "thesis.txt").write_text("mine")

    code, message, _ = tool("ui", "--export", str(target)).error()

    assert (code, message) == (1, f"{target} holds other files")
    assert [path.name for path in target.iterdir()] == ["thesis.txt"]


def test_a_copy_is_written_over_by_the_next_one(tool, tmp_path_factory):
    target = tmp_path_factory.mktemp("copy") / "page"
    tool("ui", "--export", str(target)).ok()

    tool("ui", "--export", str(target)).ok()
