"""The shape of `detent.toml`; the workflows that come with Detent are files of the same shape."""

from typing import Annotated, Literal

import msgspec

from detent.core.gate import Gate
from detent.core.gate.registry import decode_gate
from detent.core.session.budget import TIERS
from detent.core.session.events import Budget, Options, Supervised
from detent.errors import Invalid


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class PhaseSettings(_Table, frozen=True, kw_only=True):
    """What a phase asks for; whatever is not set here keeps its default."""

    title: str | None = None
    agent: str | None = None
    gates: tuple[Gate, ...] | None = None
    timeout_minutes: int | None = None
    optional: bool | None = None
    #: Where a run does the tasks of a session; by default in IMPLEMENT, 06-implementation or development.
    tasks: bool | None = None
    discovery: bool | None = None


class PhaseEntry(PhaseSettings, frozen=True, kw_only=True):
    """A phase in a workflow's list. Without `needs` it follows the one before it."""

    key: str
    needs: tuple[str, ...] | None = None


class Variant(_Table, frozen=True, kw_only=True):
    """A form of a workflow: phases that it must have, and phases that it leaves out."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class WorkflowSettings(_Table, frozen=True, kw_only=True):
    title: str = ""
    prefix: str | None = None
    activation: Literal["explicit", "delegation"] = "explicit"
    phases: tuple[str | PhaseEntry, ...]
    sizes: dict[str, tuple[str, ...]] = {}
    variants: dict[str, Variant] = {}


class ProjectSettings(_Table, frozen=True, kw_only=True):
    """One package of a monorepo."""

    path: str


class CheckpointSettings(_Table, frozen=True, kw_only=True):
    #: The whole tree, only the artifacts that phases declare, or nothing.
    capture: Literal["tree", "declared", "off"] = "tree"
    #: Patterns as in .gitignore, relative to the project: what comes from elsewhere and can be got again.
    exclude: tuple[str, ...] = ("node_modules/", ".venv/", "__pycache__/")
    max_file_mb: Annotated[int, msgspec.Meta(ge=1)] = 100
    compress: bool = False


class AgentSettings(_Table, frozen=True, kw_only=True):
    """Who does the work of phases, and how it is called."""

    #: The client, `command` for any shell command, or `manual` for a person.
    adapter: str
    #: The shell command of a `command` agent; of the others the program, where it is not their usual name.
    command: str | None = None
    #: Further arguments of the program.
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    #: For a turn, where the phase sets no limit of its own.
    timeout_minutes: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    #: How often a turn that failed for a passing reason is tried again, and the first pause, which doubles each time.
    retries: Annotated[int, msgspec.Meta(ge=0)] = 3
    backoff_s: Annotated[float, msgspec.Meta(ge=0)] = 2.0
    #: How a `command` agent gets its prompt, and where its result is.
    prompt: Literal["stdin", "file"] = "stdin"
    result: Literal["text", "json", "file"] = "text"


class RunSettings(_Table, frozen=True, kw_only=True):
    """How `detent run` works."""

    #: The agent that does what no other is named for.
    agent: str | None = None
    #: Role or phase to agent.
    agents: dict[str, str] = {}
    workflow: str = "feature"
    parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    #: Attempts of a phase before a person has to decide.
    attempts: Annotated[int, msgspec.Meta(ge=1)] = 3
    #: Turns of an attempt: the first, and one for each time that its gates were closed afterwards.
    turns: Annotated[int, msgspec.Meta(ge=1)] = 10
    #: What runs the tests, for gates that name no command themselves.
    tests: str | None = None
    isolation: Literal["none", "session", "phase"] = "none"
    #: A program that is called with a line of text when a person is needed; the bell rings without one too.
    notify: tuple[str, ...] = ()


class Settings(_Table, frozen=True, kw_only=True):
    #: Off lets every phase be finished without evidence; each session keeps what held when it started.
    gates: Literal["strict", "off"] = "strict"
    supervised: Supervised | None = None
    #: Limits, or the name of a tier of them.
    budget: Budget | Literal["light", "standard", "epic"] | None = None
    checkpoint: CheckpointSettings = CheckpointSettings()
    agents: dict[str, AgentSettings] = {}
    run: RunSettings = RunSettings()
    default_project: str | None = None
    projects: dict[str, ProjectSettings] = {}
    phases: dict[str, PhaseSettings] = {}
    workflows: dict[str, WorkflowSettings] = {}

    def options(self, found: Options | None = None) -> Options:
        """How a session is held; supervision that was found with imported work goes on if nothing is set here."""
        budget = TIERS[self.budget] if isinstance(self.budget, str) else self.budget
        supervised = self.supervised or (found.supervised if found else None)
        return Options(gates=self.gates == "strict", supervised=supervised, budget=budget)


def parse_settings(text: str, source: str) -> Settings:
    import tomllib  # noqa: PLC0415 - most projects have no settings to read

    try:
        return msgspec.convert(tomllib.loads(text), Settings, dec_hook=decode_gate)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{source} is not valid TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise Invalid(f"{source}: {error}", way_out="detent schema detent.toml shows what may stand there") from error
