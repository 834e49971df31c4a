"""The hook process that clients start for each event: it answers in the client's JSON and always exits with 0."""
