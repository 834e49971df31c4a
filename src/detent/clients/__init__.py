"""The clients: programs that agents run in. One package a client, with its hook dialect, installation and adapter.

Nothing outside this package names a client. `registry` has the facts that others need, and imports packages by name.
"""
