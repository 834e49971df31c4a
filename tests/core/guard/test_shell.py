import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detent.core.guard.path_pattern import may_meet, shown
from detent.core.guard.shell import walk as shell
from detent.core.guard.shell.fuel import MAX_FUEL, Fuel
from detent.core.guard.shell.walk import MAX_LENGTH, Reading
from tests.support.guarding import denial, guarded, guarded_hits

SRC = Path(shell.__file__).parents[4]

fragments = st.sampled_from([
    *"abc ;&|()<>{}[]$`\"'\\#~*?!=+-/.,:%^@\n\t0", "$(", "$((", "))", "${", "<<", "<<-", "EOF", "\nEOF\n", ">>",
    ">&", "&>",
    "<(", "&&", "||", ";;", " if ", " then ", " fi ", " for ", " in ", " do ", " done ", " case ", " esac ",
    " while ",
    " function ", "[[ ", " ]]", "((", "{ ", " }", "cd ", "rm ", "-rf ", ".workflow", "/journal.jsonl", "eval ",
    "bash -c ",
    "find . ", "-exec ", "xargs ", "git ", "clean -fdx ", "tar ", "python -c ", "open(", "'w')", "sed -i ", "tee ",
    "A=", "$A",
    "{a,b}", "{1..9}", "f() ", "set -- ", "$@", "read x ", "printf %s ", "\ue000", "\ue003", "\ue005",
])  # fmt: skip


def paths(command, cwd="/p", home=""):
    return [path for path, _, _ in Reading(command, cwd, home).targets]


def may_match(pattern, path):
    return may_meet(pattern, shown(path), Fuel())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo a > x", [("/p/x", "redirect", False)]),
        ("echo a > x 2> y", [("/p/x", "redirect", False), ("/p/y", "redirect", False)]),
        ("echo a >&2 2>&1 2>/dev/null 3>&- >/dev/stderr", []),
        ("cat < x <<< y", []),
        ("a <> x", [("/p/x", "redirect", False)]),
        ("tee -a x y", [("/p/x", "tee", False), ("/p/y", "tee", False)]),
        ("sed -n s/a/b/ x", []),
        ("sed -i s/a/b/ x", [("/p/s/a/b", "sed", False), ("/p/x", "sed", False)]),
        ("cat x; jq . x; git log -- x; grep a x; ls x", []),
        ("jq -i . x", [("/p", "jq", False), ("/p/x", "jq", False)]),
        ("mv a b", [("/p/a", "mv", True), ("/p/b", "mv", False), ("/p/b/a", "mv", True)]),
        ("cp a b/", [("/p/b", "cp", False), ("/p/b/a", "cp", False)]),
        ("cp -t d a b", [("/p/d", "cp", False), ("/p/d/a", "cp", False), ("/p/d/b", "cp", False)]),
        ("cp -r . /tmp/x", [("/tmp/x", "cp", False)]),
        ("tar cf /tmp/y . a", [("/p/cf", "tar", False), ("/tmp/y", "tar", False)]),
        ("rm -f a", [("/p/a", "rm", False)]),
        ("rm -r a", [("/p/a", "rm", True)]),
        ("chmod -R 644 a", [("/p/644", "chmod", True), ("/p/a", "chmod", True)]),
        ("dd if=a of=b", [("/p/of=b", "dd", False), ("/p/b", "dd", False)]),
        ("git -C d rm x", [("/p/d/x", "git rm", False)]),
        ("git reset --hard", [("/p", "git reset of the tree", True)]),
        ("git reset x; git stash list; git clean -n; git restore --staged a; git checkout -b a", []),
        ("git stash -u; git clean -fd", []),
        ("git checkout . ; git restore .", [("/p", "git checkout", False), ("/p", "git restore", False)]),
        ("git checkout -f main", [("/p/main", "git checkout", True), ("/p", "git checkout of the tree", True)]),
        ("git clean -fdx d", [("/p/d", "git clean", True)]),
        ("git clean -fdx -e .workflow", []),
        ("git diff --output=a", [("/p/a", "git diff", False)]),
        ("curl -O http://h/a?b", [("/p/http:/h/a?b", "curl", False), ("/p/a", "curl", False)]),
        ("find d -name a -delete", [("/p/d/a", "find", True), ("/p/d/**/a", "find", True)]),
        ("find d -exec touch {} \\;", [("/p/d", "touch", False), ("/p/d/**", "touch", False)]),
        ("find d -exec cat {} +; find d", []),
        ("detent finish > log", [("/p/log", "redirect", False)]),
        ("tool a --out=b", [("/p/a", "tool", False), ("/p/b", "tool", False)]),
        ("tool *", []),
        ("unshare -r rm -r a", [("/p/rm", "unshare", False), ("/p/a", "unshare", False), ("/p/a", "rm", True)]),
    ],
)  # fmt: skip
def test_the_paths_that_a_command_may_write(command, expected):
    assert Reading(command, "/p").targets == expected


@pytest.mark.parametrize(
    ("command", "code", "texts"),
    [
        ("python3 -c 'x = 1'", ["-c\nx = 1"], []),
        ("python3 - <<A\nx\nA", ["-\nx"], []),
        ("echo x | perl", ["x"], []),
        ("awk '{print > f}' a", ["{print > f}"], []),
        ("python3 tool.py a", [], ["tool.py\na"]),
        ("docker run a b", [], ["run a b"]),
        ("patch -p1 <<A\nx\nA", [], ["-p1 x"]),
        ("bash run.sh a", [], ["run.sh a"]),
        ("cat <<A\nx\nA", [], []),
        ("rm a; git commit -m 'a b'; python3 -m detent status", [], []),
    ],
)
def test_text_that_is_not_followed(command, code, texts):
    reading = Reading(command, "/p")

    assert (reading.code, reading.texts) == (code, texts)


@pytest.mark.parametrize("command", ["bash", "sh -i", "cd x && zsh -l", "python3", "python -i", "node", "env A=1 bash"])
def test_a_shell_that_would_wait_for_commands_is_denied(command):
    assert "would wait for commands" in (denial(command, "/r", "/r") or "")


@pytest.mark.parametrize(
    "command",
    ["bash --version", "python3 -V", "node -v", "echo ls | bash", "bash < x", "python3 x.py", "bash -c ls",
     "which bash", "apt-get install bash", "python3 <<A\n1\nA", "bash x.sh"],
)  # fmt: skip
def test_a_shell_with_something_to_do_is_not(command):
    assert denial(command, "/r", "/r") is None


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd d && > x", ["/p/d/x"]),
        ("(cd d); > x", ["/p/x"]),
        ("(cd d; > y); > x", ["/p/d/y", "/p/x"]),
        ("{ cd d; }; > x", ["/p/d/x"]),
        ("cd d | cat; > x", ["/p/x"]),
        ("cd d & > x", ["/p/x"]),
        ("cd d || exit; > x", ["/p/d/x"]),
        ("cd a || cd b; > x", ["/p/a/x", "/p/b/x"]),
        ("if t; then cd a; fi; > x", ["/p/x", "/p/a/x"]),
        ("pushd a; > x; popd; > y", ["/p/a/x", "/p/y"]),
        ("cd a; cd -; > x", ["/p/x"]),
        ("cd; > x", ["/h/x"]),
        ("cd /; > x", ["/x"]),
        ("cd ../../..; > x", ["/x"]),
        ("cd $X; > x", ["**/x"]),
        ("cd a/$X/..; > x", ["/p/a/**/x"]),
        ("bash -c 'cd d; > x'; > y", ["/p/d/x", "/p/y"]),
        ("eval cd d; > x", ["/p/d/x"]),
        ("f() { cd d; }; f; > x", ["/p/d/x"]),
        ("for d in a b; do cd $d; > x; cd ..; done", ["/p/a/x", "/p/b/x"]),
        ("env -C d touch x", ["/p/d/x"]),
    ],
)  # fmt: skip
def test_directories_are_followed_as_far_as_their_scope(command, expected):
    assert paths(command, home="/h") == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a'b'\"c\"\\d", ["/p/abcd"]),
        ("$'a\\x62\\143\\n'", ["/p/abc\n"]),
        ("~/a", ["/h/a"]),
        ("'~/a'", ["/p/~/a"]),
        ("$HOME/a", ["/h/a"]),
        ("$PWD/a", ["/p/a"]),
        ("${PWD}/a", ["/p/a"]),
        ("$X/a", ["**/a"]),
        ("a/$X.b", ["/p/a/**.b"]),
        ("a/${X}b", ["/p/a/**b"]),
        ("a.$$", ["/p/a.*"]),
        ("a$((1+2))", ["/p/a*"]),
        ("$(echo a b)", ["/p/a", "/p/b"]),
        ("\"$(echo a b)\"", ["/p/a b"]),
        ("`echo a`", ["/p/a"]),
        ("$(pwd)/a", ["/p/a"]),
        ("$(cd d && pwd)/a", ["/p/d/a"]),
        ("$(dirname /a/b)/c", ["**/c"]),
        ("$(mktemp)", ["/tmp/.fresh"]),
        ("{a,b}.c", ["/p/a.c", "/p/b.c"]),
        ("{a,b{c,d}}", ["/p/a", "/p/bc", "/p/bd"]),
        ("'{a,b}'", ["/p/{a,b}"]),
        ("{a}", ["/p/{a}"]),
        ("{1..3}", ["/p/1", "/p/2", "/p/3"]),
        ("a*[0-9]?", ["/p/a*[0-9]?"]),
        ("'a*[0-9]?'", ["/p/a[*][[]0-9][?]"]),
        ("${X:-a}", ["/p/a"]),
        ("${X:-$(echo a)}", ["/p/a"]),
        ("a\\\nb", ["/p/ab"]),
        ("a#b", ["/p/a#b"]),
        ("a\\*", ["/p/a[*]"]),
        ("x/../a//./b", ["/p/a/b"]),
    ],
)  # fmt: skip
def test_words_stand_for_what_the_shell_makes_of_them(word, expected):
    assert paths(f"touch {word}", home="/h") == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("F=a; rm $F", ["/p/a"]),
        ("F=a; F=b; rm $F", ["/p/b"]),
        ("F=a; F+=b; rm $F", ["/p/ab"]),
        ("F='a b'; rm $F", ["/p/a", "/p/b"]),
        ("F='a b'; rm \"$F\"", ["/p/a b"]),
        ("F=a*; rm $F", ["/p/a*"]),
        ("F=a*; rm \"$F\"", ["/p/a[*]"]),
        ("export F=a; rm $F", ["/p/a"]),
        ("F=(a b); rm \"${F[@]}\"", ["/p/a", "/p/b"]),
        ("F=a true; rm $F", ["**"]),
        ("F=a bash -c 'rm $F'", ["/p/a"]),
        ("(F=a); rm $F", ["**"]),
        ("if t; then F=a; else F=b; fi; rm $F", ["/p/a", "/p/b"]),
        ("F=a; t && F=b; rm $F", ["/p/b"]),
        ("F=a; t || F=b; rm $F", ["/p/a", "/p/b"]),
        ("F=a.b; rm ${F%.*} ${F/a/b} ${F^^}", ["/p/a.b"]),
        ("F=a; G=F; rm ${!G}", ["/p/a"]),
        ("unset F; rm $F", ["**"]),
        ("set -- a b; rm $2", ["/p/b"]),
        ("f() { rm \"$2\"; }; f a b", ["**", "/p/b"]),
        ("read F <<< a; rm $F", ["/p/a"]),
        ("echo a | xargs rm", ["/p/a"]),
        ("echo a | xargs -I% rm d/%", ["/p/d/a"]),
        ("echo a | xargs -I % rm d/%", ["/p/d/a"]),
        ("printf %s a b | while read F; do rm $F; done", ["/p/%s", "/p/a", "/p/b"]),
        ("echo a | cat | sort | xargs rm", ["/p/a"]),
        ("cat a | xargs rm", ["**"]),
        ("cat <<A | sh\nrm a\nA", ["/p/a"]),
        ("sh <(echo rm a)", ["/p/a"]),
    ],
)  # fmt: skip
def test_values_are_followed_where_the_command_gives_them(command, expected):
    assert paths(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("if a; then > x; elif b; then > y; else > z; fi > w", ["/p/w", "/p/x", "/p/y", "/p/z"]),
        ("while a > x; do > y; done", ["/p/x", "/p/y"]),
        ("until a; do > y; done &", ["/p/y"]),
        ("case a in b|c) > x;; (d) > y;& *) > z; esac", ["/p/x", "/p/y", "/p/z"]),
        ("for ((i=0;i<3;i++)); do > x$i; done", ["/p/x**"]),
        ("function f { > x; }", ["/p/x"]),
        ("f () ( > x )", ["/p/x"]),
        ("! time -p { > x; }", ["/p/x"]),
        ("[[ a > b && c < d ]] || > x", ["/p/x"]),
        ("((a > b)); > x", ["/p/x"]),
        ("a |& tee x", ["/p/x"]),
        ("a <<A; > y\n> x\nA\n> z", ["/p/y", "/p/z"]),
        ("cat <<A <<'B'\n$(> x)\nA\n$(> y)\nB\n> z", ["/p/x", "/p/z"]),
        ("echo \"$(cat <<'A'\n) ' \" > x\nA\n)\" > y", ["/p/y"]),
        ("echo $(case a in b) > x;; esac)", ["/p/x"]),
        ("a=$(echo '(' ; > x); > y", ["/p/x", "/p/y"]),
        ("echo a # > x\n> y", ["/p/y"]),
        ("echo 'a\n> x'", []),
        ("echo 'unterminated > x", []),
        ("> x)", ["/p/x"]),
        ("fi; done; > x", ["/p/x"]),
    ],
)  # fmt: skip
def test_compound_commands_and_documents_are_read_as_a_shell_does(command, expected):
    assert paths(command) == expected


@pytest.mark.parametrize(
    "text", [".workflow/x", "'.workflow'", "a/.workflow", "detent.toml", "x = `.claude/settings.json`", ".WORKFLOW"]
)
def test_code_that_names_a_guarded_file_is_denied(text):
    assert "cannot be followed" in (denial(f"python3 - <<'EOF'\nopen({text})\nEOF\n", "/r", "/r") or "")


@pytest.mark.parametrize(
    "text", [".workflows", "x.workflow", ".workflow-old", "workflow", "my-detent.toml.bak", "build/x"]
)
def test_code_that_names_a_neighbour_is_not(text):
    assert denial(f"python3 - <<'EOF'\nopen({text})\nEOF\n", "/r", "/r") is None


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/bc", False),
        ("/a/*", "/a/b", True),
        ("/a/*", "/a/b/c", False),
        ("/a/*", "/a/.b", False),
        ("/a/.*", "/a/.b", True),
        ("/a/x*", "/a/x.b", True),
        ("/a/?", "/a/b", True),
        ("/a/?", "/a/.", False),
        ("/a/?b", "/a//b", False),
        ("/a/[bc]", "/a/c", True),
        ("/a/[!bc]", "/a/c", True),
        ("/a/[a-c]x", "/a/bx", True),
        ("/a/[*]", "/a/*", True),
        ("/a/[*]", "/a/b", False),
        ("/a/[", "/a/[", True),
        ("/a/**", "/a/.b/c", True),
        ("**", "/a/.b", True),
        ("**/b", "/a/b", True),
        ("**/b", "/a/cb", False),
        ("**b", "/a/cb", True),
        ("/a/**/c", "/a/b/b/c", True),
    ],
)  # fmt: skip
def test_a_pattern_matches_as_the_shell_does(pattern, path, expected):
    assert may_match(pattern, path) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/a/*.json", "/a/x*", True),
        ("/a/*.json", "/a/*.md", False),
        ("/a/*/c", "/a/b/*", True),
        ("/a/*", "/a/.b*", False),
        ("**/c", "/a/*/c", True),
        ("/*/b", "/a/?", True),
    ],
)
def test_two_patterns_meet_if_a_path_can_be_both(one, other, expected):
    assert may_meet(one, other, Fuel()) is may_meet(other, one, Fuel()) is expected


names = st.text(alphabet="ab.*?[]", min_size=1, max_size=6)


@given(st.lists(names, min_size=1, max_size=3))
def test_a_quoted_name_stands_for_itself_only(segments):
    path = "/p/" + "/".join(segments)
    if "/./" in path + "/" or "/../" in path + "/":
        return

    (shown,) = paths(f"touch '{path}'")

    assert may_match(shown, path)
    assert not may_match(shown, path + "x")
    assert not may_match(shown, "/p/c")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".workflow/WFS-a/journal.jsonl", "journal"),
        (".workflow/WFS-a/snapshot.json", "journal"),
        (".workflow/.documents.json", "journal"),
        (".workflow/history.jsonl", "journal"),
        (".workflow/.lock", "journal"),
        (".workflow/.active-WFS-a", "journal"),
        (".workflow/checkpoints/run-1/state.json", "journal"),
        (".workflow/projects/api/WFS-a/journal.jsonl", "journal"),
        (".workflow/anything", "journal"),
        (".workflow", "journal"),
        (".workflow/state.json", "document"),
        (".workflow/projects/api/state.json", "document"),
        (".workflow/WFS-a/workflow-session.json", "document"),
        (".workflow/WFS-a/.task/IMPL-1.2.json", "document"),
        (".workflow/WFS-a/.task/other.json", "journal"),
        (".claude/state/workflow.json", "document"),
        ("detent.toml", "config"),
        (".claude/settings.json", "config"),
        (".claude/settings.local.json", "config"),
        (".codex/hooks.json", "config"),
        (".codex/config.toml", "config"),
        (".gemini/settings.json", "config"),
        (".claude/agents/a.md", None),
        (".workflow/WFS-a/.summaries/a.md", None),
        (".workflow/WFS-a/.chat/a", None),
        (".workflow/WFS-a/.brainstorming/b/c", None),
        (".workflow/WFS-a/.process/c.json", None),
        (".workflow/WFS-a/IMPL_PLAN.md", None),
        (".workflow/WFS-a/TODO_LIST.md", None),
        ("src/.workflow/state.json", "journal"),
        (".workflow/WFS-a/.process/runner.json", "journal"),
        (".workflow/WFS-a/.process/run.jsonl", "journal"),
        (".workflow/WFS-a/.process/check-tests.json", "journal"),
        (".workflow/WFS-a/.process/leases/IMPL-1", "journal"),
        (".workflow/WFS-a/.process/flow/IMPL-1.json", "journal"),
        (".workflow/WFS-a/.process/bin/detent", "journal"),
        (".workflow/WFS-a/.process/turns/1/result", None),
        (".workflow/WFS-a/.process", None),
        ("state.json", None),
        ("../other/detent.toml", None),
    ],
)  # fmt: skip
def test_what_a_path_is_to_the_project(path, kind):
    assert guarded(f"/r/{path}", "/r") == guarded(f"/r/x/../{path}", "/r/") == kind
    assert [hit[2] for hit in guarded_hits([(f"/r/{path}", "redirect", False)], "/r")] == (
        [kind] if kind and ".." not in path else []
    )


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (("/r", "rm", True), "journal"),
        (("/r", "cp", False), None),
        (("/", "rm", True), "journal"),
        (("/r/.claude", "rm", True), "config"),
        (("/r/.claude", "rm", False), None),
        (("/r/.claude/state", "mv", True), "document"),
        (("/r/.workflow/*", "rm", False), "journal"),
        (("/r/*", "rm", False), "config"),
        (("/r/*.md", "rm", False), None),
        (("/r/src/**", "rm", False), None),
        (("/r/**", "rm", False), "journal"),
        (("**", "rm", True), None),
        (("**/state.json", "redirect", False), None),
        (("**/WFS-a/journal.jsonl", "redirect", False), "journal"),
        (("**/.workflow/state.json", "redirect", False), "document"),
        (("**/x/.workflow", "rm", True), None),
        (("/*/.workflow/history.jsonl", "rm", False), "journal"),
        (("/r/.workflow/*/.summaries/*", "rm", False), None),
        (("/r/.workflow/WFS-a/.process", "rm", True), "journal"),
        (("/r/.workflow/WFS-a/.process/*", "rm", False), "journal"),
        (("/r/.workflow/WFS-a/.process/run*", "redirect", False), "journal"),
        (("/r/.workflow/*/.process/runner.json", "cp", False), "journal"),
        (("/r/.workflow/projects/api/WFS-a/.process/r*", "rm", False), "journal"),
        (("/r/.workflow/WFS-a/.process/notes-*.json", "rm", False), None),
        (("/r/.workflow/WFS-a/.process/notes", "rm", True), None),
        (("/r", "git reset of the tree", True), "config"),
        (("/r/src", "git reset of the tree", True), "config"),
        (("/", "git reset of the tree", True), "config"),
        (("/other", "git reset of the tree", True), None),
    ],
)
def test_patterns_and_directories_hit_what_they_can_reach(target, kind):
    assert [hit[2] for hit in guarded_hits([target], "/r")] == ([kind] if kind else [])


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .workflow # " + "x" * MAX_LENGTH,
        "$(" * 200 + "rm .workflow",
        "for i in {1..30}; do " * 12 + "rm .workflow",
    ],
    ids=["too long", "too deep", "too much"],
)
def test_a_command_that_cannot_be_followed_is_opaque_and_denied_if_it_names_us(command):
    assert Reading(command, "/r").is_opaque
    assert denial(command, "/r", "/r") is not None
    assert "names detent" in (denial(command.replace(".workflow", "detent"), "/r", "/r") or "")
    assert denial(command.replace(".workflow", "build"), "/r", "/r") is None


def test_a_long_text_that_names_nothing_of_ours_is_no_hit():
    prose = "cat > notes.md <<'EOF'\n" + "It ends . Or .. so / e.g. in src/state.json and ./x.\n" * 2000 + "EOF\n"

    assert Reading(prose, "/r").is_opaque
    assert denial(prose, "/r", "/r") is None


def test_the_simple_commands_are_the_words_that_run():
    command = "cd src && FOO=1 timeout 5 pytest -q 'a b' | tee log; bash -c 'detent approve x'; echo detent approve"

    found = shell.simple_commands(command)

    assert ["pytest", "-q", "a b"] in found
    assert ["detent", "approve", "x"] in found
    assert ["detent", "approve"] not in found


@given(st.lists(fragments | st.text(max_size=3), max_size=40).map("".join) | st.text(max_size=300))
@settings(deadline=None)
@example("`" * 99)
@example("(" * 300)
@example("f(){ f|f& };f")
@example("A=$A$A;" * 60)
@example("find . -exec " * 30)
@example("cat <<A <<B\n" * 20)
@example("/ if ")
@example("'' if")
def test_no_text_makes_it_fail(text):
    targets = Reading(text, "/r", "/h").targets

    assert all(path and how for path, how, _ in targets)
    assert all(path.startswith(("/", "**", "~")) for path, _, _ in targets)
    denial(text, "/r", "/r")


@settings(deadline=None)
@given(st.lists(fragments | st.text(max_size=5), max_size=40).map("".join))
def test_no_program_text_makes_it_fail(text):
    for program in ("python3 -", "node", "perl", "ruby"):
        Reading(f"{program} <<'-END-'\n{text}\n-END-\n", "/r")


UNITS = [
    "echo a > b; ", "$(echo ", "$(a) ", "(", "$((", "{a,b}", "{", "`a` ", "cat <<A\nx\nA\n", "cat <<A\n", '"', "${a:-",
    "if true; then ", "\\", "for i in 1 2 3; do ", "find . -exec ", "eval ", "A=$A$A; ", 'set -- "$@" "$@"; ',
    "f(){ f; f; }; f; ", "cd {a,b} && ", "cd a || ", "sudo ", "echo a | xargs ", "rm *a*a*a*a*b ", "rm [", "cd a;",
    "A=aaaa; B=${A%%*a*a*a}; ", "python -c 'open(\"a\",\"w\")'; ", "python3 - <<A\n)))).unlink()\nA\n", "sed 'w w w'; ",
    "w ", "<(a) ", "pushd a; ", "f(){ :; }; ", "git -C a ", "docker run rm ",
]  # fmt: skip


def burnt(command):
    """The fuel that reading and judging a command takes; more than all of it means that it is opaque."""
    reading = Reading(command, "/r", "/h")
    if reading.is_opaque:
        return MAX_FUEL
    guarded_hits(reading.targets, "/r", reading.fuel)
    return MAX_FUEL - reading.fuel.left


@pytest.mark.parametrize("unit", UNITS)
def test_the_work_for_a_command_grows_with_its_length_or_ends_with_the_fuel(unit):
    """No unit, repeated to the greatest length, takes work that is out of proportion to its length."""
    short, long = ((unit * (size // len(unit) + 1))[:size] for size in (MAX_LENGTH // 4, MAX_LENGTH // 2))

    before, after = burnt(short), burnt(long)

    assert after == MAX_FUEL or after <= 2.5 * before


@pytest.mark.parametrize(
    "command",
    [
        "A=" + "a" * 500 + ";for i in {1..32};do rm ${A##*a*a*b*};done",
        "A=" + "a" * 500 + ";rm" + " ${A##*b*}" * 9,
        "for i in {1..32}; do " * 8,
        "A=x;" + "A=$A$A$A$A;" * 30 + "rm " + "[$A" * 40,
        "rm " + "{a,b}" * 30 + "*a" * 100,
    ],
    ids=["pattern in a loop", "patterns", "loops", "doubling", "braces"],
)
def test_a_short_command_takes_no_more_than_all_fuel(command):
    assert len(command) < 700
    assert burnt(command) <= MAX_FUEL


def test_the_fuel_of_a_command_is_the_same_each_time():
    command = "for f in a b; do sed -i s/a/b/ $f; done; " * 20

    assert burnt(command) == burnt(command) < MAX_FUEL // 10


def test_the_modules_import_nothing():
    """One process is started for each tool call: not even `typing` or `re` is loaded for it, whatever the command."""
    code = f"""
import sys
sys.dont_write_bytecode = True
detent = type(sys)("detent")
detent.__path__ = [{str(SRC / "detent")!r}]
sys.modules["detent"] = detent
before = set(sys.modules)
from detent.core.guard.rules import GuardInput, guard
for command in ("git clean -fdx", "cp a b", "python3 -c 'open(1)'", "echo $(ls) | xargs rm"):
    call = {{"kind": "shell", "tool": "Bash", "command": command, "cwd": "/r", "home": "", "text": ""}}
    guard(GuardInput(None, call, "/r", bool, {{"config": (), "document": ()}}))
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("detent.core")))
"""

    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
