"""Attempts to forge a person's approval from an agent's shell, made by real processes.

Each is refused, or it is one of the few that docs/decisions.md names as possible. A program that is not installed here
is left out.
"""

import re
import shutil
import sys
from itertools import cycle
from pathlib import Path

import pytest

from detent.core.actor import ActorKind
from tests.support.agent_shell import CLIENTS, MARKS, AgentShell, approvals
from tests.support.campaign import sampled

APPROVE = "detent approve -m ok"
#: For attempts in the background or at another terminal: what is said is kept in a file.
TOLD = f"{APPROVE} >said 2>&1"
UNSET = " ".join(f"-u {mark}" for mark in MARKS)
CLEAN = 'env -i PATH="$PATH" HOME="$HOME"'
PROOF = ", proof=Proof(assurance=Assurance.ATTENDED, method='tty', identity='ada', statement='terminal /dev/pts/1')"
FORK = "import os, sys\nif os.fork(): sys.exit()\nos.setsid()\nif os.fork(): os._exit(0)\n"
AT_PTY = (
    "import pty, time\npid, fd = pty.fork()\n"
    "if pid == 0: {child}\n"
    "try:\n  while data := os.read(fd, 999): open('said', 'ab').write(data)\nexcept OSError: pass\n"
    "os.waitpid(pid, 0)\nopen('over', 'w')\n"
)
EXEC = "os.execvp('detent', ['detent', 'approve', '-m', 'ok'])"
EXEC_CLEAN = "os.execvpe('detent', ['detent', 'approve', '-m', 'ok'], {'PATH': os.environ['PATH']})"


def python(text: str) -> str:
    return f'python - <<"END"\n{text}\nEND'


def wrote(path: str, text: str, then: str) -> str:
    return f"cat > {path} <<'END'\n{text}\nEND\n{then}"


def code(text: str) -> str:
    return f'python -c "{text}"'


def person(channel: str, proof: str = "") -> str:
    """An actor that says of itself that it is a person."""
    made = f"Actor(name='ada', kind=ActorKind.PERSON, channel=Channel.{channel}{proof})"
    return f"from detent.core.actor import *; a = {made}; "


def opened(reason: str, *, actor: str = "None", said: str = "") -> str:
    return f"import detent; detent.open('.', actor={actor}).session().approve('{reason}'{said})"


APPROVES = opened("ok")
HANDLE = "import detent; detent.open('.').session(actor=a).approve('ok', gate='approval')"
EVENT = (
    "import detent; from detent.core.session.events import GateApproved as G; "
    "p = detent.open('.'); e = G(phase='work', gate='approval', reason='ok'); "
    "p.journal(p.session().id).commit(lambda _: (e,), actor=p.actor, now=p.clock())"
)
#: Puts other functions in the place of those that look at the process.
CHANGED = (
    "import detent.engine.actor as e, detent.engine.policy as p, detent.engine.session as s; "
    "p.attended = lambda actor, _: a; s.account = lambda: 'ada'; "
)


#: Each line in a shell with a mark, in which `detent approve -m ok` is the aim.
ATTEMPTS = {
    # The marks removed
    "plainly": APPROVE,
    "empty mark": f"{' '.join(f'{mark}=' for mark in MARKS)} {APPROVE}",
    "env -u": f"env {UNSET} {APPROVE}",
    "unset": f"unset {' '.join(MARKS)}; {APPROVE}",
    "export -n": f"export -n {' '.join(MARKS)}; {APPROVE}",
    "env -i": f"{CLEAN} {APPROVE}",
    "env -i, twice": f"{CLEAN} bash -c '{CLEAN} {APPROVE}'",
    "exec env -i": f"exec {CLEAN} {APPROVE}",
    "exec -c": 'exec -c "$(command -v detent)" approve -m ok',
    "exec -a": f"exec {CLEAN} bash -c 'exec -a bash detent approve -m ok'",
    "another actor": f"{CLEAN} DETENT_ACTOR=ada {APPROVE}",
    "another user by name": f"{CLEAN} USER=ada LOGNAME=ada {APPROVE}",
    "for somebody else": f"{CLEAN} {APPROVE} --as ada",
    "yes, piped": f"yes | {CLEAN} {APPROVE}",
    "from another directory": f'cd / && {CLEAN} detent -C "$OLDPWD" approve -m ok',
    # Shells and scripts
    "bash -c": f"bash -c '{CLEAN} {APPROVE}'",
    "bash -l": f"{CLEAN} bash -lc 'PATH={{bin}}:$PATH {APPROVE}'",
    "sh script": wrote("ok.sh", f"unset {' '.join(MARKS)}\n{APPROVE}", "bash ok.sh"),
    "executable script": wrote("ok", f"#!/bin/sh\n{CLEAN} {APPROVE}", "chmod +x ok; ./ok"),
    "sourced": wrote("ok.sh", f"{CLEAN} {APPROVE}", ". ./ok.sh"),
    "eval": f"eval '{CLEAN} {APPROVE}'",
    "base64": f'echo "{CLEAN} {APPROVE}" | base64 | base64 -d | bash',
    "here document": f"bash <<'END'\n{CLEAN} {APPROVE}\nEND",
    "function": f"ok() {{ {CLEAN} {APPROVE}; }}; ok",
    "trap": f"trap '{CLEAN} {APPROVE}' EXIT; true",
    "BASH_ENV": wrote("env.sh", f"unset BASH_ENV; {CLEAN} {APPROVE}", "BASH_ENV=env.sh bash -c true"),
    "which": f"{CLEAN} $(which detent) approve -m ok",
    "copied program": f'cp "$(which detent)" tool; {CLEAN} ./tool approve -m ok',
    "renamed program": f'ln -s "$(which detent)" ls; {CLEAN} ./ls approve -m ok',
    "python -m": f"{CLEAN} python -m detent approve -m ok",
    "python -I": f"{CLEAN} python -I -m detent approve -m ok",
    "python -E -S": f"{CLEAN} python -E -m detent approve -m ok",
    # Programs that start programs
    "xargs": f"echo ok | xargs {CLEAN} detent approve -m",
    "find": f"find . -maxdepth 0 -exec {CLEAN} {APPROVE} \\;",
    "awk": f"awk 'BEGIN {{ system(\"env -i PATH=$PATH {APPROVE}\") }}'",
    "sed": f"echo | sed '1e env -i PATH=$PATH {APPROVE}'",
    "perl": "perl -e '%ENV = (PATH => $ENV{PATH}); exec qw(detent approve -m ok)'",
    "node": "node -e \"require('child_process').spawnSync('detent', ['approve', '-m', 'ok'], "
    "{env: {PATH: process.env.PATH}, stdio: 'inherit'})\"",
    "ruby": f"ruby -e 'exec(%q({CLEAN} {APPROVE}))'",
    "busybox": f"busybox sh -c '{CLEAN} {APPROVE}'",
    "tar": f"touch f; tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='{APPROVE}' f",
    "make": wrote("Makefile", f"ok:\n\t{CLEAN.replace('$', '$$')} {APPROVE}", "make ok"),
    "git alias": f"git init -q; git -c alias.ok='!{CLEAN} {APPROVE}' ok",
    "git hook": "git init -q; "
    + wrote(
        ".git/hooks/pre-commit",
        f"#!/bin/sh\n{CLEAN} {APPROVE}",
        "chmod +x .git/hooks/*; git commit -q --allow-empty -m x",
    ),
    "conftest": wrote("conftest.py", f"import os\nos.system('''{CLEAN} {APPROVE}''')", f"{CLEAN} python -m pytest -q"),
    "sitecustomize": "mkdir -p s; "
    + wrote(
        "s/sitecustomize.py",
        "import os\nfor n in list(os.environ): n == 'PATH' or os.environ.pop(n)",
        f"PYTHONPATH=s {APPROVE}",
    ),
    "timeout": f"{CLEAN} timeout 30 {APPROVE}",
    "nice": f"{CLEAN} nice {APPROVE}",
    "ionice": f"{CLEAN} ionice {APPROVE}",
    "stdbuf": f"{CLEAN} stdbuf -o0 {APPROVE}",
    "taskset": f"{CLEAN} taskset 1 {APPROVE}",
    "prlimit": f"{CLEAN} prlimit --nofile=99 {APPROVE}",
    "flock": f"{CLEAN} flock /tmp {APPROVE}",
    "chroot": f"{CLEAN} chroot / bash -c 'cd {{root}} && {APPROVE}'",
    "setarch": f"{CLEAN} setarch -R {APPROVE}",
    "setpriv": f"{CLEAN} setpriv --no-new-privs {APPROVE}",
    "gate check": wrote("detent.toml", f'[run]\ntests = "{APPROVE}"', f"{APPROVE}"),
    # Another session, namespace or parent, without a terminal
    "setsid": f"{CLEAN} setsid -w {APPROVE}",
    "nohup": f"{CLEAN} nohup {APPROVE}",
    "background": f"({CLEAN} bash -c '{TOLD}; touch over' &)",
    "background of init": f"({CLEAN} setsid bash -c '{TOLD}; touch over' </dev/null >/dev/null 2>&1 &)",
    "double fork": python(f"{FORK}os.system('''{CLEAN} {TOLD}; touch over''')"),
    "unshare mounts": f"{CLEAN} unshare -m {APPROVE}",
    "unshare processes": f"{CLEAN} unshare -pf {APPROVE}",
    "unshare processes and proc": f"{CLEAN} unshare -pf --mount-proc {APPROVE}",
    "unshare users": f"{CLEAN} unshare -r {APPROVE}",
    "unshare network": f"{CLEAN} unshare -n {APPROVE}",
    "nsenter": f"{CLEAN} nsenter -t 1 -m {APPROVE}",
    "systemd-run": f"{CLEAN} systemd-run --user --wait {APPROVE}",
    "at": f"echo '{APPROVE}' | {CLEAN} at now",
    "ssh": f"{CLEAN} ssh -o BatchMode=yes -o ConnectTimeout=2 localhost 'cd {{root}}; {APPROVE}'",
    "su": f"su root -c '{APPROVE}'",
    "su -": f"su - root -c 'cd {{root}}; PATH={{bin}}:$PATH {APPROVE}'",
    "sudo": f"sudo -n {APPROVE}",
    "runuser": f"runuser -u root -- {APPROVE}",
    # A terminal, with an agent above it
    "script": f"script -qec '{APPROVE}' /dev/null",
    "script, clean": f"{CLEAN} script -qec '{APPROVE}' /dev/null",
    "script in script": f"{CLEAN} script -qec \"script -qec '{APPROVE}' /dev/null\" /dev/null",
    "script and setsid": f"{CLEAN} setsid -w script -qec '{APPROVE}' /dev/null",
    "su with a terminal": f"su --pty - root -c 'cd {{root}}; PATH={{bin}}:$PATH {APPROVE}'",
    "expect": f"expect -c 'spawn {APPROVE}; expect eof'",
    "socat": f"socat -u EXEC:'{APPROVE}',pty,ctty,setsid STDOUT",
    "pty.spawn": python("import pty\npty.spawn(['detent', 'approve', '-m', 'ok'])"),
    "pty.spawn, clean": python(
        "import os, pty\nos.environ.clear()\nos.environ['PATH'] = '{bin}:/usr/bin:/bin'\n"
        "pty.spawn(['detent', 'approve', '-m', 'ok'])"
    ),
    "pty.fork": python("import os\n" + AT_PTY.format(child=EXEC_CLEAN)),
    "tmux": f"tmux -L {{name}} new-session -d '{TOLD}; touch over'",
    "tmux of an agent, clean shell": f"tmux -L {{name}} new-session -d '{CLEAN} {TOLD}; touch over'",
    "screen": f"screen -dm bash -c '{TOLD}; touch over'",
    "re-parented, with its mark": python(f"{FORK}{AT_PTY.format(child=EXEC)}"),
    # The library
    "library": code(APPROVES),
    "library, clean": f"{CLEAN} {code(APPROVES)}",
    "library, cleared": code(f"import os; os.environ.clear(); {APPROVES}"),
    "library, unset": code(f"import os; [os.environ.pop(n, 0) for n in '{' '.join(MARKS)}'.split()]; {APPROVES}"),
    "library with a name": f"{CLEAN} {code(opened('ok', actor=repr('ada')))}",
    "library for somebody else": f"{CLEAN} {code(opened('ok', said=', stands_for=' + repr('ada')))}",
    "library with a person": f"{CLEAN} {code(person('TERMINAL') + opened('ok', actor='a'))}",
    "library with a proof": f"{CLEAN} {code(person('TERMINAL', PROOF) + opened('ok', actor='a'))}",
    "library as a page": f"{CLEAN} {code(person('PAGE', PROOF) + opened('ok', actor='a'))}",
    "library at a terminal": f'{CLEAN} script -qec "{code(APPROVES).replace(chr(34), chr(92) + chr(34))}" /dev/null',
    "library, a handle of a person": f"{CLEAN} {code(person('TERMINAL', PROOF) + HANDLE)}",
    "library, release": f"{CLEAN} {code(APPROVES.replace('approve', 'release'))}",
    "library, a bare event": f"{CLEAN} {code(EVENT)}",
}
#: Attempts whose program may not get as far as Detent here: no service answers it, or it may not enter.
MAY_NOT_ARRIVE = {"systemd-run", "ssh", "nsenter", "at", "sudo", "unshare network"}
#: What passes, with the sentence of docs/decisions.md that says so.
POSSIBLE = {
    "re-parented, clean, with a terminal of its own": (
        f"{CLEAN} " + python(f"{FORK}{AT_PTY.format(child=EXEC)}"),
        "a process whose parent has ended, with an emptied environment and a terminal of its own",
    ),
    "tmux, started clean": (
        f"{CLEAN} tmux -L {{name}} new-session -d '{TOLD}; touch over'",
        "`env -i tmux`",
    ),
    "own process namespace and terminal": (
        f"{CLEAN} unshare -pf --mount-proc script -qec '{APPROVE}' /dev/null",
        "a PID namespace of its own",
    ),
    "changed program": (
        f"{CLEAN} {code(person('TERMINAL', PROOF) + CHANGED + opened('ok', actor='a'))}",
        "code that changes Detent inside its own process",
    ),
}


#: Programs that are not everywhere.
RARE = {
    "node",
    "ruby",
    "busybox",
    "expect",
    "socat",
    "tmux",
    "screen",
    "ssh",
    "sudo",
    "perl",
    "su",
    "script",
    "setarch",
}
RARE |= {"setarch", "systemd-run", "nsenter", "unshare", "runuser", "setpriv", "chroot", "taskset", "prlimit"}


def installed(attempt: str) -> bool:
    """Whether the programs that the attempt is about are here."""
    words = RARE & set(re.findall(r"[a-z][a-z0-9-]*", attempt)) | ({"at"} if " at now" in attempt else set())
    return all(map(shutil.which, words))


def filled(attempt: str, shell: AgentShell) -> str:
    return (
        attempt.replace("{bin}", str(Path(sys.executable).parent))
        .replace("{root}", str(shell.root))
        .replace("{name}", shell.root.name)
    )


@pytest.mark.parametrize(("attempt", "mark"), sampled(list(zip(ATTEMPTS, cycle(MARKS), strict=False)), 30, "forging"))
def test_no_attempt_approves(attempt, mark, tmp_path):
    if not installed(ATTEMPTS[attempt]):
        pytest.skip(f"{attempt}: not installed")
    shell = AgentShell(tmp_path)

    ran = shell.run(filled(ATTEMPTS[attempt], shell), mark=mark)

    new = shell.new_commits()
    assert approvals(new) == [], ran.stderr
    assert new == []
    assert attempt in MAY_NOT_ARRIVE or "approve is a person's decision" in shell.said(ran), shell.said(ran)


@pytest.mark.parametrize("attempt", POSSIBLE)
def test_what_attended_cannot_stop_is_said(attempt, tmp_path):
    command, sentence = POSSIBLE[attempt]
    if not installed(command):
        pytest.skip(f"{attempt}: not installed")
    shell = AgentShell(tmp_path)

    ran = shell.run(filled(command, shell))

    assert len(approvals(shell.new_commits())) == 1, ran.stderr
    page = Path(__file__).parents[2] / "docs" / "decisions.md"
    assert sentence in " ".join(page.read_text().split())


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    "work",
    [
        f"env {UNSET} detent task add one",
        f"{CLEAN} DETENT_ACTOR=ada detent task add one",
        f"{CLEAN} python -c \"import detent; detent.open('.', actor='ada').session().tasks.add('one')\"",
    ],
    ids=["env -u", "env -i", "library"],
)
def test_every_commit_of_an_agents_shell_is_the_agents(mark, work, tmp_path):
    shell = AgentShell(tmp_path)

    ran = shell.run(work, mark=mark)

    [commit] = shell.new_commits()
    assert commit.actor.kind is ActorKind.AGENT, ran.stderr
    assert commit.actor.mark in (mark, *CLIENTS.values(), "detent")
