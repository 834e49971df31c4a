"""Prints the coverage data of `make coverage` as a table: one row a room, and the total."""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "detent"


def summaries() -> dict[str, dict[str, int]]:
    """What coverage counted, by module."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-m", "coverage", "json", "-q", "-o", file.name]
        subprocess.run(command, check=True, cwd=ROOT.parents[1])
        files = json.loads(Path(file.name).read_bytes())["files"]
    return {name: fields["summary"] for name, fields in files.items()}


def rooms(by_module: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The same by room, with the total at the end."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, counts in sorted(by_module.items()):
        layer, *parts = Path(name).parts[Path(name).parts.index("detent") + 1 :]
        for room in ("/".join([layer, *parts[:-1][:1]]), "total"):
            for key, count in counts.items():
                sums[room][key] += count if isinstance(count, int) else 0
    return {**{room: sums[room] for room in sums if room != "total"}, "total": sums["total"]}


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:5.1f} %" if whole else "    - "


def main() -> None:
    sys.stdout.write(f"{'room':<22} {'lines':>7} {'covered':>8}   {'branches':>8} {'covered':>8}\n")
    for room, sums in rooms(summaries()).items():
        lines, branches = sums["num_statements"], sums["num_branches"]
        covered = percent(sums["covered_lines"], lines), percent(sums["covered_branches"], branches)
        sys.stdout.write(f"{room:<22} {lines:>7} {covered[0]:>8}   {branches:>8} {covered[1]:>8}\n")


if __name__ == "__main__":
    main()
