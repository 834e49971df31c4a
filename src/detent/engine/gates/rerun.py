"""Runs the checks of a record again, in a checkout, and records nothing: what CI does with the bundle of a branch.

The commands, the thresholds and the names of the tests that stood are those of the record. The programs and the
variables are those of this machine. The tests are those of the checkout; tests of the baseline may not be missing.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from detent.config.place import at_root
from detent.config.settings import Settings
from detent.core.actor import ActorKind
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Facts, GateState, Receipt, Verdict
from detent.core.gate.judge import judge
from detent.core.session.phases import Phases
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.engine.bundles import bundle_file
from detent.engine.bundles.bundle_file import FILES
from detent.engine.bundles.contents import check_contents
from detent.engine.checkpoints.checkpoints import Checkpoints
from detent.engine.gates.checks import GateChecks
from detent.engine.gates.environment import toolchain
from detent.engine.gates.stored import EVIDENCE
from detent.engine.stores import scratch_store
from detent.store.port import PROJECT, Store


class Rerun(NamedTuple):
    """One check that ran again; without a receipt, the reason why it did not."""

    phase: str
    gate: str
    verdict: Verdict
    reason: str
    receipt: Receipt | None = None


def rerun_gates(
    bundle: str | os.PathLike[str],
    directory: str,
    settings: Settings,
    *,
    started: Callable[[str, str], object] = lambda _phase, _gate: None,
) -> Iterator[Rerun]:
    """Run every check that Detent can run of the phases that the record completed. Each command runs once.

    `started` is called with the phase and the gate before each check.
    """
    place = at_root(os.path.realpath(directory))
    with bundle_file.opened(os.fspath(bundle)) as reader, tempfile.TemporaryDirectory(prefix="detent-ci-") as scratch:
        reader.verify(None)
        session = check_contents(reader).session
        store = scratch_store(scratch)
        _keep_evidence(reader, store, session.id)
        tools = toolchain(os.environ, place, (), started_by=ActorKind.PERSON)
        session = replace(session, toolchain=tools, programs={}, protected=None, phases=_unprotected(session))
        checks = GateChecks(store, place, session.id, Checkpoints(store, place, settings.checkpoint))
        done: set[tuple[str, str]] = set()
        for phase in session.with_status(Status.COMPLETED):
            for gate in session.workflow.by_key[phase].gates:
                command = gate.runnable()
                if command is None or gate.runs_last or (gate.kind, command) in done:
                    continue
                done.add((gate.kind, command))
                if gate.takes_names:
                    reason = "needs the files of the session's start, which a bundle does not have"
                    yield Rerun(phase, gate_name(gate), Verdict.PENDING, reason)
                    continue
                started(phase, gate_name(gate))
                yield _run(checks, session, phase, gate)


def _run(checks: GateChecks, session: Session, phase: str, gate: Gate) -> Rerun:
    receipt = checks.run(session, phase, gate, None)
    name = gate_name(gate)
    state = replace(session.phases[phase], gates={name: GateState(iterations=1, receipt=receipt)})
    shown = replace(session, phases=session.phases.replaced(phase, state))
    changed: dict[str, tuple[str, ...]] = {} if receipt.inputs is None else {receipt.inputs: ()}
    judged = judge(shown, phase, gate, Facts(changed=changed, now=session.updated_at))
    return Rerun(phase, name, judged.verdict, judged.reason, receipt)


def _unprotected(session: Session) -> Phases:
    """The phases without the protected files, which a bundle does not have."""
    phases = session.phases
    for key, state in session.phases.items():
        if state.protected is not None:
            phases = phases.replaced(key, replace(state, protected=None))
    return phases


def _keep_evidence(reader: bundle_file.Reader, store: Store, session: str) -> None:
    """Put the names of tests and the digests of inputs where the checks find them."""
    start = f"{FILES}{EVIDENCE}/"
    with store.lock(PROJECT):
        for part in reader.header.parts:
            if part.name.startswith(start):
                store.put(f"{session}/{EVIDENCE}/{part.name.removeprefix(start)}", reader.read(part.name))
