"""Every hostile value in every position: it arrives byte for byte, or the command is refused before anything ran."""

import shlex
from pathlib import Path

import pytest

from detent.core.flow.expansion import MAX_VALUE_BYTES, expand
from detent.errors import Refused
from tests.support.hostile import RUN, VALUES, bash, canaries, encoded, scope_of

SHOW = "printf '%s\\0'"


def exact(value):
    return value + b"\0"


def substituted(value):
    """Command substitution itself takes the newlines at the end away."""
    return value.rstrip(b"\n") + b"\0"


def around(before, after):
    return lambda value: before + value + after + b"\0"


#: Name of the position to the command and what it must print.
EXACT = {
    "unquoted": (f"{SHOW} [v]", exact),
    "unquoted in a word": (f"{SHOW} --x=[v].txt", around(b"--x=", b".txt")),
    "unquoted beside quotes": (f"{SHOW} 'a'[v]\"b\"", around(b"a", b"b")),
    "twice": (f"{SHOW} [v][v]", lambda value: value + value + b"\0"),
    "two words": (f"{SHOW} [v] '[v]'", lambda value: exact(value) * 2),
    "double-quoted": (f'{SHOW} "[v]"', exact),
    "double-quoted in text": (f'{SHOW} "a $x[v]{{[v]}}!"', lambda value: b"a " + value + b"{" + value + b"}!\0"),
    "double-quoted with escapes": (f'{SHOW} "\\"\\$\\\\[v]\\`"', around(b'"$\\', b"`")),
    "single-quoted": (f"{SHOW} '[v]'", exact),
    "single-quoted in text": (f"{SHOW} 'a \"$x [v] `b'", around(b'a "$x ', b" `b")),
    "single-quoted behind a dollar": (f"{SHOW} 'a$[v]'", around(b"a$", b"")),
    "single-quoted behind backslashes": (f"{SHOW} 'a\\\\[v]'", around(b"a\\\\", b"")),
    "ANSI-quoted": (f"{SHOW} $'[v]'", exact),
    "ANSI-quoted in text": (f"{SHOW} $'a\\'\\t[v]\\'\\\\b'", around(b"a'\t", b"'\\b")),
    "substitution, unquoted": (f'{SHOW} "$(printf %s [v])"', substituted),
    "substitution, double-quoted": (f'{SHOW} "$(printf %s "[v]")"', substituted),
    "substitution, single-quoted": (f"{SHOW} \"$(printf %s '[v]')\"", substituted),
    "substitution, ANSI-quoted": (f"{SHOW} \"$(printf %s $'[v]')\"", substituted),
    "substitution that writes": (f'exec 3>&1; : "$({SHOW} "[v]" >&3)"', exact),
    "substitution without quotes around it": (f"exec 3>&1; : $({SHOW} [v] >&3)", exact),
    "substitution three deep": (f'{SHOW} "$(printf %s "$(printf %s "$(printf %s "[v]")")")"', substituted),
    "substitution with a case in it": (f'{SHOW} "$(case a in a) printf %s [v];; esac)"', substituted),
    "substitution with a comment in it": (f'{SHOW} "$(printf %s [v] # it\'s ) "\n)"', substituted),
    "backquotes, unquoted": (f'x=`printf %s [v]`; {SHOW} "$x"', substituted),
    "backquotes, double-quoted": (f'x=`printf %s "[v]"`; {SHOW} "$x"', substituted),
    "backquotes, single-quoted": (f"x=`printf %s '[v]'`; {SHOW} \"$x\"", substituted),
    "backquotes in double quotes": (f'{SHOW} "`printf %s [v]`"', substituted),
    "backquotes in double quotes, quoted": (f'{SHOW} "`printf %s "[v]"`"', substituted),
    "backquotes in double quotes, single-quoted": (f"{SHOW} \"`printf %s '[v]'`\"", substituted),
    "process substitution": (f"cat <({SHOW} [v])", exact),
    "process substitution, quoted": (f"cat <({SHOW} \"[v]\") <({SHOW} '[v]')", lambda value: exact(value) * 2),
    "here-string": ("cat <<< [v]", lambda value: value + b"\n"),
    "here-string, double-quoted": ('cat <<< "[v]"', lambda value: value + b"\n"),
    "here-string, single-quoted": ("cat <<< '[v]'", lambda value: value + b"\n"),
    "beside a here-document": (f"cat <<EOF; {SHOW} [v]\nliteral ' text\nEOF", around(b"literal ' text\n", b"")),
    "assignment": (f'x=[v]; {SHOW} "$x"', exact),
    "assignment, double-quoted": (f'x="[v]"; {SHOW} "$x"', exact),
    "assignment, appended": (f"x=a; x+='[v]'; {SHOW} \"$x\"", around(b"a", b"")),
    "assignment before a command": ('X=[v] bash -c \'printf "%s\\0" "$X"\'', exact),
    "array": (f'x=([v] "[v]"); {SHOW} "${{x[@]}}"', lambda value: exact(value) * 2),
    "array element": (f'x[1]=[v]; {SHOW} "${{x[1]}}"', exact),
    "exported": (f'export X=[v]; {SHOW} "$X"', exact),
    "local": (f'f() {{ local x=[v]; {SHOW} "$x"; }}; f', exact),
    "argument after the script of bash -c": ('bash -c \'printf "%s\\0" "$1"\' _ [v]', exact),
    "argument of a program": ("python3 -ISc 'import os, sys; os.write(1, os.fsencode(sys.argv[1]))' [v]", lambda v: v),
    "loop": (f'for x in [v] "[v]"; do {SHOW} "$x"; done', lambda value: exact(value) * 2),
    "C loop around it": (f"for ((i=0; i<2; i++)); do {SHOW} [v]; done", lambda value: exact(value) * 2),
    "case word": (f'case [v] in *) {SHOW} "[v]";; esac', exact),
    "case pattern": (f"x=[v]; case $x in a[v]) : ;; ([v]) {SHOW} hit ;; esac", lambda value: b"hit\0"),
    "case pattern, part": (f"x=a[v]b; case $x in a'[v]'*) {SHOW} hit ;; esac", lambda value: b"hit\0"),
    "condition": (f'x=[v]; [[ $x == [v] && -n "a[v]" ]] && {SHOW} hit', lambda value: b"hit\0"),
    "test": (f'x=[v]; [ "a$x" = "a[v]" ] && {SHOW} hit', lambda value: b"hit\0"),
    "test of a number": (f'[ "[v]" -eq 1 ] 2>/dev/null; {SHOW} hit', lambda value: b"hit\0"),
    "function": (f'f() {{ {SHOW} "$@"; }}; f [v] "[v]"', lambda value: exact(value) * 2),
    "subshell and group": (f"( {{ {SHOW} '[v]'; }} )", exact),
    "pipe": (f"{SHOW} [v] | cat | cat", exact),
    "behind a comment": (f"# it's [v]\n{SHOW} [v] # [v] '", exact),
    "behind arithmetic": (f": $((1 + (2 * 3))); (( 1 < 2 )); {SHOW} [v]", exact),
    "behind a parameter": (f': ${{x:-${{y:-a\\}}b}}}} ${{#x}} "${{x//\\//_}}"; {SHOW} [v]', exact),
    "continued line": (f"{SHOW} \\\n  [v]", exact),
    "set": (f'set -- [v] "[v]"; {SHOW} "$@"', lambda value: exact(value) * 2),
    "env": ("env X=1 printf '%s\\0' [v]", exact),
    "tilde and braces": (f"{SHOW} ~[v]", around(b"~", b"")),
    "nested in everything": (
        f"if [ a = a ]; then while true; do {SHOW} \"$(printf '%s' \"`printf %s '[v]'`\")\"; break; done; fi",
        substituted,
    ),
}

#: Where nothing that is written could be right.
REFUSED = {
    "here-document": "cat <<EOF\n[v]\nEOF",
    "here-document in double quotes": 'cat <<EOF\n"[v]"\nEOF',
    "here-document, indented": "cat <<-EOF\n\ta [v]\n\tEOF",
    "here-document, quoted": "cat <<'EOF'\n[v]\nEOF",
    "here-document, delimiter with a backslash": "cat <<\\EOF\n[v]\nEOF",
    "here-document, substitution in it": "cat <<EOF\n$(printf %s [v])\nEOF",
    "here-document in a substitution": 'x="$(cat <<EOF\n[v]\nEOF\n)"',
    "here-document, delimiter": "cat <<[v]\nx\n[v]",
    "here-document that does not end": "cat [v] <<EOF\nx",
    "here-document, continued line": "cat [v] <<EOF\nx\\\nEOF\nEOF",
    "arithmetic": "echo $((1 + [v]))",
    "arithmetic in quotes": 'echo "$(( [v] ))"',
    "arithmetic, substitution in it": "echo $(( $(printf %s [v]) + 1 ))",
    "arithmetic command": "(( x = [v] ))",
    "arithmetic loop": "for ((i=0; i<[v]; i++)); do :; done",
    "old arithmetic": "echo $[v]",
    "old arithmetic in quotes": 'echo "$[v]"',
    "parameter": 'echo "${x:-[v]}"',
    "parameter, offset": "echo ${x:[v]}",
    "parameter, subscript": "echo ${x[v]}",
    "parameter, pattern": 'echo "${x//[v]/a}"',
    "parameter, substitution in it": 'echo "${x:-$(printf %s [v])}"',
    "regex": "[[ x =~ [v] ]]",
    "regex, quoted": '[[ x =~ ^"[v]"(a|b)$ ]]',
    "condition, number": '[[ "[v]" -eq 1 ]]',
    "condition, variable": "[[ -v [v] ]]",
    "test, variable": '[ -v "[v]" ]',
    "test, two values": '[ "[v]" "[v]" ]',
    "subscript": "x[[v]]=1",
    "subscript in an array": "x=([[v]]=1)",
    "script of bash -c": "bash -c [v]",
    "script of bash -c, double-quoted": 'bash -c "printf %s [v]"',
    "script of bash -c, single-quoted": "bash -c 'printf %s [v]'",
    "script of sh -ec": "sh -ec 'printf %s \"[v]\"'",
    "script behind options": "bash -o pipefail -c '[v]'",
    "script behind env": "env -i X=1 /bin/sh -c '[v]'",
    "script behind find": "find . -maxdepth 0 -exec sh -c 'echo [v]' \\;",
    "script of an unknown shell": "$SHELL -c '[v]'",
    "script in substitution": 'bash -c "$(printf %s [v])"',
    "script file": "bash [v]",
    "script on standard input": "bash <<< [v]",
    "script from a file": "bash < [v]",
    "script from a pipe": "printf %s [v] | tr a b | bash",
    "script from a group": "{ printf %s [v]; } | bash",
    "script from a loop": "for x in a; do printf %s [v]; done |\n sudo sh -x",
    "script in a pipe to a group": "printf %s [v] | { bash; }",
    "script from a process": "bash <(printf %s [v])",
    "script in a pipe to xargs": "printf %s [v] | xargs -I{} sh -c '{}'",
    "python code from a pipe": "printf %s [v] | python3 -",
    "sourced from a string": "source /dev/stdin <<< [v]",
    "export of an array": "x=(1); export x=[v]",
    "declare with a number before": "declare -i x; declare x=[v]",
    "read into an array": "read -a x <<< 1; export x=[v]",
    "eval": "eval [v]",
    "eval, quoted": "eval 'printf %s [v]'",
    "eval behind command": "command eval [v]",
    "eval, written otherwise": "\\ev'al' [v]",
    "source": "source [v]",
    "dot": ". [v]",
    "trap": "trap '[v]' EXIT",
    "let": "let x=[v]",
    "read": "read [v] <<< x",
    "unset": "unset [v]",
    "declare with an attribute": "declare -a x=[v]",
    "declare, array": "declare -a x; declare x=[v]",
    "declare, number": "declare -i x; x=[v]",
    "declare, literal array": "declare -a x=([v])",
    "export": "export [v]",
    "printf format": "printf [v] x",
    "printf -v": "printf -v [v] x",
    "ssh": "ssh host ls [v]",
    "python code": "python3 -c 'print([v])'",
    "perl code": "perl -e '[v]'",
    "awk code": "awk '{ print \"[v]\" }' /dev/null",
    "sed code": "printf x | sed 's/x/[v]/'",
    "sed code behind -e": "printf x | sed -n -e 's/x/[v]/' -e p",
    "command": "[v]",
    "command with arguments": "[v] x",
    "command behind an assignment": "X=1 [v]",
    "command behind exec": "exec [v]",
    "command in a pipe": "true | [v]",
    "command in a substitution": "echo $([v])",
    "part of a command": "./[v]/run",
    "special variable": "RANDOM=[v]",
    "prompt variable": "PS4=[v]; set -x; true",
    "path": "PATH=[v]:$PATH",
    "file descriptor": "echo x >&[v]",
    "name of a loop": "for [v] in a; do :; done",
    "name of a function": "function [v] { :; }",
    "unclosed single quote": "echo '[v]",
    "unclosed single quote before more": "echo '[v] x",
    "unclosed double quote": 'echo "[v]',
    "unclosed ANSI quote": "echo $'[v]",
    "unclosed substitution": "echo $(echo [v]",
    "unclosed backquote": "echo `echo [v]",
    "unclosed parameter": "echo [v] ${x",
    "parenthesis too many": "echo [v])",
    "extended pattern": "ls @([v]|b)",
    "translated": 'echo $"[v]"',
    "coproc": "coproc cat [v]",
    "subshell that looks like arithmetic": "((echo [v]); echo)",
    "substitution that looks like arithmetic": "echo $((echo [v]); echo)",
    "continued in a word": "echo a\\\nb [v]",
    "continued operator": "(\\\n( [v] ))",
    "quote in a parameter": "echo ${x:-'a'} [v]",
    "escaped quote in backquotes": 'echo "`echo \\"[v]\\"`"',
    "here-document that waits in a substitution": "echo $(cat <<EOF) [v]\nx\nEOF\n",
    "here-document that waits outside of a substitution": "cat <<EOF $(echo a\necho b) [v]\nx\nEOF",
    "case that does not end": "case x in a) echo [v]",
    "bash 5.3 substitution": "echo ${ echo [v]; }",
    "backquotes in backquotes": 'echo `: \\`echo "[v]"\\``',
    "behind old arithmetic": "echo $[1+1] [v]",
    "subscript with a blank": "x[a [v]]=1",
    "command behind a quoted subscript": 'x["a"]=1 eval [v]',
    "command behind an expanded subscript": "x[$i]=1 eval [v]",
    "script of a shell in braces": "{bash,-c} '[v]'",
    "script of a shell by a pattern": "/bin/bas? -c '[v]'",
    "argument of an unknown command": "$TOOL [v]",
    "command behind an empty expansion": "${x}eval [v]",
    "eval in ANSI quotes": "$'eval' [v]",
    "text of flock": "flock /tmp/lock -c '[v]'",
    "command behind an odd assignment of env": "env x[1]=1 [v]",
    "text of env": "env -S '[v]'",
    "option of a prefix program": "timeout [v] ls",
    "command behind a launcher": "uv run --with x [v]",
    "word behind a compound command": "if true; then true; fi [v]",
    "a case without patterns": "case x in [v]",
}


SCOPES = [scope_of({"v": value}) for value in VALUES.values()]


def test_there_are_enough_of_them():
    assert len(VALUES) >= 60
    assert len(EXACT) >= 50
    assert len(REFUSED) >= 60


@pytest.mark.parametrize("name", VALUES)
def test_a_value_arrives_byte_for_byte_wherever_it_is_allowed(name, tmp_path):
    scope = scope_of({"v": VALUES[name]})
    expanded = {position: expand(command, scope) for position, (command, _) in EXACT.items()}
    env = expanded["unquoted"].env
    assert all(each.env == env for each in expanded.values())
    (value,) = env.values()
    outside = tmp_path / "out"
    outside.mkdir()
    inside = tmp_path / "cwd"
    inside.mkdir()

    script = "\n".join(
        f"exec > {outside}/{number}; unset x\n{expanded[position].command}" for number, position in enumerate(EXACT)
    )
    _, errors = bash(script, env, inside)

    found = {position: (outside / str(number)).read_bytes() for number, position in enumerate(EXACT)}
    wanted = {position: wanted(encoded(value)) for position, (_, wanted) in EXACT.items()}
    assert [
        (position, found[position][:200], errors[:500]) for position in EXACT if found[position] != wanted[position]
    ] == []
    assert list(inside.iterdir()) == []


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_whole_or_marked_as_cut(name):
    value = VALUES[name]

    made = expand("echo [v]", scope_of({"v": value}))

    (kept,) = made.env.values()
    if len(encoded(value)) <= MAX_VALUE_BYTES:
        assert (kept, made.truncated) == (value, ())
    else:
        text, _, mark = kept.rpartition("\n[… cut by detent: ")
        assert value.startswith(text)
        assert str(len(encoded(value))) in mark
        assert MAX_VALUE_BYTES - 4 <= len(encoded(kept)) <= MAX_VALUE_BYTES
        assert made.truncated == ("v",)


@pytest.mark.parametrize("position", REFUSED)
def test_where_a_value_cannot_be_right_the_command_is_refused_and_says_why(position):
    with pytest.raises(Refused) as refusal:
        expand(REFUSED[position], scope_of({"v": f"$({RUN})"}))

    assert "[v]" in refusal.value.message
    assert "character" in refusal.value.message


@pytest.mark.parametrize("position", REFUSED)
def test_a_refusal_does_not_depend_on_the_value(position):
    for scope in SCOPES:
        with pytest.raises(Refused):
            expand(REFUSED[position], scope)


def test_the_items_of_a_list_arrive_as_one_word_each(tmp_path):
    items = [value for name, value in VALUES.items() if not name.startswith("200 KB")]
    made = expand(f"{SHOW} [focus_paths] end", scope_of({}, focus_paths=items))

    printed, _ = bash(made.command, made.env, tmp_path)

    assert printed.split(b"\0") == [*map(encoded, items), b"end", b""]
    assert canaries(tmp_path) == []


@pytest.mark.parametrize(
    "command",
    [f'{SHOW} "[focus_paths]"', f"{SHOW} '[focus_paths]'", f"{SHOW} $'[focus_paths]'", f'x=[focus_paths]; {SHOW} "$x"'],
)
def test_a_list_inside_quotes_is_joined_text_of_shell_words(command, tmp_path):
    items = [value for value in VALUES.values() if len(value) < 500]
    made = expand(command, scope_of({}, focus_paths=items))

    printed, _ = bash(made.command, made.env, tmp_path)

    text = printed.decode("utf-8", "surrogateescape").removesuffix("\0")
    assert shlex.split(text) == items
    assert canaries(tmp_path) == []


@pytest.mark.parametrize(
    "command",
    [
        "echo x > [focus_paths]",
        "echo --x=[focus_paths]",
        "case x in [focus_paths]) : ;; esac",
        "cat <<< [focus_paths]",
        "[ -n [focus_paths] ]",
    ],
)
def test_a_list_of_many_cannot_be_part_of_a_word(command):
    with pytest.raises(Refused, match=r"\[focus_paths\].*a list of 2"):
        expand(command, scope_of({}, focus_paths=["a", "b"]))

    assert expand(command, scope_of({}, focus_paths=["a b"])).env == {"DETENT_V0": "a b"}


def test_a_value_with_a_nul_byte_or_half_a_character_is_refused():
    for value in ("a\0b", "a\ud800b"):
        with pytest.raises(Refused, match=r"\[v\].*character"):
            expand("echo [v]", scope_of({"v": value}))


def test_what_the_refusals_are_for_would_run_a_value(tmp_path):
    """The corpus bites: pasted as text, or expanded without quotes where these refuse, the values do run."""
    pasted = ["echo {}", 'echo "{}"', "echo '{}'"]
    found = 0
    for number, template in enumerate(pasted):
        for index, value in enumerate(VALUES.values()):
            if len(value) > 1000 or "CANARY" not in value:
                continue
            place = tmp_path / f"{number}-{index}"
            place.mkdir()
            bash(template.format(value), {}, place)
            found += bool(canaries(place))
    evaluated = {
        '[[ "${V}" -eq 1 ]]': "arithmetic",
        'a["${V}"]=1': "arithmetic",
        'printf "${V}" x': "option of printf",
        'declare -a x="${V}"': "array literal",
        '[ -v "${V}" ]': "arithmetic",
        'RANDOM="${V}"': "arithmetic",
        'x[a "${V}"]=1': "arithmetic",
        'x["a"]=1 eval "${V}"': "substitution",
        "{bash,-c} ''\"${V}\"''": "substitution",
        "$'eval' \"${V}\"": "substitution",
        '${x}eval "${V}"': "substitution",
    }
    for index, (command, name) in enumerate(evaluated.items()):
        place = Path(tmp_path / f"evaluated-{index}")
        place.mkdir()
        bash(command, {"V": VALUES[name]}, place)
        assert canaries(place) == ["CANARY"], command

    assert found > 25
