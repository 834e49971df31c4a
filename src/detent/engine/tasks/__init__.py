"""The tasks of a session."""
