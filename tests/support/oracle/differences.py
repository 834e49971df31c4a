"""Where Detent decides otherwise than the recorded implementation, and which cases are shown elsewhere."""

NICKNAME = "an agent has one name; nicknames would let two words mean one agent and hide a misspelt one"

DIFFERENCES: dict[str, str] = {
    "NORM-025": NICKNAME,
    "NORM-028": NICKNAME,
    "NORM-029": NICKNAME,
    "NORM-032": NICKNAME,
    "NORM-033": NICKNAME,
    "ESC-016": "an absent document is its reader's error; to drop the escalation silently would hide a block",
    "ESC-021": "no escalations are an empty list, so that no caller has to tell two kinds of nothing apart",
    "COMP-023": "a repair adds what the entry lacks; comparing durations is up to the reader of the history",
}

NOT_A_STATE_WRITE = "tests/hooks, with the guard of a later issue: which tools and paths count as a state write"
CORRUPT = "tests/conformance/test_corrupt.py"

ELSEWHERE: dict[str, str] = {
    "V7-023": NOT_A_STATE_WRITE,
    "V7-033": NOT_A_STATE_WRITE,
    "V7-034": NOT_A_STATE_WRITE,
    "V7-036": NOT_A_STATE_WRITE,
    "V7-037": NOT_A_STATE_WRITE,
    "V7-038": NOT_A_STATE_WRITE,
    "V8-035": f"{CORRUPT}::test_a_corrupt_state_document_is_refused_and_rebuilt: its reader refuses it",
    "V8-037": NOT_A_STATE_WRITE,
    "COMP-018": NOT_A_STATE_WRITE,
    "COMP-019": NOT_A_STATE_WRITE,
    "COMP-020": f"{CORRUPT}::test_the_end_is_recorded_although_the_state_document_is_corrupt: its reader refuses it",
    "WS-014": "tests/conformance/test_projects.py::test_a_named_project_is_read_whatever_the_default_is: in a monorepo",
}
