"""Finds the sites of a command in the tree of the shell reader.

A value goes only into words of the tree, unquoted or in any quotes. A reference anywhere else is refused: in a
here-document, in arithmetic, in `${…}`, in a name. A command that bash may parse in another way is refused as a whole.
"""

import re
from collections.abc import Collection

from detent.core.flow.evaluator import (
    ASSIGNMENT,
    check_assignment,
    check_command,
    check_condition,
    makes_attribute,
)
from detent.core.flow.reference import find, reference_at
from detent.core.flow.site import Place, Site, Unsure, Word
from detent.core.guard.shell.grammar import DECLARING, parse
from detent.core.guard.shell.tree import Assign, Node, Part, Redirect, Script
from detent.core.guard.shell.tree import Word as Parts

_ELEMENT = re.compile(r"\[[0-9]+\]=")
_IN_DOCUMENT = "no value goes into a here-document; use a here-string (<<< [name]), or printf '%s' [name] |"
_IN_NUMBER = "the shell evaluates it as arithmetic there"
_IN_PARAMETER = "the shell may evaluate it inside ${…}"
_NOWHERE = "no value can stand there: it is no word of a command"


def track(text: str, declared: Collection[str]) -> tuple[Site, ...]:
    """Every reference outside of comments, in order; `Unsure` if bash may parse the command in another way."""
    reader = parse(text)
    if reader.doubts:
        raise Unsure(*min(reader.doubts, key=lambda doubt: doubt[0]))
    tracker = _Tracker(text, declared)
    tracker.script(reader.nodes, [])
    return tracker.all_sites(reader.comments)


class _Tracker:
    def __init__(self, text: str, declared: Collection[str]) -> None:
        self.text, self.declared = text, declared
        self.sites: list[Site] = []
        self.assigned: list[Site] = []
        self.exported: list[Site] = []  # assigned by `export` and its like
        self.has_number = self.has_array = False

    def all_sites(self, comments: list[tuple[int, int]]) -> tuple[Site, ...]:
        for site in self.assigned * self.has_number + self.exported * (self.has_number or self.has_array):
            site.refuse(
                "variables of this command are numbers, arrays or references, for which the shell may evaluate it"
            )
        known = {site.start for site in self.sites}
        for match in find(self.text, self.declared):
            start = match.reference.start
            is_comment = any(begin <= start < end for begin, end in comments)
            if not match.escaped and not is_comment and start not in known:
                self._site(match.reference.name, start, match.reference.end, Place.BARE).refuse(_NOWHERE)
        return tuple(sorted(self.sites, key=lambda site: site.start))

    def script(self, nodes: Script, fed: list[Site]) -> None:
        """`fed` are the sites whose values the commands may read as their standard input."""
        for node in nodes:
            self._node(node, fed)

    def _node(self, node: Node, fed: list[Site]) -> None:
        before = len(self.sites)
        for redirect in node.redirects:
            fed = fed + self._redirect(redirect)
        if node.kind == "simple":
            self._simple(node, fed)
            return
        words = [self._word(parts) for parts in node.words]
        if node.kind == "test":
            check_condition(words)
        elif node.kind == "for":
            for word, parts in zip(words, node.words, strict=True):
                _stand_alone(word, parts)
        for body in node.bodies:
            self.script(body, fed)
            if node.kind == "pipe":
                fed = self.sites[before:]

    def _redirect(self, redirect: Redirect) -> list[Site]:
        """The sites that the redirection puts on standard input."""
        if redirect.op == "<<":
            self._refuse_region(redirect.start, redirect.end, _IN_DOCUMENT)
            return []
        word = self._word(redirect.word)
        if redirect.op in (">&", "<&"):
            for site in word.direct:
                site.refuse(f"the shell takes it for a file descriptor after {redirect.op}")
        return word.sites if redirect.op in ("<<<", "<") else []

    def _simple(self, node: Node, fed: list[Site]) -> None:
        words = [self._word(parts) for parts in node.words]
        for word, parts in zip(words, node.words, strict=True):
            _stand_alone(word, parts)
        for assign in node.assigns:
            self._assign(assign, exports=bool(words))
        if not words:
            return
        check_command(words, fed)
        self.has_number = self.has_number or makes_attribute(words, "in")
        self.has_array = self.has_array or makes_attribute(words, "aA")
        if any(word.plain in DECLARING for word in words):
            self.exported += [site for word in words if ASSIGNMENT.match(word.unquoted) for site in word.sites]

    def _assign(self, assign: Assign, *, exports: bool) -> None:
        self.has_array = self.has_array or assign.is_array
        for parts in assign.words:
            word = self._word(parts)
            if assign.is_array:
                _stand_alone(word, parts)
                if word.plain.startswith("[") and not _ELEMENT.match(word.unquoted):
                    for site in word.direct:
                        site.refuse("the shell evaluates the subscript of an array")
            for site in word.direct:
                if site.place is Place.BARE and not assign.is_array:
                    site.place = Place.ASSIGNED
            check_assignment(assign.name, word)
            (self.exported if exports else self.assigned).extend(word.sites)

    def _word(self, parts: Parts) -> Word:
        word = Word()
        before = len(self.sites)
        for part in parts:
            self._part(word, part)
        word.sites = self.sites[before:]
        return word

    def _part(self, word: Word, part: Part) -> None:
        if part.kind == "raw":
            word.is_pattern = word.is_pattern or any(char in part.text for char in "*?{")
            self._literal(word, part.start, part.end, Place.BARE)
        elif part.kind in ("sub", "proc"):
            self.script(part.script, [])
            word.add("\0", quoted=True)
        elif part.kind in ("var", "num"):
            self._refuse_region(part.start, part.end, _IN_NUMBER if part.kind == "num" else _IN_PARAMETER)
            word.add("\0", quoted=True)
        elif part.quote == "'":
            self._literal(word, part.start + 1, part.end - 1, Place.SINGLE)
        elif part.quote == "$" and not self._has_reference(part):
            word.add(part.text, quoted=True)
        elif part.quote == "$":
            self._literal(word, part.start + 2, part.end - 1, Place.ANSI)
        elif self.text[part.start] == "\\":
            word.add(part.text, quoted=True)
            if part.quote == '"' and (escaped := reference_at(self.text, part.start + 1, self.declared)):
                self._site(escaped.name, part.start, part.start + 1, Place.ESCAPE)
        else:
            self._literal(word, part.start, part.end if part.text else part.start, Place.DOUBLE)

    def _has_reference(self, part: Part) -> bool:
        return any(find(self.text, self.declared, part.start, part.end))

    def _literal(self, word: Word, start: int, end: int, place: Place) -> None:
        """Add literal text and the sites of its references."""
        is_quoted = place is not Place.BARE
        word.add("", quoted=is_quoted)
        for match in find(self.text, self.declared, start, end):
            reference = match.reference
            word.add(self.text[start : reference.start - match.escaped], quoted=is_quoted)
            start = reference.start
            if match.escaped:
                self._site(reference.name, start - 1, start, Place.ESCAPE)
            else:
                word.direct.append(self._site(reference.name, start, reference.end, place))
                word.add("\0", quoted=True)
                start = reference.end
        word.add(self.text[start:end], quoted=is_quoted)

    def _site(self, name: str, start: int, end: int, place: Place) -> Site:
        site = Site(name=name, start=start, end=end, place=place)
        self.sites.append(site)
        return site

    def _refuse_region(self, start: int, stop: int, why: str) -> None:
        """Refuse all references of a region; an escaped reference loses its backslash."""
        for match in find(self.text, self.declared, start, stop):
            reference = match.reference
            if match.escaped:
                self._site(reference.name, reference.start - 1, reference.start, Place.ESCAPE)
            else:
                self._site(reference.name, reference.start, reference.end, Place.BARE).refuse(why)


def _stand_alone(word: Word, parts: Parts) -> None:
    """A reference that is all of a word may become several words."""
    if len(parts) == 1 and len(word.direct) == 1 and word.direct[0].place is Place.BARE and word.plain == "\0":
        word.direct[0].place = Place.WORD
