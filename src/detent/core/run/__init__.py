"""A run as values: events of agents and of the run, its view, estimates, isolation."""
