"""The doctor: invariants checked against the disk."""
