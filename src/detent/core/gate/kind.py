"""The interface of a gate kind: everything that the rest of Detent asks of a gate.

A kind is one module: a subclass of `GateSettings` whose fields are the settings in `detent.toml` and in the journal,
and whose methods answer the questions below. Most have a default. `registry.register` makes the kind known.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import msgspec

from detent.core.actor import Assurance
from detent.core.gate.evidence import Facts, GateState, Program, Receipt, Reviewer, Verdict
from detent.core.testrun.baseline import Baseline
from detent.errors import Refused

if TYPE_CHECKING:
    from detent.core.reports.limits import ReportFile
    from detent.core.session.phase_state import PhaseState
    from detent.core.testrun.suite import Suite

#: The files that changed lines are compared with, if a gate names no commit: those of the session's start.
START = "start"
#: The end of a command that runs tests, if no test command is known.
GIVEN_COMMAND = " -- YOUR TEST COMMAND"


class Opener(StrEnum):
    """The act that opens a gate."""

    #: A check is run, or its result is reported.
    RUN = "run"
    #: The agent does its work.
    WORK = "work"
    #: The agent of the phase ends its turn.
    DELEGATION = "delegation"
    #: A person votes.
    VOTE = "vote"
    #: A person answers a question.
    ANSWER = "answer"

    @property
    def is_person(self) -> bool:
        """Whether only a person performs the act."""
        return self in (Opener.VOTE, Opener.ANSWER)

    @property
    def is_agent(self) -> bool:
        """Whether an agent performs the act during its turn."""
        return self in (Opener.RUN, Opener.WORK)

    @property
    def is_for_others(self) -> bool:
        """Whether an agent can only wait for the act; it can ask for an answer."""
        return self in (Opener.DELEGATION, Opener.VOTE)


class Evidence(NamedTuple):
    """All values that a kind judges on."""

    #: The artifact folder of the session.
    folder: str
    state: "PhaseState"
    gate: GateState
    facts: Facts
    baseline: Baseline = Baseline()
    #: The programs that the session knows, by the words of commands.
    programs: Mapping[str, Program] = {}
    #: The weakest assurance of a vote at a gate that states none.
    assurance: Assurance = Assurance.ATTENDED


class Surroundings(NamedTuple):
    """The project, as far as it decides which gates apply in it."""

    #: Whether a path of the project exists.
    exists: Callable[[str], bool]
    #: Detent is installed in a client and sees what its agents do.
    is_observed: bool
    #: The caller that starts the session delegates its phases itself and records that.
    delegates: bool
    #: The test command of gates that name none.
    tests: str | None = None
    #: The variables of that command.
    env: tuple[str, ...] = ()
    #: Why a test command measures no coverage; None if it may measure it.
    without_coverage: Callable[[str | None], str | None] = lambda _: "the project has no coverage tool"
    #: Whether checkpoints take all files of the project.
    captures_all: bool = True
    #: The commit that a name of git means; None if git does not know it.
    commit_of: Callable[[str], str | None] = lambda _: None


class Ran(Protocol):
    """One command that ran. `problem` says why it could not run or was ended."""

    @property
    def exit_code(self) -> int | None: ...

    @property
    def output(self) -> str: ...

    @property
    def duration_s(self) -> float: ...

    @property
    def problem(self) -> str | None: ...

    @property
    def reports(self) -> tuple[bytes, ...]:
        """The reports of test runners that were asked for one."""
        ...

    @property
    def directory(self) -> str:
        """The directory that the command ran in."""
        ...

    @property
    def files(self) -> "tuple[ReportFile, ...]":
        """The report files of the gate that the command wrote."""
        ...

    @property
    def unread(self) -> Mapping[str, str]:
        """Pattern to the reason why its report files do not count: older than the run, too large, or missing."""
        ...


class KnownNames(NamedTuple):
    """The tests of the baseline, read from the store."""

    #: The number of cases that passed.
    passed: int
    #: None if the baseline has no names.
    names: frozenset[str] | None


class CheckRunner(Protocol):
    """Runs the commands of a check; the engine implements it."""

    def run(self, command: str) -> Ran:
        """Run a shell command in the project."""
        ...

    def run_protected(self, command: str) -> Ran | None:
        """Run it in a copy that has the protected files as they were; None if none of them has changed."""
        ...

    def run_original(self, command: str) -> Ran | None:
        """Run it in a copy that has the protected files of the start; None if no phase has rewritten tests since."""
        ...

    def known(self, command: str) -> KnownNames | None:
        """The tests of the baseline for the command; None if no run has set it."""
        ...

    def last_pass(self, command: str) -> KnownNames | None:
        """The tests of the last pass of the command in the session; None before the first."""
        ...

    def accepted(self) -> frozenset[str]:
        """The names of lost tests that a person accepted."""
        ...

    def keep(self, names: frozenset[str]) -> str:
        """Store a list of tests; the digest by which it is found again."""
        ...

    def rewrites_tests(self) -> bool:
        """Whether the phase may rewrite tests that stood when the session began."""
        ...

    def tests_rewritten_by(self) -> str | None:
        """The phase that rewrote tests last; None if the protected ones are those of the start."""
        ...

    def is_protected(self) -> bool:
        """Whether the test files as they were when the session began are kept."""
        ...

    def selection(self, command: str) -> str | None:
        """The argument with which the command runs only a part of the tests; None if it runs all."""
        ...

    def test_command(self) -> str | None:
        """The command of the tests: the one of a gate of the phase, or of the whole run that counted last."""
        ...

    def named(self) -> tuple[str, ...]:
        """The tests that were named in this attempt to show the bug."""
        ...

    def run_copy(self, command: str, *, of_start: bool, only: Collection[str] = ()) -> Ran:
        """Run it in a copy of the project; `of_start`: of the files of the session's start, with the tests of now.

        `only` are the tests that are asked for, if the command can be told so; it may run others too.
        """
        ...

    def stood(self, test: str) -> bool:
        """Whether a test of that name was in the files of the session's start."""
        ...

    def run_before(self, command: str) -> Ran | None:
        """Run it in a copy with the files of the phase's begin; None if those were not captured."""
        ...

    def run_mutants(self, command: str, lines: Mapping[str, Collection[int]], *, most: int, minutes: float) -> Ran:
        """Run the test command on mutants of these lines, in a copy of the project."""
        ...

    def changed_lines(self, against: str) -> Mapping[str, Mapping[int, bytes]]:
        """Path to the lines that differ from those of the session's start, or of a commit. Raises `Corrupt`."""
        ...

    def present(self) -> Collection[str]:
        """The paths of the files of the project."""
        ...

    def changed_settings(self) -> tuple[str, ...]:
        """The settings of test runners and coverage tools that are not as they were, and that no person accepted."""
        ...

    def changed_files(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """The files of these names that are not as at the session's start, and that no person accepted."""
        ...

    def has_new_tests(self) -> bool:
        """Whether a test file was added or changed since the session's start."""
        ...


class Gate:
    """A gate of any kind. A plain class, so that msgspec decodes its values through the registry."""

    __slots__ = ()

    opened_by: ClassVar[Opener]
    #: The checkpoint document lists it under compliance checks instead of quality gates.
    is_compliance: ClassVar[bool] = False
    #: Several approvers have to agree. A phase with such gates only, and without a role, needs no agent.
    needs_quorum: ClassVar[bool] = False
    #: It runs the tests of the project, by the test command of the settings if it names none.
    runs_tests: ClassVar[bool] = False
    #: The files of the phase's begin are compared with the present ones.
    needs_changes: ClassVar[bool] = False
    #: A person may accept what its check found, by name.
    accepts_findings: ClassVar[bool] = False
    #: Its check needs the files of the phase's begin.
    needs_begin: ClassVar[bool] = False
    #: What a caller gives to a run of the check are names of tests, not a command.
    takes_names: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name that commands and evidence use; empty for the name of the kind."""
        return ""

    @property
    def kind(self) -> str:
        return kind_name(type(self))

    # Judging

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        """The verdict and its reason. Pure."""
        raise NotImplementedError

    def way_out(self, phase: str, state: GateState) -> str:
        """The command or act that opens the gate."""
        raise NotImplementedError

    def requirement(self, phase: str, folder: str) -> str:
        """The sentence that tells an agent what opens the gate."""
        raise NotImplementedError

    def proof(self, evidence: Evidence) -> str:
        """The evidence of an open gate besides receipts and votes, for the report."""
        return ""

    # Facts

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths that must exist; `{artifact_folder}` is the folder of the session."""
        return ()

    @property
    def inputs(self) -> tuple[str, ...] | None:
        """Patterns of the files whose change makes a passed run stale. Empty means every file, None means no file."""
        return None

    #: Whether the tests and the runner's settings are kept as they are when the session starts.
    protects: ClassVar[bool] = False

    @property
    def protected(self) -> tuple[str, ...]:
        """Patterns of further files to keep."""
        return ()

    @property
    def against(self) -> str:
        """The commit or the start that changed lines are compared with; empty if the gate compares none."""
        return ""

    @property
    def report_files(self) -> tuple[str, ...]:
        """Patterns of the report files that its command writes."""
        return ()

    def suite_of(self, ran: Ran) -> "Suite | None":
        """The tests of a run of its command by name; None if no report names them."""
        return None

    @property
    def frees_settings(self) -> bool:
        """Whether the settings of the test runner are not protected with the tests."""
        return False

    @property
    def env(self) -> tuple[str, ...]:
        """Variables of the check: `NAME=value`, or `NAME` to pass on the one of the caller."""
        return ()

    def skipped_because(self, project: Surroundings) -> str | None:
        """The reason why the gate cannot apply in this project; None if it applies."""
        return None

    def fitted(self, project: Surroundings) -> "tuple[Gate, str | None]":
        """The gate as a new session pins it, and a line about a setting that was left out."""
        return self, None

    # Opening

    def runnable(self) -> str | None:
        """The command that Detent runs for the gate, as it is shown; None if no command is known."""
        return None

    @property
    def runs_last(self) -> bool:
        """Whether a run executes it only when every other gate of the phase is open."""
        return False

    def with_command(self, command: str) -> "Gate":
        """The gate with another command."""
        raise Refused(f"a gate of kind {self.kind} has no command to set")

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        """Run the check. `command` is the one that the caller gave, or the one of `runnable`."""
        raise Refused("this gate is not decided by a run")

    def observe(self, runner: CheckRunner, command: str, output: str, exit_code: int | None) -> Receipt | None:
        """The receipt of a test run that was seen in an agent's shell; None if that is no evidence."""
        return None

    @property
    def is_reported(self) -> bool:
        """Whether a reviewer reports the result."""
        return False

    @property
    def is_reviewed(self) -> bool:
        """Whether an agent that did not do the work reports what it found."""
        return False

    @property
    def reviewed_phases(self) -> tuple[str, ...]:
        """The phases whose work is reviewed; empty for the phase of the gate."""
        return ()

    def cannot_review(self, reviewer: Reviewer, authors: Collection[Reviewer]) -> str | None:
        """The reason why an agent may not review the work of these authors; None if it may."""
        return None

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers of a person that open the gate."""
        return ()

    @property
    def assurance(self) -> Assurance | None:
        """The weakest assurance that counts for its votes; None for that of the session."""
        return None

    def contradiction(self, receipt: Receipt) -> str | None:
        """The reason why no run of this gate can have left the receipt; None if one can have."""
        return None

    def check_voter(self, phase: str, identity: str, stands_for: str) -> None:
        """Refuse the vote of a person who is no approver, or who may not vote in the place of `stands_for`."""

    def exhausted(self, state: GateState, baseline: Baseline) -> str | None:
        """The reason why a person has to decide instead of another run; None if a run may help."""
        return None

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        """Whether only a person can open it in a run. `sees_tests`: the run can execute or observe tests."""
        return self.opened_by.is_person

    def person_task(self, phase: str) -> str | None:
        """The work for a person besides voting or answering."""
        return None

    # Documents

    def state_record(self, state: GateState, *, is_open: bool) -> tuple[tuple[str, ...], dict[str, Any]] | None:
        """A record of its own in the phase's record of the state document: the keys that lead to it, and its fields."""
        return None


class GateSettings(
    msgspec.Struct, Gate, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="kind"
):
    """The settings that every kind has. A kind gives its own name as `tag`."""

    name: str = ""


def kind_name(kind: type[Gate]) -> str:
    return str(kind.__struct_config__.tag)  # type: ignore[attr-defined]


def gate_name(gate: Gate) -> str:
    return gate.name or gate.kind


def required_paths(gate: Gate, folder: str) -> tuple[str, ...]:
    return tuple(path.replace("{artifact_folder}", folder) for path in gate.paths)
