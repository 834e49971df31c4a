"""Gates that votes of people decide."""

from detent.core.gate.evidence import GateState, Verdict
from detent.core.gate.kind import Evidence, Gate, Opener, gate_name
from detent.errors import Refused


class Voted(Gate):
    """For kinds that votes decide."""

    __slots__ = ()

    opened_by = Opener.VOTE

    @property
    def approvers(self) -> tuple[str, ...]:
        """The people who may vote; empty for anyone."""
        return ()

    @property
    def quorum(self) -> int:
        return 1

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        votes = evidence.gate.votes
        in_favour = [who for who, vote in votes.items() if vote.approve]
        against = [who for who, vote in votes.items() if not vote.approve]
        if len(in_favour) >= self.quorum:
            return Verdict.PASS, f"approved by {', '.join(in_favour)}"
        open_votes = [who for who in self.approvers if who not in votes]
        if against and (not self.approvers or len(in_favour) + len(open_votes) < self.quorum):
            return Verdict.FAIL, f"{', '.join(against)} rejected it: {votes[against[-1]].reason}"
        waiting = f"; {', '.join(open_votes)} may still vote" if open_votes else ""
        return Verdict.PENDING, f"{len(in_favour)} of {self.quorum} approvals{waiting}"

    def way_out(self, phase: str, state: GateState) -> str:
        left = [who for who in self.approvers if who not in state.votes]
        named = f" --as {left[0]}" if left else ""
        return f"detent approve {phase} --gate {gate_name(self)}{named} -m WHY"

    def check_voter(self, phase: str, who: str) -> None:
        if self.approvers and who not in self.approvers:
            name = gate_name(self)
            raise Refused(
                f"{who} is not an approver of {name}; {', '.join(self.approvers)} are",
                way_out=f"detent approve {phase} --gate {name} --as {self.approvers[0]} -m WHY",
            )
