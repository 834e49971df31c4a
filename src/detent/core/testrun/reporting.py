"""The options that make each test runner write a report that names its tests.

pytest is asked by a variable, however deep in the command it is. Other runners are asked by options, which are added
only where it is sure which program gets them: at the end of a command whose last part calls the runner itself, or a
script of `package.json` that does. Maven and gradle write reports without being asked.
"""

import json
import re
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from detent.core.guard.shell.walk import simple_commands
from detent.core.testrun.detect import runner


class Asked(NamedTuple):
    """The command with options for a report, and the variables that it needs besides."""

    command: str
    env: Mapping[str, str] = MappingProxyType({})
    #: Files to write before the run: name in the directory of reports to content.
    prepared: Mapping[str, str] = MappingProxyType({})


class _Way(NamedTuple):
    """The options of one runner; `{0}` is the directory of reports, `{1}` the same, quoted for a shell."""

    options: str = ""
    env: Mapping[str, str] = MappingProxyType({})
    prepared: Mapping[str, str] = MappingProxyType({})
    #: The runner writes the report to its output, which is copied to this file.
    output: str = ""


_WAYS = {
    "jest": _Way("--json --outputFile={1}/jest.json"),
    "vitest": _Way("--reporter=default --reporter=junit --outputFile.junit={1}/vitest.xml"),
    "playwright": _Way("--reporter=list,junit", {"PLAYWRIGHT_JUNIT_OUTPUT_FILE": "{0}/playwright.xml"}),
    "go": _Way("-json", output="go.json"),
    "nextest": _Way(
        "--tool-config-file detent:{1}/nextest.toml",
        prepared={"nextest.toml": '[profile.default.junit]\npath = "{0}/nextest.xml"\n'},
    ),
}
#: Patterns of the reports that a build writes by itself.
_OWN_FILES = {
    "maven": ("**/target/surefire-reports/TEST-*.xml", "**/target/failsafe-reports/TEST-*.xml"),
    "gradle": ("**/build/test-results/*/TEST-*.xml",),
}
#: Package managers of Node, and what comes before the options of a script.
_SCRIPTS = {"npm": "-- ", "pnpm": "", "yarn": ""}
#: Anything that may lead elsewhere than to the arguments of the last program.
_SHELL = re.compile(r"[|;<>()`$#\n\\]|(?<!&)&(?!&)|\|\|")


def asked_report(command: str, directory: str, package: str | None = None) -> Asked:
    """The command that also writes a report into the directory; the same command if no runner can be asked.

    `package` is the text of `package.json`.
    """
    asked = _asked(command, package)
    if asked is None:
        return Asked(command)
    way, before = asked
    quoted = shlex.quote(directory)
    line = f"{command} {before}{way.options.format(directory, quoted)}"
    if way.output:
        line = f"set -o pipefail; {line} | tee {quoted}/{way.output}"
    return Asked(
        line,
        {name: value.format(directory) for name, value in way.env.items()},
        {name: text.format(directory) for name, text in way.prepared.items()},
    )


def own_files(command: str) -> tuple[str, ...]:
    """The patterns of the reports that the runners of the command write by themselves."""
    names = (runner(words) for words in simple_commands(command))
    return tuple(dict.fromkeys(pattern for name in names for pattern in _OWN_FILES.get(name or "", ())))


def _asked(command: str, package: str | None) -> tuple[_Way, str] | None:
    """The options for the last program of the command, and the words before them."""
    words = _last_program(command)
    name = runner(words) if words else None
    if name in _WAYS:
        return None if "--" in words else (_WAYS[name], "")
    if name not in _SCRIPTS or package is None or "--" in words:
        return None
    script = _script(package, words)
    inner = _last_program(script) if script else []
    way = _WAYS.get(runner(inner) or "") if inner and "--" not in inner else None
    # What the script writes to its output is mixed with that of the package manager.
    return None if way is None or way.output else (way, _SCRIPTS[name])


def _last_program(command: str) -> list[str]:
    """The words of the last program of a command that a line may be added to; empty if there is none."""
    if _SHELL.search(command) or command.rstrip().endswith("&&"):
        return []
    programs = simple_commands(command.rpartition("&&")[2])
    # A program that starts another one stands before it, with all words.
    is_one = bool(programs) and all(programs[0][-len(words) :] == words for words in programs)
    return list(programs[0]) if is_one else []


def _script(package: str, words: list[str]) -> str | None:
    """The script of `package.json` that the words of a package manager run; the last of them names it."""
    try:
        scripts = json.loads(package).get("scripts")
    except (ValueError, AttributeError, RecursionError):
        return None
    name = "test" if words[-1] in ("t", "tst") else words[-1]
    script = scripts.get(name) if isinstance(scripts, dict) else None
    return script if isinstance(script, str) else None
