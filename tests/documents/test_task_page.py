"""The page of tasks among a session's artifacts: only what is about a phase itself is changed."""

import pytest

from detent.core.session.status import Status
from detent.documents.task_page import updated

STATUSES = {
    "01-requirements": Status.COMPLETED,
    "06-implementation": Status.IN_PROGRESS,
    "16-quality-loop": Status.PENDING,
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## Phase 01: Requirements -- PENDING\n", "## Phase 01: Requirements -- COMPLETE\n"),
        ("### 06-implementation: PENDING", "### 06-implementation: IN PROGRESS"),
        ("## Phase 16: Quality -- COMPLETE\r\n", "## Phase 16: Quality -- PENDING\r\n"),
        ("- [ ] 01-requirements is agreed\n", "- [x] 01-requirements is agreed\n"),
        ("  * [x] Phase 06\n", "  * [ ] Phase 06\n"),
        # What is not about one phase stays.
        ("- [ ] T0001 write the parser\n", "- [ ] T0001 write the parser\n"),
        ("- [ ] from 01-requirements to 06-implementation\n", "- [ ] from 01-requirements to 06-implementation\n"),
        ("- [ ] not-01-requirements\n", "- [ ] not-01-requirements\n"),
        ("## Phase 02: Tracing -- PENDING\n", "## Phase 02: Tracing -- PENDING\n"),
        ("Phase 01 -- PENDING\n", "Phase 01 -- PENDING\n"),
    ],
)
def test_a_line_about_a_phase_says_where_it_stands(before, after):
    assert updated(before, STATUSES) == after
    assert updated(after, STATUSES) == after
