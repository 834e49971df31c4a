"""Attempts to forge a person's approval from an agent's shell, made by real processes.

Each is refused, or it is one of the few that docs/decisions.md names as possible. A program that is not installed here
is left out.
"""

import re
import shutil
import sys
from itertools import cycle, product
from pathlib import Path

import pytest

from detent.core.actor import ActorKind, Assurance
from detent.core.session.events import SettingsChanged
from detent.doctor.verification import Demands
from detent.engine.project import open_project
from tests.support.agent_shell import CLIENTS, MARKS, AgentShell, approvals
from tests.support.campaign import sampled
from tests.support.keys import Device, approvers, list_approvers, make_ssh_key
from tests.support.records import problems, verified_elsewhere

APPROVE = "detent approve -m ok"
#: For attempts in the background or at another terminal: what is said is kept in a file.
TOLD = f"{APPROVE} >said 2>&1"
UNSET = " ".join(f"-u {mark}" for mark in MARKS)
CLEAN = 'env -i PATH="$PATH" HOME="$HOME"'
PROOF = ", proof=Proof(assurance=Assurance.ATTENDED, method='tty', identity='ada', statement='terminal /dev/pts/1')"
FORK = "import os, sys\nif os.fork(): sys.exit()\nos.setsid()\nif os.fork(): os._exit(0)\n"
#: At a terminal of its own, where yes is typed when Detent asks.
AT_PTY = (
    "import pty, time\npid, fd = pty.fork()\n"
    "if pid == 0: {child}\n"
    "try:\n  while data := os.read(fd, 999):\n    open('said', 'ab').write(data)\n"
    "    if b'[y/N]' in data: os.write(fd, b'y\\n')\nexcept OSError: pass\n"
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
    "import detent.engine.project as j; j.confirm = lambda _: None; "
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
        f"{CLEAN} tmux -L {{name}} new-session -d '{TOLD}; touch over'; tmux -L {{name}} send-keys y Enter",
        "`env -i tmux`",
    ),
    "own process namespace and terminal": (
        f"(sleep 1; echo y; sleep 5) | {CLEAN} unshare -pf --mount-proc script -qec '{APPROVE}' /dev/null",
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


@pytest.mark.parametrize(("attempt", "mark"), sampled(list(zip(ATTEMPTS, cycle(MARKS), strict=False)), 14, "forging"))
def test_no_attempt_approves(attempt, mark, tmp_path):
    if not installed(ATTEMPTS[attempt]):
        pytest.skip(f"{attempt}: not installed")
    shell = AgentShell(tmp_path)

    ran = shell.run(filled(ATTEMPTS[attempt], shell), mark=mark)

    new = shell.new_commits()
    assert approvals(new) == [], ran.stderr
    # Edited settings are recorded.
    assert [event for commit in new for event in commit.events if not isinstance(event, SettingsChanged)] == []
    assert attempt in MAY_NOT_ARRIVE or "approve is a person's decision" in shell.said(ran), shell.said(ran)


STRICT = list(product(ATTEMPTS, (Assurance.SIGNED, Assurance.HARDWARE)))


@pytest.mark.parametrize(("attempt", "assurance"), sampled(STRICT, 8, "strict"))
def test_no_attempt_approves_where_a_signature_is_asked_for(attempt, assurance, tmp_path, tmp_path_factory):
    if not installed(ATTEMPTS[attempt]):
        pytest.skip(f"{attempt}: not installed")
    key = Device().key if assurance is Assurance.HARDWARE else make_ssh_key(tmp_path_factory.mktemp("keys") / "ada")
    list_approvers(tmp_path, ada=key)
    shell = AgentShell(tmp_path, f'{{ kind = "approval", assurance = "{assurance}" }}')

    ran = shell.run(filled(ATTEMPTS[attempt], shell))

    assert approvals(shell.new_commits()) == [], ran.stderr


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


#: What becomes of an attempt: nothing is recorded; it is recorded, and found where its proof is checked; it passes.
REFUSED, FOUND, PASSES = "refused", "found", "passes"


def orphan(*words: str) -> str:
    """A process whose parent has ended, at a terminal of its own, with an emptied environment."""
    return f"{CLEAN} " + python(FORK + AT_PTY.format(child=f"os.execvp('detent', {['detent', *words]!r})"))


def library(text: str, *, aside: bool = False) -> str:
    """A program in a file of its own; `aside`: its parent has ended."""
    start = "(setsid python .git/try.py; touch over) &" if aside else "python .git/try.py"
    return f"mkdir -p .git; cat > .git/try.py <<'END'\n{text}\nEND\n{CLEAN} bash -c '{start}'"


SIGNED = ("approve", "-m", "ok", "--sign", "--key")
MALLORY = "mkdir -p .git; ssh-keygen -q -t ed25519 -N '' -f .git/mallory; "
LISTING = """printf '[[approver]]\nname = "ada"\nkeys = [{type = "ssh", key = "%s"}]\n' \\
    "$(cut -d' ' -f1,2 .git/mallory.pub)" """
#: The proof of an approver, with a signature that is none.
FAKED = """
import detent
import detent.engine.proofs as proofs
from detent.core.actor import Assurance, Proof
from detent.core.decision.statement import read_statement, signed_bytes
project = detent.open(".")
session = project.session()
said = session.statement(lambda each: each.approve("ok"), approver="ada")
key = project.approvers.read().approver[0].keys[0].id
fake = Proof(
    assurance=Assurance.HARDWARE, method="ssh-sk", statement=signed_bytes(said).decode(), signature="AAAA", key=key
)
"""
LIES = """
proofs.verify_proof = lambda proof, _: proofs.Verified("ada", (), Assurance.HARDWARE, read_statement(proof.statement))
"""
#: Everything that looks at the process or at the strength of a proof is replaced.
WEAKENED = """
import detent
import detent.engine.policy as policy, detent.engine.project as project, detent.engine.session as session
from detent.core.actor import *
proof = Proof(assurance=Assurance.ATTENDED, method="tty", identity="ada", statement="terminal /dev/pts/1")
ada = Actor(name="ada", kind=ActorKind.PERSON, channel=Channel.TERMINAL, proof=proof)
policy.attended = lambda actor, _: ada
policy.check_strength = session.check_strength = lambda *_: None
session.account = lambda: "ada"
project.confirm = lambda _: None
"""
#: A commit that the library never saw.
APPENDED = """
import detent, msgspec
from detent.core.actor import *
from detent.core.session.events import *
from detent.core.session.evolve import evolve, fingerprint
project = detent.open(".")
journal = project.journal(project.session().id)
before = journal.session()
fake = Proof(assurance=Assurance.HARDWARE, method="webauthn", identity="ada", statement="x", signature="AAAA", key="k")
ada = Actor(name="ada", kind=ActorKind.PERSON, channel=Channel.TERMINAL, proof=fake)
vote = VoteCast(phase="work", gate="approval", approver="ada", approve=True, reason="ok")
commit = Commit(version=before.version + 1, at=project.clock(), actor=ada, events=(vote,), state="")
commit = msgspec.structs.replace(commit, state=fingerprint(evolve(before, commit)))
project.store.append(journal.id, journal.end, commit)
"""
#: Each with what becomes of it where a vote must be attended, signed or hardware. `{key}` is the SSH key of an
#: approver: in a file that the agent can read, or only its public part where the key is in a device.
STRONGER = {
    **{name: (command, (PASSES, REFUSED, REFUSED)) for name, (command, _) in POSSIBLE.items()},
    "the key of a person, in the shell of an agent": (
        "detent approve -m ok --sign --key {key}",
        (REFUSED, REFUSED, REFUSED),
    ),
    "the key of a person, cleaned": (
        f"{CLEAN} detent approve -m ok --sign --key {{key}}",
        (REFUSED, REFUSED, REFUSED),
    ),
    "the key of a person, re-parented": (orphan(*SIGNED, "{key}"), (PASSES, PASSES, REFUSED)),
    "the key of a person, in a service": (
        f"({CLEAN} setsid bash -c 'sleep 0.5; detent approve -m ok --sign --key {{key}} >said 2>&1; touch over' &)",
        (PASSES, PASSES, REFUSED),
    ),
    "a key of its own": (MALLORY + orphan(*SIGNED, ".git/mallory"), (REFUSED, REFUSED, REFUSED)),
    "a list of approvers of its own": (
        f"{MALLORY}{LISTING} > approvers.toml; {orphan(*SIGNED, '.git/mallory')}",
        (FOUND, FOUND, REFUSED),
    ),
    "weaker settings": (
        "sed -i 's/signed/attended/; s/hardware/attended/' detent.toml; " + orphan("approve", "-m", "ok"),
        (PASSES, REFUSED, REFUSED),
    ),
    "the phase skipped": (orphan("skip", "work", "-m", "ok"), (PASSES, REFUSED, REFUSED)),
    "an end by force": (orphan("complete", "--force"), (PASSES, REFUSED, REFUSED)),
    "every gate opened by hand": (orphan("release", "-m", "ok"), (PASSES, REFUSED, REFUSED)),
    "a rollback of the record": (
        orphan("rollback", "PRE_work_v1", "--yes"),
        (PASSES, FOUND, FOUND),
    ),
    "a signature that is none": (library(f"{FAKED}session.approve('ok', proof=fake)"), (REFUSED, REFUSED, REFUSED)),
    "a verifier that says yes": (
        library(f"{FAKED}{LIES}session.approve('ok', proof=fake)", aside=True),
        (FOUND, FOUND, FOUND),
    ),
    "a program that takes every proof for strong enough": (
        library(f"{WEAKENED}detent.open('.', actor=ada).session().approve('ok')"),
        (PASSES, FOUND, FOUND),
    ),
    "a line in the journal with a valid chain": (library(APPENDED), (FOUND, FOUND, FOUND)),
}


def found_elsewhere(shell, directory, demands):
    """What `detent verify` finds in the bundle of the session, with approvers that the agent cannot change."""
    with open_project(shell.root, actor="ada") as project:
        [session] = project.store.sessions()
        return problems(verified_elsewhere(project, session, directory, demands))


@pytest.mark.parametrize(("attempt", "assurance"), sampled(list(product(STRONGER, Assurance)), 15, "assurance"))
def test_what_each_assurance_stops(attempt, assurance, tmp_path, tmp_path_factory):
    """With `hardware`, what passes on this machine is found where the record is verified with the real approvers."""
    command, outcomes = STRONGER[attempt]
    if not installed(command):
        pytest.skip(f"{attempt}: not installed")
    keys = tmp_path_factory.mktemp("keys")
    if assurance is Assurance.HARDWARE:
        known = Device().key
        (keys / "ada.pub").write_text(f"{known.key}\n")
    else:
        known = make_ssh_key(keys / "ada")
    list_approvers(tmp_path, ada=known)
    shell = AgentShell(tmp_path, f'{{ kind = "approval", assurance = "{assurance}" }}')

    ran = shell.run(filled(command, shell).replace("{key}", str(keys / "ada")))

    decided = [commit for commit in shell.new_commits() if commit.actor.proof is not None]
    demands = Demands(approvers=approvers(ada=known), assurance=assurance)
    outcome = REFUSED if not decided else FOUND if found_elsewhere(shell, keys, demands) else PASSES
    assert outcome == dict(zip(Assurance, outcomes, strict=True))[assurance], shell.said(ran)


def test_with_hardware_and_a_verification_elsewhere_nothing_passes():
    assert [name for name, (_, (_, _, hardware)) in STRONGER.items() if hardware == PASSES] == []


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
