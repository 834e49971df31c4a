"""The `artifacts` gate: each path must exist."""

from detent.core.counted import listed
from detent.core.gate.evidence import GateState, Verdict
from detent.core.gate.kind import Evidence, GateSettings, Opener, required_paths
from detent.core.session.status import Status


class ArtifactsGate(GateSettings, frozen=True, kw_only=True, tag="artifacts"):
    """Each path must exist; `{artifact_folder}` is the session's folder."""

    opened_by = Opener.WORK

    paths: tuple[str, ...]

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        exists = evidence.facts.exists
        if exists is None:
            return Verdict.PENDING, "whether the files exist was not checked"
        missing = [path for path in required_paths(self, evidence.folder) if path not in exists]
        return (Verdict.FAIL, f"{listed(missing)} missing") if missing else (Verdict.PASS, "all files exist")

    def way_out(self, phase: str, state: GateState) -> str:
        return "write them, then finish again"

    def requirement(self, phase: str, folder: str) -> str:
        return f"these files must exist: {', '.join(required_paths(self, folder))}."

    def proof(self, evidence: Evidence) -> str:
        completed = evidence.state.status is Status.COMPLETED
        return f"existed: {', '.join(required_paths(self, evidence.folder))}" if completed else ""
