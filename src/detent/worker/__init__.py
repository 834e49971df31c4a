"""Work on other machines: what travels between the run loop and the workers, and the worker itself."""
