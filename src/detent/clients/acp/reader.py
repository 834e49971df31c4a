"""One turn of an agent that speaks ACP: begins or resumes a conversation, sends the prompt, answers what it is asked.

The order is fixed: `initialize`, a conversation, its mode, its title, the prompt. The guard is asked about each tool
call before it is permitted, and drift is looked for after it.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from detent import __version__
from detent.clients.acp.agents import CLAUDE_META, UNKNOWN, Live, command_words, known_agent, recorded_tokens
from detent.clients.acp.calls import LOOKING, ToolCall
from detent.clients.acp.guard import Afterwards, Guard
from detent.clients.acp.permission import Permissions
from detent.clients.acp.usage import TurnUsage
from detent.clients.adapter.agent import Turn
from detent.clients.adapter.driven import TalkingReader
from detent.clients.adapter.failure import crashed, failed
from detent.clients.adapter.stream import Calls, Tail, decoded, finished
from detent.clients.dialect import fields_of, text_of
from detent.clients.installing.hook_settings import HOOK_TAIL
from detent.clients.registry import CLIENTS
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished, Said, Started, Used
from detent.core.run.result_block import result_block
from detent.core.session.phase_state import Tokens
from detent.process.conversation import Exited

PROTOCOL = 1
#: Seconds for the agent to start a conversation, to answer a cancellation, and to leave after the turn.
START_S, CANCEL_S, LEAVE_S = 120.0, 10.0, 3.0
#: The most prompts of a turn that tell the agent why its calls were denied.
MAX_EXPLANATIONS = 3
MAX_DENIALS = 20
#: The calls of a turn that are remembered, with all that the agent told of them. One that is forgotten did not ask.
MAX_CALLS = 1_000
#: The way out where the program is no agent.
_CORRECT = "correct command under [agents] in detent.toml"
_AUTH_REQUIRED, _NO_METHOD = -32000, -32601
_HTTP = range(400, 600)
_LEAST_COST = 0.000001
_MAX_SETTINGS = 1024 * 1024


class Message(msgspec.Struct, frozen=True):
    """A request, a notification or an answer of JSON-RPC."""

    id: int | str | None = None
    method: str = ""
    params: Any = None
    result: Any = None
    error: Any = None


_MESSAGE = msgspec.json.Decoder(Message)
Handler = Callable[[Message], Iterable[AgentEvent]]


class AcpReader(TalkingReader):
    def __init__(self, settings: AgentSettings, turn: Turn) -> None:
        super().__init__()
        self._settings, self._turn = settings, turn
        self._title = f"{turn.session} {turn.phase}"
        self._program = (command_words(settings) or ["the agent"])[0]
        self._guard = Guard({**settings.env, **turn.env}, turn.cwd)
        self._permissions = Permissions(settings.allow, turn.cwd, sandboxed=turn.sandbox is not None)
        self._agent, self._version, self._has_answered = UNKNOWN, "", False
        self._can: dict[str, Any] = {}
        self._conversation, self._is_prompting = "", False
        self._usage, self._before = TurnUsage(Live.NONE), Tokens()
        self._calls, self._tools = Calls(), dict[str, ToolCall]()
        self._afterwards = Afterwards()
        self._message_id, self._saying = "", Tail()
        self._last_words = self._notice = ""
        #: Why calls were denied, as far as the agent has not been told.
        self._denials: list[str] = []
        self._explanations = 0
        self._end: Finished | Failed | None = None
        self._began_s = time.monotonic()
        self._cancelled_s: float | None = None
        self._ended_s = 0.0
        self._is_late = False
        self._waiting: dict[int | str | None, Handler] = {}
        self._number = 0
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": "detent", "title": "Detent", "version": __version__}
        self._ask(
            "initialize",
            {"protocolVersion": PROTOCOL, "clientCapabilities": capabilities, "clientInfo": client},
            self._initialized,
        )

    # The reader of a turn

    def line(self, line: bytes) -> Iterable[AgentEvent]:
        message = decoded(_MESSAGE, line)
        if message is None or self._end is not None:
            return ()
        return (*self._noticed(), *self._handled(message))

    def _handled(self, message: Message) -> Iterable[AgentEvent]:
        if message.method:
            return self._notified(message) if message.id is None else self._asked(message)
        self._has_answered = True
        handler = self._waiting.pop(message.id, None)
        return handler(message) if handler is not None else ()

    def tick(self, *, stopping: bool) -> bool:
        now_s = time.monotonic()
        if self._end is not None:
            return now_s - self._ended_s > LEAVE_S
        self._is_late = self._is_late or now_s - self._began_s > self._turn.timeout_s
        if not self._is_prompting:
            if stopping or self._is_late:
                self._conclude(self._stopped())
            elif now_s - self._began_s > START_S:
                self._conclude(Failed(failure=Failure.ERROR, reason=f"{self._program} did not start in {START_S:g} s"))
            return False
        if (stopping or self._is_late) and self._cancelled_s is None:
            self._cancelled_s = now_s
            self._send(method="session/cancel", params={"sessionId": self._conversation})
        if self._cancelled_s is not None and now_s - self._cancelled_s > CANCEL_S:
            self._conclude(self._stopped())
            return True
        return False

    def unfinished(self) -> Iterable[AgentEvent]:
        self._drifted()
        return (*self._said(), *self._calls.unfinished(), *self._recorded(), *self._noticed(wait=True))

    def end(self, exited: Exited) -> Iterable[AgentEvent]:
        if self._end is None:
            self._end = self._stopped() if self._cancelled_s is not None else self._crashed(exited)
        return (*self.unfinished(), self._end)

    def _crashed(self, exited: Exited) -> Failed:
        """A program that ends well and never answered is no agent; another try does not help."""
        end = crashed(self._program, exited)
        if self._has_answered or exited.exit_code != 0:
            return end
        return Failed(failure=Failure.REFUSED, reason=f"{end.reason}, so it does not speak ACP; {_CORRECT}")

    # Messages

    def _send(self, **fields: Any) -> None:
        self.input.write(msgspec.json.encode({"jsonrpc": "2.0", **fields}) + b"\n")

    def _ask(self, method: str, params: dict[str, Any], handler: Handler) -> None:
        self._number += 1
        self._waiting[self._number] = handler
        self._send(id=self._number, method=method, params=params)

    def _conclude(self, end: Finished | Failed) -> None:
        self._end, self._ended_s, self.is_over = end, time.monotonic(), True
        self.input.close()

    def _stopped(self) -> Failed:
        if self._is_late:
            return Failed(failure=Failure.TIMEOUT, reason=f"ended after {self._turn.timeout_s:g} s")
        return Failed(failure=Failure.STOPPED, reason="stopped")

    # The beginning of a turn

    def _initialized(self, answer: Message) -> Iterable[AgentEvent]:
        if (problem := _problem(answer)) is not None:
            return self._fail(f"{self._program} does not speak ACP: {problem}; {_CORRECT}", Failure.REFUSED)
        result = fields_of(answer.result)
        if result.get("protocolVersion") != PROTOCOL:
            version = result.get("protocolVersion")
            reason = f"{self._program} speaks version {version} of ACP, Detent {PROTOCOL}; {_CORRECT}"
            return self._fail(reason, Failure.REFUSED)
        info = fields_of(result.get("agentInfo"))
        name = text_of(info.get("name"))
        self._agent, self._can = known_agent(name, self._settings), fields_of(result.get("agentCapabilities"))
        self._version = f"{name} {text_of(info.get('version'))}".strip()
        resume = self._resuming()
        if resume is None:
            self._begin()
        else:
            self._before = self._record(self._turn.conversation)
            self._ask(resume, {"sessionId": self._turn.conversation, **self._session()}, self._resumed)
        return ()

    def _resuming(self) -> str | None:
        """The method that continues the conversation of the turn; None if there is none, or the agent cannot."""
        if not self._turn.conversation:
            return None
        if fields_of(self._can.get("sessionCapabilities")).get("resume") is not None:
            return "session/resume"
        return "session/load" if self._can.get("loadSession") is True else None

    def _session(self) -> dict[str, Any]:
        meta = dict(self._agent.meta)
        if (known := fields_of(meta.get(CLAUDE_META))) != {}:
            options = {**fields_of(known.get("options")), "title": self._title}
            if self._turn.max_cost is not None:
                options["maxBudgetUsd"] = max(self._turn.max_cost, _LEAST_COST)
            meta[CLAUDE_META] = {**known, "options": options}
        return {"cwd": self._turn.cwd, "mcpServers": [], **({"_meta": meta} if meta else {})}

    def _begin(self) -> None:
        self._before = Tokens()
        self._ask("session/new", self._session(), self._begun)

    def _resumed(self, answer: Message) -> Iterable[AgentEvent]:
        problem = _problem(answer)
        if problem is None:
            return self._in_conversation(self._turn.conversation, answer, is_new=False)
        self._begin()
        return (Said(text=f"the conversation could not be continued, a new one begins: {problem}"),)

    def _begun(self, answer: Message) -> Iterable[AgentEvent]:
        conversation = text_of(fields_of(answer.result).get("sessionId"))
        if (problem := _problem(answer)) is not None or not conversation:
            return self._fail(problem or f"{self._program} began no conversation")
        return self._in_conversation(conversation, answer, is_new=True)

    def _in_conversation(self, conversation: str, answer: Message, *, is_new: bool) -> Iterator[AgentEvent]:
        self._conversation, result = conversation, fields_of(answer.result)
        self._usage = TurnUsage(self._agent.live, is_new=is_new)
        model = text_of(fields_of(result.get("models")).get("currentModelId"))
        yield Started(conversation=conversation, model=model, version=self._version)
        self._drifted()
        yield from self._noticed(wait=True)
        modes = fields_of(result.get("modes"))
        wanted = self._wanted_mode(modes)
        if wanted is None:
            yield from self._fail(self._no_mode(modes), Failure.REFUSED)
        elif wanted:
            self._ask("session/set_mode", {"sessionId": conversation, "modeId": wanted}, self._in_mode)
        else:
            self._name()

    def _wanted_mode(self, modes: dict[str, Any]) -> str | None:
        """The mode for this turn; empty to keep the present one, None if the agent has none in which it asks."""
        offered = _mode_ids(modes)
        sandboxed = self._turn.sandbox is not None
        wanted = self._settings.mode or (sandboxed and self._agent.inside) or self._agent.asks
        if wanted in offered:
            return wanted
        return "" if sandboxed and not self._settings.mode else None

    def _no_mode(self, modes: dict[str, Any]) -> str:
        offered = ", ".join(_mode_ids(modes)) or "none"
        wanted = f"has no mode {self._settings.mode}" if self._settings.mode else "has no mode that is known to ask"
        return (
            f"{self._version or self._program} {wanted} before every write and shell call (its modes: {offered}), and "
            "there is no sandbox; set mode under [agents] in detent.toml to one that asks, or run in the sandbox"
        )

    def _in_mode(self, answer: Message) -> Iterable[AgentEvent]:
        if (problem := _problem(answer)) is not None:
            return self._fail(f"the mode in which the agent asks could not be set: {problem}", Failure.REFUSED)
        self._name()
        return ()

    def _name(self) -> None:
        """Name the conversation, because the agent would ask its model for a name."""
        if fields_of(self._can.get("sessionCapabilities")).get("title") is None:
            self._prompt(self._turn.prompt)
            return
        params = {"sessionId": self._conversation, "title": self._title}
        self._ask("session/set_title", params, self._named)

    def _named(self, answer: Message) -> Iterable[AgentEvent]:  # noqa: ARG002 - a title is not necessary
        self._prompt(self._turn.prompt)
        return ()

    def _prompt(self, text: str) -> None:
        self._is_prompting = True
        block = {"type": "text", "text": text.encode("utf-8", "replace").decode()}
        self._ask("session/prompt", {"sessionId": self._conversation, "prompt": [block]}, self._prompted)

    # The prompt

    def _notified(self, message: Message) -> Iterable[AgentEvent]:
        params = fields_of(message.params)
        if not self._is_prompting or params.get("sessionId") != self._conversation:
            # The history of a conversation that is loaded comes before its prompt.
            return ()
        if message.method == "session/update":
            return self._updated(fields_of(params.get("update")))
        if message.method == "_claude/sdkMessage":
            self._usage.sdk_message(fields_of(params.get("message")))
            return (Used(tokens=self._usage.total()),)
        return ()

    def _updated(self, update: dict[str, Any]) -> Iterable[AgentEvent]:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                return self._chunk(update)
            case "tool_call" | "tool_call_update":
                self._usage.output_began()
                return (*self._said(), *self._tool(update))
            case "usage_update":
                self._usage.updated(update)
                return (Used(tokens=self._usage.total()),)
            case "current_mode_update":
                return self._mode_changed(text_of(update.get("currentModeId")))
            case "config_option_update":
                return self._options_changed(update)
            case "agent_thought_chunk" | "plan":
                self._usage.output_began()
            case _:
                pass
        return ()

    def _chunk(self, update: dict[str, Any]) -> Iterator[AgentEvent]:
        self._usage.output_began()
        message_id, text = text_of(update.get("messageId")), text_of(fields_of(update.get("content")).get("text"))
        if self._agent.has_notices and not message_id:
            yield from self._said()
            self._notice = text
            yield Said(text=text)
            return
        if message_id != self._message_id:
            yield from self._said()
        self._message_id, self._notice = message_id, ""
        self._saying.add(text.encode("utf-8", "replace"))

    def _said(self) -> Iterator[AgentEvent]:
        """The message that has ended."""
        if text := self._saying.text():
            self._saying.clear()
            self._last_words = text
            yield Said(text=text)

    def _options_changed(self, update: dict[str, Any]) -> Iterable[AgentEvent]:
        """Some agents tell a new mode as an option of the conversation."""
        listed = update.get("configOptions")
        options = [fields_of(each) for each in listed] if isinstance(listed, list) else []
        modes = [text_of(each.get("currentValue")) for each in options if each.get("category") == "mode"]
        return self._mode_changed(modes[0]) if modes else ()

    def _mode_changed(self, mode: str) -> Iterable[AgentEvent]:
        """An agent that leaves the mode in which it asks is stopped."""
        expected = self._settings.mode or self._agent.asks
        if self._turn.sandbox is not None or mode == expected:
            return ()
        return self._stop(f"the agent changed to the mode {mode}, in which it does not ask")

    def _stop(self, reason: str) -> Iterable[AgentEvent]:
        """End the turn of an agent whose calls cannot be held to the answers of the guard."""
        self._send(method="session/cancel", params={"sessionId": self._conversation})
        return self._fail(reason, Failure.REFUSED)

    # Tool calls

    def _tool(self, update: dict[str, Any]) -> Iterator[AgentEvent]:
        call = self._call(update)
        if not call.is_done or call.has_ended:
            return
        call.has_ended = True
        yield from self._calls.end(call.id, succeeded=call.succeeded)
        if call.asked:
            yield from self._kept_to(call)
        self._look_at(call)
        if self._agent.live is Live.RECORD:
            yield from self._recorded()

    def _kept_to(self, call: ToolCall) -> Iterable[AgentEvent]:
        """Compare a call that asked with the answer. An agent that does not keep to the answers is stopped."""
        if call.granted is None:
            return self._stop(f"the agent made a call that was denied: {call.summary}") if call.succeeded else ()
        if call.facts <= call.granted:
            return ()
        reason = self._guard.refusal(call.payload(self._conversation)) or self._permissions.refusal(call)
        text = f"the agent made another call than the one that was allowed: {call.summary}: {reason}"
        return self._stop(text) if reason is not None else ()

    def _look_at(self, call: ToolCall) -> None:
        """Judge a call that did not ask, tell the session of it, and look for drift."""
        payload, summary, has_hooks = call.payload(self._conversation), call.summary, self._has_hooks()
        is_judged = not call.asked and call.kind not in LOOKING
        was_made, succeeded = not call.asked or call.granted is not None or call.succeeded, call.succeeded

        def look() -> list[str]:
            reason = self._guard.refusal(payload) if is_judged else None
            ran = f"Detent: a call ran without asking that would have been denied: {summary}: {reason}"
            text = "" if has_hooks else self._guard.after(payload, succeeded=succeeded)
            return [each for each in (ran if reason else "", text) if each]

        if was_made:
            self._afterwards.add(look)

    def _call(self, fields: dict[str, Any]) -> ToolCall:
        call_id = text_of(fields.get("toolCallId"))
        call = self._tools.get(call_id)
        # News of a call that has ended change nothing. Any other message about its id is about another call.
        if call is None or (call.has_ended and fields.get("sessionUpdate") != "tool_call_update"):
            call = self._tools[call_id] = ToolCall(self._agent, self._turn.cwd)
        if len(self._tools) > MAX_CALLS:
            del self._tools[next(iter(self._tools))]
        if not call.has_ended:
            call.update(fields)
            self._calls.begin(call_id, call.name or call.kind, call.summary)
        return call

    def _drifted(self) -> None:
        """Look for the drift of calls that the agent did not tell of, or not the end of."""
        if self._conversation:
            self._afterwards.add(lambda: [text] if (text := self._guard.look(self._conversation)) else [])

    def _noticed(self, *, wait: bool = False) -> Iterator[AgentEvent]:
        return (Said(text=text, by_detent=True) for text in self._afterwards.notices(wait=wait))

    def _has_hooks(self) -> bool:
        """Whether the client's own hooks tell the session of each call."""
        if not self._agent.fires_hooks:
            return False
        paths = (os.path.join(self._turn.cwd, path) for path in CLIENTS[self._agent.client].settings)
        return any(HOOK_TAIL.encode() in _content(path) for path in paths)

    def _asked(self, message: Message) -> Iterable[AgentEvent]:
        if message.method != "session/request_permission":
            self._send(id=message.id, error={"code": _NO_METHOD, "message": f"Detent has no {message.method}"})
            return ()
        params = fields_of(message.params)
        if self._cancelled_s is not None or not self._is_prompting:
            self._send(id=message.id, result={"outcome": {"outcome": "cancelled"}})
            return ()
        call = self._call(fields_of(params.get("toolCall")))
        call.asked = True
        reason = self._guard.refusal(call.payload(self._conversation)) or self._permissions.refusal(call)
        call.granted = call.facts if reason is None else None
        # A permission for ever would let later calls pass the guard.
        option = _option(params, "allow_once" if reason is None else "reject_once")
        outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
        self._send(id=message.id, result={"outcome": outcome})
        if reason is None:
            return ()
        del self._denials[MAX_DENIALS - 1 :]
        self._denials.append(f"{call.summary}: {reason}")
        return (Said(text=f"Detent denied {call.summary}: {reason}", by_detent=True),)

    # The end of the turn

    def _prompted(self, answer: Message) -> Iterator[AgentEvent]:
        yield from self._said()
        result = fields_of(answer.result)
        self._usage.prompt_ended(result)
        yield from self._recorded()
        if self._cancelled_s is not None:
            self._conclude(self._stopped())
        elif (problem := _problem(answer)) is not None:
            code = fields_of(answer.error).get("code")
            self._conclude(failed(problem, status=code if code in _HTTP else None))
        elif self._notice:
            self._conclude(failed(self._notice))
        elif self._wants_reasons(text_of(result.get("stopReason"))):
            self._explain()
        else:
            self._conclude(self._result(text_of(result.get("stopReason"))))

    def _wants_reasons(self, stop: str) -> bool:
        """Whether the turn ended because of denials that the agent has not been told the reasons of."""
        is_open = bool(self._denials) and self._explanations < MAX_EXPLANATIONS
        return is_open and (stop == "cancelled" or (stop == "end_turn" and not result_block(self._last_words).is_given))

    def _explain(self) -> None:
        """The protocol has no place for the reason of a refusal: it is told in a prompt of its own."""
        self._explanations += 1
        denied = "\n".join(f"- {each}" for each in self._denials)
        self._denials.clear()
        self._prompt(f"Detent denied these calls:\n{denied}\nGo on with the work without them, and report the result.")

    def _result(self, stop: str) -> Finished | Failed:
        match stop:
            case "end_turn":
                return finished(self._last_words, self._calls)
            case "refusal":
                return Failed(failure=Failure.REFUSED, reason=self._last_words or "the model refused")
            case "cancelled" if self._denials:
                return Failed(failure=Failure.ERROR, reason=f"its calls were denied: {'; '.join(self._denials)}")
            case _:
                return Failed(failure=Failure.ERROR, reason=f"the turn ended: {stop or 'no reason was given'}")

    def _fail(self, reason: str, failure: Failure = Failure.ERROR) -> Iterable[AgentEvent]:
        self._conclude(Failed(failure=failure, reason=reason) if failure is not Failure.ERROR else failed(reason))
        return ()

    def _recorded(self) -> Iterator[AgentEvent]:
        """The tokens so far, with those that only the client's own record has: of sub-agents and of killed turns."""
        if not self._conversation:
            return
        total = self._record(self._conversation)
        self._usage.recorded = Tokens(
            input=max(0, total.input - self._before.input), output=max(0, total.output - self._before.output)
        )
        if (used := self._usage.total()) != Tokens():
            yield Used(tokens=used)

    def _record(self, conversation: str) -> Tokens:
        return recorded_tokens(self._settings, conversation, 0.0)


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_SETTINGS)
    except OSError:
        return b""


def _problem(answer: Message) -> str | None:
    """The error of an answer as a sentence; None without one."""
    if answer.error is None:
        return None
    error = fields_of(answer.error)
    details = text_of(fields_of(error.get("data")).get("details")) or text_of(error.get("data"))
    text = ": ".join(part for part in (text_of(error.get("message")), details) if part) or "an error without a message"
    return f"{text}; log in with the client itself first" if error.get("code") == _AUTH_REQUIRED else text


def _mode_ids(modes: dict[str, Any]) -> list[str]:
    listed = modes.get("availableModes")
    return [text_of(fields_of(mode).get("id")) for mode in listed] if isinstance(listed, list) else []


def _option(params: dict[str, Any], kind: str) -> str:
    listed = params.get("options")
    options = [fields_of(each) for each in listed] if isinstance(listed, list) else []
    return next((text_of(each.get("optionId")) for each in options if each.get("kind") == kind), "")
