"""Documents that look like state documents in some places and like anything in others."""

from typing import Any

from hypothesis import strategies as st

KEYS = ("01-requirements", "06-implementation", "13-test-deploy")
STAMPS = ("2026-02-09T10:00:00Z", "2026-02-09T10:02:30+02:00", "9999-12-31T23:59:59Z", "0001-01-01", "soon")

anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(-1, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def _mostly(likely: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return likely | likely | likely | anything


def _record(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return _mostly(st.fixed_dictionaries({}, optional=fields))


stamps = _mostly(st.sampled_from(STAMPS))
keys = _mostly(st.lists(_mostly(st.sampled_from(KEYS)), max_size=3))
statuses = _mostly(st.sampled_from(("pending", "in_progress", "completed")))
loops = _record(
    {
        "completed": anything,
        "escalated": anything,
        "current_iteration": anything,
        "current": anything,
        "menu_interactions": anything,
        "iterations_used": anything,
    }
)
phases = _mostly(
    st.dictionaries(
        st.sampled_from(KEYS),
        _record(
            {
                "status": statuses,
                "started": stamps,
                "completed": stamps,
                "gate_passed": stamps,
                "summary": anything,
                "artifacts": anything,
                "constitutional_validation": loops,
                "iteration_requirements": _record({"test_iteration": loops, "interactive_elicitation": loops}),
            }
        ),
    )
)
workflows = _record(
    {
        "phases": keys,
        "started_at": stamps,
        "completed_at": stamps,
        "current_phase": _mostly(st.sampled_from(KEYS)),
        "current_phase_index": anything,
        "phase_status": _mostly(st.dictionaries(st.sampled_from(KEYS), statuses)),
        "supervised_review": _record({"status": anything, "redo_count": anything, "phase": anything}),
        "phase_snapshots": anything,
        "metrics": anything,
        "description": anything,
        "git_branch": anything,
    }
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "state_version": anything,
        "current_phase": anything,
        "active_workflow": workflows,
        "phases": phases,
        "history": _mostly(
            st.lists(
                _record(
                    {
                        "agent": _mostly(st.sampled_from(("requirements-analyst", "software-developer"))),
                        "timestamp": stamps,
                        "action": anything,
                    }
                ),
                max_size=2,
            )
        ),
        "workflow_history": _mostly(st.lists(workflows, max_size=2)),
        "skill_usage_log": anything,
        "pending_escalations": anything,
    },
)
