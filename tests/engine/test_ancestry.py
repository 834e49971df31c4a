"""What can be read about the processes above one: programs, variables, and how far the look goes."""

import os
import subprocess
import sys

import pytest

from detent.engine.agents.ancestry import MAX_ANCESTORS, ancestry, parse_ps, terminal

HAS_PROC = os.path.isdir("/proc/self")
needs_proc = pytest.mark.skipif(not HAS_PROC, reason="reads /proc")
LOOK = "import os; from detent.engine.agents.ancestry import ancestry; print([tuple(a) for a in ancestry(os.getpid())])"


def looked(*argv, **environment):
    """What a process sees that was started by these words, the last of which is replaced by a Python that looks."""
    words = [f"{sys.executable} -c '{LOOK}'" if word == "LOOK" else word for word in argv]
    env = {"PATH": os.environ["PATH"], **environment}
    shown = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    return eval(shown)


@needs_proc
def test_the_process_comes_first_then_its_parent_and_so_on_to_the_top():
    found = ancestry(os.getpid())

    assert [one.pid for one in found[:2]] == [os.getpid(), os.getppid()]
    assert len({one.pid for one in found}) == len(found)
    assert "PATH" in (found[0].variables or ())


@needs_proc
def test_a_variable_that_was_removed_is_still_that_of_the_parent():
    found = looked("bash", "-c", "env -i LOOK; true".replace("LOOK", f'{sys.executable} -c "{LOOK}"'), WHO="agent")

    assert "WHO" not in found[0][3]
    assert "WHO" in found[1][3]


@needs_proc
def test_an_empty_variable_is_none():
    found = looked("bash", "-c", f'{sys.executable} -c "{LOOK}"; true', WHO="")

    assert "WHO" not in found[1][3]


@needs_proc
def test_a_program_is_known_by_its_name_and_by_its_script(tmp_path):
    (tmp_path / "codex").symlink_to("/bin/bash")
    script = tmp_path / "gemini.py"
    script.write_text(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LOOK!r}])")

    by_name = looked(str(tmp_path / "codex"), "-c", f'{sys.executable} -c "{LOOK}"; true')
    by_script = looked(sys.executable, "-u", str(script))

    assert "codex" in by_name[1][2]
    assert "gemini.py" in by_script[1][2]


@needs_proc
def test_the_look_is_limited():
    deep = f'{sys.executable} -c "{LOOK}"'
    nested = f'n=$1; if [ $n -gt 0 ]; then bash -c "$0" "$0" $((n-1)); true; else {deep}; fi'
    found = looked("bash", "-c", nested, nested, str(MAX_ANCESTORS + 6))

    assert len(found) == MAX_ANCESTORS


def test_a_process_that_is_gone_has_no_ancestors():
    gone = subprocess.Popen(["true"])
    gone.wait()

    assert ancestry(gone.pid) == ()


def test_a_line_of_ps_is_read_as_parent_command_and_variables():
    ancestor, parent = parse_ps(7, "  1 node /opt/lib/codex.js exec PATH=/bin CODEX_CI=1 EMPTY=\n")

    assert ancestor is not None
    assert (parent, ancestor.program, ancestor.names) == (1, "node", {"node", "codex"})
    assert ancestor.variables == {"PATH", "CODEX_CI"}


@pytest.mark.parametrize("shown", ["", "ps: 7: no such process", "1"])
def test_what_ps_does_not_show_is_nobody(shown):
    assert parse_ps(7, shown) == (None, 0)


def test_a_program_of_the_system_has_an_unknown_environment():
    ancestor, _ = parse_ps(7, "1 /bin/zsh -l")

    assert ancestor is not None
    assert ancestor.variables is None


def test_a_terminal_is_found_though_input_and_output_are_pipes():
    """The tests have a terminal of their own."""
    code = "from detent.engine.agents.ancestry import terminal; print(terminal())"
    ways = {"pipes": False, "a session of its own": True}
    shown = {
        way: subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            start_new_session=alone,
        ).stdout
        for way, alone in ways.items()
    }

    assert terminal() is not None
    assert str(os.getsid(0)) in shown["pipes"]
    assert shown["a session of its own"] == "None\n"
