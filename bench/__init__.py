"""Detent measured against what it is built on and against its peers, side by side in one run: `python -m bench`."""
