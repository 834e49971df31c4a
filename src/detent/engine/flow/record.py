"""The record of a task's steps: their progress and outputs, without secrets.

`.process/flow/IMPL-1.json` holds the progress, `.process/flow/IMPL-1/` the outputs. An output is written before its
step counts as finished, and its hash shows whether it changed since.
"""

import hashlib
import os
import re
import socket
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from detent import process
from detent.core.flow.expansion import MAX_VALUE_BYTES
from detent.core.flow.progress import FlowRun, StepRun, StepState, output_text
from detent.core.flow.step import Step
from detent.core.redact.name import is_count, is_nothing
from detent.core.session.slug import slugify
from detent.engine.redact_command import redact_text, redact_tree
from detent.errors import Corrupt, Refused
from detent.store import disk
from detent.store.port import PROJECT

if TYPE_CHECKING:
    from detent.engine.project import Project

FOLDER = ".process/flow"
MAX_OUTPUT_BYTES = 10 * 1024 * 1024
#: Longer than usual, because a step whose progress cannot be written runs twice.
WAIT_S = 60.0
_MIN_SECRET = 4
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
_MASKED = "[redacted:environment]"


class Ended(StrEnum):
    """The end of a run; a run without an end was interrupted, or is running."""

    FINISHED = "finished"
    FAILED = "failed"
    WAITING = "waiting"


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process on this machine, distinguished from a later one with the same id."""

    pid: int
    born: str
    host: str

    @property
    def is_alive(self) -> bool:
        """True if it runs. A process on another machine counts as alive."""
        return self.host != socket.gethostname() or process.born(self.pid) == self.born


def this_process(pid: int) -> Process | None:
    born = process.born(pid)
    return Process(pid=pid, born=born, host=socket.gethostname()) if born is not None else None


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`runner` runs the steps, `group` is the step that runs; `masked` are steps that put out secrets."""

    run: FlowRun
    ended: Ended | None = None
    claim: int | None = None
    runner: Process | None = None
    group: Process | None = None
    masked: tuple[str, ...] = ()

    @property
    def is_running(self) -> bool:
        return self.runner is not None and self.runner.is_alive


class Mask:
    """Redacts the secrets of the environment, and whatever looks like a secret."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = [
            part
            for name, value in environment.items()
            if _SECRET_NAME.search(name)
            for part in (value, *value.splitlines())
            if _is_secret(name, part)
        ]
        self._pattern = re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True))) or r"(?!)")

    def text(self, text: str) -> str:
        return redact_text(self._pattern.sub(_MASKED, text))

    def raw(self, data: bytes) -> bytes:
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def tree(self, value: Any) -> Any:
        return redact_tree(self._tree(value))

    def _tree(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._pattern.sub(_MASKED, value)
        if isinstance(value, dict):
            return {self._tree(key): self._tree(each) for key, each in value.items()}
        return [self._tree(each) for each in value] if isinstance(value, list | tuple) else value


def _is_secret(name: str, value: str) -> bool:
    """False for words such as `true`, for numbers of tokens and for paths of files."""
    if len(value.strip()) < _MIN_SECRET or is_nothing(value):
        return False
    if "TOKEN" in name.upper() and is_count("token", value):
        return False
    return not (os.path.isabs(value) and os.path.exists(value))


class FlowFiles:
    """The files of one task's steps."""

    def __init__(self, project: "Project", session: str, task: str, mask: Mask) -> None:
        self._store = project.store
        self._directory = project.store.directory(f"{session}/{FOLDER}")
        self._mask = mask
        self._name = f"{session}/{FOLDER}/{task}"
        self.task = task

    def load(self) -> Record | None:
        data = self._store.get(f"{self._name}.json")
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=Record)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            way_out = f"remove {self._store.location(self._name + '.json')}; the steps then run from the first"
            raise Corrupt(
                f"the progress of the steps of {self.task} cannot be read: {error}", way_out=way_out
            ) from error

    def take(self, record: Record) -> None:
        """Save the record; `Refused` if another process runs the steps."""
        with self._store.lock(PROJECT, wait_s=WAIT_S):
            other = self.load()
            if other is not None and other.runner is not None and other.is_running and other.runner != record.runner:
                raise Refused(f"the steps of {self.task} are being run by process {other.runner.pid}")
            self._store.put(f"{self._name}.json", self._encoded(record))

    def save(self, record: Record) -> None:
        """Save the progress; outputs have files of their own."""
        with self._store.lock(PROJECT, wait_s=WAIT_S):
            self._store.put(f"{self._name}.json", self._encoded(record))

    def _encoded(self, record: Record) -> bytes:
        steps = tuple(
            msgspec.structs.replace(each, output=None, reason=self._mask.text(each.reason)) for each in record.run.steps
        )
        record = msgspec.structs.replace(record, run=msgspec.structs.replace(record.run, steps=steps))
        return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"

    def write(self, ending: str, data: bytes) -> str:
        """Write one of the files that commands are given; returns its path."""
        path = self.path(ending)
        with self._store.lock(PROJECT, wait_s=WAIT_S), disk.failing_as("write", path, way_out=disk.REBUILDABLE):
            disk.make_directory(os.path.dirname(path))
            disk.replace(path, data)
        return path

    def path(self, ending: str) -> str:
        return os.path.join(self._directory, self.task + ending)

    # Outputs

    def output_path(self, number: int, step: str) -> str:
        return self.path(_ending(number, step, "out"))

    def keep_output(self, number: int, step: str, output: bytes) -> bytes:
        """Write the output of a step without secrets; returns the redacted output."""
        masked = self._mask.raw(output)
        self.write(_ending(number, step, "out"), masked)
        return masked

    def keep_errors(self, number: int, step: str, errors: bytes) -> None:
        if errors:
            self.write(_ending(number, step, "err"), self._mask.raw(errors))

    def keep_failed(self, number: int, step: str, output: bytes) -> None:
        """Write the output of an attempt that did not pass; no reference gets it."""
        if output:
            self.write(_ending(number, step, "failed"), self._mask.raw(output))

    def values(self, run: FlowRun, steps: Iterable[Step]) -> dict[str, str]:
        """The outputs of the finished steps, by name."""
        return {
            step.output_to: self._restored(number, run.of(step.step))
            for number, step in enumerate(steps, 1)
            if step.output_to is not None and run.of(step.step).is_finished
        }

    def _restored(self, number: int, state: StepRun) -> str:
        if state.state is StepState.SKIPPED:
            return ""
        path = self.output_path(number, state.step)
        data = disk.read_if_there(path)
        if data is None or _hash(output_text(data)) != state.output_hash:
            what = "is missing" if data is None else "has changed"
            way_out = f"detent flow resume {self.task} --rerun-from {state.step}"
            raise Corrupt(f"the output of step {state.step!r} of {self.task} {what}", way_out=way_out)
        return value_of(data, path)


def value_of(output: bytes, path: str) -> str:
    """An output as a value for other commands: byte for byte, and cut if it is long."""
    value = output.replace(b"\0", b"").removesuffix(b"\n")
    if len(value) > MAX_VALUE_BYTES:
        mark = f"\n[… cut by detent: this is the beginning of {len(value)} bytes, all of them are in {path}]".encode()
        stop = MAX_VALUE_BYTES - len(mark)
        while value[stop] & 0xC0 == 0x80 and stop > MAX_VALUE_BYTES - len(mark) - 4:
            stop -= 1
        value = value[:stop] + mark
    return value.decode("utf-8", "surrogateescape")


def _ending(number: int, step: str, kind: str) -> str:
    return f"/{number:02d}-{slugify(step)[:60]}.{kind}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
