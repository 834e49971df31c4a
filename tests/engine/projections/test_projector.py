"""Folded sessions that are kept at hand."""

from detent.engine.projections import projector
from detent.store import files
from detent.store.line import decode_line
from tests.support.values import row


def test_a_session_that_somebody_has_is_folded_once_however_many_come_and_go(project):
    handle = project.start(row("a", "b"), "the first")
    own = project.journal(handle.id)

    for number in range(2 * projector.MOST_KEPT):
        project.session(project.start(row("a"), f"another {number}").id)

    assert project.journal(handle.id) is own


def test_the_ones_asked_for_last_are_kept(project):
    names = [project.start(row("a"), f"session {number}").id for number in range(2 * projector.MOST_KEPT)]
    kept = id(project.journal(names[0]))

    for name in names[1:]:
        project.journal(name)
        assert id(project.journal(names[0])) == kept


def test_a_publication_ends_while_the_session_goes_on(project, monkeypatch):
    handle = project.start(row("a", "b"), "busy")
    publish_tasks, calls = projector.Projector._publish_tasks, []

    def slowly(self, journal):
        publish_tasks(self, journal)
        if len(calls) < 3:
            calls.append(handle.tasks.add("One more", requirements=["something"]))

    monkeypatch.setattr(projector.Projector, "_publish_tasks", slowly)
    project.publish_now(handle.id)

    assert len(calls) == 1
    # The next publication writes the rest.
    monkeypatch.undo()
    project.publish_now(handle.id)


def test_publishing_a_session_that_never_had_a_task_decodes_no_commit(project, monkeypatch):
    handle = project.start(row("a", "b"), "no tasks")
    project.flush()
    handle.finish("done")
    decoded = []
    monkeypatch.setattr(files, "decode_line", lambda *given: decoded.append(given) or decode_line(*given))

    project.publish_now(handle.id)
    assert decoded == []

    handle.tasks.add("The first", requirements=["something"])
    project.publish_now(handle.id)
    assert decoded
