"""Reads a shell command into nodes. As its words, it accepts more than a shell does, never fails, and notes doubts."""

from detent.core.guard.shell.reader import ENDS_WORD, MAX_DEPTH, NAME_CHARS, Reader
from detent.core.guard.shell.tree import Assign, Node, Part, Redirect, Script, Word

_OPERATORS = ("<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">", "&>>", "&>")
_OPENING = ("{", "if", "while", "until", "for", "select", "case", "function", "[[", "coproc", "!", "time")
_CLOSING = ("}", "then", "elif", "else", "fi", "do", "done", "esac")
_KEYWORDS = (*_OPENING, *_CLOSING, "in")
_FUNCTION_CHARS = NAME_CHARS | frozenset(".:-")
DECLARING = ("export", "local", "declare", "readonly", "typeset")


def parse(text: str, depth: int = 0) -> "Grammar":
    """A reader that has read all of `text` into its `nodes`."""
    reader = Grammar(text, depth)
    reader.nodes = reader.script(())
    if reader.pending:
        reader.doubt("a here-document without its text")
    return reader


class Grammar(Reader):
    """Adds commands to the words of a reader."""

    __slots__ = ("nodes",)
    nodes: Script

    def script(self, stop: tuple[str, ...]) -> Script:
        nodes: Script = []
        join = ";"
        is_separated, is_due = True, True  # a command may follow; an operator may not
        if self.depth > MAX_DEPTH:
            self.too_deep()
        self.depth += 1
        while True:
            before = self.pos
            self.blank(newlines=True)
            is_separated = is_separated or "\n" in self.text[before : self.pos]
            if self.pos >= self.end or self._stops(stop):
                break
            before = self.pos
            operator = self._joiner()
            if operator:
                if is_due:
                    self.doubt("an operator without a command before it")
                join = operator
                is_separated = is_due = True
                continue
            if not is_separated:
                self.doubt("a word behind the end of a command")
            node = self._pipeline()
            if self.pos == before:
                self.doubt(f"{self.text[self.pos]!r} is not expected here")
                self.pos += 1
                continue
            is_separated = is_due = False
            node.join = join
            join = ";"
            nodes.append(node)
        self.depth -= 1
        return nodes

    def _stops(self, stop: tuple[str, ...]) -> bool:
        char = self.text[self.pos]
        if char == ")":
            return ")" in stop
        if char == ";":
            return ";;" in stop and self.text[self.pos + 1 : self.pos + 2] in (";", "&")
        return self._keyword() in stop

    def _joiner(self) -> str:
        for operator in ("&&", "||", ";", "|", "&", ")"):
            if self.text.startswith(operator, self.pos):
                if self.text.startswith("&>", self.pos):
                    return ""
                if operator == ")":
                    self.doubt("a parenthesis that closes nothing")
                self.pos += len(operator)
                return operator if operator in ("&&", "||") else ";"
        return ""

    def _keyword(self) -> str:
        """The reserved word that stands here, not consumed."""
        at = self.pos
        limit = min(self.end, at + 9)  # one more than the longest keyword has
        while at < limit and self.text[at] not in ENDS_WORD:
            at += 1
        word = self.text[self.pos : at]
        return word if word in _KEYWORDS else ""

    def _take(self, keyword: str) -> bool:
        self.blank(newlines=True)
        if self._keyword() != keyword:
            return False
        self.pos += len(keyword)
        return True

    def _expect(self, keyword: str) -> None:
        if not self._take(keyword):
            self.doubt(f"`{keyword}` is missing")

    def _pipeline(self) -> Node:
        first = self._command()
        pipe: Node | None = None
        while True:
            self.blank(newlines=False)
            if not self.text.startswith("|", self.pos) or self.text.startswith("||", self.pos):
                break
            self.pos += 2 if self.text.startswith("|&", self.pos) else 1
            self.blank(newlines=True)
            if pipe is None:
                pipe = Node("pipe")
                pipe.bodies.append([first])
            pipe.bodies.append([self._command()])
        if self.text.startswith("&", self.pos) and not self.text.startswith(("&&", "&>"), self.pos):
            background = Node("sub")
            background.bodies.append([pipe or first])
            return background
        return pipe or first

    def _command(self) -> Node:
        if self.depth > MAX_DEPTH and self.too_deep():
            return Node("simple")
        if self.text.startswith("(", self.pos):
            return self._parenthesis()
        keyword = self._keyword()
        if keyword not in _OPENING:
            if keyword in _CLOSING:
                self.doubt(f"`{keyword}` closes nothing here")
            return self._simple()
        self.pos += len(keyword)
        self.depth += 1
        node = self._compound(keyword)
        self.depth -= 1
        if keyword not in ("!", "time", "coproc", "function"):
            self._redirects(node)
        return node

    def _compound(self, keyword: str) -> Node:
        if keyword in ("!", "time", "coproc"):
            if keyword == "coproc":
                self.doubt("coproc is not followed")
            self.blank(newlines=False)
            while keyword == "time" and self.text.startswith("-", self.pos):
                self.word()
                self.blank(newlines=False)
            return self._command()
        if keyword == "{":
            return self._closed(Node("group"), "}")
        if keyword in ("while", "until"):
            node = Node("while")
            node.bodies.append(self.script(("do",)))
            self._expect("do")
            return self._closed(node, "done")
        if keyword == "[[":
            return self._test()
        if keyword == "function":
            self.blank(newlines=False)
            word = self.word()
            return self._defined(word[0].text if word else "")
        return {"if": self._if, "case": self._case}.get(keyword, self._for)()

    def _parenthesis(self) -> Node:
        if self.text.startswith("((", self.pos):
            number = self.arithmetic(self.pos + 2, self.pos)
            if number is not None:
                node = Node("test")
                node.words.append([number])
                return node
        self.pos += 1
        node = Node("sub")
        node.bodies.append(self.script((")",)))
        self.close("a parenthesis that is not closed")
        self._redirects(node)
        return node

    def _closed(self, node: Node, close: str) -> Node:
        node.bodies.append(self.script((close,)))
        self._expect(close)
        return node

    def _if(self) -> Node:
        node = Node("if")
        node.bodies.append(self.script(("then", "fi")))
        while True:
            if self._take("then"):
                node.bodies.append(self.script(("elif", "else", "fi")))
            elif self._take("elif"):
                node.bodies.append(self.script(("then", "fi")))
            elif self._take("else"):
                node.bodies.append(self.script(("fi",)))
            else:
                self._expect("fi")
                return node

    def _for(self) -> Node:
        node = Node("for")
        self.blank(newlines=False)
        if self.text.startswith("((", self.pos):
            number = self.arithmetic(self.pos + 2, self.pos)
            if number is not None:
                node.words.append([number])
        else:
            node.name = self.name()
            if not node.name:
                self.doubt("a loop without the name of a variable")
            if self._take("in"):
                node.name += " in"
                self.blank(newlines=False)
                while self.pos < self.end and self.text[self.pos] not in "\n;&|()":
                    word = self.word()
                    if not word:
                        break
                    node.words.append(word)
                    self.blank(newlines=False)
        self.blank(newlines=True)
        if self.text.startswith(";", self.pos):
            self.pos += 1
        if self._take("do"):
            return self._closed(node, "done")
        if self._take("{"):
            return self._closed(node, "}")
        self.doubt("a loop without `do`")
        return node

    def _case(self) -> Node:
        node = Node("case")
        self.blank(newlines=True)
        node.words.append(self.word())
        self._expect("in")
        while True:
            self.blank(newlines=True)
            if self._take("esac"):
                return node
            if self.pos >= self.end:
                self.doubt("a case without `esac`")
                return node
            before = self.pos
            self._patterns(node)
            node.bodies.append(self.script((";;", "esac")))
            while self.pos < self.end and self.text[self.pos] in ";&":
                self.pos += 1
            if self.pos == before:
                self.pos += 1

    def _patterns(self, node: Node) -> None:
        """Up to the parenthesis that closes the patterns of a branch."""
        self.pos += self.text.startswith("(", self.pos)
        while self.pos < self.end and self.text[self.pos] != ")":
            self.blank(newlines=False)
            word = self.word()
            self.blank(newlines=False)
            node.words.append(word)
            following = self.text[self.pos : self.pos + 1]
            if not word or following not in ("|", ")"):
                self.doubt("a pattern of a case that is not followed")
                if following in ("\n", ";", ""):
                    break
            self.pos += following != ")"
        self.pos += self.text.startswith(")", self.pos)

    def _test(self) -> Node:
        """`[[ ... ]]`, in which `<` and `>` compare."""
        node = Node("test")
        while self.pos < self.end:
            comments = len(self.comments)
            self.blank(newlines=True)
            word = self.word()
            if len(self.comments) > comments or any(part.kind == "proc" for part in word):
                self.doubt("a comment or a process is not followed inside [[ … ]]")
            if not word:
                if self.pos >= self.end or self.text[self.pos] == ";":
                    break
                self.pos += 1
            elif len(word) == 1 and word[0].kind == "raw" and word[0].text == "]]":
                return node
            else:
                node.words.append(word)
        self.doubt("`[[` that is not closed")
        return node

    def _defined(self, name: str) -> Node:
        """A function, from its parentheses on, if it has any."""
        node = Node("function")
        node.name = name
        if not name or not _FUNCTION_CHARS.issuperset(name):
            self.doubt("this is no name of a function")
        self.blank(newlines=False)
        if self.text.startswith("(", self.pos):
            self.pos += 1
            self.blank(newlines=False)
            self.close("a parenthesis that opens here is not followed")
        self.blank(newlines=True)
        self.depth += 1
        node.bodies.append([self._command()])
        self.depth -= 1
        return node

    def _simple(self) -> Node:
        node = Node("simple")
        while True:
            self.blank(newlines=False)
            if self.pos < self.end and self._redirect(node):
                continue
            char = self.text[self.pos : self.pos + 1]
            if char == "(" and len(node.words) == 1 and not node.assigns and len(node.words[0]) == 1:
                return self._defined(node.words[0][0].text)
            if not char or char in "\n;&|()":
                if char == "(" or not (node.words or node.assigns or node.redirects):
                    self.doubt("a command is missing, or a parenthesis that opens here is not followed")
                return node
            word = self.word()
            if not word:
                self.doubt(f"{char!r} is not expected here")
                self.pos += 1
            elif self._is_descriptor(word):
                continue
            elif not self._assign(node, word):
                node.words.append(word)

    def _is_descriptor(self, word: Word) -> bool:
        """The `2` of `2>` and the `{log}` of `{log}>`."""
        text = word[0].text
        if len(word) > 1 or word[0].kind != "raw" or self.text[self.pos : self.pos + 1] not in ("<", ">"):
            return False
        return text.isdigit() or (text[0] == "{" and text[-1] == "}" and text[1:-1].isidentifier())

    def _assign(self, node: Node, word: Word) -> bool:
        """Before the command an assignment; after it only what declares one keeps its meaning."""
        if node.words and not (len(node.words[0]) == 1 and node.words[0][0].text in DECLARING):
            return False
        first = word[0]
        name, equals, rest = first.text.partition("=")
        appends = name.endswith("+")
        name, subscript, index = name.removesuffix("+").partition("[")
        if first.kind != "raw" or not _is_name(name):
            return False
        if subscript and not (equals and index.endswith("]") and NAME_CHARS.issuperset(index[:-1])):
            self.doubt("a subscript that is not followed; only a number or a name can stand in it")
        if not equals:
            return False
        if not rest and len(word) == 1 and self.text.startswith("(", self.pos):
            node.assigns.append(Assign(name, self._array(), appends=appends, is_array=True))
            return True
        value = ([Part("raw", rest, "", first.end - len(rest), first.end)] if rest else []) + word[1:]
        node.assigns.append(Assign(name, [value], appends=appends, is_array=False))
        return True

    def _array(self) -> list[Word]:
        self.pos += 1
        words: list[Word] = []
        self.blank(newlines=True)
        while word := self.word():
            words.append(word)
            self.blank(newlines=True)
        self.close("an array that is not closed")
        return words

    def _redirects(self, node: Node) -> None:
        while True:
            self.blank(newlines=False)
            start = self.pos
            if self._redirect(node):
                continue
            if self.pos < self.end and self.text[self.pos].isdigit():
                word = self.word()
                if self._is_descriptor(word):
                    continue
                self.pos = start
            return

    def _redirect(self, node: Node) -> bool:
        char = self.text[self.pos : self.pos + 1]
        if char not in ("<", ">", "&") or (char != "&" and self.text.startswith("(", self.pos + 1)):
            return False
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.pos):
                break
        else:
            return False
        self.pos += len(operator)
        self.blank(newlines=False)
        word = self.word()
        if not word:
            self.doubt("a redirection without a target")
        redirect = Redirect(operator, word)
        if operator in ("<<", "<<-"):
            if any(part.kind not in ("raw", "lit") or "\n" in part.text for part in word):
                self.doubt("a here-document whose delimiter is not plain text")
            redirect.delimiter = "".join([part.text for part in word])
            # quoted: the body is taken as it is
            redirect.word = [part for part in word if part.kind != "raw"]
            self.pending.append(redirect)
        node.redirects.append(redirect)
        return True


def _is_name(text: str) -> bool:
    return bool(text) and NAME_CHARS.issuperset(text) and not text[0].isdigit()
