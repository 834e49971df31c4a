"""The open decisions: each with its reason, since when, and the commands that decide it."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from detent.core.session.open_decision import OpenDecision, View
from detent.core.session.session import Escalation
from detent.render.elapsed import elapsed, moment
from detent.render.next_commands import MOST_SHOWN
from detent.render.terminal.canvas import Canvas


def decision_lines(decisions: Sequence[OpenDecision], view: View, *, now: datetime, canvas: Canvas) -> Iterator[str]:
    """The decisions of the viewer, then those of others, under a heading each; nothing if none is open."""
    own = [entry for entry in decisions if entry.is_yours and view.identity is not None]
    others = [entry for entry in decisions if entry not in own]
    for heading, entries in (("NEEDS YOU", own), (_heading(others, view), others)):
        if not entries:
            continue
        yield canvas.paint(canvas.draw(heading), "yellow")
        for entry in entries[:MOST_SHOWN]:
            yield from entry_lines(entry, now=now, canvas=canvas)
        if len(entries) > MOST_SHOWN:
            yield f"  and {len(entries) - MOST_SHOWN} more; detent decide --json lists all"
        yield ""


def escalations_text(
    escalations: Sequence[Escalation], decisions: Sequence[OpenDecision], *, now: datetime, canvas: Canvas
) -> str:
    """Every escalation, and after those of a phase the commands that decide them."""
    lines: list[str] = []
    for decision in decisions:
        for entry in (entry for entry in escalations if entry.phase == decision.phase):
            lines.append(canvas.clean(f"{moment(entry.at, now)}  {decision.where}  {entry.kind}"))
            lines += canvas.wrap(entry.detail, "  ")
        lines += [*_command_lines(decision, canvas), ""]
    return "\n".join(lines[:-1]) or "nothing waits for a decision"


def _command_lines(entry: OpenDecision, canvas: Canvas) -> Iterator[str]:
    yield from canvas.command(entry.command, "    ")
    for command in entry.others:
        yield from _other_lines(command, canvas)


def _heading(others: Sequence[OpenDecision], view: View) -> str:
    if view.identity is None:
        return "NEEDS A PERSON, who types this in a terminal of their own"
    return f"WAITS FOR {' or '.join(dict.fromkeys(who for entry in others for who in entry.waits_for))}"


def entry_lines(entry: OpenDecision, *, now: datetime, canvas: Canvas) -> Iterator[str]:
    """One decision: what it is about, since when, its choices, and its commands."""
    yield from canvas.wrap(headline(entry, now), "  ")
    for number, choice in enumerate(entry.choices if entry.question else (), 1):
        yield from canvas.hanging(choice, "       ", f"    {number}. ")
    yield from _command_lines(entry, canvas)


def headline(entry: OpenDecision, now: datetime) -> str:
    """The subject of the decision, and since when it is open."""
    since = f" (since {moment(entry.since, now)}, {elapsed(entry.since, now)})" if entry.since else ""
    return f"{entry.headline}{since}"


def _other_lines(command: str, canvas: Canvas) -> list[str]:
    first, *rest = canvas.command(command, "       ")
    return [first.replace("       ", "    or ", 1), *rest]
