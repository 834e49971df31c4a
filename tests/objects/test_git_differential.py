"""Git as the judge: whatever it stores of a tree, a rollback puts back as `git checkout -f` does. Git's own files stay.

Each tree is committed with git and taken as a checkpoint in the same directory. Then git goes back and forth in a copy,
and Detent in the original.
"""

import hashlib
import os
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.errors import DetentError
from tests.support.campaign import IS_WHOLE
from tests.support.project import build_project
from tests.support.values import TickingClock, row

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "tester@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
CONFIGURED = {"safe.directory": "*", "gc.auto": "0", "maintenance.auto": "false", "core.protectNTFS": "false"}
#: What is there beside every tree.
STANDING = {b".git", b".workflow", b"detent.toml"}

FILE, PROGRAM, LINK = b"100644", b"100755", b"120000"

ODD_NAMES = [
    b"plain.txt",
    b" leading and trailing ",
    b"new\nline",
    b"tab\there",
    b"carriage\rreturn",
    b"bell\x07 and \x7f",
    b"\"double\" 'single' `back`",
    b"back\\slash",
    b"\\x80",
    b"\\",
    b"-rf",
    b"--",
    b"$HOME;&|*?[a]{b}",
    b"#comment",
    b"!bang",
    b"%s %00",
    "Ünïcödé 漢字 🎉".encode(),
    "\u00e9 as one".encode(),
    b"...",
    b".detent.",
    b"n" * 255,
    "ä".encode() * 127,
]
if sys.platform != "darwin":  # where names are made UTF-8 and one of the two forms of an accent
    ODD_NAMES += [b"not utf-8 \xff\xfe", b"\x80", b"half \xc3", b"\xed\xb2\x80", "e\u0301 as two".encode()]

DEEP = b"/".join(b"%03d-" % level + b"d" * 96 for level in range(12)) + b"/bottom"


def git(root, *arguments, given=None):
    configured = [part for name, value in CONFIGURED.items() for part in ("-c", f"{name}={value}")]
    command = ["git", "-C", root, *configured, *arguments]
    done = subprocess.run(command, env=ENVIRONMENT, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Original:
    """A project that is a repository too. A tree is what should stand at each path: its mode as git has it, content."""

    def __init__(self, root, project):
        self.root = root
        self.session = project.start(row("a", "b"), "Compare with git")
        self.checkpoints = []
        git(root, "init", "-q", "-b", "main")
        with open(os.path.join(root, ".git", "info", "exclude"), "w") as excluded:
            excluded.write("/detent.toml\n")

    def take(self, tree):
        lay(os.fsencode(self.root), tree)
        self.take_what_is_there()

    def take_what_is_there(self):
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "-m", "tree")
        self.checkpoints.append(self.session.checkpoints.take().id)

    def commit(self, number):
        return f"main~{len(self.checkpoints) - 1 - number}"

    def compare(self, *targets):
        """Go to the trees by their numbers, with git in a copy and with Detent here; both must look the same."""
        copy = self.root + "-by-git"
        subprocess.run(["cp", "-a", self.root, copy], check=True)
        for number in targets:
            git(copy, "checkout", "-q", "-f", "--detach", self.commit(number))
            before = digest_of_git(self.root)
            self.session.checkpoints.rollback(self.checkpoints[number], remove_unknown=True)

            assert digest_of_git(self.root) == before
            by_git, by_detent = everything(copy), everything(self.root)
            assert stored(self.root, self.commit(number)).items() <= by_git.items()
            different = differing(by_git, by_detent)
            assert different.keys() <= ignored(self.root, different)


@contextmanager
def original(root):
    os.makedirs(root, exist_ok=True)
    build_project(root)
    with open_project(root, actor="tester", clock=TickingClock()) as project:
        yield Original(os.fspath(root), project)
        project.flush()
        assert check(project) == []


def lay(root, tree):
    """Make the directory hold the tree and nothing else; what is as it should be is not touched."""
    for name in set(os.listdir(root)) - STANDING:
        clear(root, name, tree)
    for path, (mode, content) in tree.items():
        full = os.path.join(root, path)
        if os.path.lexists(full):
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if mode == LINK:
            os.symlink(content, full)
            continue
        with open(full, "wb") as file:
            file.write(content)
        os.chmod(full, 0o755 if mode == PROGRAM else 0o644)


def clear(root, path, tree):
    full = os.path.join(root, path)
    if os.path.isdir(full) and not os.path.islink(full):
        for name in os.listdir(full):
            clear(root, os.path.join(path, name), tree)
        with suppress(OSError):
            os.rmdir(full)
    elif tree.get(path) != looked_at(full):
        os.unlink(full)


def stored(root, commit):
    """What git stores, by path: mode and content."""
    listed = [line.partition(b"\t") for line in git(root, "ls-tree", "-r", "-z", commit).split(b"\0")[:-1]]
    blobs = [head.split()[2] for head, _, _ in listed]
    output = git(root, "cat-file", "--batch=%(objectsize)", given=b"".join(blob + b"\n" for blob in blobs))
    found = {}
    for head, _, path in listed:
        size, _, output = output.partition(b"\n")
        found[path] = head.split()[0], output[: int(size)]
        output = output[int(size) + 1 :]
    return found


def looked_at(full):
    try:
        status = os.lstat(full)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(status.st_mode):
        return LINK, os.readlink(full)
    if stat.S_ISDIR(status.st_mode):
        return b"directory", b""
    with open(full, "rb") as file:
        return PROGRAM if status.st_mode & stat.S_IXUSR else FILE, file.read()


def everything(root):
    """Every file, link and directory, but for git's and Detent's own."""
    root = os.fsencode(root)
    found = {}
    for directory, below, names in os.walk(root):
        below[:] = set(below) - STANDING
        for name in {*below, *names} - STANDING:
            full = os.path.join(directory, name)
            found[os.path.relpath(full, root)] = looked_at(full)
    return found


def differing(one, other):
    """By path, what stands there in each."""
    return {
        path: (one.get(path), other.get(path)) for path in one.keys() | other.keys() if one.get(path) != other.get(path)
    }


def ignored(root, paths):
    """Those that the rules there are for, whether git has them or not: git may remove them, and Detent never does."""
    asked = b"\0".join([*paths, b"detent.toml"])
    return set(git(root, "check-ignore", "--no-index", "-z", "--stdin", given=asked).split(b"\0")) if paths else set()


def digest_of_git(root):
    digest = hashlib.sha256()
    for directory, below, names in os.walk(os.path.join(root, ".git")):
        below.sort()
        for name in sorted(names):
            full = os.path.join(directory, name)
            with open(full, "rb") as file:
                digest.update(f"{full}\0{os.lstat(full).st_mtime_ns}\0".encode() + file.read())
    return digest.hexdigest()


def file(content=b"", mode=FILE):
    return mode, content


def link(target):
    return LINK, target


def test_odd_names_and_deep_paths_come_back(tmp_path):
    before = {name: file(b"before " + name) for name in ODD_NAMES}
    before |= {b"in " + name[:200] + b"/" + name: file(name) for name in ODD_NAMES}
    before |= {DEEP: file(b"deep"), DEEP + b"-program": file(b"deep", PROGRAM), DEEP + b"-link": link(DEEP)}
    after = {name: file(b"after " + name) for name in ODD_NAMES[::2]}
    after |= {name + b"/" + name: file(b"directory now") for name in ODD_NAMES[1::2]}
    assert len(DEEP) > 1_000

    with original(tmp_path / "original") as both:
        both.take(before)
        both.take(after)
        both.compare(0, 1, 0)


def test_modes_links_and_kinds_come_back(tmp_path):
    before = {
        b"empty": file(),
        b"program": file(b"#!/bin/sh\n", PROGRAM),
        b"becomes-program": file(b"#!/bin/sh\n"),
        b"empty-becomes-program": file(),
        b"link": link(b"empty"),
        b"other-target": link(b"empty"),
        b"dangling": link(b"nowhere/at all"),
        b"to-directory": link(b"directory"),
        b"absolute": link(b"/etc/hostname"),
        b"absolute-dangling": link(b"/nonexistent/\xc3\xa4\xc3\xb6"),
        b"to-itself": link(b"to-itself"),
        b"outside": link(b"../../.."),
        b"file-becomes-link": file(b"the content"),
        b"link-becomes-file": link(b"directory/one"),
        b"link-becomes-directory": link(b"directory/one"),
        b"directory-becomes-link/one": file(b"directory-becomes-link"),
        b"file-becomes-directory": file(b"file"),
        b"directory-becomes-file/one": file(b"one"),
        b"directory-becomes-file/two/three": file(b"three", PROGRAM),
        b"program-becomes-directory": file(b"program", PROGRAM),
        b"directory/one": file(b"one"),
        b"directory/same-as-one": file(b"one"),
        b"moves/from": file(b"x" * 70_000),
        b"large": file(bytes(range(256)) * 5_000),
        b"lines": file(b"windows\r\n\0unix\nmac\rno end"),
    }
    after = {
        b"empty": file(b"no longer"),
        b"program": file(b"#!/bin/sh\n"),
        b"becomes-program": file(b"#!/bin/sh\n", PROGRAM),
        b"empty-becomes-program": file(b"", PROGRAM),
        b"link": link(b"empty"),
        b"other-target": link(b"program"),
        b"dangling": file(b"nowhere/at all"),
        b"to-itself": file(b"to-itself", PROGRAM),
        b"file-becomes-link": link(b"the content"),
        b"link-becomes-file": file(b"directory/one"),
        b"link-becomes-directory/one": file(b"one"),
        b"directory-becomes-link": link(b"directory"),
        b"file-becomes-directory/deep/down": file(b"file"),
        b"directory-becomes-file": file(b"three", PROGRAM),
        b"program-becomes-directory/program": file(b"program", PROGRAM),
        b"directory/one": file(b"another one"),
        b"moved/to": file(b"x" * 70_000),
        b"large": file(bytes(range(256)) * 2_500 + b"!" + bytes(range(256)) * 2_500),
        b"lines": file(b"windows\n\0unix\nmac\nno end"),
    }

    with original(tmp_path / "original") as both:
        both.take(before)
        both.take(after)
        both.take({})
        both.compare(0, 1, 0, 2, 1, 2, 0)


def test_a_link_to_a_directory_and_a_directory_with_the_same_files_are_not_the_same(tmp_path):
    """Nothing is looked at through a link, nor is anything written or removed through one."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").write_bytes(b"one")
    (outside / "two").write_bytes(b"another two")
    real = {b"real/one": file(b"one"), b"real/two": file(b"another two")}

    with original(tmp_path / "original") as both:
        both.take(real | {b"d": link(b"real"), b"e": link(b"../outside")})
        both.take(real | {f"{d}/{n}".encode(): file(n.encode()) for d in "de" for n in ("one", "two")})
        both.take(real)
        both.compare(0, 1, 0, 2, 1, 0)

    assert everything(outside) == {b"one": file(b"one"), b"two": file(b"another two")}


def test_nothing_is_removed_or_replaced_outside_of_the_project(tmp_path):
    """A directory that checkpoints have files in has become a link to one elsewhere, and no checkpoint has the link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").write_bytes(b"not the project's")

    with original(tmp_path / "original") as both:
        both.take({b"a": file(b"1")})
        both.take({b"a": file(b"1"), b"d/one": file(b"1")})
        for target in both.checkpoints:
            lay(os.fsencode(both.root), {b"a": file(b"1"), b"d": link(b"../outside")})
            with suppress(DetentError):
                both.session.checkpoints.rollback(target, remove_unknown=True)

    assert everything(outside) == {b"one": file(b"not the project's")}


def test_files_that_share_an_inode_come_back(tmp_path):
    with original(tmp_path / "original") as both:
        both.take({b"one": file(b"1"), b"d/two": file(b"1")})
        os.unlink(os.path.join(both.root, "d/two"))
        os.link(os.path.join(both.root, "one"), os.path.join(both.root, "d/two"))
        with open(os.path.join(both.root, "one"), "r+b") as shared:
            shared.write(b"changed in both")
        both.take_what_is_there()
        both.compare(0, 1, 0)


def test_empty_directories_stay_as_git_leaves_them(tmp_path):
    with original(tmp_path / "original") as both:
        both.take({b"full/one": file(b"1"), b"around/inner/one": file(b"1")})
        for directory in ("empty", "full/empty", "new/empty/deep", "around/inner/empty"):
            os.makedirs(os.path.join(both.root, directory))
        both.take_what_is_there()
        with open(os.path.join(both.root, "new/empty/file"), "wb"):
            pass
        os.unlink(os.path.join(both.root, "around/inner/one"))
        both.take_what_is_there()

        both.compare(1, 2, 0)


IGNORING = {
    b".gitignore": file(b"*.log\n/build/\n!/keep.log\n\\#odd\nspaced\\ \n**/cache/\n"),
    b"sub/.gitignore": file(b"!important.log\n*.tmp\n/only-here\n"),
    b"sub/inner/.gitignore": file(b"*\n!.gitignore\n!wanted\n"),
}
IGNORED_OR_NOT = [
    b"a.log",
    b"keep.log",
    b"sub/keep.log",
    b"sub/important.log",
    b"sub/a.tmp",
    b"a.tmp",
    b"sub/only-here",
    b"sub/inner/only-here",
    b"sub/inner/wanted",
    b"only-here",
    b"#odd",
    b"spaced ",
    b"build/out",
    b"sub/build/out",
    b"sub/cache/x",
    b"cached",
]


def test_what_gitignore_leaves_out_is_left_where_it_is(tmp_path):
    before = IGNORING | {path: file(b"before " + path) for path in IGNORED_OR_NOT}
    after = IGNORING | {path: file(b"after " + path) for path in IGNORED_OR_NOT[::2]}
    open_again = {path: file(b"third") for path in IGNORED_OR_NOT} | {b".gitignore": file(b"nothing\n")}

    with original(tmp_path / "original") as both:
        both.take(before)
        both.take(after)
        both.take(open_again)
        assert b"a.log" not in stored(both.root, both.commit(0))
        assert b"a.log" in stored(both.root, both.commit(2))
        both.compare(1, 2, 1, 0, 2)


def test_what_is_tracked_is_kept_even_if_it_is_ignored_later(tmp_path):
    """Git goes on with a file that it has; a checkpoint from after the rule does not have it, and leaves it alone."""
    with original(tmp_path / "original") as both:
        both.take({b"settings.local": file(b"mine"), b"code": file(b"1")})
        both.take({b"settings.local": file(b"mine"), b"code": file(b"2"), b".gitignore": file(b"*.local\n")})
        both.compare(0, 1, 0)


def test_thousands_of_files_come_back(tmp_path):
    count = 10_000 if IS_WHOLE else 2_000
    before = {b"%02d/%02d/file %d" % (n % 100, n % 7, n): file(b"content %d\n" % (n % 500)) for n in range(count)}
    after = {path: file(was[1] * 2) if index % 10 == 0 else was for index, (path, was) in enumerate(before.items())}
    for path in list(after)[::21]:
        del after[path]
    after |= {b"new/%d" % n: file(b"new %d" % (n % 50), PROGRAM if n % 2 else FILE) for n in range(500)}

    with original(tmp_path / "original") as both:
        both.take(before)
        both.take(after)
        both.compare(0)


def test_git_is_never_touched(tmp_path):
    """Not by a checkpoint, a comparison, a rollback or its undoing, nor is what was staged."""
    with original(tmp_path / "original") as both:
        both.take({b"a": file(b"1"), b"b": file(b"1")})
        both.take({b"a": file(b"2"), b"c/d": file(b"2")})
        git(both.root, "rm", "-q", "--cached", "a")
        git(both.root, "update-index", "--refresh", "-q")
        before, first = digest_of_git(both.root), both.checkpoints[0]

        both.session.checkpoints.take("once more")
        assert both.session.checkpoints.compare(first).diff
        assert both.session.checkpoints.compare(first, both.checkpoints[1]).text_diff("a")
        assert both.session.checkpoints.plan_rollback(first, remove_unknown=True).steps
        both.session.checkpoints.rollback(first, remove_unknown=True)
        rolled_back = everything(both.root)
        both.session.checkpoints.undo()

        assert rolled_back == {b"a": file(b"1"), b"b": file(b"1")}
        assert everything(both.root) == {b"a": file(b"2"), b"c": (b"directory", b""), b"c/d": file(b"2")}
        assert digest_of_git(both.root) == before


# Any trees

CONTENTS = st.sampled_from([b"", b"one", b"two\n", b"\0\xff", b"x" * 5_000, b"y" + b"x" * 5_000, b"#!/bin/sh\n"])
TARGETS = st.sampled_from([b"a", b"nowhere", b"..", b"/etc", b"a/b", b"\xff", b"with blank"])
FILES = st.one_of(st.tuples(st.sampled_from([FILE, PROGRAM]), CONTENTS), st.tuples(st.just(LINK), TARGETS))
NAMES = st.sampled_from([b"a", b"b", b"new\nline", b"-", b"back\\slash", "ä".encode(), *ODD_NAMES[-3:]])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
#: Where ignore rules hold, files never turn into directories: git removes what is ignored then, and Detent refuses.
RULED = st.sampled_from(
    [b"sub/" + path for path in (b"a.log", b"a.tmp", b"important.log", b"inner/x", b"inner/wanted")]
)


@st.composite
def trees(draw):
    chosen = draw(st.dictionaries(PATHS, FILES, max_size=8))
    tree = {path: what for path, what in chosen.items() if not any(path.startswith(one + b"/") for one in chosen)}
    return tree | draw(st.dictionaries(RULED, st.tuples(st.just(FILE), CONTENTS), max_size=3)) | IGNORING


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(laid=st.lists(trees(), min_size=2, max_size=4), data=st.data())
def test_any_trees_come_back(laid, data):
    order = data.draw(st.lists(st.integers(0, len(laid) - 1), min_size=1, max_size=4))
    with tempfile.TemporaryDirectory() as directory, original(os.path.join(directory, "original")) as both:
        for tree in laid:
            both.take(tree)
        both.compare(*order)
