"""Loads msgspec quickly, for commands and hooks whose start is felt: half of its import serves features that they lack.

Left out are UUID and Decimal, which no value of Detent holds, TOML and YAML; JSON Schemas are loaded when the first is
made. The modules that stand in for them are removed again: a later `import uuid` gets the real one.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

#: Modules that stand in while msgspec is loaded, with the classes that it takes from them.
STAND_INS: dict[str, tuple[str, ...]] = {
    "uuid": ("UUID", "SafeUUID"),
    "decimal": ("Decimal",),
    "msgspec.inspect": (),
    "msgspec.toml": (),
    "msgspec.yaml": (),
}
_SCHEMAS, _SCHEMA_FUNCTIONS = "msgspec._json_schema", ("schema", "schema_components")


def load_msgspec() -> None:
    if "msgspec" in sys.modules:
        return
    stand_ins: dict[str, Any] = {name: ModuleType(name) for name in (*STAND_INS, _SCHEMAS)}
    for name, classes in STAND_INS.items():
        stand_ins[name].__dict__.update((each, type(each, (), {"unknown": None})) for each in classes)
    stand_ins[_SCHEMAS].__dict__.update((name, _schema_function(name)) for name in _SCHEMA_FUNCTIONS)
    # msgspec prefers it to `typing`. It loads `inspect`, which takes long.
    stand_ins["typing_extensions"] = None
    added = stand_ins.keys() - sys.modules.keys()
    sys.modules.update((name, stand_ins[name]) for name in added)
    try:
        import msgspec  # noqa: PLC0415

        for name in added:
            package, _, part = name.rpartition(".")
            if package and hasattr(msgspec, part):
                delattr(msgspec, part)
    except (ImportError, AttributeError):
        # Another version of msgspec takes more from them. The next import loads it with the real modules.
        added |= {name for name in sys.modules if name.partition(".")[0] == "msgspec"}
    finally:
        for name in added:
            del sys.modules[name]


def _schema_function(name: str) -> Callable[..., Any]:
    def made(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(_SCHEMAS), name)(*arguments, **options)

    return made
