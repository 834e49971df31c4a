"""The author of a phase's work, and the reviewer who reports on it.

Authors are found in the journal (agents that were launched for a phase, or that began or finished it themselves) and in
the notes of the hooks (clients whose write tools changed files in it). The reviewer is found by its process, as every
agent is: the client nearest to it, and all clients above it. In a run the runner knows which agent it started.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from detent.clients.registry import client_programs, shell_marks
from detent.core.actor import ActorKind, Ancestor
from detent.core.checkpoint.written import WRITTEN, writers
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Reviewer
from detent.core.session.events import AgentLaunched, Commit, PhaseBegun, PhaseFinished, PhaseRedone
from detent.core.session.phase_state import run_agent
from detent.core.session.session import Session
from detent.engine.actor import own_lineage
from detent.engine.agents.environment import AGENT
from detent.errors import Refused

if TYPE_CHECKING:
    from detent.engine.project import Project


def authors_of(
    project: "Project", session: Session, commits: Iterable[Commit], phases: tuple[str, ...]
) -> list[Reviewer]:
    """The agents that worked on the phases, in all attempts."""
    authors = dict.fromkeys(_recorded(commits, phases, lambda name: _adapter(project, name)))
    note = project.store.get(f"{session.id}/{WRITTEN}") or b""
    authors |= dict.fromkeys(Reviewer(client=client) for client, phase in writers(note) if phase in phases)
    known = {author.client for author in authors if author.role}
    # The launch of an agent says more than that its client wrote a file.
    return [author for author in authors if author.role or author.client not in known]


def _recorded(commits: Iterable[Commit], phases: tuple[str, ...], adapter: Callable[[str], str]) -> Iterator[Reviewer]:
    for commit in commits:
        agent = client_of(commit.actor.name, commit.actor.mark) if commit.actor.kind is ActorKind.AGENT else ""
        for event in commit.events:
            if isinstance(event, AgentLaunched) and event.phase in phases:
                configured = run_agent(event.agent_id)
                client = adapter(configured) if configured else agent
                if client:
                    yield Reviewer(client=client, role=event.agent)
            elif isinstance(event, PhaseBegun | PhaseRedone | PhaseFinished) and event.phase in phases and agent:
                yield Reviewer(client=agent)


def reviewers(project: "Project", session: Session, phase: str, gate: Gate) -> list[Reviewer]:
    """The agent that reports, first, and the clients that started it. Refuses a request that is no agent's."""
    name, actor = gate_name(gate), project.actor
    if actor.kind is not ActorKind.AGENT:
        who = "a run" if actor.kind is ActorKind.RUNNER else "a person"
        raise Refused(
            f"gate {name} of {phase} takes the report of an agent, and this is {who}",
            way_out=f"as a person, detent approve {phase} --gate {name} -m WHY",
        )
    running = {entry.agent_id: entry for entry in session.phases[phase].delegations if entry.ended_at is None}
    own = running.get(os.environ.get(AGENT, ""))
    if own is not None:
        return [Reviewer(client=_adapter(project, run_agent(own.agent_id)), role=own.agent)]
    clients = list(dict.fromkeys(_clients(own_lineage()))) or [client_of(actor.name, actor.mark)]
    by_hook = [entry.agent for entry in running.values() if not run_agent(entry.agent_id)]
    role = by_hook[0] if len(by_hook) == 1 else ""
    return [Reviewer(client=clients[0], role=role), *(Reviewer(client=client) for client in clients[1:])]


def _clients(lineage: Iterable[Ancestor]) -> Iterator[str]:
    """Every client with a sign in this process or in one that started it, nearest first."""
    marks, programs = shell_marks(), client_programs()
    yield from (client for mark, client in marks.items() if os.environ.get(mark))
    for ancestor in lineage:
        yield from (client for mark, client in marks.items() if mark in (ancestor.variables or ()))
        yield from (client for program, client in programs.items() if program in ancestor.names)


def client_of(name: str, mark: str) -> str:
    """The client of an agent. Its mark tells it; the name of an agent can be chosen in its shell."""
    return shell_marks().get(mark) or client_programs().get(mark) or name


def _adapter(project: "Project", agent: str) -> str:
    settings = project.settings.agents.get(agent)
    return settings.adapter if settings is not None else agent
