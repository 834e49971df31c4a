"""The schema of `detent.toml`. The workflows shipped with Detent are files of the same schema."""

from typing import Annotated, Literal

import msgspec

from detent.core.actor import Assurance
from detent.core.gate import Gate
from detent.core.gate.registry import decode_gate
from detent.core.session.budget import TIERS
from detent.core.session.events import Budget, Options, Supervised
from detent.errors import Invalid

#: The way out of a file that cannot be used.
NEEDLESS = (
    "correct it, or rename it: without it every setting has its default; detent schema detent.toml shows the settings"
)


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class InstructionsFile(_Table, frozen=True, kw_only=True):
    """A file with instructions. A session keeps the text that it started with."""

    #: Relative to the directory of detent.toml.
    file: str


class PhaseSettings(_Table, frozen=True, kw_only=True):
    """The settings of a phase; None is the default."""

    #: The name that people see; by default the key.
    title: str | None = None
    #: The role of the agent that does the work; `[run] agents` says which agent fills it.
    agent: str | None = None
    #: The conditions for finishing the phase.
    gates: tuple[Gate, ...] | None = None
    #: Limit of an attempt; the limit of the agent counts if it is shorter.
    timeout_minutes: Annotated[int, msgspec.Meta(gt=0)] | None = None
    #: Whether a variant of the workflow may leave the phase out.
    optional: bool | None = None
    #: Whether a run does the tasks of a session in this phase; by default IMPLEMENT, 06-implementation, development.
    tasks: bool | None = None
    #: Whether the phase gets the notes about the code base from before the session.
    discovery: bool | None = None
    #: Whether the phase may rewrite tests that stood when the session began. It may never lose any of them.
    rewrites_tests: bool | None = None
    #: Whether the phase must change files of the project: it then has a `changes` gate.
    changes: Literal["required", "any"] | None = None
    #: What the agents of the phase are told: a text, or a file.
    instructions: str | InstructionsFile | None = None


class PhaseEntry(PhaseSettings, frozen=True, kw_only=True):
    """A phase in a workflow's list. Without `needs` it follows the one before it."""

    #: The name of the phase in commands, documents and the journal.
    key: str
    #: The phases that must be completed or skipped before; by default the one before it in the list.
    needs: tuple[str, ...] | None = None


class Variant(_Table, frozen=True, kw_only=True):
    """A variant of a workflow: optional phases that it has, and phases that it leaves out."""

    #: Optional phases that the variant has.
    include: tuple[str, ...] = ()
    #: Phases that the variant leaves out.
    exclude: tuple[str, ...] = ()


class WorkflowSettings(_Table, frozen=True, kw_only=True):
    #: The name that people see; by default the key.
    title: str = ""
    #: The prefix of the numbers of sessions: `REQ` gives REQ-0001.
    prefix: str | None = None
    #: With `delegation` a phase begins when its agent is started; with `explicit` when `begin` is called.
    activation: Literal["explicit", "delegation"] = "explicit"
    #: The phases in their order: keys, or tables.
    phases: tuple[str | PhaseEntry, ...]
    #: Size to the phases that it leaves out: `start --size light`.
    sizes: dict[str, tuple[str, ...]] = {}
    #: Variants of the workflow by name.
    variants: dict[str, Variant] = {}


class ProjectSettings(_Table, frozen=True, kw_only=True):
    """One package of a monorepo."""

    #: The directory of the package, relative to the root.
    path: str


class CheckpointSettings(_Table, frozen=True, kw_only=True):
    #: The whole tree, only the artifacts that phases declare, or nothing.
    capture: Literal["tree", "declared", "off"] = "tree"
    #: Patterns as in .gitignore, relative to the project: files that can be installed or built again.
    exclude: tuple[str, ...] = ("node_modules/", ".venv/", "__pycache__/")
    #: Larger files are not captured; the checkpoint lists them.
    max_file_mb: Annotated[int, msgspec.Meta(ge=1)] = 100
    #: Patterns as in .gitignore: files that may hold secrets, such as .env and keys, and are captured all the same.
    secrets: tuple[str, ...] = ()
    #: Compress contents: smaller, and slower to write.
    compress: bool = False


class AgentSettings(_Table, frozen=True, kw_only=True):
    """An agent that works on phases, and the command that starts it."""

    #: The client, `acp` for any agent that speaks the Agent Client Protocol, `command` for any shell command, or
    #: `manual` for a person.
    adapter: str
    #: The shell command of a `command` agent, the command line of an `acp` agent; for the others the program, if it
    #: has another name than usual.
    command: str | None = None
    #: Further arguments of the program.
    args: tuple[str, ...] = ()
    #: Variables that the program gets besides those of the shell.
    env: dict[str, str] = {}
    #: Limit of a turn; the limit of the phase counts if it is shorter.
    timeout_minutes: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    #: Number of retries after a temporary failure.
    retries: Annotated[int, msgspec.Meta(ge=0)] = 3
    #: The pause before the first retry in seconds; it doubles each time.
    backoff_s: Annotated[float, msgspec.Meta(ge=0)] = 2.0
    #: Where a `command` agent reads its prompt.
    prompt: Literal["stdin", "file"] = "stdin"
    #: How a `command` agent gives its result: as text, as JSON on its output, or as a JSON file.
    result: Literal["text", "json", "file"] = "text"
    #: The calls that an `acp` agent may make, after the guard: kinds of tools such as `edit` and `execute`, each
    #: also with a pattern of paths or commands: `execute:pytest *`. None: what the documentation names.
    allow: tuple[str, ...] | None = None
    #: The mode of an `acp` agent in which every write and every shell call asks for permission.
    mode: str | None = None
    #: The client that an `acp` agent is, if its command does not tell.
    client: str | None = None


SandboxMode = Literal["auto", "off", "required"]


class SandboxSettings(_Table, frozen=True, kw_only=True):
    """The sandbox of what a run starts: agents, checks of gates, steps of tasks."""

    #: `auto`: bubblewrap where it works. `required`: no run without it.
    mode: SandboxMode = "auto"
    #: Paths that are writable, or visible if they are hidden otherwise; `~` and `$NAME` are expanded.
    allow: tuple[str, ...] = ()
    #: Further paths that are hidden.
    hide: tuple[str, ...] = ()
    #: Whether what a run starts may use the network.
    network: Literal["on", "off"] = "on"


class RunSettings(_Table, frozen=True, kw_only=True):
    """The settings of `detent run`."""

    #: The agent for phases that name no other.
    agent: str | None = None
    #: Role or phase to agent.
    agents: dict[str, str] = {}
    #: The workflow of a run that starts a session.
    workflow: str = "feature"
    #: Maximum number of phases or tasks at the same time.
    parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    #: Attempts of a phase before a person has to decide.
    attempts: Annotated[int, msgspec.Meta(ge=1)] = 3
    #: Turns of an attempt: the first, and one more each time that its gates are closed afterwards.
    turns: Annotated[int, msgspec.Meta(ge=1)] = 10
    #: Hours of a run. When a limit is reached, a person decides.
    max_hours: Annotated[float, msgspec.Meta(gt=0)] = 8.0
    #: Turns of a run.
    max_turns: Annotated[int, msgspec.Meta(ge=1)] = 200
    #: Tasks that agents may add.
    max_tasks: Annotated[int, msgspec.Meta(ge=0)] = 50
    #: The test command of gates that name none.
    tests: str | None = None
    #: Variables of that command: `NAME=value` sets one, `NAME` passes it on.
    env: tuple[str, ...] = ()
    #: `session` and `phase` work in git worktrees, merged into a branch of the session.
    isolation: Literal["none", "session", "phase"] = "none"
    #: The branch that isolated work is merged into; HEAD is what the project has checked out. None: detent/SESSION.
    into: str | None = None
    #: Ignored files of the project, by pattern, to which each worktree has links: `.venv`, `node_modules`.
    link: tuple[str, ...] = ()
    #: Role or phase to the labels that a worker must have, in a run on several machines.
    labels: dict[str, tuple[str, ...]] = {}
    #: In a run on several machines, a worker is taken for dead after this long without a heartbeat.
    heartbeat_s: Annotated[float, msgspec.Meta(ge=1, le=600)] = 10.0
    #: A program that is called with a line of text when a person is needed. The terminal bell rings in any case.
    notify: tuple[str, ...] = ()
    #: `auto`: bubblewrap where it works. `required`: no run without it. A table has `mode` and further settings.
    sandbox: SandboxMode | SandboxSettings = "auto"

    def sandbox_settings(self) -> SandboxSettings:
        return self.sandbox if isinstance(self.sandbox, SandboxSettings) else SandboxSettings(mode=self.sandbox)


class DecisionSettings(_Table, frozen=True, kw_only=True):
    """The people and roles that decide."""

    #: Role to the accounts of the operating system that fill it. A session keeps the roles that it started with.
    roles: dict[str, tuple[str, ...]] = {}
    #: The weakest assurance of a decision: attended, signed or hardware. A session keeps the one it started with.
    assurance: Assurance = Assurance.ATTENDED


class PublishSettings(_Table, frozen=True, kw_only=True):
    """The settings of `detent publish`."""

    #: The git remote that `--to ref` pushes refs/detent/… to. Without it nothing is pushed.
    remote: str | None = None


class FileSettings(_Table, frozen=True, kw_only=True):
    """The place that checkpoints' files travel to, for work on several machines."""

    #: The git remote that gets refs/detent/SESSION/CHECKPOINT. Without it, and without `url`, nothing is sent.
    remote: str | None = None
    #: A place for projects without a remote: `file:///…`, `s3://…`; needs the extra `files`.
    url: str | None = None
    #: Snapshots of a session that ended are removed by `detent files clean` after this many days.
    keep_days: Annotated[float, msgspec.Meta(ge=0)] = 14.0


class PageSettings(_Table, frozen=True, kw_only=True):
    """The settings of `detent ui`."""

    #: The port of the page at localhost.
    port: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 7337


class StoreSettings(_Table, frozen=True, kw_only=True):
    """The place of the journals: by default files of the project."""

    #: postgresql://USER@HOST:PORT/DATABASE, without a password: libpq reads it from ~/.pgpass or a service file.
    url: str | None = None
    #: The name of this project in the database; all checkouts have the same.
    project: str | None = None


class TelemetrySettings(_Table, frozen=True, kw_only=True):
    """The receiver of the traces and metrics of `detent run`; none by default."""

    #: The address of a collector, such as http://localhost:4318; traces go to /v1/traces, metrics to /v1/metrics.
    endpoint: str | None = None
    #: Further headers; `$NAME` is the value of a variable.
    headers: dict[str, str] = {}
    #: Limit of one request.
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0


class WebhookSettings(_Table, frozen=True, kw_only=True):
    """A receiver of events, as CloudEvents."""

    #: The address that each event is posted to.
    url: str
    #: Names of events, such as phase_finished; empty for all.
    events: tuple[str, ...] = ()
    #: The variable with the secret that signs; without it nothing is signed.
    secret_env: str | None = None
    #: Further headers; `$NAME` is the value of a variable.
    headers: dict[str, str] = {}
    #: Limit of one request.
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0
    #: Retries of a request that failed, with a pause that doubles from one second.
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 5


class Settings(_Table, frozen=True, kw_only=True):
    #: With "off" every phase can be finished without evidence. A session keeps the setting it started with.
    gates: Literal["strict", "off"] = "strict"
    supervised: Supervised | None = None
    #: Limits, or the name of a tier.
    budget: Budget | Literal["light", "standard", "epic"] | None = None
    checkpoint: CheckpointSettings = CheckpointSettings()
    decisions: DecisionSettings = DecisionSettings()
    agents: dict[str, AgentSettings] = {}
    run: RunSettings = RunSettings()
    publish: PublishSettings = PublishSettings()
    files: FileSettings = FileSettings()
    ui: PageSettings = PageSettings()
    store: StoreSettings = StoreSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    #: Name to receiver.
    webhooks: dict[str, WebhookSettings] = {}
    #: The package of a monorepo that is meant at its root.
    default_project: str | None = None
    projects: dict[str, ProjectSettings] = {}
    phases: dict[str, PhaseSettings] = {}
    workflows: dict[str, WorkflowSettings] = {}

    def options(self, imported: Options | None = None) -> Options:
        """The options of a session; supervision of imported work stays unless it is set here."""
        budget = TIERS[self.budget] if isinstance(self.budget, str) else self.budget
        supervised = self.supervised or (imported.supervised if imported else None)
        return Options(
            gates=self.gates == "strict", supervised=supervised, budget=budget, assurance=self.decisions.assurance
        )


def parse_settings(text: str, source: str) -> Settings:
    import tomllib  # noqa: PLC0415 - most projects have no settings to read

    try:
        return msgspec.convert(tomllib.loads(text), Settings, dec_hook=decode_gate)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{source} is not valid TOML: {error}", way_out=NEEDLESS) from error
    except RecursionError as error:
        raise Invalid(f"{source} is nested too deeply", way_out=NEEDLESS) from error
    except msgspec.ValidationError as error:
        raise Invalid(f"{source}{_where(text, str(error))}: {error}", way_out=NEEDLESS) from error


def _where(text: str, problem: str) -> str:
    """The line of the setting that the problem is about, as far as the text of the problem tells."""
    reason, _, path = problem.partition(" - at `$")
    # A key that the user chose is "[...]" in the path of a problem, and a number is a place in a list.
    keys = [part for part in path.rstrip("`").replace("[...]", ".*").replace("[", ".[").split(".") if part]
    keys = [key for key in keys if not key.startswith("[")]
    if "unknown field" in reason:
        keys.append(reason.split("`")[1])
    best, table = (0, 0), list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _split_keys(stripped.strip("[").partition("]")[0])
            named = table
        else:
            named = [*table, *_split_keys(stripped.partition("=")[0])] if "=" in stripped else []
        is_around = all(key in (name, "*") for name, key in zip(named, keys, strict=False))
        if is_around and best[0] < len(named) <= len(keys):
            best = (len(named), number)
    return f", line {best[1]}" if best[1] else ""


def _split_keys(text: str) -> list[str]:
    return [part.strip().strip("\"'") for part in text.split(".")]
