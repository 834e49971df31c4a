"""The arguments of a program that it writes.

`written(name, args, stdin)` gives (path, how) pairs; paths are as they stand in the arguments. `how` is the program,
with the option that made it write where that matters. Those in `REACHES_BELOW` change everything below the path, too.
A pair with `EXCEPT` says what the pair before it leaves alone.
"""

from detent.core.guard.path_pattern import STAR

Target = tuple[str, str]
Option = tuple[str, str]

EXCEPT = "except"
OPAQUE = "opaque"
REACHES_BELOW = frozenset((
    "rm -r", "mv", "cp -r", "chmod -R", "chown -R", "rsync --delete", "tar member",
    OPAQUE, "git checkout", "git restore", "git rm", "git mv", "git clean", "git reset --hard", "git stash",
))  # fmt: skip

# program -> (options that take a value, how many arguments come before the files, how)
_FILES: dict[str, tuple[str, int, str]] = {
    "tee": ("--output-error", 0, "tee"),
    "sponge": ("", 0, "sponge"),
    "unlink": ("", 0, "unlink"),
    "rmdir": ("", 0, "rmdir"),
    "shred": ("-n -s --iterations --size --random-source", 0, "shred"),
    "srm": ("", 0, "rm -r"),
    "trash": ("", 0, "rm -r"),
    "trash-put": ("", 0, "rm -r"),
    "truncate": ("-s -r --size --reference", 0, "truncate"),
    "fallocate": ("-l -o --length --offset", 0, "fallocate"),
    "touch": ("-d -r -t --date --reference", 0, "touch"),
    "chattr": ("-v -p", 1, "chattr"),
    "chflags": ("", 1, "chmod"),
    "setfacl": ("-m -x -M -X --modify --remove", 0, "setfacl"),
    "xattr": ("", 1, "xattr"),
    "dos2unix": ("", 0, "dos2unix"),
    "unix2dos": ("", 0, "dos2unix"),
    "ed": ("-p", 0, "ed"),
    "ex": ("-c -S -T", 0, "ex"),
    "vi": ("-c -S -T -u", 0, "vim"),
    "vim": ("-c -S -T -u -i -s -w -W --cmd", 0, "vim"),
    "nvim": ("-c -S -T -u -i -s -w -W --cmd", 0, "vim"),
    "emacs": ("-l -f --eval --load --funcall", 0, "emacs"),
    "nano": ("", 0, "nano"),
    "rename": ("-e", 1, "rename"),
    "mkfifo": ("-m", 0, "mkfifo"),
    "mknod": ("-m", 0, "mknod"),
    "crudini": ("", 0, "crudini"),
    "black": ("-l -t --line-length --target-version --config", 0, "black"),
    "gzip": ("-S", 0, "gzip"),
    "bzip2": ("", 0, "gzip"),
    "xz": ("-T", 0, "gzip"),
    "gunzip": ("-S", 0, "gzip"),
    "bunzip2": ("", 0, "gzip"),
    "unxz": ("", 0, "gzip"),
}
# With one of these options the program only looks, or writes to its output.
_ONLY_LOOKS = {
    "gzip": "-c -l -t --stdout --list --test", "bzip2": "-c -t --stdout", "xz": "-c -l -t --stdout --list",
    "gunzip": "-c -l -t --stdout", "bunzip2": "-c -t", "unxz": "-c -t -l", "vim": "-R", "nvim": "-R",
    "black": "--check --diff",
}  # fmt: skip
# Programs whose `-o` is not an output file; every other program's is.
_OTHER_O = frozenset((
    "grep", "egrep", "fgrep", "rg", "ag", "ack", "ls", "ll", "ps", "ssh", "mount", "cut", "fd", "git", "detent",
    "echo", "printf", "cat",
    "head", "tail", "wc", "diff", "stat", "set", "test", "[", "id", "lsof", "du", "df", "file", "column", "kubectl",
    "docker", "nm",
))  # fmt: skip
_OUTPUT = ("-o", "--output", "--output-file", "--outfile", "--out", "--out-file")


_COPYING = frozenset((
    "cp", "mv", "ln", "link", "install", "ditto", "rsync", "scp", "tar", "bsdtar", "gtar", "unzip", "7z", "7za",
    "zip", "cpio",
    "curl", "wget",
))  # fmt: skip


def written(name: str, args: list[str], stdin: list[str] | None) -> list[Target]:
    """The paths that `name` writes when called with these arguments."""
    if name in _FILES:
        return _files(name, args)
    if name in _HANDLERS:
        return _HANDLERS[name](args)
    if name in _COPYING:
        from detent.core.guard.shell.copies import copied  # noqa: PLC0415 - only when it is needed

        return copied(name, args)
    if name in ("patch", "apply_patch", "applypatch"):
        return _patch(args, stdin)
    if name == "git":
        from detent.core.guard.shell.git import git_written  # noqa: PLC0415 - only when it is needed

        return git_written(args, stdin)
    return [] if name in _OTHER_O else _output(args)


def options(args: list[str], valued: str, glued: str = "") -> tuple[list[Option], list[str]]:
    """Options with their values, and the other arguments.

    `valued` names those that take the next argument, `glued` those whose value can only stand in the same one.
    """
    takes, holds = valued.split(), glued.split()
    flags: list[Option] = []
    rest: list[str] = []
    at = 0
    while at < len(args):
        arg = args[at]
        at += 1
        if arg == "--":
            rest.extend(args[at:])
            break
        if arg.startswith("--"):
            name, given, value = arg.partition("=")
            if not given and name in takes and at < len(args):
                value = args[at]
                at += 1
            flags.append((name, value))
        elif arg[:1] == "-" and len(arg) > 1:
            for index in range(1, len(arg)):
                name, value = "-" + arg[index], arg[index + 1 :]
                if name in takes and not value and at < len(args):
                    value = args[at]
                    at += 1
                flags.append((name, value if name in takes or name in holds else ""))
                if name in takes or name in holds:
                    break
        else:
            rest.append(arg)
    return flags, rest


def has(flags: list[Option], names: str) -> bool:
    """True if one of the named options was given."""
    wanted = names.split()
    return any(name in wanted for name, _ in flags)


def values(flags: list[Option], names: str) -> list[str]:
    """The values of the named options."""
    wanted = names.split()
    return [value for name, value in flags if name in wanted and value]


def _files(name: str, args: list[str]) -> list[Target]:
    valued, skip, how = _FILES[name]
    flags, rest = options(args, valued)
    if name in _ONLY_LOOKS and has(flags, _ONLY_LOOKS[name]):
        return []
    return [(path, how) for path in rest[skip:]]


def _output(args: list[str]) -> list[Target]:
    targets: list[Target] = []
    for at, arg in enumerate(args):
        name, given, value = arg.partition("=")
        if name not in _OUTPUT:
            continue
        if not given and at + 1 < len(args):
            value = args[at + 1]
        if value:
            targets.append((value, name))
    return targets


def _rm(args: list[str]) -> list[Target]:
    flags, rest = options(args, "")
    how = "rm -r" if has(flags, "-r -R --recursive") else "rm"
    return [(path, how) for path in rest]


def _chmod(args: list[str]) -> list[Target]:
    return _owned(args, "chmod")


def _chown(args: list[str]) -> list[Target]:
    return _owned(args, "chown")


def _owned(args: list[str], how: str) -> list[Target]:
    # `chmod -w file`: what looks like an option is the mode
    modes = [arg for arg in args if arg[:1] == "-" and arg[1:2] in tuple("rwxXst")]
    flags, rest = options([arg for arg in args if arg not in modes], "--from")
    if has(flags, "-R --recursive"):
        how += " -R"
    return [(path, how) for path in rest[0 if modes or has(flags, "--reference") else 1 :]]


def _sed(args: list[str]) -> list[Target]:
    flags, rest = options(args, "-e -f -l --expression --file --line-length", "-i -I")
    scripts = values(flags, "-e --expression")
    if not has(flags, "-e -f --expression --file"):
        scripts, rest = rest[:1], rest[1:]
    targets = [(path, "sed w") for script in scripts for path in _sed_writes(script)]
    if has(flags, "-i -I --in-place"):
        targets.extend((path, "sed -i") for path in rest)
    return targets


def _sed_writes(script: str) -> list[str]:
    """The files of `w file` commands and `s///w file` flags."""
    paths: list[str] = []
    for line in script.split("\n"):
        at = line.find("w ")
        while at >= 0:
            before = line[at - 1 : at] if at else ";"
            if before in tuple("/|#,;:{}!$ 0123456789gpIiMme"):
                paths.append(line[at + 2 :].strip().rstrip("}").strip())
            at = line.find("w ", at + 1)
    return paths


def _dd(args: list[str]) -> list[Target]:
    return [(arg[3:], "dd") for arg in args if arg.startswith("of=")]


def _jq(args: list[str]) -> list[Target]:
    flags, rest = options(args, "--indent -f --from-file -o --output-format -p --input-format")
    in_place = has(flags, "-i --inplace --in-place")
    return [(path, "jq -i") for path in rest] if in_place else []


def _yq(args: list[str]) -> list[Target]:
    return [(path, "yq -i") for path, _ in _jq(args)]


def _awk(args: list[str]) -> list[Target]:
    flags, rest = options(args, "-F -v -f -i -l --file --assign --field-separator --include")
    targets: list[Target] = []
    if not has(flags, "-f --file"):
        code, rest = "".join(rest[:1]), rest[1:]
        for piece in code.split(">")[1:]:
            quote, _, name = piece.lstrip("> \t").partition('"')
            if not quote and '"' in name:
                targets.append((name.partition('"')[0], "awk"))
    if "inplace" in values(flags, "-i --include"):
        targets.extend((path, "awk -i") for path in rest)
    return targets


def _sqlite(args: list[str]) -> list[Target]:
    flags, rest = options([arg.replace("--", "-", 1) for arg in args], "-c -s")
    reads = ("select", "explain", ".tables", ".schema", ".dump", "pragma table_info", ".indexes", ".headers", ".mode")
    queries = [query.strip().lower() for query in rest[1:]]
    if has(flags, "-r") or (queries and all(query.startswith(reads) for query in queries)):
        return []
    return [(path, "sqlite3") for path in rest[:1]]


def _prettier(args: list[str]) -> list[Target]:
    flags, rest = options(args, "--config --parser --ignore-path --plugin")
    return [(path, "prettier") for path in rest] if has(flags, "--write -w --fix") else []


def _gofmt(args: list[str]) -> list[Target]:
    flags, rest = options(args, "-r")
    return [(path, "gofmt -w") for path in rest] if has(flags, "-w") else []


def _sort(args: list[str]) -> list[Target]:
    flags, _ = options(args, "-o -k -t -S -T --output --key --field-separator --parallel")
    return [(path, "sort -o") for path in values(flags, "-o --output")]


def _uniq(args: list[str]) -> list[Target]:
    _, rest = options(args, "-f -s -w")
    return [(path, "uniq") for path in rest[1:2]]


def _xxd(args: list[str]) -> list[Target]:
    _, rest = options(args, "-s -l -c -g -o")
    return [(path, "xxd") for path in rest[1:2]]


def _split(args: list[str]) -> list[Target]:
    _, rest = options(args, "-a -b -C -l -n --bytes --lines --number --suffix-length --additional-suffix")
    return [(prefix + STAR, "split") for prefix in rest[1:2]]


def _patch(args: list[str], stdin: list[str] | None) -> list[Target]:
    flags, rest = options(args, "-p -d -i -o -r -B -D -F -V -z --strip --directory --input --output --reject-file")
    if has(flags, "--dry-run"):
        return []
    base = "".join(directory + "/" for directory in values(flags, "-d --directory")[:1])
    targets = [(path, "patch") for path in [*values(flags, "-o --output"), *(base + path for path in rest[:1])]]
    return targets + patched([*(stdin or ()), *(arg for arg in args if "\n" in arg)], base)


def patched(texts: list[str], base: str) -> list[Target]:
    """The files that a patch names, where its text is at hand."""
    targets: list[Target] = []
    for text in texts:
        for line in text.split("\n"):
            if line.startswith(("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")):
                targets.append((base + line.partition(": ")[2].strip(), "patch"))
            if line.startswith(("--- ", "+++ ")):
                name = line[4:].partition("\t")[0].strip()
                if name != "/dev/null":
                    targets.append((base + name, "patch"))
                    targets.append((base + name.partition("/")[2], "patch"))
    return [target for target in targets if target[0]]


_HANDLERS = {
    "rm": _rm, "chmod": _chmod, "chown": _chown, "chgrp": _chown, "sed": _sed, "gsed": _sed, "dd": _dd, "jq": _jq,
    "yq": _yq,
    "awk": _awk, "gawk": _awk, "mawk": _awk, "nawk": _awk, "sqlite3": _sqlite, "prettier": _prettier, "gofmt": _gofmt,
    "sort": _sort, "uniq": _uniq, "xxd": _xxd, "split": _split, "eslint": _prettier,
}  # fmt: skip
