"""Length limits of texts and lists. A text that must not be lost is refused; one that only informs is cut."""

from detent.errors import Invalid

MAX_TASK = 16_384
MAX_SUMMARY = 150
MAX_REASON = 16_384
MAX_ERROR = 4_096
MAX_NAME = 256
MAX_ARTIFACTS = 1_000
MAX_PATH = 4_096
#: Maximum number of tool calls of an attempt. Of earlier ones only the number is kept.
MAX_TOOLS = 200
#: Text of a running agent is shown and recorded in short.
MAX_TOOL_INPUT = 200
MAX_SAID = 400


def check_task(text: str) -> str:
    return check_text("a task", text, MAX_TASK, way_out="put the details in a file and name it in the task")


def check_text(name: str, text: str, limit: int | None, *, way_out: str | None = None) -> str:
    """`text` without surrounding blanks; `Invalid` if it is empty, too long or not UTF-8."""
    text = text.strip()
    if not text:
        raise Invalid(f"{name} is needed and was empty")
    if limit is not None and len(text) > limit:
        raise Invalid(f"{name} may have {limit} characters and this one has {len(text)}", way_out=way_out)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{name} must be UTF-8 text; character {error.start + 1} is not") from error
    if "\0" in text:
        raise Invalid(f"{name} must be text; it holds a NUL character at {text.index(chr(0)) + 1}")
    return text


def check_optional(name: str, text: str, limit: int | None) -> str:
    """`check_text` for text that may be empty."""
    return check_text(name, text, limit) if text.strip() else ""


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def check_artifacts(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths, each once; `Invalid` if one is absolute or leads out of the project."""
    if len(paths) > MAX_ARTIFACTS:
        raise Invalid(f"a phase may have {MAX_ARTIFACTS} artifacts and {len(paths)} were given")
    problems = [problem for path in paths if (problem := _path_problem(path))]
    if problems:
        raise Invalid("artifacts are paths inside the project", problems)
    return tuple(dict.fromkeys(paths))


def check_deliverables(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len(texts) > MAX_ARTIFACTS:
        raise Invalid(f"a phase may have {MAX_ARTIFACTS} deliverables and {len(texts)} were given")
    return tuple([check_text("a deliverable", text, MAX_PATH) for text in texts]) if texts else ()


def _path_problem(path: str) -> str | None:
    shown = path if len(path) <= 80 else path[:77] + "..."
    if not path.strip() or "\0" in path:
        return f"{shown!r} is not a path"
    if path.startswith("/") or ".." in path.split("/"):
        return f"{shown!r} leads out of the project"
    if len(path) > MAX_PATH:
        return f"{shown!r} is longer than {MAX_PATH} characters"
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"{shown!r} is not UTF-8"
    return None
