"""`gate`: runs the check of a gate, or records evidence for it."""

import shlex
from typing import TYPE_CHECKING

import click

from detent.cli.progress import OutputLines
from detent.cli.request import Request
from detent.cli.verb import TEXT, VerbGroup, session_option, verb

if TYPE_CHECKING:
    from detent.engine.session import SessionHandle

_CLOSED = 3
_phase_option = click.option("--phase", metavar="PHASE", help="Which phase, if several are in progress.")


@verb("run", example="detent gate run regression -- tests/test_cart.py::test_empty")
@click.argument("gate", required=False, metavar="[GATE]")
@click.argument("command", nargs=-1, metavar="[-- COMMAND | TEST]...")
@click.option("--all", "every", is_flag=True, help="Run every check that has a command, of the phases in progress.")
@click.option("--stream", is_flag=True, help="Show the output of the check while it runs, on standard error.")
@_phase_option
@session_option
def run_gate(
    request: Request,
    gate: str | None,
    command: tuple[str, ...],
    *,
    every: bool,
    stream: bool,
    phase: str | None,
    session: str | None,
) -> int:
    """Run the check of GATE now and record the receipt.

    With --all, run every check that has a command, one after another, even if one fails. After `--`, give the test
    command of a gate that has none, or the tests that show the bug for a `regression` gate: a test, a class or a file.
    The exit code is 3 if the gate is still closed afterwards.
    """
    if every != (gate is None) or (every and command):
        raise click.UsageError("name a gate, or say --all")
    with request.changing() as project:
        handle = project.session(session)
        if stream:
            project.streaming = shown = OutputLines()
        if gate is None:
            handle.gates.run_all(phase=phase)
        else:
            handle.gates.run(gate, phase=phase, command=shlex.join(command) or None)
        if stream:
            shown.end()
        return _answer(request, handle, gate, phase)


@verb("wait", example="detent gate wait tests")
@click.argument("gate")
@click.option("--timeout", "timeout_s", type=click.FloatRange(min=0), help="Seconds to wait; then the exit code is 6.")
@_phase_option
@session_option
def wait_gate(request: Request, gate: str, *, timeout_s: float | None, phase: str | None, session: str | None) -> int:
    """Wait for a check in the background, and show its verdict.

    Ctrl-C ends the waiting, and the check goes on. The exit code is 3 if the gate is closed afterwards.
    """
    from detent.cli.request import print_error
    from detent.engine.gates.check_process import live_check, wait_for

    with request.reading() as project:
        handle = project.session(session)
        request.watch(project)
        running = live_check(project.store, handle.id, gate)
        try:
            if running is not None:
                wait_for(running, timeout_s, project.checking)
        except KeyboardInterrupt:
            request.clear_progress()
            print_error(f"the check of {gate} goes on; wait for it again with detent gate wait {gate}")
            raise
        return _answer(request, handle, gate, phase)


@verb("report", example="detent gate report review --compliant -m 'read the diff, ran the tests'", decides=True)
@click.argument("gate")
@click.option("--compliant/--not-compliant", required=True, help="The result of the review.")
@click.option("-m", "--note", type=TEXT, default="", help="What was reviewed, or what is wrong.")
@_phase_option
@session_option
def report_gate(
    request: Request, gate: str, *, compliant: bool, note: str, phase: str | None, session: str | None
) -> int:
    """Report the result of a review.

    It is a review by a constitution that no command can check, or of the work of another agent. That work complies with
    a constitution is a person's decision. A `review` gate takes the report of an agent of
    another role or client than the one that did the work, about the files as they are now.
    """
    with request.changing() as project:
        handle = project.session(session)
        handle.gates.report(gate, compliant=compliant, note=note, phase=phase)
        return _answer(request, handle, gate, phase)


@verb("answer", example="detent gate answer --choice continue", decides=True)
@click.argument("gate", required=False)
@click.option("--choice", help="The choice, such as save or continue; without it a plain answer is counted.")
@_phase_option
@session_option
def answer_gate(
    request: Request, gate: str | None, *, choice: str | None, phase: str | None, session: str | None
) -> int:
    """Record that a person answered a question of the phase."""
    from detent.core.session.events import QuestionAnswered

    with request.changing() as project:
        handle = project.session(session)
        outcome = handle.answer(choice=choice, gate=gate, phase=phase)
        answered = next(event for event in outcome.events if isinstance(event, QuestionAnswered))
        return _answer(request, handle, answered.gate, phase)


@verb(
    "accept", example="detent gate accept tests tests/test_old.py::test_import -m 'the feature is gone'", decides=True
)
@click.argument("gate")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "every", is_flag=True, help="Accept everything that the last run named.")
@click.option("-m", "--reason", type=TEXT, required=True, help="Why you accept it; it is recorded.")
@_phase_option
@session_option
def accept_gate(
    request: Request,
    gate: str,
    names: tuple[str, ...],
    *,
    every: bool,
    reason: str,
    phase: str | None,
    session: str | None,
) -> int:
    """Accept lost tests or findings that keep a gate closed.

    A changed settings file can be accepted too. `detent gates` shows the names. Only a person may accept them.
    """
    if every == bool(names):
        raise click.UsageError("name the tests to accept, or say --all")
    with request.changing() as project:
        handle = project.session(session)
        handle.gates.accept(gate, names, reason, phase=phase)
        return _answer(request, handle, gate, phase)


@verb("set", example="detent gate set tests --command 'pytest -q' -m 'the Makefile is gone'", decides=True)
@click.argument("gate")
@click.option("--command", metavar="COMMAND", type=TEXT, required=True, help="The command that decides from now on.")
@click.option("-m", "--reason", type=TEXT, required=True, help="Why it changes; it is recorded.")
@_phase_option
@session_option
def set_gate(request: Request, gate: str, *, command: str, reason: str, phase: str | None, session: str | None) -> None:
    """Set the command of GATE for the rest of the session.

    It is set in every phase that has the gate and is not completed, or in PHASE. Only a person may change it.
    """
    with request.changing() as project:
        handle = project.session(session)
        handle.gates.set_command(gate, command, reason, phase=phase)
        _answer(request, handle, gate, phase)


@verb("baseline", example="detent gate baseline tests", decides=True)
@click.argument("gate", default="tests")
@click.option("-m", "--reason", type=TEXT, default="", help="Why a recorded baseline is replaced.")
@_phase_option
@session_option
def baseline_gate(request: Request, gate: str, *, reason: str, phase: str | None, session: str | None) -> None:
    """Run the tests of GATE now, and record them as the baseline.

    The baseline is the list of the tests that stood when the session began. Later runs must not lose any of them.
    Once a baseline is recorded, only a person may replace it, with a reason.
    """
    from detent.core.counted import counted
    from detent.core.session.events import BaselineRecorded, BaselineReplaced

    with request.changing() as project:
        handle = project.session(session)
        outcome = handle.gates.baseline(gate, phase=phase, reason=reason)
    [event] = [event for event in outcome.events if isinstance(event, BaselineRecorded | BaselineReplaced)]
    text = f"the baseline is {counted(event.tests.count, 'test')} of `{event.command}`" + (
        "" if event.tests.names else "; it counts tests but does not name them"
    )
    request.answer(
        lambda canvas: "\n".join(canvas.wrap(text)),
        {"session": handle.id, "command": event.command, "tests": event.tests},
    )


gate_verb = VerbGroup(
    "gate",
    run_gate,
    wait_gate,
    report_gate,
    answer_gate,
    accept_gate,
    set_gate,
    baseline_gate,
    help="Run a gate's check, or record evidence for it.",
    example="detent gate run tests -- pytest -q",
)


def _answer(request: Request, handle: "SessionHandle", gate: str | None, phase: str | None) -> int:
    """Show the verdict of the gate, or of all; the exit code says whether they are open."""
    from detent.core.gate.evidence import Verdict
    from detent.render.json.gates import gates_record
    from detent.render.terminal.gates import gates_text

    judged = {
        key: chosen
        for key, judgements in handle.gates.judgements(phase).items()
        if (chosen := tuple(judgement for judgement in judgements if gate in (None, judgement.gate)))
    }
    state = handle.state
    request.answer(lambda canvas: gates_text(state, judged, canvas), gates_record(state, judged))
    is_open = all(judgement.verdict is Verdict.PASS for chosen in judged.values() for judgement in chosen)
    return 0 if is_open else _CLOSED
