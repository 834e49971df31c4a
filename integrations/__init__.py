"""Detent as a plugin of its clients, from one description. No part of the package."""
