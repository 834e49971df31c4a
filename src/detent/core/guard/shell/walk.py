"""Walks the tree of a shell command, and collects the paths and texts that it names.

It follows directories, variables, loops, functions, pipes and substituted commands as far as the text tells. It runs
nothing and looks at no file: a script that is only named, or a variable that only the environment holds, stays unknown.
A command that is too long, too deep, or burns all fuel is opaque.
"""

from detent.core.guard.path_pattern import ANY, MARKS, STAR
from detent.core.guard.shell.commands import Commands
from detent.core.guard.shell.expand import Place
from detent.core.guard.shell.fuel import Fuel, OutOfFuel
from detent.core.guard.shell.grammar import DECLARING, parse
from detent.core.guard.shell.tree import Node, Part, Redirect, Script

MAX_LENGTH = 65_536
MAX_ROUNDS = 32
_MAX_VALUES = 64
_MAX_VALUE = 16_384
_WRITES = (">", ">>", ">|", "&>", "&>>", "<>", ">&")
#: Whatever may stand between two commands, as a line break.
_SEPARATORS = {ord(mark): "\n" for mark in ";|&()`{}"}


class Reading:
    """One reading of a command.

    `targets` are the paths that it may write. `argvs` are the simple commands that it would run, also inside what it
    hands to other shells. `code` and `texts` are not followed: code in another language, and the arguments and input of
    unknown programs. Of an opaque command all of it is code. `prompts` are shells that would wait for commands.
    """

    __slots__ = ("argvs", "code", "fuel", "is_opaque", "prompts", "targets", "texts")

    def __init__(self, command: str, cwd: str, home: str = "") -> None:
        self.fuel = Fuel()
        walk = _Walk(home, self.fuel)
        self.is_opaque = len(command) > MAX_LENGTH
        if not self.is_opaque:
            for mark in MARKS:
                if mark in command:
                    command = command.replace(mark, "\ufffd")
            try:
                walk.run_text(command, Place(cwd))
            except (OutOfFuel, RecursionError):
                self.is_opaque = True
        self.targets, self.argvs, self.texts, self.prompts = walk.targets, walk.argvs, walk.texts, walk.prompts
        self.code = [command] if self.is_opaque else walk.code
        if self.is_opaque:
            # Cut at what separates commands, so that length hides no verb.
            self.argvs = [part.split() for part in command.translate(_SEPARATORS).split("\n")]
            self.fuel = Fuel()


def simple_commands(command: str, cwd: str = "/") -> list[list[str]]:
    """The words of each simple command that `command` would run."""
    return Reading(command, cwd).argvs


class _Walk(Commands):
    __slots__ = ()

    def run_text(self, text: str, place: Place) -> list[str]:
        self.fuel.burn(10 + len(text))
        reader = parse(text, place.depth)
        if reader.opaque:
            raise OutOfFuel
        return self.walk(reader.nodes, place)

    def call(self, name: str, place: Place) -> list[str]:
        return self.walk(place.functions[name].bodies[0], place)

    def substitute(self, part: Part, place: Place) -> list[str]:
        inner = self.copied(place)
        if part.kind == "sub":
            return self.walk(part.script, inner)
        if part.text == ">":
            inner.stdin = [ANY]
        name = f"/dev/fd/{63 + len(self.descriptors)}"
        self.descriptors[name] = []
        self.descriptors[name] = self.walk(part.script, inner)
        return [name]

    def walk(self, script: Script, place: Place) -> list[str]:
        """All commands in turn."""
        printed: list[str] = []
        before = place
        for at, node in enumerate(script):
            after = self.copied(place) if script[at + 1 : at + 2] and script[at + 1].join == "||" else place
            if node.join == "||" and at:
                # it runs where the command before it failed, so that one has not changed the directory
                other = self.copied(place)
                other.cwds = before.cwds
                printed += self._node(node, other)
                self._merge(place, [other], moved=other.cwds != before.cwds)
            else:
                printed += self._node(node, place)
            before = after
        return printed

    def _node(self, node: Node, place: Place) -> list[str]:
        kind = node.kind
        self.fuel.burn(4)
        if kind == "simple":
            return self._simple(node, place)
        if kind == "pipe":
            return self._pipe(node, place)
        if kind == "function":
            self.fuel.burn(2 * len(place.functions))
            place.functions = {**place.functions, node.name: node}
            inner = self.copied(place)
            inner.names["@"] = [ANY]
            inner.functions = {name: body for name, body in place.functions.items() if name != node.name}
            self.walk(node.bodies[0], inner)
            return []
        if kind == "test":
            for word in node.words:
                self.expand(word, place, active=False)
            return []
        inner = self.copied(place) if kind == "sub" else place
        reads = inner.stdin
        silent = self._redirected(node.redirects, inner)
        printed = self._compound(node, inner)
        inner.stdin = reads
        return [] if silent else printed

    def _compound(self, node: Node, place: Place) -> list[str]:
        if node.kind == "if":
            return self._if(node.bodies, place)
        if node.kind == "case":
            for word in node.words:
                self.expand(word, place, active=False)
            return self._branches([[body] for body in node.bodies], place)
        if node.kind == "for":
            return self._for(node, place)
        return [line for body in node.bodies for line in self.walk(body, place)]

    def _if(self, bodies: list[Script], place: Place) -> list[str]:
        printed = self.walk(bodies[0], place)
        branches = [bodies[1:2], *(bodies[at : at + 2] for at in range(2, len(bodies), 2))]
        return printed + self._branches(branches, place)

    def _branches(self, branches: list[list[Script]], place: Place) -> list[str]:
        """Each from the same start; afterwards any of them may have been taken, or none."""
        printed: list[str] = []
        others: list[Place] = []
        for scripts in branches:
            other = self.copied(place)
            for script in scripts:
                printed += self.walk(script, other)
            others.append(other)
        self._merge(place, others, moved=True)
        return printed

    def _for(self, node: Node, place: Place) -> list[str]:
        name, given, _ = node.name.partition(" ")
        values = self.fields(node.words, place) if name else [STAR]
        if name and not given:
            values = place.names.get("@", [ANY])
        rounds = [[value] for value in values] if len(values) <= MAX_ROUNDS else [values]
        printed: list[str] = []
        for value in rounds:
            place.names[name] = value
            for body in node.bodies:
                printed += self.walk(body, place)
        return printed

    def _pipe(self, node: Node, place: Place) -> list[str]:
        lines: list[str] = []
        for at, stage in enumerate(node.bodies):
            inner = self.copied(place)
            if at:
                inner.stdin = lines
            lines = self._node(stage[0], inner)
        return lines

    def _simple(self, node: Node, place: Place) -> list[str]:
        argv = self.fields(node.words, place)
        if not argv or argv[0] in DECLARING:
            self._assign(node, place)
            self._redirected(node.redirects, self.copied(place))
            return []
        inner = place
        reads, names = place.stdin, place.names
        if node.assigns:
            place.names = dict(names)
            self._assign(node, place)
        silent = bool(node.redirects) and self._redirected(node.redirects, inner)
        printed = self.run(argv, inner)
        place.stdin = reads
        if node.assigns:
            for assign in node.assigns:
                if assign.name in names:
                    place.names[assign.name] = names[assign.name]
                else:
                    place.names.pop(assign.name, None)
        return [] if silent else printed

    def _assign(self, node: Node, place: Place) -> None:
        for assign in node.assigns:
            values = [value for word in assign.words for value in self.expand(word, place, active=assign.is_array)]
            old = place.names.get(assign.name, [])
            if assign.appends and assign.is_array:
                values = old + values
            elif assign.appends:
                values = [before + value for before in old or [""] for value in values]
            place.names[assign.name] = [ANY if len(value) > _MAX_VALUE else value for value in values[:_MAX_VALUES]]

    def _redirected(self, redirects: list[Redirect], place: Place) -> bool:
        """Adds the files that are written; sets what is read. True if nothing is printed any more."""
        silent = False
        for redirect in redirects:
            op = redirect.op
            if op in ("<<", "<<<"):
                place.stdin = [self.text(redirect.word, place)]
            elif op == "<":
                name = "".join(self.expand(redirect.word, place)[:1])
                place.stdin = self.descriptors.get(name, [ANY])
            elif op in _WRITES:
                for path in self.expand(redirect.word, place):
                    if op == ">&" and (path in ("-", STAR) or path.rstrip("-").isdigit()):
                        continue
                    self.add(path, "redirect", place)
                    silent = True
        return silent

    def _merge(self, place: Place, others: list[Place], *, moved: bool) -> None:
        """After a branch: any value, any directory."""
        for other in others:
            self.fuel.burn(2 + len(other.names))
            for name, values in other.names.items():
                known = place.names.get(name)
                if known is None:
                    place.names[name] = values
                elif known is not values and known != values:
                    self.fuel.burn(len(known) + len(values))
                    place.names[name] = list(dict.fromkeys([*known, *values]))[:_MAX_VALUES]
            if moved and other.cwds != place.cwds:
                place.cwds = list(dict.fromkeys([*place.cwds, *other.cwds]))[:4]
            if other.functions is not place.functions:
                self.fuel.burn(len(place.functions) + len(other.functions))
                place.functions = {**place.functions, **other.functions}
