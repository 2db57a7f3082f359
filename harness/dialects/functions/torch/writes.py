"""Statements that write."""


def assigned(to, value):
    """A subscript assignment; returns what was written to."""
    to[...] = value
    return to
