"""Interfaces that only the seed documents require, built on the engine."""
