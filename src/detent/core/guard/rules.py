"""The rules of the guard: one pure function from the state document and a tool call to a reason to deny it, or none."""

from detent.core.guard.harmless import is_harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detent.core.guard.shell.walk import Reading
    from detent.core.guard.state_reader import Json

_LET_A_PERSON = "let a person do it in a terminal of their own"
WAY_ROUND = f"use detent for that, or {_LET_A_PERSON}"
RELEASE = "If that is wrong, a person can type: detent release --reason WHY"
#: Verbs that an agent may not run: they approve, leave work out, end it, or remove Detent.
PEOPLE_ONLY = (
    *("approve", "resolve", "review", "release", "skip", "cancel", "import", "uninstall", "reply"),
    *("rollback", "undo", "forget", "doctor --restore"),
    *("complete --force", "gate answer", "gate accept", "gate set"),
    *("approver add", "approver remove"),
)
#: Words behind a verb of a client's program with which it shows something.
_LOOKING_VERBS = ("list", "get", "details", "validate", "help", "serve")
_WRITE_OUT = "write the detent command out on its own"
_BETWEEN_WORDS = dict.fromkeys(map(ord, "\"'\\`()<>;&|={},:$[]!#\r\n\t"), " ")
_WHAT = {
    "journal": "Detent's own record",
    "document": "a document of Detent",
    "config": "configuration of Detent or of its hooks",
}


class GuardInput:
    """The facts of a decision. `doc` is the state document, None without one, False if it cannot be read.

    `files` has the clients' files that are guarded, by kind: "config", "document" and "account"; as "verbs" it has
    the verbs of the clients' programs that change them. `resolve` follows the symbolic links of a path. `outer` are
    projects around the one at `root`: their files are guarded as well. `copies` is the user's state directory, with the
    second copies of journals; empty if there is none.
    """

    __slots__ = ("_reading", "call", "copies", "doc", "exists", "files", "outer", "resolve", "root")

    def __init__(
        self,
        doc: object,
        call: "Json",
        root: str,
        exists: "Callable[[str], bool]",
        files: "Mapping[str, tuple[str, ...]]",
        resolve: "Callable[[str], str]" = str,
        outer: "tuple[str, ...]" = (),
        copies: str = "",
    ) -> None:
        self.doc, self.call, self.root, self.exists, self.files = doc, call, root, exists, files
        self.resolve, self.outer, self.copies = resolve, outer, copies
        self._reading: Reading | None = None

    @property
    def reading(self) -> "Reading":
        """The command of a shell call, read once."""
        if self._reading is None:
            from detent.core.guard.shell.walk import Reading  # noqa: PLC0415 - most calls never need it

            self._reading = Reading(self.call["command"], self.call["cwd"], self.call["home"])
        return self._reading


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
    """Only Detent changes its own files. A document may be written with a tool of the client; Detent adopts it then."""
    call = given.call
    if call["kind"] not in ("shell", "write", "mcp") or call.get("reads") or _is_harmless(given):
        return None
    from detent.core.guard.protected import account_hits, guarded_hits, mentioned, second_copy_hits  # noqa: PLC0415 - most calls never need it
    from detent.core.guard.shell.fuel import Fuel, OutOfFuel  # noqa: PLC0415

    if call["kind"] == "shell":
        targets, fuel = given.reading.targets, given.reading.fuel
    else:
        targets, fuel = [(path, call["tool"], False) for path in call["paths"]], Fuel()
    try:
        hits = second_copy_hits(targets, given.copies, given.resolve, fuel) if given.copies else []
        hits += account_hits(targets, given.files, given.resolve, fuel)
        for root in (given.root, *given.outer):
            for path, how, kind in (*hits, *guarded_hits(targets, root, given.files, given.resolve, fuel)):
                if kind != "document" or call["kind"] != "write":
                    return f"{how} would write {path}, which is {_WHAT[kind]}; {WAY_ROUND}"
    except OutOfFuel:
        given.reading.code.append(call["command"])
    for text in _unread_texts(given):
        name = mentioned(text, given.files)
        if name:
            return (
                f"this call names {name} where it cannot be followed: in code, or for a program that Detent does not "
                f"know; read it with cat, jq or grep; {WAY_ROUND}"
            )
    return None


def _client_settings(given: GuardInput) -> "str | None":
    """Deny verbs with which a client's own program changes the hooks, plugins or servers that it runs."""
    verbs = given.files.get("verbs", ()) if given.call["kind"] == "shell" else ()
    if not any(verb.partition(" ")[0] in given.call["command"].lower() for verb in verbs):
        return None
    for program, *rest in filter(None, given.reading.argvs):
        named = [word for word in rest if word[:1] != "-"]
        for at, word in enumerate(named):
            verb = f"{program.rpartition('/')[2]} {word}"
            # `plugin marketplace` has verbs of its own.
            following = [each for each in named[at + 1 : at + 3] if each != "marketplace"][:1]
            if verb in verbs and following and following[0] not in _LOOKING_VERBS:
                return f"{verb} {following[0]} changes which hooks, plugins or servers the client runs; {_LET_A_PERSON}"
    return None


def _people_decide(given: GuardInput) -> "str | None":
    """Deny verbs that only a person may run; an agent that approves itself makes every approval worthless."""
    if given.call["kind"] not in ("shell", "mcp") or _is_harmless(given):
        return None
    for words in given.reading.argvs if given.call["kind"] == "shell" else ():
        verb, *rest = _detent_words(words) or [""]
        if verb and not verb.isascii():
            return f"this runs detent with a verb that cannot be read; {_WRITE_OUT}"
        for decision in PEOPLE_ONLY:
            name, _, more = decision.partition(" ")
            if verb == name and (not more or more in rest) and not _only_looks(verb, rest):
                return f"detent {decision} is a person's decision; say what it is about and wait for the person"
    for text in _unread_texts(given):
        words = _split(text)
        for at, word in enumerate(words):
            following = words[at + 1 : at + 4] if _is_detent(word) else []
            for decision in PEOPLE_ONLY:
                if decision.split()[-1] in following:
                    return f"this names detent {decision}, which is a person's decision; wait for the person"
    if given.call["kind"] == "shell" and any(_names_detent(text) for text in given.reading.code):
        return f"this code names detent, and code is not followed; {_WRITE_OUT}"
    return None


def _interactive_shells(given: GuardInput) -> "str | None":
    """A shell that waits for input takes commands that no hook sees."""
    if given.call["kind"] != "shell" or _is_harmless(given) or not given.reading.prompts:
        return None
    name = given.reading.prompts[0]
    return f"{name} would wait for commands that Detent cannot see; give it the command: {name} -c '…', or a file"


def _unread_texts(given: GuardInput) -> "list[str]":
    """The texts of a call that are not followed."""
    if given.call["kind"] == "mcp":
        return [str(given.call["text"])]
    if given.call["kind"] != "shell":
        return []
    typed = [text] if (text := given.call.get("text")) else []
    return [*given.reading.code, *given.reading.texts, *typed]


def _names_detent(text: str) -> bool:
    return "detent" in text.lower() and any(_is_detent(word) for word in _split(text))


def _is_detent(word: str) -> bool:
    return word == "detent" or word.startswith("detent.") or word.endswith("/bin/detent")


def _split(text: str) -> "list[str]":
    """The words of a text in whatever language it is."""
    return text.lower().translate(_BETWEEN_WORDS).split()


def _only_looks(verb: str, rest: "list[str]") -> bool:
    if verb == "reply":
        return not rest
    return verb in ("rollback", "undo") and "--dry-run" in rest and "--yes" not in rest


def _readable(given: GuardInput) -> "str | None":
    if given.doc is False and given.call["kind"] in ("delegate", "message", "skill"):
        return "the state of the work cannot be read, so nothing is delegated; a person should run: detent doctor --fix"
    return None


def _in_order(given: GuardInput) -> "str | None":
    """A phase is delegated only while it is in progress; its own sub-agents are part of it."""
    if given.call["kind"] not in ("delegate", "message"):
        return None
    from detent.core.guard.call_purpose import target_phases  # noqa: PLC0415 - most calls delegate nothing

    reasons = (_out_of_order(given, target) for target in target_phases(given.doc, given.call))
    return next((reason for reason in reasons if reason), None)


def _out_of_order(given: GuardInput, target: str) -> "str | None":
    from detent.core.guard import state_reader  # noqa: PLC0415
    from detent.core.guard.call_purpose import agent_name  # noqa: PLC0415

    doc = given.doc
    current = state_reader.current_phase(doc)
    if not current or not state_reader.phases(doc):
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
    if given.call["kind"] not in ("delegate", "message", "skill"):
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
    if given.call["kind"] not in ("delegate", "message", "skill"):
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
    paths = (*given.files["config"], *given.files["document"])
    directories = tuple(path.partition("/")[0] for path in paths)
    return given.call["kind"] == "shell" and is_harmless(given.call["command"], given.call["cwd"], directories)


RULES = (
    ("guarded files", _guarded_files),
    ("settings of clients", _client_settings),
    ("people decide", _people_decide),
    ("interactive shells", _interactive_shells),
    ("state readable", _readable),
    ("order of phases", _in_order),
    ("corridor", _corridor),
    ("gates", _gates),
)


def _detent_words(words: list[str]) -> list[str]:
    """The verb of a `detent` command line and what follows it, however it was started."""
    if not words or words[0].rpartition("/")[2] != "detent":
        return []
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "--directory", "--project") else rest[1:]
    return rest
