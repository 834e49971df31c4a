"""Telling an agent's process from a person's, by what is known of the processes that started it."""

import pytest

from detent.core.actor import (
    MAX_CHAIN,
    Actor,
    ActorKind,
    Ancestor,
    Assurance,
    Channel,
    Proof,
    chain_text,
    sign_of_agent,
    spoken_as,
)

MARKS = {"CLAUDECODE": "claude-code", "CODEX_CI": "codex"}
PROGRAMS = {"claude": "claude-code", "codex": "codex"}


def process(program, *variables, pid=7, names=()):
    return Ancestor(pid, program, frozenset({program, *names}), frozenset({"PATH", *variables}))


UNREADABLE = Ancestor(1, "sshd", frozenset({"sshd"}), None)
SHELL, DETENT = process("bash"), process("detent")


@pytest.mark.parametrize(
    ("lineage", "client", "said"),
    [
        ((process("detent", "CODEX_CI"), SHELL), "codex", "CODEX_CI is set"),
        (
            (DETENT, SHELL, process("bash", "CLAUDECODE", pid=9), SHELL),
            "claude-code",
            "CLAUDECODE is set in process 9 (bash) above it",
        ),
        (
            (DETENT, UNREADABLE, Ancestor(5, "claude", frozenset({"claude"}), None)),
            "claude-code",
            "process 5 (claude) started it",
        ),
        (
            (DETENT, process("node", names=["codex"], pid=6)),
            "codex",
            "process 6 (node) started it",
        ),
    ],
)
def test_a_mark_or_a_program_anywhere_above_is_a_sign(lineage, client, said):
    sign = sign_of_agent(lineage, MARKS, PROGRAMS)

    assert sign is not None
    assert (sign.client, sign.describe()) == (client, said)


@pytest.mark.parametrize(
    "lineage", [(), (DETENT, SHELL), (DETENT, SHELL, UNREADABLE), (DETENT, process("claudette")), (process("codex"),)]
)
def test_what_shows_no_sign_is_a_persons(lineage):
    assert sign_of_agent(lineage, MARKS, PROGRAMS) is None


def test_the_nearest_sign_counts():
    lineage = (DETENT, process("bash", "CODEX_CI"), process("bash", "CLAUDECODE"))

    sign = sign_of_agent(lineage, MARKS, PROGRAMS)

    assert sign is not None
    assert sign.client == "codex"


def test_the_chain_says_what_could_not_be_read_and_is_bounded():
    assert chain_text((DETENT, SHELL, UNREADABLE)) == "detent < bash < sshd (environment unknown)"
    assert chain_text((DETENT, SHELL, SHELL, DETENT)) == "detent < bash < detent"
    deep = chain_text((DETENT, SHELL) * MAX_CHAIN)
    assert (deep.count("bash") + deep.count("detent"), deep[-3:]) == (MAX_CHAIN, "< …")


@pytest.mark.parametrize(
    ("identity", "name", "shown"),
    [("ada", "ada", "ada"), ("ada", "bob", "ada, as bob"), ("ada", "", "ada"), ("", "bob", "bob")],
)
def test_an_identity_is_shown_before_the_name_that_it_used(identity, name, shown):
    assert spoken_as(identity, name) == shown


def test_a_decision_is_by_its_identity_and_work_by_its_name():
    worker = Actor(name="bob", kind=ActorKind.PERSON, channel=Channel.TERMINAL)
    proof = Proof(assurance=Assurance.ATTENDED, method="tty", identity="ada")
    decider = Actor(name="bob", kind=ActorKind.PERSON, channel=Channel.TERMINAL, proof=proof)

    assert (worker.identity, worker.shown) == ("bob", "bob")
    assert (decider.identity, decider.shown) == ("ada", "ada, as bob")
