"""The environment of checks on this machine: the toolchain of a session's start, and the program of a command."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from detent.core.actor import ActorKind
from detent.core.gate.environment import CheckEnvironment, check_environment, is_below, tool_homes, tool_path
from detent.core.gate.evidence import Program, Toolchain
from detent.engine.actor import agent_marks
from detent.engine.agents.environment import BIN, GATE
from detent.engine.agents.own_program import NAME, write_program

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.core.gate import Gate
    from detent.core.session.session import Session

#: Of a larger program the size and the time are compared.
_MAX_HASHED = 16 * 1024 * 1024
#: Words of a shell that are no programs.
_BUILTINS = frozenset(
    (*("cd", "set", "export", "unset", "ulimit", "umask", "source", ".", "true", "false", ":", "test", "["), "exit")
)


def toolchain(
    environment: Mapping[str, str], place: "Place", commands: Iterable[str], *, started_by: ActorKind
) -> Toolchain:
    """The toolchain of a session that starts now. What an agent set in its shell is trusted less."""
    is_trusted = started_by is not ActorKind.AGENT
    roots = _roots(place)
    tools = Toolchain(
        path=tool_path(environment.get("PATH", "").split(":"), roots, _real_directory, is_trusted=is_trusted),
        homes=tool_homes(environment, roots, is_trusted=is_trusted),
    )
    programs = (program_of(command, tools.path, place) for command in commands)
    return replace(tools, programs={program.name: program for program in programs if program is not None})


def environment_of(
    session: "Session", gate: "Gate", place: "Place", inherited: Mapping[str, str], marks: Mapping[str, str]
) -> CheckEnvironment:
    """The environment of a check of the gate. `marks` are the variables of a runner."""
    tools = session.toolchain
    if tools is None:
        # The start recorded nothing: the environment of the asking process is not trusted.
        tools = toolchain(inherited, place, (), started_by=ActorKind.AGENT)
    stands = tuple(entry for entry in tools.path if _real_directory(entry) is not None)
    environment = check_environment(inherited, gate.env, replace(tools, path=stands), marks=agent_marks())
    # Agents write what a check runs, so nothing in it counts as a person.
    variables = {GATE: session.id, **environment.variables, **marks}
    if BIN in marks:
        variables["PATH"] = f"{marks[BIN]}{os.pathsep}{environment.variables['PATH']}"
    return environment._replace(variables=variables)


def program_of(command: str, path: Iterable[str], place: "Place", own: str | None = None) -> Program | None:
    """The program that the command starts; None if it is not found, or only the shell works.

    A program of the project has the same path in all worktrees. `own` is a directory with this installation of Detent,
    which is written anew, so that it is the one.
    """
    name = program_name(command, place.base)
    if name is None:
        return None
    file = _found(name, path, place.base)
    if own is not None and file == os.path.join(own, NAME):
        write_program(own)
        return None
    digest = _digest(file) if file is not None else None
    if file is None or digest is None:
        return None
    below = next((top for top in _roots(place)[::-1] if is_below(file, top)), None)
    return Program(name=name, path=os.path.relpath(file, below) if below else file, digest=digest)


def missing_program(command: str, path: Iterable[str], base: str) -> str | None:
    """The name of the program that the command starts, if it is nowhere on `path`."""
    name = program_name(command, base)
    if name is None or "$" in name:
        return None
    file = _found(name, path, base)
    return None if file is not None and os.access(file, os.X_OK) else name


def program_name(command: str, base: str) -> str | None:
    """The first word of the command that is no part of the shell."""
    from detent.core.guard.shell.walk import simple_commands  # noqa: PLC0415 - only a check needs it
    from detent.core.testrun.detect import behind_prefixes  # noqa: PLC0415

    words = (behind_prefixes(list(words)) for words in simple_commands(command, base))
    return next((each[0] for each in words if each and each[0] not in _BUILTINS), None)


def _found(name: str, path: Iterable[str], base: str) -> str | None:
    return os.path.normpath(os.path.join(base, name)) if "/" in name else shutil.which(name, path=":".join(path))


def _digest(file: str) -> str | None:
    try:
        with open(file, "rb") as opened:
            status = os.fstat(opened.fileno())
            if status.st_size > _MAX_HASHED:
                return f"size:{status.st_size}:{status.st_mtime_ns}"
            return hashlib.file_digest(opened, "sha256").hexdigest()[:32]
    except OSError:
        return None


def _roots(place: "Place") -> tuple[str, ...]:
    return tuple(dict.fromkeys((os.path.realpath(place.root), place.root, os.path.realpath(place.base), place.base)))


def _real_directory(entry: str) -> str | None:
    return os.path.realpath(entry) if os.path.isdir(entry) else None
