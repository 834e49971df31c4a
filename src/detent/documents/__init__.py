"""JSON documents that other programs read and write. Their names stand here, so that naming one loads none of them."""

STATE_DOCUMENT = "state.json"
SESSION_DOCUMENT = "workflow-session.json"
#: How far the task files of a session are written.
PUBLISHED_TASKS = ".task/.published.json"
#: What the installation in clients has changed.
INSTALLED = "install/manifest.json"
#: The digests of what Detent last wrote to the workflow document of a client.
SHOWN_WORKFLOW = "shown.json"
#: A page of a person or an agent in the folder of the artifacts.
TASK_PAGE = "docs/requirements/{folder}/tasks.md"
