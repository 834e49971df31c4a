"""Refuses references in arguments that a command evaluates as code or as the name of a variable.

Such arguments are those of `eval`, the script of `bash -c`, and the variable of `printf -v`, whose subscript bash
evaluates. How a command uses an ordinary argument, or a shell variable that holds a value, is up to its author.
"""

import re
from itertools import pairwise

from detent.core.flow.site import Place, Site, Word
from detent.core.guard.shell.grammar import DECLARING
from detent.core.guard.shell.prefixes import command_start

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
ASSIGNMENT = re.compile(rf"{_NAME}(?:\[[A-Za-z0-9_$@*]*\])?\+?=")
#: Variables whose value bash evaluates, or runs later.
SPECIAL = frozenset(
    (
        *("BASH_ENV", "BASHOPTS", "ENV", "HISTCMD", "IFS", "LINENO", "OPTIND", "PROMPT_COMMAND", "PS0"),
        *("PS1", "PS2", "PS3", "PS4", "RANDOM", "SECONDS", "SHELLOPTS", "SRANDOM", "EPOCHSECONDS"),
        *("BASHPID", "LD_PRELOAD", "LD_LIBRARY_PATH"),
    )
)
_EVALUATORS = frozenset(
    (
        *("eval", "let", "trap", "unset", "read", "mapfile", "readarray", "getopts", "wait", "alias"),
        *("bind", "compgen", "complete", "enable", "fc", "ssh", "su", "watch", "parallel"),
    )
)
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "busybox")
_TEXT_RUNNERS = ("flock", "script")
_CODE_FLAGS = {
    **dict.fromkeys((*_SHELLS, *_TEXT_RUNNERS), re.compile(r"-[A-Za-z]*c[A-Za-z]*|--command")),
    **dict.fromkeys(("python", "pypy"), re.compile(r"-[A-Za-z]*c")),
    **dict.fromkeys(("perl", "ruby"), re.compile(r"-[A-Za-z0-9]*[eE]")),
    **dict.fromkeys(("node", "deno", "bun"), re.compile(r"-[a-z]*[ep]|--eval|--print")),
    **dict.fromkeys(("php", "lua", "osascript"), re.compile(r"-[re]")),
}
#: Programs whose first argument is code, with the options that take an argument and those whose argument is the code.
_FIRST_IS_CODE = {
    "sed": (("-f", "-l", "--file", "--line-length"), ("-e", "--expression")),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), (("-F", "-v", "-f"), ("-e", "--source"))),
}
_OPTION = re.compile(r"[-+].")
_FILE = re.compile(r"[^./]*[./]")
_VERSION = re.compile(r"[0-9.]+$")


def check_assignment(name: str, word: Word) -> None:
    """Refuse values for the few variables that the shell evaluates."""
    if name in SPECIAL:
        _refuse(word.sites, f"the shell gives {name} a meaning of its own")
    elif name == "PATH":
        _refuse_foreign([word], "a value cannot say where commands are found")


def check_command(words: list[Word], fed: list[Site]) -> None:
    """Refuse the sites of one simple command that it would evaluate; `fed` are the sites of its standard input."""
    at = _effective(words)
    name, arguments = words[at], words[at + 1 :]
    if name.plain in DECLARING:
        for word in arguments:
            check_assignment(word.plain.partition("=")[0].removesuffix("+"), word)
            if not ASSIGNMENT.match(word.unquoted):
                _refuse(word.sites, f"{name.plain} may evaluate a name")
    elif name.plain in _EVALUATORS:
        _refuse_all(arguments, f"{name.plain} evaluates its arguments")
    elif name.is_pattern or "\0" in name.program:
        _refuse_all(arguments, "the command is only known when it runs, and it may evaluate its arguments")
    elif name.plain in (".", "source"):
        _refuse_code(arguments[:1])
        _refuse(fed, f"{name.plain} would run it")
    elif name.plain == "printf":
        _check_printf(arguments)
    elif name.plain in ("[", "test"):
        _check_test(arguments)
    elif name.program in _FIRST_IS_CODE:
        _check_first(name.program, arguments)
    _check_interpreters(words, at, fed)


def makes_attribute(words: list[Word], letters: str) -> bool:
    """True if the command gives a variable an attribute with which bash evaluates the values assigned to it."""
    if words[0].plain in ("read", "mapfile", "readarray"):
        return "a" in letters
    options = [word.plain for word in words[1:] if _OPTION.match(word.plain)]
    return words[0].plain in DECLARING and any(set(option) & {*letters, "\0"} for option in options)


def check_condition(words: list[Word]) -> None:
    """Refuse values in `[[ … ]]` if an operator evaluates its operand as arithmetic or as the name of a variable."""
    operators = {word.keyword for word in words} & {"=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"}
    if operators:
        for word in words:
            _refuse(word.direct, f"[[ … {min(operators)} … ]] evaluates it; use [ … ] or a comparison with ==")


def _effective(words: list[Word]) -> int:
    """The index of the command that runs in the end, behind prefix programs such as `env`."""
    at = 0
    while words[at].plain not in _EVALUATORS:
        start, _ = command_start(words[at].program, [word.plain for word in words[at:]])
        for word in words[at + 1 : at + start]:
            if not ASSIGNMENT.match(word.unquoted):
                _refuse(word.sites, f"a value cannot be an option of {words[at].program}")
        if not start or at + start >= len(words):
            break
        at += start
    _refuse_foreign([words[at]], "a value cannot be the command itself")
    return at


def _check_printf(arguments: list[Word]) -> None:
    if not arguments:
        return
    if arguments[0].plain.startswith("-v") or arguments[0].starts_with_reference:
        _refuse_all(arguments, "printf could take it for the variable of -v; begin with a format such as '%s'")


def _check_test(arguments: list[Word]) -> None:
    if any(word.plain in ("-v", "-R") for word in arguments):
        _refuse_all(arguments, "-v evaluates the name that it tests")
    for word, following in pairwise(arguments):
        if word.direct and following.direct:
            _refuse(following.sites, "the value before it could be an operator; put a literal between")
    for site in [site for word in arguments for site in word.direct if site.place is Place.WORD]:
        site.place = Place.BARE  # a list of many would bring its own operators


def _check_first(program: str, arguments: list[Word]) -> None:
    taking, coding = _FIRST_IS_CODE[program]
    why = f"it would be part of a program for {program}"
    at, is_given = 0, False
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word.plain in taking:
            is_given = is_given or word.plain in ("-f", "--file")
            at += 1
        elif word.plain in coding:
            is_given = True
            _refuse_all(arguments[at : at + 1], why)
            at += 1
        elif _OPTION.match(word.plain):
            _refuse(word.sites if word.plain.startswith(coding) else [], why)
        else:
            _refuse_all([] if is_given else [word], why)
            return


def _check_interpreters(words: list[Word], command_at: int, fed: list[Site]) -> None:
    """Check shells and other interpreters anywhere in the command, as in `find -exec sh -c`."""
    for at, word in enumerate(words):
        name = _VERSION.sub("", word.program)
        if name not in _CODE_FLAGS:
            continue
        has_code = _check_code(name, words[at + 1 :])
        if has_code and words[0].plain == "xargs":
            _refuse(fed, f"{name} would run it")
        elif not has_code and at == command_at:
            _check_script(name, words[at + 1 :], fed)


def _check_code(name: str, arguments: list[Word]) -> bool:
    """Refuse references in or before the code among the arguments; returns whether there is code."""
    is_code = False
    for at, word in enumerate(arguments):
        if _CODE_FLAGS[name].fullmatch(word.plain):
            is_code = True
        elif is_code and not _OPTION.match(word.plain):
            _refuse_all(arguments[: at + 1], f"{name} would run it; give it as an argument after the code instead")
            return True
        elif (
            name not in (*_SHELLS, *_TEXT_RUNNERS)
            and _FILE.match(word.plain)
            and not (at and _OPTION.match(arguments[at - 1].plain))
        ):
            return False
    return False


def _check_script(name: str, arguments: list[Word], fed: list[Site]) -> None:
    files = [word for word in arguments if not _OPTION.match(word.plain) and word.plain != "-"]
    _refuse_code(files[:1])
    if not files:
        _refuse(fed, f"{name} would run it")


def _refuse_code(words: list[Word]) -> None:
    for word in words:
        _refuse([site for site in word.sites if not site.is_session], "a value cannot name the code to run, or be it")


def _refuse_foreign(words: list[Word], why: str) -> None:
    for word in words:
        _refuse([site for site in word.direct if not site.is_session], why)


def _refuse_all(words: list[Word], why: str) -> None:
    for word in words:
        _refuse(word.sites, why)


def _refuse(sites: list[Site], why: str) -> None:
    for site in sites:
        site.refuse(why)
