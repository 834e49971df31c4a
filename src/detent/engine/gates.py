"""Gathering facts and running checks: the part of judging that touches the world."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.core import testrun
from detent.core.evidence import Facts, Receipt, Result
from detent.core.gate import Artifacts, Command, Constitution, Gate, Runnable, Tests, gate_name
from detent.core.judge import artifact_paths
from detent.core.redact import redact
from detent.core.runner import runner
from detent.core.session import Session
from detent.core.shell import simple_commands
from detent.engine.inputs import FileDigests, changed_files, encode_digests, file_digests, protected_digests
from detent.errors import Refused
from detent.store.port import PROJECT, Store

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.objects.universe import Moment

#: Owner of the objects that a check stores.
OWNER = "gate"
TIMEOUT_S = 1_800.0
TAIL_CHARS = 2_000
#: Exit codes of a shell that could not run what it was asked to.
_NOT_RUN = {126: "the command cannot be executed", 127: "the command was not found"}
_decode_digests = msgspec.json.Decoder(FileDigests).decode


class Checks:
    """The checks of one session in one project."""

    def __init__(self, store: Store, place: "Place", session: str, moments: "Callable[[str | None], Moment]") -> None:
        """`moments` looks at the project's files, and stores what it reads if it is given an owner."""
        self._store = store
        self._moments = moments
        self._base = place.base
        self._session = session
        self._env: Mapping[str, str] | None = None

    def facts(self, session: Session, phase: str, now: datetime, moment: "Moment | None" = None) -> Facts:
        """What judging the phase's gates needs to know, of the files at the moment given."""
        moment = moment or self._moments(None)
        gates = session.workflow.by_key[phase].gates if session.gates_apply else ()
        paths = [path for gate in gates if isinstance(gate, Artifacts) for path in artifact_paths(gate, session.folder)]
        there = frozenset(path for path in paths if os.path.exists(os.path.join(self._base, path)))
        changed = {}
        for gate in gates:
            receipt = _receipt(session, phase, gate)
            if receipt is not None and receipt.inputs is not None and receipt.result is Result.PASSED:
                changed[receipt.inputs] = self._changed(gate, receipt.inputs, moment, session)
        return Facts(exists=there, changed=changed, now=now)

    def run(
        self,
        session: Session,
        phase: str,
        gate: Gate,
        command: str | None,
        env: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Run the gate's check now, with `env` besides the environment of this process."""
        self._env = env
        match gate:
            case Tests():
                return self._run_tests(session, phase, gate, _test_command(gate, command))
            case Command():
                line = _own_command(gate, gate.command, command)
                before = self._digests(gate.inputs)
                ran = self._ran(line, self._base)
                result = Result.PASSED if ran.exit_code == 0 else Result.FAILED
                return self._receipt(gate, line, ran, before, result=Result.ERROR if ran.problem else result)
            case Constitution():
                return self._run_articles(gate)
            case _:
                raise Refused("this gate is not decided by a run")

    def observed(self, gate: Tests, command: str, output: str, exit_code: int | None) -> Receipt:
        """A test run that was seen in the agent's shell."""
        output = redact(output)
        judged = testrun.judge(output, exit_code)
        return Receipt(
            result=Result(judged.result),
            command=redact(command),
            exit_code=exit_code,
            tail=output[-TAIL_CHARS:],
            error=judged.error,
            signature=judged.signature,
            coverage=judged.coverage,
            inputs=self._record_inputs(gate.inputs),
            observed=True,
        )

    def reported(self, *, compliant: bool, note: str) -> Receipt:
        """What a reviewer found, in its words."""
        said = redact(note)[:200] or None
        if compliant:
            return Receipt(result=Result.PASSED)
        return Receipt(result=Result.FAILED, error=said, signature=said)

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

    def _ran(self, command: str, cwd: str) -> process.Ran:
        """Secrets are taken out before anything is read from the output, so that no part of one can end up on disk."""
        ran = process.run(command, cwd=cwd, timeout_s=TIMEOUT_S, env=self._env)
        problem = ran.problem or _NOT_RUN.get(ran.exit_code or 0)
        return msgspec.structs.replace(ran, output=redact(ran.output), problem=problem)

    def _run_tests(self, session: Session, phase: str, gate: Tests, command: str) -> Receipt:
        before = self._digests(gate.inputs)
        ran = self._ran(command, self._base)
        if ran.problem:
            return self._receipt(gate, command, ran, before, result=Result.ERROR)
        # Only a declared command is trusted to fail when its tests do; of any other the output has to tell.
        judged = testrun.judge(ran.output, ran.exit_code, trusted_exit=gate.command is not None)
        receipt = self._receipt(gate, command, ran, before, result=Result(judged.result))
        baseline = session.phases[phase].protected
        protected = None
        if gate.protected and baseline is not None and receipt.result is Result.PASSED:
            protected = self._run_protected(gate, command, baseline)
        return msgspec.structs.replace(
            receipt,
            error=judged.error or receipt.error,
            signature=judged.signature,
            coverage=judged.coverage,
            protected=protected,
        )

    def _run_protected(self, gate: Tests, command: str, baseline: str) -> Result:
        """The command in a copy of the project that has the tests as they were when the phase began."""
        kept = {path: self._store.get(self._kept_name(digest)) for path, digest in self._recorded(baseline).items()}
        if self._store.get(self._name("evidence", baseline)) is None or None in kept.values():
            return Result.ERROR
        with tempfile.TemporaryDirectory(prefix="detent-protected-") as directory:
            copy = os.path.join(directory, "project")
            shutil.copytree(self._base, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".workflow"))
            for path, content in kept.items():
                target = os.path.join(copy, path)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                # A link may lead out of the copy, to the very file that is in use.
                if os.path.lexists(target):
                    os.unlink(target)
                with open(target, "wb") as file:
                    file.write(content or b"")
            ran = self._ran(command, copy)
        if ran.problem:
            return Result.ERROR
        return Result(testrun.judge(ran.output, ran.exit_code, trusted_exit=gate.command is not None).result)

    def _run_articles(self, gate: Constitution) -> Receipt:
        """Every article that carries a check; those without one are for a person or a reviewer to report."""
        runs = {
            article: self._ran(line, self._base) for article, line in gate.checks.items() if article in gate.articles
        }
        if not runs:
            raise Refused(
                "none of the articles has a check to run", way_out="detent gate report constitution --compliant"
            )
        violated = tuple(article for article, ran in runs.items() if ran.exit_code != 0)
        unchecked = tuple(article for article in gate.articles if article not in runs)
        failing = runs[violated[0]] if violated else next(iter(runs.values()))
        result = Result.FAILED if violated else Result.UNCLEAR if unchecked else Result.PASSED
        error = f"article {violated[0]} does not hold" if violated else None
        if result is Result.UNCLEAR:
            error = f"articles {', '.join(unchecked)} have no check; report them"
        receipt = self._receipt(gate, "; ".join(gate.checks.values()), failing, {}, result=result)
        return msgspec.structs.replace(receipt, error=error, signature=",".join(violated), violated=violated)

    def _receipt(
        self, gate: Runnable, command: str, ran: process.Ran, before: FileDigests, *, result: Result
    ) -> Receipt:
        last = next((line for line in reversed(ran.output.splitlines()) if line.strip()), "")
        return Receipt(
            result=result,
            command=redact(command),
            exit_code=ran.exit_code,
            duration_s=round(ran.duration_s, 3),
            tail=ran.output[-TAIL_CHARS:],
            error=None if result is Result.PASSED else (ran.problem or last)[:200],
            signature=None if result is Result.PASSED else (ran.problem or last)[:200],
            inputs=None if isinstance(gate, Constitution) else self._record_inputs(gate.inputs, before),
        )

    def _record_inputs(self, patterns: Iterable[str], before: FileDigests | None = None) -> str:
        """The digest of the input files; of one that changed during the run, as it was before."""
        digests = self._digests(patterns)
        digest, data = encode_digests({path: (before or {}).get(path, now) for path, now in digests.items()})
        with self._store.lock(PROJECT):
            self._store.put(self._name("evidence", digest), data)
        return digest

    def _changed(self, gate: Gate, digest: str, moment: "Moment", session: Session) -> tuple[str, ...]:
        patterns = gate.inputs if isinstance(gate, Tests | Command) else ()
        now = file_digests(moment, patterns, declared=session.declared)
        return changed_files(self._recorded(digest), now)

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


def _own_command(gate: Gate, declared: str, given: str | None) -> str:
    if given not in (None, declared):
        name = gate_name(gate)
        raise Refused(f"gate {name} is decided by its own command: {declared}", way_out=f"detent gate run {name}")
    return declared


def _test_command(gate: Tests, given: str | None) -> str:
    if gate.command is not None:
        return _own_command(gate, gate.command, given)
    name = gate_name(gate)
    if given is None:
        raise Refused(f"gate {name} has no command", way_out=f"detent gate run {name} -- YOUR TEST COMMAND")
    if not any(runner(words) for words in simple_commands(given)):
        raise Refused(
            f"{redact(given)[:200]} is no test runner that Detent knows",
            way_out=f"declare it as the command of gate {name} in detent.toml, for the next session",
        )
    return given


def _protected_patterns(gates: Iterable[Gate]) -> list[str]:
    return [pattern for gate in gates if isinstance(gate, Tests) for pattern in gate.protected]


def _receipt(session: Session, phase: str, gate: Gate) -> Receipt | None:
    state = session.phases[phase].gates.get(gate_name(gate))
    return state.receipt if state else None
