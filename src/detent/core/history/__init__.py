"""Facts about many sessions: statistics of their gates, and the same sessions under another policy."""
