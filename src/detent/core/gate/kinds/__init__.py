"""The gate kinds that come with Detent, one module each."""
