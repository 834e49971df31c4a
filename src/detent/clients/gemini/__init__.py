"""Gemini CLI: its hook dialect, its installation and its adapter."""
