"""The session: events, commands, decide, evolve and the values they work on."""
