"""Tasks as values: their ids, documents, dependencies, states and rules. Knows nothing of journals and files."""
