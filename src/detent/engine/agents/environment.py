"""The environment variables that a runner sets for every process it starts.

They bind a process to its session and attempt. They also mark it as not started by a person, and let the runner find
it again.
"""

SESSION = "DETENT_SESSION"
PHASE = "DETENT_PHASE"
TOKEN = "DETENT_TOKEN"  # noqa: S105 - the name of a variable
TASK = "DETENT_TASK"
CLAIM = "DETENT_CLAIM"
ACTOR = "DETENT_ACTOR"
#: The run, the agent's name in the journal, and the location of the store, which distinguishes projects whose sessions
#: have the same id.
RUN = "DETENT_RUN"
AGENT = "DETENT_AGENT"
STATE = "DETENT_STATE"
#: The socket of the runner, for an agent in a sandbox.
SOCKET = "DETENT_SOCKET"
#: The sandboxes of the run, for a command that the runner carries out for such an agent.
SANDBOX = "DETENT_SANDBOX"
#: The token of the attempt, for the checks that are run for its gates.
GATE = "DETENT_GATE"
#: The directory of a program `detent` that is this installation, if PATH leads to another one.
BIN = "DETENT_BIN"
