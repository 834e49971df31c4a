"""Keys of people in the browser: what is signed with one, and how a new one is enrolled."""

import importlib.util
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import msgspec

from detent.core.actor import Actor, Proof
from detent.core.decision.approvers import Approvers, WebAuthnKey
from detent.core.decision.statement import Statement, read_statement, signed_bytes
from detent.engine.project import Project
from detent.engine.webauthn import authentication_options, registered_key, registration_options, webauthn_proof
from detent.errors import Conflict, DetentError, Refused
from detent.extras import install_command
from detent.web.body import Body

#: Enrolments that are under way, and how long one may take.
MAX_OPEN, OPEN_S = 16, 300.0
_NONCE_BYTES = 32


def can_enrol() -> bool:
    return importlib.util.find_spec("fido2") is not None


def page_proof(posted: Body) -> Proof:
    """The proof that the browser made of a statement."""
    credential = Body(posted.table("credential"))
    response = {name: credential.word(name) for name in ("authenticatorData", "clientDataJSON", "signature")}
    return webauthn_proof(read_statement(posted.word("statement")), credential.word("id"), response)


def first_signer(approvers: Approvers, origin: str) -> str:
    """The first approver who can sign in this page. The key that signs says who it was."""
    for approver in approvers.approver:
        if any(isinstance(key, WebAuthnKey) and key.origin == origin for key in approver.keys):
            return approver.name
    raise Refused(f"no approver has a key of the page {origin}", way_out="enrol a key in the page first")


class _Enrolment(msgspec.Struct, frozen=True, kw_only=True):
    project: str
    name: str
    roles: tuple[str, ...]
    nonce: bytes
    since_s: float
    #: The change that a known approver has to sign.
    statement: Statement | None = None


class Enrolments:
    """New keys, each in two or three steps: make it in the browser, and let a known approver sign for it.

    No approver can sign for the first key: it is trusted on first use, and a person has to be there.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._open: OrderedDict[str, _Enrolment] = OrderedDict()

    def step(self, project_id: str, project: Project, actor: Actor, body: Body) -> dict[str, Any]:
        if not can_enrol():
            raise DetentError(
                "enrolling a key needs the package fido2, which is not installed", way_out=install_command("hardware")
            )
        if not body.text("id"):
            return self._begin(project_id, project, body)
        under_way = self._open.pop(body.word("id"), None)
        is_late = under_way is not None and time.monotonic() - under_way.since_s > OPEN_S
        if under_way is None or is_late or under_way.project != project_id:
            raise Conflict("this enrolment is not known any more", way_out="begin it again")
        if under_way.statement is None:
            return self._register(project, actor, under_way, body)
        project.approvers.change(under_way.statement, actor=actor, proof=page_proof(Body(body.table("proof"))))
        return _done(under_way, is_first=False)

    def _begin(self, project_id: str, project: Project, body: Body) -> dict[str, Any]:
        name, nonce = body.word("name"), secrets.token_bytes(_NONCE_BYTES)
        begun = _Enrolment(
            project=project_id, name=name, roles=body.texts("roles"), nonce=nonce, since_s=time.monotonic()
        )
        options = registration_options(name, self._origin, nonce=nonce, approvers=project.approvers.read())
        return {"step": "create", "id": self._keep(begun), "options": options}

    def _register(self, project: Project, actor: Actor, under_way: _Enrolment, body: Body) -> dict[str, Any]:
        response = body.table("response")
        key = registered_key(_texts(response), self._origin, nonce=under_way.nonce)
        approvers = project.approvers
        listed = approvers.read()
        statement = approvers.edit_statement(approvers.addition(under_way.name, key, under_way.roles))
        if not listed.approver:
            is_first = approvers.change(statement, actor=actor)
            return _done(under_way, is_first=is_first)
        first_signer(listed, self._origin)
        kept = self._keep(msgspec.structs.replace(under_way, statement=statement))
        return {
            "step": "sign",
            "id": kept,
            "statement": signed_bytes(statement).decode(),
            "options": authentication_options(statement, self._origin, listed),
        }

    def _keep(self, enrolment: _Enrolment) -> str:
        name = secrets.token_hex(16)
        self._open[name] = enrolment
        while len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        return name


def _texts(response: dict[str, Any]) -> dict[str, str]:
    names: Iterable[str] = ("clientDataJSON", "attestationObject")
    return {name: Body(response).word(name) for name in names}


def _done(enrolment: _Enrolment, *, is_first: bool) -> dict[str, Any]:
    trust = "; it is the first one, and trusted on first use" if is_first else ""
    return {"step": "done", "first": is_first, "done": [f"{enrolment.name} has a new key{trust}"]}
