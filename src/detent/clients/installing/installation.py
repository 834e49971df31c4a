"""The installation of Detent in a client: its parts in files of the project, and a check of them."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import msgspec

from detent.clients.installing import hook_settings, parts, texts
from detent.clients.installing.files import read, resolve
from detent.clients.installing.hook_settings import Groups, HookSettings, Invocation, own_invocation
from detent.clients.installing.parts import Part
from detent.errors import DetentError

ERROR, WARNING = "error", "warning"
AGAIN = "detent init --agent NAME"
#: For a removal, which needs no invocation.
NOTHING_TO_RUN = Invocation("", "")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that keeps an installation from working."""

    client: str
    severity: str
    subject: str
    message: str
    way_out: str


class Installation(Protocol):
    """The interface of a client to `init`, `uninstall` and `doctor`."""

    #: The oldest version of the client that Detent was tried with.
    @property
    def oldest(self) -> tuple[int, ...]: ...

    def parts(self, invocation: Invocation) -> list[Part]:
        """All parts that are installed."""
        ...

    def findings(self, root: str, *, is_recorded: bool, environment: Mapping[str, str]) -> Iterator[Finding] | None:
        """Problems of the installation; None if Detent is not installed in this client.

        `is_recorded`: the manifest names the client. `environment` is empty if nothing outside the project may be read.
        """
        ...


class Checked(NamedTuple):
    """The settings of a project as a client reads them."""

    root: str
    form: HookSettings
    content: dict[str, Any]
    environment: Mapping[str, str]


def instructions_part(path: str) -> Part:
    """The block of instructions in a file of a person."""
    return Part(
        path,
        partial(parts.merge_block, name=path, text=texts.instructions()),
        partial(parts.strip_block, name=path),
    )


class JsonInstallation(NamedTuple):
    """Hooks in a JSON file, a block of text in the client's instructions, and whole files."""

    hooks: HookSettings
    instructions: str
    oldest: tuple[int, ...] = ()
    #: Files by path that belong to Detent as a whole.
    files: Callable[[], dict[str, bytes]] = dict
    #: File and name of each switch that is set against hooks.
    switches: Callable[[Checked], Iterator[tuple[str, str]]] | None = None
    #: Further problems: message and way out.
    problems: Callable[[Checked], Iterator[tuple[str, str]]] | None = None

    def parts(self, invocation: Invocation) -> list[Part]:
        return [
            Part(
                self.hooks.path,
                partial(hook_settings.merge, form=self.hooks, invocation=invocation),
                partial(hook_settings.strip, form=self.hooks),
            ),
            *self._texts(),
        ]

    def findings(self, root: str, *, is_recorded: bool, environment: Mapping[str, str]) -> Iterator[Finding] | None:
        form = self.hooks
        try:
            content = hook_settings.read(read(root, resolve(root, form.path)), form)
        except DetentError as error:
            way_out = (error.way_out or "correct it").removeprefix("nothing was changed; ")
            return iter([self._finding(form.path, error.message, way_out)]) if is_recorded else None
        present = hook_settings.own_groups(content)
        if not present and not is_recorded:
            return None
        return self._problems(Checked(root, form, content, environment), present)

    def _problems(self, checked: Checked, present: Groups) -> Iterator[Finding]:
        yield from self._invocations(present)
        yield from self._entries(present)
        for subject, switch in self.switches(checked) if self.switches else ():
            yield self._finding(subject, f"{switch} switches hooks off", f"remove it from {subject}")
        for message, way_out in self.problems(checked) if self.problems else ():
            yield self._finding(self.hooks.path, message, way_out)
        yield from self._missing_texts(checked.root)

    def _invocations(self, present: Groups) -> Iterator[Finding]:
        started = {own_invocation(h) for groups in present.values() for group in groups for h in group["hooks"]}
        for invocation in sorted(each for each in started if each is not None):
            if not os.access(invocation.python, os.X_OK):
                message = f"the interpreter {invocation.python} does not exist; the hooks do nothing"
                yield self._finding(self.hooks.path, message, AGAIN)
            if not os.path.isfile(invocation.hook):
                message = f"the hook {invocation.hook} does not exist; the client refuses every tool that has a hook"
                yield self._finding(self.hooks.path, message, f"{AGAIN}, or detent uninstall")

    def _entries(self, present: Groups) -> Iterator[Finding]:
        """Compare the entries with those for the interpreter and hook that they name."""
        for event in self.hooks.events:
            groups = present.get(event, [])
            invocation = own_invocation(groups[0]["hooks"][0]) if groups else None
            if invocation is None:
                yield self._finding(self.hooks.path, f"the hook for {event} is missing", AGAIN)
            elif groups != self.hooks.groups(invocation)[event]:
                message = f"the hook for {event} was edited, or is of another version"
                yield self._finding(self.hooks.path, message, f"{AGAIN} restores it", WARNING)

    def _missing_texts(self, root: str) -> Iterator[Finding]:
        for part in self._texts():
            try:
                content = read(root, resolve(root, part.path))
                is_behind = part.merge(content).content != content
            except DetentError as error:
                yield self._finding(part.path, error.message, "correct it by hand", WARNING)
                continue
            if content is None or (part.path == self.instructions and parts.BEGIN not in content):
                yield self._finding(part.path, "Detent's text is missing", AGAIN, WARNING)
            elif is_behind:
                yield self._finding(part.path, "Detent's text is of another version", AGAIN, WARNING)

    def _texts(self) -> list[Part]:
        return [instructions_part(self.instructions)] + [
            Part(path, partial(parts.merge_file, name=path, content=text), partial(parts.strip_file, name=path))
            for path, text in self.files().items()
        ]

    def _finding(self, subject: str, message: str, way_out: str, severity: str = ERROR) -> Finding:
        return Finding(client=self.hooks.client, severity=severity, subject=subject, message=message, way_out=way_out)
