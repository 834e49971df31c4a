"""Which files a piece of program text writes, given with `-c`, `-e` or on standard input.

It is read as tokens, the same way for Python, JavaScript, Perl, Ruby and PHP. A call that writes is told by its name
(and by its mode, for `open`); its path is what stands in the argument: string literals, variables that were assigned
some, and `**` for all the rest. Text that is only read, or written as content, is no path.
"""

from detent.core.path_pattern import ANY

Token = tuple[str, str]  # kind: "name", "string", "op"
Written = tuple[list[str], list[list[str]]]  # paths, and commands that the code runs

# call -> which of its arguments are written: "0" first, "1" second, "*" all of them
_CALLS: dict[str, str] = {
    "remove": "0", "unlink": "*", "rmdir": "0", "removedirs": "0", "rmtree": "0", "truncate": "0", "chmod": "*",
    "chown": "*",
    "rename": "*", "renames": "*", "move": "*", "link": "*", "symlink": "*",
    "copy": "1", "copy2": "1", "copyfile": "1", "copytree": "1", "copymode": "1", "copystat": "1",
    "writeFile": "0", "writeFileSync": "0", "appendFile": "0", "appendFileSync": "0", "unlinkSync": "0", "rm": "*",
    "rmSync": "0",
    "rmdirSync": "0", "truncateSync": "0", "createWriteStream": "0", "renameSync": "*", "copyFile": "1",
    "copyFileSync": "1",
    "cp": "1", "cpSync": "1", "symlinkSync": "*", "linkSync": "*", "chmodSync": "0", "writeJson": "0",
    "writeJsonSync": "0",
    "outputFile": "0", "outputFileSync": "0", "writeTextFile": "0", "writeTextFileSync": "0",
    "file_put_contents": "0", "delete": "*", "rm_f": "*", "rm_rf": "*", "rm_r": "*", "mv": "*", "binwrite": "0",
    "utime": "*",
    "extractall": "0", "savetxt": "0", "to_json": "0", "to_csv": "0",
}  # fmt: skip
# methods of a path: what they are called on is written
_METHODS = frozenset((
    "write_text", "write_bytes", "unlink", "rmdir", "touch", "rename", "replace", "symlink_to", "hardlink_to",
    "chmod",
    "move", "move_into",
))  # fmt: skip
# calls that only write when they belong to one of these
_OWNERS: dict[str, tuple[str, ...]] = {
    "remove": ("os", "fs", ""), "replace": ("os",), "copy": ("shutil", "fs", "FileUtils", "File"),
    "move": ("shutil", "fs", "FileUtils"),
    "rename": ("os", "fs", "promises", "fsp", "File", ""), "delete": ("File", "FileUtils", "fs"), "link": ("os",
    "fs", "File", ""),
    "write": ("File", "IO", "Bun"), "cp": ("fs", "promises", "FileUtils", "fsp"), "rm": ("fs", "promises",
    "FileUtils", "fsp"),
    "mv": ("FileUtils",), "rmdir": ("os", "fs", "promises", "Dir", ""), "truncate": ("os", "fs", "promises", "File",
    ""), "chmod": ("os", "fs", "File", "FileUtils", ""),
    "touch": ("FileUtils", "os"), "unlink": ("os", "fs", "promises", "fsp", "File", ""),
}  # fmt: skip
_OPENS = ("open", "openSync", "fopen", "new", "sysopen")
_RUNS = frozenset((
    "system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput", "execSync", "exec",
    "spawnSync", "spawn",
    "execFileSync", "execvp", "shell_exec", "passthru", "create_subprocess_shell", "create_subprocess_exec",
))  # fmt: skip
_TELLING = frozenset((*_CALLS, *_METHODS, *_OPENS, *_RUNS, "write", "eval"))
_REACH = 200  # tokens that an expression may have
_ARGUMENTS = ("argv", "ARGV")
_READS = frozenset((
    "read", "read_text", "read_bytes", "readFileSync", "readFile", "load", "loads", "dumps", "stringify", "str",
    "strip", "format",
    "toString", "decode", "parse", "split", "readlines", "splitlines",
))  # fmt: skip
_UNSAID = ("r", "f", "b", "const", "let", "var", "my", "await", "return", "new", "str", "not", "in")


def code_writes(code: str, args: list[str], *, slashes: bool, nested: int = 0) -> Written:
    """The paths that `code` writes and the commands that it runs; `slashes` if its comments begin with `//`."""
    tokens = _tokens(code, slashes=slashes)
    known = _assigned(tokens)
    paths: list[str] = []
    commands: list[list[str]] = []
    unknown = False
    for at, (kind, name) in enumerate(tokens):
        if kind != "name" or name not in _TELLING:
            continue
        if at + 1 < len(tokens) and tokens[at + 1] == ("op", "("):
            inside = _arguments(tokens, at + 2)
        elif name in ("unlink", "rename", "open", "system", "exec") and not slashes and at + 1 < len(tokens):
            inside = _arguments(tokens, at + 1)  # Perl and Ruby call without parentheses
        else:
            continue
        owner = _owner(tokens, at)
        if name in _RUNS:
            commands.extend(_commands(inside, known))
        if name in ("exec", "eval") and inside and len(inside[0]) == 1 and inside[0][0][0] == "string" and nested < 3:
            more = code_writes(inside[0][0][1], args, slashes=slashes, nested=nested + 1)
            paths.extend(more[0])
            commands.extend(more[1])
        for argument in _written(tokens, at, owner, inside):
            path = _path(argument, known)
            paths.append(path)
            unknown = unknown or path.strip(ANY + "/") == ""
    if unknown and any(token in tokens for token in [("name", each) for each in _ARGUMENTS]):
        paths.extend(args)
    return [path for path in paths if path], commands


def _written(tokens: list[Token], at: int, owner: str, inside: list[list[Token]]) -> list[list[Token]]:
    """The arguments, or the object, that the call at this place writes."""
    name = tokens[at][1]
    if name in _OPENS:
        return _opened(tokens, at, owner, inside)
    found: list[list[Token]] = []
    if name in _METHODS and at > 0 and tokens[at - 1] == ("op", "."):
        receiver = _receiver(tokens, at - 1)
        if _is_path(receiver, name) and owner not in _OWNERS.get(name, ("os",)):
            found.append(receiver)
            if name in ("rename", "replace", "move", "move_into"):
                found.extend(inside[:1])
            return found
    which = "0" if name == "write" else "*" if name == "replace" else _CALLS.get(name, "")
    if not which or (name in _OWNERS and owner not in _OWNERS[name]):
        return []
    if which == "*":
        return [argument for argument in inside if argument and argument[0][0] != "number"]
    return inside[int(which) : int(which) + 1] or inside[-1:]


def _opened(tokens: list[Token], at: int, owner: str, inside: list[list[Token]]) -> list[list[Token]]:
    """`open(path, "w")` in its spellings; a path with no mode is read."""
    if tokens[at][1] == "new" and owner != "File":
        return []
    if tokens[at][1] == "open" and owner == "os":
        flags = [text for kind, text in (token for argument in inside[1:] for token in argument) if kind == "name"]
        return (
            inside[:1]
            if any(flag in ("O_WRONLY", "O_RDWR", "O_TRUNC", "O_CREAT", "O_APPEND") for flag in flags)
            else []
        )
    for index, argument in enumerate(inside):
        mode = "".join([text for kind, text in argument if kind == "string"])
        if index and mode.lstrip("+").startswith(">"):  # Perl: open(F, ">", path) or open(F, ">path")
            bare = mode.lstrip("+> ")
            return [[("string", bare)]] if bare else inside[index + 1 : index + 2]
        named = argument[:1] == [("name", "mode")]
        if not _is_writing(mode):
            continue
        if index:
            return inside[:1]
        if named or (
            owner and owner not in ("io", "codecs", "gzip", "bz2", "lzma", "builtins", "File", "fs", "fsp", "promises")
        ):
            return [_receiver(tokens, at - 1)]
    return []


def _is_writing(mode: str) -> bool:
    return len(mode) <= 4 and any(char in mode for char in "wax+") and not mode.strip("rwaxbt+U")


def _commands(inside: list[list[Token]], known: dict[str, str]) -> list[list[str]]:
    """The command of a call that runs one: a list of words, or text for a shell."""
    if not inside or not inside[0]:
        return []
    first = inside[0]
    if first[0] == ("op", "["):
        return [[_path(argument, known) for argument in _arguments(first, 1)]]
    if len(inside) > 1 and inside[1][:1] == [("op", "[")]:
        return [[_path(first, known), *(_path(argument, known) for argument in _arguments(inside[1], 1))]]
    strings = [argument for argument in inside if argument and argument[0][0] == "string"]
    if len(strings) > 1 and len(strings) == len(inside):
        return [[_path(argument, known) for argument in strings]]
    return [["sh", "-c", _path(first, known)]]


def _owner(tokens: list[Token], at: int) -> str:
    """What the name belongs to: `os` in `os.remove`; "" for a plain call, "()" for the result of another."""
    if at < 2 or tokens[at - 1] not in (("op", "."), ("op", "::")):
        return ""
    kind, text = tokens[at - 2]
    if kind == "name":
        return text
    inside = tokens[_opening(tokens, at - 2) + 1 : at - 2]  # __import__("os").remove, require("fs").rm
    return inside[0][1] if len(inside) == 1 and inside[0][0] == "string" else "()"


def _receiver(tokens: list[Token], dot: int) -> list[Token]:
    """The expression before a dot."""
    start, operand = dot, False
    while start > max(0, dot - _REACH):
        kind, text = tokens[start - 1]
        if kind == "op" and text in (".", "::"):
            operand = False
            start -= 1
        elif operand and kind != "name":
            break
        elif kind == "op" and text in (")", "]"):
            start = _opening(tokens, start - 1)
            operand = tokens[start][1] == "(" and start > 0 and tokens[start - 1][0] != "name"
        elif kind in ("name", "string") and not operand:
            start -= 1
            operand = True
        else:
            break
    return tokens[start:dot]


def _opening(tokens: list[Token], close: int) -> int:
    depth = 0
    for at in range(close, max(-1, close - _REACH), -1):
        if tokens[at][0] == "op":
            depth += (tokens[at][1] in (")", "]")) - (tokens[at][1] in ("(", "["))
        if depth == 0:
            return at
    return max(0, close - _REACH)


def _is_path(receiver: list[Token], method: str) -> bool:
    """`replace` is a method of text as well: it needs a path before it, and nothing that was read."""
    names = [text for kind, text in receiver if kind == "name"]
    if any(name in _READS for name in names):
        return False
    if method != "replace":
        return bool(receiver)
    return any(name in ("Path", "PosixPath", "pathlib", "p", "path") for name in names)


def _arguments(tokens: list[Token], start: int) -> list[list[Token]]:
    """The arguments of a call, from behind its parenthesis, split at the commas of its own level."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[start : start + _REACH]:
        kind, text = token
        if kind == "op":
            if text in ("(", "[", "{"):
                depth += 1
            elif text in (")", "]", "}"):
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and text == ",":
                found.append([])
                continue
            elif depth == 0 and text in (";", "\n"):
                break
        if (kind, text) != ("op", "\n"):
            found[-1].append(token)
    return found if found != [[]] else []


def _assigned(tokens: list[Token]) -> dict[str, str]:
    """What simple variables hold: `name = expression`, `for name in expression`."""
    known: dict[str, str] = {}
    for at in range(1, len(tokens) - 1):
        kind, text = tokens[at]
        equals = kind == "op" and text in ("=", ":=")
        if not (equals or (kind == "name" and text in ("in", "of"))) or tokens[at - 1][0] != "name":
            continue
        end = at + 1
        depth = 0
        while end < len(tokens) and end < at + _REACH:
            if tokens[end][0] == "op":
                mark = tokens[end][1]
                depth += (mark in ("(", "[", "{")) - (mark in (")", "]", "}"))
                if depth < 0 or (depth == 0 and mark in (";", "\n", ",", ":")):
                    break
            end += 1
        expression = tokens[at + 1 : end]
        value = ANY if any(kind == "name" and text in _READS for kind, text in expression) else _path(expression, known)
        name = tokens[at - 1][1]
        known[name] = value if known.get(name, value) == value else ANY
    return known


def _path(tokens: list[Token], known: dict[str, str]) -> str:
    """The text that an expression stands for. `+` joins, `/` and the commas of a call put a slash between."""
    pieces: list[str] = []
    separator, at = "", 0
    if len(tokens) > 1 and tokens[0][0] == "name" and tokens[1] == ("op", "="):
        at = 2
    while at < len(tokens):
        kind, text = tokens[at]
        at += 1
        if kind == "string":
            pieces.append(separator + text)
        elif kind == "name":
            piece = _named(tokens, at - 1, known)
            if piece is None:
                separator = "/" if text in ("joinpath", "with_name") and pieces else separator
                continue
            pieces.append(piece if piece in ("/..", f"/{ANY}", "") else separator + piece)
        elif text == "[" and pieces:
            at = _skip(tokens, at)
            pieces[-1] = ANY
            continue
        elif text in ("(", "{", "[", ")", "]", "}"):
            continue
        separator = "/" if text in ("/", ",") and kind == "op" else ""
    return "".join(pieces)


def _named(tokens: list[Token], at: int, known: dict[str, str]) -> str | None:
    """What a name adds to a path; None if it only leads to what follows."""
    text = tokens[at][1]
    following = tokens[at + 1] if at + 1 < len(tokens) else ("", "")
    attribute = at > 0 and tokens[at - 1] in (("op", "."), ("op", "::"))
    if text in ("glob", "rglob", "iterdir", "listdir", "scandir", "walk", "readdirSync"):
        return f"/{ANY}" if attribute and at > 1 and tokens[at - 2][1] not in ("os", "glob", "fs") else None
    if attribute and text == "parent":
        return "/.."
    if text in known and not attribute:
        return known[text]
    if attribute and text in ("cwd", "getcwd"):
        return "."
    if text in _UNSAID or following in (("op", "("), ("op", "."), ("op", "::")):
        return None
    return ANY


def _skip(tokens: list[Token], at: int) -> int:
    depth = 1
    while at < len(tokens) and depth:
        if tokens[at][0] == "op":
            depth += (tokens[at][1] == "[") - (tokens[at][1] == "]")
        at += 1
    return at


def _tokens(code: str, *, slashes: bool) -> list[Token]:
    found: list[Token] = []
    at, end = 0, len(code)
    while at < end:
        char = code[at]
        if char in "\"'`":
            at, text = _string(code, at, known_format=bool(found) and found[-1][1] in ("f", "rf", "fr", "F"))
            if (
                found
                and found[-1][0] == "name"
                and found[-1][1].lower() in ("f", "r", "b", "rb", "br", "fr", "rf", "u", "q", "qq")
            ):
                found.pop()
            found.append(("string", text))
        elif char == "_" or char.isalpha() or char in "$@%":
            start = at
            at += 1
            while at < end and (code[at] == "_" or code[at].isalnum()):
                at += 1
            name = code[start:at].lstrip("$@%")
            if name:
                found.append(("name", name))
        elif char == "\n":
            found.append(("op", "\n"))
            at += 1
        elif (char == "#" and not slashes) or (slashes and code.startswith("//", at)):
            newline = code.find("\n", at)
            at = end if newline < 0 else newline
        elif slashes and code.startswith("/*", at):
            close = code.find("*/", at + 2)
            at = end if close < 0 else close + 2
        elif char.isdigit():
            start = at
            while at < end and (code[at].isalnum() or code[at] in "._"):
                at += 1
            found.append(("number", code[start:at]))
        elif char.isspace():
            at += 1
        else:
            double = code[at : at + 2] in ("::", "->", ":=", "==", "!=", "=>", "<=", ">=", "+=")
            found.append(("op", {"->": "."}.get(code[at : at + 2], code[at : at + 2]) if double else char))
            at += 2 if double else 1
    return found


def _string(code: str, at: int, *, known_format: bool) -> tuple[int, str]:
    """A string literal; what is interpolated in it is unknown."""
    quote = code[at] * 3 if code.startswith(code[at] * 3, at) and code[at] != "`" else code[at]
    at += len(quote)
    start, close = at, at
    escaped = False
    while True:
        close = code.find(quote, close)
        if close < 0:
            close = len(code)
            break
        back = close
        while back > start and code[back - 1] == "\\":
            back -= 1
        if (close - back) % 2 == 0:
            break
        escaped = True
        close += 1
    text = code[start:close]
    if escaped or "\\" in text:
        text = text.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")
    opening = "{" if known_format and quote != "`" else "${" if quote == "`" else "#{" if quote == '"' else ""
    if opening and opening in text:
        pieces = text.split(opening)
        text = pieces[0] + "".join([ANY + piece.partition("}")[2] for piece in pieces[1:]])
    return min(close + len(quote), len(code)), text
