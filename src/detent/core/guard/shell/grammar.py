"""Reading a shell command into nodes. It accepts more than a shell does; it never fails."""

from detent.core.guard.shell.tree import Node, Part, Redirect, Script, Word
from detent.core.guard.shell.words import MAX_DEPTH, Reader, arithmetic_end

_OPERATORS = ("<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">", "&>>", "&>")
_META = " \t\n;&|()<>"
_LONGEST_KEYWORD = 8
_CLOSED_BY = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "case": "esac"}
_OPENING = ("{", "if", "while", "until", "for", "select", "case", "function", "[[", "coproc", "!", "time")
_KEYWORDS = (*_OPENING, "}", "then", "elif", "else", "fi", "do", "done", "esac", "in")


def parse(text: str, depth: int = 0) -> tuple[Script, bool]:
    """The commands of a text, and whether all of it could be followed."""
    reader = _Grammar(text, depth)
    script = reader.script(())
    return script, not reader.opaque


class _Grammar(Reader):
    __slots__ = ()

    def script(self, stop: tuple[str, ...]) -> Script:
        nodes: Script = []
        join = ";"
        if self.depth > MAX_DEPTH:
            self.opaque = True
            self.pos = self.end
        self.depth += 1
        while True:
            self.blank(newlines=True)
            if self.pos >= self.end or self._stops(stop):
                break
            before = self.pos
            operator = self._joiner()
            if operator:
                join = operator
                continue
            node = self._pipeline()
            if self.pos == before:
                self.pos += 1
                continue
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
                if operator == "&" and self.text.startswith("&>", self.pos):
                    return ""
                self.pos += len(operator)
                return operator if operator in ("&&", "||") else ";"
        return ""

    def _keyword(self) -> str:
        """The reserved word that stands here, not consumed."""
        at = self.pos
        limit = min(self.end, at + _LONGEST_KEYWORD + 1)
        while at < limit and self.text[at] not in _META:
            at += 1
        found = self.text[self.pos : at]
        return found if found in _KEYWORDS else ""

    def _take(self, keyword: str) -> bool:
        self.blank(newlines=True)
        if self._keyword() != keyword:
            return False
        self.pos += len(keyword)
        return True

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
        if self.depth > MAX_DEPTH:
            self.opaque = True
            self.pos = self.end
            return Node("simple")
        if self.text.startswith("(", self.pos):
            return self._parenthesis()
        keyword = self._keyword()
        if keyword not in _OPENING:
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
            self._take("do")
            return self._closed(node, "done")
        if keyword == "[[":
            return self._test()
        if keyword == "function":
            return self._function()
        return {"if": self._if, "case": self._case}.get(keyword, self._for)()

    def _parenthesis(self) -> Node:
        if self.text.startswith("((", self.pos):
            close = arithmetic_end(self.text, self.pos + 2)
            if close >= 0:
                node = Node("test")
                node.words.append(self._inner(self.text[self.pos + 2 : close]))
                self.pos = close + 2
                return node
        self.pos += 1
        node = Node("sub")
        node.bodies.append(self.script((")",)))
        if self.text.startswith(")", self.pos):
            self.pos += 1
        self._redirects(node)
        return node

    def _closed(self, node: Node, close: str) -> Node:
        node.bodies.append(self.script((close,)))
        self._take(close)
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
                self._take("fi")
                return node

    def _for(self) -> Node:
        node = Node("for")
        self.blank(newlines=False)
        if self.text.startswith("((", self.pos):
            self._parenthesis_of_for(node)
        else:
            node.name = self.name()
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
        return self._closed(node, "}") if self._take("{") else node

    def _parenthesis_of_for(self, node: Node) -> None:
        close = arithmetic_end(self.text, self.pos + 2)
        if close >= 0:
            node.words.append(self._inner(self.text[self.pos + 2 : close]))
            self.pos = close + 2

    def _case(self) -> Node:
        node = Node("case")
        self.blank(newlines=True)
        node.words.append(self.word())
        self._take("in")
        while True:
            self.blank(newlines=True)
            if self.pos >= self.end or self._take("esac"):
                return node
            before = self.pos
            while self.pos < self.end and self.text[self.pos] != ")":
                if not self.word():
                    if self.text[self.pos] in "\n;":
                        break
                    self.pos += 1
                self.blank(newlines=False)
            if self.text.startswith(")", self.pos):
                self.pos += 1
            node.bodies.append(self.script((";;", "esac")))
            while self.pos < self.end and self.text[self.pos] in ";&":
                self.pos += 1
            if self.pos == before:
                self.pos += 1

    def _test(self) -> Node:
        """`[[ ... ]]`, in which `<` and `>` compare."""
        node = Node("test")
        while self.pos < self.end:
            self.blank(newlines=True)
            word = self.word()
            if not word:
                if self.pos >= self.end or self.text[self.pos] == ";":
                    break
                self.pos += 1
            elif len(word) == 1 and word[0].kind == "raw" and word[0].text == "]]":
                break
            else:
                node.words.append(word)
        return node

    def _function(self) -> Node:
        self.blank(newlines=False)
        word = self.word()
        return self._defined(word[0].text if word else "")

    def _defined(self, name: str) -> Node:
        """A function, from its parentheses on, if it has any."""
        node = Node("function")
        node.name = name
        self.blank(newlines=True)
        if self.text.startswith("(", self.pos):
            self.pos += 1
            self.blank(newlines=True)
            if self.text.startswith(")", self.pos):
                self.pos += 1
        self.blank(newlines=True)
        self.depth += 1
        node.bodies.append([self._command()])
        self.depth -= 1
        return node

    def _simple(self) -> Node:
        node = Node("simple")
        while True:
            self.blank(newlines=False)
            if self.pos >= self.end:
                return node
            if self._redirect(node):
                continue
            char = self.text[self.pos]
            if char == "(" and len(node.words) == 1 and not node.assigns and node.words[0][0].kind == "raw":
                return self._defined(node.words[0][0].text)
            if char in "\n;&|()":
                return node
            word = self.word()
            if not word:
                self.pos += 1
            elif self._is_descriptor(word):
                continue
            elif not (_assigned(word) and self._assign(node, word)):
                node.words.append(word)

    def _is_descriptor(self, word: Word) -> bool:
        """The `2` of `2>` and the `{log}` of `{log}>`."""
        text = word[0].text
        if len(word) > 1 or word[0].kind != "raw" or self.text[self.pos : self.pos + 1] not in ("<", ">"):
            return False
        return text.isdigit() or (text[0] == "{" and text[-1] == "}" and text[1:-1].isidentifier())

    def _assign(self, node: Node, word: Word) -> bool:
        """Before the command an assignment; after it only what declares one keeps its meaning."""
        if node.words and not (len(node.words[0]) == 1 and node.words[0][0].text in _DECLARING):
            return False
        name, _, rest = word[0].text.partition("=")
        how = "+" if name.endswith("+") else ""
        name = name.rstrip("+").partition("[")[0]
        if not rest and len(word) == 1 and self.text.startswith("(", self.pos):
            node.assigns.append((name, how, self._array()))
            return True
        value = ([Part("raw", rest)] if rest else []) + word[1:]
        node.assigns.append((name, how, [value]))
        return True

    def _array(self) -> list[Word]:
        self.pos += 1
        words: list[Word] = []
        while True:
            self.blank(newlines=True)
            word = self.word()
            if not word:
                break
            words.append(word)
        if self.text.startswith(")", self.pos):
            self.pos += 1
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
        if char not in ("<", ">", "&"):
            return False
        if char != "&" and self.text.startswith("(", self.pos + 1):
            return False
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.pos):
                break
        else:
            return False
        self.pos += len(operator)
        self.blank(newlines=False)
        word = self.word()
        redirect = Redirect(operator, word)
        if operator in ("<<", "<<-"):
            redirect.delimiter = "".join([part.text for part in word])
            # quoted: the body is taken as it is
            redirect.word = [part for part in word if part.kind != "raw"]
            self.pending.append(redirect)
        node.redirects.append(redirect)
        return True


_DECLARING = ("export", "local", "declare", "readonly", "typeset")


def _assigned(word: Word) -> bool:
    if word[0].kind != "raw" or "=" not in word[0].text:
        return False
    name = word[0].text.partition("=")[0].removesuffix("+").partition("[")[0]
    return name.isidentifier()
