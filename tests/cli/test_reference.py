"""docs/cli.md has every verb with every option, and the schemas describe what Detent writes."""

import re
import shlex
from pathlib import Path

import click
import msgspec
import pytest

from detent.cli.app import GROUP, VERBS
from detent.cli.commands.schema import NAMES, schema_of
from detent.cli.plain import SIGNING
from detent.cli.shape import HistoryEntry, SessionDocument, StateDocument
from detent.core.gate.registry import decode_gate
from detent.core.session.events import Commit
from detent.core.workflow.graph import Workflow

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
CONTEXT = click.Context(GROUP)


def command_of(verb: str) -> click.Command:
    command = GROUP.get_command(CONTEXT, verb)
    assert command is not None
    return command


def all_of(verb: str) -> list[click.Command]:
    """The verb, and the words that may stand behind it."""
    command = command_of(verb)
    return [command, *command.commands.values()] if isinstance(command, click.Group) else [command]


def names_of(parameter: click.Parameter) -> list[str]:
    return [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")]


def section_of(verb: str) -> str:
    return re.search(rf"^### {verb}\n(.*?)(?=^##|\Z)", DOCS.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]


def common() -> set[str]:
    """The options that are documented once: those of all verbs, and those of all verbs that decide."""
    signing = {flag for option in SIGNING for flag in option.flags}
    return {name for parameter in GROUP.params for name in parameter.opts} | signing | {"--help"}


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_documented(verb):
    section = section_of(verb)
    options = {name for command in all_of(verb) for parameter in command.params for name in names_of(parameter)}
    assert [name for name in sorted(options - common()) if f"`{name}" not in section] == []
    documented = set(re.findall(r"`(-[-\w]+)", section))
    assert documented <= options | common()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_documented_with_an_example_that_can_be_parsed(verb):
    section = section_of(verb)
    examples = re.findall(rf"^ {{4}}(?:eval \"\$\()?detent ({verb}\b.*?)(?:\)\")?$", section, re.MULTILINE)
    assert examples
    for example in examples:
        _, *arguments = shlex.split(example.partition(" < ")[0])
        command_of(verb).make_context(verb, arguments, obj=type("Any", (), {})())


def test_the_options_of_all_verbs_are_documented():
    text = DOCS.read_text("utf-8")
    assert [name for name in common() if f"`{name}" not in text] == []


def test_one_line_says_the_same_in_the_list_and_in_the_help():
    for verb, told in VERBS.items():
        assert (command_of(verb).help or "").split("\n")[0] == told


@pytest.mark.parametrize("name", NAMES)
def test_schemas(detent, name):
    assert detent("schema", name).ok().json() == msgspec.json.decode(msgspec.json.encode(schema_of(name)))


def test_schema_without_a_name_lists_them(detent):
    assert detent("schema").ok().out.split() == list(NAMES)
    assert detent("schema", "nonsense").error()[0] == 2


def test_what_is_written_is_what_the_schemas_describe(session):
    session("finish", "-m", "Done", "--artifact", "a.md", "--deliverable", "x", "--tokens-in", "3").ok()
    session("cancel", "--reason", "enough").ok()
    session("start", "feature", "Again", "--branch", "b").ok()
    session("fail", "-m", "broken").ok()
    assert msgspec.json.decode(session("export", "state").out, type=StateDocument).workflow_history
    assert msgspec.json.decode(session("export", "session").out, type=SessionDocument).status == "active"
    assert msgspec.json.decode(session("export", "workflow").out, type=Workflow, dec_hook=decode_gate).name == "feature"
    for line in session("export", "history").out.splitlines():
        msgspec.json.decode(line, type=HistoryEntry)
    for line in session("export", "log").out.splitlines():
        msgspec.json.decode(line, type=Commit, dec_hook=decode_gate)
