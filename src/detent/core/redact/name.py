"""Recognises secrets by their name: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, `<password>…</password>`.

Source code and prose are full of such names beside a harmless value: a type, a reference, a number of tokens, an
address. A value that is quoted, or written without blanks around `=`, is a secret unless it is one of these; any other
value must also look like a secret.

The work grows with the length of the text and no faster: a value is judged by its first `MAX_JUDGED` characters, and
read to its end only where it is a secret, after which the search continues behind it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

MAX_JUDGED = 256

_WORD = (
    r"passwords?|passwd|passphrase|secrets?|tokens?|credentials?|api[_-]?keys?"
    r"|(?:private|access|account|auth|signing|encryption)[_-]?key"
    # `pass` and `pwd` alone mean many things: a test that passes, a directory.
    r"|(?:db|database|my|pg|sql|mysql|maria|mariadb|postgres|postgresql|mssql|oracle|redis|mongo|mongodb|rabbitmq|amqp|smtp|imap"
    r"|mail|e?mail|ftp|sftp|ssh|ldap|admin|root|user|http|https|proxy|api|app|auth|basic|login|sudo|registry|docker|git|wifi"
    r"|keystore|truststore|cert|service|svc|client|server|remote)[_-]?(?:pass|pwd|pw)(?![a-z])"
)
_PAIR = re.compile(
    rf"""(?P<word>{_WORD})(?P<rest>[\w.-]{{0,64}}+)(?P<close>\\?["'`\]])?
    (?P<blank>[^\S\n]{{0,4}}) (?: :\s?\w{{1,20}}\s{{0,2}}(?==) )?                # an annotated variable
    (?: (?P<separator>=>|:=|!?={{1,3}}|:(?!:|//))(?P<after>[^\S\n]{{0,4}}) | [ ]) # only a flag has no separator
    (?: [bfru]?\\(?P<escaped>["'])(?P<inner>(?:(?!\\(?P=escaped)).){{0,{MAX_JUDGED}}})
      | [bfru]?(?P<quote>["'`])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n]){{0,{MAX_JUDGED}}})
      | (?P<bare>(?:\[redacted:[\w-]+\]|[^\s"'`,;&)\]}}<>|\\]){{1,{MAX_JUDGED}}}) )""",
    re.IGNORECASE | re.VERBOSE,
)
#: The rest of a value that is longer than what is judged of it.
_BARE_REST = re.compile(r"""(?:\[redacted:[\w-]+\]|[^\s"'`,;&)\]}<>|\\])*""")
_QUOTED_REST = {quote: re.compile(rf"(?:\\.|[^{quote}\\\n])*") for quote in "\"'`"}
_ESCAPED_REST = {quote: re.compile(rf"(?:(?!\\{quote}).)*") for quote in "\"'"}
#: Quotes that open or close a string; an apostrophe inside a word does neither.
_STRING_QUOTE = {quote: re.compile(rf"(?<![A-Za-z\\]){quote}|(?<!\\){quote}(?![A-Za-z])") for quote in "\"'`"}
_ELEMENT = re.compile(rf"<(?P<name>[\w.:-]{{0,40}}?(?:{_WORD})[\w.-]{{0,40}})>(?P<value>[^<\n]+)</", re.IGNORECASE)

_KINDS = {"pass": "password", "secr": "secret", "toke": "token", "cred": "credential"}

REDACTED = re.compile(r"\[redacted:[\w-]+\]")
_NOTHING = re.compile(
    r"""(?ix) \s* (?: true|false|yes|no|on|off|none|null|nil|undefined|n/?a|todo|tbd|required|optional|any|value|example
    | (?:str|string|text|varchar|char|bytes|bool|boolean|int|uint|integer|number|float|object|base|sha|md)\d*
    | your[\s_-].* | x{3,} | \#[0-9a-f]{3,8} | \*+ | \.{3} | \u2026 | <.*>? | \{.*
    | \$[({].* | \$[a-z_]+ | (?-i:\$[A-Z][A-Z0-9_]*) | %\w+% | %s | %\(\w+\)s )? \s* """
)
_CODE = re.compile(r"(?!\[redacted:)(?:[A-Za-z_$][\w.$]*)?[(\[].*")
_ATTRIBUTE = re.compile(r"[A-Za-z_$]+(?:\.[A-Za-z_$]+)+")
_NUMBER = re.compile(r"[\d_.,kKmM]+")
_LETTERS = re.compile(r"[A-Za-z_.-]+")
#: `tokenizer`, `secretary`, `passwordless`: another word that begins alike.
_OTHER_WORD = re.compile(r"(?i)i[sz](?:e|ing|ation|er)|ary|aries|less|ly\b")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_COMPARISONS = frozenset(("==", "===", "!=", "!=="))
_TO_BLANK = re.compile(r"\S*")

#: Last words of names that say something about a secret and are none.
_ABOUT = frozenset(
    re.findall(
        r"\w+",
        """
        algorithm at attempts budget class count dir enabled end endpoint env error expiration expired expires
        expiry field file filename format header hint id ids in index iterator kind label len length limit limits
        manager max message min mode model module name names path pattern placeholder policy position prompt
        provider range ref regex required rotation rules scheme size source start store stream strength text
        title ttl type types uri url usage used valid validator var version
        """,
    )
)
_ASKING = frozenset(("has", "invalid", "is", "max", "min", "missing", "no", "num", "wrong", "forgot"))


class Secret(NamedTuple):
    kind: str
    start: int
    end: int


def named_secrets(text: str) -> Iterator[Secret]:
    """From left to right, without overlap."""
    position = 0
    quotes = _Quotes(text)
    while match := _PAIR.search(text, position):
        group = next(each for each in ("inner", "quoted", "bare") if match[each] is not None)
        start, end = match.span(group)
        name_start = _name_start(text, match.start())
        is_assigned = group == "bare" and _is_assignment(text, name_start, match)
        value = text[start:end]
        if is_assigned:
            value = _TO_BLANK.match(text, start, start + MAX_JUDGED)[0]  # type: ignore[index]
        elif group == "bare":
            value = _unpunctuated(value)
        if _is_secret(text, quotes, match, name_start, value, is_assigned=is_assigned):
            if is_assigned:
                end = _TO_BLANK.match(text, start).end()  # type: ignore[union-attr]
            else:
                end = _rest(match, group).match(text, end).end()  # type: ignore[union-attr]
                end = start + len(_unpunctuated(text[start:end])) if group == "bare" else end
            yield Secret(_kind(match["word"]), start, end)
            position = end
        else:
            # The value may hold a pair of its own.
            position = max(start, match.start() + 1)


def _unpunctuated(value: str) -> str:
    """The value without the end of a sentence, or the colon after a condition."""
    return value.rstrip(":.") or value[:1]


def _rest(match: re.Match[str], group: str) -> re.Pattern[str]:
    if group == "bare":
        return _BARE_REST
    return _QUOTED_REST[match["quote"]] if group == "quoted" else _ESCAPED_REST[match["escaped"]]


def element_secrets(text: str) -> Iterator[Secret]:
    for match in _ELEMENT.finditer(text):
        kind = name_kind(match["name"])
        if kind and not is_nothing(match["value"]) and not is_count(kind, match["value"]):
            yield Secret(kind, *match.span("value"))


def name_kind(name: str) -> str | None:
    """The kind of secret that a field of this name holds, if it holds one."""
    name = REDACTED.sub("", name)
    match = re.search(_WORD, name, re.IGNORECASE)
    if match is None or _OTHER_WORD.match(name, match.end()) or _is_about(name):
        return None
    return _kind(match[0])


def is_nothing(value: str) -> bool:
    """Whether the value only marks a place: empty, a variable, a type, or a secret that is gone already."""
    return bool(_NOTHING.fullmatch(value) or REDACTED.fullmatch(value))


def is_count(kind: str, value: str) -> bool:
    """Tokens are counted; a password of digits is still a password."""
    return kind == "token" and bool(_NUMBER.fullmatch(value))


def _is_secret(
    text: str, quotes: "_Quotes", match: re.Match[str], name_start: int, value: str, *, is_assigned: bool
) -> bool:
    if text.endswith("[redacted:", 0, name_start):
        return False
    name = text[name_start : match.end("rest")]
    kind = name_kind(name)
    if kind is None or is_nothing(value) or is_count(kind, value):
        return False
    is_flag = text.startswith("--", name_start)
    if match["separator"] is None and not is_flag:
        return False
    looks_like_one = len(value) >= 6 and not _LETTERS.fullmatch(value)
    if match["bare"] is None:
        if match["quote"] and not match["close"] and quotes.is_inside(match["quote"], name_start):
            # The quote ends a string that the name is in, as in `input("Password: ")`.
            return False
        if match["separator"] in _COMPARISONS:
            return looks_like_one
        # "Wrong password", "token is required": a message about it.
        return not (" " in value.strip() and _mentions(value) and not re.search(r"\d", value))
    if _CODE.fullmatch(value):
        return False
    if is_assigned:
        return len(value) >= 4
    if _ATTRIBUTE.fullmatch(value):
        return False
    if _LETTERS.fullmatch(value) and _mentions(value):
        return False
    if match["separator"] == "=" and not match["blank"] and not match["after"]:
        is_argument = name.islower() and text[match.end() : match.end() + 1] in (",", ")")
        return len(value) >= 4 and not (is_argument and _LETTERS.fullmatch(value))
    return looks_like_one


class _Quotes:
    """The quotes of a text, listed once for all pairs in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, list[int]] = {}

    def is_inside(self, quote: str, position: int) -> bool:
        """Whether a string that opened on the same line, at most 500 characters before, is open at `position`."""
        text, places = self._text, self._places.get(quote)
        if places is None:
            places = self._places[quote] = [match.start() for match in _STRING_QUOTE[quote].finditer(text)]
        first = max(0, position - 500)
        first = max(first, text.rfind("\n", first, position) + 1)
        count = bisect_left(places, position - 1) - bisect_left(places, first)
        # A quote right before the name opens a string, although a letter follows it.
        return (
            count + (text.endswith(quote, first, position) and not text.endswith("\\" + quote, first, position))
        ) % 2 == 1


def _is_assignment(text: str, name_start: int, match: re.Match[str]) -> bool:
    """Whether the pair is a line of an environment file or a shell, where a value extends to the next blank."""
    line_start = text.rfind("\n", max(0, name_start - 20), name_start) + 1
    before = text[line_start:name_start] if line_start or name_start <= 20 else "?"
    is_shell = (
        before.strip() in ("", "export", "ENV", "set", "-", "-e") and text[name_start : match.end("rest")].isupper()
    )
    return is_shell and match["separator"] == "=" and not match["blank"] and not match["after"]


def _name_start(text: str, position: int) -> int:
    first = max(0, position - 64)
    while position > first and (text[position - 1].isalnum() or text[position - 1] in "_.-"):
        position -= 1
    return position


def _mentions(value: str) -> bool:
    return re.search(_WORD, value, re.IGNORECASE) is not None


def _is_about(name: str) -> bool:
    parts = [part.lower() for part in _PARTS.findall(name)]
    return bool(parts) and (parts[-1] in _ABOUT or parts[0] in _ASKING)


def _kind(word: str) -> str:
    if word.lower().endswith(("pass", "pwd", "pw")):
        return "password"
    return _KINDS.get(word[:4].lower(), "api-key" if word.lower().startswith("api") else "key")
