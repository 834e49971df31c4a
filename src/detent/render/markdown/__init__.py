"""Markdown files of a session."""
