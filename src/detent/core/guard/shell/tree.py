"""The tree of a shell command: words of parts, redirections, and nodes for simple and compound commands.

Every part knows where it stands in the source, and in which quotes.
"""


class Part:
    """A piece of a word: `raw` and `lit`eral text, a `var`iable, a `sub`stituted command, a `num`ber, a `proc`ess.

    `start` and `end` are its place in the source. `quote` is what it stands in: nothing, a single or a double quote,
    `$` for `$'…'`, or a backslash.
    """

    __slots__ = ("end", "kind", "op", "quote", "script", "start", "text", "word")

    def __init__(self, kind: str, text: str, quote: str, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.quote = quote
        self.start = start
        self.end = end
        self.op = ""
        self.word: list[Part] = []
        self.script: list[Node] = []


Word = list[Part]


class Redirect:
    """`op` and its target. For a here-document `word` is the body, which stands from `start` to `end`."""

    __slots__ = ("delimiter", "end", "op", "start", "word")

    def __init__(self, op: str, word: Word) -> None:
        self.op = op
        self.word = word
        self.delimiter = ""
        self.start = self.end = 0


class Assign:
    """`name=value`, `name+=value` or `name=(…)`; a value that is no array is one word."""

    __slots__ = ("appends", "is_array", "name", "words")

    def __init__(self, name: str, words: list[Word], *, appends: bool, is_array: bool) -> None:
        self.name = name
        self.words = words
        self.appends = appends
        self.is_array = is_array


class Node:
    """A command: `simple`, `pipe`, `sub`shell, `group`, `if`, `while`, `for`, `case`, `function`, `test`.

    `join` is the operator before it. `bodies` are the scripts inside it; a pipeline has one command in each. The words
    of a `case` are its subject and its patterns.
    """

    __slots__ = ("assigns", "bodies", "join", "kind", "name", "redirects", "words")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.join = ";"
        self.name = ""
        self.words: list[Word] = []
        self.assigns: list[Assign] = []
        self.redirects: list[Redirect] = []
        self.bodies: list[list[Node]] = []


Script = list[Node]
