"""The environment of a check: a short list is inherited, and what leads to programs is that of the session's start."""

import msgspec
import pytest

from detent.core.gate.environment import check_environment, declared_problems, tool_homes, tool_path
from detent.core.gate.evidence import NOTHING_KNOWN, GateState, Program, Receipt, Result, Toolchain, Verdict
from detent.core.gate.judge import evidence_of
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.constitution import ConstitutionGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.gate.program import accepted_name, other_program
from detent.core.session.events import GateChecked
from detent.core.session.status import Status
from detent.core.testrun.baseline import Baseline
from tests.support.values import after, row, session_at

TOOLS = Toolchain(path=("/usr/bin", "/work/.venv/bin"), homes={"HOME": "/home/ada", "JAVA_HOME": "/opt/java"})


def words(text: str) -> list[str]:
    return text.split()


#: Each of these makes another program of a check, or makes a program do something else.
POISON = words("""
    VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTEST_ADDOPTS PYTEST_PLUGINS NODE_OPTIONS NODE_PATH LD_PRELOAD
    LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES BASH_ENV ENV SHELLOPTS GIT_DIR GIT_CONFIG_COUNT MAKEFLAGS MAKEFILES GOFLAGS
    JAVA_TOOL_OPTIONS MAVEN_OPTS CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER RUSTC_WRAPPER npm_config_script_shell
    PERL5OPT RUBYOPT COVERAGE_PROCESS_START TOX_OVERRIDE
""")


@pytest.mark.parametrize("name", POISON)
def test_a_variable_that_steers_programs_is_never_inherited(name):
    found = check_environment({name: "x", "LANG": "C"}, (), TOOLS)

    assert name not in found.variables
    assert name in found.left_out
    assert found.variables["LANG"] == "C"


@pytest.mark.parametrize("name", POISON)
def test_a_gate_gives_such_a_variable_a_value_or_goes_without(name):
    assert declared_problems([name]) == [f"{name} changes what programs do: give its value, {name}=…"]
    assert declared_problems([f"{name}=src"]) == []
    assert check_environment({name: "evil"}, [f"{name}=src"], TOOLS).variables[name] == "src"


@pytest.mark.parametrize(
    "name", ["USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "TERM", "CI", "https_proxy", "SSL_CERT_FILE"]
)
def test_what_says_nothing_about_programs_is_inherited(name):
    assert check_environment({name: "x"}, (), TOOLS).variables[name] == "x"


def test_homes_and_path_are_those_of_the_start_whatever_the_caller_has():
    caller = {"PATH": "/work/bin:/usr/bin", "HOME": "/work/evil", "JAVA_HOME": "/work/evil", "CARGO_HOME": "/work/evil"}

    found = check_environment(caller, (), TOOLS)

    assert found.variables == {"PATH": "/usr/bin:/work/.venv/bin", "HOME": "/home/ada", "JAVA_HOME": "/opt/java"}
    assert found.left_out == ("CARGO_HOME", "/work/bin")


def test_a_gate_passes_a_variable_on_by_name():
    caller = {"DATABASE_URL": "postgres:///x", "OTHER": "1"}

    found = check_environment(caller, ("DATABASE_URL", "MISSING"), TOOLS)

    assert found.variables["DATABASE_URL"] == "postgres:///x"
    assert "MISSING" not in found.variables
    assert found.left_out == ("OTHER",)


def test_the_marks_of_an_agents_shell_stay():
    caller = {"ACME_AGENT": "1", "DETENT_RUN": "r1"}

    assert check_environment(caller, (), TOOLS, marks=("ACME_AGENT",)).variables.items() >= caller.items()


@pytest.mark.parametrize("entry", ["", "A B", "1A=x", "=x", "PATH=/evil", "PATH", "DETENT_RUN=1"])
@pytest.mark.parametrize(
    "kind",
    [TestsGate, lambda **more: CommandGate(command="x", **more), lambda **more: ConstitutionGate(articles=(), **more)],
)
def test_an_entry_that_cannot_be_used_is_refused_when_the_gate_is_read(kind, entry):
    with pytest.raises(ValueError, match="env: "):
        kind(env=(entry,))


def test_the_refusal_reaches_whoever_wrote_the_gate():
    with pytest.raises(msgspec.ValidationError, match="PYTHONPATH changes what programs do"):
        msgspec.convert({"kind": "command", "command": "x", "env": ["PYTHONPATH"]}, CommandGate)


# PATH

ROOTS = ("/work",)
DIRECTORIES = words("""
    /usr/bin /home/ada/.pyenv/shims /home/ada/.virtualenvs/x/bin /work/bin /work/.venv/bin /work/venv/bin /work
    /work/node_modules/.bin /work/web/node_modules/.bin /work/.direnv/python-3.11/bin /work/.venv/bin/evil /tmp/bin
    /tmp /home/ada/link
""")


def real(entry):
    return {"/home/ada/link": "/work/bin"}.get(entry, entry if entry in DIRECTORIES else None)


def test_a_persons_path_keeps_installed_packages_of_the_project_and_nothing_else_of_it():
    entries = [*DIRECTORIES, "bin", ".", "", "/usr/gone", "/usr/bin"]

    assert tool_path(entries, ROOTS, real, is_trusted=True) == (
        "/usr/bin",
        "/home/ada/.pyenv/shims",
        "/home/ada/.virtualenvs/x/bin",
        "/work/.venv/bin",
        "/work/venv/bin",
        "/work/node_modules/.bin",
        "/work/web/node_modules/.bin",
        "/work/.direnv/python-3.11/bin",
        "/tmp/bin",
        "/tmp",
    )


def test_an_agents_path_keeps_nothing_of_the_project_and_nothing_that_everybody_writes():
    kept = tool_path(DIRECTORIES, ROOTS, real, is_trusted=False)

    assert kept == ("/usr/bin", "/home/ada/.pyenv/shims", "/home/ada/.virtualenvs/x/bin")


def test_homes_of_an_agent_do_not_lead_into_the_project():
    caller = {
        "HOME": "/work/home",
        "GOPATH": "/tmp/go",
        "PYENV_ROOT": "/home/ada/.pyenv",
        "ASDF_DIR": "/opt/asdf",
        "X": "1",
    }

    assert tool_homes(caller, ROOTS, is_trusted=False) == {"PYENV_ROOT": "/home/ada/.pyenv", "ASDF_DIR": "/opt/asdf"}
    assert tool_homes(caller, ROOTS, is_trusted=True).keys() == {"HOME", "GOPATH", "PYENV_ROOT", "ASDF_DIR"}


# The program

PYTEST = Program(name="pytest", path="/usr/bin/pytest", digest="a" * 32)
FAKE = Program(name="pytest", path="bin/pytest", digest="b" * 32)
EDITED = Program(name="pytest", path="/usr/bin/pytest", digest="c" * 32)


def test_another_program_by_the_same_name_is_named():
    known = {"pytest": PYTEST}

    assert other_program(known, PYTEST) is None
    assert other_program(known, None) is None
    assert other_program({}, FAKE) is None
    assert "bin/pytest instead of /usr/bin/pytest" in str(other_program(known, FAKE))
    assert "/usr/bin/pytest was changed" in str(other_program(known, EDITED))


GATE = CommandGate(command="pytest")
SESSION = session_at({"work": Status.IN_PROGRESS}, graph=row("work"))


def judged(used, *, accepted=()):
    baseline = Baseline(accepted=accepted)
    session = msgspec.structs.replace(SESSION, programs={"pytest": PYTEST}, baseline=baseline)
    receipt = Receipt(result=Result.PASSED, command="pytest", inputs="i", program=used)
    state = GateState(receipt=receipt, iterations=1)
    facts = msgspec.structs.replace(NOTHING_KNOWN, changed={"i": ()})
    return GATE.judge(evidence_of(session, "work", GATE, facts)._replace(gate=state))


def test_a_pass_of_another_program_opens_nothing_until_a_person_accepts_it():
    verdict, reason = judged(FAKE)

    assert verdict is Verdict.FAIL
    assert f"detent gate accept command {accepted_name(FAKE)} -m WHY" in reason
    assert judged(FAKE, accepted=(accepted_name(FAKE),))[0] is Verdict.PASS
    assert judged(FAKE, accepted=(accepted_name(EDITED),))[0] is Verdict.FAIL
    assert judged(PYTEST)[0] is Verdict.PASS


def test_the_first_run_of_a_command_says_which_program_it_means():
    session = SESSION
    for used in (PYTEST, FAKE):
        receipt = Receipt(result=Result.PASSED, command="pytest", program=used)
        session = after(session, [GateChecked(phase="work", gate="command", receipt=receipt)])

    assert session.programs == {"pytest": PYTEST}


def test_a_damaged_manifest_is_an_error_that_names_the_file():
    session = SESSION
    state = GateState(receipt=Receipt(result=Result.PASSED, command="x", inputs="i"), iterations=1)
    facts = msgspec.structs.replace(NOTHING_KNOWN, damaged={"i": "/work/evidence/i"})

    verdict, reason = GATE.judge(evidence_of(session, "work", GATE, facts)._replace(gate=state))

    assert (verdict, "/work/evidence/i is damaged" in reason) == (Verdict.ERROR, True)


def test_what_a_check_did_not_get_is_listed_when_it_cannot_run():
    session = SESSION
    receipt = Receipt(result=Result.ERROR, error="the command was not found", left_out=("DATABASE_URL", "/work/bin"))
    state = GateState(receipt=receipt, iterations=1)
    _, reason = GATE.judge(evidence_of(session, "work", GATE, NOTHING_KNOWN)._replace(gate=state))

    assert "PATH lacked /work/bin" in reason
    assert 'variables left out: DATABASE_URL (a gate passes one on with env = ["DATABASE_URL"])' in reason
