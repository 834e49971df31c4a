"""Agents that a runner started: their environment and their binding to a session."""
