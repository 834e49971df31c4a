"""The dry run of a policy, for people: totals, the gates, and the sessions that would have gone otherwise."""

from collections.abc import Iterator

from detent.core.counted import counted
from detent.core.history.dry_run import Outcome, Step, Trial, TrialResult, by_gate
from detent.render.terminal.canvas import Canvas

_COLOURS = {Outcome.PASSED: "green", Outcome.REFUSED: "red", Outcome.WAITS: "yellow", Outcome.UNKNOWN: "dim"}
#: Sessions, and steps of each, that are listed; --json has all.
_MOST_SESSIONS, _MOST_STEPS = 20, 8
_MEANING = {
    Outcome.REFUSED: "would have been refused",
    Outcome.WAITS: "would have waited for a person",
    Outcome.UNKNOWN: "cannot be told from the record",
    Outcome.PASSED: "would have passed",
}


def trials_text(result: TrialResult, canvas: Canvas, *, every: bool = False) -> str:
    if not result.trials:
        return "no session is recorded since then, so there is nothing to replay"
    lines = [counted(len(result.trials), "session")]
    for outcome, meaning in _MEANING.items():
        if count := result.count(outcome):
            lines.append(f"  {canvas.paint(f'{count:>5}', _COLOURS[outcome])} {meaning}")
    lines += ["", *_gates(result, canvas)]
    shown = [trial for trial in result.trials if trial.differing or trial.problem or trial.added or every]
    for trial in shown[:_MOST_SESSIONS]:
        lines += ["", *_trial(trial, canvas, every=every)]
    if len(shown) > _MOST_SESSIONS:
        lines += ["", f"{len(shown) - _MOST_SESSIONS} more sessions differ; --json has all"]
    return "\n".join(lines)


def _gates(result: TrialResult, canvas: Canvas) -> Iterator[str]:
    for row in by_gate(result.trials):
        counts = [(outcome, getattr(row, outcome)) for outcome in _MEANING]
        text = ", ".join(f"{count} {outcome}" for outcome, count in counts if count)
        people = f" (for {', '.join(row.waits_for)})" if row.waits_for else ""
        yield from canvas.hanging(f"{row.phase} {row.gate or 'as a whole'}: {text}{people}", "    ", "  ")


def _trial(trial: Trial, canvas: Canvas, *, every: bool) -> Iterator[str]:
    yield canvas.cut(f"{trial.session}: {trial.outcome}", canvas.width)
    if trial.problem:
        yield from canvas.hanging(f"not replayed: {trial.problem}", "    ", "  ")
    if trial.added:
        yield from canvas.hanging(f"has phases that were never done: {', '.join(trial.added)}", "    ", "  ")
    if trial.removed:
        yield from canvas.hanging(f"has no phases {', '.join(trial.removed)}", "    ", "  ")
    steps = trial.steps if every else trial.differing
    for step in steps[:_MOST_STEPS]:
        yield from _step(step, canvas)
    if len(steps) > _MOST_STEPS:
        yield f"  {len(steps) - _MOST_STEPS} more steps"


def _step(step: Step, canvas: Canvas) -> Iterator[str]:
    where = f"{step.phase} {step.gate}".strip()
    people = f" for {step.waits_for}" if step.waits_for else ""
    text = f"{step.outcome:<8} commit {step.commit} {where}{people}: {step.reason}"
    first, *rest = canvas.hanging(text, "    ", "  ")
    yield first.replace(step.outcome, canvas.paint(step.outcome, _COLOURS[step.outcome]), 1)
    yield from rest
