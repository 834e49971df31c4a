"""The reference is made from the code, links lead somewhere, and a page that is run tells the truth."""

import re
from pathlib import Path
from typing import get_args

import click
import pytest

import detent
from book import diagrams, man, recording, reference
from book.executed import matches
from book.links import broken_links
from detent.cli.app import GROUP, GROUPS, invoke
from detent.cli.commands.help import topic_page
from detent.cli.commands.schema import schema_of
from detent.cli.request import Request
from detent.config.settings import Settings
from detent.core.session.events import Event
from detent.documents import state
from detent.engine.session import SessionHandle
from detent.errors import DetentError
from detent.topics import TOPICS
from detent.topics.walkthrough import Prose, Step, WrittenFile, parts

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
VERBS = (reference.PAGES / "verbs.md").read_text("utf-8")
#: Public names that are no functions: constants, a value, and the modules with a section of their own.
NO_FUNCTIONS = {"detent.__version__", "DEDUP_S", "MAX_ESCALATIONS", "Violation"}


def commands(command: click.Command, words: str) -> list[tuple[str, click.Command]]:
    below = command.commands.items() if isinstance(command, click.Group) else ()
    return [(words, command), *(each for name, one in below for each in commands(one, f"{words} {name}"))]


def test_the_reference_is_current():
    """`make reference` writes it: a verb, an option, a key, an event or a field that is missing makes it stale."""
    for name, text in reference.pages().items():
        assert (reference.PAGES / name).read_text("utf-8") == text


# What the reference must have, asked in another way than the generator asks it


def test_the_reference_has_every_verb_and_option():
    missing = []
    for name in (name for verbs in GROUPS.values() for name, _ in verbs):
        verb = GROUP.get_command(click.Context(GROUP), name)
        assert verb is not None
        for words, command in commands(verb, name):
            section = VERBS.partition(f"\n### {words}\n")[2].partition("\n### ")[0]
            options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
            flags = [flag for each in options for flag in each.opts]
            missing += [f"{words} {flag}" for flag in flags if not is_row(flag, section)]
            missing += [] if section else [words]
    assert missing == []


def is_row(flag: str, section: str) -> bool:
    return re.search(rf"^\| `(?:.*, )?{flag}[, `]", section, re.MULTILINE) is not None


def test_no_list_of_verbs_cuts_a_sentence():
    verbs = [GROUP.get_command(click.Context(GROUP), name) for group in GROUPS.values() for name, _ in group]
    groups = [verb for verb in verbs if isinstance(verb, click.Group)]
    shown = [line for group in groups for line in group.get_help(click.Context(group, info_name="x")).splitlines()]

    assert len(groups) > 5
    assert [line for line in shown if line.endswith("...") and not line.startswith("Usage:")] == []


@pytest.mark.parametrize(
    ("schema", "pages"),
    [
        ("detent.toml", ["settings.md", "gate-kinds.md"]),
        ("journal", ["events.md", "gate-kinds.md", "values.md"]),
        ("workflow", ["values.md", "gate-kinds.md"]),
        ("session", ["documents.md"]),
        ("state", ["documents.md"]),
        ("task", ["documents.md"]),
        ("history", ["documents.md"]),
        ("approvers.toml", ["values.md"]),
    ],
)
def test_the_reference_has_every_field_of_a_schema(schema, pages):
    """A field is a row of a table, in the section that has the name of its table, event or document."""
    shown = "\n".join((reference.PAGES / page).read_text("utf-8") for page in pages)
    fields = set(re.findall(r"^\| `([^`]+)` \|", shown, re.MULTILINE))
    tables = set(re.findall(r"^## `?\[*([^`\]\n]+)", shown, re.MULTILINE))
    named = fields | {part for table in tables for part in table.split(".")}

    assert sorted(properties(schema_of(schema)) - named) == []


def properties(schema: object) -> set[str]:
    """The names of all properties of a JSON Schema."""
    if isinstance(schema, list):
        return {name for each in schema for name in properties(each)}
    if not isinstance(schema, dict):
        return set()
    own = set(schema["properties"]) - {"type", "kind"} if isinstance(schema.get("properties"), dict) else set()
    return own | {name for each in schema.values() for name in properties(each)}


def test_the_reference_has_every_event():
    assert {f"## `{event.__struct_config__.tag}`" for event in get_args(Event)} <= set(
        (reference.PAGES / "events.md").read_text("utf-8").splitlines()
    )


def test_the_reference_has_every_public_name_of_the_library():
    page = (reference.PAGES / "python.md").read_text("utf-8")
    methods = [name for owner in (detent.Project, detent.Runner, SessionHandle) for name in dir(owner)]
    names = [*(f"detent.{name}" for name in detent.__all__), *state.__all__, *methods]
    public = {name for name in names if not name.startswith("_") and name not in NO_FUNCTIONS}

    assert sorted(name for name in public if not re.search(rf"`(?:async )?{re.escape(name)}[(:`]", page)) == []


def test_the_reference_has_every_error():
    page = (reference.PAGES / "exit-codes.md").read_text("utf-8")
    kinds = {each.kind: each.exit_code for each in all_errors(DetentError)}

    assert {"usage", "gate_closed", "corrupt"} <= kinds.keys()
    assert [kind for kind, code in kinds.items() if f"| {code} | `{kind}` |" not in page] == []


def all_errors(base: type[DetentError]) -> list[type[DetentError]]:
    return [each for direct in base.__subclasses__() for each in (direct, *all_errors(direct))]


def test_the_man_page_is_current():
    assert man.PAGE.read_text("utf-8") == man.page()


def test_the_diagrams_are_current():
    assert {name: (diagrams.IMAGES / name).read_text("utf-8") for name in diagrams.diagrams()} == diagrams.diagrams()


def test_the_recording_shows_the_tutorial():
    steps = recording.shown_steps(recording.PAGE.read_text("utf-8"))

    assert len(steps) == 3
    assert recording.PICTURE.read_text("utf-8") == recording.drawn(steps)


def test_every_setting_says_what_it_means():
    tables = {id(struct): (table, struct) for table, struct in reference.tables(Settings)}.values()
    silent = [
        f"{table}.{field.name}" for table, struct in tables for field in reference.keys_of(struct) if not field.meaning
    ]
    assert silent == []


def test_every_link_and_anchor_leads_somewhere():
    pages = [*ROOT.glob("*.md"), *sorted(DOCS.rglob("*.md"))]
    assert len(pages) > 30
    assert broken_links(pages, ROOT) == []


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    (tmp_path / "there.md").write_text("# A heading\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md#a-heading) [b](there.md#other) [c](gone.md) `[d](no.md)` [e](https://example.org)\n")
    problems = broken_links([page], tmp_path)
    assert problems == ["page.md: there.md#other names no heading", "page.md: gone.md does not exist"]


def test_a_picture_that_is_missing_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '<picture>\n  <source media="(x)" srcset="dark.png">\n  <img src="light.png" alt="a">\n</picture>\n'
    )
    problems = broken_links([page], tmp_path)
    assert problems == ["page.md: dark.png does not exist", "page.md: light.png does not exist"]


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    pages += [f"concepts/{topic}.md" for topic in (*TOPICS, "tour")]
    assert [page for page in pages if f" {page}\n" not in navigation] == []


def test_the_parts_of_a_page_that_is_run():
    page = (
        '<!-- run\ntouch x\n-->\n\n```toml title="a.toml"\nx = 1\n```\n\n'
        "```console\n$ ls \\\n  x\nx\n$ false  # exit code 1\n```\n\n```sh\nnot run\n```\n"
    )
    assert list(parts(page)) == [
        Step("touch x\n", None),
        WrittenFile("a.toml", "x = 1\n"),
        Step("ls \\\n  x", ["x"]),
        Step("false", [], 1),
        Prose("```sh\nnot run\n```"),
    ]


def test_other_output_than_the_page_says_is_noticed():
    assert matches(["a", "…", "d"], ["a", "b", "c", "d"])
    assert matches(["a.b"], ["a.b"])
    assert not matches(["a.b"], ["acb"])
    assert not matches(["a", "…", "d"], ["a", "b", "c"])
    assert not matches([], ["a"])


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_fits_a_terminal(topic, capsys):
    invoke(["help", topic], Request())

    page = topic_page(topic)
    assert capsys.readouterr().out.startswith(page)
    assert [line for line in page.splitlines() if len(line) > 80] == []
