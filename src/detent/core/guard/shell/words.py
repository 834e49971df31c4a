"""Reading the words of a shell command: quotes, escapes, expansions, here-documents."""

from detent.core.guard.shell.tree import Part, Redirect, Script, Word

MAX_DEPTH = 60
_ENDS_WORD = " \t\n;&|()<>"
_STOPS_RUN = " \t\n;&|()<>\"'\\$`"
_SPECIAL_NAMES = "@*#?-$!0123456789"
_PARAMETER_OPS = (":-", ":=", ":?", ":+", "##", "%%", "//", "^^", ",,", *"-=?+#%/^,@:")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}


class Reader:
    """A position in a text. What cannot be followed any deeper sets `opaque`."""

    __slots__ = ("depth", "end", "opaque", "pending", "pos", "text")

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.pos = 0
        self.end = len(text)
        self.depth = depth
        self.pending: list[Redirect] = []
        self.opaque = False

    def script(self, stop: tuple[str, ...]) -> Script:
        """The commands up to one of `stop`: what a grammar adds to this reader."""
        raise NotImplementedError(stop)

    def blank(self, *, newlines: bool) -> None:
        """Past blanks, comments and continued lines; a newline also reads the here-documents that wait for it."""
        text, end = self.text, self.end
        while self.pos < end:
            char = text[self.pos]
            if char in " \t\r":
                self.pos += 1
            elif char == "\\" and text.startswith("\\\n", self.pos):
                self.pos += 2
            elif char == "#":
                newline = text.find("\n", self.pos)
                self.pos = end if newline < 0 else newline
            elif char == "\n" and newlines:
                self.pos += 1
                if self.pending:
                    self.bodies()
            else:
                return

    def bodies(self) -> None:
        """The here-documents whose operators were on the line that just ended."""
        waiting, self.pending = self.pending, []
        for redirect in waiting:
            body = self._body(redirect.delimiter, strip=redirect.op == "<<-")
            redirect.word = [Part("lit", body)] if redirect.word else self._inner(body)
            redirect.op = "<<"

    def _body(self, delimiter: str, *, strip: bool) -> str:
        lines: list[str] = []
        at = self.pos
        while at < self.end:
            newline = self.text.find("\n", at)
            line = self.text[at : self.end if newline < 0 else newline]
            if strip:
                line = line.lstrip("\t")
            after = self.end if newline < 0 else newline + 1
            if line == delimiter:
                self.pos = after
                return "\n".join(lines)
            if line.startswith(delimiter) and not line[len(delimiter) :].strip(")\"'; \t\r"):
                # what closes a substitution on the delimiter's line is left to be read
                self.pos = (self.end if newline < 0 else newline) - len(line) + len(delimiter)
                return "\n".join(lines)
            lines.append(line)
            at = after
        self.pos = self.end
        return "\n".join(lines)

    def _inner(self, body: str) -> Word:
        """Text in which only `$`, backquotes and backslashes mean something."""
        if "$" not in body and "`" not in body and "\\" not in body:
            return [Part("lit", body)]
        reader = type(self)(body, self.depth + 1)
        word = reader.quoted("")
        self.opaque = self.opaque or reader.opaque
        return word

    def word(self) -> Word:
        """A word; empty if none begins here."""
        parts: Word = []
        text, end = self.text, self.end
        while self.pos < end:
            char = text[self.pos]
            if char in "<>" and text.startswith("(", self.pos + 1):
                if parts:
                    break
                self.pos += 2
                parts.append(self._substitution("proc", char, quoted=True))
            elif char in _ENDS_WORD:
                if char == "(" and parts and parts[-1].kind == "raw" and parts[-1].text[-1:] in tuple("@!?*+"):
                    self._balanced()
                    parts.append(Part("var", ""))
                    continue
                break
            elif char == "'":
                parts.append(Part("lit", self._until_quote()))
            elif char == '"':
                self.pos += 1
                parts.append(Part("lit", ""))
                parts.extend(self.quoted('"'))
            elif char == "\\":
                self.pos += 2
                if text[self.pos - 1 : self.pos] != "\n":
                    parts.append(Part("lit", text[self.pos - 1 : self.pos]))
            elif char == "$":
                self._dollar(parts, quoted=False)
            elif char == "`":
                parts.append(self._backquoted(quoted=False))
            else:
                start = self.pos
                self.pos += 1
                while self.pos < end and text[self.pos] not in _STOPS_RUN:
                    self.pos += 1
                parts.append(Part("raw", text[start : self.pos]))
        self.pos = min(self.pos, end)
        return parts

    def quoted(self, close: str) -> Word:
        """The parts up to the closing quote, or to the end where there is none."""
        parts: Word = []
        text, end = self.text, self.end
        while self.pos < end:
            start = self.pos
            while self.pos < end and text[self.pos] not in '"\\$`':
                self.pos += 1
            if self.pos > start:
                parts.append(Part("lit", text[start : self.pos], quoted=True))
            if self.pos >= end:
                break
            char = text[self.pos]
            if char == '"':
                self.pos += 1
                if close:
                    return parts
                parts.append(Part("lit", char, quoted=True))
            elif char == "\\":
                following = text[self.pos + 1 : self.pos + 2]
                self.pos += 2
                if following != "\n":
                    special = following in ("$", "`", "\\") or (following == '"' and close)
                    parts.append(Part("lit", following if special else "\\" + following, quoted=True))
            elif char == "$":
                self._dollar(parts, quoted=True)
            else:
                parts.append(self._backquoted(quoted=True))
        self.pos = min(self.pos, end)
        return parts

    def _until_quote(self) -> str:
        close = self.text.find("'", self.pos + 1)
        close = self.end if close < 0 else close
        found = self.text[self.pos + 1 : close]
        self.pos = min(close + 1, self.end)
        return found

    def _dollar(self, parts: Word, *, quoted: bool) -> None:
        text, at = self.text, self.pos + 1
        char = text[at : at + 1]
        if char == "(":
            self.pos = at + 1
            if text.startswith("(", at + 1) and self._arithmetic(parts):
                return
            parts.append(self._substitution("sub", "", quoted=quoted))
        elif char == "{":
            self.pos = at + 1
            parts.append(self._parameter(quoted=quoted))
        elif char == "'" and not quoted:
            parts.append(Part("lit", self._ansi()))
        elif char == '"' and not quoted:
            self.pos = at
        elif char and char in _SPECIAL_NAMES:
            self.pos = at + 1
            parts.append(Part("var", char, quoted))
        elif char == "_" or char.isalpha():
            self.pos = at
            parts.append(Part("var", self.name(), quoted))
        else:
            self.pos = at
            parts.append(Part("lit", "$", quoted))

    def name(self) -> str:
        """An identifier, which may be empty."""
        start = self.pos
        while self.pos < self.end and (self.text[self.pos].isalnum() or self.text[self.pos] == "_"):
            self.pos += 1
        return self.text[start : self.pos]

    def _substitution(self, kind: str, text: str, *, quoted: bool) -> Part:
        """The commands of `$(`, `<(` or `>(`, whose parenthesis has been read."""
        part = Part(kind, text, quoted)
        if self.depth >= MAX_DEPTH:
            self.opaque = True
            self.pos = self.end
            return part
        self.depth += 1
        part.script = self.script((")",))
        self.depth -= 1
        if self.text.startswith(")", self.pos):
            self.pos += 1
        return part

    def _backquoted(self, *, quoted: bool) -> Part:
        at = self.pos + 1
        inner: list[str] = []
        while at < self.end and self.text[at] != "`":
            if self.text[at] == "\\" and self.text[at + 1 : at + 2] in ("`", "\\", "$"):
                at += 1
            inner.append(self.text[at : at + 1])
            at += 1
        self.pos = min(at + 1, self.end)
        part = Part("sub", "", quoted)
        if self.depth >= MAX_DEPTH:
            self.opaque = True
            return part
        reader = type(self)("".join(inner), self.depth + 1)
        part.script = reader.script(())
        self.opaque = self.opaque or reader.opaque
        return part

    def _arithmetic(self, parts: Word) -> bool:
        """`$((...))`: a number, and the commands that are substituted in it. False if it is no arithmetic after all."""
        start = self.pos + 1
        close = arithmetic_end(self.text, start)
        if close < 0:
            return False
        self.pos = close + 2
        number = Part("num", "")
        if self.depth < MAX_DEPTH:
            number.word = self._inner(self.text[start:close])
        parts.append(number)
        return True

    def _balanced(self) -> None:
        depth = 0
        while self.pos < self.end:
            char = self.text[self.pos]
            self.pos += 1
            depth += (char == "(") - (char == ")")
            if depth == 0:
                return

    def _parameter(self, *, quoted: bool) -> Part:
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
        part = Part("var", name, quoted)
        if text.startswith("[", self.pos):
            close = text.find("]", self.pos)
            close = self.end if close < 0 else close
            self.pos = min(close + 1, self.end)
        for op in _PARAMETER_OPS:
            if text.startswith(op, self.pos):
                self.pos += len(op)
                part.op = op
                break
        part.op = prefix or part.op
        part.word = self._to_brace()
        return part

    def _to_brace(self) -> Word:
        parts: Word = []
        if self.depth >= MAX_DEPTH:
            self.opaque = True
            self.pos = self.end
            return parts
        self.depth += 1
        text, end = self.text, self.end
        while self.pos < end and text[self.pos] != "}":
            char = text[self.pos]
            if char == "'":
                parts.append(Part("lit", self._until_quote()))
            elif char == '"':
                self.pos += 1
                parts.extend(self.quoted('"'))
            elif char == "\\":
                parts.append(Part("lit", text[self.pos + 1 : self.pos + 2]))
                self.pos += 2
            elif char == "$":
                self._dollar(parts, quoted=True)
            elif char == "`":
                parts.append(self._backquoted(quoted=True))
            else:
                start = self.pos
                while self.pos < end and text[self.pos] not in "}'\"\\$`":
                    self.pos += 1
                parts.append(Part("raw", text[start : self.pos]))
        self.pos = min(self.pos + 1, end)
        self.depth -= 1
        return parts

    def _ansi(self) -> str:
        """`$'...'`, from its dollar sign on."""
        text, at = self.text, self.pos + 2
        found: list[str] = []
        while at < self.end and text[at] != "'":
            if text[at] != "\\":
                found.append(text[at])
                at += 1
                continue
            char = text[at + 1 : at + 2]
            at += 2
            width, base = {"x": (2, 16), "u": (4, 16), "U": (8, 16)}.get(char, (3, 8))
            if base == 8:
                if char not in tuple("01234567"):
                    found.append(_ANSI.get(char, char))
                    continue
                at -= 1
            digits = ""
            while len(digits) < width and text[at : at + 1] in tuple(
                "0123456789abcdefABCDEF"[: 22 if base == 16 else 8]
            ):
                digits += text[at]
                at += 1
            number = int(digits, base) if digits else 0
            found.append(chr(number) if 0 < number < 0xD800 else "")
        self.pos = min(at + 1, self.end)
        return "".join(found)


def arithmetic_end(text: str, start: int) -> int:
    """Where the `))` is that closes the arithmetic which begins at `start`; -1 if there is none."""
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
