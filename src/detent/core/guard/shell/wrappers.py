"""Programs that run something else: what they run, and what is known of it."""

from detent.core.guard.path_pattern import ANY, STAR
from detent.core.guard.shell.writes import Target

# program -> (options that take a value, arguments that come before the command)
_WRAPPERS: dict[str, tuple[str, int]] = {
    "sudo": ("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C -S --unset --chdir --split-string", 0),
    "nohup": ("", 0),
    "timeout": ("-k -s --kill-after --signal", 1),
    "gtimeout": ("-k -s --kill-after --signal", 1),
    "time": ("-f -o --format --output", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p", 0),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "setsid": ("", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "busybox": ("", 0),
    "watch": ("-n --interval", 0),
    "su": ("-s -g -G -w --shell --group", 9),
    "script": ("-T -I -O -B -E -m -o", 9),
    "caffeinate": ("-t -w", 0),
    "chronic": ("", 0),
    "unbuffer": ("", 0),
    "flock": ("-w -E --timeout --conflict-exit-code", 1),
    "strace": ("-o -e -p -s -u", 0),
    "ltrace": ("-o -e -p -s -u", 0),
    "chrt": ("", 1),
    "taskset": ("", 1),
    "npx": ("-p --package", 0),
    "bunx": ("", 0),
    "pnpx": ("", 0),
    "xvfb-run": ("-s -n -e", 0),
    "then": ("", 0),
    "do": ("", 0),
    "else": ("", 0),
}
# program -> its command that runs another program
_RUNNERS = {
    "uv": "run", "poetry": "run", "pipenv": "run", "pdm": "run", "hatch": "run", "rye": "run", "conda": "run",
    "pnpm": "exec", "yarn": "exec", "npm": "exec", "bundle": "exec", "mise": "exec",
}  # fmt: skip
_RUNNER_VALUED = "--with --python -p --project --directory --extra --group --env-file -n --name --package"
SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash", "mksh", "fish"))
_TEXT_RUNNERS = ("flock", "su", "script", "watch")
SLASHES = ("node", "deno", "bun", "php", "tsx")  # languages whose comments begin with two
_MAX_FILES = 16
_XARGS_VALUED = "-I -n -P -L -d -s -a -E -J -R -S --max-args --max-procs --delimiter --replace --arg-file --max-lines"


def unwrapped(name: str, argv: list[str]) -> tuple[list[str], str] | None:
    """The command that a wrapper runs and the directory it is given; None if `name` is no wrapper."""
    if name in _RUNNERS:
        if argv[1:2] != [_RUNNERS[name]]:
            return None
        return _command(argv[2:], _RUNNER_VALUED.split(), 0)
    if name not in _WRAPPERS:
        return None
    if name == "command" and argv[1:2] in (["-v"], ["-V"]):
        return [], ""
    if name in _TEXT_RUNNERS:
        return _text_command(name, argv)
    valued, skip = _WRAPPERS[name]
    return _command(argv[1:], valued.split(), skip)


def _text_command(name: str, argv: list[str]) -> tuple[list[str], str]:
    """Of `su -c`, `script -c`, `flock -c` and `watch`, which hand a text to a shell."""
    for at, arg in enumerate(argv[1:-1], 1):
        if arg == "--command" or (arg[:1] == "-" and arg[1:2] != "-" and arg.endswith("c") and name != "watch"):
            return ["sh", "-c", argv[at + 1]], ""
    valued, skip = _WRAPPERS[name]
    command, directory = _command(argv[1:], valued.split(), skip)
    return (["sh", "-c", " ".join(command)] if name == "watch" and command else command), directory


def _command(args: list[str], valued: list[str], skip: int) -> tuple[list[str], str]:
    at, directory = 0, ""
    while at < len(args):
        arg = args[at]
        if arg == "--":
            at += 1
            break
        name, equals, value = arg.partition("=")
        if arg.startswith("-") and len(arg) > 1:
            if name in valued and not equals:
                value = "".join(args[at + 1 : at + 2])
                at += 1
            if name in ("-S", "--split-string"):
                return [*value.split(), *args[at + 1 :]], directory
            if name in ("-C", "--chdir", "--directory", "-D"):
                directory = value
        elif not (equals and name.isidentifier()):
            break
        at += 1
    return args[at + skip :], directory


def shell_code(argv: list[str]) -> tuple[str | None, list[str], bool]:
    """What a shell is given to run: text of `-c`, its arguments, and whether it reads its input instead."""
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
        if arg in _XARGS_VALUED.split():
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


def found(args: list[str]) -> tuple[list[str], list[str], list[Target], list[list[str]]]:
    """Of `find`: the files that it names, what it leaves out, what it writes itself, and the commands that it runs."""
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
