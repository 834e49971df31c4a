"""CI parity, attestations and telemetry with the tools of others: `make test-ci`."""
