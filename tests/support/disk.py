"""What stands in the files of a project, read as any other program would read them."""

import json
from pathlib import Path
from typing import Any

FEATURE = (
    "01-requirements",
    "02-impact-analysis",
    "03-architecture",
    "04-design",
    "05-test-strategy",
    "06-implementation",
    "16-quality-loop",
    "08-code-review",
)
FIX = ("02-tracing", "06-implementation", "16-quality-loop", "08-code-review")


class Disk:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state_path = directory / "state.json"

    def state(self) -> dict[str, Any]:
        """state.json, after checking that all that is said twice in it is said alike."""
        document = json.loads(self.state_path.read_bytes())
        check_agreement(document)
        return document

    def workflow(self) -> dict[str, Any]:
        return self.state()["active_workflow"]

    def edit(self, document: object) -> bytes:
        """Write state.json by hand, as an editor or an agent would."""
        text = json.dumps(document, indent=4).encode()
        self.state_path.write_bytes(text)
        return text

    def session(self, name: str) -> dict[str, Any]:
        return json.loads((self.directory / name / "workflow-session.json").read_bytes())

    def journal(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal_path(name).read_bytes().splitlines()]

    def journal_path(self, name: str) -> Path:
        return self.directory / name / "journal.jsonl"

    def history(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "history.jsonl").read_bytes().splitlines()]

    def markers(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob(".active-*"))


def check_agreement(document: dict[str, Any]) -> None:
    """The fields that seed 004 lists for a phase boundary, each against every other that repeats it."""
    flow, phases = document["active_workflow"], document["phases"]
    if flow is None:
        assert (document["current_phase"], document["active_agent"], phases) == (None, None, {})
        return
    current, index = flow["current_phase"], flow["current_phase_index"]
    assert document["current_phase"] == current
    assert flow["phase_status"] == {key: record["status"] for key, record in phases.items()}
    assert list(phases) == flow["phases"]
    assert 0 <= index <= len(flow["phases"])
    if current is None:
        assert document["active_agent"] is None
        assert "in_progress" not in flow["phase_status"].values()
    else:
        assert phases[current]["status"] != "pending"
        # Between the end of one phase and the begin of the next the index is already one ahead.
        assert current in flow["phases"][max(0, index - 1) : index + 1]
