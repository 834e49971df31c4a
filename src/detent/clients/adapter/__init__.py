"""Agents as processes: what a turn is, how a process is driven, and what readers of its output share."""
