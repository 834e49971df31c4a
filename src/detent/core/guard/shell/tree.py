"""What a shell command is made of: words of parts, redirections, and nodes for simple and compound commands."""


class Part:
    """A piece of a word: `raw` and `lit`eral text, a `var`iable, a `sub`stituted command, a `num`ber, a `proc`ess."""

    __slots__ = ("kind", "op", "quoted", "script", "text", "word")

    def __init__(self, kind: str, text: str, quoted: bool = False) -> None:  # noqa: FBT001, FBT002 - one call a character run
        self.kind = kind
        self.text = text
        self.quoted = quoted
        self.op = ""
        self.word: list[Part] = []
        self.script: list[Node] = []


Word = list[Part]


class Redirect:
    """`op` and where to; for a here-document, `word` is its body."""

    __slots__ = ("delimiter", "op", "word")

    def __init__(self, op: str, word: Word) -> None:
        self.op = op
        self.word = word
        self.delimiter = ""


class Node:
    """A command: `simple`, `pipe`, `sub`shell, `group`, `if`, `while`, `for`, `case`, `function`, `test`.

    `join` is the operator before it. `bodies` are the scripts inside it; a pipeline has one command in each.
    """

    __slots__ = ("assigns", "bodies", "join", "kind", "name", "redirects", "words")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.join = ";"
        self.name = ""
        self.words: list[Word] = []
        self.assigns: list[tuple[str, str, list[Word]]] = []
        self.redirects: list[Redirect] = []
        self.bodies: list[list[Node]] = []


Script = list[Node]
