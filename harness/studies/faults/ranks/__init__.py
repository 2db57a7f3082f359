"""Faults on one rank of a distribution strategy."""
