"""The text of a here-document, up to the line that ends it."""


class HereDocument:
    """`body` without leading tabs where those do not count. `stop` is where it ends, `after` where reading goes on.

    `doubt` says why bash may find another end.
    """

    __slots__ = ("after", "body", "doubt", "stop")

    def __init__(self, text: str, at: int, delimiter: str, *, strips: bool, is_quoted: bool) -> None:
        lines: list[str] = []
        self.doubt = ""
        self.stop = self.after = len(text)
        while at < len(text):
            newline = text.find("\n", at)
            end = len(text) if newline < 0 else newline
            line = text[at:end].lstrip("\t") if strips else text[at:end]
            if line == delimiter:
                self.stop, self.after = at, min(end + 1, len(text))
                break
            if line.startswith(delimiter) and not line[len(delimiter) :].strip(")\"'; \t\r"):
                # The rest of the delimiter's line may close a substitution.
                self.stop, self.after = at, end - len(line) + len(delimiter)
                self.doubt = "a here-document that does not end with a line of its own"
                break
            if line.endswith("\\") and not is_quoted:
                self.doubt = "a continued line in a here-document"
            lines.append(line)
            at = min(end + 1, len(text))
        else:
            self.doubt = f"a here-document without its end {delimiter!r}"
        self.body = "\n".join(lines)
