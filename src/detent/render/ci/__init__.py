"""Annotations and a summary of a check, for CI services."""
