"""The scripts of a project that its test command starts: given to an interpreter, by path, or by a makefile.

They decide what is tested, as the settings of a runner do. They are found by reading, and nothing is run. A script that
another language starts is not found.
"""

import json
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator

from detent.core.guard.path_pattern import ANY
from detent.core.guard.shell.walk import simple_commands
from detent.core.testrun.detect import behind_prefixes, tool_name

#: How many scripts are followed.
MAX_SCRIPTS = 100
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "source", "."))
_INTERPRETERS = _SHELLS | {"python", "node", "bun", "tsx", "ts-node", "ruby", "perl", "php"}
#: Options whose value is code or a module: no script follows.
_WITHOUT_SCRIPT = frozenset(("-c", "-m", "-e", "-p", "--eval", "--print", "--test"))
#: The files in which these programs find their commands. They are protected themselves.
_RECIPES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile"),
    **dict.fromkeys(("npm", "pnpm", "yarn"), ("package.json",)),
}
_INCLUDE = re.compile(r"^[-s]?include\s+(.+)$")


def started_scripts(
    commands: Iterable[str], files: Collection[str], read: Callable[[str], str | None]
) -> frozenset[str]:
    """The scripts among `files` that the commands start, and those that these start. `read` gives the text of one."""
    scripts: set[str] = set()
    recipes: set[str] = set()
    todo = [*commands]
    while todo and len(scripts) < MAX_SCRIPTS:
        for words in simple_commands(todo.pop()):
            started = behind_prefixes(list(words))
            name = tool_name(started[0]) if started else ""
            new = {path for path in _paths(name, started, files) if path not in scripts}
            scripts |= new
            texts = [read(path) for path in sorted(new) if _is_shell(path, name)]
            for recipe in _RECIPES.get(name, ()):
                if recipe in files and recipe not in recipes:
                    recipes.add(recipe)
                    included, lines = _recipe(recipe, read(recipe) or "")
                    known = {path for path in included if path in files and path not in scripts}
                    scripts |= known
                    texts += [*lines, *(line for path in sorted(known) for line in _recipe(path, read(path) or "")[1])]
            todo += [text for text in texts if text]
    return frozenset(scripts)


def _paths(name: str, words: list[str], files: Collection[str]) -> Iterator[str]:
    """The file of the project that a command starts; of one whose directory is not known, all of its name."""
    start = words[0] if words and "/" in words[0] and name not in _INTERPRETERS else ""
    if name in _INTERPRETERS:
        options = 0
        while options + 1 < len(words) and words[options + 1].startswith("-"):
            options += 1
            if words[options] in _WITHOUT_SCRIPT:
                return
        start = words[options + 1] if options + 1 < len(words) else ""
    if start.startswith(f"{ANY}/"):
        yield from (path for path in files if f"/{path}".endswith(start.removeprefix(ANY)))
    elif (path := posixpath.normpath(start)) in files:
        yield path


def _is_shell(path: str, name: str) -> bool:
    return name in _SHELLS or path.endswith((".sh", ".bash")) or "." not in posixpath.basename(path)


def _recipe(path: str, text: str) -> tuple[list[str], list[str]]:
    """The files that a recipe includes, and its commands."""
    if path.endswith(".json"):
        try:
            scripts = json.loads(text).get("scripts", {})
        except (ValueError, AttributeError, RecursionError):
            return [], []
        return [], [line for line in scripts.values() if isinstance(line, str)] if isinstance(scripts, dict) else []
    included: list[str] = []
    lines = []
    for line in text.replace("\\\n", " ").splitlines():
        if match := _INCLUDE.match(line):
            included += map(posixpath.normpath, match[1].split())
        elif line[:1].isspace():
            lines.append(line.strip().lstrip("@-+"))
    return included, lines
