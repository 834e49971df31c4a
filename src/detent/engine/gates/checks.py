"""Runs the checks of gates and gathers the facts that judging needs."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from detent import process
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Facts, RanBy, Receipt, Result
from detent.core.gate.kind import KnownNames, required_paths
from detent.core.session.session import Session
from detent.core.testrun.baseline import KnownTests
from detent.core.testrun.junit import MAX_BYTES
from detent.engine.gates.inputs import FileDigests, changed_files, encode_digests, file_digests, protected_digests
from detent.engine.redact_command import redact_text
from detent.errors import Corrupt, Refused
from detent.store.port import PROJECT, Store

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.objects.universe import Moment

#: Owner of the objects that a check stores.
OWNER = "gate"
TIMEOUT_S = 1_800.0
#: Exit codes of a shell that could not run a command.
_NOT_RUN = {126: "the command cannot be executed", 127: "the command was not found"}
_decode_digests = msgspec.json.Decoder(FileDigests).decode


class GateChecks:
    """The checks of one session in one project."""

    def __init__(self, store: Store, place: "Place", session: str, moments: "Callable[[str | None], Moment]") -> None:
        """`moments` looks at the project's files, and stores what it reads if it is given an owner."""
        self._store = store
        self._moments = moments
        self._base = place.base
        self._session = session

    def facts(self, session: Session, phase: str, now: datetime, moment: "Moment | None" = None) -> Facts:
        """The facts for judging the gates of a phase, of the files at the moment given."""
        moment = moment or self._moments(None)
        gates = session.workflow.by_key[phase].gates if session.gates_apply else ()
        paths = (path for gate in gates for path in required_paths(gate, session.folder))
        exists = frozenset(path for path in paths if os.path.exists(os.path.join(self._base, path)))
        changed = {}
        for gate in gates:
            receipt = _receipt(session, phase, gate)
            if receipt is not None and receipt.inputs is not None and receipt.result is Result.PASSED:
                files = file_digests(moment, gate.inputs or (), declared=session.declared)
                changed[receipt.inputs] = changed_files(self._recorded(receipt.inputs), files)
        return Facts(exists=exists, changed=changed, now=now)

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
        """Run the gate's check now, with `env` besides the environment of this process."""
        before = None if gate.inputs is None else self._digests(gate.inputs)
        try:
            receipt = gate.run(_Runner(self, session, phase, session.phases[phase].protected, env), command)
        except Corrupt as damage:
            receipt = Receipt(result=Result.ERROR, command=command or "", error=damage.message)
        return self._complete(gate, msgspec.structs.replace(receipt, by=by), before)

    def observed(
        self, session: Session, gate: Gate, command: str, output: str, exit_code: int | None
    ) -> Receipt | None:
        """The receipt of a test run that was seen in the agent's shell; None if it is no evidence for the gate.

        `output` is redacted.
        """
        receipt = gate.observe(_Runner(self, session, "", None, None), command, output, exit_code)
        return None if receipt is None else self._complete(gate, receipt)

    def reported(self, *, compliant: bool, note: str) -> Receipt:
        """The receipt of a reviewer's report."""
        if compliant:
            return Receipt(result=Result.PASSED)
        error = redact_text(note)[:200] or None
        return Receipt(result=Result.FAILED, error=error, signature=error)

    def protected_digest(self, gates: Iterable[Gate]) -> str | None:
        """The digest of the protected tests as they are now; none if the gates protect nothing."""
        patterns = _protected_patterns(gates)
        return encode_digests(protected_digests(self._moments(None), patterns))[0] if patterns else None

    def protect(self, gates: Iterable[Gate]) -> str | None:
        """Keep the protected tests as they are now; the digest of their manifest."""
        patterns = _protected_patterns(gates)
        if not patterns:
            return None
        digests = protected_digests(self._moments(None), patterns)
        digest, data = encode_digests(digests)
        with self._store.lock(PROJECT):
            for path, content_digest in digests.items():
                with open(os.path.join(self._base, path), "rb") as file:
                    self._store.put(self._kept_name(content_digest), file.read())
            self._store.put(self._name("evidence", digest), data)
        return digest

    def run_command(self, command: str, env: Mapping[str, str] | None, cwd: str | None = None) -> process.Ran:
        """Run a command with secrets removed from its output, before anything reads it.

        If it runs pytest, however deep, a report names the tests. The report is outside of the project.
        """
        with tempfile.TemporaryDirectory(prefix="detent-report-") as directory:
            path = os.path.join(directory, "junit.xml")
            asked = {**(env or {}), "PYTEST_ADDOPTS": f"-o junit_family=xunit1 --junitxml={path}"}
            ran = process.run(command, cwd=cwd or self._base, timeout_s=TIMEOUT_S, env=asked)
            report = _report(path)
        problem = ran.problem or _NOT_RUN.get(ran.exit_code or 0)
        return msgspec.structs.replace(ran, output=redact_text(ran.output), problem=problem, report=report)

    def run_protected(self, command: str, baseline: str, env: Mapping[str, str] | None) -> process.Ran:
        """Run a command in a copy of the project that has the tests of `baseline`."""
        kept = {path: self._store.get(self._kept_name(digest)) for path, digest in self._recorded(baseline).items()}
        if self._store.get(self._name("evidence", baseline)) is None or None in kept.values():
            return process.Ran(exit_code=None, output="", duration_s=0.0, problem="the protected tests are gone")
        with tempfile.TemporaryDirectory(prefix="detent-protected-") as directory:
            copy = os.path.join(directory, "project")
            # Bytecode of the edited tests could stand in for the protected ones.
            left_out = shutil.ignore_patterns(".git", ".workflow", "__pycache__")
            shutil.copytree(self._base, copy, symlinks=True, ignore=left_out)
            for path, content in kept.items():
                target = os.path.join(copy, path)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                # A link may lead out of the copy, to the very file that is in use.
                if os.path.lexists(target):
                    os.unlink(target)
                with open(target, "wb") as file:
                    file.write(content or b"")
            return self.run_command(command, env, copy)

    def baseline(self, command: str) -> KnownTests:
        """Run the command of a gate; the tests that it tried. Raises `Refused` if they cannot be counted."""
        from detent.core.testrun.junit import Unreadable, read_junit  # noqa: PLC0415 - only this needs it
        from detent.core.testrun.verdict import judge  # noqa: PLC0415

        ran = self.run_command(command, None)
        if ran.report is not None:
            with suppress(Unreadable):
                suite = read_junit(ran.report)
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
        digest = hashlib.sha256(data).hexdigest()[:32]
        with self._store.lock(PROJECT):
            self._store.put(self._name("evidence", digest), data)
        return digest

    def names(self, digest: str) -> frozenset[str]:
        """The stored list of tests; `Corrupt` if it is gone or changed."""
        data = self._store.get(self._name("evidence", digest))
        if data is None or hashlib.sha256(data).hexdigest()[:32] != digest:
            raise Corrupt(
                f"the list of tests {digest} of {self._session} is gone or was changed",
                way_out="as a person, detent gate baseline tests -m WHY",
            )
        return frozenset(msgspec.json.decode(data, type=list[str]))

    def selection(self, command: str) -> str | None:
        """The argument with which a command runs only a part of the tests."""
        from detent.core.testrun.whole import selection  # noqa: PLC0415 - few gates need it

        return selection(command, self._base)

    def _complete(self, gate: Gate, receipt: Receipt, before: FileDigests | None = None) -> Receipt:
        """The receipt with the digest of the files that it rests on."""
        inputs = None if gate.inputs is None else self._record_inputs(gate.inputs, before)
        return msgspec.structs.replace(receipt, inputs=inputs)

    def _record_inputs(self, patterns: Iterable[str], before: FileDigests | None) -> str:
        """The digest of the input files; of one that changed during the run, as it was before."""
        digests = self._digests(patterns)
        digest, data = encode_digests({path: (before or {}).get(path, now) for path, now in digests.items()})
        with self._store.lock(PROJECT):
            self._store.put(self._name("evidence", digest), data)
        return digest

    def _digests(self, patterns: Iterable[str]) -> FileDigests:
        """The input files as they are now, stored: the checkpoint that follows finds them hashed."""
        return file_digests(self._moments(OWNER), patterns)

    def _recorded(self, digest: str) -> FileDigests:
        data = self._store.get(self._name("evidence", digest))
        return _decode_digests(data) if data is not None else {}

    def _name(self, kind: str, digest: str) -> str:
        return f"{self._session}/{kind}/{digest}"

    def _kept_name(self, content_digest: str) -> str:
        # The digest of a link holds its target, which is no file name.
        return self._name("protected", hashlib.sha256(content_digest.encode()).hexdigest()[:32])


class _Runner(NamedTuple):
    """The `CheckRunner` of one check."""

    checks: GateChecks
    session: Session
    phase: str
    #: Manifest of the protected files of the phase.
    protected: str | None
    env: Mapping[str, str] | None

    def run(self, command: str) -> process.Ran:
        return self.checks.run_command(command, self.env)

    def run_protected(self, command: str) -> process.Ran | None:
        return None if self.protected is None else self.checks.run_protected(command, self.protected, self.env)

    def known(self, command: str) -> KnownNames | None:
        baseline = self.session.baseline
        tests = baseline.tests.get(command)
        if tests is None:
            return None
        names = None if tests.names is None else self.checks.names(tests.names)
        return KnownNames(tests.count, names)

    def accepted(self) -> frozenset[str]:
        return frozenset(self.session.baseline.accepted)

    def keep(self, names: frozenset[str]) -> str:
        return self.checks.keep_names(names)

    def rewrites_tests(self) -> bool:
        return self.session.workflow.by_key[self.phase].rewrites_tests

    def is_protected(self) -> bool:
        return self.protected is not None

    def selection(self, command: str) -> str | None:
        return self.checks.selection(command)


def _report(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError:
        return None


def _protected_patterns(gates: Iterable[Gate]) -> list[str]:
    return [pattern for gate in gates for pattern in gate.protected]


def _receipt(session: Session, phase: str, gate: Gate) -> Receipt | None:
    state = session.phases[phase].gates.get(gate_name(gate))
    return state.receipt if state else None
