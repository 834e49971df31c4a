"""`gates` and `gate run|report|answer`: show verdicts and give gates their evidence."""

import shlex
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request
from detent.cli.verb import TEXT, Verb, phase_argument, session_option, verb

if TYPE_CHECKING:
    from detent.engine.session import SessionHandle

_phase_option = click.option("--phase", metavar="PHASE", help="Which phase, if several are in progress.")


@verb("gates", example="detent gates 06-implementation")
@phase_argument
@session_option
@click.pass_obj
def gates_verb(request: Request, phase: str | None, session: str | None) -> None:
    """Show the verdict of every gate.

    Of the phases in progress, or of PHASE.
    """
    with request.reading() as project:
        _answer(request, project.session(session), phase)


@click.group(
    "gate",
    short_help="Run a gate's check, or record evidence for it.",
    epilog="\b\nExample:\n  detent gate run tests -- pytest -q",
)
def gate_verb() -> None:
    """Run a gate's check, or record evidence for it.

    Run its check, report a finding, or answer a question.
    """


@gate_verb.command("run", cls=Verb, epilog="\b\nExample:\n  detent gate run tests -- pytest -q")
@click.argument("gate")
@click.argument("command", nargs=-1, metavar="[-- COMMAND]...")
@_phase_option
@session_option
@click.pass_obj
def run_gate(request: Request, gate: str, command: tuple[str, ...], *, phase: str | None, session: str | None) -> None:
    """Run the check of GATE now and record the receipt.

    The exit code is 3 if the gate is still closed afterwards.
    """
    with request.changing() as project:
        handle = project.session(session)
        handle.gates.run(gate, phase=phase, command=shlex.join(command) or None)
        _answer_one(request, handle, gate, phase)


@gate_verb.command("report", cls=Verb, epilog="\b\nExample:\n  detent gate report constitution --compliant")
@click.argument("gate")
@click.option("--compliant/--not-compliant", required=True, help="The result of the review.")
@click.option("-m", "--note", type=TEXT, default="", help="What is wrong, or what was looked at.")
@_phase_option
@session_option
@click.pass_obj
def report_gate(
    request: Request, gate: str, *, compliant: bool, note: str, phase: str | None, session: str | None
) -> None:
    """Report the result of a review of a constitution that no command can check."""
    with request.changing() as project:
        handle = project.session(session)
        handle.gates.report(gate, compliant=compliant, note=note, phase=phase)
        _answer_one(request, handle, gate, phase)


@gate_verb.command("answer", cls=Verb, epilog="\b\nExample:\n  detent gate answer --choice continue")
@click.argument("gate", required=False)
@click.option("--choice", help="How to go on, such as save or continue; without it a plain answer is counted.")
@_phase_option
@session_option
@click.pass_obj
def answer_gate(
    request: Request, gate: str | None, *, choice: str | None, phase: str | None, session: str | None
) -> None:
    """Record that a person answered a question of the phase."""
    from detent.core.session.events import QuestionAnswered

    with request.changing() as project:
        handle = project.session(session)
        outcome = handle.answer(choice=choice, gate=gate, phase=phase)
        answered = next(event for event in outcome.events if isinstance(event, QuestionAnswered))
        _answer_one(request, handle, answered.gate, phase)


def _answer(request: Request, handle: "SessionHandle", phase: str | None) -> None:
    from detent.render.terminal.gates import gates_text

    judged = handle.gates.judgements(phase)
    state = handle.state
    request.answer(lambda canvas: gates_text(state, judged, canvas), {"session": state.id, "gates": judged})


def _answer_one(request: Request, handle: "SessionHandle", gate: str, phase: str | None) -> None:
    from detent.core.gate.evidence import Verdict
    from detent.render.terminal.gates import gates_text

    judged = {
        key: chosen
        for key, judgements in handle.gates.judgements(phase).items()
        if (chosen := tuple(judgement for judgement in judgements if judgement.gate == gate))
    }
    state = handle.state
    request.answer(lambda canvas: gates_text(state, judged, canvas), {"session": state.id, "gates": judged})
    if any(judgement.verdict is not Verdict.PASS for chosen in judged.values() for judgement in chosen):
        raise click.exceptions.Exit(3)
