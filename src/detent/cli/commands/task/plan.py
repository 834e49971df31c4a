"""`task add`, `split`, `replan`, `remove` and `complexity`: changes the plan."""

import os
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from detent.cli.input import STDIN, parse_json, read_json, read_text
from detent.cli.request import Request
from detent.cli.task import answer_moved, known_task, move_task, task_argument, task_option
from detent.cli.verb import TEXT, session_option, verb
from detent.errors import Invalid, Refused

if TYPE_CHECKING:
    from detent.core.task.split import ChildDraft
    from detent.engine.session import SessionHandle

_TYPES = ("feature", "bugfix", "refactor", "test", "docs")
#: Plans that do not say what should change.
_VAGUE = frozenset(
    {"again", "better", "change it", "do it again", "do it better", "fix", "fix it", "improve", "improve it"}
    | {"make it better", "redo", "redo it", "something else", "try again", "update", "update it"}
)


class _TaskOptions(TypedDict):
    """The options of a new task."""

    parent: str | None
    after: tuple[str, ...]
    require: tuple[str, ...]
    focus: tuple[str, ...]
    accept: tuple[str, ...]
    kind: str | None
    agent: str | None


@verb("add", example='detent task add "Validate the form" --parent IMPL-2 --after IMPL-1 --accept "tests pass"')
@click.argument("title", required=False, type=TEXT)
@task_option("--parent", help="The container of the task.")
@task_option("--after", multiple=True, help="A task it depends on; repeat it.")
@click.option("--require", metavar="TEXT", multiple=True, help="A requirement; repeat it.")
@click.option("--focus", metavar="PATH", multiple=True, help="A file or directory to work on; repeat it.")
@click.option("--accept", metavar="TEXT", multiple=True, help="An acceptance criterion; repeat it.")
@click.option("--type", "kind", type=click.Choice(_TYPES), help="The kind of work; made from TITLE if not given.")
@click.option("--agent", metavar="NAME", help="The agent; made from TITLE if not given.")
@click.option("--file", metavar="FILE", help="Task documents as JSON instead, one or a list; - reads them.")
@session_option
def add_task(
    request: Request, title: str | None, *, file: str | None, session: str | None, **options: Unpack[_TaskOptions]
) -> None:
    """Add a task with the next free number.

    --file adds tasks by their documents, all or none.
    """
    if (title is None) == (file is None):
        raise click.UsageError("give a TITLE, or --file with whole documents")
    if file is not None and (also := [f"--{name}" for name, value in options.items() if value]):
        raise click.UsageError(f"--file has whole documents, so {', '.join(also)} cannot be given too")
    documents = _documents(read_json(request, file)) if file is not None else None
    with request.changing() as project:
        handle = project.session(session)
        if documents is not None:
            outcome = handle.tasks.write(documents, new=True)
        else:
            outcome = handle.tasks.add(
                title or "",
                parent=_container(handle, options["parent"]),
                depends_on=[known_task(handle, other) for other in options["after"]],
                requirements=options["require"],
                focus_paths=options["focus"],
                acceptance=options["accept"],
                kind=options["kind"],
                agent=options["agent"],
            )
        answer_moved(request, project, outcome)


@verb("split", example='detent task split IMPL-2 "Write the form" "Check it on the server"')
@task_argument
@click.argument("parts", metavar="[PART]...", nargs=-1)
@click.option("--file", metavar="FILE", help="The parts as JSON: a list of titles or drafts; - reads it.")
@session_option
def split_task(request: Request, task: str, parts: tuple[str, ...], *, file: str | None, session: str | None) -> None:
    """Break a pending task down into parts.

    It becomes a container, and its parts inherit its requirements. A draft is an object with title and optionally
    requirements, focus_paths, acceptance, target_files, depends_on (ids), after (positions of other parts, from 1),
    type, agent and description.
    """
    if bool(parts) == (file is not None):
        raise click.UsageError("give the titles of the parts, or --file with drafts")
    drafts = _drafts(read_json(request, file)) if file is not None else list(parts)
    move_task(request, session, task, lambda tasks, own: tasks.split(own, drafts))


@verb("replan", example='detent task replan IMPL-3 -m "Passkeys instead of passwords" --reason "the customer asked"')
@task_argument
@click.option("-m", "--message", metavar="TEXT", type=TEXT, help="Further requirements, one per line; - reads them.")
@click.option("--file", metavar="FILE", help="Requirements in .md or .txt, or the changed keys in .json.")
@click.option("--reason", type=TEXT, required=True, help="Why; it is recorded.")
@session_option
def replan_task(
    request: Request, task: str, *, message: str | None, file: str | None, reason: str, session: str | None
) -> None:
    """Change the plan of a task that is not in progress.

    Text is added to its requirements. The keys of a JSON object replace those of the document; objects are merged. The
    version of the task increases; the journal keeps earlier versions.
    """
    if (message is None) == (file is None):
        raise click.UsageError("give -m with the text, or --file")
    changes = _changes(request, file) if file is not None else None
    added = _requirements(message or "") if changes is None and message is not None else []
    with request.changing() as project:
        handle = project.session(session)
        own = known_task(handle, task)
        if changes is None or isinstance(changes, list):
            present = handle.tasks.document(own)["context"].get("requirements") or []
            changes = {"context": {"requirements": [*present, *(changes or added)]}}
        outcome = handle.tasks.replan(own, changes, reason=reason)
        answer_moved(request, project, outcome, wrote="changed")


@verb("remove", example="detent task remove IMPL-3")
@task_argument
@session_option
def remove_task(request: Request, task: str, *, session: str | None) -> None:
    """Remove a task that nothing depends on.

    Its number is never used again. A container without parts becomes a pending task again.
    """
    move_task(request, session, task, lambda tasks, own: tasks.remove(own))


@verb("complexity", example="detent task complexity complex")
@click.argument("level", type=click.Choice(["simple", "medium", "complex"]))
@session_option
def set_complexity(request: Request, level: str, *, session: str | None) -> None:
    """Raise the complexity of the session.

    It also rises with the number of tasks, and never falls.
    """
    with request.changing() as project:
        state = project.session(session).tasks.set_complexity(level).session
    request.answer(
        lambda canvas: canvas.cut(f"{state.id} is {state.complexity}", canvas.width),
        {"session": state.id, "complexity": state.complexity},
    )


def _container(handle: "SessionHandle", parent: str | None) -> str | None:
    if parent is None:
        return None
    from detent.core.task.row import TaskStatus

    own = known_task(handle, parent)
    row = handle.state.tasks[own]
    if row.parent is not None:
        raise Refused(f"{own} is a part itself, and tasks have two levels at most", way_out=f"--parent {row.parent}")
    if row.status is not TaskStatus.CONTAINER:
        raise Refused(f"{own} is {row.status} and has no parts yet", way_out=f'detent task split {own} "PART" "PART"')
    return own


def _documents(decoded: Any) -> list[dict[str, Any]]:
    documents = decoded if isinstance(decoded, list) else [decoded]
    if not documents or not all(isinstance(document, dict) for document in documents):
        raise Invalid(
            "a task document is needed, or a list of them; each is a JSON object", way_out="see docs/tasks.md"
        )
    return documents


def _drafts(decoded: Any) -> "list[ChildDraft | str]":
    import msgspec

    from detent.core.task.split import ChildDraft

    try:
        return msgspec.convert(decoded, list[ChildDraft | str])
    except msgspec.ValidationError as error:
        message = str(error)
        raise Invalid(
            f"the parts cannot be read: {message[:1].lower()}{message[1:]}", way_out="detent task split --help"
        ) from error


def _changes(request: Request, file: str) -> dict[str, Any] | list[str]:
    """The content of a file: keys that change, or more requirements."""
    kind = os.path.splitext(file)[1].lower()
    if kind in (".yaml", ".yml"):
        raise Invalid(f"{file} is YAML, which is not supported", way_out="write it as .json, .md or .txt")
    text = read_text(request, file)
    if kind != ".json" and not (file == STDIN and text.lstrip().startswith("{")):
        return _requirements(text)
    decoded = parse_json(text, file)
    if not isinstance(decoded, dict) or not decoded:
        raise Invalid(f"{file} must be an object with the keys that change")
    return decoded


def _requirements(text: str) -> list[str]:
    """A requirement per line, without the marks of headings and bullets."""
    lines = [line.strip().lstrip("-*+#").strip() for line in text.splitlines()]
    requirements = [line for line in lines if line]
    if all(map(_is_vague, requirements)):
        raise Invalid("the new plan has no requirement that can be worked on", way_out="describe what should change")
    return requirements


def _is_vague(line: str) -> bool:
    return line.rstrip(".!").casefold() in _VAGUE or sum(map(str.isalnum, line)) < 2
