"""The guard runs in a bare interpreter for every tool call: it and all that it imports use builtins only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import detent

SOURCE = Path(detent.__file__).parent.parent


def imports(module: str) -> Iterator[str]:
    """The modules that a module imports when it runs, anywhere in it."""
    path = SOURCE.joinpath(*module.split("."))
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    tree = ast.parse(text)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            existing = [name for name in submodules if SOURCE.joinpath(*name.split(".")).with_suffix(".py").exists()]
            yield from existing or [str(node.module)]


def test_the_guard_and_its_imports_use_builtins_only():
    room = SOURCE / "detent" / "core" / "guard"
    todo = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in room.rglob("*.py")]
    todo = [name.removesuffix(".__init__") for name in todo]
    seen: set[str] = set()
    outside = []
    while todo:
        module = todo.pop()
        if module in seen:
            continue
        seen.add(module)
        for name in imports(module):
            if name.startswith("detent.core."):
                todo.append(name)
            else:
                outside.append((module, name))

    assert len(seen) > 15
    assert outside == []
