"""`sessions`: lists the sessions."""

from typing import TYPE_CHECKING, Any

import click

from detent.cli.request import Request, local_now
from detent.cli.verb import verb

if TYPE_CHECKING:
    from detent.core.session.listed import Listed
    from detent.engine.project import Project


@verb("sessions", example="detent sessions --all")
@click.option("--all", "archived", is_flag=True, help="Archived sessions too.")
def sessions_verb(request: Request, *, archived: bool) -> None:
    """List the sessions: the active one first, then by last activity.

    switch, resume, reopen and archive take the number, the id or a part of the id. At the root of a monorepo the
    sessions of every package are listed.
    """
    from detent.render.terminal.sessions import packages_text, sessions_text

    with request.reading_all() as projects:
        now = local_now(next(iter(projects.values())))
        packages = {name: _Package(project, archived=archived) for name, project in projects.items()}
    if (only := packages.get("")) is not None:
        request.answer(
            lambda canvas: sessions_text(only.shown, hidden=only.hidden, now=now, canvas=canvas), only.record()
        )
        return
    request.answer(
        lambda canvas: packages_text(
            {name: (each.shown, each.hidden) for name, each in packages.items()}, now=now, canvas=canvas
        ),
        {"projects": {name: each.record() for name, each in packages.items()}},
    )


class _Package:
    """The sessions of one project."""

    def __init__(self, project: "Project", *, archived: bool) -> None:
        everything = list(enumerate(project.sessions.sessions(archived=True), 1))
        self.active = project.active()
        self.shown: list[tuple[int, Listed]] = [
            (number, entry) for number, entry in everything if archived or not entry.archived
        ]
        self.hidden = len(everything) - len(self.shown)

    def record(self) -> dict[str, Any]:
        import msgspec

        records = [
            {"index": number, "active": entry.id == self.active, **msgspec.to_builtins(entry)}
            for number, entry in self.shown
        ]
        return {"active": self.active, "sessions": records, "archived": self.hidden}
