"""The commands, one module a verb or family of verbs."""
