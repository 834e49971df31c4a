"""Schemas as files for editors, and instructions for any client."""

import json
import re
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


def test_the_problem_matcher_finds_the_lines_that_name_a_file():
    tasks = next(
        json.loads(block) for block in re.findall(r"```json\n(.*?)```", EDITORS, re.DOTALL) if "tasks" in block
    )
    pattern = re.compile(tasks["tasks"][0]["problemMatcher"]["pattern"]["regexp"])

    found = {
        line: match.groups() if (match := pattern.match(line)) else None
        for line in ("tests/test_a.py:12: AssertionError", "src/x.py:3:5: E501 too long", "12 passed in 0.1s")
    }

    assert list(found.values()) == [
        ("tests/test_a.py", "12", None, "AssertionError"),
        ("src/x.py", "3", "5", "E501 too long"),
        None,
    ]


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
