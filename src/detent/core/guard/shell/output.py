"""What a command prints, where the command itself tells: for substitutions, pipes and `xargs`.

A list of lines; what cannot be known is `**`, a name without a slash that cannot be known is `*`.
"""

from detent.core.guard.shell.writes import has, options, values
from detent.core.path_pattern import ANY, STAR

FRESH = "/tmp/.fresh"  # noqa: S108 - stands for a name that did not exist before
_PASSES_ON = frozenset(
    ("cat", "tee", "sort", "uniq", "head", "tail", "tac", "grep", "egrep", "fgrep", "rg", "column", "nl", "shuf")
)
_ONE_NAME = frozenset(
    ("date", "seq", "uuidgen", "whoami", "id", "hostname", "nproc", "wc", "uname", "arch", "getconf", "expr")
)


def printed(name: str, args: list[str], stdin: list[str] | None, cwd: str) -> list[str]:
    """The lines that `name` prints when called with these arguments."""
    if name in _PRINTERS:
        return _PRINTERS[name](args, cwd)
    if name in ("grep", "egrep", "fgrep", "rg") and stdin is None:
        return _searched(name, args)
    if name in _PASSES_ON:
        reads_file = name in ("cat", "tac", "head", "tail", "sort", "nl") and options(args, "-n -c -k -t")[1]
        return [ANY] if stdin is None or reads_file else stdin
    return [STAR] if name in _ONE_NAME else [ANY]


def _echo(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001 - all printers are called alike
    escapes = False
    while args and args[0][:1] == "-" and args[0].strip("-neE") == "" and len(args[0]) > 1:
        escapes = escapes or "e" in args[0]
        args = args[1:]
    text = " ".join(args)
    return [_unescaped(text) if escapes else text]


def _printf(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    if args[:1] == ["--"]:
        args = args[1:]
    if not args:
        return []
    pieces = _unescaped(args[0]).split("%")
    given = args[1:]
    found: list[str] = []
    while True:
        text, before = pieces[0], len(given)
        escaped = False
        for piece in pieces[1:]:
            if escaped or not piece:
                text += "%" + piece if escaped else ""
                escaped = not escaped and not piece
                continue
            width = len(piece) - len(piece.lstrip("0123456789.-+ #"))
            text += (given.pop(0) if given else "") + piece[width + 1 :]
        found.append(text)
        if not given or len(given) == before:
            return "".join(found).strip("\n\0").replace("\0", "\n").split("\n")


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return text.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0").replace("\\\\", "\\")


def _pwd(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    return [cwd]


def _dirname(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    return [arg.rstrip("/").rpartition("/")[0] or "." if ANY not in arg else ANY for arg in args if arg[:1] != "-"]


def _basename(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    found, rest = options(args, "-s --suffix")
    suffix = "".join(values(found, "-s --suffix")) or ("".join(rest[1:2]) if not has(found, "-a --multiple") else "")
    names = [
        arg.rstrip("/").rpartition("/")[2].removesuffix(suffix) for arg in rest[: None if has(found, "-a -s") else 1]
    ]
    return [name if ANY not in name else STAR for name in names]


def _realpath(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    return options(args, "")[1] or [ANY]


def _mktemp(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    found, rest = options(args, "-p --tmpdir --suffix")
    folder = "".join(values(found, "-p --tmpdir"))
    return [f"{folder}/{STAR}"] if folder else rest[:1] if rest and "/" in rest[0] else [FRESH]


def _ls(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    found, rest = options(args, "-I -w")
    if has(found, "-l"):
        return [ANY]
    hidden = has(found, "-a -A")
    named = [
        arg
        for arg in rest
        if has(found, "-d") or STAR in arg or ANY in arg or "." in arg.rpartition("/")[2].lstrip(".")
    ]
    return named + ([] if rest and len(named) == len(rest) else [STAR, *(["." + STAR] if hidden else [])])


def _searched(name: str, args: list[str]) -> list[str]:
    """`grep -l`: files below where it looks. `rg` does not look into hidden directories."""
    valued = "-e -f -m -A -B -C -g -t -T --include --exclude --glob --type --exclude-dir --regexp --file --max-count"
    found, rest = options(args, valued)
    if not has(found, "-l -L --files-with-matches --files-without-match --files"):
        return [ANY]
    if not has(found, "-e -f --regexp --file --files"):
        rest = rest[1:]
    if name != "rg" and not has(found, "-r -R --recursive"):
        return rest
    endings = [end.replace("*", ANY) for end in values(found, "--include -g --glob") if end[:1] != "!"]
    types = ["." + kind for kind in values(found, "-t --type")]
    shapes = endings or [ANY + kind for kind in types]
    if name == "rg" and not has(found, "-. --hidden -u"):
        return [f"{root}/{STAR}/{more}" for root in rest or ["."] for more in shapes or [ANY]]
    return [f"{root}/{shape}" for root in rest or ["."] for shape in shapes or [ANY]]


def _git(args: list[str], cwd: str) -> list[str]:  # noqa: ARG001
    if args[:1] == ["ls-files"]:
        roots = [arg for arg in args[1:] if arg[:1] != "-"]
        return roots + [f"{root}/{ANY}" for root in roots] if roots else [f"{STAR}/{ANY}"]
    if args[:1] == ["rev-parse"] and any(arg in ("--show-toplevel", "--show-cdup") for arg in args):
        return [ANY]
    single = ("rev-parse", "branch", "describe", "symbolic-ref", "rev-list", "config", "hash-object", "write-tree")
    return [STAR] if args[:1] and args[0] in single else [ANY]


_PRINTERS = {
    "echo": _echo, "printf": _printf, "pwd": _pwd, "dirname": _dirname, "basename": _basename, "realpath": _realpath,
    "readlink": _realpath, "mktemp": _mktemp, "ls": _ls, "git": _git,
}  # fmt: skip
