"""The `command` gate: a command must exit with 0. Merging a worktree is such a command."""

from detent.core.gate.checked import OneCommand, exit_result, own_command, receipt_of
from detent.core.gate.evidence import Receipt
from detent.core.gate.kind import CheckRunner, GateSettings

MERGE = "detent merge"


class CommandGate(GateSettings, OneCommand, frozen=True, kw_only=True, tag="command"):
    """A command must exit with 0."""

    command: str
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    env: tuple[str, ...] = ()

    def requirement(self, phase: str, folder: str) -> str:
        return f"`{self.command}` must exit with 0. Detent runs it when your turn ends{self.tries()}."

    @property
    def runs_last(self) -> bool:
        return self.command.startswith(MERGE)

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        line = own_command(self, self.command, command)
        ran = runner.run(line)
        return receipt_of(ran, line, exit_result(ran))


def merge_gate(name: str, arguments: str) -> CommandGate:
    """The gate that merges the work of a worktree. Every file is its input: a change after a merge is merged again."""
    return CommandGate(name=name, command=f"{MERGE} {arguments}".rstrip(), inputs=(".",))
