"""A session: its state, commands, events, and the rules that lead from one to the next."""
