"""What CI services show of a check: annotations and a summary."""
