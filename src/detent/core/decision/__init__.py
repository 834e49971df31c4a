"""Signed statements, and the approvers whose signatures count."""
