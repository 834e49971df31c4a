"""The note of the files that write tools of clients made. Hooks append to it; a rollback reads it.

A line is a mark and a path, as a JSON text, relative to the repository: `?` before a call if the file is not there, `!`
if it is, `+` after the call. A line with `@` names the client that wrote, and the phase. Hooks import this module for
every call of a write tool, so it uses builtins only.
"""

#: The name in the directory of a session.
WRITTEN = ".process/written"


def writers(note: bytes) -> set[tuple[str, str]]:
    """The clients whose write tools changed files, each with the phase that was in progress."""
    import json  # noqa: PLC0415

    clients: set[tuple[str, str]] = set()
    for line in note.splitlines():
        if line[:1] == b"@":
            try:
                client, _, phase = json.loads(line[1:]).partition(" ")
            except (ValueError, AttributeError):
                continue
            clients.add((client, phase))
    return clients


def written_paths(note: bytes, below: str = "") -> set[str]:
    """The paths that were not there before a write tool made them, relative to the directory `below`."""
    import json  # noqa: PLC0415

    absent: set[str] = set()
    made: set[str] = set()
    for line in note.splitlines():
        try:
            path = json.loads(line[1:])
        except ValueError:
            # A full disk cut the line off. The file is kept.
            continue
        if line[:1] == b"?":
            absent.add(path)
        elif line[:1] == b"!":
            absent.discard(path)
        elif line[:1] == b"+" and path in absent:
            made.add(path)
    return {path.removeprefix(below) for path in made if path.startswith(below)}
