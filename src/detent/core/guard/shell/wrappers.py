"""Programs that run other commands or code: shells, interpreters, xargs, parallel and find."""

from detent.core.guard.path_pattern import ANY, STAR
from detent.core.guard.shell.prefixes import PREFIXES
from detent.core.guard.shell.writes import Target

SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash", "mksh", "fish"))
SLASHES = ("node", "deno", "bun", "php", "tsx")  # languages whose comments begin with two
_MAX_FILES = 16


def shell_code(argv: list[str]) -> tuple[str | None, list[str], bool]:
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
    return None, rest, not rest or rest[0] in ("-", "/dev/stdin", "/dev/fd/0")


def interpreter_code(language: str, argv: list[str]) -> tuple[list[str], list[str], list[Target]]:
    """The program texts that an interpreter is given, its other arguments, and what its own options write."""
    flags = {"python": "c", "pypy": "c", "php": "r"}.get(language, "eEp" if language in SLASHES else "eE")
    edits = language in ("perl", "ruby")
    codes: list[str] = []
    in_place, at = False, 1
    while at < len(argv):
        arg = argv[at]
        if arg == "eval" and language == "deno":
            arg = "--eval"
        if not arg.startswith("-") or arg == "-":
            break
        at += 1
        letters, i, _ = arg[1:].partition("i")
        if arg == "-m":
            copies = argv[at + 2 : at + 3] if argv[at : at + 1] == ["json.tool"] else []
            return [], ["-m"], [(path, "json.tool") for path in copies]
        if edits and i and (letters or "a").isalnum():  # what follows the i is the suffix of a copy
            in_place = True
        elif arg in ("--eval", "--print") or (arg[1] not in "-IMmrWX" and arg[-1] in flags) or arg[1:] in flags:
            codes.append("".join(argv[at : at + 1]))
            at += 1
            if language in ("python", "pypy"):
                break
        elif arg in ("-W", "-X", "-r", "-I", "-M"):
            at += 1
    rest = argv[at:]
    return codes, rest, [(path, f"{language} -i") for path in rest if in_place]


def xargs_command(argv: list[str], lines: list[str]) -> list[str]:
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


def parallel_command(argv: list[str], lines: list[str]) -> list[str]:
    """The command that GNU parallel runs."""
    if ":::" in argv:
        lines = argv[argv.index(":::") + 1 :]
        argv = argv[: argv.index(":::")]
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if argv[at] in ("-j", "--jobs", "-n", "-N", "-I") else 1
    command = argv[at:]
    if len(command) == 1:
        command = command[0].split()
    if not any("{}" in word for word in command):
        return command + lines
    return [word.replace("{}", line) for word in command for line in (lines if "{}" in word else [""])]


def read_find(args: list[str]) -> tuple[list[str], list[str], list[Target], list[list[str]]]:
    """The files that `find` names, those that it excludes, those that it writes, and the commands that it runs."""
    start = 0
    while start < len(args) and args[start] in ("-H", "-L", "-P"):
        start += 1
    at = start
    while at < len(args) and args[at][:1] not in ("-", "(", "!"):
        at += 1
    roots = args[start:at] or ["."]
    expression = args[at:]
    shapes, spared = _conditions(expression)
    deep = "-maxdepth" not in expression
    files = [path for root in roots for path in _named(root, shapes, deep=deep)]
    targets: list[Target] = []
    commands: list[list[str]] = []
    index = 0
    while index < len(expression):
        arg = expression[index]
        index += 1
        if arg == "-delete" and "-empty" not in expression:
            targets.extend((path, "find -delete") for path in files)
        elif arg in ("-fprint", "-fprint0", "-fls", "-fprintf"):
            targets.extend((path, "find -fprint") for path in expression[index : index + 1])
        elif arg in ("-exec", "-execdir", "-ok", "-okdir"):
            start = index
            while index < len(expression) and expression[index] != ";":
                index += 1
                if expression[index - 1 : index + 1] == ["{}", "+"]:
                    break
            command = expression[start:index]
            commands.extend([word.replace("{}", path) for word in command] for path in files[:_MAX_FILES])
    return files, spared, targets, commands


def _conditions(expression: list[str]) -> tuple[list[str], list[str]]:
    """The shapes that names must have (a leading slash: of the whole path), and the paths that are left out."""
    shapes: list[str] = []
    spared: list[str] = []
    for index, arg in enumerate(expression[:-1]):
        if arg not in ("-name", "-iname", "-path", "-ipath", "-wholename"):
            continue
        value = expression[index + 1].replace("*", ANY).replace("?", STAR)
        negated = index > 0 and expression[index - 1] in ("!", "-not")
        if negated or "-prune" in expression[index + 2 : index + 8]:
            value = value if arg.endswith("path") or "/" in value else f"{ANY}/{value}"
            spared.extend([value] if value.endswith(ANY) else [value, f"{value}/{ANY}"])
        else:
            shapes.append(value if arg.endswith("name") and arg != "-wholename" else "\0" + value)
    return shapes, spared


def _named(root: str, shapes: list[str], *, deep: bool) -> list[str]:
    root = root.rstrip("/") or "/"
    if not shapes:
        return [root, f"{root}/{ANY}"] if deep else [root, f"{root}/{STAR}", f"{root}/.{STAR}"]
    paths: list[str] = []
    for shape in shapes:
        if shape[0] == "\0":
            paths.append(shape[1:])
        elif deep:
            paths += [f"{root}/{shape}", f"{root}/{ANY}/{shape}"]
        else:
            paths.append(f"{root}/{shape.replace(ANY, STAR)}")
        if root.rpartition("/")[2] == shape:
            paths.append(root)
    return paths
