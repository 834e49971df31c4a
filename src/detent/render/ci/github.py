"""Workflow commands of GitHub Actions. Text of a record can never become one."""

from collections.abc import Iterable

from detent.core.ci import Annotation


def annotation_lines(annotations: Iterable[Annotation]) -> list[str]:
    return [_line(annotation) for annotation in annotations]


def _line(annotation: Annotation) -> str:
    fields = {"file": annotation.file, "title": annotation.title}
    shown = ",".join(f"{name}={_property(value)}" for name, value in fields.items() if value)
    return f"::{annotation.level} {shown}::{_data(annotation.message)}"


def quoted(text: str, token: str) -> str:
    """The text between commands that make the runner take no command from it; `token` must be unguessable."""
    return f"::stop-commands::{token}\n{text}\n::{token}::"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
