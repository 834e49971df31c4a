"""Rendering: text and JSON made from values; never read back."""
