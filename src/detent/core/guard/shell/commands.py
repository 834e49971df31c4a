"""Runs one simple command on paper: built-ins, programs that run others, and programs that write files."""

from detent.core.guard.path_pattern import ANY, STAR, normal, shown
from detent.core.guard.shell.expand import MAX_FIELDS, Expander, Place
from detent.core.guard.shell.opaque import written_by_code
from detent.core.guard.shell.prefixes import unwrapped
from detent.core.guard.shell.wrappers import (
    SHELLS,
    interpreter_code,
    parallel_command,
    read_find,
    shell_code,
    xargs_command,
)
from detent.core.guard.shell.writes import EXCEPT, Target, written

_MAX_NESTING = 16
_NO_FILE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/")
_INTERPRETERS = ("python", "pypy", "node", "deno", "bun", "perl", "ruby", "php", "tsx")
_INPUT = ("-", "/dev/stdin")
_ECHOES = frozenset(("echo", "printf", "ls", "realpath", "readlink"))
_FILTERS = frozenset(("cat", "tee", "sort", "uniq", "head", "tail", "tac", "grep", "egrep", "fgrep", "rg"))
_FRESH = "/tmp/.fresh"  # noqa: S108 - stands for a name that did not exist before


class Commands(Expander):
    """Collects targets, command by command. A subclass walks the nodes of a text."""

    __slots__ = ("_seen", "argvs", "code", "descriptors", "fuel", "opaque", "spared", "targets")

    def __init__(self, home: str, work: int) -> None:
        super().__init__(home)
        self.targets: list[Target] = []
        self.argvs: list[list[str]] = []
        self.code: list[str] = []
        self.spared: list[str] = []
        self.descriptors: dict[str, list[str]] = {}
        self.fuel = work
        self.opaque = False
        self._seen: set[tuple[str, ...]] = set()

    def run_text(self, text: str, place: Place) -> list[str]:
        """The lines that a text prints when it runs as commands; it changes `place`."""
        raise NotImplementedError(text, place)

    def call(self, name: str, place: Place) -> list[str]:
        """The lines that a function of the command prints."""
        raise NotImplementedError(name, place)

    def add(self, path: str, how: str, place: Place) -> None:
        """A target, seen from wherever the command may be running."""
        if not path or path.startswith(_NO_FILE):
            return
        for cwd in place.cwds:
            target = shown(normal(path, cwd))
            spared = [shown(normal(each, cwd)) for each in self.spared] if how != EXCEPT else []
            key = (target, how, *spared)
            if how == EXCEPT or key not in self._seen:
                self._seen.add(key)
                self.targets.append((target, how))
                self.targets.extend((each, EXCEPT) for each in spared)

    def run(self, argv: list[str], place: Place) -> list[str]:
        """The lines that a command prints; adds the files that it writes to the targets."""
        self.fuel -= 1 + len(argv) // 8
        if not argv:
            return []
        self.argvs.append(argv)
        if self.fuel < 0 or place.depth > _MAX_NESTING:
            self.opaque = True
            return [ANY]
        name = argv[0].rpartition("/")[2]
        if name in place.functions:
            inner = self._inner(place)
            inner.names["@"] = argv[1:]
            printed = self.call(name, inner)
            place.cwds = inner.cwds
            return printed
        builtin = _BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, argv, place)
        if name in SHELLS:
            return self._shell(argv, place)
        inside = unwrapped(name, argv)
        if inside is not None:
            return self._wrapped(inside, place)
        language = name.rstrip("0123456789.").removesuffix("js")
        if language in _INTERPRETERS:
            return self._code(language, argv, place)
        for path, how in written(name, argv[1:], place.stdin):
            self.add(path, how, place)
        return _printed(name, argv[1:], place)

    def _inner(self, place: Place) -> Place:
        inner = place.copy()
        inner.depth += 1
        return inner

    def _wrapped(self, inside: tuple[list[str], str], place: Place) -> list[str]:
        argv, directory = inside
        if not argv:
            return [ANY]
        inner = self._inner(place)
        if directory:
            inner.cwds = [normal(directory, cwd) for cwd in place.cwds]
        printed = self.run(argv, inner)
        if not directory:
            place.cwds = inner.cwds  # `command cd x`, `builtin cd x`
        return printed

    def _shell(self, argv: list[str], place: Place) -> list[str]:
        code, rest, reads_input = shell_code(argv)
        inner = self._inner(place)
        if code is not None:
            inner.names["0"], inner.names["@"] = rest[:1] or ["sh"], rest[1:]
            return self.run_text(code, inner)
        inner.names["@"] = rest if reads_input else rest[1:]
        if reads_input or rest[0] in self.descriptors:
            lines = self.descriptors.get(rest[0]) if rest else None
            inner.stdin = None
            return self.run_text("\n".join(lines or place.stdin or []), inner)
        return [ANY]

    def do_cd(self, argv: list[str], place: Place) -> list[str]:
        """Also pushd and popd."""
        arguments = [arg for arg in argv[1:] if arg == "-" or not arg.startswith(("-", "+"))]
        before = place.cwds
        if argv[0] == "popd":
            if place.stack:
                place.cwds = place.stack.pop()
            return []
        if argv[0] == "pushd":
            place.stack.append(before)
        goal = arguments[0] if arguments else self.home
        if goal == "-":
            place.cwds = place.names.get("OLDPWD", [ANY])
        else:
            place.cwds = list(dict.fromkeys(normal(goal, cwd) for cwd in before))
        place.names["OLDPWD"] = before
        return []

    def do_eval(self, argv: list[str], place: Place) -> list[str]:
        """Text, run right here."""
        place.depth += 1
        printed = self.run_text(" ".join(argv[1:]), place)
        place.depth -= 1
        return printed

    def do_source(self, argv: list[str], place: Place) -> list[str]:
        """A script that is at hand, as input or as a process."""
        goal = "".join(argv[1:2])
        lines = place.stdin if goal in _INPUT else self.descriptors.get(goal)
        return self.do_eval(["eval", "\n".join(lines)], place) if lines else []

    def do_trap(self, argv: list[str], place: Place) -> list[str]:
        """Text for later."""
        self.run_text("".join([arg for arg in argv[1:] if arg[:1] != "-"][:1]), self._inner(place))
        return []

    def do_set(self, argv: list[str], place: Place) -> list[str]:
        """The positional parameters."""
        if "--" in argv:
            place.names["@"] = argv[argv.index("--") + 1 :][:MAX_FIELDS]
        return []

    def do_shift(self, argv: list[str], place: Place) -> list[str]:  # noqa: ARG002 - built-ins are called alike
        """The positional parameters, one less."""
        place.names["@"] = place.names.get("@", [])[1:] or [ANY]
        return []

    def do_read(self, argv: list[str], place: Place) -> list[str]:
        """A line, or all of them, into variables."""
        lines = place.stdin if place.stdin is not None else [ANY]
        words = [word for line in lines for word in line.split("\n")]
        options_end = [arg for arg in argv[1:] if not arg.startswith("-")] or ["REPLY"]
        for name in options_end:
            place.names[name] = words
        return []

    def do_unset(self, argv: list[str], place: Place) -> list[str]:
        """Forgets variables."""
        for name in argv[1:]:
            place.names.pop(name, None)
        return []

    def do_nothing(self, argv: list[str], place: Place) -> list[str]:  # noqa: ARG002
        """Commands that write nothing whatever their arguments are."""
        return []

    def do_find(self, argv: list[str], place: Place) -> list[str]:
        """Files that are named, and what is done to them."""
        files, spared, targets, commands = read_find(argv[1:])
        self.spared = self.spared + [each if each.startswith((".", "/", ANY)) else f"{ANY}/{each}" for each in spared]
        for path, how in targets:
            self.add(path, how, place)
        for command in commands:
            self.run(command, self._inner(place))
        return files

    def do_xargs(self, argv: list[str], place: Place) -> list[str]:
        """A command for names that are read. Also parallel."""
        lines = [part for line in place.stdin or [ANY] for part in line.split("\n")]
        build = xargs_command if argv[0].endswith("xargs") else parallel_command
        inner = self._inner(place)
        inner.stdin = None
        return self.run(build(argv, lines), inner)

    def _code(self, language: str, argv: list[str], place: Place) -> list[str]:
        """Code for an interpreter: given with an option, or its input."""
        codes, rest, in_place = interpreter_code(language, argv)
        if not codes and (not rest or rest[0] in _INPUT):
            codes = place.stdin or []
        for path, how in in_place:
            self.add(path, how, place)
        how = f"{language} -{'c' if language in ('python', 'pypy') else 'e'}"
        for code in codes:
            self.code.append("\n".join([code, *rest]))
            for path in written_by_code(code, rest):
                self.add(path, how, place)
        return [ANY]


def _printed(name: str, args: list[str], place: Place) -> list[str]:
    """The lines that a command prints, for substitutions, pipes and `xargs`; `**` if they are unknown."""
    names = [arg for arg in args if arg[:1] != "-"]
    if name in _ECHOES:
        return ([" ".join(names)] if name == "echo" else names) or [STAR]
    if name == "pwd":
        return place.cwds
    if name == "mktemp":
        return [_FRESH]
    return place.stdin if name in _FILTERS and place.stdin is not None else [ANY]


_BUILTINS = {
    "cd": Commands.do_cd, "pushd": Commands.do_cd, "popd": Commands.do_cd, "chdir": Commands.do_cd,
    "eval": Commands.do_eval,
    "source": Commands.do_source, ".": Commands.do_source, "trap": Commands.do_trap, "set": Commands.do_set,
    "shift": Commands.do_shift,
    "read": Commands.do_read, "mapfile": Commands.do_read, "readarray": Commands.do_read, "unset": Commands.do_unset,
    "detent": Commands.do_nothing, "[": Commands.do_nothing, "test": Commands.do_nothing, "exit": Commands.do_nothing,
    "return": Commands.do_nothing, "find": Commands.do_find, "gfind": Commands.do_find, "xargs": Commands.do_xargs,
    "gxargs": Commands.do_xargs, "parallel": Commands.do_xargs, "alias": Commands.do_nothing,
    ":": Commands.do_nothing,
    "true": Commands.do_nothing, "false": Commands.do_nothing,
}  # fmt: skip
