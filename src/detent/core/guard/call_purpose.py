"""The purpose of a tool call: the phase that it delegates to, and whether it asks to leave the current phase.

Decided on structured fields. Words count only in text fields, and only as whole words.
"""

from detent.core.guard import state_reader
from detent.core.workflow.phase_key import normalize_phase_key
from detent.core.workflow.roles import EVERY_PHASE, PHASE_AGENTS, SUB_AGENTS, normalize_agent_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from detent.core.guard.state_reader import Json

ADVANCE = ("advance", "gate", "next phase", "proceed", "move to phase", "progress to")
HAND_OVER = ("delegate", "hand off", "handoff", "phase complete", "declare complete")
SETUP = (
    *("discover", "constitution", "init", "setup", "configure", "configure-cloud"),
    *("new project", "install", "status"),
)
WORKFLOW_SKILLS = ("detent", "isdlc")
#: Calls that hand work to an agent: one that starts, or one that is there already.
DELEGATES = ("delegate", "message")
# The agents of the numbered phases have names of their own; those of the others are everyday words.
_NUMBERED = {agent: phase for phase, agent in reversed(PHASE_AGENTS.items()) if phase[:2].isdigit()}
_ANY_AGENT = {**_NUMBERED, **SUB_AGENTS}


def target_phase(doc: object, call: "Json") -> str:
    """The phase that a delegation is for; of several the first. Empty if the call is for no phase."""
    return (target_phases(doc, call) or [""])[0]


def target_phases(doc: object, call: "Json") -> list[str]:
    """The phases that a delegation is for: a marker in the text, the agent's type, or a phase key as a whole word.

    Where the call names no agent, those in the text count: the first one of a prompt, all of a script.
    """
    if call["kind"] not in DELEGATES:
        return []
    keys = state_reader.phases(doc)
    words = split_words(call["text"])
    marked = _marked_phase(words, keys)
    if marked:
        return [marked]
    given, is_message = agent_name(call["agent"]), call["kind"] == "message"
    if given in EVERY_PHASE:
        return []
    known = {*_ANY_AGENT, *_own_agents(doc).values()} if is_message else _ANY_AGENT
    agents = [given] if given in known or (given and not is_message) else [word for word in words if word in known]
    phases = [_phase_of_agent(doc, agent, keys) for agent in (agents if is_message else agents[:1])]
    phases = [phase for phase in dict.fromkeys(phases) if phase]
    return phases or [phase for phase in (_mentioned_phase(doc, call["text"], keys),) if phase]


def agent_name(text: object) -> str:
    """The agent without the plugin that brought it, in one spelling."""
    return normalize_agent_name(text.rsplit(":", 1)[-1]) if isinstance(text, str) else ""


def asks_to_move(doc: object, call: "Json", phrases: tuple[str, ...], *, only_orchestrators: bool) -> bool:
    """Whether a call that delegates to no phase asks to leave the current one."""
    words = split_words(call["text"])
    if call["kind"] == "skill":
        skill = agent_name(call["agent"].lstrip("/"))
        if skill not in WORKFLOW_SKILLS:
            return says(_parts([skill]), phrases)
        verb = next((word.lower() for word in call["text"].split() if word[:1] != "-"), "")
        if verb in ("analyze", "add"):
            return False
        return says(_parts(words), ("advance", "gate", *phrases)) and not says(words, SETUP)
    if call["kind"] not in DELEGATES or target_phase(doc, call):
        return False
    if only_orchestrators and "orchestrator" not in agent_name(call["agent"]).split("-"):
        return False
    return says(_parts(words), phrases) and not says(words, SETUP)


def _parts(words: list[str]) -> list[str]:
    """Words cut at their hyphens too: `hand-off` says what `hand off` says."""
    return [part for word in words for part in word.replace("_", "-").split("-")]


def says(words: list[str], phrases: tuple[str, ...]) -> bool:
    """Whether one of the phrases occurs in `words`, as whole words."""
    by_first: dict[str, list[list[str]]] = {}
    for phrase in phrases:
        first, *rest = phrase.split()
        by_first.setdefault(first, []).append(rest)
    return any(
        words[at + 1 : at + 1 + len(rest)] == rest
        for at, word in enumerate(words)
        if word in by_first
        for rest in by_first[word]
    )


class _Separators(dict[int, str]):
    """A table for `str.translate` that turns everything but letters, digits, `-` and `_` into a blank."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = char if char.isalnum() or char in "-_" else " "
        return self[code]


_SEPARATORS = _Separators()


def split_words(text: str) -> list[str]:
    """Lower-case words; dashes, underscores and digits belong to them, so that phase keys stay whole."""
    cleaned = text.lower().translate(_SEPARATORS)
    return [word.strip("-") for word in cleaned.split() if word.strip("-")]


def _phase_of_agent(doc: object, agent: str, keys: list[str]) -> str:
    """Of several phases that the agent does, the one in progress, else the next one to do."""
    agents = _own_agents(doc)
    own = [key for key in keys if agent and agents.get(key, PHASE_AGENTS.get(key)) == agent]
    live = [key for key in own if state_reader.status(doc, key) == "in_progress"]
    to_do = [key for key in own if state_reader.status(doc, key) == "pending"]
    return (live or to_do or own or [_ANY_AGENT.get(agent, "")])[0]


def _own_agents(doc: object) -> "dict[str, str]":
    """The agents that the workflow names for its phases."""
    agents = state_reader.mapping(state_reader.workflow(doc).get("agents"))
    return {phase: agent for phase, agent in agents.items() if isinstance(agent, str)}


def _marked_phase(words: list[str], keys: list[str]) -> str:
    """The phase after `phase id:` or `phase key:`."""
    known = {key.lower(): key for key in (*PHASE_AGENTS, *keys)}
    for index, word in enumerate(words[:-2]):
        if word == "phase" and words[index + 1] in ("id", "key"):
            return known.get(normalize_phase_key(words[index + 2]), "")
    return ""


def _mentioned_phase(doc: object, text: str, keys: list[str]) -> str:
    """A phase key in the text: the one in progress if it is there, else the first to be done.

    Keys that are everyday words say nothing, and a phase that is over may be mentioned freely.
    """
    there = [word.strip("-") for word in text.translate(_SEPARATORS).split()]
    there += [word.lower() for word in there if not word.isalpha()]
    mentioned = [word for word in dict.fromkeys(there) if word in keys and not (word.isalpha() and word.islower())]
    live = [key for key in mentioned if state_reader.status(doc, key) == "in_progress"]
    to_do = [key for key in mentioned if state_reader.status(doc, key) in ("pending", "")]
    return (live or to_do or [""])[0]
