"""A project on disk, its whole content as a value, and settings such as people have them."""

import json
import os
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from detent.clients.installing import apply, plan, plan_removal
from detent.clients.installing.files import Plan
from detent.clients.registry import CLIENTS, with_hooks
from tests.support.project import write

CLIENTS_WITH_HOOKS = with_hooks()
#: The installation of each client, and the form of its hook settings.
INSTALLATIONS: dict[str, Any] = {name: CLIENTS[name].load("installation").INSTALLATION for name in with_hooks()}
FORMS: dict[str, Any] = {name: installation.hooks for name, installation in INSTALLATIONS.items()}


class Place:
    """A directory with a hook beside it that has the right name."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "project"
        self.root.mkdir()
        self.hook = self.made(directory / "venv" / "detent" / "hooks" / "fast.py")
        self.python = self.made(directory / "venv" / "bin" / "python3")
        os.chmod(self.python, 0o755)

    def plan(self, *clients: str, **options: Any) -> Plan:
        return plan(str(self.root), clients, **{"python": self.python, "hook": self.hook, **options})

    def install(self, *clients: str, **options: Any) -> Plan:
        made = self.plan(*clients, **options)
        apply(made)
        return made

    def uninstall(self, *clients: str) -> Plan:
        made = plan_removal(str(self.root), clients)
        apply(made)
        return made

    def write(self, path: str, content: str | bytes) -> None:
        write(self.root, path, content)

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def settings(self, client: str) -> Any:
        return json.loads(self.read(FORMS[client].path))

    def tree(self) -> dict[str, bytes | None]:
        """Every path below the root, with the content of files."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.root.rglob("*"))
        }

    @staticmethod
    def made(path: Path) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        return str(path)


_text = st.text(st.characters(codec="utf-8"), max_size=8)
_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_handler = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["lint.sh", "echo 'it''s'", 'a "b', "python3 fast.py"])},
    optional={"timeout": st.integers(1, 60), "args": st.lists(_text, max_size=2), "unknown": _value},
)
_group = st.fixed_dictionaries(
    {"hooks": st.lists(_handler, max_size=2)}, optional={"matcher": st.sampled_from(["*", "Bash", "mcp__.*", ""])}
)
_events = sorted({event for form in FORMS.values() for event in form.events} | {"Notification"})


@st.composite
def settings_values(draw: st.DrawFn) -> dict[str, Any]:
    """Settings with unknown keys, and with hooks of others under the events that are ours too."""
    members = draw(st.dictionaries(_text.filter(lambda key: key not in ("hooks", "statusLine")), _value, max_size=3))
    if draw(st.booleans()):
        members["hooks"] = draw(st.dictionaries(st.sampled_from(_events), st.lists(_group, max_size=2), max_size=4))
    if draw(st.booleans()):
        members["statusLine"] = draw(st.just({"type": "command", "command": "mine.sh"}) | st.none())
    return {key: members[key] for key in draw(st.permutations(sorted(members)))}


@st.composite
def settings_texts(draw: st.DrawFn) -> bytes:
    """The same as bytes, in the many ways in which people's editors write them."""
    text = json.dumps(
        draw(settings_values()),
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 0, 2, 4, "\t"])),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
    )
    text = draw(st.sampled_from(["", "\ufeff", "\n "])) + text + draw(st.sampled_from(["", "\n", "\n\n", "  "]))
    return (text.replace("\n", "\r\n") if draw(st.booleans()) else text).encode()
