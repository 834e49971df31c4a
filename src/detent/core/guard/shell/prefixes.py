"""The one table of prefix programs: they stand before a command, and run it.

The guard looks behind them for writes, test detection for a runner, and flow for a program that evaluates a value.
"""

#: Program -> its options that take a value, and the number of arguments before the command.
PREFIXES: dict[str, tuple[str, int]] = {
    "builtin": ("", 0),
    "bunx": ("", 0),
    "busybox": ("", 0),
    "caffeinate": ("-t -w", 0),
    "chronic": ("", 0),
    "chrt": ("", 1),
    "command": ("", 0),
    "cross-env": ("", 0),
    "do": ("", 0),
    "doas": ("-u -C", 0),
    "else": ("", 0),
    "env": ("-u -C -S --unset --chdir --split-string", 0),
    "exec": ("-a", 0),
    "flock": ("-w -E --timeout --conflict-exit-code", 1),
    "gtimeout": ("-k -s --kill-after --signal", 1),
    "ionice": ("-c -n -p", 0),
    "ltrace": ("-o -e -p -s -u", 0),
    "nice": ("-n --adjustment", 0),
    "nohup": ("", 0),
    "npx": ("-p --package", 0),
    "pnpx": ("", 0),
    "script": ("-T -I -O -B -E -m -o", 9),
    "setsid": ("", 0),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "strace": ("-o -e -p -s -u", 0),
    "su": ("-s -g -G -w --shell --group", 9),
    "sudo": ("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir", 0),
    "taskset": ("", 1),
    "then": ("", 0),
    "time": ("-f -o --format --output", 0),
    "timeout": ("-k -s --kill-after --signal", 1),
    "unbuffer": ("", 0),
    "uvx": ("--from --with -p --python", 0),
    "watch": ("-n --interval", 0),
    "xargs": (
        "-I -n -P -L -d -s -a -E -J -R -S --max-args --max-procs --delimiter --replace --arg-file --max-lines",
        0,
    ),
    "xvfb-run": ("-s -n -e", 0),
}
#: Program -> its verbs that run another program, and its options that take a value, before and after the verb.
LAUNCHERS: dict[str, tuple[str, str]] = {
    "bundle": ("exec", ""),
    "conda": ("run", "-n --name -p --prefix"),
    "hatch": ("run", "-e --env"),
    "mamba": ("run", "-n --name -p --prefix"),
    "mise": ("exec", ""),
    "npm": ("exec x", "-p --package -w --workspace --prefix"),
    "pdm": ("run", "-p --project"),
    "pipenv": ("run", ""),
    "pipx": ("run", "--spec"),
    "pixi": ("run", "-e --environment --manifest-path"),
    "pnpm": ("exec dlx", "-C --dir --filter -F"),
    "poetry": ("run", "-C --directory -P --project"),
    "rye": ("run", ""),
    "uv": ("run", "--with --extra --group --package -p --python --env-file --directory --project -n --name"),
    "yarn": ("exec dlx", "--cwd"),
}
#: Options that name the directory in which the command runs.
_DIRECTORY = ("-C", "--chdir", "--directory", "-D", "--dir", "--cwd")
#: They give a text to a shell, with `-c`.
_TEXT_RUNNERS = ("flock", "su", "script", "watch")


def unwrapped(name: str, argv: list[str]) -> tuple[list[str], str] | None:
    """The command that a prefix program runs and the directory it runs in; None if `name` is no prefix program."""
    if name in _TEXT_RUNNERS:
        text = _text(name, argv)
        if text is not None:
            return ["sh", "-c", text], ""
    if name == "env":
        for option in ("-S", "--split-string"):
            if option in argv[1:-1]:
                at = argv.index(option)
                return [*argv[at + 1].split(), *argv[at + 2 :]], ""
    start, directory = command_start(name, argv)
    if not start:
        return None
    command = argv[start:]
    return (["sh", "-c", " ".join(command)] if name == "watch" and command else command), directory


def command_start(name: str, argv: list[str]) -> tuple[int, str]:
    """The index in `argv` of the command that a prefix program runs, and its directory; 0 if `name` is none."""
    if name == "command" and argv[1:2] in (["-v"], ["-V"]):
        return 0, ""
    if name in PREFIXES:
        valued, skip = PREFIXES[name]
        at, directory = _after_options(argv, 1, valued.split(), assignments=True)
        return min(at + skip, len(argv)), directory
    if name not in LAUNCHERS:
        return 0, ""
    verbs, valued = LAUNCHERS[name]
    at, before = _after_options(argv, 1, valued.split(), assignments=False)
    if at >= len(argv) or argv[at] not in verbs.split():
        return 0, ""
    at, directory = _after_options(argv, at + 1, valued.split(), assignments=True)
    return at, directory or before


def _text(name: str, argv: list[str]) -> str | None:
    """The text of `su -c`, `script -c` and `flock -c`."""
    for at, arg in enumerate(argv[1:-1], 1):
        if arg == "--command" or (arg[:1] == "-" and arg[1:2] != "-" and arg.endswith("c") and name != "watch"):
            return argv[at + 1]
    return None


def _after_options(argv: list[str], at: int, valued: list[str], *, assignments: bool) -> tuple[int, str]:
    """The index of the first word that is no option, value of an option or assignment; and a directory option."""
    directory = ""
    while at < len(argv):
        arg = argv[at]
        if arg == "--":
            return at + 1, directory
        name, equals, value = arg.partition("=")
        if arg[:1] in ("-", "+") and len(arg) > 1:
            if name in valued and not equals:
                value = "".join(argv[at + 1 : at + 2])
                at += 1
            if name in _DIRECTORY:
                directory = value
            elif arg[:2] in _DIRECTORY and arg[:2] in valued:
                directory = arg[2:]
        elif not (assignments and equals and name):
            break
        at += 1
    return min(at, len(argv)), directory
