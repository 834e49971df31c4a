"""The rules of the guard: one pure function from the state document and a tool call to a reason to deny it, or none."""

from detent.core.guard.harmless import is_harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detent.core.guard.state_reader import Json

WAY_ROUND = "use detent for that, or let a person do it in a terminal of their own"
RELEASE = "If that is wrong, a person can type: detent release --reason WHY"
#: Verbs that an agent may not run: they approve, leave work out, end it, or remove Detent.
PEOPLE_ONLY = (
    *("approve", "resolve", "review", "release", "skip", "cancel", "import", "uninstall", "reply"),
    *("rollback", "undo", "forget", "doctor --restore"),
    *("complete --force", "gate answer", "checkpoint import"),
)
_WHAT = {
    "journal": "Detent's own record",
    "document": "a document of Detent",
    "config": "configuration of Detent or of its hooks",
}


class GuardInput:
    """The facts of a decision. `doc` is the state document, None without one, False if it cannot be read.

    `files` has the clients' files that are guarded, by kind: "config" and "document".
    """

    __slots__ = ("call", "doc", "exists", "files", "root")

    def __init__(
        self,
        doc: object,
        call: "Json",
        root: str,
        exists: "Callable[[str], bool]",
        files: "Mapping[str, tuple[str, ...]]",
    ) -> None:
        self.doc, self.call, self.root, self.exists, self.files = doc, call, root, exists, files


def guard(given: GuardInput) -> "tuple[str | None, list[tuple[str, str]]]":
    """The reason to deny the call, if there is one, and the result of each rule up to it."""
    trail = []
    for name, rule in RULES:
        reason = rule(given)
        trail.append((name, reason or "ok"))
        if reason:
            return reason, trail
    return None, trail


def _guarded_files(given: GuardInput) -> "str | None":
    """Only Detent changes its own files. A document may be written as a whole; Detent adopts it afterwards."""
    call = given.call
    if call["kind"] not in ("shell", "write") or _is_harmless(given):
        return None
    from detent.core.guard.protected import command_hits, guarded_hits  # noqa: PLC0415 - most calls never need it

    if call["kind"] == "shell":
        hits = command_hits(call["command"], call["cwd"], given.root, given.files, home=call["home"])
    else:
        hits = guarded_hits([(path, call["tool"]) for path in call["paths"]], given.root, given.files)
    for path, how, kind in hits:
        if kind != "document" or call["kind"] == "shell":
            return f"{how} would write {path}, which is {_WHAT[kind]}; {WAY_ROUND}"
    return None


def _people_decide(given: GuardInput) -> "str | None":
    """Deny verbs that only a person may run; an agent that approves itself makes every approval worthless."""
    if given.call["kind"] != "shell" or _is_harmless(given):
        return None
    from detent.core.guard.shell.opaque import words_of  # noqa: PLC0415 - most calls never need it
    from detent.core.guard.shell.walk import opaque_texts, simple_commands  # noqa: PLC0415

    command = given.call["command"]
    for words in simple_commands(command):
        verb, *rest = _detent_words(words) or [""]
        for decision in PEOPLE_ONLY:
            name, _, more = decision.partition(" ")
            if verb == name and (not more or more in rest) and not _only_looks(verb, rest):
                return f"detent {decision} is a person's decision; say what it is about and wait for the person"
    for text in opaque_texts(command) if "detent" in command else ():
        words = words_of(text)
        # Python imports the library with `from detent import`.
        called = [at for at, word in enumerate(words) if word == "detent" and words[at - 1 : at] != ["from"]]
        following = {word for at in called for word in words[at + 1 : at + 4]}
        for decision in PEOPLE_ONLY:
            if decision.split()[-1] in following:
                return f"this code names detent {decision}, which is a person's decision; wait for the person"
    return None


def _only_looks(verb: str, rest: "list[str]") -> bool:
    if verb == "reply":
        return not rest
    return verb in ("rollback", "undo") and "--dry-run" in rest and "--yes" not in rest


def _readable(given: GuardInput) -> "str | None":
    if given.doc is False and given.call["kind"] in ("delegate", "skill"):
        return "the state of the work cannot be read, so nothing is delegated; a person should run: detent doctor --fix"
    return None


def _in_order(given: GuardInput) -> "str | None":
    """A phase is delegated only while it is in progress; its own sub-agents are part of it."""
    if given.call["kind"] != "delegate":
        return None
    from detent.core.guard import state_reader  # noqa: PLC0415 - most calls delegate nothing
    from detent.core.guard.call_purpose import agent_name, target_phase  # noqa: PLC0415

    doc, target = given.doc, target_phase(given.doc, given.call)
    current = state_reader.current_phase(doc)
    if not target or not current or not state_reader.phases(doc):
        return None
    status = state_reader.status(doc, target)
    if status == "in_progress" or (target == current and status != "pending"):
        return None
    if state_reader.workflow(doc).get("activation") == "delegation" and status == "pending":
        return None
    agent = agent_name(given.call["agent"]) or "the agent"
    now = state_reader.status(doc, current)
    first = f"finish {current}, then " if now == "in_progress" else ""
    return (
        f"{agent} works on phase {target}, which is {status or 'not part of this workflow'}, and the current phase is "
        f"{current} ({now or 'unknown'}); a phase must be in progress before it is delegated: "
        f"{first}detent begin {target}"
    )


def _corridor(given: GuardInput) -> "str | None":
    """While a gate fails, the agent may work on it and not move on."""
    if given.call["kind"] not in ("delegate", "skill"):
        return None
    from detent.core.guard import state_reader  # noqa: PLC0415
    from detent.core.guard.call_purpose import ADVANCE, HAND_OVER, asks_to_move  # noqa: PLC0415

    phase = state_reader.current_phase(given.doc)
    kind = state_reader.corridor(given.doc, phase) if phase and state_reader.workflow(given.doc) else ""
    if not kind or not asks_to_move(given.doc, given.call, (*ADVANCE, *HAND_OVER), only_orchestrators=False):
        return None
    if kind == "tests":
        run = state_reader.tests(given.doc, phase)
        error = state_reader.counted(run.get("last_error") or "no error was recorded", run, "current_iteration")
        again = run.get("last_test_command") or "them"
        return f"the tests of {phase} fail ({error}); fix the code and run {again} again first. {RELEASE}"
    record = state_reader.constitution(given.doc, phase)
    articles = ", ".join(map(str, record.get("articles_required") or ("all articles",)))
    status = state_reader.counted(record.get("status") or "not started", record, "iterations_used")
    return f"{phase} does not comply with its constitution yet ({articles}: {status}); do that first. {RELEASE}"


def _gates(given: GuardInput) -> "str | None":
    if given.call["kind"] not in ("delegate", "skill"):
        return None
    from detent.core.guard import state_reader  # noqa: PLC0415
    from detent.core.guard.call_purpose import ADVANCE, asks_to_move  # noqa: PLC0415

    phase = state_reader.current_phase(given.doc)
    if not phase or not state_reader.workflow(given.doc):
        return None
    if not asks_to_move(given.doc, given.call, ADVANCE, only_orchestrators=True):
        return None
    reasons = state_reader.closed_gates(given.doc, phase, given.exists)
    return f"phase {phase} is held by its gates: {'; '.join(reasons)}. {RELEASE}" if reasons else None


def _is_harmless(given: GuardInput) -> bool:
    directories = tuple(path.partition("/")[0] for paths in given.files.values() for path in paths)
    return given.call["kind"] == "shell" and is_harmless(given.call["command"], given.call["cwd"], directories)


RULES = (
    ("guarded files", _guarded_files),
    ("people decide", _people_decide),
    ("state readable", _readable),
    ("order of phases", _in_order),
    ("corridor", _corridor),
    ("gates", _gates),
)


def _detent_words(words: list[str]) -> list[str]:
    """The verb of a `detent` command line and what follows it, however it was started."""
    name, rest = (words[0].rsplit("/", 1)[-1], words[1:]) if words else ("", [])
    if name.startswith("python") and "-m" in rest[:-1]:
        at = rest.index("-m")
        name, rest = rest[at + 1], rest[at + 2 :]
    if name != "detent":
        return []
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "--directory", "--project") else rest[1:]
    return rest
