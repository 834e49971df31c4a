"""Checks the records of a branch before it is merged: complete, verified, about this tree, and their checks pass here.

The lists of people and the settings come from the base branch, which the branch cannot change.
"""

import os
import tempfile
from collections.abc import Callable, Iterator

from detent.config.settings import Settings, parse_settings
from detent.core.actor import Assurance
from detent.core.ci import Annotation, Level, RecordCheck, RerunRow
from detent.core.decision.approvers import FILE, Approvers
from detent.core.gate.evidence import Verdict
from detent.doctor.verification import Demands, verify_bundle
from detent.doctor.verified import Check, Outcome
from detent.engine.approvers import read_approvers, trusted_list
from detent.engine.bundles.git_tree import PUBLISHED, committed_file, committed_tree
from detent.engine.bundles.publishing import EXTENSION
from detent.engine.gates.rerun import Rerun, rerun_gates

#: The settings file of a project.
_SETTINGS = "detent.toml"
_LEVELS = {Outcome.WRONG: Level.ERROR, Outcome.UNCHECKED: Level.ERROR, Outcome.NOTE: Level.NOTICE}


def published_bundles(directory: str) -> list[str]:
    """The bundles that the branch publishes, sorted."""
    published = os.path.join(directory, PUBLISHED)
    bundles = [
        os.path.join(where, name)
        for where, _, names in os.walk(published)
        for name in names
        if name.endswith(EXTENSION)
    ]
    return sorted(bundles)


def demands_of(directory: str, *, base: str | None, tree: str | None, assurance: Assurance) -> Demands:
    """The demands of the base commit: whose signatures count, and which settings the session must have kept to."""
    approvers, settings = _base_lists(directory, base) if base is not None else (None, None)
    return Demands(
        approvers=approvers,
        assurance=assurance,
        settings=settings,
        files=os.path.realpath(directory),
        completed=True,
        tree=committed_tree(directory, tree) if tree is not None else None,
    )


def _base_lists(directory: str, base: str) -> tuple[Approvers | None, Settings | None]:
    listed, stated = (committed_file(directory, base, name) for name in (FILE, _SETTINGS))
    approvers = None
    if listed is not None:
        with tempfile.TemporaryDirectory(prefix="detent-base-") as scratch:
            path = os.path.join(scratch, FILE)
            with open(path, "wb") as file:
                file.write(listed)
            approvers = trusted_list(read_approvers(path)).approvers
    source = f"{_SETTINGS} of {base}"
    settings = None if stated is None else parse_settings(stated.decode("utf-8", "replace"), source)
    return approvers, settings


def check_record(
    bundle: str,
    directory: str,
    demands: Demands,
    *,
    run_gates: bool = True,
    started: Callable[[str, str], object] = lambda _phase, _gate: None,
) -> RecordCheck:
    """Verify one bundle, and run its checks again if it holds."""
    result = verify_bundle(bundle, demands)
    shown = os.path.relpath(bundle, directory)
    annotations = [_annotation(check, result.session, shown) for check in result.findings]
    reruns: list[Rerun] = []
    if run_gates and result.is_sound:
        reruns = list(rerun_gates(bundle, directory, demands.settings or Settings(), started=started))
    annotations += _closed(reruns, result.session, shown)
    return RecordCheck(
        bundle=shown,
        session=result.session,
        status=result.status,
        holds=result.is_sound,
        commits=result.commits,
        gates=result.gates,
        decisions=tuple(decided.describe() for decided in result.decisions),
        annotations=tuple(annotations),
        reruns=tuple(
            RerunRow(
                phase=each.phase,
                gate=each.gate,
                verdict=each.verdict,
                reason=each.reason,
                seconds=each.receipt.duration_s if each.receipt is not None else 0.0,
            )
            for each in reruns
        ),
    )


def _annotation(check: Check, session: str, bundle: str) -> Annotation:
    where = f"{check.subject}: " if check.commit else ""
    more = f" (try: {check.way_out})" if check.way_out else ""
    title = f"{session}: {check.outcome}"
    return Annotation(level=_LEVELS[check.outcome], title=title, message=f"{where}{check.message}{more}", file=bundle)


def _closed(reruns: list[Rerun], session: str, bundle: str) -> Iterator[Annotation]:
    for each in reruns:
        if each.verdict is Verdict.PASS:
            continue
        level = Level.NOTICE if each.verdict is Verdict.PENDING else Level.ERROR
        title = f"{session}: gate {each.gate} of {each.phase} is {each.verdict} here"
        yield Annotation(level=level, title=title, message=each.reason, file=bundle)
