"""Interfaces that only the seeds ask for, on top of the engine. Those on state documents: `documents/state/seed.py`."""
