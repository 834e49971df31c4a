"""The guard of the hooks, for clients that call no hook: the adapter asks the same hook process about each call."""

import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec

from detent import process
from detent.clients.installing.plans import HOOK
from detent.engine.agents.environment import SOCKET

GUARD_S = 30.0
#: Calls that wait for a look.
MAX_LOOKS = 50
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

    def look(self, conversation: str) -> str:
        """Look for drift that belongs to no call that is known. The first look notes the settings to compare with."""
        seen = {"session_id": conversation, "cwd": self._cwd, "acp": {"kind": "think"}}
        return self.after(seen, succeeded=True)

    def _reply(self, payload: Mapping[str, object]) -> _Reply:
        with tempfile.NamedTemporaryFile(prefix="detent-call-") as file:
            file.write(msgspec.json.encode(payload))
            file.flush()
            command = [sys.executable, "-I", "-S", HOOK, _CLIENT]
            ran = process.run(command, cwd=self._cwd, timeout_s=GUARD_S, env=self._env, input_file=file.name)
        if ran.exit_code != 0:
            raise OSError(ran.problem or f"the hook ended with exit code {ran.exit_code}")
        return msgspec.json.decode(ran.output, type=_Reply) if ran.output.strip() else _Reply()


class Afterwards:
    """Looks at calls that were made, one after the other and beside the conversation.

    An agent may make many calls at once, and what it tells next must not wait for them: its usage may end the turn.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._looks: deque[Future[list[str]]] = deque()

    def add(self, look: Callable[[], list[str]]) -> None:
        """Queue a look. An agent that makes calls faster than they are looked at is slowed down."""
        if len(self._looks) >= MAX_LOOKS:
            self._looks[-MAX_LOOKS].result()
        self._looks.append(self._thread.submit(look))

    def notices(self, *, wait: bool = False) -> Iterator[str]:
        """The texts for people of the looks that are over, or with `wait` of all."""
        while self._looks and (wait or self._looks[0].done()):
            yield from self._looks.popleft().result()
