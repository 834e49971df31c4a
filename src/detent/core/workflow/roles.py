"""The agent of each phase: the only such table."""

PHASE_AGENTS: dict[str, str] = {
    "00-quick-scan": "quick-scan-agent",
    "01-requirements": "requirements-analyst",
    "02-impact-analysis": "impact-analysis-orchestrator",
    "02-tracing": "tracing-orchestrator",
    "03-architecture": "solution-architect",
    "04-design": "system-designer",
    "05-test-strategy": "test-design-engineer",
    "06-implementation": "software-developer",
    "07-testing": "integration-tester",
    "08-code-review": "qa-engineer",
    "09-validation": "security-compliance-auditor",
    "10-cicd": "cicd-engineer",
    "11-local-testing": "environment-builder",
    "12-remote-build": "environment-builder",
    "12-test-deploy": "deployment-engineer-staging",
    "13-production": "release-manager",
    "14-operations": "site-reliability-engineer",
    "15-upgrade-plan": "upgrade-engineer",
    "15-upgrade-execute": "upgrade-engineer",
    "16-quality-loop": "quality-loop-engineer",
    "PLAN": "planning-agent",
    "IMPLEMENT": "code-developer",
    "REVIEW": "code-review-test-agent",
    "intake": "intake-analyst",
    "planning": "architect",
    "data": "data-engineer",
    "architecture": "architect",
    "security": "security-engineer",
    "development": "developer",
    "qa": "qa-engineer",
    "documentation": "technical-writer",
    "review": "reviewer",
    "hygiene": "maintainer",
}

SUB_AGENTS: dict[str, str] = {
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

#: They work for every phase.
EVERY_PHASE = ("sdlc-orchestrator", "skill-manager")
_KNOWN = frozenset(PHASE_AGENTS.values()) | SUB_AGENTS.keys() | set(EVERY_PHASE)


def normalize_agent_name(name: object) -> str:
    """The name in lower case with hyphens, without the number that names of agent files start with."""
    if not isinstance(name, str):
        return ""
    plain = name.strip().lower().replace("_", "-")
    number, _, rest = plain.partition("-")
    return rest if number.isdigit() and rest in _KNOWN else plain
