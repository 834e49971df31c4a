"""Runs one simple command on paper: built-ins, programs that run others, and programs that name files."""

from detent.core.guard.path_pattern import ANY, STAR, is_literal, normal, shown
from detent.core.guard.shell.expand import MAX_FIELDS, MAX_PATH, Expander, Place
from detent.core.guard.shell.fuel import Fuel, OutOfFuel
from detent.core.guard.shell.prefixes import PREFIXES, unwrapped
from detent.core.guard.shell.programs import (
    CODED,
    INTERPRETERS,
    SHELLS,
    find_names,
    has,
    is_named,
    is_plain,
    reads,
    starts_command,
    verb_of,
    written,
)

#: A path that a command may write, the program that may, and whether all that is below it counts, too.
Target = tuple[str, str, bool]
_MAX_NESTING = 16
_NO_FILE = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/")
_INPUT = ("-", "/dev/stdin", "/dev/fd/0")
_ECHOES = frozenset(("echo", "printf", "ls", "realpath", "readlink", "which"))
_FILTERS = frozenset(("cat", "tee", "sort", "uniq", "head", "tail", "tac", "grep", "egrep", "fgrep", "rg"))
_EVALUATES = "-c -e -E -p -r --eval --print"
_ASKS = "--version --help -V -v -h"
_FRESH = "/tmp/.fresh"  # noqa: S108 - stands for a name that did not exist before


class Commands(Expander):
    """Collects targets, command by command. A subclass walks the nodes of a text.

    `code` is text in another language. `texts` are the arguments and the input of unknown programs. `prompts` are
    shells and interpreters that would wait for commands which no hook sees.
    """

    __slots__ = ("_seen", "argvs", "code", "descriptors", "prompts", "targets", "texts")

    def __init__(self, home: str, fuel: Fuel) -> None:
        super().__init__(home, fuel)
        self.targets: list[Target] = []
        self.argvs: list[list[str]] = []
        self.code: list[str] = []
        self.texts: list[str] = []
        self.prompts: list[str] = []
        self.descriptors: dict[str, list[str]] = {}
        self._seen: set[Target] = set()

    def run_text(self, text: str, place: Place) -> list[str]:
        """The lines that a text prints when it runs as commands; it changes `place`."""
        raise NotImplementedError(text, place)

    def call(self, name: str, place: Place) -> list[str]:
        """The lines that a function of the command prints."""
        raise NotImplementedError(name, place)

    def add(self, path: str, how: str, place: Place, *, below: bool = False) -> None:
        """A target, seen from wherever the command may be running."""
        if not path or path.startswith(_NO_FILE):
            return
        if len(path) > MAX_PATH:
            if is_literal(shown(path)):
                return
            raise OutOfFuel
        for cwd in place.cwds:
            self.fuel.burn(2 + (len(path) + len(cwd)) // 4)
            target = (shown(normal(path, cwd)), how, below)
            if target not in self._seen:
                self._seen.add(target)
                self.targets.append(target)

    def run(self, argv: list[str], place: Place) -> list[str]:
        """The lines that a command prints; adds the files that it may write to the targets."""
        self.fuel.burn(10 + 4 * len(argv))
        if not argv:
            return []
        self.argvs.append(argv)
        if place.depth > _MAX_NESTING:
            raise OutOfFuel
        # A directory or an empty word cannot be run, but a name is shown for it.
        name = argv[0].rpartition("/")[2] or argv[0] or "''"
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
            for arg in argv[1 : max(1, len(argv) - len(inside[0]))]:
                if arg[:1] != "-" and arg != inside[1]:
                    self.add(arg, name, place)  # the file of `time -o`, the lock of `flock`
            return self._wrapped(inside, place)
        language = name.rstrip("0123456789.").removesuffix("js")
        if language in INTERPRETERS:
            return self._code(language, argv[1:], place)
        self._use(name, argv[1:], place)
        return _printed(name, argv[1:], place)

    def _inner(self, place: Place) -> Place:
        inner = self.copied(place)
        inner.depth += 1
        return inner

    def _wrapped(self, inside: tuple[list[str], str], place: Place) -> list[str]:
        argv, directory = inside
        if not argv:
            return [ANY]
        inner = self._inner(place)
        if directory:
            inner.cwds = [self.path(directory, cwd) for cwd in place.cwds]
        printed = self.run(argv, inner)
        if not directory:
            place.cwds = inner.cwds  # `command cd x`, `builtin cd x`
        return printed

    def _use(self, name: str, args: list[str], place: Place) -> None:
        """The paths and the texts that a program is given."""
        self.fuel.burn(sum([len(arg) for arg in args]) // 2)
        if name == "git":
            place = self._git_place(args, place)
        if reads(name, args):
            if name in CODED:
                self.code.append(" ".join(args[:1] if args[:1] and args[0][:1] != "-" else args[:2]))
            return
        how = f"git {verb_of(args)}" if name == "git" else name
        plain = is_plain(name, args)
        for path, below in written(name, args):
            # An unknown program with `*` works on the files of others in nearly every case.
            if plain or below or is_named(path):
                is_tree = name == "git" and below and path == "."
                self.add(path, f"{how} of the tree" if is_tree else how, place, below=below)
        if name == "find":
            self._find_commands(args, place)
        elif plain and name not in ("curl", "wget"):
            self.texts.extend(arg for arg in args if " " in arg)  # a command for `rsync -e`
        elif not plain:
            self.texts.append(" ".join([*args, *(place.stdin or ())]))
            at = next((at for at, arg in enumerate(args) if starts_command(arg.rpartition("/")[2])), -1)
            if at >= 0:
                inner = self._inner(place)
                inner.stdin = inner.stdin or [ANY]
                self.run(args[at:], inner)

    def _git_place(self, args: list[str], place: Place) -> Place:
        for at, option in enumerate(args[:-1]):
            if option in ("-C", "--work-tree"):
                place = self._inner(place)
                place.cwds = [self.path(args[at + 1], cwd) for cwd in place.cwds]
            elif option[:1] != "-" and args[at - 1 : at] not in (["-C"], ["--work-tree"], ["-c"]):
                break
        return place

    def _find_commands(self, args: list[str], place: Place) -> None:
        for at, arg in enumerate(args):
            if arg in ("-exec", "-execdir", "-ok", "-okdir"):
                end = next((i for i in range(at, len(args)) if args[i] in (";", "+")), len(args))
                for path in find_names(args)[:8]:
                    self.run([word.replace("{}", path) for word in args[at + 1 : end]], self._inner(place))
            elif arg.startswith("-fprint") or arg == "-fls":
                self.add("".join(args[at + 1 : at + 2]), "find", place)

    def _shell(self, argv: list[str], place: Place) -> list[str]:
        code, rest, reads_input = _shell_code(argv)
        inner = self._inner(place)
        if code is not None:
            inner.names["0"], inner.names["@"] = rest[:1] or ["sh"], rest[1:]
            return self.run_text(code, inner)
        inner.names["@"] = rest if reads_input else rest[1:]
        if reads_input or rest[0] in self.descriptors:
            if place.stdin is None and not rest and not has(argv, _ASKS):
                self.prompts.append(argv[0])
            lines = self.descriptors.get(rest[0]) if rest else None
            inner.stdin = None if lines else [ANY]
            return self.run_text("\n".join(lines or place.stdin or []), inner)
        for path in rest[1:]:
            self.add(path, argv[0], place)
        self.texts.append(" ".join(rest))
        return [ANY]

    def _code(self, language: str, args: list[str], place: Place) -> list[str]:
        """An interpreter: its code is not followed, and it may write every file that it is given."""
        at = args.index("-m") if "-m" in args[:-1] else 0
        if "-m" in args[:-1] and all(arg[:1] == "-" for arg in args[:at]):
            return self.run(args[at + 1 :], self._inner(place))
        is_prompt = not [arg for arg in args if arg not in ("-i", "-q", "-u", "-I")] and not has(args, _ASKS)
        if is_prompt and place.stdin is None:
            self.prompts.append(language)
        is_code = place.stdin is not None or "eval" in args or has(args, _EVALUATES)
        (self.code if is_code else self.texts).append("\n".join([*args, *(place.stdin or ())]))
        for arg in args:
            self.add(arg, language, place)
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
            place.cwds = list(dict.fromkeys(self.path(goal, cwd) for cwd in before))
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
        self.fuel.burn(sum([len(line) for line in lines]) // 2)
        words = [word for line in lines for word in line.split("\n")]
        for name in [arg for arg in argv[1:] if not arg.startswith("-")] or ["REPLY"]:
            place.names[name] = words
        return []

    def do_unset(self, argv: list[str], place: Place) -> list[str]:
        """Forgets variables."""
        for name in argv[1:]:
            place.names.pop(name, None)
        return []

    def do_nothing(self, argv: list[str], place: Place) -> list[str]:  # noqa: ARG002
        """Detent itself: its verbs are judged by another rule."""
        return []

    def do_xargs(self, argv: list[str], place: Place) -> list[str]:
        """A command for names that are read."""
        lines = [part for line in place.stdin or [ANY] for part in line.split("\n")]
        self.fuel.burn(sum([len(line) for line in lines]) * (1 + len(argv)) // 8)
        inner = self._inner(place)
        inner.stdin = [ANY]
        return self.run(_xargs_command(argv, lines), inner)


def _shell_code(argv: list[str]) -> tuple[str | None, list[str], bool]:
    """The text that a shell runs with `-c`, its arguments, and whether it reads standard input instead."""
    at, code = 1, False
    while at < len(argv) and argv[at][:1] in ("-", "+") and len(argv[at]) > 1:
        arg = argv[at]
        at += 1
        if arg == "--":
            break
        if arg.startswith("--"):
            at += arg in ("--rcfile", "--init-file")
            continue
        code = code or "c" in arg[1:]
        at += arg[-1] in "oO"
        if arg[-1] == "s" and "c" not in arg:
            return None, argv[at:], True
    rest = argv[at:]
    if code:
        return (rest[0] if rest else ""), rest[1:], False
    return None, rest, not rest or rest[0] in _INPUT


def _xargs_command(argv: list[str], lines: list[str]) -> list[str]:
    """The command that xargs runs, with what it read in its place."""
    at, placeholder = 1, ""
    while at < len(argv) and argv[at].startswith("-"):
        arg = argv[at]
        at += 1
        if arg in PREFIXES["xargs"][0].split():
            placeholder = argv[at] if arg in ("-I", "-J", "--replace") and at < len(argv) else placeholder
            at += 1
        elif arg.startswith("-I"):
            placeholder = arg[2:]
        elif arg == "-i":
            placeholder = "{}"
    command = argv[at:] or ["echo"]
    if placeholder:
        return [
            word.replace(placeholder, line) for word in command for line in (lines if placeholder in word else [""])
        ]
    return command + [word for line in lines for word in line.split()]


def _printed(name: str, args: list[str], place: Place) -> list[str]:
    """The lines that a command prints, for substitutions, pipes and `xargs`; `**` if they are unknown."""
    names = [arg for arg in args if arg[:1] != "-"]
    if name in _ECHOES:
        return ([" ".join(names)] if name == "echo" else names) or [STAR]
    if name == "find":
        return find_names(args)
    if name == "pwd":
        return place.cwds
    if name == "mktemp":
        return [_FRESH]
    return place.stdin if name in _FILTERS and place.stdin is not None else [ANY]


_BUILTINS = {
    "cd": Commands.do_cd, "pushd": Commands.do_cd, "popd": Commands.do_cd, "chdir": Commands.do_cd,
    "eval": Commands.do_eval, "source": Commands.do_source, ".": Commands.do_source, "trap": Commands.do_trap,
    "set": Commands.do_set, "shift": Commands.do_shift, "read": Commands.do_read, "mapfile": Commands.do_read,
    "readarray": Commands.do_read, "unset": Commands.do_unset, "detent": Commands.do_nothing,
    "xargs": Commands.do_xargs, "gxargs": Commands.do_xargs,
}  # fmt: skip
