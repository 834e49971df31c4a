"""Keeps the formats of each released version: `python -m book.formats VERSION` records those of the present code.

`tests/released/VERSION` gets a journal with every event, and the JSON Schemas of the documents. The tests replay the
journal, and compare the schemas with those of the present code. A recorded version is never changed.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
RELEASED = ROOT / "tests" / "released"
JOURNAL, SCHEMAS = "journal.jsonl", "schemas"
_VERSION = re.compile(r"^## \[?(\d+\.\d+\.\d+)", re.MULTILINE)


def released(changelog: str) -> list[str]:
    """The versions that the changelog has a section about, newest first."""
    return _VERSION.findall(changelog)


def record(version: str, directory: Path = RELEASED) -> Path:
    """Record the formats of the present code. Returns the directory; a version that is there already stays."""
    from detent.cli.commands.schema import ENDING, NAMES, schema_of
    from detent.store.line import FORMAT

    target = directory / version
    if target.exists():
        raise FileExistsError(f"the formats of {version} are recorded already: {target}")
    (target / SCHEMAS).mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "store" / f"format-{FORMAT}.jsonl", target / JOURNAL)
    for name in NAMES:
        text = msgspec.json.format(msgspec.json.encode(schema_of(name)), indent=1)
        (target / SCHEMAS / f"{name}{ENDING}").write_bytes(text + b"\n")
    return target


def broken_promises(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What a reader of the older schema would miss: a field that is gone or has another type."""
    return sorted(set(_broken(before, now, before, now, "", frozenset())))


def _broken(
    before: dict[str, Any],
    now: dict[str, Any],
    old_root: dict[str, Any],
    root: dict[str, Any],
    at: str,
    seen: frozenset[str],
) -> list[str]:
    name = before.get("$ref", "")
    if name in seen:
        return []
    before, now, seen = _resolved(before, old_root), _resolved(now, root), seen | {name} - {""}
    problems = []
    if "type" in before and before["type"] != now.get("type", before["type"]):
        problems.append(f"{at or 'document'}: the type was {before['type']} and is {now['type']}")
    for field, shape in before.get("properties", {}).items():
        there = now.get("properties", {}).get(field)
        if there is None:
            problems.append(f"{at}.{field} is gone".lstrip("."))
        else:
            problems += _broken(shape, there, old_root, root, f"{at}.{field}".lstrip("."), seen)
    for key in ("items", "additionalProperties"):
        if isinstance(before.get(key), dict) and isinstance(now.get(key), dict):
            problems += _broken(before[key], now[key], old_root, root, f"{at}[]", seen)
    return problems + _gone_choices(before, now, old_root, root, at, seen)


def _gone_choices(
    before: dict[str, Any],
    now: dict[str, Any],
    old_root: dict[str, Any],
    root: dict[str, Any],
    at: str,
    seen: frozenset[str],
) -> list[str]:
    """Of a union: members that are gone, by their name or plain type, and what changed in those that stayed."""
    members = {_member(each): each for each in now.get("anyOf", [now])}
    problems = []
    for each in before.get("anyOf", []):
        there = members.get(_member(each))
        if there is None:
            problems.append(f"{at or 'document'}: {_member(each)} is gone")
        else:
            problems += _broken(each, there, old_root, root, f"{at}({_member(each)})", seen)
    return problems


def _member(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", schema.get("type", schema.get("const", schema.get("enum", "value"))))).rpartition(
        "/"
    )[2]


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def main(arguments: list[str]) -> int:
    """Record the formats of a version."""
    (version,) = arguments
    print(f"recorded {record(version)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
