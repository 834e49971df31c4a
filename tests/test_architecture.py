"""ARCHITECTURE.md and docs/internals.md: every path that they name exists; the diagram is the transition table."""

import re
from pathlib import Path

from detent.core.session.status import Status
from detent.core.session.transition import TRANSITIONS

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
INTERNALS = (ROOT / "docs" / "internals.md").read_text("utf-8")
SOURCE = ROOT / "src" / "detent"
#: Paths of a project, not of this repository.
OF_A_PROJECT = (".workflow", "checkpoints/", "journal.jsonl", "WFS-")


def diagram() -> str:
    """The transition table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {Status.PENDING}"]
    for (before, event), after in TRANSITIONS.items():
        word = event.__struct_config__.tag.removeprefix("phase_")
        lines.append(f"    {before} --> {after}: {word}")
    return "\n".join(lines)


def named_paths() -> list[str]:
    """Everything in backquotes that looks like a path of the source, outside of code blocks."""
    prose = re.sub(r"^```.*?^```", "", TEXT + INTERNALS, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^(    |\| `\w+/`).*$", "", prose, flags=re.MULTILINE)
    words = re.findall(r"`([\w./<>-]+)`", prose)
    return [word for word in words if "/" in word and "<" not in word and not word.startswith(OF_A_PROJECT)]


def test_there_are_paths_to_look_at():
    assert len(named_paths()) > 10


def test_every_path_that_is_named_exists():
    assert [path for path in named_paths() if not (SOURCE / path).exists() and not (ROOT / path).exists()] == []


def test_every_module_of_the_map_exists():
    missing = []
    for room, contents in re.findall(r"^\| `(\w+)/` \| (.*) \|$", TEXT, re.MULTILINE):
        for name in re.findall(r"`([\w.]+)/?`", contents):
            here = SOURCE / room / name
            if name != "detent.toml" and not here.exists() and not here.with_suffix(".py").exists():
                missing.append(f"{room}/{name}")
    assert missing == []


def test_every_room_is_on_the_map():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}

    assert {room for room in rooms if f"`{room}/`" not in TEXT} == set()


def test_the_diagram_is_the_transition_table():
    drawn = re.search(r"```mermaid\n(.*?)\n```", TEXT, re.DOTALL)

    assert drawn is not None
    assert drawn[1] == diagram(), f"replace the diagram with:\n{diagram()}"
