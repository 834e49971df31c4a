"""What the agent of a phase, or of one task, is told by the runner: all it needs to know, in one bounded text.

The runner begins, judges and finishes; the agent works and reports. What failed before stands first.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from detent.core.gate.evidence import GateState, Judgement, Verdict
from detent.core.gate.registry import KINDS
from detent.core.limits import MAX_SUMMARY, cut
from detent.core.session.handover import Handover, Passed
from detent.core.session.session import Session
from detent.render.prompt.acceptance import gate_lines
from detent.render.prompt.bounded import Section, bounded_text

MAX_BYTES = 64 * 1024
MAX_TAIL_LINES = 40
#: Of each thing that failed: more is seldom read, and the command can be run again.
MAX_EVIDENCE, MAX_REASON, MAX_CLOSED = 4_096, 1_000, 20
MAX_OUTPUT = 8_192
REPORT = (
    "End your answer with the lines Summary:, Deliverables: and Context for next:, "
    "and with Status: failed if it did not work."
)
_HOW = (
    f"The summary is one sentence of at most {MAX_SUMMARY} characters, the deliverables are paths with commas between "
    "them, and the context is what whoever goes on has to know and cannot see from the files."
)
_ASK = (
    'If only a person can decide something, run `detent ask "QUESTION" --choice A --choice B`. It waits and prints '
    "the answer; if your shell gives up waiting, run the same command again."
)
#: Colours and movements of a terminal, and what no text should hold.
_NO_TEXT = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def phase_prompt(
    session: Session,
    handover: Handover,
    judged: Sequence[Judgement],
    *,
    turn: int = 1,
    failed: str = "",
    tests: str | None = None,
) -> str:
    """For one turn at a phase. `failed` is what the attempt before ended with; `tests` runs the tests by default."""
    gates = gate_lines(session, handover.phase, judged, tests=tests)
    broken = _failed_text(session, handover.phase, judged if turn > 1 else (), failed)
    sections = [
        Section(body=_phase_head(session, handover, turn)),
        Section(title="What failed", body=broken, rank=4, least=16_384),
        Section(title="The whole task", body=session.task, rank=5, least=8_192),
        Section(title="Done when", body=_done_text(gates), rank=6, least=8_192),
        Section(title="What earlier phases left", body=_passed_text(handover.passed), rank=2, least=4_096),
        Section(title="Mind", body=_listed(handover.warnings), rank=3, least=1_024),
        Section(title="What discovery found", body=handover.discovery or "", rank=1, least=1_024),
        Section(title="Rules", body=_rules("phase", "detent finish, fail or begin")),
        Section(title="How to report", body=f"{REPORT}\n{_HOW}"),
    ]
    return bounded_text(sections, MAX_BYTES).replace("\0", "")


def task_prompt(session: Session, context: Mapping[str, Any], *, failed: str = "") -> str:
    """For one task of a phase. `context` is what the engine gives for it, with what its steps found if they ran."""
    task = context["task"]
    asked, flow = task.get("context") or {}, context.get("flow") or {}
    declared = task.get("flow_control") or {}
    approach = flow.get("implementation_approach") or declared.get("implementation_approach")
    paths = [*_texts(asked, "focus_paths"), *(flow.get("target_files") or _texts(declared, "target_files"))]
    sections = [
        Section(body=_task_head(task)),
        Section(title="What failed", body=_fenced_failure("The try before ended with:", failed), rank=6, least=4_096),
        Section(title="Requirements", body=_listed(_texts(asked, "requirements")), rank=8, least=8_192),
        Section(title="Done when", body=_listed(_texts(asked, "acceptance")), rank=9, least=8_192),
        Section(title="Where", body=_listed(dict.fromkeys(paths)), rank=5, least=1_024),
        Section(title="How", body=_approach_text(approach), rank=7, least=8_192),
        Section(title="What goes with it", body=_inherited_text(asked), rank=4, least=2_048),
        Section(title="What it builds on", body=_named_texts(context["dependency_summaries"]), rank=3, least=4_096),
        Section(title="What its steps found", body=_outputs_text(flow), rank=2, least=4_096),
        Section(title="The whole work", body=session.task, rank=1, least=2_048),
        Section(title="Rules", body=_rules("task", "detent task done or fail")),
        Section(title="How to report", body=f"{REPORT}\n{_HOW}"),
    ]
    return bounded_text(sections, MAX_BYTES).replace("\0", "")


def _phase_head(session: Session, handover: Handover, turn: int) -> str:
    phase, token = session.workflow.by_key[handover.phase], session.token(handover.phase)
    role = handover.agent or phase.agent
    again = f", turn {turn}" if turn > 1 else ""
    return (
        f"# {phase.title or phase.key}\n\n"
        f"You do phase {phase.key} of a larger task{f', as its {role}' if role else ''} "
        f"(attempt {token.attempt}{again}). Others do the other phases.\n"
        f"Files that this phase writes about its work go to {handover.artifact_path}/"
    )


def _task_head(task: Mapping[str, Any]) -> str:
    role = (task.get("meta") or {}).get("agent")
    return (
        f"# {task['title']}\n\n"
        f"You do task {task['id']} of a larger work{f', as its {role}' if role else ''}. "
        "Others do the other tasks, some of them now."
    )


def _failed_text(session: Session, phase: str, judged: Sequence[Judgement], failed: str) -> str:
    parts = [_fenced_failure("The attempt before this one ended with:", failed)]
    closed = [one for one in judged if _is_to_be_mended(one)]
    if closed:
        parts.append("Your work so far stands in the files, and was judged. Mend this; the rest stands.")
        parts += [_closed_text(one, session.phases[phase].gates.get(one.gate)) for one in closed[:MAX_CLOSED]]
    if len(closed) > MAX_CLOSED:
        parts.append(f"And {len(closed) - MAX_CLOSED} more; see: detent gates {phase}")
    return "\n\n".join(filter(None, parts))


def _is_to_be_mended(judgement: Judgement) -> bool:
    """Whether it is for the agent to do something about; what others have yet to do is not."""
    waits = judgement.verdict is Verdict.PENDING and KINDS[judgement.kind].opened_by.is_for_others
    return judgement.verdict is not Verdict.PASS and not waits


def _closed_text(judgement: Judgement, state: GateState | None) -> str:
    said = f"{judgement.gate} is {judgement.verdict}: {cut(judgement.reason, MAX_REASON)}"
    receipt = state.receipt if state is not None else None
    if receipt is None or not receipt.tail.strip():
        return said
    ran = f"`{cut(receipt.command, MAX_REASON)}`" if receipt.command else "The run"
    code = f" exited with {receipt.exit_code}" if receipt.exit_code is not None else " ended"
    return f"{said}\n{ran}{code}, and said at the end:\n{_fenced(receipt.tail)}"


def _fenced_failure(intro: str, failed: str) -> str:
    return f"{intro}\n{_fenced(failed)}" if failed.strip() else ""


def _done_text(gates: Sequence[str]) -> str:
    return "\n".join(gates) or "You say that it is: nothing else is checked, so check it yourself."


def _passed_text(passed: Iterable[Passed]) -> str:
    told = []
    for one in passed:
        lines = [f"From {one.phase}: {one.summary or 'no summary'}", *(f"- read {path}" for path in one.artifacts)]
        told.append("\n".join([*lines, *one.context.splitlines()]))
    return "\n\n".join(told)


def _rules(what: str, verbs: str) -> str:
    rules = [
        f"Do this {what} and nothing of the others. Nobody reads along: do not stop to ask in your answer.",
        f"Do not run {verbs}: whether the {what} is done is judged when your turn ends.",
        "Leave the directory .workflow alone; detent status and detent why tell where the work stands.",
        _ASK,
    ]
    return _listed(rules)


def _approach_text(approach: object) -> str:
    if not isinstance(approach, Mapping):
        return approach if isinstance(approach, str) else ""
    parts = [approach.get("task_description"), _listed(_texts(approach, "modification_points"))]
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(_texts(approach, "logic_flow"), 1))
    return "\n\n".join(part for part in (*parts, steps) if isinstance(part, str) and part.strip())


def _inherited_text(asked: Mapping[str, Any]) -> str:
    inherited, shared = asked.get("inherited") or {}, asked.get("shared_context") or {}
    return _listed([*_texts(inherited, "context"), *(f"{name}: {_plain(value)}" for name, value in shared.items())])


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _outputs_text(flow: Mapping[str, Any]) -> str:
    outputs, files = flow.get("outputs") or {}, flow.get("files") or {}
    told = []
    for name, text in outputs.items():
        whole = f" (all of it: {files[name]})" if name in files else ""
        told.append(f"{name}{whole}:\n{_fenced(text, lines=None, most=MAX_OUTPUT)}")
    return "\n\n".join(told)


def _named_texts(texts: Mapping[str, str]) -> str:
    return "\n\n".join(f"{name}:\n{text.strip()}" for name, text in texts.items())


def _texts(owner: Mapping[str, Any], key: str) -> list[str]:
    return [text for text in owner.get(key) or () if isinstance(text, str)]


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _fenced(text: str, *, lines: int | None = MAX_TAIL_LINES, most: int = MAX_EVIDENCE) -> str:
    """The last lines as a block that nothing in it can end."""
    kept = _NO_TEXT.sub("", text).strip("\n").splitlines()
    shown = "\n".join(kept[-lines:] if lines else kept)
    left_out = "" if len(shown) <= most and len(shown.splitlines()) == len(kept) else "[the beginning is left out]\n"
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}\n{left_out}{shown[-most:]}\n{fence}"
