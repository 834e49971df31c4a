"""Answers one hook event: decides on the fast path, and calls the engine where the event changes something.

Starting the interpreter takes nearly all of a hook's time. So this module and the modules that every call needs import
builtins only; everything else is imported when a decision needs it.

`--module FILE` names the dialect of a client that is no part of Detent; importing it registers the client.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detent.clients.dialect import Dialect

    Call = dict[str, Any]

#: Parts of the names of guarded files. After a crash the hook can only search for them.
_OWN_NAMES = (".workflow", "journal.jsonl", "detent.toml")
#: Every command that runs tests contains one of these words.
_TEST_WORDS = (
    "test", "tst", "unit", "spec", "check", "verify", "surefire", "failsafe", "cargo", "npm", "cypress", "ava", "bats",
    "behave", "busted", "cucumber", "ginkgo", "jasmine", "jest", "karma", "mocha", "nose", "nox", "pest", "prove",
    "tap", "tox",
)  # fmt: skip


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
        payload = dialect.read(payload)
        return answer(client, dialect, payload, explain)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: a crash must not let a guarded call through
        return _crashed(client, dialect, payload, error)


def load_dialect(client: str, arguments: list[str]) -> "Dialect":
    from detent.clients import registry

    if "--module" in arguments[:-1]:
        directory, _, file = arguments[arguments.index("--module") + 1].rpartition("/")
        sys.path.append(directory)
        __import__(file.removesuffix(".py"))
    return registry.dialect(client)


def answer(client: str, dialect: "Dialect", payload: "Any", explain: bool = False) -> str:
    from detent.clients.dialect import text_of
    from detent.hooks.files import is_running, project_root, read_document

    root = project_root(text_of(payload.get("cwd")) or posix.getcwd())
    if root is None:
        return _without_record(dialect, payload)
    kind = dialect.event(payload)
    state = state_directory(root, text_of(payload.get("cwd")))
    if kind == "pre_tool":
        return _before_tool(client, dialect, payload, root, state, explain)
    document = read_document(state)
    if not is_running(document) and kind != "session_start":
        return ""
    if kind in ("post_tool", "tool_failed"):
        matters = _matters_afterwards(dialect.call(payload), document, state)
    elif kind == "prompt":
        # A prompt is the first event that tells the delegating agent of the end of a background agent.
        matters = dialect.ends_background_agent(payload)
    else:
        matters = kind in ("session_start", "subagent_start", "subagent_stop", "stop")
    return _with_engine(client, dialect, payload) if matters else ""


def _without_record(dialect: "Dialect", payload: "Any") -> str:
    """Say that the record of this project is gone, and allow no delegation meanwhile; nothing outside of projects."""
    from detent.clients.dialect import text_of
    from detent.hooks.files import lost_record

    kind = dialect.event(payload)
    if kind not in ("session_start", "prompt", "pre_tool", "post_tool"):
        return ""
    text = lost_record(text_of(payload.get("cwd")) or posix.getcwd())
    if not text or kind != "pre_tool":
        return dialect.tell(payload["hook_event_name"], text) if text else ""
    return dialect.deny(text) if dialect.call(payload)["kind"] in ("delegate", "skill") else ""


def _before_tool(client: str, dialect: "Dialect", payload: "Any", root: str, state: str, explain: bool) -> str:
    from detent.clients.registry import guarded_files
    from detent.core.guard.rules import GuardInput, guard
    from detent.hooks.files import exists, is_running, journal_problem, read_document, resolve

    call = dialect.call(payload)
    call["home"] = posix.environ.get(b"HOME", b"").decode("utf-8", "replace")
    if call["kind"] == "write":
        call["paths"] = tuple(dict.fromkeys(p for path in call["paths"] for p in (path, resolve(path))))
    document = bound_document(read_document(state))
    reason, trail = guard(
        GuardInput(document, call, root, lambda path: exists(f"{base_directory(root, state)}/{path}"), guarded_files())
    )
    if explain:
        return "\n".join(f"{name}: {outcome}" for name, outcome in trail) + f"\n=> {'deny' if reason else 'allow'}"
    warning = ""
    if reason is None and call["kind"] == "write" and call["content"] is not None:
        reason, warning = _document_violation(call, root, state)
    if call["kind"] in ("delegate", "skill") and is_running(document):
        reason = journal_problem(document, state) or reason
    if call["kind"] == "delegate" and isinstance(document, dict):
        from detent.hooks.notes import note_delegation

        note_delegation(document, call, state, denied=reason is not None)
    if reason is not None:
        return dialect.deny(reason)
    if warning:
        return dialect.tell(payload["hook_event_name"], f"Detent will not adopt this document as it is: {warning}")
    if call["kind"] == "delegate" and isinstance(document, dict):
        from detent.core.guard import state_reader
        from detent.core.guard.call_purpose import target_phase

        target = target_phase(document, call)
        by_delegation = state_reader.workflow(document).get("activation") == "delegation"
        if by_delegation and target and state_reader.status(document, target) in ("pending", "failed"):
            return _with_engine(client, dialect, payload)
    return ""


def _document_violation(call: "Call", root: str, state: str) -> "tuple[str | None, str]":
    """Reason to refuse a write of the whole state document, and a warning about it.

    The new document must be newer than the present one and must not go back.
    """
    from detent.core.guard.protected import guarded
    from detent.hooks.files import journal_problem, read_document

    none: dict[str, tuple[str, ...]] = {"config": (), "document": ()}
    if not any(path.endswith("/state.json") and guarded(path, root, none) == "document" for path in call["paths"]):
        return None, ""
    document = read_document(state)
    problem = journal_problem(document, state) if isinstance(document, dict) else None
    if problem:
        return problem, ""
    load_packages()
    from detent.hooks.handlers import judge_write

    return judge_write(call["content"], state)


def _matters_afterwards(call: "Call", document: "Any", state: str) -> bool:
    """Whether the engine must handle this call: a delegation, a todo list, a test run, or drift."""
    if call["kind"] in ("delegate", "todo"):
        return True
    if call["kind"] == "shell" and may_test(call["command"]):
        from detent.core.guard.shell.walk import simple_commands
        from detent.core.testrun.detect import runner

        if any(runner(words) for words in simple_commands(call["command"])):
            return True
    if call["kind"] not in ("shell", "write"):
        return False
    from detent.hooks.files import has_drifted

    return has_drifted(document, state)


def may_test(command: str) -> bool:
    """False only for a command that runs no tests. The exact answer needs a module that is slow to import."""
    text = command.lower()
    return any(word in text for word in _TEST_WORDS)


def _with_engine(client: str, dialect: "Dialect", payload: "Any") -> str:
    load_packages()
    from detent.hooks.handlers import handle

    return handle(client or "agent", dialect, payload)


def _crashed(client: str, dialect: "Dialect | None", payload: "Any", error: "BaseException") -> str:
    """Record the crash; deny the call with a reason if it may be guarded, and allow every other call."""
    try:
        from detent.hooks.notes import note_failure

        note_failure(payload, error)
    except Exception:  # noqa: BLE001, S110 - the answer does not depend on the record
        pass
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


def _may_be_guarded(call: "Call") -> bool:
    """Whether the call delegates work or names a file of Detent, without parsing commands or reading state."""
    if call["kind"] in ("delegate", "skill"):
        return True
    from detent.clients.registry import directories

    text = " ".join((call["command"], *call["paths"])).lower()
    return any(name in text for name in (*_OWN_NAMES, *directories()))


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

        return find(cwd or root)[0].state
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
