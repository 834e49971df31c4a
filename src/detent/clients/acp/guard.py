"""The guard of the hooks, for clients that call no hook: the adapter asks the same hook process about each call."""

import os
import sys
import tempfile
from collections.abc import Mapping

import msgspec

from detent import process
from detent.clients.installing.plans import HOOK
from detent.engine.agents.environment import SOCKET

GUARD_S = 30.0
_CLIENT = "acp"


class _Reply(msgspec.Struct, frozen=True):
    deny: str = ""
    tell: str = ""


class Guard:
    """Runs outside of the sandbox, in the name of the agent: with the environment that the runner gave to the turn."""

    def __init__(self, env: Mapping[str, str], cwd: str) -> None:
        self._env = {name: value for name, value in {**os.environ, **env}.items() if name != SOCKET}
        self._cwd = cwd

    def refusal(self, payload: Mapping[str, object]) -> str | None:
        """The reason to deny a call, before it is made or afterwards. A guard that cannot be asked denies."""
        try:
            return self._reply({**payload, "hook_event_name": "PreToolUse"}).deny or None
        except (OSError, ValueError) as error:
            return f"Detent could not judge this call: {error}; a person should run: detent doctor"

    def after(self, payload: Mapping[str, object], *, succeeded: bool) -> str:
        """Tell the session of a call that was made, and look for drift. Returns a text for people."""
        event = "PostToolUse" if succeeded else "PostToolUseFailure"
        try:
            return self._reply({**payload, "hook_event_name": event}).tell
        except (OSError, ValueError) as error:
            return f"Detent could not look for drift after this call: {error}"

    def _reply(self, payload: Mapping[str, object]) -> _Reply:
        with tempfile.NamedTemporaryFile(prefix="detent-call-") as file:
            file.write(msgspec.json.encode(payload))
            file.flush()
            command = [sys.executable, "-I", "-S", HOOK, _CLIENT]
            ran = process.run(command, cwd=self._cwd, timeout_s=GUARD_S, env=self._env, input_file=file.name)
        if ran.exit_code != 0:
            raise OSError(ran.problem or f"the hook ended with exit code {ran.exit_code}")
        return msgspec.json.decode(ran.output, type=_Reply) if ran.output.strip() else _Reply()
