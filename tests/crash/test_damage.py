"""Random damage to the record of one session: the others work on, and a repair keeps every commit that verifies.

`make soak` strikes a thousand times, with a seed of its own that it prints; `make test` fifty times, always the same.
"""

import random
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest

from detent.cli.main import run
from detent.doctor.finding import ERROR
from detent.doctor.invariants import check
from detent.errors import Corrupt
from tests.support.campaign import IS_WHOLE, SEED
from tests.support.damaged_project import NAMES, DamagedProject, chosen_strikes, texts
from tests.support.values import row

PARTS = 10
STRIKES = 1_000 if IS_WHOLE else 50
#: A soak ends after this time, and says how far it came.
LIMIT_S = 1_800 / PARTS


@pytest.fixture
def place(quick_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(quick_path / "home"))
    return DamagedProject(quick_path)


@pytest.mark.parametrize("part", range(PARTS))
def test_damage_to_a_session_never_reaches_the_others_and_can_be_mended(place, part, capsys):
    done: Counter[str] = Counter()
    began = time.monotonic()

    for number in range(part, STRIKES, PARTS):
        if time.monotonic() - began > LIMIT_S:
            break
        strikes = strike(place, random.Random(f"{SEED}-{number}"), f"seed {SEED}, number {number}")
        done.update(each.name for each in strikes)

    if IS_WHOLE:
        with capsys.disabled():
            sys.stdout.write(f"\n  seed {SEED}, part {part + 1} of {PARTS}: {texts(done)}\n")
    assert done


def strike(place, chance, label):
    place.restore()
    victim, strikes = chance.choice(NAMES), chosen_strikes(chance)
    label = f"{label}: {', '.join(each.name for each in strikes)} of {victim}"
    with place.open() as project:
        before = place.states(project)
    for each in strikes:
        each.act(place, victim, chance)
    kept = place.survivors(victim)
    others = [name for name in NAMES if name != victim]

    if all(each.spares for each in strikes):
        works_without(place, others, before, label)

    assert run(["doctor", "--fix", "--yes", "-C", str(place.root)]) == 0, label

    # Documents of commits that are lost, and those without a ledger, stay as edits of a person.
    is_whole = len(kept) == len(place.lines[victim]) and "remove documents" not in label
    ignored = () if is_whole else ("I2", "I8")
    with place.open() as project:
        assert problems(project, ignored) == [], label
        for name in others:
            assert project.session(name).state.tasks.counts.keys() <= before[name].tasks.counts.keys(), label
        assert kept == [] or victim in project.store.sessions(), label
        lines = place.journal(victim).read_bytes().splitlines(keepends=True) if kept else []
        assert lines[: len(kept)] == kept, f"{label}: a commit that verified is gone"
        for name in NAMES:
            if name in project.store.sessions():
                project.session(name).tasks.add("it goes on")
        project.start(row("x"), "and another can start")
        project.flush()
        assert problems(project, ignored) == [], label
    return strikes


def problems(project, ignored):
    return [finding for finding in check(project) if finding.severity == ERROR or finding.invariant not in ignored]


def works_without(place, others, before, label):
    """The other sessions while one is damaged, and a new one."""
    done = False
    # The documents of the damaged session wait until it is mended.
    with suppress(Corrupt), place.open() as project:
        project.reconcile()
        for name in others:
            state = project.session(name).state
            assert state.tasks.counts == before[name].tasks.counts, label
            project.session(name).tasks.add("meanwhile")
        project.sessions.switch(others[0])
        started = project.start(row("x"), "another one")
        started.cancel("enough")
        project.sessions.switch(others[1])
        done = True
    assert done, label
