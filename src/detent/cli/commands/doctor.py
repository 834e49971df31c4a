"""`doctor`: whether what is on disk is what it should be."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request
from detent.cli.verb import verb

if TYPE_CHECKING:
    from detent.doctor.finding import Finding
    from detent.render.terminal.canvas import Canvas


@verb("doctor", example="detent doctor --fix")
@click.option("--fix", "fixes", is_flag=True, help="Rebuild what can be rebuilt from the journals.")
@click.option("--dry-run", is_flag=True, help="With --fix: only say what it would do to markers and tasks.")
@click.pass_obj
def doctor_verb(request: Request, *, fixes: bool, dry_run: bool) -> int:
    """Check journals, documents and hooks; repair with --fix.

    The exit code is 1 if an error was found. Looking changes nothing; --fix takes nothing out of a journal.
    """
    from detent.doctor import invariants

    changing = fixes and not dry_run
    with request.changing(settled=False) if changing else request.reading() as project:
        request.notices += (
            [f"would {line}" for line in invariants.repair(project, dry_run=True)] if fixes and dry_run else []
        )
        found = invariants.fix(project) if changing else invariants.check(project)
        found = [*found, *_installed(project.place.root)]
    request.answer(lambda canvas: _text(found, canvas), {"findings": found})
    return int(any(finding.severity == "error" for finding in found))


def _installed(root: str) -> "list[Finding]":
    """What keeps the agents' hooks from working."""
    from detent.clients import installing
    from detent.doctor.finding import Finding

    return [
        Finding(invariant="hooks", severity=one.severity, subject=one.subject, message=one.message, way_out=one.way_out)
        for one in installing.findings(root, environment=os.environ, version_of=_version_of)
    ]


def _version_of(program: str) -> str | None:
    """The version that a client's program prints; None if it is not on the path."""
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
        lines.append(canvas.paint(canvas.cut(head, canvas.width), colour))
        lines += canvas.wrap(finding.message, "    ")
        lines += canvas.wrap(f"try: {finding.way_out}", "    ")
    return "\n".join(lines)
