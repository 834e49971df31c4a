"""The paths of the working tree that a git command writes.

Only where it names them, or where it takes the whole tree. What git does to its index, refs and branches is no write.
"""

from detent.core.guard.path_pattern import ABSOLUTE
from detent.core.guard.shell.copies import excepted
from detent.core.guard.shell.writes import EXCEPT, Option, Target, has, options, patched, values

_GLOBAL_VALUED = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")
_EXCLUDING = (":!", ":^", ":(exclude)")
# command -> options that take a value
_VALUED = {
    "checkout": "-b -B --orphan --conflict --pathspec-from-file",
    "restore": "-s --source --conflict --pathspec-from-file",
    "rm": "--pathspec-from-file",
    "mv": "",
    "clean": "-e --exclude",
    "reset": "--pathspec-from-file",
    "stash": "-m --message --pathspec-from-file",
    "apply": "-p -C --directory --exclude --include --whitespace",
    "checkout-index": "--prefix --stage",
}


def git_written(args: list[str], stdin: list[str] | None) -> list[Target]:
    """The paths that a git command writes."""
    folder, args = _command(args)
    name, args = "".join(args[:1]), args[1:]
    if name not in _VALUED:
        return [(f"{folder}{arg[9:]}", "git --output") for arg in args if arg.startswith("--output=")]
    dashes = args.index("--") if "--" in args else len(args)
    flags, rest = options(args, _VALUED[name])
    spared = [_plain(path) for path in rest if path.startswith(_EXCLUDING)]
    rest = [path for path in rest if not path.startswith(_EXCLUDING)] or (["."] if spared else [])
    named = [path for path in args[dashes + 1 :] if not path.startswith(_EXCLUDING)]
    targets: list[Target] = []
    for inside, how in _written(name, flags, rest, named, stdin):
        path = inside if inside.startswith(ABSOLUTE) else folder + inside
        targets.append((path, how))
        if how != EXCEPT:
            targets.extend(excepted(path, spared))
    return targets


def _command(args: list[str]) -> tuple[str, list[str]]:
    """Past git's own options; the directory that `-C` and `--work-tree` give, with a slash."""
    folder, at = "", 0
    while at < len(args) and args[at].startswith("-"):
        name, given, value = args[at].partition("=")
        if name in _GLOBAL_VALUED and not given:
            value = "".join(args[at + 1 : at + 2])
            at += 1
        if name in ("-C", "--work-tree") and value:
            folder = (value if value.startswith("/") else folder + value).rstrip("/") + "/"
        at += 1
    return folder, args[at:]


def _written(
    name: str, flags: list[Option], rest: list[str], named: list[str], stdin: list[str] | None
) -> list[Target]:
    if name == "checkout":
        if has(flags, "-b -B --orphan --detach -t --track") and not named:
            return []
        return [(_plain(path), "git checkout") for path in named or rest]
    if name == "restore":
        if has(flags, "-S --staged") and not has(flags, "-W --worktree"):
            return []
        return [(_plain(path), "git restore") for path in rest]
    if name == "rm":
        return [] if has(flags, "--cached -n --dry-run") else [(_plain(path), "git rm") for path in rest]
    if name == "mv":
        if has(flags, "-n --dry-run"):
            return []
        last = "".join(rest[-1:])
        inside = [f"{last.rstrip('/')}/{path.rstrip('/').rpartition('/')[2]}" for path in rest[:-1]]
        return [*((path, "git mv") for path in rest[:-1]), (last, "mv to"), *((path, "git mv") for path in inside)]
    if name == "clean":
        if has(flags, "-n --dry-run -i --interactive") or not has(flags, "-f --force -x -X -d"):
            return []
        targets: list[Target] = []
        for path in rest or ["."]:
            targets.append((_plain(path), "git clean"))
            targets.extend(excepted(_plain(path), values(flags, "-e --exclude")))
        return targets
    if name == "reset":
        return [(".", "git reset --hard")] if has(flags, "--hard --merge --keep") else []
    if name == "stash":
        return _stashed(flags, rest, named)
    if name == "apply":
        return _applied(flags, stdin)
    return [(_plain(path), "git checkout") for path in rest or ["."]] if has(flags, "-f -a --force --all") else []


def _stashed(flags: list[Option], rest: list[str], named: list[str]) -> list[Target]:
    action = "".join(rest[:1])
    if action not in ("", "push", "save"):
        return []
    paths = named or (rest[1:] if action == "push" else [])
    if paths:
        return [(_plain(path), "git stash") for path in paths]
    return [(".", "git stash")] if has(flags, "-u -a --include-untracked --all") else []


def _applied(flags: list[Option], stdin: list[str] | None) -> list[Target]:
    if has(flags, "--check --stat --numstat --summary --cached"):
        return []
    folders = values(flags, "--directory")
    targets = [(path, "patch") for path in folders + values(flags, "--include")]
    return targets + patched(list(stdin or ()), "".join(folder + "/" for folder in folders[:1]))


def _plain(pathspec: str) -> str:
    """A pathspec without its magic, from the top of the tree as far as that can be told."""
    if pathspec.startswith((":!", ":^")):
        return pathspec[2:]
    if pathspec.startswith(":("):
        pathspec = pathspec.partition(")")[2]
    return pathspec.removeprefix(":/") or "."
