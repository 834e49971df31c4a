"""`gates`: shows the verdicts of gates, or how good they were over all sessions."""

from datetime import datetime
from typing import Any

import click

from detent.cli.request import Request, last_session
from detent.cli.since import since_option
from detent.cli.verb import phase_argument, session_option, verb


@verb("gates", example="detent gates --stats --since 30d")
@phase_argument
@click.option("--stats", is_flag=True, help="How good the gates were, over all sessions.")
@since_option
@session_option
def gates_verb(
    request: Request, phase: str | None, *, stats: bool, since: datetime | None, session: str | None
) -> None:
    """Show the verdict of every gate.

    It shows the phases in progress, or PHASE. If no session is active, it shows the one in which something happened
    last, with all of its phases that have gates. Below a verdict it lists the tests of the last run that failed,
    vanished, were skipped or are new, and the findings in the code.

    With --stats it shows each gate over all sessions: how often it opened at the first try, retries, time, how often
    a person opened it by hand, how often a phase was done again after it had passed, and whether it is flaky.
    """
    if stats:
        _answer_stats(request, phase, since, session)
        return
    if since is not None:
        raise click.UsageError("--since is about --stats")
    from detent.render.json.gates import gates_record
    from detent.render.terminal.gates import gates_text

    with request.reading() as project:
        handle = last_session(project, session)
        state, judgements = handle.state, handle.gates.judgements(phase)
        request.notice_unrecorded(project, handle.id)
        has_ended = state.has_ended
        if phase is None and has_ended:
            gated = [each.key for each in state.workflow.phases if each.gates and state.phases[each.key].attempt]
            judgements = {key: handle.gates.judgements(key)[key] for key in gated}
    request.answer(
        lambda canvas: gates_text(state, judgements, canvas, ways_out=not has_ended), gates_record(state, judgements)
    )


def _answer_stats(request: Request, phase: str | None, since: datetime | None, session: str | None) -> None:
    from detent.engine.recorded import gate_stats
    from detent.render.json.gate_stats import stats_record
    from detent.render.terminal.gate_stats import stats_text

    with request.reading() as project:
        only = None if session is None else project.session(session).id
        progress = request.progress("reading sessions")
        result = gate_stats(project.store, since=since, only=only, progress=progress)
    shown = [row for row in result.gates if phase in (None, row.phase)]
    record: dict[str, Any] = {
        "sessions": result.sessions,
        "gates": [stats_record(row) for row in shown],
        "unreadable": result.unreadable,
    }
    request.notices += [f"{name} is left out: {problem}" for name, problem in result.unreadable.items()]
    request.answer(lambda canvas: stats_text(result.sessions, shown, canvas), record)
