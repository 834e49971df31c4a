"""Runs the checks of gates and gathers the facts that judging needs."""

import itertools
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.config.place import is_worktree
from detent.core.gate import Gate
from detent.core.gate.checked import MAX_ERROR
from detent.core.gate.evidence import Facts, Program, RanBy, Receipt, Result, Review
from detent.core.gate.kind import START, required_paths
from detent.core.gate.kinds.command import MERGE
from detent.core.session.session import Session
from detent.core.testrun.baseline import KnownTests
from detent.core.testrun.runner_files import Role, is_code_name
from detent.core.workflow.graph import Workflow
from detent.engine.actor import account
from detent.engine.agents.environment import BIN
from detent.engine.gates.bytecode import fresh_bytecode
from detent.engine.gates.environment import environment_of, program_of
from detent.engine.gates.inputs import FileDigests, changed_files, encode_digests, file_digests
from detent.engine.gates.reports import DeclaredFiles, collected_reports
from detent.engine.gates.session_check import SessionCheck, last_receipt
from detent.engine.gates.stored import EVIDENCE, PROTECTED, content_name, is_intact
from detent.engine.redact_command import redact_text
from detent.errors import Corrupt, DetentError, Refused
from detent.objects.universe import Request, files_now
from detent.store.port import PROJECT, Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from detent.config.place import Place
    from detent.engine.checkpoints.checkpoints import Checkpoints
    from detent.engine.gates.protected import Changes as ProtectedChanges
    from detent.engine.gates.protected import ProtectedFiles
    from detent.engine.gates.start_files import StartFiles
    from detent.engine.sandbox import RunSandbox
    from detent.objects.universe import Moment
    from detent.process.sandbox import Sandbox

#: Owner of the objects that a check stores.
OWNER = "gate"
TIMEOUT_S = 1_800.0
#: The command of a merge, and nothing else.
_MERGES = re.compile(rf"{MERGE}(?: [\w./-]+)*")
#: Exit codes of a shell that could not run a command.
_NOT_RUN = {126: "the command cannot be executed", 127: "the command was not found"}
#: How shells and make tell that a program inside of a command was not found.
_NOT_FOUND = re.compile(r"\S*(?:sh|make|env)(?:\[\d+\])?: .*(?:not found|No such file or directory|Error 127)\W*")
#: Maximum number of tests that are asked for by name: a command line has a limit.
_MAX_ASKED = 200
#: Maximum number of variables and entries of PATH that a receipt names.
_MAX_LEFT_OUT = 40
#: The beginning of a `package.json` that is read.
_MAX_PACKAGE = 1024 * 1024
#: The time of a change is that of the last tick of the system's clock.
_CLOCK_TICK_S = 0.01
_CHANGED_SINCE = "files changed before it was recorded; run the tests again"
_decode_digests = msgspec.json.Decoder(FileDigests).decode


class GateChecks:
    """The checks of one session in one project."""

    def __init__(
        self,
        store: Store,
        place: "Place",
        session: str,
        checkpoints: "Checkpoints",
        sandbox: "RunSandbox | None" = None,
    ) -> None:
        self._store, self._sandbox = store, sandbox
        self._checkpoints, self._moments = checkpoints, checkpoints.moment
        self._place, self._base = place, place.base
        self._session = session
        #: Whether the settings name a test command.
        self.knows_tests = False
        #: Gets the output of a check as it comes, and the seconds that it has run.
        self.watch: Callable[[bytes, float], object] | None = None

    def facts(self, session: Session, phase: str, now: datetime, moment: "Moment | None" = None) -> Facts:
        """The facts for judging the gates of a phase, of the files at the moment given."""
        moment = moment or self._moments(None)
        gates = session.gates(phase)
        paths = (path for gate in gates for path in required_paths(gate, session.folder))
        exists = frozenset(path for path in paths if os.path.exists(os.path.join(self._base, path)))
        changed, damaged = {}, {}
        for gate in gates:
            receipt = last_receipt(session, phase, gate)
            if receipt is not None and receipt.inputs is not None and receipt.result is Result.PASSED:
                recorded = self._recorded(receipt.inputs)
                if recorded is None:
                    damaged[receipt.inputs] = self._store.location(self._name(EVIDENCE, receipt.inputs))
                    continue
                files = file_digests(moment, gate.inputs or (), declared=session.declared, also=recorded)
                changed[receipt.inputs] = changed_files(recorded, files)
        return Facts(
            exists=exists,
            changed=changed,
            damaged=damaged,
            differs=self._differs(session, phase, moment) if any(gate.needs_changes for gate in gates) else {},
            files=files_now(moment).digest if _names_files(session, phase) else "",
            knows_tests=self.knows_tests,
            now=now,
        )

    def _differs(self, session: Session, phase: str, moment: "Moment") -> dict[str, bool]:
        """Whether the present files differ from those of the first begin of the phase."""
        from detent.engine.gates.start_files import present_files  # noqa: PLC0415 - few phases ask for it

        begun = session.phases[phase].tree
        if begun is None:
            return {}
        before, now = self._checkpoints.bring(self._session, begun), present_files(moment)
        # A file that the rules leave out, and that a checkpoint took because it was declared, is not in the look.
        gone = (path for path in before if path not in now and not os.path.lexists(os.path.join(self._base, path)))
        return {begun: any(entry != before.get(path) for path, entry in now.items()) or next(gone, None) is not None}

    def is_current(self, session: Session, phase: str, gate: Gate, moment: "Moment") -> bool:
        """Whether Detent ran the check in this attempt, on the files of the moment."""
        receipt = last_receipt(session, phase, gate)
        if receipt is None or receipt.by is RanBy.SEEN:
            return False
        if receipt.inputs is None or gate.inputs is None:
            return True
        recorded = self._recorded(receipt.inputs)
        return recorded == file_digests(moment, gate.inputs, declared=session.declared, also=recorded or ())

    def run(
        self,
        session: Session,
        phase: str,
        gate: Gate,
        command: str | None,
        env: Mapping[str, str] | None = None,
        *,
        by: RanBy = RanBy.DETENT,
    ) -> Receipt:
        """Run the gate's check now; `env` are the variables of a runner."""
        before = None if gate.inputs is None else self._before(session, gate.inputs)
        environment = environment_of(session, gate, self._place, os.environ, env or {})
        runner = SessionCheck(self, session, phase, gate, environment, [])
        try:
            receipt = gate.run(runner, command)
        except Corrupt as damage:
            receipt = Receipt(result=Result.ERROR, command=command or "", error=damage.message)
        # The first command says what the check is made of.
        program = runner.started[0].program if runner.started else None
        left_out = environment.left_out[:_MAX_LEFT_OUT] if _is_missing(receipt) else ()
        sandboxed = self._sandbox is not None
        receipt = msgspec.structs.replace(receipt, by=by, program=program, left_out=left_out, sandboxed=sandboxed)
        return self._complete(gate, receipt, before)

    def observed(
        self,
        session: Session,
        gate: Gate,
        command: str,
        output: str,
        exit_code: int | None,
        noted_at: datetime | None = None,
    ) -> Receipt | None:
        """The receipt of a test run that was seen in the agent's shell; None if it is no evidence for the gate.

        `output` is redacted. A run that a hook noted is no evidence about files that changed since; the caller holds
        PROJECT then.
        """
        environment = environment_of(session, gate, self._place, os.environ, {})
        receipt = gate.observe(SessionCheck(self, session, "", gate, environment, []), command, output, exit_code)
        if receipt is None:
            return None
        if noted_at is None:
            return self._complete(gate, receipt)
        if receipt.result is Result.PASSED and self._is_changed_since(gate, noted_at):
            receipt = msgspec.structs.replace(receipt, aside=_CHANGED_SINCE)
        return self._complete(gate, receipt, locked=True)

    def _is_changed_since(self, gate: Gate, at: datetime) -> bool:
        """Whether an input file was written after that time."""
        moment, limit_ns = self._moments(OWNER), (at.timestamp() - _CLOCK_TICK_S) * 1e9
        rows = moment.look(Request()).rows
        return any(path in rows and rows[path].key[2] > limit_ns for path in file_digests(moment, gate.inputs or ()))

    def reported(self, *, compliant: bool, note: str) -> Receipt:
        """The receipt of a reviewer's report."""
        if compliant:
            return Receipt(result=Result.PASSED)
        error = redact_text(note)[:200] or None
        return Receipt(result=Result.FAILED, error=error, signature=error)

    def reviewed(self, gate: Gate, review: Review, *, compliant: bool) -> Receipt:
        """The receipt of an agent's review of the present files."""
        if compliant:
            return self._complete(gate, Receipt(result=Result.PASSED, review=review))
        error = f"{review.reviewer.describe()}: {review.text}"[:MAX_ERROR]
        return self._complete(gate, Receipt(result=Result.FAILED, review=review, error=error, signature=error))

    def program(self, command: str, variables: Mapping[str, str]) -> Program | None:
        return program_of(command, variables["PATH"].split(":"), self._place, variables.get(BIN))

    def run_command(
        self,
        command: str,
        env: Mapping[str, str],
        cwd: str | None = None,
        options: str = "",
        files: Sequence[str] = (),
        timeout_s: float | None = None,
    ) -> process.Ran:
        """Run a command in this environment, with secrets removed from its output before anything reads it.

        If it runs pytest, however deep, a report names the tests; other runners are asked where that is sure. These
        reports are outside of the project. `options` are further ones of pytest, `files` the patterns of the report
        files that the gate declares.
        """
        from detent.core.testrun.reporting import asked_report, own_files  # noqa: PLC0415 - only a run needs it

        where = cwd or self._base
        if is_worktree(self._place):
            env = _with_own_code(env, where)
        declared = DeclaredFiles(where, files)
        own = DeclaredFiles(where, own_files(command))
        with collected_reports() as reports, fresh_bytecode(where) as bytecode:
            asked_for = asked_report(command, reports.directory, _package(where))
            reports.prepare(asked_for.prepared)
            report_to = f"-o junit_family=xunit1 --junitxml={reports.path}"
            asked = {
                **env,
                **bytecode,
                **asked_for.env,
                "PYTEST_ADDOPTS": f"{env.get('PYTEST_ADDOPTS', '')} {report_to} {options}".strip(),
            }
            inside = self._inside(command, where, os.path.dirname(reports.path))
            self._store.back_up(self._session)
            ran = process.run(
                asked_for.command,
                cwd=where,
                timeout_s=timeout_s or TIMEOUT_S,
                env=asked,
                watch=self.watch,
                sandbox=inside,
            )
            written = reports.read() or tuple(file.data for file in own.read()[0])
        read, unread = declared.read()
        problem = ran.problem or _NOT_RUN.get(ran.exit_code or 0) or _missing_program(ran)
        output = redact_text(ran.output)
        return msgspec.structs.replace(
            ran, output=output, problem=problem, reports=written, directory=where, files=read, unread=unread
        )

    def _inside(self, command: str, where: str, reports: str) -> "Sandbox | None":
        """The sandbox of a command; None outside of a run."""
        if self._sandbox is None:
            return None
        # A copy of the project is no part of it.
        return self._sandbox.for_check(self._place, where, reports, merges=_MERGES.fullmatch(command) is not None)

    def touched(self, session: Session, digest: str, accepted: Collection[str], roles: Collection[Role]) -> bool:
        """Whether a protected file of these roles is not as it was, or cannot be compared."""
        try:
            _, changes, _ = self._protected(session, digest, accepted, roles)
        except Corrupt:
            return True
        return bool(changes)

    def run_protected(
        self,
        session: Session,
        command: str,
        env: Mapping[str, str],
        *,
        digest: str,
        gate: str,
        accepted: Collection[str] = (),
        was_touched: bool = False,
        files: Sequence[str] = (),
        roles: Collection[Role] = tuple(Role),
    ) -> process.Ran | None:
        """Run a command in a copy of the project that has the protected files as they were; None if none changed.

        `digest` names the protected files. `was_touched`: one had changed before the ordinary run, which may have
        changed it back.
        """
        from detent.engine.gates.copy import project_copy  # noqa: PLC0415 - most runs change no test

        try:
            kept, changes, moment = self._protected(session, digest, accepted, roles)
            if not kept.has_tests() or not (changes or was_touched):
                return None
            if changes.unclear:
                names = " ".join(f"file:{path}" for path in changes.unclear)
                raise Corrupt(
                    f"the test runner's part of {', '.join(changes.unclear)} cannot be told from the rest; "
                    f"a person accepts it with detent gate accept {gate} {names} -m WHY"
                )
            copied = kept.copied(self._place, moment, changes)
        except Corrupt as damage:
            return process.Ran(exit_code=None, output="", duration_s=0.0, problem=damage.message)
        with project_copy(copied) as directory:
            # Git would write the times of the copy into the index of the project.
            return self.run_command(command, {**env, "GIT_OPTIONAL_LOCKS": "0"}, directory, files=files)

    def run_copy(
        self,
        command: str,
        env: Mapping[str, str],
        *,
        of_start: bool,
        only: Collection[str] = (),
        files: Sequence[str] = (),
    ) -> process.Ran:
        """Run a command in a copy of the project, or of the files of the session's start with the tests of now."""
        from detent.engine.gates.copy import Copied, project_copy  # noqa: PLC0415 - few gates need a copy
        from detent.engine.gates.start_files import present_files  # noqa: PLC0415

        moment, place = self._moments(None), self._place
        try:
            copied = (
                self.start_files().copied(place, moment)
                if of_start
                else Copied(root=place.root, base=place.base, files=frozenset(present_files(moment)))
            )
        except DetentError as failure:
            return process.Ran(exit_code=None, output="", duration_s=0.0, problem=failure.message)
        options = f"--continue-on-collection-errors {self._asking_for(command, only)}".rstrip()
        with project_copy(copied) as directory:
            asked = {**_with_own_code(env, directory), "GIT_OPTIONAL_LOCKS": "0"}
            return self.run_command(command, asked, directory, options=options, files=files)

    def _asking_for(self, command: str, tests: Collection[str]) -> str:
        """The tests as arguments of pytest, if the command runs all of them and pytest finds these from where it is."""
        from detent.core.testrun.verdict import writes_report  # noqa: PLC0415 - only this needs it

        if len(tests) > _MAX_ASKED or not writes_report(command) or self.selection(command) is not None:
            return ""
        if not all(os.path.isfile(os.path.join(self._base, test.partition("::")[0])) for test in tests):
            return ""
        return shlex.join(tests)

    def start_files(self) -> "StartFiles":
        """The files of the session's start; `Corrupt` if no checkpoint has them."""
        from detent.engine.gates.start_files import StartFiles  # noqa: PLC0415 - few gates need them

        position = next(iter(self._checkpoints.positions(self._session)), None)
        if position is None:
            raise Corrupt(f"no checkpoint of {self._session} has the files of its start")
        files = self._checkpoints.bring(self._session, position.event.tree.manifest, lambda files: files.values())
        return StartFiles(files, self._checkpoints.objects.read)

    def run_before(self, command: str, env: Mapping[str, str], *, tree: str, files: Sequence[str] = ()) -> process.Ran:
        """Run a command in a copy of the project with the files of a manifest, and nothing else."""
        from detent.engine.gates.copy import project_copy  # noqa: PLC0415 - few gates need a copy
        from detent.engine.gates.start_files import StartFiles  # noqa: PLC0415

        try:
            files_before = self._checkpoints.bring(self._session, tree, lambda files: files.values())
            before = StartFiles(files_before, self._checkpoints.objects.read)
            copied = before.copied(self._place, self._moments(None), tests_of_now=False)
        except DetentError as failure:
            return process.Ran(exit_code=None, output="", duration_s=0.0, problem=failure.message)
        with project_copy(copied) as directory:
            asked = {**_with_own_code(env, directory), "GIT_OPTIONAL_LOCKS": "0"}
            return self.run_command(command, asked, directory, files=files)

    def run_mutants(
        self, command: str, env: Mapping[str, str], *, lines: Mapping[str, Collection[int]], most: int, minutes: float
    ) -> process.Ran:
        """Run the tests on mutants of these lines, in a copy of the project."""
        from detent.engine.gates.copy import Copied, project_copy  # noqa: PLC0415 - few gates need a copy
        from detent.engine.gates.mutants import run_mutants  # noqa: PLC0415
        from detent.engine.gates.start_files import present_files  # noqa: PLC0415

        place = self._place
        files = frozenset(present_files(self._moments(None)))
        with project_copy(Copied(root=place.root, base=place.base, files=files)) as directory:
            # Two mutants of one file can have the same size and time, by which Python takes bytecode for fresh.
            asked = {**_with_own_code(env, directory), "GIT_OPTIONAL_LOCKS": "0", "PYTHONDONTWRITEBYTECODE": "1"}
            return run_mutants(
                directory,
                command,
                lines,
                lambda line, limit_s: self.run_command(line, asked, directory, timeout_s=limit_s),
                most=most,
                minutes=minutes,
            )

    def changed_lines(self, against: str) -> dict[str, dict[int, bytes]]:
        """The lines that differ from the files of the session's start, or of a commit. `Corrupt` if those are gone."""
        from detent.engine.gates.changed import changed_since, commit_reader  # noqa: PLC0415 - few gates need them
        from detent.engine.gates.start_files import present_files  # noqa: PLC0415

        present = present_files(self._moments(None))
        if against != START:
            return changed_since(self._base, present, commit_reader(self._base, against))
        return changed_since(self._base, present, self.start_files().content)

    def present(self) -> frozenset[str]:
        from detent.engine.gates.start_files import present_files  # noqa: PLC0415 - few gates need them

        return frozenset(present_files(self._moments(None)))

    def changed_files(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """The files of these names that are not as they were at the start of the session."""
        from detent.engine.gates.start_files import present_files  # noqa: PLC0415 - few gates need them

        return self.start_files().changed(present_files(self._moments(None)), patterns)

    def has_new_tests(self) -> bool:
        return self.start_files().has_new_tests(self._moments(None))

    def baseline(self, session: Session, gate: Gate, command: str) -> KnownTests:
        """Run the command of a gate; the tests that it tried. Raises `Refused` if they cannot be counted."""
        from detent.core.testrun.verdict import judge  # noqa: PLC0415 - only this needs it

        environment = environment_of(session, gate, self._place, os.environ, {})
        ran = self.run_command(command, environment.variables, files=gate.report_files)
        suite = gate.suite_of(ran)
        if suite is not None:
            return KnownTests(count=suite.counts.passed, names=self.keep_names(suite.tried))
        counts = judge(ran.output, ran.exit_code).counts
        if counts is None:
            raise Refused(
                f"the tests of `{command}` cannot be counted: {ran.problem or f'exit code {ran.exit_code}'}",
                way_out="run the command yourself and see what it prints",
            )
        return KnownTests(count=counts.passed)

    def keep_names(self, names: frozenset[str]) -> str:
        """Store a list of tests; its digest."""
        data = msgspec.json.encode(sorted(names))
        digest = content_name(data)
        with self._store.lock(PROJECT):
            self._store.put(self._name(EVIDENCE, digest), data)
        return digest

    def names(self, digest: str) -> frozenset[str]:
        """The stored list of tests; `Corrupt` if it is gone or changed."""
        data = self._store.get(self._name(EVIDENCE, digest))
        if data is None or not is_intact(digest, data):
            raise Corrupt(
                f"the list of tests {digest} of {self._session} is gone or was changed",
                way_out="as a person, detent gate baseline tests -m WHY",
            )
        return frozenset(msgspec.json.decode(data, type=list[str]))

    def selection(self, command: str) -> str | None:
        """The argument with which a command runs only a part of the tests."""
        from detent.core.testrun.whole import selection  # noqa: PLC0415 - few gates need it

        return selection(command, self._base)

    def retake(self, session: Session, moment: "Moment | None", *, locked: bool = False) -> str | None:
        """Store the protected files as they are now; their digest, or None if they have not changed.

        `locked`: the caller holds PROJECT.
        """
        from detent.engine.gates.protected import ProtectedFiles  # noqa: PLC0415 - few phases rewrite tests

        workflow = session.workflow
        patterns, commands = protected_patterns(workflow), protecting_commands(workflow)
        kept = ProtectedFiles.take(moment or self._moments(None), patterns, commands)
        digest, data = kept.encode()
        if digest == session.now_protected:
            return None
        with nullcontext() if locked else self._store.lock(PROJECT):
            self._store.put(self._name(PROTECTED, digest), data)
        return digest

    def _protected(
        self, session: Session, digest: str, accepted: Collection[str], roles: Collection[Role] = tuple(Role)
    ) -> "tuple[ProtectedFiles, ProtectedChanges, Moment]":
        """The protected files of that digest, their changes, and the moment of these; `Corrupt` if they are damaged."""
        from detent.engine.gates.protected import ProtectedFiles  # noqa: PLC0415 - only tests are protected

        name = self._name(PROTECTED, digest)
        data, moment = self._store.get(name), self._moments(None)
        if data is None:
            raise Corrupt(f"the protected tests are gone: {self._store.location(name)}")
        if not is_intact(digest, data):
            raise Corrupt(f"the protected tests are damaged: {self._store.location(name)} is not what was recorded")
        kept = ProtectedFiles.decode(data)
        patterns = protected_patterns(session.workflow)
        return kept, kept.changes(moment, patterns, accepted=accepted, only=roles), moment

    def changed_settings(self, session: Session, digest: str, accepted: Collection[str]) -> tuple[str, ...]:
        """The settings of test runners that are not as they were."""
        _, changes, _ = self._protected(session, digest, accepted, (Role.SETTINGS, Role.SHARED))
        return tuple(sorted(itertools.chain(*changes)))

    def _complete(
        self, gate: Gate, receipt: Receipt, before: FileDigests | None = None, *, locked: bool = False
    ) -> Receipt:
        """The receipt with the digest of the files that it rests on, and with the account and the host of the run."""
        inputs = None if gate.inputs is None else self._record_inputs(gate.inputs, before, locked=locked)
        return msgspec.structs.replace(receipt, inputs=inputs, account=account(), host=os.uname().nodename)

    def _record_inputs(self, patterns: Iterable[str], before: FileDigests | None, *, locked: bool) -> str:
        """The digest of the input files; of one that changed during the run, as it was before.

        They are stored: the checkpoint that follows finds them hashed.
        """
        digests = file_digests(self._moments(OWNER), patterns, also=before or ())
        digest, data = encode_digests({path: (before or {}).get(path, now) for path, now in digests.items()})
        with nullcontext() if locked else self._store.lock(PROJECT):
            self._store.put(self._name(EVIDENCE, digest), data)
        return digest

    def _before(self, session: Session, patterns: Iterable[str]) -> FileDigests:
        """The input files before a run, with those that an ignore rule hides: files of the start, and code."""
        from detent.engine.gates.protected import ignored_beside  # noqa: PLC0415 - only a run needs it

        moment = self._moments(OWNER)
        look = moment.look(Request())
        hidden = set(filter(is_code_name, ignored_beside(self._base, {path for path in look.rows if look.has(path)})))
        first = self._checkpoints.first(self._session)
        if first is not None:
            hidden.update(self._checkpoints.files(first.event.tree.manifest))
        return file_digests(moment, patterns, also=hidden.difference(session.declared))

    def inputs(self, receipt: Receipt) -> FileDigests | None:
        """The input files of a run; None if it has none, or if what was stored is damaged."""
        return self._recorded(receipt.inputs) if receipt.inputs is not None else None

    def _recorded(self, digest: str) -> FileDigests | None:
        """The input files of a run, empty if they are gone; None if what was stored is damaged."""
        data = self._store.get(self._name(EVIDENCE, digest))
        if data is None:
            return {}
        return _decode_digests(data) if is_intact(digest, data) else None

    def _name(self, kind: str, digest: str) -> str:
        return f"{self._session}/{kind}/{digest}"


def protected_patterns(workflow: Workflow) -> tuple[str, ...]:
    """The patterns of further protected files, of all gates."""
    return tuple(dict.fromkeys(each for phase in workflow.phases for gate in phase.gates for each in gate.protected))


def protecting_commands(workflow: Workflow) -> tuple[str, ...]:
    """The commands of the gates that protect files."""
    gates = (gate for phase in workflow.phases for gate in phase.gates if gate.protects)
    return tuple(dict.fromkeys(line for gate in gates if (line := gate.runnable()) is not None))


def _with_own_code(env: Mapping[str, str], directory: str) -> dict[str, str]:
    """The environment in which Python finds the code of this directory first.

    A package that is installed in place (`pip install -e`) leads to the checkout of the person, whatever directory the
    tests run in.
    """
    own = [each for each in (os.path.join(directory, "src"), directory) if os.path.isdir(each)]
    others = filter(None, env.get("PYTHONPATH", "").split(":"))
    return {**env, "PYTHONPATH": ":".join(dict.fromkeys((*own, *others)))}


def _names_files(session: Session, phase: str) -> bool:
    """Whether a decision at a gate of the phase was signed for files."""
    states = session.phases[phase].gates.values()
    return any(state.approval_tree or any(vote.tree for vote in state.votes.values()) for state in states)


def _package(directory: str) -> str | None:
    """The text of `package.json`, which says what a script runs; None without one."""
    try:
        with open(os.path.join(directory, "package.json"), encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_PACKAGE)
    except OSError:
        return None


def _is_missing(receipt: Receipt) -> bool:
    """Whether a program was missing, so that the caller wants to know what the check did not get."""
    return receipt.result is Result.ERROR and "not found" in (receipt.error or "")


def _missing_program(ran: process.Ran) -> str | None:
    """The sentence that a program inside of a command was not found; None if the command failed for another reason."""
    if not ran.exit_code:
        return None
    lines = [line for line in ran.output.splitlines() if line.strip()][-3:]
    missing = next((line for line in lines if _NOT_FOUND.fullmatch(line)), None)
    return None if missing is None else f"a program was not found: {missing}"
