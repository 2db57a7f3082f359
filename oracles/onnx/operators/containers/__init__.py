"""Operators on sequences, optional values and strings."""
