"""`doctor`: checks journals, documents and hooks."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request
from detent.cli.verb import verb

if TYPE_CHECKING:
    from detent.doctor.finding import Finding
    from detent.render.terminal.canvas import Canvas

_FIELDS = ("severity", "subject", "message", "way_out")


@verb("doctor", example="detent doctor --fix")
@click.option("--fix", is_flag=True, help="Rebuild documents and indexes from the journals.")
@click.option("--dry-run", is_flag=True, help="With --fix: only show the repairs of markers and tasks.")
def doctor_verb(request: Request, *, fix: bool, dry_run: bool) -> int:
    """Check journals, documents and hooks; repair with --fix.

    The exit code is 1 if there is an error. Checking changes nothing; --fix removes nothing from a journal.
    """
    from detent.doctor import invariants

    changing = fix and not dry_run
    with request.changing(adopt=False) if changing else request.reading() as project:
        if fix and dry_run:
            request.notices += [f"would {line}" for line in invariants.repair(project, dry_run=True)]
        findings = invariants.fix(project) if changing else invariants.check(project)
        findings = [*findings, *_installed(project.place.root)]
    request.answer(lambda canvas: _text(findings, canvas), {"findings": findings})
    return int(any(finding.severity == "error" for finding in findings))


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
        lines.append(canvas.paint(canvas.cut(head, canvas.width), colour))
        lines += canvas.wrap(finding.message, "    ")
        lines += canvas.wrap(f"try: {finding.way_out}", "    ")
    return "\n".join(lines)
