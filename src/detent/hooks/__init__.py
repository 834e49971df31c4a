"""What agents call: one process per event, an answer in the client's JSON, always exit 0."""
