"""Test runs: which command runs tests, and whether a run passed."""
