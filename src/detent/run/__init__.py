"""The runner: drives a session with agents until it ends or needs a person."""
