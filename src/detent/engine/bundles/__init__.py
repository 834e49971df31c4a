"""Bundles: a session as one file, to verify it, to publish it, or to create it in another project."""
