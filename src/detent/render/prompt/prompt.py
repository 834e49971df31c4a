"""Prompts of the runner for the agent of a phase or of a task, each a text of bounded length.

The runner begins, judges and finishes; the agent works and reports. Earlier failures come first.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from detent.core.gate import gate_name
from detent.core.gate.evidence import GateState, Judgement, Verdict
from detent.core.gate.registry import KINDS
from detent.core.limits import MAX_SUMMARY, cut
from detent.core.session.handover import Handover, Passed
from detent.core.session.session import Session
from detent.render.prompt.bounded import Section, bounded_text
from detent.render.prompt.briefing import REPORT

MAX_BYTES = 64 * 1024
MAX_TAIL_LINES = 40
#: Limits for the evidence of each failure; the agent can run the command again.
MAX_EVIDENCE, MAX_REASON, MAX_CLOSED = 4_096, 1_000, 20
MAX_OUTPUT = 8_192
#: A gate takes one line; the workflow has longer settings.
MAX_GATE_LINE = 2_000
_HOW = (
    f"Summary: one sentence of at most {MAX_SUMMARY} characters. Deliverables: paths, separated by commas. "
    "Context for next: facts that the next agent needs and cannot see in the files."
)
_MET = (
    'Met: below this line one line for each point of "Done when", in their order, that says how it is met. '
    "The task is not done without them."
)
_ASK = (
    'If you need a decision of a person, run `detent ask "QUESTION" --choice A --choice B`. It waits and prints the '
    "answer; if your shell times out, run the same command again."
)
#: Escape sequences of a terminal, and control characters.
_CONTROL = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def phase_prompt(
    session: Session,
    handover: Handover,
    judged: Sequence[Judgement],
    *,
    turn: int = 1,
    failed: str = "",
    role: str = "",
) -> str:
    """For one turn at a phase. `failed` is the error of the previous attempt, `role` what an agent of the role does."""
    gates = gate_lines(session, handover.phase, judged)
    broken = _failed_text(session, handover.phase, judged if turn > 1 else (), failed)
    sections = [
        Section(body=_phase_head(session, handover, turn)),
        Section(title="Your role", body=role),
        Section(title="What failed", body=broken, rank=4, least=16_384),
        Section(title="The whole task", body=session.task, rank=5, least=8_192),
        Section(title="Instructions", body=session.workflow.by_key[handover.phase].instructions, rank=7, least=8_192),
        Section(title="Done when", body=_done_text(gates), rank=6, least=8_192),
        Section(title="Results of earlier phases", body=_passed_text(handover.passed), rank=2, least=4_096),
        Section(title="Warnings", body=_listed(handover.warnings), rank=3, least=1_024),
        Section(title="Discovery findings", body=handover.discovery or "", rank=1, least=1_024),
        Section(title="Rules", body=_rules("phase", "detent finish, fail or begin")),
        Section(title="How to report", body=f"{REPORT}\n{_HOW}"),
    ]
    return bounded_text(sections, MAX_BYTES).replace("\0", "")


def task_prompt(
    session: Session, context: Mapping[str, Any], *, failed: str = "", role: str = "", instructions: str = ""
) -> str:
    """For one task of a phase. `context` is the engine's context of the task, with the outputs of its steps."""
    task = context["task"]
    asked, flow = task.get("context") or {}, context.get("flow") or {}
    declared = task.get("flow_control") or {}
    approach = flow.get("implementation_approach") or declared.get("implementation_approach")
    paths = [*_texts(asked, "focus_paths"), *(flow.get("target_files") or _texts(declared, "target_files"))]
    criteria = _texts(asked, "acceptance")
    sections = [
        Section(body=_task_head(task)),
        Section(title="Your role", body=role),
        Section(title="What failed", body=_fenced_failure("The previous try ended with:", failed), rank=6, least=4_096),
        Section(title="Instructions", body=instructions, rank=10, least=8_192),
        Section(title="Requirements", body=_listed(_texts(asked, "requirements")), rank=8, least=8_192),
        Section(title="Done when", body=_numbered(criteria), rank=9, least=8_192),
        Section(title="Files", body=_listed(dict.fromkeys(paths)), rank=5, least=1_024),
        Section(title="Approach", body=_approach_text(approach), rank=7, least=8_192),
        Section(title="Context", body=_inherited_text(asked), rank=4, least=2_048),
        Section(
            title="Results of dependencies", body=_named_texts(context["dependency_summaries"]), rank=3, least=4_096
        ),
        Section(title="Outputs of its steps", body=_outputs_text(flow), rank=2, least=4_096),
        Section(title="The whole task", body=session.task, rank=1, least=2_048),
        Section(title="Rules", body=_rules("task", "detent task done or fail")),
        Section(title="How to report", body=f"{REPORT}\n{_HOW}" + (f"\n{_MET}" if criteria else "")),
    ]
    return bounded_text(sections, MAX_BYTES).replace("\0", "")


def gate_lines(session: Session, phase: str, judged: Sequence[Judgement]) -> list[str]:
    """One line per gate."""
    if not session.gates_apply:
        return []
    verdicts = {judgement.gate: judgement.verdict for judgement in judged}
    lines = []
    for gate in session.workflow.by_key[phase].gates:
        name = gate_name(gate)
        now = f" Now {verdicts[name]}." if name in verdicts else ""
        lines.append(f"- {name}: {cut(gate.requirement(phase, session.folder), MAX_GATE_LINE)}{now}")
    return lines


def _phase_head(session: Session, handover: Handover, turn: int) -> str:
    phase, token = session.workflow.by_key[handover.phase], session.token(handover.phase)
    role = handover.agent or phase.agent
    again = f", turn {turn}" if turn > 1 else ""
    return (
        f"# {phase.title or phase.key}\n\n"
        f"You work on phase {phase.key} of a larger task{f', as its {role}' if role else ''} "
        f"(attempt {token.attempt}{again}). Other agents work on the other phases.\n"
        f"Documents about the work of this phase go to {handover.artifact_path}/"
    )


def _task_head(task: Mapping[str, Any]) -> str:
    role = (task.get("meta") or {}).get("agent")
    return (
        f"# {task['title']}\n\n"
        f"You work on task {task['id']} of a larger task{f', as its {role}' if role else ''}. "
        "Other agents work on the other tasks, some at the same time."
    )


def _failed_text(session: Session, phase: str, judged: Sequence[Judgement], failed: str) -> str:
    parts = [_fenced_failure("The previous attempt ended with:", failed)]
    closed = [judgement for judgement in judged if _is_for_agent(judgement)]
    if closed:
        parts.append("Your work so far is in the files. These gates are closed; fix them and keep the rest.")
        parts += [_closed_text(gate, session.phases[phase].gates.get(gate.gate)) for gate in closed[:MAX_CLOSED]]
    if len(closed) > MAX_CLOSED:
        parts.append(f"And {len(closed) - MAX_CLOSED} more; see: detent gates {phase}")
    return "\n\n".join(filter(None, parts))


def _is_for_agent(judgement: Judgement) -> bool:
    """Whether the agent has to open the gate; some gates wait for others."""
    waits = judgement.verdict is Verdict.PENDING and KINDS[judgement.kind].opened_by.is_for_others
    return judgement.verdict is not Verdict.PASS and not waits


def _closed_text(judgement: Judgement, state: GateState | None) -> str:
    verdict = f"{judgement.gate} is {judgement.verdict}: {cut(judgement.reason, MAX_REASON)}"
    receipt = state.receipt if state is not None else None
    if receipt is None or not receipt.tail.strip():
        return verdict
    ran = f"`{cut(receipt.command, MAX_REASON)}`" if receipt.command else "The run"
    code = f" exited with {receipt.exit_code}" if receipt.exit_code is not None else " ended"
    named = [f"{name}: {outcome}" for name, outcome in receipt.lost.items()]
    lost = f"Tests that passed when the session began and do not now:\n{_listed(named)}\n" if named else ""
    return f"{verdict}\n{lost}{ran}{code}. The end of its output:\n{_fenced(receipt.tail)}"


def _fenced_failure(intro: str, failed: str) -> str:
    return f"{intro}\n{_fenced(failed)}" if failed.strip() else ""


def _done_text(gates: Sequence[str]) -> str:
    return "\n".join(gates) or "No gate checks this phase: check the work yourself."


def _passed_text(passed: Iterable[Passed]) -> str:
    parts = []
    for phase in passed:
        lines = [
            f"From {phase.phase}: {phase.summary or 'no summary'}",
            *(f"- read {path}" for path in phase.artifacts),
        ]
        parts.append("\n".join([*lines, *phase.context.splitlines()]))
    return "\n\n".join(parts)


def _rules(what: str, verbs: str) -> str:
    rules = [
        f"Work on this {what} only. This is a non-interactive run: do not end your turn with a question.",
        f"Do not run {verbs}: the {what} is judged when your turn ends.",
        "Do not change the directory .workflow; detent status and detent why show the state of the work.",
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
    parts = []
    for name, text in outputs.items():
        file = f" (in full: {files[name]})" if name in files else ""
        parts.append(f"{name}{file}:\n{_fenced(text, lines=None, most=MAX_OUTPUT)}")
    return "\n\n".join(parts)


def _named_texts(texts: Mapping[str, str]) -> str:
    return "\n\n".join(f"{name}:\n{text.strip()}" for name, text in texts.items())


def _texts(owner: Mapping[str, Any], key: str) -> list[str]:
    return [text for text in owner.get(key) or () if isinstance(text, str)]


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _fenced(text: str, *, lines: int | None = MAX_TAIL_LINES, most: int = MAX_EVIDENCE) -> str:
    """The last lines as a fenced block, with a fence that is longer than any in the text."""
    everything = _CONTROL.sub("", text).strip("\n").splitlines()
    shown = "\n".join(everything[-lines:] if lines else everything)
    is_whole = len(shown) <= most and len(shown.splitlines()) == len(everything)
    left_out = "" if is_whole else "[the beginning is left out]\n"
    fence = "```"
    while fence in shown:
        fence += "`"
    return f"{fence}\n{left_out}{shown[-most:]}\n{fence}"
