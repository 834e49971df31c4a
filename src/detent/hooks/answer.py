"""Answers one hook event: decides on the fast path, and calls the engine where the event changes something.

Starting the interpreter takes nearly all of a hook's time. So this module and the modules that every call needs import
builtins only; everything else is imported when a decision needs it.

`--module FILE` names the dialect of a client that is no part of Detent; importing it registers the client. `--plugin`
says that the hook is a plugin's, which stands back where the project's own settings have the hook.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detent.clients.dialect import Dialect

    Call = dict[str, Any]

#: Parts of the names of guarded files. After a crash the hook can only search for them.
_OWN_NAMES = (".workflow", "journal.jsonl", "detent.toml", "approvers.toml")
#: Calls after which another program may have changed Detent's files.
_CHANGING = ("shell", "write", "mcp", "message", "wait")
#: Calls that are noted before they are made.
_NOTED = ("delegate", "message", "write")
#: Every command that runs tests contains one of these words.
_TEST_WORDS = (
    "test", "tst", "unit", "spec", "check", "verify", "surefire", "failsafe", "cargo", "npm", "cypress", "ava", "bats",
    "behave", "busted", "cucumber", "ginkgo", "jasmine", "jest", "karma", "mocha", "nose", "nox", "pest", "prove",
    "tap", "tox",
)  # fmt: skip


class NeedsRunner(Exception):
    """The event changes something, and this process is in a sandbox in which the state is read-only."""


def respond(arguments: list[str]) -> int:
    """Answer the event on standard input, as a client reads it; returns the exit code."""
    text = status_line() if arguments[:1] == ["statusline"] else main(arguments)
    if text.startswith("\x02"):
        posix.write(2, text[1:].encode("utf-8", "replace"))
        return 2
    if text:
        posix.write(1, text.encode("utf-8", "replace"))
    return 0


def main(arguments: list[str], data: "bytes | None" = None) -> str:
    """Answer one event. Returns the text to print; empty means "allow"."""
    client = arguments[0] if arguments else ""
    explain = "--explain" in arguments
    payload = dialect = None
    try:
        from detent.hooks.files import parse, read_all

        text = read_all(0) if data is None else data
        payload = parse(text) if text.strip() else None
        if not isinstance(payload, dict):
            return ""
        dialect = load_dialect(client, arguments)
        payload = _in_own_project(dialect, dialect.read(payload))
        if not _is_answered_elsewhere(client, dialect, payload, by_plugin="--plugin" in arguments):
            return answer(client, dialect, payload, explain, is_alone=data is None)
        # A forged note must not switch the guard off, nor hide a change for longer than a turn: both hooks judge calls,
        # and both look when a turn ends. Each change is told once. All else is left to the project's hook.
        if dialect.event(payload) == "pre_tool":
            return answer(client, dialect, payload, only_judges=True)
        return _answer_look(client, dialect, payload) if dialect.event(payload) == "stop" else ""
    except NeedsRunner:
        return _answered_outside(client, dialect, payload, text, by_plugin="--plugin" in arguments)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: a crash must not let a guarded call through
        return _crashed(client, dialect, payload, error)


def _in_own_project(dialect: "Dialect", payload: "Any") -> "Any":
    """The payload in the client's project, if the agent has gone to a directory in another project or in none.

    Clients tell the directory to which an agent has gone as that of the conversation, and there an agent can make a
    project of its own. Another project counts only while no session is active in the client's.
    """
    from detent.clients.dialect import text_of
    from detent.hooks.files import has_marker, project_roots, states

    own, cwd = dialect.own_project(), text_of(payload.get("cwd")) or posix.getcwd()
    roots = project_roots(own) if own and cwd != own else []
    others = project_roots(cwd) if roots else []
    if not roots or (others and (others[0] == roots[0] or not any(map(has_marker, states(roots[0]))))):
        return payload
    return {**payload, "cwd": own, "call_cwd": cwd}


def _is_answered_elsewhere(client: str, dialect: "Dialect", payload: "Any", *, by_plugin: bool) -> bool:
    """Whether a plugin's hook leaves the event to the hook in the project's settings, which notes that it runs."""
    kind = dialect.event(payload)
    if not by_plugin and kind not in ("session_start", "prompt"):
        return False
    from detent.hooks.plugin import note_own_hook, stands_back

    if by_plugin:
        return stands_back(client, kind, payload)
    note_own_hook(client, payload)
    return False


def _answered_outside(client: str, dialect: "Any", payload: "Any", data: bytes, *, by_plugin: bool) -> str:
    """Have the runner answer the event. That ends this process, unless the runner cannot be reached."""
    from detent.engine.agents.forward import forward_hook

    try:
        forward_hook(client, data, by_plugin)
    except OSError as error:
        return _crashed(client, dialect, payload, error)
    return ""


def _leave_sandbox() -> None:
    if b"DETENT_SOCKET" in posix.environ:
        raise NeedsRunner


def load_dialect(client: str, arguments: list[str]) -> "Dialect":
    from detent.clients import registry

    if "--module" in arguments[:-1]:
        directory, _, file = arguments[arguments.index("--module") + 1].rpartition("/")
        sys.path.append(directory)
        __import__(file.removesuffix(".py"))
    return registry.dialect(client)


def answer(
    client: str,
    dialect: "Dialect",
    payload: "Any",
    explain: bool = False,
    *,
    only_judges: bool = False,
    is_alone: bool = False,
) -> str:
    """`only_judges`: deny a call or say nothing. `is_alone`: the process may leave work to a copy of itself."""
    from detent.clients.dialect import text_of
    from detent.hooks.files import project_root, project_roots

    roots = project_roots(text_of(payload.get("cwd")) or posix.getcwd())
    root = project_root(roots)
    if root is None:
        return _without_record(dialect, payload)
    kind = dialect.event(payload)
    state = state_directory(root, text_of(payload.get("cwd")))
    if kind == "pre_tool":
        gone_to = text_of(payload.get("call_cwd"))
        around = (
            *roots,
            *(each for place in (gone_to, dialect.own_project()) if place for each in project_roots(place)),
        )
        outer = tuple(each for each in dict.fromkeys(around) if each != root)
        if explain or only_judges:
            return _judgement(dialect, payload, root, state, outer, explain)
        return _before_tool(client, dialect, payload, root, state, outer) or _told(dialect, payload, root)
    problem = _blocked(root)
    if problem:
        return dialect.tell(payload["hook_event_name"], problem) if kind in ("post_tool", "session_start") else ""
    if kind in ("post_tool", "tool_failed"):
        return _after_tool(client, dialect, payload, root, state, is_alone) or _told(dialect, payload, root)
    return _at_turn(client, dialect, payload, root, state)


def _at_turn(client: str, dialect: "Dialect", payload: "Any", root: str, state: str) -> str:
    """Answer an event of a conversation, a turn or an agent."""
    from detent.clients.dialect import text_of
    from detent.hooks.files import is_running, read_document
    from detent.hooks.left_out import client_project, end_turn, is_look_due

    kind = dialect.event(payload)
    if kind == "session_start" and not is_look_due(client_project(dialect)):
        # A person may change settings between conversations.
        _changed_settings(root)
    if kind in ("session_start", "subagent_stop", "stop"):
        # Before the look: a hook that is left out until then is made up for by the look, and any later one runs.
        end_turn(client_project(dialect), payload)
    if kind == "session_end":
        from detent.hooks.seen import take_told

        take_told(root + "/.workflow", text_of(payload.get("session_id")))
    if not is_running(read_document(state)) and kind != "session_start":
        return ""
    if kind == "prompt":
        # A prompt is the first event that tells the delegating agent of the end of a background agent.
        matters = dialect.ends_background_agent(payload)
    else:
        matters = kind in ("session_start", "subagent_start", "subagent_stop", "task_completed", "stop")
    reply = _with_engine(client, dialect, payload) if matters else ""
    if kind == "stop" and not reply:
        text = _settings_notice(root)
        return dialect.tell(payload["hook_event_name"], text) if text else ""
    return reply or (_told(dialect, payload, root) if kind == "prompt" else "")


def _without_record(dialect: "Dialect", payload: "Any") -> str:
    """Say that the record of this project is gone, and allow no delegation meanwhile; nothing outside of projects."""
    from detent.clients.dialect import text_of
    from detent.hooks.files import lost_record

    kind = dialect.event(payload)
    if kind not in ("session_start", "prompt", "pre_tool", "post_tool"):
        return ""
    places = (text_of(payload.get("cwd")) or posix.getcwd(), dialect.own_project())
    text = next((message for place in places if place and (message := lost_record(place))), "")
    if not text or kind != "pre_tool":
        return dialect.tell(payload["hook_event_name"], text) if text else ""
    return dialect.deny(text) if dialect.call(payload)["kind"] in ("delegate", "skill") else ""


def _judgement(
    dialect: "Dialect", payload: "Any", root: str, state: str, outer: "tuple[str, ...]", explain: bool
) -> str:
    """The denial of the call or nothing; with `explain`, the result of each rule."""
    _, _, reason, _, trail = _judged(dialect, payload, root, state, outer)
    if explain:
        return "\n".join(f"{name}: {outcome}" for name, outcome in trail) + f"\n=> {'deny' if reason else 'allow'}"
    return "" if reason is None else dialect.deny(reason)


def _judged(
    dialect: "Dialect", payload: "Any", root: str, state: str, outer: "tuple[str, ...]"
) -> "tuple[Call, Any, str | None, str, list[tuple[str, str]]]":
    """The call, the state document, a reason to deny the call, a warning, and the result of each rule."""
    from detent.clients.registry import guarded_files
    from detent.core.guard.rules import GuardInput, guard
    from detent.hooks.files import exists, is_running, journal_problem, own_state_home, read_document, resolve

    call = dialect.call(payload)
    call["home"] = posix.environ.get(b"HOME", b"").decode("utf-8", "replace")
    if call["kind"] in ("write", "mcp"):
        call["paths"] = tuple(dict.fromkeys(p for path in call["paths"] for p in (path, resolve(path, call["cwd"]))))
    document = bound_document(read_document(state))
    reason, trail = guard(
        GuardInput(
            document,
            call,
            root,
            lambda path: exists(f"{base_directory(root, state)}/{path}"),
            guarded_files(),
            lambda path: resolve(path, call["cwd"]),
            outer,
            own_state_home(),
        )
    )
    warning = ""
    if reason is None and (call["content"] is not None or call["edits"]):
        reason, warning = _document_violation(call, root)
    if call["kind"] in ("delegate", "message", "skill") and is_running(document):
        reason = journal_problem(document, state) or reason
    return call, document, reason, warning, trail


def _before_tool(
    client: str, dialect: "Dialect", payload: "Any", root: str, state: str, outer: "tuple[str, ...]"
) -> str:
    """Look for drift if hooks after earlier calls were left out, and decide about this call."""
    from detent.clients.dialect import text_of
    from detent.hooks.files import SETTINGS_NOTE, exists
    from detent.hooks.left_out import client_project, is_look_due

    if dialect.kind(text_of(payload.get("tool_name"))) in _NOTED:
        _leave_sandbox()
    if not exists(f"{root}/.workflow/{SETTINGS_NOTE}"):
        _changed_settings(root)
    project = client_project(dialect)
    notice = _look(client, dialect, payload, project) if is_look_due(project) else ""
    reply = _decided(client, dialect, payload, root, state, outer, project)
    if not notice:
        return reply
    if not reply:
        return dialect.tell(payload["hook_event_name"], notice)
    from detent.hooks.seen import write_told

    try:
        write_told(root + "/.workflow", text_of(payload.get("session_id")), notice)
    except OSError as error:
        # The answer about the call does not depend on words that cannot be kept.
        _note_failure(payload, error)
    return reply


def _decided(
    client: str, dialect: "Dialect", payload: "Any", root: str, state: str, outer: "tuple[str, ...]", project: str
) -> str:
    """`project` is the one in which the launcher sees whether the hook after this call is expected."""
    call, document, reason, warning, _ = _judged(dialect, payload, root, state, outer)
    if call["kind"] in ("delegate", "message") and isinstance(document, dict):
        from detent.hooks.notes import note_delegation

        note_delegation(document, call, state, denied=reason is not None)
    if reason is not None:
        return dialect.deny(reason)
    if call["kind"] == "shell" and project:
        from detent.hooks.files import resolve
        from detent.hooks.left_out import expect, leave_out

        if may_test(call["command"]) or resolve(project) != root:
            expect(project, payload)
        else:
            leave_out(project)
    if call["kind"] == "write":
        from detent.hooks.notes import note_writing

        note_writing(document, call, root, state, client, before=True)
    if warning:
        return dialect.tell(payload["hook_event_name"], f"Detent will not adopt this document as it is: {warning}")
    if call["kind"] in ("delegate", "message") and isinstance(document, dict):
        from detent.core.guard import state_reader
        from detent.core.guard.call_purpose import target_phase

        target = target_phase(document, call)
        by_delegation = state_reader.workflow(document).get("activation") == "delegation"
        if by_delegation and target and state_reader.status(document, target) in ("pending", "failed"):
            return _with_engine(client, dialect, payload)
    return ""


def _after_tool(client: str, dialect: "Dialect", payload: "Any", root: str, state: str, is_alone: bool) -> str:
    """Handle a call that the session is told of; after every other call look for drift."""
    from detent.hooks.files import is_running, read_document
    from detent.hooks.left_out import client_project, has_run

    call, document = dialect.call(payload), read_document(state)
    if call["kind"] == "write":
        _leave_sandbox()
    if call["kind"] == "write" and dialect.event(payload) == "post_tool":
        from detent.hooks.notes import note_writing

        note_writing(bound_document(document), call, root, state, client, before=False)
    if is_running(document) and is_test_run(call):
        _leave_sandbox()
        is_noted = is_alone and _noted(client, dialect, payload, call, document, state, root)
        reply = "" if is_noted else _with_engine(client, dialect, payload)
        has_run(client_project(dialect), payload)
        return reply
    if is_running(document) and call["kind"] in ("delegate", "todo", "wait"):
        return _with_engine(client, dialect, payload)
    text = _look(client, dialect, payload, root) if call["kind"] in _CHANGING else ""
    has_run(client_project(dialect), payload)
    return dialect.tell(payload["hook_event_name"], text) if text else ""


def _look(client: str, dialect: "Dialect", payload: "Any", root: str) -> str:
    """Look for changes that other programs made to Detent's files and settings; a text about them."""
    from detent.hooks.files import has_drifted, is_running, read_document, states

    problem = _blocked(root)
    if problem:
        return problem
    # In a monorepo the sessions are those of the packages.
    whole, *packages = states(root)
    for state in packages or [whole]:
        document = read_document(state)
        if is_running(document) and has_drifted(document, state):
            _leave_sandbox()
            load_engine()
            from detent.hooks.handlers import looked

            package = state.rpartition("/")[2] if packages else None
            return looked(client or "agent", dialect, payload, root, package)
    return _settings_notice(root)


def _answer_look(client: str, dialect: "Dialect", payload: "Any") -> str:
    """Answer with the changes that other programs made, and do nothing else."""
    from detent.clients.dialect import text_of
    from detent.hooks.files import project_root, project_roots

    root = project_root(project_roots(text_of(payload.get("cwd")) or posix.getcwd()))
    text = _look(client, dialect, payload, root) if root is not None else ""
    return dialect.tell(payload["hook_event_name"], text) if text else ""


def _blocked(root: str) -> str:
    """A text about a file of the state that cannot be read without the risk of waiting for ever."""
    from detent.hooks.files import blocking_file, states

    blocking = next((file for file in map(blocking_file, states(root)) if file is not None), None)
    if blocking is None:
        return ""
    return f"Detent: {blocking} is no file; a person should remove it and run: detent doctor --fix"


def _settings_notice(root: str) -> str:
    changed = _changed_settings(root)
    if not changed:
        return ""
    return f"Detent: {', '.join(changed)} changed during the session; a person should look at it, and at: detent doctor"


def _changed_settings(root: str) -> "list[str]":
    from detent.clients.registry import ROOT_FILES, settings_files
    from detent.hooks.files import changed_settings

    try:
        return changed_settings(root, (*ROOT_FILES, *settings_files()))
    except OSError:
        # A sandbox may forbid the note; the engine compares the settings with those of the session's start.
        return []


def _document_violation(call: "Call", root: str) -> "tuple[str | None, str]":
    """Reason to refuse a change of a state document, and a warning about it.

    The new document must be newer than the present one and must not go back. An edit is judged by its result, and
    compared with the document that it changes, whichever project the agent works in.
    """
    from detent.core.guard.protected import guarded
    from detent.hooks.files import blocking_file, journal_problem, read_document, read_file

    none: dict[str, tuple[str, ...]] = {"config": (), "document": ()}
    paths = [p for p in call["paths"] if p.endswith("/state.json") and guarded(p, root, none) == "document"]
    if not paths:
        return None, ""
    state, content = paths[0].rpartition("/")[0], call["content"]
    if blocking_file(state) is not None:
        return f"{blocking_file(state)} is no file; a person should remove it", ""
    if content is None:
        content = (read_file(paths[0]) or b"").decode("utf-8", "replace")
        for path, old, new, everywhere in call["edits"]:
            if path in call["paths"] and path.endswith("/state.json"):
                content = content.replace(old, new, -1 if everywhere else 1) if old else new
    document = read_document(state)
    problem = journal_problem(document, state) if isinstance(document, dict) else None
    if problem:
        return problem, ""
    load_packages()
    from detent.hooks.state_write import judge_write

    return judge_write(content, state)


def is_test_run(call: "Call") -> bool:
    if call["kind"] != "shell" or not may_test(call["command"]):
        return False
    from detent.core.guard.shell.walk import simple_commands
    from detent.core.testrun.detect import runner

    return any(runner(words) for words in simple_commands(call["command"]))


def _noted(
    client: str, dialect: "Dialect", payload: "Any", call: "Call", document: "Any", state: str, root: str
) -> bool:
    """Note the test run and have it recorded behind the client. False if the client has to wait for that.

    A runner judges gates when its agent has ended, so the runs of its agents are recorded before they go on.
    """
    folder = session_folder(document, state)
    if not folder or b"DETENT_SESSION" in posix.environ:
        return False
    from detent.clients.dialect import text_of
    from detent.hooks.seen import behind_the_client, note_run, typed_in, write_told

    try:
        note_run(folder, client or "agent", dialect, payload, typed_in(base_directory(root, state), call))
    except OSError:
        return False

    def record() -> None:
        try:
            load_engine()
            from detent.hooks.handlers import recorded

            text = recorded(client or "agent", dialect, payload)
            if text:
                write_told(root + "/.workflow", text_of(payload.get("session_id")), text)
        except Exception as error:  # noqa: BLE001 - the outermost boundary of this process; the note stays
            _crashed(client, dialect, payload, error)

    behind_the_client(record)
    return True


def session_folder(document: "Any", state: str) -> str:
    """The directory of the active session; empty if the document does not tell."""
    from detent.core.guard import state_reader

    session = state_reader.workflow(document).get("session_id") if isinstance(document, dict) else None
    return f"{state}/{session}" if isinstance(session, str) and session and "/" not in session else ""


def _told(dialect: "Dialect", payload: "Any", root: str) -> str:
    """The words that wait for the next event of this conversation."""
    from detent.clients.dialect import TOLD, text_of
    from detent.hooks.files import exists

    name = payload["hook_event_name"]
    if name not in dialect.HEARD or not exists(f"{root}/.workflow/{TOLD}"):
        return ""
    from detent.hooks.seen import take_told

    text = take_told(root + "/.workflow", text_of(payload.get("session_id")))
    return dialect.tell(name, text) if text else ""


def may_test(command: str) -> bool:
    """False only for a command that runs no tests. The exact answer needs a module that is slow to import."""
    text = command.lower()
    if not any(word in text for word in _TEST_WORDS):
        return False
    from detent.core.guard.harmless import only_handles_files

    return not only_handles_files(command)


def _with_engine(client: str, dialect: "Dialect", payload: "Any") -> str:
    _leave_sandbox()
    load_engine()
    from detent.hooks.handlers import handle

    return handle(client or "agent", dialect, payload)


def _crashed(client: str, dialect: "Dialect | None", payload: "Any", error: "BaseException") -> str:
    """Record the crash; deny the call with a reason if it may be guarded, and allow every other call."""
    _note_failure(payload, error)
    try:
        if dialect is None:
            from detent.clients import registry

            dialect = registry.dialect(client)
        if dialect.event(payload) == "pre_tool" and _may_be_guarded(dialect.call(payload)):
            problem = f"{type(error).__name__}: {error}"[:500]
            return dialect.deny(
                f"Detent could not judge this call ({problem}); a person should run: detent doctor. "
                "If that is wrong, a person can type: detent release --reason WHY",
            )
    except Exception:  # noqa: BLE001, S110 - no fallback is left, and the exit code must stay 0
        pass
    return ""


def _note_failure(payload: "Any", error: "BaseException") -> None:
    try:
        from detent.hooks.notes import note_failure

        note_failure(payload, error)
    except Exception:  # noqa: BLE001, S110 - the answer does not depend on the record
        pass


def _may_be_guarded(call: "Call") -> bool:
    """Whether the call delegates work or names a file of Detent, without parsing commands or reading state."""
    if call["kind"] in ("delegate", "message", "skill"):
        return True
    from detent.clients.registry import directories

    text = " ".join((call["command"], call["text"], *call["paths"])).lower()
    return any(name in text for name in (*_OWN_NAMES, *directories()))


def load_engine() -> None:
    """Make the engine importable, as fast as it can be."""
    load_packages()
    from detent.load_msgspec import load_msgspec

    load_msgspec()


def load_packages() -> None:
    """Make installed packages importable for the engine; the option -S leaves them out."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = f"{sys.executable.rpartition('/bin/')[0]}/lib/{version}/site-packages"
    if packages not in sys.path:
        sys.path.append(packages)


def state_directory(root: str, cwd: str) -> str:
    """The state directory of the package around `cwd` in a monorepo, else of the repository."""
    from detent.hooks.files import exists

    chosen = posix.environ.get(b"DETENT_PROJECT", b"").decode()
    if not exists(root + "/.workflow/projects"):
        return root + "/.workflow"
    if not chosen:
        load_packages()
        from detent.config.place import find
        from detent.errors import NotFound

        try:
            return find(cwd or root)[0].state
        except NotFound:
            # At the root of a monorepo without a default project no session is meant.
            return root + "/.workflow"
    return f"{root}/.workflow/projects/{chosen}"


def bound_document(document: "Any") -> "Any":
    """The document with the phase of this client's runner as the current phase, while that phase is in progress."""
    phase = posix.environ.get(b"DETENT_PHASE", b"").decode("utf-8", "replace")
    session = posix.environ.get(b"DETENT_SESSION", b"").decode("utf-8", "replace")
    if not phase or not session or not isinstance(document, dict):
        return document
    from detent.core.guard import state_reader

    flow = state_reader.workflow(document)
    if flow.get("session_id") != session or state_reader.status(document, phase) != "in_progress":
        return document
    return {**document, "active_workflow": {**flow, "current_phase": phase}}


def base_directory(root: str, state: str) -> str:
    """The directory that artifact paths are relative to: the package in a monorepo, else the repository."""
    if state == root + "/.workflow":
        return root
    load_packages()
    from detent.config.place import find

    return find(root, project=state.rpartition("/")[2])[0].base


def status_line() -> str:
    try:
        load_packages()
        from detent.hooks.files import read_all
        from detent.hooks.statusline import main as line

        return line(read_all(0))
    except Exception:  # noqa: BLE001 - the client shows no line instead
        return ""
