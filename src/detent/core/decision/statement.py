"""The statement that a person signs: which decision it is, and what was shown."""

from datetime import datetime

import msgspec

from detent.errors import Invalid
from detent.sha256 import sha256

FORMAT = "detent-decision/1"
#: The namespace of SSH signatures: one that was made for another purpose is no decision.
NAMESPACE = "detent"
#: Random bytes in a statement. A statement counts once.
NONCE_BYTES = 16
#: The decision of a vote against.
REJECT = "reject"


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, with everything that it is about."""

    format: str = FORMAT
    #: The id of the project.
    project: str
    #: Empty if the decision is about no session.
    session: str = ""
    phase: str = ""
    gate: str = ""
    attempt: int = 0
    #: The name of the decision, or `reject` for a vote against.
    decision: str
    #: What was chosen, where the name does not say it: the action, the answer, the phases, the tests, the command.
    choice: str = ""
    reason: str = ""
    #: The approver or role in whose place it is decided.
    stands_for: str = ""
    #: The position of the journal that was shown.
    version: int = 0
    sum: str = ""
    #: The digest of the files that were shown; empty if the decision is not about files.
    tree: str = ""
    at: datetime
    #: Random, in hex.
    nonce: str


_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(Statement).decode


def signed_bytes(statement: Statement) -> bytes:
    """The canonical JSON of the statement: sorted keys, no spaces, UTF-8. An SSH key signs exactly these bytes."""
    return _encode(statement)


def challenge(statement: Statement) -> bytes:
    """The challenge of the statement for WebAuthn."""
    return sha256(signed_bytes(statement)).digest()


def read_statement(text: str) -> Statement:
    """The statement in a proof; `Invalid` unless the text is the canonical JSON of one."""
    try:
        statement = _decode(text)
    except msgspec.DecodeError as error:
        raise Invalid(f"the signed text is no decision: {error}") from error
    if statement.format != FORMAT:
        raise Invalid(f"the signed text has the format {statement.format[:40]!r}, and {FORMAT} is expected")
    if signed_bytes(statement) != text.encode(errors="replace"):
        raise Invalid("the signed text is not written in the one way that a decision is written")
    return statement


def shown_lines(statement: Statement) -> list[str]:
    """Describe the statement for the person who decides."""
    gate = f"gate {statement.gate} of " if statement.gate and statement.phase else ""
    where = f"{gate}{statement.phase}, attempt {statement.attempt}" if statement.phase else statement.gate
    rows = {
        "session": statement.session,
        "about": where,
        "choice": statement.choice,
        "reason": statement.reason,
        "in place of": statement.stands_for,
        "files": f"as they are now, tree {statement.tree[:12]}" if statement.tree else "",
    }
    width = max(map(len, rows))
    return [statement.decision, *(f"  {name:<{width}}  {text}" for name, text in rows.items() if text)]
