"""The workflow document as Markdown for people, and as the todo list of an agent's client. Neither is read back."""

from typing import Any


def generate_markdown(workflow: dict[str, Any]) -> str:
    current = [phase["title"] for phase in workflow["phases"] if phase["id"] == workflow["current_phase"]]
    lines = [
        f"# Workflow Status: {_flat(workflow['task'])}",
        "",
        f"Status: {workflow['status']} | Current Phase: {_flat(current[0]) if current else 'none'}",
        "",
        "## Phases",
        "",
        *(_line(index, phase) for index, phase in enumerate(workflow["phases"])),
    ]
    return "\n".join(lines) + "\n"


def todos(workflow: dict[str, Any]) -> list[dict[str, str]]:
    """One entry for each phase, in order. A phase that failed is still to be done."""
    return [
        {
            "content": phase["title"],
            "status": {"active": "in_progress", "completed": "completed"}.get(phase["status"], "pending"),
            "activeForm": f"Working on {phase['title']}",
        }
        for phase in workflow["phases"]
    ]


def _line(index: int, phase: dict[str, Any]) -> str:
    mark = "x" if phase["status"] == "completed" else " "
    failed = " (failed)" if phase["status"] == "failed" else ""
    delivered = ", ".join(_flat(each) for each in phase["deliverables"])
    return f"- [{mark}] Phase {index}: {_flat(phase['title'])}{failed}{f' → {delivered}' if delivered else ''}"


def _flat(text: str) -> str:
    """On one line, so that no text can end its heading or its list entry."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip())
