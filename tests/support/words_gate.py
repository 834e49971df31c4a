"""A gate kind that Detent does not have: a file must have a number of words."""

import shlex

import msgspec

from detent.core.gate.checked import Checked, exit_result, receipt_of
from detent.core.gate.evidence import Receipt
from detent.core.gate.kind import CheckRunner, GateSettings
from detent.core.testrun.baseline import Baseline


class WordsGate(GateSettings, Checked, frozen=True, kw_only=True, tag="words"):
    file: str
    least: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.file,)

    def requirement(self, phase: str, folder: str) -> str:
        return f"{self.file} must have {self.least} words. Detent counts them when your turn ends."

    def runnable(self) -> str | None:
        return f"wc -w < {shlex.quote(self.file)}"

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        line = f"wc -w < {shlex.quote(self.file)}"
        ran = runner.run(line)
        receipt = receipt_of(ran, line, exit_result(ran))
        return msgspec.structs.replace(receipt, coverage=float(ran.output)) if ran.exit_code == 0 else receipt

    def shortfall(self, receipt: Receipt, baseline: Baseline) -> str | None:
        words = receipt.coverage or 0
        return f"{words:g} words, and {self.least} are needed" if words < self.least else None
