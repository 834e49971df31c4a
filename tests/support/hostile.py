"""Values that want to be more than values, and the shell that they are given to. None of them may ever run anything."""

# ruff: noqa: RUF001 - characters that look like others are what this is about

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from detent.core.flow.scope import Scope, SessionFacts

BASH = shutil.which("bash") or "bash"
SESSION = SessionFacts(id="WFS-x", dir="/work/.workflow/WFS-x", phase="IMPLEMENT")
RUN = "touch CANARY"

VALUES = {
    "plain": "value",
    "empty": "",
    "a space": " ",
    "only spaces": "     ",
    "tabs": "\t\t",
    "words": "two words",
    "many spaces": "  a   b  ",
    "newline": "\n",
    "lines": "one\ntwo\n\nthree",
    "trailing newlines": "text\n\n\n",
    "leading newline": "\ntext",
    "carriage returns": "a\r\nb\r",
    "single quote": "'",
    "double quote": '"',
    "both quotes": "'\"'\"'",
    "quotes and a command": f"'; {RUN}; '",
    "double quotes and a command": f'"; {RUN}; "',
    "closing everything": f"'\")`}}]; {RUN} #",
    "single quote break": f"'\"$({RUN})\"'",
    "substitution": f"$({RUN})",
    "quoted substitution": f'"$({RUN})"',
    "nested substitution": f"$(echo $({RUN}))",
    "backquotes": f"`{RUN}`",
    "escaped backquotes": f"\\`{RUN}\\`",
    "process substitution": f"<({RUN})",
    "semicolon": f"; {RUN}",
    "and": f"&& {RUN}",
    "or": f"|| {RUN}",
    "pipe": f"| {RUN}",
    "background": f"& {RUN} &",
    "newline command": f"x\n{RUN}\n",
    "carriage return command": f"x\r{RUN}",
    "redirection": "> CANARY",
    "here-document end": f"EOF\n{RUN}\nEOF\n",
    "IFS": f"x;${{IFS}}{RUN.replace(' ', '${IFS}')}",
    "parameter": "$HOME ${HOME} $1 $@ $* $$ $? $! $-",
    "our own variable": "${DETENT_V0} $DETENT_V0 [v] [w]",
    "indirect": f"${{!x}} ${{x:-$({RUN})}} ${{x@P}}",
    "prompt": f"\\$({RUN}) \\u \\w",
    "arithmetic": f"x[$({RUN})]",
    "arithmetic expansion": f"$((x[$({RUN})]))",
    "old arithmetic": f"$[x[$({RUN})]]",
    "array literal": f"($({RUN}))",
    "array element": f"[x[$({RUN})]]=1",
    "assignment": f"x=$({RUN})",
    "option of printf": f"-vx[$({RUN})]",
    "option": "-rf",
    "double dash": "--",
    "dash": "-",
    "test operator": "-v",
    "negation": "!",
    "history": "!! !$ !-1 ^a^b",
    "globs": "* ? [a-z]* ** .* {a,b} ~ ~root @(a|b) !(x)",
    "star": "*",
    "braces": "{1..9}{a,b}",
    "tilde": "~/x:~root",
    "comment": "# not a comment",
    "word comment": f"x #\n{RUN}",
    "backslash": "\\",
    "backslashes": "\\\\\\",
    "trailing backslash": "text\\",
    "backslash newline": "a\\\nb",
    "backslash quote": "\\'\\\"",
    "escapes": "\\n\\t\\x41\\101\\u0041\\c\\e\\0",
    "percent": "%s %d %n %b %q %(%s)T %%",
    "percent option": "-e %s",
    "dollar": "$",
    "dollar quote": f"$'\\n' $\"x\" $'; {RUN}'",
    "unbalanced": "((( [[ {{ << ' \" `",
    "keywords": f"then do done fi esac }} ) ;; {RUN} ;;",
    "function": f"() {{ :; }}; {RUN}",
    "alias": f"alias x='{RUN}'",
    "sed": f"x/e;s/.*/{RUN}/e",
    "unicode quotes": f"‘x’ “y” ＇; {RUN}＇ ＂$({RUN})＂",
    "unicode spaces": "a\u00a0b\u2003c\u3000d\u200be\ufeff",
    "line separators": f"a\u2028{RUN}\u2029b\x85c\x0bd\x0ce",
    "right to left": f"\u202e{RUN}\u202c \u2066x\u2069",
    "homoglyphs": "；｜＆＄（ｔｏｕｃｈ）",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 é e\u0301 \U0001f600",
    "other planes": "\U00010000\U0010fffd\ue000",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f",
    "CTLESC": "\x01\x01a\x7f\x7fb\x01",
    "escape sequences": "\x1b]0;x\x07\x1b[31m",
    "invalid UTF-8": b"\xff\xfe\x80abc\xc3".decode("utf-8", "surrogateescape"),
    "overlong quote": b"\xc0\xa7; touch CANARY; \xc0\xa7".decode("utf-8", "surrogateescape"),
    "half a character before a quote": b"\xe2\x82'\xf0\x9f\"\xc3`".decode("utf-8", "surrogateescape"),
    "all bytes": bytes(range(1, 256)).decode("utf-8", "surrogateescape"),
    "long line": "x" * 60_000,
    "many quotes": "'\"`$\\" * 4_000,
    "200 KB": f"$({RUN})'\"\n" * 10_000,
    "200 KB of characters": "é😀" * 35_000,
    "200 KB of broken bytes": b"\x80".decode("utf-8", "surrogateescape") * 200_000,
}


def task(*outputs: str, **context: Any) -> dict[str, Any]:
    """A task whose steps put out the given names."""
    steps = [{"step": f"make_{name}", "action": "a", "command": "bash(true)", "output_to": name} for name in outputs]
    return {
        "id": "IMPL-1",
        "title": "A title",
        "status": "pending",
        "meta": {"type": "feature", "agent": "code-developer"},
        "context": context,
        "flow_control": {"pre_analysis": steps},
    }


def scope_of(outputs: Mapping[str, Any], *, files: Any = (), **context: Any) -> Scope:
    return Scope(task=task(*outputs, **context), session=SESSION, outputs=outputs, files=dict(files))


def encoded(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def bash(script: str, env: Mapping[str, str], cwd: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """What bash prints. It has nothing in its environment but what it needs."""
    needed = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [BASH, "-c", script],
        check=False,
        env={**needed, **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    return done.stdout, done.stderr


def canaries(cwd: str | os.PathLike[str]) -> list[str]:
    return sorted(path.name for path in Path(cwd).rglob("*CANARY*"))
