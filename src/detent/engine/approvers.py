"""The list of approvers in `approvers.toml`: reads it, checks the changes that made it, and changes it.

Each change is signed by an approver who was listed before it. The first one cannot be: it is trusted on first use, and
every surface says so. A list that was written by hand has no changes, and is trusted as it is until the first change.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from detent.core.actor import Actor, Assurance, Channel, Proof
from detent.core.decision.approvers import FILE, MAX_CHANGES, Approver, Approvers, Change, Key, checked
from detent.core.decision.statement import NONCE_BYTES, Statement, read_statement, signed_bytes
from detent.core.limits import MAX_NAME, check_text
from detent.engine.confirm import ask
from detent.engine.policy import Decision, authorize, authorize_or_sign, check_signer
from detent.engine.proofs import Signer, Verified, verify_proof
from detent.errors import Invalid, NotFound, Refused
from detent.store import disk

_DECISIONS = (Decision.LIST, Decision.UNLIST)
_MAX_BYTES = 4 * 1024 * 1024
_HEAD = """\
# The approvers of this project: who may sign decisions, and with which keys. Change it with detent approver:
# every change is signed by one of them, and a list that does not follow from its changes is refused.
"""


class Edit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One change: the entry of a name before and after it, or None where there is none."""

    name: str = ""
    entry: Approver | None = None
    #: The list that was written by hand before the first change.
    trusted: tuple[Approver, ...] | None = None


class Trusted(NamedTuple):
    """The list, and what it rests on."""

    approvers: Approvers
    #: Names whose first entry has no signature: it is trusted on first use.
    on_first_use: frozenset[str]


_encode_edit = msgspec.json.Encoder(order="sorted").encode
_decode_edit = msgspec.json.Decoder(Edit).decode


class ApproversFile:
    def __init__(self, root: str, project: str, clock: Callable[[], datetime]) -> None:
        self.path = os.path.join(root, FILE)
        self._project, self._clock = project, clock

    def read(self) -> Approvers:
        """The approvers; none without the file. Raises `Invalid` or `Refused` if the list cannot be trusted."""
        return self.trusted().approvers

    def trusted(self) -> Trusted:
        return trusted_list(read_approvers(self.path))

    def add(self, name: str, key: Key | None, roles: Iterable[str], *, actor: Actor, signer: Signer | None) -> bool:
        """Add an approver, or a key and roles to one; returns whether it is trusted on first use."""
        return self.change(self.edit_statement(self.addition(name, key, roles)), actor=actor, signer=signer)

    def addition(self, name: str, key: Key | None, roles: Iterable[str]) -> Edit:
        """The change that adds an approver, or a key and roles to one."""
        before = self.read()
        name = check_text("the name of an approver", name, MAX_NAME)
        known = next((approver for approver in before.approver if approver.name == name), Approver(name=name))
        if key is not None and before.owner(key.id) is not None:
            raise Refused(f"the key {key.id} is listed already, for {_owner(before, key)}")
        roles = tuple(dict.fromkeys((*known.roles, *(check_text("a role", role, MAX_NAME) for role in roles))))
        entry = replace(known, roles=roles, keys=(*known.keys, *([key] if key is not None else [])))
        if not entry.keys:
            raise Invalid(f"{name} has no key yet", way_out=f"detent approver add {name} --public-key FILE")
        return Edit(name=name, entry=entry)

    def remove(self, name: str, key: str | None, *, actor: Actor, signer: Signer | None) -> bool:
        """Remove an approver, or one key of an approver."""
        before = self.read()
        known = next((approver for approver in before.approver if approver.name == name), None)
        if known is None:
            raise NotFound(f"there is no approver {name}; {FILE} lists {', '.join(before.names) or 'no approver'}")
        kept = tuple(owned for owned in known.keys if key is not None and owned.id != key)
        if key is not None and len(kept) == len(known.keys):
            raise NotFound(f"{name} has no key {key}; it has {', '.join(owned.id for owned in known.keys)}")
        entry = replace(known, keys=kept) if kept else None
        if entry is None and before.names == (name,):
            raise Refused(
                f"{name} is the only approver, and no other one could sign a change",
                way_out=f"detent approver add another one first, or delete {FILE} by hand",
            )
        statement = self.edit_statement(Edit(name=name, entry=entry), Decision.UNLIST)
        return self.change(statement, actor=actor, signer=signer)

    def edit_statement(self, edit: Edit, decision: Decision = Decision.LIST) -> Statement:
        """The statement to sign for a change of the list as it is now."""
        listed = read_approvers(self.path)
        return Statement(
            project=self._project,
            decision=decision,
            choice=_encode_edit(edit).decode(),
            version=len(_with_trust(listed, self._clock(), self._project).change),
            sum=_digest(listed.approver),
            at=self._clock(),
            nonce=os.urandom(NONCE_BYTES).hex(),
        )

    def change(
        self, statement: Statement, *, actor: Actor, signer: Signer | None = None, proof: Proof | None = None
    ) -> bool:
        """Make the change that the statement is about; returns whether it is trusted on first use."""
        before = _with_trust(read_approvers(self.path), self._clock(), self._project)
        is_first = not before.change
        decision = Decision(statement.decision)
        authorize_or_sign(actor, decision, is_signed=signer is not None or proof is not None)
        if is_first:
            # No key is known to check a signature with, so a person has to be there.
            authorize(actor, decision)
            if actor.channel is not Channel.PAGE:
                # A page shows the change itself, and its button is the answer.
                ask([statement.decision, *_edit_lines(_decode_edit(statement.choice))], str(decision))
            change = Change(statement=signed_bytes(statement).decode())
        else:
            given = proof or (signer.sign(statement) if signer is not None else None)
            if given is None:
                raise Refused(
                    f"a change of {FILE} is signed by one who is listed: {', '.join(before.names)}",
                    way_out="add --sign, or --sign --key FILE",
                )
            check_signer(actor, decision, verify_proof(given, before).assurance)
            change = Change(statement=given.statement, method=given.method, key=given.key, signature=given.signature)
        after = replace(before, change=(*before.change, change))
        listing = _replayed(after.change)
        after = replace(after, approver=listing.approvers.approver)
        with disk.failing_as("write", self.path):
            disk.replace(self.path, _written(checked(after)).encode(), mode=0o666, durable=True)
        return is_first


def read_approvers(path: str) -> Approvers:
    """The content of the file, well formed but not yet trusted; empty without the file."""
    import tomllib  # noqa: PLC0415 - few commands need it

    if os.path.exists(path) and not os.path.isfile(path):
        raise Invalid(f"{path} is not a file", way_out="rename it; without it no key counts")
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return Approvers()
    except OSError as error:
        raise disk.failure("read", path, error) from error
    if len(data) > _MAX_BYTES:
        raise Invalid(f"{path} may have {_MAX_BYTES} bytes")
    try:
        return checked(msgspec.convert(tomllib.loads(data.decode()), Approvers), path)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise Invalid(f"{path} cannot be used: {error}", way_out="restore it from git") from error


def trusted_list(listed: Approvers) -> Trusted:
    """The list, if it follows from its changes; `Refused` otherwise."""
    if not listed.change:
        return Trusted(listed, frozenset(listed.names))
    replayed = _replayed(listed.change)
    if replayed.approvers.approver != listed.approver:
        raise Refused(
            f"the list in {FILE} does not follow from its signed changes: it was edited by hand",
            way_out=f"restore {FILE} from git, and change it with detent approver",
        )
    return Trusted(listed, replayed.on_first_use)


def _replayed(history: tuple[Change, ...]) -> Trusted:
    """The list that the changes make. Raises `Refused` at one without the signature of a listed approver."""
    if len(history) > MAX_CHANGES:
        raise Invalid(f"{FILE} may have {MAX_CHANGES} changes")
    entries: dict[str, Approver] = {}
    first_use: frozenset[str] = frozenset()
    for number, change in enumerate(history):
        before = Approvers(approver=tuple(entries.values()))
        statement = read_statement(change.statement)
        basis = (statement.version, statement.sum)
        if statement.decision not in _DECISIONS or basis != (number, _digest(before.approver)):
            raise Refused(f"change {number + 1} of {FILE} was signed for another list")
        if number:
            _check_strength(before, verify_proof(_proof(change), before))
        edit = _read_edit(statement.choice)
        if edit.trusted is not None:
            if number:
                raise Refused(f"change {number + 1} of {FILE} trusts a list that was written by hand")
            entries = {approver.name: approver for approver in edit.trusted}
        elif edit.entry is None:
            entries.pop(edit.name, None)
        else:
            entries[edit.name] = edit.entry
        first_use = frozenset(entries) if not number else first_use & entries.keys()
    return Trusted(Approvers(approver=tuple(entries.values()), change=history), first_use)


def _check_strength(before: Approvers, signed: Verified) -> None:
    """Refuse a signature that is weaker than the strongest listed key: it could add a key of any strength."""
    devices = [owner.name for owner in before.approver if any(key.is_hardware for key in owner.keys)]
    if devices and not signed.assurance.reaches(Assurance.HARDWARE):
        raise Refused(
            f"a change of {FILE} needs the assurance hardware once such a key is listed, and {signed.name} signed it "
            f"with {signed.assurance}",
            way_out=f"let one of them sign it with a key that is touched: {', '.join(devices)}",
        )


def _with_trust(listed: Approvers, at: datetime, project: str) -> Approvers:
    """The list with its changes; one that was written by hand gets a first change that trusts it."""
    if listed.change or not listed.approver:
        trusted_list(listed)
        return listed
    statement = Statement(
        project=project,
        decision=Decision.LIST,
        choice=_encode_edit(Edit(trusted=listed.approver)).decode(),
        sum=_digest(()),
        at=at,
        nonce=os.urandom(NONCE_BYTES).hex(),
    )
    return replace(listed, change=(Change(statement=signed_bytes(statement).decode()),))


def _proof(change: Change) -> Proof:
    return Proof(
        assurance=Assurance.SIGNED,
        method=change.method,
        statement=change.statement,
        signature=change.signature,
        key=change.key,
    )


def _read_edit(text: str) -> Edit:
    try:
        return _decode_edit(text)
    except msgspec.DecodeError as error:
        raise Invalid(f"a change of {FILE} cannot be read: {error}") from error


def _edit_lines(edit: Edit) -> list[str]:
    """The change of the list, for the person who is asked about it."""
    entry = edit.entry or Approver(name=edit.name)
    rows = {
        "approver": edit.name,
        "roles": ", ".join(entry.roles),
        **{f"key {number}": f"{key.kind} {key.id}" for number, key in enumerate(entry.keys, 1)},
        "trust": "on first use: no approver is listed yet who could sign it",
    }
    return [f"  {name:<8}  {text}" for name, text in rows.items() if text]


def _owner(approvers: Approvers, key: Key) -> str:
    owned = approvers.owner(key.id)
    return owned.approver.name if owned is not None else "no approver"


def _digest(listed: tuple[Approver, ...]) -> str:
    return hashlib.sha256(msgspec.json.encode(listed, order="sorted")).hexdigest()


def _written(approvers: Approvers) -> str:
    """The file, as TOML."""
    lines = [_HEAD]
    for approver in approvers.approver:
        lines += ["[[approver]]", f"name = {_text(approver.name)}"]
        lines += [f"roles = [{', '.join(map(_text, approver.roles))}]"] if approver.roles else []
        lines += ["keys = [", *(f"  {_inline(msgspec.to_builtins(key))}," for key in approver.keys), "]", ""]
    for change in approvers.change:
        lines += [
            "[[change]]",
            *(f"{name} = {_text(value)}" for name, value in msgspec.to_builtins(change).items()),
            "",
        ]
    return "\n".join(lines)


def _inline(table: dict[str, str | bool]) -> str:
    values = {name: _text(value) if isinstance(value, str) else str(value).lower() for name, value in table.items()}
    return "{ " + ", ".join(f"{name} = {value}" for name, value in values.items()) + " }"


def _text(value: str) -> str:
    """A basic string of TOML, which is a string of JSON that also escapes the delete character."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
