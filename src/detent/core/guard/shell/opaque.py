"""Text that the reader does not follow: a command that is too long, or code in another language.

Such text counts as a write of every path that it names. Code that only reads is the exception: it has no word that
writes, or it names the path in a statement that reads. Whatever this misses, drift detection reports after the call.
"""

from detent.core.guard.path_pattern import ANY

_MAX_NAME = 255
_BETWEEN_WORDS = dict.fromkeys(map(ord, "\"'\\"), "") | dict.fromkeys(map(ord, "`()<>;&|={},:$[]!#"), " ")
#: Words of code that writes, in five languages. Blanks are removed, and every quote is a single one.
_WRITING = (
    *(".write", "write_", "writefile", "writetext", "_put_", "unlink", "remove", "delete", "rmtree", "rmdir", "rmsync"),
    *(
        "rm_",
        "rename",
        "os.replace",
        "truncate",
        "chmod",
        "touch",
        "symlink",
        "move(",
        "system",
        "o_wronly",
        "o_rdwr",
        "subprocess",
        "popen",
    ),
    *("system", "exec", "spawn", "o_wronly", "o_rdwr"),
    *(",'>", ",'w'", ",'wb'", ",'w+", "='w'", "('w'", ",'a'", "='a'", ",'ab'", ",'r+", ",'x'"),
)
_READING = ("open(", "read", "load")


def words_of(text: str) -> list[str]:
    """The words of a text, in whatever language it is."""
    return text.translate(_BETWEEN_WORDS).split()


def named_paths(text: str) -> list[str]:
    """The words of a text that may be paths, each of them once."""
    words = dict.fromkeys(words_of(text))
    return [word for word in words if "." in word and word.strip("./") and len(word) <= _MAX_NAME]


def written_by_code(code: str, args: list[str]) -> list[str]:
    """The paths that a piece of code may write when it is given these arguments."""
    if not _has(code, _WRITING):
        return []
    statements = [*code.replace(";", "\n").split("\n"), *args]
    names = [
        name
        for statement in statements
        if _has(statement, _WRITING) or not _has(statement, _READING)
        for name in named_paths(statement)
    ]
    # What an expression puts before a slash is unknown.
    return [ANY + name if name.startswith("/") else name for name in names]


def _has(code: str, words: tuple[str, ...]) -> bool:
    plain = code.lower().replace(" ", "").replace('"', "'").replace("stdout.write", "").replace("stderr.write", "")
    return any(word in plain for word in words)
