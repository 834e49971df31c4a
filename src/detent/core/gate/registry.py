"""The registry of gate kinds, and decoding of gates through it.

A kind in a module of its own joins with one line: `register(MyGate)`.
"""

from typing import TypeVar

import msgspec

from detent.core.gate.kind import Gate, kind_name
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.artifacts import ArtifactsGate
from detent.core.gate.kinds.changes import ChangesGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.consensus import ConsensusGate
from detent.core.gate.kinds.constitution import ConstitutionGate
from detent.core.gate.kinds.coverage import CoverageGate
from detent.core.gate.kinds.delegation import DelegationGate
from detent.core.gate.kinds.elicitation import ElicitationGate
from detent.core.gate.kinds.findings import FindingsGate
from detent.core.gate.kinds.mutation import MutationGate
from detent.core.gate.kinds.regression import RegressionGate
from detent.core.gate.kinds.review import ReviewGate
from detent.core.gate.kinds.tests import TestsGate

#: Kind to its class.
KINDS: dict[str, type[Gate]] = {}
#: Methods without a default.
REQUIRED = ("judge", "way_out", "requirement")
_Kind = TypeVar("_Kind", bound=type[Gate])


def register(kind: _Kind) -> _Kind:
    """Make a kind known. A second kind of the same name is an error, and so is a kind that lacks a required method."""
    name = kind_name(kind)
    missing = [method for method in REQUIRED if getattr(kind, method) is getattr(Gate, method)]
    if missing:
        raise TypeError(f"gate kind {name} has no {', '.join(missing)}")
    if KINDS.setdefault(name, kind) is not kind:
        raise ValueError(f"gate kind {name} is already registered by {KINDS[name].__module__}")
    return kind


for _kind in (
    TestsGate,
    RegressionGate,
    ChangesGate,
    ConstitutionGate,
    ElicitationGate,
    ArtifactsGate,
    DelegationGate,
    CommandGate,
    CoverageGate,
    FindingsGate,
    MutationGate,
    ReviewGate,
    ConsensusGate,
    ApprovalGate,
):
    register(_kind)


def decode_gate(declared: type, value: object) -> object:
    """The `dec_hook` of every decoder of a workflow: a value of `Gate` becomes one of its kind."""
    if declared is not Gate:
        raise NotImplementedError(f"{declared.__name__} is not stored")
    if not isinstance(value, dict):
        raise TypeError("a gate is a table with a kind")
    name = value.get("kind")
    if name not in KINDS:
        raise ValueError(f"there is no gate kind {name!r}; there are {', '.join(KINDS)}")
    try:
        return msgspec.convert(value, KINDS[name])
    except msgspec.ValidationError as error:
        raise ValueError(f"{name} gate: {error}") from error
