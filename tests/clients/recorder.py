"""A hook that keeps what a client tells it, and replies as a test says. Run as a program it is the hook itself."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any


class Recorder:
    """The test's side: rules for the hook's replies, and the events it was called with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rules: list[dict[str, Any]] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def command(self) -> str:
        return shlex.join([sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(self.folder)])

    def reply(self, event: str, reply: str, *, containing: str = "", times: int = 1) -> None:
        """The first `times` calls for this event whose input contains the text are answered so."""
        self._rules.append({"event": event, "reply": reply, "containing": containing, "times": times})
        (self.folder / "rules.json").write_text(json.dumps(self._rules))

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """What the hook was called with, oldest first."""
        log = self.folder / "events.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        events = [json.loads(line) for line in lines]
        return [event for event in events if name in (None, event["hook_event_name"])]


def main(folder: Path) -> None:
    raw = sys.stdin.read()
    event = json.loads(raw)
    log = os.open(folder / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(log, json.dumps(event).encode() + b"\n")  # one write to an appending file: hooks run side by side
    os.close(log)
    rules = folder / "rules.json"
    for number, rule in enumerate(json.loads(rules.read_text()) if rules.exists() else []):
        if rule["event"] == event["hook_event_name"] and rule["containing"] in raw and _claim(folder, number, rule):
            sys.stdout.write(rule["reply"])
            return


def _claim(folder: Path, number: int, rule: dict[str, Any]) -> bool:
    for time in range(rule["times"]):
        try:
            os.close(os.open(folder / f"rule-{number}-{time}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return True
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
