"""`schema`: prints JSON Schemas, generated from the types that read and write the documents."""

import os
from typing import Any

import click

from detent.cli.request import Request, write_file, write_json, write_text
from detent.cli.verb import verb
from detent.store import disk

NAMES = ("detent.toml", "approvers.toml", "journal", "workflow", "session", "state", "task", "history")
#: The end of the name of a file with a schema.
ENDING = ".schema.json"


@verb("schema", example="detent schema detent.toml")
@click.argument("name", required=False, metavar="[NAME]", type=click.Choice(NAMES))
@click.option("--to", "target", metavar="DIR", help="Write it, or all of them, to files in DIR, for editors.")
def schema_verb(request: Request, name: str | None, target: str | None) -> None:
    """Print the JSON Schema of a document.

    Without NAME it lists the documents. journal and history describe one line of their files. docs/editors.md says how
    editors use the files that --to writes.
    """
    if target is not None:
        written = [_write(request, each, target) for each in ([name] if name is not None else NAMES)]
        request.answer(lambda _: "\n".join(f"wrote {path}" for path in written), {"written": written})
    elif name is not None:
        write_json(schema_of(name))
    elif request.json:
        write_json({"schemas": NAMES})
    else:
        write_text("\n".join(NAMES))


def _write(request: Request, name: str, target: str) -> str:
    import msgspec

    data = msgspec.json.format(msgspec.json.encode(schema_of(name)), indent=2) + b"\n"
    whole = os.path.join(request.directory, target)
    with disk.failing_as("write", whole):
        os.makedirs(whole, exist_ok=True)
    return write_file(request, os.path.join(target, name + ENDING), data)


def schema_of(name: str) -> dict[str, Any]:
    import msgspec

    from detent.cli import shape
    from detent.config.settings import Settings
    from detent.core.decision.approvers import Approvers
    from detent.core.gate import Gate
    from detent.core.gate.registry import KINDS
    from detent.core.session.events import Commit
    from detent.core.workflow.graph import Workflow
    from detent.run.agents import adapters

    types: dict[str, Any] = {
        "detent.toml": Settings,
        "journal": Commit,
        "workflow": Workflow,
        "session": shape.SessionDocument,
        "state": shape.StateDocument,
        "task": shape.TaskDocument,
        "approvers.toml": Approvers,
        "history": shape.HistoryEntry,
    }
    kinds, definitions = msgspec.json.schema_components(KINDS.values(), ref_template="#/$defs/{name}")
    used: dict[str, Any] = {}

    def gate_schema(declared: type) -> dict[str, Any]:
        if declared is not Gate:
            raise NotImplementedError(f"{declared.__name__} has no schema")
        used.update(definitions)
        return {"anyOf": list(kinds)}

    schema = msgspec.json.schema(types[name], schema_hook=gate_schema)
    if used:
        schema["$defs"] |= used
    if name == "detent.toml":
        schema["$defs"]["AgentSettings"]["properties"]["adapter"]["enum"] = adapters()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **schema}
