"""Verbs that do without click: both readers of a command line agree, and unusual lines are left to click."""

from importlib import import_module

import click
import pytest

from detent.cli.app import GROUP
from detent.cli.plain import COMMON, PLAIN_VERBS, read_plain
from detent.cli.request import Request
from tests.support.command import loaded

PLAIN = [
    "status",
    "status --json --session WFS-x",
    "status -C sub --project web",
    "begin",
    "begin data --agent ada",
    "redo data --cascade --reason again",
    "finish -m Done",
    "finish data --message Done --artifact a --artifact b --deliverable x --context c --json",
    "finish -m one -m two --token data:1:2 --merged-commit 1a2b",
    "fail data -m broken --artifact a",
]
LEFT_TO_CLICK = [
    "status --help",
    "status extra",
    "begin --agent=ada",
    "begin --agen ada",
    "begin data more",
    "begin --agent",
    "redo --reason again",
    "finish",
    "finish -mDone",
    "finish -m -",
    "finish -m Done --tokens-in 3",
    "finish -m Done -- data",
]


def plain(line: str) -> dict[str, object] | None:
    verb, *words = line.split()
    return read_plain(import_module(f"detent.cli.commands.{verb}").PARAMETERS, words)


@pytest.mark.parametrize("line", PLAIN)
def test_both_readers_agree(line):
    verb, *words = line.split()
    request = Request()
    command = GROUP.get_command(click.Context(GROUP), verb)
    with command.make_context(verb, words, obj=request) as context:
        values = {**context.params, **{option.name: getattr(request, option.name) for option in COMMON}}
    untouched = {option.name: getattr(Request(), option.name) for option in COMMON}

    assert {**untouched, **(plain(line) or {})} == values


@pytest.mark.parametrize("line", LEFT_TO_CLICK)
def test_anything_unusual_is_left_to_click(line):
    assert plain(line) is None


def test_a_token_of_the_environment_counts(monkeypatch):
    monkeypatch.setenv("DETENT_TOKEN", "data:1:2")

    assert plain("finish -m Done")["token"] == "data:1:2"
    assert plain("finish -m Done --token other:1:1")["token"] == "other:1:1"


def test_they_load_neither_click_nor_what_few_sessions_need(session):
    for line in ("finish -m Done", "begin", "fail -m broken", "redo 03-architecture", "status"):
        assert line.split()[0] in PLAIN_VERBS
        modules = loaded(session, *line.split())
        assert not modules & {"click", "typing_extensions", "detent.core.redact.name", "detent.documents.task_page"}


def test_status_loads_nothing_that_only_a_change_needs(session):
    modules = loaded(session, "status")

    only_for_changes = ("commands", "decide", "decide_phase")
    assert not modules & {f"detent.core.session.{name}" for name in only_for_changes}
    assert not modules & {"detent.engine.policy", "detent.engine.session", "detent.documents.state"}
    assert not modules & {"detent.engine.reconcile", "detent.core.session.slug", "detent.core.session.handover"}
    assert not modules & {"detent.store.recovery", "detent.render.json.record", "detent.render.terminal.decisions"}
    # msgspec would load all of them.
    assert not modules & {"typing_extensions", "inspect", "uuid", "platform", "decimal", "textwrap", "msgspec.inspect"}
    assert not modules & {"hashlib", "threading", "unicodedata"}
