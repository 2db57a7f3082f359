"""Models that are given, rather than drawn: `python -m harness model PATH`."""
