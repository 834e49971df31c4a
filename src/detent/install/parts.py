"""Everything that is installed for a client."""

from functools import partial

from detent.install import block, content, hook_settings, whole
from detent.install.clients import CLAUDE_CODE, CLIENT_TABLE, GEMINI, Invocation
from detent.install.part import Part

_NOTHING_TO_RUN = Invocation("", "")
_FILES = {CLAUDE_CODE: content.claude_files, GEMINI: content.gemini_files}


def parts(name: str, invocation: Invocation = _NOTHING_TO_RUN) -> list[Part]:
    """Taking them out again needs no invocation."""
    client = CLIENT_TABLE[name]
    hooks = Part(
        client.settings,
        partial(hook_settings.merge, client=client, invocation=invocation),
        partial(hook_settings.strip, client=client),
    )
    told = Part(
        client.instructions,
        partial(block.merge, name=client.instructions, text=content.instructions()),
        partial(block.strip, name=client.instructions),
    )
    files = _FILES[name]() if name in _FILES else {}
    return [hooks, told] + [
        Part(path, partial(whole.merge, name=path, content=text), partial(whole.strip, name=path))
        for path, text in files.items()
    ]
