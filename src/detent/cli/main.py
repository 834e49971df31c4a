"""The entry point of `detent`, and the one place where errors become messages and exit codes."""

import gc
import os
import sys

from detent.cli.request import Request, print_error, shown, write_json
from detent.errors import DetentError, Invalid, StoreFailed

INTERRUPTED, BUG = 130, 70


def main() -> None:
    if sys.stdout is None or sys.stdin is None:
        # Closed by whoever started us; the rest may count on them.
        sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    # A command makes much and throws little away: looking for garbage as often as usual costs a tenth of its time.
    gc.set_threshold(50_000, 20, 20)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Answer the arguments; returns the exit code."""
    request = Request()
    try:
        _check_text(arguments)
        code = _answer(arguments, request)
        request.say_notices()
        sys.stdout.flush()
    except DetentError as error:
        return _refuse(request, error, as_json=request.json or (error.exit_code == 2 and "--json" in arguments))
    except KeyboardInterrupt:
        request.clear_progress()
        request.say_notices()
        print_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has enough of it; what was asked for was done.
        _drop_output()
        return 0
    except OSError as error:
        named = f" {error.filename}" if error.filename else ""
        failed = StoreFailed(f"could not use{named}: {error.strerror or error}", way_out="fix the problem and retry")
        return _refuse(request, failed, as_json=request.json)
    except Exception:  # noqa: BLE001 - the boundary: whatever was not expected is a bug and is shown as one
        return _report_bug(request)
    return code


def _answer(arguments: list[str], request: Request) -> int:
    if arguments in (["status"], ["status", "--json"]) and "_DETENT_COMPLETE" not in os.environ:
        # What runs in every prompt and loop does not wait for an argument parser to load.
        from detent.cli.commands.status import show_status

        request.json = "--json" in arguments
        show_status(request)
        return 0
    if arguments == ["task", "next"] and "_DETENT_COMPLETE" not in os.environ:
        from detent.cli.commands.task_next import show_next

        if show_next(request):
            return 0
    if "_DETENT_COMPLETE" in os.environ:
        from detent.cli.commands.completion import complete

        return complete(os.environ["_DETENT_COMPLETE"])
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
            told = {"kind": error.kind, "message": shown_whole(error.message), "way_out": error.way_out}
            write_json({"error": told, "notices": request.notices})
            sys.stdout.flush()
        else:
            request.say_notices()
            print_error(error.message, error.way_out)
    except BrokenPipeError:
        _drop_output()
    return error.exit_code


def shown_whole(message: str) -> str:
    return "\n".join(shown(line) for line in message.split("\n"))


def _report_bug(request: Request) -> int:
    import traceback

    traceback.print_exc()
    print_error("this is a bug in Detent, not something you did", "send the lines above to whoever maintains it")
    request.say_notices()
    return BUG


def _drop_output() -> None:
    """Nobody reads it any more; without this the interpreter would complain while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
