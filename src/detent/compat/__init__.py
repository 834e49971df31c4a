"""Interfaces that only the seed documents ask for, on top of the engine."""
