"""The people of a session: fills the roles of its gates when it starts, and checks that every quorum can be reached."""

from collections.abc import Collection, Mapping
from typing import cast

import msgspec

from detent.core.actor import Assurance
from detent.core.decision.approvers import Approvers
from detent.core.gate import Gate
from detent.core.gate.voted import Voted
from detent.core.workflow.graph import Workflow
from detent.errors import Refused

Roles = Mapping[str, tuple[str, ...]]


def with_roles(workflow: Workflow, roles: Roles) -> Workflow:
    """The workflow with the roles of its approvers filled. A role that a gate fills itself stays."""

    def filled(gate: Gate) -> Gate:
        if not isinstance(gate, Voted):
            return gate
        fitting = {name: roles[name] for name in gate.approvers if name in roles}
        return _changed(gate, roles={**fitting, **gate.roles}) if fitting else gate

    return workflow.with_gates(filled)


def with_assurance(workflow: Workflow, assurance: Assurance) -> Workflow:
    """The workflow in which every gate that asks for votes states their assurance, if it is not the weakest."""

    def stated(gate: Gate) -> Gate:
        is_silent = isinstance(gate, Voted) and gate.assurance is None and assurance is not Assurance.ATTENDED
        return _changed(cast("Voted", gate), assurance=assurance) if is_silent else gate

    return workflow.with_gates(stated)


def all_roles(settings: Roles, approvers: Approvers) -> Roles:
    """Each role with the accounts that the settings name for it, and with the approvers who have it."""
    filled = dict(settings)
    for role, names in approvers.roles().items():
        filled[role] = tuple(dict.fromkeys((*filled.get(role, ()), *names)))
    return filled


def with_quorum(workflow: Workflow, quorum: int) -> Workflow:
    """The workflow with no quorum above `quorum`. Anyone may vote at the gates with named approvers."""

    def lowered(gate: Gate) -> Gate:
        if not isinstance(gate, Voted) or not gate.approvers:
            return gate
        lower = _changed(gate, lowered_from=gate.quorum)
        return _changed(lower, quorum=quorum) if quorum < gate.quorum else lower

    return workflow.with_gates(lowered)


def check_quorums(
    workflow: Workflow, phases: Collection[str], *, identity: str, roles: Roles, approvers: Approvers
) -> None:
    """Refuse a workflow in which the known people cannot open a gate that asks for votes.

    Known are `identity`, who starts the session, and the people who fill its roles. Votes that must be signed are those
    of approvers with a key that is strong enough.
    """
    gates = [gate for key in phases for gate in workflow.by_key[key].gates if isinstance(gate, Voted)]
    known = {identity, *(name for filled in (roles, *(gate.roles for gate in gates)) for name in _people(filled))}
    problems = dict.fromkeys(
        f"{key}: {problem}"
        for key in phases
        for gate in workflow.by_key[key].gates
        if isinstance(gate, Voted) and (problem := _unreachable(gate, known, approvers))
    )
    if problems:
        raise Refused(
            f"{workflow.name} cannot be finished by the people who are known ({', '.join(sorted(known))}): "
            + "; ".join(problems),
            way_out='name people in detent.toml, such as [decisions.roles] architect = ["ada"], '
            "or add --quorum 1, which is recorded as a looser choice; detent approver add NAME lists a key",
        )


def _unreachable(gate: Voted, known: Collection[str], approvers: Approvers) -> str | None:
    if gate.assurance in (None, Assurance.ATTENDED):
        # Votes of accounts and signed votes are not added up.
        return gate.unreachable(known) if gate.unreachable(approvers.names) else None
    able = [
        approver.name
        for approver in approvers.approver
        if any(key.is_hardware or gate.assurance is Assurance.SIGNED for key in approver.keys)
    ]
    if (problem := gate.unreachable(able)) is None:
        return None
    listed = ", ".join(able) or "no approver"
    return f"{problem}; its votes must be {gate.assurance}, and approvers.toml lists {listed} with such a key"


def _people(roles: Roles) -> set[str]:
    return {name for names in roles.values() for name in names}


def _changed(gate: Voted, **settings: object) -> Voted:
    # Every kind is a struct, and those with approvers have these settings.
    return cast("Voted", msgspec.structs.replace(cast("msgspec.Struct", gate), **settings))
