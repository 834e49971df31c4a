"""Every released format is read for ever: docs/howto/upgrade.md has the promise, tests/released the formats."""

import copy
import shutil

import msgspec
import pytest

from book import formats, release
from detent.cli.commands.schema import ENDING, NAMES, schema_of
from detent.core.session.evolve import evolve, fingerprint
from detent.store.files import FileStore
from detent.store.port import START
from tests.support.project import write

VERSIONS = sorted(path.name for path in formats.RELEASED.glob("*") if path.is_dir())


def test_every_version_of_the_changelog_has_its_formats():
    released = formats.released((formats.ROOT / "CHANGELOG.md").read_text("utf-8"))

    assert sorted(released) == VERSIONS, "record them: python -m book.formats VERSION"


@pytest.fixture(params=[*VERSIONS, "present"])
def recorded(request, tmp_path):
    """The formats of a version; those of the present code are recorded anew."""
    if request.param == "present":
        return formats.record("present", tmp_path / "released")
    return formats.RELEASED / request.param


def test_the_journal_of_a_version_replays(recorded, tmp_path):
    own = tmp_path / "WFS-every-event" / "journal.jsonl"
    own.parent.mkdir()
    shutil.copy(recorded / formats.JOURNAL, own)
    store = FileStore(str(tmp_path))
    session = None
    for commit in store.read("WFS-every-event", START).commits:
        session = evolve(session, commit)
        assert fingerprint(session) == commit.state
    store.close()
    assert session is not None


def test_a_reader_of_a_versions_documents_finds_every_field(recorded):
    problems = {}
    for path in sorted((recorded / formats.SCHEMAS).glob(f"*{ENDING}")):
        name = path.name.removesuffix(ENDING)
        problems[name] = formats.broken_promises(msgspec.json.decode(path.read_bytes()), schema_of(name))

    assert problems == {name: [] for name in NAMES}


def test_a_broken_promise_is_noticed():
    before = schema_of("state")
    now = copy.deepcopy(before)
    shape = now["$defs"]["StateDocument"]["properties"]
    del shape["state_version"]
    shape["phases"] = {"type": "string"}

    assert formats.broken_promises(before, before) == []
    assert "state_version is gone" in formats.broken_promises(before, now)
    assert any(problem.startswith("phases: the type was") for problem in formats.broken_promises(before, now))


def test_a_version_without_a_section_or_without_formats_is_not_tagged(monkeypatch):
    with pytest.raises(release.ReleaseFailed, match="no section about 9"):
        release.check_recorded("9.9.9")

    monkeypatch.setattr(formats, "released", lambda _changelog: ["9.9.9"])

    with pytest.raises(release.ReleaseFailed, match="formats of 9"):
        release.check_recorded("9.9.9")


def test_recorded_formats_are_never_changed(tmp_path):
    formats.record("1.0.0", tmp_path)

    with pytest.raises(FileExistsError, match=r"1\.0\.0"):
        formats.record("1.0.0", tmp_path)


def test_the_size_of_an_install_is_told_with_byte_code_and_without(tmp_path):
    write(tmp_path, "detent/cli.py", b"x" * 3_000_000)
    write(tmp_path, "detent/__pycache__/cli.cpython-311.pyc", b"x" * 9_000_000)
    write(tmp_path, "detent-0.1.0.dist-info/RECORD", b"x" * 500_000)
    write(tmp_path, "click/core.py", b"x" * 500_000)

    sizes = release.installed_sizes(tmp_path.iterdir())

    assert sizes == {"detent": (3_500_000, 9_000_000), "click": (500_000, 0)}
    assert release.describe_sizes(sizes).split("\n    ")[:2] == [
        "4.0 MB of files; the limit is 10 MB",
        "with byte code 13.0 MB, 3.0 MB above the limit",
    ]
