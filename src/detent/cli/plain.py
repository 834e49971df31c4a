"""Reads plain command lines without click, for verbs that scripts and prompts call often.

Importing click costs about four times a bare interpreter. Such a verb declares `PARAMETERS` as data. `read_plain` reads
ordinary arguments from that table; anything unusual (help, `--option=value`, standard input, a mistake) is left to
click, whose command `detent.cli.verb` builds from the same table.
"""

import os
from collections.abc import Sequence
from typing import Any

#: Verbs whose modules declare PARAMETERS; see `detent.cli.main`.
PLAIN_VERBS = frozenset({"status", "next", "begin", "finish", "fail", "redo", "mcp"})


class Parameter:
    """An option, or an argument if it has no flags. A plain class: a named tuple of this size is slow to make."""

    def __init__(  # noqa: PLR0913 - a row of a table
        self,
        name: str,
        flags: tuple[str, ...] = (),
        help: str = "",  # noqa: A002 - the field's word
        metavar: str | None = None,
        *,
        required: bool = False,
        multiple: bool = False,
        is_flag: bool = False,
        is_number: bool = False,
        is_text: bool = False,
        envvar: str | None = None,
        completes: str | None = None,
        default: str | None = None,
    ) -> None:
        self.name, self.flags, self.help, self.metavar = name, flags, help, metavar
        self.required, self.multiple, self.is_flag = required, multiple, is_flag
        #: A whole number, at least 0.
        self.is_number = is_number
        #: `-` reads it from standard input.
        self.is_text = is_text
        self.envvar, self.default = envvar, default
        #: What a shell can complete: phases or sessions.
        self.completes = completes

    def initial(self) -> Any:
        if self.multiple:
            return ()
        if self.is_flag:
            return False
        return 0 if self.is_number else (self.envvar and os.environ.get(self.envvar)) or self.default


COMMON = (
    Parameter("directory", ("-C", "--directory"), "Work in DIR instead of the current directory.", "DIR"),
    Parameter("project", ("--project",), "A package of a monorepo; DETENT_PROJECT does the same.", "ID"),
    Parameter("json", ("--json",), "Answer in JSON, errors too.", is_flag=True),
)
#: The options of verbs that make a person's decision.
SIGNING = (
    Parameter("sign", ("--sign",), "Sign the decision with an SSH key of an approver.", is_flag=True),
    Parameter("key", ("--key",), "The key to sign with; by default one of ~/.ssh that approvers.toml lists.", "FILE"),
)
SESSION = Parameter("session", ("--session",), "A session other than the active one.", "ID", completes="sessions")
PHASE = Parameter("phase", metavar="[PHASE]", completes="phases")


def read_plain(parameters: Sequence[Parameter], words: Sequence[str]) -> dict[str, Any] | None:
    """The values by parameter name; None if click has to read the command line."""
    options = {flag: option for option in (*parameters, *COMMON) for flag in option.flags}
    arguments = [parameter for parameter in parameters if not parameter.flags]
    values = {parameter.name: parameter.initial() for parameter in parameters}
    given = set()
    rest = iter(words)
    for word in rest:
        parameter = options.get(word)
        if parameter is None:
            if not word or word.startswith("-") or not arguments:
                return None
            parameter, value = arguments.pop(0), word
        elif parameter.is_flag:
            values[parameter.name] = True
            continue
        else:
            value = next(rest, "-")
        if value.startswith("-") or parameter.is_number:
            return None
        given.add(parameter.name)
        values[parameter.name] = (*values[parameter.name], value) if parameter.multiple else value
    is_complete = all(parameter.name in given for parameter in parameters if parameter.required)
    return values if is_complete else None
