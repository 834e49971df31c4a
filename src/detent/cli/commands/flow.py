"""`flow run|show|resume`: the steps of a task before its work begins."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from detent.cli.flow_progress import Watch
from detent.cli.person import WAITING
from detent.cli.request import Request
from detent.cli.task_argument import claim_option, known, task_argument
from detent.cli.verb import TEXT, Usage, Verb, session_option

if TYPE_CHECKING:
    from detent.core.flow.progress import Decision
    from detent.engine.flow.flow import FlowOutcome
    from detent.engine.flow.record import Ended

FAILED = 7

_rerun_option = click.option("--rerun-from", metavar="STEP", help="Run again from STEP on; what came before is kept.")
_context_option = click.option(
    "--context", metavar="FILE", type=click.Path(dir_okay=False), help="Write what the agent is given to FILE, too."
)


@click.group(
    "flow", short_help="Run the flow-control steps of a task.", epilog="\b\nExample:\n  detent flow run IMPL-1"
)
def flow_verb() -> None:
    """Run the flow-control steps of a task.

    They come before its work. What they find out becomes the context of the agent that does it.
    """


@flow_verb.command("run", cls=Verb, epilog="\b\nExample:\n  detent flow run IMPL-1 --dry-run")
@task_argument
@click.option("--dry-run", is_flag=True, help="Show what would run, and run nothing.")
@_rerun_option
@claim_option
@_context_option
@session_option
@click.pass_obj
def run_flow(
    request: Request,
    task: str,
    *,
    dry_run: bool,
    rerun_from: str | None,
    claim: int | None,
    context: str | None,
    session: str | None,
) -> None:
    """Take the task ID, run its steps in order, and print what its agent is given.

    The exit code is 6 if a step waits for a person, and 7 if one failed and with it the task.
    """
    from detent.engine.flow.flow import Flow

    if dry_run:
        with request.reading() as project:
            handle = project.session(session)
            outcome = Flow(project, handle).run(known(handle, task), dry_run=True)
        _answer_planned(request, outcome)
        return
    with request.changing() as project, _stoppable(request, task) as watch:
        handle = project.session(session)
        flow, task = Flow(project, handle), known(handle, task)
        outcome = flow.run(task, rerun_from=rerun_from, claim=claim, observer=watch)
        _write_context(request, outcome, context)
    _answer_ended(request, outcome)


@flow_verb.command("resume", cls=Verb, epilog="\b\nExample:\n  detent flow resume IMPL-1 --skip")
@task_argument
@click.option("--retry", is_flag=True, help="Decide: run the step that waits once more.")
@click.option("--skip", is_flag=True, help="Decide: go on without it; what it puts out is empty.")
@click.option("--set", "value", metavar="VALUE", type=TEXT, help="Decide: go on with VALUE as its output; - reads it.")
@click.option("--abort", is_flag=True, help="Decide: the task fails.")
@_rerun_option
@claim_option
@_context_option
@session_option
@click.pass_obj
def resume_flow(request: Request, /, task: str, *, context: str | None, session: str | None, **options: Any) -> None:
    """Go on with the steps of the task ID where they stopped.

    A step that waits for a person needs the decision of one.
    """
    from detent.engine.flow.flow import Flow

    decision = _decision(**{name: options.pop(name) for name in ("retry", "skip", "value", "abort")})
    with request.changing() as project, _stoppable(request, task) as watch:
        handle = project.session(session)
        flow, task = Flow(project, handle), known(handle, task)
        outcome = flow.resume(task, decision=decision, observer=watch, **options)
        _write_context(request, outcome, context)
    _answer_ended(request, outcome)


@flow_verb.command("show", cls=Verb, epilog="\b\nExample:\n  detent flow show IMPL-1")
@task_argument
@session_option
@click.pass_obj
def show_flow(request: Request, task: str, session: str | None) -> None:
    """Show how far the steps of the task ID are."""
    from detent.engine.flow.flow import Flow
    from detent.render.terminal.flow import flow_text

    with request.reading() as project:
        handle = project.session(session)
        outcome = Flow(project, handle).show(known(handle, task))
    stands = outcome.ended.value if outcome.ended else "running" if outcome.running else "not finished"
    begun = any(each.state != "pending" for each in outcome.run.steps)
    if not begun and outcome.steps:
        stands = "not run yet"
    commands = [] if outcome.running else _next(outcome.task, outcome.ended, outcome.claim, begun=begun)
    request.answer(
        lambda canvas: flow_text(outcome.run, outcome.steps, canvas=canvas, stands=stands, commands=commands),
        {**_record(outcome), "running": outcome.running},
    )


def _decision(*, retry: bool, skip: bool, value: str | None, abort: bool) -> "Decision | None":
    from detent.core.flow.progress import Abort, Retry, SetValue, Skip

    made: list[Decision] = [
        *([Retry()] if retry else []),
        *([Skip()] if skip else []),
        *([SetValue(value)] if value is not None else []),
        *([Abort()] if abort else []),
    ]
    if len(made) > 1:
        raise Usage("only one of --retry, --skip, --set and --abort can be decided")
    return made[0] if made else None


@contextmanager
def _stoppable(request: Request, task: str) -> Iterator[Watch]:
    """A signal to end is obeyed where nothing is half done; the step that runs is ended with all that it started."""
    watch = Watch(shown=not request.json)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        watch.is_stopped = True

    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {kind: signal.signal(kind, stop) for kind in kinds}
    try:
        yield watch
    except KeyboardInterrupt:
        watch.clear()
        request.notices.append(f"the steps of {task} go on with detent flow resume {task}")
        raise
    finally:
        watch.clear()
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _write_context(request: Request, outcome: "FlowOutcome", path: str | None) -> None:
    if path is not None and outcome.context is not None:
        with open(os.path.join(request.directory, path), "w", encoding="utf-8") as file:
            json.dump(outcome.context, file, ensure_ascii=False, indent=2)
            file.write("\n")


def _answer_planned(request: Request, outcome: "FlowOutcome") -> None:
    import msgspec

    from detent.render.terminal.flow import planned_text

    planned = msgspec.to_builtins(outcome.planned)
    record = {"session": outcome.session, "task": outcome.task, "dry_run": True, "steps": planned}
    request.answer(lambda canvas: planned_text(planned, canvas=canvas), record)


def _answer_ended(request: Request, outcome: "FlowOutcome") -> None:
    from detent.engine.flow.record import Ended
    from detent.render.terminal.flow import flow_text

    ended = outcome.ended
    assert ended is not None
    told = [f"the context is in {os.path.relpath(outcome.context_file)}"] if outcome.context_file else []
    request.answer(
        lambda canvas: flow_text(
            outcome.run,
            outcome.steps,
            canvas=canvas,
            stands=ended.value,
            lines=told,
            commands=_next(outcome.task, ended, outcome.claim),
            warnings=outcome.warnings,
        ),
        {**_record(outcome), "context_file": outcome.context_file, "context": outcome.context},
    )
    code = {Ended.WAITING: WAITING, Ended.FAILED: FAILED}.get(ended)
    if code is not None:
        raise click.exceptions.Exit(code)


def _record(outcome: "FlowOutcome") -> dict[str, Any]:
    return {
        "session": outcome.session,
        "task": outcome.task,
        "ended": outcome.ended,
        "claim": outcome.claim,
        "step": outcome.step,
        "reason": outcome.reason,
        "steps": outcome.run.steps,
        "outputs": outcome.files,
        "warnings": outcome.warnings,
    }


def _next(task: str, ended: "Ended | None", claim: int | None, *, begun: bool = True) -> list[str]:
    match ended.value if ended else None:
        case "finished":
            return [f'detent task done {task} --claim {claim} -m "SUMMARY"']
        case "waiting":
            return [f"detent flow resume {task} {how}" for how in ("--retry", "--skip", "--set VALUE", "--abort")]
        case "failed":
            return [f"detent flow resume {task}"]
    return [f"detent flow {'resume' if begun else 'run'} {task}"]
