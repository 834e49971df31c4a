"""Checkpoints as values: manifests, comparison, rollback, ignore rules."""
