"""Schemas as files for editors, and instructions for any client."""

import json
import re
import sys
from pathlib import Path

import msgspec

from detent.cli.commands.schema import NAMES
from detent.cli.shape import TaskDocument
from detent.core.task.document import new_document
from tests.support.command import Tool

EDITORS = (Path(__file__).parents[2] / "docs/editors.md").read_text("utf-8")
SEED = Path(__file__).parents[1] / "conformance/seed_task.json"


def test_every_schema_is_written_and_the_page_for_editors_names_them(tmp_path):
    tool = Tool(tmp_path)

    written = tool("schema", "--to", ".schemas", "--json").ok().json()["written"]

    assert written == [f".schemas/{name}.schema.json" for name in NAMES]
    for name in NAMES:
        schema = json.loads((tmp_path / f".schemas/{name}.schema.json").read_text())
        assert (schema["title"], schema["$schema"]) == (name, "https://json-schema.org/draft/2020-12/schema")
    for named in re.findall(r"\./(\.schemas/[\w.]+\.schema\.json)", EDITORS):
        assert (tmp_path / named).exists()
    assert tool("schema", "task", "--to", "detent.toml/x").code == 0


def test_a_task_that_detent_writes_fits_its_schema():
    for document in (new_document("IMPL-1.2", "Write it", acceptance=["it runs"]), json.loads(SEED.read_text())):
        assert msgspec.convert(document, TaskDocument).title


def matcher():
    tasks = next(
        json.loads(block) for block in re.findall(r"```json\n(.*?)```", EDITORS, re.DOTALL) if "tasks" in block
    )
    return re.compile(tasks["tasks"][0]["problemMatcher"]["pattern"]["regexp"])


def test_the_problem_matcher_finds_the_lines_that_name_a_file():
    lines = ("src/main.rs:2:5: error[E0308]: mismatched types", "./main.go:3:2: undefined: x", "12 passed in 0.1s")

    assert [match.groups() if (match := matcher().match(line)) else None for line in lines] == [
        ("src/main.rs", "2", "5", "error[E0308]: mismatched types"),
        ("./main.go", "3", "2", "undefined: x"),
        None,
    ]


def test_the_problem_matcher_finds_them_in_what_a_gate_shows(tmp_path):
    tool, python = Tool(tmp_path), sys.executable
    gates = (
        f'{{ kind = "tests", command = "{python} -m pytest -q -p no:cacheprovider" }}, '
        f'{{ kind = "command", name = "lint", command = "{python} -m ruff check --isolated --output-format concise" }}'
    )
    (tmp_path / "detent.toml").write_text(f'[workflows.short]\nphases = [{{ key = "work", gates = [{gates}] }}]\n')
    (tmp_path / "test_it.py").write_text("import os\n\n\ndef test_it():\n    assert False\n")
    tool("init").ok()
    tool("start", "short", "Work").ok()

    runs = [tool("gate", "run", gate, "--stream") for gate in ("tests", "lint")]

    shown = "\n".join(f"{run.out}\n{run.err}" for run in runs)
    found = [match.groups() for line in shown.splitlines() if (match := matcher().match(line))]
    assert ("test_it.py", "5", None, "AssertionError") in found
    assert [each for each in found if each[3].startswith("F401")] == [
        ("test_it.py", "1", "8", "F401 [*] `os` imported but unused")
    ]
    assert {each[0] for each in found} == {"test_it.py"}


def test_instructions_go_into_the_file_that_clients_share_and_out_again(tmp_path):
    tool = Tool(tmp_path)
    (tmp_path / "AGENTS.md").write_text("# Ours\n")

    assert "+## Detent" in tool("init", "--instructions", "--dry-run").ok().out
    assert (tmp_path / "AGENTS.md").read_text() == "# Ours\n"
    tool("init", "--instructions").ok()
    assert (tmp_path / "AGENTS.md").read_text().startswith("# Ours\n\n<!-- detent:begin -->\n## Detent\n")
    tool("init", "--agent", "codex").ok()
    tool("uninstall", "--agent", "codex").ok()
    assert "## Detent" in (tmp_path / "AGENTS.md").read_text()
    tool("uninstall").ok()
    assert (tmp_path / "AGENTS.md").read_text() == "# Ours\n"
