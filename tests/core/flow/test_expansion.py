import json
from pathlib import Path

import pytest

from detent.core.flow.expansion import MAX_COMMAND_BYTES, expand, task_environment
from detent.core.flow.reference import task_properties
from detent.core.flow.scope import Scope, render_text
from detent.core.flow.step import step_problems, steps_of
from detent.errors import Refused
from tests.support.hostile import SESSION, bash, scope_of, task

SEED = json.loads((Path(__file__).parent / "seed.json").read_text())


@pytest.mark.parametrize(
    ("command", "made"),
    [
        ("cat [v]", 'cat "${DETENT_V0}"'),
        ("cat a[v]b", 'cat a"${DETENT_V0}"b'),
        ('cat "a [v]"', 'cat "a ${DETENT_V0}"'),
        ("cat 'a [v]'", "cat 'a '\"${DETENT_V0}\"''"),
        ("cat $'a [v]'", "cat $'a '\"${DETENT_V0}\"$''"),
        ("cat \"$(cat '[v]')\"", "cat \"$(cat ''\"${DETENT_V0}\"'')\""),
        ("cat [v] [v]", 'cat "${DETENT_V0}" "${DETENT_V0}"'),
        ("echo DETENT_V0 [v]", 'echo DETENT_V0 "${DETENT_V_0}"'),
        ("cat \\[v] [v]", 'cat \\[v] "${DETENT_V0}"'),
        ("cat '\\[v]' \"\\[v]\"", "cat '[v]' \"[v]\""),
        ("cat '\\\\[v]'", "cat '\\\\'\"${DETENT_V0}\"''"),
        ("echo ${x\\[v]} $((x\\[v])) [v]", 'echo ${x[v]} $((x[v])) "${DETENT_V0}"'),
        ("echo [v] # [v]", 'echo "${DETENT_V0}" # [v]'),
        ("cat <<EOF; cat [v]\n\\[v]\nEOF", 'cat <<EOF; cat "${DETENT_V0}"\n[v]\nEOF'),
    ],
)
def test_the_expansion_fits_the_quotes_around_it(command, made):
    assert expand(command, scope_of({"v": "value"})).command == made


@pytest.mark.parametrize(
    "command",
    [
        '[ -n "$x" ] && echo yes',
        "[[ $x == [a-z]* ]]",
        "ls [abc]*.txt [a-z] [!v]",
        "arr[i]=1; echo ${arr[i]} $arr[0] ${arr[@]}",
        "jq '.[] | .[0] | .a[\"v\"]'",
        "grep -E '[[:alpha:]]+[0-9]'",
        "echo [v ] [ v] [v.] [.v] [v-w] [1] [v..w]",
        "awk '{ print [unknown] }' 'unclosed",
    ],
)
def test_brackets_that_name_nothing_stay_as_they_are(command):
    made = expand(command, scope_of({"v": "value"}))

    assert (made.command, made.env, made.truncated) == (command, {}, ())


def test_a_list_is_words_where_it_stands_alone_and_joined_text_elsewhere():
    scope = scope_of({}, focus_paths=["src/a b", "tests"])

    assert expand("ls [focus_paths]", scope).command == 'ls "${DETENT_V0}" "${DETENT_V1}"'
    assert expand("ls [focus_paths]", scope).env == {"DETENT_V0": "src/a b", "DETENT_V1": "tests"}
    assert expand("x '[focus_paths]'", scope).env == {"DETENT_V0": "'src/a b' tests"}
    assert expand("x '@{[focus_paths]} y'", scope).env == {"DETENT_V0": "src/a b,tests"}
    assert expand("x @{[focus_paths]}", scope).env == {"DETENT_V0": "src/a b,tests"}
    assert expand("ls [focus_paths] .", scope_of({}, focus_paths=[])).command == "ls  ."


def test_objects_and_absent_fields_and_the_session():
    scope = scope_of({}, shared_context={"a": {"b": [1, "é"]}, "t": True})

    assert expand("x [shared_context.a]", scope).env == {"DETENT_V0": '{"b":[1,"é"]}'}
    assert expand("x [shared_context.a.b.1] [shared_context.t]", scope).env == {"DETENT_V0": "é", "DETENT_V1": "true"}
    assert expand("x [parent]", scope).env == {"DETENT_V0": ""}
    assert expand("[session.dir]/run [session.id]", scope).command == '"${DETENT_V0}"/run "${DETENT_V1}"'


def test_a_value_that_is_not_there_is_refused_by_name():
    scope = Scope(task=task("v"), session=SESSION)

    with pytest.raises(Refused, match=r"\[v\].*character 6.*'make_v'.*has not run"):
        expand("echo [v]", scope)


def test_a_command_that_could_not_be_started_is_refused():
    with pytest.raises(Refused, match="NUL"):
        expand("echo \0", scope_of({}))
    with pytest.raises(Refused, match="bytes"):
        expand("x" * (MAX_COMMAND_BYTES + 1), scope_of({}))
    with pytest.raises(Refused, match="the values of this command"):
        expand("x [a] [b] [c] [d] [e] [f] [g] [h]", scope_of({name: name * 99_000 for name in "abcdefgh"}))


def test_a_cut_value_says_where_all_of_it_is(tmp_path):
    made = expand("x [v] [v.file]", scope_of({"v": "é" * 100_000}, files={"v": "/run/v.txt"}))

    assert made.truncated == ("v",)
    assert made.env["DETENT_V0"].endswith("of 200000 bytes, all of them are in /run/v.txt]")
    assert made.env["DETENT_V1"] == "/run/v.txt"


def test_the_properties_of_a_task_are_variables_of_the_shell(tmp_path):
    document = task(depends_on=["IMPL-1.1", "IMPL-1.2"], focus_paths=["a", "b"], parent="IMPL-1")
    env = task_environment(document, SESSION)

    printed, _ = bash('for dep in ${depends_on}; do echo "<$dep>"; done; echo $task_id $parent', env, tmp_path)

    assert printed == b"<IMPL-1.1>\n<IMPL-1.2>\nIMPL-1 IMPL-1\n"
    assert env["focus_paths"] == "a b"
    assert (env["session_id"], env["session_dir"]) == (SESSION.id, SESSION.dir)
    assert task_environment({}, SESSION)["depends_on"] == ""


def seed_task():
    return SEED["task"]


def seed_flow():
    return {**SEED["task"], "flow_control": SEED["flow_control"]}


@pytest.mark.parametrize("document", [seed_task(), seed_flow()], ids=["task", "flow_control"])
def test_the_examples_of_the_seed_are_valid_and_run(document, tmp_path):
    steps = steps_of(document)
    outputs = {step.output_to: f'it\'s "{step.step}" $(touch CANARY)' for step in steps if step.output_to}
    scope = Scope(task=document, session=SESSION, outputs=outputs)

    assert step_problems(document["flow_control"], declared=task_properties(document)) == []
    for step in steps:
        made = expand(step.script, scope)
        programs = 'gemini() { printf "%s\\0" "$@"; }; codex() { printf "%s\\0" "$@"; }\n'
        command = programs + made.command.replace("~/.claude/scripts/gemini-wrapper", "gemini")
        printed, _ = bash(command, made.env | task_environment(document, SESSION), tmp_path)
        for name, value in outputs.items():
            if f"[{name}]" in step.command:
                assert value in printed.decode()
        assert "@{src/auth,tests/auth,config/auth.json}" in printed.decode() or "[focus_paths]" not in step.command
    assert list(tmp_path.iterdir()) == []


def test_the_prose_of_the_seed_is_rendered():
    outputs = {"auth_design_context": "design", "pattern_analysis": "analysis"}
    scope = Scope(task=SEED["task"], session=SESSION, outputs=outputs)
    approach = SEED["task"]["flow_control"]["implementation_approach"]

    text = render_text(approach["task_description"], scope)

    assert "Reference Authentication system design completed from parent task IMPL-1 for" in text
    assert "Apply JWT with refresh tokens across" in text
    assert "Focus implementation on src/auth, tests/auth, config/auth.json directories" in text
    assert 'using {"auth_strategy":"JWT with refresh tokens"} token' in render_text(
        approach["modification_points"][2], scope
    )
