"""A quick check that lets most shell commands pass without a full parse.

A command is harmless only if it cannot name or reach a guarded file: it has plain words without quotes, expansions or
patterns, no word is part of a guarded path, and no program works on whole directories or runs other text.
"""

MAX_LENGTH = 2_000
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_./:=,+@%|;&\n")
#: Redirections that write no file. The file of any other may be a link to a guarded one.
_REDIRECTS = ("2>&1", ">&2", "2>/dev/null", ">/dev/null", "> /dev/null")
#: Every guarded path, and every call of Detent, contains one of these.
_STEMS = ("workflow", "detent", "journal", "state.json", "settings", "hooks.json")
#: Programs that reach files which the command does not name.
_BROAD = frozenset(
    (
        *("rm", "rmdir", "mv", "cp", "ln", "rsync", "git", "find", "xargs", "tar", "unzip", "cd", "pushd", "popd"),
        *("sh", "bash", "zsh", "dash", "eval", "source", "exec", "env", "sudo", "su", "nohup", "timeout", "time"),
        *("nice", "parallel", "python", "python3", "node", "perl", "ruby", "php", "make", "npm", "npx", "pnpm", "yarn"),
        *("sed", "awk", "ed", "ex", "vim", "patch", "install", "chmod", "chown", "truncate", "dd", "tee", "shred"),
        *("apply_patch", "docker", "podman", "ssh"),
    )
)
#: Programs that show, copy, move or remove the files that they are given, and start no other program.
_FILE_PROGRAMS = frozenset(
    (
        *("cat", "head", "tail", "ls", "wc", "nl", "grep", "egrep", "fgrep", "diff", "cmp", "stat", "file", "du"),
        *("cut", "uniq", "cp", "mv", "rm", "rmdir", "mkdir", "touch", "ln", "echo", "printf", "pwd", "cd", "true"),
    )
)


def is_harmless(command: str, cwd: str, directories: "tuple[str, ...]") -> bool:
    """`directories` are those in which clients keep their files."""
    command = _without_redirects(command)
    if len(command) > MAX_LENGTH or not _PLAIN.issuperset(command):
        return False
    lowered = command.lower()
    if any(stem in lowered or stem in cwd for stem in (*_STEMS, *directories)):
        return False
    for mark in "|;&\n":
        lowered = lowered.replace(mark, " ")
    words = lowered.split(" ")
    return not any(word.rpartition("/")[2] in _BROAD or ".." in word or word in (".", "/") for word in words)


def only_handles_files(command: str) -> bool:
    """Whether a command is plain words, and starts only programs that show or move files and run nothing else."""
    command = _without_redirects(command)
    if len(command) > MAX_LENGTH or not _PLAIN.issuperset(command):
        return False
    for mark in "|;&":
        command = command.replace(mark, "\n")
    return all(words[0] in _FILE_PROGRAMS for words in map(str.split, command.split("\n")) if words)


def _without_redirects(command: str) -> str:
    for redirect in _REDIRECTS:
        command = command.replace(redirect, "")
    return command
