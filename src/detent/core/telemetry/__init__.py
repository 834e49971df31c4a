"""Telemetry of a session as values: spans, metrics, and events for webhooks. Ids follow from the journal alone."""
