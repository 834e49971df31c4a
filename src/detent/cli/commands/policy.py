"""`policy`: tries another `detent.toml` on the sessions that are recorded."""

import os
from datetime import datetime

import click

from detent.cli.request import Request
from detent.cli.since import since_option
from detent.cli.verb import VerbGroup, session_option, verb

_REFUSED = 3


@verb("try", example="detent policy try stricter.toml --since 30d")
@click.argument("file", metavar="FILE")
@since_option
@click.option("--all", "every", is_flag=True, help="List every step, also those that are as they were recorded.")
@session_option
def try_policy(request: Request, file: str, *, since: datetime | None, every: bool, session: str | None) -> int:
    """Replay all recorded sessions under another detent.toml.

    Says what would have been refused, what would have passed, and what would have waited for whom. It reads journals
    alone: no check runs, and nothing is changed. What the record cannot say is `unknown`. The exit code is 3 if a step
    would have been refused.
    """
    from detent.cli.input import read_text
    from detent.config.settings import parse_settings
    from detent.doctor.trial import Trials, try_all
    from detent.engine.gates.quorum import all_roles
    from detent.render.json.trial import trials_record
    from detent.render.terminal.trial import trials_text

    settings = parse_settings(read_text(request, file), file)
    root = os.path.dirname(os.path.join(request.directory, file)) or "."
    with request.reading() as project:
        only = None if session is None else project.session(session).id
        roles = all_roles(settings.decisions.roles, project.approvers.read())
        trials = Trials(settings, root=root, roles=roles)
        progress = request.progress("replaying sessions")
        result = try_all(trials, project.store, since=since, only=only, progress=progress)
    request.notices += [f"{name} is left out: {problem}" for name, problem in result.unreadable.items()]
    request.answer(lambda canvas: trials_text(result, canvas, every=every), lambda: trials_record(result, every=every))
    return _REFUSED if result.is_refused else 0


policy_verb = VerbGroup(
    "policy",
    try_policy,
    help="Try another detent.toml on the sessions that are recorded.",
    example="detent policy try stricter.toml",
)
