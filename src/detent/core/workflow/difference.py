"""Says in a sentence what differs between two workflows that are alike."""

from collections.abc import Mapping

from detent.core.workflow.graph import Phase, Workflow
from detent.core.workflow.phase_title import titled

#: Settings of a phase, with the word for them. A change of what a phase needs follows from the phases.
_SETTINGS = {
    "agent": "its agent",
    "gates": "its gates",
    "timeout_minutes": "its time limit",
    "tasks": "its tasks",
    "instructions": "its instructions",
    "rewrites_tests": "whether it may rewrite tests",
}


def differences(workflows: Mapping[str, Workflow], bases: Mapping[str, str]) -> dict[str, str]:
    """For each workflow that is like another, what differs. `bases` are variants with their workflows."""
    sentences: dict[str, str] = {}
    earlier: dict[str, Workflow] = {}
    for name, workflow in workflows.items():
        base = bases.get(name)
        same = next((each for each, other in earlier.items() if other.phases == workflow.phases), None)
        if same is not None:
            sentences[name] = f"the same phases and gates as {same}; a session records its name"
        elif base is not None and base in workflows:
            sentences[name] = f"like {base}, {difference(workflows[base], workflow)}"
        earlier[name] = workflow
    return sentences


def difference(base: Workflow, other: Workflow) -> str:
    """The phases that `other` adds, lacks or changes."""
    more = [titled(other.by_key[key]) for key in other.order if key not in base.by_key]
    less = [titled(base.by_key[key]) for key in base.order if key not in other.by_key]
    parts = [f"with {', '.join(more)}"] if more else []
    parts += [f"without {', '.join(less)}"] if less else []
    for key in other.order:
        if key in base.by_key and (words := _changed(base.by_key[key], other.by_key[key])):
            parts.append(f"{titled(other.by_key[key])} differs in {', '.join(words)}")
    return "; ".join(parts) or "in another order"


def _changed(before: Phase, now: Phase) -> list[str]:
    return [word for name, word in _SETTINGS.items() if getattr(before, name) != getattr(now, name)]
