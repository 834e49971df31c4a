"""Loads msgspec quickly, for commands and hooks whose start is felt: half of its import serves features that they lack.

Left out are UUID and Decimal, which no value of Detent holds, TOML and YAML, and JSON Schemas, which only `detent
schema` makes. The modules that stand in for them are removed again: a later `import uuid` gets the real one.
"""

import sys
from types import ModuleType
from typing import Any

#: Modules that stand in while msgspec is loaded, with the classes that it takes from them.
STAND_INS: dict[str, tuple[str, ...]] = {
    "uuid": ("UUID", "SafeUUID"),
    "decimal": ("Decimal",),
    "msgspec.inspect": (),
    "msgspec._json_schema": ("schema", "schema_components"),
    "msgspec.toml": (),
    "msgspec.yaml": (),
}


def load_msgspec() -> None:
    if "msgspec" in sys.modules:
        return
    stand_ins: dict[str, Any] = {name: _stand_in(name, classes) for name, classes in STAND_INS.items()}
    # msgspec prefers it to `typing`. It loads `inspect`, which takes long.
    stand_ins["typing_extensions"] = None
    added = stand_ins.keys() - sys.modules.keys()
    sys.modules.update((name, stand_ins[name]) for name in added)
    try:
        import msgspec  # noqa: F401, PLC0415
    except (ImportError, AttributeError):
        # Another version of msgspec takes more from them. The next import loads it with the real modules.
        added |= {name for name in sys.modules if name.partition(".")[0] == "msgspec"}
    finally:
        for name in added:
            del sys.modules[name]


def _stand_in(name: str, classes: tuple[str, ...]) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update((each, type(each, (), {"unknown": None})) for each in classes)
    return module
