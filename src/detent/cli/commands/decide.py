"""`decide`: goes through everything that waits for a person, one at a time."""

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from detent.cli.person import WAITING, agrees, ask_line, is_at_terminal
from detent.cli.request import Request, Usage, canvas, local_now, print_error, session_of, write_text
from detent.cli.verb import session_option, verb
from detent.errors import DetentError, Refused

if TYPE_CHECKING:
    from datetime import datetime

    from detent.core.session.open_decision import OpenDecision
    from detent.core.session.session import Session
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

#: Lines of a diff, and of the output of a check, that are shown beside a decision.
_DIFF_LINES, _TAIL_LINES = 200, 12
_BLANK = re.compile(r"\b(WHY|ANSWER|VALUE|YOUR TEST COMMAND|COMMAND)\b")
_QUESTIONS = {
    "WHY": "why",
    "ANSWER": "your answer",
    "VALUE": "the output of the step",
    "COMMAND": "the command",
    "YOUR TEST COMMAND": "the command that runs all tests",
}


@verb("decide", example="detent decide", decides=True)
@session_option
def decide_verb(request: Request, session: str | None) -> int:
    """Decide what waits for a person, one decision at a time.

    Each is shown with its evidence and with what changed since its phase began. Every choice is a command that can also
    be typed. Ctrl-C ends it; what was decided before stays decided. With --json it only lists. The exit code is 6 if
    something is still open.
    """
    seen: set[tuple[str | None, ...]] = set()
    if not request.json:
        _check_person(request, session)
    while True:
        with request.reading() as project:
            handle = session_of(project, session)
            look = _Look.at(project, handle)
            left = [entry for entry in look.own if _key(entry) not in seen]
            if request.json or not left:
                break
            shown = _shown(handle, look, left[0], number=len(seen) + 1, total=len(seen) + len(left))
        request.print_notices()
        write_text(shown)
        seen.add(_key(left[0]))
        if not _ask(request, look, left[0]):
            break
    still = [entry for entry in look.own if _key(entry) not in seen] if request.json else _open(request, session)
    _answer(request, look, still)
    return WAITING if still else 0


class _Look(NamedTuple):
    """The session and its open decisions, as the person sees them."""

    state: "Session"
    entries: "tuple[OpenDecision, ...]"
    own: "list[OpenDecision]"
    commands: list[str]
    now: "datetime"
    active: bool

    @classmethod
    def at(cls, project: "Project", handle: "SessionHandle") -> "_Look":
        from detent.core.session.open_decision import open_decisions
        from detent.engine.decisions import verdicts_now, view_now
        from detent.render.next_commands import next_commands

        state = handle.state
        view, judged = view_now(project, state), verdicts_now(project, state)
        entries = open_decisions(state, judged, view)
        return cls(
            state,
            entries,
            [entry for entry in entries if entry.is_yours],
            next_commands(state, view, judged=judged, decisions=entries),
            local_now(project),
            view.active,
        )


def _key(entry: "OpenDecision") -> tuple[str | None, ...]:
    return entry.kind, entry.phase, entry.gate, entry.question, entry.task


def _check_person(request: Request, session: str | None) -> None:
    """Refuse at once where no decision could be taken."""
    from detent.engine.policy import may_decide

    if not may_decide(request.actor):
        raise Refused("decide is for a person, and this is an agent's shell", way_out="detent decide --json lists it")
    if not is_at_terminal():
        with request.reading() as project:
            is_open = bool(_Look.at(project, session_of(project, session)).own)
        if is_open:
            raise Usage(
                "decide asks at a terminal, and there is none",
                way_out="detent decide --json lists what is open, each with its command",
            )


def _open(request: Request, session: str | None) -> "list[OpenDecision]":
    with request.reading() as project:
        return _Look.at(project, session_of(project, session)).own


def _answer(request: Request, look: _Look, still: "list[OpenDecision]") -> None:
    from detent.core.counted import counted
    from detent.render.next_commands import shown_commands

    text = f"{counted(len(still), 'decision')} still open" if still else "nothing waits for you"
    commands = [f"detent decide{'' if look.active else f' --session {look.state.id}'}"] if still else look.commands
    request.answer(
        lambda canvas: "\n".join([text, "", *shown_commands(commands, canvas)]),
        {"session": look.state.id, "needs": look.entries, "next": look.commands},
    )


# One decision


def _shown(handle: "SessionHandle", look: _Look, entry: "OpenDecision", *, number: int, total: int) -> str:
    from detent.render.terminal.decisions import headline

    sheet = canvas()
    head = f"{number} of {total}: {entry.kind.replace('_', ' ')}"
    lines = [
        "",
        sheet.paint(sheet.draw(f"━━ {head}"), "yellow"),
        *sheet.wrap(headline(entry, look.now)),
        *_evidence(handle, look, entry),
        *_changes(handle, look.state, entry.phase),
        "",
        *_option_lines(entry),
    ]
    return "\n".join(lines)


def _evidence(handle: "SessionHandle", look: _Look, entry: "OpenDecision") -> list[str]:
    """The verdicts of the phase's gates, the end of the last output of a closed one, and the phase's summary."""
    from detent.render.terminal.gates import gates_text

    state, sheet = look.state, canvas()
    if entry.phase is None or entry.phase not in state.phases:
        return []
    phase, lines = state.phases[entry.phase], []
    if phase.summary:
        lines += ["", *sheet.wrap(f"summary: {phase.summary}")]
    judged = handle.gates.judgements(entry.phase)
    if judged[entry.phase]:
        lines += ["", gates_text(state, judged, sheet, ways_out=False)]
    receipt = phase.at_gate(entry.gate or "").receipt
    if receipt is not None and receipt.tail and not receipt.is_pass:
        lines += ["", f"the end of the output of `{sheet.clean(receipt.command)}`:"]
        lines += [sheet.paint(f"  {sheet.clean(line)}", "dim") for line in receipt.tail.splitlines()[-_TAIL_LINES:]]
    return lines


def _changes(handle: "SessionHandle", state: "Session", phase: str | None) -> list[str]:
    """The diff since the phase began."""
    from detent.core.counted import counted
    from detent.engine.checkpoints.file_diffs import file_diffs
    from detent.render.terminal.diff import files_text

    begun = state.phases[phase].pre if phase is not None and phase in state.phases else 0
    if not begun:
        return []
    name = f"PRE_{phase}_v{begun}"
    try:
        files, left_out = file_diffs(handle.checkpoints.compare(name), _DIFF_LINES)
    except DetentError as error:
        return ["", *canvas().wrap(f"no diff: {error.message}")]
    if not files:
        return ["", f"no file has changed since {phase} began"]
    lines = ["", f"{counted(len(files) + left_out, 'file')} changed since {phase} began:", files_text(files, canvas())]
    return [*lines, *canvas().command(f"detent diff {name}")] if left_out else lines


def _option_lines(entry: "OpenDecision") -> list[str]:
    sheet, lines = canvas(), []
    for number, (label, _) in enumerate(_options(entry), 1):
        first, *rest = sheet.command(label, "     ")
        lines += [first.replace("     ", f"  {number}  ", 1), *rest]
    return [*lines, "  Enter leaves it open, q ends"]


def _options(entry: "OpenDecision") -> list[tuple[str, str]]:
    """The choices as they are shown, each with its command."""
    if entry.question is not None and entry.choices:
        end = entry.command.rindex(" --session ") if " --session " in entry.command else len(entry.command)
        base = f"detent reply {entry.question}"
        return [(choice, f"{base} {shlex.quote(choice)}{entry.command[end:]}") for choice in entry.choices]
    if entry.gate is not None and entry.choices and "--choice" in entry.command:
        first = f"--choice {shlex.quote(entry.choices[0])}"
        answers = [entry.command.replace(first, f"--choice {shlex.quote(choice)}") for choice in entry.choices]
        return [(command, command) for command in (*answers, *entry.others)]
    return [(command, command) for command in (entry.command, *entry.others)]


def _ask(request: Request, look: _Look, entry: "OpenDecision") -> bool:
    """Ask until the person has decided or passes; False to end."""
    options = _options(entry)
    while True:
        answer = ask_line(f"{'a number' if len(options) > 1 else '1'}, Enter or q > ")
        if answer is None or answer.lower() in ("q", "quit"):
            return False
        if not answer:
            return True
        if not (answer.isascii() and answer.isdecimal() and 1 <= int(answer) <= len(options)):
            write_text(f"{answer[:40]!r} is none of 1 to {len(options)}")
            continue
        if _take(request, look, options[int(answer) - 1][1]):
            return True


def _take(request: Request, look: _Look, command: str) -> bool:
    """Fill in the command and carry it out, as if it had been typed; False if it was refused or called off."""
    from detent.cli.app import invoke

    words: list[str] = []
    if " resolve cancel" in command and not agrees(f"cancel {look.state.id}?"):
        return False
    for word in shlex.split(_BLANK.sub(lambda blank: shlex.quote(f"\0{blank[0]}"), command))[1:]:
        if not word.startswith("\0"):
            words.append(word)
            continue
        text = ask_line(f"{_QUESTIONS[word[1:]]} > ")
        if not text:
            return False
        words += shlex.split(text) if word[1:] == "YOUR TEST COMMAND" else [text]
    own = Request()
    own.directory, own.project = request.directory, request.project
    own.sign, own.key = request.sign, request.key
    own.is_confirmed = True
    try:
        invoke(words, own)
        own.print_notices()
    except DetentError as error:
        own.print_notices()
        print_error(error.message, error.way_out)
        return False
    return True
