"""`verify`: checks the record of a session, here or on another machine."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, last_session
from detent.cli.verb import session_option, verb

if TYPE_CHECKING:
    from detent.doctor.verification import Demands
    from detent.doctor.verified import Verification
    from detent.render.terminal.canvas import Canvas

_LABEL = 11


@verb("verify", example="detent verify login.bundle --approvers approvers.toml --completed")
@click.argument("bundle", metavar="[BUNDLE]", required=False)
@click.option("--approvers", metavar="FILE", help="The approvers whose signatures count; in CI, of the base branch.")
@click.option("--settings", metavar="FILE", help="The detent.toml that the session must have kept to.")
@click.option(
    "--assurance",
    type=click.Choice(("attended", "signed", "hardware")),
    default="attended",
    help="The weakest assurance that counts for a decision, whatever the session asked for.",
)
@click.option("--files", metavar="DIR", help="A directory whose files must be those of the last checkpoint.")
@click.option("--completed", is_flag=True, help="The session must be completed.")
@click.option("--tree", metavar="COMMIT", help="A git commit whose tree, without .detent, the bundle must be about.")
@session_option
def verify_verb(
    request: Request,
    bundle: str | None,
    *,
    approvers: str | None,
    settings: str | None,
    assurance: str,
    files: str | None,
    completed: bool,
    tree: str | None,
    session: str | None,
) -> int:
    """Check that the record of a session holds.

    BUNDLE is a file of detent export bundle, and no project is needed; without it, the active or last session of the
    project. Checks the chain and the replay of the journal, judges every gate again at every finish from its receipts
    and votes, and verifies the proof of every decision of a person. The exit code is 0 only if everything holds and
    everything could be checked.
    """
    import msgspec

    from detent.doctor.verification import verify_bundle, verify_session

    if bundle is not None and session is not None:
        raise click.UsageError("name a bundle or a session, not both")
    demands = demands_of(request, approvers, settings, assurance, files, completed=completed)
    if tree is not None:
        if bundle is None:
            raise click.UsageError("--tree is about a bundle, which names the tree that it is about")
        from detent.engine.bundles.git_tree import committed_tree

        demands = demands._replace(tree=committed_tree(request.directory, tree))
    if bundle is not None:
        path = os.path.join(request.directory, bundle)
        result = verify_bundle(path, demands, progress=request.progress("checking bytes"))
        request.clear_progress()
    else:
        with request.reading() as project:
            if demands.approvers is None:
                demands = demands._replace(approvers=project.approvers.read())
            result = verify_session(project, last_session(project, session).id, demands)
    request.answer(
        lambda canvas: "\n".join(_lines(result, canvas)),
        {"holds": result.is_sound, **msgspec.to_builtins(result)},
    )
    return 0 if result.is_sound else 1


def demands_of(
    request: Request, approvers: str | None, settings: str | None, assurance: str, files: str | None, *, completed: bool
) -> "Demands":
    from detent.cli.input import read_text
    from detent.config.settings import parse_settings
    from detent.core.actor import Assurance
    from detent.doctor.verification import Demands
    from detent.engine.approvers import read_approvers, trusted_list
    from detent.errors import NotFound

    listed = None
    if approvers is not None:
        path = os.path.join(request.directory, approvers)
        if not os.path.isfile(path):
            raise NotFound(f"there is no file {approvers}", way_out="detent approver add makes a list of approvers")
        listed = trusted_list(read_approvers(path)).approvers
    directory = None if files is None else os.path.realpath(os.path.join(request.directory, files))
    if directory is not None and not os.path.isdir(directory):
        raise NotFound(f"there is no directory {files}")
    return Demands(
        approvers=listed,
        assurance=Assurance(assurance),
        settings=parse_settings(read_text(request, settings), settings) if settings is not None else None,
        files=directory,
        completed=completed,
    )


def _lines(result: "Verification", canvas: "Canvas") -> list[str]:
    from detent.core.counted import counted
    from detent.doctor.verified import Outcome

    judged = f"{counted(result.gates, 'gate')} judged again for {counted(result.finishes, 'finished phase')}"
    lines = canvas.wrap(f"{result.session} is {result.status}: {counted(result.commits, 'commit')}, {judged}")
    if result.git is not None:
        at = f" (commit {result.git.commit})" if result.git.commit else ""
        lines += canvas.wrap(f"about git tree {result.git.tree}{at}", "  ")
    for decided in result.decisions:
        lines += canvas.hanging(decided.describe(with_key=True), "    ", "  ")
    if result.findings:
        lines.append("")
    colours = {Outcome.WRONG: "red", Outcome.UNCHECKED: "yellow", Outcome.NOTE: ""}
    for check in result.findings:
        where = f"{check.subject}: " if check.commit else ""
        text = f"{where}{check.message}" + (f" (try: {check.way_out})" if check.way_out else "")
        lines.append(canvas.labelled(check.outcome.upper(), text, _LABEL, colour=colours[check.outcome]))
    bad = sum(check.outcome is not Outcome.NOTE for check in result.findings)
    last = "everything that can be checked holds" if result.is_sound else f"{counted(bad, 'finding')}: it does not hold"
    return [*lines, "", canvas.paint(last, "green" if result.is_sound else "red")]
