"""The end of an attempt in a run: what is recorded with it, and what is told about it."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from detent.core.gate import Gate
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.gate.kind import required_paths
from detent.core.limits import MAX_ERROR, cut
from detent.core.run.agent_event import Failed, Failure
from detent.core.run.run_event import PhaseEnded
from detent.core.session.commands import Fail, Finish
from detent.core.session.phase_state import Report
from detent.core.session.session import Session
from detent.errors import GateClosed
from detent.run.result import JobOutcome, JobResult

if TYPE_CHECKING:
    from detent.core.session.token import Token
    from detent.engine.session import SessionHandle
    from detent.run.job import Job
    from detent.run.turn import Delegated


_NOTHING = Report()


class AttemptEnd:
    def __init__(self, handle: "SessionHandle", job: "Job", base: str, gates: Sequence[Gate]) -> None:
        self._handle, self._job, self._phase = handle, job, job.phase
        self._base, self._gates = os.path.realpath(base), gates
        #: Artifacts that were named and are not in the project.
        self._outside: tuple[str, ...] = ()

    def finish(self, summary: str, report: Report = _NOTHING, agent_id: str | None = None) -> JobResult | None:
        """Complete the attempt; None if a gate has closed again meanwhile.

        `report` is what was not recorded before, `summary` what is said if no agent said anything.
        """
        session = self._handle.state
        known = session.phases[self._phase].report or Report()
        command = Finish(
            token=self._token,
            # What the agents reported is recorded already.
            summary=report.summary or (None if known.summary else summary),
            artifacts=tuple(dict.fromkeys((*report.artifacts, *self._gate_artifacts(session)))),
            deliverables=report.deliverables,
            context=report.context,
            tokens=report.tokens,
            tools=report.tools,
            agent_id=agent_id,
        )
        try:
            outcome = self._handle.execute(command)
        except GateClosed:
            return None
        done = outcome.session.phases[self._phase].summary or ""
        self._tell(outcome.session, "completed", done, outcome.warnings)
        return JobResult(JobOutcome.FINISHED)

    def fail(self, came: "Delegated", end: Failed, agent_id: str) -> JobResult:
        """The agent did not get to the end of its turn."""
        error, used = end.reason.strip() or "no reason was given", came.report
        command = Fail(token=self._token, error=error, tokens=used.tokens, tools=used.tools, agent_id=agent_id)
        outcome = self._handle.execute(command)
        reason = outcome.session.phases[self._phase].error or ""
        self._tell(outcome.session, "failed", reason, outcome.warnings)
        return JobResult(
            JobOutcome.STOPPED if end.failure is Failure.STOPPED else JobOutcome.FAILED, end.failure, reason
        )

    def reject(self, judged: Iterable[Judgement]) -> JobResult:
        """Somebody said no: a new attempt is to mend what was said."""
        reason = "; ".join(f"{one.gate}: {one.reason}" for one in judged if one.verdict is Verdict.FAIL)
        outcome = self._handle.execute(Fail(token=self._token, error=cut(reason, MAX_ERROR)))
        self._tell(outcome.session, "failed", reason, outcome.warnings)
        return JobResult(JobOutcome.FAILED, Failure.ERROR, reason)

    def inside(self, report: Report) -> Report:
        """The report with those of its artifacts that are in the project; the others are told at the end."""
        kept: list[str] = []
        left_out: list[str] = []
        for path in report.artifacts:
            full = os.path.realpath(os.path.join(self._base, path))
            is_inside = full.startswith(self._base + os.sep) and os.path.exists(full)
            (kept if is_inside else left_out).append(os.path.relpath(full, self._base) if is_inside else path)
        self._outside = tuple(left_out)
        return msgspec.structs.replace(report, artifacts=tuple(kept))

    @property
    def _token(self) -> "Token":
        assert self._job.claim is not None
        return self._job.claim.token

    def _gate_artifacts(self, session: Session) -> list[str]:
        """What the phase was asked to leave behind is an artifact of it, whether the agent says so or not."""
        paths = [path for gate in self._gates for path in required_paths(gate, session.folder)]
        return [path for path in paths if os.path.isfile(os.path.join(self._base, path))]

    def _tell(self, session: Session, status: str, said: str, warnings: Iterable[str]) -> None:
        more = (f"{path} is outside the project or not there, and was left out" for path in self._outside)
        run_context = self._job.run_context
        run_context.tell(
            PhaseEnded(
                at=run_context.clock(),
                phase=self._phase,
                attempt=session.phases[self._phase].attempt,
                status=status,
                said=said,
                warnings=(*warnings, *more),
            )
        )
