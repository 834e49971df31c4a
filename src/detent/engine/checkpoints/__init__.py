"""Checkpoints: take, compare, roll back, bundle."""
