"""What stands in front of a command and merely starts it: assignments, `timeout`, `npx`, `uv run` and their like."""

import re
from collections.abc import Collection

Words = list[str]

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*|py")

#: Words that are followed by a command, with those of their options that take a value.
_PREFIXES: dict[str, Collection[str]] = {
    "bunx": (),
    "command": (),
    "cross-env": (),
    "env": ("-u", "-C", "-S", "--unset", "--chdir"),
    "exec": (),
    "nice": ("-n",),
    "nohup": (),
    "npx": ("-p", "--package"),
    "stdbuf": ("-i", "-o", "-e"),
    "sudo": ("-u", "-g"),
    "time": ("-f", "-o"),
    "uvx": ("--from", "--with", "-p", "--python"),
    "xvfb-run": ("-s", "-n"),
}

#: The same, where a verb says that a command follows. Options may stand before and after the verb.
_LAUNCHERS: dict[str, tuple[Collection[str], Collection[str]]] = {
    "bundle": (("exec",), ()),
    "conda": (("run",), ("-n", "--name", "-p", "--prefix")),
    "hatch": (("run",), ("-e", "--env")),
    "mamba": (("run",), ("-n", "--name", "-p", "--prefix")),
    "npm": (("exec", "x"), ("-p", "--package", "-w", "--workspace", "--prefix")),
    "pdm": (("run",), ("-p", "--project")),
    "pipenv": (("run",), ()),
    "pipx": (("run",), ("--spec",)),
    "pixi": (("run",), ("-e", "--environment", "--manifest-path")),
    "pnpm": (("exec", "dlx"), ("-C", "--dir", "--filter", "-F")),
    "poetry": (("run",), ("-C", "--directory", "-P", "--project")),
    "rye": (("run",), ()),
    "uv": (
        ("run",),
        ("--with", "--extra", "--group", "--package", "-p", "--python", "--env-file", "--directory", "--project"),
    ),
    "yarn": (("exec", "dlx"), ("--cwd",)),
}


def unwrapped(words: Words) -> Words:
    """The command itself."""
    while words:
        tool = tool_name(words[0])
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
        elif tool == "timeout":
            words = after_options(words[1:], ("-s", "-k", "--signal", "--kill-after"))[1:]
        elif tool in _PREFIXES:
            words = after_options(words[1:], _PREFIXES[tool])
        elif launched := _launched(tool, words[1:]):
            words = launched
        else:
            break
    return words


def tool_name(word: str) -> str:
    """The name of a program without its place; every Python is `python`."""
    name = re.split(r"[/\\]", word)[-1].removesuffix(".exe").removesuffix(".cmd")
    return "python" if _PYTHON.fullmatch(name) else name


def after_options(words: Words, valued: Collection[str] = ()) -> Words:
    """From the first word on that is no option, nor the value of one."""
    index = 0
    while index < len(words) and words[index].startswith(("-", "+")):
        if words[index] == "--":
            return words[index + 1 :]
        index += 2 if words[index] in valued else 1
    return words[index:]


def _launched(tool: str, words: Words) -> Words:
    if tool not in _LAUNCHERS:
        return []
    verbs, valued = _LAUNCHERS[tool]
    words = after_options(words, valued)
    return after_options(words[1:], valued) if words and words[0] in verbs else []
