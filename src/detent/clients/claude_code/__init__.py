"""Claude Code: its hook dialect, its installation and its adapter."""
