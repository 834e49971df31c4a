"""The workflows that a project can start: those shipped with Detent, and its own."""

import os
from collections.abc import Iterable
from functools import cache
from typing import TypeVar

import msgspec

from detent.config.settings import (
    InstructionsFile,
    PhaseEntry,
    PhaseSettings,
    Settings,
    Variant,
    WorkflowSettings,
    parse_settings,
)
from detent.core.gate.kinds.changes import with_changes
from detent.core.workflow.graph import Phase, Workflow, problems
from detent.core.workflow.phase_key import normalize_phase_key
from detent.core.workflow.roles import PHASE_AGENTS
from detent.errors import Invalid, NotFound

T = TypeVar("T")
MAX_INSTRUCTIONS = 16_384


class Catalogue:
    """Workflows and their variants by name. Legacy phase keys in the settings are replaced by their present names."""

    def __init__(self, own: Settings, root: str = ".") -> None:
        """`root`: the directory of `detent.toml`."""
        self._root = root
        shipped = shipped_settings()
        self._own_phases = dict(zip(_present(own.phases), own.phases.values(), strict=True))
        self._shipped_phases = shipped.phases
        self._own_workflows = frozenset(own.workflows)
        self._roles = own.decisions.roles
        self._workflows = {**shipped.workflows, **own.workflows}
        self._variants = {
            variant: workflow
            for workflow, settings in self._workflows.items()
            for variant in settings.variants
            if variant not in self._workflows
        }

    def names(self) -> list[str]:
        return [*self._workflows, *self._variants]

    @property
    def variants(self) -> dict[str, str]:
        """The variants, each with its workflow."""
        return dict(self._variants)

    def title(self, name: str) -> str:
        base = self._variants.get(name, name)
        return self._workflows[base].title + (f" ({name})" if base != name else "")

    def workflow(self, name: str) -> Workflow:
        """The named workflow; `Invalid` with all of its problems if it cannot be used."""
        base = self._variants.get(name, name)
        settings = self._workflows.get(base)
        if settings is None:
            import difflib  # noqa: PLC0415 - only a misspelling needs it

            close = difflib.get_close_matches(name, self.names(), n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise NotFound(
                f"there is no workflow {name[:80]}; {hint}there are {', '.join(self.names())}",
                way_out="detent workflows",
            )
        workflow = self._build(name, settings)
        wrong = problems(workflow, self._roles)
        if wrong:
            raise Invalid(f"workflow {name} cannot be used", wrong, way_out="correct it in detent.toml")
        variant = settings.variants.get(name, Variant()) if name != base else Variant()
        return _as_variant(workflow, variant)

    def _build(self, name: str, settings: WorkflowSettings) -> Workflow:
        phases: list[Phase] = []
        for item in settings.phases:
            entry = PhaseEntry(key=item) if isinstance(item, str) else item
            previous = (phases[-1].key,) if phases else ()
            [key] = _present([entry.key])
            needs = previous if entry.needs is None else _present(entry.needs)
            phases.append(self.phase(key, needs, entry, is_own=name in self._own_workflows))
        return Workflow(
            name=name,
            title=settings.title,
            prefix=settings.prefix,
            activation=settings.activation,
            phases=tuple(phases),
            sizes={size: _present(left_out) for size, left_out in settings.sizes.items()},
        )

    def phase(
        self, key: str, needs: tuple[str, ...], entry: PhaseSettings | None = None, *, is_own: bool = True
    ) -> Phase:
        """The phase with the settings of its entry in the workflow, of the project, and the defaults.

        The project's settings of a phase override a workflow shipped with Detent, but not a workflow of the project.
        """
        within, project = entry or PhaseSettings(), self._own_phases.get(key, PhaseSettings())
        shipped = self._shipped_phases.get(key, PhaseSettings())
        layers = (within, project, shipped) if is_own else (project, within, shipped)
        own_agent = _first(layer.agent for layer in layers)
        gates = _first(layer.gates for layer in layers) or ()
        if _first(layer.changes for layer in layers) == "required":
            gates = with_changes(gates)
        chosen = next((layer.instructions for layer in layers if layer.instructions is not None), None)
        return Phase(
            key=key,
            title=_first(layer.title for layer in layers) or key,
            agent=PHASE_AGENTS.get(key, "") if own_agent is None else own_agent,
            needs=needs,
            gates=gates,
            timeout_minutes=_first(layer.timeout_minutes for layer in layers),
            optional=bool(_first(layer.optional for layer in layers)),
            tasks=bool(_first(layer.tasks for layer in layers)),
            discovery=bool(_first(layer.discovery for layer in layers)),
            rewrites_tests=bool(_first(layer.rewrites_tests for layer in layers)),
            instructions=self._instructions(key, chosen),
        )

    def _instructions(self, phase: str, chosen: str | InstructionsFile | None) -> str:
        """The text of the instructions of a phase."""
        way_out = f"correct instructions under [phases.{phase}] in detent.toml"
        text = chosen if isinstance(chosen, str) else ""
        if isinstance(chosen, InstructionsFile):
            try:
                with open(os.path.join(self._root, chosen.file), encoding="utf-8") as file:
                    text = file.read(MAX_INSTRUCTIONS + 1)
            except (OSError, UnicodeDecodeError) as error:
                raise Invalid(f"the instructions of {phase} cannot be read: {error}", way_out=way_out) from error
        if len(text) > MAX_INSTRUCTIONS:
            raise Invalid(f"the instructions of {phase} have more than {MAX_INSTRUCTIONS} characters", way_out=way_out)
        return text.strip()


@cache
def shipped_settings() -> Settings:
    from importlib import resources  # noqa: PLC0415 - slow to load, and only starting a session needs it

    data = resources.files("detent.config") / "data"
    phases, workflows = (
        parse_settings((data / name).read_text("utf-8"), name) for name in ("phases.toml", "workflows.toml")
    )
    return msgspec.structs.replace(workflows, phases=phases.phases)


def _as_variant(workflow: Workflow, variant: Variant) -> Workflow:
    """Removes excluded phases, and optional ones that are not included; their successors need what they needed."""
    include, exclude = _present(variant.include), _present(variant.exclude)
    unknown = [key for key in (*include, *exclude) if key not in workflow.by_key]
    if unknown:
        raise Invalid(f"variant {workflow.name} names phases that do not exist: {', '.join(unknown)}")
    optional = {phase.key for phase in workflow.phases if phase.optional}
    return workflow.without((optional - set(include)) | set(exclude))


def _present(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(normalize_phase_key(key) for key in keys)


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)
