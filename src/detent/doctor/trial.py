"""Tries another policy on recorded sessions: what each of them would have pinned, and what that would have done."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from detent.config.catalogue import Catalogue
from detent.config.settings import Settings
from detent.core.gate import Gate, gate_name
from detent.core.gate.kind import Surroundings
from detent.core.history.dry_run import Policy, Trial, TrialResult, try_session
from detent.core.session.events import Commit, GateChecked, SessionStarted
from detent.core.workflow.graph import Phase, Workflow
from detent.doctor.pinned import surroundings
from detent.engine.gates.quorum import Roles, with_assurance, with_roles
from detent.engine.recorded import Progress, recorded_sessions
from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.store.port import Store


class Trials:
    """Another policy, for any number of sessions."""

    def __init__(self, settings: Settings, *, root: str = ".", roles: Roles | None = None) -> None:
        """`roles` are the people who fill the roles of approvers; without them, those of the settings."""
        self._settings = settings
        self._catalogue = Catalogue(settings, root)
        self._roles = settings.decisions.roles if roles is None else roles
        self._workflows: dict[str, Workflow | str] = {}

    def of(self, commits: Iterable[Commit]) -> Trial:
        """The session of these commits under the policy."""
        recorded = list(commits)
        started = next(event for event in recorded[0].events if isinstance(event, SessionStarted))
        declared = self._workflow(started.workflow.name)
        if isinstance(declared, str):
            return Trial(
                session=started.session,
                workflow=started.workflow.name,
                started_at=recorded[0].at,
                problem=declared,
            )
        return try_session(recorded, self._policy(started, declared, measures=_measures(recorded)))

    def _workflow(self, name: str) -> Workflow | str:
        """The workflow of the policy, or the reason why it cannot be used."""
        if name not in self._workflows:
            try:
                declared = with_roles(self._catalogue.workflow(name), self._roles)
                self._workflows[name] = with_assurance(declared, self._settings.decisions.assurance)
            except DetentError as error:
                self._workflows[name] = error.message
        return self._workflows[name]

    def _policy(self, started: SessionStarted, declared: Workflow, *, measures: bool) -> Policy:
        left_out: dict[str, None] = {}
        phases: list[Phase] = []
        for phase in started.workflow.phases:
            under = declared.by_key.get(phase.key)
            gates = () if under is None else self._fitted(under, phase, left_out, measures=measures)
            rewrites = phase.rewrites_tests if under is None else under.rewrites_tests
            phases.append(replace(phase, gates=gates, rewrites_tests=rewrites))
        own = self._settings.options()
        options = replace(
            started.options,
            gates=own.gates,
            supervised=own.supervised,
            budget=own.budget,
            assurance=own.assurance,
        )
        known = started.workflow.by_key
        return Policy(
            workflow=replace(started.workflow, phases=tuple(phases)),
            options=options,
            added=tuple(phase.key for phase in declared.phases if phase.key not in known),
            removed=tuple(key for key in known if key not in declared.by_key),
            left_out=tuple(left_out),
        )

    def _fitted(self, declared: Phase, pinned: Phase, left_out: dict[str, None], *, measures: bool) -> tuple[Gate, ...]:
        """The gates of the policy as a session in this project would pin them."""
        known = {gate_name(gate): gate for gate in pinned.gates}
        gates: list[Gate] = []
        for gate in declared.gates:
            name = gate_name(gate)
            project = self._surroundings(known, measures=measures)
            if name not in known and (reason := gate.skipped_because(project)) is not None:
                left_out[f"{declared.key}: {reason}"] = None
                continue
            gates.append(gate.fitted(project)[0])
        return tuple(gates)

    def _surroundings(self, known: dict[str, Gate], *, measures: bool) -> Surroundings:
        project = surroundings(known, measures=measures)
        tests = self._settings.run.tests
        return project if tests is None else project._replace(tests=tests, env=self._settings.run.env)


def _measures(commits: Iterable[Commit]) -> bool:
    """Whether a run of the session measured coverage."""
    return any(
        event.receipt.coverage is not None
        for commit in commits
        for event in commit.events
        if isinstance(event, GateChecked)
    )


def try_all(
    trials: Trials,
    store: "Store",
    *,
    since: datetime | None = None,
    only: str | None = None,
    progress: Progress | None = None,
) -> TrialResult:
    """The recorded sessions under the policy, oldest first."""
    results: list[Trial] = []
    unreadable: dict[str, str] = {}
    for recorded in recorded_sessions(store, since=since, only=only, progress=progress):
        if recorded.problem:
            unreadable[recorded.session] = recorded.problem
            continue
        try:
            results.append(trials.of(recorded.commits))
        except DetentError as error:
            unreadable[recorded.session] = error.message
    return TrialResult(tuple(sorted(results, key=lambda trial: trial.started_at)), unreadable)
