"""Whether a test command runs the whole suite: the first argument that selects a part of it, by the runner's options.

Only arguments that are known not to select are let through. A path, an expression or an unknown option selects.
"""

import re

from detent.core.guard.shell.prefixes import command_start
from detent.core.guard.shell.walk import simple_commands
from detent.core.testrun.detect import runner, tool_name

Words = list[str]

#: Runner to the options that do not change which tests run. The value of an option may follow after `=`.
_HARMLESS: dict[str, str] = {
    "pytest": r"-q+|-v+|-s|-l|-r\w*|-n\w*|--quiet|--verbose|--showlocals|--tb|--color|--code-highlight|--durations"
    r"|--durations-min|--cov(?:-[a-z-]+)?|--no-cov|--capture|--strict(?:-markers|-config)?|--no-header|--no-summary"
    r"|--numprocesses|--dist|--ff|--failed-first|--nf|--new-first|--full-trace|--showcapture|--show-capture|--cache-clear",
    "unittest": r"discover|-v|-q|-b|-c|--verbose|--quiet|--buffer|--catch|--locals|--durations",
    "jest": r"--ci|--coverage|--verbose|--silent|--colors?|--no-colors?|--runInBand|-i|--no-cache|--forceExit"
    r"|--maxWorkers|-w|--reporters|--detectOpenHandles|--passWithNoTests=false",
    "vitest": r"run|--run|--coverage(?:\.\S+)?|--reporter|--silent|--no-color|--color|--watch=false|--no-watch",
    "go": r"test|\./\.\.\.|-v|-race|-cover|-covermode|-coverprofile|-count|-json|-timeout|-p|-parallel|-vet",
    "cargo": r"test|t|--all|--workspace|--all-features|--all-targets|--release|--locked|--offline|--verbose|-v|-q"
    r"|--quiet|--no-fail-fast|--nocapture|--color",
    "npm": r"test|t|tst|run|run-script|--silent|-s|--|--coverage|--ci",
    "make": r"test|tests|check|-s|-k|--silent",
}
#: Options of these runners whose value is the next word.
_VALUED = {
    "pytest": ("-n", "--tb", "--color", "--durations", "--cov", "--cov-report", "--cov-config", "--dist"),
    "jest": ("--maxWorkers", "-w", "--reporters"),
    "vitest": ("--reporter",),
    "go": ("-count", "-timeout", "-p", "-parallel", "-covermode", "-coverprofile"),
}
_SAME_AS = {"pnpm": "npm", "yarn": "npm", "just": "make", "task": "make"}
#: A variable by which a runner takes more arguments.
_OPTIONS = re.compile(r"\b\w*(?:ADDOPTS|OPTIONS|OPTS|ARGS|FLAGS)=\S+")
_PROGRAM = re.compile(r"(?:.*/)?(?:python|pypy|py)[\d.]*|-m|run|exec|[A-Za-z_]\w*=.*|--")


def selection(command: str, base: str) -> str | None:
    """The first word with which a shell command runs only a part of the tests; None if it runs all.

    `base` is the directory of the project: going elsewhere selects too.
    """
    if hidden := _OPTIONS.search(command):
        return hidden[0]
    for words in simple_commands(command):
        if (elsewhere := _going_elsewhere(words, base)) is not None:
            return elsewhere
        name = runner(words)
        if name is not None and (chosen := _selecting(_SAME_AS.get(name, name), words)) is not None:
            return chosen
    return None


def _going_elsewhere(words: Words, base: str) -> str | None:
    """The words with which a command, or a program in front of it, goes to another directory than `base`."""
    if words[:1] in (["cd"], ["pushd"], ["popd"]):
        return " ".join(words) if not _is_base(" ".join(words[1:]), base) else None
    start, directory = command_start(tool_name(words[0]), words) if words else (0, "")
    return " ".join(words[:start]) if directory and not _is_base(directory, base) else None


def _is_base(directory: str, base: str) -> bool:
    return directory.rstrip("/") in (".", base)


def _selecting(name: str, words: Words) -> str | None:
    harmless, valued = re.compile(_HARMLESS.get(name, "")), _VALUED.get(name, ())
    rest = _arguments(name, words)
    while rest:
        word = rest.pop(0)
        if harmless.fullmatch(word.partition("=")[0]) is None and harmless.fullmatch(word) is None:
            return word
        if word in valued and rest and not rest[0].startswith("-"):
            rest.pop(0)
    return None


def _arguments(name: str, words: Words) -> Words:
    """The words after the program that runs the tests."""
    programs = {name, "py.test", "pytest-3", "nextest"}
    for at, word in enumerate(words):
        if word.rpartition("/")[2] in programs:
            return words[at + 1 :]
    # The runner has another name here, such as make or npm: everything after the first word counts.
    at = next((at for at, word in enumerate(words) if not re.fullmatch(_PROGRAM, word)), len(words))
    return words[at + 1 :]
