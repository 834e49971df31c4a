"""Journals of an earlier Detent are read as they were written: each commit leads to the state that it recorded.

They are never written anew. Where the rules have to change, the old ones stay for what was made by them.
"""

import shutil
from pathlib import Path

import pytest

from detent.core.evolve import evolve, fingerprint
from detent.core.session import decode_session, encode_session
from detent.engine.checkpoints import commits
from detent.engine.project import init_project, open_project
from detent.store.port import START

JOURNALS = sorted((Path(__file__).parent / "journals").glob("*.jsonl"))


@pytest.fixture(params=JOURNALS, ids=lambda path: path.stem)
def journal(request, tmp_path):
    """A project with the session of the journal, and the session's name."""
    init_project(tmp_path)
    name = f"WFS-{request.param.stem}"
    own = tmp_path / ".workflow" / name / "journal.jsonl"
    own.parent.mkdir()
    shutil.copy(request.param, own)
    with open_project(tmp_path, actor="tester") as project:
        yield project, name


def test_there_are_some():
    assert {path.stem for path in JOURNALS} >= {"mixed", "wide"}


@pytest.mark.parametrize("kept", [lambda session: session, lambda session: decode_session(encode_session(session))])
def test_every_commit_leads_to_the_state_that_it_recorded_also_from_a_snapshot(journal, kept):
    project, name = journal
    session = None
    for commit in commits(project.store, name):
        session = evolve(session, commit)
        assert (commit.version, fingerprint(session)) == (commit.version, commit.state)
        session = kept(session)

    assert session.version == project.store.read(name, START)[1].version
