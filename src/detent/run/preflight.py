"""Looks before a run begins, and before anything is spent: agents, tests, files, branch, hooks, sandbox, limits."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from detent import process
from detent.clients import installing
from detent.clients.acp.agents import client_of, has_asking_mode
from detent.clients.installing import manifest as records
from detent.clients.registry import CLIENTS, client_files
from detent.config import place as places
from detent.core.counted import counted
from detent.core.gate import Gate, gate_name
from detent.core.gate.environment import is_below
from detent.core.session.budget import TIERS
from detent.engine.gates.applicable import is_observed
from detent.engine.gates.environment import missing_program, program_name, toolchain
from detent.engine.sandbox import INSTALL, why_off
from detent.errors import DetentError, Refused
from detent.process.git import Git
from detent.run.worktree_links import left_behind, linked_paths, unmatched

if TYPE_CHECKING:
    from detent.config.settings import AgentSettings
    from detent.core.workflow.graph import Workflow
    from detent.engine.project import Project
    from detent.run.agents import ConfiguredAgents

#: Time for a program to say its version. Some load a whole runtime first.
VERSION_S = 30.0
#: Branches that usually hold what is released.
_MAIN = ("main", "master", "trunk", "develop")
_LISTED = 5


class State(StrEnum):
    OK = "ok"
    #: Shown, and the run begins.
    WARNING = "warning"
    #: The run begins only if a person says so.
    ASK = "ask"
    #: The run does not begin.
    PROBLEM = "problem"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One result of the look: what was looked at, what was found, and what to type."""

    subject: str
    state: State = State.OK
    text: str
    way_out: str | None = None


def preflight(
    project: "Project",
    workflow: "Workflow",
    phases: Sequence[str],
    agents: "ConfiguredAgents | DetentError",
    *,
    begins: bool,
    sets_tests: bool = False,
) -> list[Check]:
    """All that was found. `agents` may be the error that there is none; `begins`: a session is started by this run.

    `sets_tests`: the run gives its test command to a session that has none.
    """
    gates = [gate for key in phases for gate in workflow.by_key[key].gates] if project.settings.options().gates else []
    return [
        *_agent_checks(project, workflow, phases, agents),
        *_test_checks(project, gates, sets_command=begins or sets_tests),
        *_tree_checks(project, begins=begins),
        *_hook_checks(project, gates),
        *_sandbox_checks(project, workflow, phases, agents),
        *_budget_checks(project, workflow, phases, agents),
    ]


def _agents_of(
    workflow: "Workflow", phases: Sequence[str], agents: "ConfiguredAgents | DetentError"
) -> "dict[str, AgentSettings]":
    """The agents of the phases by name, with their settings."""
    if isinstance(agents, DetentError):
        return {}
    names = dict.fromkeys(agents.for_phase(key, workflow.by_key[key].agent)[0] for key in phases)
    return {name: agents.settings_of(name) for name in names}


# Agents


def _agent_checks(
    project: "Project", workflow: "Workflow", phases: Sequence[str], agents: "ConfiguredAgents | DetentError"
) -> Iterator[Check]:
    if isinstance(agents, DetentError):
        yield Check(subject="agent", state=State.PROBLEM, text=agents.message, way_out=agents.way_out)
        return
    for name, settings in _agents_of(workflow, phases, agents).items():
        yield _agent_check(project, name, settings)


def _agent_check(project: "Project", name: str, settings: "AgentSettings") -> Check:
    program = CLIENTS[settings.adapter].program
    if not program:
        return _command_check(project, name, settings)
    chosen = os.path.expanduser(settings.command or program)
    program_path = shutil.which(chosen)
    if program_path is None:
        return Check(
            subject="agent",
            state=State.PROBLEM,
            text=f"{name} is started as {chosen}, which is not on PATH",
            way_out=f"install {CLIENTS[settings.adapter].title}, or choose another agent with --agent",
        )
    asked = f"{shlex.quote(chosen)} --version"
    environment = {**os.environ, **settings.env}
    ran = process.run([program_path, "--version"], cwd=project.place.base, timeout_s=VERSION_S, env=environment)
    answer = (ran.output.strip().splitlines() or [""])[0][:80]
    if ran.exit_code != 0:
        problem = ran.problem or f"exit code {ran.exit_code}{f': {answer}' if answer else ''}"
        return Check(
            subject="agent", state=State.PROBLEM, text=f"{name} does not answer `{asked}`: {problem}", way_out=asked
        )
    return Check(subject="agent", text=f"{name}: {answer or program_path}")


def _command_check(project: "Project", name: str, settings: "AgentSettings") -> Check:
    if settings.command is None:
        return Check(subject="agent", text=f"{name}: a person")
    path = settings.env.get("PATH", os.environ.get("PATH", os.defpath)).split(os.pathsep)
    missing = missing_program(settings.command, path, project.place.base)
    if missing is not None:
        return Check(
            subject="agent",
            state=State.PROBLEM,
            text=f"{name} is the command `{settings.command}`, and the program {missing} was not found",
            way_out=f"correct command under [agents.{name}] in detent.toml",
        )
    if settings.adapter == "acp" and not has_asking_mode(settings):
        off = why_off(project.settings.run.sandbox_settings())
        return Check(
            subject="agent",
            state=State.OK if off is None else State.PROBLEM,
            text=f"{name}: `{settings.command}`; no mode is known in which it asks before every write and shell call",
            way_out=f"mode or client under [agents.{name}] in detent.toml, or a run in the sandbox" if off else None,
        )
    return Check(subject="agent", text=f"{name}: `{settings.command}`")


# Tests


def _test_checks(project: "Project", gates: Iterable[Gate], *, sets_command: bool) -> Iterator[Check]:
    """`sets_command`: gates without a test command get that of the settings. Otherwise a session keeps what it has."""
    place = project.place
    path = toolchain(os.environ, place, (), started_by=project.actor.kind).path
    seen: set[str] = set()
    for gate in gates:
        name = gate_name(gate)
        later = project.settings.run.tests if gate.runs_tests else None
        command = gate.runnable() or (later if sets_command else None)
        if command in seen or (command is None and (not gate.runs_tests or name in seen)):
            continue
        seen.add(command or name)
        if command is None:
            yield Check(
                subject="tests",
                state=State.WARNING,
                text=f"gate {name} names no command, so no run of the tests can open it by itself",
                way_out=f"detent run --tests {shlex.quote(later)}"
                if later
                else "detent run --tests COMMAND, or tests under [run] in detent.toml",
            )
        elif (missing := missing_program(command, path, place.base)) is not None:
            yield Check(
                subject="tests",
                state=State.PROBLEM,
                text=f"gate {name} runs `{command}`, and the program {missing} was not found",
                way_out=f"install it, or detent run --tests COMMAND; PATH of checks: {':'.join(path)}",
            )
        elif (absent := _absent_in_worktree(project, command)) is not None:
            yield Check(
                subject="tests",
                state=State.PROBLEM,
                text=f"gate {name} runs {absent}, which git does not track, so a worktree does not have it",
                way_out=f'link = ["{absent.partition("/")[0]}"] under [run] in detent.toml links yours into it, '
                "or detent run --tests COMMAND with a program on PATH",
            )
        else:
            yield Check(subject="tests" if gate.runs_tests else "gate", text=f"{name}: `{command}`")


def _absent_in_worktree(project: "Project", command: str) -> str | None:
    """The program of the command, if agents work in worktrees and those do not have it."""
    base = project.place.base
    if project.settings.run.isolation == "none" or places.repository(base) is None:
        return None
    name = program_name(command, base)
    if name is None or "/" not in name or os.path.isabs(name):
        return None
    links = project.settings.run.link
    if any(name == each or name.startswith(f"{each.rstrip('/')}/") for each in links):
        return None
    return None if Git(base).holds("ls-files", "--error-unmatch", "--", name) else name


# Files and branch


def _link_checks(project: "Project") -> Iterator[Check]:
    base, patterns = project.place.base, project.settings.run.link
    try:
        paths, missing = linked_paths(base, patterns), unmatched(base, patterns)
        needed = left_behind(base, paths)
    except Refused as error:
        yield Check(subject="files", state=State.PROBLEM, text=error.message, way_out=error.way_out)
        return
    if missing:
        text = f"link names {', '.join(missing)}, and {base} has no such file"
        yield Check(subject="files", state=State.WARNING, text=text, way_out="make it, or change link in detent.toml")
    if needed:
        more = f" and {len(needed) - _LISTED} more" if len(needed) > _LISTED else ""
        text = f"git ignores {', '.join(needed[:_LISTED])}{more}, so a worktree does not have them"
        way_out = (
            f"if tests need them: link = {json.dumps(needed[:_LISTED])} under [run] in detent.toml; it takes patterns"
        )
        yield Check(subject="files", state=State.WARNING, text=text, way_out=way_out)
    if paths:
        yield Check(subject="files", text=f"worktrees have links to {', '.join(paths[:_LISTED])}")


def _tree_checks(project: "Project", *, begins: bool) -> Iterator[Check]:
    root, isolation = project.place.root, project.settings.run.isolation
    if places.repository(root) is None:
        if isolation != "none":
            yield Check(
                subject="branch",
                state=State.PROBLEM,
                text=f"{root} is not in a git repository, and --isolation {isolation} needs one",
                way_out="git init and a first commit, or --isolation none",
            )
        return
    git = Git(root)
    under_way = git.unfinished()
    if under_way is not None:
        yield Check(
            subject="files",
            state=State.PROBLEM,
            text=f"{root} is in the middle of a {under_way}",
            way_out=f"git {under_way} --continue, or git {under_way} --abort",
        )
    changed = _changed(git, root) if begins else []
    if changed:
        more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
        yield Check(
            subject="files",
            state=State.ASK,
            text=f"changes of {counted(len(changed), 'file')} are not committed: {', '.join(changed[:_LISTED])}{more}",
            way_out="git commit or git stash; or go on with --yes",
        )
    elif begins:
        yield Check(subject="files", text="everything is committed")
    if isolation != "none":
        yield from _link_checks(project)
    ran = git.run("symbolic-ref", "--quiet", "--short", "HEAD")
    branch = os.fsdecode(ran.output).strip() if ran.exit_code == 0 else ""
    if begins and isolation == "none" and branch in _MAIN:
        yield Check(
            subject="branch",
            state=State.WARNING,
            text=f"agents work on {branch}",
            way_out="git switch -c BRANCH, or --isolation session",
        )
    else:
        yield Check(subject="branch", text=branch or "HEAD is detached")


def _changed(git: Git, root: str) -> list[str]:
    """Changed and untracked files that are not Detent's own."""
    try:
        installed = records.load(root).files
    except DetentError:
        installed = {}
    own = {*client_files(), *installed}
    return [path for path in git.changes() if path not in own and not path.startswith(".workflow/")]


# Hooks and limits


def _hook_checks(project: "Project", gates: Iterable[Gate]) -> Iterator[Check]:
    root = project.place.root
    for finding in installing.findings(root, environment=os.environ):
        yield Check(subject="hooks", state=State.WARNING, text=finding.message, way_out=finding.way_out)
    if not is_observed(project.place) and any(gate.runs_tests for gate in gates):
        yield Check(subject="hooks", text="none are installed; detent init --agent NAME installs them")


def _sandbox_checks(
    project: "Project", workflow: "Workflow", phases: Sequence[str], agents: "ConfiguredAgents | DetentError"
) -> Iterator[Check]:
    settings = project.settings.run.sandbox_settings()
    off = why_off(settings)
    if off is not None:
        is_needed = settings.mode == "required"
        yield Check(
            subject="sandbox",
            state=State.PROBLEM if is_needed else State.OK if settings.mode == "off" else State.WARNING,
            text=f"the run must be in a sandbox, and there is none: {off}"
            if is_needed
            else f"there is no sandbox: {off}. Agents, checks and steps can write all that you can, the journal too",
            way_out=None if settings.mode == "off" else INSTALL,
        )
        return
    allowed = f"; allowed: {', '.join(settings.allow)}" if settings.allow else ""
    yield Check(subject="sandbox", text=f"on; network {settings.network}{allowed}")
    root, own = os.path.realpath(project.place.root), os.path.realpath(sys.prefix)
    if is_below(own, root) and own not in map(os.path.realpath, (os.path.join(root, path) for path in settings.allow)):
        name = os.path.relpath(own, root)
        yield Check(
            subject="sandbox",
            state=State.WARNING,
            text=f"Detent is installed in {name}, which is read-only in the sandbox: agents can install nothing there",
            way_out=f'install Detent elsewhere, or set allow = ["{name}"] under [run.sandbox] in detent.toml',
        )
    for name, agent in _agents_of(workflow, phases, agents).items():
        yield from _nested_sandbox(name, agent)


#: The value of a client's option that starts no sandbox.
_NO_SANDBOX = ("danger-full-access", "false", "none")


def _nested_sandbox(name: str, settings: "AgentSettings") -> Iterator[Check]:
    """Clients that start a sandbox of their own inside of this one: it cannot reach the runner, or does not start."""
    options, words = CLIENTS[settings.adapter].sandbox_options, list(settings.args)
    for number, word in enumerate(words):
        option, _, value = word.partition("=")
        value = value or "".join(words[number + 1 : number + 2])
        if option in options and value not in _NO_SANDBOX:
            yield Check(
                subject="sandbox",
                state=State.WARNING,
                text=f"{name} starts a sandbox of its own ({option}), which does not work inside of Detent's: "
                "its agents cannot ask, report or use hooks",
                way_out=f'remove {option} from args under [agents.{name}], or set sandbox = "off" under [run]',
            )


def _budget_checks(
    project: "Project", workflow: "Workflow", phases: Sequence[str], agents: "ConfiguredAgents | DetentError"
) -> Iterator[Check]:
    run, budget = project.settings.run, project.settings.budget
    limits = f"{run.max_hours:g} hours, {run.max_turns} turns, {run.max_tasks} tasks added by agents"
    if budget is None:
        yield Check(subject="budget", text=f"no budget of tokens or cost is set; limits of the run: {limits}")
        return
    chosen = TIERS[budget] if isinstance(budget, str) else budget
    amounts = (f"{value:g} {name}" for name, value in msgspec.structs.asdict(chosen).items() if value is not None)
    yield Check(subject="budget", text=f"{', '.join(amounts)}; limits of the run: {limits}")
    limited = {"tokens": chosen.tokens or chosen.phase_tokens, "cost": chosen.cost}
    for name, settings in _agents_of(workflow, phases, agents).items():
        untold = [amount for amount, limit in limited.items() if limit and amount not in _told(settings)]
        if untold:
            yield Check(
                subject="budget",
                state=State.WARNING,
                text=f"{name} does not tell its {' and its '.join(untold)}: such a limit does not stop it",
                way_out="set minutes under [budget] as well, or choose another agent",
            )


def _told(settings: "AgentSettings") -> tuple[str, ...]:
    """The parts of a turn's usage that the agent is known to tell: tokens, cost."""
    if settings.adapter == "command":
        return () if settings.result == "text" else ("tokens", "cost")
    # No turn of a person is counted.
    return ("tokens", "cost") if settings.adapter == "manual" else CLIENTS[client_of(settings)].tells
