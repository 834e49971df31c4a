"""Checks paths and places in files as a task document names them; each check returns the problem or None."""

import re

_WILDCARDS = frozenset("*?[]{}")
_LINES = re.compile(r"([0-9]{1,9})-([0-9]{1,9})", re.ASCII)


def path_problem(path: str) -> str | None:
    """For a path inside the project, which need not exist."""
    if not path.strip() or "\0" in path or path != path.strip():
        return "is not a path"
    if path.startswith(("/", "\\", "~")) or path[1:3] in (":/", ":\\"):
        return "must be relative to the project"
    if path.startswith("./"):
        return f"must be written without ./ as {path.lstrip('./') or 'a name'}"
    if ".." in path.split("/"):
        return "leads out of its directory with .."
    return None


def focus_problem(path: str) -> str | None:
    """For a path of one file or directory, without wildcards."""
    problem = path_problem(path)
    if problem is None and not _WILDCARDS.isdisjoint(path):
        return "has a wildcard; name the directory or the file itself"
    return problem


def target_problem(target: str) -> str | None:
    """For `file`, `file:symbol` or `file:symbol:a-b`; a symbol may contain `::`."""
    file, colon, rest = target.partition(":")
    problem = path_problem(file)
    if problem or not colon:
        return problem
    symbol, *lines = rest.replace("::", "\0").split(":")
    if not symbol.strip() or len(lines) > 1:
        return "must be file, file:symbol or file:symbol:first-last"
    if not lines:
        return None
    match = _LINES.fullmatch(lines[0])
    if not match:
        return f"has lines {lines[0]!r}, which must be first-last"
    return f"ends at line {match[2]}, before it begins" if int(match[1]) > int(match[2]) else None


def target_file(target: str) -> str:
    return target.partition(":")[0]
