"""Success criteria of a step: their grammar, and the verdict on a run.

`exit_code:N`, `exit_code:!=N`, `contains:T`, `not_contains:T`, `matches:RE`, `non_empty`, `file_exists:P`. Of several
all must hold; none given means `exit_code:0`.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from detent.core.limits import cut
from detent.errors import Invalid

MAX_PATTERN = 1_000
MAX_SEARCHED = 262_144
DEFAULT = ("exit_code:0",)
_EXIT_CODE = re.compile(r"(!=)?([0-9]{1,3})")
_KINDS = ("exit_code", "contains", "not_contains", "matches", "non_empty", "file_exists")
_UNBOUNDED = re.compile(r"[*+]|\{[0-9]*,\}")


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    argument: str = ""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` names the criterion that failed, or all that hold."""

    passed: bool
    reason: str


def parse(text: str) -> Criterion:
    """The criterion that `text` spells; `Invalid` if it spells none."""
    kind, colon, argument = text.partition(":")
    kind = kind.strip()
    if kind not in _KINDS:
        raise Invalid(f"{cut(text, 80)!r} is no success criterion; there are {', '.join(_KINDS)}")
    if kind == "non_empty":
        if colon:
            raise Invalid("non_empty takes no argument")
        return Criterion(kind=kind)
    if not argument.strip():
        raise Invalid(f"{kind} needs something behind its colon")
    if kind == "exit_code":
        argument = argument.strip()
        if not (match := _EXIT_CODE.fullmatch(argument)) or int(match[2]) > 255:
            raise Invalid(f"{argument!r} is no exit code; write exit_code:N or exit_code:!=N with N from 0 to 255")
    if kind == "matches":
        compiled(argument)
    return Criterion(kind=kind, argument=argument)


def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled pattern; `Invalid` if it is not valid, or if it could take exponential time."""
    if len(pattern) > MAX_PATTERN:
        raise Invalid(f"a pattern may have {MAX_PATTERN} characters and this one has {len(pattern)}")
    if problem := _pattern_problem(pattern):
        raise Invalid(f"the pattern {cut(pattern, 80)!r} is not used: {problem}")
    try:
        return re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise Invalid(f"{cut(pattern, 80)!r} is no regular expression: {error}") from error


def judge(
    criteria: str | Sequence[str] | None, *, exit_code: int | None, output: str, exists: Callable[[str], bool]
) -> Judged:
    """The verdict on a run. A run without an exit code did not finish, so it fails."""
    if exit_code is None:
        return Judged(passed=False, reason="the command did not finish")
    texts = (criteria,) if isinstance(criteria, str) else tuple(criteria or ()) or DEFAULT
    for text in texts:
        problem = _problem(parse(text), exit_code=exit_code, output=output, exists=exists)
        if problem:
            return Judged(passed=False, reason=problem)
    return Judged(passed=True, reason=", ".join(cut(text, 80) for text in texts))


def _problem(criterion: Criterion, *, exit_code: int, output: str, exists: Callable[[str], bool]) -> str:
    argument = criterion.argument
    shown = repr(cut(argument, 80))
    match criterion.kind:
        case "exit_code":
            is_unequal, wanted = argument.startswith("!="), int(argument.removeprefix("!="))
            return "" if (exit_code == wanted) != is_unequal else f"the exit code is {exit_code}, not {argument}"
        case "contains":
            return "" if argument in output else f"the output does not contain {shown}"
        case "not_contains":
            return f"the output contains {shown}" if argument in output else ""
        case "matches":
            return _unmatched(argument, output)
        case "non_empty":
            return "" if output.strip() else "the output is empty"
        case _:
            return "" if exists(argument) else f"there is no file {shown}"


def _unmatched(pattern: str, output: str) -> str:
    if compiled(pattern).search(output, 0, MAX_SEARCHED):
        return ""
    part = f"the first {MAX_SEARCHED} characters of the output do" if len(output) > MAX_SEARCHED else "the output does"
    return f"{part} not match {cut(pattern, 80)!r}"


def _pattern_problem(pattern: str) -> str:
    """A repetition inside a repetition takes exponential time; possessive forms are broken in some Pythons."""
    repeats = [False]  # for each open group, whether something in it repeats without bound
    at, closed = 0, False
    while at < len(pattern):
        char = pattern[at]
        unbounded = _UNBOUNDED.match(pattern, at)
        if unbounded or (char == "?" and at and pattern[at - 1] != "("):
            at = unbounded.end() if unbounded else at + 1
            if unbounded and closed:
                return "a repetition inside a repetition"
            if unbounded:
                repeats[-1] = True
            if pattern.startswith("+", at):
                return "possessive repetition"
            at += pattern.startswith("?", at)
            closed = False
            continue
        closed = False
        if char == "\\":
            at += 1
        elif char == "[":
            at = _class_end(pattern, at)
        elif char == "(":
            if pattern.startswith("(?>", at):
                return "an atomic group"
            repeats.append(False)
        elif char == ")" and len(repeats) > 1:
            closed = repeats.pop()
            repeats[-1] = repeats[-1] or closed
        at += 1
    return ""


def _class_end(pattern: str, at: int) -> int:
    """The position of the bracket that closes a class; a first bracket, also after `^`, is a character of it."""
    at += 2 if pattern.startswith("^", at + 1) else 1
    at += pattern.startswith("]", at)
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at
