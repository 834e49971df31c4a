"""A session as one file: it comes out whole, goes in whole, and nothing that is not a bundle changes anything."""

import hashlib
import io
import json
import os
import shutil
import signal
import tarfile
from itertools import count
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import pytest

from detent.config.place import at_root
from detent.config.settings import Settings
from detent.core.session.evolve import evolve, fingerprint
from detent.doctor.invariants import check
from detent.engine.bundles import bundle_file, importing
from detent.engine.bundles.exporting import export_session as export
from detent.engine.bundles.importing import import_session, inspect_bundle, without_files
from detent.engine.project import Project, open_project
from detent.errors import Conflict, Corrupt, DetentError, Invalid, NotFound, Refused, StoreFailed
from detent.store.line import decode_line, encode_line
from detent.store.memory import MemoryStore
from tests.support.campaign import IS_WHOLE
from tests.support.faults import Counter, die, die_halfway, failing, in_child, watching
from tests.support.gated import started
from tests.support.project import build_project, write
from tests.support.repository import git
from tests.support.values import TickingClock, actor, row

BIG = bytes(range(256)) * 6_000


@pytest.fixture
def tmp_path(quick_path):
    """In memory: these tests sync a lot."""
    return quick_path


def export_session(project, name, path, **settings):
    return export(project, name, path, with_files=True, **settings)


def opened(directory, *, late=False):
    directory.mkdir(exist_ok=True)
    build_project(directory)
    clock = TickingClock()
    if late:
        clock.now = clock.now.replace(year=2027)
    return open_project(directory, actor="tester", clock=clock)


def worked(directory):
    """A project with a session that has files, artifacts, a rollback, and things people put beside the journal."""
    project = opened(directory)
    (directory / "a.txt").write_text("one\n")
    (directory / "big.bin").write_bytes(BIG)
    session = project.start(row("a", "b", "c"), "Carry it over")
    (directory / "plan.md").write_text("the plan\n")
    (directory / "run.sh").write_text("#!/bin/sh\n")
    (directory / "run.sh").chmod(0o755)
    (directory / "link").symlink_to("a.txt")
    session.finish("planned", artifacts=["plan.md"])
    session.begin("b")
    (directory / "a.txt").write_text("two\n")
    session.finish("built")
    session.checkpoints.rollback("POST_a_v1", remove_unknown=True)
    session.begin("b")
    beside = directory / ".workflow" / session.id
    for name, text in {".summaries/IMPL-1-summary.md": "done", ".chat/x/y.md": "said", "TODO_LIST.md": "- [ ]"}.items():
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        (beside / name).write_text(text)
    (beside / ".chat").mkdir(exist_ok=True)
    (beside / ".chat" / "näme \udcff.json").write_text("{}")
    (beside / ".chat" / ("long" * 40 + ".json")).write_text("{}")
    (beside / "tool.sh").write_text("#!/bin/sh\n")
    (beside / "tool.sh").chmod(0o755)
    project.flush()
    return project, session


def begun(directory):
    """The least that has something of everything: packed and plain objects, an artifact, a file beside the journal."""
    project = opened(directory)
    (directory / "plan.md").write_text("the plan\n")
    (directory / "big.bin").write_bytes(BIG)
    session = project.start(row("a", "b"), "Carry it over")
    session.finish("planned", artifacts=["plan.md"])
    beside = directory / ".workflow" / session.id / ".chat" / "x.md"
    beside.parent.mkdir()
    beside.write_text("said")
    project.flush()
    return project, session


@pytest.fixture
def source(tmp_path):
    project, session = worked(tmp_path / "source")
    with project:
        yield project, session


@pytest.fixture
def packed(source, tmp_path):
    path = tmp_path / "session.detent"
    export_session(source[0], source[1].id, path)
    return path


@pytest.fixture
def target(tmp_path):
    with opened(tmp_path / "target", late=True) as project:
        yield project
        assert check(project) == []


def everything(directory):
    """Every file below, with its content."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in (".lock", ".store.lock") and "lock" not in path.name
    }


def remade(packed, change):
    """The bundle with its header and contents changed, and everything that vouches for them made to fit again."""
    with bundle_file.opened(str(packed)) as reader:
        contents = {part.name: reader.read(part.name) for part in reader.header.parts}
        header = change(reader.header, contents)
    path = packed.with_name("remade")
    with path.open("wb+") as file:
        copies: list[Any] = [lambda fd, data=contents[part.name]: os.write(fd, data) and None for part in header.parts]
        bundle_file.write(file.fileno(), header, copies, None)
    return path


def replaced(name, data, header, contents, **extra):
    """The header and contents with a part changed or added, its digest made to fit."""
    contents[name] = data
    part = bundle_file.Part(name, len(data), hashlib.sha256(data).hexdigest())
    parts = {one.name: one for one in header.parts} | {name: part}
    order = sorted(parts, key=lambda key: (key != "journal.jsonl", key.startswith("files/"), key))
    return msgspec.structs.replace(header, parts=[parts[key] for key in order], **extra)


# Out


def test_an_export_says_what_it_holds(source, packed):
    project, session = source

    with tarfile.open(packed) as tar:
        names = tar.getnames()
        header = json.load(cast("IO[bytes]", tar.extractfile("detent-bundle.json")))
        journal = tar.extractfile("journal.jsonl").read()
        objects = {name: tar.extractfile(name).read() for name in names if name.startswith("objects/")}

    assert names[0] == "detent-bundle.json"
    assert names[-1] == "sha256"
    assert (header["format"], header["version"], header["session"]) == ("detent-bundle", 1, session.id)
    assert header["commits"] == session.state.version
    assert journal == Path(project.store.root, session.id, "journal.jsonl").read_bytes()
    assert all(name == f"objects/{hashlib.sha256(data).hexdigest()}" for name, data in objects.items())
    assert {hashlib.sha256(data).hexdigest() for data in (BIG, b"one\n", b"two\n", b"the plan\n")} <= {
        name.removeprefix("objects/") for name in objects
    }
    assert project.checkpoints.named() == {name.removeprefix("objects/") for name in objects}
    files = {name.removeprefix("files/") for name in names if name.startswith("files/")}
    assert {".summaries/IMPL-1-summary.md", ".chat/x/y.md", "TODO_LIST.md", "tool.sh"} <= files
    assert not files & {"journal.jsonl", "snapshot.json", ".documents.json", "workflow-session.json", "IMPL_PLAN.md"}
    assert ".task/.published.json" not in files


def test_the_same_session_makes_the_same_bytes(source, packed, tmp_path):
    project, session = source

    made = export_session(project, None, tmp_path / "again")

    assert (tmp_path / "again").read_bytes() == packed.read_bytes()
    assert made == inspect_bundle(packed)
    assert made.bytes == packed.stat().st_size
    assert (made.session, made.commits, made.left_out) == (session.id, session.state.version, ())


def test_an_export_replaces_a_bundle_and_nothing_else(source, tmp_path):
    path = tmp_path / "mine"
    path.write_text("precious")

    with pytest.raises(Conflict, match="exists already and is no bundle"):
        export_session(source[0], None, path)

    assert path.read_text() == "precious"
    path.unlink()
    export_session(source[0], None, path)
    path.write_bytes(path.read_bytes()[:-1])
    export_session(source[0], None, path)
    assert inspect_bundle(path).session == source[1].id
    assert sorted(one.name for one in tmp_path.iterdir()) == ["mine", "source"]


def test_an_export_that_fails_leaves_no_file(source, tmp_path):
    with watching(Counter(failing(28, ("write",)), 3, lasting=True)), pytest.raises(StoreFailed, match="disk is full"):
        export_session(source[0], None, tmp_path / "x")
    with pytest.raises(StoreFailed):
        export_session(source[0], None, tmp_path / "nowhere" / "x")
    with pytest.raises(NotFound):
        export_session(source[0], "WFS-nobody", tmp_path / "x")

    assert sorted(one.name for one in tmp_path.iterdir()) == ["source"]


def test_a_damaged_object_is_not_exported(source, tmp_path):
    project, _ = source
    [plain] = Path(project.checkpoints.objects.root).glob("*/*/big.bin")
    plain.chmod(0o644)
    plain.write_bytes(b"\1" + BIG[1:])

    with pytest.raises(Corrupt, match="damaged"):
        export_session(project, None, tmp_path / "x")

    assert not (tmp_path / "x").exists()


def test_links_beside_the_journal_are_named_and_left_out(source, tmp_path):
    project, session = source
    Path(project.store.root, session.id, "elsewhere").symlink_to("/etc")
    Path(project.store.root, session.id, ".chat", "passwd").symlink_to("/etc/passwd")

    made = export_session(project, None, tmp_path / "x")

    assert made.left_out == (".chat/passwd", "elsewhere")


def test_what_is_committed_meanwhile_is_not_part_of_it(source, tmp_path):
    project, session = source
    told = []

    def meddle(done, whole):
        told.append((done, whole))
        if len(told) == 1:
            session.checkpoints.take("meanwhile")

    made = export_session(project, None, tmp_path / "x", progress=meddle)

    assert made.commits == session.state.version - 1
    assert inspect_bundle(tmp_path / "x") == made
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert all(done <= whole for done, whole in told)


def test_a_file_that_changes_during_the_export_is_noticed(source, tmp_path):
    project, session = source
    todo = Path(project.store.root, session.id, "TODO_LIST.md")

    def change(*_: int) -> None:
        todo.write_text("- [x]")

    with pytest.raises(Conflict, match=r"TODO_LIST\.md was changed while it was exported"):
        export_session(project, None, tmp_path / "x", progress=change)

    assert not (tmp_path / "x").exists()


def test_a_session_is_carried_from_store_to_store_and_back_without_a_change(source, packed, tmp_path):
    _, session = source
    (tmp_path / "memory").mkdir()
    with Project(MemoryStore(), at_root(str(tmp_path / "memory")), Settings(), actor=actor()) as memory:
        carried = import_session(memory, packed)
        assert carried.state == session.state
        assert check(memory) == []
        export_session(memory, session.id, tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == packed.read_bytes()
        carried.checkpoints.rollback("POST_a_v1", remove_unknown=True)

    assert not (tmp_path / "memory/.workflow").exists()


# In


def test_an_imported_session_is_the_same_in_another_project(source, packed, target):
    project, session = source
    told = []

    found = import_session(target, packed, progress=lambda done, whole: told.append((done, whole)))

    assert found.state == session.state
    assert list(found.log()) == list(session.log())
    assert [one.event for one in found.checkpoints.all()] == [one.event for one in session.checkpoints.all()]
    assert target.active() is None
    assert check(target) == []
    assert list(target.checkpoints.objects.verify()) == []
    here, there = (Path(one.store.root, session.id) for one in (target, project))
    assert everything(here / ".chat") == everything(there / ".chat")
    assert (here / "workflow-session.json").exists()
    assert (here / ".summaries/IMPL-1-summary.md").read_text() == "done"
    assert os.access(here / "tool.sh", os.X_OK)
    assert everything(Path(target.store.root, "checkpoints", f"run-{session.id}")) == everything(
        Path(project.store.root, "checkpoints", f"run-{session.id}")
    )
    assert told[-1][0] <= told[-1][1]


def test_one_can_go_back_and_on_in_the_other_project(packed, target):
    root = Path(target.place.base)
    session = import_session(target, packed)

    session.checkpoints.rollback("POST_b_v1", remove_unknown=True)

    assert (root / "a.txt").read_text() == "two\n"
    assert (root / "big.bin").read_bytes() == BIG
    assert os.access(root / "run.sh", os.X_OK)
    assert os.readlink(root / "link") == "a.txt"
    session.checkpoints.undo()
    assert not (root / "a.txt").exists()
    session.finish("built again", phase="b")
    session.begin("c")
    session.finish("all done")
    target.flush()
    assert session.state.status == "completed"
    assert target.history()[-1]["session_id"] == session.id


def test_artifacts_are_plain_files_again(packed, target):
    session = import_session(target, packed)

    names = {path.name for path in Path(target.checkpoints.objects.root).glob("*/*/*")}

    assert {"plan.md", "big.bin"} <= names
    assert {path.parent.parent.name for path in Path(target.checkpoints.objects.root).glob("*/*/plan.md")} <= {
        position.event.id for position in session.checkpoints.all()
    }


def test_an_import_leaves_the_active_session_active(packed, target):
    mine = target.start(row("x"), "My own work")

    import_session(target, packed)

    assert target.active() == mine.id
    target.session().finish("done")
    target.flush()


def test_importing_again_is_the_same_as_importing_once(packed, target):
    import_session(target, packed)
    before = everything(Path(target.store.root))

    import_session(target, packed)

    assert everything(Path(target.store.root)) == before


def test_a_session_that_moved_on_or_is_another_is_a_conflict(packed, target):
    session = import_session(target, packed)
    session.checkpoints.take("moved on")
    target.flush()
    before = everything(Path(target.store.root))

    with pytest.raises(Conflict, match=r"already another session WFS-carry-it-over.*be renamed"):
        import_session(target, packed)

    assert everything(Path(target.store.root)) == before


def test_a_session_keeps_its_id(packed, target):
    with pytest.raises(Refused, match="cannot be renamed"):
        import_session(target, packed, name="other")

    assert target.store.sessions() == []
    assert import_session(target, packed, name="carry-it-over").id == "WFS-carry-it-over"


def test_a_session_whose_directory_was_lost_comes_back(source, packed):
    project, session = source
    before = session.state
    other = project.start(row("z"), "Something else")
    older = packed
    session.checkpoints.take("a later one, which the bundle does not have")
    project.flush()
    root = Path(project.store.root)
    project.close()
    shutil.rmtree(root / session.id)

    with open_project(root.parent, actor="tester") as again:
        with pytest.raises(Conflict, match="already another session"):
            # Its second copy has more than the bundle.
            import_session(again, older)
        again.store.repairs.forget(session.id)
        found = import_session(again, older)

        assert found.state == before
        assert again.active() == other.id
        assert check(again) == []


def test_a_session_without_checkpoints_can_be_carried_too(tmp_path, target):
    directory = tmp_path / "bare"
    directory.mkdir()
    (directory / "detent.toml").write_text('gates = "off"\n[checkpoint]\ncapture = "off"\n')
    with opened(directory) as project:
        project.start(row("a"), "No files").finish("done")
        made = export_session(project, "WFS-no-files", tmp_path / "x")

    found = import_session(target, tmp_path / "x")

    assert made.objects == 0
    assert found.state.status == "completed"


# Without the contents of files


def test_a_bundle_without_files_holds_manifests_and_evidence_and_no_content(tmp_path):
    project, session = started(tmp_path / "source", '{ kind = "command", command = "true" }')
    secret = "content of a file that stays here"
    (tmp_path / "source" / "note.txt").write_text(secret)
    beside = tmp_path / "source" / ".workflow" / session.id / ".chat" / "x.md"
    beside.parent.mkdir(parents=True)
    beside.write_text(secret)
    with project:
        session.gates.run("command", phase="work")
        session.finish("done")
        made = export(project, None, tmp_path / "lean")

    with tarfile.open(tmp_path / "lean") as tar:
        names = tar.getnames()

    assert secret.encode() not in (tmp_path / "lean").read_bytes()
    assert not made.with_files
    assert made.objects == sum(name.startswith("objects/") for name in names) > 0
    assert {name.split("/")[1] for name in names if name.startswith("files/")} == {"evidence"}


def test_a_bundle_without_files_has_no_secret_that_was_typed_or_printed(tmp_path):
    secret = "ghp_" + "x7Kd92LmQp" * 4
    project, session = started(tmp_path / "source", '{ kind = "command", command = "cat a.txt; exit 1" }')
    write(tmp_path / "source", "a.txt", f"token={secret} and so on\n")
    with project:
        session.gates.run("command", phase="work")
        session.fail(f"the token {secret} was refused")
        project.start(row("a"), f"Use {secret} to log in")
        for name in project.store.sessions():
            export(project, name, tmp_path / name)

            assert secret.encode() not in (tmp_path / name).read_bytes()
    assert b"and so on" in (tmp_path / session.id).read_bytes()


def test_a_session_imported_without_files_says_what_it_lacks_until_they_come(source, packed, target, tmp_path):
    project, session = source
    export(project, None, tmp_path / "lean")

    found = import_session(target, tmp_path / "lean")

    assert found.state == session.state
    assert without_files(target.store, session.id).commits == session.state.version
    [warned] = check(target)
    assert (warned.severity, warned.subject) == ("warning", session.id)
    assert "without the contents of files" in warned.message
    with pytest.raises(Corrupt, match="missing"):
        found.checkpoints.rollback("POST_b_v1")
    with pytest.raises(Corrupt, match="missing"):
        export_session(target, session.id, tmp_path / "again")
    export(target, session.id, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "lean").read_bytes()

    import_session(target, packed)

    assert check(target) == []
    assert without_files(target.store, session.id) is None
    beside = Path(target.store.root, session.id)
    assert (beside / ".summaries/IMPL-1-summary.md").read_text() == "done"
    import_session(target, tmp_path / "lean")
    assert check(target) == []
    found.checkpoints.rollback("POST_b_v1", remove_unknown=True)
    target.flush()


def test_a_checkpoint_taken_after_an_import_without_files_is_checked_in_full(source, tmp_path):
    export(source[0], None, tmp_path / "lean")
    with opened(tmp_path / "other", late=True) as other:
        found = import_session(other, tmp_path / "lean")
        Path(other.place.base, "new.txt").write_text("new here\n")
        found.checkpoints.take("here")
        other.flush()
        assert [one.severity for one in check(other)] == ["warning"]
        for pack in Path(other.checkpoints.objects.root).glob("*.pack"):
            pack.write_bytes(pack.read_bytes().replace(b"new here", b"new_here"))

        assert "error" in {one.severity for one in check(other)}


def test_a_bundle_names_the_git_tree_of_the_present_files_and_changes_nothing_in_git(tmp_path):
    directory = tmp_path / "repository"
    write(directory, "a.txt", "one\n")
    write(directory, ".gitignore", "*.log\n")
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "-m", "first")
    with opened(directory) as project:
        project.start(row("a"), "In git")
        (directory / "a.txt").write_text("two\n")
        (directory / "b.txt").write_text("new\n")
        (directory / "c.log").write_text("ignored\n")
        (directory / ".detent").mkdir()
        (directory / ".detent" / "WFS-old.bundle").write_text("published before")
        before = everything(directory / ".git")

        made = export(project, None, tmp_path / "x")

        assert everything(directory / ".git") == before
        (directory / ".detent" / "WFS-old.bundle").unlink()
        assert export(project, None, tmp_path / "y").git == made.git
    assert made.git.commit == git(directory, "rev-parse", "HEAD")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "-m", "all of it")
    assert made.git.tree == git(directory, "rev-parse", "HEAD^{tree}")
    assert inspect_bundle(tmp_path / "x") == made


# What is not a bundle


def test_any_flipped_bit_and_any_cut_is_noticed(packed, target, tmp_path):
    data = packed.read_bytes()
    before = everything(Path(target.store.root))
    places = [len(data) * part // 50 for part in range(50)]
    places += [0, 156, 511, 512, 600, len(data) - 1, len(data) - 1024, len(data) - 1025, len(data) - 1500]
    bad = tmp_path / "bad"

    for at in places:
        bad.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(DetentError) as noticed:
            import_session(target, bad)
        assert "bad" in noticed.value.message
    for end in [*places, len(data) - 2048, len(data) - 512]:
        bad.write_bytes(data[:end])
        with pytest.raises((Corrupt, Invalid)):
            import_session(target, bad)
    bad.write_bytes(data + b"\0")
    with pytest.raises(Corrupt):
        import_session(target, bad)

    assert everything(Path(target.store.root)) == before
    assert target.store.sessions() == []


def test_every_single_byte_of_a_small_bundle_counts(tmp_path, target):
    with opened(tmp_path / "small") as project:
        project.start(row("a"), "Small")
        export_session(project, None, tmp_path / "small.tar")
    data = (tmp_path / "small.tar").read_bytes()
    bad = tmp_path / "bad"

    for at in range(0, len(data), 7):
        bad.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(DetentError):
            inspect_bundle(bad)


def test_other_files_are_refused_as_what_they_are_not(packed, target, tmp_path):
    foreign = tmp_path / "foreign.tar"
    with tarfile.open(foreign, "w") as tar:
        tar.addfile(tarfile.TarInfo("../../etc/passwd"), io.BytesIO())
    empty, text, pipe = tmp_path / "empty", tmp_path / "text", tmp_path / "pipe"
    empty.touch()
    text.write_text("hello" * 500)
    os.mkfifo(pipe)

    for path in (foreign, empty, text):
        with pytest.raises(Invalid, match="is not a bundle"):
            import_session(target, path)
    for path in (pipe, tmp_path):
        with pytest.raises(Invalid, match=r"not a file|cannot be read"):
            import_session(target, path)
    with pytest.raises(NotFound):
        import_session(target, tmp_path / "nothing")


def test_a_newer_format_is_refused_as_such(packed, target):
    newer = remade(packed, lambda header, _: msgspec.structs.replace(header, version=2))
    other = remade(packed, lambda header, _: msgspec.structs.replace(header, format="zip"))

    with pytest.raises(Invalid, match="not a bundle"):
        import_session(target, other)
    newer = remade(packed, lambda header, _: msgspec.structs.replace(header, version=2))
    with pytest.raises(Refused, match="format 2, and this Detent reads up to 1"):
        import_session(target, newer)


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/x",
        "a/../../x",
        "",
        "a//b",
        "./a",
        "nul\0",
        ".documents.json",
        "snapshot.json",
        "Journal.jsonl",
        ".task/.published.json",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(packed, target, path):
    bad = remade(packed, lambda header, contents: replaced(f"files/{path}", b"x", header, contents))

    with pytest.raises((Corrupt, Invalid)):
        import_session(target, bad)

    assert target.store.sessions() == []


def test_a_part_that_is_not_what_the_header_says_is_refused_though_the_whole_fits(packed, target):
    def changed(header, contents):
        contents["files/.chat/x/y.md"] = b"lied"
        return header

    with pytest.raises(Corrupt, match=r"files/\.chat/x/y\.md does not have the SHA-256"):
        import_session(target, remade(packed, changed))


def test_a_file_in_the_place_of_a_directory_is_refused(packed, target):
    bad = remade(packed, lambda header, contents: replaced("files/.chat", b"x", header, contents))

    with pytest.raises(Corrupt, match="leads outside"):
        import_session(target, bad)


def test_a_link_in_the_tar_is_refused(packed, target, tmp_path):
    data = bytearray(packed.read_bytes())
    with tarfile.open(packed) as tar:
        member = tar.getmember("files/TODO_LIST.md")
    info = tarfile.TarInfo("files/TODO_LIST.md")
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0
    data[member.offset : member.offset + 512] = info.tobuf(tarfile.GNU_FORMAT)
    digest = hashlib.sha256(data[:-2048]).hexdigest().encode()
    data[-1536 : -1536 + 64] = digest
    (tmp_path / "bad").write_bytes(data)

    with pytest.raises(Corrupt, match="unexpected content"):
        import_session(target, tmp_path / "bad")


def test_sizes_beyond_all_reason_are_refused_before_anything_is_read(packed, target, tmp_path):
    with bundle_file.opened(str(packed)) as reader:
        header = reader.header
    huge = [msgspec.structs.replace(header, parts=[part._replace(size=1 << 61) for part in header.parts])]
    huge.append(msgspec.structs.replace(header, parts=[header.parts[0]._replace(size=-1), *header.parts[1:]]))
    for number, one in enumerate(huge):
        text = msgspec.json.encode(one)
        info = tarfile.TarInfo("detent-bundle.json")
        info.size = len(text)
        bad = tmp_path / f"bad{number}"
        bad.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + text + bytes(-len(text) % 512))
        with pytest.raises(Corrupt):
            import_session(target, bad)
    info.size = 1 << 50
    bad.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    with pytest.raises(Corrupt, match="would have"):
        import_session(target, bad)


def test_an_object_too_few_or_too_many_is_refused(packed, target):
    data = b"nobody asked for this"
    extra = f"objects/{hashlib.sha256(data).hexdigest()}"
    wanted = f"objects/{hashlib.sha256(b'two' + chr(10).encode()).hexdigest()}"

    more = remade(packed, lambda header, contents: replaced(extra, data, header, contents))
    with pytest.raises(Corrupt, match="exactly the objects that its journal names"):
        import_session(target, more)
    fewer = remade(
        packed,
        lambda header, _: msgspec.structs.replace(header, parts=[part for part in header.parts if part.name != wanted]),
    )
    with pytest.raises(Corrupt, match=r"a\.txt is missing"):
        import_session(target, fewer)


def test_a_journal_that_was_touched_is_refused(packed, target):
    def forged(header, contents):
        return replaced("journal.jsonl", contents["journal.jsonl"].replace(b"planned", b"plotted"), header, contents)

    def cut(header, contents):
        lines = contents["journal.jsonl"].splitlines(keepends=True)
        return replaced("journal.jsonl", b"".join(lines[:-1]), header, contents)

    def torn(header, contents):
        return replaced("journal.jsonl", contents["journal.jsonl"] + b'{"version"', header, contents)

    for change, told in ((forged, "line 2"), (cut, "ends at commit"), (torn, "ends at commit")):
        with pytest.raises(Corrupt, match=told):
            import_session(target, remade(packed, change))
    with pytest.raises(Corrupt, match="is not that of"):
        import_session(target, remade(packed, lambda header, _: msgspec.structs.replace(header, session="WFS-other")))
    with pytest.raises(DetentError):
        import_session(target, remade(packed, lambda header, _: msgspec.structs.replace(header, session="../../x")))
    assert target.store.sessions() == []


def test_a_bundle_that_changes_while_it_is_imported_is_noticed(packed, target):
    with tarfile.open(packed) as tar:
        places = [member.offset_data for member in tar if member.name in ("journal.jsonl", "files/.chat/x/y.md")]
    whole = packed.read_bytes()

    for at in places:

        def meddle(done, size, at=at):
            if done > at + 1_000:
                with packed.open("rb+") as file:
                    file.seek(at)
                    file.write(b"X")

        with pytest.raises(Corrupt):
            import_session(target, packed, progress=meddle)
        packed.write_bytes(whole)

    assert target.store.sessions() == []
    assert not list(Path(target.store.root).glob(".new-*"))


def test_a_journal_that_this_detent_reads_otherwise_is_refused(tmp_path, target):
    digest = hashlib.sha256(b"payload").hexdigest()

    with pytest.raises(Corrupt, match="its last commit recorded 00ff"):
        import_session(target, forged(tmp_path, {"a": ["f", digest, 7]}, state="00ff"))


@pytest.mark.parametrize(
    "path", ["../out", "/etc/cron.d/x", ".git/hooks/pre-commit", "sub/.GIT/config", ".workflow/x", "Detent.toml",
             ".claude/settings.json"]
)  # fmt: skip
def test_a_checkpoint_with_files_that_no_rollback_may_write_is_refused(tmp_path, target, path):
    bad = forged(tmp_path, {path: ["f", hashlib.sha256(b"payload").hexdigest(), 7]})

    with pytest.raises((Corrupt, Refused), match=r"impossible entry|which no checkpoint may"):
        import_session(target, bad)

    assert target.store.sessions() == []


def test_a_checkpoint_that_would_write_through_a_link_is_refused(tmp_path, target):
    entry = [hashlib.sha256(b"payload").hexdigest(), 7]

    with pytest.raises(Corrupt, match="impossible entry 'a'"):
        import_session(target, forged(tmp_path, {"a": ["l", *entry], "a/passwd": ["f", *entry]}))


def test_a_checkpoint_of_other_things_than_files_is_refused(tmp_path, target):
    digest = hashlib.sha256(b"payload").hexdigest()

    for entry, told in (
        (["d", digest, 7], "impossible entry"),
        (["f", digest, 8], "missing"),
        (["f", "x", 1], "missing"),
    ):
        with pytest.raises(Corrupt, match=told):
            import_session(target, forged(tmp_path, {"a": entry}))
    import_session(target, forged(tmp_path, {"a": ["f", digest, 7]}))


def forged(directory, files, *, state=None):
    """A bundle that was forged: its checkpoint has `files`, and all that vouches for it fits."""
    shutil.rmtree(directory / "honest", ignore_errors=True)
    with opened(directory / "honest") as project:
        project.start(row("a"), "Harmless")
        export_session(project, None, directory / "honest.tar")

    def change(header, contents):
        manifest = json.dumps({"base": None, "set": files}).encode()
        contents.clear()
        [commit] = [decode_line(line, "0" * 32, 1, header.session)[0] for line in project_journal(directory)]
        tree = msgspec.structs.replace(commit.events[-1].tree, manifest=hashlib.sha256(manifest).hexdigest())
        events = (*commit.events[:-1], msgspec.structs.replace(commit.events[-1], tree=tree))
        draft = msgspec.structs.replace(commit, events=events)
        sealed = msgspec.structs.replace(draft, state=state or fingerprint(evolve(None, draft)))
        line, total = encode_line(sealed, "0" * 32)
        header = msgspec.structs.replace(header, parts=[], sum=total)
        header = replaced("journal.jsonl", line, header, contents)
        for data in (manifest, b"payload"):
            header = replaced(f"objects/{hashlib.sha256(data).hexdigest()}", data, header, contents)
        return header

    return remade(directory / "honest.tar", change)


def project_journal(directory):
    [path] = (directory / "honest" / ".workflow").glob("WFS-*/journal.jsonl")
    return path.read_bytes().splitlines(keepends=True)


# Interrupted


def test_a_kill_at_every_call_of_an_import_leaves_nothing_or_all(tmp_path):
    project, session = begun(tmp_path / "source")
    export_session(project, None, tmp_path / "x")
    state = session.state
    project.close()
    template = tmp_path / "template"
    opened(template, late=True).close()
    outcomes = []

    step = 1 if IS_WHOLE else 5
    for number in count(1, step):
        died = None
        for strike in (die, die_halfway):
            place = shutil.copytree(template, tmp_path / f"struck-{number}-{strike.__name__}")
            counter = Counter(strike, number)
            status, _ = in_child(lambda said, place=place: brought(place, tmp_path / "x", said), counter)
            if status >= 0:
                continue
            assert status == -signal.SIGKILL
            with opened(place, late=True) as again:
                found = again.store.sessions()
                assert found in ([], [session.id])
                if found:
                    assert again.session(session.id).state == state
                else:
                    assert check(again) == []
                died = bool(found)
                assert import_session(again, tmp_path / "x").state == state
                again.reconcile()
                assert check(again) == []
                assert list(again.checkpoints.objects.verify()) == []
                assert not list(Path(again.store.root).glob(".new-*"))
        if died is None:
            break
        outcomes.append(died)

    assert len(outcomes) > 30 // step
    assert outcomes == sorted(outcomes)
    assert True in outcomes
    assert False in outcomes


def brought(place, path, said):
    with opened(place, late=True) as project:
        import_session(project, path)
        said()


@pytest.mark.parametrize("lasting", [False, True])
def test_a_disk_that_fails_at_any_call_leaves_nothing_or_all(tmp_path, lasting):
    project, session = begun(tmp_path / "source")
    export_session(project, None, tmp_path / "x")
    project.close()
    template = tmp_path / "template"
    opened(template, late=True).close()

    for number in count(1, 3):
        place = shutil.copytree(template, tmp_path / f"struck-{number}")
        counter = Counter(failing(28), number, lasting=lasting)
        failed = True
        with opened(place, late=True) as struck:
            with watching(counter):
                try:
                    import_session(struck, tmp_path / "x")
                    failed = len(counter.calls) >= number
                except StoreFailed:
                    pass
            assert struck.store.sessions() in ([], [session.id])
        with opened(place, late=True) as again:
            import_session(again, tmp_path / "x")
            assert check(again) == []
        if not failed:
            break

    assert number > 30


def test_objects_that_are_collected_meanwhile_are_noticed(packed, target, monkeypatch):
    create, stored = importing._store_objects, []

    def collected(project, reader, found):
        create(project, reader, found)
        if not stored:
            stored.append(project.checkpoints.collect(dry_run=False))

    monkeypatch.setattr(importing, "_store_objects", collected)

    with pytest.raises(Conflict, match="removed meanwhile"):
        import_session(target, packed)

    assert target.store.sessions() == []
    import_session(target, packed)


def test_the_digest_is_of_everything_before_it(packed):
    data = packed.read_bytes()

    assert inspect_bundle(packed).digest == hashlib.sha256(data[:-2048]).hexdigest()
    assert data[-1536:-1472].decode() == inspect_bundle(packed).digest
