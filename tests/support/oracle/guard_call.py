"""A recorded hook call as a scene of the guard.

The recorded implementation reads what a phase asks for from a configuration beside the state; in Detent the document
lists a phase's gates itself. So `document` completes a recorded state with the gates that the shipped phases ask for,
or the case's own `config`. They are listed without verdicts: a gate that nothing is recorded about is asked for and not
begun. The agents in the recorded log of delegations become the delegations of their phases.
"""

import copy
import json
from typing import Any

from detent.clients.registry import dialect, guarded_files
from detent.config.catalogue import Catalogue
from detent.config.settings import Settings
from detent.core.gate import Gate, gate_name
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.guard.rules import GuardInput, guard
from detent.core.guard.state_reader import mapping
from detent.core.workflow.phase_key import normalize_phase_key
from tests.support.oracle.cases import Case

ROOT = "/project"
PHASE = Catalogue(Settings()).phase


def decision(case: Case) -> tuple[str, str]:
    """What the guard says to the recorded call: allow or block, and why."""
    reason, _ = guard(
        GuardInput(document(case), call(case.input), ROOT, lambda path: path in case.files, guarded_files())
    )
    return ("allow", "") if reason is None else ("block", reason)


def call(payload: dict[str, Any]) -> dict[str, Any]:
    moved = json.dumps({**payload, "cwd": ROOT}).replace(".isdlc/", ".workflow/").replace("<project>", ROOT)
    return dialect("claude-code").call(json.loads(moved))


def document(case: Case) -> Any:
    """The state with the gates of its phases; False if it cannot be read."""
    return False if case.state_raw is not None else completed(case.state, case.config)


def completed(state: Any, config: dict[str, Any]) -> Any:
    doc = copy.deepcopy(state)
    flow = mapping(mapping(doc).get("active_workflow"))
    for key in map(normalize_phase_key, flow.get("phases", ())):
        record = doc.setdefault("phases", {}).setdefault(key, {})
        if config.get("requirements", ...) is not None:
            record["gates"] = [declared(gate, key, config) for gate in PHASE(key, ()).gates]
        log = [entry for entry in doc.get("skill_usage_log", ()) if entry.get("agent_phase") == key]
        if log:
            record["delegations"] = [{"agent": entry["agent"], "agent_id": ""} for entry in log]
    return doc


def declared(gate: Gate, phase: str, config: dict[str, Any]) -> dict[str, Any]:
    listed: dict[str, Any] = {"name": gate_name(gate), "kind": gate.kind}
    if isinstance(gate, ArtifactsGate):
        own = mapping(mapping(mapping(config.get("artifact_paths")).get("phases")).get(phase))
        listed["paths"] = own.get("paths", list(gate.paths))
    return listed
