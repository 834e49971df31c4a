"""The grammar that `quoting` lacks: commands, redirections, here-documents, `case`, `[[ … ]]` and loops.

It knows as much of them as is needed to say of each reference which word of which command it stands in. No value goes
into a here-document: with a quoted delimiter nothing would expand there, and the text of one is easily mistaken for
that of the other.
"""

import re
from collections.abc import Collection, Sequence

import msgspec

from detent.core.flow.evaluator import (
    ASSIGNMENT,
    DECLARES,
    check_assignment,
    check_command,
    check_condition,
    makes_attribute,
)
from detent.core.flow.quoting import Quoting
from detent.core.flow.site import Place, Site, Word

_JOINER = re.compile(r";;&|;;|;&|;|&&|\|\||\|&|\||&")
_REDIRECT = re.compile(r"(?:[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||<(?!\()|>(?!\())")
_ENDS_CASE = re.compile(r"esac(?=[\s;&|()<>]|$)")
_NO_ARGUMENTS = re.compile(r"\([ \t]*\)")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ELEMENT = re.compile(r"\[[0-9]+\]=")
_PASSED_OVER = ("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time")


class _Command(msgspec.Struct):
    """One simple command, so far. `is_closed` is one that has ended and can only be redirected.

    `first` is the number of sites before it, and `piped` the same of the pipeline that it reads from. `inputs` are the
    words that its standard input is taken from.
    """

    assignments: list[Word] = []
    words: list[Word] = []
    inputs: list[Word] = []
    is_closed: bool = False
    first: int = 0
    piped: int | None = None


class _Facts(msgspec.Struct):
    """What holds for the command as a whole."""

    assigned: list[Site] = []
    declared: list[Site] = []  # assigned by `export` and its like
    has_number: bool = False
    has_array: bool = False


def track(text: str, declared: Collection[str]) -> tuple[Site, ...]:
    """Every reference outside of comments, in order. Raises `Unsure` where it cannot follow."""
    tracker = _Tracker(text, declared)
    tracker.commands("")
    facts = tracker.facts
    for site in facts.assigned * facts.has_number + facts.declared * (facts.has_number or facts.has_array):
        site.refuse("variables of this command are numbers, arrays or references, for which the shell may evaluate it")
    return tuple(sorted(tracker.sites, key=lambda site: site.start))


class _Tracker(Quoting):
    facts: _Facts

    def __init__(self, text: str, declared: Collection[str]) -> None:
        super().__init__(text, declared)
        self.facts = _Facts()

    def nested(self, text: str, offsets: Sequence[int]) -> Quoting:
        inner = _Tracker(text, self.declared)
        inner.offsets, inner.sites, inner.depth, inner.why = offsets, self.sites, self.depth, self.why
        inner.facts = self.facts
        return inner

    def commands(self, closer: str) -> None:
        outset = len(self.sites)
        command = _Command(first=outset)
        while True:
            self._blanks()
            char = self.text[self.pos : self.pos + 1]
            if not char or char == ")":
                if char != ("" if closer == "case" else closer) or closer == "case" or self.pending:
                    raise self.unsure("the command ends here, or a parenthesis closes, where that was not expected")
                self._finish(command)
                return
            if char == "#":
                self._comment()
            elif char == "\n":
                if not _is_empty(command) or command.is_closed:
                    command = self._finish(command)
                self._newline()
            elif closer == "case" and _is_empty(command) and self._ends_branch():
                return
            elif redirect := _REDIRECT.match(self.text, self.pos):
                self._redirect(command, redirect)
            elif joiner := _JOINER.match(self.text, self.pos):
                begun = command.first if command.piped is None else command.piped
                begun = outset if _is_empty(command) else begun  # behind a `}` or `done`, all that came before
                command = self._finish(command)
                command.piped = begun if joiner[0] in ("|", "|&") else None
                if joiner[0] in (";;", ";&", ";;&"):
                    if closer != "case":
                        raise self.unsure(f"`{joiner[0]}` outside of a case")
                    return
                self.pos = joiner.end()
            elif char == "(":
                command = self._parenthesis(command)
            else:
                command = self._part(command)

    def _ends_branch(self) -> bool:
        return _ENDS_CASE.match(self.text, self.pos) is not None

    def _finish(self, command: _Command) -> _Command:
        for word in command.assignments:
            check_assignment(word)
            for site in word.direct:
                if site.place is Place.BARE:
                    site.place = Place.ASSIGNED
            self.facts.assigned += word.sites
        for word in command.words:
            _stand_alone(word, self)
        if command.words:
            self._check(command)
        return _Command(first=len(self.sites))

    def _check(self, command: _Command) -> None:
        fed = [site for word in command.inputs for site in word.sites]
        if command.piped is not None:
            fed += self.sites[command.piped :]
        check_command(command.words, fed)
        self.facts.has_number = self.facts.has_number or makes_attribute(command.words, "in")
        self.facts.has_array = self.facts.has_array or makes_attribute(command.words, "aA")
        if command.words[0].plain in DECLARES:
            self.facts.declared += [site for word in command.words for site in word.sites]

    def _part(self, command: _Command) -> _Command:
        """The next word, and what follows from it if it is a keyword or an assignment."""
        word = self.word()
        if word.end == word.start:
            raise self.unsure(f"{self.text[self.pos]!r} is not expected here")
        if command.is_closed and word.keyword not in ("}", "do", "then", "done", "fi"):
            self.pos = word.start
            raise self.unsure("a word behind the end of a compound command")
        is_array = self.text.startswith("(", self.pos) and _ARRAY.fullmatch(word.keyword)
        if is_array:
            self._array(word)
        if command.words:
            command.words.append(word)
        elif ASSIGNMENT.match(word.unquoted):
            command.assignments.append(word)
        elif command.assignments or not self._keyword(command, word):
            command.words.append(word)
        return command

    def _keyword(self, command: _Command, word: Word) -> bool:
        match word.keyword:
            case "case":
                self._case()
            case "[[":
                self._condition()
            case "for" | "select":
                self._loop()
                return True
            case "function":
                self._blanks()
                self._refused(self.word(), "a value cannot be a name")
                self._blanks()
                arguments = _NO_ARGUMENTS.match(self.text, self.pos)
                self.pos = arguments.end() if arguments else self.pos
                return True
            case "coproc":
                raise self.unsure("coproc is not followed")
            case passed if passed in _PASSED_OVER:
                command.is_closed = False
                return True
            case _:
                return False
        command.is_closed = True
        return True

    def _parenthesis(self, command: _Command) -> _Command:
        if not _is_empty(command) or command.is_closed:
            arguments = _NO_ARGUMENTS.match(self.text, self.pos)
            if arguments and len(command.words) == 1 and not command.assignments and not command.words[0].sites:
                self.pos = arguments.end()
                return _Command(first=len(self.sites))
            raise self.unsure("a parenthesis that opens here is not followed")
        if self.text.startswith("((", self.pos):
            self.pos += 2
            self.arithmetic()
        else:
            self._deeper()
            self.pos += 1
            self.commands(")")
            self.pos += 1
            self.depth -= 1
        command.is_closed = True
        return command

    def _loop(self) -> None:
        self._blanks()
        if self.text.startswith("((", self.pos):
            self.pos += 2
            self.arithmetic()
            return
        self._refused(self.word(), "a value cannot be a name")
        self._lines()
        start = self.pos
        if self.word().keyword != "in":
            self.pos = start
            return
        while True:
            self._blanks()
            if self.text[self.pos : self.pos + 1] in (";", "\n", "#", "&", ""):
                return
            word = self.word()
            if word.end == word.start:
                raise self.unsure(f"{self.text[self.pos]!r} is not expected in the list of a loop")
            _stand_alone(word, self)

    def _case(self) -> None:
        self._deeper()
        self._blanks()
        self.word()
        self._lines()
        if self.word().keyword != "in":
            raise self.unsure("a case without `in`")
        while True:
            self._lines()
            if ends := _ENDS_CASE.match(self.text, self.pos):
                self.pos = ends.end()
                self.depth -= 1
                return
            self._patterns()
            self.commands("case")
            if joiner := _JOINER.match(self.text, self.pos):
                self.pos = joiner.end()

    def _patterns(self) -> None:
        """Up to the parenthesis. A value is quoted there, so that it matches itself only."""
        if self.text.startswith("(", self.pos):
            self.pos += 1
        while True:
            self._blanks()
            word = self.word()
            self._blanks()
            if word.end == word.start or self.text[self.pos : self.pos + 1] not in ("|", ")"):
                raise self.unsure("a pattern of a case that is not followed")
            self.pos += 1
            if self.text[self.pos - 1] == ")":
                return

    def _condition(self) -> None:
        words: list[Word] = []
        while True:
            self._blanks()
            char = self.text[self.pos : self.pos + 1]
            if char == "\n":
                self._newline()
                continue
            if not char or char in "#;" or (char in "<>" and self.text.startswith("(", self.pos + 1)):
                raise self.unsure("this is not followed inside [[ … ]]")
            if char in "()<>&|":
                self.pos += 1
                continue
            word = self.word(is_regex=bool(words) and words[-1].keyword == "=~")
            if word.keyword == "]]":
                break
            words.append(word)
        check_condition(words)

    def _array(self, word: Word) -> None:
        """The elements of `name=( … )`. A subscript is evaluated, so that no value stands in one."""
        self.facts.has_array = True
        self.pos += 1
        while True:
            self._lines()
            if self.text.startswith(")", self.pos):
                break
            element = self.word()
            if element.end == element.start:
                raise self.unsure(f"{self.text[self.pos : self.pos + 1]!r} is not expected in an array")
            if element.plain.startswith("[") and not _ELEMENT.match(element.unquoted):
                self._refused(element, "the shell evaluates the subscript of an array")
            _stand_alone(element, self)
            word.sites += element.sites
        self.pos += 1
        word.end = self.pos

    def _redirect(self, command: _Command, match: re.Match[str]) -> None:
        self.pos = match.end()
        self._blanks()
        word = self.word()
        if word.end == word.start:
            raise self.unsure("a redirection without a target")
        operator = match[1]
        if operator in ("<<", "<<-"):
            if word.sites or "\0" in word.plain or "\n" in word.plain or "`" in word.plain:
                raise self.unsure("a here-document whose delimiter is not plain text")
            self.pending.append((word.plain, operator == "<<-", word.keyword != word.plain))
        elif operator in ("<<<", "<"):
            command.inputs.append(word)
        elif operator in (">&", "<&"):
            self._refused(word, f"the shell takes it for a file descriptor after {operator}")

    def _refused(self, word: Word, why: str) -> None:
        for site in word.direct:
            site.refuse(why)

    def _newline(self) -> None:
        """Past the end of a line, and past the here-documents whose operators were on it."""
        self.pos += 1
        pending, self.pending = self.pending, []
        for delimiter, strips, is_quoted in pending:
            start = self.pos
            while True:
                newline = self.text.find("\n", self.pos)
                stop = self.end if newline < 0 else newline
                line = self.text[self.pos : stop]
                if (line.lstrip("\t") if strips else line) == delimiter:
                    break
                if newline < 0 or (line.endswith("\\") and not is_quoted):
                    raise self.unsure(f"a here-document whose end {delimiter!r} is not found for certain")
                self.pos = newline + 1
            why = "no value goes into a here-document; use a here-string (<<< [name]), or printf '%s' [name] |"
            self.region(start, self.pos, why)
            self.pos = min(stop + 1, self.end)

    def _comment(self) -> None:
        newline = self.text.find("\n", self.pos)
        self.pos = self.end if newline < 0 else newline

    def _blanks(self) -> None:
        while self.pos < self.end:
            if self.text[self.pos] in " \t":
                self.pos += 1
            elif self.text.startswith("\\\n", self.pos):
                around = (self.text[self.pos - 1] if self.pos else " ", self.text[self.pos + 2 : self.pos + 3] or "\n")
                if not any(char in " \t\n" for char in around):
                    raise self.unsure("a line that is continued in the middle of a word")
                self.pos += 2
            else:
                return

    def _lines(self) -> None:
        """Past blanks, comments and the ends of lines."""
        while True:
            self._blanks()
            char = self.text[self.pos : self.pos + 1]
            if char == "\n":
                self._newline()
            elif char == "#":
                self._comment()
            else:
                return


def _is_empty(command: _Command) -> bool:
    return not command.words and not command.assignments


def _stand_alone(word: Word, tracker: Quoting) -> None:
    """A reference that is all of a word may become several words."""
    if len(word.direct) == 1 and word.direct[0].place is Place.BARE:
        site = word.direct[0]
        if (site.start, site.end) == (tracker.offsets[word.start], tracker.offsets[word.end]):
            site.place = Place.WORD
