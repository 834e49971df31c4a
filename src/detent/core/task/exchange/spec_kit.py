"""Reads `tasks.md` of spec-kit: a checklist in phases, with `[P]` for parallel tasks and `[US1]` for user stories.

The order that the file describes becomes dependencies. In a phase, a task waits for the tasks before it, back to the
last one without `[P]`; tasks with `[P]` do not wait for each other. The phase of a user story waits for the last phase
that is no story. Every other phase waits for all phases since that one.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from detent.core.task.exchange.draft import Draft, checked
from detent.core.task.exchange.markdown import read_markdown

_PHASE = re.compile(r"^##[ \t]+Phase[ \t]+[^:\n]+:[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE)
_HEADING = re.compile(r"^##[ \t]", re.MULTILINE)
_MARK = re.compile(r"\[(?:P|US[0-9]+)\][ \t]*")
_PATH = re.compile(r"\bin `?([\w.-]+(?:/[\w.-]+)+)`?")


def read_spec_kit(text: str) -> tuple[Draft, ...]:
    """The tasks of all phases. Tasks outside of phases are left out."""
    drafts: list[Draft] = []
    #: The last tasks of the last phase that is no story, and of the stories since then.
    foundation: tuple[str, ...] = ()
    stories: list[str] = []
    for title, body in _phases(text):
        is_story = "user story" in title.casefold()
        awaited = foundation if is_story else (*foundation, *stories)
        phase, ends = _chained(read_markdown(body), awaited)
        drafts += phase
        if is_story:
            stories += ends
        elif phase:
            foundation, stories = ends, []
    return checked("spec-kit", tuple(drafts), [])


def _phases(text: str) -> Iterator[tuple[str, str]]:
    """Title and text of each phase."""
    for heading in _PHASE.finditer(text):
        following = _HEADING.search(text, heading.end())
        yield heading[1], text[heading.end() : following.start() if following else len(text)]


def _chained(items: Sequence[Draft], awaited: tuple[str, ...]) -> tuple[list[Draft], tuple[str, ...]]:
    """The tasks of a phase with their dependencies, and the last ones: no other task of the phase waits for them."""
    drafts: list[Draft] = []
    parallel: list[str] = []
    for item in items:
        is_parallel = item.title.startswith("[P]")
        waits_for = awaited if is_parallel or not parallel else tuple(parallel)
        title = _MARK.sub("", item.title)
        path = _PATH.search(title)
        drafts.append(
            msgspec.structs.replace(
                item,
                title=title,
                depends_on=tuple(dict.fromkeys((*item.depends_on, *waits_for))),
                files=(path[1],) if path else (),
            )
        )
        if is_parallel:
            parallel.append(item.source_id)
        else:
            awaited, parallel = (item.source_id,), []
    return drafts, (*parallel,) or awaited
