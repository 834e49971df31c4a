"""IR-005 and IR-006: which phase a hook takes for the current one, and who may be called while it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.hooked_project import FAILS, PASSES, Answer, Place

#: The sub-agents by the phase that calls them, as the public implementation and the seed name them.
SUB_AGENTS = {
    "impact-analyzer": "02-impact-analysis",
    "entry-point-finder": "02-impact-analysis",
    "risk-assessor": "02-impact-analysis",
    "cross-validation-verifier": "02-impact-analysis",
    "symptom-analyzer": "02-tracing",
    "execution-path-tracer": "02-tracing",
    "root-cause-identifier": "02-tracing",
    "trace-code-analyzer": "02-tracing",
    "trace-synthesizer": "02-tracing",
    "test-strategy-critic": "05-test-strategy",
    "test-strategy-refiner": "05-test-strategy",
}
#: Phases without gates but for tests in the second, so that moving on costs nothing.
SETTINGS = """
[workflows.row]
phases = [
    { key = "02-tracing", gates = [] },
    { key = "06-implementation", gates = [{ kind = "tests" }, { kind = "delegation" }] },
    { key = "02-impact-analysis", gates = [] },
    { key = "05-test-strategy", gates = [] },
]
"""


def make(root: Path, *, begun: int = 1) -> Place:
    place = Place(root, settings=SETTINGS)
    place.detent("start", "row", "Mend login")
    for _ in range(begun - 1):
        place.detent("finish", "-m", "done")
        place.detent("begin")
    return place


def make_stale(place: Place, phase: str) -> None:
    """As an incomplete write of another program would leave it: only the top level names the earlier phase."""
    place.disk.edit(place.disk.state() | {"current_phase": phase})


def said(answer: Answer) -> str:
    return answer.denied or answer.blocked or answer.told


@pytest.fixture(scope="module")
def tracing(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """In the first phase; what hooks say before a call changes nothing."""
    return make(tmp_path_factory.mktemp("tracing"))


@pytest.mark.req("AC-005a")
def test_every_rule_reads_the_workflows_own_phase(tmp_path: Path) -> None:
    place = make(tmp_path, begun=2)
    place.tests(FAILS)
    make_stale(place, "02-tracing")

    order = place.delegate("symptom-analyzer").denied
    corridor = place.delegate("general-purpose", "hand off the work").denied
    gates = place.before("Skill", skill="detent", args="advance gate").denied

    assert place.delegate("software-developer").denied is None
    assert order is not None
    assert "current phase is 06-implementation" in order
    assert corridor is not None
    assert "the tests of 06-implementation fail" in corridor
    assert gates is not None
    assert "06-implementation" in gates


@pytest.mark.req("AC-005a")
def test_an_agents_run_is_recorded_for_the_workflows_own_phase(tmp_path: Path) -> None:
    place = make(tmp_path, begun=2)
    make_stale(place, "02-tracing")

    place.delegated("software-developer", "Summary: wrote it")

    launched = [event for event in place.events() if event["type"] == "agent_launched"]
    assert [event["phase"] for event in launched] == ["06-implementation"]


@pytest.mark.req("AC-005b")
@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("PreToolUse", {"tool_name": "Agent", "tool_input": {"subagent_type": "tracing-orchestrator", "prompt": "x"}}),
        (
            "PreToolUse",
            {"tool_name": "Agent", "tool_input": {"subagent_type": "sdlc-orchestrator", "prompt": "advance"}},
        ),
        ("SessionStart", {"source": "startup"}),
        ("Stop", {"stop_hook_active": False}),
    ],
)
def test_no_hook_takes_the_top_level_phase_first(tmp_path: Path, event: str, fields: dict[str, Any]) -> None:
    place = make(tmp_path, begun=2)
    fresh = place.hook(event, **fields)
    make_stale(place, "02-tracing")

    stale = place.hook(event, **fields)

    assert "06-implementation" in said(stale)
    assert said(fresh) in said(stale)


@pytest.mark.req("AC-005c")
def test_a_seen_test_run_counts_for_the_workflows_own_phase(tmp_path: Path) -> None:
    place = make(tmp_path, begun=2)
    make_stale(place, "02-tracing")

    place.tests(PASSES)

    checked = [event for event in place.events() if event["type"] == "gate_checked"]
    assert [(event["phase"], event["receipt"]["result"]) for event in checked] == [("06-implementation", "passed")]


@pytest.mark.req("AC-005c")
def test_an_answer_counts_for_the_workflows_own_phase(tmp_path: Path) -> None:
    settings = SETTINGS.replace('[{ kind = "tests" }, { kind = "delegation" }]', '[{ kind = "elicitation" }]')
    place = Place(tmp_path, settings=settings)
    place.detent("start", "row", "Mend login")
    place.detent("finish", "-m", "done")
    place.detent("begin")
    make_stale(place, "02-tracing")

    place.detent("gate", "answer", "--choice", "save")

    answered = [event for event in place.events() if event["type"] == "question_answered"]
    assert [event["phase"] for event in answered] == ["06-implementation"]


@pytest.mark.req("AC-005d")
def test_a_legacy_key_means_its_present_name_to_hooks(tmp_path: Path) -> None:
    settings = (
        '[workflows.ship]\nphases = ["13-test-deploy", "14-production"]\n'
        '[phases.13-test-deploy]\ngates = [{ kind = "tests" }]\n'
    )
    place = Place(tmp_path, settings=settings)
    place.detent("start", "ship", "Ship it")

    assert place.disk.workflow()["current_phase"] == "12-test-deploy"
    assert place.delegate("", "Phase ID: 13-test-deploy. Deploy it").denied is None
    assert place.delegate("deployment-engineer-staging").denied is None
    out_of_order = place.delegate("", "Phase ID: 14-production. Release it").denied
    assert out_of_order is not None
    assert "phase 13-production, which is pending" in out_of_order
    held = place.asks("advance").denied
    assert held is not None
    assert "12-test-deploy is held by its gates: tests" in held


@pytest.mark.req("AC-005d")
def test_a_document_with_legacy_keys_is_understood(tmp_path: Path) -> None:
    place = Place(tmp_path, settings='[workflows.ship]\nphases = ["12-test-deploy", "13-production"]\n')
    place.detent("start", "ship", "Ship it")
    renamed = json.loads(
        json.dumps(place.disk.state()).replace("13-production", "14-production").replace("12-test", "13-test")
    )
    place.disk.edit(renamed)

    assert renamed["active_workflow"]["current_phase"] == "13-test-deploy"
    assert place.delegate("deployment-engineer-staging").denied is None
    denied = place.delegate("release-manager").denied
    assert denied is not None
    assert "phase 13-production, which is pending, and the current phase is 12-test-deploy" in denied


@pytest.mark.req("AC-006a")
@pytest.mark.parametrize("tool", ["Task", "Agent"])
@pytest.mark.parametrize("agent", [agent for agent, phase in SUB_AGENTS.items() if phase == "02-tracing"])
def test_sub_agents_of_the_active_phase_may_be_called(tracing: Place, tool: str, agent: str) -> None:
    assert tracing.before(tool, subagent_type=agent, prompt="Trace it").denied is None


@pytest.mark.req("AC-006a")
def test_sub_agents_of_impact_analysis_may_be_called_in_it(tmp_path: Path) -> None:
    place = Place(tmp_path, settings='[workflows.one]\nphases = ["02-impact-analysis", "06-implementation"]\n')
    place.detent("start", "one", "Add search")

    for agent in ("impact-analyzer", "entry-point-finder", "risk-assessor"):
        assert place.delegate(agent).denied is None


@pytest.mark.req("AC-006b")
@pytest.mark.parametrize("agent", ["software-developer", "impact-analyzer", "test-design-engineer"])
def test_a_phase_that_is_pending_cannot_be_delegated(tracing: Place, agent: str) -> None:
    denied = tracing.delegate(agent).denied

    assert denied is not None
    assert "which is pending" in denied
    assert "the current phase is 02-tracing (in_progress)" in denied
    assert "detent begin" in denied


@pytest.mark.req("AC-006b")
def test_a_pending_phase_cannot_be_delegated_between_two_phases(tmp_path: Path) -> None:
    place = make(tmp_path)
    place.detent("finish", "-m", "done")

    assert place.delegate("software-developer").denied is not None

    place.detent("begin")

    assert place.delegate("software-developer").denied is None


@pytest.mark.req("AC-006c")
def test_a_call_within_the_phase_can_be_traced(tmp_path: Path) -> None:
    place = make(tmp_path)
    place.delegate("symptom-analyzer")
    place.delegate("tracing-orchestrator")
    place.delegate("software-developer")
    place.delegate("Explore", "look around")
    place.before("Bash", command="ls")

    log = place.root / ".workflow" / "hook-activity.log"
    lines = [json.loads(line) for line in log.read_text().splitlines()]

    assert [(line["event"], line["phase"], line["agent"]) for line in lines] == [
        ("same-phase-bypass", "02-tracing", "symptom-analyzer"),
        ("delegated", "02-tracing", "tracing-orchestrator"),
        ("denied", "06-implementation", "software-developer"),
    ]
    assert all(isinstance(line["ts"], int) for line in lines)


@pytest.mark.req("AC-006c")
def test_the_log_of_calls_cannot_be_changed_by_the_agent(tracing: Place) -> None:
    assert tracing.before("Bash", command="rm .workflow/hook-activity.log").denied is not None


@pytest.mark.req("AC-006d")
@pytest.mark.parametrize(
    ("agent", "prompt"),
    [
        ("tracing-orchestrator", "go"),
        ("03-tracing-orchestrator", "go"),
        ("general-purpose", "Phase key: 02-tracing"),
        ("", "do 02-tracing"),
    ],
)
def test_the_active_phase_itself_may_be_delegated(tracing: Place, agent: str, prompt: str) -> None:
    assert tracing.delegate(agent, prompt).denied is None


@pytest.mark.req("AC-006e")
@pytest.mark.parametrize(("agent", "phase"), SUB_AGENTS.items())
def test_every_sub_agent_belongs_to_the_phase_of_its_parent(tracing: Place, agent: str, phase: str) -> None:
    denied = tracing.delegate(agent, "whatever the words say about 02-tracing").denied

    if phase == "02-tracing":
        assert denied is None
    else:
        assert denied is not None
        assert denied.startswith(f"{agent} works on phase {phase}, which is pending")


@pytest.mark.req("AC-006e")
@pytest.mark.parametrize(
    "prompt", ["REQ-0042-demo needs a look", "a 12-factor app", "see the 06 chapters", "101-lobby"]
)
def test_words_do_not_make_an_unknown_agent_one_of_a_phase(tracing: Place, prompt: str) -> None:
    assert tracing.delegate("code-poet", prompt).denied is None


@pytest.mark.req("TS-003")
def test_the_tracing_phase_with_its_three_sub_agents(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.detent("start", "fix", "Login fails after a password reset")
    before = place.disk.journal_path(place.session()).read_bytes()

    for agent in ("trace-code-analyzer", "execution-path-tracer", "trace-synthesizer"):
        assert place.delegate(agent, "T1/T2/T3 of the trace").denied is None
    denied = place.delegate("software-developer", "implement the fix").denied

    assert denied is not None
    assert "06-implementation" in denied
    assert place.disk.journal_path(place.session()).read_bytes() == before
    assert place.disk.workflow()["phase_status"]["06-implementation"] == "pending"
