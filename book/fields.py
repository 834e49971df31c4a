"""Fields of structs as the reference shows them: name, type, default, and the `#:` comment above the field."""

import ast
import inspect
import re
from functools import cache
from typing import Any, NamedTuple, get_args

import msgspec

#: Types of Python by the name that a reader of TOML or JSON knows.
_PLAIN = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "datetime": "time"}


class Field(NamedTuple):
    name: str
    type: str
    #: Empty if the field is required.
    default: str
    meaning: str


def fields_of(struct: type[msgspec.Struct]) -> list[Field]:
    """The fields that a file has, by the name that the file uses."""
    source = {name: each for owner in reversed(struct.__mro__) for name, each in _declared(owner).items()}
    return [
        Field(field.encode_name, _type(source[field.name].annotation), _default(field), source[field.name].meaning)
        for field in msgspec.structs.fields(struct)
    ]


def structs_in(*declared: Any) -> set[type[msgspec.Struct]]:
    """Every struct that the types hold, at any depth."""
    found: set[type[msgspec.Struct]] = set()
    open_types = [(each,) for each in declared]
    while open_types:
        for each in open_types.pop():
            if isinstance(each, type) and issubclass(each, msgspec.Struct) and each not in found:
                found.add(each)
                open_types.append(tuple(field.type for field in msgspec.structs.fields(each)))
            open_types.append(get_args(each))
    return found


def first_sentence(struct: type) -> str:
    """The first paragraph of the docstring that stands in the class itself."""
    text = ast.get_docstring(_class(struct)) or ""
    return " ".join(text.split("\n\n")[0].split())


class _Declared(NamedTuple):
    annotation: str
    meaning: str


@cache
def _class(owner: type) -> ast.ClassDef:
    body = ast.parse(inspect.getsource(owner)).body[0]
    assert isinstance(body, ast.ClassDef)
    return body


@cache
def _declared(owner: type) -> dict[str, _Declared]:
    if not owner.__module__.startswith("detent."):
        return {}
    lines = inspect.getsource(owner).splitlines()
    return {
        node.target.id: _Declared(ast.unparse(node.annotation), _comment_above(lines, node.lineno - 1))
        for node in _class(owner).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _comment_above(lines: list[str], at: int) -> str:
    comment: list[str] = []
    while at > 0 and lines[at - 1].strip().startswith("#:"):
        at -= 1
        comment.insert(0, lines[at].strip().removeprefix("#:").strip())
    return " ".join(comment)


def _type(annotation: str) -> str:
    """A type as a reader of the file needs it: without the limits, which the schema has."""
    plain = annotation.strip("'\"")
    plain = re.sub(r"Annotated\[(\w+), [^\]]*\]", r"\1", plain)
    plain = re.sub(r"tuple\[(.+?), \.\.\.\]", r"list of \1", plain)
    plain = re.sub(r"Literal\[(.*?)\]", lambda match: match[1].replace("', '", "' or '"), plain)
    plain = re.sub(r"dict\[\w+, (.+)\]", r"table of \1", plain)
    plain = plain.replace(" | None", "").replace("|", "or").replace("'", '"')
    return re.sub(r"\b(str|int|float|bool|datetime)\b", lambda match: _PLAIN[match[1]], plain)


def _default(field: Any) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return _shown(field.default_factory())
    return "" if field.default is msgspec.NODEFAULT else _shown(field.default)


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, msgspec.Struct) or value in ((), {}, []):
        return "empty"
    return msgspec.json.encode(value).decode()
