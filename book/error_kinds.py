"""Every error of Detent with its kind and exit code, read from the source: some of them need extras to be imported."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "detent"
_BASE = "DetentError"


class ErrorKind(NamedTuple):
    name: str
    exit_code: int
    kind: str
    meaning: str


def errors_of(source: Path) -> Iterator[ErrorKind]:
    """Every class of errors, except the base of all. What a class does not set is that of its base."""
    nodes = list(_classes(source))
    bases = {node.name: node for node in nodes if _has_kind(node)} | {_BASE: _base(nodes)}
    for node in nodes:
        line = list(_lineage(node, bases))
        if node.name != _BASE and bases[_BASE] in line:
            code, kind = (next(value for each in line if (value := _set(each, key)) is not None) for key in _KEYS)
            assert isinstance(code, int)
            assert isinstance(kind, str)
            yield ErrorKind(node.name, code, kind, " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split()))


_KEYS = ("exit_code", "kind")


def _classes(source: Path) -> Iterator[ast.ClassDef]:
    for path in sorted(source.rglob("*.py")):
        text = path.read_text("utf-8")
        if "class " in text:
            yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))


def _base(nodes: list[ast.ClassDef]) -> ast.ClassDef:
    (base,) = (node for node in nodes if node.name == _BASE)
    return base


def _has_kind(node: ast.ClassDef) -> bool:
    """Whether it may be an error: other classes have the same name as some."""
    return any(isinstance(base, ast.Name) for base in node.bases)


def _lineage(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    yield node
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes and classes[base.id] is not node:
            yield from _lineage(classes[base.id], classes)


def _set(node: ast.ClassDef, key: str) -> object:
    """The value that the class itself gives to an attribute; None if it gives none."""
    for line in node.body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
            (target,) = line.targets
            if isinstance(target, ast.Name) and target.id == key:
                return line.value.value
    return None
