"""Counts the turns of a session that were in the sandbox of a run, by the record."""

from collections.abc import Iterable

#: The beginning of the ids of agents that a run started.
OF_RUN = "run-"


def sandbox_text(launched: Iterable[tuple[str, bool]]) -> str | None:
    """`launched` are the ids of agents, each with whether it worked in a sandbox; None if no run started one."""
    turns = [sandboxed for agent_id, sandboxed in launched if agent_id.startswith(OF_RUN)]
    if not turns:
        return None
    inside = sum(turns)
    if inside in (0, len(turns)):
        return "on" if inside else "off"
    return f"on for {inside} of {len(turns)} turns"
