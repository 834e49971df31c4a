"""The verdicts of the gates of phases, for people."""

from collections.abc import Iterator, Mapping, Sequence

from detent.core.counted import counted, listed
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.render.terminal.canvas import Canvas

#: How many tests of a kind are named.
_MOST_NAMED = 5
_COLOURS = {
    Verdict.PASS: "green",
    Verdict.FAIL: "red",
    Verdict.ERROR: "red",
    Verdict.STALE: "yellow",
    Verdict.PENDING: "yellow",
}


def gates_text(
    session: Session, judged: Mapping[str, Sequence[Judgement]], canvas: Canvas, *, ways_out: bool = True
) -> str:
    if not session.gates_apply:
        return "gates are off in this session; every phase can be finished without evidence"
    lines: list[str] = []
    for phase, judgements in judged.items():
        lines += [*([""] if lines else []), f"{phase_name(session, phase)}: {_headline(judgements)}"]
        for judgement in judgements:
            verdict = judgement.verdict
            first, *rest = canvas.hanging(f"{verdict:<7} {judgement.gate}: {judgement.reason}", " " * 10, "  ")
            lines += [first.replace(verdict, canvas.paint(verdict, _COLOURS[verdict]), 1), *rest]
            lines += _named(session, phase, judgement, canvas)
            if judgement.way_out and ways_out:
                lines += canvas.command(canvas.clean(judgement.way_out), "          ")
    return "\n".join(lines) or "no phase is in progress"


def _named(session: Session, phase: str, judgement: Judgement, canvas: Canvas) -> Iterator[str]:
    """The tests and findings of the last run that the reason does not name."""
    state = session.phases[phase].gates.get(judgement.gate)
    receipt = state.receipt if state is not None else None
    for kind, names in receipt.named_tests.items() if receipt is not None else ():
        others = [name for name in names if name not in judgement.reason]
        if others:
            yield from canvas.hanging(f"{kind}: {listed(others, _MOST_NAMED)}", " " * 12, " " * 10)


def _headline(judgements: Sequence[Judgement]) -> str:
    if not judgements:
        return "no gates"
    passed = sum(judgement.verdict is Verdict.PASS for judgement in judgements)
    return "open" if passed == len(judgements) else f"{passed} of {counted(len(judgements), 'gate')} passed"
