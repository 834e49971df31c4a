"""Reads the words of a shell command: quotes, escapes, expansions, here-documents.

The reader accepts more than a shell does and never fails, because the guard has to look at every command. Wherever it
accepts what bash may read in another way, it notes a doubt. Flow gives no value to a command with doubts.
"""

from detent.core.guard.shell.ansi import ansi_text
from detent.core.guard.shell.heredoc import HereDocument
from detent.core.guard.shell.tree import Part, Redirect, Script, Word

MAX_DEPTH = 60
NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
ENDS_WORD = " \t\n;&|()<>"
_STOPS_RUN = " \t\n;&|()<>\"'\\$`"
_SPECIAL_NAMES = "@*#?-$!0123456789"
_PARAMETER_OPS = (":-", ":=", ":?", ":+", "##", "%%", "//", "^^", ",,", *"-=?+#%/^,@:")
_CONTINUED = "a line that is continued in the middle of a word"


class Reader:
    """A position in a text, which stands at `base` in the source. Text that is nested too deep sets `opaque`."""

    __slots__ = ("base", "comments", "depth", "doubts", "end", "opaque", "pending", "pos", "text")

    def __init__(self, text: str, depth: int = 0, outer: "Reader | None" = None, base: int = 0) -> None:
        self.text = text
        self.pos = 0
        self.end = len(text)
        self.depth = depth
        self.base = base
        self.pending: list[Redirect] = []
        self.opaque = False
        self.doubts: list[tuple[int, str]] = outer.doubts if outer else []
        self.comments: list[tuple[int, int]] = outer.comments if outer else []

    def script(self, stop: tuple[str, ...]) -> Script:
        """The commands up to one of `stop`; the grammar adds it to this reader."""
        raise NotImplementedError(stop)

    def doubt(self, why: str) -> None:
        """Bash may read what stands here in another way."""
        self.doubts.append((self.base + min(self.pos, self.end), why))

    def close(self, why: str) -> None:
        """Skips the parenthesis that closes something."""
        if self.text.startswith(")", self.pos):
            self.pos += 1
        else:
            self.doubt(why)

    def too_deep(self) -> bool:
        """True if the text is nested deeper than the reader follows; it then skips the rest."""
        if self.depth < MAX_DEPTH:
            return False
        self.doubt(f"more than {MAX_DEPTH} levels inside each other")
        self.opaque = True
        self.pos = self.end
        return True

    def blank(self, *, newlines: bool) -> None:
        """Skips blanks, comments and continued lines; a newline also reads the here-documents that wait for it."""
        text, end = self.text, self.end
        while self.pos < end:
            char = text[self.pos]
            if char in " \t\r":
                if char == "\r":
                    self.doubt("a carriage return is no blank to bash")
                self.pos += 1
            elif char == "\\" and text.startswith("\\\n", self.pos):
                around = (text[self.pos - 1] if self.pos else " ", text[self.pos + 2 : self.pos + 3] or "\n")
                if around[0] not in " \t\n" and around[1] not in " \t\n":
                    self.doubt(_CONTINUED)
                self.pos += 2
            elif char == "#":
                newline = text.find("\n", self.pos)
                start, self.pos = self.pos, end if newline < 0 else newline
                self.comments.append((self.base + start, self.base + self.pos))
            elif char == "\n" and newlines:
                self.pos += 1
                if self.pending:
                    self._bodies()
            else:
                return

    def _bodies(self) -> None:
        """Reads the here-documents whose operators were on the line that just ended."""
        waiting, self.pending = self.pending, []
        for redirect in waiting:
            is_quoted = bool(redirect.word)
            document = HereDocument(
                self.text, self.pos, redirect.delimiter, strips=redirect.op == "<<-", is_quoted=is_quoted
            )
            if document.doubt:
                self.doubt(document.doubt)
            redirect.start, redirect.end = self.base + self.pos, self.base + document.stop
            self.pos = document.after
            redirect.word = [Part("lit", document.body, "'", -1, -1)] if is_quoted else self.expansions(document.body)
            redirect.op = "<<"

    def expansions(self, body: str) -> Word:
        """Text in which only `$`, backquotes and backslashes mean something. Its parts have no place in the source."""
        if "$" not in body and "`" not in body and "\\" not in body:
            return [Part("lit", body, '"', -1, -1)]
        reader = type(self)(body, self.depth + 1)
        word = reader.quoted("")
        self.opaque = self.opaque or reader.opaque
        return word

    def word(self) -> Word:
        """A word; empty if none begins here."""
        parts: Word = []
        text, end, base, begin = self.text, self.end, self.base, self.pos
        while self.pos < end:
            char = text[self.pos]
            start = self.pos
            if char in "<>" and text.startswith("(", start + 1):
                self.pos += 2
                parts.append(self._substitution("proc", char, '"', start))
            elif char in ENDS_WORD:
                if char == "(" and parts and parts[-1].kind == "raw" and parts[-1].text[-1:] in tuple("@!?*+"):
                    self.doubt("an extended pattern is not followed")
                    self._balanced()
                    parts.append(Part("var", "", "", base + start, base + self.pos))
                    continue
                break
            elif char == "'":
                parts.append(self._single())
            elif char == '"':
                self.pos += 1
                parts.append(Part("lit", "", char, base + start, base + self.pos))
                parts.extend(self.quoted('"'))
            elif char == "\\":
                self.pos += 2
                if text[start + 1 : start + 2] != "\n":
                    parts.append(Part("lit", text[start + 1 : start + 2], char, base + start, base + self.pos))
                elif text[start + 2 : start + 3] not in (" ", "\t", "\n", ""):
                    self.doubt(_CONTINUED)
            elif char == "$":
                self._dollar(parts, "")
            elif char == "`":
                parts.append(self._backquoted(""))
            else:
                self.pos += 1
                while self.pos < end and text[self.pos] not in _STOPS_RUN:
                    self.pos += 1
                parts.append(Part("raw", text[start : self.pos], "", base + start, base + self.pos))
        self.pos = min(self.pos, end)
        if self.pending and "\n" in text[begin : self.pos]:
            self.doubt("a line ends inside a word while a here-document waits")
        return parts

    def quoted(self, close: str) -> Word:
        """The parts up to the closing quote, or to the end where there is none."""
        parts: Word = []
        text, end, base = self.text, self.end, self.base
        while self.pos < end:
            start = self.pos
            while self.pos < end and text[self.pos] not in '"\\$`':
                self.pos += 1
            if self.pos > start:
                parts.append(Part("lit", text[start : self.pos], '"', base + start, base + self.pos))
            if self.pos >= end:
                break
            char, start = text[self.pos], self.pos
            if char == '"':
                self.pos += 1
                if close:
                    return parts
                parts.append(Part("lit", char, char, base + start, base + self.pos))
            elif char == "\\":
                following = text[start + 1 : start + 2]
                self.pos += 2
                if following != "\n":
                    special = following in ("$", "`", "\\") or (following == '"' and close)
                    shown = following if special else "\\" + following
                    parts.append(Part("lit", shown, '"', base + start, base + self.pos))
            elif char == "$":
                self._dollar(parts, '"')
            else:
                parts.append(self._backquoted('"'))
        self.pos = min(self.pos, end)
        if close:
            self.doubt("a double quote that is not closed")
        return parts

    def _single(self) -> Part:
        start = self.pos
        close = self.text.find("'", start + 1)
        if close < 0:
            self.doubt("a single quote that is not closed")
            close = self.end
        self.pos = min(close + 1, self.end)
        return Part("lit", self.text[start + 1 : close], "'", self.base + start, self.base + self.pos)

    def _dollar(self, parts: Word, quote: str) -> None:
        text, start = self.text, self.pos
        at = start + 1
        char = text[at : at + 1]
        self.pos = at
        if char == "(":
            self.pos = at + 1
            number = self.arithmetic(at + 2, start) if text.startswith("(", at + 1) else None
            parts.append(number or self._substitution("sub", "", quote, start))
        elif char == "{":
            self.pos = at + 1
            parts.append(self._parameter(quote, start))
        elif char == "'" and not quote:
            parts.append(self._ansi(start))
        elif char == '"' and not quote:
            self.doubt('`$"` is translated by the shell')
        elif char and char in _SPECIAL_NAMES:
            self.pos = at + 1
            parts.append(Part("var", char, quote, self.base + start, self.base + self.pos))
        elif char in NAME_CHARS:
            name = self.name()
            parts.append(Part("var", name, quote, self.base + start, self.base + self.pos))
        else:
            if char == "[":
                self.doubt("`$[` begins arithmetic, which is not followed; write \\$ for a dollar before a value")
            elif text.startswith("\\\n", at):
                self.doubt("a line that is continued behind a dollar")
            parts.append(Part("lit", "$", quote, self.base + start, self.base + at))

    def name(self) -> str:
        """An identifier, which may be empty."""
        start = self.pos
        while self.pos < self.end and self.text[self.pos] in NAME_CHARS:
            self.pos += 1
        return self.text[start : self.pos]

    def _substitution(self, kind: str, text: str, quote: str, start: int) -> Part:
        """The commands of `$(`, `<(` or `>(`, whose parenthesis has been read."""
        part = Part(kind, text, quote, self.base + start, self.base + self.end)
        if self.too_deep():
            return part
        outer, self.pending = self.pending, []
        self.depth += 1
        part.script = self.script((")",))
        self.depth -= 1
        if self.pending:
            self.doubt("a here-document that waits at the end of a substitution")
        self.pending = outer + self.pending
        self.close("a substitution that is not closed")
        part.end = self.base + self.pos
        return part

    def _backquoted(self, quote: str) -> Part:
        start = self.pos
        at = start + 1
        inner: list[str] = []
        while at < self.end and self.text[at] != "`":
            if self.text[at] == "\\":
                self.doubt("a backslash inside backquotes is not followed; write $(…)")
                at += self.text[at + 1 : at + 2] in ("`", "\\", "$")
            inner.append(self.text[at : at + 1])
            at += 1
        if at >= self.end:
            self.doubt("a backquote that is not closed")
        self.pos = min(at + 1, self.end)
        part = Part("sub", "", quote, self.base + start, self.base + self.pos)
        if self.depth >= MAX_DEPTH:
            self.doubt(f"more than {MAX_DEPTH} levels inside each other")
            self.opaque = True
            return part
        reader = type(self)("".join(inner), self.depth + 1, self, self.base + start + 1)
        part.script = reader.script(())
        if reader.pending:
            self.doubt("a here-document that waits at the end of a substitution")
        self.opaque = self.opaque or reader.opaque
        return part

    def arithmetic(self, inside: int, start: int) -> Part | None:
        """Arithmetic whose text begins at `inside`; None if `))` does not close it."""
        close = _arithmetic_end(self.text, inside)
        if close < 0:
            self.doubt("`((` that is not closed by `))`; put a blank between the parentheses")
            return None
        text = self.text[inside:close]
        if any(char in text for char in "'\"`") or "$(" in text or "\\" in text.replace("\\[", ""):
            self.doubt("a quote or a command inside arithmetic is not followed")
        self.pos = close + 2
        number = Part("num", "", "", self.base + start, self.base + self.pos)
        if self.depth < MAX_DEPTH:
            number.word = self.expansions(text)
        return number

    def _balanced(self) -> None:
        depth = 0
        while self.pos < self.end:
            char = self.text[self.pos]
            self.pos += 1
            depth += (char == "(") - (char == ")")
            if depth == 0:
                return

    def _parameter(self, quote: str, start: int) -> Part:
        """`${name}` and its variations, whose brace has been read."""
        text = self.text
        prefix = ""
        if text[self.pos : self.pos + 1] in ("!", "#") and text[self.pos + 1 : self.pos + 2] not in ("}", ""):
            prefix = text[self.pos]
            self.pos += 1
        name = self.name()
        if not name and text[self.pos : self.pos + 1] in tuple(_SPECIAL_NAMES):
            name = text[self.pos]
            self.pos += 1
        if not name:
            self.doubt("this is no parameter expansion that is known")
        part = Part("var", name, quote, self.base + start, self.base + self.end)
        if text.startswith("[", self.pos):
            close = text.find("]", self.pos)
            close = self.end if close < 0 else close
            if any(char in text[self.pos + 1 : close] for char in "[('\"`\\"):
                self.doubt("a subscript that is not followed")
            self.pos = min(close + 1, self.end)
        for op in _PARAMETER_OPS:
            if text.startswith(op, self.pos):
                self.pos += len(op)
                part.op = op
                break
        part.op = prefix or part.op
        part.word = self._to_brace()
        part.end = self.base + self.pos
        return part

    def _to_brace(self) -> Word:
        parts: Word = []
        if self.too_deep():
            return parts
        self.depth += 1
        text, end, base = self.text, self.end, self.base
        while self.pos < end and text[self.pos] != "}":
            char, start = text[self.pos], self.pos
            if char in "'\"`":
                self.doubt("a quote inside ${…} is not followed")
            if char == "'":
                parts.append(self._single())
            elif char == '"':
                self.pos += 1
                parts.extend(self.quoted('"'))
            elif char == "\\":
                self.pos += 2
                parts.append(Part("lit", text[start + 1 : start + 2], char, base + start, base + self.pos))
            elif char == "$":
                self._dollar(parts, '"')
            elif char == "`":
                parts.append(self._backquoted('"'))
            else:
                while self.pos < end and text[self.pos] not in "}'\"\\$`":
                    self.pos += 1
                if "{" in text[start : self.pos]:
                    self.doubt("a brace inside ${…} is not followed")
                parts.append(Part("raw", text[start : self.pos], "", base + start, base + self.pos))
        if self.pos >= end:
            self.doubt("`${` that is not closed")
        self.pos = min(self.pos + 1, end)
        self.depth -= 1
        return parts

    def _ansi(self, start: int) -> Part:
        """`$'...'`, from its dollar sign on."""
        decoded, at = ansi_text(self.text, start + 2)
        if at >= self.end:
            self.doubt("`$'` that is not closed")
        self.pos = min(at + 1, self.end)
        return Part("lit", decoded, "$", self.base + start, self.base + self.pos)


def _arithmetic_end(text: str, start: int) -> int:
    """The position of the `))` that closes the arithmetic which begins at `start`; -1 if there is none."""
    depth = 0
    at = start
    while at < len(text):
        char = text[at]
        if char == "(":
            depth += 1
        elif char == ")":
            if depth == 0:
                return at if text.startswith("))", at) else -1
            depth -= 1
        elif char == "\n" and depth == 0 and text.startswith("\n", at + 1):
            return -1
        at += 1
    return -1
