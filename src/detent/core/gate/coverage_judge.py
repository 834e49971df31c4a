"""The one judge of coverage: for the `coverage` gate, and for the threshold of a `tests` gate, its short form."""

from detent.core.gate.evidence import Receipt


def coverage_shortfall(receipt: Receipt, *, total: float | None = None, changed: float | None = None) -> str | None:
    """The sentence that the measured coverage is below a threshold; None if it is not, or was not measured."""
    if total is not None and receipt.coverage is not None and receipt.coverage < total:
        return f"coverage is {receipt.coverage:g} %, and {total:g} % are needed"
    if changed is not None and receipt.changed_coverage is not None and receipt.changed_coverage < changed:
        named = f": {'; '.join(receipt.findings)}" if receipt.findings else ""
        return f"coverage of the changed lines is {receipt.changed_coverage:g} %, and {changed:g} % are needed{named}"
    return None


def coverage_unknown(receipt: Receipt, *, total: float | None = None, changed: float | None = None) -> str | None:
    """The sentence that a threshold cannot be judged; None if it can."""
    if changed is not None and receipt.changed_coverage is None:
        return f"coverage of the changed lines was not measured, and {changed:g} % are needed"
    if total is None or receipt.coverage is not None:
        return None
    from detent.core.testrun.coverage_tool import measuring  # noqa: PLC0415 - only this reason needs it

    return f"coverage was not measured, and {total:g} % are needed; {measuring(receipt.command)} would measure it"
