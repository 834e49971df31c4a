"""`doctor`: checks journals, documents and hooks."""

import os
from functools import partial
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, write_text
from detent.cli.verb import verb

if TYPE_CHECKING:
    from detent.doctor.finding import Finding
    from detent.render.terminal.canvas import Canvas

_FIELDS = ("severity", "subject", "message", "way_out")


_ALL = "."


@verb("doctor", example="detent doctor --fix")
@click.option("--fix", is_flag=True, help="Rebuild what the journals determine; ask about damaged journals.")
@click.option(
    "--restore",
    metavar="[SESSION]",
    is_flag=False,
    flag_value=_ALL,
    help="Mend damaged journals with their second copies, or that of one session.",
)
@click.option("--yes", is_flag=True, help="Do not ask here; your terminal still asks.")
@click.option("--dry-run", is_flag=True, help="With --fix: only show the repairs of markers and tasks.")
def doctor_verb(request: Request, *, fix: bool, restore: str | None, yes: bool, dry_run: bool) -> int:
    """Check journals, documents and hooks; repair with --fix.

    The exit code is 1 if there is an error. Checking changes nothing. Mending a journal is a person's decision. It
    keeps every commit that verifies, in the journal or in its second copy, and sets all other lines aside.
    """
    from detent.clients.installing.plugins import plugins_beside_hooks
    from detent.doctor import invariants
    from detent.engine.sandbox import why_off

    request.is_tolerant = True
    changing = (fix or restore is not None) and not dry_run
    mended = _mend(request, restore, yes=yes) if changing else []
    with request.changing(adopt=False) if changing else request.reading() as project:
        if fix and dry_run:
            request.notices += [f"would {line}" for line in invariants.repair(project, dry_run=True)]
        findings = invariants.fix(project) if changing else invariants.check(project)
        findings = [*findings, *_installed(project.place.root)]
        request.notices += plugins_beside_hooks(project.place.root, os.environ)
        off = why_off(project.settings.run.sandbox_settings())
    sandbox = "on" if off is None else f"off: {off}"
    if off is not None and not request.json:
        request.notices.append(f"the sandbox of runs is {sandbox}")
    request.answer(
        lambda canvas: "\n".join([*mended, _text(findings, canvas)]),
        {"mended": mended, "findings": findings, "sandbox": sandbox},
    )
    return int(any(finding.severity == "error" for finding in findings))


def _mend(request: Request, chosen: str | None, *, yes: bool) -> list[str]:
    """Mend what the person agrees to, journal by journal; returns what was done."""
    from detent.doctor import mending

    may = partial(_agrees, request, yes=yes, must=chosen is not None)
    done = []
    lost = mending.lost(request.directory)
    if lost and may(lost):
        done += mending.restore_project(request.directory, request.actor)
    with request.changing(adopt=False) as project:
        names = [project.sessions.find(chosen)] if chosen not in (None, _ALL) else project.store.sessions()
        done += [mending.mend(project, name) for name, damage in mending.damaged(project, names) if may(damage)]
    return done


def _agrees(request: Request, damage: str, *, yes: bool, must: bool) -> bool:
    """Whether a person wants the damage mended; `must` refuses if no person can be asked."""
    from detent.cli.person import agrees, check_can_be_asked, is_at_terminal
    from detent.engine.confirm import ask
    from detent.engine.policy import Decision

    if yes or must:
        request.authorize(Decision.MEND)
    if yes:
        ask([*damage.splitlines(), "  mend it"], Decision.MEND)
        return True
    if must:
        check_can_be_asked("doctor --restore")
    elif not is_at_terminal():
        return False
    request.print_notices()
    write_text(damage)
    return agrees("Mend it?")


def _installed(root: str) -> "list[Finding]":
    """Findings about the hooks of the agents."""
    from detent.clients import installing
    from detent.doctor.finding import Finding

    return [
        Finding(invariant="hooks", **{name: getattr(finding, name) for name in _FIELDS})
        for finding in installing.findings(root, environment=os.environ, version_of=_version_of)
    ]


def _version_of(program: str) -> str | None:
    """The version of a client's program; None if it is not on the path."""
    from shutil import which

    from detent.process import run

    path = which(program)
    ran = run([path, "--version"], cwd=".", timeout_s=10) if path else None
    return ran.output.strip() if ran and ran.exit_code == 0 else None


def _text(findings: "list[Finding]", canvas: "Canvas") -> str:
    if not findings:
        return "all is well"
    lines = []
    for finding in findings:
        colour = "red" if finding.severity == "error" else "yellow"
        head = f"{finding.severity} {finding.invariant} {finding.subject}"
        lines += [canvas.paint(line, colour) for line in canvas.whole(head)]
        lines += canvas.wrap(finding.message, "    ")
        lines += canvas.wrap(f"try: {finding.way_out}", "    ")
    return "\n".join(lines)
