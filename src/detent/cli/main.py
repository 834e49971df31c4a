"""The entry point of `detent`: answers the arguments, and turns errors into messages and exit codes."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from detent.cli.plain import COMMON, PLAIN_VERBS, read_plain
from detent.cli.request import Request, print_error, visible, write_json
from detent.errors import DetentError, Invalid, StoreFailed
from detent.load_msgspec import load_msgspec

INTERRUPTED, BUG = 130, 70


def main() -> None:
    if sys.stdout is None or sys.stdin is None:
        # The parent process closed them, and the rest of the code relies on them.
        sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    # A command allocates much and frees little: the usual garbage collection takes a tenth of its time.
    gc.set_threshold(50_000, 20, 20)
    code = run(sys.argv[1:])
    _exit(code)


def _exit(code: int) -> NoReturn:
    """End the process, and with it its memory. To take it apart first would take a tenth of the time of a command."""
    gc.freeze()
    threading = sys.modules.get("threading")
    # A thread that does not end with the process has work to finish. Others may be in code that cannot be taken apart.
    if threading is not None and sum(not each.daemon for each in threading.enumerate()) > 1:
        sys.exit(code)
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no other way to call them
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Answer the arguments; returns the exit code."""
    request = Request()
    try:
        _check_text(arguments)
        code = _answer(arguments, request)
        request.print_notices()
        sys.stdout.flush()
    except DetentError as error:
        return _refuse(request, error, as_json=request.json or (error.exit_code == 2 and "--json" in arguments))
    except KeyboardInterrupt:
        request.clear_progress()
        request.print_notices()
        print_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe early. The command itself succeeded.
        _drop_output()
        return 0
    except OSError as error:
        named = f" {error.filename}" if error.filename else ""
        failed = StoreFailed(f"could not use{named}: {error.strerror or error}", way_out="fix the problem and retry")
        return _refuse(request, failed, as_json=request.json)
    except Exception:  # noqa: BLE001 - the boundary: any other exception is a bug and is shown as one
        return _report_bug(request)
    return code


def _answer(arguments: list[str], request: Request) -> int:
    if "DETENT_SOCKET" in os.environ:
        from detent.engine.agents.forward import forward_command, is_forwarded

        if is_forwarded(arguments):
            return forward_command(arguments)
    if "_DETENT_COMPLETE" in os.environ:
        from detent.cli.commands.completion import complete

        return complete(os.environ["_DETENT_COMPLETE"])
    if arguments and arguments[0] in PLAIN_VERBS:
        name, *rest = arguments
        load_msgspec()
        module = import_module(f"detent.cli.commands.{name}")
        values = read_plain(module.PARAMETERS, rest)
        if values is not None:
            for option in COMMON:
                if option.name in values:
                    setattr(request, option.name, values.pop(option.name))
            getattr(module, name)(request, **values)
            return 0
    if arguments[:1] == ["hook"] and len(arguments) > 1 and arguments[2:] in ([], ["--plugin"]):
        from detent.clients.registry import with_hooks

        if arguments[1] in with_hooks():
            from detent.hooks.answer import respond

            return respond(arguments[1:])
    if arguments == ["task", "next"]:
        load_msgspec()
        from detent.cli.task_next import show_next

        if show_next(request):
            return 0
    from detent.cli.app import invoke

    return invoke(arguments, request)


def _check_text(arguments: list[str]) -> None:
    for number, argument in enumerate(arguments, 1):
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise Invalid(
                f"argument {number} is not UTF-8 text: {os.fsencode(argument)[:60]!r} goes wrong at {error.start + 1}",
                way_out="convert it to UTF-8, for instance with iconv -f latin1 -t utf-8",
            ) from error


def _refuse(request: Request, error: DetentError, *, as_json: bool) -> int:
    try:
        if as_json:
            message = "\n".join(map(visible, error.message.split("\n")))
            record = {"kind": error.kind, "message": message, "way_out": error.way_out}
            write_json({"error": record, "notices": request.notices})
            sys.stdout.flush()
        else:
            request.print_notices()
            print_error(error.message, error.way_out)
    except BrokenPipeError:
        _drop_output()
    return error.exit_code


def _report_bug(request: Request) -> int:
    import traceback

    traceback.print_exc()
    print_error("this is a bug in Detent, not a mistake of yours", "report it with the lines above")
    request.print_notices()
    return BUG


def _drop_output() -> None:
    """Point standard output at the null device, so that the interpreter can flush it on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
