"""The guard decides whether an agent's tool call fits the state of the work.

A hook runs it before every tool call in a bare interpreter, so this package imports only builtins and its own modules.
"""
