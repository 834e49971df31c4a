"""The Code Quality report of GitLab, which a merge request shows."""

from collections.abc import Iterable
from typing import Any

from detent.core.ci import Annotation, Level

_SEVERITIES = {Level.ERROR: "critical", Level.WARNING: "major", Level.NOTICE: "info"}
#: The file of a finding that is about the record as a whole: GitLab needs one.
_WHOLE = ".detent"


def code_quality(annotations: Iterable[Annotation]) -> list[dict[str, Any]]:
    return [
        {
            "description": f"{annotation.title}: {annotation.message}",
            "check_name": "detent",
            "fingerprint": annotation.fingerprint,
            "severity": _SEVERITIES[annotation.level],
            "location": {"path": annotation.file or _WHOLE, "lines": {"begin": 1}},
        }
        for annotation in annotations
    ]
