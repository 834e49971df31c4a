"""Gates that votes of people decide. A vote is an identity's: an account, or the approver whose key signed it."""

from collections.abc import Collection, Mapping

from detent.core.actor import Assurance, spoken_as
from detent.core.gate.evidence import Facts, GateState, Verdict, Vote
from detent.core.gate.kind import Evidence, Gate, Opener, gate_name
from detent.errors import Refused


def is_for_other_files(tree: str, facts: Facts) -> bool:
    """Whether a decision was signed for other files than the present ones, as far as those are known."""
    return bool(tree and facts.files) and tree != facts.files


class Voted(Gate):
    """For kinds that votes decide."""

    __slots__ = ()

    opened_by = Opener.VOTE

    @property
    def approvers(self) -> tuple[str, ...]:
        """The people and roles who may vote; empty for anyone."""
        return ()

    @property
    def quorum(self) -> int:
        return 1

    @property
    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """The identities that fill a role among the approvers. A name that is no role is itself an identity."""
        return {}

    @property
    def lowered_from(self) -> int | None:
        """The quorum that was declared, if a person lowered it when the session started: then anyone may vote."""
        return None

    @property
    def voters(self) -> frozenset[str] | None:
        """The identities that may vote; None for anyone."""
        if not self.approvers or self.lowered_from is not None:
            return None
        return frozenset(identity for name in self.approvers for identity in self.roles.get(name, (name,)))

    def unreachable(self, known: Collection[str]) -> str | None:
        """Why the people who are known cannot reach the quorum; None if they can."""
        voters = self.voters
        able = len(set(known) if voters is None else voters & set(known))
        if able >= self.quorum:
            return None
        seats = self.seats() or "anyone"
        return f"{gate_name(self)} needs {self.quorum} of {seats}, and {able or 'none'} of them can vote"

    def seats(self) -> str:
        """The approvers, each role with the identities that fill it."""
        return ", ".join(
            f"{name} ({' or '.join(self.roles[name])})" if name in self.roles else name for name in self.approvers
        )

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        votes, needed = evidence.gate.votes, self.assurance or evidence.assurance
        approving = {who: vote for who, vote in votes.items() if vote.approve}
        weak = sorted(who for who, vote in approving.items() if not vote.assurance.reaches(needed))
        in_favour = _of_one_kind({who: vote for who, vote in approving.items() if who not in weak})
        against = {who: vote for who, vote in votes.items() if not vote.approve}
        old = sorted(who for who, vote in in_favour.items() if is_for_other_files(vote.tree, evidence.facts))
        if len(in_favour) >= self.quorum > len(in_favour) - len(old):
            return Verdict.STALE, f"{', '.join(old)} approved other files; they have changed since"
        if len(in_favour) >= self.quorum:
            return Verdict.PASS, f"approved by {_listed(in_favour)}{self._looser()}"
        voters = self.voters
        waiting = (voters or frozenset()) - votes.keys()
        if against and (voters is None or len(in_favour) + len(waiting) < self.quorum):
            reason = list(against.values())[-1].reason
            return Verdict.FAIL, f"{_listed(against)} rejected it: {reason}"
        still = f"; {', '.join(sorted(waiting))} may still vote" if waiting else ""
        short = f"; {', '.join(weak)} approved, but not with the assurance {needed}" if weak else ""
        return Verdict.PENDING, f"{len(in_favour)} of {self.quorum} approvals{short}{still}{self._looser()}"

    def proof(self, evidence: Evidence) -> str:
        return self._looser().strip(" ()")

    def _looser(self) -> str:
        if self.lowered_from is None:
            return ""
        return f" (quorum lowered at the start; {self.lowered_from} of {', '.join(self.approvers)} were declared)"

    def way_out(self, phase: str, state: GateState) -> str:
        sign = "" if self.assurance in (None, Assurance.ATTENDED) else " --sign"
        return f"detent approve {phase} --gate {gate_name(self)} -m WHY{sign}"

    def check_voter(self, phase: str, identity: str, stands_for: str) -> None:
        voters, name = self.voters, gate_name(self)
        if stands_for and self.approvers and stands_for not in self.approvers:
            raise Refused(
                f"{stands_for} is not an approver of {name}; {self.seats()} are",
                way_out=f"detent approve {phase} --gate {name} -m WHY, as yourself",
            )
        if stands_for in self.roles and identity not in self.roles[stands_for]:
            raise Refused(
                f"{stands_for} is filled by {' or '.join(self.roles[stands_for])}, and you are {identity}",
                way_out="ask one of them to approve it",
            )
        if voters is not None and not stands_for and identity not in voters:
            raise Refused(
                f"{identity} is not an approver of {name}; {self.seats()} are",
                way_out="ask one of them; [decisions.roles] in detent.toml names people for the next session",
            )


def _of_one_kind(votes: Mapping[str, Vote]) -> Mapping[str, Vote]:
    """The votes that were signed or those that were not, whichever are more.

    A signed vote is that of an approver, another one that of an account, and one person may be both.
    """
    signed = {who: vote for who, vote in votes.items() if vote.key}
    unsigned = {who: vote for who, vote in votes.items() if not vote.key}
    return signed if len(signed) >= len(unsigned) else unsigned


def _listed(votes: Mapping[str, Vote]) -> str:
    shown = [
        spoken_as(who, vote.stands_for) + ("" if vote.assurance is Assurance.ATTENDED else f" ({vote.assurance})")
        for who, vote in votes.items()
    ]
    return ("; " if any(vote.stands_for for vote in votes.values()) else ", ").join(shown)
