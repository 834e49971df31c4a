"""The runner: a session from where it stands to its end, by agents."""
