"""The description of a client: plain facts, and the names of the modules in its room.

The hook process reads these facts for every tool call, so this module uses builtins only and loads no room.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Client:
    """A client is a program that agents run in. Paths are relative to the project."""

    __slots__ = (
        *("name", "title", "adapter", "dialect", "installation", "task_list"),
        *("program", "marks", "settings", "documents", "generated"),
    )

    def __init__(  # noqa: PLR0913 - one for each fact
        self,
        name: str,
        *,
        title: str = "",
        adapter: str = "",
        dialect: str = "",
        installation: str = "",
        task_list: str = "",
        program: str = "",
        marks: "tuple[str, ...]" = (),
        settings: "tuple[str, ...]" = (),
        documents: "tuple[str, ...]" = (),
        generated: "tuple[str, ...]" = (),
    ) -> None:
        self.name, self.title = name, title or name
        #: Module with `adapter(settings)`, which makes an agent.
        self.adapter = adapter
        #: Module with `DIALECT`; builtins only, since the hook process loads it for every tool call.
        self.dialect = dialect
        #: Module with `INSTALLATION`.
        self.installation = installation
        #: Module with `read_tasks(decoded)`, which reads the client's own task list.
        self.task_list = task_list
        #: The program on PATH.
        self.program = program
        #: Variables that the client sets in the shells of its agents.
        self.marks = marks
        #: Files that hold its hooks and switches; an agent must not write them.
        self.settings = settings
        #: Documents that show the session to the client. Detent writes them once it is installed in this client.
        self.documents = documents
        #: Views beside those documents.
        self.generated = generated

    @property
    def has_hooks(self) -> bool:
        return bool(self.dialect and self.installation)

    def load(self, part: str) -> "Any":
        """The module of a part: `adapter`, `dialect`, `installation` or `task_list`."""
        name = getattr(self, part)
        __import__(name)
        return sys.modules[name]
