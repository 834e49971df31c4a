"""The reference is made from the code, links lead somewhere, and a page that is run tells the truth."""

from pathlib import Path

import pytest

from book import diagrams, man, reference
from book.executed import matches
from book.links import broken_links
from detent.cli.app import invoke
from detent.cli.commands.help import TOPICS, topic_page
from detent.cli.request import Request
from detent.config.settings import Settings
from detent.topics.walkthrough import Prose, Step, WrittenFile, parts

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("name", reference.pages())
def test_the_reference_is_current(name):
    """`make reference` writes it: a verb, an option, a key, an event or a field that is missing makes it stale."""
    assert (reference.PAGES / name).read_text("utf-8") == reference.pages()[name]


def test_the_man_page_is_current():
    assert man.PAGE.read_text("utf-8") == man.page()


def test_the_diagrams_are_current():
    assert {name: (diagrams.IMAGES / name).read_text("utf-8") for name in diagrams.diagrams()} == diagrams.diagrams()


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


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    pages += [f"concepts/{topic}.md" for topic in TOPICS]
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
