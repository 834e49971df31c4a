"""The one line of a failed run that tells most, and a form of it that is the same when the same thing fails again."""

import re

MAX_LINE = 200

_TELLING = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # The test and its reason in one line.
        r"^FAILED [^\s:]+::.+? - .+$",
        r"^\[ERROR\] +[\w.$]+[.:]\w+:\d+ .+$",
        # The reason.
        r"^E {3,}\S.*$",
        r"^[ \t]*[A-Za-z_][\w.]*(?:Error|Exception|Failure|Failed|Interrupt)(?: \[\w+\])?: .+$",
        r"^[ \t]+error: .+$",
        r"^thread '.+ panicked at .+$",
        r"^error(?:\[E\d+\])?: (?!could not compile|test failed|aborting).+$",
        r"^panic: .+$",
        r"^[ \t]*\S+\.go:\d+(?::\d+)?: .+$",
        # The test.
        r"^[ \t]*--- FAIL: .+$",
        r"^[ \t]*\u25cf .+ \u203a .+$",
        r"^[ \t]*FAIL[ \t]+\S+ > .+$",
        r"^not ok \d+ .+$",
        r"^[ \t]*\u2716 (?!failing tests).+$",
        r"^(?:FAIL|ERROR): \w+ \(.+\)$",
        r"^test .+ \.\.\. FAILED$",
        r"^(?:FAILED|ERROR) \S+.*$",
        r"^.*Required test coverage of .+ not reached.*$",
        r"^.*coverage threshold for .{1,200} not met.*$",
    )
)
_VAGUE = re.compile(
    r"^(?:\[ERROR\] |\S+: )?(?:ERROR|Error|error|FAIL|fatal|make(?:\[\d+\])?: \*\*\*)\b.*$", re.MULTILINE
)

_VARYING: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), placeholder)
    for pattern, placeholder in (
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"(?<![\d:.])\d\d:\d\d:\d\d(?:[.,]\d+)?(?![\d:])", "<time>"),
        (r"\b0x[0-9a-fA-F]+", "<address>"),
        (r"(?<![\w.-])(?:/private)?(?:/tmp|/var/folders|/var/tmp|/dev/shm)/[^\s'\"),:;\]]+", "<temp>"),
        (r"(?<=')\s\(\d+\)(?= panicked)", ""),
        (r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ns|\u00b5s|us|ms|s|sec|secs|seconds?|minutes?|m)\b", "<duration>"),
        (r"(?<=[\w)\]]):\d+(?::\d+)?(?![\w.]|:\d)", ""),
        (r"(?i)\b(?P<word>line|col(?:umn)?) \d+", r"\g<word>"),
        (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uuid>"),
        (r"\s+", " "),
    )
)


def symptom(text: str, summary: str | None) -> str | None:
    """`summary` is the runner's own line about the failure, for want of a better one."""
    for pattern in _TELLING:
        if match := pattern.search(text):
            return shortened(match[0])
    if summary:
        return shortened(summary)
    if match := _VAGUE.search(text):
        return shortened(match[0])
    last = text.rstrip().rpartition("\n")[2]
    return shortened(last) or None


def shortened(line: str) -> str:
    line = line[: 10 * MAX_LINE].strip()
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "\u2026"


def signature(error: str) -> str:
    """The error without what differs from run to run: times, durations, addresses, positions, temporary paths."""
    for pattern, placeholder in _VARYING:
        error = pattern.sub(placeholder, error)
    return error.strip()
