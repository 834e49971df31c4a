"""The registry of gate kinds, and decoding of gates through it.

A kind in a module of its own joins with one line: `register(MyGate)`.
"""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TypeVar

import msgspec

from detent.core.gate.kind import Gate, kind_name

#: The kinds of Detent, and the class of each in the module of its name.
_OWN = {
    "tests": "TestsGate",
    "regression": "RegressionGate",
    "changes": "ChangesGate",
    "constitution": "ConstitutionGate",
    "elicitation": "ElicitationGate",
    "artifacts": "ArtifactsGate",
    "delegation": "DelegationGate",
    "command": "CommandGate",
    "coverage": "CoverageGate",
    "findings": "FindingsGate",
    "mutation": "MutationGate",
    "review": "ReviewGate",
    "consensus": "ConsensusGate",
    "approval": "ApprovalGate",
}


class _Kinds(MutableMapping[str, type[Gate]]):
    """Loads an own kind when it is asked for: a session has a few of them, and a command starts for each look at it."""

    def __init__(self) -> None:
        self._loaded: dict[str, type[Gate] | None] = dict.fromkeys(_OWN)

    def __getitem__(self, name: str) -> type[Gate]:
        kind = self._loaded[name]
        if kind is None:
            kind = getattr(import_module(f"detent.core.gate.kinds.{name}"), _OWN[name])
            self._loaded[name] = _checked(kind)
        return kind

    def __setitem__(self, name: str, kind: type[Gate]) -> None:
        self._loaded[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)


#: Kind to its class.
KINDS: MutableMapping[str, type[Gate]] = _Kinds()
#: Methods without a default.
REQUIRED = ("judge", "way_out", "requirement")
_Kind = TypeVar("_Kind", bound=type[Gate])


def register(kind: _Kind) -> _Kind:
    """Make a kind known. A second kind of the same name is an error, and so is a kind that lacks a required method."""
    name = kind_name(_checked(kind))
    if KINDS.setdefault(name, kind) is not kind:
        raise ValueError(f"gate kind {name} is already registered by {KINDS[name].__module__}")
    return kind


def _checked(kind: _Kind) -> _Kind:
    missing = [method for method in REQUIRED if getattr(kind, method) is getattr(Gate, method)]
    if missing:
        raise TypeError(f"gate kind {kind_name(kind)} has no {', '.join(missing)}")
    return kind


def decode_gate(declared: type, value: object) -> object:
    """The `dec_hook` of every decoder of a workflow: a value of `Gate` becomes one of its kind."""
    if declared is not Gate:
        raise NotImplementedError(f"{declared.__name__} is not stored")
    if not isinstance(value, dict):
        raise TypeError("a gate is a table with a kind")
    name = value.get("kind")
    if not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"there is no gate kind {name!r}; there are {', '.join(KINDS)}")
    try:
        return msgspec.convert(value, KINDS[name])
    except msgspec.ValidationError as error:
        raise ValueError(f"{name} gate: {error}") from error
