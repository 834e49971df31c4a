"""The buttons that the page offers for an open decision.

They are read from the commands of the decision, so that the page offers what the terminal does and nothing else.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from detent.core.session.open_decision import DecisionKind, OpenDecision

PRIMARY, DANGER, PLAIN = "primary", "danger", "plain"


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One button: the decision that it posts, and what the person adds."""

    decision: str
    label: str
    style: str = PLAIN
    #: The text that the person writes: under which field it is posted, and what the field is called.
    needs_reason: bool = False
    reason_field: str = "reason"
    reason_label: str = "why"
    #: A further text, where two are asked for: the field and its label.
    also: tuple[str, str] | None = None
    #: The decision is about files: it names the tree that was shown.
    needs_tree: bool = False
    body: dict[str, Any] = {}


class _Words:
    """The words of a command: the verb, its arguments, its options."""

    def __init__(self, command: str) -> None:
        words = shlex.split(command)[1:]
        head = words[: words.index("--")] if "--" in words else words
        self.has_own_command = head is not words
        self.arguments: list[str] = []
        self.options: dict[str, str] = {}
        rest = iter(head)
        for word in rest:
            if word in _WITH_VALUE:
                self.options[word] = next(rest, "")
            elif word.startswith("--"):
                self.options[word] = ""
            else:
                self.arguments.append(word)

    @property
    def verb(self) -> str:
        count = 2 if self.arguments[:1] and self.arguments[0] in _GROUPS else 1
        return " ".join(self.arguments[:count])

    @property
    def rest(self) -> list[str]:
        return self.arguments[len(self.verb.split()) :]


_WITH_VALUE = {"-m", "--gate", "--phase", "--session", "--choice", "--command", "--reason", "--set"}
_GROUPS = {"gate", "task", "flow"}


def actions(entry: OpenDecision) -> list[Action]:
    """The buttons of a decision, the most likely first; none if only the terminal can decide it."""
    offered: list[Action] = []
    for command in (entry.command, *entry.others):
        words = _Words(command)
        make = _TABLE.get(words.verb)
        offered += make(entry, words) if make is not None else ()
    first = next((action for action in offered if action.style == PRIMARY), None)
    return (
        offered
        if first is not None or not offered
        else [msgspec.structs.replace(offered[0], style=PRIMARY), *offered[1:]]
    )


def _reply(entry: OpenDecision, _words: _Words) -> Iterator[Action]:
    body = {"question": entry.question}
    for choice in entry.choices:
        yield Action(decision="reply", label=choice, body={**body, "answer": choice})
    if not entry.choices:
        yield Action(
            decision="reply",
            label="Reply",
            style=PRIMARY,
            needs_reason=True,
            reason_field="answer",
            reason_label="your answer",
            body=body,
        )


def _resolve(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    way = words.rest[0]
    labels = {"retry": "Try again", "skip": "Skip the phase", "cancel": "Cancel the session"}
    style = DANGER if way == "cancel" else PLAIN
    body = {"phase": entry.phase, "choice": way}
    yield Action(decision="resolve", label=labels[way], style=style, needs_reason=True, body=body)


def _review(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    way = words.rest[0]
    labels = {"continue": "Continue", "redo": "Ask for changes", "review": "Start the review"}
    body = {"phase": entry.phase, "choice": way}
    yield Action(decision="review", label=labels[way], needs_reason=way == "redo", body=body)


def _approve(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    body = {"phase": words.rest[0], "gate": words.options.get("--gate")}
    if "--reject" in words.options:
        yield Action(decision="reject", label="Reject", style=DANGER, needs_reason=True, body=body)
    else:
        is_vote = entry.kind is DecisionKind.VOTE
        label = "Approve" if is_vote else "Open the gate by hand"
        style = PRIMARY if is_vote else PLAIN
        yield Action(decision="approve", label=label, style=style, needs_reason=True, needs_tree=True, body=body)


def _answer(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    body = {"phase": entry.phase, "gate": words.rest[0]}
    for choice in entry.choices:
        yield Action(decision="answer", label=choice, body={**body, "choice": choice})


def _report(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    complies = "--compliant" in words.options
    body = {"phase": entry.phase, "gate": words.rest[0], "compliant": complies}
    if complies:
        yield Action(decision="report", label="It complies", style=PRIMARY, body=body)
    else:
        yield Action(decision="report", label="It does not comply", style=DANGER, needs_reason=True, body=body)


def _set_command(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    yield Action(
        decision="command",
        label="Set the command",
        needs_reason=True,
        also=("command", "the command"),
        body={"phase": entry.phase, "gate": words.rest[0]},
    )


def _run_gate(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    # A command that the person would have to type is for the terminal.
    if not words.has_own_command:
        yield Action(decision="run_gate", label="Run the check", body={"phase": entry.phase, "gate": words.rest[0]})


def _accept(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    gate, *names = words.rest
    body: dict[str, Any] = {"phase": entry.phase, "gate": gate}
    body |= {"all": True} if "--all" in words.options else {"names": names}
    yield Action(decision="accept", label="Accept it", needs_reason=True, body=body)


def _baseline(entry: OpenDecision, words: _Words) -> Iterator[Action]:
    body = {"phase": entry.phase, "gate": words.rest[0]}
    yield Action(decision="baseline", label="Make these tests the baseline", needs_reason=True, body=body)


def _redo(_entry: OpenDecision, words: _Words) -> Iterator[Action]:
    body = {"phase": words.rest[0], "cascade": "--cascade" in words.options}
    yield Action(decision="redo", label="Begin another attempt", body=body)


def _skip(_entry: OpenDecision, words: _Words) -> Iterator[Action]:
    yield Action(decision="skip", label="Skip the phase", needs_reason=True, body={"phase": words.rest[0]})


def _task(decision: str, label: str) -> "Callable[[OpenDecision, _Words], Iterator[Action]]":
    def make(_entry: OpenDecision, words: _Words) -> Iterator[Action]:
        yield Action(decision=decision, label=label, body={"task": words.rest[0]})

    return make


def _step(_entry: OpenDecision, words: _Words) -> Iterator[Action]:
    way = next(iter(words.options)).removeprefix("--")
    labels = {
        "retry": "Run the step again",
        "skip": "Skip the step",
        "set": "Give its output",
        "abort": "Fail the task",
    }
    yield Action(
        decision="step",
        label=labels[way],
        style=DANGER if way == "abort" else PLAIN,
        needs_reason=way == "set",
        reason_field="value",
        reason_label="the output of the step",
        body={"task": words.rest[0], "choice": way},
    )


def _resume(_entry: OpenDecision, _words: _Words) -> Iterator[Action]:
    yield Action(decision="resume", label="Make it the active session")


def _force(_entry: OpenDecision, words: _Words) -> Iterator[Action]:
    if "--force" in words.options:
        yield Action(decision="complete", label="Complete it all the same", style=DANGER, body={"force": True})


_TABLE: dict[str, Callable[[OpenDecision, _Words], Iterator[Action] | Sequence[Action]]] = {
    "reply": _reply,
    "resolve": _resolve,
    "review": _review,
    "approve": _approve,
    "gate answer": _answer,
    "gate report": _report,
    "gate set": _set_command,
    "gate run": _run_gate,
    "gate accept": _accept,
    "gate baseline": _baseline,
    "redo": _redo,
    "skip": _skip,
    "task unblock": _task("unblock", "Unblock the task"),
    "task retry": _task("retry", "Try the task again"),
    "flow resume": _step,
    "resume": _resume,
    "complete": _force,
}
