"""The verdicts on the gates of phases, for people."""

from collections.abc import Mapping, Sequence

from detent.core.gate.evidence import Judgement, Verdict
from detent.core.session import Session
from detent.views.paper import Paper


def gates_text(session: Session, judged: Mapping[str, Sequence[Judgement]], paper: Paper) -> str:
    if not session.gates_apply:
        return "gates are off in this session; every phase can be finished without evidence"
    lines: list[str] = []
    for phase, judgements in judged.items():
        lines += [*([""] if lines else []), f"{phase}: {_headline(judgements)}"]
        for one in judgements:
            first, *rest = paper.wrap(f"{one.verdict:<7} {one.gate}: {one.reason}", "          ")
            lines += ["  " + first.strip(), *rest]
            if one.way_out:
                lines += paper.command(paper.clean(one.way_out), "          ")
    return "\n".join(lines) or "no phase is in progress"


def _headline(judgements: Sequence[Judgement]) -> str:
    if not judgements:
        return "no gates"
    passed = sum(one.verdict is Verdict.PASS for one in judgements)
    return "open" if passed == len(judgements) else f"{passed} of {len(judgements)} gates passed"
