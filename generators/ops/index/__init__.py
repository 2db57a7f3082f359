"""Operators that read or write elements at indices."""
