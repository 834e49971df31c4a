"""Ways to open a tests gate without tests that pass: what each comes to with default settings.

The table is in `tests/support/cheats.py`. A row is tried by hand, then in a run.
"""

import shutil

import pytest

from detent.core.gate.evidence import GateState
from detent.core.session.status import Status
from detent.engine.project import open_project
from detent.errors import GateClosed
from tests.support.campaign import sampled
from tests.support.cheats import (
    BROKEN,
    CHEATS,
    CODE,
    COMMAND,
    FILES,
    GATE,
    MEND,
    OPEN,
    OPEN_BY_HAND,
    SETTINGS,
    Work,
    python_on_path,
)
from tests.support.project import build_project
from tests.support.scripted_run import Cast, bounded, done, scenes

PHASE = "06-implementation"
CLASSES = 13
LEAST = 44


ROWS = [pytest.param(cheat, id=f"{cheat.kind}: {cheat.name}") for cheat in CHEATS]


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PATH", python_on_path())


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A function that makes a project in which a session has just begun to implement, and copies it afterwards."""
    made = {}

    def make(settings, target):
        if settings not in made:
            root = tmp_path_factory.mktemp("begun") / "project"
            build_project(root, settings, files=FILES)
            with open_project(root, actor="tester") as project:
                handle = project.start(MEND, "mend it")
                handle.finish("traced")
                handle.begin()
            made[settings] = root
        shutil.copytree(made[settings], target)
        return target

    return make


def opens(handle):
    """Whether the phase can be finished. A check that the cheat left out is made first."""
    if handle.state.phases[PHASE].gates.get(GATE, GateState()).receipt is None:
        handle.gates.run(GATE)
    try:
        handle.finish("done")
    except GateClosed:
        return False
    return True


def test_the_table_has_every_class_and_at_most_three_ways_stay_open():
    assert len({cheat.kind for cheat in CHEATS}) == CLASSES
    assert len(CHEATS) - len(OPEN) >= LEAST
    assert {cheat.name for cheat in CHEATS if cheat.kind == "code under test"} > OPEN


def test_honest_work_opens_the_gate(begun, tmp_path):
    with open_project(begun(SETTINGS, tmp_path / "project"), actor="tester") as project:
        handle = project.session()

        handle.gates.run(GATE)

        [judged] = handle.gates.judgements(PHASE)[PHASE]
        assert judged.reason == f"passed: {COMMAND}: 3 tests (start: 3)"
        assert opens(handle)


@pytest.mark.parametrize("cheat", sampled(ROWS, 14, "by hand"))
def test_by_hand_no_cheat_opens_the_gate(cheat, begun, tmp_path):
    root = begun(cheat.settings, tmp_path / "project")
    with open_project(root, actor="tester") as project:
        handle = project.session()
        work = Work(root, handle, PHASE)
        work.write("calc.py", BROKEN)
        cheat.act(work)

        assert opens(handle) is (cheat.name in OPEN_BY_HAND)


@pytest.mark.parametrize("cheat", sampled(ROWS, 8, "in a run"))
def test_in_a_run_no_cheat_completes_the_phase(cheat, tmp_path):
    build_project(tmp_path, cheat.settings, files=FILES)
    with scenes(tmp_path) as make:
        scene = make("", more=cheat.settings, workflow=MEND)

        def act(turn, stopping):
            if turn.phase == PHASE:
                work = Work(tmp_path, scene.handle, PHASE)
                work.write("calc.py", BROKEN)
                cheat.act(work)
            yield done()

        bounded(scene, Cast(act), turns=1, attempts=1)

        assert (scene.session.phases[PHASE].status is Status.COMPLETED) is (cheat.name in OPEN)
        if cheat.kind == "rewritten store":
            # The doctor finds it; that is shown elsewhere.
            shutil.rmtree(tmp_path / ".workflow" / scene.handle.id / "evidence")


def test_a_run_with_honest_work_completes_the_phase(tmp_path):
    build_project(tmp_path, SETTINGS, files=FILES | {"calc.py": BROKEN})
    with scenes(tmp_path) as make:
        scene = make("", more=SETTINGS, workflow=MEND)

        def act(turn, stopping):
            (tmp_path / "calc.py").write_text(CODE)
            yield done()

        bounded(scene, Cast(act), turns=1, attempts=1)

        assert scene.is_completed(PHASE, "16-quality-loop")
