"""Readers of standard report files: coverage, findings and mutants. Bytes in, values out."""
