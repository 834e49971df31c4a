"""Task documents with steps."""

from typing import Any

from detent.core.task.document import new_document


def step(name: str, command: str, **fields: object) -> dict[str, Any]:
    return {"step": name, "action": f"do {name}", "command": f"bash({command})", **fields}


def stepped(number: int, command: str) -> dict[str, Any]:
    """The document of a task with one step."""
    document = new_document(f"IMPL-{number}", "With a step")
    document["flow_control"] |= {"pre_analysis": [step("look", command)], "implementation_approach": "work"}
    return document
