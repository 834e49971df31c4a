"""Loads psycopg quickly, for commands whose start is felt: a third of its import serves features that they lack.

Left out are asyncio, which only its asynchronous half uses, and the search for its own version. The modules that stand
in for them are removed again: a later `import asyncio` gets the real one.
"""

import sys
from types import ModuleType
from typing import Any, Self

#: Modules that stand in while psycopg is loaded, with the values that it uses: it has this version where it finds none.
STAND_INS: dict[str, dict[str, Any]] = {
    "asyncio": {},
    "importlib.metadata": {"version": lambda name: "0.0.0.0"},  # noqa: ARG005, S104 - no address
}


class _Absent(Exception):
    """Stands in for every other name: a class, a generic class or an error."""

    def __class_getitem__(cls, _: object) -> type[Self]:
        return cls


def load_psycopg() -> Any:
    """The module `psycopg`; `ImportError` if it is not installed."""
    before = set(sys.modules)
    added = STAND_INS.keys() - before if "psycopg" not in before else set()
    for name in added:
        stand_in = sys.modules[name] = ModuleType(name)
        stand_in.__dict__.update(STAND_INS[name], __getattr__=lambda _: _Absent)
    try:
        import psycopg  # noqa: PLC0415
    except (ImportError, AttributeError, TypeError):
        # Another version of psycopg takes more from them. The next import loads it with the real modules.
        added |= {name for name in sys.modules.keys() - before if name.startswith("psycopg")}
    finally:
        for name in added:
            del sys.modules[name]
    import psycopg  # noqa: PLC0415

    return psycopg
