"""`ci`: checks a commit before git makes it, and the records of a branch before it is merged."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from detent.cli.request import Request, write_text
from detent.cli.verb import VerbGroup, verb
from detent.errors import NoPackage, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detent.core.ci import RecordCheck
    from detent.doctor.verified import Check
    from detent.engine.commit_check import CommitCheck
    from detent.engine.project import Project
    from detent.render.terminal.canvas import Canvas

_REFUSED, _CLOSED = 1, 3
_FORMS = ("github", "gitlab", "text")
_LABEL = 9


@verb("commit", example="detent ci commit")
def commit_ci(request: Request) -> int:
    """Look at what is staged, before git commits it.

    Refuses an agent's commit that deletes or weakens a protected test or the configuration of the test runner, unless a
    person accepted it or the phase may rewrite tests. Refuses every commit while the record of the session does not
    hold. Without a project or an active session it has nothing to say.
    """
    results = [_checked(project) for project in _projects(request)]
    request.answer(
        lambda canvas: (
            "\n".join(line for result in results for line in _commit_lines(result, canvas))
            or "nothing to check: this is no project of Detent"
        ),
        {"refused": any(result.is_refused for result in results), "checks": [result.record() for result in results]},
    )
    return _REFUSED if any(result.is_refused for result in results) else 0


class _Result(NamedTuple):
    """The check of one project."""

    checked: "CommitCheck"
    #: Findings that do not hold.
    broken: "list[Check]"
    #: Sessions whose journals lack commits.
    lost: list[str]

    @property
    def is_refused(self) -> bool:
        return self.checked.is_refused or bool(self.broken or self.lost)

    def record(self) -> dict[str, Any]:
        return {
            "session": self.checked.session or None,
            "refused": self.is_refused,
            "allowed_because": self.checked.allowed_because,
            "weakened": [each._asdict() for each in self.checked.weakened],
            "findings": self.broken,
            "lost": self.lost,
        }


def _projects(request: Request) -> "Iterator[Project]":
    """The project of the directory; at the root of a monorepo, each of its packages."""
    from detent.engine.workspace import Workspace

    author = request.author
    try:
        with request.workspace.open(author) as project:
            yield project
    except NoPackage as error:
        for name in error.packages:
            with Workspace(request.directory, project=name, notices=request.notices).open(author) as project:
                yield project
    except NotFound:
        return


def _checked(project: "Project") -> _Result:
    from detent.doctor.verification import verify_session
    from detent.doctor.verified import Outcome
    from detent.engine.commit_check import check_commit

    lost = project.store.repairs.lost() if project.store.repairs is not None else []
    checked = check_commit(project, os.environ)
    verified = verify_session(project, checked.session) if checked.session else None
    findings = verified.findings if verified is not None else ()
    return _Result(checked, [check for check in findings if check.outcome is Outcome.WRONG], lost)


def _commit_lines(result: _Result, canvas: "Canvas") -> "Iterator[str]":
    checked = result.checked
    for name in result.lost:
        message = f"the journal of {name} lacks commits that its second copy has; detent doctor shows them"
        yield canvas.labelled("WRONG", message, _LABEL, colour="red")
    for each in checked.weakened:
        word = "allowed" if checked.allowed_because else "REFUSED"
        yield canvas.labelled(word, each.reason, _LABEL, colour="" if checked.allowed_because else "red")
        if not checked.allowed_because:
            yield from canvas.command(each.way_out, " " * _LABEL)
    if checked.allowed_because:
        yield from canvas.wrap(f"tests are changed: {checked.allowed_because}")
    for check in result.broken:
        yield canvas.labelled("WRONG", f"{check.subject}: {check.message}", _LABEL, colour="red")
    if not result.is_refused:
        yield f"{checked.session}: the record holds" if checked.session else "no session is active"


@verb("check", example="detent ci check --base origin/main")
@click.argument("bundles", nargs=-1, metavar="[BUNDLE]...")
@click.option("--base", metavar="COMMIT", help="The commit whose approvers.toml and detent.toml count.")
@click.option("--tree", metavar="COMMIT", default="HEAD", help="The commit to merge, which the record must be about.")
@click.option(
    "--assurance",
    type=click.Choice(("attended", "signed", "hardware")),
    default="attended",
    help="The weakest assurance that counts for a decision.",
)
@click.option("--no-gates", is_flag=True, help="Verify only, and run no check.")
@click.option("--format", "form", type=click.Choice(_FORMS), help="By default what the environment tells.")
@click.option("--summary", "summary_file", metavar="FILE", help="Add a summary in Markdown to this file.")
@click.option("--code-quality", metavar="FILE", help="Write the findings as a Code Quality report of GitLab.")
def check_ci(
    request: Request,
    bundles: tuple[str, ...],
    *,
    base: str | None,
    tree: str,
    assurance: str,
    no_gates: bool,
    form: str | None,
    summary_file: str | None,
    code_quality: str | None,
) -> int:
    """Check the records of a branch before it is merged.

    Each must be complete, hold, and be about the tree of the commit, without the bundles themselves; and the checks of
    its gates must pass in this checkout. BUNDLE is .detent/*.bundle if none is named. The exit code is 1 if a record is
    missing or does not hold, 3 if a check does not pass here.
    """
    from detent.core.actor import Assurance
    from detent.doctor.branch import check_record, demands_of, published_bundles

    directory = os.path.realpath(request.directory)
    paths = [os.path.join(directory, name) for name in bundles] or published_bundles(directory)
    demands = demands_of(directory, base=base, tree=tree, assurance=Assurance(assurance))
    progress = request.progress("checking")
    checks = [
        check_record(
            path,
            directory,
            demands,
            run_gates=not no_gates,
            started=lambda _phase, gate: progress.running(gate, 0.0) if progress is not None else None,
        )
        for path in paths
    ]
    request.clear_progress()
    is_held = bool(checks) and all(check.holds for check in checks)
    is_closed = any(check.is_closed for check in checks)
    _report(request, checks, form or _form(), summary_file or os.environ.get("GITHUB_STEP_SUMMARY"), code_quality)
    return _REFUSED if not is_held else _CLOSED if is_closed else 0


def _form() -> str:
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return "github"
    return "gitlab" if os.environ.get("GITLAB_CI") == "true" else "text"


def _report(
    request: Request, checks: "list[RecordCheck]", form: str, summary_file: str | None, code_quality: str | None
) -> None:
    import secrets

    import msgspec

    from detent.cli.request import canvas, write_file
    from detent.render.ci import github, gitlab
    from detent.render.ci.summary import summary

    annotations = [annotation for check in checks for annotation in check.annotations]
    if summary_file:
        with open(os.path.join(request.directory, summary_file), "a", encoding="utf-8") as file:
            file.write(summary(checks))
    if code_quality:
        write_file(request, code_quality, msgspec.json.encode(gitlab.code_quality(annotations)))
    if request.json:
        request.answer(str, {"checks": checks})
        return
    text = "\n".join(_check_lines(checks, canvas()))
    if form == "github":
        write_text(github.quoted(text, secrets.token_hex(16)))
        write_text("\n".join(github.annotation_lines(annotations)))
    else:
        write_text(text)


def _check_lines(checks: "list[RecordCheck]", canvas: "Canvas") -> list[str]:
    if not checks:
        return ["this branch has no record: there is no .detent/*.bundle; detent publish writes it"]
    lines: list[str] = []
    for check in checks:
        word = "holds" if check.holds else "does not hold"
        lines += [*([""] if lines else []), *canvas.wrap(f"{check.session} {word} ({check.status}, {check.bundle})")]
        for row in check.reruns:
            lines.append(canvas.labelled(row.verdict, f"{row.phase} {row.gate}: {row.reason}", _LABEL))
        for annotation in check.annotations:
            lines.append(canvas.labelled(annotation.level.upper(), annotation.message, _LABEL))
    return lines


ci_verb = VerbGroup(
    "ci",
    commit_ci,
    check_ci,
    help="Check a commit, or the record of a branch in CI.",
    example="detent ci check --base origin/main",
)
