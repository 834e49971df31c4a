"""The resources and prompts that the server lists."""

from typing import Any

JSON, MARKDOWN = "application/json", "text/markdown"
SESSION, JOURNAL, REPORT, TASK = "detent://session", "detent://journal", "detent://report", "detent://task"
GO_ON = "go_on"

RESOURCES: list[dict[str, Any]] = [
    {"uri": SESSION, "name": "session", "title": "The session, in full", "mimeType": JSON},
    {"uri": JOURNAL, "name": "journal", "title": "The first commits of the journal", "mimeType": JSON},
    {"uri": REPORT, "name": "report", "title": "The report of the session", "mimeType": MARKDOWN},
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "uriTemplate": f"{JOURNAL}/{{after}}",
        "name": "journal-page",
        "title": "The commits after a version; each page names the next one",
        "mimeType": JSON,
    },
    {"uriTemplate": f"{TASK}/{{id}}", "name": "task", "title": "The context of a task", "mimeType": JSON},
]
PROMPTS: list[dict[str, Any]] = [
    {
        "name": GO_ON,
        "title": "Go on with the phase",
        "description": "The phase in progress or the next one: what earlier phases left, and what its gates ask for.",
        "arguments": [{"name": "phase", "description": "Another phase than the one in progress.", "required": False}],
    }
]
