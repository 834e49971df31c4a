"""Where the gates, the guard and what belongs to them decide otherwise than the recorded implementation, and why."""

IN_PROGRESS_IS_NO_EVIDENCE = "that a phase is in progress does not show that its agent ran; only a delegation does"
FIELDS_FIRST = "the agent's type says what a call is for; a word in its prompt does not undo that"
NO_MARKER = (
    "there is no delegation marker that could loop or go stale: a phase asks for its agent by a gate, and stopping is "
    "held by the gates of a phase in progress"
)
NO_PROSE = "what a person answered is recorded when it is answered; no phrase in a tool's output counts as an answer"
ESCALATED_IS_OPEN_WORK = "giving up is not completing: only a pass or a person's approval completes a loop"

DIFFERENCES: dict[str, str] = {
    "GATE-028": "an artifact whose folder is not known is missing; the gate fails closed",
    "GATE-034": IN_PROGRESS_IS_NO_EVIDENCE,
    "GATE-041": "the index is a mirror of the phases; the guard decides on the phase, and doctor reports the mirror",
    "GATE-059": "an ended session leaves no active workflow behind, so a document that says both is in doubt and holds",
    "GATE-065": IN_PROGRESS_IS_NO_EVIDENCE,
    "GATE-082": "an agent that is only named in a prompt is not delegated to, so it opens no gate",
    "CORR-052": "there is no switch in the guarded document that turns the guard off",
    "SEQ-025": "where the workflow names no current phase, the top-level one is read, as at every other gate",
    "LOOP-021": "a state that cannot be read holds delegations until a person has looked at it",
    "DET-039": "the number in front of an agent's file name is dropped for every agent of the table",
    "DET-042": "of several agents in a text the first one counts, not the first one of the table",
    "DET-056": FIELDS_FIRST,
    "DET-058": FIELDS_FIRST,
    "DET-060": FIELDS_FIRST,
    "DET-064": FIELDS_FIRST,
    "DIAG-006": "without a state there is no work that could be held",
    "DGATE-004": NO_MARKER,
    "DGATE-005": NO_MARKER,
    "DGATE-007": NO_MARKER,
    "DGATE-009": NO_MARKER,
    "DGATE-010": NO_MARKER,
    "DGATE-012": NO_MARKER,
    "DGATE-016": NO_MARKER,
    "DGATE-018": NO_MARKER,
    "TW-012": ESCALATED_IS_OPEN_WORK,
    "TW-017": ESCALATED_IS_OPEN_WORK,
    "MENU-003": "one choice is not three answers: the least number that the phase asks for is enforced",
    "MENU-007": "leaving the questions is no way to finish them: only the choices that the gate names are",
    "MENU-010": NO_PROSE,
    "SUP-014": "a phase without a key cannot be in a workflow, so no question about it can be asked",
    "SUP-015": "a person's word is an event of the journal and a line of the document's history, not a list of its own",
    "TIME-005": "a phase has one limit",
}
