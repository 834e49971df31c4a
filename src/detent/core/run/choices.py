"""The options of `detent run`, which a session keeps: a run that goes on has the options of the run before it."""

import msgspec

#: The options that limit what a run may use.
LIMITS = ("max_hours", "max_turns", "max_tasks")


class RunChoices(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options on the command line of a run. An option that was not given leaves it to the settings."""

    #: Phase or role to agent; the empty name stands for all others.
    agents: dict[str, str] = {}
    parallel: int | None = None
    isolation: str | None = None
    #: The branch that the work of worktrees is merged into; HEAD is what the project has checked out.
    into: str | None = None
    max_hours: float | None = None
    max_turns: int | None = None
    max_tasks: int | None = None

    def updated(self, given: "RunChoices") -> "RunChoices":
        """These options with the given ones in their place."""
        own, new = msgspec.structs.asdict(self), msgspec.structs.asdict(given)
        chosen = {name: own[name] if value is None else value for name, value in new.items()}
        return RunChoices(**{**chosen, "agents": {**self.agents, **given.agents}})

    def overrides(self) -> dict[str, object]:
        """The options that take the place of settings under `[run]`."""
        return {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if name != "agents" and value is not None
        }

    def __str__(self) -> str:
        agents = [f"--agent {f'{phase}=' if phase else ''}{name}" for phase, name in self.agents.items()]
        return " ".join([*agents, *(f"--{name.replace('_', '-')} {value}" for name, value in self.overrides().items())])
