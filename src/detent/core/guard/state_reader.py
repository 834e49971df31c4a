"""The guard's reader of the state document on disk. It uses builtins only.

The active workflow's own fields come before the top-level ones; legacy phase keys are taken for their present names.
"""

from detent.core.workflow.phase_key import normalize_phase_key
from detent.core.workflow.roles import PHASE_AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

#: The answers that end an elicitation; any other one left it.
FINAL_SELECTIONS = ("save", "continue")


def workflow(doc: object) -> "Json":
    return mapping(mapping(doc).get("active_workflow"))


def current_phase(doc: object) -> str:
    """The key, empty if there is none."""
    key = normalize_phase_key(workflow(doc).get("current_phase") or mapping(doc).get("current_phase"))
    return key if isinstance(key, str) else ""


def phases(doc: object) -> list[str]:
    listed = workflow(doc).get("phases")
    return [normalize_phase_key(key) for key in listed if isinstance(key, str)] if isinstance(listed, list) else []


def status(doc: object, phase: str) -> str:
    """The phase's status, empty if the document does not know the phase."""
    word = _under(mapping(workflow(doc).get("phase_status")), phase)
    word = word if isinstance(word, str) else record(doc, phase).get("status")
    return word if isinstance(word, str) else ""


def record(doc: object, phase: str) -> "Json":
    return mapping(_under(mapping(mapping(doc).get("phases")), phase))


def tests(doc: object, phase: str) -> "Json":
    return mapping(mapping(record(doc, phase).get("iteration_requirements")).get("test_iteration"))


def constitution(doc: object, phase: str) -> "Json":
    return mapping(record(doc, phase).get("constitutional_validation"))


def closed_gates(doc: object, phase: str, exists: "Callable[[str], bool]") -> list[str]:
    """The reasons why the phase cannot be finished, by the document and the disk."""
    reasons = [_closed(doc, phase, gate, exists) for gate in _gates(doc, phase)]
    return [reason for reason in (*reasons, _review(doc, phase)) if reason]


def corridor(doc: object, phase: str) -> str:
    """The work that the agent is restricted to while a gate fails: "tests", "constitution" or nothing.

    A gate that waits for a person is no corridor: more work would not open it.
    """
    run, articles = tests(doc, phase), constitution(doc, phase)
    if _is_held(doc, phase, "tests"):
        failing = run.get("last_test_result") == "failed" and not run.get("completed")
        return "tests" if failing and not _is_escalated(run) else ""
    if not _is_held(doc, phase, "constitution") or articles.get("completed") or _is_escalated(articles):
        return ""
    return "constitution" if articles.get("iterations_used") or _of_kind(doc, phase, "tests") else ""


def counted(text: object, gate: "Json", counter: str) -> str:
    """The text, with the number of runs so far if there were any."""
    count, most = gate.get(counter), gate.get("max_iterations")
    return f"{text}, run {count}{f' of {most}' if most else ''}" if count else str(text)


def mapping(value: object) -> "Json":
    return value if isinstance(value, dict) else {}


def _gates(doc: object, phase: str) -> "list[Json]":
    """The gates that the phase has. Where the document does not list them, those that something is recorded about."""
    listed = record(doc, phase).get("gates")
    if isinstance(listed, list):
        return [mapping(gate) for gate in listed]
    recorded = (("tests", tests), ("constitution", constitution), ("elicitation", _elicitation))
    return [{"kind": kind} for kind, read in recorded if read(doc, phase)]


def _of_kind(doc: object, phase: str, kind: str) -> "list[Json]":
    return [gate for gate in _gates(doc, phase) if gate.get("kind") == kind]


def _is_held(doc: object, phase: str, kind: str) -> bool:
    return any(_closed(doc, phase, gate, lambda _: False) for gate in _of_kind(doc, phase, kind))


def _closed(doc: object, phase: str, gate: "Json", exists: "Callable[[str], bool]") -> str:
    """Why one gate is closed: the verdict of the judge in the document, or the paths in its place that do not exist.

    The rest is for documents that Detent did not write: the records of the gate decide, and without any it is closed.
    """
    verdict, kind = gate.get("verdict"), gate.get("kind")
    if verdict == "PASS":
        return ""
    if verdict is not None:
        reason = f"{verdict}, {gate.get('reason') or 'no reason was given'}"
    elif "paths" in gate:
        reason = _missing_paths(doc, gate["paths"], exists)
    elif kind in _RECORDED:
        reason = _RECORDED[kind](doc, phase)
    else:
        reason = "nothing is known about it"
    return f"{gate.get('name') or kind}: {reason}" if reason else ""


def _tests_reason(doc: object, phase: str) -> str:
    run = tests(doc, phase)
    return "" if _is_open(run) else counted(run.get("last_test_result") or "no run yet", run, "current_iteration")


def _constitution_reason(doc: object, phase: str) -> str:
    articles = constitution(doc, phase)
    if _is_open(articles) and (articles.get("status") == "compliant" or articles.get("escalation_approved")):
        return ""
    return counted(articles.get("status") or "not started", articles, "iterations_used")


def _elicitation_reason(doc: object, phase: str) -> str:
    asked = _elicitation(doc, phase)
    chosen = asked.get("final_selection")
    if asked.get("completed") and chosen in FINAL_SELECTIONS:
        return ""
    return f"{asked.get('menu_interactions') or 0} answers, {f'then {chosen}' if chosen else 'nothing chosen yet'}"


def _delegation_reason(doc: object, phase: str) -> str:
    agent = mapping(workflow(doc).get("agents")).get(phase) or PHASE_AGENTS.get(phase) or "its agent"
    return "" if record(doc, phase).get("delegations") else f"{agent} has not run"


_RECORDED = {
    "tests": _tests_reason,
    "constitution": _constitution_reason,
    "elicitation": _elicitation_reason,
    "delegation": _delegation_reason,
}


def _missing_paths(doc: object, paths: object, exists: "Callable[[str], bool]") -> str:
    folder = workflow(doc).get("artifact_folder") or ""
    if not isinstance(paths, list) or not isinstance(folder, str):
        return "nothing is known about them"
    named = [str(path).replace("{artifact_folder}", folder) for path in paths]
    missing = [path for path in named if not exists(path)]
    return f"{', '.join(missing)} missing" if missing else ""


def _review(doc: object, phase: str) -> str:
    word = mapping(workflow(doc).get("supervised_review")).get("status")
    own = record(doc, phase).get("review")
    if word in ("reviewing", "rejected") or own in ("pending", "reviewing"):
        return f"review: a person has to look at it first ({own or word})"
    return ""


def _elicitation(doc: object, phase: str) -> "Json":
    return mapping(mapping(record(doc, phase).get("iteration_requirements")).get("interactive_elicitation"))


def _is_escalated(gate: "Json") -> bool:
    return bool(gate.get("escalated")) or gate.get("status") == "escalated"


def _is_open(gate: "Json") -> bool:
    return bool(gate.get("completed")) and (not _is_escalated(gate) or bool(gate.get("escalation_approved")))


def _under(records: "Json", phase: str) -> object:
    """The entry under the phase's present key, else under a legacy key that stands for it."""
    if phase in records:
        return records[phase]
    return next((value for key, value in records.items() if normalize_phase_key(key) == phase), None)
