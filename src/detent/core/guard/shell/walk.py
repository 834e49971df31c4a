"""Walks the tree of a shell command, and collects the files that it would write.

`write_targets` follows directories, variables, loops, functions, pipes and substituted commands as far as the text
tells. It runs nothing and looks at no file: a script that is only named, or a variable that only the environment holds,
stays unknown. A command that is too long or too deep to be followed is opaque: it may write whatever it names.
"""

from detent.core.guard.path_pattern import ANY, MARKS, STAR, normal, shown
from detent.core.guard.shell.commands import Commands
from detent.core.guard.shell.expand import Place
from detent.core.guard.shell.grammar import DECLARING, parse
from detent.core.guard.shell.opaque import named_paths
from detent.core.guard.shell.tree import Node, Part, Redirect, Script
from detent.core.guard.shell.writes import OPAQUE, Target

MAX_LENGTH = 65_536
MAX_ROUNDS = 32
#: Fuel of a short command; every command, argument and text that is walked costs some. Without fuel it is opaque.
_MIN_FUEL = 1_000
_MAX_VALUES = 64
_MAX_VALUE = 16_384
_WRITES = (">", ">>", ">|", "&>", "&>>", "<>", ">&")


#: Whatever may stand between two commands, as a line break.
_SEPARATORS = {ord(mark): "\n" for mark in ";|&()`{}"}


def write_targets(command: str, cwd: str, *, home: str = "") -> list[Target]:
    """(path, how) for all that `command` would write when run in `cwd`.

    Paths are absolute patterns (see `path_pattern`); one whose start is unknown begins with `**`. A pair whose `how` is
    "except" says what the pair before it leaves alone. ("**", "opaque") says that the command could not be followed;
    every word of it that may be a path follows, as "opaque" too.
    """
    if len(command) > MAX_LENGTH:
        return _opaque(command, cwd)
    walk = _walked(command, cwd, home)
    return [*walk.targets, *_opaque(command, cwd)] if walk.opaque else walk.targets


def simple_commands(command: str, cwd: str = "/") -> list[list[str]]:
    """The words of each simple command that `command` would run, also inside what it hands to other shells."""
    if len(command) > MAX_LENGTH:
        # Too long to be followed: cut at what separates commands, so that length hides nothing.
        return [part.split() for part in command.translate(_SEPARATORS).split("\n")]
    return _walked(command, cwd, "").argvs


def _opaque(command: str, cwd: str) -> list[Target]:
    return [("**", OPAQUE), *((shown(normal(name, cwd)), OPAQUE) for name in named_paths(command))]


def opaque_texts(command: str) -> list[str]:
    """The pieces of a command that the reader does not follow: all of a long one, or code in another language."""
    if len(command) > MAX_LENGTH:
        return [command]
    walk = _walked(command, "/", "")
    return [command] if walk.opaque else walk.code


def _walked(command: str, cwd: str, home: str) -> "_Walk":
    for mark in MARKS:
        if mark in command:
            command = command.replace(mark, "\ufffd")
    walk = _Walk(home, _MIN_FUEL + len(command) // 4)
    walk.run_text(command, Place(cwd))
    return walk


class _Walk(Commands):
    __slots__ = ()

    def run_text(self, text: str, place: Place) -> list[str]:
        self.fuel -= len(text) // 32
        if self.fuel < 0:
            self.opaque = True
            return [ANY]
        reader = parse(text, place.depth)
        self.opaque = self.opaque or reader.opaque
        return self.walk(reader.nodes, place)

    def call(self, name: str, place: Place) -> list[str]:
        return self.walk(place.functions[name].bodies[0], place)

    def substitute(self, part: Part, place: Place) -> list[str]:
        inner = place.copy()
        if part.kind == "sub":
            return self._nodes(part.script, inner)
        if part.text == ">":
            inner.stdin = [ANY]
        name = f"/dev/fd/{63 + len(self.descriptors)}"
        self.descriptors[name] = []
        self.descriptors[name] = self._nodes(part.script, inner)
        return [name]

    def walk(self, script: Script, place: Place) -> list[str]:
        """All commands in turn. What a `find` leaves out holds for the command that it stands in."""
        spared = self.spared
        printed: list[str] = []
        before = place
        for at, node in enumerate(script):
            after = place.copy() if script[at + 1 : at + 2] and script[at + 1].join == "||" else place
            if node.join == "||" and at:
                # it runs where the command before it failed, so that one has not changed the directory
                other = place.copy()
                other.cwds = before.cwds
                printed += self._node(node, other)
                _merge(place, [other], moved=other.cwds != before.cwds)
            else:
                printed += self._node(node, place)
            before = after
            self.spared = spared
        return printed

    def _nodes(self, script: Script, place: Place) -> list[str]:
        """As `walk`, for what stands inside another command."""
        spared = self.spared
        if len(script) == 1:
            return self._node(script[0], place)
        printed = self.walk(script, place)
        self.spared = spared
        return printed

    def _node(self, node: Node, place: Place) -> list[str]:
        kind = node.kind
        self.fuel -= 1
        if self.fuel < 0:
            self.opaque = True
            return [ANY]
        if kind == "simple":
            return self._simple(node, place)
        if kind == "pipe":
            return self._pipe(node, place)
        if kind == "function":
            place.functions = {**place.functions, node.name: node}
            inner = place.copy()
            inner.names["@"] = [ANY]
            inner.functions = {name: body for name, body in place.functions.items() if name != node.name}
            self.walk(node.bodies[0], inner)
            return []
        if kind == "test":
            for word in node.words:
                self.expand(word, place, active=False)
            return []
        inner = place.copy() if kind == "sub" else place
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
            other = place.copy()
            for script in scripts:
                printed += self.walk(script, other)
            others.append(other)
        _merge(place, others, moved=True)
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
            inner = place.copy()
            if at:
                inner.stdin = lines
            lines = self._node(stage[0], inner)
        return lines

    def _simple(self, node: Node, place: Place) -> list[str]:
        argv = self.fields(node.words, place)
        if not argv or argv[0] in DECLARING:
            self._assign(node, place)
            self._redirected(node.redirects, place.copy())
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


def _merge(place: Place, others: list[Place], *, moved: bool) -> None:
    """After a branch: any value, any directory."""
    for other in others:
        for name, values in other.names.items():
            known = place.names.get(name)
            if known is None:
                place.names[name] = values
            elif known is not values and known != values:
                place.names[name] = list(dict.fromkeys([*known, *values]))[:_MAX_VALUES]
        if moved and other.cwds != place.cwds:
            place.cwds = list(dict.fromkeys([*place.cwds, *other.cwds]))[:4]
        if other.functions is not place.functions:
            place.functions = {**place.functions, **other.functions}
