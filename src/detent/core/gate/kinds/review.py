"""The `review` gate: an agent that did not do the work must have looked at these very files.

It adds to a person's approval, and never replaces it: an `approval` gate beside it stays closed.
"""

from collections.abc import Collection
from typing import Literal

from detent.core.gate.checked import Checked
from detent.core.gate.evidence import GateState, Receipt, Result, Reviewer, Verdict
from detent.core.gate.kind import CheckRunner, Evidence, GateSettings, gate_name
from detent.core.testrun.baseline import Baseline
from detent.errors import Refused

_MAX_TEXT = 200


class ReviewGate(GateSettings, Checked, frozen=True, kw_only=True, tag="review"):
    """An agent that did not do the work must have looked at these very files."""

    #: The phases whose work is reviewed; empty for the phase of the gate.
    of: str | tuple[str, ...] = ()
    #: The reviewer must be of another role or client than the authors, or of another client.
    independent: Literal["role", "client"] = "role"
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10

    @property
    def reviewed_phases(self) -> tuple[str, ...]:
        return (self.of,) if isinstance(self.of, str) and self.of else tuple(self.of)

    @property
    def is_reviewed(self) -> bool:
        return True

    # Judging

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        receipt = evidence.gate.receipt
        if receipt is None:
            return Verdict.PENDING, "no other agent has reviewed the work"
        if (problem := self.contradiction(receipt)) is not None:
            return Verdict.FAIL, f"the review does not count: {problem}"
        return super().judge(evidence)

    def passed(self, receipt: Receipt, baseline: Baseline) -> str:
        review = receipt.review
        assert review is not None
        authors = ", ".join(author.describe() for author in review.authors)
        return f"{review.reviewer.describe()} reviewed the work of {authors}: {review.text[:_MAX_TEXT]}"

    def way_out(self, phase: str, state: GateState) -> str:
        name = gate_name(self)
        return (
            f"let an agent of another client review these files and type detent gate report {name} --phase {phase} "
            f"--compliant -m REPORT; or, as a person, detent approve {phase} --gate {name} -m WHY"
        )

    def requirement(self, phase: str, folder: str) -> str:
        report = f"detent gate report {gate_name(self)} --phase {phase} --compliant -m 'what you looked at'"
        if self.reviewed_phases:
            return (
                f"review the work of {', '.join(self.reviewed_phases)}: read the changes, run what you need, and "
                f"report with `{report}`, or with --not-compliant and what is wrong. If a file changes afterwards, "
                "the review no longer counts."
            )
        return (
            f"an agent of another client than yours must review these files and report with `{report}`. You cannot "
            "review your own work."
        )

    def contradiction(self, receipt: Receipt) -> str | None:
        review = receipt.review
        if receipt.result is not Result.PASSED:
            return None
        if review is None:
            return "it has no report of a reviewer"
        if not review.authors:
            return "it does not say whose work was reviewed"
        return not_independent(review.reviewer, review.authors, self.independent)

    def cannot_review(self, reviewer: Reviewer, authors: Collection[Reviewer]) -> str | None:
        return not_independent(reviewer, authors, self.independent)

    # Running

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        raise Refused(
            f"gate {gate_name(self)} is opened by the report of another agent, not by a run",
            way_out=f"detent gate report {gate_name(self)} --compliant -m REPORT, in the shell of the reviewer",
        )

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        # In a run only the agent of the phase works, and it cannot review its own work.
        return not self.reviewed_phases

    def person_task(self, phase: str) -> str | None:
        return f"an agent of another client reviews {phase}: {self.way_out(phase, GateState())}"


def not_independent(reviewer: Reviewer, authors: Collection[Reviewer], independent: str) -> str | None:
    """The reason why the reviewer may not review the work of these authors; None if it may.

    A role counts only where both are known: an agent of the same client without a role may be the author.
    """
    for author in authors:
        if author.client != reviewer.client:
            continue
        is_other_role = bool(author.role and reviewer.role) and author.role != reviewer.role
        if independent == "client" or not is_other_role:
            return f"{reviewer.describe()} did the work itself ({author.describe()}), and cannot review it"
    return None
