"""Chooses the agent and the type of a task: as named, else by its title, else by its type."""

from collections.abc import Mapping

AGENTS = ("code-developer", "planning-agent", "code-review-test-agent", "review-agent")
DEFAULT_AGENT = "code-developer"

_AGENT_WORDS = {
    "planning-agent": "plan plans planned planning design designs designing",
    "code-review-test-agent": "test tests testing validate validates validating validation",
    "review-agent": "review reviews reviewing audit audits auditing",
    "code-developer": "build builds building implement implements implementing implementation fix fixes fixing",
}
_TYPE_WORDS = {
    "bugfix": "fix fixes fixing bug bugs bugfix hotfix repair",
    "refactor": "refactor refactors refactoring restructure simplify rename",
    "test": "test tests testing validate validates validating validation",
    "docs": "document documents documenting documentation docs readme",
    "feature": "build builds building implement implements implementing implementation add create",
}
_TYPE_AGENTS = {"test": "code-review-test-agent"}


def agent_for(*, explicit: str | None = None, title: str = "", type: str | None = None) -> str:  # noqa: A002
    """The agent that is named, that the first matching word of the title or the type means, or code-developer."""
    named = (explicit or "").strip()
    return named or _first_match(title, _BY_AGENT_WORD) or _TYPE_AGENTS.get(type or "", DEFAULT_AGENT)


def type_for(title: str) -> str:
    """The type that the first matching word of the title means, or feature."""
    return _first_match(title, _BY_TYPE_WORD) or "feature"


def _first_match(title: str, meanings: Mapping[str, str]) -> str | None:
    """Titles begin with a verb, so the first word with a meaning decides."""
    words = "".join(character if character.isalnum() else " " for character in title.casefold()).split()
    return next((meanings[word] for word in words if word in meanings), None)


def _by_word(words: Mapping[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, listed in words.items() for word in listed.split()}


_BY_AGENT_WORD = _by_word(_AGENT_WORDS)
_BY_TYPE_WORD = _by_word(_TYPE_WORDS)
