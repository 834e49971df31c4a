"""`task validate`: checks the task files of a session as they are on disk."""

import os
from typing import TYPE_CHECKING, Any

import msgspec

from detent.cli.request import Request, session_of
from detent.cli.verb import session_option, verb
from detent.core.problem import Problem
from detent.errors import Invalid, StoreFailed

if TYPE_CHECKING:
    from detent.core.task.row import Row
    from detent.engine.project import Project
    from detent.engine.projections.task_files import TaskFiles
    from detent.engine.session import SessionHandle


_FIELDS = ("rule", "file", "path", "severity", "message")


@verb("validate", example="detent task validate")
@session_option
def validate_tasks(request: Request, *, session: str | None) -> int:
    """Check every task file.

    Each problem has a rule, file, JSON path and severity. The exit code is 1 if there are errors.
    """
    from detent.render.terminal.tasks import problems_text

    with request.reading() as project:
        handle = session_of(project, session)
        count, problems = _check_files(project, handle)
    errors = sum(problem.severity == "error" for problem in problems)
    request.answer(
        lambda canvas: problems_text(count, problems, canvas=canvas),
        {
            "session": handle.id,
            "files": count,
            "errors": errors,
            "warnings": len(problems) - errors,
            "problems": [{name: getattr(problem, name) for name in _FIELDS} for problem in problems],
        },
    )
    return 1 if errors else 0


def _check_files(project: "Project", handle: "SessionHandle") -> tuple[int, list[Problem]]:
    """The number of files, and their problems; an unreadable file does not stop the check of the others."""
    from detent.core.task.id import read_id
    from detent.core.task.row import row_of
    from detent.core.task.rules import plan_problems
    from detent.documents.task import FOLDER

    stems = handle.tasks.files.stems()
    problems: list[Problem] = []
    rows: list[Row] = []
    files: list[str] = []
    unreadable: list[str] = []
    for stem in stems:
        file = f"{FOLDER}/{stem}.json"
        document, broken = _document(handle.tasks.files, stem)
        own = [broken] if broken else _problems(_plain(document), stem, project.place.base)
        problems += [msgspec.structs.replace(problem, file=file) for problem in own]
        try:
            rows.append(row_of(_plain(document)))
            files.append(file)
        except (Invalid, AttributeError, TypeError):
            unreadable += [str(read)] if (read := read_id(stem)) else []
    present = {row.id for row in rows} | set(unreadable)
    gone = [id_ for id_ in handle.state.tasks.ids if id_ not in present]
    problems += _not_reported(plan_problems(rows, files, unreadable=[*unreadable, *gone]), problems)
    problems += [
        Problem(
            rule="file-name",
            path="",
            message=f"the file of {id_} is missing; the next command that changes something writes it again",
            severity="warning",
            file=f"{FOLDER}/{id_}.json",
        )
        for id_ in gone
    ]
    return len(stems), problems


def _not_reported(problems: list[Problem], before: list[Problem]) -> list[Problem]:
    """Problems of the plan without those that a single document already reported."""
    reported = {(problem.file, problem.path, problem.message) for problem in before}
    return [problem for problem in problems if (problem.file, problem.path, problem.message) not in reported]


def _document(files: "TaskFiles", stem: str) -> tuple[Any, Problem | None]:
    try:
        data = files.raw(stem)
        if data is None:
            return None, Problem(rule="json", path="", message="it cannot be read: there is no such file")
        data.decode()
        return msgspec.json.decode(data), None
    except UnicodeDecodeError as error:
        return None, Problem(rule="json", path="", message=f"it is not UTF-8 at byte {error.start + 1}")
    except (msgspec.DecodeError, RecursionError) as error:
        return None, Problem(rule="json", path="", message=f"it is not JSON: {error}")
    except StoreFailed as error:
        return None, Problem(rule="json", path="", message=f"it cannot be read: {error.message}")


def _problems(document: Any, stem: str, base: str) -> list[Problem]:
    from detent.core.flow.reference import task_properties
    from detent.core.flow.step import step_problems
    from detent.core.task.document import document_problems

    problems = document_problems(document, stem=stem)
    if not isinstance(document, dict):
        return problems
    reported = {problem.path for problem in problems}
    flow = document.get("flow_control")
    if isinstance(flow, dict) and isinstance(flow.get("pre_analysis"), list):
        steps = step_problems(flow, declared=task_properties(document))
        problems += [problem for problem in steps if problem.path not in reported]
    context = document.get("context")
    paths = context.get("focus_paths") if isinstance(context, dict) else None
    for at, path in enumerate(paths if isinstance(paths, list) else ()):
        where = f"context.focus_paths[{at}]"
        if isinstance(path, str) and where not in reported and not os.path.exists(os.path.join(base, path)):
            message = f"{path!r} does not exist yet"
            problems.append(Problem(rule="focus-paths", path=where, message=message, severity="warning"))
    return problems


def _plain(document: Any) -> Any:
    from detent.documents.task import plain

    return plain(document) if isinstance(document, dict) else document
