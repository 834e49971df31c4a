"""Shared parts of the adapters: the interface of an agent, a driven process, readers of its output."""
