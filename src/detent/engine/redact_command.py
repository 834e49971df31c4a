"""Redacts secrets from text that enters the journal or another record of a session.

This is one of two boundaries where the texts of a session are redacted; the other is `run/feed.py`, for the events of a
run. A text is redacted while it is whole: cutting it first could leave half a secret that no rule recognises.
Instructions are redacted too: the task of a session, and the titles and documents of its tasks.

A test fills every field of every command with a secret. A field that keeps it must be declared in that test.
"""

from functools import cache
from types import ModuleType
from typing import Any, TypeVar

from msgspec.structs import replace

from detent.core.session.commands import CheckGate, Command, Import, RepairTask, SplitTask, Start, WriteTasks
from detent.core.task.split import ChildDraft

#: Fields in which people and agents write in their own words, of every command and of the values in it.
_PROSE = frozenset(
    {
        *("answer", "choice", "choices", "context", "deliverables", "detail", "error", "input", "met"),
        *("note", "reason", "report", "summary", "text", "tool", "tools", "worker"),
    }
)
#: Fields of a part of a task that people and agents write in their own words.
_DRAFTED = frozenset({"title", "requirements", "acceptance", "description", "target_files", "focus_paths", "type"})
#: The fields of each kind of command that are prose.
_PROSE_OF: dict[type, tuple[str, ...]] = {}
_C = TypeVar("_C", bound=Command)


def redact_command(command: _C) -> _C:
    """The command as it may be recorded."""
    if isinstance(command, CheckGate):
        # The rest of a receipt comes from output that is redacted already.
        receipt = command.receipt
        ran, aside = redact_text(receipt.command), redact_text(receipt.aside or "") or None
        if receipt.named or receipt.findings or receipt.review is not None:
            # Names that a caller gave, and what a tool or a reviewer wrote, are in the error too.
            named, findings = (tuple(map(redact_text, names)) for names in (receipt.named, receipt.findings))
            error, review = redact_text(receipt.error or "") or None, receipt.review
            if review is not None:
                review = replace(review, text=redact_text(review.text))
            receipt = replace(receipt, named=named, findings=findings, review=review, error=error, signature=error)
        return replace(command, receipt=replace(receipt, command=ran, aside=aside))
    if isinstance(command, WriteTasks):
        return replace(
            command, documents=tuple(map(redact_tree, command.documents)), reason=redact_text(command.reason)
        )
    if isinstance(command, SplitTask):
        parts = tuple(map(_redact_draft, command.parts))
        return replace(command, document=redact_tree(command.document), parts=parts)
    if isinstance(command, RepairTask):
        document = redact_tree(command.document) if command.document is not None else None
        return replace(command, document=document, reason=redact_text(command.reason))
    kind = type(command)
    if kind not in _PROSE_OF:
        _PROSE_OF[kind] = tuple(name for name in command.__struct_fields__ if name in _PROSE)
    for name in _PROSE_OF[kind]:
        if getattr(command, name):
            redacted: _C = _redaction().redact_fields(command, _PROSE)
            return redacted
    return command


def redact_start(command: Start) -> Start:
    """The command that opens a session, as it may be recorded."""
    notes = command.discovery
    if notes is not None:
        notes = replace(notes, text=redact_text(notes.text))
    return replace(command, task=redact_text(command.task), discovery=notes)


def redact_import(command: Import) -> Import:
    """The command that imports a state document, as it may be recorded."""
    imported = command.imported
    phases = {
        key: replace(phase, summary=redact_text(phase.summary or "") or None) for key, phase in imported.phases.items()
    }
    imported = replace(imported, phases=phases, carried=redact_tree(imported.carried))
    return replace(command, start=redact_start(command.start), imported=imported)


def _redact_draft(draft: ChildDraft) -> ChildDraft:
    redacted: ChildDraft = _redaction().redact_fields(draft, _DRAFTED)
    return redacted


def redact_text(text: str) -> str:
    """The output of a check or a summary, before it is read, cut or written."""
    redacted: str = _redaction().redact(text) if text else text
    return redacted


def redact_tree(value: Any) -> Any:
    """The same for a JSON value."""
    return _redaction().redact_tree(value)


@cache
def _redaction() -> ModuleType:
    from detent.core import redact  # noqa: PLC0415 - slow to load, and many commands have no prose

    return redact
