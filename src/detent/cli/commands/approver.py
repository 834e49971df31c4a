"""`approver`: adds, lists and removes the people whose keys sign decisions."""

from typing import TYPE_CHECKING

import click

from detent.cli.request import Request
from detent.cli.verb import VerbGroup, verb

if TYPE_CHECKING:
    from detent.core.decision.approvers import Approver, Key
    from detent.engine.approvers import Trusted
    from detent.render.terminal.canvas import Canvas

_FIRST = "it is trusted on first use, and signs for the next one"


@verb("add", example="detent approver add ada --public-key ~/.ssh/id_ed25519.pub --role architect --sign", decides=True)
@click.argument("name")
@click.option("--public-key", metavar="FILE", help="The .pub file of an SSH key.")
@click.option("--role", "roles", metavar="ROLE", multiple=True, help="A role that the approver fills; repeat it.")
@click.option("--verify", is_flag=True, help="The key must also ask for a PIN or a fingerprint, not only for a touch.")
def add_approver(request: Request, name: str, *, public_key: str | None, roles: tuple[str, ...], verify: bool) -> None:
    """Add the approver NAME, or a key or a role of one.

    The change is signed by an approver who is listed already. The first one is trusted on first use: commit
    approvers.toml, and let others look at it. A WebAuthn key is enrolled in detent ui.
    """
    with request.changing() as project:
        file, signer = project.approvers, project.signer
        key = _read_key(request, public_key, verify=verify)
        is_first = file.add(name, key, roles, actor=project.actor, signer=signer)
        listed = file.trusted()
    _answer(request, listed, f"{name} is listed in approvers.toml" + (f"; {_FIRST}" if is_first else ""))


@verb("list", example="detent approver list")
def list_approvers(request: Request) -> None:
    """List the approvers with their roles and keys.

    It says which of them is trusted on first use, and refuses a list that was edited by hand.
    """
    with request.reading() as project:
        listed = project.approvers.trusted()
    _answer(request, listed)


@verb("remove", example="detent approver remove bob --sign", decides=True)
@click.argument("name")
@click.option("--key-id", metavar="ID", help="Only this key: its fingerprint, or the id of a WebAuthn key.")
def remove_approver(request: Request, name: str, *, key_id: str | None) -> None:
    """Remove the approver NAME, or one key of the approver.

    Decisions that the key signed before stay as they are.
    """
    with request.changing() as project:
        project.approvers.remove(name, key_id, actor=project.actor, signer=project.signer)
        listed = project.approvers.trusted()
    _answer(request, listed, f"{key_id or name} is no longer listed in approvers.toml")


approver_verb = VerbGroup(
    "approver",
    add_approver,
    list_approvers,
    remove_approver,
    help="Add, list or remove the people whose keys sign decisions.",
    example="detent approver list",
)


def _read_key(request: Request, file: str | None, *, verify: bool) -> "Key | None":
    import os

    from detent.core.decision.approvers import SshKey
    from detent.engine.ssh_signatures import public_key

    if file is None:
        return None
    return SshKey(key=public_key(os.path.join(request.directory, os.path.expanduser(file))), verify=verify)


def _answer(request: Request, listed: "Trusted", text: str = "") -> None:
    record = [
        {**_record(approver), "first_use": approver.name in listed.on_first_use}
        for approver in listed.approvers.approver
    ]
    request.answer(lambda canvas: _text(listed, text, canvas), {"approvers": record})


def _record(approver: "Approver") -> dict[str, object]:
    keys = [{"id": key.id, "type": key.kind, "hardware": key.is_hardware} for key in approver.keys]
    return {"name": approver.name, "roles": approver.roles, "keys": keys}


def _text(listed: "Trusted", text: str, canvas: "Canvas") -> str:
    lines = [*canvas.wrap(text), ""] if text else []
    for approver in listed.approvers.approver:
        roles = f" ({', '.join(approver.roles)})" if approver.roles else ""
        first = ", trusted on first use" if approver.name in listed.on_first_use else ""
        lines += canvas.wrap(f"{approver.name}{roles}{first}")
        lines += [line for key in approver.keys for line in canvas.wrap(f"{key.kind} {key.id}", "    ")]
    return "\n".join(lines) or "no approver is listed; detent approver add NAME --public-key FILE adds the first"
