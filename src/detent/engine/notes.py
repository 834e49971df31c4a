"""Notes of a session: analyses, talks and ideas that are worth keeping. Their folders are made when they are needed."""

from enum import StrEnum
from itertools import count

from detent.core.session.slug import slugify
from detent.engine.redact_command import redact_text
from detent.errors import Invalid, Refused
from detent.store.port import PROJECT, Store

MAX_NOTE_BYTES = 1024 * 1024
MAX_NAME = 60


class NoteKind(StrEnum):
    CHAT = "chat"
    ANALYSIS = "analysis"
    IDEAS = "ideas"


#: The beginning of the file's name, below the session.
_PLACES = {NoteKind.CHAT: ".chat/chat-", NoteKind.ANALYSIS: ".chat/analysis-", NoteKind.IDEAS: ".brainstorming/"}


def keep_note(store: Store, session: str, kind: NoteKind, text: str, *, name: str | None = None) -> str:
    """Write the note to a file of its own; returns the file's name in the store."""
    if not text.strip():
        raise Invalid("a note needs a text")
    data = redact_text(text.strip()).encode() + b"\n"
    if len(data) > MAX_NOTE_BYTES:
        raise Invalid(f"a note may have {MAX_NOTE_BYTES} bytes and this one has {len(data)}")
    start = f"{session}/{_PLACES[kind]}"
    with store.lock(PROJECT):
        taken = set(store.names(start))
        if name is None:
            # Another machine may take a number meanwhile.
            free = (file for number in count(1) if (file := f"{start}{number}.md") not in taken)
            return next(file for file in free if store.swap(file, None, data))
        file = f"{start}{slugify(name)[:MAX_NAME].rstrip('-')}.md"
        if file in taken or not store.swap(file, None, data):
            raise Refused(f"there is already a note {file}", way_out="give it another --name")
    return file
