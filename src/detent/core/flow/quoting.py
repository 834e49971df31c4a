"""Reading the quotes, expansions and substitutions of a shell command, to know where its references stand.

The reader in `core.shell` looks for what a command writes: it accepts more than a shell does, never fails and keeps no
positions. Here a wrong guess about a quote would let a value be split or evaluated, so this one is made the other way
round: it follows what it knows for certain and is `Unsure` of everything else.
"""

import re
from collections.abc import Collection, Sequence

from detent.core.flow.reference import Reference, find, reference_at
from detent.core.flow.site import Place, Site, Unsure, Word

MAX_DEPTH = 40
_ENDS_WORD = ";&|()<>"
_PARAMETER = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OLD_ARITHMETIC = re.compile(r"\$\[[^][\"'`\\$]*\]")
_PLAIN_RUN = re.compile(r"[^\s;&|()<>'\"\\$`\[]+")
_QUOTED_RUN = re.compile(r"[^\"\\$`\[]+")


class Quoting:
    """A position in a command, or in the text of a backquoted one: `offsets` says where that stands in the whole."""

    def __init__(
        self,
        text: str,
        declared: Collection[str],
        *,
        offsets: Sequence[int] | None = None,
        sites: list[Site] | None = None,
        depth: int = 0,
        why: str = "",
    ) -> None:
        self.text, self.end, self.pos = text, len(text), 0
        self.declared = declared
        self.offsets = range(len(text) + 1) if offsets is None else offsets
        self.sites = [] if sites is None else sites
        self.depth = depth
        self.why = why
        self.pending: list[tuple[str, bool, bool]] = []

    def commands(self, closer: str) -> None:
        """The commands up to `closer`, which is not read: what a grammar adds to this reader."""
        raise NotImplementedError(closer)

    def nested(self, text: str, offsets: Sequence[int]) -> "Quoting":
        """A reader of the same kind for text inside this one."""
        raise NotImplementedError(text, offsets)

    def unsure(self, why: str) -> Unsure:
        return Unsure(self.offsets[min(self.pos, self.end)], why)

    def word(self, *, is_regex: bool = False) -> Word:
        """A word; it has no length if none begins here. In a regex the operators of the shell mean nothing."""
        word = Word(start=self.pos)
        before = len(self.sites)
        while self.pos < self.end and self.text[self.pos] not in " \t\n":
            char = self.text[self.pos]
            if char in _ENDS_WORD:
                if char in "<>" and self.text.startswith("(", self.pos + 1):
                    self._substitution(word)
                elif is_regex:
                    self._take(word, 1)
                else:
                    break
            elif char == "'":
                self._single(word)
            elif char == '"':
                self._double(word)
            elif char == "\\":
                self._escaped(word)
            elif char == "$":
                self._dollar(word, is_quoted=False)
            elif char == "`":
                self._backquoted(word, is_quoted=False)
            elif char == "[" and (reference := reference_at(self.text, self.pos, self.declared)):
                self._site(word, reference, Place.BARE)
            else:
                run = _PLAIN_RUN.match(self.text, self.pos)
                self._take(word, len(run[0]) if run else 1)
        word.end = self.pos
        word.sites = self.sites[before:]
        if self.pending and "\n" in self.text[word.start : word.end]:
            raise self.unsure("a line ends inside a word while a here-document waits")
        return word

    def region(self, start: int, stop: int, why: str) -> None:
        """Text in which no value may stand; an escaped reference there loses its backslash."""
        for found in find(self.text, self.declared, start, stop):
            reference = found.reference
            if found.escaped:
                self._mark(reference.name, reference.start - 1, reference.start, Place.ESCAPE)
            else:
                self._mark(reference.name, reference.start, reference.end, Place.BARE).refuse(why)

    def arithmetic(self) -> None:
        """What `((` opened, up to its `))`; a subshell that only looks like it is not guessed at."""
        depth = 0
        why, self.why = self.why, self.why or "the shell evaluates it as arithmetic there"
        while self.pos < self.end:
            char = self.text[self.pos]
            if char == ")" and depth == 0:
                if not self.text.startswith("))", self.pos):
                    raise self.unsure("`((` that is not closed by `))`; put a blank between the parentheses")
                self.pos += 2
                self.why = why
                return
            depth += (char == "(") - (char == ")")
            self._inside()
        raise self.unsure("`((` that is not closed")

    def _inside(self) -> None:
        """One step through arithmetic or a parameter expansion."""
        char = self.text[self.pos]
        if char in "'\"`":
            raise self.unsure("a quote inside an expansion is not followed")
        if char == "\\":
            self._escaped(None)
        elif char == "$":
            self._dollar(Word(start=self.pos), is_quoted=True)
        elif char == "[" and (reference := reference_at(self.text, self.pos, self.declared)):
            self._site(None, reference, Place.BARE)
        else:
            self.pos += 1

    def _take(self, word: Word, length: int, *, quoted: bool = False) -> None:
        word.add(self.text[self.pos : self.pos + length], quoted=quoted)
        self.pos += length

    def _mark(self, name: str, start: int, end: int, place: Place) -> Site:
        site = Site(name=name, start=self.offsets[start], end=self.offsets[end], place=place)
        site.refuse(self.why)
        self.sites.append(site)
        return site

    def _site(self, word: Word | None, reference: Reference, place: Place) -> None:
        site = self._mark(reference.name, reference.start, reference.end, place)
        self.pos = reference.end
        if word is not None:
            word.add_site(site)

    def _escaped(self, word: Word | None, *, place: Place | None = None) -> None:
        """A backslash and what follows it, outside of single quotes; `place` is the kind of quotes, if any."""
        reference = reference_at(self.text, self.pos + 1, self.declared)
        if reference is not None:
            text = self.text[reference.start : reference.end]
            is_subscript = word is not None and bool(_SUBSCRIPTED.fullmatch(word.keyword)) and self._assigns(reference)
            if word is None or place is not None or is_subscript:
                self._mark(reference.name, self.pos, self.pos + 1, Place.ESCAPE)
            if word is not None:
                word.add(text, quoted=not is_subscript)
            self.pos = reference.end
            return
        following = self.text[self.pos + 1 : self.pos + 2]
        if following == "\n":
            before = self.text[self.pos - 1 : self.pos] if self.pos else " "
            if before == "$" or (place is None and self.text[self.pos + 2 : self.pos + 3] not in (" ", "\t", "\n", "")):
                raise self.unsure("a line that is continued in the middle of a word")
        elif word is not None:
            keeps = place is Place.DOUBLE and following not in ("$", "`", '"', "\\")
            word.add(("\\" if keeps else "") + following, quoted=True)
        self.pos = min(self.pos + 2, self.end)

    def _assigns(self, reference: Reference) -> bool:
        return self.text.startswith(("=", "+="), reference.end)

    def _single(self, word: Word) -> None:
        close = self.text.find("'", self.pos + 1)
        if close < 0:
            raise self.unsure("a single quote that is not closed")
        start = self.pos + 1
        word.add("", quoted=True)
        at = start
        for found in find(self.text, self.declared, start, close):
            reference = found.reference
            word.add(self.text[at : reference.start - found.escaped], quoted=True)
            at = reference.start
            if found.escaped:
                self._mark(reference.name, reference.start - 1, reference.start, Place.ESCAPE)
            else:
                self._site(word, reference, Place.SINGLE)
                at = reference.end
        word.add(self.text[at:close], quoted=True)
        self.pos = close + 1

    def _double(self, word: Word) -> None:
        opened = self.pos
        self.pos += 1
        word.add("", quoted=True)
        while self.pos < self.end:
            char = self.text[self.pos]
            if char == '"':
                self.pos += 1
                return
            if char == "\\":
                self._escaped(word, place=Place.DOUBLE)
            elif char == "$":
                self._dollar(word, is_quoted=True)
            elif char == "`":
                self._backquoted(word, is_quoted=True)
            elif char == "[" and (reference := reference_at(self.text, self.pos, self.declared)):
                self._site(word, reference, Place.DOUBLE)
            else:
                run = _QUOTED_RUN.match(self.text, self.pos)
                self._take(word, len(run[0]) if run else 1, quoted=True)
        self.pos = opened
        raise self.unsure("a double quote that is not closed")

    def _ansi(self, word: Word) -> None:
        opened = self.pos
        self.pos += 2
        while self.pos < self.end:
            char = self.text[self.pos]
            if char == "'":
                self.pos += 1
                word.add("\0", quoted=True)
                return
            if char == "\\":
                self._escaped(word, place=Place.ANSI)
            elif char == "[" and (reference := reference_at(self.text, self.pos, self.declared)):
                self._site(word, reference, Place.ANSI)
            else:
                self._take(word, 1, quoted=True)
        self.pos = opened
        raise self.unsure("`$'` that is not closed")

    def _dollar(self, word: Word, *, is_quoted: bool) -> None:
        following = self.text[self.pos + 1 : self.pos + 2]
        if following == "(" and self.text.startswith("(", self.pos + 2):
            self.pos += 3
            self.arithmetic()
            word.add("\0", quoted=True)
        elif following == "(":
            self._substitution(word)
        elif following == "{":
            self._parameter()
            word.add("\0", quoted=True)
        elif following == "[":
            self._old_arithmetic(word)
        elif following == "'" and not is_quoted:
            self._ansi(word)
        elif following == '"' and not is_quoted:
            raise self.unsure('`$"` is translated by the shell')
        elif following == "\\" and self.text.startswith("\n", self.pos + 2):
            raise self.unsure("a line that is continued behind a dollar")
        elif parameter := _PARAMETER.match(self.text, self.pos):
            self.pos = parameter.end()
            word.add("\0", quoted=True)
        else:
            self._take(word, 1, quoted=is_quoted)

    def _substitution(self, word: Word) -> None:
        """`$(`, `<(` or `>(`: whatever quotes are around it, inside it they begin anew."""
        opened = self.pos
        self.pos += 2
        self._deeper()
        pending, self.pending = self.pending, []
        self.commands(")")
        if not self.text.startswith(")", self.pos):
            self.pos = opened
            raise self.unsure("a substitution that is not closed")
        self.pos += 1
        self.depth -= 1
        self.pending = pending
        word.add("\0", quoted=True)

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.unsure(f"more than {MAX_DEPTH} substitutions inside each other")

    def _parameter(self) -> None:
        opened = self.pos
        self.pos += 2
        if self.text[self.pos : self.pos + 1] in (" ", "\t", "\n", "|", ""):
            raise self.unsure("this is no parameter expansion that is known")
        self._deeper()
        why, self.why = self.why, self.why or "the shell may evaluate it inside ${…}"
        while self.pos < self.end:
            if self.text[self.pos] == "}":
                self.pos += 1
                self.why = why
                self.depth -= 1
                return
            if self.text[self.pos] == "{":
                raise self.unsure("a brace inside ${…} is not followed")
            self._inside()
        self.pos = opened
        raise self.unsure("`${` that is not closed")

    def _old_arithmetic(self, word: Word) -> None:
        if reference := reference_at(self.text, self.pos + 1, self.declared):
            why = "`$[` begins arithmetic; write \\$ for a dollar before a value"
            self._mark(reference.name, reference.start, reference.end, Place.BARE).refuse(why)
            self.pos = reference.end
        elif match := _OLD_ARITHMETIC.match(self.text, self.pos):
            self.pos = match.end()
        else:
            raise self.unsure("`$[` begins arithmetic, which is not followed")
        word.add("\0", quoted=True)

    def _backquoted(self, word: Word, *, is_quoted: bool) -> None:
        """Its text loses one level of backslashes before it is read; each place is known by where it came from."""
        at = self.pos + 1
        inner: list[str] = []
        offsets: list[int] = []
        while at < self.end and self.text[at] != "`":
            offsets.append(self.offsets[at])
            if self.text[at] == "\\":
                following = self.text[at + 1 : at + 2]
                if following in ('"', "\n") and (is_quoted or following == "\n"):
                    raise self.unsure("a backslash inside backquotes whose meaning depends on what is around them")
                at += following in ("`", "\\", "$")
            inner.append(self.text[at : at + 1])
            at += 1
        if at >= self.end:
            raise self.unsure("a backquote that is not closed")
        offsets.append(self.offsets[at])
        self._deeper()
        self.nested("".join(inner), offsets).commands("")
        self.depth -= 1
        self.pos = at + 1
        word.add("\0", quoted=True)
