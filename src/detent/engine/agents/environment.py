"""The variables by which a runner tells everything that it starts what it is for.

They also mark it: whatever carries them was started for that session, wherever it has gone since, and by no person.
"""

SESSION = "DETENT_SESSION"
PHASE = "DETENT_PHASE"
TOKEN = "DETENT_TOKEN"  # noqa: S105 - the name of a variable
TASK = "DETENT_TASK"
CLAIM = "DETENT_CLAIM"
ACTOR = "DETENT_ACTOR"
#: The run, the agent's name in the journal, and the location of the store, by which two projects with like sessions are
#: told apart.
RUN = "DETENT_RUN"
AGENT = "DETENT_AGENT"
STATE = "DETENT_STATE"
#: The token of the attempt, for the checks that are run for its gates.
GATE = "DETENT_GATE"
