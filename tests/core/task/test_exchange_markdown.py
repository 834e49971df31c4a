import msgspec
from hypothesis import given
from hypothesis import strategies as st

from detent.core.task.exchange.draft import Draft, walk
from detent.core.task.exchange.markdown import read_markdown, to_markdown
from detent.core.task.title import escaped, one_line, unescaped
from tests.support.task_model import S, calm, number, sound_rows

titles = st.text(max_size=30) | st.text(alphabet="a b*_[]()\\`<>|~&#.:12→- ", max_size=20)
tricky = [
    "a (active)",
    "b (depends on: 1)",
    "**x**: y",
    "c → [d](e)",
    "1. f",
    "\\(g)",
    "[x] h",
    "i \\",
    "(blocked) (failed)",
]


def told(drafts: tuple[Draft, ...]) -> list[tuple[str, str, S, tuple[str, ...], int]]:
    return [(each.source_id, each.title, each.status, each.depends_on, len(each.subtasks)) for each in walk(drafts)]


@calm
@given(sound_rows(), st.lists((titles | st.sampled_from(tricky)).filter(one_line), min_size=20, max_size=20))
def test_an_exported_checklist_is_read_back(rows, texts):
    listed = [
        msgspec.structs.replace(rows[id_], title=t) for id_, t in zip(sorted(rows, key=number), texts, strict=False)
    ]

    drafts = read_markdown(to_markdown(listed))

    count = {row.id: sum(other.parent == row.id for other in listed) for row in listed}
    assert told(drafts) == [(r.id, one_line(r.title), r.status, r.depends_on, count[r.id]) for r in listed]


@calm
@given(titles)
def test_an_escaped_title_is_read_back(title):
    assert unescaped(escaped(title)) == one_line(title)


def test_items_without_numbers_get_their_positions():
    text = "# Plan\n\nText\n- [ ] One\n  - [x] Part\n\t- [ ] Deeper\n* [X] Two (depends on: 1, 1.1)\n"
    text += "- no item\n1. [ ] Three (blocked)\n"

    assert told(read_markdown(text)) == [
        ("1", "One", S.CONTAINER, (), 1),
        ("1.1", "Part", S.CONTAINER, (), 1),
        ("1.1.1", "Deeper", S.PENDING, (), 0),
        ("2", "Two", S.COMPLETED, ("1", "1.1"), 0),
        ("3", "Three", S.BLOCKED, (), 0),
    ]


def test_numbers_are_ids_and_nest_without_indentation():
    text = "- [ ] 7. Seven\n- [ ] 7.1 Part\n- [x] 7.2 Other (needs 7.1)\n- [ ] T012 Twelve (after: 7 and 7.2)\n"

    assert told(read_markdown(text)) == [
        ("7", "Seven", S.CONTAINER, (), 2),
        ("7.1", "Part", S.PENDING, (), 0),
        ("7.2", "Other", S.COMPLETED, ("7.1",), 0),
        ("T012", "Twelve", S.PENDING, ("7", "7.2"), 0),
    ]


def test_headings_contain_the_items_below_them_if_asked():
    text = "# Empty\n## Build ##\n- [ ] 1. a\n## Ship\n- [ ] 1. b\n"

    assert told(read_markdown(text)) == [("1", "a", S.PENDING, (), 0), ("2", "b", S.PENDING, (), 0)]
    assert told(read_markdown(text, headings=True)) == [
        ("1", "Build", S.CONTAINER, (), 1),
        ("1.1", "a", S.PENDING, (), 0),
        ("2", "Ship", S.CONTAINER, (), 1),
        ("2.1", "b", S.PENDING, (), 0),
    ]


def test_code_is_no_checklist():
    assert read_markdown("```\n- [ ] x\n```\n") == ()


def test_a_generated_list_of_ours_is_read_without_its_links():
    text = "- [x] **IMPL-002**: Simple \\[x\\] → [📋](./.task/IMPL-002.json) | [✅](./.summaries/IMPL-002.md)\n"

    assert told(read_markdown(text)) == [("IMPL-002", "Simple [x]", S.COMPLETED, (), 0)]


def test_a_link_in_a_title_stays():
    assert read_markdown("- [ ] Read [the docs](x.md)")[0].title == "Read [the docs](x.md)"


def test_many_levels_and_long_lines_do_no_harm():
    deep = "".join(f"{' ' * at}- [ ] x\n" for at in range(3_000))

    assert len(list(walk(read_markdown(deep)))) == 3_000
    assert len(read_markdown("- [ ] " + "a (" * 50_000)) == 1
