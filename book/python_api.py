"""The public Python API as the reference shows it: names, signatures and the first paragraphs of docstrings."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

#: What the page has besides the names of `detent.__all__`: heading, module, name.
_REACHED = (
    ("Session, from `project.start` and `project.session`", "detent.engine.session", "SessionHandle"),
    ("Attempt, from `session.attempt`", "detent.engine.attempt", "Attempt"),
    ("`session.gates`", "detent.engine.session", "SessionGates"),
    ("`session.checkpoints`", "detent.engine.session", "SessionCheckpoints"),
    ("`session.tasks`", "detent.engine.tasks.tasks", "Tasks"),
    ("`project.sessions`", "detent.engine.sessions", "Sessions"),
)


class Member(NamedTuple):
    signature: str
    meaning: str


def functions_of(module: ModuleType) -> dict[str, Member]:
    """The functions of a module's `__all__`."""
    offered = {name: getattr(module, name) for name in sorted(module.__all__)}
    return {name: function_of(name, value) for name, value in offered.items() if inspect.isfunction(value)}


def members_of(owner: type) -> dict[str, Member]:
    """The public methods and properties of a class, in the order of the source."""
    found: dict[str, Member] = {}
    for each in reversed(owner.__mro__):
        for name, value in vars(each).items() if each.__module__.startswith("detent.") else ():
            if not name.startswith("_"):
                found[name] = _member(name, value)
    return found


def constructor_of(owner: type) -> Member:
    """How an object of the class is made."""
    made = vars(owner).get("__init__")
    return Member(f"{owner.__name__}()", "") if made is None else function_of(owner.__name__, made, drop=True)


def _member(name: str, value: Any) -> Member:
    match value:
        case property():
            return Member(f"{name}: {_returns(value.fget)}", _paragraph(value.fget))
        case cached_property():
            return Member(f"{name}: {_returns(value.func)}", _paragraph(value.func))
        case staticmethod() | classmethod():
            return function_of(name, value.__func__, drop=isinstance(value, classmethod))
        case _ if inspect.isfunction(value):
            return function_of(name, value, drop=True)
        case _:
            return Member(name, "")


def function_of(name: str, function: Any, *, drop: bool = False) -> Member:
    """`drop` leaves the first argument out, which is the object itself."""
    node = _node(function)
    arguments = node.args
    if drop:
        arguments.args = arguments.args[1:] if arguments.args else arguments.args
    is_made = node.name == "__init__"
    returned = f" -> {_plain(node.returns)}" if node.returns is not None and not is_made else ""
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return Member(f"{prefix}{name}({_plain(arguments)}){returned}", _paragraph(function))


def _returns(function: Any) -> str:
    returns = _node(function).returns
    return _plain(returns) if returns is not None else "object"


def _node(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def _plain(node: ast.AST) -> str:
    """Annotations without the quotes of forward references."""

    class Unquoted(ast.NodeTransformer):
        def visit_arg(self, argument: ast.arg) -> ast.arg:
            if isinstance(argument.annotation, ast.Constant) and isinstance(argument.annotation.value, str):
                argument.annotation = ast.parse(argument.annotation.value, mode="eval").body
            return argument

    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return ast.unparse(Unquoted().visit(node))


def _paragraph(function: Any) -> str:
    text = inspect.getdoc(inspect.unwrap(function)) or ""
    return " ".join(text.split("\n\n")[0].split())


def reached() -> Iterator[tuple[str, type]]:
    """Classes whose objects are reached from a project, with their headings."""
    for heading, module, name in _REACHED:
        yield heading, getattr(import_module(module), name)
