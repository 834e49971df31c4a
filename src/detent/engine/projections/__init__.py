"""Projections: documents, markers and history written from the journal, and edits read back."""
