"""Programs by what the guard knows about them. Three small tables; every program that is in none is unknown.

- A program that only reads may name any file, unless an option makes it write.
- The arguments of a plain program are paths and nothing else.
- An unknown program may write every path that it names, and may run every command that it names.
"""

from detent.core.guard.path_pattern import ANY, ONE, STAR

SHELLS = frozenset(str.split("bash sh zsh dash ksh ash mksh fish"))
INTERPRETERS = frozenset(str.split("python pypy node deno bun perl ruby php tsx lua osascript"))
#: Programs that only read, with the options that make them write. Of `sed` and `awk` the first argument is code.
_READS = {
    **dict.fromkeys(
        str.split(
            "cat ls ll head tail grep egrep fgrep ag ack wc stat diff cmp file du df echo printf test ["
            " pwd basename dirname realpath readlink true false : sha1sum sha224sum sha256sum sha384sum sha512sum"
            " md5sum cksum cut tr column nl od hexdump strings comm join paste fold tac rev base64 which type hash"
            " sleep date id whoami uname ps bat zcat alias exit return seq expr mktemp"
        ),
        "",
    ),
    "rg": "--pre",
    **dict.fromkeys(("less", "more", "tree"), "-o -O"),
    "fd": "-x -X --exec --exec-batch",
    "jq": "-i --in-place",
    "yq": "-i --inplace --in-place",
    "sort": "-o --output --compress-program",
    "find": "-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls",
    **dict.fromkeys(("sed", "gsed"), "-i -I --in-place"),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), "-i --include"),
}
#: Program -> its verbs that change no file of the working tree.
_READING_VERBS = {
    "git": "log show diff status add commit branch tag remote fetch push blame grep ls-files ls-tree rev-parse rev-list"
    " cat-file describe shortlog reflog notes check-ignore check-attr merge-base name-rev for-each-ref show-ref",
    "gh": "pr issue api search",
}
#: Options with which git changes only its index, makes a branch, or says what it would do.
_GIT_READS = ("--cached", "--staged", "-S", "--dry-run", "-b", "-B", "-c", "-C", "--orphan")
_GIT_FILES = str.split("checkout restore rm mv clean reset stash switch merge pull cherry-pick revert read-tree")
#: Options with which git runs another program, or writes what it would print: before its verb, and behind it.
_GIT_RUNS = ("-c", "--config-env", "--exec-path")
_GIT_RUNS_BEHIND = (*("--output", "--ext-diff", "--open-files-in-pager", "--upload-pack", "--receive-pack", "--exec"),)
CODED = ("sed", "gsed", "awk", "gawk", "mawk", "nawk")
_PLAIN = frozenset(
    str.split(
        "rm rmdir mv cp install rsync scp ditto mkdir touch tee sponge dd truncate fallocate chmod chown chgrp chattr"
        " unlink shred srm trash trash-put curl wget tar gtar bsdtar zip unzip gzip gunzip bzip2 xz split"
    )
)
#: They write their last argument, or the directory of `-t`, and read the others.
_COPIES = ("cp", "install", "rsync", "scp", "ditto")
_LINKS = ("-l", "-s", "--link", "--symbolic-link", "--remove-source-files")
_PACKS = ("tar", "gtar", "bsdtar", "zip")
#: Program -> an option with which it changes everything below a directory; empty if it always does.
_DESTROYS = {
    "mv": "",
    "srm": "",
    "trash": "",
    "trash-put": "",
    **dict.fromkeys(("rm", "chmod", "chown", "chgrp"), "-r -R --recursive"),
    "rsync": "--delete --del --delete-before --delete-during --delete-delay --delete-after --delete-excluded",
    "find": "-delete",
}
#: git verb -> the options with which it takes ignored files or the settings of a person along.
_GIT_DESTROYS = {
    "clean": "-x -X",
    "stash": "-a --all",
    "reset": "--hard --merge --keep",
    "checkout": "-f --force",
    "switch": "-f --force --discard-changes",
    "read-tree": "--reset -u",
    "checkout-index": "-f --force -a --all",
}
_EXCLUDES = ("-e", "--exclude")


def reads(name: str, args: list[str]) -> bool:
    """True if the program changes no file that it names."""
    if name in _READING_VERBS:
        verb = verb_of(args)
        if name == "git" and _git_runs(args):
            return False
        return verb in _READING_VERBS[name].split() or (name == "git" and _git_reads(verb, _behind(verb, args)))
    return name in _READS and not has(args, _READS[name])


def is_plain(name: str, args: list[str]) -> bool:
    """True if the arguments of the program are paths and options, and it runs nothing that they name."""
    if name == "git":
        return verb_of(args) in _GIT_FILES and not _git_runs(args)
    return name in _PLAIN or name in _READS


def starts_command(name: str) -> bool:
    """True if the name, as an argument of an unknown program, is taken for the command that it runs."""
    return name in _PLAIN or name in SHELLS or name in ("detent", "git", "find", "xargs", "sed")


def has(args: list[str], options: str) -> bool:
    """True if one of the options was given, alone, with a value, or in a cluster of letters."""
    args = args[: args.index("--")] if "--" in args else args
    for option in options.split():
        for arg in args:
            if arg == option or arg.startswith(option + "="):
                return True
            if len(option) == 2 and arg[:1] == "-" and arg[1:2] not in ("-", "") and option[1] in arg[1:]:
                return True
    return False


def written(name: str, args: list[str]) -> list[tuple[str, bool]]:
    """The arguments that the program may write; True for one of which it changes all that is below, too."""
    args, spares = _without_excluded(args) if name in ("git", "rsync") else (args, False)
    if name == "git":
        return _git_written(args, spares=spares)
    options = _DESTROYS.get(name, "-")
    below = not spares and (not options or (options != "-" and has(args, options)))
    if name == "find":
        return [(path, below) for path in find_names(args) if below]
    if name in _PACKS and "x" not in "".join(args[:1]) and not has(args, "--remove-files -m --move --extract --get"):
        args = args[:2]  # the archive; the rest goes into it
    words = [word for arg in args for word in _words(arg)]
    into = _target(args)
    if name in _COPIES and not has(args, " ".join(_LINKS)):
        words = [*([into] if into else []), *(word for arg in args if arg[:1] == "-" for word in _words(arg))]
    puts = into and name in (*_COPIES, "mv", "ln")
    inside = [
        f"{into.rstrip('/')}/{base_name(arg)}"
        for arg in args
        if puts and arg != into and arg[:1] != "-" and is_named(arg)
    ]
    fetched = [base_name(arg) for arg in args if "://" in arg]
    return [(path, below and (name != "mv" or path != into)) for path in dict.fromkeys([*words, *inside, *fetched])]


def verb_of(args: list[str]) -> str:
    """The verb of a program with verbs: the first argument that is no option, nor the value of one of git's own."""
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path") else 1
    return args[at] if at < len(args) else ""


def find_names(args: list[str]) -> list[str]:
    """The files that `find` names, as far as its directories and the names that it asks for tell."""
    start = 0
    while start < len(args) and args[start] in ("-H", "-L", "-P"):
        start += 1
    at = start
    while at < len(args) and args[at][:1] not in ("-", "(", "!"):
        at += 1
    roots, tests = args[start:at] or ["."], args[at:]
    if "-empty" in tests or any(_leaves_out(tests, index) for index in range(len(tests))):
        return []
    names = [tests[i + 1].replace("*", STAR) for i, test in enumerate(tests[:-1]) if test in ("-name", "-iname")]
    below = [f"{root.rstrip('/')}/{part}" for root in roots for part in (names or [ANY])]
    deep = [f"{root.rstrip('/')}/{ANY}/{name}" for root in roots for name in names]
    return [*(root for root in roots if not names or base_name(root) in names), *below, *deep]


def is_named(path: str) -> bool:
    """True if the last part of a path has a character that is no wild card."""
    return bool(base_name(path).strip(STAR + ONE + ANY))


def base_name(path: str) -> str:
    return path.partition(ONE)[0].partition("?")[0].rstrip("/").rpartition("/")[2]


def _leaves_out(tests: list[str], at: int) -> bool:
    """True for a test by which `find` leaves the state directory out, or everything hidden."""
    if not tests[at].endswith(("path", "name")):
        return False
    value = "".join(tests[at + 1 : at + 2])
    is_out = tests[at - 1 : at] in (["!"], ["-not"]) or "-prune" in tests[at + 2 : at + 3]
    return is_out and (".workflow" in value or value.endswith("/.*"))


def _git_runs(args: list[str]) -> bool:
    rest = _behind(verb_of(args), args)
    return _starts(args[: len(args) - len(rest)], _GIT_RUNS) or _starts(rest, _GIT_RUNS_BEHIND)


def _starts(args: list[str], options: tuple[str, ...]) -> bool:
    return any(arg == option or arg.startswith((option + "=", "-O")) for arg in args for option in options)


def _behind(verb: str, args: list[str]) -> list[str]:
    return args[args.index(verb) + 1 :] if verb else []


def _git_written(args: list[str], *, spares: bool) -> list[tuple[str, bool]]:
    """The paths that a git command names; the whole tree where it destroys and names none."""
    verb = verb_of(args)
    rest = _behind(verb, args)
    paths = rest[rest.index("--") + 1 :] if "--" in rest else [arg for arg in rest if arg[:1] != "-"]
    if spares or verb not in _GIT_DESTROYS or not has(rest, _GIT_DESTROYS[verb]):
        return [(path, False) for path in (*paths, *(value for arg in rest for value in _words(arg) if "=" in arg))]
    whole = not paths or (verb != "clean" and "--" not in rest)
    return [*((path, True) for path in paths), *([(".", True)] if whole else [])]


def _git_reads(verb: str, args: list[str]) -> bool:
    if verb == "stash":
        return args[:1] in (["list"], ["show"])
    if verb == "reset":
        return not has(args, _GIT_DESTROYS["reset"])
    if verb == "clean":
        return has(args, "-n --dry-run")
    if verb in ("checkout", "switch") and has(args, _GIT_DESTROYS[verb]):
        return False
    if verb in ("rm", "restore"):
        return any(arg in _GIT_READS[:4] for arg in args) and not has(args, "-W --worktree")
    return verb in ("checkout", "switch") and any(arg in _GIT_READS for arg in args)


def _without_excluded(args: list[str]) -> tuple[list[str], bool]:
    """The arguments without those that are excluded, and whether the state directory is among these."""
    kept: list[str] = []
    out: list[str] = []
    for at, arg in enumerate(args):
        if at and args[at - 1] in _EXCLUDES:
            out.append(arg)
        elif arg.startswith("--exclude="):
            out.append(arg.partition("=")[2])
        else:
            kept.append(arg)
    return kept, any(path.strip("/*") == ".workflow" for path in out)


def _words(arg: str) -> list[str]:
    """The paths that an argument may name: itself, the value of an option, or the text after an equals sign."""
    name, equals, value = arg.partition("=")
    if equals and name != "if":
        return [value] if arg[:1] == "-" else [arg, value]
    if arg[:1] != "-":
        return [] if equals else [arg]
    return [arg[2:]] if arg[1:2] not in ("-", "") and len(arg) > 2 else []


def _target(args: list[str]) -> str:
    """The directory of `-t`, else the last argument."""
    for at, arg in enumerate(args):
        if arg.startswith("--target-directory="):
            return arg.partition("=")[2]
        if arg in ("-t", "--target-directory") and at + 1 < len(args):
            return args[at + 1]
    plain = [arg for arg in args if arg[:1] != "-"]
    return plain[-1] if len(plain) > 1 else ""
