"""JSON documents that other programs read and write. Their names stand here, so that naming one loads none of them."""

STATE_DOCUMENT = "state.json"
SESSION_DOCUMENT = "workflow-session.json"
#: How far the task files of a session are written.
PUBLISHED_TASKS = ".task/.published.json"
#: The digests of what Detent last wrote to the workflow document of a client.
SHOWN_WORKFLOW = "shown.json"
