import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detent.core.guard.path_pattern import hits, may_match, may_meet
from detent.core.guard.shell import walk as shell
from detent.core.guard.shell.walk import MAX_LENGTH, write_targets
from tests.support.guarding import command_hits, guarded, guarded_hits

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


def paths(command, cwd="/p", **more):
    return [path for path, _ in write_targets(command, cwd, **more)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo a > x", [("/p/x", "redirect")]),
        ("echo a > x 2> y", [("/p/x", "redirect"), ("/p/y", "redirect")]),
        ("echo a >&2 2>&1 2>/dev/null 3>&- >/dev/stderr", []),
        ("cat < x <<< y", []),
        ("a <> x", [("/p/x", "redirect")]),
        ("tee -a x y", [("/p/x", "tee"), ("/p/y", "tee")]),
        ("sed -i.bak -e s/a/b/ x y", [("/p/x", "sed -i"), ("/p/y", "sed -i")]),
        ("sed -n s/a/b/ x", []),
        ("mv a b", [("/p/b", "mv to"), ("/p/b/a", "mv"), ("/p/a", "mv")]),
        ("mv -T a b", [("/p/b", "mv"), ("/p/a", "mv")]),
        ("cp a b/", [("/p/b", "cp"), ("/p/b/a", "cp")]),
        ("cp -t d a b", [("/p/d", "cp"), ("/p/d/a", "cp"), ("/p/d/b", "cp")]),
        ("cp -r a b", [("/p/b", "cp"), ("/p/b/a", "cp -r")]),
        ("ln -s ../a d/l", [("/p/d/l", "ln"), ("/p/d/l/a", "ln"), ("/p/a", "ln to")]),
        ("rm -f a", [("/p/a", "rm")]),
        ("rm -fr a", [("/p/a", "rm -r")]),
        ("rm -- -r", [("/p/-r", "rm")]),
        ("chmod -w a", [("/p/a", "chmod")]),
        ("chmod -R 644 a", [("/p/a", "chmod -R")]),
        ("dd if=a of=b", [("/p/b", "dd")]),
        ("truncate -s 0 a", [("/p/a", "truncate")]),
        ("touch -d yesterday a", [("/p/a", "touch")]),
        ("git -C d rm x", [("/p/d/x", "git rm")]),
        ("git reset --hard", [("/p", "git reset --hard")]),
        ("git reset x", []),
        ("git stash push -- a", [("/p/a", "git stash")]),
        ("git clean -fd", [("/p", "git clean")]),
        ("git restore --staged a", []),
        ("git diff --output=a", [("/p/a", "git --output")]),
        ("tar xf a.tar", [("/p", "tar -x")]),
        ("tar -C d -xf a.tar m", [("/p/d/m", "tar member")]),
        ("tar -cf a.tar m", [("/p/a.tar", "tar -c")]),
        ("curl -o a u", [("/p/a", "curl -o")]),
        ("scp a host:b", []),
        ("curl -O http://h/a?b", [("/p/a", "curl -o")]),
        ("wget -qO- u", []),
        ("sqlite3 a 'select 1'", []),
        ("sqlite3 a 'drop table t'", [("/p/a", "sqlite3")]),
        ("yq -i .a x", [("/p/.a", "yq -i"), ("/p/x", "yq -i")]),
        ("gcc -o a b.c", [("/p/a", "-o")]),
        ("find d -name a -delete", [("/p/d/a", "find -delete"), ("/p/d/**/a", "find -delete")]),
        ("find d -exec touch {} \\;", [("/p/d", "touch"), ("/p/d/**", "touch")]),
        ("python3 -c 'open(\"a.b\", \"w\")'", [("/p/a.b", "python -c")]),
        ("node -e 'rm_f(\"a.b\")'", [("/p/a.b", "node -e")]),
        ("perl -i -pe s/a/b/ x", [("/p/x", "perl -i")]),
        ("detent finish > log", [("/p/log", "redirect")]),
    ],
)  # fmt: skip
def test_what_a_command_writes_and_how(command, expected):
    assert write_targets(command, "/p") == expected


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
        ("F=a.b.c; rm ${F%.*} ${F%%.*} ${F#*.} ${F##*.}", ["/p/a.b", "/p/a", "/p/b.c", "/p/c"]),
        ("F=d/a; rm ${F##*/} ${F%/*}", ["/p/a", "/p/d"]),
        ("F=a; rm ${F/a/b} ${F^^}", ["/p/b", "/p/A"]),
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
    ("code", "denied"),
    [
        ("open('OURS').read()", False),
        ("print(json.load(open('OURS'))['phase'])", False),
        ("sys.stdout.write(open('OURS').read())", False),
        ("d = json.load(open('OURS'))\nd['a'] = 1\nopen('/tmp/x', 'w').write(str(d))", False),
        ("Path('OURS').read_text().replace('a', 'b')", False),
        ("shutil.copy('OURS', '/tmp/x')", False),
        ("open('OURS', mode='w')", True),
        ("open('OURS', 'r+')", True),
        ("Path('OURS').open('w')", True),
        ("Path('OURS').write_text(Path('b').read_text())", True),
        ("p = 'OURS'\nwith open(p, 'w') as f:\n    f.write('x')", True),
        ("p = Path('.workflow') / 'state.json'; p.unlink()", True),
        ("os.remove(f'{root}/OURS')", True),
        ("os.replace('/tmp/x', 'OURS')", True),
        ("os.open('OURS', os.O_WRONLY | os.O_CREAT)", True),
        ("subprocess.run('rm OURS', shell=True)", True),
        ("subprocess.run(['rm', 'OURS'])", True),
    ],
)  # fmt: skip
def test_code_that_names_a_guarded_file_is_denied_unless_it_only_reads(code, denied):
    code = code.replace("OURS", ".workflow/state.json")

    assert bool(command_hits(f"python3 - <<'EOF'\n{code}\nEOF\n", "/r", "/r")) is denied
    assert command_hits(f"python3 - <<'EOF'\n{code.replace('.workflow', 'build')}\nEOF\n", "/r", "/r") == []


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
        ("/a/[!bc]", "/a/c", False),
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
    assert may_meet(one, other) is may_meet(other, one) is expected


def test_a_recursive_target_hits_what_is_below_it():
    assert hits("/a", "/a/b/c", recursive=True)
    assert hits("/", "/a", recursive=True)
    assert not hits("/a", "/a/b", recursive=False)
    assert not hits("/a", "/ab", recursive=True)


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
        ("src/.workflow/state.json", None),
        ("state.json", None),
        ("../other/detent.toml", None),
    ],
)  # fmt: skip
def test_what_a_path_is_to_the_project(path, kind):
    assert guarded(f"/r/{path}", "/r") == guarded(f"/r/x/../{path}", "/r/") == kind
    assert [hit[2] for hit in guarded_hits([(f"/r/{path}", "redirect")], "/r")] == (
        [kind] if kind and ".." not in path else []
    )


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (("/r", "rm -r"), "journal"),
        (("/r", "cp"), None),
        (("/", "rm -r"), "journal"),
        (("/r/.claude", "rm -r"), "config"),
        (("/r/.claude", "rm"), None),
        (("/r/.claude/state", "mv"), "document"),
        (("/r/.workflow/*", "rm"), "journal"),
        (("/r/*", "rm"), "config"),
        (("/r/*.md", "rm"), None),
        (("/r/src/**", "rm"), None),
        (("/r/**", "rm"), "journal"),
        (("**", "rm -r"), None),
        (("**/state.json", "redirect"), None),
        (("**/WFS-a/journal.jsonl", "redirect"), "journal"),
        (("**/.workflow/state.json", "redirect"), "document"),
        (("**/x/.workflow", "rm -r"), None),
        (("/*/.workflow/history.jsonl", "rm"), "journal"),
        (("/r/.workflow/*/.summaries/*", "rm"), None),
        (("**", "opaque"), None),
        (("/r/.claude", "opaque"), "config"),
    ],
)  # fmt: skip
def test_patterns_and_directories_hit_what_they_can_reach(target, kind):
    assert [hit[2] for hit in guarded_hits([target], "/r")] == ([kind] if kind else [])


def test_what_a_command_leaves_alone_is_no_hit():
    left = [("/r/.workflow", "except"), ("/r/.workflow/**", "except")]

    assert guarded_hits([("/r/**.jsonl", "rm"), *left], "/r") == []
    assert guarded_hits([("/r/**.jsonl", "rm"), *left, ("/r/.workflow/history.jsonl", "rm")], "/r") == [
        ("/r/.workflow/history.jsonl", "rm", "journal")
    ]


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .workflow # " + "x" * MAX_LENGTH,
        "$(" * 200 + "rm .workflow",
        "for i in {1..30}; do " * 12 + "rm .workflow",
    ],
    ids=["too long", "too deep", "too much"],
)
def test_a_command_that_cannot_be_followed_is_opaque_and_counts_if_it_names_us(command):
    assert ("**", "opaque") in write_targets(command, "/r")
    assert ("/r/.workflow", "opaque", "journal") in command_hits(command, "/r", "/r")
    assert command_hits(command.replace(".workflow", "build"), "/r", "/r") == []


def test_a_long_text_that_names_nothing_of_ours_is_no_hit():
    prose = "cat > notes.md <<'EOF'\n" + "It ends . Or .. so / e.g. in src/state.json and ./x.\n" * 2000 + "EOF\n"

    assert write_targets(prose, "/r")[0] == ("**", "opaque")
    assert command_hits(prose, "/r", "/r") == []


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
def test_no_text_makes_it_fail(text):
    targets = write_targets(text, "/r", home="/h")

    assert all(path and how for path, how in targets)
    assert all(path.startswith(("/", "**", "~")) for path, _ in targets)
    command_hits(text, "/r", "/r")


@settings(deadline=None)
@given(st.lists(fragments | st.text(max_size=5), max_size=40).map("".join))
def test_no_program_text_makes_it_fail(text):
    for program in ("python3 -", "node", "perl", "ruby"):
        write_targets(f"{program} <<'-END-'\n{text}\n-END-\n", "/r")


@pytest.mark.timed
@pytest.mark.parametrize(
    "unit",
    [
        "echo a > b; ", "$(echo ", "$(a) ", "(", "$((", "{a,b}", "{", "`a` ", "cat <<A\nx\nA\n", "cat <<A\n", '"',
        "${a:-",
        "if true; then ", "\\", "for i in 1 2 3; do ", "find . -exec ", "eval ", "A=$A$A; ", 'set -- "$@" "$@"; ',
        "f(){ f; f; }; f; ", "cd {a,b} && ", "cd a || ", "sudo ", "echo a | xargs ", "rm *a*a*a*a*b ",
        "A=aaaa; B=${A%%*a*a*a}; ", "python -c 'open(\"a\",\"w\")'; ", "python3 - <<A\n)))).unlink()\nA\n",
    ],
)  # fmt: skip
def test_the_longest_command_that_is_read_takes_no_more_than_seconds(unit):
    command = (unit * (MAX_LENGTH // len(unit) + 1))[:MAX_LENGTH]
    start = time.process_time()

    guarded_hits(write_targets(command, "/r"), "/r")

    assert time.process_time() - start < 5


@pytest.mark.timed
def test_an_ordinary_command_takes_well_under_a_millisecond():
    command = 'cd src && for f in *.py; do sed -i \'s/a/b/\' "$f" && git add -- "$f"; done; '
    command += (
        "cat x | grep -v y | sort > /tmp/out.txt 2>&1 && python3 -m pytest -q tests/guard -k 'not slow' || echo failed"
    )
    assert len(command) > 180

    best = min(_seconds(command) for _ in range(50))

    assert best < 0.001


def _seconds(command):
    start = time.perf_counter()
    write_targets(command, "/r")
    return time.perf_counter() - start


def test_the_modules_import_nothing():
    """One process is started for each tool call: not even `typing` or `re` is loaded for it, whatever the command."""
    code = f"""
import sys
sys.dont_write_bytecode = True
detent = type(sys)("detent")
detent.__path__ = [{str(SRC / "detent")!r}]
sys.modules["detent"] = detent
before = set(sys.modules)
from detent.core.guard.protected import command_hits
for command in ("git clean -fdx", "cp a b", "python3 -c 'open(1)'", "echo $(ls) | xargs rm"):
    command_hits(command, "/r", "/r", {{"config": (), "document": ()}})
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("detent.core")))
"""

    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
