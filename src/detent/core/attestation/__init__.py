"""Attestations: what a record shows, as in-toto statements, and the envelope that is signed."""
