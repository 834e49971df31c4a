"""Compares what a session pinned when it started with the settings that it should have had."""

from collections.abc import Iterator

import msgspec

from detent.config.catalogue import Catalogue
from detent.config.settings import Settings
from detent.core.actor import Assurance
from detent.core.gate import Gate, gate_name
from detent.core.gate.kind import Surroundings
from detent.core.gate.voted import Voted
from detent.core.session.events import SessionStarted
from detent.core.workflow.graph import Phase
from detent.doctor.verified import Check, note, wrong
from detent.errors import DetentError


def loosened(started: SessionStarted, settings: Settings) -> Iterator[Check]:
    """Pinned settings of the session that are looser than the project's. More phases and more gates are not looser."""
    if settings.gates == "strict" and not started.options.gates:
        yield wrong("the session has its gates off, and the settings have them on", 1)
    needed = settings.decisions.assurance
    if not started.options.assurance.reaches(needed):
        yield wrong(f"the session has the assurance {started.options.assurance}, and the settings ask for {needed}", 1)
    if settings.supervised is not None and started.options.supervised != settings.supervised:
        yield wrong("the session is not supervised as the settings ask for", 1)
    name = started.workflow.name
    try:
        declared = Catalogue(settings).workflow(name)
    except DetentError as error:
        yield wrong(f"the settings do not have the workflow of the session: {error.message}", 1)
        return
    if started.workflow.sizes != declared.sizes:
        yield wrong(f"the sizes of {name} are others than in the settings", 1)
    for phase in declared.phases:
        pinned = started.workflow.by_key.get(phase.key)
        if pinned is None:
            yield wrong(f"the session has no phase {phase.key}, and {name} of the settings has", 1)
        elif not set(phase.needs) <= set(pinned.needs):
            missing = ", ".join(sorted(set(phase.needs) - set(pinned.needs)))
            yield wrong(f"{phase.key} does not need {missing}, and does in the settings", 1)
        else:
            yield from _gates(phase, pinned, needed, started.options.assurance)


def _gates(phase: Phase, pinned: Phase, needed: Assurance, stated: Assurance) -> Iterator[Check]:
    if pinned.rewrites_tests and not phase.rewrites_tests:
        yield wrong(f"{phase.key} may rewrite tests, and may not in the settings", 1)
    known = {gate_name(gate): gate for gate in pinned.gates}
    for gate in phase.gates:
        name = gate_name(gate)
        if name in known and _is_as_declared(gate, known[name]):
            if not (known[name].assurance or stated).reaches(gate.assurance or needed):
                yield wrong(f"gate {name} of {phase.key} asks for less assurance than in the settings", 1)
            continue
        if name in known:
            yield wrong(f"gate {name} of {phase.key} is looser or another one than in the settings", 1)
        elif (reason := gate.skipped_because(surroundings(known, measures=False))) is not None:
            yield note(f"gate {name} of {phase.key} was left out when the session started ({reason})", 1)
        else:
            yield wrong(f"{phase.key} has no gate {name}, and has in the settings", 1)


def _is_as_declared(gate: Gate, pinned: Gate) -> bool:
    """Whether a session that starts with this gate can pin the other one."""
    if isinstance(gate, Voted) and isinstance(pinned, Voted):
        # Roles are filled with people when the session starts; the names of approvers must be the same.
        return _people_apart(gate) == _people_apart(pinned)
    projects = (
        surroundings({"": pinned}, measures=measures, captures=captures)
        for measures in (True, False)
        for captures in (True, False)
    )
    fitted = (gate.fitted(project)[0] for project in projects)
    return pinned == gate or pinned in fitted


def _people_apart(gate: Voted) -> dict[str, object]:
    """The settings of the gate without those that are filled in when a session starts."""
    return {**msgspec.to_builtins(gate), "roles": None, "assurance": None}


def surroundings(pinned: dict[str, Gate], *, measures: bool, captures: bool = False) -> Surroundings:
    """A project in which everything that can be missing is missing; its tests are run as by the pinned gates."""
    commands = [gate for gate in pinned.values() if gate.runs_tests and gate.runnable() is not None]
    return Surroundings(
        exists=lambda _: False,
        is_observed=False,
        delegates=False,
        tests=commands[0].runnable() if commands else None,
        env=commands[0].env if commands else (),
        without_coverage=lambda _: None if measures else "no coverage is measured",
        captures_all=captures,
        commit_of=lambda _: next((gate.against for gate in pinned.values() if gate.against), None),
    )
