"""Faults of hardware in training: what they do to the bits of a value, and where and when they strike."""
