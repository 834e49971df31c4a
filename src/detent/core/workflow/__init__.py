"""The workflow: phase graph, phase keys, roles."""
