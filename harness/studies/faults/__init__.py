"""Faults of hardware in training, and in what oracles look at."""
