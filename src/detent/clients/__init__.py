"""The clients: programs that agents run in. One room a client, with its hook dialect, its installation and its adapter.

Nothing outside this package names a client. `registry` has the facts that others need; the rooms are loaded by name.
"""
